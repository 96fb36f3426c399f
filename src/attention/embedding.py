"""Tokens to vectors that know where they stand, and vectors back to logits."""

import math

from torch import Tensor, nn

from . import _checks as check
from .positions import LearnedPositions, T5Bias, alibi_bias, sinusoidal_encoding

POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", "t5", "none")


class Embedding(nn.Module):
    """Turn tokens into vectors that know where they stand, and vectors back into logits.

    positions: "sinusoidal" or "learned" are added here; "alibi" and "t5" come from `bias`;
    "rotary" happens in the attention. scaled: multiply the token vectors by sqrt(d_model); tied:
    use the same table for the logits. Vaswani et al. 2017, section 3.4.

    >>> import torch
    >>> Embedding(10, 4, num_heads=2)(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 4])
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        *,
        positions: str = "sinusoidal",
        max_len: int = 512,
        dropout: float = 0.0,
        scaled: bool = True,
        tied: bool = True,
        bidirectional: bool = True,
    ):
        super().__init__()
        for name, count in (("vocab_size", vocab_size), ("d_model", d_model),
                            ("num_heads", num_heads), ("max_len", max_len)):  # fmt: skip
            check.count(name, count)
        check.one_of("positions", positions, POSITIONS)
        check.fraction("dropout", dropout)
        for name, flag in (("scaled", scaled), ("tied", tied), ("bidirectional", bidirectional)):
            check.flag(name, flag)
        if positions == "sinusoidal":
            sinusoidal_encoding(1, d_model)  # refuses an odd d_model now
        self.positions, self.num_heads, self.dropout = positions, num_heads, nn.Dropout(dropout)
        self.tokens = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)  # of unit size once scaled
        self.factor = math.sqrt(d_model) if scaled else 1.0
        self.learned = LearnedPositions(max_len, d_model) if positions == "learned" else None
        self.t5 = T5Bias(num_heads, bidirectional=bidirectional) if positions == "t5" else None
        self.output = None if tied else nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """ids (B, n), the first standing at position `start`, to (B, n, d_model)."""
        check.token_ids("ids", ids, self.tokens.weight)
        check.count("start", start, least=0)
        x = self.tokens(ids) * self.factor
        n, d_model = x.shape[-2:]
        if self.positions == "sinusoidal":
            x = x + sinusoidal_encoding(n, d_model, start=start, device=x.device).to(x.dtype)
        elif self.learned is not None:
            x = x + self.learned(n, start)
        return self.dropout(x)

    def bias(self, n_q: int, n_k: int) -> Tensor | None:
        """What the positions add to the scores: (1, h, n_q, n_k), for all sequences, or None."""
        if self.t5 is not None:
            return self.t5(n_q, n_k)[None]
        if self.positions == "alibi":
            weight = self.tokens.weight
            return alibi_bias(self.num_heads, n_q, n_k, device=weight.device).to(weight.dtype)[None]
        return None

    def logits(self, x: Tensor) -> Tensor:
        """x (B, n, d_model) to (B, n, vocab_size)."""
        check.width("x", x, self.tokens.embedding_dim)
        return x @ self.tokens.weight.T if self.output is None else self.output(x)

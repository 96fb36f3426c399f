"""One sentence's journey: the reader's words through the model of the tales, stop by stop."""

from __future__ import annotations

import functools
from typing import Any

import torch
import traitlets
from torch import Tensor, nn

from attention import pretrained
from attention.byte_pairs import BytePairs
from attention.masks import causal_mask
from attention.models import LanguageModel
from attention.positions import sinusoidal_encoding

from ._base import Explorer, Whole, draw_heatmap, figure, text_within
from .write import START, visible

MOST = 32  # tokens of a journey: the text's last ones
LONGEST = 100  # characters
FOLD = 40  # numbers in a row of the folded vocabulary
TOP = 10
BEFORE = ("letters", "tokens", "ids", "vectors", "positions", "sum of both")
BLOCK = ("norm", "Q", "K", "V", "scores", "mask", "softmax", "weights × V", "heads joined", "× W^O",
         "first sum", "second norm", "widened", "ReLU", "narrowed", "second sum")  # fmt: skip
AFTER = ("last norm", "logits", "probabilities", "next token")
STOPS = (
    *((part, -1) for part in BEFORE),
    *((part, layer) for layer in range(3) for part in BLOCK),
    *((part, -1) for part in AFTER),
)


@functools.cache
def _model() -> tuple[LanguageModel, BytePairs]:
    return pretrained.pretrained_tales()


@functools.lru_cache(maxsize=8)
@torch.no_grad()
def _travel(ids: tuple[int, ...]) -> dict[tuple[str, int], Tensor]:
    """Every tensor of one reading, by stop: what goes into and comes out of the model's parts."""
    model: Any = _model()[0]
    found: dict[tuple[str, int], Tensor] = {}

    def note(module: nn.Module, out: tuple[str, int], into: tuple[str, int] | None = None) -> Any:
        def hook(module: nn.Module, given: tuple, result: Any) -> None:
            found[out] = (result[0] if isinstance(result, tuple) else result)[0]
            if into:
                found[into] = given[0][0]

        return module.register_forward_hook(hook)

    hooks = [note(model.norm, ("last norm", -1))]
    for i, block in enumerate(model.layers):
        attend, forward = block.attention, block.feed_forward
        hooks += [
            note(block.add_attention.norm, ("norm", i), ("before", i)),
            note(attend.w_q, ("Q", i)),
            note(attend.w_k, ("K", i)),
            note(attend.w_v, ("V", i)),
            note(attend.w_o, ("× W^O", i), ("heads joined", i)),
            note(block.add_feed_forward.norm, ("second norm", i), ("first sum", i)),
            note(forward.widen, ("widened", i)),
            note(forward.narrow, ("narrowed", i), ("ReLU", i)),
            note(block.add_feed_forward, ("second sum", i)),
        ]
    given = torch.tensor([ids])
    logits, weights = model(given, return_weights=True)
    for hook in hooks:
        hook.remove()
    n, d = len(ids), model.config.d_model
    embedding = model.embedding
    found["vectors", -1] = embedding.tokens(given)[0] * embedding.factor
    found["positions", -1] = sinusoidal_encoding(n, d)
    found["sum of both", -1] = found["before", 0]
    found["logits", -1] = logits[0, -1]
    found["probabilities", -1] = logits[0, -1].softmax(-1)
    for i, block in enumerate(model.layers):
        q, k = (block.attention._split_heads(found[name, i]) for name in "QK")
        found["scores", i] = q @ k.mT / block.attention.d_k**0.5
        found["mask", i] = found["scores", i].masked_fill(~causal_mask(n, n), -torch.inf)
        found["softmax", i] = weights[i][0]
        joined = found["heads joined", i]
        found["weights × V", i] = joined.unflatten(-1, (-1, block.attention.d_k)).transpose(0, 1)
    return found


class Journey(Explorer):
    """The reader's own words through the small model of the tales, from letters to the next word.

    Traits, to read and to set: `text` (at most 100 characters; the last 32 tokens are taken);
    `stop`, 0 to 57, a place in `STOPS`; `head`, 0 to 3, where a stop shows one head; `row` and
    `column`, the cell whose arithmetic is written out (row -1: the last token; from the logits on,
    column is a token's number); `playing`, whether the page goes on by itself. `tokens`, `part`,
    `tensor` and `next_token` answer in Python, with the model's own numbers.

    >>> w = Journey(text="Once upon a", stop=STOPS.index(("Q", 0)))
    >>> w.part, tuple(w.tensor.shape) == (len(w.tokens), 96)
    ('block 0, Q', True)
    """

    name = "journey"
    title = "One sentence's journey"

    text = traitlets.Unicode("One day the young dragon").tag(sync=True)
    stop = Whole(0, 0, len(STOPS) - 1)
    head = Whole(0, 0, 3)
    row = Whole(-1, -1, MOST - 1)
    column = Whole(0, 0, 955)
    playing = traitlets.Bool(False).tag(sync=True)

    @traitlets.validate("text")
    def _check_text(self, proposal: Any) -> str:
        return text_within(proposal["value"], LONGEST)

    @property
    def model(self) -> LanguageModel:
        """The trained model, in float32, with the weights that the page has."""
        return _model()[0]

    @property
    def ids(self) -> list[int]:
        """The tokens that the model reads, a line end before the text: at most 32."""
        return [START, *_model()[1].encode(self.text).tolist()][-MOST:]

    @property
    def tokens(self) -> list[str]:
        """The same as pieces of text."""
        return _model()[1].pieces(self.ids)

    @property
    def part(self) -> str:
        """The name of the stop: "vectors", "block 0, Q", …"""
        part, layer = STOPS[self.stop]
        return part if layer < 0 else f"block {layer}, {part}"

    @property
    def tensor(self) -> Tensor:
        """The tensor at the stop; one head's where the stop shows one head.

        The letters' code points, the tokens' ids, (n, d) and (n, n) in the model, (956,) after it;
        at the last stop the probabilities of the ten likeliest tokens.
        """
        part, _ = STOPS[self.stop]
        if part == "letters":
            return torch.tensor([ord(letter) for letter in self.text or " "])
        if part in ("tokens", "ids"):
            return torch.tensor(self.ids)
        found = _travel(tuple(self.ids))
        if part == "next token":
            return found["probabilities", -1].topk(TOP).values
        tensor = found[STOPS[self.stop]]
        return tensor[self.head] if tensor.ndim == 3 else tensor

    @property
    def next_token(self) -> str:
        """The likeliest token after the text."""
        best = _travel(tuple(self.ids))["probabilities", -1].argmax()
        return _model()[1].pieces([int(best)])[0]

    @property
    def caption(self) -> str:
        shape = " by ".join(map(str, self.tensor.shape))
        return (
            f"“{self.text}” on its way through a small language model, stop {self.stop + 1} of "
            f"{len(STOPS)}: {self.part} ({shape}). At the end the likeliest next token is "
            f"“{visible(self.next_token)}”."
        )

    def still(self) -> Any:
        fig, axes = figure(6.8, 4.2, nrows=3, ncols=3)
        found = _travel(tuple(self.ids))
        shown = [visible(token) for token in self.tokens]
        pictures = [
            *(("vectors", -1), ("positions", -1), ("Q", 0), ("K", 0), ("V", 0), ("softmax", 0)),
            *(("ReLU", 0), ("second sum", 2)),
        ]
        for ax, (part, layer) in zip(axes.flat, pictures, strict=False):
            table = found[part, layer]
            table = table[self.head] if table.ndim == 3 else table
            most = float(table.abs().max()) or 1.0
            first = ax is axes[0][0] or ax is axes[1][0] or ax is axes[2][0]
            draw_heatmap(ax, table.numpy(), shown if first else [], [],
                         part if layer < 0 else f"block {layer}: {part}", signed=most,
                         digits=None)  # fmt: skip
            ax.images[0].set_interpolation("nearest")  # equal rows of points: a small file
        best = found["probabilities", -1].topk(5)
        last = axes[2][2]
        words = [visible(piece) for piece in _model()[1].pieces(best.indices)]
        last.barh(range(5), best.values.tolist(), color="#0072b2")
        last.set_yticks(range(5), words, fontsize=9)
        last.invert_yaxis()
        last.set_title("next token", fontsize=10)
        return fig

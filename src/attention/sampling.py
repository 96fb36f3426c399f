"""From logits to the probabilities that the next token is drawn from."""

import torch
from torch import Tensor

from . import _checks as check
from .functional import softmax


def next_token_probabilities(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Turn logits into the probabilities to sample from, the unlikely tokens cut off.

    logits (..., vocab_size); returns the same shape. top_k keeps the k likeliest tokens; top_p
    the fewest whose probabilities reach p. What is left sums to 1 again. A logit of -inf rules
    its token out. ValueError if an argument is out of range, or no token is left to choose from.
    Fan et al. 2018 (top-k); Holtzman et al. 2020 (top-p), section 3.1.

    >>> next_token_probabilities(torch.tensor([0.5, 0.3, 0.2]).log(), top_p=0.7)
    tensor([0.6250, 0.3750, 0.0000])
    """
    _check_sampling(logits, top_k, top_p)
    probabilities = softmax(logits, temperature)
    ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)
    drop = torch.zeros_like(ranked, dtype=torch.bool)
    if top_k is not None:
        drop[..., top_k:] = True
    if top_p is not None and top_p < 1:  # 1 keeps all tokens, whatever their sum is rounded to
        wide = torch.promote_types(ranked.dtype, torch.float32)
        drop |= ranked.cumsum(-1, dtype=wide) - ranked >= top_p  # the ones before reach p
    kept = torch.zeros_like(probabilities).scatter(-1, order, ranked.masked_fill(drop, 0.0))
    return kept / kept.sum(-1, keepdim=True)


def _check_sampling(logits: Tensor, top_k: int | None, top_p: float | None) -> None:
    check.floating("logits", logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits must be (..., vocab_size), not empty; got {check.shape(logits)}")
    best = logits.amax(-1)
    if not check.may_hold(best.isfinite().all()):
        raise ValueError(f"logits must have a finite largest one in each row; got {best.tolist()}")
    if top_k is not None:
        check.count("top_k", top_k)
    if top_p is not None:
        check.number("top_p", top_p)
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must be greater than 0 and at most 1; got {top_p}")

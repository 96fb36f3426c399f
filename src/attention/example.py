"""The example that the book works by hand: two sentences, and six numbers a word that one can read.

*The cat sat on the mat because it was tired* (or *warm*). The numbers are chosen, not learned.
"""

from __future__ import annotations

import torch
from torch import Tensor

FEATURES = ("alive", "place", "pronoun", "adjective", "state", "wanted")

_VECTORS = {
    "cat": (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "mat": (0.0, 1.0, 0.0, 0.0, 0.0, 0.0),
    "it": (0.5, 0.5, 1.0, 0.0, 0.0, 0.0),  # it could be either
    "tired": (0.0, 0.0, 0.0, 1.0, 1.0, 0.0),
    "warm": (0.0, 0.0, 0.0, 1.0, -1.0, 0.0),
}  # "wanted" is empty at first: what a word looks for is filled in by a layer


def cat_sentence(ending: str = "tired") -> tuple[list[str], Tensor]:
    """The ten words, and one row of `FEATURES` for each, X (10, 6).

    ending "tired" or "warm"; ValueError if it is another. A word that says nothing about who *it*
    is has six zeros.

    >>> words, X = cat_sentence("tired")
    >>> words[1], X[1]
    ('cat', tensor([1., 0., 0., 0., 0., 0.]))
    """
    if ending not in ("tired", "warm"):
        raise ValueError(f'ending must be "tired" or "warm"; got {ending!r}')
    words: list[str] = [*"The cat sat on the mat because it was".split(), ending]
    return words, torch.tensor([_VECTORS.get(word, (0.0,) * len(FEATURES)) for word in words])

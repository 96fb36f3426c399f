"""Byte pair encoding: pieces of words as tokens, and a token for whatever text a reader types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from . import _checks as check

# A word with the space before it, a number, a run of other signs, white space. ASCII classes only,
# so that JavaScript cuts in the same places.
_WORDS = re.compile(r" ?[A-Za-z']+| ?[0-9]+| ?[^ \t\r\nA-Za-z0-9']+|[ \t\r\n]+")

Pair = tuple[int, int]


def _merged(ids: Sequence[int], pair: Pair, new: int) -> tuple[int, ...]:
    """The ids with every occurrence of the pair, from left to right, replaced by `new`."""
    out, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            out.append(new)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return tuple(out)


def learn_merges(text: str, count: int) -> list[Pair]:
    """Merge the most frequent pair of neighbours, `count` times; return the pairs in order.

    Ids 0 to 255 are bytes, and merge number i makes the id 256 + i. No merge crosses from one word
    to the next. Of pairs that are equally frequent the one with the smaller ids goes first.
    Fewer than `count` come back if no pair occurs twice any more. Sennrich et al. 2016, section 3.

    >>> learn_merges("cat cats mat", 2)  # a, t; then c, at (99, 256)
    [(97, 116), (99, 256)]
    """
    _check_text("text", text)
    check.count("count", count, least=0)
    words = Counter(tuple(word.encode()) for word in _WORDS.findall(text))  # bytes, how often
    merges: list[Pair] = []
    while len(merges) < count:
        pairs: Counter[Pair] = Counter()
        for ids, often in words.items():
            for pair in zip(ids, ids[1:], strict=False):
                pairs[pair] += often
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        new = 256 + len(merges)
        merges.append(best)
        together: Counter[tuple[int, ...]] = Counter()
        for ids, often in words.items():
            together[_merged(ids, best, new) if best[0] in ids else ids] += often
        words = together
    return merges


class BytePairs:
    """Text to ids and back, by merges as `learn_merges` gives them; exact for any text.

    >>> tokens = BytePairs(learn_merges("cat cats mat", 2))
    >>> ids = tokens.encode("cat mat")
    >>> tokens.pieces(ids), tokens.decode(ids)
    (['cat', ' ', 'm', 'at'], 'cat mat')
    """

    def __init__(self, merges: Iterable[Pair]):
        if not isinstance(merges, Iterable):
            raise TypeError(f"merges must be pairs of ids; got {check.kind(merges)}")
        self.merges = [(int(a), int(b)) for a, b in merges]
        self._bytes = [bytes([i]) for i in range(256)]
        for number, (a, b) in enumerate(self.merges):
            if not (0 <= a < 256 + number and 0 <= b < 256 + number):
                raise ValueError(f"merges must join earlier ids; number {number} joins {a}, {b}")
            self._bytes.append(self._bytes[a] + self._bytes[b])
        self._rank = {pair: 256 + i for i, pair in enumerate(self.merges)}
        self._known: dict[str, tuple[int, ...]] = {}  # words met before

    def __len__(self) -> int:
        return len(self._bytes)

    def encode(self, text: str) -> Tensor:
        """Text to ids (n,). ValueError if it holds half of a surrogate pair, which is no text."""
        _check_text("text", text)
        ids = [i for word in _WORDS.findall(text) for i in self._word(word)]
        return torch.tensor(ids, dtype=torch.int64)

    def _word(self, word: str) -> tuple[int, ...]:
        if word not in self._known:
            ids = tuple(word.encode())
            while pairs := [p for p in zip(ids, ids[1:], strict=False) if p in self._rank]:
                first = min(pairs, key=self._rank.__getitem__)  # the merge that was learned first
                ids = _merged(ids, first, self._rank[first])
            self._known[word] = ids
        return self._known[word]

    def decode(self, ids: Tensor | Sequence[int]) -> str:
        """ids (n,) to text; bytes that are no UTF-8, as a model may write them, become U+FFFD."""
        return b"".join(self._piece(i) for i in _listed(ids)).decode(errors="replace")

    def pieces(self, ids: Tensor | Sequence[int]) -> list[str]:
        """ids (n,) to n strings, one a token; a token that is part of a character shows U+FFFD."""
        return [self._piece(i).decode(errors="replace") for i in _listed(ids)]

    def _piece(self, i: int) -> bytes:
        if not 0 <= i < len(self):
            raise ValueError(f"ids must be from 0 to {len(self) - 1}; got {i}")
        return self._bytes[i]


def _listed(ids: Tensor | Sequence[int]) -> list[int]:
    if isinstance(ids, Tensor):
        if ids.ndim != 1:
            raise ValueError(f"ids must be (n,), the tokens of one text; got {check.shape(ids)}")
        ids = ids.tolist()
    if not isinstance(ids, Iterable):
        raise TypeError(f"ids must be (n,), the tokens of one text; got {check.kind(ids)}")
    return [int(i) for i in ids]


def _check_text(name: str, text: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string; got {check.kind(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} must be text that can be written as UTF-8; character {error.start} cannot"
        ) from None

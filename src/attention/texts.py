"""Real text to train on: the book's tales, or any text of the reader's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from . import _checks as check
from .byte_pairs import BytePairs, learn_merges

MERGES = 700
_TALES = Path(__file__).with_name("tales.txt")


@dataclass(frozen=True)
class Text:
    """A text as tokens: most of it to train on, the rest held out. Made by `tales`, `from_text`.

    The merges are learned from the training part alone.
    """

    tokens: BytePairs
    train: str
    held_out: str

    def batches(self, length: int, batch_size: int = 16, seed: int = 0) -> Iterator[Tensor]:
        """Endless batches of ids (batch_size, length + 1) from random starts in the training part.

        ValueError if the training part has no more than `length` tokens.
        """
        check.count("length", length)
        check.count("batch_size", batch_size)
        check.count("seed", seed, least=0)
        ids = self.tokens.encode(self.train)
        if len(ids) <= length:
            raise ValueError(
                f"length must be less than the training part, {len(ids)} tokens; got {length}"
            )

        def deal() -> Iterator[Tensor]:
            generator = torch.Generator().manual_seed(seed)
            while True:
                starts = torch.randint(len(ids) - length, (batch_size,), generator=generator)
                yield ids[starts[:, None] + torch.arange(length + 1)]

        return deal()

    def windows(self, length: int) -> Tensor:
        """The held-out part cut into ids (N, length + 1), each beginning where the last one ended.

        Together they predict every held-out token but the first once; what is left over at the
        end is dropped. ValueError if the held-out part has no more than `length` tokens.
        """
        check.count("length", length)
        ids = self.tokens.encode(self.held_out)
        if len(ids) <= length:
            raise ValueError(
                f"length must be less than the held-out part, {len(ids)} tokens; got {length}"
            )
        return ids.unfold(0, length + 1, length)


@cache
def tales() -> Text:
    """The book's tales, one a line; every tenth is held out.

    >>> text = tales()
    >>> len(text.tokens), text.tokens.pieces(text.tokens.encode("The cat sat."))
    (956, ['The', ' cat', ' sat', '.'])
    """
    lines = _TALES.read_text(encoding="utf-8").splitlines(keepends=True)
    train = "".join(line for i, line in enumerate(lines) if i % 10 != 9)
    return Text(BytePairs(learn_merges(train, MERGES)), train, "".join(lines[9::10]))


def from_text(source: str | Path, merges: int = MERGES) -> Text:
    """Any text of the reader's: a string, or a Path to a file in UTF-8; its last tenth is held out.

    ValueError if it is shorter than 1,000 characters or not text.

    >>> text = from_text("One day the cat sat on the mat. " * 100)
    >>> len(text.train), len(text.held_out)
    (2880, 320)
    """
    check.count("merges", merges, least=0)
    if isinstance(source, Path):
        name = f"the file {source}"
        try:
            text = source.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"source must be text in UTF-8; {name} is not") from None
    elif isinstance(source, str):
        name, text = "the string", source
        if len(source) < 300 and "\n" not in source and Path(source).suffix:
            raise ValueError(f"source must be a text or a Path; for a file: Path({source!r})")
    else:
        raise TypeError(f"source must be a string or a pathlib.Path; got {check.kind(source)}")
    if "\0" in text:
        raise ValueError(f"source must be text; {name} holds the character NUL")
    if len(text.strip()) < 1000:
        raise ValueError(
            f"source must have 1,000 characters or more; {name} has {len(text.strip())}"
        )
    cut = len(text) - len(text) // 10
    train = text[:cut]
    return Text(BytePairs(learn_merges(train, merges)), train, text[cut:])

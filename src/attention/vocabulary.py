"""Words to numbers and back, and numbers dealt out in batches."""

import math
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from . import _checks as check


class Vocabulary:
    """Number the words: `pad` is 0, `start` 1, `end` 2, the others follow in the order given.

    >>> vocabulary = Vocabulary(["the", "sun", "sets"])
    >>> ids = vocabulary.encode("the sun sets")
    >>> ids, vocabulary.decode(ids)
    (tensor([3, 4, 5]), 'the sun sets')
    """

    pad, start, end = 0, 1, 2

    def __init__(self, words: Iterable[str]):
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise TypeError(f"words must be a list of words; got {words!r}")
        self.words = list(dict.fromkeys(["<pad>", "<start>", "<end>", *words]))
        self._ids = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def __getitem__(self, word: str) -> int:
        if not isinstance(word, str) or word not in self._ids:
            raise KeyError(f"the vocabulary of {len(self)} words does not hold {word!r}")
        return self._ids[word]

    def encode(self, text: str | Iterable[str]) -> Tensor:
        """A sentence, or a list of words, to ids (n,). KeyError if a word is unknown."""
        if not isinstance(text, Iterable):
            raise TypeError(f"text must be a sentence or a list of words; got {text!r}")
        words = text.split() if isinstance(text, str) else text
        return torch.tensor([self[word] for word in words], dtype=torch.int64)

    def decode(self, ids: Tensor | Iterable[int]) -> str:
        """ids (n,) to a sentence: what stands before <end>, without <start> and padding."""
        if isinstance(ids, Tensor) and ids.ndim != 1 or not isinstance(ids, Iterable):
            came = check.shape(ids) if isinstance(ids, Tensor) else check.kind(ids)
            raise ValueError(f"ids must be (n,), the tokens of one sentence; got {came}")
        words = []
        for i in ids.tolist() if isinstance(ids, Tensor) else ids:
            if check.count("ids", i, least=-math.inf) == self.end:
                break
            if not 0 <= i < len(self):
                raise ValueError(f"ids must be from 0 to {len(self) - 1}; got {i}")
            if i not in (self.pad, self.start):
                words.append(self.words[i])
        return " ".join(words)

    def encode_batch(
        self, sentences: Iterable[str], start: bool = True, end: bool = True
    ) -> Tensor:
        """B sentences to ids (B, n), with <start> and <end> if wanted, padded to the longest."""
        if isinstance(sentences, str) or not isinstance(sentences, Iterable):
            raise TypeError(f"sentences must be a list of sentences; got {sentences!r}")
        check.flag("start", start)
        check.flag("end", end)
        first, last = [self.start] * start, [self.end] * end
        rows = [first + self.encode(sentence).tolist() + last for sentence in sentences]
        if not rows:
            raise ValueError("sentences must hold at least one; got none")
        n = max(map(len, rows))
        padded = [row + [self.pad] * (n - len(row)) for row in rows]
        return torch.tensor(padded, dtype=torch.int64)


def batches(*tensors: Tensor, batch_size: int, seed: int = 0) -> Iterator[tuple[Tensor, ...]]:
    """Deal out rows for ever, shuffled anew in each round: tuples of (batch_size, ...).

    Tensors (N, ...) with equal N. The same seed gives the same batches. ValueError if N differs
    or is less than batch_size.

    >>> next(batches(torch.arange(5), batch_size=2, seed=0))[0].shape
    torch.Size([2])
    """
    check.count("batch_size", batch_size)
    check.count("seed", seed, least=0)
    for x in tensors:
        if not isinstance(x, Tensor) or x.ndim == 0:
            raise TypeError(f"tensors must be tensors (N, ...); got {x!r}")
    sizes = [len(x) for x in tensors]
    if not sizes or len(set(sizes)) > 1 or sizes[0] < batch_size:
        raise ValueError(f"tensors must share a size of batch_size or more; got {sizes}")

    def deal() -> Iterator[tuple[Tensor, ...]]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            order = torch.randperm(sizes[0], generator=generator)
            for rows in order.split(batch_size):
                if len(rows) == batch_size:
                    yield tuple(x[rows.to(x.device)] for x in tensors)

    return deal()

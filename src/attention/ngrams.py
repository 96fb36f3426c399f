"""What counting can do: n-gram models to compare a language model with, and copies to look for."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from torch import Tensor

from . import _checks as check


class NGrams:
    """Predict a token from the n - 1 before it by counts, a long context leaning on the shorter.

    ids (n,) is the training text. Each count gives up a `discount`, and what a context saves so is
    spread as the context without its first token predicts; the shortest leans on equal chances.
    n = 1 is the unigram model, 2 the bigram, 3 the trigram. Chen and Goodman 1999, section 2.

    >>> import torch
    >>> model = NGrams(torch.tensor([0, 1, 0, 1, 0]), n=2, vocab_size=2)
    >>> round(model.probability([0], 1), 3)
    0.775
    """

    def __init__(self, ids: Tensor, n: int, vocab_size: int, discount: float = 0.75):
        check.integers("ids", ids)
        check.count("n", n)
        check.count("vocab_size", vocab_size)
        check.fraction("discount", discount)
        self.n, self.vocab_size, self.discount = n, vocab_size, discount
        self.counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        self.totals: Counter[tuple[int, ...]] = Counter()
        tokens = ids.tolist()
        for i, token in enumerate(tokens):
            for before in range(min(n, i + 1)):
                context = tuple(tokens[i - before : i])
                self.counts[context][token] += 1
                self.totals[context] += 1

    def probability(self, context: Sequence[int], token: int) -> float:
        """How likely `token` is after `context`, of which the last n - 1 tokens count."""
        tail = tuple(context)[max(0, len(context) - self.n + 1) :]
        p = 1 / self.vocab_size
        for start in range(len(tail), -1, -1):  # from no context to the longest
            seen = tail[start:]
            if total := self.totals[seen]:
                followers = self.counts[seen]
                saved = self.discount * len(followers) / total
                p = max(followers[token] - self.discount, 0) / total + saved * p
        return p

    def loss(self, ids: Tensor) -> float:
        """The mean cross-entropy of the tokens ids (n,), each given those before it, in nats."""
        tokens = ids.tolist()
        log = [
            math.log(self.probability(tokens[max(0, i - self.n + 1) : i], token))
            for i, token in enumerate(tokens)
        ]
        return -sum(log) / len(log)


def longest_copy(text: str, source: str) -> str:
    """The longest run of words of `text` that stands in `source` word for word; first of equals.

    >>> longest_copy("and the old cat sat down again", "The old cat sat down. Then")
    'old cat sat'
    """
    for name, value in (("text", text), ("source", source)):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string; got {check.kind(value)}")
    words, where = text.split(), f" {' '.join(source.split())} "
    best, start = "", 0
    for end in range(1, len(words) + 1):
        while start < end and f" {' '.join(words[start:end])} " not in where:
            start += 1
        if end - start > len(best.split()):
            best = " ".join(words[start:end])
    return best

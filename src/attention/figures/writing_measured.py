"""What chapter 8 measures: counted language models, kinds of tokens, copies, and the heads."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

DISCOUNT = 0.75


class Counted:
    """A language model that only counts: the token after the last `order - 1` tokens.

    Contexts that it has not seen, or not with this token, fall back on shorter ones: each count
    gives up DISCOUNT, and the shorter context shares out what was given up. Chen and Goodman 1996
    compare such models.
    """

    def __init__(self, ids: Tensor, order: int, size: int):
        self.order, self.size = order, size
        self.seen: list[dict[tuple, Counter]] = [defaultdict(Counter) for _ in range(order)]
        row = ids.tolist()
        for i, token in enumerate(row):
            for length in range(min(order, i + 1)):
                self.seen[length][tuple(row[i - length : i])][token] += 1

    def probabilities(self, past: Sequence[int]) -> Tensor:
        """The probability of each token (size,) after the tokens `past`."""
        p = torch.full((self.size,), 1 / self.size, dtype=torch.float64)
        for length in range(min(self.order, len(past) + 1)):
            found = self.seen[length].get(tuple(past[len(past) - length :]))
            if not found:
                break
            total = sum(found.values())
            p *= DISCOUNT * len(found) / total
            where = torch.tensor(list(found))
            often = torch.tensor(list(found.values()), dtype=torch.float64)
            p[where] += (often - DISCOUNT) / total
        return p

    def loss(self, ids: Tensor) -> float:
        """The mean of -ln p over the tokens of ids (n,) but the first ones, in nats."""
        row, reach = ids.tolist(), self.order - 1
        total = sum(
            -self.probabilities(row[max(0, i - reach) : i])[row[i]].log().item()
            for i in range(1, len(row))
        )
        return total / (len(row) - 1)

    def write(self, start: Sequence[int], count: int, seed: int = 0) -> list[int]:
        """Go on from `start` by `count` tokens drawn at random."""
        generator = torch.Generator().manual_seed(seed)
        row = list(start)
        for _ in range(count):
            p = self.probabilities(row[max(0, len(row) - self.order + 1) :])
            row.append(int(torch.multinomial(p, 1, generator=generator)))
        return row


KINDS = ("signs", "quotes", "words", "ends of words", "names")


def kind_of(piece: str, before: str) -> str:
    """Which of KINDS a piece of text is; a capital letter within a sentence begins a name."""
    if not re.search(r"[A-Za-z0-9]", piece):
        return "quotes" if '"' in piece else "signs"
    if not piece.startswith(" "):
        return "ends of words" if before[-1:].isalpha() or before[-1:] == "'" else "words"
    if piece[1:2].isupper() and before[-1:].isalpha() and piece.strip() not in ("I", "Mr", "Mrs"):
        return "names"
    return "words"


@torch.no_grad()
def loss_by_kind(model: Callable[[Tensor], Tensor], windows: Tensor, tokens) -> dict[str, float]:
    """The mean held-out loss of each kind of token in windows (N, n + 1)."""
    each = token_losses(model, windows)
    sums, counts = Counter(), Counter()
    for row, losses in zip(windows, each, strict=True):
        parts = tokens.pieces(row)
        for before, piece, loss in zip(parts[:-1], parts[1:], losses.tolist(), strict=True):
            kind = kind_of(piece, before)
            sums[kind] += loss
            counts[kind] += 1
    return {kind: sums[kind] / counts[kind] for kind in KINDS if counts[kind]}


@torch.no_grad()
def token_losses(model: Callable[[Tensor], Tensor], windows: Tensor) -> Tensor:
    """-ln p of each next token: windows (N, n + 1) to (N, n)."""
    logits = model(windows[:, :-1])
    flat = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="none")
    return flat.view(windows.shape[0], -1)


def longest_copy(sample: str, text: str) -> list[str]:
    """The longest run of whole words that the sample shares with the text."""
    words, spaced = sample.split(), " " + " ".join(text.split()) + " "
    best: list[str] = []
    for i in range(len(words)):
        while " " + " ".join(words[i : i + len(best) + 1]) + " " in spaced:
            if i + len(best) + 1 > len(words):
                break
            best = words[i : i + len(best) + 1]
    return best


def real_words(sample: str, text: str) -> float:
    """The share of the sample's words that occur in the text."""
    known = set(re.findall(r"[a-z']+", text.lower()))
    words = re.findall(r"[a-z']+", sample.lower())
    return sum(word in known for word in words) / max(1, len(words))


def repeated(ids: Sequence[int], length: int = 4) -> float:
    """The share of runs of `length` tokens that came before in the same sample."""
    runs = [tuple(ids[i : i + length]) for i in range(len(ids) - length + 1)]
    return 1 - len(set(runs)) / len(runs)

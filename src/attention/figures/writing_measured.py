"""What chapter 8 measures: the losses by kind of token, by context, of names and sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..byte_pairs import BytePairs
from ..ngrams import NGrams


def counted_text(counts: NGrams, start: Sequence[int], more: int, seed: int = 0) -> list[int]:
    """Go on from the tokens `start` by `more` tokens, drawn as a model that counts says."""
    generator = torch.Generator().manual_seed(seed)
    row = list(start)
    for _ in range(more):
        p = torch.tensor([counts.probability(row, i) for i in range(counts.vocab_size)])
        row.append(int(torch.multinomial(p, 1, generator=generator)))
    return row


KINDS = ("punctuation", "quotes", "words", "ends of words", "names")


def kind_of(piece: str, before: str) -> str:
    """Which of KINDS a piece of text is; a capital letter within a sentence begins a name."""
    if not re.search(r"[A-Za-z0-9]", piece):
        return "quotes" if '"' in piece else "punctuation"
    if not piece.startswith(" "):
        return "ends of words" if before[-1:].isalpha() or before[-1:] == "'" else "words"
    if piece[1:2].isupper() and before[-1:].isalpha() and piece.strip() not in ("I", "Mr", "Mrs"):
        return "names"
    return "words"


@torch.no_grad()
def loss_by_kind(
    model: Callable[[Tensor], Tensor], windows: Tensor, tokens: BytePairs
) -> dict[str, float]:
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


@torch.no_grad()
def loss_seeing(
    model: Callable[[Tensor], Tensor],
    windows: Tensor,
    seen: Sequence[int],
    positions: Sequence[int],
) -> Tensor:
    """The losses after the same positions of windows (N, n + 1) if only some tokens can be seen.

    A row for each number in `seen`: how many tokens the model sees, up to the one at the position.
    """
    return torch.stack([
        torch.cat([token_losses(model, windows[:, p - n + 1 : p + 2])[:, -1] for p in positions])
        for n in seen
    ])  # fmt: skip


def loss_of_names(
    model: Callable[[Tensor], Tensor], windows: Tensor, tokens: BytePairs
) -> tuple[float, float]:
    """The loss on tokens that begin a name: of names new in the window, of names met before."""
    new, met = [], []
    for part in windows.split(64):
        for row, losses in zip(part, token_losses(model, part), strict=True):
            parts = tokens.pieces(row)
            for i, loss in enumerate(losses.tolist(), start=1):
                if kind_of(parts[i], parts[i - 1]) == "names":
                    (met if row[i] in row[:i] else new).append(loss)
    return sum(new) / len(new), sum(met) / len(met)


def sentence_loss(model: Callable[[Tensor], Tensor], tokens: BytePairs, sentence: str) -> float:
    """What a whole sentence costs at the beginning of a tale, in nats."""
    return float(token_losses(model, tokens.encode("\n" + sentence)[None]).sum())

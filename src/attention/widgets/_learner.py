"""What "Train it here" trains, in PyTorch: its names, its model with switches, its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention.functional import attention
from attention.masks import causal_mask
from attention.models import LanguageModel

from ._base import normals, uniforms

CONTEXT = 12  # characters that the model sees
BATCH = 16  # sequences a step
WINDOWS = 48  # held-out sequences
LEAST, MOST = 200, 200_000  # characters of a text
RARE = "□"  # stands for all characters but the 95 most frequent
BEGIN = (
    "al an be bel ca da el em fe ga ha il jo ka le li lu ma mar mi na no or pa ra ro sa se ta ti u "
    "va vi wi yo ze"
).split()
MIDDLE = ["", *"bi da de la le li lo me mi na ni ra ri ro sa ti va vi".split()]
END = "a an as da e el en ia in is la lo n na ne o ra ro ta th us".split()
SWITCHES = ("mask", "scale", "positions", "residual", "norms")


@cache
def all_names() -> list[str]:
    """Every name that a beginning, perhaps a middle and an end make."""
    return list(dict.fromkeys("".join(parts) for parts in product(BEGIN, MIDDLE, END)))


@cache
def names() -> list[str]:
    """The 3,000 of them that the page has, in the order of a draw."""
    every = all_names()
    return [every[i] for i in uniforms(2026, 0, len(every)).argsort(kind="stable")[:3000]]


@dataclass(frozen=True)
class Task:
    """A text as numbers: most of it to train on, the rest held out, and where sequences begin."""

    letters: list[str]
    tokens: Tensor
    starts: Tensor
    held_tokens: Tensor
    held_starts: Tensor

    def batch(self, seed: int, step: int) -> tuple[Tensor, Tensor]:
        """ids and targets (16, 12) of a step, the page's own."""
        at = (uniforms(seed, step * BATCH, BATCH) * len(self.starts)).astype(np.int64)
        return _windows(self.tokens, self.starts[at])

    def held_out(self) -> tuple[Tensor, Tensor]:
        """ids and targets (48 at most, 12) that no step sees."""
        return _windows(self.held_tokens, self.held_starts)

    @property
    def shown(self) -> Tensor:
        """The sequence (12,) whose maps are drawn."""
        return self.held_out()[0][0]


def _windows(tokens: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    rows = tokens[starts[:, None] + torch.arange(CONTEXT + 1)]
    return rows[:, :-1], rows[:, 1:]


def make_task(text: str | None) -> Task:
    """The task of a text, or of the names if there is none."""
    if text is None:
        parts = ["\n" + "\n".join(some) + "\n" for some in (names()[:2700], names()[2700:])]
    else:
        text = _without_rare(text[:MOST])
        cut = len(text) * 9 // 10
        parts = [text[:cut], text[cut:]]
    letters = sorted(set("".join(parts)))
    tokens = [torch.tensor([letters.index(c) for c in part]) for part in parts]
    starts = [
        torch.tensor([i for i in range(len(ids) - CONTEXT) if text is not None or ids[i] == 0])
        for ids in tokens
    ]
    count = min(WINDOWS, len(starts[1]))
    held = starts[1][torch.arange(count) * len(starts[1]) // count]
    return Task(letters, tokens[0], starts[0], tokens[1], held)


def _without_rare(text: str) -> str:
    known = Counter(text)
    if len(known) <= 96:
        return text
    kept = sorted(known, key=lambda c: (-known[c], ord(c)))[:95]
    return "".join(c if c in kept else RARE for c in text)


def best_loss(task: Task) -> float:
    """What the held-out names cost one who knows every name that can be: nats a letter."""
    begun = Counter(name[:i] for name in all_names() for i in range(len(name) + 1))
    nats = []
    for row in task.held_out()[1].tolist():
        name = ""
        for letter in (task.letters[i] for i in row):
            longer = "" if letter == "\n" else name + letter
            nats.append(np.log(begun[name] / (begun[longer] if longer else 1)))
            name = longer
    return float(np.mean(nats))


def new_model(vocab: int, heads: int, seed: int) -> LanguageModel:
    """The book's own LanguageModel with the page's first weights, in double precision as there."""
    model = LanguageModel(
        vocab, 32, heads, 2, positions="learned", max_len=CONTEXT, tied=False, scaled=False
    ).double()
    bell = torch.from_numpy(normals(seed, sum(p.numel() for p in model.parameters())).copy())
    parts = bell.split([p.numel() for p in model.parameters()])
    with torch.no_grad():
        for (name, p), part in zip(model.named_parameters(), parts, strict=True):
            if p.ndim == 1:
                p.fill_(1.0 if name.endswith("norm.weight") else 0.0)
            else:
                p.copy_(part.view(p.shape) * _spread(name, p.shape[1]))
    return model


def _spread(name: str, into: int) -> float:
    if "embedding" in name:
        return 0.02 if "output" in name else 0.5
    gain = {"w_o": 0.5, "narrow": 0.5, "widen": 1.4}.get(name.split(".")[-2], 1.0)
    return gain / into**0.5


def forward(model: LanguageModel, ids: Tensor, on: dict[str, bool]) -> tuple[Tensor, Tensor]:
    """The model with its switches: ids (B, n) to logits (B, n, vocab), weights (2, B, h, n, n)."""
    embedding: Any = model.embedding
    x = embedding.tokens(ids)
    if on["positions"]:
        x = x + embedding.learned(ids.shape[1])
    mask = causal_mask(ids.shape[1]) if on["mask"] else None
    seen = []

    def sub_layer(add: Any, x: Tensor, layer: Any) -> Tensor:
        out = layer(add.norm(x) if on["norms"] else x)
        return x + out if on["residual"] else out

    def attend(layer: Any, x: Tensor) -> Tensor:
        q, k, v = (layer._split_heads(w(x)) for w in (layer.w_q, layer.w_k, layer.w_v))
        out, weights = attention(q, k, v, mask, scale=None if on["scale"] else 1.0)
        seen.append(weights)
        return layer.w_o(out.transpose(-3, -2).flatten(-2))

    blocks: Any = model.layers
    for block in blocks:
        x = sub_layer(block.add_attention, x, lambda h, block=block: attend(block.attention, h))
        x = sub_layer(block.add_feed_forward, x, block.feed_forward)
    return model.embedding.logits(model.norm(x) if on["norms"] else x), torch.stack(seen)


def loss_of(model: LanguageModel, batch: tuple[Tensor, Tensor], on: dict[str, bool]) -> Tensor:
    """The mean loss of a batch (ids, targets), in nats a character."""
    return F.cross_entropy(forward(model, batch[0], on)[0].flatten(0, 1), batch[1].flatten())


def steps(
    model: LanguageModel, task: Task, on: dict[str, bool], rate: float, seed: int, start: int = 0
) -> Iterator[float]:
    """Train without end, as the page does; give each step's loss."""
    tables = [p for p in model.parameters() if p.ndim > 1]
    lines = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": tables, "weight_decay": 0.01}, {"params": lines, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=rate)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)  # what a switch leaves out has a gradient of zero, not none
    while True:
        loss = loss_of(model, task.batch(seed, start), on)
        optimiser.zero_grad(set_to_none=False)
        loss.backward()
        optimiser.step()
        start += 1
        yield loss.item()

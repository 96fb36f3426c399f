"""What chapter 1 measures: recurrent layers and attention on the same three questions."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention.device import device
from attention.multi_head import MultiHeadAttention
from attention.positions import sinusoidal_encoding

NOUNS, WORDS = 4, 20  # the first words of a vocabulary are the nouns to remember
NAMES, COLOURS = 16, 4
Make = Callable[[], nn.Module]


def lstm(width: int, hidden: int | None = None, *, gate: float | None = None) -> nn.LSTM:
    """An LSTM from `width` to a state of `hidden` numbers (`width` of them unless given).

    gate: the bias of the forget gate; PyTorch's random one unless given.
    """
    hidden = hidden or width
    layer = nn.LSTM(width, hidden, batch_first=True)
    if gate is not None:
        with torch.no_grad():
            for name, value in (("bias_ih_l0", gate), ("bias_hh_l0", 0.0)):
                layer.get_parameter(name)[hidden : 2 * hidden] = value
    return layer


def layers(width: int) -> dict[str, Make]:
    """The four layers that the chapter compares: a name, and how to make one."""
    return {
        "plain recurrence": lambda: nn.RNN(width, width, batch_first=True),
        "LSTM, usual start": lambda: lstm(width),
        "LSTM, gate open": lambda: lstm(width, gate=4.0),
        "attention": lambda: MultiHeadAttention(width, num_heads=1),
    }


def effect(layer: nn.Module, n: int = 50, width: int = 64, tries: int = 20) -> Tensor:
    """How far the last of n outputs moves for a small change of a word, per length of it, (n,).

    The root of the mean square over random words and directions: the size of the Jacobian.
    """
    x = torch.randn(tries, n, width, requires_grad=True)
    out = layer(x)[0][:, -1]
    direction = F.normalize(torch.randn_like(out), dim=-1)
    (slope,) = torch.autograd.grad((out * direction).sum(), x)  # (tries, n, width)
    return slope.square().sum(-1).mean(0).sqrt()


def _train(layer: nn.Module, draw: Callable, hidden: int, answers: int, steps: int) -> float:
    """Train layer and a linear read-out of its last output on `draw(size)`; the share right."""
    read = nn.Linear(hidden, answers)
    optimizer = torch.optim.Adam([*layer.parameters(), *read.parameters()], 1e-2)
    for _ in range(steps):
        x, wanted = draw(64)
        optimizer.zero_grad()
        F.cross_entropy(read(layer(x)[0][:, -1]), wanted).backward()
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        x, wanted = draw(1000)
        return (read(layer(x)[0][:, -1]).argmax(-1) == wanted).float().mean().item()


def first_word(
    make: Make,
    n: int,
    *,
    nouns_later: bool = False,
    positions: bool = False,
    width: int = 32,
    steps: int = 300,
    seed: int = 0,
) -> tuple[float, nn.Module, Tensor]:
    """Train to name the first of n words: the share right, the layer, one text (1, n, width).

    The first word is one of `NOUNS`. The others are never nouns unless `nouns_later`; then they
    are drawn from all words. positions: each word's vector gets that of its position added.
    """
    torch.manual_seed(seed)
    layer = make()
    vectors = torch.randn(WORDS, width)
    where = sinusoidal_encoding(n, width) if positions else torch.zeros(n, width)

    def draw(size: int) -> tuple[Tensor, Tensor]:
        words = torch.randint(0 if nouns_later else NOUNS, WORDS, (size, n))
        words[:, 0] = torch.randint(NOUNS, (size,))
        return vectors[words] + where, words[:, 0]

    return _train(layer, draw, width, NOUNS, steps), layer, draw(1)[0]


def facts(
    make: Make, m: int, hidden: int = 32, *, width: int = 32, steps: int = 300, seed: int = 0
) -> float:
    """The share right after training to recall one of m facts, such as "the cat is red".

    Each fact is one vector, a name's plus a colour's; the last vector asks for a name's colour.
    """
    torch.manual_seed(seed)
    layer = make()
    names, colours = torch.randn(NAMES, width), torch.randn(COLOURS, width)
    ask = torch.randn(width)

    def draw(size: int) -> tuple[Tensor, Tensor]:
        who = torch.rand(size, NAMES).argsort(-1)[:, :m]
        colour = torch.randint(COLOURS, (size, m))
        rows, pick = torch.arange(size), torch.randint(m, (size,))
        question = names[who[rows, pick]] + ask
        text = torch.cat([names[who] + colours[colour], question[:, None]], 1)
        return text, colour[rows, pick]

    return _train(layer, draw, hidden, COLOURS, steps)


def milliseconds(lengths: tuple[int, ...], width: int = 64) -> dict[str, list[float]]:
    """How long a layer of each kind takes on this machine, the middle of five runs."""
    here = device()
    finish = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}
    wait = finish.get(here.type, lambda: None)  # a GPU is asked first and answers later
    cell = nn.RNN(width, width, batch_first=True).to(here).eval()
    heads = MultiHeadAttention(width, num_heads=1).to(here).eval()  # with its four matrices
    runs = {"recurrence": cell, "attention": lambda x: heads(x, need_weights=False)}
    took: dict[str, list[float]] = {name: [] for name in runs}
    with torch.no_grad():
        for n in lengths:
            x = torch.randn(1, n, width, device=here)
            for name, run in runs.items():
                run(x)
                wait()
                times = []
                for _ in range(5):
                    start = time.perf_counter()
                    run(x)
                    wait()
                    times.append(time.perf_counter() - start)
                took[name].append(1000 * sorted(times)[2])
    return took

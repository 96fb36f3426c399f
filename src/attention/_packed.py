"""A model's numbers in eight bits, and the random ones it starts from: what the page has too."""

from __future__ import annotations

import base64
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

Model = TypeVar("Model", bound=nn.Module)


def begin(model: Model) -> Model:
    """Give the model the random numbers that its training starts from: the same ones everywhere.

    PyTorch's own limits (sqrt(1 / inputs) in a linear layer), drawn by a generator that
    JavaScript has too: mulberry32 with seed 0.
    """
    at = 0
    with torch.no_grad():
        for name, x in model.state_dict().items():
            if "norm" in name:
                x.fill_(name.endswith("weight"))
                continue
            if name.endswith("weight"):  # a bias follows its weight, with the same limit
                limit = (3 if "tokens" in name else 1) ** 0.5 / x.shape[1] ** 0.5
            x.copy_(torch.from_numpy((2 * _uniform(at, x.numel()) - 1) * limit).view(x.shape))
            at += x.numel()
    return model


def _uniform(start: int, count: int) -> np.ndarray:
    """Numbers `start`, `start` + 1, … of the explorers' uniform stream of seed 0, in (0, 1)."""
    mask = np.uint64(0xFFFFFFFF)
    step = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    state = np.uint64(0x6D2B79F5) * step & mask
    t = (state ^ (state >> np.uint64(15))) * (state | np.uint64(1)) & mask
    t = t ^ ((t + ((t ^ (t >> np.uint64(7))) * (t | np.uint64(61)) & mask)) & mask)
    return ((t ^ (t >> np.uint64(14))).astype(np.float64) + 0.5) / 4294967296


def pack(model: nn.Module) -> dict[str, str]:
    """The model's numbers, rounded, as base64: matrices in `rows`, the rest in `halves`.

    Each row of a matrix becomes int8 times a factor, which stands in `halves` (float16), where
    biases and norms stand too; both in the order of the state_dict.
    """
    rows, halves = [], []
    for x in model.state_dict().values():
        x = x.detach().cpu().numpy()
        if x.ndim == 2:
            factor = (np.abs(x).max(1) / 127).astype(np.float16)
            safe = np.where(factor > 0, factor, 1).astype(np.float64)
            rows.append(np.clip(np.round(x / safe[:, None]), -127, 127).astype(np.int8))
            x = factor
        halves.append(x.astype("<f2"))
    text = [b"".join(part.tobytes() for part in parts) for parts in (rows, halves)]
    return dict(zip(("rows", "halves"), (base64.b64encode(t).decode() for t in text), strict=True))


def unpack(model: Model, packed: dict[str, str]) -> Model:
    """Put the numbers of `pack` into a model of the same sizes, and return it."""
    rows = torch.frombuffer(bytearray(base64.b64decode(packed["rows"])), dtype=torch.int8)
    halves = np.frombuffer(base64.b64decode(packed["halves"]), "<f2").astype(np.float32)
    rest, state, at = torch.from_numpy(halves), {}, 0
    wanted = sum(x.numel() for x in model.state_dict().values() if x.ndim == 2)
    if len(rows) != wanted:
        raise ValueError(f"packed must hold {wanted} numbers in rows; got {len(rows)}")

    def take(count: int) -> Tensor:
        nonlocal rest
        part, rest = rest[:count], rest[count:]
        return part

    for name, x in model.state_dict().items():
        state[name] = take(x.shape[0])
        if x.ndim == 2:
            state[name] = rows[at : at + x.numel()].view(x.shape) * state[name][:, None]
            at += x.numel()
    model.load_state_dict(state)
    return model

"""The trained weights that explorers carry: float16, base64, in `<explorer>_weights.js`."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import torch
from torch import nn

_HERE = Path(__file__).parent
_MODEL = re.compile(r'^  (\w+): "([A-Za-z0-9+/=]+)",$', re.MULTILINE)


def pack(model: nn.Module) -> str:
    """All numbers of the model's state_dict, in its order, as base64 of little-endian float16."""
    flat = torch.cat([x.detach().cpu().flatten() for x in model.state_dict().values()])
    return base64.b64encode(flat.numpy().astype("<f2").tobytes()).decode("ascii")


def unpack(model: nn.Module, text: str) -> nn.Module:
    """Put the numbers of `pack` into a model of the same sizes, in eval mode; return it."""
    flat = torch.from_numpy(np.frombuffer(base64.b64decode(text), "<f2").astype(np.float32))
    state = model.state_dict()
    wanted = sum(x.numel() for x in state.values())
    if len(flat) != wanted:
        raise ValueError(f"the model has {wanted} numbers; got {len(flat)}")
    parts = flat.split([x.numel() for x in state.values()])
    model.load_state_dict(
        {name: part.view(x.shape) for (name, x), part in zip(state.items(), parts, strict=True)}
    )
    return model.eval()


def read(explorer: str) -> dict[str, str]:
    """The packed models of an explorer, by name; none if it carries no weights."""
    path = _HERE / f"{explorer}_weights.js"
    return dict(_MODEL.findall(path.read_text("utf-8"))) if path.exists() else {}


def write(explorer: str, models: dict[str, nn.Module]) -> Path:
    """Write `<explorer>_weights.js` anew: an object of packed models, by name."""
    lines = "".join(f'  {name}: "{pack(model)}",\n' for name, model in models.items())
    path = _HERE / f"{explorer}_weights.js"
    path.write_text(
        "// Written by scripts/train_explorers.py: trained weights, base64 of float16.\n"
        f"export const weights = {{\n{lines}}};\n",
        encoding="utf-8",
    )
    return path

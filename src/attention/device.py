"""Where to compute: CUDA, else Apple's MPS, else the CPU."""

import os

import torch


def device() -> torch.device:
    """Choose the fastest device that is there; ATTENTION_DEVICE=cpu, cuda, cuda:1, mps overrides.

    Returns a torch.device. ValueError if the override names no device, or one that is missing.

    >>> device().type in ("cuda", "mps", "cpu")
    True
    """
    wanted = os.environ.get("ATTENTION_DEVICE", "").strip()
    if not wanted:
        return torch.device("cuda" if _has("cuda") else "mps" if _has("mps") else "cpu")
    try:
        chosen = torch.device(wanted)
    except RuntimeError:
        chosen = None
    if chosen is None or chosen.type not in ("cuda", "mps", "cpu"):
        raise ValueError(f"ATTENTION_DEVICE must be cpu, cuda, cuda:N or mps; got {wanted!r}")
    if not _has(chosen.type) or (chosen.index or 0) >= max(torch.cuda.device_count(), 1):
        raise ValueError(f"ATTENTION_DEVICE asks for {wanted!r}, which this machine does not have")
    return chosen


def describe_device() -> str:
    """Say in a sentence which device `device` chose, and why.

    >>> describe_device().startswith("Computing on")
    True
    """
    chosen = device()
    if chosen.type == "cuda":
        found = f"the GPU {torch.cuda.get_device_name(chosen)} (CUDA)"
    else:
        found = {"mps": "the Apple GPU (MPS)", "cpu": "the CPU"}[chosen.type]
    if os.environ.get("ATTENTION_DEVICE", "").strip():
        return f"Computing on {found}, as ATTENTION_DEVICE asks."
    if chosen.type == "cpu":
        return "Computing on the CPU. No GPU was found, and none is needed."
    return f"Computing on {found}."


def _has(kind: str) -> bool:
    if kind == "cuda":
        return torch.cuda.is_available()
    return kind == "cpu" or torch.backends.mps.is_available()

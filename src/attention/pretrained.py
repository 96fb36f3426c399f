"""The trained language model of the tales that comes with the book: its numbers and its tokens."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import _checks as check
from . import _packed
from .byte_pairs import BytePairs
from .models import LanguageModel
from .ngrams import NGrams
from .texts import Text, tales
from .training import next_token_loss

CHECKPOINTS = (0, 100, 500, "end")  # steps of training
_FOLDER = Path(__file__).parent / "widgets"


def _file(checkpoint: int | str = "end") -> Path:
    """Where the numbers of a checkpoint lie; there is no file of step 0."""
    return _FOLDER / f"tales{'' if checkpoint == 'end' else f'_{checkpoint}'}_weights.js"


@cache
def _stored(checkpoint: int | str = "end") -> dict[str, Any]:
    return json.loads(_file(checkpoint).read_text("utf-8").partition("weights = ")[2][:-2])


def pretrained_tales(checkpoint: int | str = "end") -> tuple[LanguageModel, BytePairs]:
    """The language model that learned to write from the tales, and its tokens.

    Its numbers are those that the explorers have in the page: eight bits each, with one factor
    for a row. checkpoint: "end", or the step of its training, 0, 100 or 500. The model is new
    each time, in eval mode. `scripts/train_tales.py` trained it.

    >>> model, tokens = pretrained_tales()
    >>> ids = tokens.encode("\\nOne day the")
    >>> tokens.decode(model.generate(ids[None], steps=1, top_k=1)[0])[:12]
    '\\nOne day the'
    """
    check.one_of("checkpoint", checkpoint, CHECKPOINTS)
    end = _stored()
    model = LanguageModel(**end["sizes"])
    if checkpoint == 0:
        _packed.begin(model)
    else:
        _packed.unpack(model, _stored(checkpoint))
    return model.eval(), BytePairs(np.reshape([int(i) for i in end["merges"].split()], (-1, 2)))


def pretrained_facts() -> dict[str, Any]:
    """What `scripts/train_tales.py` wrote beside the numbers: steps, and losses before rounding.

    >>> sorted(pretrained_facts())
    ['held_out', 'parameters', 'steps', 'tales', 'train']
    """
    return _stored()["facts"]


@torch.no_grad()
def _loss(model: LanguageModel, windows: Tensor) -> float:
    """The mean loss on windows (N, n + 1) in nats a token, without dropout."""
    was, _ = model.training, model.eval()
    parts = windows.split(32)
    total = sum(next_token_loss(model, part).item() * len(part) for part in parts)
    model.train(was)
    return total / len(windows)


def _read(text: Text, length: int) -> Tensor:
    """Windows from all over the training part, about as many as there are held out."""
    windows = text.tokens.encode(text.train).unfold(0, length + 1, length)
    return windows[:: max(1, len(windows) // len(text.windows(length)))]


def tale_losses() -> dict[str, tuple[float, float, float]]:
    """What counting and the trained model lose on the tales, in nats: by name three numbers.

    The loss a token on tales of the training part (a sample as long as what is held out), a token
    on the held-out tales, and a character on these. Takes a few seconds.

    >>> list(tale_losses())
    ['unigram', 'bigram', 'trigram', 'model, float32', 'model, int8']
    """
    text, (model, _) = tales(), pretrained_tales()
    length = _stored()["context"]
    read, held_out = _read(text, length), text.windows(length)
    known, new = read[:, 1:].flatten(), held_out[:, 1:].flatten()
    ids = text.tokens.encode(text.train)
    losses = {}
    for n, name in enumerate(("unigram", "bigram", "trigram"), 1):
        counts = NGrams(ids, n, len(text.tokens))
        losses[name] = counts.loss(known), counts.loss(new)
    facts = pretrained_facts()
    losses["model, float32"] = facts["train"], facts["held_out"]
    losses["model, int8"] = _loss(model, read), _loss(model, held_out)
    share = len(text.tokens.encode(text.held_out)) / len(text.held_out)  # tokens a character
    return {name: (seen, unseen, unseen * share) for name, (seen, unseen) in losses.items()}

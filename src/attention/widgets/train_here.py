"""Train it here (chapter 8): a transformer learns in the page, from random weights."""

from __future__ import annotations

import base64
import functools
import itertools
import math
import uuid
from typing import Any

import numpy as np
import torch
import traitlets
from torch import Tensor

from attention.models import LanguageModel
from attention.texts import _TALES

from . import _learner
from ._base import COLOURS, Explorer, Number, Whole, figure
from ._learner import LEAST, SWITCHES, Task

DATA = {"names": "names", "tales": "the tales", "own": "your text"}
FIRST = 60  # steps of the still picture


@functools.cache
def _excerpt() -> str:
    """The first tales, 3,000 characters at most."""
    tales = _TALES.read_text(encoding="utf-8")
    return tales[: tales.rindex("\n", 0, 3000) + 1]


@functools.lru_cache(maxsize=16)
def _first_losses(text: str | None, heads: int, on: tuple, rate: float, seed: int) -> list[float]:
    """What the first steps from random weights cost, in PyTorch, while the loss is a number."""
    task = _learner.make_task(text)
    model = _learner.new_model(len(task.letters), heads, seed)
    losses = itertools.islice(_learner.steps(model, task, dict(on), rate, seed), FIRST)
    return list(itertools.takewhile(math.isfinite, losses))


class TrainHere(Explorer):
    """A transformer learns in the page, from random weights: its loss, its words, its heads.

    Traits, to read and to set: `data` ("names", "tales" or "own"), `text` (your own, from 200
    characters), `heads` (1, 2 or 4), the switches `mask`, `scale` (√d_k), `positions`, `residual`
    and `norms`, `learning_rate` (0.0001 to 1), `seed` (0 to 999), `training` (True: the page
    trains), `layer` and `head`, the map shown large. Another text or seed begins anew; the others
    act on the weights as they are. The page tells `step`, `losses` (one a step), `held_out`
    ([step, loss] pairs), `samples`, and once it rests `weights`, which `model` holds.
    `train(steps)` takes the same steps in PyTorch.

    >>> w = TrainHere()
    >>> w.train(2)
    >>> w.step, len(w.losses)
    (2, 2)
    """

    name = "train_here"
    title = "Train it here"

    data = traitlets.Unicode("names").tag(sync=True)
    text = traitlets.Unicode("").tag(sync=True)
    tales = traitlets.Unicode().tag(sync=True)
    heads = Whole(4, 1, 4)
    mask = traitlets.Bool(True).tag(sync=True)
    scale = traitlets.Bool(True).tag(sync=True)
    positions = traitlets.Bool(True).tag(sync=True)
    residual = traitlets.Bool(True).tag(sync=True)
    norms = traitlets.Bool(True).tag(sync=True)
    learning_rate = Number(0.01, 1e-4, 1)
    seed = Whole(0, 0, 999)
    training = traitlets.Bool(False).tag(sync=True)
    step = Whole(0, 0, 10**6)
    losses = traitlets.List(traitlets.Float(), default_value=[]).tag(sync=True)
    held_out = traitlets.List(default_value=[]).tag(sync=True)
    samples = traitlets.List(traitlets.Unicode(), default_value=[]).tag(sync=True)
    weights = traitlets.Unicode("").tag(sync=True)
    layer = Whole(0, 0, 1)
    head = Whole(0, 0, 3)
    _session = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self._task: Task | None = None
        self.observe(self._begin, ["data", "text", "seed"])

    def _begin(self, change: Any) -> None:
        self._task = None
        with self.hold_sync():
            self.training, self.step, self.weights = False, 0, ""
            self.losses, self.held_out, self.samples = [], [], []

    @traitlets.default("tales")
    def _first_tales(self) -> str:
        return _excerpt()

    @traitlets.default("_session")
    def _own_session(self) -> str:
        return uuid.uuid4().hex

    @traitlets.validate("data")
    def _check_data(self, proposal: Any) -> str:
        if proposal["value"] not in DATA:
            raise traitlets.TraitError(
                f"data must be one of {', '.join(DATA)}; got {proposal['value']!r}"
            )
        return proposal["value"]

    @traitlets.validate("text")
    def _check_text(self, proposal: Any) -> str:
        text = proposal["value"]
        if text and len(text) < LEAST:
            raise traitlets.TraitError(
                f"text must have at least {LEAST} characters; got {len(text)}"
            )
        return text

    @traitlets.validate("heads")
    def _check_heads(self, proposal: Any) -> int:
        if proposal["value"] not in (1, 2, 4):
            raise traitlets.TraitError(f"heads must be 1, 2 or 4; got {proposal['value']!r}")
        return proposal["value"]

    @property
    def switches(self) -> dict[str, bool]:
        """Each switch and whether it is on."""
        return {name: getattr(self, name) for name in SWITCHES}

    @property
    def task(self) -> Task:
        """The text as numbers; ValueError if it is the reader's own and none was given."""
        if self._task is None:
            if self.data == "own" and not self.text:
                raise ValueError(f"text must have at least {LEAST} characters; got none")
            self._task = _learner.make_task(self._source())
        return self._task

    def _source(self) -> str | None:
        return {"names": None, "tales": self.tales, "own": self.text}[self.data]

    @property
    def model(self) -> LanguageModel:
        """The book's LanguageModel with the weights of now; those of the page once it rests."""
        return self._model().float()

    def _model(self) -> LanguageModel:
        model = _learner.new_model(len(self.task.letters), self.heads, self.seed)
        if self.weights:
            numbers = np.frombuffer(base64.b64decode(self.weights), "<f4").astype(np.float64)
            torch.nn.utils.vector_to_parameters(torch.from_numpy(numbers), model.parameters())
        return model

    @property
    @torch.no_grad()
    def maps(self) -> Tensor:
        """All heads' weights on the sequence shown: (2, heads, 12, 12)."""
        return _learner.forward(self.model, self.task.shown[None], self.switches)[1][:, 0]

    def train(self, steps: int) -> None:
        """Take so many of the page's steps in PyTorch; ValueError if the loss is no number."""
        model, task, losses = self._model(), self.task, list(self.losses)
        held = list(self.held_out)
        if not held:
            held.append([0, self._held(model)])
        run = _learner.steps(model, task, self.switches, self.learning_rate, self.seed, self.step)
        for loss in itertools.islice(run, int(steps)):
            if not math.isfinite(loss):
                raise ValueError(f"the loss must stay a number; got {loss} at step {len(losses)}")
            losses.append(loss)
            if len(losses) % 20 == 0:
                held.append([len(losses), self._held(model)])
        flat = torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
        with self.hold_sync():
            self.losses, self.held_out, self.samples = losses, held, []
            self.weights = base64.b64encode(flat.astype("<f4").tobytes()).decode("ascii")
            self.step = len(losses)

    @torch.no_grad()
    def _held(self, model: LanguageModel) -> float:
        return _learner.loss_of(model, self.task.held_out(), self.switches).item()

    def _shown_losses(self) -> list[float]:
        if self.losses or (self.data == "own" and not self.text):
            return self.losses
        return _first_losses(
            self._source(), self.heads, tuple(self.switches.items()), self.learning_rate, self.seed
        )

    @property
    def caption(self) -> str:
        off = [name for name, on in self.switches.items() if not on]
        losses = self._shown_losses()
        about = (
            f"A transformer of two layers and {self.heads} "
            f"head{'s' if self.heads > 1 else ''} learns {DATA[self.data]}, letter by letter"
            f"{', without ' + ', '.join(off) if off else ''}, at a learning rate of "
            f"{self.learning_rate:g}"
        )
        if not losses:
            return f"{about}; no step has been taken."
        whose = "" if self.losses else ", here computed in PyTorch"
        return (
            f"{about}. The loss of its first {len(losses)} steps{whose} goes from "
            f"{losses[0]:.2f} to {np.mean(losses[-10:]):.2f} nats a character."
        )

    def still(self) -> Any:
        fig, ax = figure(5.2, 2.8)
        losses = self._shown_losses()
        ax.plot(range(1, len(losses) + 1), losses, color=COLOURS[0], label="training")
        if self.held_out:
            ax.plot(*zip(*self.held_out, strict=True), "--", color=COLOURS[1], label="held out")
        if losses:
            guess = math.log(len(self.task.letters))
            ax.axhline(guess, color=COLOURS[6], linestyle=":", label=f"guessing, {guess:.2f}")
            ax.set_ylim(0, max(guess, min(max(losses), 3 * guess)) + 0.4)
            ax.legend(frameon=False, fontsize=9)
        ax.set_xlabel("step")
        ax.set_ylabel("loss, nats a character")
        ax.spines[["top", "right"]].set_visible(False)
        return fig

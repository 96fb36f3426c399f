"""Live heads (chapter 4): a trained transformer that says what "it" means, head by head."""

from __future__ import annotations

import functools
from typing import Any

import torch
import traitlets
from torch import Tensor

from attention.data import ANIMALS, FEATURES, FEELINGS, PLACES, VERBS, PronounTask, pronoun_task
from attention.models import Encoder
from attention.patching import head_parts, patch_heads

from . import _weights
from ._base import Explorer, Whole, draw_heatmap, figure

CHOICES = {
    "animal": ANIMALS,
    "verb": VERBS,
    "place": PLACES,
    "adjective": [*FEELINGS, *FEATURES],
}


@functools.cache
def _trained() -> tuple[PronounTask, Encoder]:
    task = pronoun_task()
    model = Encoder(len(task.vocabulary), d_model=32, num_heads=4, num_layers=2, tied=False)
    return task, _weights.unpack(model, _weights.read("heads")["model"])  # type: ignore[return-value]


class Heads(Explorer):
    """A trained transformer reads "it": all heads, what they attend to, and heads switched off.

    Traits, to read and to set: `animal`, `verb`, `place` and `adjective`, words of the
    vocabulary; `off`, the heads switched off as [layer, head] pairs counted from 0; `twin`, the
    heads whose output at "it" comes from the twin sentence, which ends in `twin_words`; `layer`
    and `head`, the one shown large. `weights` (2, 4, 12, 12), `probabilities` of each word of the
    vocabulary at "it", and `prediction` are computed with `model`, from the page's own numbers.

    >>> w = Heads(adjective="wide")
    >>> w.prediction
    'street'
    """

    name = "heads"
    title = "Live heads"

    animal = traitlets.Unicode("animal").tag(sync=True)
    verb = traitlets.Unicode("cross").tag(sync=True)
    place = traitlets.Unicode("street").tag(sync=True)
    adjective = traitlets.Unicode("tired").tag(sync=True)
    off = traitlets.List(default_value=[]).tag(sync=True)
    twin = traitlets.List(default_value=[]).tag(sync=True)
    layer = Whole(1, 0, 1)
    head = Whole(0, 0, 3)

    @traitlets.validate("animal", "verb", "place", "adjective")
    def _check_word(self, proposal: Any) -> str:
        name, word = proposal["trait"].name, proposal["value"]
        if word not in CHOICES[name]:
            raise traitlets.TraitError(
                f"{name} must be one of {', '.join(CHOICES[name])}; got {word!r}"
            )
        return word

    @traitlets.validate("off", "twin")
    def _check_heads(self, proposal: Any) -> list:
        try:
            pairs = sorted({(int(layer), int(head)) for layer, head in proposal["value"]})
        except (TypeError, ValueError):
            pairs = [(-1, -1)]
        if any(not (0 <= layer < 2 and 0 <= head < 4) for layer, head in pairs):
            raise traitlets.TraitError(
                f"{proposal['trait'].name} must be pairs [layer, head] with layer 0 or 1 and head "
                f"0 to 3; got {proposal['value']!r}"
            )
        return [list(pair) for pair in pairs]

    @property
    def model(self) -> Encoder:
        """The trained model, in float32, with the weights that the page has."""
        return _trained()[1]

    @property
    def words(self) -> list[str]:
        """The sentence, 12 words; "it" is number 8."""
        return (
            f"the {self.animal} did not {self.verb} the {self.place} "
            f"because it was too {self.adjective}"
        ).split()

    @property
    def twin_words(self) -> list[str]:
        """The same sentence with the other adjective: tired for wide, hungry for narrow, …"""
        task = _trained()[0]
        return task.vocabulary.decode(
            task.twins(task.vocabulary.encode(self.words)[None])[0]
        ).split()

    @torch.no_grad()
    def _run(self) -> tuple[Tensor, Tensor]:
        task, model = _trained()
        on = torch.ones(2, 4)
        for layer, head in self.off:
            on[layer, head] = 0
        ids = task.vocabulary.encode(self.words)[None]
        twin = head_parts(model, task.twins(ids))[1][:, :, :, task.it] if self.twin else None
        given = (
            {(layer, r): twin[layer, :, r] for layer, r in self.twin} if twin is not None else {}
        )
        logits, weights = patch_heads(
            model, ids, task.it, given, head_mask=on, return_weights=True
        )  # a head that is off and from the twin says what it says in the twin
        return logits[0], torch.stack(weights)[:, 0]

    @property
    def logits(self) -> Tensor:
        """The model's logits, (12, 44)."""
        return self._run()[0]

    @property
    def weights(self) -> Tensor:
        """The weights of every head, (2, 4, 12, 12): layer, head, query, key."""
        return self._run()[1]

    @property
    def probabilities(self) -> Tensor:
        """What "it" means: a probability for each word of the vocabulary, (44,)."""
        return self.logits[_trained()[0].it].softmax(-1)

    @property
    def prediction(self) -> str:
        """The likeliest meaning of "it"."""
        return _trained()[0].vocabulary.words[int(self.probabilities.argmax())]

    @property
    def caption(self) -> str:
        p = float(self.probabilities.max())
        row = self.weights[self.layer, self.head, 8]
        without = self._named("without", self.off)
        twin = self._named(f"with the output of the “{self.twin_words[-1]}” sentence in", self.twin)
        return (
            f"“{' '.join(self.words)}”: a trained transformer thinks that “it” means "
            f"“{self.prediction}” ({100 * p:.1f} %){without}{twin}. "
            f"Head L{self.layer}H{self.head} gives {row[1]:.2f} of the weight of “it” to "
            f"“{self.animal}” and {row[6]:.2f} to “{self.place}”."
        )

    @staticmethod
    def _named(before: str, heads: list) -> str:
        names = ", ".join(f"L{layer}H{head}" for layer, head in heads)
        return f" {before} {'head' if len(heads) == 1 else 'heads'} {names}" if heads else ""

    def still(self) -> Any:
        fig, axes = figure(6.8, 4.6, nrows=2, ncols=4)
        weights = self.weights.tolist()
        for layer in range(2):
            for head in range(4):
                ax = axes[layer][head]
                gone, other = ([layer, head] in x for x in (self.off, self.twin))
                draw_heatmap(
                    ax, weights[layer][head], self.words if head == 0 else [""] * 12,
                    self.words if layer == 1 else [""] * 12,
                    f"L{layer}H{head}{', twin' if other else ', off' if gone else ''}", digits=None,
                )  # fmt: skip
                ax.tick_params(labelsize=8)
                ax.axhline(7.5, color="#d55e00", linewidth=0.8)
                ax.axhline(8.5, color="#d55e00", linewidth=0.8)
        return fig

"""Generation (chapter 7): a small language model writes, word by word, and so does its twin."""

from __future__ import annotations

import functools
from typing import Any

import torch
import traitlets
from torch import Tensor

from attention.data import weather_sentences
from attention.models import LanguageModel
from attention.sampling import next_token_probabilities
from attention.vocabulary import Vocabulary

from . import _weights
from ._base import Explorer, Number, Whole, draw_heatmap, figure

LONGEST = 14  # words that are written at most


@functools.cache
def _trained(masked: bool) -> LanguageModel:
    vocabulary = _vocabulary()
    model = LanguageModel(len(vocabulary), d_model=32, num_heads=4, num_layers=2, is_causal=masked)
    text = _weights.read("generation")["masked" if masked else "unmasked"]
    return _weights.unpack(model, text)  # type: ignore[return-value]


@functools.cache
def _vocabulary() -> Vocabulary:
    return Vocabulary(word for s in weather_sentences() for word in s.split())


def uniform(seed: int, index: int) -> float:
    """Return number `index` of the uniform stream of a seed, the very one of shared.js."""
    low = 0xFFFFFFFF
    state = (seed + 0x6D2B79F5 * (index + 1)) & low
    t = ((state ^ (state >> 15)) * (state | 1)) & low
    t ^= (t + (((t ^ (t >> 7)) * (t | 61)) & low)) & low
    return ((t ^ (t >> 14)) + 0.5) / 4294967296


def draw(probabilities: Tensor, u: float) -> int:
    """Return which token a number u in (0, 1) draws."""
    likely = probabilities.nonzero().flatten()
    at = int((probabilities.double().cumsum(0) <= u).sum())
    return min(at, int(likely[-1]))


class Generation(Explorer):
    """A trained language model continues a prompt: choices, attention, and a twin without mask.

    Traits, to read and to set: `prompt` (up to 12 words of the vocabulary), `temperature` (0.1
    to 5), `top_k` (1 to 35, 35 = all), `top_p` (0.05 to 1), `masked` (False: the model of chapter
    6 that was trained without a mask), `seed` (0 to 999), `written` (the words so far, at most
    14), `step` (which of them is looked at, from 1; 0 = the next one), `head` (0 to 3 of the last
    layer, -1 = their mean). `next_word()`, `whole_sentence()` and `start_again()` do what the
    buttons do; `probabilities`, `weights` and `model` answer in Python.

    >>> w = Generation(prompt="the sun sets and the sky turns", top_k=1)
    >>> w.next_word()
    'red'
    """

    name = "generation"
    title = "Generation"

    prompt = traitlets.Unicode("the sun").tag(sync=True)
    temperature = Number(1.0, 0.1, 5)
    top_k = Whole(35, 1, 35)
    top_p = Number(1.0, 0.05, 1)
    masked = traitlets.Bool(True).tag(sync=True)
    seed = Whole(7, 0, 999)
    written = traitlets.List(traitlets.Unicode(), default_value=[]).tag(sync=True)
    step = Whole(0, 0, LONGEST)
    head = Whole(-1, -1, 3)

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.observe(self._begin, ["prompt", "masked"])

    def _begin(self, change: Any) -> None:
        self.written, self.step = [], 0

    @traitlets.validate("prompt", "written")
    def _check_words(self, proposal: Any) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        words = value.split() if name == "prompt" else value
        most = 12 if name == "prompt" else LONGEST
        if len(words) > most:
            raise traitlets.TraitError(f"{name} must be at most {most} words; got {len(words)}")
        for word in words:
            if word not in _vocabulary():
                raise traitlets.TraitError(
                    f"{name} must be words of the vocabulary of {len(_vocabulary())}; got {word!r}"
                )
        return " ".join(words) if name == "prompt" else value

    @property
    def model(self) -> LanguageModel:
        """The trained model, in float32, with the weights that the page has."""
        return _trained(self.masked)

    @property
    def finished(self) -> bool:
        """Whether the sentence has ended, or is as long as it may get."""
        return self.written[-1:] == ["<end>"] or len(self.written) == LONGEST

    @property
    def sentence(self) -> str:
        """The prompt and what was written, without <end>."""
        return " ".join([*self.prompt.split(), *(w for w in self.written if w != "<end>")])

    @property
    def in_corpus(self) -> bool:
        """Whether the sentence is one of the 486 that the corpus can have."""
        return self.written[-1:] == ["<end>"] and self.sentence in weather_sentences()

    @property
    def tokens(self) -> list[str]:
        """What the model reads before it writes the word looked at, its start token included."""
        shown = min(self.step or LONGEST, len(self.written) + (not self.finished))
        start = "<start>" if self.masked else "<end>"
        return [start, *self.prompt.split(), *self.written[: max(shown, 1) - 1]]

    @torch.no_grad()
    def _run(self) -> tuple[Tensor, Tensor]:
        ids = _vocabulary().encode(self.tokens)[None]
        logits, weights = self.model(ids, return_weights=True)
        return logits[0, -1], weights[-1][0, :, -1]

    @property
    def logits(self) -> Tensor:
        """The model's logits for the word looked at, (35,)."""
        return self._run()[0]

    @property
    def probabilities(self) -> Tensor:
        """What the word is drawn from: a probability for each word of the vocabulary, (35,)."""
        return next_token_probabilities(
            self.logits.double(), self.temperature, self.top_k, self.top_p
        )

    @property
    def weights(self) -> Tensor:
        """The last layer's row for the word looked at: a weight for each of `tokens`."""
        rows = self._run()[1]
        return rows.mean(0) if self.head < 0 else rows[self.head]

    def next_word(self) -> str | None:
        """Draw a word, append it and return it; None if the sentence has ended."""
        if self.finished:
            return None
        self.step = 0
        u = uniform(self.seed, len(self.written))
        word = _vocabulary().words[draw(self.probabilities, u)]
        self.written = [*self.written, word]
        return word

    def whole_sentence(self) -> str:
        """Write until the sentence ends; return it."""
        while self.next_word() is not None:
            pass
        return self.sentence

    def start_again(self) -> None:
        """Take away what was written and turn to the next seed."""
        self.written, self.step, self.seed = [], 0, (self.seed + 1) % 1000

    @property
    def caption(self) -> str:
        p = self.probabilities
        likeliest = p.argsort(descending=True, stable=True)[:3].tolist()
        words = ", ".join(
            f"“{_vocabulary().words[i]}” {float(p[i]):.2f}" for i in likeliest if p[i] > 0
        )
        which = "A small language model" if self.masked else "Its twin, trained without a mask,"
        after = " ".join(self.tokens[1:])
        return (
            f"{which} writes{f' after “{after}”' if after else ' from the start'} with the "
            f"probabilities {words} (T = {self.temperature:g}, top-k {self.top_k}, "
            f"top-p {self.top_p:g})."
        )

    def still(self) -> Any:
        fig, (left, right) = figure(6.8, 2.9, ncols=2)
        p = self.probabilities
        order = p.argsort(descending=True, stable=True)[:8].tolist()
        left.barh(range(8), [float(p[i]) for i in order], color="#0072b2")
        left.set_yticks(range(8), [_vocabulary().words[i] for i in order], fontsize=9)
        left.invert_yaxis()
        left.set_xlim(0, 1)
        left.set_title("the next word", fontsize=10)
        left.spines[["top", "right"]].set_visible(False)
        draw_heatmap(right, self.weights[:, None].tolist(), self.tokens, [""],
                     "what the last layer attends to")  # fmt: skip
        return fig

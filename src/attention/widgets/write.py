"""Write (chapter 8): the language model of the tales goes on from whatever the reader types."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import torch
import traitlets
from torch import Tensor

from attention import pretrained
from attention.byte_pairs import BytePairs
from attention.models import LanguageModel
from attention.sampling import next_token_probabilities

from ._base import Explorer, Number, Whole, figure, short, text_within
from .generation import draw, uniform

CONTEXT = 128  # tokens that the model reads at most
STEP = 32  # so many are left out at once when the text grows longer
START = 10  # the line end before a tale
LONGEST = 400  # tokens that the model writes at most
MOST = 4000  # characters that a reader may type
SAID = ["The untrained model", "The model after 100 steps of training",
        "The model after 500 steps of training", "The trained model"]  # fmt: skip
SHADES = ["surprise", *(f"L{layer}{head}" for layer in range(3) for head in ("", *map(
    "H{}".format, range(4))))]  # fmt: skip
_ENDS = re.compile(r"[.!?][\"']?$|\n")
_HIDDEN = re.compile("[\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")


@functools.cache
def _trained(checkpoint: int) -> tuple[LanguageModel, BytePairs]:
    return pretrained.pretrained_tales(pretrained.CHECKPOINTS[checkpoint])


def visible(text: str, space: str = "␣") -> str:
    """Return the text with a sign in the place of each space and of what has no shape."""
    text = text.replace(" ", space).replace("\n", "⏎")
    text = re.sub("[\0-\x1f]", lambda sign: chr(0x2400 + ord(sign[0])), text)
    return _HIDDEN.sub(space, text)


def percent(x: float) -> str:
    """Return a probability as the explorers write it."""
    if 0 < x < 0.0005:
        return "less than 0.1\u00a0%"
    return "more than 99.9\u00a0%" if 0.9995 < x < 1 else f"{short(100 * x, 1)}\u00a0%"


class Write(Explorer):
    """The language model of the tales goes on from any text: choices, attention, surprise.

    Traits, to read and to set: `text`, what the reader types; `temperature` (0.1 to 5), `top_k`
    (1 to 956, 956 = all), `top_p` (0.05 to 1), `seed` (0 to 999); `written`, the tokens that the
    model wrote after the text; `checkpoint`, 0 to 3: after 0, 100, 500 or all steps of training;
    `shade`, what colours the tokens: "surprise", or the weights of a head or a layer, "L1H2",
    "L1"; `place`, which of `tokens` is looked at (-1: the next one); `unfolded`, whether the
    settings of the page are. `next_token()`, `go_on()` and `start_again()` do what the buttons
    do; `tokens`, `probabilities`, `surprise`, `weights`, `continuation` answer in Python.

    >>> w = Write(text="The old hen")
    >>> w.tokens
    ['\\n', 'The', ' old', ' hen']
    """

    name = "write"
    title = "Write"

    text = traitlets.Unicode("One day the young dragon").tag(sync=True)
    temperature = Number(0.8, 0.1, 5)
    top_k = Whole(956, 1, 956)
    top_p = Number(1.0, 0.05, 1)
    seed = Whole(7, 0, 999)
    written = traitlets.List(default_value=[]).tag(sync=True)
    checkpoint = Whole(3, 0, 3)
    shade = traitlets.Unicode("surprise").tag(sync=True)
    place = Whole(-1, -1, CONTEXT - 1)
    unfolded = traitlets.Bool(False).tag(sync=True)
    _loaded = traitlets.Dict().tag(sync=True)  # numbers of other checkpoints, for a notebook

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.observe(self._begin, ["text"])
        self.observe(self._look_ahead, ["written"])

    def _begin(self, change: Any) -> None:
        self.written, self.place = [], -1

    def _look_ahead(self, change: Any) -> None:
        self.place = -1

    @traitlets.observe("checkpoint")
    def _load(self, change: Any) -> None:
        step = pretrained.CHECKPOINTS[self.checkpoint]
        if step in (100, 500):
            self._loaded = {**self._loaded, str(self.checkpoint): pretrained._stored(step)}

    @traitlets.validate("text")
    def _check_text(self, proposal: Any) -> str:
        return text_within(proposal["value"], MOST)

    @traitlets.validate("written")
    def _check_written(self, proposal: Any) -> list[int]:
        ids = proposal["value"]
        if len(ids) > LONGEST:
            raise traitlets.TraitError(f"written must be at most {LONGEST} tokens; got {len(ids)}")
        for i in ids:
            if isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < 956:
                raise traitlets.TraitError(f"written must be tokens from 0 to 955; got {i!r}")
        return ids

    @traitlets.validate("shade")
    def _check_shade(self, proposal: Any) -> str:
        if proposal["value"] not in SHADES:
            raise traitlets.TraitError(
                f"shade must be one of {', '.join(SHADES)}; got {proposal['value']!r}"
            )
        return proposal["value"]

    @property
    def model(self) -> LanguageModel:
        """The model at this checkpoint, in float32, with the weights that the page has."""
        return _trained(self.checkpoint)[0]

    @property
    def _pairs(self) -> BytePairs:
        return _trained(3)[1]

    @property
    def _all(self) -> list[int]:
        return [START, *self._pairs.encode(self.text).tolist(), *self.written]

    @property
    def ids(self) -> list[int]:
        """The tokens that the model reads: the end of the text, 97 to 128 of them if it is long."""
        ids = self._all
        return ids[STEP * max(0, math.ceil((len(ids) - CONTEXT) / STEP)) :]

    @property
    def tokens(self) -> list[str]:
        """The same as pieces of text, the line end before the text included."""
        return self._pairs.pieces(self.ids)

    @property
    def _at(self) -> int:
        """The position of the token looked at among `tokens`; their number, if it is the next."""
        n = len(self.ids)
        return self.place if 0 < self.place < n else n

    @torch.no_grad()
    def _run(self) -> tuple[Tensor, list[Tensor]]:
        logits, weights = self.model(torch.tensor([self.ids]), return_weights=True)
        return logits[0].double(), [w[0] for w in weights]

    @property
    def logits(self) -> Tensor:
        """The model's logits for the token looked at, (956,)."""
        return self._run()[0][self._at - 1]

    @property
    def probabilities(self) -> Tensor:
        """What that token is drawn from: a probability for each of the 956."""
        return next_token_probabilities(self.logits, self.temperature, self.top_k, self.top_p)

    @property
    def weights(self) -> Tensor:
        """What the token before it attends to, (layers, heads, n): the map's row, in every head."""
        at = self._at
        return torch.stack([w[:, at - 1, :at] for w in self._run()[1]])

    @property
    def surprise(self) -> list[float]:
        """-log of the probability that the model gave each of `tokens` but the first, in nats."""
        rows = self._run()[0][:-1].log_softmax(-1)
        return [-float(row[i]) for row, i in zip(rows, self.ids[1:], strict=True)]

    @property
    def continuation(self) -> str:
        """What the model has written."""
        return self._pairs.decode(self.written)

    def next_token(self) -> str | None:
        """Draw a token, append it and return it; None if it has written 400."""
        if len(self.written) == LONGEST:
            return None
        self.place = -1
        new = draw(self.probabilities, uniform(self.seed, len(self.written)))
        self.written = [*self.written, new]
        return self._pairs.pieces([new])[0]

    def go_on(self, most: int = 40) -> str:
        """Write until a sentence ends, or `most` tokens; return them."""
        new = ""
        for _ in range(most):
            piece = self.next_token()
            new += piece or ""
            if piece is None or _ENDS.search(piece):
                break
        return new

    def start_again(self) -> None:
        """Take away what was written and turn to the next seed."""
        self.written, self.place, self.seed = [], -1, (self.seed + 1) % 1000

    @property
    def caption(self) -> str:
        ids, at, total = self.ids, self._at, len(self._all)
        said = lambda i: f"“{visible(self._pairs.pieces([i])[0])}”"  # noqa: E731
        tail = visible(self._pairs.decode(ids[:at]), " ")[-40:]
        p = self.probabilities
        order = self.logits.argsort(descending=True, stable=True)[:3].tolist()
        three = ", ".join(f"{said(i)} {percent(float(p[i]))}" for i in order if p[i] > 0)
        surprise = self.surprise
        settings = f"(T = {short(self.temperature)}, top-k {self.top_k}, top-p {short(self.top_p)})"
        if at == len(ids):
            text = f"{SAID[self.checkpoint]} goes on after “{tail}” with {three} {settings}."
        else:
            own = float(self.logits.softmax(-1)[ids[at]])
            text = (
                f"{SAID[self.checkpoint]} gave {said(ids[at])} {percent(own)} after “{tail}”, a "
                f"surprise of {surprise[at - 1]:.1f} nats. Likeliest {settings}: {three}."
            )
        if total > len(ids):
            text += f" It reads the last {len(ids)} of {total} tokens."
        if self.shade != "surprise":
            row = self._shaded
            best = row.index(max(row))
            text += (
                f" In {self.shade}, {said(ids[at - 1])} attends most to {said(ids[best])} "
                f"({row[best]:.2f})."
            )
        elif surprise:
            worst = surprise.index(max(surprise))
            text += f" The most surprising token is {said(ids[worst + 1])} "
            text += f"({surprise[worst]:.1f} nats)."
        return text

    @property
    def _shaded(self) -> list[float]:
        """The row of `weights` that `shade` names."""
        heads = self.weights[int(self.shade[1])]
        return (heads[int(self.shade[3])] if "H" in self.shade else heads.mean(0)).tolist()

    def still(self) -> Any:
        fig, (left, right) = figure(6.8, 3.1, ncols=2)
        p, order = (
            self.probabilities,
            self.logits.argsort(descending=True, stable=True)[:8].tolist(),
        )
        words = [visible(piece) for piece in self._pairs.pieces(order)]
        _bars(left, words, [float(p[i]) for i in order], 1, "the next token")
        shown = [visible(piece) for piece in self.tokens]
        if self.shade == "surprise":
            _bars(right, shown[1:][-12:], self.surprise[-12:], 10, "surprise of the text, in nats")
        else:
            row = self._shaded
            _bars(right, shown[: len(row)][-12:], row[-12:], 1, f"attention in {self.shade}")
        return fig


def _bars(ax: Any, words: list[str], values: list[float], most: float, title: str) -> None:
    ax.barh(range(len(words)), values, color="#0072b2")
    ax.set_yticks(range(len(words)), words, fontsize=9)
    ax.invert_yaxis()
    ax.set_xlim(0, max([most, *values]))
    ax.set_title(title, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)

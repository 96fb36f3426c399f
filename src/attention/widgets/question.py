"""A question of the book in its notebooks: the same inputs and the same rules as in the page."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

import anywidget
import traitlets

from ._base import _read, module_text

_THEMES = _read("explorer.css").partition("/* the themes end here */")[0]
_MINE = """
.explorer.question { --neg-bg: color-mix(in srgb, var(--neg) 12%, var(--bg)); }
.explorer.question :is(*, ::before) { box-sizing: border-box; }
.explorer.question .question-answer { overflow-x: auto; margin: 0; }
.explorer.question .question-figure { --figure-font: system-ui, sans-serif; }
.explorer.question math:has(> mrow + mrow) {
  display: inline-flex; flex-wrap: wrap; align-items: baseline;
}
"""


def seal(asked: dict[str, Any]) -> str:
    """Return what is asked, with its answer, as text that does not give the answer away.

    >>> Question(seal({"type": "number", "answer": 2})).asked["answer"]
    2
    """
    packed = zlib.compress(json.dumps(asked, ensure_ascii=False).encode(), 9)
    return base64.b64encode(packed).decode("ascii")


def unseal(text: str) -> dict[str, Any]:
    """Return what `seal` was given; ValueError if the text is cut off or was changed."""
    try:
        asked = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    except (binascii.Error, zlib.error, ValueError):
        asked = None
    if isinstance(asked, dict):
        return asked
    raise ValueError(
        f"sealed must be the text that the book wrote into its notebook, whole; "
        f"got {len(text)} characters that are not it"
    )


class Question(anywidget.AnyWidget):
    """A guess or a check to answer in a notebook, as `Question(sealed)`.

    Traits, to read: `asked`, what was sealed; `given`, the first answer: the numbers of the options
    that were chosen, or the text that was typed, for a matrix in rows; `got`, "right" or "wrong".
    Both are empty until the reader has answered. ValueError if `sealed` is not what the book wrote.

    >>> question = Question(seal({"type": "number", "answer": 2, "title": "How many?"}))
    >>> question
    How many? (not answered yet)
    """

    _esm = module_text("question")
    _css = _THEMES + _read("question.css") + _MINE

    asked = traitlets.Dict(read_only=True).tag(sync=True)
    given = traitlets.Any(None, allow_none=True, read_only=True).tag(sync=True)
    got = traitlets.Unicode("", read_only=True).tag(sync=True)

    def __init__(self, sealed: str) -> None:
        if not isinstance(sealed, str):
            raise ValueError(f"sealed must be a text; got {type(sealed).__name__}")
        asked = unseal(sealed)
        self._shown = asked.pop("shown", "")  # the options, where no widget is shown
        super().__init__()
        self.set_trait("asked", asked)

    def __repr__(self) -> str:
        state = f"{self.got}: {self.given}" if self.got else "not answered yet"
        return f"{self.asked.get('title', 'A question')} ({state})"

    # ipywidgets 7 would otherwise display itself past _repr_mimebundle_, without the options.
    _ipython_display_ = None

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        more = {"text/markdown": self._shown} if self._shown else {}
        return {**data, "text/plain": repr(self), **more}, metadata

"""What every explorer is made of: an anywidget with a module, a style sheet, a still picture."""

from __future__ import annotations

import base64
import inspect
import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HERE = Path(__file__).parent
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./shared\.js";\n', re.MULTILINE)
_BETWEEN = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_WEIGHTS = re.compile(r'^import \{ weights \} from "\./(\w+)_weights\.js";\n', re.MULTILINE)
_DEFAULT = re.compile(r"^export default \{ render \};\s*\Z", re.MULTILINE)


def _read(file: str) -> str:
    return (_HERE / file).read_text(encoding="utf-8")


def _parts(name: str) -> tuple[list[str], str]:
    """The names that an explorer imports, and its source without import and export."""
    source = _read(f"{name}.js")
    imports = _IMPORT.findall(source)
    if len(imports) != 1 or len(_DEFAULT.findall(source)) != 1:
        raise ValueError(
            f'{name}.js must have one import, from "./shared.js", and end with '
            f'"export default {{ render }};"; got {len(imports)} such imports'
        )
    names = [word.strip() for word in imports[0].split(",") if word.strip()]
    for pattern in (_IMPORT, _WEIGHTS, _DEFAULT):
        source = pattern.sub("", source)
    return names, source.strip()


def weights_of(name: str) -> list[str]:
    """The files of trained weights of an explorer: that which it imports, then its checkpoints.

    A page fetches the first, `tales_weights`, before the explorer starts, the others,
    `tales_100_weights`, when they are asked for. Without weights the list is empty.
    """
    found = _WEIGHTS.findall(_read(f"{name}.js"))
    return [
        path.stem
        for stem in found
        for path in (_HERE / f"{stem}_weights.js", *sorted(_HERE.glob(f"{stem}_*_weights.js")))
    ]


SHARED = re.findall(r'from "\./shared/(\w+)\.js"', _read("shared.js"))  # each after what it uses


def _shared(part: str) -> str:
    return _read(f"shared/{part}.js")


def shared_parts(names: list[str]) -> list[str]:
    """The parts of shared.js that these explorers need, each after those that it uses itself."""
    wanted = {word for name in names for word in _parts(name)[0]}
    found: list[str] = []
    for part in reversed(SHARED):
        if wanted & set(_EXPORTED.findall(_shared(part))):
            found.insert(0, part)
            for used, _ in _BETWEEN.findall(_shared(part)):
                wanted |= {word.strip() for word in used.split(",")}
    return found


def functions(part: str) -> str:
    """Return a part of shared.js without import and export, to stand in another script."""
    return _EXPORT.sub("", _BETWEEN.sub("", _shared(part)))


def module_text(name: str) -> str:
    """Return one self-contained ES module for anywidget: what the explorer shares, and itself."""
    _, body = _parts(name)
    before = [functions(part) for part in shared_parts([name])]
    before += [_read(f"{file}.js") for file in weights_of(name)[:1]]
    text = "\n".join(_EXPORT.sub("", source) for source in before)
    return f"{text}\n{body}\n\nexport default {{ render }};\n"


def static_module(name: str) -> str:
    """Return a part of shared.js, weights or an explorer as a classic script, also for file://.

    A page loads the `shared_parts` of its explorers first; each explorer then registers itself
    under `window.attentionExplorers[name]` as an object with `render`. The first of
    `weights_of(name)` must have been loaded before `render` is called.
    """
    if name.endswith("_weights"):
        return (
            f"(() => {{\n{_EXPORT.sub('', _read(f'{name}.js'))}"
            f"window.attentionExplorers[{name!r}] = weights;\n}})();\n"
        )
    if name in SHARED:
        source = _shared(name)
        used = ", ".join(words.strip() for words, _ in _BETWEEN.findall(source))
        exports = ", ".join(_EXPORTED.findall(source))
        return (
            "window.attentionExplorers ??= {};\n"
            "Object.assign(window.attentionExplorers.shared ??= {}, "
            f"(({{ {used} }}) => {{\n{functions(name)}\n"
            f"return {{ {exports} }};\n}})(window.attentionExplorers.shared));\n"
        )
    names, body = _parts(name)
    start = "render"
    if files := weights_of(name):  # which may arrive later than this script
        body = f"let weights = null;\n{body}"
        start = (
            "render: (given) => {\n"
            f"  weights = window.attentionExplorers[{files[0]!r}];\n"
            "  return render(given);\n}"
        )
    return (
        f"window.attentionExplorers[{name!r}] = (({{ {', '.join(names)} }}) => {{\n{body}\n"
        f"return {{ {start} }};\n}})(window.attentionExplorers.shared);\n"
    )


def finite(value: Any, name: str, low: float, high: float, what: str = "a number") -> float:
    """Return value as a float within [low, high], or raise a TraitError that says what came."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not low <= number <= high:
        raise traitlets.TraitError(f"{name} must be {what} from {low:g} to {high:g}; got {value!r}")
    return number


def whole(value: Any, name: str, low: int, high: int) -> int:
    """Return value as an int within [low, high], or raise a TraitError that says what came."""
    number = finite(value, name, low, high, "a whole number")
    if number != int(number):
        raise traitlets.TraitError(
            f"{name} must be a whole number from {low} to {high}; got {value!r}"
        )
    return int(number)


def uniforms(seed: int, start: int, count: int) -> Any:
    """Return numbers start … start + count − 1 of a seed's uniform stream, those of shared.js."""
    import numpy as np

    def multiply(a: Any, b: Any) -> Any:
        return (a * b) & mask

    mask = np.uint64(0xFFFFFFFF)
    at = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    state = (np.uint64(seed) + np.uint64(0x6D2B79F5) * at) & mask
    t = multiply(state ^ (state >> np.uint64(15)), state | np.uint64(1))
    t = t ^ ((t + multiply(t ^ (t >> np.uint64(7)), t | np.uint64(61))) & mask)
    return ((t ^ (t >> np.uint64(14))).astype(np.float64) + 0.5) / 4294967296


def text_within(value: str, most: int) -> str:
    """Return the value of a trait `text`, or raise a TraitError that says what came."""
    if len(value) > most:
        raise traitlets.TraitError(
            f"text must be at most {most} characters; got {len(value)} of them"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise traitlets.TraitError(
            f"text must be text that can be written as UTF-8; character {error.start} cannot"
        ) from None
    return value


def normals(seed: int, count: int) -> Any:
    """Return `count` bell-curve numbers, the very ones of shared.js: mulberry32, Box-Muller."""
    import numpy as np

    uniform = uniforms(seed, 0, count + count % 2)
    radius, angle = np.sqrt(-2 * np.log(uniform[0::2])), 2 * np.pi * uniform[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).ravel()[:count]


def short(x: float, digits: int = 3) -> str:
    """Write x as the explorers do: as short as it can be, with a true minus sign."""
    text = f"{x:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


class Number(traitlets.Float):
    """A float within [low, high], with an error that is a sentence."""

    def __init__(self, default: float, low: float, high: float) -> None:
        super().__init__(default)
        self.low, self.high = low, high
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> float:
        return finite(value, self.name or "", self.low, self.high)


class Whole(traitlets.Int):
    """A whole number within [low, high], with an error that is a sentence."""

    def __init__(self, default: int, low: int, high: int) -> None:
        super().__init__(default)
        self.low, self.high = low, high
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> int:
        return whole(value, self.name or "", self.low, self.high)


class Row(traitlets.List):
    """A list of numbers within [-limit, limit], from a list or a tensor."""

    def __init__(self, default: list[float], limit: float = 1e4, most: int = 16) -> None:
        super().__init__(default_value=default)
        self.limit, self.most = limit, most
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> list[float]:
        value = value.tolist() if hasattr(value, "tolist") else value
        wanted = f"{self.name} must be 1 to {self.most} numbers"
        if not isinstance(value, (list, tuple)):
            raise traitlets.TraitError(f"{wanted}; got {value!r}")
        if not 1 <= len(value) <= self.most:
            raise traitlets.TraitError(f"{wanted}; got {len(value)}")
        cell = f"each entry of {self.name}"
        return [finite(x, cell, -self.limit, self.limit) for x in value]


class Table(traitlets.List):
    """Equally long rows of numbers within [-limit, limit], from lists or a tensor."""

    def __init__(
        self,
        default: list,
        columns: int | None = None,
        limit: float = 1e4,
        rows: int = 16,
        most: int = 16,
    ) -> None:
        super().__init__(default_value=default)
        self.columns, self.limit, self.rows, self.most = columns, limit, rows, most
        self.tag(sync=True)

    def validate(self, obj: Any, value: Any) -> list:
        value = value.tolist() if hasattr(value, "tolist") else value
        wanted = f"{self.name} must be 1 to {self.rows} rows of " + (
            f"{self.columns} numbers" if self.columns else f"1 to {self.most} numbers each"
        )
        try:
            table = [list(row) for row in value]
        except TypeError:
            raise traitlets.TraitError(f"{wanted}; got {value!r}") from None
        lengths = {len(row) for row in table}
        if (
            not 1 <= len(table) <= self.rows
            or len(lengths) != 1
            or not 1 <= min(lengths) <= self.most
            or (self.columns and lengths != {self.columns})
        ):
            sizes = " and ".join(str(length) for length in sorted(lengths))
            raise traitlets.TraitError(f"{wanted}; got {len(table)} rows of {sizes or 'nothing'}")
        cell = f"each entry of {self.name}"
        return [[finite(x, cell, -self.limit, self.limit) for x in row] for row in table]


class Explorer(anywidget.AnyWidget):
    """The base of all explorers: `name` is the stem of the JavaScript file beside this one."""

    name = ""
    title = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "name" in cls.__dict__:
            cls._esm = module_text(cls.name)
            cls._css = _read("explorer.css")
        super().__init_subclass__(**kwargs)

    def __init__(self, *args: Any, **traits: Any) -> None:
        """Set the traits given; a TraitError names one that the explorer does not have."""
        for name in sorted(set(traits) - set(self.trait_names()) - {"model_id"}):
            raise traitlets.TraitError(
                f"{type(self).__name__} has no {name!r}; it has {', '.join(self._own_names())}"
            )
        super().__init__(*args, **traits)

    def _own_names(self) -> list[str]:
        """What a reader may pass: the explorer's own traits, and arguments that set several."""
        traits = set(self.trait_names()) - set(anywidget.AnyWidget.class_trait_names())
        arguments = inspect.signature(type(self).__init__).parameters.values()
        named = {p.name for p in arguments if p.kind is p.POSITIONAL_OR_KEYWORD} - {"self"}
        return sorted(name for name in traits | named if not name.startswith("_"))

    @property
    def caption(self) -> str:
        """The state and its result in words: the still picture's alternative text."""
        raise NotImplementedError

    def still(self) -> Figure:
        """Draw the state as a matplotlib Figure, for print and for pages without scripts."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.title}: {self.caption}"

    def still_png(self) -> bytes:
        """Return the still picture as PNG, on white."""
        buffer = io.BytesIO()
        self.still().savefig(buffer, format="png", dpi=110, facecolor="white", metadata={})
        return buffer.getvalue()

    # ipywidgets 7 would otherwise display itself past _repr_mimebundle_, without the picture.
    _ipython_display_ = None

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        data = {**data, "text/plain": repr(self)}
        try:
            data["image/png"] = base64.b64encode(self.still_png()).decode("ascii")
        except ImportError:  # without matplotlib: the words alone
            pass
        return data, {**metadata, "image/png": {"alt": self.caption}}


def figure(width: float = 6.4, height: float = 2.6, **kwargs: Any) -> Any:
    """Return (Figure, axes) without pyplot, so that nothing is displayed twice."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(fig)
    return fig, fig.subplots(**kwargs)


COLOURS = ["#0072b2", "#d55e00", "#009e73", "#b0568a", "#a87900", "#3f8fc0", "#5a5f66", "#7b4ab5"]


def sequential() -> Any:
    """The explorers' map for weights: from paper to blue."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("weights", ["#f6f6f4", "#0f58a0"])


def diverging() -> Any:
    """The explorers' map for signed numbers: orange, paper, blue."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("signed", ["#9a3c00", "#f6f6f4", "#0f58a0"])


def draw_heatmap(
    ax: Any,
    values: Any,
    rows: list[str],
    columns: list[str],
    title: str = "",
    *,
    signed: float = 0.0,
    digits: int | None = 2,
) -> None:
    """Draw a table of weights in [0, 1], or of signed numbers in [-signed, signed], on ax."""
    low, high, cmap = (-signed, signed, diverging()) if signed else (0.0, 1.0, sequential())
    ax.imshow(values, vmin=low, vmax=high, cmap=cmap, aspect="auto")
    ax.set_xticks(range(len(columns)), columns, rotation=90 if len(columns) > 6 else 0)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0, labelsize=9)
    ax.set_title(title, fontsize=10)
    ax.spines[:].set_visible(False)
    if digits is None or len(columns) > 8:
        return
    for i, row in enumerate(values):
        for j, x in enumerate(row):
            dark = (abs(x) / signed if signed else x) > 0.78
            colour = "white" if dark else "black"
            ax.text(
                j, i, f"{float(x):.{digits}f}", ha="center", va="center", fontsize=8, color=colour
            )

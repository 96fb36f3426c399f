"""What a question's options say: its parts, its right answer, and whether the two fit together.

No Sphinx here. Whatever does not fit raises BadQuestion with a sentence for the build's warning.
"""

import ast
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

TYPES = ("choice", "number", "place", "matrix", "open")
NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?"
Glue = Callable[[str], str]  # the text of a glued value, by its name


class BadQuestion(ValueError):
    """A question that cannot be asked as it stands."""


def split(lines: list[str]) -> list[tuple[str, str, int, int]]:
    """The parts of a body: what it is ("text", "answer", "hint"), its argument, first, last line.

    >>> split(["How many?", "", "=== answer", "Two.", "=== hint 4", "Count again."])
    [('text', '', 0, 2), ('answer', '', 3, 4), ('hint', '4', 5, 6)]
    """
    parts = [["text", "", 0, len(lines)]]
    fence = ""
    for k, line in enumerate(lines):
        if m := re.match(r"\s*(`{3,}|~{3,}|:{3,})", line):  # a code block's own === is not ours
            fence = "" if fence and m[1].startswith(fence) else fence or m[1]
        if fence or not line.startswith("==="):
            continue
        if not (m := re.fullmatch(r"=== (answer|hint (\S.*?))\s*", line)):
            raise BadQuestion(f"a part begins with `=== answer` or `=== hint WRONG`; got `{line}`")
        parts[-1][3] = k
        parts.append([m[1].split()[0], m[2] or "", k + 1, len(lines)])
    kinds = [part[0] for part in parts]
    if kinds.count("answer") > 1:
        raise BadQuestion("it has more than one `=== answer`")
    return [tuple(part) for part in parts]


def literal(text: str, glue: Glue) -> Any:
    """An answer's value as typed, "3", "1, 3", "1/9", "1, 2; 3, 4", or as glued, "glue:NAME"."""
    if m := re.fullmatch(r"glue:(\S+)", text.strip()):
        plain = re.sub(r"\bnp\.\w+\(([^()]*)\)", r"\1", glue(m[1]))
        try:
            return ast.literal_eval(plain)
        except (ValueError, SyntaxError):
            raise BadQuestion(
                f"{m[1]} must be glued as a number or a list, by float(x) or x.tolist(); "
                f"got {plain[:60]}"
            ) from None
    rows = [[cell.strip() for cell in row.split(",")] for row in text.split(";")]
    return rows if len(rows) > 1 else rows[0] if len(rows[0]) > 1 else rows[0][0]


def number(value: Any) -> float:
    """A finite number, from a number or from the text of a decimal or a fraction.

    >>> number("1/8"), number("-3"), number(2)
    (0.125, -3.0, 2.0)
    """
    if isinstance(value, str):
        text = value.strip().replace("−", "-")
        if re.fullmatch(NUMBER, text, flags=re.I):
            value = float(text)
        elif re.fullmatch(r"[-+]?\d+ */ *0*[1-9]\d*", text):
            value = float(Fraction(text.replace(" ", "")))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadQuestion(f"a number was wanted; got {str(value)[:60]!r}")
    return float(value)


def choices(value: Any, options: int) -> list[int]:
    """The 1-based numbers of options, each of them there."""
    found = [number(v) for v in (value if isinstance(value, list) else [value])]
    for one in found:
        if one != int(one) or not 1 <= one <= options:
            raise BadQuestion(f"there is no option {one:g}; they are numbered 1 to {options}")
    if not found or len(set(found)) < len(found):
        raise BadQuestion("an option is named once, and at least one is right")
    return sorted(map(int, found))


def matrix(value: Any) -> list[list[float]]:
    """Rows of numbers, all of one length."""
    rows = value if isinstance(value, list) else [value]
    rows = rows if rows and isinstance(rows[0], list) else [rows]
    made = [[number(v) for v in row] for row in rows if isinstance(row, list)]
    if not made or len(made) < len(rows) or not made[0] or len({len(row) for row in made}) > 1:
        raise BadQuestion("a matrix has rows of one length, like `1, 2; 3, 4`")
    return made


def read(kind: str, text: str, options: int, glue: Glue) -> Any:
    """The value of an answer or of a usual mistake for a question of type `kind`."""
    value = literal(text, glue)
    if kind == "choice":
        return choices(value, options)
    return matrix(value) if kind == "matrix" else number(value)


def line(said: dict[str, str], truth: float) -> dict[str, float]:
    """The line of a `place`: its ends and its steps, a hundred unless said otherwise.

    >>> line({"min": "0", "max": "5"}, 2.5)
    {'min': 0.0, 'max': 5.0, 'step': 0.05}
    """
    made = {}
    for name in ("min", "max"):
        if name not in said:
            raise BadQuestion(f"a place needs a :{name}:, an end of its line, or a :figure:")
        try:
            made[name] = number(said[name])
        except BadQuestion as error:
            raise BadQuestion(f":{name}: {error}") from None
    low, high = made["min"], made["max"]
    if not low < high:
        raise BadQuestion(f":min: must be less than :max:; got {low:g} and {high:g}")
    try:
        made["step"] = number(said.get("step", (high - low) / 100))
    except BadQuestion as error:
        raise BadQuestion(f":step: {error}") from None
    if not 0 < made["step"] <= high - low:
        raise BadQuestion(f":step: must be from above 0 to {high - low:g}; got {made['step']:g}")
    if not low <= truth <= high:
        raise BadQuestion(f"its answer {truth:g} is not on its line, {low:g} to {high:g}")
    return made


def tolerance(text: str, truth: Any) -> float:
    """How far off is still right: to be said wherever the answer is not whole."""
    flat = sum(truth, []) if isinstance(truth, list) else [truth]
    if not text:
        if all(v == int(v) for v in flat):
            return 0.0
        raise BadQuestion("its answer is not whole, so it needs a :tolerance:, such as 0.01")
    try:
        value = number(text)
    except BadQuestion as error:
        raise BadQuestion(f":tolerance: {error}") from None
    if value < 0:
        raise BadQuestion(f":tolerance: must not be negative; got {text}")
    return value


def same(kind: str, a: Any, b: Any, within: float) -> bool:
    """Whether two answers count as one."""
    if kind == "choice":
        return a == b
    if kind in ("number", "place"):
        return abs(a - b) <= within + 1e-9 * max(1, abs(a))
    one, other = sum(a, []), sum(b, [])
    return len(one) == len(other) and all(
        same("number", x, y, within) for x, y in zip(one, other, strict=True)
    )


def shown(value: float, within: float) -> str:
    """A number with as many decimals as the tolerance makes sense of.

    >>> shown(0.89999, 0.01), shown(3.0, 0), shown(1 / 3, 0.0005)
    ('0.9', '3', '0.3333')
    """
    decimals = max(0, -math.floor(math.log10(within))) if within else 0
    text = f"{value:.{min(decimals, 12)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def spoken(text: str) -> str:
    """TeX in words, roughly: what a screen reader says where it knows no MathML.

    >>> spoken(r"\\frac{1}{8} \\cdot \\sqrt{d_k}")
    '(1)/(8) times square root of (d_k)'
    """
    text = re.sub(r"\\[td]?frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"square root of (\1)", text)
    text = re.sub(r"\\(cdot|times)\b", "times", text)
    text = re.sub(r"\\(text|mathrm|operatorname|left|right|quad)\b|\\[,;!: ]|[{}]", " ", text)
    return " ".join(text.replace("\\", " ").split())


def tex(kind: str, value: Any, within: float) -> str:
    """A number or a matrix in TeX."""
    if kind != "matrix":
        return shown(value, within)
    rows = r" \\ ".join(" & ".join(shown(v, within) for v in row) for row in value)
    return rf"\begin{{pmatrix}} {rows} \end{{pmatrix}}"

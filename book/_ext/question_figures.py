"""The figure that a `place` asks about: where its axis lies, and how page and notebook show it.

A cell draws it, marks its axis by attention.figures.asked.ask_place and glues it. From its SVG come
the ends of the question's line, and where the plot lies in the picture, so that the marks stand
over its axis.
"""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from figures import page_svg
from myst_nb.core.variables import render_variable_outputs
from question_values import BadQuestion

AXES = re.compile(r'<g id="place_([^_"]+)_([^_"]+)">\s*<path d="([^"]*)"')
VIEW = re.compile(r'viewBox="0 0 (\S+) (\S+)"')


def line(svg: str) -> tuple[dict[str, str], str]:
    """The ends of the axis, and as CSS where the plot lies in the picture."""
    if not (found := AXES.search(svg)):
        raise BadQuestion("its figure needs an axis that is marked by asked.ask_place(ax)")
    low, high, path = found.groups()
    width, height = map(float, VIEW.search(svg).groups())
    corners = re.findall(r"[ML] (\S+) (\S+)", path)
    xs, ys = ([float(number) for number in numbers] for numbers in zip(*corners, strict=True))
    places = {
        "left": min(xs) / width,
        "wide": (max(xs) - min(xs)) / width,
        "top": min(ys) / height,
        "tall": (max(ys) - min(ys)) / height,
    }
    style = "".join(f"--{name}:{100 * share:.2f}%;" for name, share in places.items())
    return {"min": low, "max": high}, f"{style}--width:{width:.0f}px"


def image(directive: Any, data: Any, alt: str) -> tuple[str, nodes.image]:
    """The SVG of a glued figure, and its picture."""
    if "image/svg+xml" not in data.data:
        raise BadQuestion(":figure: must name a figure that is glued, drawn as SVG")
    render = {"image": {"alt": alt}}
    shown = render_variable_outputs(
        [data], directive.state.document, directive.lineno, "", render=render
    )
    found = [one for node in shown for one in node.findall(nodes.image)]
    return data.data["image/svg+xml"], next(one for one in found if one["uri"].endswith(".svg"))


def words(part: nodes.Element) -> list[nodes.Node]:
    """What a part holds; instead of a figure, what it shows."""
    if part["part"] != "figure":
        return list(part.children)
    return [nodes.paragraph("", "", nodes.emphasis("", part[0]["alt"]))]


def drawn(srcdir: str, part: nodes.Element) -> str:
    """A figure's part of a question for a notebook, as HTML that needs no other file."""
    return page_svg(Path(srcdir, part[0]["uri"].lstrip("/")).read_text("utf-8"), part[0]["alt"])

"""Difficulty and time under an exercise's title, from its classes `star-2 minutes-10`.

The class `needs-SECTION` names the section that a student must have read, for the teacher's list.

And the book without solutions (ANSWERS=0), or without the exercises' folded hints (HINTS=0): they
are executed and checked as ever, and taken out when a page is written. Numbers stay the same.
"""

import re

from answers import shown
from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_node, solution_node


def facts(classes: list[str]) -> dict[str, int]:
    """`["star-2", "minutes-10"]` → `{"star": 2, "minutes": 10, "points": 2}`.

    An exercise is worth as many points as it has stars unless a class `points-N` says otherwise.
    shape-N, sums-N, values-N and extremes-N are the weights of these properties in grading.
    """
    found = {}
    for name in classes:
        if m := re.fullmatch(r"(star|minutes|points|shape|sums|values|extremes)-(\d+)", name):
            found[m[1]] = int(m[2])
    if "star" in found:
        found.setdefault("points", found["star"])
    return found


class ExerciseFacts(SphinxPostTransform):
    default_priority = 30  # after sphinx-exercise has put its titles in place

    def run(self, **kwargs):
        for node in list(self.document.findall(nodes.Element)):
            if not isinstance(node, (exercise_node, exercise_enumerable_node)):
                continue
            known = facts(node.get("classes", []))
            if "star" not in known:
                continue
            stars = "★" * known["star"] + "☆" * (3 - known["star"])
            minutes = f" · about {known['minutes']} minutes" if "minutes" in known else ""
            text = nodes.paragraph("", "", classes=["exercise-facts"])
            shown = f'<span class="stars" aria-hidden="true">{stars}</span>'
            spoken = f" difficulty {known['star']} of 3"
            text += nodes.raw("", shown, format="html")
            text += nodes.inline("", spoken, classes=["visually-hidden"])
            text += nodes.Text(minutes)
            node.insert(1, text)


def needs(classes: list[str]) -> str:
    """The section that an exercise needs, by its id: `needs-SECTION` in its classes, else ""."""
    return next((n.removeprefix("needs-") for n in classes if n.startswith("needs-")), "")


def is_hint(node: nodes.Node) -> bool:
    """Whether this is a dropdown with the title Hint in an exercise."""
    inside = node.parent
    while inside and not isinstance(inside, exercise_node | exercise_enumerable_node):
        inside = inside.parent
    return (
        inside is not None
        and isinstance(node, nodes.container)
        and node.get("design_component") == "dropdown"
        and node.children[0].astext().strip().startswith("Hint")
    )


class Withhold(SphinxPostTransform):
    default_priority = 1  # before anything is resolved or copied for what is not shown

    def run(self, **kwargs):
        # the notebooks' builder leaves them out by itself: it needs them for the teacher's files
        without = not self.config.attention_answers and self.app.builder.name != "ipynb"
        for node in list(self.document.findall(nodes.Element)):
            hint = not self.config.attention_hints and is_hint(node)
            if hint or without and isinstance(node, solution_node):
                node.parent.remove(node)


def _read(app, config):
    try:
        config.attention_answers, config.attention_hints = shown("ANSWERS"), shown("HINTS")
    except ValueError as error:
        raise ExtensionError(str(error)) from None
    if not (config.attention_answers and config.attention_hints):
        config.html_copy_source = False


def setup(app):
    app.add_config_value("attention_answers", True, "html")
    app.add_config_value("attention_hints", True, "html")
    app.connect("config-inited", _read)
    app.add_post_transform(ExerciseFacts)
    app.add_post_transform(Withhold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

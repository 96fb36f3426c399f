"""Difficulty and time under an exercise's title, from its classes `star-2 minutes-10`."""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_node


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


def setup(app):
    app.add_post_transform(ExerciseFacts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

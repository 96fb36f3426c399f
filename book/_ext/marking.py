"""The marking of exam questions: an admonition of the class `marking`.

A book without answers (ANSWERS=0) is built without it.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform


class WithholdMarking(SphinxPostTransform):
    default_priority = 1  # before anything is resolved for what is not shown

    def run(self, **kwargs):
        if not self.config.attention_answers:
            withhold(self.document)


def withhold(document: nodes.document) -> None:
    for node in list(document.findall(nodes.admonition)):
        if "marking" in node.get("classes", []):
            node.parent.remove(node)


def setup(app):
    app.add_post_transform(WithholdMarking)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

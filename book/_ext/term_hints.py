"""A term of the glossary shows its sentence where a chapter uses it: by mouse, keyboard and touch.

A chapter introduces its own terms in bold. The first use of every other term becomes a button, and
beside it stands a popover with the term's sentences from the glossary. Only on the website: in
notebooks, print and EPUB the words are plain.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

GLOSSARY, NOT_HERE = "book/glossary", {"book/glossary", "book/index", "book/bibliography"}
# Everyday words that the glossary has, too: one cannot see which of the two is meant.
PLAIN = set(
    "bag base batch bias block cache control head key layer mask model nat query score state token "
    "training value vector weight".split()
)


class TermHint(nodes.General, nodes.Element):
    """A word of the text, with `sentence` (HTML) and the `number` of its popover."""


def entries(env) -> dict[str, nodes.Element]:
    """Every term of the glossary in small letters, with the paragraph that explains it."""
    found = {}
    for item in env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
        paragraph = next(iter(item.findall(nodes.paragraph)), None)
        for term in item.findall(nodes.term):
            if paragraph is not None:
                found[term.astext().lower()] = paragraph
    return found


def sentence(builder, paragraph: nodes.Element) -> str:
    """The paragraph as HTML, without the reference to its section at the end."""
    short = nodes.paragraph()
    for child in paragraph.children:
        if isinstance(child, nodes.Text) and child.astext().endswith("See "):
            short += nodes.Text(child.astext().removesuffix("See ").rstrip())
        elif child.tagname not in ("pending_xref", "reference") and child.astext() != ".":
            short += child.deepcopy()
    html = builder.render_partial(short)["fragment"]
    return re.sub(r"</?p>", "", html).strip()


class TermHints(SphinxPostTransform):
    default_priority = 900  # after references are resolved
    builders = ("html", "dirhtml")

    def run(self, **kwargs: Any) -> None:
        if self.env.docname in NOT_HERE or GLOSSARY not in self.env.found_docs:
            return
        known = entries(self.env)
        own = {bold.astext().lower() for bold in self.document.findall(nodes.strong)}
        wanted = {term: p for term, p in known.items() if term not in own | PLAIN}
        words = sorted(map(re.escape, {*known, *own}), key=len, reverse=True)  # longest first
        pattern = re.compile(rf"(?<![\w-])({'|'.join(words)})s?(?![\w-])", re.IGNORECASE)
        number = 0
        for text in list(self.document.findall(nodes.Text)):
            if not wanted or not isinstance(text.parent, nodes.paragraph) or outside(text):
                continue
            pieces, at = [], 0
            for match in pattern.finditer(text.astext()):
                if (paragraph := wanted.pop(match[1].lower(), None)) is None:
                    continue
                number += 1
                said = sentence(self.app.builder, paragraph)
                hint = TermHint("", nodes.Text(match[0]), number=number, sentence=said)
                pieces += [nodes.Text(text.astext()[at : match.start()]), hint]
                at = match.end()
            if pieces:
                text.parent.replace(text, [*pieces, nodes.Text(text.astext()[at:])])


def outside(node: nodes.Node) -> bool:
    """Whether the node is no running text of the chapter: a title, a box, a table, a figure."""
    while (node := node.parent) is not None:
        if node.tagname not in ("paragraph", "section", "document", "bullet_list", "list_item",
                                "enumerated_list"):  # fmt: skip
            return True
    return False


def visit(self, node: TermHint) -> None:
    at = f'popovertarget="term-note-{node["number"]}"'
    self.body.append(f'<button type="button" class="term" {at}>')


def depart(self, node: TermHint) -> None:
    note = f'<span popover id="term-note-{node["number"]}" class="term-note">'
    self.body.append(f"</button>{note}{node['sentence']}</span>")


def setup(app):
    app.add_node(TermHint, html=(visit, depart))
    app.add_post_transform(TermHints)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

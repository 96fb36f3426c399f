"""The book's questions and terms as data, for the decks and quizzes that scripts/ make of them.

The notebook builder calls this, because it has every chapter's resolved doctree; what it writes,
questions.json, stands beside the notebooks and is not published. Each part of a question is plain
HTML, well-formed as XML, with formulas in \\( \\) and the book's own pictures at `media:PATH`. A
notebook's own questions carry their formulas as MathML, which every browser draws by itself.
"""

import html
import posixpath
import re
from collections.abc import Callable
from typing import Any

from docutils import nodes
from markdown_it import MarkdownIt
from maths import temml
from mdit_py_plugins.dollarmath import dollarmath_plugin
from notebook_markdown import Markdown
from question_figures import drawn
from question_pages import glossary_items
from question_values import spoken
from questions import question, question_part

from attention.widgets.question import seal


def in_brackets(tex: str, display: bool) -> str:
    """A formula for MathJax."""
    left, right = (r"\[", r"\]") if display else (r"\(", r"\)")
    return html.escape(f"{left}{tex}{right}", quote=False)


def in_mathml(tex: str, display: bool) -> str:
    """A formula that needs no script."""
    return temml(tex, display, "a question")


def _reader(formula: Callable[[str, bool], str]) -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": True, "xhtmlOut": True}).enable("table")
    reader.use(dollarmath_plugin, double_inline=True)

    def rule(display: bool):
        return lambda self, tokens, k, options, env: formula(tokens[k].content.strip(), display)

    for kind, display in [
        ("math_inline", False),
        ("math_inline_double", True),
        ("math_block", True),
    ]:
        reader.add_render_rule(kind, rule(display))
    return reader


READER, WITHOUT_SCRIPT = _reader(in_brackets), _reader(in_mathml)


def as_html(markdown: str, reader: MarkdownIt = READER) -> str:
    """Markdown as the notebooks have it, in HTML.

    >>> as_html("An *$x < y$*.")
    '<p>An <em>\\\\(x &lt; y\\\\)</em>.</p>'
    """
    return re.sub(r"<br\s*>", "<br />", reader.render(markdown)).strip()


class Exporter:
    """Writes the nodes of one page as HTML; links lead to the site, or nowhere."""

    leads = 1  # a hint's first line names the mistake, as `wrong` does

    def __init__(self, builder: Any, docname: str, reader: MarkdownIt = READER) -> None:
        self.builder, self.docname, self.reader = builder, docname, reader
        self.write = Markdown(self.link, self.number, set())

    def number(self, kind: str, ids: list[str]) -> str:
        known = self.builder.env.toc_fignumbers.get(self.docname, {}).get(kind, {})
        return next((".".join(map(str, known[i])) for i in ids if i in known), "")

    def link(self, node: nodes.Element) -> str:
        if isinstance(node, nodes.image):
            uri = node["uri"]
            return uri if re.match("https?:", uri) else f"media:{uri.lstrip('/')}"
        uri, site = node.get("refuri", ""), self.builder.config.attention_site
        if node.get("refid") or uri.startswith(("doc:", "#")):
            page, _, anchor = uri.removeprefix("doc:").partition("#")
            anchor = node.get("refid") or anchor
            hash_ = f"#{anchor}" if anchor else ""
            return f"{site}/{page or self.docname}.html{hash_}" if site else ""
        return uri

    def blocks(self, children: list[nodes.Node]) -> str:
        return as_html(self.write.blocks(list(children)), self.reader)

    def asked(self, node: question) -> dict[str, Any]:
        """What is asked; a card and a learning platform have no line, so a place is a number."""
        line = ("min", "max", "step")
        made = {key: value for key, value in node["asked"].items() if key not in line}
        return made | ({"type": "number"} if made["type"] == "place" else {})

    def question(self, node: question) -> dict[str, Any]:
        title, *parts = node.children
        made = self.asked(node) | {
            "kind": node["kind"],
            "title": as_html(self.write.inline(title)).removeprefix("<p>").removesuffix("</p>"),
        }
        for part in parts:
            if part["part"] == "figure":
                made["text"] += self.figure(part)
                continue
            if part["part"] == "options":
                made["options"] = [self.blocks(item.children) for item in part[0].children]
                continue
            hints = [c for c in part.children if isinstance(c, question_part)]
            name = {"text": "text", "answer": "told"}[part["part"]]
            made[name] = self.blocks([c for c in part.children if c not in hints])
            if hints:
                made["hints"] = [
                    {"wrong": hint["wrong"], "told": self.blocks(hint.children[self.leads :])}
                    for hint in hints
                ]
        return made

    def figure(self, part: question_part) -> str:
        """A figure is black on white wherever it goes."""
        shown = self.blocks(part.children)
        return shown.replace("<img ", '<img style="background: white" ')


class Asker(Exporter):
    """Writes a question for its own notebook, without its text, which stands there already."""

    leads = 0

    def __init__(self, builder: Any, docname: str) -> None:
        super().__init__(builder, docname, WITHOUT_SCRIPT)

    def asked(self, node: question) -> dict[str, Any]:
        return dict(node["asked"])

    def link(self, node: nodes.Element) -> str:
        site = self.builder.config.attention_site
        address = super().link(node)
        if address.startswith("media:"):
            return f"{site}/_images/{posixpath.basename(address)}" if site else ""
        return address

    def sealed(self, node: question) -> str:
        made = self.question(node)
        del made["text"]
        parts = {part["part"]: part for part in node.children[1:]}
        if "figure" in parts:
            made["figure"] = drawn(self.builder.srcdir, parts["figure"])
            made["style"] = parts["figure"]["style"]
        made["title"] = spoken(node[0].astext())
        if "options" in parts:
            items = parts["options"][0].children
            made["shown"] = self.write.blocks([parts["options"][0]])
            if next(parts["options"].findall(nodes.math), None):
                made["said"] = [spoken(item.astext()) for item in items]
        return seal(made)


def export(builder: Any, doctrees: dict[str, nodes.document]) -> dict[str, Any]:
    """All questions by chapter, in the book's order, and all terms of its glossary."""
    env, chapters, terms = builder.env, [], []
    asking = set(vars(env).get("question_names", {}).values())  # none in a book that asks nothing
    for docname in dict.fromkeys([*env.toctree_includes.get(env.config.root_doc, []), *asking]):
        if docname in asking:
            page = Exporter(builder, docname)
            tree = doctrees.get(docname) or env.get_and_resolve_doctree(docname, builder)
            number = ".".join(map(str, env.toc_secnumbers.get(docname, {}).get("") or ()))
            chapters.append(
                {
                    "name": docname.rsplit("/", 1)[-1],
                    "page": docname,
                    "title": f"{number} {env.titles[docname].astext()}".strip(),
                    "questions": [page.question(node) for node in tree.findall(question)],
                }
            )
        if docname in vars(env).get("question_terms", {}):
            page = Exporter(builder, docname)
            for term, told in glossary_items(env.get_and_resolve_doctree(docname, builder)):
                said = as_html(page.write.inline(term)).removeprefix("<p>").removesuffix("</p>")
                terms.append(
                    {
                        "name": term["ids"][0],
                        "page": docname,
                        "term": said,
                        "told": page.blocks(told.children),
                    }
                )
    about = {"book": builder.config.html_title, "site": builder.config.attention_site}
    return about | {"chapters": chapters, "terms": terms}

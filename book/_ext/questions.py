"""The directives {guess}, {check} and {interview}: a question, and an answer that unfolds.

As written it needs no script: the answer is a <details> of the page and of the notebook, and plain
text in print, LaTeX and EPUB. What a script needs to take an answer stands in `data-question`.
The form is described in README.md; question_values.py says what fits together.
"""

import json
import re
from typing import Any

import question_figures as figures
import question_values as values
from docutils import nodes
from docutils.parsers.rst import directives
from myst_nb.core.variables import RetrievalError
from myst_nb.ext.glue.utils import retrieve_glue_data
from question_values import BadQuestion
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOGGER = logging.getLogger(__name__)
FOLDED = ("html", "dirhtml")  # builders whose pages fold an answer
TITLES = {"guess": "Guess first", "check": "Check {}", "interview": "Question {}"}


class question(nodes.Admonition, nodes.Element):  # noqa: N801
    """A title, then parts; `asked` is what a script needs to know."""


class question_part(nodes.General, nodes.Element):  # noqa: N801
    """`part` is text, figure, options, answer or hint; a hint has its `wrong` value."""


class Question(SphinxDirective):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = {
        name: directives.unchanged_required
        for name in (
            "name",
            "type",
            "answer",
            "tolerance",
            "unit",
            "min",
            "max",
            "step",
            "figure",
            "alt",
        )
    }

    def run(self) -> list[nodes.Node]:
        label = self.options.get("name", "")
        number = self.env.temp_data.get("checks", 0) + 1 if self.name != "guess" else None
        try:
            node = self.make(label, number)
        except BadQuestion as error:
            name = f"{self.name} {label or '(without a name)'}"
            LOGGER.warning("the question %s: %s", name, error, location=self.get_location())
            return []
        if number:
            self.env.temp_data["checks"] = number
        return [node]

    def make(self, label: str, number: int | None) -> question:
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", label):
            raise BadQuestion(f"it needs a :name: of small letters, digits and -; got {label!r}")
        self.once(label)
        kind = self.options.get("type", "")
        if kind not in values.TYPES:
            raise BadQuestion(f":type: is one of {', '.join(values.TYPES)}; got {kind!r}")
        node = question(ids=[label], kind="check" if number else "guess")
        parts = self.parts(kind)
        by = {part["part"]: part for part in parts}
        if "answer" not in by or not by["answer"].children:
            raise BadQuestion("it has no `=== answer` with an explanation")
        self.check(node, label, kind, parts)
        title = TITLES[self.name].format(number)
        node += self.title(title)
        node += [part for part in parts if part["part"] != "hint"]
        by["answer"] += [part for part in parts if part["part"] == "hint"]
        self.state.document.set_id(node)
        self.env.get_domain("std").note_hyperlink_target(label, self.env.docname, label, title)
        self.set_source_info(node)
        return node

    def once(self, label: str) -> None:
        known = vars(self.env).setdefault("question_names", {})
        where = known.setdefault(label, self.env.docname)
        here = self.env.temp_data.setdefault("question_names", set())
        if where != self.env.docname or label in here or label in self.state.document.ids:
            raise BadQuestion(f"its name is taken, in {where}")
        here.add(label)

    def title(self, words: str) -> nodes.title:
        made = nodes.title("", words)
        if self.arguments:
            inline, problems = self.state.inline_text(self.arguments[0], self.lineno)
            made += [nodes.Text(": "), *inline, *problems]
        return made

    def parts(self, kind: str) -> list[question_part]:
        """The parsed parts in order; the last list of a choice's text holds its options."""
        made = []
        for part, wrong, first, last in values.split(list(self.content)):
            node = question_part(part=part, written=wrong)
            self.state.nested_parse(self.content[first:last], self.content_offset + first, node)
            made.append(node)
            if part == "text" and kind == "choice":
                if not node.children or not isinstance(node[-1], nodes.bullet_list):
                    raise BadQuestion("a choice ends with a list of its options")
                options = question_part("", node.pop(), part="options")
                made.append(options)
            if not node.children:
                raise BadQuestion(f"its part `{f'{part} {wrong}'.strip()}` is empty")
        return made

    def check(self, node: question, label: str, kind: str, parts: list[question_part]) -> None:
        """Put the right answer into the node, and into the words of the folded answer."""
        said = self.options.get("answer", "")
        hints = [part for part in parts if part["part"] == "hint"]
        asked: dict[str, Any] = {"name": label, "type": kind}
        node["asked"] = asked
        only = {"min", "max", "step", "figure", "alt"}
        if (more := sorted(only & set(self.options))) and kind != "place":
            raise BadQuestion(f"only a place has a :{more[0]}:")
        if kind == "open":
            if said or hints:
                raise BadQuestion("an open question has no :answer: and no hints")
            return
        if not said:
            raise BadQuestion("it needs an :answer:")
        items = next((list(p[0]) for p in parts if p["part"] == "options"), [])
        if kind == "choice" and len(items) < 2:
            raise BadQuestion("a choice has two options at least")
        truth = values.read(kind, said, len(items), self.glued)
        within = 0.0
        if kind != "choice":
            within = asked["tolerance"] = values.tolerance(self.options.get("tolerance", ""), truth)
        asked["answer"] = truth
        if kind == "place":
            asked |= values.line(self.options | self.figure(parts), truth)
        if unit := self.options.get("unit"):
            asked["unit"] = unit
        for hint in hints:
            try:
                wrong = values.read(kind, hint["written"], len(items), self.glued)
            except BadQuestion as error:
                raise BadQuestion(f"the hint {hint['written']}: {error}") from None
            if kind == "matrix" and list(map(len, wrong)) != list(map(len, truth)):
                raise BadQuestion(f"the hint {hint['written']} has another shape than the answer")
            right = set(wrong) <= set(truth) if kind == "choice" else None
            if right or values.same(kind, truth, wrong, within):
                raise BadQuestion(f"the hint {hint['written']} is for the right answer")
            hint["wrong"] = wrong
            lead, end = ("If you chose “", "”:") if kind == "choice" else ("If you had ", ":")
            hint.insert(0, paragraph(lead, said_as(kind, wrong, within, items), end))
        answer = next(part for part in parts if part["part"] == "answer")
        line = paragraph("Answer: ", said_as(kind, truth, within, items), f" {unit}" * bool(unit))
        if line.astext().removeprefix("Answer: ").lower() not in answer.astext().lower():
            answer.insert(0, line)

    def figure(self, parts: list[question_part]) -> dict[str, str]:
        """Put the figure after the text; return the ends of its axis."""
        name, alt = self.options.get("figure", ""), self.options.get("alt", "")
        if bool(name) != bool(alt):
            raise BadQuestion("a figure needs both :figure: and :alt:, which says what it shows")
        if not name:
            return {}
        if ends := sorted({"min", "max"} & set(self.options)):
            raise BadQuestion(f"its figure's axis has the ends, so it has no :{ends[0]}:")
        svg, image = figures.image(self, self.retrieved(name), alt)
        ends, style = figures.line(svg)
        parts.insert(1, question_part("", image, part="figure", style=style))
        return ends

    def retrieved(self, name: str) -> Any:
        try:
            return retrieve_glue_data(self.state.document, name)
        except RetrievalError:
            raise BadQuestion(f"nothing is glued as {name} in this chapter") from None

    def glued(self, name: str) -> str:
        return self.retrieved(name).data["text/plain"]


def paragraph(before: str, middle: list[nodes.Node], after: str) -> nodes.paragraph:
    """A line of its own that leads to what follows."""
    return nodes.paragraph(
        "", "", nodes.Text(before), *middle, nodes.Text(after), classes=["question-lead"]
    )


def said_as(kind: str, value: Any, within: float, items: list[nodes.Element]) -> list[nodes.Node]:
    """An answer in words: the options themselves, or the number or matrix."""
    if kind != "choice":
        return [nodes.math("", values.tex(kind, value, within))]
    made: list[nodes.Node] = []
    for k in value:
        made += [nodes.Text(" · ")] if made else []
        made += [child.deepcopy() for child in items[k - 1][0].children]
        if isinstance(made[-1], nodes.Text):  # an option may be a sentence; here it is in one
            made[-1] = nodes.Text(made[-1].removesuffix("."))
    return made


# HTML


def visit_question(self, node: question) -> None:
    attributes = {"data-question": json.dumps(node["asked"], ensure_ascii=False)}
    classes = f"question admonition {node['kind']}"
    node["begins"] = len(self.body)
    self.body.append(self.starttag(node, "div", CLASS=classes, **attributes))


def visit_part(self, node: question_part) -> None:
    part, more = node["part"], {}
    if part == "figure":
        more["style"] = node["style"]
    if part == "hint":
        more["data-wrong"] = json.dumps(node["wrong"])
    if part == "options" and next(node.findall(nodes.math), None):
        said = [values.spoken(item.astext()) for item in node[0].children]
        more["data-said"] = json.dumps(said, ensure_ascii=False)
    tag = "details" if part == "answer" else "div"
    self.body.append(self.starttag(node, tag, CLASS=f"question-{part}", **more))
    if part == "answer":
        self.body.append("<summary>Answer</summary>\n")


def depart_question(self, node: question) -> None:
    self.body.append("</div>\n")
    cards = vars(self.builder).setdefault("question_cards", {})  # for question_pages.py
    page = cards.setdefault(self.builder.current_docname, {})
    page[node["asked"]["name"]] = "".join(self.body[node["begins"] :])


def depart_part(self, node: question_part) -> None:
    self.body.append("</details>\n" if node["part"] == "answer" else "</div>\n")


# Markdown


def asking(write: Any, node: question, options: bool = True) -> str:
    """The question as a quotation, with its options."""
    from notebook_markdown import quoted

    title, *parts = node.children
    shown = ("text", "figure", "options") if options else ("text",)
    above = [part for part in parts if part["part"] in shown]
    body = write.blocks([c for part in above for c in figures.words(part)], nested=True)
    return quoted(f"**{write.inline(title)}**\n\n{body}")


def telling(write: Any, node: question) -> str:
    """The answer, folded, with what is said of the usual mistakes."""
    from notebook_markdown import details

    answer = next(part for part in node.children[1:] if part["part"] == "answer")
    hints = [part for part in answer.children if isinstance(part, question_part)]
    told = [c for c in answer.children if c not in hints]
    told += [c for hint in hints for c in hint.children]
    return details("Answer", write.blocks(told))


def markdown(write: Any, node: question) -> str:
    """The question with its options, and the answer folded under it."""
    return f"{asking(write, node)}\n\n{telling(write, node)}"


# everything else


class PlainQuestions(SphinxPostTransform):
    """Where nothing folds, a question is followed by its answer."""

    default_priority = 20

    def run(self, **kwargs: Any) -> None:
        if self.app.builder.name in (*FOLDED, "ipynb"):
            return
        for node in list(self.document.findall(question)):
            title, *parts = node.children
            head = nodes.paragraph("", "", nodes.target("", "", ids=node["ids"]))
            head += nodes.strong("", "", *title.children)
            box = nodes.container("", head, classes=["question", node["kind"]])
            for part in parts:
                if part["part"] == "answer":
                    box += nodes.paragraph("", "", nodes.strong("", "Answer"))
                svg = "image/svg+xml" in self.app.builder.supported_image_types
                for child in part.children if svg else figures.words(part):
                    box += child.children if isinstance(child, question_part) else child
            node.replace_self(box)


def _forget(app, env, docname):
    known = vars(env).setdefault("question_names", {})
    for name in [n for n, where in known.items() if where == docname]:
        del known[name]


def _merge(app, env, docnames, other):
    vars(env).setdefault("question_names", {}).update(vars(other).get("question_names", {}))


def _begin(app, env, docnames):
    vars(env).setdefault("question_names", {})


def setup(app):
    app.connect("env-before-read-docs", _begin)
    app.add_node(question, html=(visit_question, depart_question))
    app.add_node(question_part, html=(visit_part, depart_part))
    for name in TITLES:
        app.add_directive(name, Question)
    app.add_post_transform(PlainQuestions)
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

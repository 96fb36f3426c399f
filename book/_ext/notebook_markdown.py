"""Plain Markdown, as Jupyter, Colab and code hosts read it, from a page's resolved doctree.

Numbers, references, citations and glued values are settled in the doctree; what is left is syntax.
Admonitions become quotations with a bold title, dropdowns <details>, equations $$ with \\tag.
"""

import html
import re
from collections.abc import Callable

from docutils import nodes
from questions import markdown as question_markdown
from questions import question
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
ADMONITIONS = {
    nodes.note: "Note", nodes.warning: "Warning", nodes.tip: "Tip", nodes.hint: "Hint",
    nodes.important: "Important", nodes.caution: "Caution", nodes.danger: "Danger",
    nodes.attention: "Attention", nodes.error: "Error",
}  # fmt: skip
SILENT = (
    nodes.target, nodes.comment, nodes.meta, nodes.substitution_definition, nodes.transition,
    nodes.pending, nodes.label, nodes.colspec,
)  # fmt: skip


def escape(text: str) -> str:
    """Protect what Markdown, HTML or the mathematics of a notebook would take for markup."""
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"([\\`$])", r"\\\1", text)
    text = re.sub(r"(?<![\s])\*|\*(?![\s])", r"\\*", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
    text = re.sub(r"\](?=\()", r"\\]", text)
    return re.sub(r"<(?=[\w/!?])", "&lt;", text)


def line_start(text: str) -> str:
    """Protect a paragraph whose first characters would make it a list, a heading or a quotation."""
    text = re.sub(r"^(\d+)([.)])(?=\s)", r"\1\\\2", text)
    return re.sub(r"^([-+#>=~|])(?=\s|[#=~-]|$)", r"\\\1", text)


def code_span(text: str) -> str:
    """`text` as inline code, with as many backticks as it needs."""
    text = re.sub(r"\s+", " ", text)
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    pad = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(text: str, language: str = "") -> str:
    """`text` as a code block."""
    runs = [len(run) for run in re.findall(r"`{3,}", text)]
    fence = "`" * (max(runs, default=2) + 1)
    language = {"ipython3": "python", "ipython": "python", "default": "", "none": ""}.get(
        language, language
    )
    language = "text" if language.startswith("myst-ansi") else language
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def quoted(text: str) -> str:
    """`text` as a quotation."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def details(summary: str, body: str) -> str:
    """`body` folded behind `summary`, which is HTML."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


class Markdown:
    """Writes the nodes of one page as Markdown.

    `link` gives the address for a reference node, "" where there is none to give; `number` gives
    the number of a figure, table or equation by its kind and ids; `anchors` are the ids that some
    notebook refers to.
    """

    def __init__(
        self,
        link: Callable[[nodes.Element], str],
        number: Callable[[str, list[str]], str],
        anchors: set[str],
    ) -> None:
        self.link, self.number, self.anchors = link, number, anchors
        self.in_html = self.in_table = self.nested = False

    # inline

    def inline(self, node: nodes.Node) -> str:
        """The Markdown of a node's children, in one line."""
        return "".join(self.span(child) for child in node.children)

    def html_inline(self, node: nodes.Node) -> str:
        """Likewise as HTML, for places where Markdown is not read."""
        before, self.in_html = self.in_html, True
        text = self.inline(node)
        self.in_html = before
        return text

    def span(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.Text):
            return (
                html.escape(str(node), quote=False)
                if self.in_html
                else self._pipe(escape(str(node)))
            )
        if isinstance(node, nodes.emphasis | nodes.title_reference):
            return self._wrap("em", "*", node)
        if isinstance(node, nodes.strong):
            return self._wrap("strong", "**", node)
        if isinstance(node, nodes.literal | nodes.literal_block):
            text = node.astext()
            if self.in_html:
                return f"<code>{html.escape(text, quote=False)}</code>"
            return self._pipe(code_span(text))
        if isinstance(node, nodes.math):
            return f"${self._tex(node.astext())}$"
        if isinstance(node, nodes.superscript | nodes.subscript):
            tag = "sup" if isinstance(node, nodes.superscript) else "sub"
            return f"<{tag}>{self.inline(node)}</{tag}>"
        if isinstance(node, nodes.footnote_reference):
            return f"<sup>[{node.astext()}](#{node.get('refid', '')})</sup>"
        if isinstance(node, nodes.raw):
            return self._raw(node)
        if isinstance(node, nodes.image):
            address = self.link(node)
            return f"![{escape(node.get('alt', ''))}]({address})" if address else ""
        if "bibtex-citation" in node.get("classes", ()):
            return self._citation(node)
        if isinstance(node, nodes.reference) or node.tagname in (
            "number_reference", "download_reference"
        ):  # fmt: skip
            text, address = self.inline(node).strip(), self.link(node)
            if not address:
                return text
            if self.in_html:
                return f'<a href="{html.escape(address)}">{text}</a>'
            return f"[{text}]({address})"
        if "visually-hidden" in node.get("classes", ()) or isinstance(node, SILENT):
            return ""
        return self.inline(node)

    def _raw(self, node: nodes.raw) -> str:
        shown = "html" in node.get("format", "").split()
        return re.sub(r"<!--.*?-->", "", node.astext(), flags=re.S).strip() if shown else ""

    def _citation(self, node: nodes.Element) -> str:
        """Vaswani et al. (2017): round brackets, since square ones make links."""
        return "".join(
            self.span(nodes.Text(str(c).replace("[", "(").replace("]", ")")))
            if isinstance(c, nodes.Text)
            else self.span(c)
            for c in node.children
        )

    def _wrap(self, tag: str, mark: str, node: nodes.Element) -> str:
        text = self.inline(node)
        return f"<{tag}>{text}</{tag}>" if self.in_html else f"{mark}{text.strip()}{mark}"

    def _pipe(self, text: str) -> str:
        return text.replace("|", r"\|") if self.in_table else text

    def _tex(self, text: str) -> str:
        text = re.sub(r"\s+", " ", text.strip())
        if self.in_table:  # a bar would end the table's cell
            text = text.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        return text

    # blocks

    def blocks(self, children: list[nodes.Node], nested: bool = False) -> str:
        """The Markdown of block-level nodes, an empty line between them."""
        before, self.nested = self.nested, self.nested or nested
        texts = [self.block(child) for child in children]
        self.nested = before
        return "\n\n".join(text for text in texts if text)

    def anchor(self, node: nodes.Element) -> str:
        """Places to jump to, for those of the node's ids that something refers to."""
        if isinstance(node, nodes.footnote):  # has its own, beside its number
            return ""
        ids = [i for i in node.get("ids", ()) if i in self.anchors]
        return "".join(f'<a id="{i}"></a>' for i in ids)

    def block(self, node: nodes.Node) -> str:
        if isinstance(node, SILENT):
            return ""
        text = self._block(node)
        anchor = self.anchor(node) if isinstance(node, nodes.Element) else ""
        return f"{anchor}\n\n{text}" if anchor and text else text

    def _block(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.paragraph):
            return line_start(self.inline(node).strip())
        if isinstance(node, nodes.literal_block):
            return fenced(node.astext(), node.get("language", ""))
        if isinstance(node, nodes.doctest_block):
            return fenced(node.astext(), "python")
        if isinstance(node, nodes.math_block):
            return self._equation(node)
        if isinstance(node, nodes.bullet_list | nodes.enumerated_list):
            return self._list(node)
        if isinstance(node, nodes.definition_list):
            return "\n".join(self._definition(item) for item in node.children)
        if isinstance(node, nodes.table):
            return self._table(node)
        if isinstance(node, nodes.figure):
            return self._figure(node)
        if isinstance(node, nodes.image):
            return self.span(node)
        if isinstance(node, nodes.footnote):
            label, *rest = node.children
            anchor = "".join(f'<a id="{i}"></a>' for i in node["ids"])
            return f"{anchor}<sup>{label.astext()}</sup> {self.blocks(rest)}"
        if isinstance(node, nodes.block_quote):
            return quoted(self.blocks(node.children, nested=True))
        if isinstance(node, question):
            return question_markdown(self, node)
        if isinstance(node, nodes.admonition):
            title, *rest = node.children
            return self._admonition(self.inline(title), rest)
        if type(node) in ADMONITIONS or node.tagname == "seealso":
            return self._admonition(ADMONITIONS.get(type(node), "See also"), node.children)
        if isinstance(node, nodes.rubric):
            return f"**{self.inline(node)}**"
        if isinstance(node, nodes.raw):
            return self._raw(node)
        if isinstance(node, nodes.line_block):
            return "<br>".join(self.inline(line) for line in node.children)
        if isinstance(node, nodes.container):
            return self._container(node)
        if isinstance(node, nodes.section | nodes.compound | nodes.caption | nodes.title):
            inline = isinstance(node, nodes.caption | nodes.title)
            return f"**{self.inline(node)}**" if inline else self.blocks(node.children)
        LOGGER.warning("no Markdown is known for <%s>", node.tagname, location=node)
        return ""

    def _admonition(self, title: str, children: list[nodes.Node]) -> str:
        body = self.blocks(children, nested=True)
        return quoted(f"**{title}**\n\n{body}")

    def _container(self, node: nodes.Element) -> str:
        if node.get("design_component") == "dropdown":
            title, rest = "More", node.children
            if node.get("has_title"):
                title, rest = self.html_inline(node.children[0]), node.children[1:]
            return details(title, self.blocks(rest))
        return self.blocks(node.children)

    def _equation(self, node: nodes.Element) -> str:
        tex = node.astext().strip()
        if m := re.fullmatch(r"\\begin\{(\w+)(\*?)\}(.*)\\end\{\1\2\}", tex, flags=re.S):
            inner = {"align": "aligned", "gather": "gathered"}.get(m[1])
            if m[1] == "equation":
                tex = m[3].strip()
            elif inner:
                tex = f"\\begin{{{inner}}}{m[3]}\\end{{{inner}}}"
        number = self.number("displaymath", node.get("ids", [])) or node.get("number") or ""
        if node.get("label") and not isinstance(number, bool):
            tex += rf" \tag{{{number}}}"
        if self.nested:  # a notebook looks for $$ before it takes the marks of a quotation away
            return f"$${self._tex(tex)}$$"
        return f"$$\n{tex}\n$$"

    def _list(self, node: nodes.Element) -> str:
        start = int(node.get("start", 1))
        items = []
        for k, item in enumerate(node.children):
            mark = f"{start + k}. " if isinstance(node, nodes.enumerated_list) else "- "
            body = self.blocks(item.children).splitlines() or [""]
            if len(item.children) == 2 and isinstance(item.children[1], nodes.bullet_list):
                body = "\n".join(body).replace("\n\n- ", "\n- ", 1).splitlines()
            pad = " " * len(mark)
            items.append("\n".join([mark + body[0], *((pad + b).rstrip() for b in body[1:])]))
        lists = nodes.bullet_list | nodes.enumerated_list
        loose = any(not isinstance(part, lists) for item in node.children for part in item[1:])
        return ("\n\n" if loose else "\n").join(items)

    def _definition(self, item: nodes.Element) -> str:
        terms = [self.inline(c) for c in item.children if isinstance(c, nodes.term)]
        bodies = [c for c in item.children if isinstance(c, nodes.definition)]
        body = "\n\n".join(self.blocks(b.children) for b in bodies).splitlines()
        return "\n".join([f"- **{', '.join(terms)}**: " + body[0], *("  " + b for b in body[1:])])

    def _table(self, node: nodes.Element) -> str:
        before, self.in_table = self.in_table, True
        rows = [list(row.children) for row in node.findall(nodes.row)]
        cells = [[self._cell(entry) for entry in row] for row in rows]
        self.in_table = before
        if not list(node.findall(nodes.thead)):  # Markdown tables have a header, if an empty one
            cells.insert(0, ["" for _ in cells[0]])
        marks = {"text-left": ":--", "text-right": "--:", "text-center": ":-:"}
        rule = [
            next((marks[c] for c in entry.get("classes", ()) if c in marks), "---")
            for entry in rows[0]
        ]
        lines = [cells[0], rule, *cells[1:]]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        titles = [c for c in node.children if isinstance(c, nodes.title)]
        if not titles:
            return table
        number = self.number("table", node.get("ids", []))
        name = f"**Table {number}.** " if number else ""
        return f"{name}{self.inline(titles[0])}\n\n{table}"

    def _cell(self, entry: nodes.Element) -> str:
        parts = []
        for child in entry.children:
            if isinstance(child, nodes.bullet_list | nodes.enumerated_list):
                parts += ["• " + self.inline(p) for p in child.findall(nodes.paragraph)]
            else:
                parts.append(self.inline(child).strip())
        return "<br>".join(parts)

    def caption(self, node: nodes.Element, alt: str) -> str:
        """A figure's number, caption and alternative text."""
        captions = [c for c in node.children if isinstance(c, nodes.caption)]
        number = self.number("figure", node.get("ids", []))
        name = f"**Figure {number}.** " if number else ""
        text = name + (self.inline(captions[0]).strip() if captions else "")
        said = f"*In words:* {escape(alt).strip()}" if alt else ""
        return "\n\n".join(part for part in (text, said) if part)

    def _figure(self, node: nodes.Element) -> str:
        images = list(node.findall(nodes.image))
        shown = "\n".join(filter(None, (self.span(image) for image in images)))
        alt = images[0].get("alt", "") if images and not shown else ""
        legend = [c for c in node.children if isinstance(c, nodes.legend)]
        parts = [shown, self.caption(node, alt), *(self.blocks(part.children) for part in legend)]
        return "\n\n".join(part for part in parts if part)

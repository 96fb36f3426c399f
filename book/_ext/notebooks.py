"""The chapters as notebooks: a Sphinx builder, and the buttons that lead to what it writes.

It starts from the resolved doctrees, which it shares with the HTML build, so that nothing is read
or executed again. Code comes from the notebook that MyST-NB has executed, prose from the doctree
by way of notebook_markdown.py. Outputs are dropped, except the still picture of an explorer and the
options or the figure of a question, which stand in their place until the cell is run, and on code
hosts for good.

exercises.json and questions.json, beside the notebooks and not published, are what course.py,
anki.py and quiz.py in scripts/ work from.
"""

import base64
import json
import posixpath
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
import own_numbers
from answers import BEGIN, gentle, notebook, stub, unmarked
from docutils import nodes
from exercises import facts
from myst_nb.core.render import WIDGET_VIEW_MIMETYPE
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from notebook_markdown import Markdown, details, fenced
from question_export import Asker, export
from questions import asking, question, telling
from sphinx.builders import Builder
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_node, solution_node

SETUP = Path(__file__).with_name("setup_cell.py")
BRANCH = "gh-pages"  # the branch that the site is published from, notebooks/ included
CREDIT = ("shape", "sums", "values", "extremes")  # what partial credit is given for
ASK = """# @title Run this cell to answer: {}
from attention.widgets import Question

Question("{}")"""
HIDDEN = {"hide-input", "hide-cell", "remove-input"}


# code


def setup_cell(version: str, site: str, trains: bool = False) -> str:
    """The source of a notebook's first code cell."""
    source = SETUP.read_text("utf-8").rstrip()
    for name, value in (("version", version), ("site", site), ("trains", trains and "yes" or "")):
        source = source.replace(f"{{{name}}}", value)
    return source


# pages


class Page:
    """One chapter on its way from doctree to cells, its exercises noted in passing."""

    def __init__(self, builder: "NotebookBuilder", docname: str, doctree: nodes.document) -> None:
        self.builder, self.docname, self.doctree = builder, docname, doctree
        self.name = posixpath.basename(docname)
        executed = Path(builder.env.mystnb_config.output_folder) / f"{docname}.ipynb"
        self.executed = nbformat.read(executed, as_version=4).cells
        self.write = Markdown(self.link, self.number, builder.anchors)
        self.cells: list[nbformat.NotebookNode] = []
        self.exercises: dict[str, dict[str, Any]] = {}
        self.level = 0

    # what the doctree leaves to the builder

    def number(self, kind: str, ids: list[str]) -> str:
        known = self.builder.env.toc_fignumbers.get(self.docname, {}).get(kind, {})
        return next((".".join(map(str, known[i])) for i in ids if i in known), "")

    def link(self, node: nodes.Element) -> str:
        site = self.builder.config.attention_site
        if isinstance(node, nodes.image):
            if node["uri"].startswith(("http:", "https:")):
                return node["uri"]
            return f"{site}/_images/{posixpath.basename(node['uri'])}" if site else ""
        if node.get("refid"):
            return "#" + node["refid"]
        return self.builder.address(node.get("refuri", ""))

    # cells

    def markdown(self, text: str) -> None:
        if text.strip():
            self.cells.append(new_markdown_cell(text.strip()))

    def code(self, source: str, hidden: bool = False, tags: tuple[str, ...] = ()) -> None:
        metadata: dict[str, Any] = {}
        if hidden:
            metadata |= {"cellView": "form", "jupyter": {"source_hidden": True}}
        if tags:
            metadata["tags"] = list(tags)
        self.cells.append(new_code_cell(source, metadata=metadata))

    def emit(self, children: list[nodes.Node]) -> None:
        """Append the cells of some block-level nodes."""
        prose: list[nodes.Node] = []

        def flush() -> None:
            self.markdown(self.write.blocks(prose))
            prose.clear()

        for child in children:
            if isinstance(child, nodes.section):
                flush()
                self.section(child)
            elif is_cell(child):
                flush()
                self.cell(child)
            elif isinstance(child, exercise_node | exercise_enumerable_node):
                flush()
                self.exercise(child)
            elif isinstance(child, solution_node):
                flush()
                self.solution(child)
            elif isinstance(child, question) and child["asked"]["type"] != "open":
                flush()
                self.question(child)
            elif "toctree-wrapper" not in getattr(child, "attributes", {}).get("classes", ()):
                prose.append(child)
        flush()

    def section(self, node: nodes.section) -> None:
        self.level += 1
        title, *rest = node.children
        numbers = self.builder.env.toc_secnumbers.get(self.docname, {})
        keys = ["", *(f"#{i}" for i in node["ids"])] if self.level == 1 else [
            f"#{i}" for i in node["ids"]
        ]  # fmt: skip
        number = next((".".join(map(str, numbers[k])) for k in keys if numbers.get(k)), "")
        heading = f"{'#' * self.level} {number + ' ' if number else ''}{self.write.inline(title)}"
        anchor = self.write.anchor(node)
        heading = f"{anchor}\n\n{heading}" if anchor else heading
        if self.level == 1:
            self.markdown(heading + "\n\n" + self.builder.welcome(self.docname))
            self.code(self.builder.setup(self.sources()), hidden=True)
            self.emit(rest)
        else:
            start = len(self.cells)
            self.emit(rest)
            if len(self.cells) > start and self.cells[start].cell_type == "markdown":
                self.cells[start].source = heading + "\n\n" + self.cells[start].source
            else:
                self.cells.insert(start, new_markdown_cell(heading))
        self.level -= 1

    def sources(self, setup: bool = False) -> list[str]:
        """The code of the page's cells, without those of the solutions.

        With `setup` only what all its exercises need: the first cell, and those tagged setup.
        """
        cells = [
            self.executed[n["cell_index"]]
            for n in self.doctree.findall(nodes.container)
            if is_cell(n) and not isinstance(n.parent.parent, solution_node)
        ]
        return [
            cell.source
            for k, cell in enumerate(cells)
            if not setup or k == 0 or "setup" in cell.metadata.get("tags", ())
        ]

    def cell(self, node: nodes.Element) -> None:
        executed = self.executed[node["cell_index"]]
        tags = set(executed.metadata.get("tags", ()))
        keep = ("raises-exception",) if "raises-exception" in tags else ()
        self.code(executed.source, hidden=bool(tags & HIDDEN), tags=keep)
        if still := node.get("still"):
            picture = base64.b64encode((Path(self.builder.srcdir) / still["uri"]).read_bytes())
            self.cells[-1].outputs = [
                new_output(
                    "display_data",
                    data={"image/png": picture.decode(), "text/plain": still["words"]},
                    metadata={"image/png": {"alt": still["words"]}},
                )
            ]
        figures = [n for n in node.findall(nodes.figure)]
        alt = executed.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        for figure in figures:
            self.markdown(self.write.anchor(figure) + self.write.caption(figure, alt))

    def question(self, node: question) -> None:
        """Its text, a cell that takes an answer, and the answer folded."""
        self.markdown(self.write.anchor(node) + "\n\n" + asking(self.write, node, options=False))
        sealed = Asker(self.builder, self.docname).sealed(node)
        self.code(ASK.format(node["asked"]["name"], sealed), hidden=True)
        options = [part for part in node.children if part.get("part") == "options"]
        if options:
            shown = self.write.blocks(list(options[0].children))
            data = {"text/markdown": shown, "text/plain": shown}
            self.cells[-1].outputs = [new_output("display_data", data=data)]
        for figure in [part[0] for part in node.children if part.get("part") == "figure"]:
            svg = Path(self.builder.srcdir, figure["uri"].lstrip("/")).read_text("utf-8")
            data = {"image/svg+xml": svg, "text/plain": figure["alt"]}
            self.cells[-1].outputs = [new_output("display_data", data=data)]
        self.markdown(telling(self.write, node))

    # exercises

    def exercise(self, node: nodes.Element) -> None:
        title, *rest = node.children
        words = list(title.children)
        bare = nodes.title("", "", *(w.deepcopy() for w in words[1:-1]))  # without the brackets
        known = facts(node.get("classes", []))
        number = self.number("exercise", node.get("ids", []))
        text = self.write.inline(bare).strip()
        star, minutes = known.get("star"), known.get("minutes")
        about = " · ".join(
            filter(None, [
                "★" * star + "☆" * (3 - star) if star else "",
                f"about {minutes} minutes" if minutes else "",
            ])
        )  # fmt: skip
        body = [c for c in rest if "exercise-facts" not in c.get("classes", ())]
        prose = self.write.blocks(body)
        head = f"Exercise {number}: {text}".replace(" : ", ": ") if text else f"Exercise {number}"
        self.exercises[node["label"]] = {
            "id": node["label"], "number": number, "title": bare.astext().strip(), "head": head,
            "about": about, "stars": star or 1, "minutes": minutes or 0,
            "points": known.get("points", star or 1), "prose": prose,
            "credit": {k: known[k] for k in CREDIT if k in known},
        }  # fmt: skip
        anchor = self.write.anchor(node)
        level = "#" * min(self.level + 1, 6)
        parts = [anchor, f"{level} {head}", about, prose]
        self.markdown("\n\n".join(part for part in parts if part))

    def own_numbers(self) -> None:
        """Note the cells that draw an exercise's numbers, if they fit its text."""
        for cell in self.executed:
            if label := cell.metadata.get("own"):
                try:
                    exercise = self.exercises[label]
                    own = own_numbers.read(cell.source)
                    own_numbers.written(own, exercise["prose"], own_numbers.draw(own, ""))
                except (KeyError, ValueError) as error:
                    raise ExtensionError(
                        f"{self.docname}: own numbers of {label}: {error}"
                    ) from None
                exercise["own"] = cell.source

    def solution(self, node: nodes.Element) -> None:
        known = self.exercises.get(node.get("target_label", ""))
        if known is None:
            raise ExtensionError(
                f"{self.docname}: the solution {node.get('label')} must follow its exercise"
            )
        _, *rest = node.children
        body = [c for n in rest for c in (n.children if isinstance(n, nodes.section) else [n])]
        code = [self.executed[n["cell_index"]].source for n in body if is_cell(n)]
        answer = next((k for k, source in enumerate(code) if BEGIN in source), None)
        parts, check = [], ""
        if answer is not None:
            if len(code) < answer + 2:
                raise ExtensionError(f"{self.docname}: {known['id']} has no cell that checks it")
            check = code[answer + 1]
            known |= {"answer": code[answer], "check": check}
        for n in body:
            if not is_cell(n):
                parts.append(self.write.block(n))
                continue
            source = self.executed[n["cell_index"]].source
            if source != check:
                parts.append(fenced(unmarked(source), "python"))
        text = "\n\n".join(part for part in parts if part)
        prose = [self.write.block(n) for n in body if not is_cell(n)]
        known["solution"] = text
        known["remarks"] = "\n\n".join(part for part in prose if part)
        if answer is not None:
            self.code(stub(code[answer], known["title"]))
            self.code(gentle(check))
        if self.builder.config.attention_answers:
            anchor = self.write.anchor(node)
            self.markdown((anchor + "\n\n" if anchor else "") + details("Solution", text))


def is_cell(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


class DropOutputs(SphinxPostTransform):
    """Drop all outputs before MyST-NB chooses a format for each; keep the explorers' pictures."""

    default_priority = 3
    builders = ("ipynb",)

    def run(self, **kwargs: Any) -> None:
        for cell in filter(is_cell, list(self.document.findall(nodes.container))):
            for bundle in list(cell.findall(nodes.container)):
                if bundle.get("nb_element") != "mime_bundle":
                    continue
                kinds = {c["mime_type"]: c for c in bundle.children}
                picture = kinds.get("image/png")
                if WIDGET_VIEW_MIMETYPE in kinds and picture and "text/plain" in kinds:
                    uri = next(picture.findall(nodes.image))["uri"]
                    words = " ".join(kinds["text/plain"].astext().split())
                    cell["still"] = {"uri": uri.lstrip("/"), "words": words}
                bundle.parent.remove(bundle)


class NotebookBuilder(Builder):
    name = format = "ipynb"
    epilog = "The notebooks are in %(outdir)s."
    allow_parallel = False

    def get_outdated_docs(self) -> list[str]:
        return sorted(d for d in self.env.found_docs if self.has_code(d))

    def has_code(self, docname: str) -> bool:
        return is_chapter(self.env, docname)

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        return f"doc:{docname}"

    def get_relative_uri(self, from_: str, to: str, typ: str | None = None) -> str:
        return "" if from_ == to else self.get_target_uri(to, typ)

    def address(self, uri: str) -> str:
        """Where a reference leads: to the site, else the notebook next to this one, else nowhere.

        The site comes first: Colab resolves no address that is relative to a notebook.
        """
        if not uri.startswith("doc:"):
            return uri
        docname, _, anchor = uri[4:].partition("#")
        anchor = anchor and "#" + anchor
        if self.config.attention_site:
            return f"{self.config.attention_site}/{docname}.html{anchor}"
        return f"{posixpath.basename(docname)}.ipynb{anchor}" if self.has_code(docname) else ""

    def welcome(self, docname: str) -> str:
        site, title = self.config.attention_site, self.config.html_title
        chapter = f"[{title}]({site}/{docname}.html)" if site else f"*{title}*"
        return (
            f"A chapter of {chapter}, as a notebook. Run the cells from top to bottom; the first "
            "one prepares what the others need."
        )

    def setup(self, sources: list[str]) -> str:
        trains = any(re.search(r"\btrain\w*\(", s) for s in sources)
        return setup_cell(version(), self.config.attention_site, trains)

    def write(self, build_docnames: Any, updated_docnames: Any, method: str = "update") -> None:
        docnames = self.get_outdated_docs()
        doctrees = {}
        for docname in docnames:
            self.current_docname = docname
            doctrees[docname] = self.env.get_and_resolve_doctree(docname, self)
        self.anchors = {
            (node.get("refid") or node.get("refuri", "").partition("#")[2])
            for tree in doctrees.values()
            for node in tree.findall(nodes.Element)
            if not isinstance(node, nodes.target)
            if node.get("refid") or node.get("refuri", "").startswith(("doc:", "#"))
        }
        out, chapters = Path(self.outdir), {}
        for old in out.rglob("*.ipynb"):
            old.unlink()
        for docname, tree in doctrees.items():
            page = Page(self, docname, tree)
            page.emit(tree.children)
            page.own_numbers()
            made = notebook(page.cells, page.name)
            path = out / f"{docname}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(made, path)
            chapters[page.name] = {
                "title": tree.next_node(nodes.title).astext(),
                "page": docname,
                "setup": made.cells[1].source,
                "code": page.sources(setup=True),
                "exercises": list(page.exercises.values()),
            }
        about = {
            "book": self.config.html_title,
            "version": version(),
            "site": self.config.attention_site,
        }
        text = json.dumps(about | {"chapters": chapters}, indent=1)
        (out / "exercises.json").write_text(text, encoding="utf-8")
        text = json.dumps(export(self, doctrees), indent=1, ensure_ascii=False)
        (out / "questions.json").write_text(text, encoding="utf-8")

    def finish(self) -> None:
        pass


def version() -> str:
    """The package's version: that of the wheel beside the notebooks."""
    import importlib.metadata

    return importlib.metadata.version("attention-book")


# buttons


def colab_address(repository: str, name: str) -> str:
    """Where Colab opens a published notebook, "" where it cannot: it reads GitHub only."""
    parts = urlsplit(repository)
    path = parts.path.strip("/").removesuffix(".git")
    if parts.netloc not in ("github.com", "www.github.com") or path.count("/") != 1:
        return ""
    return f"https://colab.research.google.com/github/{path}/blob/{BRANCH}/notebooks/{name}.ipynb"


def is_chapter(env, docname: str) -> bool:
    """Whether a page is a notebook; the landing page, which only shows an explorer, is none."""
    return docname != env.config.root_doc and "kernelspec" in env.metadata.get(docname, {})


def _add_buttons(app, pagename, templatename, context, doctree):
    if not is_chapter(app.env, pagename):
        return
    name = posixpath.basename(pagename)
    up = "../" * pagename.count("/")
    buttons = []
    colab = colab_address(app.config.attention_repository, name)
    if colab:
        buttons.append(
            {"type": "link", "url": colab, "text": "Open in Colab", "label": "colab-button",
             "icon": "fas fa-rocket", "tooltip": "Run this chapter in Colab"}
        )  # fmt: skip
    buttons.append(
        {"type": "link", "url": f"{up}notebooks/{name}.ipynb", "text": "Download notebook",
         "label": "download-notebook-button", "icon": "fas fa-download",
         "tooltip": "This chapter as a notebook, to run on your own machine"}
    )  # fmt: skip
    context["header_buttons"] = buttons + context.get("header_buttons", [])


def setup(app):
    app.add_builder(NotebookBuilder)
    app.add_post_transform(DropOutputs)
    app.connect("html-page-context", _add_buttons, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

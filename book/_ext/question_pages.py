"""What a page with questions needs beside its own text: scripts, styles, and its cards.

A card is the question as its page shows it, written once more into a script of its own, since a
page that is read from a folder can fetch nothing else. The glossary's terms are cards too.
"""

import json
import re
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from questions import question
from sphinx import addnodes

from attention.widgets import _base

SCRIPTS = Path(__file__).with_name("question_scripts")
FOLDER = "questions"  # under _static; the theme would load what lies at its top on every page
TERM = (
    '<div class="question admonition term" data-question="{asked}">'
    '<p class="admonition-title">Say it first</p>\n'
    '<div class="question-text"><p>What is meant by <strong>{term}</strong>?</p></div>\n'
    '<details class="question-answer"><summary>Answer</summary>\n{told}</details></div>\n'
)


def glossary_items(document: nodes.document) -> list[tuple[nodes.Element, nodes.Element]]:
    """The terms that a page's glossary explains, each with its explanation."""
    return [
        (next(iter(item.findall(nodes.term))), next(iter(item.findall(nodes.definition))))
        for glossary in document.findall(addnodes.glossary)
        for item in glossary.findall(nodes.definition_list_item)
    ]


def term_cards(body: str, names: list[str]) -> dict[str, str]:
    """A card for each term, from the page's HTML."""
    soup, cards = BeautifulSoup(body, "html.parser"), {}
    for name in names:
        term = soup.find("dt", id=name)
        told = term.find_next_sibling("dd").decode_contents()
        for link in term.select("a.headerlink"):
            link.decompose()
        asked = json.dumps({"name": name, "type": "open"}).replace('"', "&quot;")
        cards[name] = TERM.format(asked=asked, term=term.decode_contents(), told=told)
    return cards


def _cards_file(app, docname: str) -> Path:
    return Path(app.outdir, "_static", FOLDER, f"cards-{docname.replace('/', '-')}.js")


def _page(app, pagename, templatename, context, doctree):
    """Name the page's scripts, and write its cards."""
    if doctree is None or app.builder.name != "html":
        return
    body = context.get("body", "")
    review = 'class="review"' in body
    asks = next(doctree.findall(question), None) is not None
    chapter = asks or review or "kernelspec" in app.env.metadata.get(pagename, {})
    scripts = ["questions", "memory"] * chapter + ["review"] * review
    for name in scripts:
        app.add_js_file(f"{FOLDER}/{name}.js", loading_method="defer")
    if scripts:
        app.add_css_file(f"{FOLDER}/questions.css")
    cards = vars(app.builder).get("question_cards", {}).pop(pagename, {})
    cards |= term_cards(body, app.env.question_terms.get(pagename, []))
    path = _cards_file(app, pagename)
    if not cards:
        path.unlink(missing_ok=True)
        return
    here = pagename.rsplit("/", 1)[-1] + ".html#"
    cards = {
        name: re.sub(r'\bhref="#', f'href="{here}', card).replace(f' id="{name}"', "", 1)
        for name, card in cards.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    title = BeautifulSoup(context["title"], "html.parser").get_text()  # its number is in a span
    made = json.dumps({"title": title, "cards": cards}, ensure_ascii=False)
    text = f"(window.attentionCards ??= {{}})[{json.dumps(pagename)}] = {made};\n"
    path.write_text(text, "utf-8")


def _note_terms(app, document):
    known = vars(app.env).setdefault("question_terms", {})
    known.pop(app.env.docname, None)
    if found := [term["ids"][0] for term, _ in glossary_items(document)]:
        known[app.env.docname] = found


def _merge(app, env, docnames, other):
    vars(env).setdefault("question_terms", {}).update(vars(other).get("question_terms", {}))


def _forget(app, env, docname):
    vars(env).setdefault("question_terms", {}).pop(docname, None)


def _file(path: Path) -> str:
    """A script or a style sheet of the page, with what it shares with the notebooks' questions."""
    text = path.read_text("utf-8")
    if path.name == "questions.js":
        return f"(() => {{\n{_base.functions('questions')}{text}}})();\n"
    if path.name == "questions.css":
        return Path(_base.__file__).with_name("question.css").read_text("utf-8") + text
    return text


def _write_scripts(app, exception):
    if exception or app.builder.name != "html":
        return
    folder = Path(app.outdir) / "_static" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for path in SCRIPTS.iterdir():
        (folder / path.name).write_text(_file(path), "utf-8")
    index = f"window.attentionTerms = {json.dumps(vars(app.env).get('question_terms', {}))};\n"
    (folder / "cards-index.js").write_text(index, "utf-8")


def setup(app):
    app.connect("doctree-read", _note_terms)
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    app.connect("html-page-context", _page, priority=910)  # after the explorers' scripts
    app.connect("build-finished", _write_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": False}

"""What a page with questions needs beside its own text: scripts, styles, and its cards.

The scripts are of the book's own site, and a page without questions loads none of them.
"""

from pathlib import Path

from questions import question

SCRIPTS = Path(__file__).with_name("question_scripts")
FOLDER = "questions"  # under _static; the theme would load what lies at its top on every page


def _page_scripts(app, pagename, templatename, context, doctree):
    if doctree is not None and next(doctree.findall(question), None) is not None:
        app.add_js_file(f"{FOLDER}/questions.js", loading_method="defer")
        app.add_css_file(f"{FOLDER}/questions.css")


def _write_scripts(app, exception):
    if exception or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for path in SCRIPTS.iterdir():
        (folder / path.name).write_text(path.read_text("utf-8"), "utf-8")


def setup(app):
    app.connect("html-page-context", _page_scripts, priority=910)  # after the explorers' scripts
    app.connect("build-finished", _write_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": False}

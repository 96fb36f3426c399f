"""What search engines, readers' programs and messengers ask of a page, made from the pages.

Each page says when its source last changed, and what it is as structured data (schema.org). Where
the site's address is known, a sitemap lists the pages, and a chapter's card, the picture that a
messenger shows beside a link, is its map of the model.
"""

import json
import re
import subprocess
from html import escape, unescape
from pathlib import Path

from matplotlib import rc_context

from attention.figures.model_map import LIT, model_map

LICENCE = "https://creativecommons.org/licenses/by/4.0/"
DESCRIPTION = re.compile(r'<meta\b(?=[^>]*name="description")[^>]*content="([^"]*)"')


def last_changed(path: Path) -> str:
    """The day of the last commit that changed the file, as 2026-11-22; "" where none is known."""
    command = ["git", "log", "-1", "--format=%cs", "--", path.name]
    try:
        done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def about(config, docname: str, title: str, description: str, changed: str) -> dict:
    """The page as structured data: the start page is the book, any other page a part of it."""
    book = {"@type": "Book", "name": config.html_title, "inLanguage": config.language or "en"}
    if site := config.attention_site:
        book["url"] = f"{site}/"
    if docname == config.root_doc:
        author = {"@type": "Organization", "name": config.author}
        page = book | {"author": author, "license": LICENCE, "isAccessibleForFree": True}
        page["learningResourceType"] = "textbook"
    else:
        page = {"@type": "Chapter", "name": title, "isPartOf": book, "license": LICENCE}
        if site:
            page["url"] = f"{site}/{docname}.html"
    more = {"description": description, "dateModified": changed}
    return {"@context": "https://schema.org"} | page | {k: v for k, v in more.items() if v}


def sitemap(site: str, pages: dict[str, str]) -> str:
    """The sitemap of pages, by name, each with the day of its last change or ""."""
    lines = [
        f"<url><loc>{escape(f'{site}/{name}.html')}</loc>"
        + (f"<lastmod>{day}</lastmod>" if day else "")
        + "</url>"
        for name, day in sorted(pages.items())
    ]
    head = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *lines, "</urlset>", ""])


def card(name: str, path: Path) -> None:
    """Draw a chapter's card, 1200 × 630 pixels: its map of the model on white."""
    figure = model_map(name)
    figure.set_size_inches(12, 6.3)
    for text in figure.findobj(lambda artist: hasattr(artist, "set_fontsize")):
        text.set_fontsize(17)  # type: ignore[attr-defined]
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"savefig.bbox": "standard"}):  # the book's style cuts margins off
        figure.savefig(path, dpi=100, facecolor="white", metadata={})


def _head(app, pagename, templatename, context, doctree):
    if doctree is None or context.get("meta") is None:
        return
    changed = last_changed(Path(app.env.doc2path(pagename)))
    if changed:
        context["last_updated"] = changed
    found = DESCRIPTION.search(context["metatags"])
    description = unescape(found.group(1)) if found else ""
    if description:
        context["meta"]["og:description"] = description
    chapter = pagename.rpartition("/")[2]
    if chapter in LIT and app.config.attention_site:
        site = app.config.attention_site
        context["meta"]["og:image"] = f"{site}/_static/cards/{chapter}.png"
        context["meta"]["og:image:alt"] = "The map of the model, this chapter's part in colour."
    title = re.sub(r"<[^>]+>", "", context["title"])
    data = json.dumps(about(app.config, pagename, title, description, changed))
    data = data.replace("<", "\\u003c")
    context["metatags"] += f'<script type="application/ld+json">{data}</script>\n'


def _finish(app, exception):
    if exception or app.builder.name != "html" or not app.config.attention_site:
        return
    out = Path(app.outdir)
    pages = {name: last_changed(Path(app.env.doc2path(name))) for name in app.env.found_docs}
    text = sitemap(app.config.attention_site, pages)
    (out / "sitemap.xml").write_text(text, encoding="utf-8")
    for name in LIT:
        if any(page.endswith(f"/{name}") for page in pages):
            card(name, out / "_static" / "cards" / f"{name}.png")


def setup(app):
    app.connect("html-page-context", _head, priority=400)  # before opengraph makes its tags
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

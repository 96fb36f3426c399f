"""Put right what theme and docutils leave wrong for those who listen, use the keyboard, search."""

import re

REPLACED = [
    # roles that WAI-ARIA 1.2 deprecated; the list's own words say what it is
    (r' role="doc-biblioentry"', ""),
    (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
    # what scrolls must be reachable by keyboard
    (r'<div class="highlight"><pre>', '<div class="highlight"><pre tabindex="0">'),
    (r'<div class="pst-scrollable-table-container">',
     '<div class="pst-scrollable-table-container" tabindex="0">'),
    (r'<div class="output text_html"><table class="numbers">',
     '<div class="output text_html" tabindex="0"><table class="numbers">'),
    # a press on the title of a solution opens it, and leads nowhere
    (r'(<p class="admonition-title">Solution to)<a class="[^"]*" href="[^"]*">(.*?)</a></p>',
     r"\1\2</p>"),
]  # fmt: skip


def _repair(app, pagename, templatename, context, doctree):
    body = context.get("body")
    if body:
        for pattern, replacement in REPLACED:
            body = re.sub(pattern, replacement, body)
        context["body"] = body
    if context.get("title") == context.get("docstitle"):
        context["docstitle"] = ""  # the start page's title is the book's: once is enough
    if pagename == "search":
        app.add_js_file("search_excerpts.js", loading_method="defer")


def setup(app):
    app.connect("html-page-context", _repair, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

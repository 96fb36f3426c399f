"""Write the figures as files of their own, with caption and licence, and an index of them."""

import html
import re
from dataclasses import dataclass
from pathlib import Path

from bs4 import BeautifulSoup
from excerpts import cleaned, read
from pack import policy

from attention import plots

ROOT = Path(__file__).parents[1]
LICENCE = "https://creativecommons.org/licenses/by/4.0/"
NAMED = {
    "currentColor": "#000000",
    "var(--above)": plots.ABOVE,
    "var(--below)": plots.BELOW,
    "var(--ink)": plots.INK,
    "var(--ink-deep)": plots.INK_DEEP,
    "var(--figure-font)": "'DejaVu Sans', 'Bitstream Vera Sans', Verdana, sans-serif",
    "var(--serif)": "'STIX Two Text', STIXGeneral, 'Times New Roman', serif",
}
HEAD = re.compile(
    r'<svg class="figure-svg" role="img" aria-label="(?P<alt>[^"]*)" viewBox="(?P<box>[^"]*)"'
    r'[^>]* style="(?P<style>[^"]*)"'
)
SVG = """<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" \
viewBox="{box}" width="{width}pt" height="{height}pt" fill="#000000" style="{style}">
<title>{title}</title>
<desc>{said}</desc>
<metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" \
xmlns:cc="http://creativecommons.org/ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">\
<cc:Work rdf:about=""><dc:title>{title}</dc:title><dc:creator>{author}</dc:creator>\
<dc:source>{book}</dc:source><dc:description>{caption}</dc:description>\
<cc:license rdf:resource="{licence}"/></cc:Work></rdf:RDF></metadata>
{body}"""
PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Figures to take away</title>
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="description" content="Every figure of the book as SVG and PDF, with its licence.">
<link rel="icon" href="../_static/favicon.svg">
<link rel="stylesheet" href="{sheet}">
<style>
main {{ max-width: 76rem; margin: 0 auto; padding: 1rem; }}
.grid {{ display: grid; gap: 2rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); }}
.grid figure {{ margin: 0; display: flex; flex-direction: column; }}
.grid img {{ width: 100%; height: 13rem; object-fit: contain; }}
</style>
</head>
<body>
<main class="bd-article">
<h1>Figures to take away</h1>
<p>{count} figures of <a href="../book/index.html">{book}</a>, as SVG{more}. \
Use them as you like under <a href="{licence}">CC BY 4.0</a>: give credit to {author}, link to the \
licence, and say what you changed. Caption and licence stand in every file. \
The words in the SVG files are set in DejaVu Sans.{zip}</p>
{parts}
</main>
</body>
</html>
"""


@dataclass
class Figure:
    """A figure of a chapter: its file's name, and what stands with it."""

    name: str
    number: str
    caption: str  # HTML, as seen from the folder of the figures
    alt: str
    chapter: str
    svg: str

    @property
    def title(self) -> str:
        return f"{self.number}, {self.chapter}" if self.number else self.chapter

    @property
    def said(self) -> str:
        text = BeautifulSoup(self.caption, "html.parser").get_text()
        return re.sub(r"\s+", " ", text).strip()


def standalone(drawn: str, figure: Figure, about: dict[str, str]) -> str:
    """A drawing of a page as a file of its own: black on nothing, with caption and licence.

    ValueError if the page's style sheet is needed to draw it.
    """
    head = HEAD.match(drawn)
    if head is None:
        raise ValueError(f"{figure.name}: a figure begins otherwise: {drawn[:80]}")
    body, style = drawn[drawn.index(">") + 1 :], head["style"]
    for theirs, ours in NAMED.items():
        body, style = body.replace(theirs, ours), style.replace(theirs, ours)
    if left := re.search(r"var\([^)]*\)", style + body):
        raise ValueError(f"{figure.name}: the page's {left[0]} has no value here")
    width, height = head["box"].split()[2:]
    text = {k: html.escape(v, quote=False) for k, v in about.items()}
    return SVG.format(
        box=head["box"], width=width, height=height, style=style, body=body, licence=LICENCE,
        title=html.escape(figure.title, quote=False), caption=html.escape(figure.said, quote=False),
        said=html.escape(html.unescape(figure.alt), quote=False), **text,
    )  # fmt: skip


def figures(page: Path, about: dict[str, str]) -> list[Figure]:
    """The figures of one page of the site, in its order."""
    text = page.read_text("utf-8")
    if "<figure" not in text:
        return []
    soup, drawings = read(text)
    found = []
    for tag in soup.select("article figure[id]"):
        drawing, caption = tag.select_one("svg[data-drawn]"), tag.select_one(".caption-text")
        if drawing is None or caption is None:
            continue
        number = tag.select_one(".caption-number")
        figure = Figure(
            tag["id"].removeprefix("fig-"),
            number.get_text().strip() if number else "",
            cleaned(caption, f"../{page.parent.name}/{page.name}"),
            html.escape(drawing["aria-label"], quote=True),
            soup.h1.get_text().rstrip("#").strip(),
            "",
        )
        figure.svg = standalone(drawings[int(drawing["data-drawn"])], figure, about)
        found.append(figure)
    return found


def card(figure: Figure, files: list[str]) -> str:
    links = " · ".join(
        f'<a href="{figure.name}.{kind}" aria-label="{figure.title} as {kind.upper()}">'
        f"{kind.upper()}</a>"
        for kind in files
    )
    return (
        f'<figure id="{figure.name}"><img loading="lazy" src="{figure.name}.svg" '
        f'alt="{figure.alt}"><figcaption><p><strong>{figure.number}</strong> {figure.caption}</p>'
        f"<p>{links}</p></figcaption></figure>"
    )


def index(folder: Path, chosen: list[Figure], about: dict[str, str]) -> str:
    """The page that shows them, by chapter."""
    kinds = [k for k in ("svg", "pdf") if (folder / f"{chosen[0].name}.{k}").exists()]
    packed = folder / "figures.zip"
    size = f" ({packed.stat().st_size / 2**20:.0f} MB)" if packed.exists() else ""
    parts = []
    for chapter in dict.fromkeys(f.chapter for f in chosen):
        cards = "\n".join(card(f, kinds) for f in chosen if f.chapter == chapter)
        parts.append(f'<h2>{html.escape(chapter)}</h2>\n<div class="grid">\n{cards}\n</div>')
    sheet = next((folder.parent / "_static").glob("book.*.css"))
    return PAGE.format(
        policy=policy(""), sheet=f"../_static/{sheet.name}", count=len(chosen), licence=LICENCE,
        more=" and PDF" * ("pdf" in kinds), parts="\n".join(parts),
        zip=f' <a href="figures.zip">All of them in one zip{size}</a>.' * bool(size), **about,
    )  # fmt: skip


def about(site: Path) -> dict[str, str]:
    """Whom to credit."""
    config = (ROOT / "_config.yml").read_text("utf-8")
    found = {k: re.search(rf'^{k}: "?([^"\n]*)', config, re.M) for k in ("title", "author")}
    return {"book": found["title"][1], "author": found["author"][1]}


def make(site: Path) -> list[Figure]:
    """Write every figure of the site's pages as SVG, and the index; return them."""
    known = about(site)
    pages = [figures(page, known) for page in (site / "book").glob("*.html")]
    chosen = sorted(sum(pages, []), key=order)
    if chosen:
        folder = site / "figures"
        folder.mkdir(exist_ok=True)
        for figure in chosen:
            (folder / f"{figure.name}.svg").write_text(figure.svg, "utf-8")
        (folder / "index.html").write_text(index(folder, chosen, known), "utf-8")
    return chosen


def order(figure: Figure) -> tuple[int, ...]:
    """Chapter and number; what has no number comes last."""
    numbers = re.findall(r"\d+", figure.number)
    return tuple(map(int, numbers)) if numbers else (10**6,)

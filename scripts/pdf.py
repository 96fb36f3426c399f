"""Print the built book as PDF through Chromium: the whole, or one file a chapter.

    python scripts/pdf.py                   # dist/attention.pdf from _site
    python scripts/pdf.py masking blocks    # dist/attention-masking.pdf and so on
    python scripts/pdf.py each              # one for every page of the book

A document is printed twice: the page numbers in its table of contents are those that its first
printing has.
"""

import argparse
import sys
from html import escape
from pathlib import Path

import browser
import cover
import printed
import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, sync_playwright
from pypdf import PdfReader
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_site"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SHEET, MARGIN = (round(mm / 25.4 * 96) for mm in (210, 25))  # in CSS pixels: pdf.css
WIDE = """(right) => [...document.querySelectorAll(".bd-article *")].filter((tag) => {
  if (tag.matches("svg *, math *, .visually-hidden")) return false;
  const box = tag.getBoundingClientRect();
  return box.width && (box.right > right + 1 || tag.scrollWidth > tag.clientWidth + 1
    && getComputedStyle(tag).overflowX !== "visible");
}).map((tag) => `${tag.closest("[id]")?.id}: ${tag.outerHTML.slice(0, 90)}`)"""


def document(site: Path, names: list[str], config: dict, whole: bool) -> str:
    """The pages as one HTML document; the whole book has a cover and a table of contents."""
    pages = [printed.read(site / "book" / f"{name}.html") for name in names]
    printed.settle(pages, site / "book", address(site))
    answers = printed.solutions(pages)
    sheet = next((site / "_static").glob("book.*.css")).as_uri()
    style = Path(__file__).with_suffix(".css").read_text("utf-8").replace("BOOK", config["title"])
    heads = [head(page.name, f"{page.number}  {page.title}".strip()) for page in pages]
    heads.append(head("solutions", "Solutions"))
    parts = [*(str(page.body) for page in pages), wrap(answers)]
    if whole:
        front = f'<div id="cover">{cover.svg(config["title"], config["author"])}</div>'
        parts = [front, wrap(printed.contents(pages, answers)), *parts]
    title = config["title"] if whole else f"{pages[0].title} – {config['title']}"
    return (
        f'<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="{sheet}">'
        f"<style>{style}{''.join(heads)}</style><body>{''.join(parts)}</body></html>"
    )


def wrap(part: str) -> str:
    return f'<div class="bd-article">{part}</div>' if part else ""


def head(name: str, title: str) -> str:
    """The rules that put a page's title at the head of its sheets."""
    words = title.replace("\\", "\\\\").replace('"', '\\"')
    return (
        f'@page {name} {{ @top-right {{ content: "{words}"; padding-right: 25mm; '
        f'font: italic 8.5pt "Book Text"; color: #565d69; }} }} #{name} {{ page: {name}; }}'
    )


def address(site: Path) -> str:
    """The site's address as its start page names it, "" where it names none."""
    soup = BeautifulSoup((site / "book" / "index.html").read_text("utf-8"), "html.parser")
    link = soup.find("link", rel="canonical")
    return link["href"].removesuffix("/book/index.html") if link else ""


def numbers(pdf: Path) -> dict[str, int]:
    """The sheet, from 1, on which each named place of a PDF lies."""
    reader = PdfReader(pdf)
    places = reader.named_destinations
    return {
        name.lstrip("/"): reader.get_destination_page_number(place) + 1
        for name, place in places.items()
    }


def fill(html: str, pages: dict[str, int]) -> str:
    """The document with the page numbers that it asks for."""
    soup = BeautifulSoup(html, "html.parser")
    for place in soup.select("[data-target]"):
        place.string = str(pages[place["data-target"]])
    return str(soup)


def pdf(chrome: Browser, html: str, target: Path, step=lambda: None) -> list[str]:
    """Print the document to `target`; return what is wider than the paper, which is cut off."""
    source = target.with_suffix(".html")
    context = chrome.new_context(viewport={"width": SHEET, "height": 900}, color_scheme="light")
    page = context.new_page()
    page.set_default_timeout(0)
    page.emulate_media(media="print", color_scheme="light")
    try:
        for text in (lambda: html, lambda: fill(html, numbers(target))):
            source.write_text(text(), "utf-8")
            page.goto(source.as_uri(), wait_until="load")
            page.evaluate("document.fonts.ready.then(() => {})")
            wide = page.evaluate(WIDE, SHEET - MARGIN)
            page.pdf(path=target, prefer_css_page_size=True, print_background=True,
                     outline=True, tagged=True)  # fmt: skip
            step()
    finally:
        context.close()
        source.unlink(missing_ok=True)
    return wide


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "names", nargs="*", help='pages by name, such as masking, or "each": one PDF a page'
    )
    parser.add_argument("--site", type=Path, default=SITE)
    parser.add_argument("--into", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    every = printed.names(ROOT / "_toc.yml")
    alone = every if options.names == ["each"] else options.names
    for name in alone:
        if name not in every:
            print(f"names must be each, or among {', '.join(every)}; got {name}", file=sys.stderr)
            return 1
    program = browser.needed(options.site, "prints the book", "pdf")
    jobs = [([name], f"attention-{name}.pdf") for name in alone] or [(every, "attention.pdf")]
    options.into.mkdir(parents=True, exist_ok=True)
    wide = []
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=program, args=FLAGS)
        with tqdm(total=2 * len(jobs), desc="Printing", unit="printing") as bar:
            for names, file in jobs:
                html = document(options.site, names, config, whole=not alone)
                wide += pdf(chrome, html, options.into / file, lambda: bar.update())
    for line in wide:
        print(f"wider than the paper: {line}", file=sys.stderr)
    for _, file in jobs:
        count = len(PdfReader(options.into / file).pages)
        print(f"{options.into / file}: {count} pages")
    return 1 if wide else 0


if __name__ == "__main__":
    sys.exit(main())

"""Hand out the book's figures: _site/figures, as SVG and PDF, and a zip of all of them.

    python scripts/takeaway.py

The build writes the SVGs (figure_files.py). Chromium prints the PDFs.
"""

import re
import sys
import zipfile
from pathlib import Path

import browser
import matplotlib
from figure_files import LICENCE, ROOT, Figure, about, index, make
from playwright.sync_api import Browser, sync_playwright
from pypdf import PdfReader, PdfWriter


def pdfs(chrome: Browser, chosen: list[Figure], folder: Path, known: dict[str, str]) -> None:
    """Print all figures at once, each on a sheet of its size, and take the sheets apart."""
    files = Path(matplotlib.get_data_path(), "fonts", "ttf")
    own = ROOT / "book" / "_static" / "fonts"
    faces = "".join(
        f"@font-face {{ font-family: '{name}'; src: url({file.as_uri()}); {more} }}"
        for name, file, more in [
            ("Book Sans", own / "sans.woff2", "font-weight: 400 600; size-adjust: 112%"),
            ("STIX Two Text", own / "text.woff2", "font-weight: 400 700"),
            (
                "STIX Two Text",
                own / "text-italic.woff2",
                "font-weight: 400 700; font-style: italic",
            ),
            ("DejaVu Sans", files / "DejaVuSans.ttf", ""),
            ("DejaVu Sans", files / "DejaVuSans-Bold.ttf", "font-weight: bold"),
        ]
    )
    sheets, images = [], []
    for k, figure in enumerate(chosen):
        width, height = re.search(r'width="([^"]*pt)" height="([^"]*pt)"', figure.svg).groups()
        sheets.append(f"@page f{k} {{ size: {width} {height}; margin: 0; }} #f{k} {{ page: f{k} }}")
        drawing = figure.svg[figure.svg.index("<svg") :]
        drawing = drawing.replace("'DejaVu Sans',", "'Book Sans', 'DejaVu Sans',")  # as in the book
        drawing = re.sub(r'(id="|"#|url\(#)', rf"\1f{k}-", drawing)  # names are a file's own
        images.append(f'<div id="f{k}">{drawing}</div>')
    source, target = folder / "all.html", folder / "all.pdf"
    style = f"{faces}{''.join(sheets)} body {{ margin: 0 }} svg {{ display: block }}"
    body = "".join(images)
    source.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{body}", "utf-8")
    try:
        page = chrome.new_page()
        page.goto(source.as_uri())
        page.evaluate("document.fonts.ready.then(() => {})")
        page.pdf(path=target, prefer_css_page_size=True, print_background=True)
        page.close()
        printed = PdfReader(target)
        if len(printed.pages) != len(chosen):
            raise RuntimeError(f"{len(chosen)} figures were {len(printed.pages)} sheets")
        for figure, sheet in zip(chosen, printed.pages, strict=True):
            single = PdfWriter()
            single.add_page(sheet)
            single.add_metadata({
                "/Title": figure.title, "/Author": known["author"], "/Subject": figure.said,
                "/Copyright": f"{known['author']}, {LICENCE}", "/Keywords": "CC BY 4.0",
            })  # fmt: skip
            single.compress_identical_objects()
            single.write(folder / f"{figure.name}.pdf")
    finally:
        source.unlink(missing_ok=True)
        target.unlink(missing_ok=True)


def main() -> int:
    site = ROOT / "_site"
    program = browser.needed(site, "prints the figures", "figures")
    chosen, known, folder = make(site), about(site), site / "figures"
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        pdfs(chrome, chosen, folder, known)
        chrome.close()
    with zipfile.ZipFile(folder / "figures.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(ROOT / "LICENSE-text.md", "LICENSE-text.md")
        captions = "\n".join(f"{f.name}\t{f.title}\t{f.said}" for f in chosen)
        packed.writestr("captions.tsv", f"file\tfigure\tcaption\n{captions}\n")
        for figure in chosen:
            for kind in ("svg", "pdf"):
                packed.write(folder / f"{figure.name}.{kind}", f"{figure.name}.{kind}")
    (folder / "index.html").write_text(index(folder, chosen, known), "utf-8")
    print(f"{len(chosen)} figures are in _site/figures: open index.html there")
    return 0


if __name__ == "__main__":
    sys.exit(main())

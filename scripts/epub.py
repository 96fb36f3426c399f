"""Write the built book as an EPUB 3 for reading devices: dist/attention.epub from _site.

Formulas stay MathML and figures SVG; explorers are their still pictures; nothing in it is a script.
It is made of the same documents as the PDF (scripts/printed.py), a file a page.
"""

import argparse
import re
import subprocess
import sys
import uuid
import zipfile
from base64 import b64encode
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import browser
import cover
import printed
import yaml
from bs4 import BeautifulSoup, Tag
from pdf import FLAGS, SITE, address
from playwright.sync_api import Browser, sync_playwright
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
FONTS = ROOT / "book" / "_static" / "fonts"
SVG, MATHS = "http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"
# names in SVG that XML wants as they are written there, and the reader of HTML makes small
CAPITALS = ["viewBox", "clipPath", "clipPathUnits", "preserveAspectRatio", "gradientUnits",
            "linearGradient", "markerWidth", "markerHeight", "markerUnits", "refX", "refY",
            "patternUnits", "textLength", "startOffset", "textPath"]  # fmt: skip
CAPITAL = {name.lower(): name for name in CAPITALS}
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" \
xml:lang="en">
<head><meta charset="utf-8"/><title>{title}</title><link rel="stylesheet" href="book.css"/></head>
<body>{body}</body>
</html>
"""
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book/content.opf" \
media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""
KINDS = {".xhtml": "application/xhtml+xml", ".css": "text/css", ".png": "image/png",
         ".woff2": "font/woff2", ".svg": "image/svg+xml"}  # fmt: skip
ACCESS = [
    *(("accessMode", mode) for mode in ("textual", "visual")),
    ("accessModeSufficient", "textual"),
    *(("accessibilityFeature", what) for what in (
        "MathML", "alternativeText", "tableOfContents", "structuralNavigation",
        "displayTransformability")),
    ("accessibilityHazard", "none"),
    ("accessibilitySummary", "Figures have alternative texts; formulas are MathML; the explorers "
     "are pictures, with what they show said in words."),
]  # fmt: skip


def as_xml(body: Tag) -> str:
    """A part of an HTML page as XHTML: names as SVG writes them, name spaces, no empty titles."""
    for tag in body.find_all(True):
        if tag.name == "svg":
            tag["xmlns"] = SVG
        elif tag.name == "math":
            tag["xmlns"] = MATHS
        if tag.find_parent("svg") or tag.name == "svg":
            tag.name = CAPITAL.get(tag.name, tag.name)
            for key in [key for key in tag.attrs if key in CAPITAL]:
                tag[CAPITAL[key]] = tag.attrs.pop(key)
    return body.decode(formatter="minimal")


def localise(parts: dict[str, Tag]) -> None:
    """Let links name the file in which their place now is."""
    where = {tag["id"]: name for name, body in parts.items()
             for tag in [body, *body.select("[id]")] if "id" in tag.attrs}  # fmt: skip
    for name, body in parts.items():
        for link in body.select("a[href^='#']"):
            place = link["href"][1:]
            if place in where:
                link["href"] = (
                    "" if where[place] == name else f"{where[place]}.xhtml"
                ) + f"#{place}"
            else:
                link.unwrap()


def pictures(parts: dict[str, Tag]) -> dict[str, bytes]:
    """The pictures that the parts show, each under the name by which they now ask for it."""
    found = {}
    for body in parts.values():
        for picture in body.select("img"):
            path = Path(unquote(urlsplit(picture["src"]).path))
            name = f"images/{path.name}"
            found[name] = path.read_bytes()
            picture["src"] = name
    return found


def navigation(pages: list[printed.Page], parts: dict[str, Tag]) -> str:
    """The table of contents that reading devices show: pages and their sections."""
    lines = []
    for page in pages:
        sections = [
            f'<li><a href="{page.name}.xhtml#{h.find_parent("section")["id"]}">'
            f"{escape(h.get_text().strip())}</a></li>"
            for h in parts[page.name].select("section > section > h2")
        ]
        inner = f"<ol>{''.join(sections)}</ol>" if sections and page.number else ""
        title = escape(f"{page.number} {page.title}".strip())
        lines.append(f'<li><a href="{page.name}.xhtml">{title}</a>{inner}</li>')
    if "solutions" in parts:
        lines.append('<li><a href="solutions.xhtml">Solutions</a></li>')
    first = f"{pages[0].name}.xhtml"
    return (
        f'<nav epub:type="toc"><h1>Contents</h1><ol>{"".join(lines)}</ol></nav>'
        f'<nav epub:type="landmarks" hidden="hidden"><h2>Places</h2><ol>'
        f'<li><a epub:type="cover" href="cover.xhtml">Cover</a></li>'
        f'<li><a epub:type="toc" href="nav.xhtml">Contents</a></li>'
        f'<li><a epub:type="bodymatter" href="{first}">Begin</a></li></ol></nav>'
    )


def changed() -> str:
    """When the sources last changed, as an EPUB says it: the same sources give the same file."""
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True,
                          text=True)  # fmt: skip
    seconds = int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 0
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def package(config: dict, files: dict[str, bytes], spine: list[str], site: str) -> str:
    """What the book is and what it is made of (content.opf)."""
    items = []
    for name, data in files.items():
        suffix = Path(name).suffix
        has = {"svg": b"<svg", "mathml": b"<math"} if suffix == ".xhtml" else {}
        about = [what for what, mark in has.items() if mark in data]
        about += {"nav.xhtml": ["nav"], "cover.png": ["cover-image"]}.get(name, [])
        extra = f' properties="{" ".join(about)}"' if about else ""
        items.append(
            f'<item id="{ident(name)}" href="{name}" media-type="{KINDS[suffix]}"{extra}/>'
        )
    order = "".join(f'<itemref idref="{ident(name)}"/>' for name in spine)
    access = "".join(f'<meta property="schema:{key}">{value}</meta>' for key, value in ACCESS)
    number = uuid.uuid5(uuid.NAMESPACE_URL, site or config["title"])
    source = f"<dc:source>{escape(site)}</dc:source>" if site else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" '
        'xml:lang="en"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="id">urn:uuid:{number}</dc:identifier>'
        f"<dc:title>{escape(config['title'])}</dc:title><dc:language>en</dc:language>"
        f"<dc:creator>{escape(config['author'])}</dc:creator>{source}"
        "<dc:rights>Text and figures: CC BY 4.0. Code: MIT.</dc:rights>"
        f'<meta property="dcterms:modified">{changed()}</meta>{access}</metadata>'
        f"<manifest>{''.join(items)}</manifest><spine>{order}</spine></package>\n"
    )


def ident(name: str) -> str:
    return "f-" + re.sub(r"\W", "-", name)


def in_text(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()


def painted(chrome: Browser, config: dict) -> bytes:
    """The cover as a PNG, 1600 × 2400, painted by Chromium with the book's own letters."""
    faces = [("text", "normal"), ("text-italic", "italic")]
    style = "".join(
        f'@font-face {{ font-family: "Book Text"; font-weight: 400 700; font-style: {style}; '
        f"src: url(data:font/woff2;base64,{in_text(FONTS / f'{name}.woff2')}) }}"
        for name, style in faces
    )
    page = chrome.new_page(viewport={"width": cover.WIDTH, "height": cover.HEIGHT})
    drawn = cover.svg(config["title"], config["author"])
    page.set_content(f"<style>{style} body {{ margin: 0 }}</style>{drawn}")
    page.evaluate("document.fonts.ready.then(() => {})")
    picture = page.screenshot()
    page.close()
    return picture


def colours(site: Path) -> str:
    """The rules that colour code, as the site's style sheet has them for a light page."""
    text = next((site / "_static").glob("book.*.css")).read_text("utf-8")
    found = re.findall(r'html\[data-theme="?light"?\] (\.highlight \.\w+\{[^}]*\})', text)
    return "\n".join(found)


def contents(site: Path, names: list[str], config: dict, picture: bytes) -> dict[str, bytes]:
    """All files of the book by name, the package's description last."""
    pages = []
    for name in tqdm(names, desc="Reading", unit="page"):
        pages.append(printed.read(site / "book" / f"{name}.html"))
    where = address(site)
    printed.settle(pages, site / "book", where)
    answers = printed.solutions(pages)
    parts = {page.name: page.body for page in pages}
    if answers:
        parts["solutions"] = BeautifulSoup(answers, "html.parser").section
    for body in parts.values():
        for tag in body.select("details[open]:not(.sd-dropdown)"):
            del tag["open"]
        for tag in body.select(".on-page"):
            tag.decompose()
    localise(parts)
    files = pictures(parts)
    titles = {page.name: page.title for page in pages} | {"solutions": "Solutions"}
    name = config["title"]
    shown = f'<div class="cover"><img src="cover.png" alt="Cover: {escape(name)}"/></div>'
    texts = {"cover": (name, shown), "nav": ("Contents", navigation(pages, parts))}
    texts |= {part: (titles[part], as_xml(body)) for part, body in parts.items()}
    for part, (title, body) in texts.items():
        files[f"{part}.xhtml"] = PAGE.format(title=escape(title), body=body).encode()
    sheet = Path(__file__).with_suffix(".css").read_text("utf-8")
    files |= {"cover.png": picture, "book.css": (sheet + colours(site)).encode()}
    files |= {f"fonts/{font.name}": font.read_bytes() for font in sorted(FONTS.glob("*.woff2"))}
    spine = [f"{part}.xhtml" for part in texts]
    return files | {"content.opf": package(config, files, spine, where).encode()}


def write(files: dict[str, bytes], target: Path) -> None:
    """Zip the files; what says that this is an EPUB comes first and is not compressed."""
    whole = {"META-INF/container.xml": CONTAINER.encode()}
    whole |= {f"book/{name}": data for name, data in files.items()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip", zipfile.ZIP_STORED)
        for name, data in whole.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--site", type=Path, default=SITE)
    parser.add_argument("--into", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    program = browser.needed(options.site, "paints the cover", "epub")
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    options.into.mkdir(parents=True, exist_ok=True)
    target = options.into / "attention.epub"
    names = printed.names(ROOT / "_toc.yml")
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=program, args=FLAGS)
        picture = painted(chrome, config)
        chrome.close()
    write(contents(options.site, names, config, picture), target)
    print(f"{target}: {len(names)} pages, {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

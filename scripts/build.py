"""Build the book, its notebooks and the wheel they install; publish to _site, all or nothing.

Sphinx works in _build, where its caches live; only when every step has succeeded does the result
take the place of _site. Warnings are errors, and so is a failing cell.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import figure_files
import languages
import slides
from pack import pack

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import answers  # noqa: E402
import freshness  # noqa: E402

BUILD = ROOT / "_build"
SITE = ROOT / "_site"
STRICT = ["-W", "-n", "--keep-going"]  # warnings are errors; missing references too; show them all


def run(what: str, *command: object, **more: str) -> None:
    """Run one step, its output shown only if it fails, or all along when VERBOSE is set."""
    start = time.monotonic()
    print(f"{what} ... ", end="", flush=True)
    env = os.environ | {"PYTHONWARNINGS": "ignore", "PYDEVD_DISABLE_FILE_VALIDATION": "1"} | more
    # small matrices: one thread is faster than two, and gives the same digits on every machine size
    env.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryFile("w+") as log:
        shown = None if os.environ.get("VERBOSE") else log
        done = subprocess.run(
            [str(c) for c in command], cwd=ROOT, env=env, stdout=shown, stderr=subprocess.STDOUT
        )
        if done.returncode:
            print("failed")
            log.seek(0)
            print(log.read())
            sys.exit(f"{what}: failed, see above. _site was left as it was.")
    print(f"{time.monotonic() - start:.0f} s")


def jupyter_book(digest: str, builder: str, *options: str) -> None:
    run(
        {
            "html": "Executing chapters and writing pages",
            "ipynb": "Writing notebooks",
            "translated": "Writing translated pages",
            "messages": "Collecting sentences",
        }[builder],
        Path(sys.executable).with_name("jupyter-book"), "build", ".", *STRICT, *options,
        ATTENTION_DIGEST=digest,
    )  # fmt: skip


def wheel(folder: Path) -> None:
    """Put the package's wheel into `folder`: what a notebook installs where it finds none."""
    copy = ROOT / "build"  # setuptools leaves one here, and packs what an old one still holds
    for old in (folder, copy):
        shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        run(
            "Building the wheel",
            sys.executable, "-m", "pip", "wheel", source(Path(temporary)), "--no-deps",
            "--no-build-isolation", "--disable-pip-version-check", "-q", "-w", folder,
        )  # fmt: skip
    shutil.rmtree(copy, ignore_errors=True)


def source(folder: Path) -> Path:
    """What the wheel is made of: the repository, or in `folder` a copy without answers."""
    if answers.shown("ANSWERS"):
        return ROOT
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    run(
        "Recording the checks",
        sys.executable, ROOT / "scripts" / "without_answers.py", ROOT / "src" / "attention",
        folder / "src" / "attention", BUILD / "ipynb",
    )  # fmt: skip
    return folder


def own_domain(site: str) -> str:
    """The domain that GitHub Pages must be told to serve, "" where it needs no telling."""
    parts = urlsplit(site)
    host = parts.hostname or ""
    return "" if host.endswith("github.io") or parts.port or parts.path.strip("/") else host


def restore() -> None:
    """Put the site of before back if a build was stopped while it was being exchanged."""
    if not SITE.exists() and (BUILD / "site-before").exists():
        (BUILD / "site-before").rename(SITE)


def dress_door(site: Path) -> None:
    """Give the site's root, which only leads to the start page, that page's title and card."""
    root, start = site / "index.html", site / "book" / "index.html"
    if not start.exists() or "Refresh" not in root.read_text("utf-8"):
        return
    head = start.read_text("utf-8").split("</head>")[0]
    tags = re.findall(
        r'<title>.*?</title>|<meta (?:name="description"|(?:property|name)="(?:og|twitter):)[^>]*>',
        head,
    )
    tags += [
        '<link rel="icon" href="_static/favicon.svg">',
        '<meta http-equiv="Refresh" content="0; url=book/index.html">',
    ]
    body = '<p><a href="book/index.html">To the book</a></p>'
    page = ["<!doctype html>", '<html lang="en">', '<meta charset="utf-8">', *tags, body, ""]
    root.write_text("\n".join(page), encoding="utf-8")


def keep_reading(site: Path) -> None:
    """Give the site the worker that keeps what was read; another site's has another version."""
    whole = hashlib.sha256()
    worker = site / "sw.js"
    for path in sorted(path for path in site.rglob("*") if path.is_file() and path != worker):
        whole.update(path.relative_to(site).as_posix().encode() + b"\0" + path.read_bytes())
    text = Path(__file__).with_name("sw.js").read_text("utf-8")
    worker.write_text(text.replace("{version}", whole.hexdigest()[:12]), "utf-8")


def publish(others: Sequence[str] = ()) -> None:
    """Assemble the site beside the old one, with these other languages; then exchange them."""
    fresh, old = BUILD / "site", BUILD / "site-before"
    for folder in (fresh, old):
        shutil.rmtree(folder, ignore_errors=True)
    skip = shutil.ignore_patterns(".buildinfo", "reports", "objects.inv")
    shutil.copytree(BUILD / "html", fresh, ignore=skip)
    about = json.loads((BUILD / "ipynb" / "exercises.json").read_text("utf-8"))
    languages.place(BUILD / "translated", fresh, others, about["site"])
    pack(fresh)
    slides.make(fresh)
    figure_files.make(fresh)
    dress_door(fresh)
    shutil.copytree(
        BUILD / "ipynb" / "book", fresh / "notebooks", ignore=shutil.ignore_patterns(".*")
    )
    shutil.copytree(BUILD / "wheels", fresh / "wheels")
    (fresh / ".nojekyll").touch()
    if domain := own_domain(about["site"]):
        (fresh / "CNAME").write_text(f"{domain}\n")
    keep_reading(fresh)
    try:
        if SITE.exists():
            SITE.rename(old)
        fresh.rename(SITE)
    except BaseException:
        restore()
        raise


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def hand_out(files: list[Path], target: Path) -> list[str]:
    """Copy the files to `target`; return the names of those there that are somebody's work.

    A file is replaced, or removed where it is no longer among `files`, only if it is as it was
    written, which `.written` records. A changed one and one of unknown origin stay.
    """
    target.mkdir(exist_ok=True)
    record = target / ".written"
    before = json.loads(record.read_text("utf-8")) if record.exists() else {}
    new = {path.name: path for path in files}
    kept = {}
    for name in sorted(before.keys() | new.keys()):
        place = target / name
        mine = place.exists() and digest(place) != before.get(name)
        if mine and not (name in new and digest(place) == digest(new[name])):
            kept[name] = before.get(name, "")
        elif name in new:
            shutil.copyfile(new[name], place)
        else:
            place.unlink(missing_ok=True)
    written = {name: digest(path) for name, path in new.items() if name not in kept} | kept
    record.write_text(json.dumps(written, indent=1), encoding="utf-8")
    return list(kept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--notebooks", action="store_true", help="copy the notebooks to notebooks/ as well"
    )
    parser.add_argument(
        "--messages", action="store_true", help="only collect the sentences for translators"
    )
    options = parser.parse_args()
    if options.messages:
        custom = ("--builder", "custom", "--custom-builder", "messages")
        jupyter_book(freshness.digest(), "messages", *custom)
        print("Templates are in _build/messages; the catalogues in book/locale are up to date.")
        return 0
    try:
        missing = [name for name in ("ANSWERS", "HINTS") if not answers.shown(name)]
    except ValueError as mistake:
        print(mistake, file=sys.stderr)
        return 1
    state = "as it was"
    try:
        others = languages.wanted(ROOT / "book" / "locale", os.environ.get("LANGUAGES", ""))
        restore()
        # taken once: a change of the package while pages are made is the next build's, whole
        package = freshness.digest()
        jupyter_book(package, "html")
        jupyter_book(package, "ipynb", "--builder", "custom", "--custom-builder", "ipynb")
        if others:
            custom = ("--builder", "custom", "--custom-builder", "translated")
            jupyter_book(package, "translated", *custom)
        wheel(BUILD / "wheels")
        publish(others)
        state = "new"
        shutil.rmtree(BUILD / "site-before", ignore_errors=True)
        without = f", without {' and '.join(missing).lower()}" if missing else ""
        print(f"The book is in {os.path.relpath(SITE)}{without}")
        if options.notebooks:
            made = [*(SITE / "notebooks").glob("*.ipynb"), *(SITE / "wheels").glob("*.whl")]
            kept = hand_out(made, ROOT / "notebooks")
            print("The notebooks, and the wheel they install, are in notebooks/")
            if kept:
                print(
                    f"Left as they are, since they are not as they were written: {', '.join(kept)}."
                    " Move or rename them to get new ones."
                )
    except KeyboardInterrupt:
        print(f"\nStopped. _site is {state}.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Build the book, its notebooks and the wheel they install; publish to _site, all or nothing.

Sphinx works in _build, where its caches live; only when every step has succeeded does the result
take the place of _site. Warnings are errors, and so is a failing cell.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "_build"
SITE = ROOT / "_site"
STRICT = ["-W", "-n", "--keep-going"]  # warnings are errors; missing references too; show them all


def run(what: str, *command: object) -> None:
    """Run one step, its output shown only if it fails, or all along when VERBOSE is set."""
    start = time.monotonic()
    print(f"{what} ... ", end="", flush=True)
    env = os.environ | {"PYTHONWARNINGS": "ignore", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
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


def jupyter_book(builder: str, *options: str) -> None:
    run(
        {"html": "Executing chapters and writing pages", "ipynb": "Writing notebooks"}[builder],
        Path(sys.executable).with_name("jupyter-book"), "build", ".", *STRICT, *options,
    )  # fmt: skip


def wheel(folder: Path) -> None:
    """Put the package's wheel into `folder`: what a notebook installs where it finds none."""
    shutil.rmtree(folder, ignore_errors=True)
    run(
        "Building the wheel",
        sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation",
        "--disable-pip-version-check", "-q", "-w", folder,
    )  # fmt: skip
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # setuptools leaves a copy here


def publish() -> None:
    """Assemble the site beside the old one, then put it in its place in one step."""
    fresh, old = BUILD / "site", BUILD / "site-before"
    for folder in (fresh, old):
        shutil.rmtree(folder, ignore_errors=True)
    skip = shutil.ignore_patterns(".buildinfo", "reports", "objects.inv")
    shutil.copytree(BUILD / "html", fresh, ignore=skip)
    if (BUILD / "ipynb").exists():
        shutil.copytree(
            BUILD / "ipynb" / "book", fresh / "notebooks", ignore=shutil.ignore_patterns(".*")
        )
    shutil.copytree(BUILD / "wheels", fresh / "wheels")
    (fresh / ".nojekyll").touch()
    if SITE.exists():
        SITE.rename(old)
    fresh.rename(SITE)
    shutil.rmtree(old, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--notebooks", action="store_true", help="copy the notebooks to notebooks/ as well"
    )
    options = parser.parse_args()
    jupyter_book("html")
    jupyter_book("ipynb", "--builder", "custom", "--custom-builder", "ipynb")
    wheel(BUILD / "wheels")
    publish()
    print(f"The book is in {os.path.relpath(SITE)}")
    if options.notebooks:
        target = ROOT / "notebooks"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(SITE / "notebooks", target)
        for built in (SITE / "wheels").glob("*.whl"):
            shutil.copy(built, target)
        print("The notebooks, and the wheel they install, are in notebooks/")
    return 0


if __name__ == "__main__":
    sys.exit(main())

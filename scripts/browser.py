"""Find the browser that the tests open: an installed Chromium or Chrome, else Debian's package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
PLACES = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
]


def find() -> str | None:
    """The path of a Chromium or Chrome, $CHROMIUM before all others; None if there is none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    found = [shutil.which(name) for name in NAMES] + [p for p in PLACES if Path(p).exists()]
    return next((path for path in found if path), None)


def main() -> int:
    if find():
        return 0
    if os.environ.get("CHROMIUM"):
        print(f"CHROMIUM names no program: {os.environ['CHROMIUM']}", file=sys.stderr)
        return 1
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("Installing Debian's chromium for the browser tests ...", flush=True)
        quiet = {
            "stdout": subprocess.DEVNULL,
            "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        }
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], **quiet)
        if find():
            return 0
    print(
        "The tests need a Chromium or Chrome: install one (on Debian `apt install chromium`), "
        "or name it: CHROMIUM=/path/to/chrome make test",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())

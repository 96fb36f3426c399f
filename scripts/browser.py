"""Find the browsers that the tests open: what is installed, else Debian's packages.

Without Chromium or Chrome there are no tests in a browser. Firefox and WebKit are further engines:
where they cannot be, their tests are skipped.
"""

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
# engine: the programs it needs, each by the names it has, and Debian's packages
ENGINES = {
    "Firefox": (
        [["firefox", "firefox-esr", "/Applications/Firefox.app/Contents/MacOS/firefox"]],
        ["firefox-esr"],
    ),
    "WebKit": ([["WebKitWebDriver"], ["Xvfb"]], ["webkit2gtk-driver", "xvfb"]),
}
ABSENT = {
    name: f"The book is not tried in {name}: on Debian `apt install {' '.join(packages)}`"
    for name, (_, packages) in ENGINES.items()
}


def find() -> str | None:
    """The path of a Chromium or Chrome, $CHROMIUM before all others; None if there is none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    found = [shutil.which(name) for name in NAMES] + [p for p in PLACES if Path(p).exists()]
    return next((path for path in found if path), None)


def needed(site: Path, does: str, command: str) -> str:
    """The path of the browser for a script that reads the built book; else a sentence, and exit."""
    if not next((site / "book").glob("*.html"), None):
        sys.exit(f"there is no built book in {site.name}: run `make book`")
    if not (path := find()):
        sys.exit(
            f"Chromium or Chrome {does}, and none was found: install one, or name it: "
            f"CHROMIUM=/path/to/chrome make {command}"
        )
    return path


def engine(name: str) -> list[str] | None:
    """The paths of the programs that "Firefox" or "WebKit" needs; None if one is not there."""
    paths = [next(filter(None, map(shutil.which, names)), None) for names in ENGINES[name][0]]
    return None if None in paths else paths


def main() -> int:
    if os.environ.get("CHROMIUM") and not find():
        print(f"CHROMIUM names no program: {os.environ['CHROMIUM']}", file=sys.stderr)
        return 1
    packages = [] if find() else ["chromium"]
    packages += [p for name, (_, ps) in ENGINES.items() if not engine(name) for p in ps]
    if packages and shutil.which("apt-get") and os.geteuid() == 0:
        print(f"Installing Debian's {', '.join(packages)} for the browser tests ...", flush=True)
        quiet = {
            "stdout": subprocess.DEVNULL,
            "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        }
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        for package in packages:  # one that is missing keeps no other from coming
            subprocess.run(["apt-get", "install", "-y", "-qq", package], **quiet)
    for name in ENGINES:
        if not engine(name):
            print(ABSENT[name], file=sys.stderr)
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

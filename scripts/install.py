"""Make .venv with everything that requirements.txt pins; do nothing when that is done already.

Runs with the Python that will make the environment and with nothing but its standard library.
"""

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENV = ROOT / ".venv"
WANTED = (3, 11)


def main() -> int:
    if sys.version_info < WANTED:
        came = ".".join(map(str, sys.version_info[:3]))
        print(
            f"Python 3.11 or newer is needed; got {came}. Name another one: make PYTHON=python3.11",
            file=sys.stderr,
        )
        return 1
    needs = (ROOT / "requirements.txt").read_bytes() + (ROOT / "pyproject.toml").read_bytes()
    made_by, wanted = sys.version.replace("\n", " "), hashlib.sha256(needs).hexdigest()
    mark = VENV / "installed"
    before = mark.read_text().splitlines() if mark.exists() else []
    if before == [made_by, wanted]:
        return 0
    print("Making .venv and installing requirements.txt (a few minutes the first time) ...")
    python = VENV / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    another = bool(before) and before[0] != made_by  # then start afresh
    if another or not python.exists():
        venv.create(VENV, clear=another, with_pip=True, symlinks=sys.platform != "win32")
    done = subprocess.run(
        [python, "-m", "pip", "install", "--disable-pip-version-check", "-q", "-r"]
        + [ROOT / "requirements.txt"],
        cwd=ROOT,
    )
    if done.returncode:
        print("pip could not install requirements.txt; its message is above.", file=sys.stderr)
        return done.returncode
    mark.write_text(f"{made_by}\n{wanted}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

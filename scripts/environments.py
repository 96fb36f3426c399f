"""Environments beside .venv, each made once: for grading, for old versions, for tools."""

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path


class Failed(Exception):
    """A sentence about what could not be installed."""


def environment(folder: Path, *requirements: str) -> Path:
    """Make a virtual environment with these requirements, once; return its Python."""
    wanted = hashlib.sha256("\n".join([*requirements, sys.version]).encode()).hexdigest()
    mark = folder / "installed"
    python = folder / "bin" / "python"
    if mark.exists() and mark.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True, symlinks=True)
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise Failed(
            f"pip could not install {', '.join(requirements)} into {folder}: "
            + done.stderr.strip()[-500:]
        )
    mark.write_text(wanted)
    return python

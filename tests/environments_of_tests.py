"""The environments that tests run in: one with Colab's versions, and nbgrader's.

`make test` makes both while the book is built; a test that finds none makes it.
"""

import json
import re
import sys
from pathlib import Path

import filelock

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import course  # noqa: E402
import environments  # noqa: E402


def pinned(name: str) -> str:
    """The version that requirements.txt pins."""
    pins = (ROOT / "requirements.txt").read_text("utf-8")
    return re.search(rf"^{re.escape(name)}==(\S+)", pins, flags=re.M)[1]


def colab_environment() -> Path:
    """The Python of an environment with Colab's versions, made once."""
    lines = (ROOT / "tests" / "colab-constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    folder = ROOT / ".venv-colab"
    with filelock.FileLock(ROOT / ".venv-colab.lock"):  # two files' tests may want it at once
        # compiled on first use: most of what lies in it is never imported
        python = environments.environment(
            folder, "--no-compile", *pins, f"torch=={pinned('torch')}", "nbconvert"
        )
        kernel = folder / "share" / "jupyter" / "kernels" / "python3" / "kernel.json"
        about = json.loads(kernel.read_text())
        about["argv"][0] = str(python)
        kernel.write_text(json.dumps(about))
    return python


def nbgrader_environment() -> Path:
    """The Python of an environment with nbgrader, made once."""
    return course.nbgrader_environment(ROOT / ".venv-nbgrader")


if __name__ == "__main__":
    colab_environment()
    nbgrader_environment()

"""Compile requirements.in to pins with hashes: of what it names and of all that this brings along.

requirements.txt is for every platform. What only a CUDA build of torch brings along is in
requirements-cuda.txt, which install.py takes where torch is such a build. requirements-cpu.txt is
kept by hand: the index serves no build for the CPU alone on Linux.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import environments

ROOT = Path(__file__).parents[1]
UV = "uv==0.13.8"
CUDA = re.compile(r"nvidia-|cuda-|triton\b")


def entries(text: str) -> list[str]:
    """The pins of a compiled file, each with its hashes and what asks for it."""
    return [e for e in re.split(r"^(?=\S)", text, flags=re.M) if "==" in e.partition("\n")[0]]


def main() -> int:
    pins, cuda = ROOT / "requirements.txt", ROOT / "requirements-cuda.txt"
    python = environments.environment(ROOT / ".venv-pins", UV)
    compiled = ROOT / "_build" / "pins.txt"
    compiled.parent.mkdir(exist_ok=True)
    if "--upgrade" not in sys.argv:  # what is pinned stays, where requirements.in allows it
        compiled.write_text(pins.read_text("utf-8") + cuda.read_text("utf-8"), "utf-8")
    done = subprocess.run(
        [python.parent / "uv", "pip", "compile", "requirements.in", "--universal", "--no-config",
         "--generate-hashes", "--no-header", "--no-emit-index-url", "--python-version", "3.11",
         "--fork-strategy", "fewest", "--quiet", "--output-file", compiled],
        cwd=ROOT, env={k: v for k, v in os.environ.items() if not k.startswith("UV_")},
    )  # fmt: skip
    if done.returncode:
        return done.returncode
    every = entries(compiled.read_text("utf-8"))
    head = "# Compiled from requirements.in by `make pins`: not to be edited.\n"
    pins.write_text(head + "".join(e for e in every if not CUDA.match(e)), "utf-8")
    cuda.write_text(head + "".join(e for e in every if CUDA.match(e)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

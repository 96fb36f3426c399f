"""Run every notebook of a folder from its first to its last cell; say which fail, and where.

    python run_notebooks.py notebooks       # with whatever Python it is: needs nbformat, nbclient

`make colab` runs it in the image that Colab runs. The notebooks run in a copy of the folder.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

LIMIT = 900  # seconds for a cell


def run(path: Path) -> str:
    """Run a notebook beside its files; return "" or the end of what its failing cell said."""
    notebook = nbformat.read(path, as_version=4)
    about = {"metadata": {"path": str(path.parent)}}
    try:
        NotebookClient(notebook, timeout=LIMIT, kernel_name="python3", resources=about).execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        return str(error)[-3000:]
    return ""


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "notebooks")
    names = sorted(path.name for path in folder.glob("*.ipynb"))
    if not names:
        print(f"There is no notebook in {folder}; run `make notebooks` first.", file=sys.stderr)
        return 1
    failed = []
    with tempfile.TemporaryDirectory() as copy:
        here = shutil.copytree(folder, Path(copy) / "notebooks")
        for number, name in enumerate(names, 1):
            print(f"{number} of {len(names)}: {name} ... ", end="", flush=True)
            start = time.monotonic()
            said = run(here / name)
            print(f"{'failed' if said else 'ran'}, {time.monotonic() - start:.0f} s", flush=True)
            if said:
                failed.append(name)
                print(said)
    print(f"Failed: {', '.join(failed)}" if failed else "All ran.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

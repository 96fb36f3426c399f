"""Build the site with a current Sphinx and current extensions, without Jupyter Book.

    python scripts/future.py

Jupyter Book 1 holds Sphinx at 7. The day it ends, the book goes on with plain Sphinx: this shows
that it can. The environment, .venv-future, holds the newest release of what the pages need, but
the theme that they are fitted to; what the chapters compute with comes from .venv. The pages go to
_build/future/html. Warnings are errors.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import environments

ROOT = Path(__file__).parents[1]
OUT = ROOT / "_build" / "future"
# relative to conf.py
PLACES = ("html_static_path", "templates_path", "html_favicon", "bibtex_bibfiles")
GONE = ("jupyter_book", "sphinx_jupyterbook_latex")


def needs(text: str) -> list[str]:
    """What requirements.in names for the pages, of any version but the theme's; Sphinx from 9."""
    part = text.partition("# the book\n")[2].partition("\n\n")[0]
    lines = [line for line in part.splitlines() if re.match(r"sphinx|myst|pydata", line)]
    found = [line if "theme" in line else line.partition("==")[0] for line in lines]
    return ["Sphinx>=9", "sphinx-external-toc", "sphinx-multitoc-numbering", *found]


def configuration() -> str:
    """The text of conf.py: what Jupyter Book makes of _config.yml, without Jupyter Book itself."""
    from jupyter_book.config import get_final_config

    made, _ = get_final_config(
        user_yaml=ROOT / "_config.yml", sourcedir=ROOT, cli_config={"latex_individualpages": False}
    )
    made["extensions"] = [name for name in made["extensions"] if name not in GONE]
    for name in PLACES:
        value = made[name]
        several = isinstance(value, list)
        made[name] = [str(ROOT / v) for v in value] if several else str(ROOT / value)
    made["nb_execution_cache_path"] = str(ROOT / "_build" / ".jupyter_cache")  # that of `make book`
    lines = [f"{name} = {value!r}" for name, value in made.items() if "jupyterbook" not in name]
    return "\n".join(["import sys", f"sys.path.insert(0, {str(ROOT / 'book' / '_ext')!r})", *lines])


def main() -> int:
    try:
        python = environments.environment(
            ROOT / ".venv-future", *needs((ROOT / "requirements.in").read_text("utf-8"))
        )
    except environments.Failed as error:
        print(error, file=sys.stderr)
        return 1
    # after its own packages come those of .venv, torch for one
    site = next((ROOT / ".venv-future" / "lib").glob("python*/site-packages"))
    (site / "chapters.pth").write_text("\n".join(p for p in sys.path if p.endswith("-packages")))
    node = ROOT / ".venv-future" / "node"  # what typesets the formulas
    node.unlink(missing_ok=True)
    node.symlink_to(Path(sys.prefix) / "node")
    shutil.rmtree(OUT / "conf", ignore_errors=True)
    (OUT / "conf").mkdir(parents=True)
    (OUT / "conf" / "conf.py").write_text(configuration(), "utf-8")
    return subprocess.run(
        [python, "-m", "sphinx", "-W", "-n", "--keep-going", "-q", "-b", "html",
         "-c", OUT / "conf", "-d", OUT / "trees", ROOT, OUT / "html"],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
    ).returncode  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())

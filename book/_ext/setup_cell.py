# @title Set up: use the book's package if it is here, else install its wheel and nothing else
import importlib.metadata
import importlib.util
import platform
import subprocess
import sys
from pathlib import Path

VERSION = "{version}"
SITE = "{site}"  # where this notebook was published; empty: not known
TRAINS = "{trains}"


class SetUp(Exception):
    def _render_traceback_(self):  # a notebook shows the sentence alone
        return [str(self)]


def installed():
    importlib.invalidate_caches()
    try:
        return importlib.metadata.version("attention-book")
    except importlib.metadata.PackageNotFoundError:
        return None


def install():
    wheel = f"attention_book-{VERSION}-py3-none-any.whl"
    near = [path for path in (Path(wheel), Path("../wheels", wheel)) if path.exists()]
    source = str(near[0]) if near else f"{SITE}/wheels/{wheel}" if SITE else ""
    if not source:
        raise SetUp(
            f"This notebook needs the package attention-book {VERSION}. Put {wheel} beside it "
            "(it comes with the book's notebooks) and run this cell again."
        )
    # --no-deps: nothing that is here already changes its version
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", source]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or installed() != VERSION:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise SetUp(
            f"Installing {source} failed{f' ({said[-1]})' if said else ''}. Check the connection "
            f"and run this cell again, or put {wheel} beside this notebook and run it again."
        )


def prepare():
    if installed() != VERSION:
        install()
    needed = ["torch", "numpy", "matplotlib", "tqdm", "ipywidgets", "anywidget"]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise SetUp(
            f"This Python lacks {', '.join(missing)}. Run %pip install {' '.join(missing)} "
            "and then this cell again."
        )
    import torch

    import attention

    if "google.colab" in sys.modules:  # Colab shows the explorers only when asked to
        from google.colab import output

        output.enable_custom_widget_manager()
    print(attention.describe_device())
    print(f"attention {VERSION}, torch {torch.__version__}, Python {platform.python_version()}")
    if TRAINS and attention.device().type == "cpu":
        print(
            "This chapter trains small models, within a minute on the CPU. For larger ones a GPU "
            "would help, and it is off (in Colab: Runtime, Change runtime type)."
        )


prepare()

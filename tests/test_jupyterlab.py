"""Explorers and a question in a real notebook: JupyterLab with the newest widgets, and the classic
notebook with ipywidgets 7.7.1 as Colab has it."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest
from environments_of_tests import ROOT, colab_environment

from attention.widgets.question import seal

pytestmark = pytest.mark.notebook

ASKED = {"name": "ask", "type": "number", "answer": 0.5, "tolerance": 0.01, "kind": "check"}
ASKED |= {"title": "How many?", "told": "<p>Half of <math><mn>1</mn></math>.</p>"}
ASKED |= {"hints": [{"wrong": 2.0, "told": "<p>If you had 2:</p><p>Upside down.</p>"}]}

CELLS = [
    "from attention.widgets import Masks, Temperature\n"
    "warm, masks = Temperature(scores=[2.0, 1.0, 0.0]), Masks()\n"
    "print('made', warm.temperature)",
    "warm",
    "warm",
    "masks",
    "print('from the hand', warm.temperature, masks.layers)",
    "warm.temperature = 5.0\nmasks.layers = 7\nprint('from Python')",
    "print('in the end', warm.temperature)",
    f"from attention.widgets import Question\nquestion = Question({seal(ASKED)!r})\nquestion",
    "print('answered', question.got, question.given)",
]
WAIT = 90_000  # milliseconds, for a kernel that imports torch on a busy machine


class Server:
    """A notebook server on a free loopback port, gone with all its kernels at the end."""

    def __init__(self, folder: Path, python: Path, command: list[str], path: str, **more: str):
        notebook = nbformat.v4.new_notebook()
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        notebook.cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
        nbformat.write(notebook, folder / "try.ipynb")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        token = secrets.token_hex(16)
        home = {name: str(folder / name) for name in ("HOME", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
        home |= {"JUPYTER_CONFIG_DIR": str(folder / "config"), "JUPYTER_PLATFORM_DIRS": "1"}
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [
                python, "-m", *command, "--no-browser", "--ip=127.0.0.1", f"--port={self.port}",
                "--allow-root", f"--notebook-dir={folder}",
            ],
            env=os.environ | home | {"JUPYTER_TOKEN": token, "ATTENTION_DEVICE": "cpu"} | more,
            cwd=folder, stdout=self.log, stderr=self.log, start_new_session=True,
        )  # fmt: skip
        self.base = f"http://127.0.0.1:{self.port}"
        self.address = f"{self.base}{path}?token={token}"

    def __enter__(self):
        end = time.monotonic() + 90
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(self.address, timeout=20).close()
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)
        self.__exit__()
        raise AssertionError(f"the server did not start:\n{(self.said())[-3000:]}")

    def said(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def __exit__(self, *args):
        for sign in (signal.SIGTERM, signal.SIGKILL):  # kernels end with their server's group
            try:
                os.killpg(self.process.pid, sign)
                self.process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
        if not self.log.closed and args:
            self.log.close()


def explore(page, run, cell_text):
    """The same walk in both front ends: run(i) runs cell i, cell_text(i) is what it printed."""

    def printed(i, words):
        end = time.monotonic() + WAIT / 1000
        while words not in (text := cell_text(i)):
            assert time.monotonic() < end, f"cell {i} should print {words!r}; got {text!r}"
            page.wait_for_timeout(100)

    run(0)
    printed(0, "made 1.0")
    for i in (1, 2, 3):
        run(i)
    views = page.locator(".ex-temperature")
    views.nth(1).wait_for(timeout=WAIT)
    heat = [views.nth(i).locator("input[type=range]").first for i in (0, 1)]
    layers = page.locator(".ex-masks").get_by_label("layers", exact=True)
    layers.wait_for(timeout=WAIT)

    def settle(sliders, words):
        for slider in sliders:
            end = time.monotonic() + 20
            while (now := slider.get_attribute("aria-valuetext")) != words:
                assert time.monotonic() < end, f"the slider should say {words}; it says {now}"
                page.wait_for_timeout(50)

    settle(heat, "1")
    heat[0].focus()
    page.keyboard.press("End")
    settle(heat, "20")  # the second view follows the first
    layers.focus()
    page.keyboard.press("Home")
    assert views.nth(0).locator(".weight").all_inner_texts() == (
        views.nth(1).locator(".weight").all_inner_texts()
    )
    run(4)
    printed(4, "from the hand 20.0 1")
    run(5)
    printed(5, "from Python")
    settle(heat, "5")  # both views follow Python
    settle([layers], "7")
    heat[1].focus()
    page.keyboard.press("Home")
    settle(heat, "0.05")  # the first view follows the second
    run(6)
    printed(6, "in the end 0.05")
    run(7)
    question = page.locator(".explorer.question")
    question.get_by_label("A number").click(timeout=WAIT)
    page.keyboard.type("2,0")  # no letter or digit is a command of the notebook
    page.keyboard.press("Enter")
    said = question.locator(".question-said")
    assert "✗ Not yet. 2,0 is too large." in said.inner_text() and "Upside" in said.inner_text()
    question.get_by_label("A number").fill("1/2")
    question.get_by_role("button", name="Check").click()
    assert "✓ Right." in said.inner_text()
    assert question.get_by_text("Half of 1.").is_visible()
    run(8)
    printed(8, "answered wrong 2,0")


def quiet(chrome, base):
    """A page that reaches the server alone, and the addresses that it asked for beside it."""
    context = chrome.new_context(viewport={"width": 1300, "height": 2400})
    outside = []

    def only_here(route):
        if route.request.url.startswith((base, "data:", "blob:")):
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    context.route("**/*", only_here)
    return context, context.new_page(), outside


def test_an_explorer_and_its_trait_move_together_in_jupyterlab(chrome, tmp_path):
    # One page a server, no extension manager, no news: nothing asks another address.
    settings = [
        "--LabApp.extension_manager=readonly",
        "--LabApp.news_url=",
        "--LabApp.collaborative=False",
    ]
    command = ["jupyterlab", *settings]
    with Server(tmp_path, Path(sys.executable), command, "/doc/tree/try.ipynb") as server:
        context, page, outside = quiet(chrome, server.base)
        page.goto(server.address, timeout=WAIT)
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        cells.nth(len(CELLS) - 1).wait_for(timeout=WAIT)
        page.locator("[data-status=idle]").first.wait_for(timeout=WAIT)

        def run(i):
            prompt = cells.nth(i).locator(".jp-InputPrompt")
            for _ in range(20):  # JupyterLab drops what is pressed while it still sets itself up
                cells.nth(i).locator(".cm-content").click()
                page.keyboard.press("Control+Enter")
                for _ in range(20):
                    if prompt.inner_text().strip("[]: \u200b"):
                        return
                    page.wait_for_timeout(100)

        explore(page, run, lambda i: cells.nth(i).locator(".jp-OutputArea").inner_text())
        assert outside == []
        context.close()


def test_an_explorer_and_its_trait_move_together_in_the_classic_notebook(chrome, tmp_path):
    command = ["notebook", "--NotebookApp.enable_mathjax=False"]  # it comes from another address
    path = {"PYTHONPATH": str(ROOT / "src")}
    with Server(tmp_path, colab_environment(), command, "/notebooks/try.ipynb", **path) as server:
        context, page, outside = quiet(chrome, server.base)
        page.goto(server.address, timeout=WAIT)
        cells = page.locator("#notebook-container .code_cell")
        cells.nth(len(CELLS) - 1).wait_for(timeout=WAIT)
        page.wait_for_function(
            "() => window.Jupyter?.notebook?.kernel?.is_connected()", timeout=WAIT
        )

        def run(i):
            page.evaluate("i => Jupyter.notebook.execute_cells([i])", i)

        explore(page, run, lambda i: cells.nth(i).locator(".output").inner_text())
        assert outside == []
        context.close()

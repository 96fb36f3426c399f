"""One thread a process: the tests run side by side, and tiny models are faster so.

The browser and the server of the built book are here, one of each for all files that use them.
"""

import functools
import http.server
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
import torch
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_site"
sys.path.insert(0, str(ROOT / "scripts"))
import browser  # noqa: E402

torch.set_num_threads(1)
# The longest first, so that no process is left alone with one.
LONGEST = [
    "notebooks",
    "course",
    "build",
    "teach",
    "grading_attacks",
    "explorers",
    "engines",
    "site",
    "jupyterlab",
    "questions",
]


def group(test: str) -> str:
    """What runs in one process, one after another: a file, but notebooks each by itself.

    Colab's environment is one, so its notebooks take turns, beside the current versions'.
    """
    if "in_colab" in test:
        return "colab"
    alone = ("test_notebook_runs_on_current", "test_nbgrader_takes", "test_an_explorer_and_its")
    return test if any(name in test for name in alone) else test.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group(nodeid)

    return ByGroup(config, log)


def pytest_collection_modifyitems(config, items):
    config.collected = Counter(item.nodeid.partition("::")[0] for item in items)

    def place(item):
        name = item.path.stem.removeprefix("test_")
        long = LONGEST.index(name) if name in LONGEST else len(LONGEST)
        return (item.get_closest_marker("notebook") is None, long)

    items.sort(key=place)  # within a file the order stays


@pytest.fixture(scope="module", autouse=True)
def undo_print_options():
    """Chapters set how tensors are printed; the doctests after them expect PyTorch's own way."""
    yield
    torch.set_printoptions(profile="default")
    plt.close("all")  # chapters' cells leave theirs open


@pytest.fixture(autouse=True)
def same_random_numbers():
    """No test's numbers depend on which tests ran before it."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def chrome():
    path = browser.find()
    assert path, "no Chromium or Chrome was found: run `python scripts/browser.py`"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield running
        running.close()


@pytest.fixture(scope="session")
def address():
    """Both ways of reading: the address of _site from a folder and over http."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {"file": SITE.as_uri(), "http": f"http://127.0.0.1:{server.server_address[1]}"}
    server.shutdown()
    server.server_close()

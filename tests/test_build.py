"""The build tells the truth: it fails on warnings and failing cells, and keeps no stale number."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHAPTER = """---
jupytext: {{text_representation: {{extension: .md, format_name: myst}}}}
kernelspec: {{display_name: Python 3, language: python, name: python3}}
---
# A chapter

```{{code-cell}} python
from attention.device import MARK
print("mark", MARK)
{cell}
```

{text}
"""


class Book:
    """A book of one chapter on a copy of the package, built by the repository's own script."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("_config.yml", "pyproject.toml", "requirements.txt", "README.md",
                     "scripts", "book/_ext", "book/_static", "book/_templates",
                     "book/references.bib", "src"):  # fmt: skip
            source, target = ROOT / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(source, target, ignore=ignore)
            else:
                shutil.copy(source, target)
        (folder / "_toc.yml").write_text(
            "format: jb-book\nroot: book/index\nchapters: [{file: book/chapter}]\n"
        )
        (folder / "book/index.md").write_text("# A book\n\nWords.\n")
        self.mark(1)
        self.chapter()

    def mark(self, value: int) -> None:
        """Change the package: the chapter prints this."""
        source = (ROOT / "src/attention/device.py").read_text("utf-8")
        (self.folder / "src/attention/device.py").write_text(
            f"{source}\n\nMARK = {value}\n", "utf-8"
        )

    def chapter(self, cell: str = "", text: str = "Words.") -> None:
        page = CHAPTER.format(cell=cell, text=text)
        (self.folder / "book/chapter.md").write_text(page, "utf-8")

    def build(self) -> subprocess.CompletedProcess:
        env = os.environ | {"PYTHONPATH": str(self.folder / "src"), "VERBOSE": "1"}
        return subprocess.run(
            [sys.executable, "scripts/build.py"],
            cwd=self.folder, env=env, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def page(self) -> str:
        return (self.folder / "_site/book/chapter.html").read_text("utf-8")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    made = Book(tmp_path_factory.mktemp("book"))
    first = made.build()
    assert first.returncode == 0, first.stdout + first.stderr
    assert "Executing notebook" in first.stdout
    return made


def test_a_second_build_executes_nothing(book):
    again = book.build()
    assert again.returncode == 0
    assert "Executing notebook" not in again.stdout


def test_a_change_in_the_package_executes_its_chapters_again(book):
    assert "mark 1" in book.page()
    book.mark(2)
    changed = book.build()
    assert changed.returncode == 0, changed.stdout
    assert "Executing notebook" in changed.stdout
    assert "mark 2" in book.page() and "mark 1" not in book.page()


def test_another_pin_executes_all_chapters_again(book):
    with (book.folder / "requirements.txt").open("a") as pins:
        pins.write("# another version\n")
    changed = book.build()
    assert changed.returncode == 0, changed.stdout
    assert "Executing notebook" in changed.stdout


@pytest.mark.parametrize(
    "cell, text, says",
    [
        ("raise ValueError('a failing cell')", "Words.", "a failing cell"),
        ("", "See {ref}`nowhere`.", "nowhere"),
        ("", "$$\n\\nosuchcommand\n$$\n\n```{nosuchdirective}\n```", "nosuchdirective"),
    ],
)
def test_a_failing_cell_or_a_warning_fails_the_build_and_leaves_the_site(book, cell, text, says):
    before = book.page()
    book.chapter(cell, text)
    broken = book.build()
    assert broken.returncode != 0
    assert says in broken.stdout + broken.stderr
    assert book.page() == before, "the site that was whole must stay"
    book.chapter()


def test_a_port_in_use_gives_way_to_the_next_free_one(book):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = subprocess.Popen(
            [sys.executable, "scripts/serve.py", "--port", str(port)],
            cwd=book.folder, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert server.stdout.readline() == f"Port {port} is in use; trying {port + 1}.\n"
            assert "http://127.0.0.1:" in server.stdout.readline()
        finally:
            server.send_signal(2)  # Ctrl-C
        assert "Stopped." in server.communicate(timeout=20)[0]
        assert server.returncode == 0


def test_a_bad_port_and_a_missing_book_are_said_in_a_sentence(tmp_path):
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")

    def says(*arguments):
        done = subprocess.run(
            [sys.executable, "scripts/serve.py", *arguments],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 1
        return done.stderr

    assert "between 1 and 65486; got 70000" in says("--port", "70000")
    assert "run `make book` first" in says("--port", "8000")


def test_a_missing_browser_is_said_in_a_sentence(tmp_path):
    env = os.environ | {"CHROMIUM": "/no/such/browser"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/browser.py")], env=env, capture_output=True, text=True
    )
    assert done.returncode == 1 and "CHROMIUM names no program: /no/such/browser" in done.stderr


def test_a_python_too_old_is_said_in_a_sentence(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import install

    monkeypatch.setattr(install.sys, "version_info", (3, 9, 18))
    assert install.main() == 1
    assert "Python 3.11 or newer is needed; got 3.9.18" in capsys.readouterr().err

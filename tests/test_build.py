"""The build tells the truth: it fails on warnings and failing cells, and keeps no stale number."""

import doctest
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "scripts")]

import build  # noqa: E402
import figures  # noqa: E402
import serve  # noqa: E402

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
                     "LICENSE", "scripts", "book/_ext", "book/_static", "book/_templates",
                     "book/references.bib", "src"):  # fmt: skip
            source, target = ROOT / name, folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
                shutil.copytree(source, target, ignore=ignore)
            else:
                shutil.copy(source, target)
        self.contents("chapter", "short")
        (folder / "book/index.md").write_text("# A book\n\nWords.\n")
        (folder / "book/short.md").write_text("# Short\n\nWords.\n")
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

    def contents(self, *pages: str) -> None:
        listed = ", ".join(f"{{file: book/{page}}}" for page in pages)
        toc = f"format: jb-book\nroot: book/index\nchapters: [{listed}]\n"
        (self.folder / "_toc.yml").write_text(toc)

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


def test_a_change_in_the_package_executes_its_chapters_again_but_not_twice(book):
    assert "mark 1" in book.page()
    book.mark(2)
    source = str(book.folder / "src/attention/device.py")
    book.chapter(f"with open({source!r}, 'a') as file:\n    file.write('# while it builds')")
    changed = book.build()
    assert changed.returncode == 0, changed.stdout
    assert changed.stdout.count("Executing notebook") == 1, "pages and notebooks of one package"
    assert "mark 2" in book.page() and "mark 1" not in book.page()
    book.chapter()


@pytest.fixture(scope="module")
def without_a_page(book):
    """A build with another version of a package, and without a page that there was."""
    with (book.folder / "requirements.txt").open("a") as pins:
        pins.write("# another version\n")
    assert (book.folder / "_site/book/short.html").exists()
    (book.folder / "book/short.md").unlink()
    book.contents("chapter")
    changed = book.build()
    assert changed.returncode == 0, changed.stdout
    return changed


def test_another_pin_executes_all_chapters_again(without_a_page):
    assert "Executing notebook" in without_a_page.stdout


def test_a_page_that_is_no_more_is_published_no_more(book, without_a_page):
    assert not (book.folder / "_site/book/short.html").exists()
    for left in ("book/chapter.html", "book/index.html", "index.html", "404.html", "search.html"):
        assert (book.folder / "_site" / left).exists(), left


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


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A folder with an old site and all that a new one is made of."""
    for name, text in {
        "_site/index.html": "old", "_build/html/index.html": "new",
        "_build/ipynb/exercises.json": '{"site": "https://book.example.org"}',
        "_build/ipynb/book/one.ipynb": "{}", "_build/wheels/a.whl": "wheel",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name, folder in {"ROOT": ".", "BUILD": "_build", "SITE": "_site"}.items():
        monkeypatch.setattr(build, name, tmp_path / folder)
    monkeypatch.setattr(build.sys, "argv", ["build.py"])
    monkeypatch.setattr(build, "run", lambda *command, **more: None)  # no step works
    monkeypatch.setattr(build, "wheel", lambda folder: None)
    return tmp_path


def test_the_new_site_takes_the_place_of_the_old_one(built):
    build.publish()
    assert (built / "_site/index.html").read_text() == "new"
    assert (built / "_site/CNAME").read_text() == "book.example.org\n"
    assert (built / "_site/notebooks/one.ipynb").exists() and (built / "_site/wheels").exists()


def test_an_interrupted_exchange_leaves_the_old_site(built, monkeypatch, capsys):
    rename = Path.rename

    def interrupted(self, target):
        if self.name == "site":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    assert build.main() == 130
    assert capsys.readouterr().err == "\nStopped. _site is as it was.\n"
    assert (built / "_site/index.html").read_text() == "old"


def test_a_site_that_was_lost_in_the_exchange_comes_back(built, monkeypatch, capsys):
    (built / "_site").rename(built / "_build/site-before")  # killed between the two renames

    def stopped(*command, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "run", stopped)
    assert build.main() == 130
    assert (built / "_site/index.html").read_text() == "old"


def test_the_wheel_holds_nothing_of_an_old_build(built, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(build, "ROOT", built)
    stale = built / "build/lib/attention/gone.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("")

    def run(*command):
        assert not stale.exists()
        stale.parent.mkdir(parents=True)

    monkeypatch.setattr(build, "run", run)
    build.wheel(built / "_build/wheels")
    assert not (built / "build").exists()


def test_handing_out_notebooks_keeps_the_readers_work(tmp_path):
    made, target = tmp_path / "made", tmp_path / "notebooks"
    made.mkdir()
    names = ["same", "changed", "dropped", "dropped-changed", "foreign"]

    def hand_out(version, names):
        for name in names:
            (made / name).write_text(f"{name} {version}")
        return build.hand_out([made / name for name in names], target)

    def text(name):
        return (target / name).read_text() if (target / name).exists() else None

    assert hand_out(1, names[:4]) == []
    for name in ("changed", "dropped-changed", "foreign"):
        (target / name).write_text("mine")
    (target / "beside").write_text("mine")
    for version in (2, 3):  # what was kept once is kept again
        kept = hand_out(version, ["same", "changed", "foreign"])
        assert kept == ["changed", "dropped-changed", "foreign"]
        assert text("same") == f"same {version}" and text("dropped") is None
        assert all(text(name) == "mine" for name in [*kept, "beside"])
    (target / "changed").unlink()
    assert "changed" not in hand_out(4, ["same", "changed", "foreign"])
    assert text("changed") == "changed 4"
    (target / ".written").unlink()  # nothing is known: nothing is lost, the same is adopted
    assert hand_out(4, ["same", "changed"]) == []
    assert hand_out(5, ["same", "changed"]) == [] and text("same") == "same 5"


def test_a_notebook_that_was_worked_in_is_named(built, monkeypatch, capsys):
    monkeypatch.setattr(build.sys, "argv", ["build.py", "--notebooks"])
    (built / "notebooks").mkdir()
    (built / "notebooks/one.ipynb").write_text("mine")
    assert build.main() == 0
    assert "Left as they are, since they are not as they were written: one.ipynb." in (
        capsys.readouterr().out
    )
    assert (built / "notebooks/one.ipynb").read_text() == "mine"
    assert (built / "notebooks/a.whl").read_text() == "wheel"


def test_words_in_a_figure_stay_as_they_are():
    words = "colour: black cat, 'DejaVu Sans', id=\"b\""
    svg = (
        '<svg viewBox="0 0 10 20"><g id="a"><path style="fill: #000000" stroke="black"/>'
        f"<text style=\"font-size: 9px; font-family: 'DejaVu Sans', serif\">{words}</text>"
        "</g></svg>"
    )
    page = figures.page_svg(svg, "A cat")
    assert f'<text style="font-size: 9px">{words}</text>' in page
    assert '><path style="fill: currentColor" stroke="currentColor"/>' in page
    assert page.startswith("<svg") and 'style="font-family: var(--figure-font); ' in page


def test_a_drawing_in_a_page_keeps_its_groups_and_loses_what_says_nothing():
    assert doctest.testmod(figures).failed == 0
    svg = (
        '<svg viewBox="0 0 10 20"><defs><style type="text/css">*{stroke-linecap: butt}</style>'
        '<clipPath id="c"><path d="M 0 0 \nL 5.123456 1 \nz"/></clipPath></defs>'
        '<g id="a"><path d="M 0 0 \nz" style="fill: none"/><g style="fill: #0f58a0"><use x="1.5" '
        'transform="scale(0.015625)" clip-path="url(#c)"/></g></g></svg>'
    )
    page = figures.page_svg(svg, "")
    assert page[page.index("<defs>") :] == (
        '<defs><clipPath id="c"><path d="M0 0L5.12 1z"/></clipPath></defs><g style="fill: '
        'var(--above)"><use x="1.5" transform="scale(0.015625)" clip-path="url(#c)"/></g></svg>'
    )


def test_a_reader_who_leaves_is_no_error(capsys):
    with serve.Server(("127.0.0.1", 0), serve.Handler) as server:
        for error in (ConnectionResetError("left"), ValueError("a mistake")):
            try:
                raise error
            except Exception:
                server.handle_error(None, ("127.0.0.1", 1))
    said = capsys.readouterr().err
    assert "left" not in said and "a mistake" in said


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
            said = next(line for line in server.stdout if " is in use" not in line)
            assert "http://127.0.0.1:" in said
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


def test_without_firefox_and_webkit_a_sentence_says_what_is_not_tried(tmp_path):
    (tmp_path / "chromium").symlink_to("/bin/true")
    env = {"PATH": str(tmp_path), "CHROMIUM": "chromium"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/browser.py")], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "The book is not tried in Firefox: on Debian `apt install firefox-esr`",
        "The book is not tried in WebKit: on Debian `apt install webkit2gtk-driver xvfb`",
    ]

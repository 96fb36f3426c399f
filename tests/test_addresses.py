"""Where the book's links lead: with no address known, in a fork, and with addresses given.

Unset: no link is made up. In a fork's deploy: the fork's own. Given: the given ones.
"""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from test_notebooks import ROOT, small_book

sys.path.insert(0, str(ROOT / "book" / "_ext"))

import notebooks  # noqa: E402
import site_address  # noqa: E402

FORK = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "Ann/attention-fork",
    "GITHUB_SERVER_URL": "https://github.com",
}
GIVEN = {
    "ATTENTION_SITE": "https://book.example.org/",
    "ATTENTION_REPOSITORY": "https://github.com/own/book",
}
SETTINGS = {
    "unset": ({}, "", ""),
    "fork": (FORK, "https://ann.github.io/attention-fork", "Ann/attention-fork"),
    "given": (GIVEN, "https://book.example.org", "own/book"),
    "given in a fork": (FORK | GIVEN, "https://book.example.org", "own/book"),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_addresses_come_from_the_environment_before_the_file(setting):
    environ, site, repository = SETTINGS[setting]
    found = site_address.addresses(environ)
    assert found == (site, f"https://github.com/{repository}" if repository else "")


def test_the_file_counts_where_the_environment_says_nothing():
    found = site_address.addresses({}, site="https://s/", repository="https://github.com/o/r/")
    assert found == ("https://s", "https://github.com/o/r")
    assert site_address.addresses(FORK, "https://s", "https://github.com/o/r")[1].endswith("fork")


@pytest.mark.parametrize(
    ("repository", "colab"),
    [
        ("", ""),
        ("https://github.com/own/book", "own/book"),
        ("https://github.com/own/book.git", "own/book"),
        ("https://gitlab.com/own/book", ""),  # Colab reads GitHub only
        ("https://github.com/own", ""),
    ],
)
def test_colab_opens_what_github_holds(repository, colab):
    page = "https://colab.research.google.com/github/own/book/blob/gh-pages/notebooks/qkv.ipynb"
    assert notebooks.colab_address(repository, "qkv") == (page if colab else "")


def test_a_page_without_code_has_no_buttons():
    config = SimpleNamespace(attention_repository="", root_doc="book/index")
    app = SimpleNamespace(env=SimpleNamespace(metadata={}, config=config), config=config)
    context: dict = {"header_buttons": []}
    notebooks._add_buttons(app, "book/notation", "", context, None)
    assert context == {"header_buttons": []}


@pytest.mark.parametrize("setting", ["unset", "fork", "given"])
def test_a_built_book_links_to_its_own_addresses_only(setting, tmp_path):
    environ, site, repository = SETTINGS[setting]
    page = (small_book(tmp_path, "html", **environ) / "one.html").read_text()
    assert 'href="notebooks/one.ipynb"' in page
    colab = re.findall(r"https://colab\.research\.google\.com/[^\"]*", page)
    if repository:
        start = "https://colab.research.google.com/github"
        assert colab == [f"{start}/{repository}/blob/gh-pages/notebooks/one.ipynb"]
    else:
        assert colab == [] and "github.com" not in page and "github.io" not in page

    made = nbformat.read(small_book(tmp_path, "ipynb", **environ) / "one.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in made.cells)
    assert f'SITE = "{site}"' in text
    if site:
        assert f"[next]({site}/two.html#ch-two)" in text
        assert f"[2020]({site}/other.html#" in text and f"[Other]({site}/other.html)" in text
    else:
        assert "[next](two.ipynb#ch-two)" in text and "http" not in text


def test_the_published_book_says_what_it_was_built_with():
    """The built site names Colab only if the repository's address was known to the build."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    _, repository = site_address.addresses(repository=config["repository"]["url"])
    for page in (ROOT / "_site" / "book").glob("*.html"):
        name = Path(page).stem
        colab = notebooks.colab_address(repository, name)
        if not repository:
            assert "colab.research.google.com" not in page.read_text("utf-8"), page
        elif (ROOT / "_site" / "notebooks" / f"{name}.ipynb").exists():
            assert colab in page.read_text("utf-8"), page

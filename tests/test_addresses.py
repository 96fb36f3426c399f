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
from question_book import HEAD, book, sphinx
from test_notebooks import CONFIG, ROOT

sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "scripts")]

import build  # noqa: E402
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
USER = FORK | {"GITHUB_REPOSITORY": "Ann/ann.github.io"}
SETTINGS = {
    "unset": ({}, "", ""),
    "fork": (FORK, "https://ann.github.io/attention-fork", "Ann/attention-fork"),
    "user site": (USER, "https://ann.github.io", "Ann/ann.github.io"),
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


@pytest.mark.parametrize("written", ["", "https://github.com/ann/attention-fork.git"])
def test_the_files_address_counts_in_its_own_repositorys_deploy(written):
    own = "https://github.com/Ann/attention-fork"
    found = site_address.addresses(FORK, site="https://book.org", repository=written)
    assert found == ("https://book.org", written or own)


def test_a_fork_uses_none_of_the_originals_addresses():
    found = site_address.addresses(FORK, "https://book.org", "https://github.com/o/r")
    assert found == (
        "https://ann.github.io/attention-fork",
        f"https://github.com/{SETTINGS['fork'][2]}",
    )


def test_no_pages_address_is_made_up_for_another_server():
    other = FORK | {"GITHUB_SERVER_URL": "https://git.example.org"}
    assert site_address.addresses(other) == ("", "https://git.example.org/Ann/attention-fork")


@pytest.mark.parametrize(
    ("site", "domain"),
    [
        ("", ""),
        ("https://ann.github.io/attention-fork", ""),
        ("https://ann.github.io", ""),
        ("https://book.example.org", "book.example.org"),
        ("https://example.org/book", ""),  # of a user's site, which has the file itself
    ],
)
def test_a_domain_of_its_own_is_told_to_github_pages(site, domain):
    assert build.own_domain(site) == domain


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


ONE = (
    HEAD
    + """{ref}`next <ch-two>`, {doc}`other`, {cite:t}`smith2020`.

```{code-cell} python
1
```
"""
)
TWO = HEAD.replace("# One", "(ch-two)=\n# Two")
ENTRY = "@book{smith2020, author={Ann Smith}, title={T}, year={2020}, publisher={P}}"


@pytest.mark.parametrize("setting", ["unset", "fork", "given"])
def test_a_built_book_links_to_its_own_addresses_only(setting, tmp_path):
    environ, site, repository = SETTINGS[setting]
    book(tmp_path, one=ONE, two=TWO)
    source, out = tmp_path / "source", tmp_path / "out"
    (source / "conf.py").write_text(CONFIG.format(ext=str(ROOT / "book" / "_ext")))
    (source / "r.bib").write_text(ENTRY)
    with (source / "other.md").open("a") as other:
        other.write("```{bibliography}\n```\n")
    assert sphinx(tmp_path, "html", "ipynb", **environ) == {"html": "", "ipynb": ""}
    page = (out / "html" / "one.html").read_text("utf-8")
    assert 'href="notebooks/one.ipynb"' in page
    colab = re.findall(r"https://colab\.research\.google\.com/[^\"]*", page)
    if repository:
        start = "https://colab.research.google.com/github"
        assert colab == [f"{start}/{repository}/blob/gh-pages/notebooks/one.ipynb"]
    else:
        assert colab == [] and "github.com" not in page and "github.io" not in page

    made = nbformat.read(out / "ipynb" / "one.ipynb", as_version=4)
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
    pages = list((ROOT / "_site" / "book").glob("*.html"))
    assert pages, "there is no built book in _site: run `make book`"
    for page in pages:
        name = Path(page).stem
        colab = notebooks.colab_address(repository, name)
        if not repository:
            assert "colab.research.google.com" not in page.read_text("utf-8"), page
        elif (ROOT / "_site" / "notebooks" / f"{name}.ipynb").exists():
            assert colab in page.read_text("utf-8"), page

"""The page of the package names every public name once, with its docstring and its examples."""

import functools
import inspect
import re
import sys
from html import unescape

import pytest
from conftest import ROOT, SITE

import attention
from attention import widgets

sys.path.insert(0, str(ROOT / "book" / "_ext"))
import api  # noqa: E402
from site_browser import html  # noqa: E402
from test_prose import CHAPTERS  # noqa: E402

NOT_IN_CODE = {"BlockConfig", "ModelConfig", "PronounTask", "History", "Table", "Text"}


@functools.cache
def raw(page):
    """A page as text: to read all chapters as trees takes a minute."""
    return (SITE / "book" / f"{page}.html").read_text("utf-8")


@pytest.fixture(scope="module")
def entries():
    page = html("book/api.html")
    return {tag["id"].removeprefix("api-"): tag.parent for tag in page.select("dt[id^=api-]")}


def test_the_page_lists_the_public_names_and_no_others(entries):
    top = [name for name in entries if "." not in name]
    assert sorted(top) == sorted({*attention.__all__, *api.EXPLORERS})
    assert {*api.EXPLORERS} == {*widgets.__all__} - {"Explorer", "static_module"}


def test_an_entry_tells_what_the_docstring_tells(entries):
    for name, value in (api.PUBLIC | api.EXPLORERS).items():
        if not callable(value):
            assert repr(value)[:20] in entries[name].get_text()
            continue
        docstring = inspect.getdoc(value)
        assert docstring, f"{name} has no docstring"
        shown = re.sub(r"\W", "", entries[name].get_text())
        first = re.sub(r"\W|_", "", docstring.split("\n\n")[0].split("*")[0])
        assert first[:60] in shown.replace("_", ""), name
        examples = sum(block.get_text().count(">>>") for block in entries[name].select("pre"))
        assert examples >= docstring.count(">>>"), name


def test_every_function_has_an_example():
    for name, value in api.PUBLIC.items():
        if callable(value) and name not in NOT_IN_CODE:
            assert ">>>" in inspect.getdoc(value), f"{name} has no example"


def test_a_name_leads_to_the_section_where_it_is_first_met(entries):
    found = {}
    for name in [*api.PUBLIC, *api.EXPLORERS]:
        if link := entries[name].select_one(".first-met a"):
            page, _, anchor = link["href"].partition("#")
            assert f'id="{anchor}"' in raw(page.removesuffix(".html")), link["href"]
            found[name] = page.removesuffix(".html")
    met = set()
    for chapter in CHAPTERS:
        blocks = re.findall(r"<pre[^>]*>(.*?)</pre>", raw(chapter), flags=re.S)
        code = [unescape(re.sub(r"<[^>]+>", "", block)) for block in blocks]
        new = set().union(*map(api.uses, code)) - met
        met |= new
        later = {name for name in new if CHAPTERS.index(found[name]) > CHAPTERS.index(chapter)}
        assert not later, f"{later} are met in {chapter} already"
    assert set(api.EXPLORERS) - {"Journey", "Question"} <= set(found)  # no chapter shows their code
    assert len(found) > 0.8 * len(api.PUBLIC)


def test_the_page_is_light(entries):
    assert len(re.findall(r"<[a-z]", raw("api"))) < 13_000


def test_what_code_uses():
    code = (
        "from attention import (\n    entropy,\n)\nx = softmax(s)\ny = F.attention(s)\nFEATURES[0]"
    )
    assert api.uses(code) == {"softmax", "FEATURES"}
    assert api.uses("import attention\nw = Heads()\nentropy = 3") == {"Heads"}


def test_signatures_are_written_without_modules():
    assert api.signature(attention.causal_mask) == (
        "(n_q: int, n_k: int | None = None, *, device: torch.device | str | None = None)"
    )
    assert api.signature(attention.FEATURES) == ""
    every = "".join(map(api.signature, api.PUBLIC.values()))
    assert "Tensor" in every and not re.search(r"torch\.[A-Z]|collections|typing", every)


def test_a_docstring_becomes_paragraphs_links_and_examples():
    parts = api.told("Say ``x``, *Title* and `softmax`.\n\n>>> f()\n1\n<BLANKLINE>\n2\n\n>>> g()\n")
    assert [part.tagname for part in parts] == ["paragraph", "literal_block"]
    assert [child.tagname for child in parts[0]] == [
        "#text", "literal", "#text", "emphasis", "#text", "reference", "#text",
    ]  # fmt: skip
    assert parts[1].astext() == ">>> f()\n1\n\n2\n>>> g()"

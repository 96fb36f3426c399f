"""The page "What is checked" tells of the tests as they are; `make checked` counts them anew."""

import json
import re
import sys
from collections import Counter

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import checked  # noqa: E402

PAGE = (ROOT / "book" / "checked.md").read_text("utf-8")


@pytest.fixture
def record():
    return json.loads(checked.RECORD.read_text("utf-8"))


def drifted(recorded: int, now: int) -> bool:
    """More than a tenth away, and by more than a handful."""
    return abs(recorded - now) > max(5, now / 10)


def test_the_numbers_of_the_tests_are_those_of_this_run(request, record):
    """Whatever is collected here: a whole run, or the files that were named."""
    if any("::" in argument for argument in request.config.args):
        pytest.skip("a part of a file says nothing about its number of tests")
    found = checked.tests(request.config.collected)
    files = {file for file in request.config.collected}
    whole = {checked.group(file) for file in every_file()} - {
        checked.group(file) for file in every_file() - files
    }
    for name in whole:
        assert not drifted(record["tests"][name], found[name]), f"{name}: run `make checked`"
    if whole == set(checked.GROUPS):
        assert not drifted(record["tests"]["all"], found["all"]), "run `make checked`"


def every_file() -> set[str]:
    return {f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py")} | {
        str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py")
        if re.search(r"^\s*>>> ", path.read_text("utf-8"), flags=re.M)
    }  # fmt: skip


def test_the_numbers_of_the_pages_are_those_of_the_pages(record):
    now = checked.written()
    assert record["written"].keys() == now.keys()
    far = {name: (record["written"][name], now[name]) for name in now
           if drifted(record["written"][name], now[name])}  # fmt: skip
    assert not far, f"run `make checked`: {far}"


def test_every_number_of_the_page_is_a_counted_one(record):
    prose = re.sub(r"\A---.*?^---$", "", PAGE, flags=re.S | re.M)
    prose = re.sub(r"\{checked\}`[\w.]+`", "", prose)
    assert re.findall(r"\d[\d,.]*", prose) == ["3.510", "1,", "320"]  # an example; a sum; a phone
    keys = re.findall(r"\{checked\}`([\w.]+)`", PAGE)
    assert {key.partition(".")[2] for key in keys if key.startswith("tests.")} == {
        *checked.GROUPS, "all"
    }  # fmt: skip
    for key in keys:
        kind, _, name = key.partition(".")
        assert record[kind][name] if name else record[kind], key


def test_every_test_has_its_group():
    assert checked.group("tests/test_oracle.py") == "oracle"
    assert checked.group("src/attention/masks.py") == "examples"
    assert checked.group("tests/test_something_new.py") == "package"
    assert checked.tests(Counter({"tests/test_site.py": 3, "tests/test_data.py": 2}))["all"] == 5


def test_sentences_are_counted_where_they_are_looked_for():
    source = "def says(x):\n    printed('a', x)\n\nsays(1); says(2); pages.printed('b'); print(3)\n"
    assert checked.sentences(source) == 4


def test_a_number_that_has_fallen_behind_is_seen():
    assert drifted(100, 120) and drifted(100, 80) and drifted(0, 6)
    assert not drifted(100, 108) and not drifted(3, 6)

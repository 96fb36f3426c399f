"""A book without answers holds no solution anywhere, and its checks still tell right from wrong."""

import importlib
import json
import shutil
import sys
from pathlib import Path

import pytest
import solution_search
import torch
from question_book import HEAD, book, sphinx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "scripts")]

import answers  # noqa: E402
import build as build_book  # noqa: E402
import without_answers  # noqa: E402

from attention.checks import _recorded  # noqa: E402
from attention.checks._base import NotYet  # noqa: E402
from grading import book as grading_book  # noqa: E402

CHAPTER = (
    HEAD
    + """
```{code-cell} python
import matplotlib.pyplot as plt
from attention.checks import motivation as check
from attention.figures import qkv as figures
```

```{exercise-start} Layers
:label: ex-layers
:class: star-1 minutes-5
```
How many layers?

```{dropdown} Hint
Add up what each of the layers reaches.
```
```{exercise-end}
```

```{solution-start} ex-layers
:label: sol-layers
:class: dropdown
```
Count until the accumulated reach is enough, zealously.

```{code-cell} python
def layers_needed(distance, kernel, causal=False, dilated=False):
    ### BEGIN SOLUTION
    step = kernel - 1 if causal else (kernel - 1) // 2
    layers = reach = 0
    while reach < distance:
        reach += step * (2**layers if dilated else 1)
        layers += 1
    return layers
    ### END SOLUTION
```
```{code-cell} python
check.layers_needed(layers_needed)
```
```{solution-end}
```

```{exercise-start} By hand
:label: ex-hand
:class: star-2 minutes-5
```
Draw it.
```{exercise-end}
```

```{solution-start} ex-hand
:label: sol-hand
:class: dropdown
```
The boundary is perpendicular, obviously quizzical: $q_1 k_{11} + q_2 k_{12} = 0.57735026$.

```{code-cell} python
---
mystnb:
  image:
    alt: "A drawing with a shaded xylophone"
---
figures.half_plane();
```
```{solution-end}
```
"""
)
PACKAGE = ROOT / "src" / "attention"


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> dict[str, Path]:
    """The small book's site without answers, as build.py assembles it."""
    folder = book(tmp_path_factory.mktemp("small"), chapter=CHAPTER)
    with (folder / "source" / "conf.py").open("a") as conf:
        conf.write('extensions += ["sphinx_design"]\n')
    sphinx(folder, "html", "ipynb", ANSWERS="0", HINTS="0")
    site, notebooks = folder / "out" / "html", folder / "out" / "ipynb"
    ignore = shutil.ignore_patterns("*.json")
    shutil.copytree(notebooks, site / "notebooks", ignore=ignore)
    without_answers.package(PACKAGE, folder / "package", notebooks)
    wheel(folder / "package", site)
    return {"site": site, "exercises": notebooks / "exercises.json", "source": folder / "source"}


def wheel(package: Path, site: Path) -> None:
    made = shutil.make_archive(str(site / "wheels" / "book"), "zip", package)
    Path(made).rename(site / "wheels" / "book.whl")


def found(small, site: Path) -> list[str]:
    leaks, count = solution_search.search(small["exercises"], site, small["source"], PACKAGE)
    assert count >= 6, "the solutions were not read"
    return leaks


def test_nothing_of_a_solution_is_in_a_book_without_answers(small):
    assert found(small, small["site"]) == []
    text = "".join(t for _, t in solution_search.files(small["site"]))
    for trace in ("xylophone", "Solution to", "half_plane", "Add up what each", "BEGIN SOLUTION"):
        assert trace not in text, trace
    assert not list((small["site"] / "_images").glob("*"))


def test_the_search_finds_the_references_of_the_whole_package(small, tmp_path):
    wheel(PACKAGE, tmp_path)
    leaks = found(small, tmp_path)
    assert any("book.whl:checks/motivation.py holds of ex-layers" in leak for leak in leaks)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("chapter.html", "Draw it.", "The boundary is <b>perpendicular</b>, obviously quizzical:"),
        ("notebooks/chapter.ipynb", "Draw it.", "It is $q_1k_{11}+q_2k_{12} = 0.57735026$"),
        ("notebooks/chapter.ipynb", "check.l", "reach += step*(2**layers if dilated else 1) #\\n"),
        ("searchindex.js", '"terms": {', '"terms": {"quizzic": 0, '),
    ],
)  # fmt: skip
def test_a_single_solution_left_in_fails(small, tmp_path, file, old, new):
    site = tmp_path / "site"
    shutil.copytree(small["site"], site)
    text = (site / file).read_text("utf-8")
    assert old in text
    (site / file).write_text(text.replace(old, new if old in new else new + old), "utf-8")
    leaks = found(small, site)
    assert {leak.split(" ")[0] for leak in leaks} == {file}


def test_the_rest_is_as_before(small):
    """The teacher's file has all; the notebook has stubs and checks."""
    known = json.loads(small["exercises"].read_text("utf-8"))["chapters"]["chapter"]["exercises"]
    assert answers.BEGIN in known[0]["answer"] and "quizzical" in known[1]["solution"]
    notebook = (small["site"] / "notebooks" / "chapter.ipynb").read_text("utf-8")
    assert "write your answer here: Layers" in notebook and "check.layers_needed" in notebook
    page = (small["site"] / "chapter.html").read_text("utf-8")
    assert "By hand" in page and "Draw it." in page and "Add up" not in page


def test_a_setting_that_is_none_is_refused_in_a_sentence(monkeypatch, capsys):
    assert answers.shown("ANSWERS", {}) and answers.shown("ANSWERS", {"ANSWERS": "1"})
    assert not answers.shown("HINTS", {"HINTS": "0"})
    with pytest.raises(ValueError, match="ANSWERS must be 0 .* got no"):
        answers.shown("ANSWERS", {"ANSWERS": "no"})
    monkeypatch.setenv("ANSWERS", "none")
    monkeypatch.setattr(sys, "argv", ["build.py"])
    assert build_book.main() == 1 and "ANSWERS must be 0" in capsys.readouterr().err


# recorded checks


@pytest.fixture(scope="module")
def records() -> dict[str, tuple]:
    """Every recorded check of the built book, with the book's own answer."""
    known = grading_book.read(ROOT / "_build" / "ipynb" / "exercises.json")
    made = {}
    for chapter in known.chapters.values():
        module = importlib.import_module(f"attention.checks.{chapter.module}")
        for exercise in (e for e in chapter.exercises if e.check):
            name = exercise.called[0]
            if name not in without_answers.KEPT.get(chapter.module, ()):
                answer = grading_book.answer(chapter, exercise)
                made[f"{chapter.module}.{name}"] = (
                    without_answers.record(module, name, answer), answer,
                )  # fmt: skip
    return made


def cast(result):
    if isinstance(result, list | tuple):
        return type(result)(map(cast, result))
    floats = isinstance(result, torch.Tensor) and result.is_floating_point()
    return result.double() if floats else result


def wrong(result):
    """A result of the same kind that is not right."""
    if isinstance(result, list | tuple) and result and not isinstance(result[0], int | str):
        return type(result)([*result[:-1], wrong(result[-1])])
    if isinstance(result, torch.Tensor):
        return ~result if result.dtype == torch.bool else result + 1
    return result + 1 if isinstance(result, int | float) else [*result, 7]


def test_recorded_checks_take_right_answers_and_no_wrong_ones(records, monkeypatch, capsys):
    known = {name: json.loads(json.dumps(record)) for name, (record, _) in records.items()}
    monkeypatch.setattr(_recorded, "_records", lambda: known)
    assert len(known) > 30
    for name, (_, answer) in records.items():
        _recorded.play(name, lambda *a, answer=answer, **k: cast(answer(*a, **k)))
        assert capsys.readouterr().out.startswith("Right: "), name
        for other in (wrong, lambda result: None, lambda result: "a"):
            with pytest.raises(NotYet):
                _recorded.play(name, lambda *a, f=answer, w=other, **k: w(f(*a, **k)))


def test_a_recorded_check_names_the_usual_mistakes(records, monkeypatch):
    monkeypatch.setattr(_recorded, "_records", lambda: {n: r for n, (r, _) in records.items()})
    with pytest.raises(NotYet, match="the mask has no effect: padding gets weight"):
        _recorded.play(
            "relatives.cross_attention",
            lambda x, m, q, k, v, real: (
                (w := torch.softmax(x @ q @ (m @ k).mT / k.shape[1] ** 0.5, -1)) @ (m @ v), w,
            ),
        )  # fmt: skip
    with pytest.raises(NotYet, match="you call the finished causal_mask"):
        from attention.masks import causal_mask

        _recorded.play("masking.causal", causal_mask)

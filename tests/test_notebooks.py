"""The notebooks that the build wrote: valid, readable, their links whole, their set-up modest.

The last tests run them in an environment like Colab's, made once under .venv-colab.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import nbformat
import pytest
from environments_of_tests import colab_environment, pinned

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "_build" / "ipynb"
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "scripts")]

import answers  # noqa: E402
import notebooks  # noqa: E402

CHAPTERS = re.findall(r"file: (book/\S+)", (ROOT / "_toc.yml").read_text("utf-8"))
NAMES = [
    Path(page).name
    for page in CHAPTERS
    if "{code-cell}" in (ROOT / f"{page}.md").read_text("utf-8")
]


def read(name: str):
    path = BUILT / "book" / f"{name}.ipynb"
    assert path.exists(), f"{path} is missing: build the book first (make book)"
    return nbformat.read(path, as_version=4)


def ran_by_the_build(name: str) -> set[str]:
    """The sources of a chapter's code cells, all executed with the versions of these tests."""
    executed = nbformat.read(ROOT / f"_build/jupyter_execute/book/{name}.ipynb", as_version=4)
    return {c.source for c in executed.cells if c.cell_type == "code"}


def prose(cells) -> str:
    """The Markdown cells without code, inline or fenced, and without mathematics."""
    text = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    text = re.sub(r"^([> ]*)(`{3,})\w*\n.*?^\1\2$", "", text, flags=re.S | re.M)
    text = re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "\0", text)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.S)
    return re.sub(r"(?<!\\)\$[^$\n]*(?<!\\)\$", "", text)


UNRENDERED = {
    "a role": r"\{[a-z][\w:+.-]*\}\0",
    "a directive's fence": r"^[> ]*(`{3,}|~{3,}|:{3,})\s*\{",
    "a colon fence": r":::",
    "a target": r"^\([\w-]+\)=\s*$",
    "a comment": r"^% ",
    "an option of a directive": r"^:(label|class|name|tags|width|alt):",
    "a footnote's mark": r"\[\^",
    "a substitution": r"\{\{",
    "exercise markers": r"### (BEGIN|END)",
}


def unrendered(text: str) -> list[str]:
    return [what for what, mark in UNRENDERED.items() if re.search(mark, text, flags=re.M)]


def test_there_is_one_for_every_chapter_with_code_and_no_other():
    assert NAMES
    assert sorted(p.stem for p in BUILT.rglob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_hint_stands_in_its_exercise(name):
    """Elsewhere the course, which takes the exercises, would leave it out."""
    text = (ROOT / "book" / f"{name}.md").read_text("utf-8")
    beside = re.sub(r"\{exercise-start\}.*?\{exercise-end\}", "", text, flags=re.S)
    assert "{dropdown} Hint" not in beside


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_valid_and_keeps_nothing_it_should_not(name):
    made = read(name)
    nbformat.validate(made)
    assert set(made.metadata) == {"kernelspec", "colab"}
    assert made.metadata.kernelspec.name == "python3"
    ids = [cell.id for cell in made.cells]
    assert len(set(ids)) == len(ids)
    assert "widget-view" not in json.dumps(made) and "widget-state" not in json.dumps(made)
    for cell in made.cells:
        if cell.cell_type != "code":
            continue
        assert "raises-exception" not in cell.metadata.get("tags", ()), (
            f"Colab stops at a cell that raises:\n{cell.source}"
        )
        for (
            output
        ) in cell.outputs:  # only what an explorer looks like, a question's options, figure
            if "# @title Run this cell to answer" in cell.source:
                shown = output.data.get("text/markdown")
                assert (
                    "<svg" in output.data["image/svg+xml"]
                    if shown is None
                    else (shown == output.data["text/plain"])
                )
                continue
            assert set(output.data) == {"image/png", "text/plain"}
            assert output.metadata["image/png"]["alt"] == output.data["text/plain"]


@pytest.mark.parametrize("name", NAMES)
def test_notebook_has_no_unrendered_markup(name):
    text = prose(read(name).cells)
    assert not unrendered(text)
    assert text.count("<details>") == text.count("</details>")
    assert all(c.source.strip() for c in read(name).cells)


@pytest.mark.parametrize(
    "text",
    ["see {ref}`ch-qkv`", "```{note}\nx\n```", "> ```{math}", ":::{tip}", "(ch-x)=", "x[^1]"],
)
def test_unrendered_markup_would_be_seen(text):
    assert unrendered(prose([nbformat.v4.new_markdown_cell(text)]))


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    anchors = {
        other: set(re.findall(r'<a id="([^"]+)">', "\n".join(c.source for c in read(other).cells)))
        for other in NAMES
    }
    source = "\n".join(c.source for c in read(name).cells if c.cell_type == "markdown")
    links = re.findall(r"\]\(([^)\s]+)\)", source) + re.findall(r'href="([^"]+)"', source)
    assert links
    for link in links:
        if link.startswith(("http://", "https://")):
            assert re.fullmatch(r"https?://[\w.-]+\.\w+(/\S*)?", link)
            continue
        page, _, anchor = link.partition("#")
        other = Path(page).stem if page else name
        assert other in NAMES, f"{link}: no such notebook"
        assert not anchor or anchor in anchors[other], f"{link}: no such place"


@pytest.mark.parametrize("name", NAMES)
def test_first_code_cell_sets_up_and_the_others_are_those_that_the_build_ran(name):
    code = [c for c in read(name).cells if c.cell_type == "code"]
    first = code[0].source
    assert first.startswith("# @title Set up: ") and first.endswith("\nprepare()")
    assert not re.search(r"\{(version|site|trains)\}", first)
    ran = ran_by_the_build(name)
    ran |= {answers.gentle(source) for source in ran}
    exercises = json.loads((BUILT / "exercises.json").read_text("utf-8"))["chapters"][name]
    ran |= {answers.stub(e["answer"], e["title"]) for e in exercises["exercises"] if "answer" in e}
    asks = [c.source for c in code if "\nQuestion(" in c.source]  # test_question_widget.py
    assert [c.source for c in code[1:] if c.source not in [*ran, *asks]] == []
    assert not any("myst_nb" in c.source for c in code)


# the set-up cell


class Pip:
    """Stands for pip: notes what it was asked, and installs or fails as told."""

    def __init__(self, monkeypatch, version: str | None, succeeds: bool = True):
        self.version, self.succeeds, self.calls = version, succeeds, []
        monkeypatch.setattr(importlib.metadata, "version", self.installed)
        monkeypatch.setattr(subprocess, "run", self.run)

    def installed(self, name):
        assert name == "attention-book"
        if self.version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return self.version

    def run(self, command, **kwargs):
        self.calls.append(command)
        if not self.succeeds:
            return types.SimpleNamespace(returncode=1, stderr="x\nERROR: no connection\n")
        self.version = "9.9.9"
        return types.SimpleNamespace(returncode=0, stderr="")


def run_setup(site: str = "", trains: bool = False) -> dict:
    space: dict = {"__name__": "__main__"}
    exec(notebooks.setup_cell("9.9.9", site, trains), space)
    return space


def test_setup_installs_nothing_when_the_version_is_there(monkeypatch, capsys):
    pip = Pip(monkeypatch, "9.9.9")
    run_setup("https://example.org/book")
    assert pip.calls == []
    said = capsys.readouterr().out
    assert "Computing on" in said and "attention 9.9.9, torch " in said and "Python 3." in said


@pytest.mark.parametrize("before", [None, "9.9.8"])
def test_setup_installs_the_wheel_of_its_own_site_and_version(monkeypatch, before):
    pip = Pip(monkeypatch, before)
    run_setup("https://example.org/book")
    wheel = "https://example.org/book/wheels/attention_book-9.9.9-py3-none-any.whl"
    assert [c[1:] for c in pip.calls] == [["-m", "pip", "install", "--quiet", "--no-deps", wheel]]
    assert pip.calls[0][0] == sys.executable


def test_setup_takes_a_wheel_that_lies_beside_it(monkeypatch, tmp_path):
    pip = Pip(monkeypatch, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "attention_book-9.9.9-py3-none-any.whl").touch()
    run_setup("https://example.org/book")
    assert pip.calls[0][-1] == "attention_book-9.9.9-py3-none-any.whl"


def test_setup_says_what_to_do_without_site_and_wheel(monkeypatch, tmp_path):
    pip = Pip(monkeypatch, None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match="Put attention_book-9.9.9-py3-none-any.whl beside it"):
        run_setup()
    assert pip.calls == []


def test_setup_says_what_to_do_when_pip_fails(monkeypatch):
    Pip(monkeypatch, None, succeeds=False)
    with pytest.raises(Exception, match="failed.*no connection.*run this cell again") as caught:
        run_setup("https://example.org/book")
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_setup_names_what_is_missing(monkeypatch):
    Pip(monkeypatch, "9.9.9")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "anywidget" else find(name)
    )
    with pytest.raises(Exception, match="lacks anywidget. Run %pip install anywidget"):
        run_setup()


def test_setup_asks_colab_for_its_widget_manager(monkeypatch):
    Pip(monkeypatch, "9.9.9")
    asked = []
    output = types.SimpleNamespace(enable_custom_widget_manager=lambda: asked.append(True))
    monkeypatch.setitem(sys.modules, "google", types.ModuleType("google"))
    monkeypatch.setitem(sys.modules, "google.colab", types.SimpleNamespace(output=output))
    run_setup()
    assert asked == [True]


@pytest.mark.parametrize(("trains", "warned"), [(True, True), (False, False)])
def test_setup_warns_of_a_missing_gpu_where_something_is_trained(
    monkeypatch, capsys, trains, warned
):
    Pip(monkeypatch, "9.9.9")
    monkeypatch.setenv("ATTENTION_DEVICE", "cpu")
    run_setup(trains=trains)
    assert ("a GPU would help, and it is off" in capsys.readouterr().out.replace("\n", " ")) is (
        warned
    )


# a small book with every construct

PAGE = r"""---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
(ch-one)=
# One *way*

Rows $x_i$, `a|b`, 2 * 3 < 4, a_b, {ref}`next <ch-two>`, {eq}`eq-two`, {doc}`other`.[^n]
A {cite:t}`smith2020` and {cite:p}`smith2020`.

[^n]: The note.

% a comment

<!-- another -->

```{math}
:label: eq-one
a = b
```

(sec)=
## Two $d_k$

```{admonition} A common mistake: $\sqrt{d}$
:class: mistake
It is

$$
a \\
b
$$
```

```{dropdown} Answer with *stress*
1. one
2. two
   - nested
```

| $\|q\|$ | b |
|:--|--:|
| `x\|y` | 1 |

```{exercise} Title
:label: ex-one
:class: star-2 minutes-10
Do {ref}`sec`.
```

```{solution} ex-one
:label: sol-one
:class: dropdown
Done.
```

```{exercise-start} In code
:label: ex-code
:class: star-1 minutes-5 points-3
```
Write it.
```{exercise-end}
```

```{solution-start} ex-code
:label: sol-code
:class: dropdown
```
```{code-cell} python
def f(x):
    ### BEGIN SOLUTION
    return x + 1
    ### END SOLUTION
```
```{code-cell} python
check.f(f)
```
Remark.
```{solution-end}
```

```{code-cell} python
:tags: [remove-cell]
secret = 1
```

```{code-cell} python
:tags: [hide-input]
shown = 1
```

```{code-cell} python
plain = 2
```

```{code-cell} python
:tags: [setup]
ready = 3
```
"""
TWO = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
(ch-two)=
# Two

Back to {ref}`one <ch-one>`, {ref}`ex-one`.

```{math}
:label: eq-two
c = d
```

```{code-cell} python
1
```
"""
OTHER = """# Other

```{toctree}
one
two
```

```{bibliography}
```
"""
CONFIG = """
import sys
sys.path.insert(0, {ext!r})
extensions = ["myst_nb", "sphinx_design", "sphinx_exercise", "sphinxcontrib.bibtex",
              "site_address", "exercises", "notebooks"]
html_title = "A book"
html_theme = "sphinx_book_theme"
root_doc = "other"
numfig = True
nb_execution_mode = "off"
myst_enable_extensions = ["amsmath", "dollarmath"]
bibtex_bibfiles = ["r.bib"]
bibtex_reference_style = "author_year"
"""


def small_book(folder: Path, builder: str, **env: str) -> Path:
    """Build the small book; return the folder of what was built."""
    source = folder / "source"
    source.mkdir(exist_ok=True)
    entry = "@book{smith2020, author={Ann Smith}, title={T}, year={2020}, publisher={P}}"
    config = CONFIG.format(ext=str(ROOT / "book" / "_ext"))
    for name, text in {
        "one.md": PAGE, "two.md": TWO, "other.md": OTHER, "conf.py": config, "r.bib": entry,
    }.items():  # fmt: skip
        if not (source / name).exists():
            (source / name).write_text(text)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("ATTENTION_", "GITHUB_"))}
    out = folder / "out" / builder
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-b", builder, "-d", folder / "trees"]
        + [source, out],
        env=plain | env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    return nbformat.read(small_book(folder, "ipynb") / "one.ipynb", as_version=4), folder


def test_constructs_become_plain_markdown(small):
    made, folder = small
    text = "\n\n".join(c.source for c in made.cells if c.cell_type == "markdown")
    assert not unrendered(prose(made.cells))
    for part in [
        "# One *way*",
        "Rows $x_i$, `a|b`, 2 * 3 < 4, a_b, [next](two.ipynb#ch-two), "
        "[(2)](two.ipynb#equation-eq-two), Other.<sup>[1](#n)</sup>",
        " A Smith (2020) and (Smith, 2020).\n",
        "$$\na = b \\tag{1}\n$$",
        '<a id="sec"></a>\n\n## Two $d_k$',
        "> **A common mistake: $\\sqrt{d}$**\n>\n> It is\n>\n> $$a \\\\ b$$",
        "<details>\n<summary>Answer with <em>stress</em></summary>\n\n1. one\n2. two\n",
        "   - nested\n\n</details>",
        "| $\\vert q\\vert $ | b |\n| :-- | --: |\n| `x\\|y` | 1 |",
        "### Exercise 1: Title\n\n★★☆ · about 10 minutes\n\nDo [Two d_k](#sec).",
        "<details>\n<summary>Solution</summary>\n\nDone.\n\n</details>",
        "def f(x):\n    return x + 1\n```\n\nRemark.\n\n</details>",
        "The note.",
    ]:
        assert part in text, f"{part!r} is not in:\n{text}"
    assert "comment" not in text and "another" not in text
    assert '<a id="n"></a><sup>1</sup> The note.' in text


def test_code_becomes_cells(small):
    made, folder = small
    code = [c for c in made.cells if c.cell_type == "code"]
    assert [c.source for c in code[1:]] == [
        'def f(x):\n    raise NotImplementedError("write your answer here: In code")',
        'try:\n    check.f(f)\nexcept AssertionError as hint:\n    print(f"Not yet: {hint}")',
        "shown = 1", "plain = 2", "ready = 3",
    ]  # fmt: skip
    assert code[-3].metadata == {"cellView": "form", "jupyter": {"source_hidden": True}}


def test_exercises_are_noted_for_the_course(small):
    made, folder = small
    book = json.loads((folder / "out" / "ipynb" / "exercises.json").read_text())
    first, second = book["chapters"]["one"]["exercises"]
    assert (first["id"], first["stars"], first["minutes"], first["points"]) == ("ex-one", 2, 10, 2)
    assert "answer" not in first and first["solution"] == "Done."
    assert second["points"] == 3 and second["check"] == "check.f(f)"
    assert second["remarks"] == "Remark."
    # what the exercises need: the first cell, and those tagged setup
    assert book["chapters"]["one"]["code"] == ["shown = 1", "ready = 3"]


def test_writing_again_changes_nothing(small):
    made, folder = small
    path = folder / "out" / "ipynb" / "one.ipynb"
    before = path.read_bytes()
    small_book(folder, "ipynb")
    assert path.read_bytes() == before


def test_a_solution_needs_both_markers():
    with pytest.raises(ValueError, match="must stand between"):
        answers.stub("def f():\n    ### BEGIN SOLUTION\n    return 1", "T")


# in an environment like Colab's


@pytest.fixture(scope="session")
def colab() -> Path:
    """The Python of an environment with Colab's versions, without our package."""
    python = colab_environment()
    subprocess.run([python, "-m", "pip", "uninstall", "-q", "-y", "attention-book"], check=True)
    return python


LIST = (
    "import importlib.metadata as m; print(*{f'{d.name}=={d.version}' for d in m.distributions()})"
)


def frozen(python: Path) -> set[str]:
    """The environment's packages with their versions, in a tenth of the time of `pip list`."""
    done = subprocess.run([python, "-c", LIST], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def wheel() -> Path:
    (found,) = (ROOT / "_build" / "wheels").glob("attention_book-*.whl")
    return found


@pytest.mark.notebook
def test_pip_would_change_nothing_in_colab(colab):
    """Even with dependencies, which the set-up cell leaves out: pip's own report says so."""
    done = subprocess.run(
        [colab, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-", wheel()],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert [item["metadata"]["name"] for item in report["install"]] == ["attention-book"]


def execute(
    python: Path | str, made: nbformat.NotebookNode, folder: Path, **more: str
) -> nbformat.NotebookNode:
    """Run a notebook top to bottom in the environment of that Python."""
    notebook = folder / "made.ipynb"
    nbformat.write(made, notebook)
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": ""} | more
    env.pop("MPLBACKEND", None)
    done = subprocess.run(
        [python, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", "ran", notebook]
        + ["--ExecutePreprocessor.timeout=120"],
        env=env, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    ran = nbformat.read(folder / "ran.ipynb", as_version=4)
    outputs = [o for c in ran.cells if c.cell_type == "code" for o in c.outputs]
    views = sum("widget-view+json" in str(o.get("data", {}).keys()) for o in outputs)
    code = [c.source for c in ran.cells if c.cell_type == "code"]  # a folded solution is text
    assert views == sum("from attention.widgets import" in source for source in code)
    said = "".join(o.text for o in outputs if o.output_type == "stream")
    assert f"torch {pinned('torch')}" in said
    checked = any(c.source.startswith("try:\n    check.") for c in ran.cells)
    assert ("is still the stub" in said) == checked
    return ran


@pytest.mark.notebook
@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs_in_colab(colab, name, tmp_path):
    before = frozen(colab)
    (tmp_path / wheel().name).symlink_to(wheel())
    share = ROOT / ".venv-colab" / "share" / "jupyter"
    ran = execute(colab, read(name), tmp_path, JUPYTER_PATH=str(share), JUPYTER_PREFER_ENV_PATH="1")
    said = [o.get("text", "") for c in ran.cells for o in c.get("outputs", ())]
    assert "is not installed here" not in "".join(said)  # any-model's: Colab has transformers
    after = frozen(colab)
    assert {line.split("==")[0] for line in after - before} <= {"attention-book"}
    assert before <= after


@pytest.mark.notebook
@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs_on_current_versions(name, tmp_path):
    """What is the notebook's own: the build ran the other cells, with the very same versions."""
    made, ran = read(name), ran_by_the_build(name)
    code = [c for c in made.cells if c.cell_type == "code"]
    own = [c for c in code if c.source not in ran]
    assert code[0] in own and code[1] not in own, "first the set-up, then the chapter's imports"
    made.cells = [code[0], code[1], *own[1:]]
    execute(sys.executable, made, tmp_path)

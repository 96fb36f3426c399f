"""The workflows for GitHub, read by actionlint and against their schema; how notebooks are run."""

import re
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import check_workflows  # noqa: E402
import run_notebooks  # noqa: E402

BROKEN = """name: x
on: push
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - run: echo ${{ github.event.pull_request.title }}
  b:
    runs-on: ubuntu-latest
    step: []
"""


def test_all_workflows_are_read():
    """What they are read for is found by `make check`, which is part of `make test`."""
    names = {file.name for file in check_workflows.workflows()}
    assert {"site.yml", "colab.yml", "classroom.yml"} <= names
    make = (ROOT / "Makefile").read_text("utf-8")
    assert "scripts/check_workflows.py" in make.partition("\ncheck:")[2].partition("\n\n")[0]


def test_what_is_wrong_with_one_is_said(tmp_path):
    (tmp_path / "broken.yml").write_text(BROKEN)
    said = check_workflows.findings([tmp_path / "broken.yml"])
    assert any("broken.yml:7: " in line and "untrusted" in line for line in said), said
    assert any("$.jobs.b" in line for line in said), said


def test_the_targets_that_workflows_make_are_there():
    make = (ROOT / "Makefile").read_text("utf-8")
    for file in check_workflows.workflows():
        for targets in re.findall(r"run: make ([a-z ]+)$", file.read_text("utf-8"), re.M):
            assert all(f"\n{target}:" in make for target in targets.split()), targets


def test_a_failing_notebook_is_named_with_its_error(tmp_path, monkeypatch, capsys):
    for name, code in (("good", "open('beside.txt').read()"), ("poor", "1 / 0")):
        cells = [nbformat.v4.new_code_cell(code)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / f"{name}.ipynb")
    (tmp_path / "beside.txt").touch()
    monkeypatch.setattr(sys, "argv", ["run_notebooks.py", str(tmp_path)])
    assert run_notebooks.main() == 1
    said = capsys.readouterr().out
    assert "good.ipynb ... ran" in said and "ZeroDivisionError" in said
    assert said.endswith("Failed: poor.ipynb\n")


def test_a_folder_without_notebooks_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run_notebooks.py", str(tmp_path)])
    assert run_notebooks.main() == 1
    assert "run `make notebooks` first" in capsys.readouterr().err

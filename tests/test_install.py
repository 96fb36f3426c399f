"""The environment: made by the right Python, whole or made afresh, of pins that 3.11.0 takes."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import install  # noqa: E402

PINS = [
    Requirement(line)
    for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    if "==" in line
]


@pytest.mark.parametrize("pin", PINS, ids=str)
def test_a_pin_runs_on_the_oldest_python_that_is_promised(pin):
    about = importlib.metadata.metadata(pin.name)
    assert pin.specifier.contains(about["Version"].partition("+")[0]), "run make install"
    promised = SpecifierSet(about.get("Requires-Python") or "")
    assert promised.contains("3.11.0"), f"{pin} needs Python {promised}"


@pytest.mark.parametrize("page", ["README.md", "book/teach.md", "pyproject.toml"])
def test_the_promise_is_the_same_everywhere(page):
    assert re.search(r"Python 3\.11 or newer|>=3\.11\"", (ROOT / page).read_text("utf-8"))
    assert install.WANTED == (3, 11)


def test_a_python_too_old_is_said_in_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(install.sys, "version_info", (3, 9, 18))
    assert install.main() == 1
    assert "Python 3.11 or newer is needed; got 3.9.18" in capsys.readouterr().err


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """A checkout in which making an environment and running pip are noted, not done."""
    done = []
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "VENV", tmp_path / ".venv")
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).write_text("")

    def create(folder, **options):
        assert options["clear"] and not folder.is_symlink()
        done.append("create")
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "python").touch()
        (folder / "installed").unlink(missing_ok=True)

    def run(command, **options):
        done.append("pip")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(install.venv, "create", create)
    monkeypatch.setattr(install.subprocess, "run", run)

    def main():
        done.clear()
        assert install.main() == 0
        return list(done)

    return main


def test_an_environment_is_made_once_and_follows_the_pins(steps, tmp_path):
    assert steps() == ["create", "pip"]
    assert steps() == []
    (tmp_path / "requirements.txt").write_text("another==1\n")
    assert steps() == ["pip"]
    assert steps() == []


def test_a_half_made_environment_is_made_afresh(steps, tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()  # without pip, and without the mark
    assert steps() == ["create", "pip"]


def test_a_moved_checkout_gets_an_environment_of_its_own(steps, tmp_path, monkeypatch):
    steps()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".venv").rename(tmp_path / "elsewhere" / ".venv")
    monkeypatch.setattr(install, "ROOT", tmp_path / "elsewhere")
    monkeypatch.setattr(install, "VENV", tmp_path / "elsewhere" / ".venv")
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / "elsewhere" / name).write_text("")
    assert steps() == ["create", "pip"]


def test_a_link_to_another_environment_leaves_that_one_alone(steps, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").touch()
    (tmp_path / ".venv").symlink_to(tmp_path / "other")
    assert steps() == ["create", "pip"]
    assert (tmp_path / "other" / "mine").exists()


def test_a_python_without_ensurepip_is_said_in_a_sentence(steps, monkeypatch, capsys):
    def create(folder, **options):
        raise subprocess.CalledProcessError(1, "ensurepip")

    monkeypatch.setattr(install.venv, "create", create)
    assert install.main() == 1
    assert "apt install python3-venv" in capsys.readouterr().err

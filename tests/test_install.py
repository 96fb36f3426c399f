"""The environment: made by the right Python, whole or made afresh, of pins that 3.11.0 takes."""

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import install  # noqa: E402
import pins  # noqa: E402


def named(text: str) -> dict[str, Requirement]:
    """The pins of a file, compiled or not, by their canonical names."""
    found = [Requirement(e.partition("\n")[0].removesuffix(" \\")) for e in pins.entries(text)]
    assert len({canonicalize_name(r.name) for r in found}) == len(found), "a pin stands twice"
    return {canonicalize_name(r.name): r for r in found}


NAMED = named((ROOT / "requirements.in").read_text("utf-8"))
COMPILED = (ROOT / "requirements.txt").read_text("utf-8")
CUDA = (ROOT / "requirements-cuda.txt").read_text("utf-8")
PINS = named(COMPILED)
HERE = {name: pin for name, pin in PINS.items() if not pin.marker or pin.marker.evaluate()}


@pytest.mark.parametrize("pin", HERE.values(), ids=str)
def test_a_pin_runs_on_the_oldest_python_that_is_promised(pin):
    about = importlib.metadata.metadata(pin.name)
    assert pin.specifier.contains(about["Version"].partition("+")[0]), "run make install"
    promised = SpecifierSet(about.get("Requires-Python") or "")
    assert promised.contains("3.11.0"), f"{pin} needs Python {promised}"


def test_both_files_hold_the_same_pins():
    for name, pin in NAMED.items():
        assert str(PINS[name].specifier) == str(pin.specifier), f"{pin}: run make pins"


def test_the_compiled_pins_are_what_the_named_ones_bring_along_and_nothing_else():
    wanted, todo = set(), [(name, "") for name in NAMED]
    while todo:
        name, extra = todo.pop()
        if (name, extra) not in wanted:
            wanted.add((name, extra))
            for line in importlib.metadata.requires(name) or ():
                need = Requirement(line)
                if not need.marker or need.marker.evaluate({"extra": extra}):
                    key = canonicalize_name(need.name)
                    todo += [(key, e) for e in ("", *need.extras)]
    assert {name for name, _ in wanted} == set(HERE), "run make pins"


def test_every_pin_has_hashes_and_no_host():
    cpu = (ROOT / "requirements-cpu.txt").read_text("utf-8")
    for text in (COMPILED, CUDA, cpu):
        for entry in pins.entries(text):
            assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry
        assert not re.search(r"://|index-url|find-links|\bfile:", text)
        assert text == text.partition("\n")[0] + "\n" + "".join(pins.entries(text))


def test_the_package_asks_for_nothing_that_is_not_named():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for line in about["project"]["dependencies"]:
        need = Requirement(line)
        (pin,) = NAMED[need.name].specifier
        assert need.specifier.contains(pin.version)


def test_a_cuda_build_gets_what_it_brings_along_and_no_other(steps, monkeypatch):
    assert pins.CUDA.match("nvidia-cublas==13") and not pins.CUDA.match("torch==2")
    for text, which in ((COMPILED, False), (CUDA, True)):
        assert all(bool(pins.CUDA.match(e)) == which for e in pins.entries(text))
    assert all(r.marker and "linux" in str(r.marker) for r in named(CUDA).values())
    assert steps() == ["create", *PIP]
    monkeypatch.setattr(install, "needs_cuda", lambda python: True)
    (install.ROOT / "requirements.txt").write_text("another\n")
    assert steps() == [
        "requirements-cpu.txt",
        "requirements.txt",
        "requirements-cuda.txt",
        "project",
        "check",
        "npm",
    ]


@pytest.mark.parametrize("says", [["cuda-toolkit==13.0.3"], ["filelock"]])
def test_a_cuda_build_is_known_by_what_torch_asks_for(monkeypatch, says):
    done = subprocess.CompletedProcess([], 0, stdout=str(says))
    monkeypatch.setattr(install.subprocess, "run", lambda *a, **k: done)
    assert install.needs_cuda(Path("python")) == ("cuda" in says[0])


def test_the_cpu_build_is_of_the_pinned_version():
    (cpu,) = named((ROOT / "requirements-cpu.txt").read_text("utf-8")).values()
    assert str(cpu) == f"{NAMED['torch']}+cpu"


@pytest.mark.parametrize("page", ["README.md", "book/teach.md", "pyproject.toml"])
def test_the_promise_is_the_same_everywhere(page):
    assert re.search(r"Python 3\.11 or newer|>=3\.11\"", (ROOT / page).read_text("utf-8"))
    assert install.WANTED == (3, 11)


def test_a_python_too_old_is_said_in_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(install.sys, "version_info", (3, 9, 18))
    assert install.main() == 1
    assert "Python 3.11 or newer is needed; got 3.9.18" in capsys.readouterr().err


PIP = ["requirements-cpu.txt", "requirements.txt", "project", "check", "npm"]


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """A checkout in which making an environment and running pip are noted, not done."""
    done = []
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "VENV", tmp_path / ".venv")
    for name in install.NEEDS + install.NODE:
        (tmp_path / name).write_text("")

    def create(folder, **options):
        assert options["clear"] and not folder.is_symlink()
        done.append("create")
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "python").touch()
        (folder / "installed").unlink(missing_ok=True)

    def run(command, **options):
        assert ("--require-hashes" in command) == ("-r" in command)
        done.append(
            "npm" if "ci" in command else "project" if "-e" in command else Path(command[-1]).name
        )
        return subprocess.CompletedProcess(command, int(done[-1] == "requirements-cpu.txt"))

    monkeypatch.setattr(install.venv, "create", create)
    monkeypatch.setattr(install.subprocess, "run", run)
    monkeypatch.setattr(install, "needs_cuda", lambda python: False)

    def main():
        done.clear()
        assert install.main() == 0
        return list(done)

    return main


def test_an_environment_is_made_once_and_follows_the_pins(steps, tmp_path):
    assert steps() == ["create", *PIP]
    assert steps() == []
    (tmp_path / "requirements.txt").write_text("another==1\n")
    assert steps() == PIP
    assert steps() == []


def test_a_half_made_environment_is_made_afresh(steps, tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()  # without pip, and without the mark
    assert steps() == ["create", *PIP]


def test_a_moved_checkout_gets_an_environment_of_its_own(steps, tmp_path, monkeypatch):
    steps()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".venv").rename(tmp_path / "elsewhere" / ".venv")
    monkeypatch.setattr(install, "ROOT", tmp_path / "elsewhere")
    monkeypatch.setattr(install, "VENV", tmp_path / "elsewhere" / ".venv")
    for name in install.NEEDS + install.NODE:
        (tmp_path / "elsewhere" / name).write_text("")
    assert steps() == ["create", *PIP]


def test_a_link_to_another_environment_leaves_that_one_alone(steps, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").touch()
    (tmp_path / ".venv").symlink_to(tmp_path / "other")
    assert steps() == ["create", *PIP]
    assert (tmp_path / "other" / "mine").exists()


def test_a_python_without_ensurepip_is_said_in_a_sentence(steps, monkeypatch, capsys):
    def create(folder, **options):
        raise subprocess.CalledProcessError(1, "ensurepip")

    monkeypatch.setattr(install.venv, "create", create)
    assert install.main() == 1
    assert "apt install python3-venv" in capsys.readouterr().err


def test_the_packages_of_npm_have_versions_and_hashes_and_no_host():
    about, lock = (json.loads((ROOT / name).read_text("utf-8")) for name in install.NODE)
    packages = lock["packages"]
    assert packages.pop("")["dependencies"] == about["dependencies"]
    for name, version in about["dependencies"].items():
        assert packages[f"node_modules/{name}"]["version"] == version
    for name, package in packages.items():
        assert package["integrity"].startswith("sha512-") and "resolved" not in package, name

"""The publish job: what the test job leaves behind is published, and never run."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

WORKFLOWS = Path(__file__).parents[1] / ".github" / "workflows"
TEXT = (WORKFLOWS / "site.yml").read_text("utf-8")
JOBS = yaml.safe_load(TEXT)["jobs"]
SCRIPT = next(s["run"] for s in JOBS["publish"]["steps"] if s.get("name") == "Publish")
TRAP = "touch $TRAP"


@pytest.mark.parametrize("name, count", [("site", 4), ("colab", 5)])
def test_every_action_is_pinned_by_its_commit(name, count):
    uses = re.findall(r"uses: (\S+)(.*)", (WORKFLOWS / f"{name}.yml").read_text("utf-8"))
    assert len(uses) == count
    for action, note in uses:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r"  # v\d+\.\d+\.\d+", note), f"{action}: which version is it?"


def test_only_the_publish_job_may_write_and_no_script_holds_an_expression():
    assert yaml.safe_load(TEXT)["permissions"] == {}
    assert JOBS["test"]["permissions"] == {"contents": "read"}
    for job in JOBS.values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "an expression goes through env"
    assert "make" not in SCRIPT and "python" not in SCRIPT


@pytest.fixture
def publish(tmp_path):
    """Run the job's own script on a site, with a bare repository in GitHub's place."""
    (tmp_path / "remote" / "me").mkdir(parents=True)
    remote = tmp_path / "remote" / "me" / "book"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    (tmp_path / "work" / "_site" / "notebooks").mkdir(parents=True)
    (tmp_path / "work" / "_site" / "index.html").write_text("a page")
    (tmp_path / "temp").mkdir()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "RUNNER_TEMP": str(tmp_path / "temp"),
        "ACTOR": 'o"dd $(touch $TRAP)', "TOKEN": "secret", "REPOSITORY": "me/book",
        "COMMIT": "abc", "TRAP": str(tmp_path / "trap"), "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{tmp_path}/remote/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }  # fmt: skip

    def run():
        done = subprocess.run(
            ["bash", "-e", "-c", SCRIPT], cwd=tmp_path / "work", env=environment,
            capture_output=True, text=True,
        )  # fmt: skip
        assert not (tmp_path / "trap").exists(), "what was built was run"
        assert not (tmp_path / "work" / "_site" / ".git").is_dir() or done.returncode
        listed = subprocess.run(
            ["git", "-C", remote, "ls-tree", "-r", "--name-only", "gh-pages"],
            capture_output=True, text=True,
        )  # fmt: skip
        return done, sorted(listed.stdout.split())

    run.site = tmp_path / "work" / "_site"
    return run


def test_the_site_is_published_whole(publish):
    (publish.site / ".gitignore").write_text("*.html\n")
    (publish.site / ".gitattributes").write_text("* filter=evil\n")
    done, files = publish()
    assert done.returncode == 0, done.stderr
    assert files == [".gitattributes", ".gitignore", ".nojekyll", "index.html"]


@pytest.mark.parametrize("place", [".git", "notebooks/.git", "notebooks/.GIT"])
def test_a_repository_in_the_site_is_refused(publish, place):
    subprocess.run(["git", "init", "-q", publish.site], check=True)
    config = publish.site / ".git" / "config"
    config.write_text(
        config.read_text()
        + f'[core]\n fsmonitor = "{TRAP}"\n[filter "evil"]\n clean = "{TRAP}; cat"\n'
    )
    (publish.site / ".gitattributes").write_text("* filter=evil\n")
    if place != ".git":
        (publish.site / ".git").rename(publish.site / place)
    done, files = publish()
    assert done.returncode == 1 and "holds a .git: not published" in done.stdout
    assert files == []


def test_a_file_called_git_is_refused_too(publish):
    (publish.site / ".git").write_text("gitdir: notebooks\n")
    done, files = publish()
    assert done.returncode == 1 and files == []

"""Where a submission runs: bubblewrap, else a container; where there is neither, nowhere.

A sandbox has no network, a read-only system, an empty home, and a user without rights, of its own
for each submission where the grader may change users. It sees Python's packages and the book's
package without its checks: no answers, no gradebook, no other submission.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import seccomp

HERE = Path(__file__).parent
FIRST_USER = 200_000
SCRATCH = 64 << 20  # bytes of /tmp
NONE = (
    "No submission was run: this machine has no sandbox that works. Install bubblewrap "
    "(apt-get install bubblewrap), or start Docker and name an image that has the book's "
    "packages with SANDBOX=docker:IMAGE. {why}"
)
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
}  # fmt: skip


class Missing(Exception):
    """A sentence about why nothing can be run."""


def kit(folder: Path) -> Path:
    """Copy into `folder` what the sandbox is to see: the server, the package without checks."""
    import attention

    source = Path(attention.__file__).parent
    unseen = shutil.ignore_patterns("checks", "figures", "widgets", "__pycache__")
    shutil.copytree(source, folder / "attention", ignore=unseen)
    for name in ("wire.py", "server.py"):
        shutil.copy(HERE / name, folder)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def system() -> list[Path]:
    """The folders that a Python with torch needs."""
    found = [Path("/usr"), *(Path(p) for p in ("/lib", "/lib32", "/lib64", "/bin", "/sbin"))]
    found += [Path("/etc/ld.so.cache"), Path("/etc/alternatives")]
    python = [sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parents[1])]
    python += [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    for name in dict.fromkeys(python):
        if not any(Path(name).is_relative_to(p) for p in found):
            found.append(Path(name))
    return [p for p in found if p.exists()]


class Bubblewrap:
    """`bwrap`; as root it then changes to a user of its own, else the user's own rights shrink."""

    name = "bubblewrap"

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder, self.python = folder, python

    @staticmethod
    def become(user: int) -> list[str]:
        """Change to a user without rights, for good."""
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
                "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]  # fmt: skip

    def command(self, user: int, filter_fd: int | None = None) -> list[str]:
        root = os.geteuid() == 0
        line = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
                "--unshare-cgroup-try", "--die-with-parent", "--new-session"]  # fmt: skip
        line += ["--cap-drop", "ALL"]
        if root:  # just what it takes to become the other user, who has none
            for cap in ("SETUID", "SETGID", "SETPCAP"):
                line += ["--cap-add", f"CAP_{cap}"]
        else:
            line += ["--unshare-user", "--uid", str(user), "--gid", str(user)]
        # first, since the Python that is to be seen may itself lie below it
        line += ["--perms", "1777", "--size", str(SCRATCH), "--tmpfs", "/tmp"]
        made = {Path("/tmp")}
        for path in system():
            for parent in [*path.parents][-2::-1]:
                if parent not in made:
                    line += ["--perms", "0755", "--dir", str(parent)]
                    made.add(parent)
            if path.is_symlink() and path.parent == Path("/"):
                line += ["--symlink", os.readlink(path), str(path)]
            else:
                line += ["--ro-bind", str(path), str(path)]
        installed = Path(sysconfig.get_path("purelib")) / "attention"
        if installed.exists():  # the package with its checks; the kit has it without
            line += ["--tmpfs", str(installed)]
        line += ["--ro-bind", str(self.folder), "/grader", "--proc", "/proc", "--dev", "/dev"]
        line += ["--perms", "1777", "--size", str(1 << 20), "--tmpfs", "/dev/shm"]
        line += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--clearenv"]
        for key, value in ENVIRONMENT.items():
            line += ["--setenv", key, value]
        if filter_fd is not None:
            line += ["--seccomp", str(filter_fd)]
        if root:
            line += self.become(user)
        return [*line, self.python, "-I", "/grader/server.py"]

    def start(self, user: int) -> subprocess.Popen[bytes]:
        return self.run(user, ["/grader/server.py"])

    def run(self, user: int, script: list[str]) -> subprocess.Popen[bytes]:
        with tempfile.TemporaryFile() as rules:
            rules.write(seccomp.program())
            rules.seek(0)
            fd = rules.fileno() if seccomp.program() else None
            line = self.command(user, fd)[:-1] + script
            return _popen(line, pass_fds=() if fd is None else (fd,))

    def stop(self, process: subprocess.Popen[bytes], user: int) -> None:
        """End it and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()


class Docker:
    """A container for each submission, from an image that has Python, torch and numpy."""

    name = "docker"

    def __init__(self, folder: Path, image: str, program: str = "docker") -> None:
        self.folder, self.image, self.program = folder, image, program

    def command(self, user: int) -> list[str]:
        line = [self.program, "run", "--rm", "--interactive", "--init", "--network=none",
                f"--name=submission-{user}",
                "--read-only", f"--user={user}:{user}", "--cap-drop=ALL",
                "--security-opt=no-new-privileges", "--pids-limit=64", "--memory=3g",
                "--memory-swap=3g", f"--tmpfs=/tmp:mode=1777,size={SCRATCH}", "--shm-size=1m",
                "--workdir=/tmp", f"--volume={self.folder}:/grader:ro"]  # fmt: skip
        for key, value in ENVIRONMENT.items():
            if key != "PATH":
                line += ["--env", f"{key}={value}"]
        return [*line, self.image, "python3", "-I", "/grader/server.py"]

    def start(self, user: int) -> subprocess.Popen[bytes]:
        return self.run(user, ["/grader/server.py"])

    def run(self, user: int, script: list[str]) -> subprocess.Popen[bytes]:
        return _popen(self.command(user)[:-1] + script)

    def stop(self, process: subprocess.Popen[bytes], user: int) -> None:
        subprocess.run([self.program, "kill", f"submission-{user}"], capture_output=True)
        Bubblewrap.stop(self, process, user)  # type: ignore[arg-type]


class OtherUser(Bubblewrap):
    """Another user and the limits, no more: for a container that holds one submission only."""

    name = "container"

    def run(self, user: int, script: list[str]) -> subprocess.Popen[bytes]:
        if os.geteuid():
            raise Missing("SANDBOX=container needs root, to run a submission as another user.")
        home = Path(tempfile.gettempdir()) / f"home-{user}"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(0o700)
        os.chown(home, user, user)
        line = [
            *self.become(user),
            "--pdeathsig=KILL",
            self.python,
            "-I",
            *(s.replace("/grader", str(self.folder)) for s in script),
        ]
        return _popen(line, cwd=home, env=ENVIRONMENT | {"HOME": str(home)})

    def stop(self, process: subprocess.Popen[bytes], user: int) -> None:
        super().stop(process, user)
        for entry in Path("/proc").iterdir():  # what a submission left running
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if entry.stat().st_uid == user:
                        os.kill(int(entry.name), signal.SIGKILL)
        shutil.rmtree(Path(tempfile.gettempdir()) / f"home-{user}", ignore_errors=True)


def _popen(line: list[str], **more: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        start_new_session=True, **more,  # type: ignore[call-overload]
    )  # fmt: skip


Sandbox = Bubblewrap | Docker


@contextmanager
def choose(wanted: str = "") -> Iterator[Sandbox]:
    """The sandbox that works here: `wanted` is "", "bubblewrap", "docker:IMAGE" or "container".

    "container" says that this process is itself in a container that holds one submission and
    nothing worth having, as on Gradescope. Raises Missing with a sentence if none works.
    """
    with tempfile.TemporaryDirectory(prefix="grading-") as place:
        folder = kit(Path(place) / "kit")
        Path(place).chmod(0o755)
        kind, _, image = wanted.partition(":")
        offers: list[Sandbox] = []
        if kind in ("", "bubblewrap"):
            offers.append(Bubblewrap(folder))
        if kind == "docker" and image:
            offers.append(Docker(folder, image))
        if kind == "container":
            offers.append(OtherUser(folder))
        if not offers:
            raise Missing(f"SANDBOX must be bubblewrap, docker:IMAGE or container; got {wanted!r}.")
        why = ""
        for offer in offers:
            why = probe(offer)
            if not why:
                yield offer
                return
        raise Missing(NONE.format(why=f"({offers[-1].name}: {why})"))


TRY = "import os, socket, sys; sys.stdout.write(str(os.getuid()))"


def probe(sandbox: Sandbox) -> str:
    """Why a sandbox does not work, "" if it does: a script runs in it, as the other user."""
    try:
        done = sandbox.run(FIRST_USER, ["-c", TRY])
        out, error = done.communicate(timeout=60)
    except FileNotFoundError as missing:
        return f"there is no {missing.filename}"
    except subprocess.TimeoutExpired:
        done.kill()
        return "it did not start within a minute"
    if out.decode(errors="replace") != str(FIRST_USER):
        return " ".join(error.decode(errors="replace").split())[-300:] or "it said nothing"
    return ""

"""Grade a folder of submissions: side by side, none stopping another, and able to go on."""

from __future__ import annotations

import ctypes
import hashlib
import json
import multiprocessing
import multiprocessing.connection
import os
import secrets
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from . import looks, marking, submissions
from .book import Course
from .remote import Patience
from .sandbox import FIRST_USER, Sandbox
from .submissions import Submission


@dataclass
class Job:
    """What a worker needs for one submission."""

    submission: Submission
    user: int
    digest: str


def digest(course: Course, submission: Submission, offset: int) -> str:
    """What a result depends on: if it is the same, the submission is not run again."""
    text = f"{course.digest} {submission.digest} {submission.chapter} {offset} {torch.__version__}"
    return hashlib.sha256(text.encode()).hexdigest()


def seed(into: Path) -> int:
    """The secret with which the hidden inputs are drawn, the same for all runs into a folder."""
    path = into / "seed"
    if not path.exists():
        write(path, str(secrets.randbelow(1 << 30) + 1000))
        path.chmod(0o600)
    return int(path.read_text())


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def gather(folder: Path, course: Course) -> list[Submission]:
    """All submissions, the newest of each student for each chapter."""
    newest: dict[tuple[str, str], Submission] = {}
    for student, path in submissions.found(folder):
        made = submissions.read(student, path, course)
        key = (student, made.chapter or str(path))
        before = newest.get(key)
        if before is None or before.path.stat().st_mtime < path.stat().st_mtime:
            newest[key] = made
    return list(newest.values())


# workers


def _grade(
    course: Course, sandbox: Sandbox, offset: int, into: Path, job: Job, patience: Patience
) -> None:
    """In a process of its own: grade one submission and write its result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's affair
    if hasattr(ctypes.CDLL(None), "prctl"):  # Linux: end when the run is killed
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    torch.set_num_threads(1)
    s, chapter = job.submission, course.chapters[job.submission.chapter]
    results = marking.mark(sandbox, job.user, chapter, s.cells, offset, patience)
    made = {
        "student": s.student, "chapter": s.chapter, "digest": job.digest, "results": results,
        "texts": s.texts, "looks": looks.alone(chapter, s), "forms": looks.forms(chapter, s),
    }  # fmt: skip
    write(into / "results" / f"{s.key}.json", json.dumps(made, indent=1))


def result(into: Path, submission: Submission) -> dict[str, Any]:
    """What is known of a submission; {} for nothing."""
    try:
        return json.loads((into / "results" / f"{submission.key}.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def grade(
    course: Course, found: Iterable[Submission], sandbox: Sandbox, into: Path,
    workers: int = 0, patience: Patience | None = None,
) -> int:  # fmt: skip
    """Grade what has no result yet, or one that an exercise, a check or the file has outlived.

    Each in a process of its own, so that none stops another. Returns how many were graded.
    """
    offset, patience = seed(into), patience or Patience()
    waiting = []
    for k, s in enumerate(found):
        now = digest(course, s, offset)
        if not s.trouble and result(into, s).get("digest") != now:
            waiting.append(Job(s, FIRST_USER + 1 + k, now))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["matplotlib.pyplot", "grading.run"])
    running: dict[int, tuple[Any, Job, float]] = {}
    count, workers = 0, workers or os.cpu_count() or 1
    with tqdm(total=len(waiting), desc="Grading", unit="submission", disable=not waiting) as bar:
        waiting.reverse()
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop()
                process = context.Process(
                    target=_grade, args=(course, sandbox, offset, into, job, patience)
                )
                process.start()
                longest = time.monotonic() + patience.submission + 2 * patience.start
                running[process.sentinel] = process, job, longest
            ready = multiprocessing.connection.wait(list(running), timeout=1)
            for sentinel, (process, job, longest) in list(running.items()):
                if sentinel not in ready:
                    if time.monotonic() > longest:
                        process.kill()
                    continue
                process.join()
                del running[sentinel]
                bar.update()
                if result(into, job.submission).get("digest") == job.digest:
                    count += 1
                else:
                    job.submission.trouble = "the grader failed at this one: run it again"
    return count

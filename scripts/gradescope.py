"""Write dist/gradescope.zip, the autograder for the chosen exercises.

    python scripts/gradescope.py --exercises "scaling star-1" --title "Week 3"

An option that is not given is taken from the environment (EXERCISES, TITLE), where
`make gradescope EXERCISES=...` puts it. The zip holds the exercises' answers: it is for the
teacher's Gradescope account only.
"""

import argparse
import json
import os
import secrets
import sys
import tempfile
from pathlib import Path

import course

from grading import gradescope

ROOT = Path(__file__).parents[1]


def main(arguments: list[str] | None = None) -> int:
    given = os.environ.get
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--exercises", default=given("EXERCISES", ""), metavar="WORDS")
    parser.add_argument("--title", default=given("TITLE", ""))
    parser.add_argument("--into", type=Path, default=ROOT / "dist" / "gradescope.zip")
    parser.add_argument("--from", dest="source", type=Path, default=ROOT / "_build" / "ipynb")
    options = parser.parse_args(arguments)
    try:
        try:
            book = json.loads((options.source / "exercises.json").read_text("utf-8"))
        except FileNotFoundError:
            raise course.Mistake("the book is not built yet: run `make book` first") from None
        chosen = course.choose(book["chapters"], options.exercises)
    except course.Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 1
    options.into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "grading.json"
        file.write_text(course.grading(book, chosen, options.title or "Exercises", ""), "utf-8")
        gradescope.pack(file, options.into, secrets.randbelow(1 << 30) + 1000)
    print(f"{sum(map(len, chosen.values()))} exercises from {', '.join(chosen)}: {options.into}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

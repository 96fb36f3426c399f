"""Write the book's questions, and the terms of its glossary, as a deck for Anki.

    python scripts/anki.py

reads what the build left in _build/ipynb/questions.json and writes dist/attention.apkg: a deck for
each chapter, a card for each question, formulas for Anki's own MathJax, pictures inside. A card
keeps its identity from one edition to the next, so that importing a new deck loses no progress.
"""

import hashlib
import html
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import genanki

ROOT = Path(__file__).parents[1]
MODEL = genanki.Model(
    1_607_392_611,  # any number will do, but Anki knows the cards' form by it
    "Attention book",
    fields=[{"name": name} for name in ("Name", "Question", "Answer", "Source")],
    templates=[
        {
            "name": "Card",
            "qfmt": "{{Question}}",
            "afmt": '{{FrontSide}}<hr id="answer">{{Answer}}<p class="source">{{Source}}</p>',
        }
    ],
    css=(
        ".card { font-family: system-ui, sans-serif; font-size: 18px; line-height: 1.5; "
        "max-width: 38em; margin: 0 auto; padding: 0 1em; } img { max-width: 100%; } "
        ".source { font-size: 14px; opacity: 0.7; }"
    ),
)


class Mistake(Exception):
    """A sentence for whoever called."""


def number(text: str) -> int:
    """A number for a deck that is the same in every edition."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % 2**31


class Media:
    """The pictures of the cards, each under a name of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, {}

    def named(self, text: str) -> str:
        """HTML with its pictures' addresses replaced by the names that Anki gives them."""

        def name(match: re.Match) -> str:
            path = self.folder / html.unescape(match[1])
            if not path.is_file():
                raise Mistake(f"the picture {path} is missing: build the book first (make book)")
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:10]
            new = f"attention-{digest}{path.suffix}"
            self.files[new] = path
            return f'src="{new}"'

        return re.sub(r'src="media:([^"]*)"', name, text)


def front(question: dict[str, Any]) -> str:
    """A question with its options."""
    options = "".join(f"<li>{option}</li>" for option in question.get("options", ()))
    listed = f'<ol type="A">{options}</ol>' if options else ""
    return f"<p><b>{question['title']}</b></p>{question['text']}{listed}"


def back(question: dict[str, Any]) -> str:
    """The right options by their letters, then the explanation."""
    right = ", ".join(chr(64 + k) for k in question["answer"]) if "options" in question else ""
    return (f"<p><b>{right}</b></p>" if right else "") + question["told"]


def source(book: dict[str, Any], title: str, page: str, name: str) -> str:
    """The chapter, as a link where the site's address is known."""
    said = html.escape(title)
    return f'<a href="{book["site"]}/{page}.html#{name}">{said}</a>' if book["site"] else said


def decks(book: dict[str, Any], media: Media) -> list[genanki.Deck]:
    """A deck for each chapter, and one for the glossary."""
    made = []

    def deck(title: str, cards: list[tuple[str, str, str, str, list[str]]]) -> None:
        name = f"Attention::{title}"
        made.append(genanki.Deck(number(name), name))
        for label, asked, told, where, tags in cards:
            fields = [label, media.named(asked), media.named(told), where]
            guid = genanki.guid_for("attention-book", label)
            made[-1].add_note(genanki.Note(model=MODEL, fields=fields, tags=tags, guid=guid))

    for chapter in book["chapters"]:
        where = chapter["title"], chapter["page"]
        deck(
            chapter["title"],
            [
                (q["name"], front(q), back(q), source(book, *where, q["name"]),
                 [chapter["name"], q["kind"]])
                for q in chapter["questions"]
            ],
        )  # fmt: skip
    if book["terms"]:
        deck(
            "Glossary",
            [
                (t["name"], f"<p>What is meant by <b>{t['term']}</b>?</p>", t["told"],
                 source(book, "Glossary", t["page"], t["name"]), ["glossary"])
                for t in book["terms"]
            ],
        )  # fmt: skip
    return made


def write(book: dict[str, Any], folder: Path, target: Path) -> int:
    """Write the deck of a book whose pictures lie under `folder`; return how many cards it has."""
    media = Media(folder)
    made = decks(book, media)
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as beside:  # the name of a file is its name in Anki
        for name, path in media.files.items():
            shutil.copyfile(path, Path(beside) / name)
        files = [str(Path(beside) / name) for name in media.files]
        genanki.Package(made, media_files=files).write_to_file(target)
    return sum(len(deck.notes) for deck in made)


def read_questions(path: Path = ROOT / "_build" / "ipynb" / "questions.json") -> dict[str, Any]:
    if not path.exists():
        raise Mistake(f"{path.name} is missing: build the book first (make book)")
    book = json.loads(path.read_text("utf-8"))
    if not book["chapters"]:
        raise Mistake("the book has no questions yet: no chapter has a `guess` or a `check`")
    return book


def main() -> int:
    try:
        target = ROOT / "dist" / "attention.apkg"
        cards = write(read_questions(), ROOT, target)
    except Mistake as error:
        sys.exit(str(error))
    print(f"{cards} cards are in {target.relative_to(ROOT)}: open it with Anki (File, Import)")
    return 0


if __name__ == "__main__":
    sys.exit(main())

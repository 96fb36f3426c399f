"""The deck for Anki and the files for learning platforms, read back from what was written."""

import html
import json
import re
import sqlite3
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import question_book

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "book" / "_ext")]

import anki  # noqa: E402
import quiz  # noqa: E402
from question_export import as_html  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return question_book.built(tmp_path_factory)


@pytest.fixture(scope="module")
def book(folder):
    return anki.read_questions(folder / "out" / "ipynb" / "questions.json")


NAMES = ["guess-self", "check-output", "check-rows", "check-why", "check-two"]
NAMES += ["guess-place", "check-far"]


def test_the_export_has_every_question_of_the_pages_in_order_and_every_term(book):
    assert [q["name"] for c in book["chapters"] for q in c["questions"]] == NAMES
    assert [t["name"] for t in book["terms"]] == ["term-head", "term-mask"]
    place = next(q for c in book["chapters"] for q in c["questions"] if q["name"] == "guess-place")
    assert place["type"] == "number" and not {"min", "max", "step"} & set(place)


def html_parts(book):
    for chapter in book["chapters"]:
        for q in chapter["questions"]:
            yield from (q["text"], q["told"], q["title"], *q.get("options", ()))
            yield from (hint["told"] for hint in q.get("hints", ()))
    for term in book["terms"]:
        yield from (term["term"], term["told"])


def test_every_part_is_well_formed_and_no_markup_is_left(book):
    for part in html_parts(book):
        text = "".join(ET.fromstring(f"<div>{part}</div>").itertext())
        text = re.sub(r"\\\(.*?\\\)|\\\[.*?\\\]", "", text, flags=re.S)
        assert not re.search(r"[$`*]|===|\{\w+\}", text), part
    assert any(r"\(a \cdot b\)" in part for part in html_parts(book))


@pytest.mark.parametrize(
    ("markdown", "made"),
    [
        ("a $x<y$", r"<p>a \(x&lt;y\)</p>"),
        ("$$x & y$$", r"\[x &amp; y\]"),
        ("one<br>two", "<p>one<br />two</p>"),
        (r"costs \$5 and \$6", "<p>costs $5 and $6</p>"),
        ("![a *b*](media:x.png)", '<p><img src="media:x.png" alt="a b" /></p>'),
    ],
)
def test_markdown_becomes_html_with_formulas(markdown, made):
    assert as_html(markdown) == made


# Anki


@pytest.fixture(scope="module")
def unpacked(book, folder, tmp_path_factory):
    """The deck's files."""
    into = tmp_path_factory.mktemp("deck")
    assert anki.write(book, folder / "source", into / "dist" / "a.apkg") == len(NAMES) + 2
    with zipfile.ZipFile(into / "dist" / "a.apkg") as packed:
        packed.extractall(into / "unpacked")
    return into / "unpacked"


@pytest.fixture(scope="module")
def deck(unpacked):
    """The rows of its SQLite, and its media."""
    base = sqlite3.connect(unpacked / "collection.anki2")
    notes = {
        row[1].split("\x1f")[0]: row for row in base.execute("select guid, flds, tags from notes")
    }
    cards = base.execute("select count(*) from cards").fetchone()[0]
    decks = json.loads(base.execute("select decks from col").fetchone()[0])
    media = json.loads((unpacked / "media").read_text("utf-8"))
    base.close()
    return notes, cards, {d["name"] for d in decks.values()}, media


def test_a_deck_has_a_card_for_each_question_and_term(deck):
    notes, cards, decks, _ = deck
    assert set(notes) == {*NAMES, "term-head", "term-mask"} and cards == len(notes)
    assert {"Attention::One", "Attention::Two", "Attention::Glossary"} <= decks


def test_each_card_has_its_question_answer_source_and_tags(deck, book):
    notes = deck[0]
    for guid, fields, tags in notes.values():
        name, front, back, source = fields.split("\x1f")
        assert guid and len(front) > 20 and len(back) > 5 and source in ("One", "Two", "Glossary")
        chapter, *kind = tags.split()
        assert [chapter, *kind] == ["glossary"] or chapter in ("one", "two")
        assert kind in ([], ["guess"], ["check"])
        for part in (front, back):
            ET.fromstring(f"<div>{part}</div>")
            assert "media:" not in part
    _, front, back, _ = notes["guess-self"][1].split("\x1f")
    assert "<li><p><em>it</em> itself</p></li>" in front and r"\(a \cdot b\)" in front
    assert "<b>C</b>" in back and "itself, " in back and "largest" not in front
    assert "<b>A, B</b>" in notes["check-two"][1]


def test_a_picture_goes_with_its_card(deck, unpacked, folder):
    notes, _, _, media = deck
    used = set(re.findall(r'src="([^"]+)"', "".join(row[1] for row in notes.values())))
    assert len(used) == 1 and used == set(media.values())
    ((number, _),) = media.items()
    packed = (unpacked / number).read_bytes()
    assert packed == (folder / "source" / "dot.png").read_bytes()


def test_a_new_edition_keeps_each_cards_identity(book, folder):
    def identities(edition):
        media = anki.Media(folder / "source")
        return {n.fields[0]: n.guid for d in anki.decks(edition, media) for n in d.notes}

    changed = json.loads(json.dumps(book).replace("The first two", "Both"))
    assert identities(changed) == identities(book)


def test_what_is_missing_is_said(book, tmp_path):
    with pytest.raises(anki.Mistake, match="dot.png is missing: build the book first"):
        anki.write(book, tmp_path, tmp_path / "a.apkg")
    with pytest.raises(anki.Mistake, match="questions.json is missing: build the book first"):
        anki.read_questions(tmp_path / "questions.json")
    (tmp_path / "questions.json").write_text('{"chapters": []}')
    with pytest.raises(anki.Mistake, match="no questions yet"):
        anki.read_questions(tmp_path / "questions.json")


# GIFT


def read_gift(text: str) -> dict[str, dict]:
    """GIFT as Moodle reads it: its escapes first, then its marks."""
    text = text.replace("\\\\", "&&092;")
    for mark in ":#={}~":
        text = text.replace("\\" + mark, f"&&{ord(mark):03};")
    assert "\\" not in text, "Moodle would take \\n for a new line"

    def plain(part: str) -> str:
        return re.sub(r"&&(\d{3});", lambda m: chr(int(m[1])), part).strip()

    found = {}
    for part in text.strip().split("\n\n"):
        if part.startswith("$CATEGORY: "):
            category = part.removeprefix("$CATEGORY: ")
            continue
        m = re.fullmatch(r"::(.*?)::\[html\]([^{}]*)\{(#?)\n([^{}]*)\n\}", part, flags=re.S)
        assert m, part
        answers, _, told = m[4].partition("####")
        lines = [re.fullmatch(r"([=~])(?:%(-?[\d.]+)%)?([^#]*)(?:#(.*))?", line)
                 for line in answers.strip().splitlines()]  # fmt: skip
        assert all(lines), answers
        found[plain(m[1])] = {
            "category": category, "text": plain(m[2]), "number": bool(m[3]), "told": plain(told),
            "answers": [(a[1], a[2], plain(a[3]), plain(a[4] or "")) for a in lines],
        }  # fmt: skip
    return found


def test_gift_read_back_has_every_question_with_its_answer(book):
    found = read_gift(quiz.gift(book))
    assert list(found) == NAMES
    guess = found["guess-self"]
    assert guess["category"] == "Attention/One" and not guess["number"]
    assert [(mark, told) for mark, _, _, told in guess["answers"]] == [
        ("~", "<p>No other vector is nearer.</p>"), ("~", ""), ("=", "")
    ]  # fmt: skip
    assert guess["answers"][1][2] == r"<p><em>mat</em>, \(a \cdot b\)</p>"
    output = found["check-output"]
    assert output["number"] and output["text"].endswith("<p>(in points)</p>")
    assert output["answers"] == [
        ("=", None, "0.9001:0.01", ""),
        ("=", "0", "2.5:0.01", "<p>You averaged with equal weights.</p>"),
    ]
    two = found["check-two"]["answers"]
    assert [share for _, share, _, _ in two] == ["50", "50", "-100"]
    assert found["check-why"]["answers"] == [] and "<li>one</li>" in found["check-why"]["told"]
    assert r"\begin{pmatrix}" in found["check-rows"]["told"]
    assert "[Picture in the book: A dot]" in found["check-far"]["text"]


@pytest.mark.parametrize("text", [r"\nu = \{x\}", "a~b#c", "50% {of} it: x", r"\\ \neq"])
def test_whatever_a_question_says_survives_gift(text):
    question = {"name": "check-x", "type": "open", "text": text, "told": text}
    book = {"chapters": [{"title": "One", "questions": [question]}]}
    assert read_gift(quiz.gift(book))["check-x"]["text"] == text


# QTI


@pytest.fixture(scope="module")
def qti(book, tmp_path_factory):
    path = tmp_path_factory.mktemp("qti") / "qti.zip"
    quiz.write_qti(book, path)
    with zipfile.ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def tag(name: str) -> str:
    return f"{{{quiz.QTI}}}{name}"


def test_the_package_lists_its_files_and_no_others(qti):
    manifest = ET.fromstring(qti["imsmanifest.xml"])
    resources = manifest.findall(f"{{{quiz.CP}}}resources/{{{quiz.CP}}}resource")
    listed = [r.get("href") for r in resources]
    assert sorted(listed) == sorted(set(qti) - {"imsmanifest.xml"}) and len(listed) == len(NAMES)
    assert {r.get("type") for r in resources} == {"imsqti_item_xmlv2p1"}
    assert [r[0].get("href") for r in resources] == listed
    order = [child.tag.rpartition("}")[2] for child in manifest]
    assert order == ["metadata", "organizations", "resources"]


ORDER = [
    "responseDeclaration",
    "outcomeDeclaration",
    "itemBody",
    "responseProcessing",
    "modalFeedback",
]
INTERACTIONS = {"choiceInteraction", "textEntryInteraction", "extendedTextInteraction"}
HTML = set(
    "div p em strong code pre ul ol li a img br table thead tbody tr th td sup sub span hr".split()
)


@pytest.mark.parametrize("name", NAMES)
def test_an_item_is_built_as_the_standard_says(qti, name):
    (text,) = [content for path, content in qti.items() if path.endswith(f"/{name}.xml")]
    item = ET.fromstring(text)
    assert item.tag == tag("assessmentItem") and item.get("identifier") == name
    assert item.get("adaptive") == item.get("timeDependent") == "false" and item.get("title")
    parts = [child.tag.rpartition("}")[2] for child in item]
    assert parts == sorted(parts, key=ORDER.index)
    declared = {d.get("identifier"): d for d in item.findall(tag("responseDeclaration"))}
    asked = [e for e in item.iter() if e.tag.rpartition("}")[2] in INTERACTIONS]
    assert sorted(e.get("responseIdentifier") for e in asked) == sorted(declared)
    options = {c.get("identifier") for c in item.iter(tag("simpleChoice"))}
    for declaration in declared.values():
        values = [v.text for v in declaration.iter(tag("value"))]
        kind, many = declaration.get("baseType"), declaration.get("cardinality") == "multiple"
        assert many == (len(values) > 1)
        if kind == "identifier":
            assert values and set(values) < options
        else:
            assert kind == ("string" if name == "check-why" else "float")
            assert [float(v) for v in values] or kind == "string"
    outcomes = {o.get("identifier") for o in item.findall(tag("outcomeDeclaration"))}
    for used in item.iter():
        if used.tag in (tag("variable"), tag("correct"), tag("setOutcomeValue")):
            assert used.get("identifier") in outcomes | set(declared)
    shown = {f.get("identifier") for f in item.findall(tag("modalFeedback"))}
    process = item.find(tag("responseProcessing"))
    said = {b.text for b in process.iter(tag("baseValue")) if b.get("baseType") == "identifier"}
    assert shown == said - options
    body = [e.tag.rpartition("}")[2] for e in item.find(tag("itemBody")).iter()][1:]
    assert set(body) <= HTML | INTERACTIONS | {"simpleChoice"}
    for equal in item.iter(tag("equal")):
        low, high = map(float, equal.get("tolerance").split())
        assert low == high >= 0 and equal.get("toleranceMode") == "absolute"


def test_an_item_has_the_book_s_answer_and_hints(qti, book):
    output = ET.fromstring(qti["one/check-output.xml"])
    values = [float(b.text) for b in output.iter(tag("baseValue")) if b.get("baseType") == "float"]
    assert values == [0.9001, 1, 2.5]  # the answer, the score for it, the usual mistake
    rows = ET.fromstring(qti["one/check-rows.xml"])
    fields = {e.get("responseIdentifier") for e in rows.iter(tag("textEntryInteraction"))}
    assert len(fields) == 24 and {"R1C1", "R2C12"} <= fields
    assert html.unescape(ET.tostring(rows, encoding="unicode")).count(r"\begin{pmatrix}") == 1

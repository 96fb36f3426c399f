"""Write the book's questions for learning platforms: GIFT for Moodle, QTI 2.1 for Canvas.

    python scripts/quiz.py

reads what the build left in _build/ipynb/questions.json and writes dist/attention.gift.txt and
dist/attention-qti.zip. Choices and numbers are graded there, each usual mistake with its hint; an
open question is free text with the model answer as feedback. GIFT knows no matrices, so a matrix
is free text there; in QTI it is one field a cell. Pictures stay in the book.
"""

import re
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from anki import ROOT, Mistake, read_questions

PICTURE = re.compile(r'<img[^>]*src="media:[^>]*alt="([^"]*)"[^>]*/>')


def without_pictures(text: str) -> str:
    """HTML with each of the book's pictures replaced by its description."""
    return PICTURE.sub(r"<em>[Picture in the book: \1]</em>", text)


# GIFT


def gift_text(text: str) -> str:
    """Text with what GIFT takes for its own marks escaped, in one line."""
    text = re.sub(r"\s+", " ", without_pictures(text)).strip()
    return re.sub(r"([\\~=#{}:])", r"\\\1", text)


def share(part: int) -> str:
    """One of `part` equal shares in percent, as precise as Moodle compares them."""
    return f"{100 / part:.5f}".rstrip("0").rstrip(".")


def gift_answers(question: dict[str, Any]) -> list[str]:
    """The lines between the braces."""
    kind, hints = question["type"], question.get("hints", [])
    if kind == "choice":
        options, right = question["options"], question["answer"]
        told = {k: hint["told"] for hint in hints for k in hint["wrong"]}
        lines = []
        for k, option in enumerate(options, 1):
            comment = f"#{gift_text(told[k])}" if k in told else ""
            if len(right) == 1:
                mark = "=" if k in right else "~"
            elif k in right:
                mark = f"~%{share(len(right))}%"
            else:
                mark = f"~%-{share(len(options) - len(right))}%"
            lines.append(mark + gift_text(option) + comment)
        return lines
    if kind == "number":
        within = question["tolerance"]
        return [f"={question['answer']!r}:{within!r}"] + [
            f"=%0%{hint['wrong']!r}:{within!r}#{gift_text(hint['told'])}" for hint in hints
        ]
    return []


def gift(book: dict[str, Any]) -> str:
    """The whole book's questions, a category for each chapter."""
    parts = []
    for chapter in book["chapters"]:
        parts.append(f"$CATEGORY: Attention/{chapter['title'].replace('/', '//')}")
        for q in chapter["questions"]:
            unit = f"<p>(in {q['unit']})</p>" if q.get("unit") else ""
            answers = gift_answers(q)
            answers.append("####" + gift_text(q["told"]))
            number = "#" if q["type"] == "number" else ""
            body = "\n".join(answers)
            parts.append(
                f"::{q['name']}::[html]{gift_text(q['text'] + unit)}{{{number}\n{body}\n}}"
            )
    return "\n\n".join(parts) + "\n"


# QTI 2.1

QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
CP = "http://www.imsglobal.org/xsd/imscp_v1p1"


def element(parent: ET.Element | None, tag: str, text: str = "", **attributes: str) -> ET.Element:
    """A new element; its text may be HTML, which then becomes its children."""
    made = ET.Element(tag, attributes) if parent is None else ET.SubElement(parent, tag, attributes)
    if text:
        inner = ET.fromstring(f"<div>{without_pictures(text)}</div>")
        made.text = inner.text
        made.extend(inner)
    return made


def declare(item: ET.Element, name: str, many: bool, kind: str, values: list[str]) -> None:
    cardinality = "multiple" if many else "single"
    made = element(
        item, "responseDeclaration", identifier=name, cardinality=cardinality, baseType=kind
    )
    if values:
        right = element(made, "correctResponse")
        for value in values:
            element(right, "value").text = value


def equal(parent: ET.Element, name: str, value: str, within: str) -> None:
    """A number within its tolerance."""
    made = element(parent, "equal", toleranceMode="absolute", tolerance=f"{within} {within}")
    element(made, "variable", identifier=name)
    element(made, "baseValue", baseType="float").text = value


def outcome(parent: ET.Element, name: str, kind: str, value: str) -> None:
    made = element(parent, "setOutcomeValue", identifier=name)
    element(made, "baseValue", baseType=kind).text = value


def item(question: dict[str, Any]) -> bytes:
    """One question as an assessmentItem."""
    kind, name = question["type"], question["name"]
    made = element(
        None, "assessmentItem", xmlns=QTI, identifier=name, adaptive="false", timeDependent="false",
        title=re.sub(r"<[^>]*>", "", f"{question['title']} ({name})"),
    )  # fmt: skip
    within = repr(question.get("tolerance", 0.0))
    # what is asked for: each field's name, and the number that is right in it
    cells: list[tuple[str, str]] = []
    if kind == "number":
        cells = [("RESPONSE", repr(question["answer"]))]
    elif kind == "matrix":
        cells = [
            (f"R{i}C{j}", repr(value))
            for i, row in enumerate(question["answer"], 1)
            for j, value in enumerate(row, 1)
        ]
    many = kind == "choice" and len(question["answer"]) > 1
    if kind == "choice":
        right = [f"OPTION{k}" for k in question["answer"]]
        declare(made, "RESPONSE", many, "identifier", right)
    elif kind == "open":
        declare(made, "RESPONSE", False, "string", [])
    for field, value in cells:
        declare(made, field, False, "float", [value])
    score = element(
        made, "outcomeDeclaration", identifier="SCORE", cardinality="single", baseType="float"
    )
    element(element(score, "defaultValue"), "value").text = "0"
    element(
        made, "outcomeDeclaration", identifier="FEEDBACK", cardinality="multiple",
        baseType="identifier",
    )  # fmt: skip

    body = element(made, "itemBody")
    element(body, "div", question["text"])
    if kind == "choice":
        limit = "0" if many else "1"
        ask = element(
            body, "choiceInteraction", responseIdentifier="RESPONSE", shuffle="false",
            maxChoices=limit,
        )  # fmt: skip
        for k, option in enumerate(question["options"], 1):
            element(ask, "simpleChoice", option, identifier=f"OPTION{k}")
    elif kind == "open":
        element(body, "extendedTextInteraction", responseIdentifier="RESPONSE")
    else:
        table = element(element(body, "table"), "tbody")
        rows = question["answer"] if kind == "matrix" else [[question["answer"]]]
        names = iter(field for field, _ in cells)
        for row in rows:
            line = element(table, "tr")
            for _ in row:
                place = element(line, "td")
                element(
                    place, "textEntryInteraction", responseIdentifier=next(names),
                    expectedLength="10",
                )  # fmt: skip
                if question.get("unit"):
                    place[-1].tail = f" {question['unit']}"

    process = element(made, "responseProcessing")
    if kind != "open":
        choose = element(process, "responseCondition")
        test = element(choose, "responseIf")
        if kind == "choice":
            match = element(test, "match")
            element(match, "variable", identifier="RESPONSE")
            element(match, "correct", identifier="RESPONSE")
        else:
            both = element(test, "and")
            for field, value in cells:
                equal(both, field, value, within)
        outcome(test, "SCORE", "float", "1")
    shown = [("TOLD", question["told"])]
    for k, hint in enumerate(question.get("hints", []), 1):
        shown.append((f"HINT{k}", hint["told"]))
        test = element(element(process, "responseCondition"), "responseIf")
        if kind == "choice":
            match = element(test, "and")
            for wrong in hint["wrong"]:
                inside = element(match, "member" if many else "match")
                said = element(None, "baseValue", baseType="identifier")
                said.text = f"OPTION{wrong}"
                answer = element(None, "variable", identifier="RESPONSE")
                inside.extend([said, answer] if many else [answer, said])
        else:
            wrong = sum(hint["wrong"], []) if kind == "matrix" else [hint["wrong"]]
            both = element(test, "and")
            for (field, _), value in zip(cells, wrong, strict=True):
                equal(both, field, repr(value), within)
        add(test, f"HINT{k}")
    add(process, "TOLD")
    for identifier, text in shown:
        element(
            made, "modalFeedback", text, outcomeIdentifier="FEEDBACK", identifier=identifier,
            showHide="show",
        )  # fmt: skip
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(made, "utf-8")


def add(parent: ET.Element, identifier: str) -> None:
    """Let a feedback be shown beside those that are."""
    made = element(parent, "setOutcomeValue", identifier="FEEDBACK")
    both = element(made, "multiple")
    element(both, "variable", identifier="FEEDBACK")
    element(both, "baseValue", baseType="identifier").text = identifier


def write_qti(book: dict[str, Any], target: Path) -> None:
    """A content package: a manifest, and a file for each question."""
    manifest = element(None, "manifest", xmlns=CP, identifier="attention-book")
    about = element(manifest, "metadata")
    element(about, "schema").text = "QTIv2.1 Package"
    element(about, "schemaversion").text = "1.0.0"
    element(manifest, "organizations")
    resources = element(manifest, "resources")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for chapter in book["chapters"]:
            for question in chapter["questions"]:
                path = f"{chapter['name']}/{question['name']}.xml"
                packed.writestr(path, item(question))
                resource = element(
                    resources, "resource", identifier=f"item-{question['name']}",
                    type="imsqti_item_xmlv2p1", href=path,
                )  # fmt: skip
                element(resource, "file", href=path)
        head = b'<?xml version="1.0" encoding="UTF-8"?>\n'
        packed.writestr("imsmanifest.xml", head + ET.tostring(manifest, "utf-8"))


def main() -> int:
    try:
        book = read_questions()
    except Mistake as error:
        sys.exit(str(error))
    folder = ROOT / "dist"
    folder.mkdir(exist_ok=True)
    (folder / "attention.gift.txt").write_text(gift(book), "utf-8")
    write_qti(book, folder / "attention-qti.zip")
    count = sum(len(chapter["questions"]) for chapter in book["chapters"])
    print(
        f"{count} questions are in dist/attention.gift.txt (Moodle: Question bank, Import, GIFT) "
        "and dist/attention-qti.zip (Canvas: Settings, Import Course Content, QTI)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

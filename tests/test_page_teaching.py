"""Lectures and exams: plans of 50 minutes, names that exist, numbers that are right."""

import math
import re
import sys
from collections import Counter

import pytest
import torch
from docutils import nodes
from pages import BOOK, printed, prose
from test_prose import CHAPTERS, FORBIDDEN

from attention import attention, softmax

sys.path.insert(0, str(BOOK / "_ext"))

import marking  # noqa: E402

PAGE = (BOOK / "teaching.md").read_text("utf-8")
PAGES = {name: (BOOK / f"{name}.md").read_text("utf-8") for name in CHAPTERS}
WIDGETS = BOOK.parent / "src" / "attention" / "widgets"
PARTS = dict(zip(CHAPTERS, re.split(r"^\(teaching-[\w-]+\)=\n## Chapter ", PAGE, flags=re.M)[1:],
                 strict=True))  # fmt: skip
minutes = {
    match[1]: int(match[2])
    for text in PAGES.values()
    for match in re.finditer(r"^:label: (ex-[\w-]+)\n:class: star-\d minutes-(\d+)", text, re.M)
}


def row(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_lecture_takes_fifty_minutes(name):
    part = PARTS[name]
    plan = [row(line) for line in part.splitlines() if re.match(r"\| \d+ \|", line)]
    assert sum(int(cells[0]) for cells in plan) == 50 and len(plan) >= 5
    assert part.startswith(f"{CHAPTERS.index(name) + 1}: ")
    assert f'href="../slides/{name}.html"' in part
    title = re.search(r"^# (.*)$", PAGES[name], re.M)[1]
    assert part.split("\n")[0] == f"{CHAPTERS.index(name) + 1}: {title}"


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_lecture_shows_only_what_its_chapter_has(name):
    part, text = PARTS[name], PAGES[name]
    for figure in re.findall(r"\{numref\}`(fig-[\w-]+)`", part):
        assert f"name: {figure}" in text, figure
    guesses = text.count("```{guess}")
    for k, word in enumerate(("first", "second", "third", "fourth", "fifth"), 1):
        assert f"the {word} guess" not in part or k <= guesses, word
    explorers = "\n".join(path.read_text("utf-8") for path in WIDGETS.glob("*.js"))
    about = re.search(r"\*\*Explorer\.\*\*.*?(?=\n\n)", part, re.S)[0]
    named = re.findall(r"\*([A-Z][^*]+)\*(?!\*)", about)
    assert named, "which explorer?"
    for title in named:
        assert re.search(rf'title: (tr`|"){re.escape(title)}', explorers), title
    for preset in re.findall(r'"([^"]+)"', about):
        assert re.search(rf'["`]{re.escape(preset)}[^"`]*["`]', explorers), preset


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_exam_question_has_its_points_and_its_marking(name):
    exam = PARTS[name].split("**Exam.**")[1]
    questions, marking = exam.split("```{admonition} Marking\n:class: dropdown marking\n")
    asked = re.findall(r"^(\d)\. \((\d+) points\)", questions, re.M)
    marks = re.split(r"^(\d)\\\. ", marking, flags=re.M)[1:]
    assert [k for k, _ in asked] == ["1", "2"] == marks[::2]
    for (_, points), text in zip(asked, marks[1::2], strict=True):
        given = 0
        for bracket in re.findall(
            r"\((?=\d+ points?|\d+ point each)([^)]*(?:\([^)]*\)[^)]*)*)\)", text
        ):
            first = int(re.match(r"\d+", bracket)[0])
            given += first * (3 if "point each" in bracket else 1)
        assert given == int(points), f"{given} of {points} points are given for: {text[:60]}"


def test_the_paths_add_up():
    paths = PAGE.split("(teaching-paths)=")[1].split("(teaching-motivation)=")[0]
    rows = [row(line) for line in paths.splitlines() if re.search(r"\| \d+ \|$", line)]
    assert len(rows) == 4 + 6 + 4 + 7
    for cells in rows:
        reading = sum(map(int, re.findall(r"\((\d+)\)", cells[-3])))
        named = re.findall(r"\{numref\}`(ex-[\w-]+)`", cells[-2])
        assert reading + sum(minutes[name] for name in named) == int(cells[-1]), cells
    assert sum(int(cells[-1]) for cells in rows[:4]) == 90


def test_no_phrase_that_the_book_does_without():
    text = prose("teaching").lower()
    assert [phrase for phrase in FORBIDDEN if re.search(rf"\b{re.escape(phrase)}\b", text)] == []


def say(template: str, *values: float) -> None:
    printed("teaching", template, *values)


def weights(*scores: float) -> list[float]:
    return softmax(torch.tensor(scores, dtype=torch.float64)).tolist()


def test_exam_of_chapter_1():
    say(r"(a) $0.6^{{20}}$ = {:.6f} (1 point)", 0.6**20)
    steps = math.log(1e-6) / math.log(0.6)
    say("= {:.2f}, so {} steps", steps, math.ceil(steps))
    say("(c) {:.3f} (1 point). With 0.6", 0.99**20)
    say("{} steps, {} layers (each reaches two", 999, math.ceil(999 / 2))
    square, recurrence = 1000**2 * 512, 1000 * 512**2
    say("about {:.0f} million multiplications for the scores, the recurrence about {:.0f} million",
        square / 1e6, recurrence / 1e6)  # fmt: skip


def test_exam_of_chapter_2():
    x = torch.eye(2, dtype=torch.float64)
    swap, v = x.flip(0), torch.tensor([[3.0], [1.0]], dtype=torch.float64)
    out, a = attention(x @ swap, x, x @ v, scale=1.0)
    assert (x @ swap @ x.T).tolist() == [[0, 1], [1, 0]]
    say("Weights {:.3f} and {:.3f} in the first row", *a[0].tolist())
    assert a[1].tolist() == pytest.approx(a[0].tolist()[::-1])
    say("Outputs {:.3f} and {:.3f}", *out.flatten().tolist())
    first, second = weights(2, 1), weights(1, 0)
    assert first == pytest.approx(second)
    say("both rows are {:.3f} and {:.3f}", *first)
    say("so the first word gives the second {:.3f} and gets {:.3f}", first[1], second[0])


def test_exam_of_chapter_3():
    say("weights {:.3f} and {:.3f}, and the output is the same", *weights(3, 1))
    say("without the scale it is {:.3f} and {:.3f}", *weights(6, 2))
    say("(b) {:.3f} and {:.3f} (2 points). (c) The scores are 6", *weights(1.5, 0.5))
    say("are 6 and 1, the weights {:.3f} and {:.3f}", *weights(12 / 2, 2 / 2))
    corners = torch.tensor([[0.0, 1, 3], [2, 4, 0], [1, 1, 1]], dtype=torch.float64)

    def shares(x: float, y: float) -> list[float]:
        return torch.linalg.solve(corners, torch.tensor([x, y, 1.0], dtype=torch.float64)).tolist()

    inside = shares(1.2, 2.5)
    assert min(inside) > 0
    say("the weights {:.3f}, {:.4f} and {:.4f} give it", *inside)
    assert min(shares(3.2, 1.0)) < 0 and min(shares(2.9, 3.9)) < 0
    assert 0 <= 2.9 <= 3 and 0 <= 3.9 <= 4


def test_exam_of_chapter_4():
    ratio = math.exp(((3 - 1) * 1 + 0 * 2) / math.sqrt(4))
    say(r"$e^{{2/2}}$ = {:.3f} (2 points; without the scale {:.3f}", ratio, math.exp(2))
    say("(b) {:.3f} before and {:.3f} after", 0.5 / ratio, 0.2 / ratio)
    d, shared = 768, 4 * 768 // 12
    say("= {:,} (2 points). (b) Two full matrices and two of $768 \\times {}$: {:,}",
        4 * d * d, shared, 2 * d * d + 2 * d * shared)  # fmt: skip
    say("By {}, from {:,} numbers a token and layer to {}", 12 // 4, 2 * d, 2 * shared)


def test_exam_of_chapter_5():
    say(r"$\cos 1.5$ = {:.3f}", math.cos(0.5 * (5 - 2)))
    offset = next(k for k in range(1, 99) if math.cos(0.5 * k) > 0.95)
    say(r"At {}, where it is $\cos 6$ = {:.3f}", offset, math.cos(0.5 * offset))
    say("One pair cannot tell {} from 0", offset)
    say("weights {:.3f}, {:.3f}, {:.3f} and {:.3f} (3 points)", *weights(-1.5, -1, -0.5, 0))


def test_exam_of_chapter_6():
    say("(a) {:.3f}, {:.3f} and exactly 0", *weights(1, 2))
    cut = weights(1, 2, 3)[:2]
    say("(b) {:.3f}, {:.3f} and 0, with the sum {:.3f}", *cut, sum(cut))
    say(r"$12 \cdot 127$ = {:,} (2 points; {:,} gets 1)", 12 * 127, 12 * 128)
    say("(b) {} layers, because 4,095 divided by 127 is {:.1f}", math.ceil(4095 / 127), 4095 / 127)


def test_exam_of_chapter_7():
    x = torch.tensor([2.0, 4, 6, 8], dtype=torch.float64)

    def norm(x):
        return torch.nn.functional.layer_norm(x, (4,), eps=0.0)

    def rms(x):
        return x / x.square().mean().sqrt()

    say("(a) −{:.3f}, −{:.3f}, {:.3f} and {:.3f} (2 points)", *norm(x).abs().tolist())
    for same in (norm(x + 10), norm(3 * x)):
        assert same.tolist() == pytest.approx(norm(x).tolist())
    say("(c) {:.3f}, {:.3f}, {:.3f} and {:.3f}; the first differs", *rms(x).tolist())
    assert rms(3 * x).tolist() == pytest.approx(rms(x).tolist()) != rms(x + 10).tolist()

    def parts(d: int, d_ff: int) -> tuple[int, int, int]:
        return 4 * d * d + 2 * d * d_ff, 2 * d * d_ff, 5000 * d

    block, fed, table = parts(256, 1024)
    whole = 6 * block + table
    say("A block has {:,}, six have {:,}, and the embedding has {:,}: together {:,}",
        block, 6 * block, table, whole)  # fmt: skip
    say("(b) {:.0f} % (1 point)", 100 * 6 * fed / whole)
    block, _, table = parts(512, 2048)
    say("the embedding twice: {:,}", 6 * block + table)


def test_exam_of_chapter_8():
    text = "banana bandana"
    pairs = Counter(zip(text, text[1:], strict=False))
    say("(a) {}, {} and {} (3 points)", *(pairs[tuple(p)] for p in ("an", "na", "ba")))
    assert pairs.most_common(1)[0][0] == ("a", "n")
    say("(b) {} of {} (2 points)", len(text.replace("an", "N")), len(text))
    say(r"$\ln 1000$ = {:.2f}", math.log(1000))
    loss = -sum(map(math.log, (0.5, 0.25, 0.1))) / 3
    say("(b) {:.3f} nats and {:.2f}", loss, math.exp(loss))
    logits = torch.tensor([0.5, 0.3, 0.2]).log().requires_grad_()
    torch.nn.functional.cross_entropy(logits[None], torch.tensor([1])).backward()
    say("(c) {:.1f}, −{:.1f} and {:.1f} (3 points", *logits.grad.abs().tolist())
    assert logits.grad[1] < 0 and logits.grad.sum().abs() < 1e-6


def test_exam_of_chapter_9():
    values = torch.tensor([[4.0, 0], [0, 4], [2, 2]], dtype=torch.float64)
    a = torch.tensor(weights(0, math.log(6), 0), dtype=torch.float64)
    say("(b) Weights {:.3f}, {:.2f} and {:.3f}, output $[{:.2f}, {:.2f}]$",
        *a.tolist(), *(a @ values).tolist())  # fmt: skip
    say("A and its best, with {:.2f}", 0.6 * 0.4)
    say("B and its best, with {:.2f}", 0.4 * 0.9)
    coarse, fine = (224 // 16) ** 2, (224 // 8) ** 2
    say("(c) {} and {}, without a class token; {} times", coarse, fine, fine**2 // coarse**2)


def test_exam_of_chapter_10():
    token = 2 * 32 * 8 * 128 * 2
    say("(a) {:,} (2 points; half", token)
    gib = token * 8192 / 2**30
    say("(b) {:.0f} GiB and {:.0f} GiB (2 points). (c) {:.0f} GiB", gib, 16 * gib, 4 * gib)
    total, out = math.exp(-1) + 1, 4 * math.exp(-1)
    say("maximum 2, sum {:.3f}, output {:.3f}", total, out)
    factor = math.exp(2 - 3)
    say("both are multiplied by {:.3f}", factor)
    total, out = total * factor + 1 + math.exp(-3), out * factor + 2 + 8 * math.exp(-3)
    say("the sum is {:.3f}, the output {:.3f} (2 points), and the result {:.3f}",
        total, out, out / total)  # fmt: skip
    whole = torch.tensor(weights(1, 2, 3, 0)) @ torch.tensor([4.0, 0, 2, 8])
    assert out / total == pytest.approx(whole.item())


def test_a_book_without_answers_has_no_marking():
    document = nodes.document(None, None)
    document += nodes.admonition("", nodes.paragraph("", "1. 42"), classes=["dropdown", "marking"])
    document += nodes.admonition("", nodes.paragraph("", "a mistake"), classes=["mistake"])
    marking.withhold(document)
    assert "42" not in document.astext() and "mistake" in document.astext()

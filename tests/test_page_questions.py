"""Chapter 11 poses every question of its source, links each to its section, and computes it."""

import math
import re
from types import SimpleNamespace

import matplotlib
import pages
import pytest
import torch

from attention import attention

TEXT = (pages.BOOK / "questions.md").read_text("utf-8")
CHAPTERS = re.findall(r"file: book/([\w-]+)", (pages.BOOK.parent / "_toc.yml").read_text("utf-8"))
LEVELS = ("Easy", "Moderate", "Hard")
# the checkpoints and interview questions that the book set out to pose: row, question
ROWS = """
S1-16 others, S1-56 scores, S1-66 row, S1-82 embedding-size, S1-116 head-width, S1-117 near-keys,
S1-118 lead, S1-119 no-values, S1-120 self, S1-121 equal, S1-122 same-weights, S1-123 masked,
S1-124 same-noun, S1-125 twins, S1-126 divide, S1-127 zero-query, S1-129 causal, S1-130 next,
S1-131 patches, S1-132 modes, S1-133 shape, S1-135 recurrence, S1-136 three, S1-137 square,
S1-138 softmax, S1-139 embedding, S1-140 cross, S1-141 heads, S1-142 shapes, S1-143 root,
S1-144 output, S1-145 complexity, S1-146 inside, S1-147 linear, S1-148 code, S1-149 order,
S1-150 redundant, S1-151 explanation, S1-152 sparsemax, S1-153 grouped, S1-154 padding,
S1-155 again
"""


def read(text):
    """The questions of a page in order: level, number, name, type, answer, asked, told, hints."""
    found, level = [], ""
    for match in re.finditer(r"^## (\w+)|^```\{interview\} (.*?)\n(.*?)^```$", text, re.S | re.M):
        if match[1]:
            level = match[1]
            continue
        options = dict(re.findall(r"^:(\w+): (.*)$", match[3], re.M))
        body = re.sub(r"^:\w+:.*\n", "", match[3], flags=re.M)
        asked, told = body.split("=== answer\n")
        told, *hints = re.split(r"^=== hint ", told, flags=re.M)
        found.append(SimpleNamespace(
            level=level, number=len(found) + 1, name=options["name"].removeprefix("question-"),
            kind=options["type"], answer=options.get("answer", ""), asked=asked, told=told,
            hints=hints, title=match[2],
        ))  # fmt: skip
    return found


QUESTIONS = read(TEXT)
BY_NAME = {question.name: question for question in QUESTIONS}
every = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)


def where(question):
    """The chapter's number and the label that the last line of an answer links to."""
    link = re.search(r"\n\nMore in \{ref\}`chapter (\d+) <([\w-]+)>`\.\s*\Z", question.told)
    assert link, f"{question.name}: the answer does not end with its section"
    return int(link[1]), link[2]


def test_every_row_is_posed():
    rows = dict(pair.split() for pair in ROWS.replace("\n", " ").split(","))
    assert len(rows) == len(set(rows.values())) == 42
    assert set(rows.values()) <= set(BY_NAME)
    assert {f"S1-{n}" for n in (*range(117, 128), *range(129, 134), *range(135, 156))} <= set(rows)
    assert "name: fig-questions-roadmap" in TEXT  # S1-156
    assert len(QUESTIONS) == len(BY_NAME) >= 42 + 42


def test_there_are_three_levels_and_most_answers_can_be_checked():
    assert list(dict.fromkeys(q.level for q in QUESTIONS)) == list(LEVELS)
    assert all(sum(q.level == level for q in QUESTIONS) >= 21 for level in LEVELS)
    assert {where(q)[0] for q in QUESTIONS} == set(range(1, 11))
    assert sum(q.kind != "open" for q in QUESTIONS) >= len(QUESTIONS) / 3


@every
def test_a_question_links_to_a_section_of_its_chapter(question):
    number, label = where(question)
    chapter = (pages.BOOK / f"{CHAPTERS[number - 1]}.md").read_text("utf-8")
    assert re.search(rf"^\({label}\)=\n+#", chapter, re.M), f"no section {label} in {number}"


@every
def test_a_question_has_a_wrong_answer_and_says_why(question):
    if question.kind == "open":
        wrong = re.search(r"^\*\*Often (said|written):\*\* (.+)$", question.told, re.M)
        assert wrong and len(wrong[2].split()) >= 12, question.name
        return
    assert question.hints
    for hint in question.hints:
        value, said = hint.split("\n", 1)
        assert value.strip() and len(said.split()) >= 5, (question.name, value)


@every
def test_what_can_be_computed_is_not_typed(question):
    if question.kind in ("number", "matrix"):
        assert question.answer.startswith(f"glue:questions-{question.name}")


def test_a_page_that_breaks_the_rules_is_seen():
    page = (
        "## Easy\n\n```{interview} T\n:name: question-a\n:type: open\nAsk.\n\n=== answer\nTold.\n"
    )
    (question,) = read(page + "```\n")
    with pytest.raises(AssertionError, match="does not end with its section"):
        where(question)
    with pytest.raises(AssertionError):
        test_a_question_has_a_wrong_answer_and_says_why(question)
    number = SimpleNamespace(kind="number", answer="3", name="a")
    with pytest.raises(AssertionError):
        test_what_can_be_computed_is_not_typed(number)


def test_the_table_of_chapters_has_every_question():
    rows = pages.table("questions", "tab-questions-chapters")
    assert rows[0] == ["Chapter", *LEVELS]
    for number, row in enumerate(rows[1:], 1):
        wanted = [
            ", ".join(
                f"[{q.number}](#question-{q.name})"
                for q in QUESTIONS
                if where(q)[0] == number and q.level == level
            )
            for level in LEVELS
        ]
        assert row[0].startswith(f"{{ref}}`{number} <ch-")
        assert row[1:] == [cell or "–" for cell in wanted], number


@pytest.fixture(scope="module")
def page():
    """The names that the page's cells define, and what they glue."""
    matplotlib.use("Agg")
    glued = {}
    names = {"glue": lambda name, value, display: glued.update({name: value})}
    for cell in re.findall(r"^```\{code-cell\} python\n(.*?)^```$", TEXT, flags=re.S | re.M):
        cell = re.sub(r"\A(---\n.*?^---\n|:tags:[^\n]*\n)", "", cell, flags=re.S | re.M)
        cell = cell.replace("from myst_nb import glue\n", "")
        exec(compile(cell, "questions.md", "exec"), names)
    matplotlib.pyplot.close("all")
    return SimpleNamespace(names=names, glued=glued)


def test_nothing_is_glued_in_vain_and_nothing_is_missing(page):
    used = set(re.findall(r"(?:glue:|\{glue:text\}`)(questions-[\w-]+)", TEXT))
    assert used == set(page.glued)


def softmax(scores):
    powers = [math.exp(s) for s in scores]
    return [p / sum(powers) for p in powers]


# the answer once more, from the numbers that the question itself prints
AGAIN = {
    "others": lambda n: n - 1,
    "embedding-size": lambda rows, width, texts, ids: texts * ids * width,
    "scores": lambda n, d_k: n * n,
    "lead": lambda *s: softmax(s)[0],
    "equal": lambda *v: sum(v) / len(v),
    "head-width": lambda d, h: d / h,
    "causal": lambda n: 5,
    "patches": lambda a, b, c, d: (a / c) * (b / d) + 1,
    "windows": lambda back, n: (n - 1) / back,
    "shapes": lambda n, d, _, d_k, __, d_v: [[n, d_k], [n, d_v], [n, n], [n, d_v]],
    "output": lambda a, b, c, *v: [[a * v[k] + b * v[k + 2] + c * v[k + 4] for k in (0, 1)]],
    "spread": lambda d_k, mean, variance: math.sqrt(d_k) * variance,
    "aligned": lambda d_k, *_: d_k / math.sqrt(d_k),
    "temperature": lambda a, b, t: math.exp(b / t) / math.exp(a / t),
    "crossing": lambda d: 8 * d**2 / (4 * d),
    "table-memory": lambda n, h, size: h * n * n * size / 1024 / 1024,
    "alibi": lambda m, i, near, far: math.exp(-m * (i - far)) / math.exp(-m * (i - near)),
    "norm": lambda *x: [[(v - 2) / 2 for v in x[:4]]],
    "size": lambda layers, d: layers * (4 * d * d + 2 * d * 4 * d) / 1e6,
    "fresh": lambda v: -math.log(1 / v),
    "slope": lambda p: p - 1,
    "colder": lambda a, b, t: a ** (1 / t) / (a ** (1 / t) + b ** (1 / t)),
    "cross-size": lambda n_q, n_k: n_q * n_k,
    "ratio": lambda cat, mat, now: now * mat / cat,
    "rank": lambda d_k, n: min(d_k + 1, n),
    "sparsemax": lambda zero, one, *s: [[max(v - 0.3, 0) for v in s]],
    "grouped": lambda layers, h, g, d_k, size: layers * 2 * g * d_k * size / 1024,
    "reach": lambda window, layers: layers * (window - 1),
    "longer": lambda *_: [[16, 4, 1]],
    "flag": lambda kept, new, queries, keys: queries,
    "merge": lambda m, l1, o1, three, l2, o2: (o1 / three + o2) / (l1 / three + l2),
    "state": lambda d: d * d / (d + d),
    "stands-still": lambda a, b: torch.tensor([a, b], dtype=torch.bfloat16).sum().item(),
    "outlier": lambda low, high, large: large / 127 / 2,
}


def numbers(text):
    found = re.findall(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?", text.replace("−", "-"))
    return [float(number.replace(",", "")) for number in found]


def test_the_answers_follow_from_the_numbers_of_the_questions(page):
    assert set(AGAIN) == {q.name for q in QUESTIONS if q.kind in ("number", "matrix")}
    for name, compute in AGAIN.items():
        right = torch.tensor(compute(*numbers(BY_NAME[name].asked)), dtype=torch.float64)
        glued = torch.tensor(page.glued[f"questions-{name}"], dtype=torch.float64)
        torch.testing.assert_close(glued, right, atol=1e-6, rtol=1e-6, msg=name)


def test_the_choices_that_a_cell_decides(page):
    decided = {q.name for q in QUESTIONS if q.kind == "choice" and q.answer.startswith("glue:")}
    assert decided == {"embedding", "linear", "divide", "returned", "silent"}
    for name in decided:  # what the answer says is the option that the cell chose
        options = re.findall(r"^- (.*)$", BY_NAME[name].asked, re.M)
        chosen = page.glued[f"questions-{name}"]
        for k in chosen if isinstance(chosen, list) else [chosen]:
            first = options[k - 1].split(",  ")[0].split(", because")[0].split(", and")[0]
            assert first.lower() in BY_NAME[name].told.lower().split("\n")[0], (name, first)
    assert page.glued["questions-divide"] == [2, 4]


def test_the_numbers_that_answers_type(page):
    glued = page.glued
    small = [glued[f"questions-small-{j}"] for j in range(4)]
    assert max(abs(w - 0.25) for w in small) < 0.004 and abs(sum(small) - 1) < 1e-6
    pages.printed("questions", "{:.2f} exactly. The ratio", glued["questions-ratio"])
    pages.printed("questions", "That leaves {:.1f} and {:.1f}, and 0 is below",
                  *glued["questions-sparsemax"][0][:2])  # fmt: skip
    assert glued["questions-sparsemax"][0][2] == 0
    pages.printed("questions", "$\\ell = 2/3 + 1$ and $o = 6/3 + 1 = 3$")
    assert glued["questions-merge"] == pytest.approx((6 / 3 + 1) / (2 / 3 + 1))
    assert 0.00009 < glued["questions-saturated"] < 0.0001
    assert round(glued["questions-share"]) == 17  # chapter 3 prints it, too


def test_the_code_on_the_whiteboard_is_attention():
    code = re.search(r"~~~python\n(.*?)~~~", BY_NAME["code"].told, re.S)[1]
    names = {"math": math}
    exec(code, names)
    q, k, v = torch.randn(2, 5, 8), torch.randn(2, 7, 8), torch.randn(2, 7, 3)
    for mine, right in zip(names["one_head"](q, k, v), attention(q, k, v), strict=True):
        torch.testing.assert_close(mine, right)


def test_the_line_with_the_padding_is_wrong_in_the_way_that_its_answer_says():
    line = re.search(r"~~~python\n(.*?)~~~", BY_NAME["padding"].asked, re.S)[1]

    def run(batch, n):
        names = {"math": math, "scores": torch.zeros(batch, n, n)}
        names["real"] = torch.arange(n) < torch.tensor([n] * (batch - 1) + [1])[:, None]
        exec(line, names)
        return names["scores"]

    with pytest.raises(RuntimeError):
        run(2, 3)
    same = run(3, 3)
    assert same[0, 2].isinf().any() and not same[2, 0].isinf().any()


def test_one_empty_row_spoils_the_whole_value_matrix():
    """The chain of the question `nan`, with a loss on real tokens only."""
    x, w = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)
    mask = torch.full((3, 3), -math.inf).triu(1)
    mask[:, 0] = -math.inf  # the first token is padding
    weights = (x @ x.T + mask).softmax(-1)
    (weights @ (x @ w))[1:].sum().backward()
    assert weights[0].isnan().all() and not weights[1:].isnan().any()
    assert w.grad.isnan().all()

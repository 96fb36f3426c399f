"""The page of misconceptions: every entry has its truth, its computation and its section."""

import ast
import math
import re

import pages
import pytest
import test_prose
import torch

PAGE = (pages.BOOK / "misread.md").read_text("utf-8")
CELL = re.compile(r"^```\{code-cell\} python\n:tags: \[hide-input\]\n\n(.*?)^```$", re.S | re.M)
ENTRIES = {
    part.split("\n", 1)[0].strip('"'): part.split("\n", 1)[1]
    for part in re.split(r"^### ", PAGE, flags=re.M)[1:]
}


def run(code, names):
    """Run a cell; return what its last line shows."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


@pytest.fixture(scope="module")
def shown():
    """The table of each entry, by a word or two of its statement."""
    torch.manual_seed(0)
    names = {}
    tables = [run(code, names) for code in CELL.findall(PAGE)]
    assert len(tables) == 1 + len(ENTRIES), "an entry has more or less than one cell"
    by_entry = dict(zip(ENTRIES, tables[1:], strict=True))
    return lambda words: by_entry[next(entry for entry in ENTRIES if words in entry)]


def numbers(table):
    return [[float(c.replace("−", "-")) for c in line] for line in table.cells]


def test_every_entry_has_its_truth_its_cell_and_its_section():
    assert 25 <= len(ENTRIES) <= 60
    for statement, body in ENTRIES.items():
        truth = re.split(r"^## |^\(", CELL.sub("", body), flags=re.M)[0].strip()
        assert re.search(r"See (\{ref\}`[^`]+ <(sec|pytorch)-[\w-]+>`( and )?)+\.$", truth), (
            statement
        )
        words = re.findall(r"[\w'-]+", truth)
        assert 20 < len(words) < 110, (statement, len(words))
        assert len(CELL.findall(body)) == 1, statement


def test_no_phrase_that_the_book_does_without_and_no_source_is_named():
    text = test_prose.prose(PAGE).lower()
    assert not [p for p in test_prose.FORBIDDEN if re.search(rf"\b{re.escape(p)}\b", text)]
    assert "{cite" not in PAGE and "http" not in PAGE


def test_the_sentences_say_what_the_tables_show(shown):
    assert numbers(shown("from Q, K and V"))[0] == [0.0]
    compared = numbers(shown("dot product measures"))
    assert compared[0][2] == compared[1][2] < compared[2][2] and compared[2][0] < compared[0][0]
    assert abs(numbers(shown("score of 0"))[1][0] - 0.2) < 0.003  # "a fifth"
    own = numbers(shown("attends most to itself"))
    assert [row.index(min(row)) == i for i, row in enumerate(own)] == [True, True, False]
    weight, distance = numbers(shown("nearest to the value"))
    assert abs(weight[2] - 0.5) < 0.005 and distance.index(min(distance)) == 1
    exact = numbers(shown("Three decimals"))
    assert [row[0] != row[2] for row in exact] == [True, False, True]  # "two of three rows"
    scores = numbers(shown("one-hot"))
    assert scores[0] == scores[1] and scores[2][0] == 1
    assert max(numbers(shown("losers"))[1]) < 1e-6 < 0.08 < min(numbers(shown("losers"))[0])
    plain, shifted, linear = (row[0] for row in numbers(shown("variance")))
    assert abs(plain / 64 - 1) < 0.05 and abs(shifted / 192 - 1) < 0.05 and linear < 10
    sizes = numbers(shown("however deep"))[0]
    assert sizes == sorted(sizes) and sizes[-1] > 5 * sizes[0]
    assert numbers(shown("fetches"))[0][0] < 0.5 and numbers(shown("fetches"))[2][0] > 0.99
    assert numbers(shown("similar queries")) == [[0, 8], [0, 0]]  # "0 with itself and 8 with cat"
    assert [row[0] for row in numbers(shown("smaller than"))] == [512, 128, 64]
    assert numbers(shown("all the other words")) == [[19, 20, 400, 210]]
    assert {row[0] for row in numbers(shown("split among"))} == {16}
    (one, rank_one), (eight, rank) = numbers(shown("Eight heads"))
    assert one == eight == 4 * 512**2 and rank == 64 < rank_one
    assert [row[0] for row in shown("Any reshape").cells] == ["[0, 1, 2]", "[0, 1]"]


def test_the_sentences_on_order_and_masks_say_what_the_tables_show(shown):
    mean = numbers(shown("Bob loves Alice"))
    assert mean[0] != mean[1] and mean[2] == mean[3]
    first, second, cat = numbers(shown("The two *the*"))
    assert first == second != cat
    free, causal = numbers(shown("Without position vectors"))
    assert free == [0, 0] and causal[0] == 0 < causal[1]
    speed = numbers(shown("slow, the later"))[0]
    assert speed == sorted(speed, reverse=True)
    assert shown("counts the dimensions").cells == [["7", "3", "cosine"]]
    for low_high, at in shown("read longer texts").cells:
        low, high = map(float, low_high.split(" to "))
        assert not low <= float(at) <= high
    moved = numbers(shown("pizza"))
    assert [a == b for a, b in moved] == [False, True, False]  # "only like"
    hundred, usual = numbers(shown("is 100"))
    assert hundred[:2] == usual[:2] and hundred[2:] != usual[2:]
    assert shown("only earlier tokens").cells[1] == ["nan"] * 3
    exact, small = numbers(shown("very close to zero"))
    assert exact == [0, 0] and abs(small[1] / small[0] - 1000) < 15
    assert -10 / 8 == -1.25
    exact, finite = numbers(shown("inside the division"))
    assert exact == [0, 0] and finite[0] < 0.001 and finite[1] > 0.2
    assert numbers(shown("after the softmax"))[1][:2] == [0.198, 0.599]
    assert [row[0] for row in shown("True in a mask").cells] == ["False", "True"]
    copied, masked = numbers(shown("training fails"))
    assert copied == [1] and masked[0] < 0.5
    assert min(numbers(shown("needs no mask"))[0]) > 0  # "all their states change"


def test_the_sentences_on_blocks_and_cost_say_what_the_tables_show(shown):
    silent = numbers(shown("residual connections"))
    assert silent[0] == silent[1] and silent[2] == [-1.342, -0.447, 0.447, 1.342]
    classes = [row[1] for row in shown("third attention").cells]
    assert classes == ["MultiHeadAttention", "MultiHeadAttention", "FeedForward"]
    assert shown("same length").cells == [["(1, 2, 8)", "(1, 2, 2, 5)"]]
    share = [float(row[1].split()[0]) for row in shown("doubles the width").cells]
    assert abs(share[1] - 200 / 3) < 0.2  # "two thirds"
    assert [row[0] for row in numbers(shown("window of five"))] == [10, 5, 4]
    assert shown("100 steps").cells == [["1", "10000"], ["99", "–"]]
    assert [row[0] for row in numbers(shown("Backpropagation"))] == [0.0, 0.1]
    drawn = numbers(shown("most probable"))
    assert drawn[0] == [1, 0, 0, 0] and drawn[1][0] > drawn[2][0] > drawn[2][1]
    (_, letter, first), (_, word, second) = numbers(shown("lower loss"))
    assert word > letter and first == second
    short, two, six = numbers(shown("dominates"))
    assert short[0] < short[1] and two[0] == two[1] and six[0] == six[2]
    assert [int(row[0]) for row in shown("ignore the weights").cells] == [10**6, 16000]
    assert float(shown("approximation").cells[0][0]) < 1e-5
    assert [row[0] for row in shown("cache keeps").cells] == ["k", "v"]


def test_numbers_that_are_written_out():
    slowest = 2 * math.pi * 10000 ** (510 / 512)
    said = "the first turns once in {:.3f} positions, the last once in {:,.0f}."
    pages.printed("misread", said, 2 * math.pi, slowest)
    pages.printed("glossary", "the loss $\\ln 50000 = {:.3f}$ and the", math.log(50000))

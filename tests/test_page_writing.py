"""The program that chapter 8 prints runs by itself; its numbers and claims are what it computes."""

import ast
import builtins
import math
import re
import subprocess
import sys

import pages
import torch

from attention import BytePairs, learn_merges, longest_copy, table, tales
from attention.figures import writing_measured as measured
from attention.widgets import _learner

TEXT = (pages.BOOK / "writing.md").read_text("utf-8")
CELLS = re.findall(r"^```\{code-cell\} python\n(.*?)^```$", TEXT, flags=re.S | re.M)
(PROGRAM,) = [cell for cell in CELLS if "BLOCKS = " in cell]


def says(template, *values):
    pages.printed("writing", template, *values)


def test_the_program_runs_alone(tmp_path):
    """From the printed page, shortened, in its own process, away from the book's folder."""
    lines = [line for line in PROGRAM.splitlines() if line.strip()]
    assert 90 <= len(lines) <= 105  # about a hundred
    short, count = re.subn(r"(STEPS, BATCH, TOP, WARMUP, CLIP =) 1200,", r"\1 30,", PROGRAM)
    assert count == 1
    file = tmp_path / "program.py"
    file.write_text("import torch\ntorch.set_num_threads(1)\n" + short)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    first, *rest = done.stdout.splitlines()
    loss = float(re.fullmatch(r"held-out loss (\d\.\d\d) nats a token", first)[1])
    assert 4.5 < loss < 6.3 < math.log(len(tales().tokens))  # it has begun to learn
    assert "\n".join(rest).startswith("One day")


def test_the_program_imports_the_text_and_nothing_else_of_the_book():
    taken = [
        (node.module, [alias.name for alias in node.names])
        for node in ast.walk(ast.parse(PROGRAM))
        if isinstance(node, ast.ImportFrom)
    ]
    assert ("attention", ["tales"]) in taken
    assert [module for module, _ in taken if module.startswith("attention")] == ["attention"]
    given, built = set(), set(dir(builtins))
    for node in ast.walk(ast.parse(PROGRAM)):  # and it uses no name from the cells above
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            given.add(node.name)
        elif isinstance(node, ast.arg):
            given.add(node.arg)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            given |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            given.add(node.id)
    used = {
        node.id for node in ast.walk(ast.parse(PROGRAM))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }  # fmt: skip
    assert used <= given | built, used - given - built


def test_byte_pairs_by_hand():
    merges = learn_merges("cat cats mat", 2)
    tokens = BytePairs(merges)
    assert tokens.pieces([256, 257]) == ["at", "cat"]
    once = BytePairs(merges[:1])
    assert once.pieces(once.encode("cat cats mat")) == [
        "c",
        "at",
        " ",
        "c",
        "at",
        "s",
        " ",
        "m",
        "at",
    ]
    says("the text is now *c at, c at s, m at*")
    for word, cut in (("cart", "c a r t"), ("bat", "b at")):
        assert " ".join(tokens.pieces(tokens.encode(word))) == cut
        assert f"*{cut}*" in TEXT
    low = learn_merges("low lower lowest slow", 2)
    cut = BytePairs(low)
    assert cut.pieces([256, 257]) == ["lo", "low"]
    for word, parts in (("slower", "s low e r"), ("owl", "o w l"), ("slow", "s low"),
                        ("lowest", "low e s t")):  # fmt: skip
        assert " ".join(cut.pieces(cut.encode(word))) == parts and f"*{parts}*" in TEXT
    other = BytePairs([(111, 119), (108, 256)])
    assert other.pieces(other.encode("owl")) == ["ow", "l"]


def test_the_first_merges_and_the_cost_of_a_language():
    tokens = tales().tokens
    first = tokens.pieces(range(256, 266))
    assert {"he", " t", " the"} <= set(first)  # the alternative text names them
    costs = [
        len(tokens.encode(s)) for s in ("The cat sleeps.", "Die Katze schläft.", "猫咪在睡觉。")
    ]
    assert costs.index(max(costs)) == 2 and costs[2] == 18 and costs == sorted(costs)
    assert [len("The cat sleeps."), len("Die Katze schläft."), len("猫咪在睡觉。")] == [15, 18, 6]
    assert [len(x.encode()) for x in ("e", "é", "猫", "🐱")] == [1, 2, 3, 4]


def test_the_slope():
    p = torch.tensor([2.0, 1.0, 0.1, -1.0]).softmax(0)
    y = torch.tensor([0.0, 1, 0, 0])
    p_text = ", ".join(f"{v:.2f}" for v in p)
    both = ", ".join(f"{v:.2f}".replace("-", "minus ") for v in p - y)
    assert f"p: {p_text}. y: 0, 1, 0, 0. p minus y: {both}." in TEXT
    says("$p - y = [0.2, 0.5, 0.3] - [0, 1, 0] = [0.2, -0.5, 0.3]$")
    says("should be near $\\ln 1000 = {:.1f}$", math.log(1000))


def test_units():
    bits = 3.6 / math.log(2)
    says("A nat is $1/\\ln 2$ = {:.3f} bits, so it is {:.2f} bits.", 1 / math.log(2), bits)
    says("The perplexity is $e^{{3.6}}$ = {:.1f}: as uncertain", math.exp(3.6))
    says("3.6/3.2 = {:.3f} nats, or {:.2f} bits a character", 3.6 / 3.2, bits / 3.2)
    says("11,000 · 5.19 bits are {:,.0f} bits, about {:.1f} kilobytes", 11e3 * bits, 11 * bits / 8)
    says("At one byte a character it is {:.1f} kilobytes", 11 * 3.2)
    says("3.5/3.0 = {:.2f} nats a character, B needs {:.2f}.", 3.5 / 3, 3.9 / 3.9)
    says("multiply the loss by $10^{{-0.076}}$ = {:.2f}", 10**-0.076)


def test_the_kinds_of_tokens():
    for piece, before, kind in (
        (".", " hat", "punctuation"), (' "', ".", "quotes"), (',"', " hat", "quotes"),
        (" hat", " the", "words"), ("er", " bak", "ends of words"), (" Nora", " saw", "names"),
        (" The", ".", "words"), (" I", " and", "words"), ("One", "\n", "words"),
    ):  # fmt: skip
        assert measured.kind_of(piece, before) == kind, piece


def test_what_a_model_that_sees_a_few_tokens_loses():
    windows = torch.arange(12).repeat(2, 1) % 10  # (2, 12)
    asked = []

    def sums(ids):  # finds the next token likely if its tokens add up to it
        asked.append(ids)
        return 9.0 * torch.nn.functional.one_hot(ids.cumsum(1) % 10, 10)

    each = measured.loss_seeing(sums, windows, [1, 3], [2, 5])
    assert each.shape == (2, 4)
    assert [ids[0].tolist() for ids in asked] == [[2], [5], [0, 1, 2], [3, 4, 5]]
    expected = [torch.nn.functional.cross_entropy(9.0 * torch.eye(10)[[have]], torch.tensor([want]))
                for have, want in ((2, 3), (5, 6), (3, 3), (2, 6))]  # fmt: skip
    assert torch.allclose(each, torch.tensor(expected).view(2, 2).repeat_interleave(2, 1))


def test_copies_are_whole_words():
    assert longest_copy("and the cat", "The cat and the dog") == "and the"


def test_the_losses_by_kind_are_a_part_of_the_whole():
    text = tales()
    windows = text.windows(48)[:20]
    flat = lambda ids: torch.zeros(*ids.shape, len(text.tokens))  # noqa: E731
    kinds = measured.loss_by_kind(flat, windows, text.tokens)
    assert set(kinds) == set(measured.KINDS)
    assert all(abs(loss - math.log(len(text.tokens))) < 1e-4 for loss in kinds.values())


def test_a_sentence_in_a_table_is_set_as_text():
    said = "One day the fox found a hat, and the hat was much too big."
    page = table([[0.5, said], [1.5, "none"]], ["a", "b"], ["loss", "it writes"])._repr_html_()
    assert f'<td>0.500</td><td class="said">{said}</td>' in page
    assert '<th scope="col">loss</th><th class="said" scope="col">it writes</th>' in page
    assert "said" not in table([[0.5, "none"]], ["a"], ["loss", "word"])._repr_html_()


def test_what_the_names_of_train_it_here_cost():
    task = _learner.make_task(None)
    size = len(task.letters)
    says(
        "A blind guess among {} characters has the loss $\\ln {}$ = {:.2f} nats.",
        size, size, math.log(size),
    )  # fmt: skip
    says("so the best possible loss on new names is known: {:.2f}.", _learner.best_loss(task))

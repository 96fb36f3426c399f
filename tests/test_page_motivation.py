"""The numbers that chapter 1 prints are the numbers that come out."""

import math
import re
import types

import pytest
import torch
from pages import BOOK, printed, prose

from attention import attention, cat_sentence, widgets
from attention.checks.motivation import _layers
from attention.figures import motivation_before as figures
from attention.figures import motivation_history as history
from attention.figures import motivation_trials as trials
from attention.widgets import Heads, Paths

PAGE = (BOOK / "motivation.md").read_text("utf-8")


def alternative(name: str) -> str:
    """The alternative text of the figure with this name."""
    return re.search(rf'name: {name}\n.*?alt: "(.*?)"\n---', PAGE, flags=re.S)[1]


def cell(start: str) -> str:
    """The code cell in which a line begins with `start`."""
    (found,) = (
        code for code in re.findall(r"^```\{code-cell\} python\n(.*?)^```", PAGE, re.S | re.M)
        if re.search(rf"^{re.escape(start)}", code, re.M)
    )  # fmt: skip
    return re.sub(r"\A(---\n.*?\n---|:tags:.*?)\n", "", found, flags=re.S)


def test_positions_in_the_opening_sentence():
    words = cat_sentence("warm")[0]
    ordinal = {2: "second", 6: "sixth", 8: "eighth"}
    it, mat, cat = (ordinal[words.index(w) + 1] for w in ("it", "mat", "cat"))
    printed(
        "motivation", "*Cat* is the {} word, *mat* the {} and *it* the {} in both", cat, mat, it
    )
    assert cat_sentence("tired")[0][:-1] == cat_sentence("warm")[0][:-1]
    assert f"*{' '.join(cat_sentence('warm')[0][:-1])}*, and names the noun" in PAGE
    at = [words.index(word) for word in ("cat", "mat", "it", "warm")]
    said = "*cat* is in position {}, *mat* in {}, *it* in {} and the last word in {}."
    printed("motivation", said, *at)
    names = {2: "two", 6: "six"}
    back = [names[words.index("it") - words.index(w)] for w in ("cat", "mat")]
    wanted = "a thick one goes {} words back to 'cat' and a thin one {} words back to 'mat'"
    assert wanted.format(*back) in alternative("fig-motivation-it")


def test_the_averages():
    _, X = cat_sentence("tired")
    printed("motivation", "$(1 + 0.5)/10 = {:.2f}$", X.mean(0)[0])
    for j, name in enumerate(("alive", "place", "pronoun", "adjective", "state")):
        assert f"{name} {X.mean(0)[j]:g}" in alternative("fig-motivation-mean").split("below:")[1]
    names: dict = {}
    exec("import torch\nfrom attention import cat_sentence, table, FEATURES", names)
    exec(cell("new = []"), names)
    tired, warm = names["new"]
    text = "the new *alive* is $0.8 \\cdot 1 + 0.1 \\cdot 0.5 + 0.1 \\cdot 0 = {:.2f}$"
    printed("motivation", text, tired[0])
    said = alternative("fig-motivation-weighted")
    for vector in (tired, warm):
        values = [f"{x:g}".replace("-", "minus ") for x in vector.tolist()]
        assert "alive {}, place {}, pronoun {}, adjective {}, state {}".format(*values) in said
    printed("motivation", "$0.5 \\cdot 1 + 0.5 \\cdot 0.5 = {:.2f}$", (0.5 * (X[1] + X[7]))[0])


def test_what_the_trained_network_looks_at():
    rows: dict = {}
    shown = types.SimpleNamespace(learned=lambda at_it, words: rows.update(at_it, words=words))
    exec(cell("stem = "), {"widgets": widgets, "history": shown})
    assert rows["words"].index("animal") == 1 and rows["words"].index("street") == 6
    said = alternative("fig-motivation-learned")
    for word, noun, at in (("tired", "animal", 1), ("wide", "street", 6)):
        row = rows[word]
        assert row.argmax() == at and Heads(adjective=word).prediction == noun
        number = f"{row[at]:.3f}" if row[at] > 0.995 else f"{row[at]:.2f}"
        assert f"With {word}, {noun} has {number} and all others have almost nothing" in said
        assert row.sum() == pytest.approx(1) and sorted(row.tolist())[-2] < 0.05
    drawn = {text.get_text() for text in history.learned(
        {word: rows[word] for word in ("tired", "wide")}, rows["words"]).axes[0].texts}  # fmt: skip
    assert {f"{rows['tired'][1]:.2f}", f"{rows['wide'][6]:.3f}"} <= drawn


def test_the_review_is_the_one_that_is_counted():
    names: dict = {"glue": lambda *a, **k: None}
    exec(cell("review = ("), names)
    shown = re.search(r"^> (The restaurant.*)$", PAGE, re.M)[1]
    assert names["review"] == shown and names["n"] == 37
    alt = alternative("fig-motivation-parameters")
    assert (
        f"with a point at 37 words and {(names['n'] * names['d_model']) ** 2 / 1e9:.1f} billion"
        in alt
    )
    assert f"stays at {4 * 1024**2 / 1e6:.1f} million" in alt


def test_the_verb_agrees_with_a_noun_twelve_words_back():
    text = prose("motivation")
    sentence = text[text.index("*The books that") + 1 :].split("*")[0].replace(",", "").split()
    back = sentence.index("were") - sentence.index("books")
    printed("motivation", "must agree with *books*, {} words back", back)


def test_layers_between_two_words():
    centred, causal = _layers(20, 5, False, False), _layers(20, 5, True, False)
    assert (centred, causal, _layers(20, 5, False, True)) == (10, 5, 4)
    assert "four layers are enough" in PAGE
    printed("motivation", "Four layers reach {} words with a centred window, and {} ", 8, 16)
    names: dict = {}
    exec("import torch\nimport torch.nn.functional as F", names)
    drawn: dict = {}
    names["before"] = types.SimpleNamespace(reach=lambda spans, *_: drawn.update(spans))
    exec(cell("def reached"), names)
    centred, back, gaps = drawn.values()
    said = alternative("fig-motivation-reach")
    assert [last - first + 1 for first, last in centred] == list(range(5, 42, 4))
    assert back == [(5, 5 + 4 * m) for m in range(1, 6)]
    widths = [last - first + 1 for first, last in gaps]
    assert "about doubles each time, {}, {}, {} and {} positions;".format(*widths) in said
    assert f"beyond word 25, to position {gaps[-1][1]}." in said
    bars = [bar.get_width() for bar in figures.reach(drawn, 5, 25).axes[0].patches]
    assert max(bars) / min(bars) == pytest.approx(widths[-1] / widths[0])  # none is cut off
    for how, layers in (({}, 10), ({"causal": True}, 5), ({"dilated": True}, 4)):
        assert 25 in names["reached"](layers, **how)
        assert 25 not in names["reached"](layers - 1, **how)
    assert names["reached"](1).tolist() == [3, 4, 5, 6, 7]


def test_factors():
    printed("motivation", "$0.45^{{49}} = {:.1f} \\cdot 10^{{-17}}$", 0.45**49 * 1e17)
    printed("motivation", "$1.2^{{49}} = {:.1f} \\cdot 10^{{3}}$", 1.2**49 / 1e3)
    printed("motivation", "$\\gamma = 0.5^{{1/49}} = {:.3f}$", 0.5 ** (1 / 49))
    gate = 1 / (1 + math.exp(-4))
    printed("motivation", "$\\sigma(4) = {:.3f}$", gate)
    printed("motivation", "$0.982^{{49}} = {:.2f}$", 0.982**49)
    printed("motivation", "After five steps about {:.0f} % is left", 100 * 0.45**5)
    said = ", ".join(["1", *(f"{0.45**i:.2f}" for i in range(1, 6))])
    assert f"Above them: {said}." in alternative("fig-motivation-chain")


def test_the_curves_of_forgetting_are_as_described():
    names: dict = {"torch": torch, "trials": trials, "glue": lambda *a, **k: None}
    exec(cell("measured = {").replace("from myst_nb import glue", ""), names)
    plain, shut, wide, head = names["measured"].values()
    assert (plain[0] / plain[-1]) ** (1 / 49) == pytest.approx(0.45, abs=0.005)
    alt = alternative("fig-motivation-gradient")
    for curve, end in ((plain, 0.5), (shut, 0.1)):
        low = -math.floor(curve[0].log10() + 0.5)
        assert f"from about 10 to the minus {low} at word 1 to about {end}" in alt or (
            f"from about 10 to the minus {low} to about {end}" in alt
        )
        assert curve[-1] == pytest.approx(end, rel=0.3)
    for at in (0, 24, 49):
        assert f"{wide[at]:.2f}" in re.search(r"gate open (starts .*?)\. Attention", alt)[1]
    assert 0.03 < wide.min() and wide.max() < 0.2
    assert f"level at about {head[:-1].mean():.3f}".rstrip("0") in alt and head[-1] < 0.03
    assert head[:-1].max() < 2 * head[:-1].min()
    printed("motivation", "the 50 words share the weight, 1/{} each on average", 50)
    assert 20 < wide[0] / head[0] < 23
    printed("motivation", "more than {} times *smaller* than in the open LSTM", 20)


def test_larger_parameters_explode():
    names: dict = {"torch": torch, "trials": trials, "before": type("none", (), {})}
    names["before"].factors = staticmethod(lambda first: first)
    exec(cell("first = {}"), names)
    first = names["first"]
    assert -18 < math.log10(first[1]) < -16.5 and -5.5 < math.log10(first[2]) < -4.5
    assert 1 < first[3] < 4 and 2500 < first[4] < 4500


@pytest.mark.parametrize("n, learn", [(3, (1, 1, 1, 1)), (50, (0, 0, 1, 1))])
def test_which_layers_remember_the_noun(n, learn):
    for wanted, make in zip(learn, trials.layers(32).values(), strict=True):
        share, layer, text = trials.first_word(make, n)
        assert share > 0.99 if wanted else 0.2 < share < 0.3
    if n == 50:
        with torch.no_grad():  # attention, the last one, finds the noun by its weight
            assert layer(text)[1][0, 0, -1, 0] > 0.99


def test_without_positions_attention_does_not_know_which_noun_came_first():
    make = trials.layers(32)["attention"]
    alone, _, _ = trials.first_word(make, 50, nouns_later=True)
    (said,) = re.findall(r"attention falls to about (\d+)", alternative("fig-motivation-first"))
    assert abs(100 * alone - int(said)) < 4
    placed, _, _ = trials.first_word(make, 50, nouns_later=True, positions=True)
    assert placed > 0.99 and ":answer: glue:motivation-nouns-best" in PAGE


def test_a_smaller_state_keeps_fewer_facts():
    small, large = (
        trials.facts(lambda size=size: trials.lstm(32, size, gate=4.0), 8, size) for size in (8, 64)
    )
    alt = alternative("fig-motivation-facts")
    for share in (small, large):
        (said,) = (int(x) for x in re.findall(r"falls to about (\d+) for 8", alt)
                   if abs(int(x) - 100 * share) < 5)  # fmt: skip
    assert trials.facts(trials.layers(32)["attention"], 8) > 0.99
    later = [trials.facts(lambda size=size: trials.lstm(32, size, gate=4.0), 8, size, steps=1500)
             for size in (64, 8)]  # fmt: skip
    assert abs(later[1] - small) < 0.08  # five times the training hardly helps the small one
    for share in later:
        assert any(
            abs(int(x) - 100 * share) < 3 for x in re.findall(r"hollow mark is at (\d+)", alt)
        )


def test_steps_in_a_row():
    _, weights = attention(*(torch.randn(1, 100, 8),) * 3)
    printed("motivation", "No word waits for another, but {:,} weights", weights.numel())


def test_a_whole_layer_of_attention_works_more_than_a_recurrence():
    def matrices(layer):
        return sum(p.numel() for p in layer.parameters() if p.ndim == 2)

    d = 32
    recurrence = matrices(trials.layers(d)["plain recurrence"]())
    head = matrices(trials.layers(d)["attention"]())
    said = "a plain recurrence needs ${}nd^2$ multiplications, an attention layer ${}nd^2 + 2n^2d$"
    printed("motivation", said, recurrence // d**2, head // d**2)
    counts = Paths(n=64, d_model=512).counts  # what the explorer says, and the note under it
    assert counts["attention"]["work"] < counts["recurrence"]["work"]
    assert all(head * n + 2 * n * n * d > recurrence * n for n in (8, 64, 4096))
    assert "The explorer counts those that connect the words; with its four matrices" in PAGE


def test_additive_attention_by_hand():
    s, h = torch.tensor(0.5), torch.tensor([-0.5, 0.5, 1.5])
    e = torch.tanh(s + h)
    a = e.softmax(0)
    printed("motivation", "e &= (0,\\ {:.3f},\\ {:.3f})", *e[1:])
    printed("motivation", "\\exp e &= (1,\\ {:.3f},\\ {:.3f})", *e.exp()[1:])
    printed("motivation", "\\text{{sum}} &= {:.3f}", e.exp().sum())
    printed("motivation", "a &= ({:.3f},\\ {:.3f},\\ {:.3f})", *a)
    printed("motivation", "c &= {:.3f}", a @ h)
    printed("motivation", "*Cat* gets {:.3f}: more than *grey*", a[2])
    drawn = [text.get_text() for text in history.bottleneck().axes[0].texts]
    printed("motivation", "far less than the {} of the drawing", max(x for x in drawn if "0." in x))


def test_the_alignment_reverses_three_words():
    said = alternative("fig-motivation-alignment")
    assert f"{len(history.FRENCH)} French words as rows, {len(history.ENGLISH)} English" in said
    assert len(history.LOOKS) == len(history.FRENCH)
    for french, english in (
        ("zone", "Area"),
        ("économique", "Economic"),
        ("européenne", "European"),
    ):
        looks = history.LOOKS[history.FRENCH.index(french)]
        assert history.ENGLISH[max(looks, key=looks.get)] == english


def test_what_the_explorer_is_said_to_show():
    def path(**settings):
        return Paths(**settings).counts["convolution"]["path"]

    assert path(n=21, kernel=3) == 2 * path(n=21, kernel=5)
    assert path(n=64, kernel=5, dilated=True) <= path(n=8, kernel=5, dilated=True) + 2
    work = Paths(n=16, d_model=32).counts
    assert work["attention"]["work"] == work["recurrence"]["work"]
    printed("motivation", "Set its width to {}: at which", 32)
    printed("motivation", "(c) At $n = {}$.", 16)
    ends = [path(n=n, kernel=2, dilated=wide) for wide in (True, False) for n in (8, 64)]
    said = "grows only from {} to {}; without dilation it grows from {} to {}."
    printed("motivation", said, *ends)


def test_pairs_of_twenty_words():
    n = 20
    printed("motivation", "gets a weight for {} others and for itself", n - 1)
    printed("motivation", "so there are $20 \\cdot 20 = {}$", n * n)
    assert re.search(rf":name: check-motivation-pairs\n:type: number\n:answer: {n * n}\n", PAGE)

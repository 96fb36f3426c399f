"""The numbers that chapter 1 prints are the numbers that come out."""

import re

import torch
from pages import BOOK, printed, prose
from torch import nn

from attention import MultiHeadAttention
from attention.checks.motivation import _layers
from attention.widgets import Paths


def test_positions_in_the_opening_sentence():
    words = "The cat sat on the mat because it was warm".split()
    ordinal = {2: "second", 6: "sixth", 8: "eighth"}
    it, mat, cat = (ordinal[words.index(w) + 1] for w in ("it", "mat", "cat"))
    printed("motivation", "*it* is the {} word, *mat* the {}, *cat* the {}", it, mat, cat)
    names = {2: "two", 6: "six"}
    back = [names[words.index("it") - words.index(w)] for w in ("mat", "cat")]
    wanted = "a thick one goes {} words back to 'mat' and a thin one {} words back to 'cat'"
    assert wanted.format(*back) in (BOOK / "motivation.md").read_text("utf-8")


def test_the_verb_agrees_with_a_noun_twelve_words_back():
    text = prose("motivation")
    sentence = text[text.index('"The books that') + 1 :].split('"')[0].replace(",", "").split()
    back = sentence.index("were") - sentence.index("books")
    printed("motivation", "must agree with *books*, {} words back", back)


def test_layers_between_two_words():
    centred, causal = _layers(20, 5, False, False), _layers(20, 5, True, False)
    printed("motivation", "it reaches 2 words to each side, so {} layers", centred)
    printed("motivation", "Looking only back, it reaches 4, so {} layers", causal)
    assert _layers(20, 5, False, True) == 4  # "With gaps that widen ..., four are"
    printed("motivation", "they reach {} words centred, {} looking back", 4 * 2, 4 * 4)


def test_factors():
    printed("motivation", "$0.8^{{49}} = {:.1f} \\cdot 10^{{-5}}$", 0.8**49 * 1e5)
    printed("motivation", "$1.2^{{49}} = {:.1f} \\cdot 10^{{3}}$", 1.2**49 / 1e3)
    printed("motivation", "$\\gamma = 0.5^{{1/49}} = {:.3f}$", 0.5 ** (1 / 49))
    printed("motivation", "Forty-nine factors of 0.8 make {:.5f}", 0.8**49)


def test_pairs():
    n = 20
    text = "{} others, and itself, which makes {}. In all $20 \\cdot 20 = {}$ ordered pairs"
    printed("motivation", text, n - 1, n, n * n)
    printed("motivation", "One step *in a row*, and {:,} scores to compute", 100**2)


def test_the_curves_of_forgetting_are_as_described():
    page = (BOOK / "motivation.md").read_text("utf-8")
    (cell,) = re.findall(r"```\{code-cell\} python\n(length, width.*?)```", page, flags=re.S)
    names = {"torch": torch, "nn": nn, "MultiHeadAttention": MultiHeadAttention}
    exec(cell, names)
    plain, lstm, head = names["measured"].values()
    alt = re.search(r'alt: "Three curves(.*?)"\n', page)[1]
    assert f"to about 10 to the minus {-plain[0].log10().round():.0f}." in alt
    assert f"falls slowly, to about {lstm[0]:.2f}." in alt
    assert f"drops to about {head[:-1].mean():.1f} at word 49" in alt
    assert head[:-1].max() < 2 * head[:-1].min() and plain[0] < plain[25] < lstm[0]


def test_what_the_explorer_is_said_to_show():
    def path(**settings):
        return Paths(**settings).counts["convolution"]["path"]

    assert path(n=21, kernel=3) == 2 * path(n=21, kernel=5)
    assert path(n=64, kernel=5, dilated=True) <= path(n=8, kernel=5, dilated=True) + 2
    work = Paths(n=16, d_model=32).counts
    assert work["attention"]["work"] == work["recurrence"]["work"]
    printed("motivation", "Set its width to {}: at which", 32)
    printed("motivation", "(c) At $n = {}$.", 16)
    ends = [path(n=n, kernel=3, dilated=wide) for wide in (True, False) for n in (8, 64)]
    said = "grows from {} to {}; without dilation it grows from {} to {}."
    printed("motivation", said, *ends)

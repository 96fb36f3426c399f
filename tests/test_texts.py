"""Byte pairs are exact for any text; texts are split, cut and refused as they say."""

import gzip
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention.texts
from attention import BytePairs, from_text, learn_merges, tales

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import check_tales  # noqa: E402

STRANGE = [
    "", " ", "\n\n", "  two  spaces ", "naïve café", "Привет, мир", "注意力就是全部",
    "\U0001f642\U0001f469\u200d\U0001f467", "\x00\x01\x7f\t\r\n", "it's 12.5 % 'quoted'",
    "\ufffd", "e\u0301",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokens():
    return tales().tokens


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_comes_back(tokens, text):
    assert tokens.decode(tokens.encode(text)) == text


@pytest.mark.parametrize("text", STRANGE)
def test_strange_texts_come_back(tokens, text):
    ids = tokens.encode(text)
    assert tokens.decode(ids) == text and ids.dtype == torch.int64
    assert b"".join(tokens._bytes[i] for i in ids) == text.encode()


def test_the_first_merges_by_counting():
    text = "low low low lower lowest newer newest"
    counts = Counter()
    for word in ["low", " low", " low", " lower", " lowest", " newer", " newest"]:
        counts.update(zip(word.encode(), word.encode()[1:], strict=False))
    best = min(counts, key=lambda pair: (-counts[pair], pair))
    assert learn_merges(text, 1) == [best] == [tuple(b"lo")]
    assert learn_merges(text, 2)[1] == (256, ord("w"))
    assert learn_merges("abc", 5) == []  # nothing occurs twice
    assert learn_merges("aaaa aaaa", 1) == [tuple(b"aa")]


def test_the_earliest_merge_goes_first():
    tokens = BytePairs([tuple(b"bc"), tuple(b"ab")])
    assert tokens.pieces(tokens.encode("abc")) == ["a", "bc"]
    assert len(tokens) == 258


def test_tokens_of_tales_are_mostly_words(tokens):
    text = tales().held_out
    assert len(tokens) == 256 + attention.texts.MERGES
    assert len(text.encode()) / len(tokens.encode(text)) > 3  # characters a token


def test_a_training_text_is_split_without_loss():
    text = from_text("One day the cat sat on the mat. " * 100, merges=20)
    assert text.train + text.held_out == "One day the cat sat on the mat. " * 100
    lines = attention.texts._TALES.read_text("utf-8").splitlines()
    split = tales()
    assert sorted(lines) == sorted((split.train + split.held_out).splitlines())
    assert split.held_out.splitlines() == lines[9::10]


def test_batches_and_windows():
    text = from_text("One day the cat sat on the mat. " * 100, merges=20)
    ids = text.tokens.encode(text.train)
    batch = next(text.batches(8, batch_size=3, seed=1))
    assert batch.shape == (3, 9)
    joined = " ".join(map(str, ids.tolist()))
    assert all(" ".join(map(str, row.tolist())) in joined for row in batch)
    assert torch.equal(batch, next(text.batches(8, batch_size=3, seed=1)))
    assert not torch.equal(batch, next(text.batches(8, batch_size=3, seed=2)))
    held = text.tokens.encode(text.held_out)
    windows = text.windows(8)
    assert torch.equal(windows[:, 1:].flatten(), held[1 : windows.shape[0] * 8 + 1])


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda p: from_text(3), "source must be a string or a pathlib.Path; got"),
        (lambda p: from_text("short"), "1,000 characters or more; the string has 5"),
        (lambda p: from_text(""), "1,000 characters or more; the string has 0"),
        (lambda p: from_text("mine.txt"), "for a file: Path\\('mine.txt'\\)"),
        (lambda p: from_text("a\0" * 2000), "holds the character NUL"),
        (lambda p: from_text(p), "must be text in UTF-8"),
        (lambda p: from_text("a b " * 500).windows(10**6), "held-out part"),
        (lambda p: from_text("a b " * 500).batches(10**6), "training part"),
        (lambda p: learn_merges("a", -1), "count must be at least 0; got -1"),
        (lambda p: learn_merges(b"a", 1), "text must be a string; got"),
        (lambda p: BytePairs([(300, 1)]), "merges must join earlier ids; number 0 joins 300, 1"),
        (lambda p: tales().tokens.decode([99999]), "ids must be from 0 to 955; got 99999"),
        (lambda p: tales().tokens.decode(torch.zeros(1, 1)), "ids must be \\(n,\\)"),
        (lambda p: tales().tokens.encode("\ud800"), "character 0 cannot"),
    ],
)
def test_refusals(call, said, tmp_path):
    image = tmp_path / "image.png"
    image.write_bytes(b"\x89PNG\r\n" * 400)
    with pytest.raises((TypeError, ValueError), match=said):
        call(image)


def test_the_tales_pass_their_check():
    lines = attention.texts._TALES.read_text("utf-8").splitlines()
    known = set(check_tales.WORDS.read_text("utf-8").split())
    assert check_tales.faults(lines, known) == []
    assert len(lines) >= 800 and attention.texts._TALES.stat().st_size >= 400_000
    assert len(gzip.compress(attention.texts._TALES.read_bytes())) < 200_000


GOOD = 'Mia had a red kite. "Look!" she said. ' + "It flew over the hill and over the lake. " * 7


@pytest.mark.parametrize(
    "tales, fault",
    [
        (["Too short."], "tale 1 has 2 words"),
        ([GOOD.replace("lake", "xylophone").strip()], "not in the list: xylophone"),
        ([GOOD.strip() + " He said “no”."], "characters that are not allowed"),
        ([GOOD], "characters that are not allowed"),
        ([GOOD.strip() + ' "No.'], "opens a quotation and does not close it"),
        ([GOOD.strip() + " and"], "does not end with a sentence"),
        ([GOOD.strip(), GOOD.strip()], "tale 2 opens like tale 1"),
        ([GOOD.strip(), "Once. " + GOOD.strip()], "tale 2 shares with tale 1"),
        ([f"The old man {i} " + GOOD.strip() for i in ("a b c d e f g h i j k l m".split())],
         "13 tales begin with 'the old man'"),
    ],
)  # fmt: skip
def test_the_check_finds_faults(tales, fault):
    known = set(check_tales.WORDS.read_text("utf-8").split())
    assert not check_tales.faults([GOOD.strip()], known)
    assert any(fault in found for found in check_tales.faults(tales, known))

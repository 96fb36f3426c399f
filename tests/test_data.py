"""The corpora: sizes, splits, seeds, and that what they claim to contain they contain."""

import itertools
import re

import pytest
import torch

from attention import (
    Vocabulary,
    batches,
    pronoun_task,
    reversal_pairs,
    translation_pairs,
    weather_corpus,
    weather_sentences,
)
from attention.data import ANIMALS, COLOURS, FEATURES, FEELINGS, FRENCH, PLACES


def test_vocabulary_there_and_back():
    v = Vocabulary("a b c a".split())
    assert len(v) == 6 and "c" in v and "d" not in v and v["c"] == 5
    assert v.encode("c a").tolist() == v.encode(["c", "a"]).tolist() == [5, 3]
    assert v.decode([v.start, 5, 3, v.end, 4]) == "c a"
    assert v.encode_batch(["a", "b c"]).tolist() == [[1, 3, 2, 0], [1, 4, 5, 2]]
    assert v.encode_batch(["a", "b c"], start=False, end=False).tolist() == [[3, 0], [4, 5]]
    with pytest.raises(KeyError, match="vocabulary of 6 words does not hold 'd'"):
        v.encode("a d")


def test_batches_are_seeded_shuffled_and_complete():
    x = torch.arange(10)

    def rounds(seed):
        return [b.tolist() for b, _ in itertools.islice(
            batches(x, x, batch_size=3, seed=seed), 6)]  # fmt: skip

    assert rounds(0) == rounds(0) != rounds(1)
    first = sum(rounds(0)[:3], [])
    assert len(set(first)) == 9 and rounds(0)[3:] != rounds(0)[:3]
    pairs = next(batches(x, -x, batch_size=4))
    assert torch.equal(pairs[0], -pairs[1])


def test_pronoun_task_means_what_its_adjective_says():
    task = pronoun_task()
    v = task.vocabulary
    assert len(task.train_ids) == 3840 and len(task.test_ids) == 960 and len(v) == 44
    for ids, referents in ((task.train_ids, task.train_referents),
                           (task.test_ids, task.test_referents)):  # fmt: skip
        for row, referent in zip(ids, referents.tolist(), strict=True):
            words = v.decode(row).split()
            assert words[task.it] == "it" and words[task.animal] in ANIMALS
            assert words[task.place] in PLACES and words[-1] in FEELINGS + FEATURES
            where = task.animal if words[-1] in FEELINGS else task.place
            assert v.words[referent] == words[where]


def test_pronoun_task_holds_out_whole_pairs():
    def pairs(ids):
        return {tuple(p) for p in ids[:, [1, 6]].tolist()}

    task = pronoun_task()
    train, test = pairs(task.train_ids), pairs(task.test_ids)
    assert not train & test and len(train | test) == 100 and len(test) == 20
    v = task.vocabulary
    for seed in range(20):
        assert (v["animal"], v["street"]) in pairs(pronoun_task(seed=seed).train_ids)
    assert pairs(pronoun_task(seed=1).test_ids) != test
    assert pairs(pronoun_task(held_out=0.5).test_ids) > set() and len(
        pairs(pronoun_task(held_out=0.5).test_ids)) == 50  # fmt: skip
    words = set(task.train_ids.flatten().tolist())
    assert set(task.test_ids.flatten().tolist()) <= words


def test_weather_sentences_follow_their_grammar():
    sentences = weather_sentences()
    assert len(set(sentences)) == len(sentences) == 486
    pattern = re.compile(
        r"the (old |great )?(\w+) (\w+)( slowly| again)? and the (wide |quiet )?(\w+) turns (\w+)"
    )
    colour = {}
    for sentence in sentences:
        match = pattern.fullmatch(sentence)
        assert match, sentence
        _, noun, verb, _, _, thing, hue = match.groups()
        assert thing in COLOURS
        assert colour.setdefault((noun, verb, thing), hue) == hue
    assert len(colour) == 18
    assert "the sun sets and the sky turns red" in sentences


def test_weather_corpus_splits_without_overlap():
    v, train, test = weather_corpus()
    rows = [v.decode(row) for row in torch.cat([train, test])]
    assert sorted(rows) == sorted(weather_sentences())
    for seed in range(20):
        v, train, _ = weather_corpus(held_out=400, seed=seed)
        assert "the sun sets and the sky turns red" in {v.decode(row) for row in train}
    assert torch.equal(weather_corpus(seed=3)[2], weather_corpus(seed=3)[2])


def test_reversal_pairs():
    v, source, target = reversal_pairs(50, length=5, symbols=7, seed=1)
    assert source.shape == (50, 5) and target.shape == (50, 7) and len(v) == 10
    assert (target[:, 0] == v.start).all() and (target[:, -1] == v.end).all()
    assert torch.equal(target[:, 1:-1], source.flip(1))
    assert set(source.flatten().tolist()) == set(range(3, 10))
    assert torch.equal(reversal_pairs(50, 5, 7, seed=1)[1], source)
    assert not torch.equal(reversal_pairs(50, 5, 7, seed=2)[1], source)


def test_translation_pairs_put_the_adjective_behind_the_noun():
    pairs = translation_pairs(300)
    assert pairs == translation_pairs(300) != translation_pairs(300, seed=1)
    adjectives = {"noir", "blanc", "gris", "calme"}
    lengths = set()
    for english, french in pairs:
        e, f = english.split(), french.split()
        assert sorted(FRENCH[word] for word in e) == sorted(f)
        lengths.add(len(e))
        for i, word in enumerate(e):
            if FRENCH[word] in adjectives:  # black cat -> chat noir
                assert (FRENCH[e[i + 1]], FRENCH[word]) in zip(f, f[1:], strict=False)
    assert lengths == {5, 6, 7}


def test_special_words_keep_their_numbers():
    vocabulary = Vocabulary("the <end> <pad>".split())
    assert (vocabulary["<pad>"], vocabulary["<end>"], len(vocabulary)) == (0, 2, 4)
    assert vocabulary.decode(vocabulary.encode("the <end> the")) == "the"
    assert vocabulary.encode_batch([""], start=False, end=False).dtype == torch.int64


def test_too_small_a_share_for_the_test_is_refused():
    with pytest.raises(ValueError, match="held_out must keep one of the 100 pairs; got 0.001"):
        pronoun_task(held_out=0.001)

"""The toy corpora of the chapters: generated, seeded, and small enough to know every sentence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import _checks as check
from .vocabulary import Vocabulary, batches

ANIMALS = "animal cat cow dog duck fox goose horse rabbit sheep".split()
PLACES = "street bridge canal field lane park river road square tunnel".split()
VERBS = "cross enter leave like pass visit".split()
FEELINGS = "tired hungry scared sleepy".split()  # said of the animal
FEATURES = "wide narrow crowded slippery".split()  # said of the place

CAUSES = "sun rises, sun sets, moon rises, rain falls, snow falls, storm comes".split(", ")
COLOURS = {  # what each cause makes of the thing
    "sky": "gold red silver grey pale black".split(),
    "sea": "blue purple silver brown grey black".split(),
    "hill": "green red blue brown white grey".split(),
}

FRENCH = {
    "the": "le", "cat": "chat", "dog": "chien", "fox": "renard", "wolf": "loup",
    "horse": "cheval", "rabbit": "lapin", "black": "noir", "white": "blanc", "grey": "gris",
    "calm": "calme", "sees": "voit", "follows": "suit", "finds": "trouve",
    "hears": "entend",
}  # fmt: skip


@dataclass
class PronounTask:
    """Sentences with an *it*, and what it stands for. Made by `pronoun_task`.

    Of the seeds tried, 16 gives an `Encoder` one of whose heads does the work alone: after

        torch.manual_seed(16)
        model = Encoder(len(task.vocabulary), d_model=32, num_heads=4, num_layers=2)
        train(model, task.batches(), task.loss, steps=400, lr=0.01, warmup=40)

    the head L1H3 (layer 1, head 3, both counted from 0) reads the referent from *it*, animal or
    place. Most seeds give animals to one head and places to another, and are nearly as accurate.
    """

    vocabulary: Vocabulary
    train_ids: Tensor  # (N, 12)
    train_referents: Tensor  # (N,) the word that *it* means
    test_ids: Tensor
    test_referents: Tensor
    animal: int = 1  # places in the sentence
    place: int = 6
    it: int = 8

    def batches(self, batch_size: int = 32, seed: int = 0) -> Iterator[tuple[Tensor, ...]]:
        """Endless batches of ids (B, 12) and referents (B,)."""
        return batches(self.train_ids, self.train_referents, batch_size=batch_size, seed=seed)

    def loss(self, model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        """Cross-entropy of the model's guess, at the place of *it*, of what it means."""
        ids, referents = batch
        return F.cross_entropy(model(ids)[:, self.it], referents)

    def twins(self, ids: Tensor) -> Tensor:
        """The same sentences (B, 12) with the adjective exchanged: tired for wide, and so on."""
        pairs = [*zip(FEELINGS, FEATURES, strict=True), *zip(FEATURES, FEELINGS, strict=True)]
        other = {self.vocabulary[a]: self.vocabulary[b] for a, b in pairs}
        twins = ids.clone()
        twins[:, -1] = torch.tensor([other[word] for word in ids[:, -1].tolist()])
        return twins

    @torch.no_grad()
    def accuracy(self, model: nn.Module, **options) -> float:
        """Share of the held-out sentences where the likeliest word at *it* is the referent.

        options go to the model's forward, such as head_mask.
        """
        where = next(model.parameters()).device
        guess = model(self.test_ids.to(where), **options)[:, self.it].argmax(-1)
        return (guess.cpu() == self.test_referents).double().mean().item()


def pronoun_task(held_out: float = 0.2, seed: int = 0) -> PronounTask:
    """Make "the animal did not cross the street because it was too tired", and its like.

    Every animal with every verb, place and adjective: 4,800 sentences. The adjective decides
    whether *it* is the animal or the place. A share `held_out` of the pairs of animal and place is
    kept for the test, so that no test sentence's pair was seen in training; never the pair animal
    and street. ValueError if that share is not between 0 and 1.

    >>> task = pronoun_task()
    >>> task.vocabulary.decode(task.train_ids[0])
    'the animal did not cross the street because it was too tired'
    """
    check.number("held_out", held_out)
    check.count("seed", seed, least=0)
    if not 0 < held_out < 1:
        raise ValueError(f"held_out must be between 0 and 1; got {held_out}")
    words = "the did not because it was too".split()
    vocabulary = Vocabulary([*words, *ANIMALS, *PLACES, *VERBS, *FEELINGS, *FEATURES])
    pairs = list(itertools.product(ANIMALS, PLACES))
    order = torch.randperm(len(pairs) - 1, generator=torch.Generator().manual_seed(seed)) + 1
    kept = {pairs[i] for i in order[: round(held_out * len(pairs))].tolist()}
    if not kept:
        raise ValueError(f"held_out must keep one of the {len(pairs)} pairs; got {held_out}")
    rows: dict[bool, list[Tensor]] = {False: [], True: []}
    referents: dict[bool, list[int]] = {False: [], True: []}
    for (animal, place), verb in itertools.product(pairs, VERBS):
        for adjective in FEELINGS + FEATURES:
            test = (animal, place) in kept
            rows[test].append(vocabulary.encode(
                f"the {animal} did not {verb} the {place} because it was too {adjective}"
            ))  # fmt: skip
            referents[test].append(vocabulary[animal if adjective in FEELINGS else place])
    return PronounTask(
        vocabulary, torch.stack(rows[False]), torch.tensor(referents[False]),
        torch.stack(rows[True]), torch.tensor(referents[True]),
    )  # fmt: skip


def weather_sentences() -> list[str]:
    """All 486 sentences like "the sun sets and the sky turns red".

    The colour follows from what happens and to which thing; adjectives and adverbs come and go,
    so that the distance between them varies.

    >>> sentences = weather_sentences()
    >>> len(sentences), "the sun sets and the sky turns red" in sentences
    (486, True)
    """
    sentences = []
    for i, cause in enumerate(CAUSES):
        noun, verb = cause.split()
        for thing, colours in COLOURS.items():
            for old, slowly, wide in itertools.product(
                ("", "old ", "great "), ("", " slowly", " again"), ("", "wide ", "quiet ")
            ):
                sentences.append(
                    f"the {old}{noun} {verb}{slowly} and the {wide}{thing} turns {colours[i]}"
                )
    return sentences


def weather_corpus(held_out: int = 48, seed: int = 0) -> tuple[Vocabulary, Tensor, Tensor]:
    """Split `weather_sentences` for training and test: (vocabulary, train_ids, test_ids).

    ids (N, 13) with <start>, <end> and padding; the test has `held_out` of them, never "the sun
    sets and the sky turns red". ValueError if held_out is not from 1 to 485.

    >>> vocabulary, train_ids, test_ids = weather_corpus()
    >>> len(vocabulary), train_ids.shape, test_ids.shape
    (35, torch.Size([438, 13]), torch.Size([48, 13]))
    """
    sentences = weather_sentences()
    check.count("seed", seed, least=0)
    if check.count("held_out", held_out) >= len(sentences):
        raise ValueError(f"held_out must be less than {len(sentences)}; got {held_out}")
    vocabulary = Vocabulary(word for sentence in sentences for word in sentence.split())
    always = sentences.index("the sun sets and the sky turns red")
    order = torch.randperm(len(sentences), generator=torch.Generator().manual_seed(seed))
    order = torch.cat([order[order != always], torch.tensor([always])])
    ids = vocabulary.encode_batch(sentences)
    return vocabulary, ids[order[held_out:]], ids[order[:held_out]]


def reversal_pairs(
    size: int, length: int = 8, symbols: int = 10, seed: int = 0
) -> tuple[Vocabulary, Tensor, Tensor]:
    """Make random strings of letters and the same backwards: (vocabulary, source, target).

    source (size, length); target (size, length + 2), with <start> and <end>. ValueError if a
    number is less than 1, or symbols more than 26.

    >>> vocabulary, source, target = reversal_pairs(size=1, length=4)
    >>> vocabulary.decode(source[0]), vocabulary.decode(target[0])
    ('e j d a', 'a d j e')
    """
    for name, count in (("size", size), ("length", length), ("symbols", symbols)):
        check.count(name, count)
    check.count("seed", seed, least=0)
    if symbols > 26:
        raise ValueError(f"symbols must be at most 26, the letters; got {symbols}")
    vocabulary = Vocabulary(list("abcdefghijklmnopqrstuvwxyz")[:symbols])
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(3, 3 + symbols, (size, length), generator=generator)
    start = torch.full((size, 1), vocabulary.start)
    target = torch.cat([start, source.flip(1), torch.full_like(start, vocabulary.end)], dim=1)
    return vocabulary, source, target


def translation_pairs(size: int, seed: int = 0) -> list[tuple[str, str]]:
    """Make English sentences and their French, where the adjective follows the noun.

    Returns `size` pairs of strings, repeats possible; the words are the keys and values of
    `FRENCH`. ValueError if size is less than 1.

    >>> translation_pairs(size=1, seed=3)
    [('the fox sees the white wolf', 'le renard voit le loup blanc')]
    """
    check.count("size", size)
    check.count("seed", seed, least=0)
    nouns, adjectives = "cat dog fox wolf horse rabbit".split(), "black white grey calm".split()
    verbs = "sees follows finds hears".split()
    generator = torch.Generator().manual_seed(seed)

    def pick(words: Sequence[str]) -> str:
        return words[int(torch.randint(len(words), (1,), generator=generator))]

    pairs = []
    for _ in range(size):
        phrases = [["the", pick([*adjectives, "", ""]), pick(nouns)] for _ in range(2)]
        verb = pick(verbs)
        english = [*phrases[0], verb, *phrases[1]]
        french = [w for the, adjective, noun in phrases for w in (the, noun, adjective)]
        french.insert(3, verb)
        pairs.append((
            " ".join(word for word in english if word),
            " ".join(FRENCH[word] for word in french if word),
        ))  # fmt: skip
    return pairs

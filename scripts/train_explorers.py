"""Train the small models that run inside the explorers, and write their weights.

    python scripts/train_explorers.py            # all files, under a minute
    python scripts/train_explorers.py heads      # or one of them

The recipes and seeds are the chapters': chapter 4's pronoun transformer, chapter 7's language
model, chapter 6's model without a mask, and chapter 9's reader of digits. Another processor may
round differently and train slightly other weights; tests/test_widgets_models.py says how different
they may be.
"""

import sys

import torch
import torch.nn.functional as F

from attention import (
    Encoder,
    LanguageModel,
    VisionTransformer,
    Vocabulary,
    batches,
    digits,
    next_token_loss,
    pronoun_task,
    train,
    weather_sentences,
)
from attention.widgets import _weights


def pronouns(seed: int = 4) -> Encoder:
    """Chapter 4's model, which says what "it" means."""
    task = pronoun_task()
    torch.manual_seed(seed)
    model = Encoder(len(task.vocabulary), d_model=32, num_heads=4, num_layers=2, tied=False)
    train(model, task.batches(64), task.loss, steps=400, lr=3e-3)
    return model


def language_model(seed: int = 0) -> LanguageModel:
    """Chapter 7's model, which continues "the sun sets and the sky turns"."""
    sentences = weather_sentences()
    vocabulary = Vocabulary(word for s in sentences for word in s.split())
    ids = vocabulary.encode_batch(sentences)
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(seed)
    model = LanguageModel(len(vocabulary), d_model=32, num_heads=4, num_layers=2)
    train(
        model,
        batches(ids[order[97:]], batch_size=32),
        lambda model, batch: next_token_loss(model, batch[0], pad=vocabulary.pad),
        steps=500,
        lr=5e-3,
        warmup=50,
    )
    return model


def unmasked_model(seed: int = 0) -> LanguageModel:
    """Chapter 6's mistake: the same sizes, trained without the mask on windows of 16 tokens."""
    sentences = weather_sentences()
    vocabulary = Vocabulary(" ".join(sentences).split())
    read = [s for s in sentences if s != "the sun sets and the sky turns red"]
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(read), (4000,), generator=generator).tolist()
    text = vocabulary.encode([w for i in chosen for w in [*read[i].split(), "<end>"]])
    starts = torch.randint(len(text) - 16, (20000,), generator=generator)
    windows = text.unfold(0, 17, 1)[starts]
    torch.manual_seed(seed)
    model = LanguageModel(len(vocabulary), d_model=32, num_heads=4, num_layers=2, is_causal=False)
    deal = batches(windows, batch_size=32, seed=seed)
    train(model, (ids for (ids,) in deal), next_token_loss, steps=300, lr=5e-3, warmup=40)
    return model


def reader_of_digits(seed: int = 0) -> VisionTransformer:
    """Chapter 9's model, which sees digits as sixteen patches; trained on the first 1,400."""
    images, labels = digits()
    torch.manual_seed(seed)
    model = VisionTransformer(d_model=32, num_heads=2, num_layers=2)
    train(
        model,
        batches(images[:1400], labels[:1400], batch_size=64),
        lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]),
        steps=400,
        lr=5e-3,
        warmup=50,
    )
    return model


EXPLORERS = {
    "heads": {"model": pronouns},
    "generation": {"masked": language_model, "unmasked": unmasked_model},
    "patches": {"model": reader_of_digits},
}


def main(names: list[str]) -> int:
    for name in names or list(EXPLORERS):
        if name not in EXPLORERS:
            print(f"the explorers with weights are {', '.join(EXPLORERS)}; got {name}")
            return 2
        models = {key: make() for key, make in EXPLORERS[name].items()}
        path = _weights.write(name, models)
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

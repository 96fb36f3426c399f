"""Train the language model that ships with the book on its tales, and write its numbers.

    python scripts/train_tales.py                # about ten minutes on two cores
    python scripts/train_tales.py --steps 400    # a trial; writes nothing

Writes src/attention/widgets/tales_weights.js and, for the slider through the training, a file each
for steps 100 and 500. Training starts from the numbers of `attention._packed.begin`, the same
everywhere; another processor may round differently and train slightly other weights.
"""

import argparse
import hashlib
import json
import math
import sys
import time

import torch
from tqdm import tqdm

from attention import LanguageModel, Text, _packed, next_token_loss, pretrained, tales

SIZES = {"d_model": 96, "num_heads": 4, "num_layers": 3}
CONTEXT = 128  # tokens that it reads at once
STEPS = 10000
BATCH = 8
LR = 3e-3
WARMUP = 100
DROPOUT = 0.1  # of what a sub-layer adds and of the embeddings; of weights and hidden units none
DECAY = 0.1
SAMPLE = "\nOne day"


def rate(step: int, steps: int) -> float:
    """The share of the full learning rate: a linear rise, then half a cosine down to nothing."""
    if step < WARMUP:
        return step / WARMUP
    return 0.5 + 0.5 * math.cos(math.pi * (step - WARMUP) / max(1, steps - WARMUP))


def train_tales(
    text: Text, steps: int = STEPS, progress: bool = True
) -> tuple[LanguageModel, dict[int, dict[str, str]]]:
    """The trained model, and its packed numbers after 100 and 500 steps (if it gets so far)."""
    torch.manual_seed(0)
    model = LanguageModel(len(text.tokens), **SIZES, dropout=DROPOUT)
    _packed.begin(model).train()
    for layer in model.layers:
        layer.attention.dropout = layer.feed_forward.dropout.p = 0.0
    matrices = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.98))
    held_out = text.windows(CONTEXT)
    deal = text.batches(CONTEXT, BATCH)
    early = {}
    for step in (bar := tqdm(range(1, steps + 1), disable=not progress)):
        for group in optimizer.param_groups:
            group["lr"] = LR * rate(step, steps)
        loss = next_token_loss(model, next(deal))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step in pretrained.CHECKPOINTS:
            early[step] = _packed.pack(model)
        if progress and (step % 250 == 0 or step == steps):
            ids = text.tokens.encode(SAMPLE)[None]
            fixed = torch.Generator().manual_seed(0)
            said = model.generate(ids, 30, temperature=0.8, generator=fixed)
            said, lost = text.tokens.decode(said[0]).strip(), pretrained._loss(model, held_out)
            bar.write(f"step {step}: loss {loss.item():.3f}, held out {lost:.3f} | {said}")
        bar.set_postfix_str(f"loss {loss.item():.3f}", refresh=False)
    return model.eval(), early


def mark(text: Text) -> str:
    """What tells these tales from others."""
    return hashlib.sha256((text.train + text.held_out).encode()).hexdigest()[:16]


def write(text: Text, model: LanguageModel, early: dict[int, dict[str, str]], steps: int) -> None:
    """Write the numbers of the end with sizes, merges and facts, and those of the early steps."""
    first = {
        "context": CONTEXT,
        "sizes": {"vocab_size": len(text.tokens), **SIZES},
        "facts": {
            "steps": steps,
            "parameters": sum(p.numel() for p in model.parameters()),
            "train": round(pretrained._loss(model, pretrained._read(text, CONTEXT)), 4),
            "held_out": round(pretrained._loss(model, text.windows(CONTEXT)), 4),
            "tales": mark(text),
        },
        "merges": " ".join(str(i) for pair in text.tokens.merges for i in pair),
    }
    for checkpoint, packed in {"end": first | _packed.pack(model), **early}.items():
        path = pretrained._file(checkpoint)
        path.write_text(
            "// Written by scripts/train_tales.py: int8 rows and float16, base64.\n"
            f"export const weights = {json.dumps(packed, indent=1)};\n",
            encoding="utf-8",
        )
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, help=f"a trial of so many steps, not {STEPS}")
    parser.add_argument("--write", action="store_true", help="write the numbers of a trial too")
    asked = parser.parse_args()
    steps = asked.steps or STEPS
    text, start = tales(), time.monotonic()
    model, early = train_tales(text, steps)
    lost = pretrained._loss(model, text.windows(CONTEXT))
    print(f"{time.monotonic() - start:.0f} s; held out {lost:.4f}")
    if asked.write or not asked.steps:
        write(text, model, early, steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())

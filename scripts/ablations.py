"""Train small models on the tales, each with one part of today's models, and write what they lose.

    python scripts/ablations.py                  # about 20 minutes on one core
    python scripts/ablations.py --only rotary    # this row alone; the others stay as they are
    python scripts/ablations.py --steps 20       # a trial; writes nothing

The models are those of `variant` in chapter 10: the script runs the cells that the page shows.
With seed 0 each model tries three learning rates; with the best of them it trains from the other
seeds, and only these are reported. Writes src/attention/figures/ablation.json.
"""

import argparse
import json
import platform
import re
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import attention
from attention import LanguageModel, Text, next_token_loss, pretrained, tales, train

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "src/attention/figures/ablation.json"
VARIANTS = ("2017", "pre-norm", "RMSNorm", "rotary", "gated network", "all four", "latent",
            "experts", "experts, not balanced")  # fmt: skip
STEPS, CONTEXT, BATCH, WARMUP = 600, 64, 16, 100
RATES = (5e-3, 1e-2, 2e-2)  # tried with seed 0
SEEDS = (1, 2)  # reported
BALANCE = 0.01  # the factor of the load-balancing loss (Fedus et al. 2022, section 2.2)


def shown() -> dict:
    """The names that chapter 10's cells of the new parts and of `variant` define."""
    names = {"torch": torch, "nn": nn, "F": F, **vars(attention)}
    page = (ROOT / "book/in-practice.md").read_text("utf-8")
    for cell in re.findall(r"^```\{code-cell\} python\n(.*?)^```$", page, re.S | re.M):
        cell = re.sub(r"\A---\n.*?^---\n", "", cell, flags=re.S | re.M)  # its options
        if cell.startswith(("class Gated", "class Experts", "def variant")):
            exec(compile(cell, "in-practice.md", "exec"), names)
    return names


def experts(model: LanguageModel) -> list:
    """The feed-forward layers that have a router."""
    return [block.feed_forward for block in model.layers if hasattr(block.feed_forward, "router")]


def learn(
    name: str, text: Text, seed: int, lr: float, steps: int = STEPS, progress: bool = True
) -> dict:
    """Train the variant `name` and return what it loses, what it takes and how it routes."""
    torch.manual_seed(seed)
    model = shown()["variant"](name, len(text.tokens))
    factor = BALANCE if name == "experts" else 0.0

    def loss_fn(model, ids):
        loss = next_token_loss(model, ids)
        return loss + factor * sum(layer.balance for layer in experts(model)) if factor else loss

    deal, start = text.batches(CONTEXT, BATCH, seed), time.process_time()
    train(model, deal, loss_fn, steps=steps, lr=lr, warmup=WARMUP, seed=seed, progress=progress)
    spent = time.process_time() - start
    row = {
        "seed": seed,
        "lr": lr,
        "held_out": round(pretrained._loss(model, text.windows(CONTEXT)), 4),
        "ms_per_step": round(1000 * spent / steps, 1),
    }
    if routed := experts(model):
        with torch.no_grad():
            model(text.windows(CONTEXT)[:, :-1])
        row["shares"] = [[round(f, 4) for f in layer.f.tolist()] for layer in routed]
    return row


def measure(name: str, text: Text, steps: int = STEPS) -> dict:
    """One row of the file: the rates tried, and a run for each reported seed."""
    model = shown()["variant"](name, len(text.tokens))
    tried = [learn(name, text, 0, lr, steps) for lr in RATES]
    best = min(tried, key=lambda run: run["held_out"])["lr"]
    runs = [learn(name, text, seed, best, steps) for seed in SEEDS]
    return {"parameters": sum(p.numel() for p in model.parameters()), "tried": tried, "runs": runs}


def processor() -> str:
    """The processor's name, as Linux gives it, or what Python knows."""
    about = Path("/proc/cpuinfo")
    text = about.read_text("utf-8") if about.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
    return found[1].strip() if found else platform.processor() or platform.machine()


def facts() -> dict:
    """What all rows have in common."""
    return {
        "machine": f"one core of {processor()}, PyTorch {torch.__version__.partition('+')[0]}, "
        f"Python {platform.python_version()}, float32",
        "steps": STEPS, "context": CONTEXT, "batch": BATCH, "warmup": WARMUP, "balance": BALANCE,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS, help="a trial of so many steps")
    parser.add_argument("--only", choices=VARIANTS, help="measure this row alone")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = json.loads(FILE.read_text("utf-8"))["rows"] if asked.only and FILE.exists() else {}
    for name in [asked.only] if asked.only else VARIANTS:
        rows[name] = measure(name, tales(), asked.steps)
        print(f"{name}: {[run['held_out'] for run in rows[name]['runs']]}", flush=True)
        if asked.steps == STEPS:
            ordered = {name: rows[name] for name in VARIANTS if name in rows}
            FILE.write_text(json.dumps({**facts(), "rows": ordered}, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

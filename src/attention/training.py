"""One training loop for every model of the book."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from . import _checks as check


@dataclass
class History:
    """What happened at each step: the loss, the learning rate, the gradient's norm (unclipped)."""

    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)


def train(
    model: nn.Module,
    batches: Iterable[Any],
    loss_fn: Callable[[nn.Module, Any], Tensor],
    *,
    steps: int,
    lr: float = 1e-3,
    warmup: int = 0,
    clip: float | None = 1.0,
    seed: int = 0,
    progress: bool = True,
) -> History:
    """Take `steps` steps of Adam on ``loss_fn(model, batch)``, and return the history.

    batches: a list, which is gone through again and again, or a generator; tensors in a batch (a
    tensor, or a tuple, list or dict of them) move to the model's device. lr: the learning rate
    after `warmup` steps of linear rise, from where it falls like 1/sqrt(step); constant if warmup
    is 0. clip: the longest gradient allowed, None for any. seed: for dropout; the caller's random
    state is left alone (on the CPU and CUDA). The model ends in eval mode, even if it is stopped.
    ValueError or TypeError if an argument makes no sense or the batches run out;
    FloatingPointError as soon as the loss or its gradient is not finite. Vaswani et al. 2017,
    section 5.3.

    >>> model = nn.Linear(1, 1)
    >>> history = train(model, [torch.ones(4, 1)], lambda m, x: (m(x) - 3).square().mean(),
    ...                 steps=200, lr=0.1, progress=False)
    >>> history.loss[-1] < 0.001
    True
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module; got {check.kind(model)}")
    if not isinstance(batches, Iterable):
        raise TypeError(f"batches must be a list or a generator; got {check.kind(batches)}")
    if not callable(loss_fn):
        raise TypeError(f"loss_fn must be a function (model, batch); got {check.kind(loss_fn)}")
    check.count("steps", steps)
    check.count("warmup", warmup, least=0)
    check.count("seed", seed, least=0)
    check.number("lr", lr, above=0)
    if clip is not None:
        check.number("clip", clip, above=0)
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("model must have parameters to train; got none")
    where = parameters[0].device
    optimizer = torch.optim.Adam(parameters, lr=lr, betas=(0.9, 0.98))
    history = History()
    with torch.random.fork_rng([where] if where.type == "cuda" else []), _training(model):
        _seed(where, seed)
        stream = _endless(batches)
        for step in (bar := tqdm(range(1, steps + 1), disable=not progress)):
            rate = lr if warmup == 0 else lr * min(step / warmup, math.sqrt(warmup / step))
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = loss_fn(model, _to(next(stream), where))
            if not isinstance(loss, Tensor) or loss.ndim:
                came = check.shape(loss) if isinstance(loss, Tensor) else check.kind(loss)
                raise TypeError(f"loss_fn must return a tensor with a single number; got {came}")
            value = float(loss.detach())
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(parameters, math.inf if clip is None else clip)
            for what, size in (("loss", value), ("gradient's norm", float(norm))):
                if not math.isfinite(size):
                    raise FloatingPointError(
                        f"the {what} is {size} at step {step} of {steps}: try an lr smaller than "
                        f"{lr}, a longer warm-up than {warmup} steps, or look for a division by "
                        "zero"
                    )
            optimizer.step()
            history.loss.append(value)
            history.lr.append(rate)
            history.grad_norm.append(float(norm))
            bar.set_postfix_str(f"loss {value:.3f}", refresh=False)
    return history


def next_token_loss(
    model: Callable[[Tensor], Tensor], ids: Tensor, pad: int | None = None
) -> Tensor:
    """Ask the model at every place for the token after it; return the mean cross-entropy, in nats.

    ids (B, n + 1); places whose next token is `pad` do not count. Returns a scalar.
    ValueError if there is no next token; NaN if all of them are `pad`. Radford et al. 2018, eq. 1.

    >>> always_even = lambda ids: torch.zeros(*ids.shape, 4)
    >>> next_token_loss(always_even, torch.tensor([[0, 1, 2]]))
    tensor(1.3863)
    """
    _check_ids("ids", ids)
    if pad is not None:
        check.count("pad", pad, least=-math.inf)
    logits = model(ids[:, :-1])  # (B, n, vocab_size)
    ignore = -100 if pad is None else pad
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten().long(), ignore_index=ignore)


def translation_loss(
    model: nn.Module, source: Tensor, target: Tensor, pad: int | None = None
) -> Tensor:
    """Give the model source and target, and ask at every place for the target's next token.

    source (B, m), target (B, n + 1), as `EncoderDecoder` takes them; `pad` is neither attended to
    in the source nor counted in the target. Returns the mean cross-entropy, in nats, a scalar.
    ValueError if there is no next token. Vaswani et al. 2017, section 5.

    >>> always_even = lambda source, target, mask: torch.zeros(*target.shape, 4)
    >>> translation_loss(always_even, torch.tensor([[0, 1]]), torch.tensor([[0, 1, 2]]))
    tensor(1.3863)
    """
    check.integers("source", source)
    if pad is not None:
        check.count("pad", pad, least=-math.inf)
    source_mask = None if pad is None else (source != pad)[:, None]  # (B, 1, m)
    _check_ids("target", target)
    return next_token_loss(lambda ids: model(source, ids, source_mask), target, pad)


def _check_ids(name: str, ids: Tensor) -> None:
    check.integers(name, ids)
    if ids.ndim != 2 or ids.shape[1] < 2:
        raise ValueError(f"{name} must be (B, n + 1) with n >= 1; got {check.shape(ids)}")


@contextmanager
def _training(model: nn.Module) -> Iterator[None]:
    """Training mode inside, eval mode afterwards, whatever ends it."""
    model.train()
    try:
        yield
    finally:
        model.eval()


def _seed(where: torch.device, seed: int) -> None:
    """Seed what the model's own device draws from, and the CPU; no other device."""
    torch.default_generator.manual_seed(seed)
    if where.type == "cuda":
        with torch.cuda.device(where):
            torch.cuda.manual_seed(seed)
    elif where.type == "mps":
        torch.mps.manual_seed(seed)


def _endless(batches: Iterable[Any]) -> Iterator[Any]:
    count = 0
    while True:
        before = count
        for batch in batches:
            yield batch
            count += 1
        if count == before:
            raise ValueError(f"batches must not run out before the last step; {count} came")


def _to(batch: Any, where: torch.device) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(where)
    if isinstance(batch, dict):
        return {key: _to(value, where) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        values = [_to(value, where) for value in batch]
        return type(batch)(*values) if hasattr(batch, "_fields") else type(batch)(values)
    return batch

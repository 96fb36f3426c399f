"""The checks of chapter 8: byte pairs, batches, the loss and its slope, a step, copying."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..byte_pairs import BytePairs, learn_merges
from ._base import NotYet, call, close, diagnose, draw, passed, sized, want_tensor, without

__all__ = ["copies", "decode", "induction", "rate", "slope", "step", "windows"]


def decode(function: Callable[..., Any]) -> None:
    """`my_decode(ids, merges)`: the text of a list of ids."""
    drawn = "".join("abcé "[k] for (k,) in draw(11, 60, (0, 4)))
    known = (("cat cats mat", 2), ("aaaa aaaa", 3), ("été, été, été", 2), ("猫 猫", 0))
    for text, count in (*known, (drawn, 6)):
        tokens = BytePairs(learn_merges(text, count))
        for ids in (tokens.encode(text).tolist(), list(text.encode()), []):
            given, merges = list(ids), list(tokens.merges)
            with without(BytePairs.decode, BytePairs._piece):
                result = call(function, given, merges)
            if given != ids or merges != tokens.merges:
                raise NotYet("you changed a list that was given; build a new one")
            if isinstance(result, bytes):
                raise NotYet("these are bytes; make text of them with decode()")
            if not isinstance(result, str):
                raise NotYet(f"return the text, a string; got {type(result).__name__}")
            _decode_faults(result, ids, tokens)
    passed("every list of ids comes back as its text")


def _decode_faults(result: str, ids: list[int], tokens: BytePairs) -> None:
    right = tokens.decode(ids)
    if result == right:
        return
    inside = [one for i in ids for one in (tokens.merges[i - 256] if i > 255 else (i,))]
    swapped = BytePairs([]).decode([b for i in ids for b in _backwards(i, tokens.merges)])
    for wrong, sentence in (
        ("".join(tokens.pieces(ids)),
         "a character can be cut into two tokens: join all bytes first"),
        ("".join(map(chr, right.encode())), "a byte is not a character: use bytes and decode()"),
        (" ".join(tokens.pieces(ids)), "nothing stands between the tokens"),
        (BytePairs([]).decode([i for i in ids if i < 256]), "the merged ids are missing"),
        (swapped, "a pair has an order: its first id comes first"),
        (BytePairs([]).decode([i for i in inside if i < 256]),
         "a merge can hold merges: take it apart until only bytes are left"),
    ):  # fmt: skip
        if result == wrong:
            raise NotYet(sentence)
    raise NotYet(f"for {ids} and the merges {tokens.merges} it must be {right!r}; got {result!r}")


def _backwards(i: int, merges: list[tuple[int, int]]) -> list[int]:
    """The bytes of an id if every pair is taken the wrong way round."""
    if i < 256:
        return [i]
    a, b = merges[i - 256]
    return _backwards(b, merges) + _backwards(a, merges)


def windows(function: Callable[..., Any]) -> None:
    """`my_windows(ids, starts, length)`: inputs and targets, each (len(starts), length)."""
    for total, starts, length in sized((20, [0, 5, 9], 4), (9, [1], 1), (30, [3, 3, 0, 20], 6)):
        ids = torch.arange(total) * 3 + 7
        at = torch.tensor(starts)
        result = call(function, ids, at, length)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise NotYet(f"return two tensors, (x, y); got {type(result).__name__}")
        shape = (len(starts), length)
        x, y = want_tensor(result[0], shape, "x"), want_tensor(result[1], shape, "y")
        if x.is_floating_point() or y.is_floating_point():
            raise NotYet("ids are whole numbers; the result must be integers too")
        right = torch.stack([ids[s : s + length] for s in starts])
        after = torch.stack([ids[s + 1 : s + 1 + length] for s in starts])
        if torch.equal(x, after) and torch.equal(y, right):
            raise NotYet("input and target are exchanged: the target is one token later")
        diagnose(
            x, right, {"each window must begin at its start, not one later": after},
            f"for starts {starts} the input must be {right.tolist()}; got {x.tolist()}",
        )  # fmt: skip
        diagnose(
            y,
            after,
            {
                "the target is the input itself: a model would learn to copy its input": right,
                "the target is the token before; it must be the one after": right - 3,
                "the target is two tokens later; it must be the next one": after + 3,
                "the first token went to the end: roll turns the window round": right.roll(-1, 1),
            },
            f"for starts {starts} the target must be {after.tolist()}; got {y.tolist()}",
        )
    passed("each target is the token after its input")


def slope(function: Callable[..., Any]) -> None:
    """`my_loss(logits, targets)`: the mean loss, and its derivative by the logits."""
    for seed, (n, classes), size in sized(
        (0, (1, 3), 1.0), (1, (5, 4), 2.0), (2, (7, 11), 300.0), keep=(0,)
    ):
        logits = size * _random((n, classes), seed)
        targets = torch.randint(classes, (n,), generator=torch.Generator().manual_seed(seed))
        exact = logits.clone().requires_grad_()
        loss = F.cross_entropy(exact, targets)
        (right,) = torch.autograd.grad(loss, exact)
        with without(F.cross_entropy, F.nll_loss, torch.autograd.grad, Tensor.backward):
            result = call(function, logits, targets)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise NotYet(f"return two things, (loss, slope); got {type(result).__name__}")
        value = result[0]
        if not isinstance(value, Tensor):
            value = torch.tensor(_number(value, "the loss must be a number"))
        p, y = torch.softmax(logits, -1), F.one_hot(targets, classes).float()
        value = want_tensor(value, (), "the loss").to(torch.float32)
        diagnose(
            value,
            loss.detach(),
            {
                "the loss is the mean over the rows, not the sum": loss.detach() * n,
                "the sign is wrong: the loss is minus the logarithm": -loss.detach(),
                "the loss needs the logarithm of p": 1 - (p * y).sum(-1).mean(),
                "use the natural logarithm": loss.detach() / math.log(2),
            },
            "the loss is wrong: it is the mean of −ln p of the target; with large logits, subtract "
            "the largest one before you take the exponential",
        )
        found = want_tensor(result[1], (n, classes), "the slope")
        diagnose(
            found,
            right,
            {
                "the sign is wrong: it is p − y, not y − p": -right,
                "the loss is a mean over the rows, so each row's slope is divided by their "
                "number": right * n,
                "you left out the minus one at the target": p / n,
                "this is −1/p at the target, the slope with respect to the probabilities; go on to "
                "the logits": -y / p / n,
                "divide by the number of rows, not by the number of all logits": (
                    (p - y) / (n * classes)
                ),
            },
            "the slope is wrong: for each row it is p − y, divided by the number of rows",
        )
    passed("the loss, and p − y as its slope")


def rate(function: Callable[..., Any]) -> None:
    """`my_rate(step, steps, top, warmup)`: linear up to `top`, then half a cosine down to 0."""
    for steps, top, warmup in sized((100, 1.0, 10), (50, 0.003, 5), (8, 2.0, 1), (20, 0.5, 0)):
        found = []
        for step in range(steps):
            value = call(function, step, steps, top, warmup)
            found.append(_number(value, "return a number"))

        def cosine(step: int, steps: int = steps, top: float = top, warmup: int = warmup) -> float:
            return top * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2

        right = [top * (s + 1) / warmup if s < warmup else cosine(s) for s in range(steps)]
        suspects = {
            "the first step would do nothing: at step 0 the rate is top/warmup, not 0": [
                top * s / warmup if s < warmup else cosine(s) for s in range(steps)
            ],
            "the warm-up is missing": [cosine(s) for s in range(steps)],
            "after the warm-up the rate must fall": [
                top * (s + 1) / warmup if s < warmup else top for s in range(steps)
            ],
            "it must fall along a cosine, not along a straight line": [
                top * (s + 1) / warmup if s < warmup else top * (steps - s) / (steps - warmup)
                for s in range(steps)
            ],
            "the cosine must begin at its top when the warm-up ends, not at step 0": [
                top * (s + 1) / warmup if s < warmup
                else top * (1 + math.cos(math.pi * s / steps)) / 2
                for s in range(steps)
            ],
        }  # fmt: skip
        if not all(map(math.isfinite, found)):
            raise NotYet("some rates are not finite; is there a division by a warm-up of 0?")
        diagnose(
            torch.tensor(found, dtype=torch.float64),
            torch.tensor(right, dtype=torch.float64),
            {sentence: torch.tensor(values, dtype=torch.float64)
             for sentence, values in suspects.items()},
            f"with steps = {steps}, top = {top}, warmup = {warmup} the rates must begin with "
            f"{[round(r, 5) for r in right[:4]]}; got {[round(r, 5) for r in found[:4]]}",
        )  # fmt: skip
    passed("the rate rises to the top and falls along half a cosine")


def step(function: Callable[..., Any]) -> None:
    """`my_step(model, optimizer, x, y, clip)`: one training step; returns the loss before it."""
    for seed in (0, 1):
        torch.default_generator.manual_seed(seed)
        first = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 7))
        ids = torch.randint(7, sized((4, 6))[0], generator=torch.Generator().manual_seed(seed))
        x, y = ids[:, :-1], ids[:, 1:]
        clip = 0.1
        outcomes = {name: _trained(first, rule, x, y, clip) for name, rule in _RULES.items()}
        model = _copy_of(first)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        losses = []
        for _ in range(3):
            value = call(function, model, optimizer, x, y, clip)
            losses.append(_number(value, "return the loss as a number"))
        found = torch.cat([p.detach().flatten() for p in model.parameters()])
        if not found.isfinite().all():
            raise NotYet("after three steps the weights are not finite")
        right, wanted = outcomes["right"]
        diagnose(
            found,
            right,
            {sentence: weights for sentence, (weights, _) in outcomes.items()
             if sentence != "right"},
            "after three steps the weights are not what they should be: forward, clear, backward, "
            "clip, step, in this order",
        )  # fmt: skip
        if not close(torch.tensor(losses), torch.tensor(wanted), 1e-4):
            raise NotYet(
                f"the weights are right, but return the loss before the step: "
                f"{[round(v, 3) for v in wanted]}; got {[round(v, 3) for v in losses]}"
            )
    passed("forward, clear, backward, clip, step")


def _loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def _rule(
    loss: Callable[..., Tensor] = _loss, clear: str = "before", clip: str = "before",
    update: bool = True,
) -> Callable[..., float]:  # fmt: skip
    """A training step with its parts in this order, or with one of them wrong."""

    def one(model: nn.Module, optimizer: Any, x: Tensor, y: Tensor, limit: float) -> float:
        value = loss(model, x, y)
        if clear == "before":
            optimizer.zero_grad()
        value.backward()
        if clear == "after":
            optimizer.zero_grad()
        if clip == "before":
            nn.utils.clip_grad_norm_(model.parameters(), limit)
        if clip == "each":
            nn.utils.clip_grad_value_(model.parameters(), limit)
        if update:
            optimizer.step()
        return value.item()

    return one


_RULES = {
    "right": _rule(),
    "the old gradients are never cleared, so they add up": _rule(clear="never"),
    "the gradients are cleared after backward, so the step does nothing": _rule(clear="after"),
    "the gradient is not clipped before the step": _rule(clip="never"),
    "clip the length of the whole gradient, not each number of it": _rule(clip="each"),
    "the model is asked for its own input: compare with y, not with x": _rule(
        lambda model, x, y: _loss(model, x, x)
    ),
    "cross_entropy takes logits: it does the softmax itself": _rule(
        lambda model, x, y: F.cross_entropy(model(x).softmax(-1).flatten(0, 1), y.flatten())
    ),
    "the loss is the mean over all positions, not their sum": _rule(
        lambda model, x, y: _loss(model, x, y) * y.numel(), clip="never"
    ),
    "a step against the gradient makes the loss smaller; you go the other way": _rule(
        lambda model, x, y: -_loss(model, x, y)
    ),
}


def _copy_of(model: nn.Module) -> nn.Module:
    copy = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 7))
    copy.load_state_dict(model.state_dict())
    return copy


def _trained(first: nn.Module, rule: Callable, x: Tensor, y: Tensor, clip: float) -> tuple:
    model = _copy_of(first)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    losses = [rule(model, optimizer, x, y, clip) for _ in range(3)]
    return torch.cat([p.detach().flatten() for p in model.parameters()]), losses


def induction(function: Callable[..., Any]) -> None:
    """`my_induction(ids, size)`: queries and keys (n, d) of a head that looks after equal tokens.

    ids (n,) below size. Under a causal mask, position i must give its weight, evenly, to the
    positions after earlier occurrences of its own token.
    """
    cases = [[3, 1, 4, 3], [0, 1, 0, 2, 0, 3, 0], [2, 2, 2, 2], [5, 4, 3, 5, 4, 3, 5]]
    cases += [list(row) for row in draw(0, 3, *[(0, 5)] * 9)]
    for case in cases:
        ids = torch.tensor(case)
        n, size = len(case), 6
        result = call(function, ids, size)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise NotYet(f"return two tensors, (Q, K); got {type(result).__name__}")
        width = result[0].shape[-1] if isinstance(result[0], Tensor) and result[0].ndim else 1
        q = want_tensor(result[0], (n, width), "Q").double()
        k = want_tensor(result[1], (n, width), "K").double()
        if not (q.isfinite().all() and k.isfinite().all()):
            raise NotYet("Q and K must be finite numbers")
        past = torch.ones(n, n, dtype=torch.bool).tril()
        scores = (q @ k.T / math.sqrt(width)).masked_fill(~past, -math.inf)
        weights = torch.softmax(scores, -1)
        same = ids[:, None] == ids[None, :]
        after = torch.zeros(n, n, dtype=torch.bool)
        after[:, 1:] = same[:, :-1]  # the token before position j equals mine
        wanted = after & past
        earlier = same & past
        for i in wanted.any(-1).nonzero().flatten().tolist():
            share = weights[i, wanted[i]]
            if share.sum() > 0.99 and share.max() - share.min() < 0.01:
                continue
            if weights[i, earlier[i]].sum() > 0.9 and share.sum() < 0.9:
                raise NotYet(
                    "the head looks at the earlier occurrence itself; it must look one position "
                    "after it, so the keys must hold the token before"
                )
            if share.sum() > 0.99:
                raise NotYet("several earlier occurrences must share the weight evenly")
            raise NotYet(
                f"for ids {case}, position {i} must give at least 0.99 to "
                f"{wanted[i].nonzero().flatten().tolist()}; it gives {share.sum():.3f}"
            )
    passed("the head finds what came after the same token before")


def copies(function: Callable[..., Any]) -> None:
    """`my_longest_copy(sample, text)`: how many words in a row the sample shares with the text."""
    text = "The cat sat on the mat. One day the cat ran away, and the dog sat on the cart."
    cases = {
        "the cat and a dog sat on a mat": 3,
        "One day The cat sat with the hen": 3,  # the case of letters counts
        "The cat sat on the mat.": 6,
        "A bird flew": 0,
        "and the dog sat on the car": 6,  # car is not cart
        "on the": 2,
        "day the cat ran far and the dog sat on the mat.": 6,
        "": 0,
    }
    known = [(sample, text, right) for sample, right in cases.items()]
    for row in draw(0, 4, *[(0, 3)] * 40):
        words = ["the cat sat on".split()[i] for i in row]
        sample, other = words[:8], " ".join(words[8:])
        known.append((" ".join(sample), other, _longest(sample, other)))
    for sample, text, right in known:
        found = call(function, sample, text)
        if isinstance(found, Tensor) and found.numel() == 1:
            found = found.item()
        if isinstance(found, bool) or not isinstance(found, int):
            raise NotYet(f"return a whole number; got {type(found).__name__}")
        if found == right:
            continue
        words = sample.split()
        if found == sum(word in text.split() for word in words):
            raise NotYet("you count shared words; they must stand in a row, in the same order")
        if found == _longest(words, text, whole=False):
            raise NotYet('compare whole words: "car" is not the beginning of "cart"')
        if found == len(words):
            raise NotYet("the whole sample is not a copy; look at every part of it")
        if found == _leading(words, text):
            raise NotYet("a copy may begin at any word of the sample, not only at the first")
        raise NotYet(f"for {sample!r} it must be {right}; got {found} (the text is {text!r})")
    passed("the longest run of words that the sample shares with the text")


def _longest(words: Sequence[str], text: str, whole: bool = True) -> int:
    around = " " if whole else ""
    spaced = f"{around}{text}{around}"
    return max(
        (j - i for i in range(len(words)) for j in range(i + 1, len(words) + 1)
         if around + " ".join(words[i:j]) + around in spaced),
        default=0,
    )  # fmt: skip


def _leading(words: Sequence[str], text: str) -> int:
    spaced = f" {text} "
    return max(
        (j for j in range(len(words) + 1) if " " + " ".join(words[:j]) + " " in spaced), default=0
    )


def _number(value: Any, wanted: str) -> float:
    """The value as a float, also from a tensor that holds one number; else NotYet."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NotYet(f"{wanted}; got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise NotYet(f"{wanted}; got one that is too large") from None


def _random(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))

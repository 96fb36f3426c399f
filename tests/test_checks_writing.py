"""The checks of chapter 8 accept right answers and name the fault of wrong ones."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attention.byte_pairs import BytePairs
from attention.checks import writing as check
from attention.checks._base import NotYet


def rejected(name, answer, phrase):
    with pytest.raises(NotYet) as error:
        getattr(check, name)(answer)
    assert phrase in str(error.value)


# ---- from ids back to the text


def taken_apart(ids, merges):
    """By a stack, from the last id to the first."""
    todo, out = list(ids), bytearray()
    while todo:
        i = todo.pop()
        if i > 255:
            todo += merges[i - 256]
        else:
            out.append(i)
    return bytes(out[::-1]).decode()


def pieces_of(merges):
    found = [bytes([i]) for i in range(256)]
    for a, b in merges:
        found.append(found[a] + found[b])
    return found


def one_level(ids, merges):
    inside = [one for i in ids for one in (merges[i - 256] if i > 255 else (i,))]
    return bytes(i for i in inside if i < 256).decode(errors="replace")


def wrong_order(ids, merges):
    found = [bytes([i]) for i in range(256)]
    for a, b in merges:
        found.append(found[b] + found[a])
    return b"".join(found[i] for i in ids).decode(errors="replace")


def emptied(ids, merges):
    text = taken_apart(ids, merges)
    ids.clear()
    return text


def test_decode_accepts_another_way(capsys):
    check.decode(taken_apart)
    assert capsys.readouterr().out.count("Right:") == 1


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda ids, merges: b"".join(pieces_of(merges)[i] for i in ids), "these are bytes"),
        (lambda ids, merges: [pieces_of(merges)[i] for i in ids], "a string; got list"),
        (lambda ids, merges: "".join(pieces_of(merges)[i].decode(errors="replace") for i in ids),
         "join all bytes first"),
        (lambda ids, merges: "".join(map(chr, b"".join(pieces_of(merges)[i] for i in ids))),
         "a byte is not a character"),
        (lambda ids, merges: bytes(i for i in ids if i < 256).decode(errors="replace"),
         "the merged ids are missing"),
        (lambda ids, merges: " ".join(pieces_of(merges)[i].decode() for i in ids),
         "stands between"),
        (one_level, "a merge can hold merges"),
        (wrong_order, "a pair has an order"),
        (emptied, "you changed a list"),
        (lambda ids, merges: BytePairs(merges).decode(ids), "write it yourself"),
        (lambda ids, merges: taken_apart(ids, merges).upper(), "it must be 'cat cats mat'"),
    ],
)  # fmt: skip
def test_decode_rejects(answer, phrase):
    rejected("decode", answer, phrase)


# ---- windows of a text


def cut(ids, starts, length, x=0, y=1):
    return tuple(
        torch.stack([ids[s + d : s + d + length] for s in starts.tolist()]) for d in (x, y)
    )


def test_windows_accepts_another_way(capsys):
    def at_once(ids, starts, length):
        both = ids.unfold(0, length + 1, 1)[starts]
        return both[:, :-1], both[:, 1:]

    check.windows(at_once)
    check.windows(cut)
    assert capsys.readouterr().out.count("Right:") == 2


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda ids, s, n: cut(ids, s, n, 0, 0), "learn to copy its input"),
        (lambda ids, s, n: cut(ids, s, n, 0, 2), "two tokens later"),
        (lambda ids, s, n: cut(ids, s, n, 1, 0), "are exchanged"),
        (lambda ids, s, n: cut(ids, s, n, 1, 2), "must begin at its start"),
        (lambda ids, s, n: (cut(ids, s, n)[0], cut(ids, s, n)[0] - 3), "the token before"),
        (lambda ids, s, n: (cut(ids, s, n)[0], cut(ids, s, n)[0].roll(-1, 1)), "roll turns"),
        (lambda ids, s, n: cut(ids, s, n + 1), "x must have shape (3, 4)"),
        (lambda ids, s, n: cut(ids, s, n)[0], "return two tensors"),
        (lambda ids, s, n: tuple(z.float() for z in cut(ids, s, n)), "whole numbers"),
        (lambda ids, s, n: (cut(ids, s, n)[0], cut(ids, s, n)[1] + 100), "the target must be"),
    ],
)
def test_windows_rejects(answer, phrase):
    rejected("windows", answer, phrase)


# ---- the loss and its slope


def parts(logits, targets):
    log_p = torch.log_softmax(logits, -1)
    y = F.one_hot(targets, logits.shape[-1]).float()
    return log_p, log_p.exp(), y, len(targets)


def good(logits, targets):
    log_p, p, y, n = parts(logits, targets)
    return -(log_p * y).sum() / n, (p - y) / n


def slope_of(rule):
    def answer(logits, targets):
        return good(logits, targets)[0], rule(*parts(logits, targets)[1:])

    return answer


def loss_of(rule):
    def answer(logits, targets):
        return rule(*parts(logits, targets)), good(logits, targets)[1]

    return answer


def naive(logits, targets):
    p = logits.exp() / logits.exp().sum(-1, keepdim=True)
    y = F.one_hot(targets, logits.shape[-1]).float()
    return -(p * y).sum(-1).log().mean(), (p - y) / len(targets)


def test_slope_accepts_another_way(capsys):
    def by_rows(logits, targets):
        rows = torch.arange(len(targets))
        shifted = logits - logits.amax(-1, keepdim=True)
        total = shifted.exp().sum(-1)
        loss = (total.log() - shifted[rows, targets]).mean()
        slope = shifted.exp() / total[:, None]
        slope[rows, targets] -= 1
        return loss.item(), slope / len(targets)

    check.slope(by_rows)
    check.slope(good)
    assert capsys.readouterr().out.count("Right:") == 2


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (slope_of(lambda p, y, n: (y - p) / n), "it is p − y, not y − p"),
        (slope_of(lambda p, y, n: p - y), "divided by their number"),
        (slope_of(lambda p, y, n: p / n), "left out the minus one"),
        (slope_of(lambda p, y, n: -y / p / n), "go on to the logits"),
        (slope_of(lambda p, y, n: (p - y) / p.numel()), "not by the number of all logits"),
        (loss_of(lambda log_p, p, y, n: -(log_p * y).sum()), "not the sum"),
        (loss_of(lambda log_p, p, y, n: (log_p * y).sum() / n), "the sign is wrong"),
        (loss_of(lambda log_p, p, y, n: 1 - (p * y).sum() / n), "needs the logarithm"),
        (loss_of(lambda log_p, p, y, n: -(log_p * y).sum() / n / math.log(2)), "natural"),
        (naive, "NaN"),
        (lambda z, t: (F.cross_entropy(z, t), good(z, t)[1]), "write it yourself"),
        (lambda z, t: good(z, t)[0], "return two things"),
        (slope_of(lambda p, y, n: (p - y) / n + 0.1), "the slope is wrong"),
    ],
)
def test_slope_rejects(answer, phrase):
    rejected("slope", answer, phrase)


# ---- the learning rate


def schedule(first=1, fall="cosine", begin=None):
    def answer(step, steps, top, warmup):
        if step < warmup:
            return top * (step + first) / warmup
        at = warmup if begin is None else begin
        done = (step - at) / (steps - at)
        if fall == "none":
            return top
        return top * (1 - done if fall == "line" else (1 + math.cos(math.pi * done)) / 2)

    return answer


def test_rate_accepts_another_way(capsys):
    def by_tensors(step, steps, top, warmup):
        rise = (step + 1) / max(warmup, 1)
        fall = math.cos(math.pi / 2 * (step - warmup) / (steps - warmup)) ** 2
        return torch.tensor(top * (rise if step < warmup else fall), dtype=torch.float64)

    check.rate(by_tensors)
    check.rate(schedule())
    assert capsys.readouterr().out.count("Right:") == 2


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (schedule(first=0), "the first step would do nothing"),
        (lambda s, n, t, w: schedule()(s, n, t, 0), "must begin with"),
        (lambda s, n, t, w: t * (1 + math.cos(math.pi * (s - w) / (n - w))) / 2, "is missing"),
        (schedule(fall="none"), "the rate must fall"),
        (schedule(fall="line"), "not along a straight line"),
        (schedule(begin=0), "when the warm-up ends"),
        (
            lambda s, n, t, w: min(t * (s + 1) / w, schedule()(s, n, t, w)),
            "raised ZeroDivisionError",
        ),
        (lambda s, n, t, w: math.nan, "not finite"),
        (lambda s, n, t, w: "1", "return a number"),
        (lambda s, n, t, w: 2 * schedule()(s, n, t, w), "must begin with"),
    ],
)
def test_rate_rejects(answer, phrase):
    rejected("rate", answer, phrase)


# ---- a training step


def one_step(loss=None, clear="before", clip="norm", order="before", update=True, give="loss"):
    def answer(model, optimizer, x, y, limit):
        if clear == "first":
            optimizer.zero_grad()
        logits = model(x)
        value = (
            F.cross_entropy(logits.flatten(0, 1), y.flatten())
            if loss is None
            else loss(logits, x, y)
        )
        if clear == "before":
            optimizer.zero_grad()
        value.backward()
        if clear == "after":
            optimizer.zero_grad()
        if clip == "norm" and order == "before":
            nn.utils.clip_grad_norm_(model.parameters(), limit)
        if clip == "value":
            nn.utils.clip_grad_value_(model.parameters(), limit)
        if update:
            optimizer.step()
        if order == "after":
            nn.utils.clip_grad_norm_(model.parameters(), limit)
        if give == "later":
            return F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
        return value.detach() if give == "tensor" else value.item()

    return answer


def test_step_accepts_another_way(capsys):
    check.step(one_step(clear="first", give="tensor"))

    def by_rows(logits, x, y):
        return -logits.log_softmax(-1).gather(-1, y[..., None]).mean()

    check.step(one_step(by_rows))
    assert capsys.readouterr().out.count("Right:") == 2


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (one_step(clear="never"), "never cleared"),
        (one_step(clear="after"), "cleared after backward"),
        (one_step(clip="none"), "not clipped before the step"),
        (one_step(order="after"), "not clipped before the step"),
        (one_step(clip="value"), "not each number of it"),
        (
            one_step(lambda z, x, y: F.cross_entropy(z.flatten(0, 1), x.flatten())),
            "compare with y",
        ),
        (
            one_step(lambda z, x, y: F.cross_entropy(z.softmax(-1).flatten(0, 1), y.flatten())),
            "does the softmax itself",
        ),
        (
            one_step(lambda z, x, y: -F.cross_entropy(z.flatten(0, 1), y.flatten())),
            "you go the other way",
        ),
        (one_step(give="later"), "return the loss before the step"),
        (one_step(update=False), "cleared after backward"),
        (lambda *args: "a", "return the loss as a number"),
        (
            one_step(lambda z, x, y: F.cross_entropy(z.flatten(0, 1)[::2], y.flatten()[::2])),
            "forward, clear, backward",
        ),
    ],
)
def test_step_rejects(answer, phrase):
    rejected("step", answer, phrase)


# ---- a head that looks after equal tokens


def induct(ids, size, key="before", scale=40.0):
    one = F.one_hot(ids, size).float()
    before = torch.cat([torch.zeros(1, size), one[:-1]])
    keys = {"before": before, "same": one, "after": torch.cat([one[1:], torch.zeros(1, size)])}
    return scale * one, keys[key]


def test_induction_accepts_another_way(capsys):
    def by_circles(ids, size):
        angle = 2 * math.pi * ids.double() / size
        points = torch.stack([torch.cos(angle), torch.sin(angle)], -1)
        before = torch.cat([torch.zeros(1, 2, dtype=torch.float64), points[:-1]])
        return 300 * points, before

    check.induction(by_circles)
    check.induction(induct)
    assert capsys.readouterr().out.count("Right:") == 2


def latest(ids, size):
    q, k = induct(ids, size, scale=200.0)
    n = len(ids)
    ramp = torch.arange(n, dtype=torch.float32)[:, None]
    return torch.cat([q, torch.ones(n, 1)], 1), torch.cat([k, 20 * ramp], 1)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda ids, size: induct(ids, size, "same"), "the keys must hold the token before"),
        (lambda ids, size: induct(ids, size, "after"), "must give at least 0.99"),
        (lambda ids, size: induct(ids, size, scale=1.0), "must give at least 0.99"),
        (lambda ids, size: induct(ids, size, scale=-40.0), "must give at least 0.99"),
        (latest, "must share the weight evenly"),
        (lambda ids, size: induct(ids, size)[0], "return two tensors"),
        (lambda ids, size: tuple(x[:-1] for x in induct(ids, size)), "Q must have shape"),
        (lambda ids, size: (induct(ids, size)[0] + math.inf, induct(ids, size)[1]), "finite"),
        (lambda ids, size: (torch.ones(len(ids), 2), torch.ones(len(ids), 2)), "at least 0.99"),
    ],
)
def test_induction_rejects(answer, phrase):
    rejected("induction", answer, phrase)


# ---- copies


def longest(sample, text):
    words, there = sample.split(), text.split()
    best = 0
    for i in range(len(words)):
        for j in range(len(there)):
            n = 0
            while i + n < len(words) and j + n < len(there) and words[i + n] == there[j + n]:
                n += 1
            best = max(best, n)
    return best


def letters(sample, text):
    words = sample.split()
    spans = [(i, j) for i in range(len(words)) for j in range(i + 1, len(words) + 1)]
    return max((j - i for i, j in spans if " ".join(words[i:j]) in text), default=0)


def from_the_first(sample, text):
    words = sample.split()
    return max(
        (n for n in range(len(words) + 1) if f" {' '.join(words[:n])} " in f" {text} "), default=0
    )


def test_copies_accepts_another_way(capsys):
    check.copies(longest)
    check.copies(lambda sample, text: torch.tensor(longest(sample, text)))
    assert capsys.readouterr().out.count("Right:") == 2


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda s, t: sum(w in t.split() for w in s.split()), "must stand in a row"),
        (letters, "compare whole words"),
        (from_the_first, "may begin at any word"),
        (lambda s, t: len(s.split()), "the whole sample is not a copy"),
        (lambda s, t: longest(s.lower(), t.lower()), "it must be"),
        (lambda s, t: longest(s, t) / 2, "return a whole number"),
        (lambda s, t: longest(s, t) + 1, "it must be 3; got 4"),
        (lambda s, t: min(longest(s, t), 3), "it must be 6; got 3"),
    ],
)
def test_copies_rejects(answer, phrase):
    rejected("copies", answer, phrase)

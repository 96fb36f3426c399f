"""The checks of chapter 3 accept right answers and name the fault of wrong ones."""

import math

import pytest
import torch
import torch.nn.functional as F

from attention import attention, softmax, softmax_jacobian
from attention.checks import scaling as check
from attention.checks._base import NotYet


def rejected(name, answer, phrase):
    with pytest.raises(NotYet) as error:
        getattr(check, name)(answer)
    assert phrase in str(error.value)


# ---- softmax with a temperature


def test_softmax_accepts_another_way(capsys):
    def by_logarithm(x, temperature=1.0):
        z = x / temperature
        return (z - z.logsumexp(-1, keepdim=True)).exp()

    check.softmax_with_temperature(by_logarithm)
    assert "Right" in capsys.readouterr().out


def _exp_share(x, dim=-1):
    e = (x - x.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


def _global_max(x, t=1.0):
    e = ((x - x.max()) / t).exp()
    return e / e.sum(-1, keepdim=True)


def _all_at_once(x, t=1.0):
    e = ((x - x.max()) / t).exp()
    return e / e.sum()


SOFTMAX = {
    "columns": (lambda x, t=1.0: _exp_share(x / t, 0), "the columns sum to 1"),
    "all entries": (_all_at_once, "all entries together sum to 1"),
    "temperature ignored": (lambda x, t=1.0: _exp_share(x), "the temperature has no effect"),
    "multiplied": (lambda x, t=1.0: _exp_share(x * t), "you multiply by the temperature"),
    "divided after": (lambda x, t=1.0: _exp_share(x) / t, "after the softmax"),
    "not normalised": (lambda x, t=1.0: (x / t).exp(), "not normalised"),
    "shifted, not normalised": (
        lambda x, t=1.0: ((x - x.amax(-1, keepdim=True)) / t).exp(),
        "not normalised",
    ),
    "without exp": (lambda x, t=1.0: x / x.sum(-1, keepdim=True), "take exp first"),
    "overflow": (
        lambda x, t=1.0: (x / t).exp() / (x / t).exp().sum(-1, keepdim=True),
        "Subtract the largest score",
    ),
    "one maximum for all rows": (_global_max, "each row's own largest"),
    "no default": (lambda x, temperature: _exp_share(x / temperature), "raised TypeError"),
    "other default": (lambda x, t=2.0: _exp_share(x / t), "without a temperature"),
    "calls torch": (lambda x, t=1.0: torch.softmax(x / t, -1), "this calls softmax"),
    "calls torch.special": (
        lambda x, t=1.0: torch.special.softmax(x / t, -1),
        "this calls special_softmax",
    ),
    "the book's own": (lambda x, t=1.0: softmax(x, t), "this calls softmax"),
    "calls F": (lambda x, t=1.0: F.softmax(x / t, dim=-1), "this calls softmax"),
    "calls the package": (lambda x, t=1.0: softmax(x, t), "this calls softmax"),
    "constant": (lambda x, t=1.0: torch.full_like(x, 1 / x.shape[-1]), "wrong weights"),
    "last dimension taken as the second": (
        lambda x, t=1.0: _exp_share(x / t, 1) if x.ndim > 1 else _exp_share(x / t),
        "work along the last dimension",
    ),
    "a list": (lambda x, t=1.0: x.tolist(), "must be a tensor"),
}


@pytest.mark.parametrize("answer, phrase", SOFTMAX.values(), ids=SOFTMAX)
def test_softmax_rejects(answer, phrase):
    rejected("softmax_with_temperature", answer, phrase)


# ---- attention


def test_attention_accepts_another_way(capsys):
    def by_einsum(q, k, v):
        s = torch.einsum("...id,...jd->...ij", q / q.shape[-1] ** 0.5, k)
        a = s.exp() / s.exp().sum(-1, keepdim=True)
        return torch.einsum("...ij,...jd->...id", a, v), a

    check.your_attention(by_einsum)
    assert "Right" in capsys.readouterr().out


def _attend(weigh, mix=lambda q, k, v, a: a @ v):
    def answer(q, k, v):
        a = weigh(q @ k.transpose(-2, -1), q, k, v)
        return mix(q, k, v, a), a

    return answer


def _root(s, q, k, v):
    return torch.softmax(s / math.sqrt(q.shape[-1]), -1)


def _right(q, k, v):
    weights = _root(q @ k.mT, q, k, v)
    return weights @ v, weights


ATTENTION = {
    "no scaling": (_attend(lambda s, q, k, v: torch.softmax(s, -1)), "not scaled"),
    "divided by d_k": (
        _attend(lambda s, q, k, v: torch.softmax(s / q.shape[-1], -1)),
        "divide by its root",
    ),
    "multiplied": (
        _attend(lambda s, q, k, v: torch.softmax(s * math.sqrt(q.shape[-1]), -1)),
        "you multiplied",
    ),
    "root of n": (
        _attend(lambda s, q, k, v: torch.softmax(s / math.sqrt(k.shape[-2]), -1)),
        "the number of keys",
    ),
    "wrong axis": (
        _attend(lambda s, q, k, v: torch.softmax(s / math.sqrt(q.shape[-1]), -2)),
        "the columns sum to 1",
    ),
    "scaled after": (
        _attend(lambda s, q, k, v: torch.softmax(s, -1) / math.sqrt(q.shape[-1])),
        "after the softmax",
    ),
    "no softmax": (_attend(lambda s, q, k, v: s / math.sqrt(q.shape[-1])), "softmax is missing"),
    "raw scores": (_attend(lambda s, q, k, v: s), "raw scores"),
    "keys averaged": (_attend(_root, lambda q, k, v, a: a @ k), "averages the keys"),
    "values not used": (
        _attend(_root, lambda q, k, v, a: v.mean(-2, keepdim=True).expand(*a.shape[:-1], -1)),
        "plain mean",
    ),
    "weights transposed": (
        _attend(_root, lambda q, k, v, a: a.transpose(-2, -1) @ v),
        "the weights are transposed",
    ),
    "weights first": (lambda q, k, v: _right(q, k, v)[::-1], "in this order"),
    "out only": (lambda q, k, v: _right(q, k, v)[0], "return two things"),
    "k.T": (
        lambda q, k, v: (lambda a: (a @ v, a))(_root(q @ k.T, q, k, v)),
        "raised RuntimeError",
    ),
    "the book's own": (lambda q, k, v: attention(q, k, v), "you call the finished attention"),
    "the finished one": (
        lambda q, k, v: (F.scaled_dot_product_attention(q, k, v), _root(q @ k.mT, q, k, v)),
        "this calls scaled_dot_product_attention",
    ),
}


@pytest.mark.filterwarnings("ignore:The use of `x.T`")
@pytest.mark.parametrize("answer, phrase", ATTENTION.values(), ids=ATTENTION)
def test_attention_rejects(answer, phrase):
    rejected("your_attention", answer, phrase)


# ---- the variance of a score


def test_variance_accepts_another_way(capsys):
    def by_moments(d_k, mean, variance):
        second = variance + mean * mean
        return d_k * (second * second - mean**4)

    check.score_variance(by_moments)
    assert "Right" in capsys.readouterr().out


VARIANCE = {
    "mean forgotten": (lambda d, m, v: d * v * v, "the mean is missing"),
    "standard deviation": (
        lambda d, m, v: math.sqrt(d * (v * v + 2 * m * m * v)),
        "the standard deviation",
    ),
    "variance not squared": (lambda d, m, v: d * (v + 2 * m * m * v), "variance v squared"),
    "mean once": (lambda d, m, v: d * (v * v + m * m * v), "the mean enters twice"),
    "second moment": (lambda d, m, v: d * (v + m * m) ** 2, "take away the squared mean"),
    "one pair": (lambda d, m, v: v * v + 2 * m * m * v, "for one pair of entries"),
    "of the scaled score": (
        lambda d, m, v: (v * v + 2 * m * m * v) if d > 1 else 0.0,
        "divided by the root of d_k",
    ),
    "d_k squared": (lambda d, m, v: d * d * (v * v + 2 * m * m * v), "not d_k squared"),
    "only for variance 1": (lambda d, m, v: d * (1 + 2 * m * m), "the variance is"),
    "a constant": (lambda d, m, v: 7, "you returned 7"),
    "a string": (lambda d, m, v: "d_k", "return one number"),
}


@pytest.mark.parametrize("answer, phrase", VARIANCE.values(), ids=VARIANCE)
def test_variance_rejects(answer, phrase):
    rejected("score_variance", answer, phrase)


# ---- the Jacobian


def test_jacobian_accepts_entry_by_entry(capsys):
    def by_loops(scores, temperature=1.0):
        a = torch.softmax(scores / temperature, -1).tolist()
        n = range(len(a))
        return torch.tensor([[a[j] * ((j == m) - a[m]) / temperature for m in n] for j in n])

    check.jacobian(by_loops)
    assert "Right" in capsys.readouterr().out


def _by_slopes(scores, temperature=1.0):
    scores = scores.clone().requires_grad_()
    a = torch.softmax(scores / temperature, -1)
    return torch.stack([torch.autograd.grad(x, scores, retain_graph=True)[0] for x in a])


def _by(transform):
    return lambda scores, temperature=1.0: transform(
        lambda s: torch.softmax(s / temperature, -1)
    )(scores)  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (_by(lambda f: lambda x: torch.autograd.functional.jacobian(f, x)), "jacobian"),
        (_by(torch.func.jacrev), "jacrev"),
        (_by(torch.func.jacfwd), "jacfwd"),
        (_by_slopes, "grad"),
        (lambda s, t=1.0: softmax_jacobian(torch.softmax(s / t, -1)) / t, "softmax_jacobian"),
    ],
)
def test_jacobian_wants_the_derivation(answer, name):
    torch.func.jacrev(torch.sin)(torch.ones(1))  # its first import is slow
    rejected("jacobian", answer, f"you call the finished {name}; write it yourself")


def _soft(s, t=1.0):
    return torch.softmax(s / t, -1)


def _slopes(a):
    return torch.diag(a) - torch.outer(a, a)


JACOBIAN = {
    "1 / T forgotten": (lambda s, t=1.0: _slopes(_soft(s, t)), "1 / T times"),
    "times T": (lambda s, t=1.0: _slopes(_soft(s, t)) * t, "you multiplied by T"),
    "sign": (lambda s, t=1.0: -_slopes(_soft(s, t)) / t, "the sign is reversed"),
    "diagonal only": (
        lambda s, t=1.0: torch.diag(_soft(s, t) * (1 - _soft(s, t))) / t,
        "only the diagonal",
    ),
    "outer product only": (
        lambda s, t=1.0: -torch.outer(_soft(s, t), _soft(s, t)) / t,
        "add a_j on the diagonal",
    ),
    "off-diagonal positive": (
        lambda s, t=1.0: _slopes(_soft(s, t)).abs() / t,
        "off the diagonal the sign",
    ),
    "a on the diagonal": (
        lambda s, t=1.0: (_slopes(_soft(s, t)) + torch.diag(_soft(s, t) ** 2)) / t,
        "on the diagonal too",
    ),
    "weights at T = 1": (
        lambda s, t=1.0: _slopes(_soft(s)) / t,
        "not used in the weights",
    ),
    "temperature ignored": (lambda s, t=1.0: _slopes(_soft(s)), "not used at all"),
    "from the scores": (
        lambda s, t=1.0: (torch.diag(s) - torch.outer(s, s)) / t,
        "built from the scores",
    ),
    "zeros": (lambda s, t=1.0: torch.zeros(len(s), len(s)), "not the Jacobian"),
    "a vector": (lambda s, t=1.0: _soft(s, t) * (1 - _soft(s, t)), "must have shape"),
}


@pytest.mark.parametrize("answer, phrase", JACOBIAN.values(), ids=JACOBIAN)
def test_jacobian_rejects(answer, phrase):
    rejected("jacobian", answer, phrase)


# ---- attention in blocks


def test_online_accepts_another_way(capsys):
    def by_log_sums(q, k, v, block=2):
        """Blocks from the end, each merged by the logarithm of its sum."""
        log_sum, out = None, None
        for i in reversed(range(0, len(k), block)):
            s = k[i : i + block] @ q * len(q) ** -0.5
            top = s.max()
            e = (s - top).exp()
            part, here = e @ v[i : i + block] / e.sum(), top + e.sum().log()
            if out is None:
                log_sum, out = here, part
            else:
                both = torch.logaddexp(log_sum, here)
                out = out * (log_sum - both).exp() + part * (here - both).exp()
                log_sum = both
        return out

    check.online_attention(by_log_sums)
    assert "Right" in capsys.readouterr().out


def _online(q, k, v, block=2, *, fix_sum=True, fix_out=True, scale=None, divide=True, last=None,
            shift=True):  # fmt: skip
    scale = len(q) ** -0.5 if scale is None else scale
    top, total, out = torch.tensor(-math.inf), torch.tensor(0.0), torch.zeros(v.shape[-1])
    for i in range(0, len(k) if last is None else last(len(k), block), block):
        s = k[i : i + block] @ q * scale
        new = torch.maximum(top, s.max()) if shift else torch.tensor(0.0)
        shrink = (top - new).exp() if shift else 1.0
        total = total * (shrink if fix_sum else 1) + (s - new).exp().sum()
        out = out * (shrink if fix_out else 1) + (s - new).exp() @ v[i : i + block]
        top = new
    return out / total if divide else out


def _blocks(q, k, v, block):
    return [attention_of(q, k[i : i + block], v[i : i + block]) for i in range(0, len(k), block)]


def attention_of(q, k, v):
    s = k @ q / math.sqrt(len(q))
    e = (s - s.max()).exp()
    return e @ v / e.sum()


def _online_with(**change):
    return lambda q, k, v, block=2: _online(q, k, v, block, **change)


ONLINE = {
    "nothing rescaled": (
        _online_with(fix_sum=False, fix_out=False),
        "must shrink by exp(old maximum - new maximum)",
    ),
    "output not rescaled": (_online_with(fix_out=False), "the output is not; rescale both"),
    "sum not rescaled": (_online_with(fix_sum=False), "the sum is not; rescale both"),
    "no scaling": (_online_with(scale=1.0), "not scaled"),
    "divided by d_k": (
        lambda q, k, v, block=2: _online(q, k, v, block, scale=1 / len(q)),
        "divide by its root",
    ),
    "all at once": (lambda q, k, v, block=2: attention_of(q, k, v), "scores are held at once"),
    "the book's own": (
        lambda q, k, v, block=2: attention(q[None], k, v)[0][0],
        "you call the finished attention",
    ),
    "not divided": (_online_with(divide=False), "not divided by the sum"),
    "rest lost": (_online_with(last=lambda n, b: n if n < b else n // b * b), "shorter block"),
    "no maximum": (_online_with(shift=False), "large scores give NaN"),
    "last block": (lambda q, k, v, block=2: _blocks(q, k, v, block)[-1], "only the last block"),
    "first block": (lambda q, k, v, block=2: _blocks(q, k, v, block)[0], "only the first block"),
    "blocks averaged": (
        lambda q, k, v, block=2: torch.stack(_blocks(q, k, v, block)).mean(0),
        "you averaged the outputs",
    ),
    "blocks added": (
        lambda q, k, v, block=2: torch.stack(_blocks(q, k, v, block)).sum(0),
        "you added the outputs",
    ),
    "mean of the values": (lambda q, k, v, block=2: v.mean(0), "wrong output"),
    "whole softmax": (
        lambda q, k, v, block=2: torch.softmax(k @ q / len(q) ** 0.5, 0) @ v,
        "scores are held at once",
    ),
    "the finished one": (
        lambda q, k, v, block=2: F.scaled_dot_product_attention(q[None], k, v)[0],
        "this calls scaled_dot_product_attention",
    ),
}


@pytest.mark.parametrize("answer, phrase", ONLINE.values(), ids=ONLINE)
def test_online_rejects(answer, phrase):
    rejected("online_attention", answer, phrase)


# ---- sparsemax


def test_sparsemax_accepts_bisection(capsys):
    def by_bisection(z):
        low, high = z.max() - 1, z.max()
        for _ in range(60):
            tau = (low + high) / 2
            if (z - tau).clamp(min=0).sum() > 1:
                low = tau
            else:
                high = tau
        return (z - low).clamp(min=0)

    check.sparsemax(by_bisection)
    assert "Right" in capsys.readouterr().out


def _right_sparsemax(z):
    ranked = z.sort(descending=True).values
    c = max(r for r in range(1, len(z) + 1) if 1 + r * ranked[r - 1] > ranked[:r].sum())
    return z - (ranked[:c].sum() - 1) / c


def _hardmax(z):
    return F.one_hot(z.argmax(), len(z)).float()


SPARSEMAX = {
    "softmax": (lambda z: torch.softmax(z, -1), "this is softmax"),
    "argmax": (_hardmax, "near scores must share"),
    "not cut": (_right_sparsemax, "negative weights are not cut"),
    "one threshold for all": (
        lambda z: (z - (z.sum() - 1) / len(z)).clamp(min=0),
        "find how many survive",
    ),
    "cut and normalised": (lambda z: z.clamp(min=0) / z.clamp(min=0).sum(), "subtract the"),
    "sorted": (
        lambda z: _right_sparsemax(z).clamp(min=0).sort(descending=True).values,
        "in the order of z",
    ),
    "uniform": (lambda z: torch.full_like(z, 1 / len(z)), "wrong weights"),
    "relu": (lambda z: z.clamp(min=0), "do not sum to 1"),
    "sigmoid": (torch.sigmoid, "do not sum to 1"),
}


@pytest.mark.parametrize("answer, phrase", SPARSEMAX.values(), ids=SPARSEMAX)
def test_sparsemax_rejects(answer, phrase):
    rejected("sparsemax", answer, phrase)


def _start_at_zero(q, k, v, block=2):
    top, total, out = torch.tensor(0.0), torch.tensor(0.0), torch.zeros(v.shape[-1])
    for i in range(0, len(k), block):
        s = k[i : i + block] @ q / len(q) ** 0.5
        new = torch.maximum(top, s.max())
        shrink, e = (top - new).exp(), (s - new).exp()
        total, out, top = total * shrink + e.sum(), out * shrink + e @ v[i : i + block], new
    return out / total


def _list_of_blocks(q, k, v, block=2):
    parts = [k[i : i + block] @ q / len(q) ** 0.5 for i in range(0, len(k), block)]
    top, total, out = max(s.max() for s in parts), 0.0, 0.0
    for i, s in enumerate(parts):
        e = (s - top).exp()
        total, out = total + e.sum(), out + e @ v[i * block : i * block + block]
    return out / total


def _in_another_shape(q, k, v, block=2):
    s = (k @ q)[None, None] / len(q) ** 0.5
    e = (s - s.max()).exp()
    return (e @ v)[0, 0] / e.sum()


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (_start_at_zero, "start it at -inf"),
        (_list_of_blocks, "scores are held at once"),
        (_in_another_shape, "scores are held at once"),
        (lambda q, k, v, block=2: _online(q, k, v, 2), "use `block`"),
    ],
)
def test_online_sees_what_slipped_through_before(answer, phrase):
    rejected("online_attention", answer, phrase)


def test_online_accepts_softmax_within_one_block(capsys):
    def by_softmax(q, k, v, block=2):
        logs, out = None, None
        for i in range(0, len(k), block):
            s = k[i : i + block] @ q / len(q) ** 0.5
            here, part = s.logsumexp(0), torch.softmax(s, 0) @ v[i : i + block]
            both = here if logs is None else torch.logaddexp(logs, here)
            out = part if out is None else (logs - both).exp() * out + (here - both).exp() * part
            logs = both
        return out

    check.online_attention(by_softmax)
    assert "Right" in capsys.readouterr().out


def test_online_accepts_plain_python(capsys):
    def by_lists(q, k, v, block=2):
        top, total, out = -math.inf, 0.0, [0.0] * v.shape[-1]
        for i in range(0, len(k), block):
            s = [sum(map(float.__mul__, row, q.tolist())) / len(q) ** 0.5
                 for row in k[i : i + block].tolist()]  # fmt: skip
            new = max(top, *s)
            shrink, e = math.exp(top - new), [math.exp(x - new) for x in s]
            total = total * shrink + sum(e)
            for j in range(len(out)):
                rows = v[i : i + block, j].tolist()
                out[j] = out[j] * shrink + sum(map(float.__mul__, e, rows))
            top = new
        return torch.tensor(out) / total

    check.online_attention(by_lists)
    assert "Right" in capsys.readouterr().out


def test_attention_needs_every_number_of_leading_dimensions():
    def with_bmm(q, k, v):
        if q.ndim == 2:
            return tuple(x[0] for x in with_bmm(q[None], k[None], v[None]))
        a = torch.softmax(torch.bmm(q, k.mT) / q.shape[-1] ** 0.5, -1)
        return torch.bmm(a, v), a

    rejected("your_attention", with_bmm, "called with shapes (2, 3, 4, 6)")

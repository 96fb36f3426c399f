"""The checks of chapter 6 accept right answers and name the fault of wrong ones."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attention import causal_mask, softmax
from attention.checks import masking as check
from attention.checks._base import NotYet


def rejected(name, answer, phrase):
    with pytest.raises(NotYet) as error:
        getattr(check, name)(answer)
    assert phrase in str(error.value)


def square(n_q, n_k):
    return torch.ones(n_q, n_k)


# ---- the causal mask


def test_causal_accepts_another_way(capsys):
    check.causal(lambda n_q, n_k: ~square(n_k, n_k).triu(1)[n_k - n_q :].bool())
    assert capsys.readouterr().out.startswith("Right:")


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda n_q, n_k: square(n_q, n_k).triu(1 + n_k - n_q).bool(), "polarity is reversed"),
        (lambda n_q, n_k: square(n_q, n_k).tril(n_k - n_q - 1).bool(), "must see itself too"),
        (lambda n_q, n_k: square(n_q, n_k).triu(n_k - n_q).bool(), "the other way round"),
        (lambda n_q, n_k: square(n_q, n_k).tril().bool(), "you placed it at position 0"),
        (lambda n_q, n_k: square(n_q, n_k).tril(n_k - n_q + 1).bool(), "one token too many"),
        (lambda n_q, n_k: square(n_q, n_k).bool(), "nothing is forbidden"),
        (lambda n_q, n_k: square(n_q, n_k).tril(n_k - n_q), "must be boolean"),
        (lambda n_q, n_k: square(n_k, n_k).tril().bool(), "must have shape (2, 4)"),
        (lambda n_q, n_k: causal_mask(n_q, n_k), "write it yourself"),
        (lambda n_q, n_k: square(n_q, n_k).tril(n_k - n_q).bool() & (n_k < 5), "the mask must be"),
    ],
)
def test_causal_rejects(answer, phrase):
    rejected("causal", answer, phrase)


# ---- softmax under a mask


def test_masked_softmax_accepts_another_way(capsys):
    def by_hand(scores, mask):
        mask = mask.expand(scores.shape)
        top = scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True)
        top = top.masked_fill(top == -math.inf, 0.0).detach()
        shares = torch.exp((scores - top).masked_fill(~mask, -math.inf))
        return shares / shares.sum(-1, keepdim=True).clamp_min(1e-30)

    check.masked_softmax(by_hand)
    check.masked_softmax(lambda scores, mask: softmax(scores.masked_fill(~mask, -math.inf)))
    assert capsys.readouterr().out.count("Right:") == 2


def late(scores, mask):
    w = torch.softmax(scores, -1) * mask
    return w / w.sum(-1, keepdim=True)


def filled(value):
    return lambda scores, mask: torch.softmax(scores.masked_fill(~mask, value), -1)


def mended_too_late(scores, mask):
    added = torch.where(mask, 0.0, -math.inf)
    w = torch.softmax(scores.clamp(max=3e9) + added, -1)  # inf + -inf cannot come about
    return torch.where(torch.isnan(w), 0.0, w)


def minus_infinity_added(scores, mask):
    empty = ~mask.any(-1, keepdim=True)
    w = torch.softmax(scores + torch.where(mask | empty, 0.0, -math.inf), -1)
    return w.masked_fill(empty, 0.0)


def spoils_neighbours(scores, mask):
    w = torch.softmax(scores.masked_fill(~mask, -math.inf), -1)
    return torch.zeros_like(w) if torch.isnan(w).any() else w


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda scores, mask: torch.softmax(scores, -1), "the mask has no effect"),
        (lambda scores, mask: softmax(scores.masked_fill(mask, -math.inf)), "the wrong way round"),
        (lambda scores, mask: torch.softmax(scores, -1) * mask, "comes after the softmax"),
        (filled(0.0), "a score of 0 is not a weight of 0"),
        (
            lambda scores, mask: softmax(scores.masked_fill(~mask, -math.inf), dim=-2),
            "runs over the queries",
        ),
        (
            lambda scores, mask: (mask / mask.sum(-1, keepdim=True)).expand(scores.shape),
            "the scores are not used",
        ),
        (filled(-10.0), "some weights are wrong"),
        (filled(-20.0), "exactly 0"),
        (late, "2e9 spoils the row"),
        (
            lambda scores, mask: torch.softmax(scores + torch.where(mask, 0.0, -1e9), -1),
            "2e9 spoils the row",
        ),
        (minus_infinity_added, "a forbidden score of inf spoils the row"),
        (filled(-math.inf), "gives nan; it must give zeros"),
        (filled(-1e9), "must give zeros; got [0.25"),
        (spoils_neighbours, "must not change the weights of the others"),
        (mended_too_late, "a nan arose in the softmax"),
        (
            lambda scores, mask: softmax(scores.detach().masked_fill(~mask, -math.inf)),
            "no gradient reaches the scores",
        ),
        (lambda scores, mask: torch.tensor(0.5), "must have shape (4, 4)"),
    ],
)
def test_masked_softmax_rejects(answer, phrase):
    rejected("masked_softmax", answer, phrase)


# ---- a padded batch


def scores_of(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def batch_with(rule, fill=-math.inf, scale=1.0):
    def answer(q, k, v, real):
        past = causal_mask(q.shape[1])
        scores = scores_of(q, k) * scale
        return torch.softmax(scores.masked_fill(~rule(past, real), fill), -1) @ v

    return answer


def test_batch_accepts_other_ways(capsys):
    def one_by_one(q, k, v, real):
        out = torch.zeros_like(v)
        for b, i in real.nonzero().tolist():
            seen = [j for j in range(i + 1) if real[b, j]]
            out[b, i] = torch.softmax(scores_of(q[b, i], k[b, seen]), -1) @ v[b, seen]
        return out

    check.batch(one_by_one)
    check.batch(batch_with(lambda past, real: past & real[:, None]))  # nan at padding is no fault
    assert capsys.readouterr().out.count("Right:") == 2


def as_printed(q, k, v, real):
    past = causal_mask(q.shape[1])
    return torch.softmax(scores_of(q, k).masked_fill(past | real, -math.inf), -1) @ v


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (as_printed, "raised RuntimeError"),
        (batch_with(lambda past, real: past | real[:, None]), "not with |"),
        (batch_with(lambda past, real: past & real[:, :, None]), "not (B, n, 1)"),
        (batch_with(lambda past, real: past & real), "raised RuntimeError"),
        (
            batch_with(
                lambda past, real: past & (real if len(real) == len(past) else real[:, None])
            ),
            "taken for (n, n)",
        ),
        (batch_with(lambda past, real: past), "the padding is not hidden"),
        (batch_with(lambda past, real: real[:, None]), "the future is not hidden"),
        (batch_with(lambda past, real: past.T & real[:, None]), "sees the future"),
        (batch_with(lambda past, real: past.tril(-1) & real[:, None], -1e9), "some outputs"),
        (batch_with(lambda past, real: past & real[:, None], 0.0), "minus infinity, not 0"),
        (batch_with(lambda past, real: past & real[:, None], scale=2.0), "root of d"),
        (batch_with(lambda past, real: ~(past & real[:, None])), "wrong way round"),
        (batch_with(lambda past, real: past.tril(-1) & real[:, None]), "real token is nan"),
        (batch_with(lambda past, real: ~(past & real[:, None]), -1e9), "wrong way round"),
        (lambda q, k, v, real: v.mean(1), "must have shape (2, 4, 4)"),
        (lambda q, k, v, real: v, "some outputs of real tokens are wrong"),
    ],
)
def test_batch_rejects(answer, phrase):
    rejected("batch", answer, phrase)


# ---- a head that cheats


def shifted(n, by=1, size=None):
    size = 10 * math.sqrt(n) if size is None else size
    return size * torch.eye(n).roll(by, dims=1), torch.eye(n)


def test_cheat_accepts_another_way(capsys):
    def on_a_circle(n):
        angle = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
        turn = 2 * math.pi / n
        return (
            30000 * torch.stack([torch.cos(angle + turn), torch.sin(angle + turn)], -1),
            torch.stack([torch.cos(angle), torch.sin(angle)], -1),
        )

    check.cheat(on_a_circle)
    check.cheat(lambda n: shifted(n))
    assert capsys.readouterr().out.count("Right:") == 2


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda n: shifted(n, by=0), "attends to itself"),
        (lambda n: shifted(n, by=-1) if n > 2 else shifted(n), "the one before it"),
        (lambda n: shifted(n, size=1.0), "only 0."),
        (lambda n: shifted(n, size=8 * math.sqrt(n)), "with n = 200"),
        (lambda n: shifted(n, size=10.0), "without the division"),
        (lambda n: shifted(n)[0], "return two tensors"),
        (lambda n: (torch.ones(n, n), torch.ones(n, n)), "only 0.500"),
        (lambda n: (shifted(n)[0], torch.eye(n)[:, :-1]), "K must have shape (2, 2)"),
        (lambda n: (shifted(n)[0] * math.inf, torch.eye(n)), "NaN"),
        (lambda n: (torch.eye(n) + math.inf, torch.eye(n)), "finite"),
        (lambda n: shifted(5), "Q must have shape (2, 5)"),
    ],
)
def test_cheat_rejects(answer, phrase):
    rejected("cheat", answer, phrase)


# ---- packing


def test_packed_accepts_another_way(capsys):
    def by_loops(document):
        n = len(document)
        rows = [[j <= i and bool(document[i] == document[j]) for j in range(n)] for i in range(n)]
        return torch.tensor(rows)

    check.packed(by_loops)
    assert capsys.readouterr().out.startswith("Right:")


def same(document):
    return document[:, None] == document


def past(document):
    return causal_mask(len(document))


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda d: ~(same(d) & past(d)), "polarity is reversed"),
        (same, "the causal rule is missing"),
        (past, "only the causal rule is there"),
        (lambda d: same(d) | past(d), "not with |"),
        (lambda d: same(d) & past(d).tril(-1), "must see itself too"),
        (lambda d: same(d) & past(d).T, "rows are queries"),
        (lambda d: (d[:, None] <= d) & past(d), "only equality counts"),
        (lambda d: (same(d) & past(d)).float(), "must be boolean"),
        (lambda d: same(d) & past(d) & past(d).triu(-1), "the mask must be"),
    ],
)
def test_packed_rejects(answer, phrase):
    rejected("packed", answer, phrase)


# ---- the leak detector


def test_leak_accepts_another_way(capsys):
    def by_gradient(layer, n, d):
        slopes = torch.autograd.functional.jacobian(layer, torch.randn(n, d))  # (n, d, n, d)
        influence = slopes.abs().amax(dim=(1, 3))
        return bool((influence.triu(1) > 1e-7).any())

    check.leak(by_gradient)
    assert capsys.readouterr().out.startswith("Right:")


def test_an_answer_draws_the_same_numbers_at_every_run():
    drawn = []

    def finds_leak(layer, n, d):
        drawn.append(torch.randn(n, d))
        return False

    for seed in (1, 2):
        torch.manual_seed(seed)
        state = torch.get_rng_state()
        with pytest.raises(NotYet, match="you miss the leak"):
            check.leak(finds_leak)
        assert torch.equal(torch.get_rng_state(), state)  # the notebook's own draws go on
    assert all(torch.equal(x, drawn[0]) for x in drawn)


@pytest.mark.parametrize("seed", range(100))
def test_leaks_are_large_enough_for_any_probe(seed):
    def finds_leak(layer, n, d):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(n, d, generator=generator)
        for t in range(1, n):
            y = x.clone()
            y[t] += torch.randn(d, generator=generator)
            if not torch.allclose(layer(y)[:t], layer(x)[:t], atol=1e-3):
                return True
        return False

    check.leak(finds_leak)


def detector(change, look):
    """Change the tokens of slice `change`, look at the outputs of slice `look`."""

    def finds_leak(layer, n, d):
        x = torch.randn(n, d)
        y = x.clone()
        y[change] += 1.0
        return not torch.allclose(layer(y)[look], layer(x)[look], atol=1e-6)

    return finds_leak


def one_output_later(layer, n, d):
    x = torch.randn(n, d)
    for t in range(1, n):
        y = x.clone()
        y[t] += 1.0
        if not torch.allclose(layer(y)[: t + 1], layer(x)[: t + 1], atol=1e-6):
            return True
    return False


def shortened(layer, n, d):
    x = torch.randn(n, d)
    return any(not torch.allclose(layer(x[:t]), layer(x)[:t], atol=1e-6) for t in range(1, n))


def too_coarse(layer, n, d):
    x = torch.randn(n, d)
    return any(
        bool((layer(x + F.one_hot(torch.tensor(t), n)[:, None])[:t] - layer(x)[:t]).abs().max() > 9)
        for t in range(1, n)
    )


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda layer, n, d: True, "you report a leak in causal attention"),
        (lambda layer, n, d: False, "you miss the leak in attention without a mask"),
        (detector(slice(-1, None), slice(None)), "you report a leak in causal attention"),
        (detector(slice(0, 1), slice(1, None)), "you report a leak in causal attention"),
        (detector(slice(-1, None), slice(0, 1)), "a mask that lets each token see one too many"),
        (detector(slice(-1, None), slice(None, -1)), "only output 0 sees token 1"),
        (detector(slice(3, None), slice(None, 3)), "only the last but one output sees the last"),
        (one_output_later, "you report a leak in causal attention"),
        (too_coarse, "you miss the leak in attention without a mask"),
        (shortened, "the layer accepts only shape (n, d) = (6, 4); got (1, 4)"),
        (lambda layer, n, d: "yes", "return True or False; got str"),
    ],
)
def test_leak_rejects(answer, phrase):
    torch.manual_seed(0)
    rejected("leak", answer, phrase)


# ---- what slipped through before


def by_rows_of(compare, start=1, size=None, cast=lambda x: x):
    """A detector that compares outputs before t in its own way."""

    def finds_leak(layer, n, d):
        n_own, d_own = size or (n, d)
        x = cast(torch.randn(n_own, d_own))
        for t in range(start, n_own):
            y = x.clone()
            y[t] += torch.randn(d_own).to(x)
            if compare(layer(y)[:t], layer(x)[:t]):
                return True
        return False

    return finds_leak


def far(tolerance):
    return lambda a, b: bool((a - b).abs().max() > tolerance)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (by_rows_of(far(1e-6), start=2), "only output 0 sees token 1"),
        (by_rows_of(far(1e-6), start=3), "only output 0 sees token 1"),
        (by_rows_of(lambda a, b: far(1e-6)(a[:, 0], b[:, 0])), "in its last feature alone"),
        (by_rows_of(lambda a, b: far(1e-5)(a.sum(-1), b.sum(-1))), "taken from another"),
        (by_rows_of(far(0.01)), "a few thousandths"),
        (by_rows_of(far(0.1)), "you miss the leak"),
        (by_rows_of(far(1e-6), size=(6, 4)), "accepts only shape (n, d) = (3, 2)"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_leak_sees_what_slipped_through_before(monkeypatch, seed, answer, phrase):
    class Other(torch.Generator):
        def manual_seed(self, number):
            return super().manual_seed(number + 20_000 * seed)

    monkeypatch.setattr(torch, "Generator", Other)
    rejected("leak", answer, phrase)


def by_slopes(layer, n, d):
    x = torch.randn(n, d, requires_grad=True)
    for i in range(n - 1):
        (slope,) = torch.autograd.grad(layer(x)[i].square().sum(), x)
        if slope[i + 1 :].abs().max() > 1e-6:
            return True
    return False


@pytest.mark.parametrize(
    "answer",
    [
        by_rows_of(lambda a, b: not np.allclose(a, b, atol=1e-6)),
        lambda layer, n, d: np.bool_(by_rows_of(far(1e-6))(layer, n, d)),
        by_rows_of(far(1e-12), cast=torch.Tensor.double),
        by_slopes,
    ],
    ids=["numpy", "np.bool_", "float64", "autograd"],
)
def test_leak_accepts_other_ways(answer, capsys):
    check.leak(answer)
    assert capsys.readouterr().out.startswith("Right:")


def own_softmax(scores, mask, low=-math.inf):
    empty = ~mask.any(-1, keepdim=True)
    return scores.masked_fill(~(mask | empty), low).softmax(-1).masked_fill(empty | ~mask, 0.0)


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda s, m: own_softmax(s, m, -100.0), "-300"),
        (lambda s, m: own_softmax(s, m[0] if m.ndim > 2 else m), "some weights are wrong"),
    ],
)
def test_masked_softmax_sees_what_slipped_through_before(answer, phrase):
    rejected("masked_softmax", answer, phrase)

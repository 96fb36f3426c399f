"""The checks of chapter 6 accept right answers and name the fault of wrong ones."""

import math

import pytest
import torch
import torch.nn.functional as F

from attention import causal_mask, next_token_loss, softmax
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


# ---- padding


def test_padding_accepts_another_way(capsys):
    check.padding(lambda ids, pad: ~torch.eq(ids, pad).unsqueeze(1))
    assert capsys.readouterr().out.startswith("Right:")


def from_lengths(ids, pad):
    length = (ids != pad).sum(1)
    return (torch.arange(ids.shape[1]) < length[:, None])[:, None]


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda ids, pad: ids != pad, "silently so when B = n"),
        (lambda ids, pad: (ids != pad)[:, :, None], "masks the queries"),
        (lambda ids, pad: (ids == pad)[:, None], "polarity is reversed"),
        (lambda ids, pad: (ids != 0)[:, None], "compare with `pad`"),
        (from_lengths, "padding may stand on the left"),
        (lambda ids, pad: torch.ones_like(ids)[:, None].bool(), "the padding too"),
        (lambda ids, pad: (ids != pad)[:, None].float(), "must be boolean"),
        (
            lambda ids, pad: (ids != pad)[:, None] & causal_mask(ids.shape[1]),
            "must have shape (2, 1, 4)",
        ),
        (lambda ids, pad: (ids < pad)[:, None] | (ids > 5)[:, None], "the keys allowed must be"),
    ],
)
def test_padding_rejects(answer, phrase):
    rejected("padding", answer, phrase)


# ---- the loss


def test_loss_accepts_another_way(capsys):
    def by_hand(logits, ids, pad):
        chances = logits[:, :-1].log_softmax(-1)
        said = chances.gather(-1, ids[:, 1:, None])[..., 0]
        return -said[ids[:, 1:] != pad].mean()

    check.loss(by_hand)
    assert capsys.readouterr().out.startswith("Right:")


def entropy_of(answers, targets, **options):
    return F.cross_entropy(answers.flatten(0, 1), targets.flatten(), **options)


def per_sentence(logits, ids, pad):
    means = [
        F.cross_entropy(a[:-1], t[1:], ignore_index=pad) for a, t in zip(logits, ids, strict=True)
    ]
    return torch.stack(means).mean()


def by_own_token(logits, ids, pad):
    keep = ids[:, :-1] != pad
    return F.cross_entropy(logits[:, :-1][keep], ids[:, 1:][keep])


def by_the_package(logits, ids, pad):
    return next_token_loss(lambda _: logits[:, :-1], ids, pad)


def still_counted(logits, ids, pad):
    total = entropy_of(logits[:, :-1], ids[:, 1:], ignore_index=pad, reduction="sum")
    return total / ids[:, 1:].numel()


@pytest.mark.parametrize(
    ("answer", "phrase"),
    [
        (lambda x, ids, pad: entropy_of(x, ids, ignore_index=pad), "which it has read"),
        (
            lambda x, ids, pad: entropy_of(x[:, 1:], ids[:, :-1], ignore_index=pad),
            "shift goes the wrong way",
        ),
        (lambda x, ids, pad: entropy_of(x[:, :-1], ids[:, 1:]), "the padding counts"),
        (still_counted, "divide by the number of real targets"),
        (by_own_token, "not those whose own token is"),
        (
            lambda x, ids, pad: entropy_of(
                x[:, :-1], ids[:, 1:], ignore_index=pad, reduction="sum"
            ),
            "that is the sum",
        ),
        (per_sentence, "each sentence has the same weight"),
        (
            lambda x, ids, pad: entropy_of(x[:, :-1].softmax(-1), ids[:, 1:], ignore_index=pad),
            "do not apply a softmax before",
        ),
        (
            lambda x, ids, pad: -entropy_of(x[:, :-1], ids[:, 1:], ignore_index=pad),
            "the sign is reversed",
        ),
        (
            lambda x, ids, pad: entropy_of(x[:, :-1], ids[:, 1:], ignore_index=0),
            "the padding counts",
        ),
        (
            lambda x, ids, pad: entropy_of(x[:, :-1], ids[:, 1:], reduction="none"),
            "must be one number",
        ),
        (by_the_package, "write it yourself"),
        (lambda x, ids, pad: torch.tensor(1.0), "the loss must be"),
    ],
)
def test_loss_rejects(answer, phrase):
    rejected("loss", answer, phrase)


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
        (detector(slice(-1, None), slice(None, -1)), "only output 2 sees token 3"),
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

"""softmax, attention, fused_attention, entropy, softmax_jacobian: values and edge cases."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from attention import (
    alibi_bias,
    attention,
    causal_mask,
    entropy,
    fused_attention,
    padding_mask,
    sliding_window_mask,
    softmax,
    softmax_jacobian,
)

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


class LargestTensor(TorchDispatchMode):
    """Notes how many numbers the largest result of any operation holds."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for x in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(x, torch.Tensor):
                self.numel = max(self.numel, x.numel())
        return result


def qkv(*lead, n_q=6, n_k=6, d_k=4, d_v=4, dtype=torch.float32, seed=0):
    rng = torch.Generator().manual_seed(seed)
    shapes = ((n_q, d_k), (n_k, d_k), (n_k, d_v))
    return [torch.randn(*lead, *s, generator=rng).to(dtype).requires_grad_() for s in shapes]


# softmax


@pytest.mark.parametrize("temperature", [0.1, 1.0, 2.0, 50.0])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_equals_torch_softmax_of_x_over_temperature(temperature, dim):
    x = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    want = torch.softmax(x / temperature, dim)
    torch.testing.assert_close(softmax(x, temperature, dim), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("temperature", [1e-300, 1e-30, 1e-8, 1e30])
def test_softmax_survives_extreme_temperatures_and_scores(dtype, temperature):
    top = 0.9 * torch.finfo(dtype).max
    w = softmax(torch.tensor([top, -top, 0.0, top], dtype=dtype), temperature)
    assert w.isfinite().all()
    assert w.sum().item() == pytest.approx(1, abs=0.01)
    if temperature < 1:
        assert w.tolist() == [0.5, 0.0, 0.0, 0.5]


def test_softmax_of_nothing_is_zero_with_finite_gradient():
    x = torch.tensor([[-math.inf, -math.inf], [0.0, -math.inf]], requires_grad=True)
    w = softmax(x)
    assert w.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    (w * torch.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.isfinite().all()


def test_softmax_gradient_is_the_jacobian():
    x = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    got = torch.autograd.functional.jacobian(lambda s: softmax(s, 0.7), x)
    torch.testing.assert_close(got, softmax_jacobian(softmax(x, 0.7)) / 0.7)


# attention


def test_attention_by_hand():
    q = torch.tensor([[1.0, 0.0]])
    k = torch.tensor([[math.sqrt(2) * math.log(3), 5.0], [0.0, -7.0]])
    out, weights = attention(q, k, torch.tensor([[4.0], [0.0]]))
    torch.testing.assert_close(weights, torch.tensor([[0.75, 0.25]]))
    torch.testing.assert_close(out, torch.tensor([[3.0]]))


def test_large_scores_do_not_overflow_in_half_precision():
    q = torch.full((1, 64), 50.0, dtype=torch.float16)
    k = torch.full((2, 64), 50.0, dtype=torch.float16)  # q.k = 160,000 > 65,504
    out, weights = attention(q, k, k)
    assert weights.tolist() == [[0.5, 0.5]]
    assert out.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("with_bias", [False, True])
def test_empty_rows_give_zeros_and_finite_gradients_on_both_paths(dtype, with_bias):
    q, k, v = qkv(2, 3, n_q=4, n_k=5, d_v=6, dtype=dtype)
    mask = padding_mask([0, 3], 5)[:, None] & causal_mask(4, 5)
    bias = alibi_bias(3, 4, 5)[None].to(dtype).requires_grad_() if with_bias else None
    out, weights = attention(q, k, v, mask, bias=bias)
    fused = fused_attention(q, k, v, mask, bias=bias)
    assert not weights[0].any() and not out[0].any() and not fused[0].any()
    assert weights[1].any(-1).all() and out[1].any(-1).all() and fused[1].any(-1).all()
    for result in (out, fused):
        grads = torch.autograd.grad(result.sum(), [q, k, v, *([bias] if with_bias else [])],
                                    retain_graph=True)  # fmt: skip
        assert all(g.isfinite().all() for g in grads)
        assert not any(g[0].any() for g in grads[:3])  # nothing flows from an empty row


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("n_q,n_k", [(6, 6), (1, 6), (3, 6), (6, 3)])
def test_is_causal_means_causal_mask(lead, n_q, n_k):
    q, k, v = qkv(*lead, n_q=n_q, n_k=n_k, d_v=3)
    want, _ = attention(q, k, v, causal_mask(n_q, n_k))
    torch.testing.assert_close(fused_attention(q, k, v, is_causal=True), want)
    window = sliding_window_mask(n_q, 2, n_k)
    want, _ = attention(q, k, v, causal_mask(n_q, n_k) & window)
    torch.testing.assert_close(fused_attention(q, k, v, window, is_causal=True), want)
    bias = torch.randn(n_q, n_k, generator=torch.Generator().manual_seed(1))
    want, _ = attention(q, k, v, causal_mask(n_q, n_k), bias=bias)
    torch.testing.assert_close(fused_attention(q, k, v, bias=bias, is_causal=True), want)


def test_leading_dimensions_broadcast():
    q, _, _ = qkv(2, 3)
    _, k, v = qkv(1, 3, seed=1)
    want, _ = attention(q, k.expand(2, 3, 6, 4), v.expand(2, 3, 6, 4))
    torch.testing.assert_close(attention(q, k, v)[0], want)
    torch.testing.assert_close(fused_attention(q, k, v), want)
    torch.testing.assert_close(fused_attention(q, k, v, causal_mask(6)), attention(
        q, k, v, causal_mask(6))[0])  # fmt: skip


@pytest.mark.parametrize("lead", [(), (2,), (1, 2), (1, 1, 2)])
@pytest.mark.parametrize("d_v", [4, 2, 9])
@pytest.mark.parametrize("case", ["plain", "causal", "late", "padding"])
def test_fused_attention_never_builds_the_n_by_n_matrix(lead, d_v, case):
    n = 600
    q, k, v = qkv(*lead, n_q=n, n_k=n - 50 * (case == "late"), d_v=d_v)
    mask = padding_mask([n - 7], n)[0] if case == "padding" else None
    with LargestTensor() as seen:
        out = fused_attention(q, k, v, mask, is_causal=case in ("causal", "late"))
        out.sum().backward()
    assert seen.numel < n * n / 4
    with LargestTensor() as seen:
        attention(q, k, v, mask)
    assert seen.numel >= n * k.shape[-2]  # what the check would see


def test_dropout_drops_weights_and_scales_the_rest():
    q, k, v = qkv(n_q=200, n_k=50)
    _, full = attention(q, k, v)
    torch.manual_seed(0)
    out, weights = attention(q, k, v, dropout=0.25)
    kept = weights != 0
    assert kept.double().mean().item() == pytest.approx(0.75, abs=0.01)
    torch.testing.assert_close(weights[kept], full[kept] / 0.75)
    torch.testing.assert_close(out, weights @ v)


def test_dropout_of_the_fused_path_keeps_the_mean():
    q, k, v = qkv(n_q=3, n_k=4)
    torch.manual_seed(0)
    many = torch.stack([fused_attention(q, k, v, dropout=0.5) for _ in range(2000)]).mean(0)
    torch.testing.assert_close(many, attention(q, k, v)[0], atol=0.1, rtol=0)


def test_scale_zero_is_a_plain_mean():
    q, k, v = qkv()
    torch.testing.assert_close(attention(q, k, v, scale=0.0)[0], v.mean(0).expand(6, 4))


# entropy and Jacobian


def test_entropy_of_uniform_and_one_hot_weights():
    assert entropy(torch.full((3, 8), 1 / 8)).tolist() == pytest.approx([math.log(8)] * 3)
    one_hot = torch.eye(4, requires_grad=True)
    h = entropy(one_hot)
    assert h.tolist() == [0.0] * 4
    h.sum().backward()
    assert one_hot.grad.isfinite().all()


def test_entropy_along_another_dimension():
    w = torch.softmax(torch.randn(4, 5, generator=torch.Generator().manual_seed(0)), 0)
    torch.testing.assert_close(entropy(w, dim=0), -(w * w.log()).sum(0))


def test_jacobian_equals_autograd_and_its_rows_sum_to_zero():
    x = torch.randn(2, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    jacobian = softmax_jacobian(torch.softmax(x, -1))
    for row, got in zip(x, jacobian, strict=True):
        want = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, -1), row)
        torch.testing.assert_close(got, want)
    torch.testing.assert_close(jacobian.sum(-1), torch.zeros(2, 6, dtype=torch.float64))


# a seeded example of four tokens, number by number


def seeded_example():
    """Four tokens of width 16: an embedding, then three projections to width 8."""
    torch.manual_seed(123)
    x = torch.nn.Embedding(6, 16)(torch.arange(4)).detach()
    w_q, w_k, w_v = (torch.nn.Linear(16, 8, bias=False) for _ in range(3))
    return x, w_q(x), w_k(x), w_v(x)


def test_the_printed_embedding_table():
    x, *_ = seeded_example()
    want = """
        0.3374 -0.1778 -0.3035 -0.5880 0.3486 0.6603 -0.2196 -0.3792
        0.7671 -1.1925 0.6984 -1.4097 0.1794 1.8951 0.4954 0.2692
        -0.0770 -1.0205 -0.1690 0.9178 1.5810 1.3010 1.2753 -0.2010
        0.4965 -1.5723 0.9666 -1.1481 -1.1589 0.3255 -0.6315 -2.8400
        -1.3250 0.1784 -2.1338 1.0524 -0.3885 -0.9343 -0.4991 -1.0867
        0.8805 1.5542 0.6266 -0.1755 0.0983 -0.0935 0.2662 -0.5850
        0.8768 1.6221 -1.4779 1.1331 -1.2203 1.3139 1.0533 0.1388
        2.2473 -0.8036 -0.2808 0.7697 -0.6596 -0.7979 0.1838 0.2293"""
    assert [f"{value:.4f}" for value in x.flatten().tolist()] == want.split()


def test_the_printed_attention_weights():
    _, q, k, v = seeded_example()
    out, weights = attention(q, k, v)
    assert [[f"{value:.4f}" for value in row] for row in weights.tolist()] == [
        ["0.2352", "0.2783", "0.2205", "0.2659"],
        ["0.2094", "0.3100", "0.2795", "0.2011"],
        ["0.3360", "0.2504", "0.2338", "0.1797"],
        ["0.3234", "0.2881", "0.2501", "0.1385"],
    ]
    assert out.shape == (4, 8)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_bias_of_another_precision_is_brought_to_that_of_q(dtype):
    q, k, v = qkv(3, dtype=dtype)
    bias = alibi_bias(3, 6)  # float32
    out, weights = attention(q, k, v, bias=bias)
    assert out.dtype == weights.dtype == fused_attention(q, k, v, bias=bias).dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_masked_key_gets_nothing_however_well_it_matches(dtype):
    """A mask by -1e4 or -1e9 leaks as soon as scores are as large; -inf never does."""
    q = torch.tensor([[200.0, 0.0]], dtype=dtype)
    k = torch.tensor([[200.0, 0.0], [-200.0, 0.0], [-200.0, 0.0]], dtype=dtype)
    mask = torch.tensor([[False, True, True]])
    v = torch.tensor([[1e4], [1.0], [3.0]], dtype=dtype)
    out, weights = attention(q, k, v, mask, scale=1.0)
    assert weights.tolist() == [[0.0, 0.5, 0.5]] and out.item() == 2.0
    assert fused_attention(q, k, v, mask, scale=1.0).item() == 2.0


@pytest.mark.parametrize("fused", [False, True])
def test_no_step_of_the_backward_pass_through_an_empty_row_is_nan(fused):
    q, k, v = qkv(2, 3, n_q=4, n_k=5)
    mask = padding_mask([0, 3], 5)[:, None]
    with torch.autograd.set_detect_anomaly(True):  # raises where a gradient is NaN in between
        out = fused_attention(q, k, v, mask) if fused else attention(q, k, v, mask)[0]
        out.sum().backward()


def test_a_bias_of_minus_infinity_forbids_as_a_mask_does():
    q, k, v = torch.randn(3, 2, 3, 4)
    bias = torch.tensor([[-math.inf] * 3, [0.5, -math.inf, 0.0], [1.0, 2.0, 3.0]])
    mask = torch.tensor([[True] * 3, [False, True, True], [True, False, True]])
    for given in (None, mask):
        q.requires_grad_().grad = None
        out, weights = attention(q, k, v, given, bias=bias)
        may = (bias > -math.inf) & (mask if given is not None else True)
        wanted, _ = attention(q, k, v, may, bias=bias.masked_fill(bias < 0, 0.0))
        assert torch.equal(out, wanted)
        assert (weights.sum(-1)[:, 0] == 0).all() and (out[:, 0] == 0).all()
        assert torch.allclose(fused_attention(q, k, v, given, bias=bias), out, atol=1e-6)
        out.sum().backward()
        assert q.grad.isfinite().all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_graph_without_breaks_gives_the_same():
    q, k, v = torch.randn(3, 2, 3, 4)
    mask = torch.tensor([[False] * 3, [True, False, True], [True] * 3])
    bias = torch.randn(3, 3).masked_fill(torch.eye(3).bool(), -math.inf)
    for function in (attention, fused_attention):
        compiled = torch.compile(function, backend="eager", fullgraph=True)
        for options in ({}, {"mask": mask}, {"mask": mask, "bias": bias}):
            torch.testing.assert_close(
                compiled(q, k, v, **options), function(q, k, v, **options), rtol=0, atol=1e-6
            )


@pytest.mark.parametrize("case", ["float32 in float16", "float64 in float32", "autocast"])
def test_a_bias_beyond_the_range_of_the_scores_forbids(case):
    """It becomes -inf only when it is brought to q's type: zeros all the same, and no NaN."""
    dtype = torch.float16 if case == "float32 in float16" else torch.float32
    low = -1e39 if case == "float64 in float32" else -1e9
    q, k, v = qkv(2, n_q=3, n_k=3, dtype=dtype)
    bias = torch.zeros(3, 3, dtype=torch.float64 if low == -1e39 else torch.float32)
    bias[0], bias[1, 1] = low, low
    bias.requires_grad_()
    with torch.autocast("cpu", torch.float16, enabled=case == "autocast"):
        out, weights = attention(q, k, v, bias=bias)
        fused = fused_attention(q, k, v, bias=bias)
    assert torch.equal(weights != 0, (bias == 0).expand(2, 3, 3))
    for result in (out, fused):
        assert not result[:, 0].any() and result[:, 1:].all()
        grads = torch.autograd.grad(result.sum(), [q, k, v, bias], retain_graph=True)
        assert all(grad.isfinite().all() for grad in grads)


@pytest.mark.parametrize("autocast", [False, True])
def test_scores_beyond_the_end_of_float16_are_no_trouble(autocast):
    q, k, v = qkv(2, n_q=5, n_k=5, d_k=64, dtype=torch.float16)
    q, k = (300 * q).detach().requires_grad_(), 300 * k
    assert (q @ k.mT / 8).isinf().any()
    with torch.autocast("cpu", torch.float16, enabled=autocast):
        out, weights = attention(q, k, v)
        torch.testing.assert_close(out, fused_attention(q, k, v))
    want, _ = attention(q.double(), k.double(), v.double())
    torch.testing.assert_close(out.double(), want, rtol=1e-3, atol=1e-3)
    out.sum().backward()
    assert weights.dtype == torch.float16 and q.grad.isfinite().all()


def test_under_autocast_q_may_differ_from_k_and_v_in_type():
    """As when q is the output of a layer, and k and v come from a cache or from elsewhere."""
    q, k, v = qkv(2)
    for kind in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", kind):
            out, weights = attention(q.to(kind), k, v)
            fused = fused_attention(q.to(kind), k, v)
        assert out.dtype == weights.dtype == fused.dtype == kind
        torch.testing.assert_close(out, attention(q.to(kind), k.to(kind), v.to(kind))[0])
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(TypeError, match="share one dtype"):
        attention(q.double(), k, v)  # autocast leaves float64 as it is


@pytest.mark.parametrize("kind", ["meta", "fake"])
def test_tensors_without_numbers_give_tensors_without_numbers(kind):
    with FakeTensorMode() if kind == "fake" else torch.device("meta"):
        x, bias = torch.zeros(2, 3, 4), torch.zeros(3, 3)
        mask = padding_mask(torch.tensor([1, 2]), 3) & causal_mask(3)
        for given in ({}, {"mask": mask}, {"bias": bias}, {"mask": mask, "bias": bias}):
            assert attention(x, x, x, **given)[1].shape == (2, 3, 3)
            assert fused_attention(x, x, x, is_causal=True, **given).shape == (2, 3, 4)
        assert entropy(x).shape == softmax(x)[..., 0].shape == (2, 3)


def test_entropy_of_each_row_by_vmap():
    weights = torch.softmax(torch.randn(3, 4), -1)
    assert torch.equal(torch.func.vmap(entropy)(weights), entropy(weights))


@pytest.mark.parametrize("run", [attention, fused_attention])
@pytest.mark.parametrize("name", ["mask", "bias"])
def test_a_mask_or_bias_of_three_dimensions_is_ambiguous_with_four(run, name):
    """One a head or one a sequence? With as many heads as sequences nobody could tell."""
    x, three = torch.randn(4, 4, 3, 8), torch.ones(4, 3, 3)
    three = three.bool() if name == "mask" else three
    with pytest.raises(ValueError, match=rf"{name} must .* all 4 dimensions .* got \(4, 3, 3\)"):
        run(x, x, x, **{name: three})
    for given in (three[0], three[None], three[:, None]):
        run(x, x, x, **{name: given})

"""Forward and gradients against PyTorch's own attention, over generated cases."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from conversion import to_torch

from attention import (
    MultiHeadAttention,
    alibi_bias,
    attention,
    causal_mask,
    fused_attention,
    padding_mask,
    prefix_mask,
    sliding_window_mask,
    to_torch_mha_mask,
)

EXACT = {torch.float32: 1e-5, torch.float64: 1e-12}
HALF = [torch.bfloat16, torch.float16]
BATCHES, PER_BATCH = 16, 30  # cases of each kind; see test_there_are_a_thousand_cases


def pick(rng, *choices):
    return choices[int(torch.randint(len(choices), (1,), generator=rng))]


def random_mask(rng, batch, n_q, n_k):
    """None, or one or two of the book's masks combined, (n_q, n_k) or (batch, 1 or n_q, n_k)."""

    def one(kind):
        if kind == "causal":
            return causal_mask(n_q, n_k)  # has empty rows if n_q > n_k
        if kind == "window":
            return sliding_window_mask(n_q, pick(rng, 1, 2, 3), n_k)
        if kind == "prefix":
            return prefix_mask(n_q, pick(rng, 0, 1, n_k), n_k)
        if kind == "padding":  # length 0 gives empty rows
            return padding_mask(torch.randint(n_k + 1, (batch,), generator=rng), n_k)
        return torch.rand(batch, n_q, n_k, generator=rng) < 0.4

    kinds = ["causal", "window", "prefix", "padding", "random"]
    count = pick(rng, 0, 1, 1, 2)
    mask = None
    for _ in range(count):
        new = one(pick(rng, *kinds))
        mask = new if mask is None else mask & new
    return mask


def full_bool(mask, shape):
    return torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)


def sdpa(q, k, v, mask, bias, scale):
    """PyTorch's kernel on the rows that have something to attend to; zeros for the others."""
    shape = (*torch.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])
    added = torch.zeros(shape, dtype=q.dtype) if bias is None else bias.expand(shape)
    allowed = full_bool(mask, shape) & (added != -torch.inf)
    empty = ~allowed.any(-1, keepdim=True)
    added = added.masked_fill(~allowed, 0.0).masked_fill(~(allowed | empty), -torch.inf)
    out = F.scaled_dot_product_attention(q, k, v, added, scale=scale)
    return torch.where(empty, torch.zeros_like(out), out)


def gradients(out, inputs, upstream):
    return torch.autograd.grad(out, inputs, upstream.to(out.dtype))


def draw_case(seed, dtype, lead=None):
    """(q, k, v, mask), {bias, scale}: what `attention` takes."""
    rng = torch.Generator().manual_seed(seed)
    lead = pick(rng, (), (2,), (2, 3), (1, 2), (2, 1, 2)) if lead is None else lead
    n_q, d_k = pick(rng, 1, 2, 5, 8), pick(rng, 1, 2, 4, 8)
    n_k, d_v = pick(rng, n_q, 1, 3, 7), pick(rng, d_k, 1, 6)

    def draw(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64).to(dtype).requires_grad_()

    q, k, v = draw(*lead, n_q, d_k), draw(*lead, n_k, d_k), draw(*lead, n_k, d_v)
    batch = lead[0] if lead else 1
    mask = random_mask(rng, batch, n_q, n_k)
    if mask is not None and mask.ndim == 3:  # (B, n_q, n_k) -> (B, 1, ..., n_q, n_k)
        mask = mask.view(batch, *[1] * (len(lead) - 1), *mask.shape[1:]) if lead else mask[0]
    bias = draw(*pick(rng, (n_q, n_k), (1, n_k), (*lead, n_q, n_k))) if pick(rng, 0, 0, 1) else None
    if bias is not None and pick(rng, 0, 1):  # some keys are forbidden by the bias
        never = torch.rand(bias.shape, generator=rng) < 0.3
        bias = bias.detach().masked_fill(never, -torch.inf).requires_grad_()
    return (q, k, v, mask), {"bias": bias, "scale": pick(rng, None, None, 0.3, 1.0)}


def check_core(seed, dtype):
    """One case of `attention` and `fused_attention` against scaled_dot_product_attention."""
    (q, k, v, mask), options = draw_case(seed, dtype)
    inputs = [x for x in (q, k, v, options["bias"]) if x is not None]
    ours, weights = attention(q, k, v, mask, **options)
    fused = fused_attention(q, k, v, mask, **options)
    assert ours.dtype == fused.dtype == weights.dtype == dtype
    assert weights.shape == (*q.shape[:-1], k.shape[-2])
    wide = [x.detach().double().requires_grad_() for x in inputs]
    want = sdpa(*wide[:3], mask, wide[3] if len(wide) == 4 else None, options["scale"])
    upstream = torch.randn_like(want)
    want_grads = gradients(want, wide, upstream)
    for out in (ours, fused):
        close(out, want, dtype)
        for got, wanted in zip(gradients(out, inputs, upstream), want_grads, strict=True):
            close(got, wanted, dtype, factor=4)


def check_vmap(seed, dtype):
    """The same, one element of the batch at a time, with masks and biases of its own."""
    given, options = draw_case(seed, dtype, lead=[(3,), (3, 2), (3, 1, 2)][seed % 3])
    given = [None if x is None else x.detach() for x in given]
    bias, scale = options["bias"], options["scale"]
    bias = None if bias is None else bias.detach()  # PyTorch's kernel has no gradient for it here
    axes = [None if x is None or x.ndim < given[0].ndim else 0 for x in (*given, bias)]
    want = sdpa(*given, bias, scale)
    for run in (lambda *a, **o: attention(*a, **o)[0], fused_attention):
        mapped = torch.func.vmap(
            lambda q, k, v, mask, bias, run=run: run(q, k, v, mask, bias=bias, scale=scale),
            in_dims=tuple(axes),
        )
        close(mapped(*given, bias), want, dtype)


def check_autocast(seed, dtype):
    """Inputs of several types, and a bias that `dtype` cannot hold, under autocast to it."""
    (q, k, v, mask), options = draw_case(seed, torch.float32)
    rng = torch.Generator().manual_seed(seed)
    q = 1000 * q if pick(rng, 0, 1) else q  # scores beyond 65,504, where float16 ends
    q, k, v = (x.to(dtype) if pick(rng, 0, 1) else x for x in (q, k, v))
    bias = torch.randn(q.shape[-2], k.shape[-2], generator=rng, dtype=torch.float64)
    bias = bias.masked_fill(torch.rand(bias.shape, generator=rng) < 0.3, -1e39).requires_grad_()
    wide = [x.detach().to(dtype).double() for x in (q, k, v, bias)]
    want = sdpa(*wide[:3], mask, wide[3], options["scale"])
    with torch.autocast("cpu", dtype):
        out, weights = attention(q, k, v, mask, bias=bias, scale=options["scale"])
        fused = fused_attention(q, k, v, mask, bias=bias, scale=options["scale"])
    assert out.dtype == weights.dtype == fused.dtype == dtype
    for result in (out, fused):
        close(result, want, dtype, factor=2)
        grads = torch.autograd.grad(result.sum(), [q, k, v, bias], retain_graph=True)
        assert all(grad.isfinite().all() for grad in grads)


def check_empty_batch(seed, dtype):
    """A batch of no sequences: nothing comes out, in the right shape, as from PyTorch."""
    given, options = draw_case(seed, dtype, lead=[(0,), (0, 2), (2, 0), (2, 0, 3)][seed % 4])
    want = F.scaled_dot_product_attention(*given[:3])
    out, weights = attention(*given, **options)
    fused = fused_attention(*given, **options)
    assert out.shape == fused.shape == want.shape
    assert weights.shape == (*want.shape[:-1], given[1].shape[-2])
    assert gradients(fused + out, given[:1], want)[0].shape == given[0].shape


def close(got, want, dtype, factor=1):
    """Equal to 1e-5 or 1e-12; in half precision to a few of the format's own steps."""
    assert got.isfinite().all()
    tol = EXACT.get(dtype) or 4 * factor * torch.finfo(dtype).eps
    size = 1.0 if dtype in EXACT else max(1.0, want.abs().max().item())
    torch.testing.assert_close(got.double(), want.double(), rtol=tol, atol=tol * size)


def check_multi_head(seed, dtype):
    """One case of `MultiHeadAttention` against nn.MultiheadAttention with the same weights."""
    rng = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    heads = pick(rng, 1, 2, 4)
    groups = pick(rng, *{1, heads, max(1, heads // 2)})
    d_model, batch = heads * pick(rng, 1, 2, 4), pick(rng, 1, 2, 3)
    n_q = pick(rng, 1, 2, 5)
    n_k = pick(rng, n_q, 1, 3, 6)
    cross = n_k != n_q or pick(rng, 0, 1)
    ours = MultiHeadAttention(d_model, heads, groups, bias=bool(pick(rng, 0, 1))).to(dtype)
    if groups == heads and pick(rng, 0, 1):
        ours = MultiHeadAttention.from_torch(to_torch(ours))
    theirs = to_torch(ours)
    x = torch.randn(batch, n_q, d_model, generator=rng, dtype=dtype, requires_grad=True)
    context = torch.randn(batch, n_k, d_model, generator=rng, dtype=dtype, requires_grad=True)
    context = context if cross else None
    mask = random_mask(rng, batch, n_q, n_k)
    bias = alibi_bias(heads, n_q, n_k)[None].to(dtype) if pick(rng, 0, 0, 1) else None
    allowed = full_bool(mask, (batch, n_q, n_k))
    empty = ~allowed.any(-1, keepdim=True)  # (B, n_q, 1)
    forbidden = to_torch_mha_mask(allowed | empty, heads)  # (B * h, n_q, n_k)
    if bias is not None:
        forbidden = bias[0].repeat(batch, 1, 1).masked_fill(forbidden, -torch.inf)
    keys = x if context is None else context
    theirs_out, theirs_weights = theirs(
        x, keys, keys, attn_mask=forbidden, average_attn_weights=False
    )
    fill = ours.w_o.bias if ours.w_o.bias is not None else torch.zeros(d_model, dtype=dtype)
    theirs_out = torch.where(empty, fill.detach(), theirs_out)  # zeros, through W^O
    theirs_weights = theirs_weights.masked_fill(empty[:, None], 0.0)
    out, weights = ours(x, context, mask, bias=bias)
    fused, none = ours(x, context, mask, bias=bias, need_weights=False)
    assert none is None
    close(weights, theirs_weights, dtype)
    inputs = [x] if context is None else [x, context]
    kept = ~empty * torch.randn(batch, n_q, d_model, generator=rng, dtype=dtype)
    theirs_inputs = [*inputs, theirs.out_proj.weight]
    want = gradients(theirs_out, theirs_inputs, kept)
    for result in (out, fused):
        close(result, theirs_out, dtype)
        got = gradients(result, [*inputs, ours.w_o.weight], kept)
        for a, b in zip(got, want, strict=True):
            close(a, b, dtype)


@pytest.mark.parametrize("dtype", [*EXACT, *HALF], ids=str)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_attention_equals_scaled_dot_product_attention(batch, dtype):
    for case in range(PER_BATCH):
        check_core(batch * PER_BATCH + case, dtype)


@pytest.mark.parametrize("dtype", EXACT, ids=str)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_multi_head_equals_nn_multihead_attention(batch, dtype):
    for case in range(PER_BATCH):
        check_multi_head(batch * PER_BATCH + case, dtype)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # PyTorch's kernel under vmap
@pytest.mark.parametrize("dtype", [*EXACT, torch.bfloat16], ids=str)
def test_vmap_over_masks_and_biases_equals_scaled_dot_product_attention(dtype):
    for case in range(PER_BATCH):
        check_vmap(case, dtype)


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_autocast_equals_scaled_dot_product_attention(dtype):
    for case in range(2 * PER_BATCH):
        check_autocast(case, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_an_empty_batch_equals_scaled_dot_product_attention(dtype):
    for case in range(PER_BATCH):
        check_empty_batch(case, dtype)


class Both(torch.nn.Module):
    """Both paths with a mask and a bias, to be exported."""

    def forward(self, q, k, v, mask, bias):
        return attention(q, k, v, mask, bias=bias)[0], fused_attention(q, k, v, mask, bias=bias)


def test_an_exported_attention_of_any_length_equals_scaled_dot_product_attention():
    rng = torch.Generator().manual_seed(0)

    def draw(batch, n, m):
        sizes = ((batch, n, 4), (batch, m, 4), (batch, m, 6))
        bias = torch.randn(n, m, generator=rng).masked_fill(torch.eye(n, m).bool(), -torch.inf)
        mask = torch.rand(batch, n, m, generator=rng) < 0.6
        return *(torch.randn(*size, generator=rng) for size in sizes), mask, bias

    b, n, m = (torch.export.Dim(name, min=2, max=50) for name in "bnm")
    shapes = ({0: b, 1: n}, {0: b, 1: m}, {0: b, 1: m}, {0: b, 1: n, 2: m}, {0: n, 1: m})
    exported = torch.export.export(Both(), draw(3, 4, 6), dynamic_shapes=shapes).module()
    for sizes in ((2, 2, 2), (3, 9, 5), (7, 5, 5), (2, 30, 41)):
        given = draw(*sizes)
        for out in exported(*given):
            close(out, sdpa(*given, None), torch.float32)


def test_there_are_a_thousand_cases(monkeypatch):
    """The two tests above, with checks that only note what they are called with."""
    seen = set()
    for name in ("check_core", "check_multi_head"):
        monkeypatch.setitem(globals(), name, lambda *case, name=name: seen.add((name, *case)))
    for test in (
        test_attention_equals_scaled_dot_product_attention,
        test_multi_head_equals_nn_multihead_attention,
    ):
        values = {mark.args[0]: mark.args[1] for mark in test.pytestmark}
        for batch, dtype in itertools.product(values["batch"], values["dtype"]):
            test(batch, dtype)
    assert len(seen) >= 1000


def test_the_generated_cases_cover_what_they_should():
    seen = set()
    for seed in range(BATCHES * PER_BATCH):
        rng = torch.Generator().manual_seed(seed)
        mask = random_mask(rng, 2, 4, 3)
        if mask is None:
            seen.add("none")
        else:
            seen.add(mask.ndim)
            seen.add("empty rows" if (~mask.any(-1)).any() else "full rows")
    assert seen == {"none", 2, 3, "empty rows", "full rows"}


@pytest.mark.parametrize("bias", [True, False])
def test_projection_gradients_equal_those_of_nn_multihead_attention(bias):
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(12, 3, bias=bias, batch_first=True, dtype=torch.float64)
    ours = MultiHeadAttention.from_torch(theirs)
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    for need_weights in (True, False):
        theirs.zero_grad()
        ours.zero_grad()
        theirs(x, x, x)[0].square().sum().backward()
        ours(x, need_weights=need_weights)[0].square().sum().backward()
        parts = (ours.w_q, ours.w_k, ours.w_v)
        torch.testing.assert_close(
            torch.cat([p.weight.grad for p in parts]), theirs.in_proj_weight.grad,
            rtol=1e-12, atol=1e-12,
        )  # fmt: skip
        if bias:
            torch.testing.assert_close(
                torch.cat([p.bias.grad for p in parts]), theirs.in_proj_bias.grad,
                rtol=1e-12, atol=1e-12,
            )  # fmt: skip


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU: CUDA not found")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_cuda_agrees_with_the_cpu_in_double_precision(dtype, masked):
    rng = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 4, 64, 32, generator=rng).to(dtype) for _ in range(3))
    mask = padding_mask([0, 40], 64)[:, None] if masked else None
    want, _ = attention(q.double(), k.double(), v.double(), mask)
    on_gpu = [x.cuda().requires_grad_() for x in (q, k, v)]
    mask = None if mask is None else mask.cuda()
    for out in (attention(*on_gpu, mask)[0], fused_attention(*on_gpu, mask)):
        close(out.cpu(), want, torch.bfloat16 if dtype is torch.float32 else dtype)
        grads = gradients(out, on_gpu, torch.ones_like(out))
        assert all(g.isfinite().all() for g in grads)

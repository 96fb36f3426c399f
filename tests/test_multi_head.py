"""MultiHeadAttention: both paths, masks per head, shared K/V heads, cache, conversion."""

import copy

import pytest
import torch
from conversion import to_torch
from torch import nn

from attention import (
    KVCache,
    MultiHeadAttention,
    alibi_bias,
    attention,
    causal_mask,
    padding_mask,
    rotary,
    sliding_window_mask,
)


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def module(*args, **kwargs):
    torch.manual_seed(0)
    return MultiHeadAttention(*args, **kwargs)


class PrintedModule(nn.Module):
    """Multi-head attention written out: four square layers, heads split, scaled, joined."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (w(x).view(b, n, self.num_heads, self.d_k).transpose(1, 2)
                   for w in (self.W_q, self.W_k, self.W_v))  # fmt: skip
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.d_k**0.5, dim=-1)
        return self.W_o((weights @ v).transpose(1, 2).contiguous().view(b, n, d)), weights


def test_the_printed_module_with_the_same_weights():
    torch.manual_seed(0)
    printed = PrintedModule(64, 8)
    ours = MultiHeadAttention(64, 8)
    pairs = zip("qkvo", (ours.w_q, ours.w_k, ours.w_v, ours.w_o), strict=True)
    for letter, layer in pairs:
        layer.load_state_dict(getattr(printed, f"W_{letter}").state_dict())
    x = draw(1, 10, 64)
    out, weights = ours(x)
    want_out, want_weights = printed(x)
    assert out.shape == (1, 10, 64) and weights.shape == (1, 8, 10, 10)
    torch.testing.assert_close(out, want_out)
    torch.testing.assert_close(weights, want_weights)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 8, 10))
    assert sum(p.numel() for p in ours.parameters()) == 16_640


@pytest.mark.parametrize("shape", [(5, 8), (2, 5, 8), (2, 3, 5, 8)])
def test_any_leading_dimensions_and_both_paths(shape):
    mha, x = module(8, 2), draw(*shape)
    out, weights = mha(x)
    fused, none = mha(x, need_weights=False)
    assert out.shape == shape and weights.shape == (*shape[:-2], 2, 5, 5) and none is None
    torch.testing.assert_close(fused, out)


def test_each_head_is_an_attention_of_its_own():
    mha, x = module(8, 2, bias=False), draw(5, 8)
    _, weights = mha(x)
    for h in range(2):
        rows = slice(4 * h, 4 * h + 4)
        q, k, v = (x @ w.weight[rows].T for w in (mha.w_q, mha.w_k, mha.w_v))
        torch.testing.assert_close(attention(q, k, v)[1], weights[h])


def test_masks_for_all_for_each_sequence_and_for_each_head():
    mha, x = module(8, 2), draw(3, 5, 8)
    causal, padding = causal_mask(5), padding_mask([5, 2, 3])
    per_head = torch.stack([causal, sliding_window_mask(5, 2)])  # (h, n, n)
    per_head = per_head & padding[:, None]  # (B, h, n, n)
    for mask, want in (
        (causal, causal.expand(3, 2, 5, 5)),
        (padding, padding[:, None].expand(3, 2, 5, 5)),
        (causal & padding, (causal & padding)[:, None].expand(3, 2, 5, 5)),
        (per_head, per_head),
    ):
        out, weights = mha(x, mask=mask)
        assert torch.equal(weights > 0, want)
        torch.testing.assert_close(mha(x, mask=mask, need_weights=False)[0], out)


def test_is_causal_joins_the_mask():
    mha, x = module(8, 2), draw(2, 5, 8)
    padding = padding_mask([5, 3])
    want, _ = mha(x, mask=padding & causal_mask(5))
    for need_weights in (True, False):
        out, _ = mha(x, mask=padding, is_causal=True, need_weights=need_weights)
        torch.testing.assert_close(out, want)


def test_an_empty_sequence_gives_the_output_bias_and_finite_gradients():
    mha, x = module(8, 2), draw(2, 4, 8).requires_grad_()
    for need_weights in (True, False):
        out, weights = mha(x, mask=padding_mask([0, 4]), need_weights=need_weights)
        torch.testing.assert_close(out[0], mha.w_o.bias.expand(4, 8))
        (grad,) = torch.autograd.grad(out.sum(), x)
        assert grad.isfinite().all() and not grad[0].any()


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_shared_heads_equal_plain_heads_with_repeated_weights(groups):
    grouped, x = module(16, 4, groups), draw(2, 5, 16)
    plain = MultiHeadAttention.from_torch(to_torch(grouped))
    assert plain.num_kv_heads == 4
    assert grouped.w_k.weight.shape == (4 * groups, 16)
    for need_weights in (True, False):
        out, weights = grouped(x, mask=causal_mask(5), need_weights=need_weights)
        want, want_weights = plain(x, mask=causal_mask(5), need_weights=need_weights)
        torch.testing.assert_close(out, want)
        if need_weights:
            torch.testing.assert_close(weights, want_weights)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("rotary_base", [None, 10000.0])
@pytest.mark.parametrize("steps", [[1] * 6, [4, 1, 1], [2, 3, 1], [6]])
def test_cache_equals_no_cache(groups, rotary_base, steps):
    mha, x = module(16, 4, groups, rotary_base=rotary_base), draw(2, 6, 16)
    bias = alibi_bias(4, 6)[None]
    for need_weights in (True, False):
        want, _ = mha(x, bias=bias, is_causal=True)
        cache, done, parts = KVCache(), 0, []
        for n in steps:
            out, _ = mha(
                x[:, done : done + n], bias=alibi_bias(4, n, done + n)[None], is_causal=True,
                cache=cache, need_weights=need_weights,
            )  # fmt: skip
            done += n
            parts.append(out)
        torch.testing.assert_close(torch.cat(parts, 1), want)
        assert len(cache) == 6 and cache.k.shape == (2, groups, 6, 4)
        assert cache.nbytes == 2 * 2 * groups * 6 * 4 * 4


def test_rotary_base_turns_queries_and_keys():
    mha, x = module(8, 2, rotary_base=100.0), draw(1, 5, 8)
    q, k = (w(x).view(1, 5, 2, 4).transpose(1, 2) for w in (mha.w_q, mha.w_k))
    want = torch.softmax(rotary(q, base=100.0) @ rotary(k, base=100.0).mT / 2, -1)
    torch.testing.assert_close(mha(x)[1], want)


def test_head_mask_takes_a_head_out_of_the_sum():
    mha, x = module(8, 2), draw(1, 5, 8)
    both, _ = mha(x)
    first, _ = mha(x, head_mask=torch.tensor([1.0, 0.0]))
    second, _ = mha(x, head_mask=torch.tensor([0.0, 1.0]), need_weights=False)
    torch.testing.assert_close(first + second - mha.w_o.bias, both)
    silenced = copy.deepcopy(mha)
    silenced.w_o.weight.data[:, 4:] = 0
    torch.testing.assert_close(silenced(x)[0], first)


def test_dropout_in_training_only():
    mha, x = module(8, 2, dropout=0.5), draw(2, 5, 8)
    for need_weights in (True, False):
        torch.manual_seed(0)
        assert not torch.equal(mha.train()(x, need_weights=need_weights)[0], mha(x)[0])
        mha.eval()
        torch.testing.assert_close(mha(x, need_weights=need_weights)[0], mha(x)[0])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_conversion_there_and_back_keeps_every_number(bias, dtype):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(12, 3, dropout=0.1, bias=bias, batch_first=True, dtype=dtype)
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    theirs.eval()
    ours = MultiHeadAttention.from_torch(theirs)
    assert not ours.training and ours.dropout == 0.1 and ours.num_heads == 3
    back = to_torch(ours)
    assert not back.training
    for name, value in theirs.state_dict().items():
        assert torch.equal(back.state_dict()[name], value), name
    x = draw(2, 5, 12, dtype=dtype)
    torch.testing.assert_close(ours(x)[0], theirs(x, x, x)[0])


def test_it_copies_rather_than_shares():
    theirs = nn.MultiheadAttention(8, 2)
    ours = MultiHeadAttention.from_torch(theirs)
    ours.w_q.weight.data.zero_()
    assert theirs.in_proj_weight[:8].any()


@pytest.mark.parametrize("groups", [1, 2])
def test_one_token_with_shared_heads_equals_plain_heads(groups):
    """Masks and biases for all heads and for each, with and without weights, batched or not."""
    grouped = module(16, 4, groups)
    plain = MultiHeadAttention.from_torch(to_torch(grouped))
    for lead in ((), (3,), (2, 3)):
        x, past = draw(*lead, 1, 16), draw(*lead, 5, 16, seed=1)
        random = torch.rand(*lead, 4, 1, 6, generator=torch.Generator().manual_seed(0)) < 0.6
        for mask in (None, random, random[..., :1, :, :], random[..., 0, :, :], random.any(-3)):
            for bias in (None, draw(*lead, 4, 1, 6), draw(1, 6), draw(*(1,) * len(lead), 4, 1, 6)):
                for need_weights in (True, False):
                    results = []
                    for mha in (grouped, plain):
                        cache = KVCache()
                        mha(past, cache=cache)
                        results.append(
                            mha(x, None, mask, bias=bias, is_causal=True, cache=cache,
                                need_weights=need_weights, head_mask=torch.tensor([1, 0, 1, 0.5]))
                        )  # fmt: skip
                    (out, weights), (want, want_weights) = results
                    torch.testing.assert_close(out, want)
                    assert (weights is None) is (want_weights is None)
                    if weights is not None:
                        torch.testing.assert_close(weights, want_weights)


def test_a_decoding_step_copies_no_shared_keys():
    """Four query heads over one of keys: the step makes nothing as large as four copies."""
    mha, cache = module(64, 4, 1).eval(), KVCache()
    mha(draw(1, 999, 64), cache=cache)
    made = []

    class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            made.extend(t.numel() for t in torch.utils._pytree.tree_leaves(out)
                        if isinstance(t, torch.Tensor) and t.is_contiguous())  # fmt: skip
            return out

    with torch.no_grad(), Sizes():
        mha(draw(1, 1, 64), is_causal=True, need_weights=False, cache=cache)
    assert max(made) == 1000 * 16  # the keys with the new one


def test_a_projection_may_be_replaced():
    class LoRA(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer, self.down = layer, nn.Linear(8, 2, bias=False)
            self.up = nn.Linear(2, 8, bias=False)
            nn.init.zeros_(self.up.weight)

        def forward(self, x):
            return self.layer(x) + self.up(self.down(x))

    mha, x = module(8, 2), draw(2, 3, 8)
    want = mha(x)[0]
    for name in ("w_q", "w_k", "w_v", "w_o"):
        changed = copy.deepcopy(mha)
        setattr(changed, name, nn.Sequential(getattr(mha, name), nn.Identity()))
        torch.testing.assert_close(changed(x)[0], want)
        setattr(changed, name, LoRA(getattr(mha, name)))
        torch.testing.assert_close(changed(x, need_weights=False)[0], want)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_layer_may_be_quantised():
    from torch.ao.quantization import quantize_dynamic

    mha, x = module(32, 4), draw(2, 3, 32)
    small = quantize_dynamic(mha, {nn.Linear})
    assert type(small.w_q) is not nn.Linear
    torch.testing.assert_close(small(x)[0], mha(x)[0], atol=0.05, rtol=0.05)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_with_a_context_of_another_type(dtype):
    mha, x, context = module(8, 2), draw(2, 3, 8), draw(2, 4, 8, seed=1)
    want, _ = mha(x, context)
    for need_weights in (True, False):
        with torch.autocast("cpu", dtype=dtype):
            out, _ = mha(x.to(dtype), context, need_weights=need_weights)
        assert out.dtype == dtype
        torch.testing.assert_close(out.float(), want, atol=0.03, rtol=0.03)


@pytest.mark.parametrize("need_weights", [True, False])
def test_an_empty_batch_stays_empty(need_weights):
    for groups in (1, 2):
        for n in (1, 3):
            mha, cache = module(8, 2, groups), KVCache()
            out, weights = mha(draw(0, n, 8), need_weights=need_weights, cache=cache)
            assert out.shape == (0, n, 8)
            assert weights is None or weights.shape == (0, 2, n, n)
            assert mha(draw(0, 1, 8), need_weights=need_weights, cache=cache)[0].shape == (0, 1, 8)

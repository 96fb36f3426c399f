"""What must hold for any input: hypothesis draws the sizes, a seed draws the numbers."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import (
    POSITIONS,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    EncoderDecoder,
    KVCache,
    LanguageModel,
    MultiHeadAttention,
    attention,
    causal_mask,
    fused_attention,
    padding_mask,
    prefix_mask,
    reach,
    rotary,
    sliding_window_mask,
)

settings.register_profile("book", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("book")
sizes, seeds = st.integers(1, 9), st.integers(0, 10**6)


def draw(seed, *shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def random_mask(seed, n_q, n_k):
    return torch.rand(n_q, n_k, generator=torch.Generator().manual_seed(seed)) < 0.5


@given(sizes, sizes, sizes, seeds)
def test_rows_sum_to_one_or_to_zero(n_q, n_k, d, seed):
    mask = random_mask(seed, n_q, n_k)
    q, k = 5 * draw(seed, n_q, d), draw(seed + 1, n_k, d)
    _, weights = attention(q, k, k, mask)
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).float())
    assert (weights >= 0).all() and not weights[~mask].any()


@given(sizes, sizes, sizes, seeds)
def test_outputs_lie_between_the_smallest_and_the_largest_value(n_q, n_k, d, seed):
    q, k, v = draw(seed, n_q, d), draw(seed + 1, n_k, d), draw(seed + 2, n_k, 3)
    for out in (attention(q, k, v)[0], fused_attention(q, k, v)):
        assert (out <= v.max(0).values + 1e-6).all() and (out >= v.min(0).values - 1e-6).all()


@given(sizes, sizes, sizes, seeds)
def test_permuting_keys_and_values_together_changes_nothing(n_q, n_k, d, seed):
    q, k, v = draw(seed, n_q, d), draw(seed + 1, n_k, d), draw(seed + 2, n_k, d)
    mask = random_mask(seed, n_q, n_k)
    order = torch.randperm(n_k, generator=torch.Generator().manual_seed(seed))
    out, weights = attention(q, k, v, mask)
    moved, moved_weights = attention(q, k[order], v[order], mask[:, order])
    torch.testing.assert_close(moved, out)
    torch.testing.assert_close(moved_weights, weights[:, order])
    fused = fused_attention(q, k[order], v[order], mask[:, order])
    torch.testing.assert_close(fused, out)


@given(sizes, seeds, st.floats(-50, 50))
def test_adding_a_constant_to_a_row_of_scores_changes_nothing(n, seed, shift):
    q, k = draw(seed, n, 4), draw(seed + 1, n, 4)
    out, weights = attention(q, k, k)
    shifted, shifted_weights = attention(q, k, k, bias=torch.full((n, 1), shift))
    torch.testing.assert_close(shifted_weights, weights, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(shifted, out, atol=1e-4, rtol=1e-4)


# order


@pytest.mark.parametrize("positions", POSITIONS)
def test_only_a_model_without_positions_is_permutation_equivariant(positions):
    torch.manual_seed(0)
    model = Encoder(12, 8, 2, 2, positions=positions).eval()
    if positions == "t5":
        torch.nn.init.normal_(model.embedding.t5.table)
    if positions == "learned":
        torch.nn.init.normal_(model.embedding.learned.table)
    ids = torch.randperm(12)[None, :7]
    order = torch.randperm(7)
    same = torch.allclose(model(ids[:, order]), model(ids)[:, order], atol=1e-5)
    assert same == (positions == "none")


@given(st.integers(0, 500), st.integers(-200, 200), st.integers(0, 300), seeds)
def test_rotary_scores_depend_on_the_offset_only(i, offset, shift, seed):
    j = max(0, i + offset)
    q, k = (draw(seed + s, 1, 8, dtype=torch.float64) for s in (0, 1))

    def score(i, j):
        return rotary(q, torch.tensor([i])) @ rotary(k, torch.tensor([j])).T

    torch.testing.assert_close(score(i + shift, j + shift), score(i, j), atol=1e-10, rtol=1e-10)


# the future


MASKS = {
    "causal": causal_mask,
    "window": lambda n: causal_mask(n) & sliding_window_mask(n, 2),
    "prefix": lambda n: prefix_mask(n, 2),
}


@pytest.mark.parametrize("name", MASKS)
@given(st.integers(3, 9), seeds, st.data())
def test_what_a_mask_hides_changes_no_output(name, n, seed, data):
    """To the bit where the weights are computed, to 1e-6 on the fused path."""
    mask = MASKS[name](n)
    changed = data.draw(st.integers(0, n - 1))
    hidden = ~mask[:, changed]  # the queries that may not see it
    q, k, v = draw(seed, n, 4), draw(seed + 1, n, 4), draw(seed + 2, n, 4)
    k2, v2 = k.clone(), v.clone()
    k2[changed], v2[changed] = 100.0, -1e4
    assert torch.equal(attention(q, k, v, mask)[0][hidden], attention(q, k2, v2, mask)[0][hidden])
    before, after = fused_attention(q, k, v, mask), fused_attention(q, k2, v2, mask)
    torch.testing.assert_close(after[hidden], before[hidden], atol=1e-6, rtol=0)


def causal_paths():
    """Everything that claims to be causal: x (1, n, 8) to (1, n, ...)."""
    torch.manual_seed(0)
    for groups in (1, 2):
        for base in (None, 100.0):
            mha = MultiHeadAttention(8, 2, groups, rotary_base=base)
            yield f"heads {groups} {base}", lambda x, w, m=mha: m(
                x, is_causal=True, need_weights=w)[0]  # fmt: skip
    yield "attention", lambda x, w: (
        attention(x, x, x, causal_mask(x.shape[-2]))[0] if w
        else fused_attention(x, x, x, is_causal=True)
    )  # fmt: skip
    for norm_first in (True, False):
        block = EncoderBlock(8, 2, norm_first=norm_first)
        yield f"block {norm_first}", lambda x, w, b=block: b(x, is_causal=True, need_weights=w)[0]
        decoder = DecoderBlock(8, 2, norm_first=norm_first)
        context = torch.randn(1, 3, 8)
        yield f"decoder {norm_first}", lambda x, w, b=decoder, c=context: b(
            x, c, need_weights=w)[0]  # fmt: skip


@pytest.mark.parametrize("path", [name for name, _ in causal_paths()])
@pytest.mark.parametrize("need_weights", [True, False])
def test_a_future_token_changes_no_earlier_output(path, need_weights):
    run = dict(causal_paths())[path]
    x = draw(0, 1, 7, 8)
    before = run(x, need_weights)
    for changed in range(7):
        y = x.clone()
        y[0, changed] = 30 * draw(1, 8)
        after = run(y, need_weights)
        if need_weights:
            assert torch.equal(after[:, :changed], before[:, :changed])
        else:
            torch.testing.assert_close(after[:, :changed], before[:, :changed], atol=1e-6, rtol=0)
        assert not torch.equal(after[:, changed], before[:, changed])


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("kind", [LanguageModel, EncoderDecoder])
@pytest.mark.parametrize("need_weights", [True, False])
def test_a_future_token_changes_no_earlier_logits(kind, positions, need_weights):
    torch.manual_seed(0)
    model = kind(12, 8, 2, 2, positions=positions).eval()
    source = torch.arange(4)[None]

    def run(ids):
        args = (ids,) if kind is LanguageModel else (source, ids)
        result = model(*args, return_weights=need_weights)
        return result[0] if need_weights else result

    ids = torch.randint(12, (1, 7))
    for changed in range(7):
        other = ids.clone()
        other[0, changed] = (other[0, changed] + 5) % 12
        before, after = run(ids)[:, :changed], run(other)[:, :changed]
        if need_weights:
            assert torch.equal(after, before)
        else:
            torch.testing.assert_close(after, before, atol=1e-6, rtol=0)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 4), seeds)
def test_reach_of_a_causal_mask_never_looks_ahead(n, window, layers, seed):
    mask = causal_mask(n) & (sliding_window_mask(n, window) | random_mask(seed, n, n))
    assert not (reach(mask, layers) & ~causal_mask(n)).any()


# padding and cache


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("need_weights", [True, False])
def test_padding_changes_nothing(positions, need_weights):
    torch.manual_seed(0)
    lengths, ids = [3, 6, 1], torch.randint(12, (3, 6))
    for kind in (Encoder, LanguageModel):
        model = kind(12, 8, 2, 2, positions=positions).eval()

        def run(ids, mask, model=model):
            result = model(ids, mask, return_weights=need_weights)
            return result[0] if need_weights else result

        together = run(ids, padding_mask(lengths, 6))
        for b, n in enumerate(lengths):
            alone = run(ids[b : b + 1, :n], None)
            torch.testing.assert_close(together[b, :n], alone[0], atol=1e-5, rtol=1e-5)
    model = EncoderDecoder(12, 8, 2, 2, positions=positions).eval()
    target = torch.randint(12, (3, 4))
    together = model(ids, target, padding_mask(lengths, 6))
    for b, n in enumerate(lengths):
        alone = model(ids[b : b + 1, :n], target[b : b + 1])
        torch.testing.assert_close(together[b], alone[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("positions", POSITIONS)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), seeds)
def test_a_cached_language_model_equals_the_whole_pass(positions, pieces, seed):
    torch.manual_seed(seed)
    model = LanguageModel(12, 8, 2, 2, positions=positions, num_kv_heads=1).eval()
    n = sum(pieces)
    ids, done, parts = torch.randint(12, (2, n)), 0, []
    caches = [KVCache(), KVCache()]
    for size in pieces:
        parts.append(model(ids[:, done : done + size], caches=caches))
        done += size
    torch.testing.assert_close(torch.cat(parts, 1), model(ids), atol=1e-5, rtol=1e-5)


# one model, transformed


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # PyTorch's kernel under vmap
@pytest.mark.parametrize("positions", POSITIONS)
def test_gradients_of_each_sample_at_once_are_those_of_one_at_a_time(positions):
    torch.manual_seed(0)
    model = LanguageModel(9, 8, 2, 2, positions=positions)
    weights, ids = dict(model.named_parameters()), torch.randint(9, (4, 6))
    mask = padding_mask([5, 2, 3, 0], 5)

    def loss(weights, ids, mask):
        logits = torch.func.functional_call(model, weights, (ids[None, :-1], mask[None]))
        return F.cross_entropy(logits[0], ids[1:])

    gradient = torch.func.grad(loss)
    together = torch.func.vmap(gradient, in_dims=(None, 0, 0))(weights, ids, mask)
    for i in range(4):
        alone = gradient(weights, ids[i], mask[i])
        for name, got in together.items():
            torch.testing.assert_close(got[i], alone[name], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("positions", POSITIONS)
def test_an_exported_model_takes_any_length(positions):
    torch.manual_seed(0)
    kind = Encoder if positions in ("alibi", "none") else LanguageModel
    model = kind(9, 8, 2, 1, positions=positions).eval()
    sizes = {"ids": {1: torch.export.Dim("n", min=2, max=50)}}
    exported = torch.export.export(model, (torch.randint(9, (2, 6)),), dynamic_shapes=sizes)
    for n in (2, 11, 50):
        ids = torch.randint(9, (2, n))
        torch.testing.assert_close(exported.module()(ids), model(ids), atol=1e-6, rtol=1e-5)

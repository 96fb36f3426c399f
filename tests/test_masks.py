"""Masks entry by entry, their combinations, their conversion, and what they let through."""

import pytest
import torch

from attention import (
    causal_mask,
    padding_mask,
    prefix_mask,
    reach,
    sliding_window_mask,
    to_torch_mha_mask,
)

SIZES = [(1, None), (5, None), (3, 7), (1, 4), (5, 2)]


def entry_by_entry(n_q, n_k, rule):
    n_k = n_q if n_k is None else n_k
    return torch.tensor([[rule(i + n_k - n_q, j) for j in range(n_k)] for i in range(n_q)])


@pytest.mark.parametrize("n_q,n_k", SIZES)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_masks_entry_by_entry(n_q, n_k, size):
    def same(mask, rule):
        assert mask.dtype == torch.bool
        assert mask.tolist() == entry_by_entry(n_q, n_k, rule).tolist()

    same(causal_mask(n_q, n_k), lambda i, j: j <= i)
    same(sliding_window_mask(n_q, size, n_k), lambda i, j: abs(i - j) < size)
    prefix = min(size, n_k or n_q)
    same(prefix_mask(n_q, prefix, n_k), lambda i, j: j < prefix or j <= i)


def test_causal_with_window_sees_window_tokens_its_own_included():
    seen = (causal_mask(10) & sliding_window_mask(10, 4)).sum(-1)
    assert seen.tolist() == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4]


def test_a_cached_step_is_the_last_row_of_the_whole_mask():
    for make in (causal_mask, lambda n_q, n_k=None: sliding_window_mask(n_q, 3, n_k),
                 lambda n_q, n_k=None: prefix_mask(n_q, 2, n_k)):  # fmt: skip
        assert torch.equal(make(2, 6), make(6)[-2:])


def test_prefix_zero_is_causal():
    assert torch.equal(prefix_mask(5, 0), causal_mask(5))


@pytest.mark.parametrize("lengths", [[2, 0, 3], torch.tensor([2, 0, 3])])
def test_padding_mask(lengths):
    mask = padding_mask(lengths, 4)
    assert mask.shape == (3, 1, 4)
    assert mask[:, 0].int().tolist() == [[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]]
    assert padding_mask(lengths).shape == (3, 1, 3)
    assert (padding_mask(lengths) & causal_mask(3)).shape == (3, 3, 3)


def test_a_padding_mask_where_no_length_can_be_read():
    lengths = torch.tensor([2, 1], device="meta")
    assert padding_mask(lengths, 3).shape == (2, 1, 3)
    with pytest.raises(ValueError, match="n_k must be given where lengths cannot be read"):
        padding_mask(lengths)


def test_a_padding_mask_of_no_sequences():
    assert padding_mask(torch.zeros(0, dtype=torch.int64), 3).shape == (0, 1, 3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_padding_mask_in_a_graph_of_any_length():
    compiled = torch.compile(padding_mask, backend="eager", fullgraph=True, dynamic=True)
    for lengths, n in (([2, 1], 4), ([5, 0], 7)):
        assert torch.equal(compiled(torch.tensor(lengths), n), padding_mask(lengths, n))
        assert torch.equal(compiled(lengths), padding_mask(lengths))


def test_to_torch_mha_mask_turns_round_and_repeats_for_the_heads():
    mask = padding_mask([1, 3]) & causal_mask(3)  # (2, 3, 3)
    turned = to_torch_mha_mask(mask, num_heads=4)
    assert turned.shape == (8, 3, 3)
    for b in range(2):
        for h in range(4):  # nn.MultiheadAttention wants the heads of a sequence together
            assert torch.equal(turned[4 * b + h], ~mask[b])
    assert torch.equal(to_torch_mha_mask(causal_mask(3)), ~causal_mask(3))


def test_reach_grows_by_a_window_a_layer():
    mask = causal_mask(12) & sliding_window_mask(12, 3)
    for layers in range(5):
        far = causal_mask(12) & sliding_window_mask(12, 2 * layers + 1)
        assert torch.equal(reach(mask, layers), far)


def test_reach_includes_the_residual_path_and_batches():
    nothing = torch.zeros(2, 4, 4, dtype=torch.bool)
    assert torch.equal(reach(nothing, 3), torch.eye(4, dtype=torch.bool).expand(2, 4, 4))


def test_reach_tells_what_a_stack_of_attentions_can_see():
    from attention import attention

    mask = causal_mask(6) & sliding_window_mask(6, 2)
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def stack(x):
        for _ in range(2):
            x = x + attention(x, x, x, mask)[0]
        return x

    jacobian = torch.autograd.functional.jacobian(stack, x)  # (n, d, n, d)
    assert torch.equal(jacobian.abs().sum((1, 3)) > 0, reach(mask, 2))

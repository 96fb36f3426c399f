"""next_token_probabilities where sums are rounded, and where numbers cannot be read."""

import pytest
import torch

from attention import next_token_probabilities, softmax


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_top_p_of_one_keeps_every_token(dtype):
    logits = (3 * torch.randn(20, 3000)).to(dtype)
    kept = next_token_probabilities(logits, top_p=1.0)
    assert torch.equal(kept > 0, softmax(logits) > 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_top_p_counts_a_thousand_small_probabilities(dtype):
    """A running sum in bfloat16 would stand still at 0.25, where 1/1024 is lost in the rounding."""
    kept = next_token_probabilities(torch.zeros(1024, dtype=dtype), top_p=0.75)
    assert (kept > 0).sum() == 768


def test_it_maps_over_rows_and_takes_tensors_without_numbers():
    logits = torch.randn(3, 5)

    def cut(x):
        return next_token_probabilities(x, temperature=0.7, top_k=3, top_p=0.8)

    assert torch.equal(torch.func.vmap(cut)(logits), cut(logits))
    assert cut(logits.to("meta")).shape == (3, 5)
    assert cut(logits[:0]).shape == (0, 5)

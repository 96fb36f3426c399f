"""Heads taken apart and put together again: what they carry, and another output in its place."""

import pytest
import torch

from attention import Encoder, LanguageModel, head_parts, patch_heads, pronoun_task

IDS = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 1], [5, 5, 0, 6]])


@pytest.fixture(params=[Encoder, LanguageModel])
def model(request):
    torch.manual_seed(0)
    return request.param(vocab_size=10, d_model=12, num_heads=3, num_layers=2).eval()


def test_outputs_are_weights_times_values(model):
    values, outputs = head_parts(model, IDS)
    _, weights = model(IDS, return_weights=True)
    torch.testing.assert_close(torch.stack(weights) @ values, outputs)
    for layer in range(2):  # the heads are the columns that W^O gets, in order
        seen = []
        hook = model.layers[layer].attention.w_o.register_forward_pre_hook(
            lambda _, x, seen=seen: seen.append(x[0])
        )
        model(IDS)
        hook.remove()
        torch.testing.assert_close(seen[0][..., 4:8], outputs[layer][:, 1])


def test_shared_keys_and_values_have_fewer_values():
    model = Encoder(vocab_size=10, d_model=8, num_heads=4, num_layers=1, num_kv_heads=2)
    values, outputs = head_parts(model, IDS)
    assert values.shape == (1, 3, 2, 4, 2) and outputs.shape == (1, 3, 4, 4, 2)


def test_its_own_outputs_change_nothing_and_zeros_switch_off_at_one_position(model):
    _, outputs = head_parts(model, IDS)
    same = {(i, r): outputs[i, :, r, 2] for i in range(2) for r in range(3)}
    torch.testing.assert_close(patch_heads(model, IDS, 2, same), model(IDS))
    off = patch_heads(model, IDS, 3, {(1, 0): torch.zeros(4)})
    mask = torch.ones(2, 3)
    mask[1, 0] = 0
    want = model(IDS, head_mask=mask)
    torch.testing.assert_close(off[:, 3], want[:, 3])
    assert not torch.allclose(off[:, 3], model(IDS)[:, 3])
    torch.testing.assert_close(off[:, :3], model(IDS)[:, :3])  # the last layer, one position
    assert torch.equal(patch_heads(model, IDS, 1, {}), model(IDS)), "and the hooks are gone"


def test_options_reach_the_model(model):
    logits, weights = patch_heads(model, IDS, -1, {}, return_weights=True)
    assert logits.shape == (3, 4, 10) and len(weights) == 2


def test_hooks_go_even_if_the_model_refuses(model):
    for call in (lambda ids: head_parts(model, ids),
                 lambda ids: patch_heads(model, ids, 0, {(0, 0): torch.zeros(4)})):  # fmt: skip
        with pytest.raises(Exception):  # noqa: B017
            call(torch.full((1, 3), 99))
        part = model.layers[0].attention
        assert not part.w_o._forward_pre_hooks and not part.w_v._forward_hooks


def test_refusals(model):
    zeros = torch.zeros(4)
    with pytest.raises(TypeError, match="model must be an Encoder or LanguageModel; got Linear"):
        head_parts(torch.nn.Linear(2, 2), IDS)
    with pytest.raises(IndexError, match="position must be one of 4; got 4"):
        patch_heads(model, IDS, 4, {(0, 0): zeros})
    for head in ((2, 0), (0, 3), (-1, 0)):
        with pytest.raises(IndexError, match="2 layers and 3 heads, counted from 0; got"):
            patch_heads(model, IDS, 0, {head: zeros})
    with pytest.raises(ValueError, match=r"outputs\[0, 1\] must be \(3, 4\) or \(4,\); got \(5,\)"):
        patch_heads(model, IDS, 0, {(0, 1): torch.zeros(5)})
    with pytest.raises(TypeError, match=r"outputs\[0, 1\] must be a floating-point tensor"):
        patch_heads(model, IDS, 0, {(0, 1): [0.0] * 4})


def test_twins_change_the_adjective_and_the_answer():
    task = pronoun_task()
    twins = task.twins(task.test_ids)
    assert torch.equal(twins[:, :-1], task.test_ids[:, :-1])
    assert torch.equal(task.twins(twins), task.test_ids)
    ids = task.vocabulary.encode("the animal did not cross the street because it was too tired")
    assert task.vocabulary.decode(task.twins(ids[None])[0]).endswith("too wide")
    meant = {tuple(i.tolist()): r for i, r in zip(task.test_ids, task.test_referents, strict=True)}
    assert all(meant[tuple(a.tolist())] != meant[tuple(b.tolist())]
               for a, b in zip(task.test_ids, twins, strict=True))  # fmt: skip

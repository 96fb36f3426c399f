"""Blocks against PyTorch's transformer layers and the 2017 paper's arithmetic."""

import pytest
import torch
from torch import nn

from attention import DecoderBlock, EncoderBlock, FeedForward, SubLayer, causal_mask, padding_mask
from attention import MultiHeadAttention as MHA


def count(model):
    return sum(p.numel() for p in model.parameters())


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def copy_common(ours, theirs, norms):
    """The parameters that every one of our blocks has, from one of PyTorch's layers."""
    ours.attention.load_state_dict(MHA.from_torch(theirs.self_attn).state_dict())
    ours.feed_forward.widen.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.narrow.load_state_dict(theirs.linear2.state_dict())
    for norm, its in zip(norms, (theirs.norm1, theirs.norm2), strict=False):
        nn.init.normal_(its.weight)
        nn.init.normal_(its.bias)
        norm.load_state_dict(its.state_dict())


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_block_equals_transformer_encoder_layer(norm_first, activation):
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(
        8, 2, 32, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
    ).double()
    ours = EncoderBlock(8, 2, 32, norm_first=norm_first, activation=activation).double()
    copy_common(ours, theirs, (ours.add_attention.norm, ours.add_feed_forward.norm))
    x = draw(2, 5, 8)
    out, weights = ours(x, causal_mask(5))
    torch.testing.assert_close(out, theirs(x, ~causal_mask(5)))
    assert weights.shape == (2, 2, 5, 5)
    fused, none = ours(x, is_causal=True, need_weights=False)
    torch.testing.assert_close(fused, out)
    assert none is None


@pytest.mark.parametrize("norm_first", [True, False])
def test_decoder_block_equals_transformer_decoder_layer(norm_first):
    torch.manual_seed(0)
    theirs = nn.TransformerDecoderLayer(
        8, 2, 32, dropout=0.0, batch_first=True, norm_first=norm_first
    ).double()
    ours = DecoderBlock(8, 2, 32, norm_first=norm_first).double()
    copy_common(ours, theirs, (ours.add_attention.norm, ours.add_cross_attention.norm))
    ours.add_feed_forward.norm.load_state_dict(theirs.norm3.state_dict())
    ours.cross_attention.load_state_dict(MHA.from_torch(theirs.multihead_attn).state_dict())
    x, memory, padding = draw(2, 5, 8), draw(2, 4, 8, seed=1), padding_mask([4, 2])
    out, own, cross = ours(x, memory, context_mask=padding)
    want = theirs(x, memory, tgt_mask=~causal_mask(5), memory_key_padding_mask=~padding[:, 0])
    torch.testing.assert_close(out, want)
    assert own.shape == (2, 2, 5, 5) and cross.shape == (2, 2, 5, 4)
    assert not cross[1, :, :, 2:].any() and not own.triu(1).any()
    fused, *none = ours(x, memory, context_mask=padding, need_weights=False)
    torch.testing.assert_close(fused, out)
    assert none == [None, None]


def test_parameter_counts_of_the_2017_base_model():
    d, d_ff = 512, 2048
    attention, ffn, norm = 4 * (d * d + d), 2 * d * d_ff + d_ff + d, 2 * d
    assert count(FeedForward(d, d_ff)) == ffn == 2_099_712
    assert count(EncoderBlock(d, 8, d_ff)) == attention + ffn + 2 * norm == 3_152_384
    assert count(DecoderBlock(d, 8, d_ff)) == 2 * attention + ffn + 3 * norm == 4_204_032
    assert count(EncoderBlock(d, 8)) == 3_152_384  # d_ff = 4 d_model unless given


def test_feed_forward_treats_each_token_by_itself():
    ffn, x = FeedForward(8).double(), draw(2, 5, 8)
    torch.testing.assert_close(ffn(x)[:, 3], ffn(x[:, 3]))
    by_hand = torch.relu(x @ ffn.widen.weight.T + ffn.widen.bias) @ ffn.narrow.weight.T
    torch.testing.assert_close(ffn(x), by_hand + ffn.narrow.bias)


@pytest.mark.parametrize("norm_first", [True, False])
def test_switched_off_sub_layers_leave_the_residual_path(norm_first):
    block, x = EncoderBlock(8, 2, norm_first=norm_first).double(), draw(2, 5, 8)
    for layer in (block.attention.w_o, block.feed_forward.narrow):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    norm = nn.LayerNorm(8).double()
    want = x if norm_first else norm(norm(x))
    torch.testing.assert_close(block(x)[0], want)


@pytest.mark.parametrize("make", [EncoderBlock, DecoderBlock])
def test_dropout_acts_in_training_only(make):
    torch.manual_seed(0)
    block, x = make(8, 2, dropout=0.5).double(), draw(2, 5, 8)
    args = (x,) if make is EncoderBlock else (x, x)
    assert not torch.equal(block(*args)[0], block(*args)[0])
    block.eval()
    assert torch.equal(block(*args)[0], block(*args)[0])


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_sub_layer_normalises_applies_and_adds(norm_first):
    step, x = SubLayer(8, norm_first).double(), draw(2, 5, 8)
    nn.init.normal_(step.norm.weight)
    want = x + step.norm(x).sin() if norm_first else step.norm(x + x.sin())
    out, weights = step(x, torch.sin)
    torch.testing.assert_close(out, want)
    assert weights is None
    out, weights = step(x, lambda x, power: (x**power, "seen"), power=2)
    want = x + step.norm(x) ** 2 if norm_first else step.norm(x + x**2)
    torch.testing.assert_close(out, want)
    assert weights == "seen"

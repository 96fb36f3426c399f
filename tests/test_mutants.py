"""What single changes of the package (make mutants) had got past all other tests."""

import math

import pytest
import torch

from attention import (
    Encoder,
    EncoderDecoder,
    LanguageModel,
    LearnedPositions,
    T5Bias,
    causal_mask,
    next_token_loss,
    reach,
    rotary,
    shift_matrix,
    sinusoidal_encoding,
    t5_buckets,
    train,
    translation_loss,
)

SMALL = {"vocab_size": 7, "d_model": 8, "num_heads": 2, "num_layers": 1}


@pytest.mark.parametrize(("model", "both_ways"), [(Encoder, True), (LanguageModel, False)])
def test_t5_looks_both_ways_in_an_encoder_and_back_in_a_language_model(model, both_ways):
    made = model(**SMALL, positions="t5")
    offsets = torch.arange(40)[None, :] - torch.arange(40)[:, None]
    wanted = made.embedding.t5.table[t5_buckets(offsets, bidirectional=both_ways)]
    assert torch.equal(made.embedding.bias(40, 40)[0], wanted.permute(2, 0, 1))


def test_t5_looks_back_in_the_decoder_that_an_encoder_feeds():
    made = EncoderDecoder(**SMALL, positions="t5")
    assert made.encoder.embedding.t5.bidirectional and not made.t5.bidirectional


def test_a_learned_table_serves_its_full_length_and_no_more():
    table = LearnedPositions(4, 2)
    assert torch.equal(table(4), table.table) and torch.equal(table(1, 3), table.table[3:])
    for n, start in ((5, 0), (1, 4), (2, 3)):
        with pytest.raises(ValueError, match="must stay below max_len = 4"):
            table(n, start)
    model = LanguageModel(**SMALL, positions="learned", max_len=4)
    assert model(torch.zeros(1, 4, dtype=torch.long)).shape == (1, 4, 7)
    assert model.generate(torch.tensor([[1]]), steps=4).shape == (1, 5)


def test_the_base_of_sines_and_turns_is_ten_thousand():
    p, d = 9_000, 8
    angle = [p / 10_000 ** (2 * pair / d) for pair in range(d // 2)]
    row = [f(a) for a in angle for f in (math.sin, math.cos)]
    # 10,001 moves the angle of the second pair by 0.02
    assert torch.allclose(
        sinusoidal_encoding(1, d, start=p)[0], torch.tensor(row), rtol=0, atol=1e-4
    )
    moved = shift_matrix(p, d) @ sinusoidal_encoding(1, d)[0]
    assert torch.allclose(moved, torch.tensor(row), rtol=0, atol=1e-4)
    x = torch.tensor([[1.0, 0.0] * (d // 2)])
    turned = [f(a) for a in angle for f in (math.cos, math.sin)]
    assert torch.allclose(rotary(x, torch.tensor([p]))[0], torch.tensor(turned), rtol=0, atol=1e-4)
    model = Encoder(**SMALL, positions="rotary")
    assert [b.attention.rotary_base for b in model.layers] == [10_000.0]
    model = Encoder(**SMALL, positions="rotary", rotary_base=50.0)
    assert [b.attention.rotary_base for b in model.layers] == [50.0]


def test_writing_may_start_with_the_first_and_the_last_token_and_no_other():
    model, source = EncoderDecoder(**SMALL), torch.tensor([[1, 2]])
    for start in (0, 6):
        assert model.generate(source, steps=1, start=start)[0, 0] == start
    for start in (-1, 7):
        with pytest.raises(ValueError, match="start"):
            model.generate(source, steps=1, start=start)


def test_two_tokens_are_the_shortest_sequence_that_trains():
    model = LanguageModel(**SMALL)
    assert next_token_loss(model, torch.tensor([[1, 2]])).isfinite()
    pair = EncoderDecoder(**SMALL)
    assert translation_loss(pair, torch.tensor([[1]]), torch.tensor([[1, 2]])).isfinite()
    with pytest.raises(ValueError, match=r"ids must be \(B, n \+ 1\) with n >= 1; got \(1, 1\)"):
        next_token_loss(model, torch.tensor([[1]]))
    history = train(model, [torch.tensor([[1, 2]])], next_token_loss, steps=1, progress=False)
    assert len(history.loss) == 1


def test_tables_start_small_and_tokens_at_their_width():
    assert LearnedPositions(100, 100).table.std().item() == pytest.approx(0.02, rel=0.05)
    assert T5Bias(100, 100).table.std().item() == pytest.approx(0.02, rel=0.05)
    for table in (LearnedPositions(100, 100).table, T5Bias(100, 100).table):
        assert abs(table.mean().item()) < 0.002
    tokens = Encoder(100, 64, 2, 1).embedding.tokens.weight
    assert tokens.std().item() == pytest.approx(64**-0.5, rel=0.05)


def test_reach_takes_masks_of_any_number_of_dimensions():
    masks = causal_mask(4).expand(2, 3, 4, 4)
    assert torch.equal(reach(masks, 2), masks)

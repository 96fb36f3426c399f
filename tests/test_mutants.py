"""What single changes of the package (make mutants) had got past all other tests."""

import dataclasses
import importlib.util
import math
from pathlib import Path

import pytest
import torch

from attention import (
    BlockConfig,
    Embedding,
    Encoder,
    EncoderDecoder,
    LanguageModel,
    LearnedPositions,
    ModelConfig,
    T5Bias,
    Vocabulary,
    attention,
    batches,
    causal_mask,
    fused_attention,
    next_token_loss,
    next_token_probabilities,
    reach,
    rotary,
    shift_matrix,
    sinusoidal_encoding,
    t5_buckets,
    train,
    translation_loss,
)

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
mutants = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutants)

SMALL = {"vocab_size": 7, "d_model": 8, "num_heads": 2, "num_layers": 1}


@pytest.mark.parametrize(("model", "both_ways"), [(Encoder, True), (LanguageModel, False)])
def test_t5_looks_both_ways_in_an_encoder_and_back_in_a_language_model(model, both_ways):
    made = model(**SMALL, positions="t5")
    offsets = torch.arange(40)[:, None] - torch.arange(40)
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
    moved = sinusoidal_encoding(1, d)[0] @ shift_matrix(p, d)
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


def test_one_causal_query_and_queries_ahead_of_all_keys_build_no_mask(monkeypatch):
    q, k = torch.randn(5, 4), torch.randn(3, 4)
    want = fused_attention(q[:1], k, k), attention(q, k, k, causal_mask(5, 3))[0]
    monkeypatch.setattr("attention.functional.causal_mask", None)
    torch.testing.assert_close(fused_attention(q[:1], k, k, is_causal=True), want[0])
    torch.testing.assert_close(fused_attention(q, k, k, is_causal=True), want[1])


def test_turning_takes_an_empty_batch():
    assert rotary(torch.zeros(0, 3, 4)).shape == (0, 3, 4)


def test_the_smallest_number_of_buckets_counts_near_keys_one_by_one():
    offsets = torch.tensor([-2, 0, 1, 2, 3])
    found = t5_buckets(offsets, num_buckets=3, max_distance=4, bidirectional=False)
    assert found.tolist() == [0, 0, 1, 2, 2]


def test_writing_takes_no_steps_at_all_and_a_temperature_of_one_by_itself():
    source = torch.tensor([[1, 2]])
    assert EncoderDecoder(**SMALL).generate(source, steps=0, start=3).tolist() == [[3]]
    model = LanguageModel(**SMALL)
    assert torch.equal(model.generate(source, steps=0), source)
    with torch.no_grad():
        model.norm.bias += model.embedding.tokens.weight[0]  # likelier than the others, not certain
    made = [
        model.generate(source.repeat(200, 1), 1, *t, generator=torch.Generator().manual_seed(0))
        for t in ((), (1.0,), (2.0,))
    ]
    assert torch.equal(made[0], made[1]) and not torch.equal(made[0], made[2])


def test_what_an_embedding_is_unless_told_otherwise():
    assert len(Embedding(7, 8, 2, positions="learned").learned.table) == 512
    assert Embedding(7, 8, 2, positions="t5").t5.bidirectional


def test_what_blocks_and_models_are_unless_told_otherwise():
    assert dataclasses.asdict(ModelConfig(**SMALL)) == SMALL | {
        "d_ff": None, "norm_first": True, "dropout": 0.0, "activation": "relu",
        "num_kv_heads": None, "rotary_base": None, "positions": "sinusoidal", "max_len": 512,
        "scaled": True, "tied": True, "is_causal": False,
    }  # fmt: skip
    for config, by_place in ((BlockConfig, [8, 2]), (ModelConfig, [7])):
        with pytest.raises(TypeError, match="positional"):
            config(*by_place, **{k: v for k, v in SMALL.items() if by_place == [7] and v != 7})


def test_of_tokens_that_are_equally_likely_the_first_are_kept():
    logits = torch.randint(0, 2, (1000,)).float()
    kept = next_token_probabilities(logits, top_k=3).nonzero().flatten()
    assert torch.equal(kept, logits.nonzero().flatten()[:3])


@pytest.mark.parametrize("door", [attention, fused_attention])
def test_attention_takes_an_empty_batch_and_refuses_values_of_other_leading_dimensions(door):
    nothing = torch.zeros(0, 3, 4)
    out = door(nothing, nothing, nothing)
    assert (out if door is fused_attention else out[0]).shape == (0, 3, 4)
    x = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match="q, k and v must agree in their leading dimensions"):
        door(x, x, torch.zeros(2, 5, 3, 4))


def test_decoding_takes_the_first_token_and_the_last_and_no_other():
    words = Vocabulary(["a", "b"])
    last = len(words) - 1
    assert words.decode([0, last]) == "b"
    for wrong in (-1, last + 1):
        with pytest.raises(ValueError, match=f"ids must be from 0 to {last}; got {wrong}"):
            words.decode([wrong])


def test_batches_share_a_size_and_are_dealt_from_seed_0_unless_told_otherwise():
    x = torch.arange(100)
    plain, zero, one = (
        next(batches(x, batch_size=50, **s))[0] for s in ({}, {"seed": 0}, {"seed": 1})
    )
    assert torch.equal(plain, zero) and not torch.equal(plain, one)
    with pytest.raises(
        ValueError, match=r"must share a size of batch_size or more; got \[100, 99\]"
    ):
        batches(x, x[1:], batch_size=2)


def test_every_mutant_that_is_excused_is_still_in_the_source():
    excused = mutants.excuses()
    modules = {name.partition(":")[0].partition(".")[0] for name in excused}
    assert excused and modules <= set(mutants.TESTS)
    assert excused - {name for module in modules for name in mutants.named(module)} == set()


def test_every_module_has_tests_to_run_its_mutants_against():
    for module, tests in mutants.TESTS.items():
        assert (ROOT / "src" / "attention" / f"{module}.py").exists(), module
        for name in tests:
            assert (ROOT / "tests" / f"test_{name}.py").exists(), name


def test_a_mutant_differs_in_one_place_and_goes_by_a_name_of_its_own():
    source = "def f(x, y=True):\n    return -x + 1 if x < 2 else x and y"
    made = dict(mutants.mutants(source))
    assert made[".f: x < 2 -> x <= 2"] == source.replace("x < 2", "x <= 2")
    assert made[".f: True -> False"] == source.replace("True", "False")
    assert made[".f: -x -> x"] == source.replace("-x", "x")
    assert made[".f: -x + 1 -> -x - 1"] == source.replace("+ 1", "- 1")
    assert made[".f: x and y -> x or y"] == source.replace("and", "or")
    assert set(made.values()).isdisjoint({source}) and len(set(made.values())) == len(made) == 7

"""The small models: counts, embeddings, ablation, generation, every kind of position."""

import dataclasses
import math

import pytest
import torch

from attention import (
    POSITIONS,
    Embedding,
    Encoder,
    EncoderBlock,
    EncoderDecoder,
    KVCache,
    LanguageModel,
    ModelConfig,
    MultiHeadAttention,
    alibi_bias,
    next_token_probabilities,
    padding_mask,
    sinusoidal_encoding,
)


def ids(*shape, vocab=11, seed=0):
    return torch.randint(vocab, shape, generator=torch.Generator().manual_seed(seed))


def small(kind, **kwargs):
    torch.manual_seed(0)
    return kind(11, 8, 2, 2, **kwargs).eval()


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_parameter_counts_of_the_whole_2017_base_model():
    model = EncoderDecoder(37_000, 512, 8, 6, 2048, norm_first=False)
    assert count(model) == 37_000 * 512 + 6 * 3_152_384 + 6 * 4_204_032 == 63_082_496
    assert count(EncoderDecoder(100, 64, 4, 2, tied=False)) == 100 * 64 + count(
        EncoderDecoder(100, 64, 4, 2)
    )


def test_the_model_in_the_page_has_27_thousand_weights():
    assert count(Encoder(44, 32, 4, 2)) == 26_880


def test_embeddings_are_scaled_and_tied_as_options():
    x = ids(1, 5)
    torch.manual_seed(0)
    scaled = Embedding(11, 8, 2, positions="none")
    plain = Embedding(11, 8, 2, positions="none", scaled=False)
    plain.tokens.load_state_dict(scaled.tokens.state_dict())
    torch.testing.assert_close(scaled(x), plain(x) * math.sqrt(8))
    torch.testing.assert_close(scaled.logits(plain(x)), plain(x) @ scaled.tokens.weight.T)
    untied = Embedding(11, 8, 2, tied=False)
    assert untied.logits(plain(x)).shape == (1, 5, 11) and count(untied) == 2 * 11 * 8


def test_embeddings_have_unit_size_once_scaled():
    torch.manual_seed(0)
    x = Embedding(500, 64, 2, positions="none")(torch.arange(500)[None])
    assert x.std().item() == pytest.approx(1, abs=0.02)


def test_positions_are_added_where_they_belong():
    x = ids(1, 5)
    for name in POSITIONS:
        torch.manual_seed(0)
        e = Embedding(11, 8, 2, positions=name)
        added = e(x) - e.tokens(x) * math.sqrt(8)
        want = {"sinusoidal": sinusoidal_encoding(5, 8)}.get(name, torch.zeros(5, 8))
        want = e.learned(5) if name == "learned" else want
        torch.testing.assert_close(added[0], want)
        bias = e.bias(5, 5)
        assert (bias is not None) == (name in ("alibi", "t5"))
        if name == "alibi":
            assert torch.equal(bias, alibi_bias(2, 5)[None])


@pytest.mark.parametrize("kind", [Encoder, LanguageModel])
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("norm_first", [True, False])
def test_weights_on_request_change_nothing(kind, positions, norm_first):
    model, x = small(kind, positions=positions, norm_first=norm_first, num_kv_heads=1), ids(2, 5)
    logits, weights = model(x, return_weights=True)
    assert logits.shape == (2, 5, 11)
    assert [w.shape for w in weights] == [(2, 2, 5, 5)] * 2
    torch.testing.assert_close(model(x), logits)
    assert all(w.triu(1).any().item() == (kind is Encoder) for w in weights)


@pytest.mark.parametrize("kind", [Encoder, LanguageModel])
def test_head_mask_switches_off_one_head(kind):
    model, x = small(kind), ids(2, 5)
    ones = torch.ones(2, 2)
    torch.testing.assert_close(model(x, head_mask=ones), model(x))
    ones[1, 0] = 0
    off = model(x, head_mask=ones)
    assert not torch.allclose(off, model(x))
    model.layers[1].attention.w_o.weight.data[:, :4] = 0  # what head 0 contributes
    torch.testing.assert_close(model(x), off)


def test_head_mask_of_an_encoder_decoder():
    model, source, target = small(EncoderDecoder), ids(2, 4), ids(2, 5, seed=1)
    full = model(source, target)
    for key, layers in (("encoder", [b.attention for b in model.encoder.layers]),
                        ("decoder", [b.attention for b in model.layers]),
                        ("cross", [b.cross_attention for b in model.layers])):  # fmt: skip
        mask = torch.ones(2, 2)
        mask[0, 1] = 0
        off = model(source, target, head_mask={key: mask})
        assert not torch.allclose(off, full)
        kept = layers[0].w_o.weight.data.clone()
        layers[0].w_o.weight.data[:, 4:] = 0
        torch.testing.assert_close(model(source, target), off)
        layers[0].w_o.weight.data.copy_(kept)


@pytest.mark.parametrize("positions", POSITIONS)
def test_encoder_decoder_weights_and_masks(positions):
    model = small(EncoderDecoder, positions=positions)
    source, target = ids(2, 4), ids(2, 5, seed=1)
    logits, weights = model(source, target, padding_mask([4, 2]), return_weights=True)
    torch.testing.assert_close(model(source, target, padding_mask([4, 2])), logits)
    assert logits.shape == (2, 5, 11)
    assert [w.shape for w in weights["encoder"]] == [(2, 2, 4, 4)] * 2
    assert [w.shape for w in weights["cross"]] == [(2, 2, 5, 4)] * 2
    assert not any(w.triu(1).any() for w in weights["decoder"])
    assert not any(w[1, :, :, 2:].any() for w in weights["cross"] + weights["encoder"])


def test_is_causal_false_lets_a_language_model_cheat():
    honest, cheat = small(LanguageModel), small(LanguageModel, is_causal=False)
    cheat.load_state_dict(honest.state_dict())
    x, y = ids(1, 5), ids(1, 5)
    y[0, -1] = (y[0, -1] + 1) % 11
    torch.testing.assert_close(honest(x)[:, :-1], honest(y)[:, :-1])
    assert not torch.allclose(cheat(x)[:, :-1], cheat(y)[:, :-1])
    cheat.is_causal = True
    torch.testing.assert_close(cheat(x), honest(x))


# generation


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("is_causal", [True, False])
def test_generation_takes_the_likeliest_token_of_the_whole_forward_pass(positions, is_causal):
    model = small(LanguageModel, positions=positions, is_causal=is_causal)
    x = ids(3, 2)
    got = model.generate(x, steps=6, top_k=1)
    assert got.shape == (3, 8) and torch.equal(got[:, :2], x)
    for n in range(2, 8):
        assert torch.equal(got[:, n], model(got[:, :n])[:, -1].argmax(-1))


def test_generation_is_repeatable_and_leaves_the_mode_alone():
    model, x = small(LanguageModel, dropout=0.5), ids(3, 2)
    draws = [model.generate(x, 9, generator=torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])
    assert not model.training
    model.train()
    model.generate(x, 1)
    assert model.training
    assert torch.equal(model.generate(x, 0), x)


def test_a_sample_follows_the_probabilities():
    model = small(LanguageModel)
    x = ids(1, 3).expand(20_000, 3)
    got = model.generate(x, 1, temperature=2.0, generator=torch.Generator().manual_seed(0))[:, -1]
    want = torch.softmax(model(x[:1])[0, -1] / 2.0, -1)
    shares = torch.bincount(got, minlength=11) / 20_000
    torch.testing.assert_close(shares, want, atol=0.012, rtol=0)


def test_an_encoder_decoder_writes_the_likeliest_tokens():
    model, source = small(EncoderDecoder), ids(3, 4)
    mask = padding_mask([4, 2, 1])
    got = model.generate(source, 5, start=1, source_mask=mask)
    assert got.shape == (3, 6) and (got[:, 0] == 1).all()
    assert torch.equal(got[:, 1:], model(source, got[:, :-1], mask).argmax(-1))


def test_next_token_probabilities():
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()

    def near(values, **options):
        got = next_token_probabilities(logits, **options)
        torch.testing.assert_close(got, torch.tensor(values) / sum(values))

    near([0.4, 0.3, 0.2, 0.1])
    near([0.4**2, 0.3**2, 0.2**2, 0.1**2], temperature=0.5)
    near([0.4, 0.3, 0.0, 0.0], top_k=2)
    near([0.4, 0.3, 0.2, 0.1], top_k=9)
    near([0.4, 0.3, 0.0, 0.0], top_p=0.65)
    near([0.4, 0.0, 0.0, 0.0], top_p=0.01)
    near([0.4, 0.3, 0.2, 0.1], top_p=1.0)
    near([0.4, 0.3, 0.0, 0.0], top_k=3, top_p=0.65)
    batch = next_token_probabilities(torch.stack([logits, logits.flip(0)]), top_k=1)
    assert batch.tolist() == [[1, 0, 0, 0], [0, 0, 0, 1]]
    ties = next_token_probabilities(torch.zeros(4), top_k=1)
    assert ties.tolist() == [1, 0, 0, 0]  # the first of equals, not all of them


def test_caches_that_would_give_wrong_logits_are_refused():
    ids = torch.tensor([[1, 2, 3]])
    model = LanguageModel(10, 8, 2, 2)
    with pytest.raises(ValueError, match="a different one for each layer"):
        model(ids, caches=[KVCache()] * 2)
    with pytest.raises(ValueError, match="caches need a causal model"):
        Encoder(10, 8, 2, 2)(ids, caches=[KVCache(), KVCache()])


def test_a_generation_that_fails_leaves_the_mode_alone():
    model = LanguageModel(10, 8, 2, 1, positions="learned", max_len=4).train()
    with pytest.raises(ValueError, match="max_len"):
        model.generate(torch.tensor([[1, 2]]), steps=5)
    assert model.training
    both = EncoderDecoder(10, 8, 2, 1, positions="learned", max_len=4).train()
    with pytest.raises(ValueError, match="max_len"):
        both.generate(torch.tensor([[1, 2]]), steps=5, start=1)
    assert both.training


def test_a_late_token_knows_its_place_without_the_ones_before():
    whole = sinusoidal_encoding(40, 8)
    assert torch.equal(sinusoidal_encoding(3, 8, start=37), whole[37:])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_language_model_is_one_graph():
    model, ids = LanguageModel(10, 8, 2, 1).eval(), torch.tensor([[1, 2, 3]])
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(ids), model(ids), rtol=0, atol=1e-6)


def test_autocast_may_choose_the_types():
    layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    wanted = layer(layer(x)[0])[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = layer(x)[0]
        assert first.dtype == torch.bfloat16
        assert torch.allclose(layer(first)[0].float(), wanted, atol=0.05)
    with pytest.raises(ValueError, match="as the weights are"):
        layer(first)


def example(kind, positions, **options):
    """A model and what it takes, everything fixed."""
    model = small(kind, positions=positions, **options)
    return model, (ids(2, 5), ids(2, 5, seed=1))[: 1 + (kind is EncoderDecoder)]


KINDS = [Encoder, LanguageModel, EncoderDecoder]
GRAPHS = [(LanguageModel, name) for name in POSITIONS]
GRAPHS += [(Encoder, "t5"), (EncoderDecoder, "sinusoidal"), (EncoderDecoder, "t5")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind,positions", GRAPHS)
def test_one_graph_serves_every_length(kind, positions):
    model, inputs = example(kind, positions)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    for n in (5, 3, 7):
        given = [ids(2, n, seed=i) for i in range(len(inputs))]
        torch.testing.assert_close(compiled(*given), model(*given))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind,positions", GRAPHS)
def test_an_exported_model_takes_every_length(kind, positions):
    model, inputs = example(kind, positions)
    n = torch.export.Dim("n", min=2, max=512)
    shapes = tuple({1: n} for _ in inputs)
    exported = torch.export.export(model, inputs, dynamic_shapes=shapes).module()
    for length in (5, 3, 17):
        given = [ids(2, length, seed=i) for i in range(len(inputs))]
        torch.testing.assert_close(exported(*given), model(*given))


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # PyTorch's, of its own kernel
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_gradients_of_each_sample_by_vmap(kind, positions):
    model, inputs = example(kind, positions, num_kv_heads=1)
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights, *sample):
        logits = torch.func.functional_call(model, weights, tuple(x[None] for x in sample))
        return torch.nn.functional.cross_entropy(logits[0], sample[-1])

    each = torch.func.vmap(torch.func.grad(loss), (None, *[0] * len(inputs)))(weights, *inputs)
    for b in range(2):
        one = torch.func.grad(loss)(weights, *(x[b] for x in inputs))
        for name in weights:
            torch.testing.assert_close(each[name][b], one[name], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_of_a_whole_model(kind, positions, dtype):
    model, inputs = example(kind, positions)
    want = model(*inputs)
    for return_weights in (True, False):
        with torch.autocast("cpu", dtype=dtype):
            got = model(*inputs, return_weights=return_weights)
        logits = got[0] if return_weights else got
        torch.testing.assert_close(logits.float(), want, atol=0.2, rtol=0.1)
        logits.float().sum().backward()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_an_empty_batch_gives_empty_logits(kind, positions):
    model, inputs = example(kind, positions)
    for return_weights in (True, False):
        got = model(*(x[:0] for x in inputs), return_weights=return_weights)
        assert (got[0] if return_weights else got).shape == (0, 5, 11)
    if kind is LanguageModel:
        assert model.generate(ids(2, 3)[:0], 4).shape == (0, 7)


def test_caches_of_unequal_length_are_refused():
    model, caches = small(LanguageModel), [KVCache(), KVCache()]
    model(ids(1, 3), caches=caches)
    caches[1] = KVCache()
    with pytest.raises(ValueError, match=r"equally many tokens; got \[3, 0\]"):
        model(ids(1, 1), caches=caches)


def test_a_configuration_makes_what_its_fields_make():
    config = ModelConfig(vocab_size=11, d_model=8, num_heads=2, num_layers=2, positions="rotary")
    for kind in KINDS:
        torch.manual_seed(0)
        whole = kind(config)
        torch.manual_seed(0)
        fields = kind(11, 8, 2, 2, positions="rotary")
        assert whole.config == config and dataclasses.is_dataclass(config)
        for a, b in zip(whole.parameters(), fields.parameters(), strict=True):
            assert torch.equal(a, b)
    assert fields.layers[0].attention.rotary_base == 10000.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 16
    with pytest.raises(TypeError, match="vocab_size"):
        EncoderBlock(8, 2, vocab_size=11)
    with pytest.raises(TypeError, match="positional"):
        Encoder(config, 8)


def test_t5_buckets_look_ahead_only_where_the_model_may():
    for kind, looks in ((Encoder, True), (LanguageModel, False)):
        assert small(kind, positions="t5").embedding.t5.bidirectional is looks
    both = small(EncoderDecoder, positions="t5")
    assert both.encoder.embedding.t5.bidirectional and not both.t5.bidirectional


def test_the_limits_themselves_are_allowed():
    assert small(LanguageModel, positions="learned", max_len=5)(ids(1, 5)).shape == (1, 5, 11)
    assert small(EncoderDecoder).generate(ids(1, 3), 1, start=10).shape == (1, 2)
    with pytest.raises(ValueError, match="from 0 to 10; got 11"):
        small(EncoderDecoder).generate(ids(1, 3), 1, start=11)

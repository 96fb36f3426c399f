"""Every argument of every public function and method: a wrong one is refused, by name.

A refusal is a sentence that names the argument, says what it must be, and what came instead. The
table holds, for each callable, arguments that are right and, for each of them, values that are
not: `argument=[values]`, or `argument=([of a wrong type], [values])`. Each is tried by itself.
"""

import dataclasses
import inspect
import math
import re
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import attention as A

X, IDS, MASK = torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64), torch.ones(3, 3) > 0
META, ONE, NAN, INF = X.to("meta"), torch.tensor(1.0), math.nan, math.inf
MHA, WORDS = A.MultiHeadAttention(4, 2), A.Vocabulary(["a"])
MODEL, PAIR = A.LanguageModel(5, 4, 2, 1), A.EncoderDecoder(5, 4, 2, 1)
CASES = []  # (callable's name, argument, error, call, what came)


@dataclasses.dataclass
class Say:
    """A wrong value, and words for it where the sentence does not print it as it is."""

    value: object
    words: str


def name_of(call):
    """Functions and methods by their own names, a layer's forward by its class."""
    name = getattr(call, "__qualname__", type(call).__name__)
    return name.removesuffix(".__getitem__")


def forms(x):
    """How a sentence may print what came."""
    if isinstance(x, Say):
        return {x.words}
    if not isinstance(x, torch.Tensor):
        return {repr(x), str(x), type(x).__name__}
    number = str(x.flatten()[-1].item()) if x.numel() and x.device.type == "cpu" else "none"
    return {str(tuple(x.shape)), str(x.dtype), str(x.device), "Tensor", repr(x), number}


def refuses(call, good, name=None, **bad):
    name = name or name_of(call)
    for argument, values in bad.items():
        if not isinstance(values, dict):
            types, values = values if isinstance(values, tuple) else ([], values)
            values = {TypeError: types, ValueError: values}
        for error, value in ((kind, value) for kind in values for value in values[kind]):
            wrong = value.value if isinstance(value, Say) else value
            run = partial(call, **{**good, argument: wrong})
            CASES.append((name, argument, error, run, forms(value)))


def cache_of(batch, heads=2, groups=None, dtype=torch.float32):
    cache, layer = A.KVCache(), A.MultiHeadAttention(4, heads, groups).to(dtype)
    layer(torch.zeros(batch, 1, 4, dtype=dtype), cache=cache)
    return cache


# fmt: off
# functional, sampling
COUNT, EVEN = [0, -1], [5, 0]
BASE, SHARE = (["x"], [1.0, 0.5, NAN]), (["x"], [1, 1.0, -0.1, 2, NAN])
FLAG = ([1, "no", None, MASK], [])
refuses(A.softmax, dict(x=X), x=([IDS, [1.0]], [X[..., :0], Say(ONE, "a single number")]),
        temperature=(["hot"], [0, -1.0, NAN, INF]), dim=[3])
TENSOR = ([[1.0], X.long(), X.double()],
          [META, X[:, :0], X[..., :0], X[0, 0], torch.zeros(5, 3, 4)])
GRID = ([MASK.int(), MASK.float(), [True]],
        [MASK[:2], MASK[0], MASK.expand(5, 2, 3, 3), MASK.to("meta")])
ADDED = ([MASK], [torch.zeros(3, 4), MASK.float().to("meta")])
for run in (A.attention, A.fused_attention):
    refuses(run, dict(q=X, k=X, v=X), q=TENSOR, k=TENSOR, v=TENSOR, mask=GRID, bias=ADDED,
            scale=(["1"], [NAN]), dropout=SHARE)
    refuses(run, dict(q=X, k=X, v=X), q=[X[..., :3]], k=[X[:, :2]], v=[X[:, :2]])
    four = torch.zeros(3, 3, 3, 4)  # as many heads as sequences: whose is a mask of three?
    refuses(run, dict(q=four, k=four, v=four), mask=[MASK.expand(3, 3, 3)], bias=[four[0, ..., :3]])
refuses(A.fused_attention, dict(q=X, k=X, v=X), is_causal=FLAG)
refuses(A.entropy, dict(weights=X[0]), dim=[2],
        weights=([MASK], [Say(ONE, "a single number"), torch.tensor([1.5, -0.5])]))
refuses(A.softmax_jacobian, dict(weights=X), weights=([IDS], [torch.zeros(2, 0)]))
LAST_ROW = [torch.tensor([[0.0, -1.0], [x, x]]) for x in (INF, -INF, NAN)]
refuses(A.next_token_probabilities, dict(logits=X), temperature=[0], top_k=[0],
        top_p=[0, 1.5, NAN], logits=([IDS], [ONE, torch.zeros(2, 0), *LAST_ROW]))

# masks
LENGTH = ([2.0, True], [0, -1])
refuses(A.causal_mask, dict(n_q=2), n_q=LENGTH, n_k=LENGTH)
refuses(A.sliding_window_mask, dict(n_q=2, window=2), n_q=LENGTH, n_k=LENGTH, window=[0])
refuses(A.prefix_mask, dict(n_q=3, prefix=0), n_q=LENGTH, n_k=LENGTH, prefix=[4, -1])
refuses(A.padding_mask, {}, lengths=([Say([1.5], "float32"), None, "ab", [[1], [1, 2]]],
        [[2, -1], [0, 0], IDS, IDS[0, :0], Say([], "(0,)")]))
refuses(A.padding_mask, dict(lengths=[3], n_k=3), lengths=[[4]], n_k=[0, Say(2, '[3]')])
refuses(A.padding_mask, dict(lengths=IDS[0].to("meta")), n_k=[None])
refuses(A.to_torch_mha_mask, dict(mask=MASK), mask=([MASK.float()], []))
refuses(A.to_torch_mha_mask, dict(mask=MASK[None], num_heads=2), mask=[MASK], num_heads=COUNT)
refuses(A.reach, dict(mask=MASK, layers=1), mask=([MASK.float()], [MASK[:2]]), layers=[-1])

# positions
refuses(A.sinusoidal_encoding, dict(n=3, d_model=4), n=COUNT, d_model=EVEN, base=BASE, start=[-1])
refuses(A.shift_matrix, dict(delta=1, d_model=4), delta=[INF], d_model=EVEN, base=BASE)
refuses(A.LearnedPositions, dict(max_len=4, d_model=4), max_len=COUNT, d_model=COUNT)
refuses(A.LearnedPositions(4, 4), dict(n=1), n=COUNT, start=[-1])
refuses(lambda max_len: A.LearnedPositions(max_len, 4)(3, start=2), {}, "LearnedPositions",
        max_len=[Say(4, "2 to 4")])
refuses(A.rotary, dict(x=X), x=([IDS], [Say(X[..., :3], "3"), X[:, :0]]), base=BASE,
        positions=([[0, 1, 2], torch.zeros(3) * 1j], [torch.arange(2)]))
refuses(A.alibi_slopes, dict(num_heads=2), num_heads=COUNT)
refuses(A.alibi_bias, dict(num_heads=2, n_q=3), num_heads=COUNT, n_q=COUNT, n_k=COUNT)
BUCKETS = dict(num_buckets=[2, 7], max_distance=[8], bidirectional=([1], []))
refuses(A.t5_buckets, dict(offset=IDS), offset=([X], []), **BUCKETS)
refuses(A.T5Bias, dict(num_heads=2), num_heads=COUNT, **BUCKETS)
refuses(A.T5Bias(2), dict(n_q=1), n_q=COUNT, n_k=COUNT)

# multi-head attention
HEADS = [Say(torch.ones(3), "[1., 1., 1.]")]
SPLIT = dict(num_heads=[3, 0], num_kv_heads=[3], dropout=SHARE, rotary_base=(["x"], [1.0]))
OUTSIDE = ([IDS], [torch.zeros(2, 3, 5), X[:, :0]])
refuses(A.MultiHeadAttention, dict(d_model=8, num_heads=4), d_model=[0], bias=FLAG, **SPLIT)
refuses(lambda d_k: A.MultiHeadAttention(2 * d_k, 2, rotary_base=9.0), {}, "MultiHeadAttention",
        d_k=[3])
refuses(MHA, dict(x=X), x=OUTSIDE, mask=GRID, bias=ADDED, head_mask=HEADS, is_causal=FLAG)
refuses(MHA, dict(x=X), x=[X.double(), META], context=[X[:, :0], X[:1]],
        mask=[MASK.expand(5, 3, 3)], bias=[torch.zeros(3, 3, 3), torch.zeros(2, 3, 3)])
refuses(MHA, dict(x=X), cache=([{}], [Say(cache_of(n, *of), shape) for n, of, shape in (
        (3, (), "(3, 2, 1, 2)"), (2, (4, 4), "(2, 4, 1, 1)"), (2, (2, 1), "(2, 1, 1, 2)"),
        (2, (2, 2, torch.float64), "torch.float64"))]))
refuses(MHA, dict(x=X, cache=A.KVCache()), x=([[X]], []), context=[Say(X, "None with a cache")])
refuses(A.MultiHeadAttention(4, 2, rotary_base=9.0), dict(x=X), context=[Say(X, "rotary")])
K = torch.zeros(2, 2, 1, 2)
refuses(A.KVCache().append, dict(k=X, v=X), k=([[1]], []), v=([[1]], []))
refuses(cache_of(2).append, dict(k=K, v=K), k=[K[..., :1]], v=[K[..., :1], K.double()])
refuses(A.MultiHeadAttention.from_torch, {}, mha=([nn.Linear(2, 2)], [
    Say(nn.MultiheadAttention(4, 2, **more), "must not use")
    for more in ({"kdim": 3}, {"add_bias_kv": True}, {"add_zero_attn": True})]))

# blocks, embedding, models
LAYER = dict(d_ff=[0], dropout=SHARE, activation=["tanh", [], None])
BLOCK = {**SPLIT, **LAYER, "norm_first": ([0, 1], [])}
refuses(A.FeedForward, dict(d_model=4), d_model=COUNT, **LAYER)
refuses(A.FeedForward(4), {}, x=OUTSIDE)
refuses(A.SubLayer, dict(d_model=4), d_model=COUNT, norm_first=FLAG, dropout=SHARE)
refuses(A.SubLayer(4), dict(layer=abs), x=OUTSIDE)
for kind, more in ((A.EncoderBlock, {}), (A.DecoderBlock, dict(context=X))):
    refuses(kind, dict(d_model=8, num_heads=4), d_model=[0], **BLOCK)
    refuses(kind(4, 2), dict(x=X, **more), x=OUTSIDE, mask=GRID, bias=ADDED, head_mask=HEADS,
            is_causal=FLAG, cache=([{}], [Say(cache_of(3), "(3, 2, 1, 2)")]))
refuses(A.DecoderBlock(4, 2), dict(x=X, context=X), context=OUTSIDE, context_mask=GRID,
        cross_head_mask=HEADS)
TABLE = dict(positions=["sinus"], max_len=COUNT, dropout=SHARE, scaled=FLAG, tied=FLAG)
TINY = dict(vocab_size=9, d_model=4, num_heads=2)
refuses(A.Embedding, TINY, vocab_size=COUNT, d_model=EVEN, num_heads=COUNT, bidirectional=FLAG,
        **TABLE)
TOKENS = ([X, [[1]]], [IDS[0], IDS[:, :0], IDS + 5, IDS - 1, IDS.to("meta")])
EMBEDDING = A.Embedding(5, 4, 2, positions="alibi")
refuses(EMBEDDING, dict(ids=IDS), ids=TOKENS, start=[-1])
refuses(EMBEDDING.bias, dict(n_q=1, n_k=1), n_q=COUNT, n_k=COUNT)
refuses(EMBEDDING.logits, {}, x=[X[..., :1]])
for kind in (A.Encoder, A.LanguageModel, A.EncoderDecoder):
    refuses(kind, dict(**TINY, num_layers=1), vocab_size=COUNT, d_model=EVEN, num_layers=COUNT,
            is_causal=FLAG, **{**TABLE, **BLOCK})
FACTORS = [Say([1, 1], "list"), torch.ones(2)]
for model in (A.Encoder(5, 4, 2, 1), MODEL):
    refuses(model, dict(ids=IDS), ids=TOKENS, mask=([IDS], []), head_mask=FACTORS)
refuses(A.Encoder(5, 4, 2, 1), dict(ids=IDS), caches=[Say([A.KVCache()], "need a causal model")])
refuses(A.LanguageModel(5, 4, 2, 2), dict(ids=IDS),
        caches=[Say([A.KVCache()] * 2, "one came twice"), Say([A.KVCache()], "1"),
                                Say([cache_of(2), A.KVCache()], "[1, 0]")])
refuses(MODEL, dict(ids=IDS), caches=([[None], Say(A.KVCache(), "KVCache"), 3], []))
refuses(MODEL.generate, dict(ids=IDS, steps=1), ids=([X], []), steps=[-1], temperature=[0],
        top_k=[0], top_p=[0], generator=([3], []))
refuses(PAIR, dict(source=IDS, target=IDS), source=([X], [IDS + 5, IDS[0], IDS[:1]]),
        target=([X], [IDS + 5, IDS[0], IDS[:1]]), source_mask=([IDS], []),
        head_mask=([torch.ones(1, 2), [1]], [Say({"heads": 1}, "['heads']"),
                                             Say({"cross": torch.ones(3)}, "(3,)")]))
refuses(PAIR.generate, dict(source=IDS, steps=1, start=1), source=([X], []), steps=[-1], start=[9],
        source_mask=([IDS], []))

# training, vocabulary, data
TRAIN = dict(model=nn.Linear(1, 1), batches=[torch.ones(1, 1)], loss_fn=lambda m, x: m(x).sum(),
             steps=1, progress=False)
SEED = (["a"], [-1])
refuses(A.train, TRAIN, model=(["x"], [Say(nn.Identity(), "none")]), seed=SEED,
        batches=([5], [Say([], "0 came")]), steps=[0], warmup=[-1], lr=(["x"], [0, -1.0, NAN]),
        clip=(["x"], [0, -1.0, NAN]), loss_fn=([None, Say(lambda m, x: m(x), "(1, 1)")], []))
refuses(A.next_token_loss, dict(model=MODEL, ids=IDS), ids=([X], [IDS[:, :1]]), pad=(["x"], []))
refuses(A.translation_loss, dict(model=PAIR, source=IDS, target=IDS), source=([X], []),
        target=([X], [IDS[:, :1]]), pad=(["x"], []))
for wrong, came in (((X,), [2]), ((X, X[0]), [2, 3]), ((), [])):
    refuses(lambda tensors, n=3: A.batches(*tensors, batch_size=n), {}, "batches",
            tensors=[Say(wrong, str(came))])
for wrong in ([1, 2, 3], torch.tensor(1)):
    refuses(lambda tensors: A.batches(tensors, batch_size=2), {}, "batches", tensors=([wrong], []))
refuses(lambda **o: A.batches(X, **{"batch_size": 1, **o}), {}, "batches", batch_size=[0],
        seed=SEED)
refuses(A.Vocabulary, {}, words=(["a b", 5], []))
refuses(WORDS.__getitem__, {}, word={KeyError: ["z", ["a"]]})
refuses(WORDS.encode, {}, text=([5], []))
refuses(WORDS.decode, {}, ids=([Say(torch.ones(2), "1.0"), Say([[1]], "[1]"), Say("ab", "'a'")],
        [Say([9], "9"), Say([-1], "-1"), IDS, None]))
refuses(WORDS.encode_batch, dict(sentences=["a"]), sentences=(["a a", 5], [Say([], "none")]),
        start=([1], []), end=([1], []))
refuses(A.pronoun_task, {}, held_out=(["a"], [0, 1, -0.5, NAN]), seed=SEED)
refuses(A.pronoun_task().batches, {}, batch_size=[0], seed=SEED)
refuses(A.weather_corpus, {}, held_out=[0, 486], seed=SEED)
refuses(A.reversal_pairs, dict(size=1), size=[0], length=[0], symbols=[0, 27], seed=SEED)
refuses(A.translation_pairs, dict(size=1), size=[0], seed=SEED)
refuses(A.cat_sentence, {}, ending=["cold", None])
refuses(A.table, dict(values=X[0]), rows=[Say(["a"], "1 names")], columns=[Say(["a"], "1 names")],
        values=[Say([], "[]"), Say([1, 2], "[1, 2]"), Say([[1], [1, 2]], "[1, 2]")],
        decimals=(["x"], [-1]))
refuses(A.head_parts, dict(model=MODEL, ids=IDS), model=([nn.Linear(2, 2)], []), ids=([X], []))
PART = dict(model=MODEL, ids=IDS, position=0, outputs={(0, 0): torch.zeros(2)})
refuses(A.patch_heads, PART, model=([nn.Linear(2, 2)], []), ids=([X], []),
        position={IndexError: [3]}, outputs={
            IndexError: [Say({(1, 0): X}, "(1, 0)")], TypeError: [Say({(0, 0): 1}, "int")],
            ValueError: [Say({(0, 0): X}, "(2, 3, 4)")]})

# vision
SQUARE, EYES = torch.zeros(2, 8, 8), A.VisionTransformer(4, 2, 1)
refuses(A.patches, dict(images=SQUARE), images=([[1]], [SQUARE[0]]),
        size=(["x"], [0, 3]))
refuses(A.VisionTransformer, {}, d_model=[0], num_heads=[3, 0], num_layers=[0], image=[0],
        patch=[0, 3], classes=[0])
refuses(EYES, {}, images=([[1]], [SQUARE[0], SQUARE[:, :6, :6]]))

# byte pairs, texts
HALF, BYTES = Say("\ud800", "character 0"), A.BytePairs([(97, 98)])
TEXT = A.from_text("ab " * 500, merges=1)
refuses(A.learn_merges, dict(text="aa aa", count=1), text=([5], [HALF]), count=(["a"], [-1]))
refuses(A.BytePairs, {}, merges=([5], [Say([(300, 1)], "300, 1")]))
refuses(BYTES.encode, {}, text=([5, None], [HALF]))
for run in (BYTES.decode, BYTES.pieces):
    refuses(run, {}, ids=([5], [Say([999], "999"), Say([-1], "-1"), IDS]))
refuses(A.from_text, {}, source=([5], [Say("short", "5"), Say("a\0" * 999, "NUL")]))
refuses(A.from_text, dict(source="ab " * 500), merges=(["a"], [-1]))
refuses(TEXT.batches, dict(length=2), length=[0, 10**6], batch_size=[0], seed=SEED)
refuses(TEXT.windows, {}, length=[0, 10**6])

# counting, the model that ships
refuses(A.NGrams, dict(ids=torch.tensor([0, 1]), n=2, vocab_size=2), ids=([5, [0, 1]], []),
        n=(["a"], [0]), vocab_size=(["a"], [0]), discount=(["a"], [2.0]))
refuses(A.longest_copy, dict(text="a b", source="a b"), text=([5, None], []), source=([5], []))
refuses(A.pretrained_tales, {}, checkpoint=([], [7, Say("last", "last")]))
# fmt: on

SAID_AS = {  # the layer inside refuses it by the name it has there
    "cross_head_mask": "head_mask", "context_mask": "mask", "rotary_base": "base",
    "word": "the vocabulary",
}  # fmt: skip


@pytest.mark.parametrize("function,argument,error,call,came", CASES)
def test_a_wrong_argument_is_refused_by_name_in_a_sentence(function, argument, error, call, came):
    with pytest.raises(error) as caught:
        call()
    sentence = str(caught.value)
    names = {argument, SAID_AS.get(argument, argument)}
    assert any(re.search(rf"\b{name}\b", sentence) for name in names), sentence
    assert " must " in sentence or " need " in sentence or error is KeyError, sentence
    assert any(form in sentence.split("; got ")[-1] for form in came), sentence
    assert type(caught.value) is error
    assert "site-packages" not in str(caught.traceback[-1].path), "PyTorch refused, not the book"


def test_no_public_function_is_forgotten():
    tried = {case[0] for case in CASES}
    without_arguments = {"device", "describe_device", "weather_sentences", "KVCache", "History"}
    without_arguments |= {"tales", "digits", "tale_losses", "pretrained_facts"}
    passed_on = {"BlockConfig", "ModelConfig"}  # to what is made from them
    made_elsewhere = {
        "PronounTask",
        "Table",
        "Text",
        "POSITIONS",
        "FEATURES",
    }  # by functions; tuples
    assert set(A.__all__) - tried == without_arguments | made_elsewhere | passed_on


def public_callables():
    """(name, function) for every function, __init__ and method; forward goes by its class."""
    for name in A.__all__:
        thing = getattr(A, name)
        if inspect.isfunction(thing):
            yield name, thing
        for method, function in vars(thing).items() if inspect.isclass(thing) else ():
            function = getattr(function, "__func__", function)  # of a class method
            hidden = method.startswith("_") and dataclasses.is_dataclass(thing)
            if method in ("__init__", "forward", "__getitem__") and not hidden:
                yield name, function
            elif inspect.isfunction(function) and not method.startswith("_"):
                yield f"{name}.{method}", function


def test_no_argument_is_forgotten():
    free = {
        "device",  # PyTorch refuses it, by name
        "progress", "need_weights", "return_weights",  # asked for their truth alone
        "self", "cls", "args", "kwargs", "options",  # passed on
    }  # fmt: skip
    called = {  # functions, and what they take: the caller's own
        ("next_token_loss", "model"), ("translation_loss", "model"), ("PronounTask.loss", "model"),
        ("PronounTask.loss", "batch"), ("PronounTask.accuracy", "model"), ("SubLayer", "layer"),
        ("PronounTask.twins", "ids"), ("table", "corner"),
        ("NGrams.loss", "ids"), ("NGrams.probability", "context"), ("NGrams.probability", "token"),
    }  # fmt: skip
    called |= {("Table", name) for name in ("cells", "rows", "columns", "corner")}  # by `table`
    tried = {case[:2] for case in CASES} | called
    seen = {
        (name, argument)
        for name, function in public_callables()
        for argument in set(inspect.signature(function).parameters) - free
    }
    missing = seen - tried
    assert not missing
    assert {("MultiHeadAttention", "cache"), ("LanguageModel.generate", "generator")} <= seen


def test_a_refused_step_leaves_the_cache_as_it_was():
    """A retry must not attend twice to what a failed call had added."""
    other = A.MultiHeadAttention(4, 4)
    cache = cache_of(2)
    keys = cache.k.clone()
    for layer, x in ((other, X), (MHA, X[:1]), (A.MultiHeadAttention(4, 2).double(), X.double())):
        with pytest.raises(ValueError, match="cache"):
            layer(x, cache=cache, is_causal=True)
        assert len(cache) == 1 and torch.equal(cache.k, keys)
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(ValueError, match="bfloat16"):
        MHA(X, cache=cache)
    assert len(cache) == 1
    with torch.autocast("cpu", torch.bfloat16):
        cache = A.KVCache()
        for _ in range(2):
            MHA(X, cache=cache, is_causal=True)
    assert len(cache) == 6 and cache.k.dtype == torch.bfloat16


def test_numbers_of_numpy_will_do():
    assert torch.equal(A.causal_mask(np.int64(3)), A.causal_mask(3))
    x = torch.randn(4)
    assert torch.equal(A.softmax(x, np.float32(2)), A.softmax(x, 2.0))

"""Every argument of every public function and method: a wrong one is refused, by name."""

import dataclasses
import inspect
import math

import numpy as np
import pytest
import torch
from torch import nn

import attention as A

X = torch.zeros(2, 3, 4)
MASK = torch.ones(3, 3, dtype=torch.bool)
META = torch.zeros(2, 3, 4, device="meta")
IDS = torch.zeros(2, 3, dtype=torch.int64)
MHA = A.MultiHeadAttention(4, 2)
MODEL = A.LanguageModel(5, 4, 2, 1)
PAIR = A.EncoderDecoder(5, 4, 2, 1)


def cache_of(batch, layer=MHA, dtype=torch.float32):
    cache = A.KVCache()
    layer.to(dtype)(torch.zeros(batch, 1, 4, dtype=dtype), cache=cache)
    layer.float()
    return cache


CASES = []  # (function, argument, call, error, words that the sentence must hold)


def refuses(function, argument, error, words, call):
    CASES.append(pytest.param(function, argument, error, words, call,
                              id=f"{function}-{argument}-{len(CASES)}"))  # fmt: skip


# functional
refuses("softmax", "x", TypeError, "floating-point tensor; got torch.int64",
        lambda: A.softmax(torch.tensor([1, 2])))  # fmt: skip
refuses("softmax", "x", TypeError, "got list", lambda: A.softmax([1.0]))
refuses("softmax", "x", ValueError, "at least one entry", lambda: A.softmax(torch.zeros(2, 0)))
refuses("softmax", "x", ValueError, "at least one dimension; got a single number",
        lambda: A.softmax(torch.tensor(1.0)))  # fmt: skip
for bad in (0, -1.0, math.nan, math.inf):
    refuses("softmax", "temperature", ValueError, str(bad),
            lambda bad=bad: A.softmax(X, bad))  # fmt: skip
refuses("softmax", "temperature", TypeError, "'hot'", lambda: A.softmax(X, "hot"))
refuses("softmax", "dim", ValueError, "from -3 to 2; got 3", lambda: A.softmax(X, dim=3))
for name, run in (("attention", A.attention), ("fused_attention", A.fused_attention)):
    for argument, index in (("q", 0), ("k", 1), ("v", 2)):

        def put(x, run=run, index=index):
            return run(*[x if i == index else X for i in range(3)])

        refuses(name, argument, TypeError, "got list", lambda put=put: put([1.0]))
        refuses(name, argument, TypeError, "torch.int64", lambda put=put: put(X.long()))
        refuses(name, argument, TypeError, "one dtype", lambda put=put: put(X.double()))
        refuses(name, argument, ValueError, "on one device", lambda put=put: put(META))
        refuses(name, argument, ValueError, "with n and d at least 1",
                lambda put=put: put(X[:, :0]))  # fmt: skip
        refuses(name, argument, ValueError, "with n and d at least 1",
                lambda put=put: put(X[..., :0]))  # fmt: skip
        refuses(name, argument, ValueError, "must be (..., n, d)",
                lambda put=put: put(X[0, 0]))  # fmt: skip
        refuses(name, argument, ValueError, "leading dimensions",
                lambda put=put: put(torch.zeros(5, 3, 4)))  # fmt: skip
    refuses(name, "q", ValueError, "last dimension d_k; got q (2, 3), k (4, 5)",
            lambda run=run: run(X[0][:2, :3], torch.zeros(4, 5), torch.zeros(4, 5)))  # fmt: skip
    refuses(name, "k", ValueError, "length n_k; got k (2, 3, 4), v (2, 2, 4)",
            lambda run=run: run(X, X, X[:, :2]))  # fmt: skip
    refuses(name, "mask", TypeError, "True = may attend; got torch.float32 (an added float",
            lambda run=run: run(X, X, X, MASK.float()))  # fmt: skip
    refuses(name, "mask", TypeError, "got torch.int32", lambda run=run: run(X, X, X, MASK.int()))
    refuses(name, "mask", TypeError, "got list", lambda run=run: run(X, X, X, [True]))
    refuses(name, "mask", ValueError, "(2, 3, 3); got (2, 3)",
            lambda run=run: run(X, X, X, MASK[:2]))  # fmt: skip
    refuses(name, "mask", ValueError, "(..., n_q, n_k)", lambda run=run: run(X, X, X, MASK[0]))
    refuses(name, "mask", ValueError, "(2, 3, 3); got (5, 2, 3, 3)",
            lambda run=run: run(X, X, X, MASK.expand(5, 2, 3, 3)))  # fmt: skip
    refuses(name, "mask", ValueError, "on cpu, as the input is; got meta",
            lambda run=run: run(X, X, X, MASK.to("meta")))  # fmt: skip
    refuses(name, "bias", TypeError, "torch.bool", lambda run=run: run(X, X, X, bias=MASK))
    refuses(name, "bias", ValueError, "(2, 3, 3); got (3, 4)",
            lambda run=run: run(X, X, X, bias=torch.zeros(3, 4)))  # fmt: skip
    refuses(name, "bias", ValueError, "on cpu",
            lambda run=run: run(X, X, X, bias=MASK.float().to("meta")))  # fmt: skip
    refuses(name, "scale", ValueError, "nan", lambda run=run: run(X, X, X, scale=math.nan))
    refuses(name, "scale", TypeError, "'1'", lambda run=run: run(X, X, X, scale="1"))
    for bad in (1.0, -0.1, math.nan):
        refuses(name, "dropout", ValueError, str(bad),
                lambda run=run, bad=bad: run(X, X, X, dropout=bad))  # fmt: skip
refuses("fused_attention", "is_causal", TypeError, "True or False; got a Tensor",
        lambda: A.fused_attention(X, X, X, is_causal=MASK))  # fmt: skip
refuses("entropy", "weights", TypeError, "torch.bool", lambda: A.entropy(MASK))
refuses("entropy", "weights", ValueError, "at least one dimension",
        lambda: A.entropy(torch.tensor(1.0)))  # fmt: skip
refuses("entropy", "weights", ValueError, "must not be negative; got -0.5",
        lambda: A.entropy(torch.tensor([1.5, -0.5])))  # fmt: skip
refuses("entropy", "dim", ValueError, "from -2 to 1; got 2", lambda: A.entropy(X[0], dim=2))
refuses("softmax_jacobian", "weights", TypeError, "int64", lambda: A.softmax_jacobian(IDS))
refuses("softmax_jacobian", "weights", ValueError, "n >= 1",
        lambda: A.softmax_jacobian(torch.zeros(2, 0)))  # fmt: skip
refuses("next_token_probabilities", "logits", TypeError, "int64",
        lambda: A.next_token_probabilities(IDS))  # fmt: skip
refuses("next_token_probabilities", "logits", ValueError, "(..., vocab_size), not empty; got ()",
        lambda: A.next_token_probabilities(torch.tensor(1.0)))  # fmt: skip
refuses("next_token_probabilities", "logits", ValueError, "got (2, 0)",
        lambda: A.next_token_probabilities(torch.zeros(2, 0)))  # fmt: skip
for bad in (-math.inf, math.nan, math.inf):
    refuses("next_token_probabilities", "logits", ValueError, f"got [0.0, {bad}]", lambda bad=bad:
            A.next_token_probabilities(torch.tensor([[0.0, -1.0], [bad, bad]])))  # fmt: skip
refuses("next_token_probabilities", "temperature", ValueError, "greater than 0",
        lambda: A.next_token_probabilities(X, 0))  # fmt: skip
refuses("next_token_probabilities", "top_k", ValueError, "at least 1; got 0",
        lambda: A.next_token_probabilities(X, top_k=0))  # fmt: skip
for bad in (0, 1.5, math.nan):
    refuses("next_token_probabilities", "top_p", ValueError, str(bad),
            lambda bad=bad: A.next_token_probabilities(X, top_p=bad))  # fmt: skip

# masks
for name, make in (("causal_mask", A.causal_mask),
                   ("sliding_window_mask", lambda n, n_k=None: A.sliding_window_mask(n, 2, n_k)),
                   ("prefix_mask", lambda n, n_k=None: A.prefix_mask(n, 0, n_k))):  # fmt: skip
    refuses(name, "n_q", ValueError, "at least 1; got 0", lambda make=make: make(0))
    refuses(name, "n_q", TypeError, "2.0", lambda make=make: make(2.0))
    refuses(name, "n_k", ValueError, "at least 1; got -1", lambda make=make: make(2, -1))
    refuses(name, "n_k", TypeError, "True", lambda make=make: make(2, True))
refuses("padding_mask", "lengths", ValueError, "negative; got [2, -1]",
        lambda: A.padding_mask([2, -1]))  # fmt: skip
refuses("padding_mask", "lengths", ValueError, "exceed n_k = 3; got [4]",
        lambda: A.padding_mask([4], 3))  # fmt: skip
refuses("padding_mask", "lengths", TypeError, "torch.float32", lambda: A.padding_mask([1.5]))
refuses("padding_mask", "lengths", ValueError, "B >= 1", lambda: A.padding_mask(IDS))
refuses("padding_mask", "lengths", ValueError, "B >= 1",
        lambda: A.padding_mask(IDS[0, :0]))  # fmt: skip
for bad, error, words in (([], ValueError, "B >= 1 integers; got (0,)"),
                          (None, TypeError, "list of integers; got None"),
                          ("ab", TypeError, "list of integers; got 'ab'"),
                          ([[1], [1, 2]], TypeError, "got [[1], [1, 2]]"),
                          ([0, 0], ValueError, "all be 0 without n_k; got [0, 0]")):  # fmt: skip
    refuses("padding_mask", "lengths", error, words, lambda bad=bad: A.padding_mask(bad))
refuses("padding_mask", "n_k", ValueError, "at least 1; got 0", lambda: A.padding_mask([0], 0))
refuses("sliding_window_mask", "window", ValueError, "0", lambda: A.sliding_window_mask(3, 0))
refuses("prefix_mask", "prefix", ValueError, "n_k = 3; got 4", lambda: A.prefix_mask(3, 4))
refuses("prefix_mask", "prefix", ValueError, "at least 0", lambda: A.prefix_mask(3, -1))
refuses("to_torch_mha_mask", "mask", TypeError, "float32",
        lambda: A.to_torch_mha_mask(MASK.float()))  # fmt: skip
refuses("to_torch_mha_mask", "mask", ValueError, "(B, n_q, n_k)",
        lambda: A.to_torch_mha_mask(MASK, 2))  # fmt: skip
refuses("to_torch_mha_mask", "num_heads", ValueError, "at least 1",
        lambda: A.to_torch_mha_mask(MASK[None], 0))  # fmt: skip
refuses("reach", "mask", TypeError, "float32", lambda: A.reach(MASK.float(), 1))
refuses("reach", "mask", ValueError, "square", lambda: A.reach(MASK[:2], 1))
refuses("reach", "layers", ValueError, "at least 0; got -1", lambda: A.reach(MASK, -1))

# positions
for name, make in (("sinusoidal_encoding", lambda d=4, base=9.0: A.sinusoidal_encoding(3, d, base)),
                   ("shift_matrix", lambda d=4, base=9.0: A.shift_matrix(1, d, base))):  # fmt: skip
    refuses(name, "d_model", ValueError, "even", lambda make=make: make(5))
    refuses(name, "d_model", ValueError, "at least 2", lambda make=make: make(0))
    refuses(name, "base", ValueError, "greater than 1; got 1.0",
            lambda make=make: make(base=1.0))  # fmt: skip
    refuses(name, "base", ValueError, "nan", lambda make=make: make(base=math.nan))
refuses("sinusoidal_encoding", "n", ValueError, "0", lambda: A.sinusoidal_encoding(0, 4))
refuses(
    "sinusoidal_encoding", "start", ValueError, "-1", lambda: A.sinusoidal_encoding(3, 4, start=-1)
)
refuses("shift_matrix", "delta", ValueError, "inf", lambda: A.shift_matrix(math.inf, 4))
refuses("LearnedPositions", "max_len", ValueError, "0", lambda: A.LearnedPositions(0, 4))
refuses("LearnedPositions", "d_model", ValueError, "0", lambda: A.LearnedPositions(4, 0))
refuses("LearnedPositions", "n", ValueError, "0", lambda: A.LearnedPositions(4, 4)(0))
refuses("LearnedPositions", "start", ValueError, "-1", lambda: A.LearnedPositions(4, 4)(1, -1))
refuses("LearnedPositions", "max_len", ValueError, "below max_len = 4; got 2 to 4",
        lambda: A.LearnedPositions(4, 4)(3, 2))  # fmt: skip
refuses("rotary", "x", TypeError, "int64", lambda: A.rotary(IDS))
refuses("rotary", "x", ValueError, "even", lambda: A.rotary(X[..., :3]))
refuses("rotary", "x", ValueError, "with n and d at least 1", lambda: A.rotary(X[:, :0]))
refuses("rotary", "positions", TypeError, "list", lambda: A.rotary(X, [0, 1, 2]))
refuses("rotary", "positions", ValueError, "(3,) on cpu", lambda: A.rotary(X, torch.arange(2)))
refuses("rotary", "base", ValueError, "greater than 1", lambda: A.rotary(X, base=0.5))
refuses("rotary", "positions", TypeError, "real numbers; got torch.complex64",
        lambda: A.rotary(X, torch.zeros(3) * 1j))  # fmt: skip
refuses("alibi_slopes", "num_heads", ValueError, "0", lambda: A.alibi_slopes(0))
refuses("alibi_bias", "num_heads", ValueError, "0", lambda: A.alibi_bias(0, 3))
refuses("alibi_bias", "n_q", ValueError, "0", lambda: A.alibi_bias(2, 0))
refuses("alibi_bias", "n_k", ValueError, "0", lambda: A.alibi_bias(2, 3, 0))
refuses("t5_buckets", "relative_position", TypeError, "float32", lambda: A.t5_buckets(X))
refuses("t5_buckets", "num_buckets", ValueError, "at least 4", lambda: A.t5_buckets(IDS, 2))
refuses("t5_buckets", "num_buckets", ValueError, "even", lambda: A.t5_buckets(IDS, 7))
refuses("t5_buckets", "max_distance", ValueError, "at least 9; got 8",
        lambda: A.t5_buckets(IDS, 32, 8))  # fmt: skip
for name, run in (("t5_buckets", lambda b: A.t5_buckets(IDS, 32, 128, b)),
                  ("T5Bias", lambda b: A.T5Bias(2, 32, 128, b))):  # fmt: skip
    refuses(name, "bidirectional", TypeError, "True or False; got a int", lambda run=run: run(1))
refuses("T5Bias", "num_heads", ValueError, "0", lambda: A.T5Bias(0))
refuses("T5Bias", "num_buckets", ValueError, "even", lambda: A.T5Bias(2, 7))
refuses("T5Bias", "max_distance", ValueError, "at least 9", lambda: A.T5Bias(2, 32, 8))
refuses("T5Bias", "n_q", ValueError, "0", lambda: A.T5Bias(2)(0))
refuses("T5Bias", "n_k", ValueError, "0", lambda: A.T5Bias(2)(1, 0))

# multi-head attention
refuses("MultiHeadAttention", "d_model", ValueError, "0", lambda: A.MultiHeadAttention(0, 1))
refuses("MultiHeadAttention", "num_heads", ValueError, "divide d_model = 8; got 3",
        lambda: A.MultiHeadAttention(8, 3))  # fmt: skip
refuses("MultiHeadAttention", "num_heads", ValueError, "0", lambda: A.MultiHeadAttention(8, 0))
refuses("MultiHeadAttention", "num_kv_heads", ValueError, "divide num_heads = 4; got 3",
        lambda: A.MultiHeadAttention(8, 4, 3))  # fmt: skip
refuses("MultiHeadAttention", "dropout", ValueError, "1", lambda: A.MultiHeadAttention(
    8, 4, dropout=1))  # fmt: skip
refuses("MultiHeadAttention", "base", ValueError, "greater than 1",
        lambda: A.MultiHeadAttention(8, 4, rotary_base=1.0))  # fmt: skip
refuses("MultiHeadAttention", "d_k", ValueError, "even, sines",
        lambda: A.MultiHeadAttention(6, 2, rotary_base=9.0))  # fmt: skip
refuses("MultiHeadAttention", "x", ValueError, "d_model last; got (2, 3, 5)",
        lambda: MHA(torch.zeros(2, 3, 5)))  # fmt: skip
refuses("MultiHeadAttention", "x", TypeError, "int64", lambda: MHA(IDS))
refuses("MultiHeadAttention", "x", ValueError, "float32 on cpu", lambda: MHA(X.double()))
refuses("MultiHeadAttention", "x", ValueError, "got torch.float32 on meta", lambda: MHA(META))
refuses("MultiHeadAttention", "x", TypeError, "got list", lambda: MHA([X], cache=A.KVCache()))
refuses("MultiHeadAttention", "context", ValueError, "got (2, 0, 4)", lambda: MHA(X, X[:, :0]))
refuses("MultiHeadAttention", "context", ValueError, "share their batch",
        lambda: MHA(X, X[:1]))  # fmt: skip
refuses("MultiHeadAttention", "context", ValueError, "None with a cache",
        lambda: MHA(X, X, cache=A.KVCache()))  # fmt: skip
refuses("MultiHeadAttention", "context", ValueError, "rotary positions",
        lambda: A.MultiHeadAttention(4, 2, rotary_base=9.0)(X, X))  # fmt: skip
for bad, words in ((MASK[:, :2], "got (3, 2)"), (MASK.expand(5, 3, 3), "got (5, 1, 3, 3)")):
    refuses("MultiHeadAttention", "mask", ValueError, words, lambda bad=bad: MHA(X, mask=bad))
refuses("MultiHeadAttention", "mask", TypeError, "float32", lambda: MHA(X, mask=MASK.float()))
refuses("MultiHeadAttention", "mask", TypeError, "list", lambda: MHA(X, mask=[True]))
refuses("MultiHeadAttention", "bias", ValueError, "got (3, 3, 3)",
        lambda: MHA(X, bias=torch.zeros(3, 3, 3)))  # fmt: skip
refuses("MultiHeadAttention", "cache", TypeError, "KVCache; got dict", lambda: MHA(X, cache={}))
refuses("MultiHeadAttention", "cache", ValueError, "share their batch",
        lambda: MHA(X, cache=cache_of(3)))  # fmt: skip
refuses("MultiHeadAttention", "head_mask", ValueError, "num_heads = 2",
        lambda: MHA(X, head_mask=torch.ones(3)))  # fmt: skip
refuses("MultiHeadAttention", "is_causal", TypeError, "got a int", lambda: MHA(X, is_causal=1))
refuses("MultiHeadAttention", "rotary_base", TypeError, "'x'",
        lambda: A.MultiHeadAttention(8, 4, rotary_base="x"))  # fmt: skip
refuses("MultiHeadAttention", "bias", TypeError, "True or False",
        lambda: A.MultiHeadAttention(8, 4, bias=None))  # fmt: skip
for heads, kv_heads, dtype, words in ((4, 4, torch.float32, "(2, 4, 1, 1) torch.float32 on cpu"),
                                      (2, 1, torch.float32, "(2, 1, 1, 2) torch.float32 on cpu"),
                                      (2, 2, torch.float64, "torch.float64 on cpu")):  # fmt: skip
    refuses("MultiHeadAttention", "cache", ValueError, f"{words}, (2, 2, 3, 2) torch.float32",
            lambda h=heads, g=kv_heads, d=dtype: MHA(X, cache=cache_of(
                2, A.MultiHeadAttention(4, h, g), d)))  # fmt: skip
refuses("KVCache.append", "k", TypeError, "got list", lambda: A.KVCache().append([1], X))
refuses("KVCache.append", "v", TypeError, "got list", lambda: A.KVCache().append(X, [1]))
refuses("KVCache.append", "v", ValueError, "cache and v must agree but for the number of tokens",
        lambda: cache_of(2).append(torch.zeros(2, 2, 1, 2), torch.zeros(2, 2, 1, 3)))  # fmt: skip
refuses("MultiHeadAttention.from_torch", "mha", TypeError, "got Linear",
        lambda: A.MultiHeadAttention.from_torch(nn.Linear(2, 2)))  # fmt: skip
for option in ({"kdim": 3}, {"add_bias_kv": True}, {"add_zero_attn": True}):
    refuses("MultiHeadAttention.from_torch", "mha", ValueError, "must not use", lambda o=option:
            A.MultiHeadAttention.from_torch(nn.MultiheadAttention(4, 2, **o)))  # fmt: skip
refuses("MultiHeadAttention.to_torch", "rotary_base", ValueError, "None",
        lambda: A.MultiHeadAttention(4, 2, rotary_base=9.0).to_torch())  # fmt: skip

# blocks, embedding, models
refuses("FeedForward", "d_model", ValueError, "0", lambda: A.FeedForward(0))
refuses("FeedForward", "d_ff", ValueError, "0", lambda: A.FeedForward(4, 0))
for bad in ("tanh", [], None):
    refuses("FeedForward", "activation", ValueError, f"got {bad!r}",
            lambda bad=bad: A.FeedForward(4, activation=bad))  # fmt: skip
refuses("FeedForward", "dropout", ValueError, "1.0", lambda: A.FeedForward(4, dropout=1.0))
refuses("FeedForward", "x", ValueError, "got (2, 3, 5)",
        lambda: A.FeedForward(4)(torch.zeros(2, 3, 5)))  # fmt: skip
for name, bad, error, words in (("d_model", 0, ValueError, "at least 1"),
                                ("norm_first", 1, TypeError, "got a int"),
                                ("dropout", 1.0, ValueError, "less than 1")):  # fmt: skip
    refuses("SubLayer", name, error, words,
            lambda n=name, bad=bad: A.SubLayer(**{"d_model": 4, n: bad}))  # fmt: skip
refuses("SubLayer", "x", ValueError, "got (2, 3, 5)",
        lambda: A.SubLayer(4)(torch.zeros(2, 3, 5), abs))  # fmt: skip
for name, block in (("EncoderBlock", A.EncoderBlock(4, 2)), ("DecoderBlock", A.DecoderBlock(4, 2))):
    more = () if name == "EncoderBlock" else (X,)
    refuses(name, "x", ValueError, "got (3, 5)",
            lambda b=block, m=more: b(torch.zeros(3, 5), *m))  # fmt: skip
    refuses(name, "mask", TypeError, "float32", lambda b=block, m=more: b(X, *m, MASK.float()))
    kind = type(block)
    refuses(name, "num_heads", ValueError, "divide", lambda k=kind: k(8, 3))
    refuses(name, "d_ff", ValueError, "0", lambda k=kind: k(8, 2, 0))
    refuses(name, "dropout", ValueError, "2", lambda k=kind: k(8, 2, dropout=2))
    refuses(name, "activation", ValueError, "'x'", lambda k=kind: k(8, 2, activation="x"))
    refuses(name, "d_model", ValueError, "0", lambda k=kind: k(0, 2))
    refuses(name, "norm_first", TypeError, "got a int", lambda k=kind: k(8, 2, norm_first=1))
    refuses(name, "num_kv_heads", ValueError, "divide", lambda k=kind: k(8, 4, num_kv_heads=3))
    refuses(name, "rotary_base", TypeError, "'x'", lambda k=kind: k(8, 2, rotary_base="x"))
    for argument, bad, error, words in (
        ("bias", MASK, TypeError, "torch.bool"), ("is_causal", 1, TypeError, "got a int"),
        ("cache", {}, TypeError, "got dict"), ("cache", cache_of(3), ValueError, "their batch"),
        ("head_mask", torch.ones(3), ValueError, "num_heads = 2 factors"),
    ):  # fmt: skip
        refuses(name, argument, error, words,
                lambda b=block, m=more, a=argument, x=bad: b(X, *m, **{a: x}))  # fmt: skip
DECODER = A.DecoderBlock(4, 2)
refuses("DecoderBlock", "context_mask", TypeError, "float32",
        lambda: DECODER(X, X, context_mask=MASK.float()))  # fmt: skip
refuses("DecoderBlock", "cross_head_mask", ValueError, "num_heads = 2 factors",
        lambda: DECODER(X, X, cross_head_mask=torch.ones(3)))  # fmt: skip
refuses("DecoderBlock", "context", ValueError, "got (2, 3, 5)",
        lambda: A.DecoderBlock(4, 2)(X, torch.zeros(2, 3, 5)))  # fmt: skip
refuses("Embedding", "vocab_size", ValueError, "0", lambda: A.Embedding(0, 4, 2))
refuses("Embedding", "d_model", ValueError, "even", lambda: A.Embedding(9, 5, 2))
refuses("Embedding", "num_heads", ValueError, "0", lambda: A.Embedding(9, 4, 0))
refuses("Embedding", "max_len", ValueError, "0", lambda: A.Embedding(9, 4, 2, max_len=0))
refuses("Embedding", "positions", ValueError, "'sinus'",
        lambda: A.Embedding(9, 4, 2, positions="sinus"))  # fmt: skip
refuses("Embedding", "dropout", ValueError, "1", lambda: A.Embedding(9, 4, 2, dropout=1))
for name in ("scaled", "tied", "bidirectional"):
    refuses("Embedding", name, TypeError, "True or False; got a str",
            lambda n=name: A.Embedding(9, 4, 2, **{n: "no"}))  # fmt: skip
EMBEDDING = A.Embedding(5, 4, 2, positions="alibi")
refuses("Embedding", "ids", TypeError, "float32", lambda: EMBEDDING(X))
refuses("Embedding", "start", ValueError, "at least 0; got -1", lambda: EMBEDDING(IDS, -1))
refuses("Embedding.bias", "n_q", ValueError, "at least 1", lambda: EMBEDDING.bias(0, 1))
refuses("Embedding.bias", "n_k", ValueError, "at least 1", lambda: EMBEDDING.bias(1, 0))
refuses("Embedding.logits", "x", ValueError, "got (2, 3, 1)", lambda: EMBEDDING.logits(X[..., :1]))
for name, kind in (("Encoder", A.Encoder), ("LanguageModel", A.LanguageModel),
                   ("EncoderDecoder", A.EncoderDecoder)):  # fmt: skip
    refuses(name, "num_layers", ValueError, "0", lambda k=kind: k(9, 4, 2, 0))
    refuses(name, "vocab_size", ValueError, "0", lambda k=kind: k(0, 4, 2, 1))
    refuses(name, "num_heads", ValueError, "divide d_model", lambda k=kind: k(9, 4, 3, 1))
    refuses(name, "positions", ValueError, "one of",
            lambda k=kind: k(9, 4, 2, 1, positions="x"))  # fmt: skip
    for argument, bad, error, words in (
        ("d_model", 5, ValueError, "even"), ("d_ff", 0, ValueError, "at least 1"),
        ("max_len", 0, ValueError, "at least 1"), ("norm_first", 0, TypeError, "got a int"),
        ("dropout", 1, ValueError, "less than 1"), ("activation", [], ValueError, "one of"),
        ("num_kv_heads", 3, ValueError, "divide"), ("scaled", 0, TypeError, "got a int"),
        ("tied", 0, TypeError, "got a int"), ("is_causal", 0, TypeError, "got a int"),
        ("rotary_base", 1.0, ValueError, "greater than 1"),
    ):  # fmt: skip
        options = dict(vocab_size=9, d_model=4, num_heads=2, num_layers=1)
        refuses(name, argument, error, words,
                lambda k=kind, o={**options, argument: bad}: k(**o))  # fmt: skip
ENCODER = A.Encoder(5, 4, 2, 1)
refuses("Encoder", "ids", TypeError, "float32", lambda: ENCODER(X))
refuses("Encoder", "mask", TypeError, "int64", lambda: ENCODER(IDS, IDS))
refuses("Encoder", "head_mask", ValueError, "(1, 2); got list", lambda: ENCODER(
    IDS, head_mask=[1, 1]))  # fmt: skip
refuses("Encoder", "caches", ValueError, "need a causal model", lambda: ENCODER(
    IDS, caches=[A.KVCache()]))  # fmt: skip
refuses("LanguageModel", "is_causal", TypeError, "got a int",
        lambda: A.LanguageModel(9, 4, 2, 1, is_causal=1))  # fmt: skip
TWO, LONGER = A.LanguageModel(5, 4, 2, 2), cache_of(2)
refuses("LanguageModel", "caches", ValueError, "equally many tokens; got [1, 0]",
        lambda: TWO(IDS, caches=[LONGER, A.KVCache()]))  # fmt: skip
for bad in ([None], A.KVCache(), 3):
    refuses("LanguageModel", "caches", TypeError, "a list of KVCache; got",
            lambda bad=bad: MODEL(IDS, caches=bad))  # fmt: skip
refuses("LanguageModel.generate", "generator", TypeError, "torch.Generator; got int",
        lambda: MODEL.generate(IDS, 1, generator=3))  # fmt: skip
refuses("LanguageModel", "ids", TypeError, "integer tensor; got torch.float32", lambda: MODEL(X))
refuses("LanguageModel", "ids", TypeError, "list", lambda: MODEL([[1]]))
refuses("LanguageModel", "ids", ValueError, "(B, n) with n >= 1; got (3,)", lambda: MODEL(IDS[0]))
refuses("LanguageModel", "ids", ValueError, "got (2, 0)", lambda: MODEL(IDS[:, :0]))
refuses("LanguageModel", "ids", ValueError, "from 0 to 4; got 5 to 5", lambda: MODEL(IDS + 5))
refuses("LanguageModel", "ids", ValueError, "from 0 to 4; got -1", lambda: MODEL(IDS - 1))
refuses("LanguageModel", "ids", ValueError, "on cpu", lambda: MODEL(IDS.to("meta")))
refuses("LanguageModel", "mask", TypeError, "int64", lambda: MODEL(IDS, IDS))
refuses("LanguageModel", "head_mask", ValueError, "(num_layers, num_heads) = (1, 2); got (2,)",
        lambda: MODEL(IDS, head_mask=torch.ones(2)))  # fmt: skip
refuses("LanguageModel", "caches", ValueError, "one per layer, 1; got 2",
        lambda: MODEL(IDS, caches=[A.KVCache(), A.KVCache()]))  # fmt: skip
refuses(
    "LanguageModel.generate", "steps", ValueError, "at least 0", lambda: MODEL.generate(IDS, -1)
)
refuses("LanguageModel.generate", "ids", TypeError, "float32", lambda: MODEL.generate(X, 1))
refuses("LanguageModel.generate", "temperature", ValueError, "0", lambda: MODEL.generate(IDS, 1, 0))
refuses("LanguageModel.generate", "top_k", ValueError, "0", lambda: MODEL.generate(IDS, 1, top_k=0))
refuses("LanguageModel.generate", "top_p", ValueError, "0", lambda: MODEL.generate(IDS, 1, top_p=0))
refuses("EncoderDecoder", "source", ValueError, "from 0 to 4", lambda: PAIR(IDS + 5, IDS))
refuses("EncoderDecoder", "target", ValueError, "from 0 to 4", lambda: PAIR(IDS, IDS + 5))
refuses("EncoderDecoder", "source and target", ValueError, "share their batch",
        lambda: PAIR(IDS, IDS[:1]))  # fmt: skip
refuses("EncoderDecoder", "source_mask", TypeError, "int64", lambda: PAIR(IDS, IDS, IDS))
for bad, words in ((torch.ones(1, 2), "a dict; got torch.float32"), ([1], "a dict; got list")):
    refuses("EncoderDecoder", "head_mask", TypeError, words,
            lambda bad=bad: PAIR(IDS, IDS, head_mask=bad))  # fmt: skip
refuses("EncoderDecoder.generate", "source", TypeError, "float32", lambda: PAIR.generate(X, 1, 1))
refuses("EncoderDecoder.generate", "source_mask", TypeError, "int64",
        lambda: PAIR.generate(IDS, 1, 1, IDS))  # fmt: skip
refuses("EncoderDecoder", "head_mask", ValueError, "['heads']",
        lambda: PAIR(IDS, IDS, head_mask={"heads": 1}))  # fmt: skip
refuses("EncoderDecoder", "head_mask", ValueError, "got (3,)",
        lambda: PAIR(IDS, IDS, head_mask={"cross": torch.ones(3)}))  # fmt: skip
refuses("EncoderDecoder.generate", "steps", ValueError, "-1", lambda: PAIR.generate(IDS, -1, 1))
refuses("EncoderDecoder.generate", "start", ValueError, "from 0 to 4; got 9",
        lambda: PAIR.generate(IDS, 1, 9))  # fmt: skip


# training, data
ONE = torch.ones(1, 1)


def run(model=None, batches=(ONE,), loss=lambda m, x: m(x).sum(), **options):
    model = nn.Linear(1, 1) if model is None else model
    return A.train(model, batches, loss, **{"steps": 1, "progress": False, **options})


refuses("train", "model", ValueError, "parameters to train; got none",
        lambda: run(nn.Identity()))  # fmt: skip
refuses("train", "model", TypeError, "an nn.Module; got str", lambda: run("x"))
refuses("train", "batches", ValueError, "0 came", lambda: run(batches=[]))
refuses("train", "loss_fn", TypeError, "a single number; got (1, 1)",
        lambda: run(loss=lambda m, x: m(x)))  # fmt: skip
refuses("train", "batches", TypeError, "a list or a generator; got int", lambda: run(batches=5))
refuses("train", "loss_fn", TypeError, "(model, batch); got NoneType", lambda: run(loss=None))
refuses("train", "steps", ValueError, "at least 1", lambda: run(steps=0))
refuses("train", "warmup", ValueError, "at least 0", lambda: run(warmup=-1))
for name in ("lr", "clip"):
    for bad in (0, -1.0, math.nan):
        refuses("train", name, ValueError, str(bad), lambda n=name, b=bad: run(**{n: b}))
    refuses("train", name, TypeError, "'x'", lambda n=name: run(**{n: "x"}))
refuses("next_token_loss", "ids", ValueError, "(B, n + 1)",
        lambda: A.next_token_loss(MODEL, IDS[:, :1]))  # fmt: skip
refuses("next_token_loss", "ids", TypeError, "float32", lambda: A.next_token_loss(MODEL, X))
refuses("translation_loss", "source", TypeError, "float32",
        lambda: A.translation_loss(PAIR, X, IDS))  # fmt: skip
refuses("translation_loss", "target", ValueError, "(B, n + 1)",
        lambda: A.translation_loss(PAIR, IDS, IDS[:, :1]))  # fmt: skip
refuses("batches", "batch_size", ValueError, "at least 1", lambda: A.batches(X, batch_size=0))
refuses("batches", "tensors", ValueError, "got [2]", lambda: A.batches(X, batch_size=3))
refuses("batches", "tensors", ValueError, "got [2, 3]", lambda: A.batches(X, X[0], batch_size=1))
refuses("batches", "tensors", ValueError, "got []", lambda: A.batches(batch_size=1))
refuses("Vocabulary", "the vocabulary", KeyError, "'z'", lambda: A.Vocabulary(["a"])["z"])
refuses("Vocabulary", "words", TypeError, "a list of words; got 'a b'",
        lambda: A.Vocabulary("a b"))  # fmt: skip
refuses("Vocabulary.decode", "ids", ValueError, "from 0 to 3; got 9",
        lambda: A.Vocabulary(["a"]).decode([9]))  # fmt: skip
refuses("Vocabulary.encode_batch", "sentences", ValueError, "at least one", lambda: A.Vocabulary(
    ["a"]).encode_batch([]))  # fmt: skip
VOCABULARY = A.Vocabulary(["a"])
refuses("Vocabulary", "words", TypeError, "a list of words; got 5", lambda: A.Vocabulary(5))
refuses("Vocabulary", "the vocabulary", KeyError, "['a']", lambda: VOCABULARY[["a"]])
refuses("Vocabulary.encode", "text", TypeError, "got 5", lambda: VOCABULARY.encode(5))
refuses("Vocabulary.decode", "ids", ValueError, "got (2, 3)", lambda: VOCABULARY.decode(IDS))
refuses("Vocabulary.decode", "ids", ValueError, "got NoneType", lambda: VOCABULARY.decode(None))
for bad, words in ((torch.ones(2), "1.0"), ([[1]], "[1]"), ("ab", "'a'")):
    refuses("Vocabulary.decode", "ids", TypeError, f"an integer; got {words}",
            lambda bad=bad: VOCABULARY.decode(bad))  # fmt: skip
refuses("Vocabulary.decode", "ids", ValueError, "got -1", lambda: VOCABULARY.decode([-1]))
for bad in ("a a", 5):
    refuses("Vocabulary.encode_batch", "sentences", TypeError, f"a list of sentences; got {bad!r}",
            lambda bad=bad: VOCABULARY.encode_batch(bad))  # fmt: skip
for name in ("start", "end"):
    refuses("Vocabulary.encode_batch", name, TypeError, "got a int",
            lambda n=name: VOCABULARY.encode_batch(["a"], **{n: 1}))  # fmt: skip
for bad in ([1, 2, 3], torch.tensor(1)):
    refuses("batches", "tensors", TypeError, f"got {bad!r}",
            lambda bad=bad: A.batches(bad, batch_size=2))  # fmt: skip
refuses("pronoun_task", "held_out", TypeError, "a number; got 'a'", lambda: A.pronoun_task("a"))
for name, run_seeded in (
    ("train", lambda seed: run(seed=seed)),
    ("batches", lambda seed: A.batches(X, batch_size=1, seed=seed)),
    ("PronounTask.batches", lambda seed: A.pronoun_task().batches(seed=seed)),
    ("pronoun_task", lambda seed: A.pronoun_task(seed=seed)),
    ("weather_corpus", lambda seed: A.weather_corpus(seed=seed)),
    ("reversal_pairs", lambda seed: A.reversal_pairs(1, seed=seed)),
    ("translation_pairs", lambda seed: A.translation_pairs(1, seed=seed)),
):
    refuses(name, "seed", TypeError, "an integer; got 'a'", lambda f=run_seeded: f("a"))
    refuses(name, "seed", ValueError, "at least 0; got -1", lambda f=run_seeded: f(-1))
refuses("PronounTask.batches", "batch_size", ValueError, "0",
        lambda: A.pronoun_task().batches(0))  # fmt: skip
for name, loss in (
    ("next_token_loss", lambda pad: A.next_token_loss(MODEL, IDS, pad)),
    ("translation_loss", lambda pad: A.translation_loss(PAIR, IDS, IDS, pad)),
):
    refuses(name, "pad", TypeError, "an integer; got 'x'", lambda loss=loss: loss("x"))
for bad in (0, 1, -0.5, math.nan):
    refuses("pronoun_task", "held_out", ValueError, str(bad), lambda b=bad: A.pronoun_task(b))
refuses("weather_corpus", "held_out", ValueError, "0", lambda: A.weather_corpus(0))
refuses("weather_corpus", "held_out", ValueError, "less than 486", lambda: A.weather_corpus(486))
for name in ("size", "length", "symbols"):
    refuses("reversal_pairs", name, ValueError, "at least 1; got 0",
            lambda n=name: A.reversal_pairs(**{"size": 1, n: 0}))  # fmt: skip
refuses("reversal_pairs", "symbols", ValueError, "26", lambda: A.reversal_pairs(1, symbols=27))
refuses("translation_pairs", "size", ValueError, "0", lambda: A.translation_pairs(0))


SAID_AS = {  # the layer inside refuses it by the name it has there
    ("DecoderBlock", "cross_head_mask"): "head_mask",
    ("MultiHeadAttention", "rotary_base"): "base",
    ("EncoderBlock", "rotary_base"): "base",
    ("DecoderBlock", "rotary_base"): "base",
    ("Encoder", "rotary_base"): "base",
    ("LanguageModel", "rotary_base"): "base",
    ("EncoderDecoder", "rotary_base"): "base",
}


@pytest.mark.parametrize("function,argument,error,words,call", CASES)
def test_a_wrong_argument_is_refused_by_name_in_a_sentence(function, argument, error, words, call):
    with pytest.raises(error) as caught:
        call()
    sentence = str(caught.value).strip('"') if error is KeyError else str(caught.value)
    argument = SAID_AS.get((function, argument), argument)
    assert argument in sentence and words in sentence, sentence
    assert type(caught.value) is error
    assert "site-packages" not in str(caught.traceback[-1].path), "PyTorch refused, not the book"


def test_no_public_function_is_forgotten():
    tried = {case.values[0] for case in CASES}
    without_arguments = {"device", "describe_device", "weather_sentences", "KVCache", "History"}
    passed_on = {"BlockConfig", "ModelConfig"}  # to what is made from them
    made_elsewhere = {"PronounTask", "POSITIONS"}  # by pronoun_task; a tuple
    assert set(A.__all__) - tried == without_arguments | made_elsewhere | passed_on


def public_callables():
    """(name, function) for every function, __init__ and method; forward goes by its class."""
    for name in A.__all__:
        thing = getattr(A, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            for method, function in vars(thing).items():
                function = getattr(function, "__func__", function)  # of a class method
                if (
                    not inspect.isfunction(function)
                    or dataclasses.is_dataclass(thing)
                    and (method.startswith("_"))
                ):
                    continue
                if method in ("__init__", "forward", "__getitem__"):
                    yield name, function
                elif not method.startswith("_"):
                    yield f"{name}.{method}", function


def test_no_argument_is_forgotten():
    free = {
        "device",  # PyTorch refuses it, by name
        "progress", "need_weights", "return_weights",  # asked for their truth alone
        "self", "cls", "args", "kwargs", "options",  # passed on
    }  # fmt: skip
    called = {  # functions, and what they take: the caller's own
        ("next_token_loss", "model"), ("translation_loss", "model"), ("PronounTask.loss", "model"),
        ("PronounTask.loss", "batch"), ("PronounTask.accuracy", "model"),
    }  # fmt: skip
    called.add(("SubLayer", "layer"))
    called.add(("Vocabulary", "word"))  # the sentence says the vocabulary
    tried = {(case.values[0], case.values[1]) for case in CASES} | called
    seen = set()
    for name, function in public_callables():
        wanted = set(inspect.signature(function).parameters) - free
        seen |= {(name, argument) for argument in wanted}
        missing = {argument for argument in wanted if (name, argument) not in tried}
        assert not missing, f"{name}: no case for {missing}"
    assert {
        ("MultiHeadAttention", "cache"),
        ("Encoder", "tied"),
        ("LanguageModel.generate", "generator"),
    } <= seen


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

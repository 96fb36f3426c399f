"""Checks of chapter 7: parts of a block, a network by hand, teacher forcing, top-p, counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention.models import LanguageModel, next_token_probabilities

from ._base import (
    NotYet,
    call,
    close,
    diagnose,
    draw,
    no_nan,
    passed,
    sized,
    want_tensor,
    want_whole,
    without,
)

__all__ = [
    "exactly_one", "layer_norm", "parameters", "pre_norm_block", "teacher_forcing", "top_p",
]  # fmt: skip


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layer_norm(function: Callable[..., Any]) -> None:
    """Check my_layer_norm(x, gain, bias, eps) against nn.functional.layer_norm."""
    one, two = sized((2, 5, 8), (4, 6, 3))
    cases = [
        (torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.ones(4), torch.zeros(4)),
        (3 * _random(*one) + 1, _random(one[-1], seed=1), _random(one[-1], seed=2)),
        (3 * _random(*two, seed=5) - 2, _random(two[-1], seed=3), _random(two[-1], seed=4)),
    ]
    for x, gain, bias in cases:
        d = x.shape[-1]
        with without(F.layer_norm, torch.layer_norm, torch.native_layer_norm):
            result = call(function, x, gain, bias)
        result = want_tensor(result, tuple(x.shape))
        mean = x.mean(-1, keepdim=True)
        variance = x.var(-1, keepdim=True, unbiased=False)
        unbiased = x.var(-1, keepdim=True)

        def finish(y: Tensor, gain: Tensor = gain, bias: Tensor = bias) -> Tensor:
            return gain * y + bias

        def over(dim: Any, x: Tensor = x) -> Tensor:
            m, v = x.mean(dim, keepdim=True), x.var(dim, keepdim=True, unbiased=False)
            return (x - m) / torch.sqrt(v + 1e-5)

        suspects = {
            "the variance divides by d - 1; the norm divides by d": finish(
                (x - mean) / torch.sqrt(unbiased + 1e-5)
            ),
            "you divided by the variance; divide by its root, the standard deviation": finish(
                (x - mean) / (variance + 1e-5)
            ),
            "the mean is not subtracted before dividing": finish(x / torch.sqrt(variance + 1e-5)),
            "the mean is subtracted, but nothing is divided by the standard deviation": finish(
                x - mean
            ),
            "this is RMSNorm: the mean must be subtracted first, in the variance too": finish(
                x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-5)
            ),
            "the gain and the bias are not used": over(-1),
            "the gain multiplies the bias too; multiply first, then add": gain * (over(-1) + bias),
            "you normalised over the tokens; normalise over the last dimension, the features": (
                finish(over(-2))
            ),
            "you normalised over the whole tensor; each token has its own mean and variance": (
                finish(over(tuple(range(x.ndim))))
            ),
        }
        diagnose(
            result, F.layer_norm(x, (d,), gain, bias, 1e-5), suspects,
            f"the result is not gain (x - mean) / sqrt(variance + eps) + bias at shape "
            f"{tuple(x.shape)}; print the mean and the variance of each token of your result",
        )  # fmt: skip
    x = torch.full((1, 2, 4), 7.0)
    result = call(function, x, torch.ones(4), torch.zeros(4))
    what = "the result for a token of equal numbers"
    no_nan(want_tensor(result, (1, 2, 4), what), what)
    x = 0.01 * _random(2, 3, 4, seed=6)
    right = F.layer_norm(x, (4,), eps=0.1)
    if not close(call(function, x, torch.ones(4), torch.zeros(4), 0.1), right):
        raise NotYet("eps belongs inside the root, added to the variance; try eps = 0.1")
    passed("each token is centred, scaled to variance 1, then stretched and moved")


def pre_norm_block(function: Callable[..., Any]) -> None:
    """Check my_block(x, attend, feed_forward, norm_1, norm_2) with four unlike functions."""
    batch, n, d = sized((2, 3, 4))[0]
    x = _random(batch, n, d)
    w = [_random(d, d, seed=s) for s in (1, 2)]
    norms = [lambda t: F.layer_norm(t, (d,)), lambda t: 2 * F.layer_norm(t, (d,)) + 1]
    calls: list[str] = []

    def attend(t: Tensor) -> Tensor:
        calls.append("attend")
        return torch.tanh(t @ w[0]).cumsum(1)

    def feed(t: Tensor) -> Tensor:
        calls.append("feed_forward")
        return torch.tanh(t @ w[1])

    n1, n2 = norms
    result = want_tensor(call(function, x, attend, feed, n1, n2), (batch, n, d))
    if calls.count("attend") != 1 or calls.count("feed_forward") != 1:
        raise NotYet(
            "attend and feed_forward are used once each in a block; "
            f"yours called them in this order: {', '.join(calls) or 'never'}"
        )
    middle = x + attend(n1(x))
    right = middle + feed(n2(middle))
    post = n1(x + attend(x))
    bare, swapped, swapped_first = n1(x), x + feed(n2(x)), x + feed(n1(x))
    diagnose(
        result, right,
        {
            "this is the post-norm order: the norms stand after the sums": n2(post + feed(post)),
            "the residual paths are missing: add the input of each sub-layer to its result": feed(
                n2(attend(n1(x)))
            ),
            "the first residual path is missing: add x to what attend returns": attend(n1(x))
            + feed(n2(attend(n1(x)))),
            "the second residual path is missing: add the state after the first sum": feed(
                n2(middle)
            ),
            "the residual path adds the normalised input; add x as it was before the norm": (
                lambda m: n2(m) + feed(n2(m))
            )(bare + attend(bare)),
            "the second sum adds x again; add the state after the first sum": x + feed(n2(middle)),
            "both sub-layers read x; the feed-forward network must read the state after the "
            "first sum": x + attend(n1(x)) + feed(n2(x)),
            "no norm is used": (lambda m: m + feed(m))(x + attend(x)),
            "norm_1 is used twice; the second sub-layer has a norm of its own, norm_2": middle
            + feed(n1(middle)),
            "the two norms are exchanged: norm_1 goes with attend": (
                lambda m: m + feed(n1(m))
            )(x + attend(n2(x))),
            "the order is feed-forward first; attention comes first": swapped
            + attend(n1(swapped)),
            "the feed-forward network comes first; attention comes first": swapped_first
            + attend(n2(swapped_first)),
            "the second norm is missing: feed_forward reads norm_2 of the state": middle
            + feed(middle),
            "the norms stand on the sub-layers' outputs; put them on their inputs": (
                lambda m: m + n2(feed(m))
            )(x + n1(attend(x))),
        },
        "the result is not x + attend(norm_1(x)), and then the same with feed_forward and norm_2; "
        "follow the right-hand column of the figure with your finger",
    )  # fmt: skip
    passed("the norms stand on the way in, and the residual path is free")


def exactly_one(function: Callable[..., Any]) -> None:
    """Check my_network(): W_1 (3, f), b_1 (f,), W_2 (f, 1), on all eight inputs."""
    result = call(function)
    if not isinstance(result, tuple | list) or len(result) != 3:
        raise NotYet("return three tensors: (W_1, b_1, W_2)")
    if not all(isinstance(x, Tensor) for x in result):
        raise NotYet("W_1, b_1 and W_2 must be tensors")
    if any(x.is_complex() for x in result):
        raise NotYet("W_1, b_1 and W_2 must be real; got complex numbers")
    w_1, b_1, w_2 = (x.detach().double() for x in result)
    f = b_1.numel()
    shapes = [tuple(x.shape) for x in (w_1, b_1, w_2)]
    if shapes != [(3, f), (f,), (f, 1)]:
        raise NotYet(f"the shapes must be (3, f), (f,) and (f, 1); got {shapes}")
    if f > 4:
        raise NotYet(f"f is at most 4: three questions are enough; got {f}")
    bits = [torch.tensor([0.0, 1.0], dtype=torch.float64)] * 3
    inputs = torch.cartesian_prod(*bits)  # (8, 3)
    total = inputs.sum(-1)
    out = ((inputs @ w_1 + b_1).clamp(min=0) @ w_2)[:, 0]
    right = (total == 1).double()
    suspects = {
        "the sign is wrong: the answers in W_2 are negative": -right,
        "this says whether one or more are on; two or three must give 0": (total >= 1).double(),
        "three on gives 1 as well: this is the parity, so a third question is missing": total % 2,
        "this counts how many are on; nothing is taken back when the sum passes 1": total,
        "this says yes to exactly two": (total == 2).double(),
        "this says no where it should say yes": 1 - right,
        "the output is 0 for all inputs; does any question ever get a yes?": torch.zeros(8),
        "with three on, the answer is not taken back far enough, or too far": (
            torch.where(total == 3, out, right)
        ),
    }
    example = int((out - right).abs().argmax())
    named = [int(x) for x in inputs[example].tolist()]
    diagnose(
        out, right, {k: v.double() for k, v in suspects.items()},
        f"for the input {named} the output must be {right[example]:g}; got {out[example]:g}",
    )  # fmt: skip
    passed("the output is 1 where exactly one of the three is on, and 0 for the other five")


def teacher_forcing(function: Callable[..., Any]) -> None:
    """Check my_shift(target, start, end): decoder input and wanted output."""
    cases = [
        (torch.tensor([[3, 4, 5]]), 1, 2),
        (torch.randint(10, 20, sized((4, 6))[0], generator=torch.Generator().manual_seed(0)), 7, 9),
    ]
    for target, start, end in cases:
        size, n = target.shape
        result = call(function, target, start, end)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise NotYet("return two tensors: (decoder input, wanted output)")
        first, last = torch.full((size, 1), start), torch.full((size, 1), end)
        given, wanted = torch.cat([first, target], 1), torch.cat([target, last], 1)
        both = torch.cat([first, target, last], 1)
        a, b = result
        for x, what in ((a, "the decoder input"), (b, "the wanted output")):
            if not isinstance(x, Tensor):
                raise NotYet(f"{what} must be a tensor; got {type(x).__name__}")
            if close(x, both):
                raise NotYet(
                    f"{what} has both marks; the input has only the start, the output only the end"
                )
            if close(x, target):
                raise NotYet(f"{what} is the bare target; a mark must be added to it")
            if x.dtype != torch.int64:
                raise NotYet(f"{what} must hold ids, torch.int64; got {x.dtype}")
            want_tensor(x, (size, n + 1), what)
        if close(a, wanted) and close(b, given):
            raise NotYet("the two are exchanged: the input begins with start")
        if close(a, b):
            raise NotYet("input and output are equal: the model would see each answer")
        if close(a, torch.cat([last, target], 1)):
            raise NotYet("the input begins with the end mark; it begins with start")
        if close(b, torch.cat([target, first], 1)):
            raise NotYet("the output ends with the start mark; it ends with end")
        if close(a, torch.cat([target, first], 1)) or close(a, torch.cat([target, last], 1)):
            raise NotYet("the input must be shifted right: start first, then the target")
        if close(b, torch.cat([last, target], 1)) or close(b, torch.cat([first, target], 1)):
            raise NotYet("the output is not shifted: the target first, then the end mark")
        if close(a, torch.cat([first, target.flip(1)], 1)):
            raise NotYet("the target is reversed; keep its order")
        if not close(a, given):
            raise NotYet("the decoder input is not the start mark followed by the target")
        if not close(b, wanted):
            raise NotYet("the wanted output is not the target followed by the end mark")
    passed("at every place the wanted token is the next input")


def top_p(function: Callable[..., Any]) -> None:
    """Check my_top_p(probabilities, p) against the package's nucleus."""
    cases = [
        (torch.tensor([0.08, 0.17, 0.4, 0.25, 0.1]), 0.55),
        (torch.tensor([0.5, 0.3, 0.15, 0.05]), 0.9),
        (torch.tensor([0.05, 0.15, 0.5, 0.3]), 0.75),
        (torch.tensor([0.1, 0.6, 0.3]), 0.4),
        (torch.softmax(2 * _random(*sized(12)), 0), 0.8),
        (torch.tensor([0.125, 0.5, 0.125, 0.25]), 0.75),  # two tokens reach p exactly
        (torch.tensor([0.25, 0.25, 0.25, 0.25]), 0.5),  # any two of four equals
        (torch.tensor([0.125, 0.5, 0.125, 0.25]), 0.8),  # one of two equals
    ]
    for probabilities, p in cases:
        with without(next_token_probabilities):
            result = call(function, probabilities, p)
        result = want_tensor(result, tuple(probabilities.shape))
        ranked, order = probabilities.sort(descending=True)
        sums = ranked.cumsum(0)

        def back(keep: Tensor, ranked: Tensor = ranked, order: Tensor = order) -> Tensor:
            return torch.zeros_like(ranked).scatter(0, order, ranked * keep)

        def rescale(x: Tensor) -> Tensor:
            return x / x.sum() if x.sum() > 0 else x

        keep = sums - ranked < p
        right = rescale(back(keep))
        if close(result.sort().values, right.sort().values) and close(
            result[result > 0], rescale(probabilities * (result > 0))[result > 0]
        ):
            continue  # of tokens equally likely, any may stay
        unsorted = probabilities.cumsum(0) - probabilities < p
        lowest = probabilities.sort()
        from_below = torch.zeros_like(ranked).scatter(
            0, lowest.indices, lowest.values * (lowest.values.cumsum(0) - lowest.values < p)
        )
        if p == 0.4 and not bool(result.any()):
            raise NotYet(
                "nothing is left when the likeliest token alone exceeds p; it must always stay"
            )
        diagnose(
            result, right,
            {
                "what is left does not sum to 1: divide by its sum": back(keep),
                "the token that crosses p is dropped; the kept ones must reach p": rescale(
                    back(sums <= p)
                ),
                "the token that crosses p is dropped, and what is left does not sum to 1": back(
                    sums <= p
                ),
                "one token too many is kept: stop as soon as the sum reaches p": rescale(
                    back(torch.cat([keep.new_ones(1), keep[:-1]]))
                ),
                "the tokens are taken in the order given; take the likeliest first": rescale(
                    probabilities * unsorted
                ),
                "the least likely tokens are taken first": rescale(from_below),
                "the result is sorted; put each probability back where its token stands": rescale(
                    ranked * keep
                ),
                "you kept every token with a probability of at least p; add the probabilities up": (
                    rescale(probabilities * (probabilities >= p))
                ),
                "you kept the tokens of probability at least 1 - p; add the probabilities up": (
                    rescale(probabilities * (probabilities >= 1 - p))
                ),
                "nothing was cut off": probabilities,
            },
            f"the result for {[round(x, 3) for x in probabilities.tolist()]} and p = {p} is not "
            "the fewest likeliest tokens that reach p, rescaled",
        )  # fmt: skip
    passed("the fewest likeliest tokens that reach p, rescaled, in their places")


def parameters(function: Callable[..., Any]) -> None:
    """Check my_count(vocab_size, d_model, num_layers, d_ff, max_len) against the model itself."""
    cases = [(50257, 768, 12, 3072, 1024), (35, 32, 2, 128, 16), (100, 8, 3, 20, 7)]
    cases += draw(1, 3, (20, 90), (3, 12), (2, 5), (5, 40), (3, 30))
    for vocab_size, d, layers, d_ff, max_len in cases:
        result = want_whole(
            call(function, vocab_size, d, layers, d_ff, max_len), "return a number, a whole one"
        )
        with torch.device("meta"):
            model = LanguageModel(
                vocab_size, d, 1, layers, d_ff, positions="learned", max_len=max_len
            )
        right = sum(p.numel() for p in model.parameters())
        if result == right:
            continue
        block = sum(p.numel() for p in nn.ModuleList([model.layers[0]]).parameters())
        suspects = {
            "the output layer shares the embedding table; count it once": vocab_size * d,
            "the output layer shares the embedding table and has no bias": vocab_size * d
            + vocab_size,
            "the table of positions is missing": -max_len * d,
            "the embedding table is missing": -vocab_size * d,
            "the last norm is missing: pre-norm needs one more at the top": -2 * d,
            "4 d_model numbers a block are missing: the four biases of the attention, or the two "
            "norms with 2 d_model each; these are equally many": -4 * d * layers,
            "no norm is counted: two per block and one at the top": -4 * d * layers - 2 * d,
            "only one norm per block is counted; there are two": -2 * d * layers,
            "the norms have a bias as well as a gain": -2 * d * layers - d,
            "W^O is missing from the attention": -layers * (d * d + d),
            "the feed-forward network's biases are missing": -layers * (d_ff + d),
            "the biases of the linear layers are missing": -layers * (5 * d + d_ff),
            "the feed-forward network has two matrices": -layers * d * d_ff,
            "this counts a single block; there are num_layers": -(layers - 1) * block,
            "cross-attention is counted; here is none": layers * 4 * (d * d + d),
        }
        for sentence, off in suspects.items():
            if off and result == right + off:
                raise NotYet(sentence)
        wide = sum(p.numel() for p in model.parameters()) - layers * (2 * d * d_ff + d_ff)
        if d_ff != 4 * d and result == wide + layers * (8 * d * d + 4 * d):
            raise NotYet("d_ff is an argument; it need not be 4 d_model")
        raise NotYet(
            f"for {(vocab_size, d, layers, d_ff, max_len)} there are {right:,} parameters; "
            f"you counted {result:,}, which is {abs(result - right):,} "
            f"{'more' if result > right else 'fewer'}"
        )
    passed("124,439,808 parameters for GPT-2 small, and right for two other shapes")

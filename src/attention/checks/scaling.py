"""Checks for chapter 3, scaled dot-product attention."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention.functional import attention, fused_attention, softmax, softmax_jacobian

from ._base import NotYet, call, close, diagnose, passed, sized, want_number, want_tensor, without

__all__ = [
    "jacobian",
    "online_attention",
    "score_variance",
    "softmax_with_temperature",
    "sparsemax",
    "your_attention",
]

_SOFTMAX = {
    "softmax", "log_softmax", "_softmax", "softmin", "special_softmax", "special_log_softmax",
}  # fmt: skip
_ATTENTION = {"scaled_dot_product_attention", "multi_head_attention_forward"}


class _Watch(TorchFunctionMode):
    """Note the name of every torch function that runs, and what floats it gives.

    `shapes` lists the shapes of all float results in their order; `held` is the most numbers
    that were alive at once in results without a dimension of size `wide`: scores, not vectors.
    """

    def __init__(self, wide: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.shapes: list[tuple[int, ...]] = []
        self.held, self.wide = 0, wide
        self._alive: list[weakref.ref[Tensor]] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        self.names.add(name)
        result = func(*args, **(kwargs or {}))
        several = result if isinstance(result, (tuple, list)) else [result]
        for x in several if name != "__get__" else []:
            if isinstance(x, Tensor) and x.is_floating_point():
                self._note(x)
        return result

    def _note(self, x: Tensor) -> None:
        with torch._C.DisableTorchFunction():
            self.shapes.append(tuple(x.shape))
            if not set(self.wide) & set(x.shape):
                self._alive = [r for r in self._alive if r() is not None] + [weakref.ref(x)]
                live = [y for r in self._alive if (y := r()) is not None]
                memory = {y.untyped_storage()._cdata: y.numel() for y in live}
                self.held = max(self.held, x.numel(), sum(memory.values()))


@contextmanager
def _without(
    forbidden: set[str], instead: str, wide: tuple[int, ...] = ()
) -> Iterator[_Watch]:  # fmt: skip
    """Say so when an answer calls the thing it was asked to write."""
    with without(attention, fused_attention), _Watch(wide) as watch:
        yield watch
    used = sorted(watch.names & forbidden)
    if used:
        raise NotYet(f"this calls {used[0]}, which is what you were asked to write; {instead}")


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _randn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=_generator(seed))


def softmax_with_temperature(function: Callable[..., Any]) -> None:
    """Check `my_softmax(x, temperature=1.0)`, softmax along the last dimension."""
    instead = "build it from exp and a sum"
    x = torch.tensor([[2.0, 1.0, 0.0], [1.2, 0.1, 2.0]])
    for temperature in (1.0, 2.0, 0.5):
        with _without(_SOFTMAX, instead):
            got = call(function, x, temperature)
        got = want_tensor(got, (2, 3), "the weights")
        shifted = x - x.amax(-1, keepdim=True)
        diagnose(
            got,
            softmax(x, temperature),
            {
                "the columns sum to 1, the rows should: sum along the last dimension": softmax(
                    x, temperature, dim=0
                ),
                "all entries together sum to 1; each row should, by itself": softmax(
                    x.flatten(), temperature
                ).view(2, 3),
                "the temperature has no effect: divide the scores by it": softmax(x),
                "you multiply by the temperature; a high temperature must flatten the weights, "
                "so divide": softmax(x, 1 / temperature),
                "you divide the weights by the temperature, after the softmax; divide the scores, "
                "before it": softmax(x) / temperature,
                "the weights are not normalised: divide exp(x / T) by its sum": (
                    (x / temperature).exp()
                ),
                "the weights are not normalised: divide exp(x / T) by its sum over the row": (
                    (shifted / temperature).exp()
                ),
                "these are shares of the scores themselves; take exp first": x
                / x.sum(-1, keepdim=True),
            },
            f"wrong weights at temperature {temperature:g}; for the scores 2, 1, 0 at temperature "
            "1 they are 0.665, 0.245, 0.090",
        )
    default = want_tensor(call(function, x), (2, 3), "the weights without a temperature")
    diagnose(default, softmax(x), {}, "without a temperature the answer should be that for T = 1")
    for shape in sized((5,), (2, 3, 7), (4, 1)):
        x = _randn(len(shape), *shape)
        got = want_tensor(call(function, x, 0.7), shape, "the weights")
        diagnose(
            got,
            softmax(x, 0.7),
            {},
            f"wrong weights for x of shape {shape}; work along the last dimension, whatever "
            "comes before it",
        )
    for values in ([1e4, 9999.0, -1e4], [-1e4, -1e4, -1e4]):
        x = torch.tensor(values)
        for temperature in (1.0, 0.05, 20.0):
            got = call(function, x, temperature)
            if isinstance(got, Tensor) and torch.isnan(got).any():
                raise NotYet(
                    f"the scores {values} give NaN: exp overflows, or every exp is 0. Subtract "
                    "the largest score before exp; the weights do not change"
                )
            got = want_tensor(got, (3,), "the weights")
            if not close(got, softmax(x, temperature), tol=0.02):  # float32 is coarse up there
                raise NotYet(f"wrong weights for the scores {values}, temperature {temperature:g}")
    two = torch.tensor([[1e4, 0.0], [0.0, -1e4], [-1e4, -9999.0]])
    got = call(function, two, 1.0)
    if not close(got.nan_to_num() if isinstance(got, Tensor) else got, softmax(two), 0.02):
        raise NotYet(
            "wrong weights when the rows differ widely: subtract each row's own largest score, "
            "not the largest of all"
        )
    passed("softmax with a temperature, safe for large scores")


def your_attention(function: Callable[..., Any]) -> None:
    """Check `my_attention(q, k, v)`, which returns the output and the weights."""
    for shapes in sized(((3, 2), (3, 2), (3, 2)), ((3, 8), (5, 8), (5, 4)), ((2, 3, 8), (2, 5, 8),
                        (2, 5, 4)), ((2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 7))):  # fmt: skip
        q, k, v = (_randn(i + len(shapes[0]), *shape) for i, shape in enumerate(shapes))
        with _without(_ATTENTION, "write the four steps"):
            result = call(function, q, k, v)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise NotYet("return two things, the output and the weights: `return out, weights`")
        right, weights = attention(q, k, v)
        if getattr(result[0], "shape", None) == weights.shape and close(result[0], weights):
            raise NotYet(
                "the first thing returned is the weights; return out, weights, in this order"
            )
        out = want_tensor(result[0], tuple(right.shape), "out")
        given = want_tensor(result[1], tuple(weights.shape), "the weights")
        d_k, raw = q.shape[-1], q @ k.transpose(-2, -1)
        root = math.sqrt(d_k)
        suspects = {
            "the scores are not scaled: divide them by the root of d_k": softmax(raw),
            "you divided by d_k; divide by its root": softmax(raw / d_k),
            "you multiplied by the root of d_k; divide by it": softmax(raw * root),
            "you divided by the root of the number of keys; d_k is the width of q and k, their "
            "last dimension": softmax(raw / math.sqrt(k.shape[-2])),
            "you divided by the root of d_v; d_k is the width of q and k": softmax(
                raw / math.sqrt(v.shape[-1])
            ),
            "the columns sum to 1, the rows should: softmax runs along the keys, dim=-1": softmax(
                raw / root, dim=-2
            ),
            "you scaled the weights after the softmax; scale the scores, before it": softmax(raw)
            / root,
            "these are the scaled scores; the softmax is missing": raw / root,
            "these are the raw scores; scale and softmax are missing": raw,
        }
        diagnose(given, weights, suspects, "the weights are not softmax(q k^T / root of d_k)")
        swapped = {}
        if v.shape == weights.shape:
            swapped["out is v times the weights; it should be weights @ v"] = v @ weights
        if weights.shape[-1] == weights.shape[-2]:
            swapped["the weights are transposed before they meet v; out = weights @ v"] = (
                weights.transpose(-2, -1) @ v
            )
        if k.shape == v.shape:
            swapped["out averages the keys; it should average the values v"] = weights @ k
        if q.shape == v.shape:
            swapped["out averages the queries; it should average the values v"] = weights @ q
        swapped["out is the plain mean of the values; weight them"] = v.mean(
            -2, keepdim=True
        ).expand_as(right)
        diagnose(out, right, swapped, "the weights are right, but out is not weights @ v")
    passed("attention in four steps, with batches and heads in front, with d_v different from d_k")


def score_variance(function: Callable[..., Any]) -> None:
    """Check `my_score_variance(d_k, mean, variance)`, the variance of q . k."""
    drawn = [(8 + i, m, 0.5 + abs(v)) for i, (m, v) in enumerate(_randn(7, 3, 2).tolist())]
    for d_k, mean, variance in ((64, 0.0, 1.0), (64, 1.0, 1.0), (16, 0.0, 4.0), (8, 0.5, 2.0),
                                (512, -0.3, 0.25), (1, 2.0, 3.0), *drawn):  # fmt: skip
        got = want_number(call(function, d_k, mean, variance), "return one number")
        v, m = variance, mean
        right = d_k * (v * v + 2 * m * m * v)
        case = f"d_k = {d_k}, mean {m:g}, variance {v:g}"
        suspects = {
            "you returned the standard deviation; the variance is its square": math.sqrt(right),
            "the mean is missing: with a mean of 1 the answer is three times as large": d_k * v * v,
            "the product of two numbers with variance v has variance v squared when the mean is "
            "0, not v": d_k * (v + 2 * m * m * v),
            "the mean enters twice, once for q and once for k: 2 mean^2 variance": d_k
            * (v * v + m * m * v),
            "you forgot to take away the squared mean of the product: Var = E[x^2] - E[x]^2": d_k
            * (v + m * m) ** 2,
            "this is d_k times too small: it is the variance for one pair of entries, or that of "
            "the score divided by the root of d_k; the raw score adds d_k pairs": right / d_k,
            "variances of independent terms add: d_k times, not d_k squared": d_k * right,
            "squares are missing: with variance v the term is 2 mean^2 v": d_k
            * (v * v + 2 * m * m),
            "use the square of the mean, not the mean": d_k * (v * v + 2 * m * v),
        }
        if math.isclose(got, right, rel_tol=1e-6):
            continue
        for sentence, value in suspects.items():
            if math.isclose(got, value, rel_tol=1e-6, abs_tol=1e-12):
                raise NotYet(f"{sentence} (for {case})")
        raise NotYet(f"for {case} the variance is {right:g}; you returned {got:g}")
    passed("the variance of a score")


def jacobian(function: Callable[..., Any]) -> None:
    """Check `my_jacobian(scores, temperature=1.0)`, the derivative of softmax, derived by hand."""
    finished = (
        softmax_jacobian, torch.autograd.functional.jacobian, torch.func.jacrev, torch.func.jacfwd,
        torch.autograd.grad, torch.autograd.backward,
    )  # fmt: skip
    for n, temperature in sized((2, 1.0), (3, 1.0), (5, 2.0), (4, 0.5), (1, 1.0)):
        scores = _randn(n, n)
        with without(*finished):
            got = call(function, scores, temperature)
        got = want_tensor(got, (n, n), "the Jacobian")
        a = softmax(scores, temperature)
        right = softmax_jacobian(a) / temperature
        outer = a[:, None] * a[None, :]
        diagnose(
            got,
            right,
            {
                "the derivative is 1 / T times as large: the chain rule passes through "
                "scores / T": right * temperature,
                "you multiplied by T; the chain rule divides by it": right * temperature**2,
                "the sign is reversed: raising a score raises its own weight": -right,
                "the diagonal is a_j itself: subtract a_j a_m everywhere, on the diagonal too": (
                    torch.diag(a) - outer + torch.diag(a * a)
                )
                / temperature,
                "only the diagonal is there; raising one score also takes weight from the "
                "others": torch.diag(a * (1 - a)) / temperature,
                "only -a_j a_m is there; add a_j on the diagonal": -outer / temperature,
                "off the diagonal the sign is wrong: what one token gains, the others lose": (
                    torch.diag(a) + outer - 2 * torch.diag(a * a)
                )
                / temperature,
                "the temperature is not used in the weights": softmax_jacobian(softmax(scores))
                / temperature,
                "the temperature is not used at all": softmax_jacobian(softmax(scores)),
                "this is built from the scores; use the weights a = softmax(scores / T)": (
                    torch.diag(scores) - scores[:, None] * scores[None, :]
                )
                / temperature,
            },
            "not the Jacobian; each column must sum to 0, because the weights always sum to 1",
        )
    passed("the Jacobian of softmax")


def online_attention(function: Callable[..., Any]) -> None:
    """Check `my_online_attention(q, k, v, block=2)`, one query, the keys seen block by block."""
    cases = [
        (_randn(seed, d_k) * size, _randn(seed + 50, n, d_k), _randn(seed + 90, n, d_v), block)
        for seed, (n, d_k, d_v, block, size) in enumerate(
            sized((4, 2, 3, 2, 1.0), (7, 8, 4, 3, 1.0), (5, 4, 4, 1, 1.0), (3, 4, 2, 10, 1.0),
                  (9, 4, 2, 4, 100.0), (6, 2, 5, 2, 30.0))
        )
    ]  # fmt: skip
    low = torch.tensor([-300.0, 0.0]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]), _randn(8, 2, 3)
    cases += [(*low, 1), (*low, 2)]
    instead = "keep a running maximum, a running sum and a running output"
    for q, k, v, block in cases:
        (n, d_k), d_v = k.shape, v.shape[-1]
        with _without(_ATTENTION, instead):
            got = call(function, q, k, v, block)
        right = attention(q[None], k, v)[0][0]
        if isinstance(got, Tensor) and torch.isnan(got).any() and q.norm() > 20:
            raise NotYet(
                "large scores give NaN: subtract the running maximum before exp, and start it "
                "at -inf"
            )
        got = want_tensor(got, (d_v,), "the output")
        scores = k @ q / math.sqrt(d_k)
        whole = n // block * block
        parts = [slice(i, i + block) for i in range(0, n, block)]
        means = [attention(q[None], k[p], v[p])[0][0] for p in parts]
        no_rescale = _without_rescaling(scores, v, block)
        suspects = {
            "the scores are not scaled: divide them by the root of d_k": attention(
                q[None], k, v, scale=1.0
            )[0][0],
            "you divided by d_k; divide by its root": attention(q[None], k, v, scale=1 / d_k)[0][0],
            "only the last block counts: add to the running sums, do not replace them": means[-1],
            "only the first block counts": means[0],
            "you averaged the outputs of the blocks; a block with larger scores must weigh more": (
                torch.stack(means).mean(0)
            ),
            "you added the outputs of the blocks; divide by the running sum once, at the end": (
                torch.stack(means).sum(0)
            ),
            "when the maximum rises, what was summed before must shrink by "
            "exp(old maximum - new maximum)": no_rescale[0],
            "the sum is rescaled when the maximum rises, the output is not; rescale both": (
                no_rescale[1]
            ),
            "the output is rescaled when the maximum rises, the sum is not; rescale both": (
                no_rescale[2]
            ),
            "the output is not divided by the sum of the exponentials": (
                (scores - scores.max()).exp() @ v
            ),
        }
        if 0 < whole < n:
            suspects["the keys of the last, shorter block are lost"] = attention(
                q[None], k[:whole], v[:whole]
            )[0][0]
        diagnose(got, right, suspects, f"wrong output for {n} keys in blocks of {block}")
    _blockwise(function)
    passed("attention that never holds more than one block of scores")


def _blockwise(function: Callable[..., Any]) -> None:
    """Whether it holds a block of scores at a time, and a block of the size it is given."""
    instead = "keep a running maximum, a running sum and a running output"
    n, d_k, d_v = 307, 5, 7
    q, k, v = _randn(60, d_k), _randn(61, n, d_k), _randn(62, n, d_v)
    seen = []
    for block in (3, 4):
        with _without(_ATTENTION, instead, (d_k, d_v)) as watch:
            call(function, q, k, v, block)
        if watch.held >= n:
            raise NotYet(
                f"right, but all {n} scores are held at once; take {block} keys at a time and "
                f"{instead}"
            )
        seen.append(watch.shapes)
    if len(seen[0]) > n // 4 and seen[0] == seen[1]:
        raise NotYet("right, but blocks of 3 and of 4 keys take the same steps: use `block`")


def _without_rescaling(scores: Tensor, v: Tensor, block: int) -> list[Tensor]:
    """What comes out when neither, only the sum, or only the output is rescaled."""
    results = []
    for fix_sum, fix_out in ((False, False), (True, False), (False, True)):
        top, total, out = torch.tensor(-math.inf), torch.tensor(0.0), torch.zeros(v.shape[-1])
        for i in range(0, len(scores), block):
            new = torch.maximum(top, scores[i : i + block].max())
            shrink = (top - new).exp()
            e = (scores[i : i + block] - new).exp()
            total = total * (shrink if fix_sum else 1) + e.sum()
            out = out * (shrink if fix_out else 1) + e @ v[i : i + block]
            top = new
        results.append(out / total)
    return results


def sparsemax(function: Callable[..., Any]) -> None:
    """Check `my_sparsemax(z)` for one row of scores."""
    cases = [torch.tensor(z) for z in ([2.0, 1.0, 0.0], [1.2, 0.1, 2.0], [0.3, 0.3], [5.0],
                                       [0.1, 0.0, -0.1, 0.05])]  # fmt: skip
    cases += [_randn(i, n) * 0.5 for i, (n,) in enumerate(sized((6,)) * 5)]
    for z in cases:
        got = want_tensor(call(function, z), tuple(z.shape), "the weights")
        right, k = _sparsemax(z)
        shown = [round(x, 3) for x in z.tolist()]
        n = len(z)
        ranked = z.sort(descending=True).values
        tau_all = (z.sum() - 1) / n
        top = torch.zeros_like(z).scatter(0, z.argmax().view(1), 1.0)
        diagnose(
            got,
            right,
            {
                "this is softmax; sparsemax subtracts a threshold and cuts at 0": softmax(z),
                "this puts everything on the largest score, always; near scores must share": top,
                "the negative weights are not cut: take the positive part of z - tau": z
                - (ranked[:k].sum() - 1) / k,
                "the threshold is that for all scores; find how many survive first": (
                    z - tau_all
                ).clamp_min(0),
                "you subtract a fraction and do not cut: some weights are negative": z - tau_all,
                "the scores are cut at 0 and divided by their sum; subtract the threshold tau": (
                    z.clamp_min(0) / z.clamp_min(0).sum().clamp_min(1e-9)
                ),
                "the weights come out sorted; put them back in the order of z": right.sort(
                    descending=True
                ).values,
                "the weights do not sum to 1: tau = (sum of the survivors - 1) / their number": (
                    z - ranked[:k].sum() / k
                ).clamp_min(0),
            },
            f"wrong weights for z = {shown}"
            + ("" if abs(got.sum().item() - 1) < 1e-4 else "; they do not sum to 1"),
        )
    passed("sparsemax")


def _sparsemax(z: Tensor) -> tuple[Tensor, int]:
    """The projection of z (n,) onto the simplex, and how many entries survive."""
    ranked = z.sort(descending=True).values
    sizes = torch.arange(1, len(z) + 1)
    k = int((1 + sizes * ranked > ranked.cumsum(0)).sum())
    return (z - (ranked[:k].sum() - 1) / k).clamp_min(0), k

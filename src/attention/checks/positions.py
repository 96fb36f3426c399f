"""Checks of chapter 5: sinusoids, their shift, rotary turns and what they find, biases."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..positions import rotary, shift_matrix, sinusoidal_encoding
from ._base import call, close, diagnose, passed, sized, want_tensor, without

__all__ = ["looks_back", "relative_bias", "rotary_turn", "shift", "sinusoids"]


def sinusoids(function: Callable[..., Tensor]) -> None:
    """Check `function(n, d_model, base)` against `sinusoidal_encoding`."""
    for n, d, base in sized((6, 8, 10000.0), (4, 4, 100.0), (1, 2, 10000.0), (9, 16, 50.0), step=2):
        with without(sinusoidal_encoding):
            result = want_tensor(call(function, n, d, base), (n, d), "the encoding")
        p, column = torch.arange(n)[:, None].double(), torch.arange(d)
        pair = column // 2
        even = column % 2 == 0

        def table(angle: Tensor, even: Tensor = even) -> Tensor:
            return torch.where(even, angle.sin(), angle.cos())

        angle = p / base ** (2 * pair / d)
        halves = torch.cat([angle[:, 0::2].sin(), angle[:, 0::2].cos()], -1)
        diagnose(
            result,
            sinusoidal_encoding(n, d, base),
            {
                "the columns are in pairs, but sine and cosine have changed places: even columns "
                "hold the sine": table(angle, ~even),
                "all sines come first, then all cosines; here they alternate, pair by pair: sin, "
                "cos, sin, cos": halves,
                "you put the number of the column into the exponent; ℓ numbers the pairs, so "
                "columns 2ℓ and 2ℓ + 1 share one angle": table(p / base ** (2 * column / d)),
                "the two columns of a pair do not share their angle: the exponent of columns 2ℓ "
                "and 2ℓ + 1 is 2ℓ/d_model for both": table(p / base ** (column / d)),
                "the exponent is 2ℓ/d_model; you seem to use ℓ/d_model": table(
                    p / base ** (pair / d)
                ),
                "positions count from 0, so the first row is 0, 1, 0, 1, ...; yours starts at 1": (
                    table((p + 1) / base ** (2 * pair / d))
                ),
                "the base is an argument; you seem to use 10000 whatever it says": table(
                    p / 10000.0 ** (2 * pair / d)
                ),
                "the slow pairs come first; the fast pair (period 2π) belongs in columns 0 and 1": (
                    table(p / base ** (2 * (d // 2 - 1 - pair) / d))
                ),
                "the angle is multiplied by base^(2ℓ/d_model); it is divided by it, or the hands "
                "would speed up": table(p * base ** (2 * pair / d)),
            },
            f"something differs at n = {n}, d_model = {d}, base = {base:g}; print your row 1 and "
            "compare it with sin(1), cos(1), ...",
        )
    passed("your encoding agrees with the package's, for four sizes and three bases")


def shift(function: Callable[..., Tensor]) -> None:
    """Check `function(delta, d_model, base)` against `shift_matrix`."""
    for delta, d, base in sized(
        (3, 8, 10000.0), (1, 2, 10000.0), (5, 4, 100.0), (-2, 6, 20.0), keep=(0,), step=2
    ):
        with without(shift_matrix):
            result = want_tensor(call(function, delta, d, base), (d, d), "the matrix")
        right = shift_matrix(delta, d, base)
        if close(result, right):
            continue
        first = delta * torch.ones(d // 2).double()
        pe = sinusoidal_encoding(40, d, base)
        diagnose(
            result,
            right,
            {
                "your matrix turns the hands back: it takes PE[p + Δ] to PE[p]. Which entry of "
                "each 2 × 2 block carries the minus?": right.T,
                "every pair turns by the same angle; pair ℓ turns by Δ / base^(2ℓ/d_model)": (
                    _blocks(first)
                ),
                "you seem to shift by 1 whatever Δ is": shift_matrix(1, d, base),
                "the base is an argument; you seem to use 10000 whatever it says": (
                    shift_matrix(delta, d)
                ),
                "your blocks pair column ℓ with column ℓ + d/2; here 2ℓ goes with 2ℓ + 1": (
                    _halves(right)
                ),
                "this is the identity: it shifts nothing": torch.eye(d),
                "sine and cosine have changed places in your blocks": _blocks_swapped(
                    delta, d, base
                ),
            },
            "PE[p] @ U should be PE[p + Δ]: "
            + (
                "it holds at p = 10 only; did you use a particular position?"
                if delta >= 0 and close(pe[10] @ result.to(pe), pe[10 + delta], 1e-4)
                else f"it fails at p = 10, Δ = {delta}, d_model = {d}; try d_model = 4 "
                "with base = 100, where the second pair turns by Δ / 10"
            ),
        )
    passed("your matrix moves every encoding by Δ, forwards and backwards")


def rotary_turn(function: Callable[..., Tensor]) -> None:
    """Check `function(x, base)`, x (n, d), against `rotary`."""
    generator = torch.Generator().manual_seed(5)
    for n, d, base in sized((5, 8, 10000.0), (7, 4, 100.0), (3, 2, 10000.0), step=2):
        x = torch.randn(n, d, generator=generator)
        with without(rotary):
            result = want_tensor(call(function, x, base), (n, d), "the turned rows")
        right = rotary(x, base=base)
        p = torch.arange(n).double()
        ones = torch.ones(d // 2).double()
        order = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
        halves = torch.empty_like(x)
        halves[:, :] = rotary(x[:, order.argsort()], base=base)[:, order]
        one_sided = right.clone()
        one_sided[:, 1::2] = x[:, 1::2]
        diagnose(
            result,
            right,
            {
                "the rows turn backwards: the first column of a pair becomes x₀ cos − x₁ sin, the "
                "second x₀ sin + x₁ cos": rotary(x, -p, base),
                "positions count from 0, so row 0 stays as it is; yours turns it": rotary(
                    x, p + 1, base
                ),
                "you pair column ℓ with column ℓ + d/2, as some released models do; here 2ℓ goes "
                "with 2ℓ + 1": halves,
                "you add the sinusoids; a rotary encoding adds nothing, it turns": x
                + sinusoidal_encoding(n, d, base),
                "every pair turns by the same angle; pair ℓ turns by p / base^(2ℓ/d)": torch.stack(
                    [row.double() @ _blocks(-pos * ones) for pos, row in zip(p, x, strict=True)]
                ),
                "the base is an argument; you seem to use 10000 whatever it says": rotary(x),
                "only the even columns change: a turn moves both columns of a pair": one_sided,
                "nothing turns: the rows come back as they went in": x,
            },
            _lengths(result, x, f"the rows differ at n = {n}, d = {d}, base = {base:g}"),
        )
    passed("your rows turn as the package's do, and keep their lengths")


def looks_back(function: Callable[..., Tensor]) -> None:
    """Check `function(key, back, base)`: the query whose rotary score is largest `back` before it.

    key (d,); the query (d,) has the key's length, so there is one right answer.
    """
    generator = torch.Generator().manual_seed(7)
    for d, back, base in sized(
        (8, 3, 10000.0), (2, 1, 10000.0), (4, 5, 100.0), (6, 0, 50.0), keep=(1,), step=2
    ):
        key = torch.randn(d, generator=generator)
        query = want_tensor(call(function, key, back, base), (d,), "the query")

        def turned(by: float, base: float = base, key: Tensor = key) -> Tensor:
            return rotary(key[None], torch.tensor([by]), base)[0]

        right = turned(-back)
        order = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
        halves = rotary(key[order.argsort()][None], torch.tensor([-back]), base)[0][order]
        long, wanted = query.double().norm().item(), key.double().norm().item()
        diagnose(
            query,
            right,
            {
                f"your query finds the key {back} positions after it; turn the other way": turned(
                    back
                ),
                "your query is the key itself, so every token finds itself: it looks 0 back": key,
                "your query points away from the key it should find: its score is the smallest": (
                    -right
                ),
                "you look 3 back whatever `back` says": turned(-3),
                "the base is an argument; you seem to use 10000 whatever it says": turned(
                    -back, 10000.0
                ),
                "every pair turns by the same angle; pair ℓ turns by back / base^(2ℓ/d)": (
                    key.double() @ _blocks(back * torch.ones(d // 2).double())
                ),
                "you pair column ℓ with column ℓ + d/2; here 2ℓ goes with 2ℓ + 1": halves,
            },
            f"the query must be as long as the key, {wanted:.3f}; yours has length {long:.3f}"
            if abs(long - wanted) > 1e-3 * wanted
            else f"the score is not largest {back} back at d = {d}, base = {base:g}: print "
            "the scores of one query with keys at many positions",
        )
    passed("your query finds the key at the distance asked for, at four widths and three bases")


def relative_bias(function: Callable[..., Tensor]) -> None:
    """Check `function(table, n)`: entry (i, j) is table[w + clip(i − j, −w, w)]."""
    generator = torch.Generator().manual_seed(6)
    for w, n in sized((2, 6), (1, 3), (4, 3), (0, 4)):
        table = torch.randn(2 * w + 1, generator=generator)
        result = want_tensor(call(function, table, n), (n, n), "the bias")
        i, j = torch.arange(n)[:, None], torch.arange(n)
        offset = i - j

        def at(index: Tensor, table: Tensor = table) -> Tensor:
            return table[index % len(table)]

        diagnose(
            result,
            table[offset.clamp(-w, w) + w],
            {
                "before and after have changed places: you use b with j − i, the chapter's "
                "formula has i − j": table[(-offset).clamp(-w, w) + w],
                "before and after look alike: the sign of i − j is lost": table[
                    offset.abs().clamp(-w, w) + w
                ],
                "offset 0 must read the middle of the table, table[w]; yours reads its start": at(
                    offset.clamp(-w, w)
                ),
                "far offsets wrap round to the other end of the table; they must be clipped to "
                "−w ... w": at(offset + w),
                "you clip at w but not at −w, so far keys after the query wrap round": at(
                    offset.clamp_max(w) + w
                ),
                "your bias depends on the key's place alone, not on the offset": table[
                    j.clamp_max(2 * w)
                ].expand(n, n),
                "beyond w you give no bias at all; the outermost entries serve all far offsets": (
                    torch.where(offset.abs() > w, 0.0, table[offset.clamp(-w, w) + w])
                ),
            },
            f"the bias differs at w = {w}, n = {n}; is it constant along each diagonal? Entry "
            "(i, j) is table[w + i − j], clipped",
        )
    passed("your bias depends on i − j only, near offsets each with a number of their own")


def _blocks(angle: Tensor) -> Tensor:
    """A clockwise 2 × 2 turn of rows for each angle, as in `shift_matrix`."""
    c, s = angle.cos(), angle.sin()
    rows = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
    return torch.block_diag(*rows)


def _blocks_swapped(delta: float, d: int, base: float) -> Tensor:
    angle = delta / base ** (torch.arange(0, d, 2).double() / d)
    c, s = angle.cos(), angle.sin()
    rows = torch.stack([torch.stack([s, -c], -1), torch.stack([c, s], -1)], -2)
    return torch.block_diag(*rows)


def _halves(matrix: Tensor) -> Tensor:
    """The same blocks, for columns that hold all first halves of the pairs, then all second."""
    d = len(matrix)
    order = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
    return matrix[order][:, order]


def _lengths(result: Tensor, x: Tensor, otherwise: str) -> str:
    if not close(result.double().norm(dim=-1), x.double().norm(dim=-1), 1e-4):
        return "your rows change their length; a rotation keeps it. Check the signs in each pair"
    return (
        otherwise + "; with d = 4 and base = 100 row p must turn by p in its first pair, "
        "columns 0 and 1, and by p / 10 in its second"
    )

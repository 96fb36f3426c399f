"""Ways to tell a model where a token stands: added to the input, turned in, or a bias."""

import math

import torch
from torch import Tensor, nn

from . import _checks as check

Device = torch.device | str | None  # None is PyTorch's own choice, as in its functions


def sinusoidal_encoding(
    n: int, d_model: int, base: float = 10000.0, *, start: int = 0, device: Device = None
) -> Tensor:
    """Give each position a row of sines and cosines, from fast to slow.

    Returns (n, d_model), the rows of positions start to start + n - 1: column 2l holds
    sin(p / base^(2l/d_model)), column 2l + 1 the cosine. ValueError if n < 1, start < 0, d_model
    is not even and positive, or base <= 1. Vaswani et al. 2017,
    section 3.5.

    >>> sinusoidal_encoding(1, 4)
    tensor([[0., 1., 0., 1.]])
    """
    check.count("n", n)
    check.count("start", start, least=0)
    position = torch.arange(start, start + n, device=device)
    angle = position[:, None] * _frequencies(d_model, base, "d_model", device)  # (n, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2).to(torch.get_default_dtype())


def shift_matrix(
    delta: float, d_model: int, base: float = 10000.0, *, device: Device = None
) -> Tensor:
    """Give the matrix that moves a sinusoidal encoding `delta` positions on, wherever it stands.

    Returns U (d_model, d_model) with PE[p] @ U = PE[p + delta]: one 2 x 2 rotation for each pair
    of columns. ValueError as `sinusoidal_encoding`. Vaswani et al. 2017, section 3.5.

    >>> pe = sinusoidal_encoding(10, 8)
    >>> torch.allclose(pe[4] @ shift_matrix(3, 8), pe[7], atol=1e-6)
    True
    """
    check.number("delta", delta)
    angle = delta * _frequencies(d_model, base, "d_model", device)  # (d_model / 2,)
    cos, sin = angle.cos(), angle.sin()
    turns = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    return torch.block_diag(*turns).to(torch.get_default_dtype())


class LearnedPositions(nn.Module):
    """A table of trained rows, one for each position up to max_len.

    ``LearnedPositions(max_len, d_model)(n, start=0)`` returns (n, d_model), the rows start to
    start + n - 1. ValueError if they exceed max_len. Gehring et al. 2017, section 3.1.

    >>> LearnedPositions(16, 8)(3).shape
    torch.Size([3, 8])
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        check.count("max_len", max_len)
        check.count("d_model", d_model)
        self.table = nn.Parameter(torch.randn(max_len, d_model) * 0.02)

    def forward(self, n: int, start: int = 0) -> Tensor:
        check.count("n", n)
        check.count("start", start, least=0)
        if start + n > len(self.table):
            raise ValueError(
                f"positions must stay below max_len = {len(self.table)}; got {start} to "
                f"{start + n - 1}"
            )
        return self.table[start : start + n]


def rotary(x: Tensor, positions: Tensor | None = None, base: float = 10000.0) -> Tensor:
    """Turn each pair of adjacent columns by an angle proportional to the position.

    x (..., n, d), queries or keys; positions (n,), 0 to n - 1 unless given. Returns x's shape:
    columns 2l and 2l + 1 turned by p / base^(2l/d). The dot product of a turned query and a
    turned key depends on the offset of their positions only. Other code pairs column l with
    l + d/2: the same up to a permutation of columns, but weights do not carry over. ValueError
    if d is odd or positions do not fit. Su et al. 2021 (RoFormer), section 3.2, eq. 34.

    >>> rotary(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), positions=torch.tensor([0.0, math.pi / 2]))
    tensor([[ 1.0000e+00,  0.0000e+00],
            [-4.3711e-08,  1.0000e+00]])
    """
    _check_turned(x, positions)
    frequency = _frequencies(x.shape[-1], base, "the last dimension of x", x.device)
    positions = torch.arange(x.shape[-2], device=x.device) if positions is None else positions
    angle = positions[:, None] * frequency  # (n, d / 2), wide: late positions stay exact
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]  # (..., n, d / 2) each
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def _check_turned(x: Tensor, positions: Tensor | None) -> None:
    check.floating("x", x)
    if x.ndim < 2 or 0 in x.shape[-2:]:
        raise ValueError(f"x must be (..., n, d) with n and d at least 1; got {check.shape(x)}")
    if positions is None:
        return
    if not isinstance(positions, Tensor) or positions.is_complex():
        raise TypeError(f"positions must be a tensor of real numbers; got {check.kind(positions)}")
    if positions.shape != x.shape[-2:-1] or positions.device != x.device:
        raise ValueError(
            f"positions must be ({x.shape[-2]},) on {x.device}, one for each row of x; "
            f"got {check.shape(positions)} on {positions.device}"
        )


def alibi_slopes(num_heads: int, *, device: Device = None) -> Tensor:
    """Give each head its slope: a geometric sequence from 2^(-8/h) down to 2^-8.

    Returns (num_heads,). When num_heads is no power of two, the missing slopes are every other
    one of the next power's. ValueError if num_heads < 1. Press et al. 2022 (ALiBi), section 3.

    >>> alibi_slopes(4)
    tensor([0.2500, 0.0625, 0.0156, 0.0039])
    """
    check.count("num_heads", num_heads)
    power = 2 ** int(math.log2(num_heads))  # the largest power of two that fits
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    slopes += [2 ** (-4 * (i + 1) / power) for i in range(0, 2 * (num_heads - power), 2)]
    return torch.tensor(slopes, device=device)


def alibi_bias(
    num_heads: int, n_q: int, n_k: int | None = None, *, device: Device = None
) -> Tensor:
    """Lower each score by slope times distance, so that far keys count less.

    Returns (num_heads, n_q, n_k), -slope * |i + n_k - n_q - j|, to be added to the scores; as a
    bias for (B, h, n, d) it takes [None] in front, the same for all sequences. ValueError if an
    argument is less than 1. Press et al. 2022 (ALiBi), section 3.

    >>> alibi_bias(8, 3)[0]
    tensor([[-0.0000, -0.5000, -1.0000],
            [-0.5000, -0.0000, -0.5000],
            [-1.0000, -0.5000, -0.0000]])
    """
    distance = _offsets(n_q, n_k, device).abs()
    return -alibi_slopes(num_heads, device=device)[:, None, None] * distance


def t5_buckets(
    offset: Tensor,
    num_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> Tensor:
    """Sort offsets i - j (query - key) into buckets: near ones alone, far ones in wider groups.

    offset integers, any shape; returns the same shape, 0 to num_buckets - 1. With bidirectional,
    half of the buckets are for keys after the query; without, those all fall into bucket 0.
    ValueError or TypeError if an argument makes no sense. Raffel et al. 2020 (T5), section 2.1;
    their released code takes key - query instead.

    >>> t5_buckets(torch.tensor([200, 8, 1, 0, -1, -8, -200]))
    tensor([15,  8,  1,  0, 17, 24, 31])
    """
    check.integers("offset", offset)
    check.flag("bidirectional", bidirectional)
    check.count("num_buckets", num_buckets, least=4 if bidirectional else 2)
    if bidirectional and num_buckets % 2:
        raise ValueError(f"num_buckets must be even when bidirectional; got {num_buckets}")
    half = num_buckets // 2 if bidirectional else num_buckets
    near = half // 2  # distances below this have a bucket of their own
    check.count("max_distance", max_distance, least=near + 1)
    if bidirectional:
        start = (offset < 0) * half
        distance = offset.abs()
    else:
        start = torch.zeros_like(offset)
        distance = offset.clamp_min(0)
    ratio = torch.log(distance.clamp_min(1).float() / near) / math.log(max_distance / near)
    far = (near + (ratio * (half - near)).long()).clamp_max(half - 1)
    return start + torch.where(distance < near, distance, far)


class T5Bias(nn.Module):
    """A trained number for each head and bucket of offsets, to be added to the scores.

    ``T5Bias(num_heads)(n_q, n_k)`` returns (num_heads, n_q, n_k), used as `alibi_bias` is.
    Arguments and errors as `t5_buckets`. Raffel et al. 2020 (T5), section 2.1.

    >>> T5Bias(num_heads=2)(3).shape
    torch.Size([2, 3, 3])
    """

    def __init__(
        self,
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
    ):
        super().__init__()
        check.count("num_heads", num_heads)
        check.flag("bidirectional", bidirectional)
        self.num_buckets, self.max_distance = num_buckets, max_distance
        self.bidirectional = bidirectional
        self._buckets(1, 1, None)  # refuses bad arguments now rather than at the first use
        self.table = nn.Parameter(torch.randn(num_buckets, num_heads) * 0.02)

    def forward(self, n_q: int, n_k: int | None = None) -> Tensor:
        buckets = self._buckets(n_q, n_k, self.table.device)
        return self.table[buckets].permute(2, 0, 1)  # (h, n_q, n_k)

    def _buckets(self, n_q: int, n_k: int | None, device: Device) -> Tensor:
        offsets = _offsets(n_q, n_k, device)
        return t5_buckets(offsets, self.num_buckets, self.max_distance, self.bidirectional)


def _offsets(n_q: int, n_k: int | None, device: Device) -> Tensor:
    """Offsets i - j, query - key, (n_q, n_k), the last query level with the last key."""
    check.count("n_q", n_q)
    n_k = n_q if n_k is None else n_k
    check.count("n_k", n_k)
    query = torch.arange(n_k - n_q, n_k, device=device)
    return query[:, None] - torch.arange(n_k, device=device)


def _frequencies(d: int, base: float, name: str, device: Device = None) -> Tensor:
    """Angles per position, (d / 2,): 1, base^(-2/d), base^(-4/d), ..., in float64."""
    check.count(name, d, least=2)
    if d % 2:
        raise ValueError(f"{name} must be even, sines and cosines come in pairs; got {d}")
    check.number("base", base, above=1)
    pair = torch.arange(0, d, 2, device=device)
    wide = torch.float32 if pair.device.type == "mps" else torch.float64  # MPS has no float64
    return base ** (-pair.to(wide) / d)

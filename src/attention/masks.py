"""Who may attend to whom: boolean masks, True = may attend, combined with ``&``.

Row i is a query, column j a key. When there are more keys than queries (a cache holds the
past), the last query is level with the last key: query i stands at position i + n_k - n_q.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from . import _checks as check

Device = torch.device | str | None  # None is PyTorch's own choice, as in its functions


def causal_mask(n_q: int, n_k: int | None = None, *, device: Device = None) -> Tensor:
    """Let each query attend to its own position and to earlier ones.

    Returns bool (n_q, n_k), n_k = n_q unless given: True where j <= i + n_k - n_q. With
    n_k < n_q the first rows have nothing to attend to. ValueError if a length is not a positive
    integer. Vaswani et al. 2017, section 3.2.3.

    >>> causal_mask(2, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    i, j = _positions(n_q, n_k, device)
    return j <= i


def padding_mask(
    lengths: Sequence[int] | Tensor, n_k: int | None = None, *, device: Device = None
) -> Tensor:
    """Let every query attend to the real tokens of its own sequence, not to its padding.

    lengths: B integers (list or 1-D tensor), how many tokens each sequence really has. Returns
    bool (B, 1, n_k), n_k = max(lengths) unless given: True where j < length. For `attention` over
    (B, h, n, d) it takes [:, None], the same for all heads. ValueError if a length is negative or
    exceeds n_k, or n_k is missing where no length can be read (as on a meta tensor); TypeError if
    lengths are not integers.

    >>> padding_mask([3, 1]).int()
    tensor([[[1, 1, 1]],
    <BLANKLINE>
            [[1, 0, 0]]], dtype=torch.int32)
    """
    lengths, n_k = _lengths(lengths, n_k, device)
    return (torch.arange(n_k, device=lengths.device) < lengths[:, None])[:, None]  # (B, 1, n_k)


def sliding_window_mask(
    n_q: int, window: int, n_k: int | None = None, *, device: Device = None
) -> Tensor:
    """Let each query attend to keys less than `window` positions away, on both sides.

    Returns bool (n_q, n_k): True where |i + n_k - n_q - j| < window. So
    ``causal_mask(n) & sliding_window_mask(n, window)`` sees `window` tokens, its own included.
    ValueError if a length or the window is not a positive integer. Beltagy et al. 2020
    (Longformer), section 3.1.

    >>> (causal_mask(4) & sliding_window_mask(4, window=2)).int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    check.count("window", window)
    i, j = _positions(n_q, n_k, device)
    return (i - j).abs() < window


def prefix_mask(n_q: int, prefix: int, n_k: int | None = None, *, device: Device = None) -> Tensor:
    """Let every query see the first `prefix` keys, and beyond them only the past.

    Returns bool (n_q, n_k): True where j < prefix or j <= i + n_k - n_q. ValueError if a length
    is not a positive integer, or prefix not an integer from 0 to n_k. Raffel et al. 2020 (T5),
    section 3.2.1.

    >>> prefix_mask(3, prefix=2).int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    check.count("prefix", prefix, least=0)
    i, j = _positions(n_q, n_k, device)
    if prefix > j.shape[-1]:
        raise ValueError(f"prefix must not exceed n_k = {j.shape[-1]}; got {prefix}")
    return (j < prefix) | (j <= i)


def to_torch_mha_mask(mask: Tensor, num_heads: int | None = None) -> Tensor:
    """Turn a mask of this book round for ``nn.MultiheadAttention``, where True = forbidden.

    mask bool (n_q, n_k), or (B, n_q, n_k) with num_heads given: nn.MultiheadAttention wants one
    mask per head then, (B * num_heads, n_q, n_k). Returns bool. This is the only place where
    the polarity changes. TypeError if the mask is not boolean, ValueError if its shape is wrong.

    >>> to_torch_mha_mask(causal_mask(2)).int()
    tensor([[0, 1],
            [0, 0]], dtype=torch.int32)
    """
    check.mask(mask)
    if num_heads is not None:
        check.count("num_heads", num_heads)
        if mask.ndim != 3:
            raise ValueError(
                f"mask must be (B, n_q, n_k) when num_heads is given; got {check.shape(mask)}"
            )
        mask = mask.repeat_interleave(num_heads, dim=0)  # (B * h, n_q, n_k)
    return ~mask


def reach(mask: Tensor, layers: int) -> Tensor:
    """Say which inputs can influence which outputs after `layers` layers with this mask.

    mask bool (..., n, n). Returns bool (..., n, n): True where input j can reach output i, the
    residual path (every position reaches itself) included. Row i is what is called the receptive
    field of output i. TypeError if the mask is not boolean, ValueError if it is not square or
    layers is negative.

    >>> reach(causal_mask(4) & sliding_window_mask(4, window=2), layers=2).int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 1, 0],
            [0, 1, 1, 1]], dtype=torch.int32)
    """
    check.mask(mask)
    check.count("layers", layers, least=0)
    n = mask.shape[-1]
    if mask.shape[-2] != n:
        raise ValueError(f"mask must be square (..., n, n); got {check.shape(mask)}")
    stay = torch.eye(n, dtype=torch.bool, device=mask.device)
    step = (mask | stay).float()
    reached = stay.expand_as(mask)
    for _ in range(layers):
        reached = step @ reached.float() > 0  # one more hop: i -> some m -> j
    return reached


def _positions(n_q: int, n_k: int | None, device: Device) -> tuple[Tensor, Tensor]:
    """Positions of the queries (n_q, 1) and of the keys (1, n_k), level at the end."""
    n_q = check.count("n_q", n_q)
    n_k = n_q if n_k is None else check.count("n_k", n_k)
    i = torch.arange(n_k - n_q, n_k, device=device)[:, None]
    return i, torch.arange(n_k, device=device)[None, :]


def _lengths(given: Sequence[int] | Tensor, n_k: int | None, device: Device) -> tuple[Tensor, int]:
    """Lengths as a tensor (B,), and n_k, the largest of them unless given."""
    try:
        lengths = torch.as_tensor(given, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"lengths must be a list of integers; got {given!r}") from None
    if lengths.ndim != 1 or len(lengths) == 0 and n_k is None:
        raise ValueError(f"lengths must be a list of B >= 1 integers; got {check.shape(lengths)}")
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise TypeError(f"lengths must be integers; got {lengths.dtype}")
    if not check.may_hold((lengths >= 0).all()):
        raise ValueError(f"lengths must not be negative; got {lengths.tolist()}")
    if n_k is None:
        try:
            n_k = int(lengths.max() if isinstance(given, Tensor) else max(given))
        except RuntimeError:
            raise ValueError("n_k must be given where lengths cannot be read; got None") from None
        if n_k == 0:
            raise ValueError(f"lengths must not all be 0 without n_k; got {lengths.tolist()}")
    n_k = check.count("n_k", n_k)
    if not check.may_hold((lengths <= n_k).all()):
        raise ValueError(f"lengths must not exceed n_k = {n_k}; got {lengths.tolist()}")
    return lengths, n_k

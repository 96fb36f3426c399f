"""Sinusoids, rotary turns, ALiBi and T5 against their definitions and published numbers."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from attention import (
    POSITIONS,
    Embedding,
    LearnedPositions,
    T5Bias,
    alibi_bias,
    alibi_slopes,
    rotary,
    shift_matrix,
    sinusoidal_encoding,
    t5_buckets,
)


@pytest.mark.parametrize("base", [10000.0, 100.0, 2.0])
def test_sinusoids_by_the_formula(base):
    pe = sinusoidal_encoding(20, 6, base)
    for p in range(20):
        for pair in range(3):
            angle = p / base ** (2 * pair / 6)
            assert pe[p, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert pe[p, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_late_positions_stay_exact():
    row = sinusoidal_encoding(100_001, 4)[-1]
    assert row[0].item() == pytest.approx(math.sin(100_000), abs=1e-6)


@pytest.mark.parametrize("delta", [0, 1, -3, 2.5, 40])
def test_the_shift_matrix_shifts_every_position(delta):
    torch.set_default_dtype(torch.float64)
    try:
        pe = sinusoidal_encoding(60, 8)
        shifted = pe @ shift_matrix(delta, 8)
        frequency = 10000.0 ** (-torch.arange(0, 8, 2) / 8)
        angle = (torch.arange(60)[:, None] + delta) * frequency
        want = torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)
        torch.testing.assert_close(shifted, want)
        eye = shift_matrix(delta, 8) @ shift_matrix(delta, 8).T
        torch.testing.assert_close(eye, torch.eye(8))
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_base_is_ten_thousand_unless_given():
    assert torch.equal(sinusoidal_encoding(500, 8), sinusoidal_encoding(500, 8, 10000.0))
    x = torch.randn(500, 8)
    assert torch.equal(rotary(x), rotary(x, base=10000.0))
    assert torch.equal(shift_matrix(7, 8), shift_matrix(7, 8, 10000.0))
    assert not torch.equal(rotary(x), rotary(x, base=10001.0))


def test_trained_tables_start_small():
    for table in (LearnedPositions(1000, 16).table, T5Bias(500).table):
        assert table.std().item() == pytest.approx(0.02, rel=0.03)
        assert abs(table.mean().item()) < 0.001


def test_a_learned_table_serves_its_full_length():
    positions = LearnedPositions(4, 2)
    assert torch.equal(positions(4), positions.table)
    assert torch.equal(positions(1, start=3), positions.table[3:])


def test_learned_positions_are_rows_of_a_trained_table():
    positions = LearnedPositions(10, 4)
    assert torch.equal(positions(3, start=2), positions.table[2:5])
    positions(3).sum().backward()
    assert positions.table.grad[:3].all() and not positions.table.grad[3:].any()


def test_rotary_turns_adjacent_pairs_by_position_times_frequency():
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    turned = rotary(x)
    for p in range(5):
        for pair in range(3):
            z = complex(*x[p, 2 * pair : 2 * pair + 2].tolist())
            z *= complex(math.cos(p / 10000 ** (pair / 3)), math.sin(p / 10000 ** (pair / 3)))
            assert turned[p, 2 * pair].item() == pytest.approx(z.real)
            assert turned[p, 2 * pair + 1].item() == pytest.approx(z.imag)


def test_rotary_keeps_lengths_types_and_the_first_row():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.randn(2, 3, 5, 6, generator=torch.Generator().manual_seed(0)).to(dtype)
        turned = rotary(x)
        assert turned.dtype == dtype and turned.shape == x.shape
        assert torch.equal(turned[..., 0, :], x[..., 0, :])
        eps = torch.finfo(dtype).eps
        torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1), rtol=4 * eps, atol=0)


def test_rotary_in_the_other_pairing_is_a_permutation_of_columns():
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    halves = torch.tensor([0, 2, 4, 1, 3, 5])  # column l with l + d/2
    angle = torch.arange(5)[:, None] * 10000.0 ** (-torch.arange(0, 6, 2) / 6)
    y = x[:, halves]
    a, b = y[:, :3], y[:, 3:]
    other = torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)
    torch.testing.assert_close(rotary(x)[:, halves], other)


def test_alibi_slopes_are_those_of_the_paper():
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    assert alibi_slopes(16).tolist() == pytest.approx([2 ** (-i / 2) for i in range(1, 17)])
    # the released code's numbers for 12 heads: those of 8, then every other one of 16
    extra = [0.70710678, 0.35355339, 0.17677670, 0.08838835]
    assert alibi_slopes(12).tolist() == pytest.approx([2.0**-i for i in range(1, 9)] + extra)
    assert alibi_slopes(1).tolist() == [2.0**-8]


@pytest.mark.parametrize("n_q,n_k", [(4, None), (2, 5), (1, 3)])
def test_alibi_bias_is_slope_times_distance(n_q, n_k):
    bias = alibi_bias(4, n_q, n_k)
    n_k = n_k or n_q
    assert bias.shape == (4, n_q, n_k)
    for h, slope in enumerate([1 / 4, 1 / 16, 1 / 64, 1 / 256]):
        for i in range(n_q):
            for j in range(n_k):
                assert bias[h, i, j].item() == -slope * abs(i + n_k - n_q - j)


OFFSETS = [300, 128, 127, 91, 90, 64, 63, 32, 23, 16, 15, 12, 11, 8, 7, 1, 0, -1,
           -7, -8, -11, -12, -16, -23, -32, -46, -64, -91, -127, -128, -300]  # fmt: skip


def test_t5_buckets_are_those_of_the_released_code():
    both = [15, 15, 15, 15, 14, 14, 13, 12, 11, 10, 9, 9, 8, 8, 7, 1, 0, 17,
            23, 24, 24, 25, 26, 27, 28, 29, 30, 31, 31, 31, 31]  # fmt: skip
    past = [31, 31, 31, 29, 29, 26, 26, 21, 18, 16, 15, 12, 11, 8, 7, 1] + [0] * 15
    assert t5_buckets(torch.tensor(OFFSETS)).tolist() == both
    assert t5_buckets(torch.tensor(OFFSETS), bidirectional=False).tolist() == past


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("num_buckets,max_distance", [(32, 128), (8, 20), (4, 3)])
def test_t5_buckets_never_shrink_with_distance(num_buckets, max_distance, bidirectional):
    past = t5_buckets(torch.arange(200), num_buckets, max_distance, bidirectional)
    assert (past.diff() >= 0).all() and past[0] == 0
    assert past[-1] == (num_buckets // 2 if bidirectional else num_buckets) - 1
    if bidirectional:
        ahead = t5_buckets(-torch.arange(1, 200), num_buckets, max_distance)
        assert torch.equal(ahead, past[1:] + num_buckets // 2)


def test_t5_bias_looks_up_its_table():
    bias = T5Bias(3, num_buckets=8, max_distance=20)
    got = bias(2, 5)
    assert got.shape == (3, 2, 5)
    for i in range(2):
        for j in range(5):
            bucket = t5_buckets(torch.tensor(i + 3 - j), 8, 20)
            assert torch.equal(got[:, i, j], bias.table[bucket])
    got.sum().backward()
    assert bias.table.grad.any()


class Devices(TorchDispatchMode):
    """Notes where the results of operations are."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.seen.add(result.device.type)
        return result


@pytest.mark.parametrize("positions", POSITIONS)
def test_nothing_is_built_on_one_device_and_moved_to_another(positions):
    embedding = Embedding(9, 8, 2, positions=positions).to("meta")
    with Devices() as devices:
        embedding(torch.zeros(2, 3, dtype=torch.int64, device="meta"), start=2)
        embedding.bias(3, 5)
        rotary(torch.zeros(3, 8, device="meta"))
        shift_matrix(2, 8, device="meta")
    assert devices.seen == {"meta"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_positions_in_a_graph_of_any_length():
    def all_of_them(x):
        n, d = x.shape
        return (sinusoidal_encoding(n, d, start=n), rotary(x), alibi_bias(3, n), t5(n), table(n))

    t5, table = T5Bias(2), LearnedPositions(20, 8)
    compiled = torch.compile(all_of_them, backend="eager", fullgraph=True, dynamic=True)
    for n in (4, 7, 12):
        x = torch.randn(n, 8)
        torch.testing.assert_close(compiled(x), all_of_them(x))

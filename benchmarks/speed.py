"""Speed and memory of the package against PyTorch's own, on this machine, in one run.

    python benchmarks/speed.py [--quick] [--device cpu] [--threads 1] [--check]

Each comparison runs the two sides in turn, swapping who goes first, and prints the median of each
and their ratio: below 1, the book's code is faster. On the CPU with one thread it measures
processor time, which other programs on the machine disturb less; otherwise the clock on the wall.
--check ends with an error if a ratio at n >= 256 exceeds 1.05.
"""

import argparse
import ctypes
import math
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import attention as A

LIMIT, FROM = 1.05, 256
BATCH, HEADS, D_K = 2, 8, 64


class Bench:
    def __init__(self, device, dtype, seconds, threads):
        self.device, self.dtype, self.seconds = torch.device(device), dtype, seconds
        one_thread = self.device.type == "cpu" and threads == 1
        self.clock = time.process_time if one_thread else time.perf_counter
        self.over = []

    def rand(self, *shape, grad=False):
        return torch.randn(shape, device=self.device, dtype=self.dtype, requires_grad=grad)

    def once(self, run):
        self.wait()
        start = self.clock()
        run()
        self.wait()
        return 1000 * (self.clock() - start)

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def compare(self, what, n, ours, theirs):
        """Print one row: medians of interleaved runs, in ms, and their ratio."""
        for run in (ours, theirs, ours, theirs):
            run()
        times, spent = ([], []), 0.0
        while spent < self.seconds or len(times[0]) < 7:
            order = ((0, ours), (1, theirs)) if len(times[0]) % 2 else ((1, theirs), (0, ours))
            for side, run in order:
                times[side].append(self.once(run))
                spent += times[side][-1] / 1000
        a, b = (statistics.median(side) for side in times)
        mark = ""
        if a / b > LIMIT and n >= FROM:
            mark = "  over the limit"
            self.over.append(f"{what}, n = {n}: {a / b:.2f}")
        self.row(what, n, f"{a:10.3f}", f"{b:10.3f}", f"{a / b:6.2f}{mark}")

    def both(self, what, n, ours, theirs, our_inputs, their_inputs):
        """Forward without gradients, then forward and backward."""
        with torch.no_grad():
            self.compare(what, n, ours, theirs)
        a, b = with_backward(ours, our_inputs), with_backward(theirs, their_inputs)
        self.compare(f"{what}, backward", n, a, b)

    def row(self, what, n, *cells):
        kind = str(self.dtype).removeprefix("torch.")
        print(f"{self.device.type:5}{kind:10}{what:46}{n:>7}", *cells, flush=True)

    def peak(self, run):
        """MiB that the run needs on top of what is there; None where it cannot be told."""
        run()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            run()
            return (torch.cuda.max_memory_allocated() - before) / 2**20
        try:
            ctypes.CDLL(None).malloc_trim(0)  # give back what earlier runs left
            before = resident("VmRSS")
            Path("/proc/self/clear_refs").write_text("5")
            run()
            return (resident("VmHWM") - before) / 1024
        except (OSError, AttributeError):  # not Linux
            return None


def resident(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise OSError(field)


def plain(q, k, v, mask=None):
    """The formula, written plainly."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


def with_backward(run, inputs):
    """run() and its gradients, for the same upstream gradient each time."""
    upstream = torch.ones_like(run())
    return lambda: torch.autograd.grad(run(), inputs, upstream)


def formulas(bench, n):
    q, k, v = (bench.rand(BATCH, HEADS, n, D_K, grad=True) for _ in range(3))
    causal = A.causal_mask(n, device=bench.device)
    padding = A.padding_mask([n, n // 2], device=bench.device)[:, None]
    for name, mask in (("", None), (" causal mask", causal), (" padding mask", padding)):

        def ours(mask=mask):
            return A.attention(q, k, v, mask)[0]

        def theirs(mask=mask):
            return plain(q, k, v, mask)[0]

        bench.both(f"attention / formula{name}", n, ours, theirs, (q, k, v), (q, k, v))


def fused(bench, n):
    q, k, v = (bench.rand(BATCH, HEADS, n, D_K, grad=True) for _ in range(3))
    padding = A.padding_mask([n, n // 2], device=bench.device)[:, None]
    for name, mask, causal in (("", None, False), (" is_causal", None, True),
                               (" padding mask", padding, False)):  # fmt: skip

        def ours(mask=mask, causal=causal):
            return A.fused_attention(q, k, v, mask, is_causal=causal)

        def theirs(mask=mask, causal=causal):
            return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)

        bench.both(f"fused / sdpa{name}", n, ours, theirs, (q, k, v), (q, k, v))


def multi_head(bench, n):
    mha = nn.MultiheadAttention(HEADS * D_K, HEADS, batch_first=True,
                                device=bench.device, dtype=bench.dtype)  # fmt: skip
    book = A.MultiHeadAttention.from_torch(mha)
    x = bench.rand(BATCH, n, HEADS * D_K, grad=True)
    for need in (False, True):

        def ours(need=need):
            return book(x, need_weights=need)[0]

        def theirs(need=need):
            return mha(x, x, x, need_weights=need, average_attn_weights=False)[0]

        bench.both(f"heads / nn.Multihead{' with weights' if need else ''}", n, ours, theirs,
                   (x, *book.parameters()), (x, *mha.parameters()))  # fmt: skip


def decoding(bench, n, groups):
    """One more token after n: through the cache, and by computing everything again."""
    mha = A.MultiHeadAttention(HEADS * D_K, HEADS, groups).to(bench.device, bench.dtype).eval()
    x, past = bench.rand(BATCH, n + 1, HEADS * D_K), A.KVCache()
    with torch.no_grad():
        mha(x[:, :n], is_causal=True, need_weights=False, cache=past)

    def step():
        cache = A.KVCache()
        cache.k, cache.v = past.k, past.v  # append makes new tensors, so the past stays
        return mha(x[:, n:], is_causal=True, need_weights=False, cache=cache)

    def again():
        return mha(x, is_causal=True, need_weights=False)

    with torch.no_grad():
        bench.compare(f"token with cache / without, {groups} K/V heads", n, step, again)


def grouped_decoding(bench, n, groups):
    """One more token after n, the query heads sharing keys, and PyTorch's own way to share them."""
    book = A.MultiHeadAttention(HEADS * D_K, HEADS, groups).to(bench.device, bench.dtype).eval()
    x, past = bench.rand(BATCH, 1, HEADS * D_K), A.KVCache()
    past.append(bench.rand(BATCH, groups, n, D_K), bench.rand(BATCH, groups, n, D_K))

    def ours():
        cache = A.KVCache()
        cache.k, cache.v = past.k, past.v
        return book(x, is_causal=True, need_weights=False, cache=cache)[0]

    def theirs():
        q, k, v = (w(x).unflatten(-1, (-1, D_K)).transpose(1, 2)
                   for w in (book.w_q, book.w_k, book.w_v))  # fmt: skip
        k, v = torch.cat([past.k, k], -2), torch.cat([past.v, v], -2)
        out = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return book.w_o(out.transpose(1, 2).flatten(-2))

    with torch.no_grad():
        torch.testing.assert_close(ours(), theirs(), atol=1e-2, rtol=1e-2)
        bench.compare(f"token with cache / sdpa enable_gqa, {groups} K/V heads", n, ours, theirs)


def memory(bench, n):
    """Peak of one head: fused, PyTorch's own, and with the n x n weights."""
    q, k, v = (bench.rand(1, 1, n, D_K) for _ in range(3))
    with torch.no_grad():
        peaks = [bench.peak(lambda: A.fused_attention(q, k, v)),
                 bench.peak(lambda: F.scaled_dot_product_attention(q, k, v)),
                 bench.peak(lambda: A.attention(q, k, v)) if n <= 8192 else None]  # fmt: skip
    bench.row("", n, *("         -" if p is None else f"{p:10.1f}" for p in peaks))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short lengths, few runs")
    parser.add_argument("--device", help="cpu or cuda; both, if there, unless given")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 is PyTorch's choice")
    parser.add_argument("--check", action="store_true", help="fail if a ratio is over the limit")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    has_cuda = torch.cuda.is_available()
    devices = [options.device] if options.device else ["cpu", "cuda"][: 1 + has_cuda]
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} CPU threads"
          + (f", {torch.cuda.get_device_name()}" if has_cuda else ", no CUDA here"))  # fmt: skip
    print(f"batch {BATCH}, {HEADS} heads of width {D_K}; median ms of interleaved runs")
    over = []
    for device in devices:
        dtypes = [torch.float32, torch.bfloat16] if device == "cuda" else [torch.float32]
        for dtype in dtypes:
            bench = Bench(device, dtype, 0.2 if options.quick else 1.5, torch.get_num_threads())
            short = [128, 256, 512] if options.quick else [128, 256, 512, 1024, 2048]
            long = short if options.quick else [*short, 4096]
            if device == "cuda" and not options.quick:
                short, long = [*short, 4096], [*long, 8192, 16384]
            title = "device, type, ours / theirs"
            print(f"\n{title:61}{'n':>7} {'ours':>10} {'theirs':>10}  ratio")
            for n in short:
                formulas(bench, n)
            for n in long:
                fused(bench, n)
            for n in short:
                multi_head(bench, n)
            for groups in (HEADS, 2):
                for n in short:
                    decoding(bench, n, groups)
            for n in [4096] if options.quick else [4096, 16384]:
                grouped_decoding(bench, n, 2)
            title = f"peak MiB of one head of width {D_K}"
            print(f"\n{title:61}{'n':>7} {'fused':>10} {'sdpa':>10} {'attention':>10}")
            for n in [1024, 4096] if options.quick else [1024, 4096, 8192, 16384, 32768]:
                memory(bench, n)
            over += bench.over
    print("\nover the limit:", "; ".join(over) or "nothing")
    sys.exit(bool(over) and options.check)


if __name__ == "__main__":
    main()

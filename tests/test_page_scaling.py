"""The numbers in the text of chapter 3 are those that the package computes."""

import math
import re

import matplotlib.pyplot
import pages
import torch

from attention import attention, entropy, softmax, softmax_jacobian
from attention.figures import scaling as figures

PAGE = (pages.BOOK / "scaling.md").read_text("utf-8")

Q = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
K = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
V = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=torch.float64)
OUT, A = attention(Q, K, V)
S = Q @ K.T


def says(template, *values):
    pages.printed("scaling", template, *values)


def soft(*scores, temperature=1.0):
    return softmax(torch.tensor(scores, dtype=torch.float64), temperature).tolist()


def matrix(x, fmt):
    """A matrix as the page writes it in LaTeX."""
    return " \\\\ ".join(" & ".join(format(v, fmt) for v in row) for row in x.tolist())


def rows(x, digits):
    return ["[" + ", ".join(f"{v:.{digits}f}" for v in row) + "]" for row in x.tolist()]


def test_the_opening():
    assert (112 - 96) * 6 == 96
    says(
        "It scores 112 with the first and 96 with the second. The first key leads by only one sixth"
    )
    assert math.isclose(soft(112, 96)[0], 1 / (1 + math.exp(-16)))
    assert abs(soft(112, 96)[1] - 1e-7) < 0.2e-7  # "99.99999 %"
    says("$e^{{-16}}$ is about $10^{{-7}}$. So the second")
    scaled = soft(112, 96, temperature=8.0)
    says("- {:.0f} % - {:.0f} % - 99.99999 %", 100 * 112 / 208, 100 * scaled[0])
    says("so both are divided by $\\sqrt{{64}} = 8$, which gives {:.0f} and {:.0f}.",
         112 / 8, 96 / 8)  # fmt: skip
    says("gives the first key {:.0f} %, and the second key gets {:.0f} % instead of almost",
         100 * scaled[0], 100 * scaled[1])  # fmt: skip


def test_the_walks():
    """The typical distance after c products is the root of c; the picture shows such sums."""
    figure = figures.walks(pairs=8)
    lines = figure.axes[0].lines
    walks, edge = (
        torch.tensor([line.get_ydata().tolist() for line in lines[:8]]),
        lines[8].get_ydata(),
    )
    assert edge[256] == 16 == 2 * edge[64] and len(walks[0]) == 257  # "reach 16 at 256"
    inside = (walks.abs() <= torch.as_tensor(edge)).double().mean()
    assert 0.5 < inside < 0.9  # "most lines stay between them"
    assert (walks[:, 1:].abs() > torch.as_tensor(edge)[1:]).any(1).sum() >= 2  # "some leave them"
    assert walks[:, -1].min() < 0 < walks[:, -1].max()  # "to both sides"
    many = figures.walks(pairs=2000).axes[0].lines[:2000]
    ends = torch.tensor([line.get_ydata().tolist() for line in many])
    for c in (16, 64, 256):
        assert abs(ends[:, c].std() / math.sqrt(c) - 1) < 0.06
    matplotlib.pyplot.close("all")


def drawn(n):
    """For n keys, raw and scaled: decided queries in %, 10th and 90th percentile by q · k."""
    q, k = (torch.randn(4000, m, 64) for m in (1, n))
    for divisor in (1, 8):
        a = softmax((q * k).sum(-1), divisor)
        slope = softmax_jacobian(a).abs().amax((1, 2)) / divisor
        yield (100 * (a.amax(-1) > 0.99).double().mean(), slope.quantile(0.1), slope.quantile(0.9))


def test_what_a_saturated_softmax_costs():
    """Many queries are decided, and their gradients by q · k differ; the division evens them."""
    torch.manual_seed(0)
    found = {n: list(drawn(n)) for n in (3, 10, 50)}
    shares = "{:.0f}, {:.0f} and {:.0f} per cent".format(*(raw[0] for raw, _ in found.values()))
    assert f"With raw scores {shares} of the queries are decided. With scaled scores none" in PAGE
    assert all(scaled[0] == 0 for _, scaled in found.values())
    says("more than half with 3 keys, still one in five with 50.")
    assert found[3][0][0] > 50 and 18 < found[50][0][0] < 22
    uneven = {n: [high / low for _, low, high in both] for n, both in found.items()}
    assert found[3][0][1] < 1e-6 and found[3][0][2] > 0.2
    says("the slowest tenth below a millionth. With scaling")
    assert 150 < uneven[50][0] < 250  # "about 200"
    assert uneven[3][1] < 2 and found[3][1][2] < 0.25 / 8 < found[3][0][2]  # "nearly equal"
    assert uneven[50][1] < 2.5


def test_the_band_of_the_gradients():
    raw, scaled = (
        {w: sorted({y for x, y in band.get_paths()[0].vertices.tolist() if x == w})
         for w in (1, 64, 512)} for band in figures.uneven_gradient().axes[0].collections
    )  # fmt: skip
    said = re.search(r'alt: "Largest derivative by q · k.*', PAGE)[0]
    assert f"begins between {raw[1][0]:.2f} and {raw[1][-1]:.2f}" in said and raw[1] == scaled[1]
    assert f"from {raw[64][-1]:.1f} to less than a millionth" in said
    assert 0.3e-6 < raw[64][0] < 1e-6
    assert raw[512][0] < 1e-9 and all(band[-1] < 1.7 * band[0] for band in scaled.values())
    assert f"to about {sum(scaled[512]) / 2:.2f} at 512" in said
    matplotlib.pyplot.close("all")


def test_ten_days_or_two_minutes():
    """The formula for the steps agrees with walking; times are for ten steps a second."""

    def walk(raw, divisor):
        count = 0
        while raw < 0:
            p = 1 / (1 + math.exp(-raw / divisor))
            raw, count = raw + p * (1 - p) ** 2 / divisor, count + 1
        return count

    for gap, divisor in ((6, 1), (128**0.5, 1), (16, 8), (2 * 128**0.5, 8)):
        assert abs(figures.mind_steps(gap, divisor) / walk(-gap, divisor) - 1) < 0.01
    minute, day = 600, 864_000
    slow, fast = figures.mind_steps(16), figures.mind_steps(16, 8)
    assert 1.5 < fast / minute < 2 and 10 < slow / day < 10.5  # "less than two minutes"
    says("- about {:.0f} minutes (8 times as long) - about {:.0f} hours (64 times as long) "
         "- about {:.0f} days ({:,.0f} times as long)", 8 * fast / minute,
         64 * fast / minute / 60, slow / day, round(slow / fast, -3))  # fmt: skip
    says("$e^{{16}} \\approx 8{{,}}{:.0f}{{,}}000$ steps, or {:.1f} days.",
         math.exp(16) // 1000 % 1000, slow / day)  # fmt: skip
    assert 8e6 < math.exp(16) < 9e6
    walks = re.search(r"def walked\(.*?return count\n", PAGE, re.S)[0]  # as the page counts
    exec(walks, {"math": math}, kept := {})
    square, log = lambda p: p * (1 - p) ** 2, lambda p: 1 - p
    assert kept["walked"](16, 8, square) == walk(-16, 8) == 991
    assert [kept["walked"](16, d, log) for d in (1, 8)] == [17, 184]  # no small derivative
    typical = math.sqrt(2 * 64)
    says("is $\\sqrt{{128}} = {:.1f}$. About one pair of keys in twenty has", typical)
    says("twenty has a gap of more than {:.1f}, twice as much.", 2 * typical)
    torch.manual_seed(0)
    q, k, other = torch.randn(3, 40_000, 64)
    assert 1 / 24 < ((q * (k - other)).sum(-1).abs() > 2 * typical).double().mean() < 1 / 18
    says("decides between {:.0f} minutes and {:.0f} years",
         figures.mind_steps(2 * typical, 8) / minute,
         figures.mind_steps(2 * typical) / day / 365.25)  # fmt: skip
    assert figures.mind_steps(6) > figures.mind_steps(6, 8)  # "below a gap of about 6"
    assert figures.mind_steps(5) < figures.mind_steps(5, 8)
    texts = {t.get_text() for t in figures.change_of_mind().axes[0].texts}
    assert texts == {"10 days", "2 min", "21 years", "3 min"}
    matplotlib.pyplot.close("all")


def test_dot_products_and_averages():
    q = torch.tensor([2.0, 1.0])
    cat, the = (q @ torch.tensor(k) for k in ([2.0, 1.0], [0.0, 1.0]))
    says("scores {:.0f} with the key $[2, 1]$ and {:.0f} with the key", cat, the)
    says("become the weights {:.3f} and {:.3f}.", *soft(cat, the, temperature=math.sqrt(2)))
    mix = torch.tensor([0.7, 0.2, 0.1]) @ torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    says("0.1\\,[1, 1] = [{:.1f}, {:.1f}]$", *mix)
    mix = torch.tensor([0.6, 0.3, 0.1]) @ torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    says("[0.3, 0.1] = [{:.1f}, {:.1f}]$. It lies", *mix)


def test_the_worked_example():
    for name, x in (("Q", Q), ("K", K), ("V", V)):
        says(name + " = \\begin{{bmatrix}} " + matrix(x, ".0f") + " \\end{{bmatrix}}")
    says("S = QK^\\top = \\begin{{bmatrix}} " + matrix(S, ".0f") + " \\end{{bmatrix}}")
    says("\\sqrt{{d_k}}}} = \\begin{{bmatrix}} " + matrix(S / math.sqrt(2), ".3f") + " \\end{{")
    says("A = \\begin{{bmatrix}} " + matrix(A, ".3f") + " \\end{{")
    says("O = AV = \\begin{{bmatrix}} " + matrix(OUT, ".3f") + " \\end{{")
    e, e2 = math.exp(1 / math.sqrt(2)), math.exp(math.sqrt(2))
    one, three = 1 + 2 * e, 2 * e + e2
    says("$e^{{0.707}} = {:.3f}$, so", e)
    says("$1 + {0:.3f} + {0:.3f} = {1:.3f}$. The weights", e, one)
    says("$1 / {:.3f} = {:.3f}$ and twice", one, 1 / one)
    says("twice ${:.3f} / {:.3f} = {:.3f}$. For", e, one, e / one)
    says("$e^{{\\sqrt 2}} = {:.3f}$, the sum is {:.3f}, and", e2, three)
    says("${:.3f} / {:.3f} = {:.3f}$, twice, and", e, three, e / three)
    says("twice, and ${:.3f} / {:.3f} = {:.3f}$:", e2, three, e2 / three)
    says("output is ${:.3f}\\,[1, 2] + {:.3f}\\,[3, 4] + {:.3f}\\,[5, 6]$", *A[0].tolist())


def test_the_slip_of_rounding():
    rounded = (A * 1000).round() / 1000
    slip = rounded @ V
    first, second, third = rows(slip, 3)
    says("you get $" + first + "$, $" + second + "$ and $" + third + "$.")
    off = ((slip - OUT) * 1000).abs().round().amax(-1)
    assert (rows(slip, 3)[1] == rows(OUT, 3)[1]) and off[0] >= 1 and off[2] >= 3
    says("${:.3f} - {:.3f} = {:.3f}$. The", slip[2, 1], slip[2, 0], slip[2, 1] - slip[2, 0])
    says("${:.3f} + {:.3f} + {:.3f} = {:.3f}$, and the missing", *rounded[2], rounded[2].sum())
    torch.testing.assert_close(OUT[:, 1] - OUT[:, 0], torch.ones(3, dtype=torch.float64))


def test_what_the_numbers_do_not_say():
    says("An even weight would be 1/3, and {:.3f} is {:.0f} % of that", A[0, 0], 300 * A[0, 0])
    assert A[0].argmin() == 0 and A[1].argmin() == 1
    assert (S[:, 2] == S.amax(-1)).all() and K.norm(dim=-1).argmax() == 2
    short = K.clone()
    short[2] /= short[2].norm()
    kept = attention(Q, short, V)[1][2, 2], A[2, 2]
    says("*math* would give itself {:.3f} instead of {:.3f}.", *kept)
    distance = torch.cdist(OUT, V)
    says("value of *love*, at {:.3f}. Its own value is at {:.3f}.", *distance[2, 1:])
    assert 0.5 < A[2, 2] < 0.51  # "half of its attention"
    assert distance[2].argmin() == 1 and distance[:, 2].argmin() == 2
    assert torch.equal(A[0].sort().values, A[1].sort().values)  # "in another order"
    torch.testing.assert_close(OUT[1], V[1])


def test_the_untrained_weights():
    torch.manual_seed(123)
    x = torch.nn.Embedding(6, 16)(torch.tensor([0, 1, 2, 3])).detach()
    q, k, v = (torch.nn.Linear(16, 8, bias=False)(x) for _ in range(3))
    weights = attention(q, k, v)[1].detach()
    low, high = weights.min(), weights.max()
    text = (pages.BOOK / "scaling.md").read_text("utf-8")
    assert f"lie between {low:.3f} and {high:.3f}" in text
    assert f"colours run from {low:.2f} to {high:.2f}" in text


def test_variances_of_an_initial_projection():
    torch.manual_seed(0)
    x = torch.randn(500, 64)
    entries, scores = [], []
    for _ in range(20):
        q, k = (torch.nn.Linear(64, 64, bias=False)(x).detach() for _ in range(2))
        entries.append(q.var())
        scores.append((q @ k.T / 8)[~torch.eye(500, dtype=torch.bool)].var())
    assert abs(sum(entries) / 20 - 1 / 3) < 0.02 and abs(sum(scores) / 20 - 1 / 9) < 0.01


def test_softmax_as_competition():
    says("$[2, 1, 0]$, which become {:.3f}, {:.3f} and {:.3f}.", *soft(2, 1, 0))
    says("and softmax makes {:.3f}, {:.3f} and {:.3f} of it", *soft(1.2, 0.1, 2))
    says("is indeed about {:,.0f}.", math.exp(16))
    says("$e^{{10}} / (e^{{10}} + 3) = {:.5f}$, because", soft(10, 0, 0, 0)[0])
    a = torch.tensor([0.991, 0.009], dtype=torch.float64)
    assert softmax_jacobian(a).abs().max() < 0.01  # a decided query
    both = torch.tensor([0.5, 0.5])
    assert softmax_jacobian(both).abs().max() == 0.25
    assert 2.99 < entropy(softmax(torch.tensor([1.0, 1.0, 2.0]), 20.0)).exp() < 3
    assert entropy(softmax(torch.tensor([1.0, 1.0, 2.0]), 0.05)).exp() < 1.00001


def test_the_variance_argument():
    torch.manual_seed(1)
    q, k = torch.randn(2, 100_000, 64)
    s = (q * k).sum(-1)
    assert round(100 * (s.abs() < 16).float().mean().item()) in (95, 96)  # "about 95 of 100"
    assert abs(s.std() - 8) < 0.1
    says("the variance is $3 d_k$, which is {} for $d_k = 64$, not {} (last", 64 * (1 + 2), 64)
    says("But {} of the {} belong to the term", 64, 192)
    shifted = ((q + 1) * (k + 1)).sum(-1)
    assert abs(shifted.var() - 192) < 3
    assert abs(((q + 1) * k).sum(-1).var() - 128) < 2  # of it, what the softmax does not ignore


def test_overflow():
    limit = torch.finfo(torch.float32).max
    assert math.exp(88) < limit < math.exp(89)
    says("is about $3.4 \\cdot 10^{{38}}$, and")
    assert f"{limit:.1e}" == "3.4e+38"
    says("In `float16` it is {:,.0f}, and $e^{{12}}$ is", torch.finfo(torch.float16).max)
    assert math.exp(11) < torch.finfo(torch.float16).max < math.exp(12)


def test_sparsemax_and_sigmoid():
    for z, printed in (((2.0, 1.0, 0.0), "[1, 0, 0]"), ((1.2, 0.1, 2.0), "[0.1, 0, 0.9]")):
        tau = 1.0 if z[0] == 2.0 else 1.1
        weights = [max(x - tau, 0) for x in z]
        assert math.isclose(sum(weights), 1)
        assert ["0" if w == 0 else f"{w:g}" for w in map(lambda w: round(w, 9), weights)] == (
            printed.strip("[]").split(", ")
        )
        says("into $" + printed + "$")
    gates = torch.sigmoid(torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64))
    says("becomes $[{:.3f}, {:.3f}, {:.3f}]$ with sum {:.3f},", *gates, gates.sum())


def test_the_cost():
    d = 512
    attention_work = lambda n: 4 * n * n * d  # noqa: E731
    assert attention_work(2 * d) == 8 * 2 * d * d * d
    assert attention_work(6 * d) == 24 * 6 * d * d * d
    says("With 512 tokens, the part with $n^2$ is only {:.0f} % of "
         "all other work.", 100 * attention_work(512) / (24 * 512 * d * d))  # fmt: skip
    assert 10 < attention_work(32768) / (24 * 32768 * d * d) < 11
    says("{:.0f} GiB per head and layer", 32768**2 * 2 / 2**30)
    says("$d_v = 64$ takes {:.0f} MiB", 32768 * 64 * 2 / 2**20)
    text = (pages.BOOK / "scaling.md").read_text("utf-8")
    both = "projections and feed-forward network together"
    assert f"equals the projections at {2 * d:,} tokens, and {both} at {6 * d:,}." in text
    n = 6 * 4096
    says("$n = 2d = 8{{,}}192$ and $n = 6d = 24{{,}}576$.")
    assert (2 * 4096, n) == (8192, 24576)
    says("bytes are {:.0f} GiB for one layer", 32 * n * n * 2 / 2**30)
    says("numbers, takes {:.0f} MiB.", n * 4096 * 2 / 2**20)


def test_the_solutions_by_hand():
    others = 2 * math.exp(1 / math.sqrt(2))
    x = 0.01 * others / 0.99
    says("$2 e^{{0.707}} = {:.3f}$. Let", others)
    says("$x = 0.01 \\cdot {:.3f} / 0.99 = {:.3f}$", others, x)
    says("score is $\\ln x = {:.3f}$", math.log(x))
    assert math.isclose(soft(math.log(x), 1 / math.sqrt(2), 1 / math.sqrt(2))[0], 0.01)
    golden = (math.sqrt(5) - 1) / 2
    temperature = -1 / math.log(golden)
    says("= {:.3f}$, the golden section", golden)
    says("$T = -1/\\ln {:.3f} = {:.3f}$", golden, temperature)
    weights = soft(2, 1, 0, temperature=temperature)
    says("the weights are {:.3f}, {:.3f} and {:.3f}. ```", *weights)


def test_the_impossible_table():
    a = torch.tensor([[0.3, 0.4, 0.3], [0.2, 0.5, 0.3], [0.4, 0.3, 0.3]], dtype=torch.float64)
    v = torch.tensor([[1.0, 0.0, 0.5], [0.0, 1.0, 0.3], [1.0, 1.0, 0.2]], dtype=torch.float64)
    says("A = \\begin{{bmatrix}} " + matrix(a, ".1f"))
    says("V = \\begin{{bmatrix}} " + matrix(v, ".1f"))
    bad = re.findall(r"and prints \$(.*?)\$, \$(.*?)\$ and \$(.*?)\$", pages.prose("scaling"))[0]
    bad = torch.tensor([[float(x) for x in row.strip("[]").split(",")] for row in bad])
    assert (bad[:, 0] > v[:, 0].max()).all()
    mean = rows((bad[1:2] + bad[2:3]) / 2, 4)[0]
    says("mean of the printed rows 2 and 3 is $" + mean + "$")
    torch.testing.assert_close(a[0], (a[1] + a[2]) / 2)
    one, two, three = rows(a @ v, 2)
    says("has the rows $" + one + "$, $" + two + "$ and $" + three + "$.")
    h = entropy(a)
    assert math.isclose(h[0], h[2])
    says("entropy {:.3f} for both, {:.3f} for row 2", h[0], h[1])


def test_what_the_explorers_are_said_to_show():
    from attention.widgets import RootDk, StepByStep

    long = StepByStep(k=[[0, 1], [1, 0], [6, 6]])
    says("more than 95 % of the attention")
    assert (long.weights[:, 2] > 0.95).all()
    equal = StepByStep(k=[[1, 1]] * 3)
    assert torch.allclose(equal.weights, torch.tensor(1 / 3, dtype=torch.float64))
    assert torch.allclose(equal.out, torch.tensor([3.0, 4.0], dtype=torch.float64))
    raw = [RootDk(n_keys=16).statistics(False, d)["spread"] for d in (4, 16, 64, 256, 1024)]
    assert all(1.5 < b / a < 2.5 for a, b in zip(raw, raw[1:], strict=False))
    assert all(0.7 < RootDk().statistics(True, d)["spread"] < 1.3 for d in (4, 64, 1024))
    two = [RootDk(n_keys=2).statistics(scaled)["largest_jacobian"] for scaled in (False, True)]
    assert two[1] > 5 * two[0] and two[1] / 8 < two[0]  # "on average the division gains nothing"


def test_how_long_it_takes_to_change_a_mind():
    def steps(g, scale=1.0):
        raw, count = g / scale, 0
        while raw < 0:
            p = 1 / (1 + math.exp(-raw * scale))
            raw, count = raw + scale * p * (1 - p) ** 2, count + 1
        return count

    raw, scaled = math.sqrt(128), math.sqrt(2)
    says("$\\sqrt{{128}} = {:.2f}$", raw)
    says("The scaled gap is {:.2f}, too small", scaled)
    says("(it would say {:.0f})", math.exp(scaled))
    says("It takes {:,} steps without the scale and {} with it", steps(-raw), steps(-scaled))
    third = steps(-scaled, 1 / 8)
    says("This takes {} steps.", third)
    says("a factor of {:.0f}, and the saturated softmax another factor of {:.0f}.",
         third / steps(-scaled), steps(-raw) / third)  # fmt: skip
    says("is about {:,} steps", int(round(math.exp(raw), -3)))
    assert 0.9 < steps(-raw) / math.exp(raw) < 1.1


def test_the_guesses_are_answered_by_the_cells():
    page = (pages.BOOK / "scaling.md").read_text("utf-8")
    for name, right in (
        ("shares", "99.99999 %"),
        ("width", "by 2"),
        ("mind", "about 10 days (9,000 times as long)"),
    ):
        rest = page.split(f":answer: glue:scaling-guess-{name}\n")[1].split("=== answer")[0]
        options = re.findall(r"^- (.*)$", rest, re.M)
        assert right in options and len(options) == 3
    assert ":answer: glue:scaling-guess-zero\n" in page
    says("About 0.2, a fifth; with three decimals, {:.3f}.", A[0, 0])


def test_what_it_gives_to_the_cat():
    from attention import cat_sentence

    words, x = cat_sentence("tired")
    scores = (x[:, 0] - x[:, 1]) * x[words.index("it"), 2]
    page = (pages.BOOK / "scaling.md").read_text("utf-8")
    for size in (1, 8, 64):
        assert (
            f"{softmax(size * scores)[1]:.3f}"
            in re.search(r'alt: "Three bar charts over.*', page)[0]
        )
    assert 2.4 < softmax(scores)[1] * 10 < 2.5  # "two and a half times an even share"


def test_captions():
    said = "The entropies of these rows are {:.3f}, {:.3f} and {:.3f}; an even row has {:.3f}."
    assert said.format(*entropy(A).tolist(), math.log(3)) in PAGE
    typical = "a typical score is {:.0f} at width 4 and {:.0f} at width 64"
    assert typical.format(math.sqrt(4), math.sqrt(64)) in PAGE

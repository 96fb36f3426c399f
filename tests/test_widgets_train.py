"""Train it here: the JavaScript that learns, against PyTorch and against finite differences."""

import base64
import gzip
import hashlib
import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
import test_widgets_math as js
import torch
from site_browser import Alone

from attention import widgets
from attention.widgets import _base, _learner
from attention.widgets._learner import SWITCHES

sys.path.insert(0, str(js.HERE.parent / "scripts"))
import pack  # noqa: E402

refused = js.refused
HOST = js.HERE.parent / "book" / "_ext" / "host.js"
NETWORK = js.SHARED + """
export function runs(sizes, given, batch, B, T, on) { // loss, gradient, logits, weights
  const net = network(sizes);
  const theta = Float64Array.from(given);
  const grad = theta.map(() => 0);
  const { loss, logits, weights } = net.run(theta, ...batch, B, T, on, grad);
  return [loss, ...[grad, logits, ...weights].map((x) => Array.from(x))];
}
export function losses(sizes, given, batches, B, T, on, rate) {
  const net = network(sizes);
  const theta = Float64Array.from(given);
  const [m, v] = [0, 0].map(() => theta.map(() => 0));
  return batches.map((batch, step) => {
    const grad = theta.map(() => 0);
    const { loss } = net.run(theta, ...batch, B, T, on, grad);
    net.update(theta, grad, m, v, step + 1, rate);
    return loss;
  });
}
export const begins = (sizes, seed) => {
  const net = network(sizes);
  return net.initial(normals(seed, net.size));
};
"""  # fmt: skip
ALL = dict.fromkeys(SWITCHES, True)
EVERY = [dict(zip(SWITCHES, on, strict=True)) for on in itertools.product([True, False], repeat=5)]


def flat(batch):
    return [x.flatten().tolist() for x in batch]


def weights_of(model):
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def sizes(vocab):
    return {"vocab": vocab, "n": _learner.CONTEXT, "d": 32, "layers": 2}


@pytest.fixture(scope="module")
def names():
    return _learner.make_task(None)


def shaken(vocab, heads, seed):
    """A model none of whose weights is special, gains and biases included."""
    model = _learner.new_model(vocab, heads, seed)
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn_like(p))
    return model


def test_every_gradient_is_that_of_torch_for_all_switches(names):
    calls, wanted = [], []
    for i, on in enumerate(EVERY):
        heads = (1, 2, 4)[i % 3]
        model = shaken(len(names.letters), heads, i)
        ids, targets = (x[:5, : 12 - i % 2] for x in names.batch(i, 0))  # odd sizes too
        logits, weights = _learner.forward(model, ids, on)
        loss = _learner.loss_of(model, (ids, targets), on)
        grads = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
        grads = [torch.zeros_like(p) if g is None else g
                 for p, g in zip(model.parameters(), grads, strict=True)]  # fmt: skip
        calls.append(["runs", sizes(len(names.letters)), weights_of(model).tolist(),
                      flat((ids, targets)), *ids.shape, {"heads": heads, **on}])  # fmt: skip
        wanted.append((loss, torch.cat([g.flatten() for g in grads]), logits, weights))
    for on, got, (loss, grad, logits, weights) in zip(
        EVERY, js.javascript(calls, NETWORK), wanted, strict=True
    ):
        assert abs(got[0] - loss.item()) < 1e-9 * max(1, loss.item()), on
        off = (js.f64(got[1]) - grad).abs() / grad.abs().clamp(min=1)
        assert off.max() < 1e-9, (on, off.max())
        js.same(got[2], logits.flatten(), 1e-9)
        js.same(got[3:], weights.flatten(1), 1e-9)


def test_the_gradient_is_that_of_finite_differences(names):
    source = NETWORK + """
    export function slopes(sizes, given, batch, on, places, step) { // by derivation, by difference
      const net = network(sizes);
      const theta = Float64Array.from(given);
      const grad = theta.map(() => 0);
      net.run(theta, ...batch, 2, 12, on, grad);
      return places.map((at) => [grad[at], [step, -step].map((change) => {
        theta[at] = given[at] + change;
        const { loss } = net.run(theta, ...batch, 2, 12, on);
        theta[at] = given[at];
        return loss / (2 * change);
      }).reduce((a, b) => a + b)]);
    }"""  # fmt: skip
    draw = np.random.default_rng(0)
    calls = []
    for i, on in enumerate([ALL, *({**ALL, name: False} for name in SWITCHES)]):
        theta = weights_of(shaken(len(names.letters), 4, i)).tolist()
        places = draw.choice(len(theta), 100, replace=False).tolist()
        batch = flat(x[:2] for x in names.batch(i, 0))
        calls.append(["slopes", sizes(len(names.letters)), theta, batch, {"heads": 4, **on},
                      places, 1e-6])  # fmt: skip
    found = np.array(js.javascript(calls, source))
    assert np.abs(found).max() > 0.1
    assert (
        np.abs(found[..., 0] - found[..., 1]) < 1e-5 * np.maximum(1, np.abs(found[..., 0]))
    ).all()


@pytest.mark.parametrize("off", [(), ("mask", "scale", "positions")])
def test_a_hundred_steps_cost_what_they_cost_in_torch(names, off):
    on = {name: name not in off for name in SWITCHES}
    model = _learner.new_model(len(names.letters), 4, seed=1)
    theta = weights_of(model).tolist()
    batches = [flat(names.batch(1, step)) for step in range(100)]
    wanted = list(itertools.islice(_learner.steps(model, names, on, 0.003, seed=1), 100))
    got = js.javascript(
        [["losses", sizes(len(names.letters)), theta, batches, 16, 12, {"heads": 4, **on}, 0.003]],
        NETWORK,
    )[0]
    assert np.abs(np.array(got) - wanted).max() < 1e-6
    assert np.mean(wanted[-10:]) < 2.6 < wanted[0]  # and it learns


def test_page_and_package_begin_with_the_same_weights(names):
    for seed in (0, 7):
        model = _learner.new_model(len(names.letters), 4, seed)
        got = js.javascript([["begins", sizes(len(names.letters)), seed]], NETWORK)[0]
        js.same(got, weights_of(model))


def test_the_reference_is_the_books_own_language_model(names):
    model = _learner.new_model(len(names.letters), 2, seed=3)
    ids = names.batch(3, 0)[0]
    logits, weights = _learner.forward(model, ids, ALL)
    own, seen = model(ids, return_weights=True)
    js.same(logits, own)
    js.same(weights, torch.stack(seen))


# ------------------------------------------------------------------ the texts

TEXTS = {
    "names": None,
    "prose": "The cat sat on the mat, because it was tired.\nIt slept.\n" * 9,
    "wide": "".join(chr(0x4E00 + i % 131) + "猫🐈a" for i in range(300)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_page_and_package_make_the_same_task(name):
    task = _learner.make_task(TEXTS[name])
    got = js.javascript([["makeTask", TEXTS[name]]], js.inside("train_here", "makeTask"))[0]
    assert got["letters"] == task.letters and len(task.letters) <= 96
    assert got["tokens"] == task.tokens.tolist() and got["starts"] == task.starts.tolist()
    assert got["held"] == {"tokens": task.held_tokens.tolist(), "starts": task.held_starts.tolist()}
    assert got["shown"] == task.shown.tolist()
    assert ("□" in task.letters) == (name == "wide")


def test_the_best_possible_loss_is_that_of_all_names(names):
    every = _learner.all_names()
    assert len(set(every)) == len(every) and set(_learner.names()) < set(every)
    assert len(_learner.names()) == 3000 and max(map(len, every)) < _learner.CONTEXT
    source = js.inside("train_here", "makeTask", "bestLoss") + (
        "\nexport const best = () => bestLoss(makeTask(null));"
    )
    best = js.javascript([["best"]], source)[0]
    js.same(best, _learner.best_loss(names))
    # A name of k letters costs log(number of names) in k + 1 steps, whichever it is.
    lengths = np.array([len(name) + 1 for name in every])
    assert abs(best - np.log(len(every)) / lengths.mean()) < 0.2


# ------------------------------------------------------------------ the training in the page

TRAINER = js.inside("train_here", "makeTask", "network", "trainer", "uniform", "normals") + """
export function trains(messages, on, rate, seed) { // all at once: a slice has no end
  const task = makeTask(null);
  const heard = [];
  const tell = trainer((message) => heard.push(message), network, uniform, 1e9);
  const later = [];
  globalThis.setTimeout = (f) => later.push(f);
  globalThis.clearTimeout = () => { later.length = 0; };
  tell({ begin: { ...task, id: 1, turn: 0, seed, step: 0, bell: normals(seed, network(task).size) },
    on, rate });
  for (const message of messages) {
    tell(message);
    while (later.length) later.shift()();
  }
  return heard.map(({ maps, theta, samples, ...rest }) => ({ ...rest, samples: samples.map((ids) =>
    ids.map((i) => task.letters[i]).join("")), maps: maps.map((m) => Array.from(m)),
    finite: !theta || theta.every(Number.isFinite) }));
}
"""  # fmt: skip


def page_trains(messages, on=ALL, rate=0.01, seed=0, heads=4):
    return js.javascript([["trains", messages, {"heads": heads, **on}, rate, seed]], TRAINER)[0]


def test_the_page_takes_the_steps_of_the_package(names):
    first, last = page_trains([{"run": 60, "turn": 1}], seed=2, rate=0.005)
    assert first["step"] == 0 and last["step"] == 60 and last["done"] and last["turn"] == 1
    w = widgets.TrainHere(seed=2, learning_rate=0.005)
    w.train(60)
    assert np.abs(np.array(last["losses"]) - w.losses).max() < 1e-6
    held = first["held"] + last["held"]
    assert [at for at, _ in held] == [0, 20, 40, 60] == [at for at, _ in w.held_out]
    assert np.abs(np.array(held) - w.held_out).max() < 1e-6
    assert np.abs(np.array(last["maps"]) - w.maps.flatten(1).numpy()).max() < 1e-5
    assert len(last["samples"]) == 8 and all(s.isalpha() for s in last["samples"] if s)
    w.close()


def test_switches_act_while_it_trains(names):
    off = {"heads": 1, **ALL, "mask": False}
    before, after, done = page_trains([{"on": off, "rate": 0.003}, {"run": 40, "turn": 1}])
    assert np.triu(np.reshape(before["maps"][0], (4, 12, 12)), 1).max() == 0
    assert len(after["maps"][0]) == 144 and np.triu(np.reshape(after["maps"][0], (12, 12)), 1).any()
    model = _learner.new_model(len(names.letters), 1, 0)
    steps = _learner.steps(model, names, {**ALL, "mask": False}, 0.003, 0)
    wanted = list(itertools.islice(steps, 40))
    assert np.abs(np.array(done["losses"]) - wanted).max() < 1e-6


def test_what_diverges_stops_and_goes_back():
    wild = {**ALL, "norms": False}
    heard = page_trains([{"run": 30, "turn": 1}, {"on": {"heads": 4, **wild}, "rate": 1.0},
                         {"run": 1000, "turn": 2}])  # fmt: skip
    last = heard[-1]
    assert last["diverged"]["step"] >= last["step"] == 20 and last["finite"]
    assert last["diverged"]["loss"] is None or last["diverged"]["loss"] > 10 * np.log(25)
    assert np.isfinite(last["maps"]).all() and len(last["samples"]) == 8
    # and from there it learns on
    calm = [{"on": {"heads": 4, **ALL}, "rate": 0.003}, {"run": 100, "turn": 3}]
    more = page_trains([{"run": 30, "turn": 1}, {"on": {"heads": 4, **wild}, "rate": 1.0},
                        {"run": 1000, "turn": 2}, *calm])[-1]  # fmt: skip
    assert more["step"] == 120 and np.mean(more["losses"][-10:]) < 2.2


# ------------------------------------------------------------------ weight and a worker


def small(script: str) -> str:
    """The script as the site ships it: made small by esbuild."""
    program = (
        "const e = require(process.argv[1] + '/esbuild');"
        "e.transform(require('fs').readFileSync(0, 'utf-8'), { minify: true })"
        ".then((r) => process.stdout.write(r.code));"
    )
    done = subprocess.run(
        [pack.NODE, "-e", program, str(pack.TOOLS)], input=script, capture_output=True,
        encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_small_and_its_worker_stands_alone_once_minified():
    parts = [small(_base.static_module(name)) for name in ("learner", "train_here")]
    assert len(gzip.compress("".join(parts).encode())) <= 15 * 1024
    needs = [small(_base.static_module(name)) for name in ("mathematics", "models")]
    source = "globalThis.window = globalThis;\n" + "\n".join([*needs, parts[0]]) + """
    const { network, trainer, uniform } = window.attentionExplorers.shared;
    export const alone = () => {
      const text = `(${trainer})((m) => heard.push(m), ${network}, ${uniform}, 40)`;
      const heard = [];
      const tell = new Function("heard", `return ${text}`)(heard); // sees nothing of this module
      const half = { tokens: Array.from({ length: 60 }, (_, i) => i % 3), starts: [0, 7, 20] };
      tell({ begin: { vocab: 3, n: 12, d: 32, layers: 2, ...half, held: half,
        shown: half.tokens.slice(0, 12),
        opening: 0, closing: -1, samples: 1, longest: 5, id: 1, turn: 0, seed: 0, step: 0,
        bell: new Float32Array(30000) }, on: { heads: 4, mask: true, scale: true, positions: true,
        residual: true, norms: true }, rate: 0.01 });
      return heard.map((m) => [m.step, m.held[0][1]]);
    };"""  # fmt: skip
    js.same(js.javascript([["alone"]], source)[0], [[0, np.log(3)]])


# ------------------------------------------------------------------ in Python


def test_in_python():
    w = widgets.TrainHere(heads=2, norms=False, learning_rate=0.003)
    assert "without norms" in w.caption and "2 heads" in w.caption
    assert "The loss of its first 60 steps, here computed in PyTorch" in w.caption
    w.train(25)
    assert w.step == len(w.losses) == 25 and [at for at, _ in w.held_out] == [0, 20]
    assert w.maps.shape == (2, 2, 12, 12) and "first 25 steps goes" in w.caption
    js.same(weights_of(w.model), np.frombuffer(base64.b64decode(w.weights), "<f4"))
    w.seed = 4
    assert (w.step, w.losses, w.held_out, w.weights) == (0, [], [], "")
    w.data = "own"
    assert "no step has been taken" in w.caption and w.still_png()
    with pytest.raises(ValueError, match="text must have at least 200 characters; got none"):
        w.train(1)
    with refused("text must have at least 200 characters; got 5"):
        w.text = "short"
    w.text = TEXTS["prose"]
    w.train(2)
    assert w.step == 2
    with refused("heads must be 1, 2 or 4; got 3"):
        w.heads = 3
    with refused("data must be one of names, tales, own; got 'poems'"):
        w.data = "poems"
    with refused("learning_rate must be a number from 0.0001 to 1; got 0"):
        w.learning_rate = 0
    w.close()


def test_a_loss_that_is_no_number_is_said():
    w = widgets.TrainHere()
    size = len(weights_of(w.model))
    w.weights = base64.b64encode(np.full(size, np.nan, "<f4").tobytes()).decode("ascii")
    with pytest.raises(ValueError, match="the loss must stay a number; got nan at step 0"):
        w.train(1)
    w.close()


# ------------------------------------------------------------------ in the browser


def alone(views: int = 1, worker: bool = True) -> str:
    """A page with the explorer alone, under the policy of the book's pages."""
    state = {k: v for k, v in widgets.TrainHere().get_state().items() if k[0] != "_"}
    state = json.dumps({k: v for k, v in state.items() if k != "layout"})
    scripts = [_base.static_module(part) for part in _base.shared_parts(["train_here"])]
    scripts += [_base.static_module("train_here"), HOST.read_text("utf-8")]
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy = pack.POLICY.format(hashes=hashes)
    if not worker:
        policy = policy.replace("worker-src 'self' blob:", "worker-src 'none'")
    place = (
        "<div data-explorer=train_here data-model=m><script type=application/json>"
        f"{state}</script></div>"
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>x</title><meta "
        f'http-equiv="Content-Security-Policy" content="{policy}"><style>'
        f"{js.WIDGETS.joinpath('explorer.css').read_text('utf-8')}</style><body>{place * views}"
        + "".join(f"<script>{script}</script>" for script in scripts)
    )


class Opened(Alone):
    """The explorer that trains, from a file."""

    def __init__(self, chrome, tmp_path, width=800, **how):
        file = tmp_path / "train.html"
        file.write_text(alone(**how), "utf-8")
        super().__init__(chrome, width)
        self.page.goto(file.as_uri())
        self.wait("writes now")

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def wait(self, text):
        self.page.wait_for_function(
            "text => document.querySelector('.explorer').innerText.includes(text)", arg=text
        )

    def rested(self):
        self.page.wait_for_function(
            "() => /Step \\d+: the training/.test(document.querySelector('.explorer').innerText)"
        )

    def step(self):
        return int(self.page.locator(".readouts dd").first.inner_text().split()[0])

    def reach(self, step):
        self.page.wait_for_function(
            "step => parseInt(document.querySelector('.readouts dd').innerText) >= step", arg=step
        )


@pytest.mark.browser
def test_it_opens_trains_pauses_and_resets(chrome, tmp_path):
    with Opened(chrome, tmp_path) as it:
        assert it.step() == 0
        it.press("One step")
        it.reach(1)
        it.press("Train")
        it.reach(20)
        it.press("Pause")
        it.rested()
        at = it.step()
        it.page.wait_for_timeout(400)
        assert it.step() == at  # and it rests
        assert float(it.page.locator(".readouts dd").nth(1).inner_text()) < 3
        shaded = "document.querySelector('.tile:not(:empty)').closest('.heat').innerText"
        before = it.page.evaluate(shaded)
        it.page.get_by_label("mask").uncheck()
        it.page.wait_for_function(f"before => {shaded} !== before", arg=before)
        it.wait("without mask")
        it.press("Reset")
        it.wait("Step 0: the weights are random.")
        assert it.step() == 0 and it.page.get_by_label("mask").is_checked()


@pytest.mark.browser
def test_without_a_worker_it_trains_in_the_page_which_stays_quick(chrome, tmp_path):
    with Opened(chrome, tmp_path, worker=False) as it:
        it.press("Train")
        it.reach(10)
        it.press("Pause")
        it.rested()
        refused = [text for text in it.complaints if "violates" in text and "worker" in text]
        assert refused == it.complaints != []  # the browser's own words on the policy
        it.complaints.clear()


@pytest.mark.browser
def test_divergence_is_said_and_leads_back(chrome, tmp_path):
    with Opened(chrome, tmp_path) as it:
        it.page.get_by_label("norms").uncheck()
        it.page.get_by_label("learning rate, typed").fill("1")
        it.press("Train")
        it.wait("The training has diverged: at step")
        assert it.page.get_by_role("button", name="Train", exact=True).is_visible()
        back = it.step()
        it.page.get_by_label("norms").check()
        it.page.get_by_label("learning rate, typed").fill("0.003")
        it.press("Train")
        it.reach(back + 5)
        it.press("Pause")


@pytest.mark.browser
def test_a_text_of_the_readers(chrome, tmp_path):
    with Opened(chrome, tmp_path, width=320) as it:
        it.page.get_by_label("learns from").select_option("own")
        it.wait("Paste a text of at least 200 characters")
        train = it.page.get_by_role("button", name="Train", exact=True)
        assert train.get_attribute("aria-disabled") == "true"  # nothing to learn from
        train.click(force=True)
        area = it.page.get_by_label("your own text")
        area.fill("short")
        it.press("Learn this text")
        it.wait("The text must have at least 200 characters; this one has 5.")
        area.fill(TEXTS["prose"])
        it.press("Learn this text")
        it.wait("what it writes now")
        it.press("One step")
        it.reach(1)
        for data in ("tales", "names"):
            it.page.get_by_label("learns from").select_option(data)
            it.wait("It learns from")
        assert it.page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.browser
def test_two_views_show_one_training(chrome, tmp_path):
    with Opened(chrome, tmp_path, views=2) as it:
        it.press("Train")
        it.reach(5)
        it.press("Pause")
        it.rested()
        both = it.page.locator(".readouts").all_inner_texts()
        assert len(both) == 2 and both[0] == both[1]

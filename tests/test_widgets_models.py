"""The trained models in the explorers: JavaScript against torch, the weights, the recipes."""

import base64
import functools
import itertools
import json
import random
import re
import sys
from pathlib import Path

import numpy as np
import pages
import pytest
import test_widgets_math as js
import torch
from site_browser import Alone

import attention
from attention import head_parts, patch_heads, widgets
from attention.data import pronoun_task, weather_sentences
from attention.widgets import _base, _weights, generation, heads, patches

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import train_explorers  # noqa: E402

refused = js.refused
FLAT = """
const flat = (x) => ArrayBuffer.isView(x) ? Array.from(x) : Array.isArray(x) ? x.map(flat)
  : x && typeof x === "object"
    ? Object.fromEntries(Object.entries(x).map(([key, value]) => [key, flat(value)])) : x;
"""


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """The models are too small to share out among cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# ------------------------------------------------------------------ the small functions


def shared(calls: list) -> list:
    names = sorted({name for name, *_ in calls})
    source = (
        js.SHARED
        + FLAT
        + "".join(
            f"export const flat_{name} = (...args) => flat({name}(...args));\n" for name in names
        )
    )
    return js.javascript([[f"flat_{name}", *args] for name, *args in calls], source)


def test_halves_are_read_as_numpy_reads_them():
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    every = every[np.isfinite(every)]
    text = base64.b64encode(every.astype("<f2").tobytes()).decode()
    assert shared([["halves", text]])[0] == every.astype(float).tolist()


def test_linear_layers_and_norms_agree():
    draw = np.random.default_rng(0)
    calls, wanted = [], []
    for n, a, b in draw.integers(1, 7, size=(1000, 3)):
        x, w, c = draw.normal(size=(n, a)), draw.normal(size=(b, a)), draw.normal(size=b)
        offset = draw.random() < 0.7
        calls.append(["linear", x.tolist(), w.ravel().tolist(), c.tolist() if offset else None])
        wanted.append(x @ w.T + c * offset)
    for _ in range(1000):
        d = int(draw.integers(1, 40))
        x, gain, offset = draw.normal(size=(3, d)) * draw.choice([1e-3, 1, 1e3])
        x = np.full(d, 2.5) if draw.random() < 0.05 else x
        calls.append(["layerNorm", x.tolist(), gain.tolist(), offset.tolist()])
        norm = torch.nn.functional.layer_norm
        wanted.append(norm(js.f64(x), (d,), js.f64(gain), js.f64(offset)))
    for got, want in zip(shared(calls), wanted, strict=True):
        js.same(got, want)


def test_blocks_agree_with_the_package():
    draw = random.Random(1)
    names = {
        "attention.w_": ["q", "k", "v", "o"],
        "feed_forward.": ["widen", "narrow"],
        "add_": ["attention.norm", "feed_forward.norm"],
    }
    ours = {"add_attention.norm": "normAttention", "add_feed_forward.norm": "normForward"}
    calls, wanted = [], []
    for seed in range(1000):
        torch.manual_seed(seed)
        h, n, causal = draw.choice([1, 2]), draw.randint(1, 6), draw.random() < 0.5
        block = attention.EncoderBlock(4, h).double()
        for p in block.parameters():
            torch.nn.init.normal_(p)
        w = {}
        for prefix, parts in names.items():
            for part in parts:
                layer = block.get_submodule(prefix + part)
                key = ours.get(prefix + part, part)
                w[key] = layer.weight.flatten().tolist()
                w[f"{key}Offset"] = layer.bias.tolist()
        on = [draw.randint(0, 1) for _ in range(h)]
        x = torch.randn(1, n, 4, dtype=torch.float64)
        calls.append(["block", x[0].tolist(), w, h, {"causal": causal, "on": on}])
        with torch.no_grad():
            wanted.append(block(x, is_causal=causal, head_mask=torch.tensor(on)))
    for got, (x, weights) in zip(shared(calls), wanted, strict=True):
        js.same(got["x"], x[0])
        js.same(got["weights"], weights[0])


def test_cut_distributions_agree():
    draw = random.Random(2)
    calls, wanted = [], []
    for _ in range(1500):
        n = draw.randint(1, 35)
        logits = [draw.gauss(0, 3) for _ in range(n)]
        if draw.random() < 0.2:
            logits[-1] = logits[0]
        t, k = draw.choice([0.1, 1, 5]), draw.choice([1, 2, 5, 35])
        p = draw.choice([0.05, 0.5, 0.9, 1])
        calls.append(["nextProbabilities", logits, t, k, p])
        wanted.append(attention.next_token_probabilities(js.f64(logits), t, k, p))
    for got, want in zip(shared(calls), wanted, strict=True):
        js.same(got, want)


def test_draws_are_the_same_in_python():
    cases = list(itertools.product([*range(100), 999], range(14)))
    got = shared([["uniform", *case] for case in cases])
    assert got == [generation.uniform(*case) for case in cases]
    assert abs(np.mean(got) - 0.5) < 0.02 and 0 < min(got) and max(got) < 1
    draw = np.random.default_rng(3)
    calls = []
    for _ in range(1000):
        p = draw.dirichlet(np.full(6, 0.5)) * (draw.random(6) < 0.6)
        p = p / p.sum() if p.sum() else np.eye(6)[2]
        calls.append(["drawToken", p.tolist(), draw.choice([draw.random(), 1 - 1e-16])])
    for call, token in zip(calls, shared(calls), strict=True):
        assert token == generation.draw(js.f64(call[1]), call[2])
        assert call[1][token] > 0


# ------------------------------------------------------------------ the models, all inputs

OFF = [[], [(1, 0)], [(0, 3)], [(0, 0), (1, 2), (1, 3)],
       list(itertools.product(range(2), range(4)))]  # fmt: skip
TWIN = [[], [(0, 3)], [], [(0, 1), (0, 2), (1, 3)], [(1, 0)], [(0, 3), (1, 1)],
        list(itertools.product(range(2), range(4)))]  # fmt: skip


def test_heads_compute_as_torch_on_every_sentence_of_the_vocabulary():
    task = pronoun_task()
    model = widgets.Heads().model
    ids = torch.cat([task.train_ids, task.test_ids])
    sets = [(OFF[i % len(OFF)], TWIN[i % len(TWIN)]) for i in range(len(ids))]
    extra = (
        FLAT
        + """
export const at = (words, off, twin) => { const r = read(words, off, twin); return flat({
  logits: r.logits[IT], p: r.probabilities, rows: r.weights.map((l) => l.map((h) => h[IT])) }); };
export const vocabulary = () => WORDS;
export const choices = () => CHOICES;
"""
    )
    source = js.inside("heads", "sentence") + extra
    calls = [["at", task.vocabulary.decode(row).split(), off, twin]
             for row, (off, twin) in zip(ids, sets, strict=True)]  # fmt: skip
    words, choices, *got = js.javascript([["vocabulary"], ["choices"], *calls], source)
    assert words == task.vocabulary.words
    assert choices == heads.CHOICES
    period = len(OFF) * len(TWIN)  # the two lengths share no divisor: every pair comes
    for k in range(period):
        off, twin = sets[k]
        mask = torch.ones(2, 4)
        for head in off:
            mask[head] = 0
        some = ids[k::period]
        _, said = head_parts(model, task.twins(some))
        given = {(layer, head): said[layer, :, head, task.it] for layer, head in twin}
        logits, weights = patch_heads(
            model, some, task.it, given, head_mask=mask, return_weights=True
        )
        mine = got[k::period]
        at = logits[:, task.it]
        for key, want in (
            ("logits", at),
            ("p", at.softmax(-1)),
            ("rows", torch.stack(weights)[:, :, :, task.it].transpose(0, 1)),
        ):
            js.same([x[key] for x in mine], want, 1e-4)


@pytest.mark.parametrize("masked", [True, False])
def test_generation_computes_as_torch_on_every_beginning_of_a_sentence(masked):
    vocabulary = generation._vocabulary()
    begun = {" ".join(s.split()[:n]) for s in weather_sentences() for n in range(11)}
    begun |= {"sky sky sky", "red <end> <pad> the", " ".join(["quiet"] * 14)}
    texts = sorted(begun)
    extra = (
        FLAT
        + """
export const at = (words) => flat(answer(words, MASKED));
export const vocabulary = () => WORDS;
export const sentences = () => SENTENCES;
export const prompts = () => PROMPTS;
""".replace("MASKED", str(masked).lower())
    )
    source = js.inside("generation", "finish") + extra
    calls = [["at", text.split()] for text in texts]
    words, known, prompts, *got = js.javascript(
        [["vocabulary"], ["sentences"], ["prompts"], *calls], source
    )
    assert words == vocabulary.words
    assert known == weather_sentences()
    assert set(prompts) <= begun
    model = generation._trained(masked)
    for text, mine in zip(texts, got, strict=True):
        ids = vocabulary.encode(["<start>" if masked else "<end>", *text.split()])[None]
        with torch.no_grad():
            logits, weights = model(ids, return_weights=True)
        js.same(mine["logits"], logits[0, -1], 1e-4)
        js.same(mine["rows"], weights[-1][0, :, -1], 1e-4)


def test_page_and_package_write_the_same_sentences():
    states = []
    for seed, (t, k, p), masked in itertools.product(
        range(12), [(1, 35, 1), (2, 35, 1), (2, 3, 1), (2, 35, 0.9)], [True, False]
    ):
        states.append({"prompt": ["", "the sun"][seed % 2], "temperature": t, "top_k": k,
                       "top_p": p, "masked": masked, "seed": seed, "written": []})  # fmt: skip
    source = js.inside("generation", "finish")
    for state, got in zip(
        states, js.javascript([["finish", state] for state in states], source), strict=True
    ):
        w = widgets.Generation(**state)
        w.whole_sentence()
        assert w.written == got
        w.close()


def test_patches_compute_as_torch_on_every_image_with_patches_erased():
    draw = random.Random(8)
    model = widgets.PatchAttention().model
    extra = FLAT + "export const at = (image, erased) => flat(read(image, erased));"
    extra += "export const shown = (image) => [ink(image), IMAGES[image][1]];"
    source = js.inside("patches", "read") + extra
    states = [(image, sorted(draw.sample(range(1, 17), k))) for image in range(12)
              for k in (0, 1, 5, 16)]  # fmt: skip
    calls = [["at", image, erased] for image, erased in states]
    calls += [["shown", image] for image in range(12)]
    got = js.javascript(calls, source)
    images, labels = attention.digits()
    for (pixels, label), index in zip(got[len(states) :], patches.IMAGES, strict=True):
        assert pixels == images[index].flatten().tolist() and label == labels[index]
    for (image, erased), mine in zip(states, got, strict=False):
        w = widgets.PatchAttention(image=image, erased=erased)
        with torch.no_grad():
            logits, weights = model(w.pixels[None], return_weights=True)
        js.same(mine["logits"], logits[0], 1e-4)
        js.same(mine["probabilities"], logits[0].softmax(-1), 1e-4)
        js.same(mine["weights"], torch.stack(weights)[:, 0], 1e-4)
        w.close()


# ------------------------------------------------------------------ what the weights can do


def held_out(model):
    """Accuracy; the strongest head; its mean weight on the referent and on the other noun."""
    task = pronoun_task()
    with torch.no_grad():
        _, weights = model(task.test_ids, return_weights=True)
    rows = torch.stack(weights)[:, :, :, task.it]  # (layers, B, h, n)
    animal = task.test_referents == task.test_ids[:, task.animal]
    means = {}
    for meant, name, at, other in (
        (animal, "animal", task.animal, task.place),
        (~animal, "place", task.place, task.animal),
    ):
        means[name] = rows[:, meant, :, at].mean(1), rows[:, meant, :, other].mean(1)
    best = torch.minimum(means["animal"][0], means["place"][0]).argmax().item()
    layer, head = divmod(best, 4)
    return task.accuracy(model), (layer, head), {
        name: (right[layer, head].item(), wrong[layer, head].item())
        for name, (right, wrong) in means.items()
    }  # fmt: skip


def test_heads_meet_the_condition_of_the_landing_page():
    accuracy, head, means = held_out(widgets.Heads().model)
    assert accuracy == 1
    assert head == (1, 0)
    for right, wrong in means.values():
        assert right >= 0.85 and wrong <= 0.1


def test_the_strong_head_moves_with_the_adjective():
    w = widgets.Heads()
    for adjective, word, at in (("tired", "animal", 1), ("wide", "street", 6)):
        w.adjective = adjective
        assert w.prediction == word and w.words[at] == word
        assert w.weights[1, 0, 8, at] > 0.85
        assert w.weights[1, 0, 8, 7 - at] < 0.1
    w.off = [[0, 3]]
    assert w.prediction == "animal"


def test_one_head_of_the_twin_sentence_changes_the_answer():
    for adjective, mine, other in (("tired", "animal", "street"), ("wide", "street", "animal")):
        w = widgets.Heads(adjective=adjective, twin=[[0, 0], [0, 1], [0, 2]])
        assert w.prediction == mine
        w.twin = [[0, 3]]
        assert w.prediction == other
        w.off = [[0, 3]]
        assert w.prediction == other, "off or on, it says what it says in the twin"


def test_the_masked_model_writes_sentences_and_its_twin_does_not():
    right = {}
    for masked in (True, False):
        w = widgets.Generation(prompt="", masked=masked)
        right[masked] = 0
        for seed in range(40):
            w.written, w.seed = [], seed
            w.whole_sentence()
            right[masked] += w.in_corpus
    assert right[True] >= 32 and right[False] == 0


def test_weights_are_as_small_as_promised():
    size = lambda name: (Path(_base.__file__).parent / f"{name}_weights.js").stat().st_size  # noqa: E731
    assert size("heads") < 100_000
    assert size("generation") < 150_000
    assert size("patches") < 80_000


# ------------------------------------------------------------------ the recipes


def alike(model, text: str, tolerance: float = 0.05) -> None:
    """Another processor may round otherwise; another recipe or seed gives other weights."""
    flat = torch.cat([x.flatten() for x in model.state_dict().values()])
    packed = np.frombuffer(base64.b64decode(text), "<f2").astype(np.float32)
    assert len(packed) == len(flat)
    assert np.linalg.norm(packed - flat.numpy()) < tolerance * np.linalg.norm(packed)


def cells(page: str, *marks: str) -> tuple[dict, list[str]]:
    """The package's names, and the chapter's cells that hold one of the marks."""
    text = (pages.BOOK / f"{page}.md").read_text("utf-8")
    found = [c for c in re.findall(r"^```\{code-cell\} python\n(.*?)^```$", text, re.S | re.M)
             if any(mark in c for mark in marks)]  # fmt: skip
    assert len(found) == len(marks), f"book/{page}.md must hold each of {marks} once"
    found = [re.sub(r"\A(:[\w-]+:.*\n)+", "", c) for c in found]  # a folded cell's tags
    names = {name: getattr(attention, name) for name in attention.__all__}
    names |= {"torch": torch, "F": torch.nn.functional}
    return names, found


def run(page: str, *marks: str) -> dict:
    """What the names of these cells hold after they have run."""
    names, found = cells(page, *marks)
    for cell in found:
        exec(compile(cell, f"book/{page}.md", "exec"), names)
    return names


def test_the_command_reproduces_the_heads(capsys):
    model = train_explorers.pronouns()
    alike(model, _weights.read("heads")["model"])
    accuracy, head, _ = held_out(model)
    assert accuracy == 1 and head == (1, 0)
    with pytest.raises(AssertionError):
        torch.manual_seed(5)
        alike(attention.Encoder(44, 32, 4, 2, tied=False), _weights.read("heads")["model"])


def test_the_heads_are_those_of_chapter_4():
    names = run("multi-head", "history = train(\n")
    alike(names["model"], _weights.read("heads")["model"])


def test_the_language_model_is_that_of_chapter_7():
    names = run("blocks", "held_out, training = ")
    alike(names["model"], _weights.read("generation")["masked"])


def test_the_unmasked_model_is_that_of_chapter_6():
    names, found = cells("masking", "def windows(", "def trained(")
    names["device"] = lambda: torch.device("cpu")
    for cell in found:  # the function alone, not the six trainings
        exec(compile(cell.split("\nruns = {}")[0], "book/masking.md", "exec"), names)
    model, _ = names["trained"](0, is_causal=False)
    alike(model, _weights.read("generation")["unmasked"])


def test_packing_keeps_sizes_apart():
    model = attention.Encoder(10, 8, 2, 1)
    again = _weights.unpack(attention.Encoder(10, 8, 2, 1), _weights.pack(model))
    for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(a.half(), b.half())
    with pytest.raises(ValueError, match="the model has .* numbers; got"):
        _weights.unpack(attention.Encoder(11, 8, 2, 1), _weights.pack(model))
    assert _weights.read("temperature") == {}


# ------------------------------------------------------------------ what the pages say


def test_the_pages_say_what_the_explorers_show():
    pages.printed("blocks", 'Choose "Trained without the mask", the model')
    w = widgets.Generation(prompt="the sun", masked=False, top_k=1)
    said = "the sun sets slowly and"  # again and again
    assert w.whole_sentence().startswith(f"{said} {said} ") and "<end>" not in w.written
    pages.printed("index", "with other seeds the heads divide the work differently")
    pages.printed("multi-head", "(With *tired*, at least three must be off.)")
    every = [[layer, head] for layer in range(2) for head in range(4)]
    for adjective, noun, needed in (("wide", "street", 1), ("tired", "animal", 3)):
        w = widgets.Heads(adjective=adjective)
        for count in range(1, needed + 1):
            fatal = []
            for off in itertools.combinations(every, count):
                w.off = list(off)
                if w.prediction != noun:
                    fatal.append(off)
            assert bool(fatal) == (count == needed)
    w = widgets.Heads(adjective="wide")
    assert w.weights[0, 3, 8, [1, 6]].max() < 0.01
    assert "Other seeds train other heads" in re.sub(r'"\s*\+\s*"', "", js.inside("heads", "read"))


# ------------------------------------------------------------------ in Python


def test_heads_in_python():
    w = widgets.Heads(off=[(1, 0), [0, 3], (1, 0)])
    assert w.off == [[0, 3], [1, 0]]
    assert w.weights.shape == (2, 4, 12, 12)
    js.same(w.probabilities.sum(), 1.0)
    assert "without heads L0H3, L1H0" in w.caption
    w.off, w.twin = [], [[0, 3]]
    assert "with the output of the “wide” sentence in head L0H3." in w.caption
    assert w.prediction == "street" and w.twin_words[-1] == "wide"
    with refused("place must be one of street, bridge,"):
        w.place = "moon"
    with refused("off must be pairs [layer, head] with layer 0 or 1 and head 0 to 3; got [[2, 0]]"):
        w.off = [[2, 0]]
    with refused("off must be pairs [layer, head]"):
        w.off = [3]
    with refused(
        "twin must be pairs [layer, head] with layer 0 or 1 and head 0 to 3; got [[0, 4]]"
    ):
        w.twin = [[0, 4]]
    with refused("head must be a whole number from 0 to 3; got 4"):
        w.head = 4


def test_generation_in_python():
    w = widgets.Generation(prompt="the sun sets and the sky turns", top_k=1)
    assert w.next_word() == "red" and w.next_word() == "<end>"
    assert w.finished and w.in_corpus and w.next_word() is None
    w.step = 1
    assert w.tokens[-1] == "turns" and w.weights.shape == (8,)
    seed = w.seed
    w.start_again()
    assert w.written == [] and w.seed == seed + 1
    w.next_word()
    w.masked = False
    assert w.written == []
    js.same(w.probabilities.sum(), 1.0)
    with refused("prompt must be words of the vocabulary of 35; got 'pizza'"):
        w.prompt = "pizza"
    with refused("prompt must be at most 12 words; got 13"):
        w.prompt = " ".join(["the"] * 13)
    with refused("written must be at most 14 words; got 15"):
        w.written = ["the"] * 15
    with refused("temperature must be a number from 0.1 to 5; got 0"):
        w.temperature = 0


def test_patch_attention_in_python():
    w = widgets.PatchAttention(erased=[6, 3, 6])
    assert w.erased == [3, 6] and w.weights.shape == (2, 2, 17, 17)
    assert w.pixels[0:2, 4:6].abs().max() == 0 and w.pixels[2:4, 2:4].abs().max() == 0
    assert "without 2 of its 16 patches" in w.caption
    js.same(w.probabilities.sum(), 1.0)
    w = widgets.PatchAttention(image=10)
    assert (w.label, w.prediction) == (9, 8)
    with refused("erased must be numbers of patches from 1 to 16; got [0]"):
        w.erased = [0]
    with refused("image must be a whole number from 0 to 11; got 12"):
        w.image = 12
    with refused("token must be a whole number from 0 to 16; got 17"):
        w.token = 17


# ------------------------------------------------------------------ in the browser


@functools.cache
def standalone(name: str) -> str:
    """A page with the explorer alone, in its opening state, as the book loads it."""
    cls = next(cls for cls in js.CLASSES if cls.name == name)
    state = {k: v for k, v in cls().get_state().items() if k[0] != "_" and k != "layout"}
    scripts = [_base.static_module(s) for s in (*_base.SHARED, *_base.weights_of(name), name)]
    scripts.append((ROOT / "book/_ext/host.js").read_text("utf-8"))
    css = (Path(_base.__file__).parent / "explorer.css").read_text("utf-8")
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>x</title><style>{css}</style>"
        f"<body><div data-explorer={name} data-model=m><script type=application/json>"
        f"{json.dumps(state)}</script></div>"
        + "".join(f"<script>{script}</script>" for script in scripts)
    )


class Opened(Alone):
    """An explorer by its name."""

    def __init__(self, chrome, name, width=800):
        super().__init__(chrome, width)
        self.page.set_content(standalone(name))

    def tab_to(self, selector, presses=80):
        for _ in range(presses):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("s => document.activeElement.matches(s)", selector):
                return
        raise AssertionError(f"Tab never reaches {selector}")

    def waits_to_say(self, words, seconds=90):
        """What takes a busy machine long; fail with what went wrong in the page."""
        for _ in range(4 * seconds):
            if words in self.page.locator(".say").inner_text():
                return
            self.page.wait_for_timeout(250)
        raise AssertionError(f"never says {words!r}: {self.says()!r}, {self.complaints}")


@pytest.mark.browser
def test_heads_work_by_keyboard(chrome):
    with Opened(chrome, "heads") as heads:
        keys = heads.page.keyboard
        assert "thinks that “it” means “animal”" in heads.says()
        heads.tab_to("[aria-label=adjective]")
        keys.type("wide")
        assert "thinks that “it” means “street”" in heads.says()
        heads.tab_to("[aria-label='head L0H3 is']")
        keys.type("off")
        said = heads.says()
        assert (
            "thinks that “it” means “animal”" in said
            and "wrong" in said
            and "Off: head L0H3." in said
        )
        keys.press("Home")
        assert "thinks that “it” means “street”" in heads.says()
        keys.press("End")
        said = heads.says()
        assert "thinks that “it” means “animal”" in said and "“tired”: head L0H3." in said
        heads.tab_to(".map[aria-label^='L1H2']")
        keys.press("Enter")
        assert "In L1H2" in heads.says()
        heads.tab_to("[role=gridcell]")
        keys.press("ArrowDown")
        assert heads.page.evaluate("document.activeElement.dataset.i") == "1"
        heads.tab_to(".reset")
        keys.press("Enter")
        assert heads.says().startswith("The model thinks that “it” means “animal”")


@pytest.mark.browser
def test_generation_works_by_keyboard(chrome):
    with Opened(chrome, "generation") as written:
        keys, chips = written.page.keyboard, written.page.locator(".chip")
        before = chips.count()
        for place in (1, 2):  # "Next word", "Whole sentence"
            written.tab_to(f"[aria-label=Write] button:nth-child({place})")
            keys.press("Enter")
        assert chips.count() > before + 3
        said = written.says()
        assert "sentence of the corpus" in said
        written.tab_to("button.chip")
        keys.press("Enter")
        assert written.says() != said
        written.tab_to("[aria-label=Write] button:nth-child(3)")
        keys.press("Enter")
        assert chips.count() == before
        bars = written.page.locator(".token-row .weight")
        for slider in written.page.locator("input[type=range]").all():
            shown = bars.all_inner_texts()
            slider.focus()
            keys.press("Home")
            assert bars.all_inner_texts() != shown
            keys.press("End")
        written.tab_to("input[type=checkbox]")
        keys.press("Space")
        assert "without the mask" in written.says()


@pytest.mark.browser
def test_patch_attention_works_by_keyboard(chrome):
    with Opened(chrome, "patches") as opened:
        keys = opened.page.keyboard
        assert "sees a 3" in opened.says() and "which is right" in opened.says()
        opened.tab_to("button.patch")
        keys.press("Enter")
        assert "The patch in row 0, column 0 looks" in opened.says()
        assert opened.page.locator(".patch[aria-pressed=true]").count() == 1
        opened.tab_to(".steps button:nth-child(2)")
        keys.press("Enter")
        assert "1 of 16 patches erased" in opened.says()
        opened.tab_to(".reset")
        keys.press("Enter")
        assert "The class token looks" in opened.says() and "erased" not in opened.says()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["heads", "generation", "patches"])
def test_any_settings_on_a_phone(chrome, name):
    draw = random.Random(5)
    with Opened(chrome, name, width=320) as shown:
        page = shown.page
        for _ in range(15):
            for select in page.locator("select").all():
                options = select.locator("option").all()
                select.select_option(index=draw.randrange(len(options)))
            for slider in page.locator("input[type=range]").all():
                slider.focus()
                page.keyboard.press(draw.choice(["Home", "End", "ArrowLeft", "PageDown"]))
            boxes = page.locator("input[type=checkbox]").all()
            if boxes:
                draw.choice(boxes).click()
            buttons = page.locator("button:not([aria-disabled=true])").all()
            draw.choice(buttons).click()
            text = page.locator(".explorer").inner_text()
            assert not re.search(r"\b(NaN|Infinity|undefined|null)\b", text)
            assert page.evaluate("document.documentElement.scrollWidth") <= 320
        small = page.evaluate(
            """() => [...document.querySelectorAll(".explorer :is(button, input, select)")]
                .filter((e) => { const r = e.getBoundingClientRect();
                                 return r.width < 24 || r.height < 24; })
                .map((e) => e.outerHTML.slice(0, 80))"""
        )
        assert small == []

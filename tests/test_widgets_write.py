"""Write and its model: tokens, numbers, text in JavaScript as in Python; the recipe; the page."""

import functools
import gzip
import json
import random
import re
import sys
from pathlib import Path

import pytest
import test_widgets_math as js
import test_widgets_models as models
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention
from attention import LanguageModel, _packed, pretrained, pretrained_tales, tales, widgets
from attention.widgets import _base
from attention.widgets import write as module

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import train_tales  # noqa: E402

refused = js.refused
FOLDER = Path(_base.__file__).parent
FILES = [FOLDER / f"{stem}.js" for stem in _base.weights_of("write")]


@functools.cache
def pairs():
    return pretrained_tales()[1]


# ------------------------------------------------------------------ tokens

TOKENS = """
const made = () => bytePairs(weights.merges.split(" ").map(Number));
export const there = (texts) => { const t = made(); return texts.map((text) => {
  const ids = t.encode(text); return [ids, t.decode(ids), t.pieces(ids)]; }); };
export const back = (lists) => { const t = made(); return lists.map((ids) =>
  [t.decode(ids), t.pieces(ids)]); };
export const seen = (texts) => texts.map((text) => [visible(text), visible(text, " ")]);
export const halves_of = (at) => made().encode("a" + String.fromCharCode(at) + "b");
"""
STRANGE = [
    "", " ", "a", "  two  spaces ", "tab\tx\r\n\r\ny", "don't ''' 12ab3 3,5", "\0\x01\x1f\x7f\x85",
    "Привет, мир", "我爱自然语言处理",
    "naïve café ﬁn", "👩‍👩‍👧 🐕🏽 🇩🇪", "\ufeffx\ufeff\u200b\u2028",
    "\U0010ffff\ud7ff\ue000", "´`’“”„…", "e\u0301 é", "مرحبا שלום",
]  # fmt: skip


def test_any_text_has_the_same_tokens_in_the_page():
    draw = random.Random(0)
    letters = [*"aeiou tnh.,\"'\n\t1290", "é", "ß", "ж", "日", "🙂", "\u00a0", "\u200d", "\ufeff"]
    texts = [*STRANGE, tales().held_out[:3000]]
    texts += ["".join(draw.choices(letters, k=draw.randrange(40))) for _ in range(400)]
    texts += ["".join(chr(draw.choice([draw.randrange(0xD800), draw.randrange(0xE000, 0x110000)]))
                      for _ in range(draw.randrange(20))) for _ in range(400)]  # fmt: skip
    lists = [[draw.randrange(956) for _ in range(12)] for _ in range(300)]
    lists += [[draw.randrange(120, 256) for _ in range(12)] for _ in range(300)]
    source = js.inside("write", "render") + TOKENS
    there, back, seen = js.javascript([["there", texts], ["back", lists], ["seen", texts]], source)
    for text, (ids, decoded, pieces) in zip(texts, there, strict=True):
        assert ids == pairs().encode(text).tolist(), repr(text)
        assert decoded == text
        assert pieces == pairs().pieces(ids)
    for ids, (decoded, pieces) in zip(lists, back, strict=True):
        assert (decoded, pieces) == (pairs().decode(ids), pairs().pieces(ids))
    for text, got in zip(texts, seen, strict=True):
        assert got == [module.visible(text), module.visible(text, " ")]


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_what_is_encoded_comes_back(text):
    assert pairs().decode(pairs().encode(text)) == text


def test_half_a_surrogate_pair_is_refused_in_python_and_replaced_in_the_page():
    with refused("text must be text that can be written as UTF-8; character 1 cannot"):
        widgets.Write(text="a\ud800b")
    with pytest.raises(ValueError, match="character 1 cannot"):
        pairs().encode("a\ud800b")
    source = js.inside("write", "render") + TOKENS
    for got in js.javascript([["halves_of", 0xD800], ["halves_of", 0xDC00]], source):
        assert got == pairs().encode("a\ufffdb").tolist()


# ------------------------------------------------------------------ the model

MODEL = (
    models.FLAT
    + """
export const bring = (checkpoint, numbers) => { modelOf(checkpoint, numbers); return 0; };
export const numbers = (checkpoint, ids) => {
  const m = modelOf(checkpoint);
  const fresh = m.read(ids);
  return { fresh, logits: ids.map((_, i) => Array.from(m.logits(i))),
    weights: [0, 1, 2].map((l) => [0, 1, 2, 3].map((r) => 
      flat(m.weights(l, r, ids.length - 1)))) };
};
export const traced = (ids) => flat(modelOf(3).trace(ids));
export const said = (state) => caption(state);
export const words = (state) => goOn(state);
export const looks = (state) => flat(answer(state));
export const last = () => Array.from({ length: weights.sizes.vocab_size }, (_, id) => ends(id));
export const files = () => [SAID, KEYS, LONGEST, MOST, STEP, START, weights.context];
"""
)
SOURCE = js.inside("write", "modelOf") + MODEL
BRING = [["bring", i + 1, pretrained._stored(step)] for i, step in enumerate((100, 500))]


def test_logits_are_those_of_the_dequantised_model_at_every_checkpoint():
    windows = tales().windows(127)
    calls, wanted = [], []
    for checkpoint, step in enumerate(pretrained.CHECKPOINTS):
        model = pretrained_tales(step)[0]
        ids = windows[3 * checkpoint].tolist()
        # one token after the other, another end after the same beginning, and all at once
        for some in (ids[:1], ids[:2], ids[:40], ids[:30] + ids[60:70], ids):
            calls.append(["numbers", checkpoint, some])
            with torch.no_grad():
                wanted.append(model(torch.tensor([some]), return_weights=True))
    got = js.javascript([*BRING, *calls], SOURCE)[len(BRING) :]
    fresh = []
    for mine, (logits, weights) in zip(got, wanted, strict=True):
        assert (torch.tensor(mine["logits"]) - logits[0]).abs().max() < 1e-3
        js.same(mine["weights"], torch.stack(weights)[:, 0, :, -1], 1e-4)
        fresh.append(mine["fresh"])
    assert fresh == [1, 1, 38, 10, 98] * 4, "what was read before is kept"


def test_every_tensor_on_the_way_is_the_packages():
    model, _ = pretrained_tales()
    ids = tales().windows(20)[5].tolist()
    got = js.javascript([["traced", ids]], SOURCE)[0]
    n, d, h = len(ids), 96, 4
    seen = {}
    for name, part in model.named_modules():
        part.register_forward_hook(
            lambda _, given, out, name=name: seen.update({name: (given, out)})
        )
    with torch.no_grad():
        logits, weights = model(torch.tensor([ids]), return_weights=True)
    out = lambda name: seen[name][1]  # noqa: E731
    split = lambda x: x.view(n, h, d // h).transpose(0, 1)  # noqa: E731
    js.same(got["tokens"], (out("embedding.tokens")[0] * d**0.5).flatten(), 1e-4)
    js.same(got["positions"], attention.sinusoidal_encoding(n, d).flatten(), 1e-5)
    js.same(got["input"], out("embedding")[0].flatten(), 1e-4)
    for layer, mine in enumerate(got["layers"]):
        at = f"layers.{layer}"
        q, k, v = (out(f"{at}.attention.w_{c}")[0] for c in "qkv")
        heads = seen[f"{at}.attention.w_o"][0][0][0]
        first = seen[f"{at}.add_feed_forward"][0][0][0]
        wide = out(f"{at}.feed_forward.widen")[0]
        for name, wanted in {
            "norm1": out(f"{at}.add_attention.norm")[0], "q": q, "k": k, "v": v,
            "scores": split(q) @ split(k).transpose(-2, -1) / (d // h) ** 0.5,
            "weights": weights[layer][0], "heads": heads,
            "mixed": out(f"{at}.attention.w_o")[0], "sum1": first,
            "norm2": out(f"{at}.add_feed_forward.norm")[0], "wide": wide, "hidden": wide.relu(),
            "narrow": out(f"{at}.feed_forward")[0], "sum2": out(at)[0][0],
        }.items():  # fmt: skip
            js.same(mine.pop(name), wanted.flatten(), 2e-4)
        assert not mine
    js.same(got["final"], out("norm")[0].flatten(), 2e-4)
    js.same(got["logits"], logits.flatten(), 1e-3)
    js.same(got["probabilities"], logits.softmax(-1).flatten(), 1e-4)


def test_int8_keeps_each_number_within_half_a_step():
    torch.manual_seed(0)
    model = LanguageModel(50, 8, 2, 1)
    with torch.no_grad():
        model.layers[0].attention.w_q.weight[3] = 0  # a row of zeros stays one
    packed = _packed.pack(model)
    again = _packed.unpack(LanguageModel(50, 8, 2, 1), packed)
    for name, x in model.state_dict().items():
        y = again.state_dict()[name]
        step = x.abs().amax(1, keepdim=True) / 127 if x.ndim == 2 else x.abs() / 1000
        assert ((x - y).abs() <= 0.51 * step + 1e-6).all(), name
    with pytest.raises(ValueError, match="packed must hold 1248 numbers in rows; got"):
        _packed.unpack(LanguageModel(60, 8, 2, 1), packed)


def test_a_checkpoint_that_does_not_exist_is_refused():
    with pytest.raises(
        ValueError, match=r"checkpoint must be one of \[0, 100, 500, 'end'\]; got 3"
    ):
        pretrained_tales(3)


def test_a_page_fetches_at_most_500_kb_at_once():
    assert [file.stem for file in FILES] == [
        "tales_weights", "tales_100_weights", "tales_500_weights"]  # fmt: skip
    for file in FILES:
        assert len(gzip.compress(file.read_bytes())) <= 500_000


# ------------------------------------------------------------------ what the explorer writes


def states():
    first = {k: v for k, v in widgets.Write().get_state().items() if k[0] != "_" and k != "layout"}
    long = "The old bear and the hen " * 30
    return [{**first, **more} for more in (
        {}, {"seed": 3, "temperature": 1.5}, {"top_k": 5, "temperature": 2.0}, {"top_p": 0.5},
        {"text": ""}, {"text": "Der Hund schläft 🐕"}, {"text": long}, {"text": long, "place": 5},
        {"place": 2}, {"place": 3, "shade": "L1H2"}, {"shade": "L2"}, {"place": 127},
        {"checkpoint": 0}, {"checkpoint": 1, "shade": "L0H3"}, {"checkpoint": 2, "top_k": 1},
        {"written": [300, 301, 302, 303]},
    )]  # fmt: skip


def test_page_and_package_write_the_same_text_and_say_the_same():
    every = states()
    calls = [[name, state] for state in every for name in ("said", "words", "looks")]
    got = js.javascript([*BRING, *calls], SOURCE)[len(BRING) :]
    for state, said, words, looks in zip(every, got[0::3], got[1::3], got[2::3], strict=True):
        w = widgets.Write(**state)
        assert said == w.caption
        assert looks["ids"] == w.ids
        js.same(looks["probabilities"], w.probabilities, 1e-4)
        js.same(looks["surprise"], w.surprise, 1e-3)
        if looks["row"]:
            js.same(looks["row"], w._shaded, 1e-4)
        w.go_on()
        assert words == w.written, state
        assert len(words) > len(state["written"])
        w.close()


def test_what_both_know_is_the_same():
    said, keys, *numbers = js.javascript([["files"]], SOURCE)[0]
    assert said == module.SAID and set(keys) == set(states()[0]) - {"tabbable", "tooltip"}
    m = module
    assert numbers == [m.LONGEST, m.MOST, m.STEP, m.START, m.CONTEXT]


def test_the_same_tokens_end_a_sentence():
    pieces = [pairs().pieces([i])[0] for i in range(956)]
    ends = [bool(module._ENDS.search(piece)) for piece in pieces]
    assert js.javascript([["last"]], SOURCE)[0] == ends
    assert {".", "!", '."', "\n"} <= {p for p, end in zip(pieces, ends, strict=True) if end}
    assert 4 <= sum(ends) < 60


def test_write_in_python():
    w = widgets.Write(text="The old hen", top_k=1)
    assert w.tokens == ["\n", "The", " old", " hen"]
    new = w.next_token()
    assert w.continuation == new == w.tokens[-1]
    assert len(w.surprise) == len(w.tokens) - 1
    assert w.weights.shape == (3, 4, len(w.tokens))
    js.same(w.weights.sum(-1), torch.ones(3, 4), 1e-5)
    js.same(w.probabilities.sum(), 1.0)
    w.place = 2
    assert w.weights.shape == (3, 4, 2)
    assert w.next_token() and w.place == -1
    seed = w.seed
    w.start_again()
    assert w.written == [] and w.seed == seed + 1
    w.next_token()
    w.text = "Another"
    assert w.written == []
    w.written = [65] * 400
    assert w.next_token() is None
    w.checkpoint = 1
    assert set(w._loaded) == {"1"}, "a notebook gets the numbers from here"
    with refused("written must be at most 400 tokens; got 401"):
        w.written = [65] * 401
    with refused("written must be tokens from 0 to 955; got 956"):
        w.written = [956]
    with refused("shade must be one of surprise, L0, L0H0,"):
        w.shade = "L3"
    with refused("text must be at most 4000 characters; got 4001"):
        w.text = "a" * 4001
    with refused("checkpoint must be a whole number from 0 to 3; got 4"):
        w.checkpoint = 4


def test_a_long_text_is_cut_in_steps():
    w = widgets.Write(text="")
    for count, read in ((126, 127), (127, 128), (128, 97), (159, 128), (160, 97), (400, 113)):
        w.written = [65] * count
        assert len(w.ids) == read
        assert ("It reads the last" in w.caption) == (count > 127)


# ------------------------------------------------------------------ the recipe


def test_the_recipe_starts_from_the_same_numbers_and_learns():
    text = attention.from_text(
        "The cat sat on the mat. The dog ran to the old barn. " * 200, merges=30
    )
    model, early = train_tales.train_tales(text, steps=25, progress=False)
    assert early == {}
    before = _packed.begin(LanguageModel(len(text.tokens), **train_tales.SIZES)).eval()
    windows = text.windows(127)[:1]
    assert pretrained._loss(model, windows) < pretrained._loss(before, windows) - 1
    with pytest.raises(AssertionError):
        assert pretrained._loss(before, windows) < 3


def test_the_numbers_that_ship_come_from_the_tales_that_ship():
    facts, why = attention.pretrained_facts(), "run scripts/train_tales.py again"
    assert pairs().merges == tales().tokens.merges, why
    assert facts["tales"] == train_tales.mark(tales()), why
    assert facts["steps"] == train_tales.STEPS
    assert pretrained._stored()["sizes"] == {"vocab_size": 956, **train_tales.SIZES}
    model, _ = pretrained_tales()
    assert facts["parameters"] == sum(p.numel() for p in model.parameters())
    assert 380_000 < facts["parameters"] < 440_000


def test_the_model_beats_counting_and_eight_bits_cost_next_to_nothing():
    losses = attention.tale_losses()
    held_out = [held for _, held, _ in losses.values()]
    assert held_out[:4] == sorted(held_out[:4], reverse=True), losses
    assert losses["trigram"][1] - losses["model, float32"][1] > 0.1
    for part in range(3):  # training, held out, a character
        assert abs(losses["model, int8"][part] - losses["model, float32"][part]) < 0.005
    early = [pretrained._loss(pretrained_tales(step)[0], tales().windows(128)[:8])
             for step in pretrained.CHECKPOINTS]  # fmt: skip
    assert early == sorted(early, reverse=True) and early[0] > early[-1] + 2


# ------------------------------------------------------------------ counting, and copies


def test_an_ngram_model_is_the_one_of_the_book():
    ids = torch.tensor([0, 1, 2, 0, 1, 0, 1, 2, 2])
    for n in (1, 2, 3):
        model = attention.NGrams(ids, n, vocab_size=4, discount=0.5)
        for context in ([], [0], [2], [0, 1], [3, 3], [1, 2, 0, 1]):
            p = [model.probability(context, token) for token in range(4)]
            assert sum(p) == pytest.approx(1) and min(p) > 0
    one = [(c - 0.5) / 9 + 0.5 * 3 / 9 / 4 for c in (3, 3, 3)]
    unigram = attention.NGrams(ids, 1, vocab_size=4, discount=0.5)
    assert [unigram.probability([2], i) for i in range(3)] == pytest.approx(one)
    bigram = attention.NGrams(ids, 2, vocab_size=4, discount=0.5)  # 0 is followed by 1 alone
    assert bigram.probability([0], 1) == pytest.approx(2.5 / 3 + 0.5 / 3 * one[1])
    assert bigram.probability([0], 2) == pytest.approx(0.5 / 3 * one[2])
    wanted = [unigram.probability([], i) for i in (0, 1)]
    wanted[1] = bigram.probability([0], 1)
    assert bigram.loss(torch.tensor([0, 1])) == pytest.approx(
        -sum(torch.tensor(wanted).log().tolist()) / 2
    )
    with pytest.raises(ValueError, match="discount must be at least 0 and less than 1; got 1"):
        attention.NGrams(ids, 2, 4, discount=1.0)
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        attention.NGrams(ids, 0, 4)


def test_the_longest_copy_is_found_word_for_word():
    source = "One day the cat sat.\nThe cat sat down and slept."
    for text, run in (
        ("day the cat sat. The", "day the cat sat. The"),  # also across lines
        ("a cat sat down", "cat sat down"),
        ("he cat at down", "cat"),
        ("day the sat down", "day the"),
        ("", ""),
        ("dog", ""),
    ):
        assert attention.longest_copy(text, source) == run
    with pytest.raises(TypeError, match="source must be a string; got list"):
        attention.longest_copy("a", ["a"])


# ------------------------------------------------------------------ in the browser


@pytest.mark.browser
def test_write_works_by_keyboard(chrome):
    with models.Opened(chrome, "write") as written:
        page, keys = written.page, written.page.keyboard
        tiles = page.locator(".flow .tile")
        rest = lambda: page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")  # noqa: E731
        written.tab_to("textarea")
        keys.press("ControlOrMeta+A")
        keys.type("The hen said")
        assert tiles.all_inner_texts() == ["⏎", "The", "␣hen", "␣said"]
        assert "goes on after “⏎The hen said”" in written.says()
        written.tab_to("[aria-label=Write] button:nth-child(1)")
        keys.press("Enter")
        assert tiles.count() == 5 and "own" in tiles.last.get_attribute("class")
        written.tab_to("[aria-label=Write] button:nth-child(2)")
        keys.press("Enter")
        assert page.evaluate("document.activeElement.textContent") == "Stop"
        rest()
        story = page.locator(".story").inner_text()
        w = widgets.Write(text="The hen said")
        w.next_token()
        w.go_on()
        assert (
            story == w.text + w.continuation
            and page.evaluate("document.activeElement.textContent") == "Go on"
        )
        assert written.says() == w.caption
        keys.press("Enter")
        keys.press("Enter")  # stops
        assert page.locator("[aria-busy=true]").count() == 0
        written.tab_to("[role=gridcell]")
        for key, place in (("End", -1), ("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2)):
            keys.press(key)
            assert page.evaluate(
                "at => document.activeElement === [...document.querySelectorAll('.tile')].at(at)",
                place,
            )
        assert "surprise" in page.locator(".readline").inner_text()
        keys.press("Enter")
        assert "gave “␣hen”" in written.says()
        written.tab_to(".explorer select")
        keys.type("attention in L1H2")
        assert "In L1H2, “The” attends most to" in written.says()
        written.tab_to("summary")
        keys.press("Enter")
        for _ in range(3):
            written.tab_to("input[type=range]")
        keys.press("Home")
        assert "The untrained model gave" in written.says()
        keys.press("ArrowRight")
        written.waits_to_say("The model after 100 steps of training gave")  # its weights come first
        written.tab_to(".reset")
        keys.press("Enter")
        assert "The trained model goes on after “⏎One day the" in written.says()


@pytest.mark.browser
def test_what_the_reader_unfolds_stays_open_while_the_rest_is_drawn(chrome):
    """A browser tells of the unfolding later than of a slider that is moved at once."""
    with models.Opened(chrome, "write") as written:
        still_open = """() => {
            const settings = document.querySelector("details");
            settings.open = true;
            const bar = settings.querySelector("input[type=range]");
            bar.value = 3;
            bar.dispatchEvent(new Event("input"));
            return settings.open;
        }"""
        assert written.page.evaluate(still_open)
        assert "top-k 5" in written.says() and written.page.evaluate(
            "document.querySelector('details').open"
        )


@pytest.mark.browser
def test_numbers_that_do_not_come_are_told_in_words(chrome):
    with models.Opened(chrome, "write") as written:
        page = written.page
        page.evaluate("delete window.attentionExplorers.tales_500_weights")
        page.locator("summary").click()
        page.locator("details input").last.focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_function("() => document.querySelector('.notice:not([hidden])')")
        said = page.locator(".notice").inner_text()
        assert said == (
            "The model after 500 steps of training could not be fetched; this is the trained one."
        )
        assert "The trained model goes on" in written.says()


@pytest.mark.browser
def test_any_text_on_a_phone(chrome):
    draw = random.Random(6)
    with models.Opened(chrome, "write", width=320) as written:
        page = written.page
        for text in [*STRANGE, "x" * 4000, "The old hen said. " * 60]:
            page.locator("textarea").fill(text.replace("\0", ""))
            for name in ("Next token", "Go on", "Next token"):
                page.get_by_role("button", name=name, exact=True).click()
            page.locator(".explorer select").select_option(index=draw.randrange(16))
            assert page.evaluate("document.documentElement.scrollWidth") <= 320
            shown = page.locator(".explorer").inner_text()
            assert not re.search(r"\b(NaN|Infinity|undefined|null)\b", shown)
        small = page.evaluate(
            """() => [...document.querySelectorAll(".explorer :is(button, input, select, .tile)")]
                .filter((e) => e.checkVisibility() && Math.min(e.getBoundingClientRect().width,
                  e.getBoundingClientRect().height) < 23.99).map((e) => e.outerHTML.slice(0, 80))"""
        )
        assert small == []


@pytest.mark.browser
def test_until_the_model_comes_there_is_a_bar_and_if_it_does_not_a_sentence(chrome, tmp_path):
    """As in the book: files beside the page, the first of them fetched when the reader is near."""
    tales_file, early, _ = _base.weights_of("write")
    state = json.dumps(states()[0])
    for name in [*_base.SHARED, "write"]:
        (tmp_path / f"{name}.js").write_text(_base.static_module(name), "utf-8")
    (tmp_path / "host.js").write_text((ROOT / "book/_ext/host.js").read_text("utf-8"), "utf-8")
    files = " ".join(f"{stem}.js?v=0" for stem in _base.weights_of("write"))
    place = (
        f'<div data-explorer=write data-model=m data-weights="{files}"><script '
        f"type=application/json>{state}</script><p class=explorer-still>A picture</p></div>"
    )
    scripts = "".join(f"<script src={name}.js></script>" for name in [*_base.SHARED, "write"])
    page_file = tmp_path / "page.html"
    page_file.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>x</title><p style='height:3000px'>"
        f"far above</p>{place}{scripts}<script src=host.js></script>",
        "utf-8",
    )
    page = chrome.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_timeout(200)
    assert page.locator(".explorer-wait, .explorer").count() == 0, "not before it comes near"
    page.evaluate("new MutationObserver(() => { window.bar ||= document.querySelector("
                  "'.explorer-wait progress') !== null; }).observe(document.body, "
                  "{ childList: true, subtree: true })")  # fmt: skip
    page.evaluate("scrollTo(0, 3000)")
    again = page.get_by_role("button", name="Try again")
    again.wait_for()
    assert page.evaluate("window.bar")
    said = "The model could not be fetched, so the picture stays as it is."
    assert page.locator(".explorer-wait").inner_text().startswith(said)
    assert page.locator(".explorer-still").is_visible()
    for stem in (tales_file, early):
        (tmp_path / f"{stem}.js").write_text(_base.static_module(stem), "utf-8")
    again.click()
    page.locator(".explorer").wait_for()
    assert page.locator(".explorer-wait, .explorer-still").count() == 0
    assert page.evaluate(
        "Object.keys(attentionExplorers).filter(n => /weights/.test(n)).join()"
    ) == ("tales_weights")
    page.locator("summary").click()
    page.locator("details input").last.fill("1")
    page.wait_for_function("() => attentionExplorers.tales_100_weights")
    page.wait_for_function("() => document.querySelector('.notice').hidden")
    page.wait_for_timeout(300)
    assert "The model after 100 steps" in page.locator(".say").inner_text()
    page.close()


@pytest.mark.browser
def test_in_a_notebook_the_kernel_brings_the_other_checkpoints(chrome):
    """There `render` gets no `more`: the numbers come as a trait."""
    with models.Opened(chrome, "write") as opened:
        said = opened.page.evaluate(
            """async (values) => {
              const heard = {};
              const model = { get: (key) => values[key], save_changes() {}, off() {},
                on: (event, f) => (heard[event] ??= []).push(f),
                set(key, value) {
                  values[key] = value;
                  heard[`change:${key}`]?.forEach((f) => f());
                } };
              const early = attentionExplorers.tales_100_weights;
              const el = document.createElement("div");
              document.body.append(el);
              attentionExplorers.write.render({ model, el });
              model.set("checkpoint", 1);
              const notice = el.querySelector(".notice").textContent;
              model.set("_loaded", { 1: early });
              await new Promise((done) => setTimeout(done, 400));
              const said = el.querySelector(".say").textContent;
              el.remove();
              return [notice, said, el.querySelector(".notice").hidden];
            }""",
            states()[0],
        )
    assert said[0] == "Loading the numbers of step 100 … " and said[2]
    assert said[1] == widgets.Write(checkpoint=1).caption

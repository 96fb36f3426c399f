"""AttentionView: what it takes, what it refuses, and the file that it saves, opened offline."""

import functools
import random
import re

import numpy as np
import pytest
import test_widgets_math as js
import torch
from site_browser import Alone
from torch import nn

import attention
from attention.widgets import AttentionView, _given, attention_view

refused = js.refused
WORDS = "the cat sat on the mat because it was tired".split()


def rows(*shape: int, seed: int = 0) -> torch.Tensor:
    """Random weights whose every number is a whole number of 65535ths."""
    draw = torch.Generator().manual_seed(seed)
    weights = (2 * torch.randn(*shape, generator=draw)).softmax(-1)
    return (weights * 65535).round() / 65535


# ------------------------------------------------------------------ what fits


def test_every_usual_form_gives_the_same_weights():
    weights = rows(3, 4, 10, 10)
    forms = [
        weights, weights.numpy(), weights.tolist(), weights.double(), weights[:, None],
        weights.clone().requires_grad_(), list(weights), tuple(layer[None] for layer in weights),
        [layer.numpy() for layer in weights], [list(layer) for layer in weights],
    ]  # fmt: skip
    for form in forms:
        view = AttentionView(form, WORDS)
        assert view.weights.shape == (3, 4, 10, 10) and not view.weights.requires_grad
        js.same(view.weights, weights, 1e-7)
        view.close()
    js.same(AttentionView(weights[0], WORDS).weights, weights[:1], 1e-7)  # one layer
    js.same(AttentionView(weights[0, 0], WORDS).weights, weights[:1, :1], 1e-7)  # one head
    half = AttentionView(weights.bfloat16(), WORDS).weights
    js.same(half, weights, 4e-3)


def test_it_takes_what_models_return():
    x = torch.randn(1, 10, 8)
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    each = AttentionView(layer(x, x, x, average_attn_weights=False)[1], WORDS)
    assert each.weights.shape == (1, 2, 10, 10)
    assert AttentionView(layer(x, x, x)[1], WORDS).weights.shape == (1, 1, 10, 10)

    model = attention.Encoder(50, d_model=8, num_heads=2, num_layers=3)
    weights = model(torch.arange(10)[None], return_weights=True)[1]
    assert AttentionView(weights, WORDS).weights.shape == (3, 2, 10, 10)

    translate = attention.EncoderDecoder(50, d_model=8, num_heads=2, num_layers=3)
    given = translate(torch.arange(10)[None], torch.arange(4)[None], return_weights=True)[1]
    assert AttentionView(given["decoder"], "das war kein Satz".split()).weights.shape == (
        3,
        2,
        4,
        4,
    )
    view = AttentionView(given["cross"], "das war kein Satz".split(), WORDS)
    assert view.weights.shape == (3, 2, 4, 10)
    assert re.search(r"4 queries and 10 keys\. In L0H0, “Satz” gives 0.\d\d to “\w+”", view.caption)


class Stranger(nn.Module):
    """Answers as a model of transformers does, with output_attentions=True."""

    def __init__(self, layers: int = 12, heads: int = 12):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.MultiheadAttention(24, heads, batch_first=True) for _ in range(layers)
        )

    def forward(self, x):
        found = []
        for layer in self.layers:
            out, weights = layer(x, x, x, average_attn_weights=False)
            x = x + out
            found.append(weights)
        return x, tuple(found)


def test_it_takes_a_tuple_of_batches_of_one():
    attentions = Stranger()(torch.randn(1, 10, 24))[1]
    assert len(attentions) == 12 and attentions[0].shape == (1, 12, 10, 10)
    view = AttentionView(attentions, WORDS, layer=11, head=7)
    assert view.weights.shape == (12, 12, 10, 10)
    js.same(view.weights[11, 7], attentions[11][0, 7])


def test_python_reads_and_sets_it():
    view = AttentionView(rows(2, 3, 10, 10), WORDS)
    assert (view.layer, view.head, view.query, view.key, view.small) == (0, 0, 9, -1, False)
    view.layer, view.head, view.query, view.key = 1, 2, -1, 0
    assert "In L1H2, “the” (0) gets 0." in view.caption
    view.weights = rows(1, 1, 10, 10, seed=1)  # another model, the same words
    assert (view.layer, view.head) == (0, 0)
    with view.hold_trait_notifications():  # and other words
        view.weights, view.tokens, view.key = rows(1, 1, 2, 2), ["a", "b"], 1
    assert "“b” gets" in view.caption
    assert AttentionView(rows(1, 1, 3, 40)).small and not AttentionView().small
    assert AttentionView(rows(1, 1, 2, 3)).tokens_k == ["0", "1", "2"]
    empty = AttentionView([[0.0, 0.0], [0.5, 0.5]], ["a", "b"], query=0)
    assert empty.caption.endswith("In L0H0, “a” gives next to nothing.")
    js.same(AttentionView().weights[1, 0], attention_view.heads.Heads().weights[1, 0])


# ------------------------------------------------------------------ what does not fit


GOOD = rows(1, 2, 3, 3)
NAN, MINUS, LONG = GOOD.clone(), GOOD.clone(), GOOD.clone()
NAN[0, 1, 2] = torch.nan
MINUS[0, 1, 0, 0] = -0.5
LONG[0, 0, 1] *= 2
ABC = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((NAN, ABC), "weights must be numbers; got nan in L0H1, query 2"),
        ((MINUS, ABC), "weights must not be negative (are they scores, before the softmax?); got "
         "-0.5 in L0H1, query 0"),
        ((LONG, ABC), "each row of weights must sum to 1, or to 0 where a query may attend to "
         "nothing; got 2 in L0H0, query 1. Is it a model in training mode"),
        ((GOOD[0, 0, 0], ABC), "weights must be (layers, heads, n_q, n_k), or one such array a "
         "layer, none of them 0; got shape (3,)"),
        ((GOOD[:, :0], ABC), "none of them 0; got shape (1, 0, 3, 3)"),
        (([GOOD[0][None].expand(4, -1, -1, -1)], ABC), "weights must belong to one sequence; got 4 "
         "of them in a batch, shape (1, 4, 2, 3, 3). Give one: [w[:1] for w in weights]"),
        (([GOOD[0], rows(3, 3, 3)], ABC), "weights must have one shape in all layers; got "
         "(2, 3, 3) in weights[0], (3, 3, 3) in weights[1]"),
        (([[0.5, 0.5], [1.0]], ABC), "weights must be numbers in rows of equal length; got a list"),
        (("attention", ABC), "weights must be numbers in rows of equal length; got 'attention'"),
        (((None, None), ABC), "weights[0] must be an array of weights; got None. A model of "
         'transformers returns its weights when it is loaded with attn_implementation="eager"'),
        (((), ABC), "weights must be an array of weights; got (). A model of transformers returns"),
        ((None, ABC), "weights must be given with tokens; got None"),
        ((GOOD, ["a", "b"]), "tokens must be one string for each of the 3 queries of weights; got "
         "2 strings"),
        ((rows(1, 1, 2, 3), ["a", "b"]), "weights of 2 queries and 3 keys need tokens_k too, one "
         "string for each key"),
        ((rows(1, 1, 2, 3), ["a", "b"], ["c"]), "tokens_k must be one string for each of the 3 "
         "keys of weights; got 1 strings"),
        ((GOOD, "abc"), "tokens must be a list of strings; got 'abc'"),
        ((GOOD, 3), "tokens must be a list of strings; got 3"),
        ((GOOD, [101, 7, 102]), "each entry of tokens must be a string; got 101 (int). The "
         "tokenizer turns ids to strings"),
        ((GOOD, torch.arange(3)), "each entry of tokens must be a string; got tensor(0) (Tensor)"),
        ((GOOD, [ABC]), "each entry of tokens must be a string; got ['a', 'b', 'c'] (list)"),
        ((torch.ones(1, 20, 700, 700), ABC), "weights must be at most 8,000,000 numbers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_sentence(arguments, sentence):
    with refused(sentence):
        AttentionView(*arguments)


def test_places_and_paths_are_refused():
    view = AttentionView(GOOD, ABC)
    for name, most in (("layer", 0), ("head", 1), ("query", 2), ("key", 2)):
        low = 0 if name in ("layer", "head") else -1
        with refused(f"{name} must be a whole number from {low} to {most}; got 9"):
            setattr(view, name, 9)
        with refused(f"{name} must be a whole number from {low} to {most}; got 9"):
            AttentionView(GOOD, ABC, **{name: 9})
    with refused("tokens must be one string for each of the 3 queries of weights; got 1 strings"):
        view.tokens = ["a"]
    with pytest.raises(ValueError, match="path must end in .html; got 'view.pdf'"):
        view.save("view.pdf")


# ------------------------------------------------------------------ JavaScript and Python


def test_the_page_has_the_same_numbers():
    for shape in [(2, 3, 5, 7), (1, 1, 1, 1), (1, 2, 100, 130)]:
        weights = torch.rand(*shape).softmax(-1)
        (got,) = js.javascript(
            [["flat", _given.pack(weights)]],
            js.inside("attention_view", "unpack") + "\nexport const flat = (given) => "
            "Array.from(unpack(given).values, (x) => x / 65535);",
        )
        np.testing.assert_allclose(got, weights.numpy().ravel(), atol=0.5 / 65535 + 1e-9)


def test_the_small_maps_lose_no_large_weight():
    source = js.inside("attention_view", "unpack", "overview") + (
        "\nexport const maps = (given) => { const { points, width } = overview(unpack(given));"
        " return [Array.from(points), width]; };"
    )
    for shape in [(2, 3, 5, 7), (3, 2, 128, 128), (1, 2, 100, 30)]:
        weights = rows(*shape)
        ((points, width),) = js.javascript([["maps", _given.pack(weights)]], source)
        layers, heads, n_q, n_k = shape
        tall, wide = min(n_q, 48), min(n_k, 48)
        gap = 1 + max(tall, wide) // 16
        assert width == heads * (wide + gap) and len(points) == layers * (tall + gap) * width
        found = np.array(points).reshape(layers, tall + gap, heads, wide + gap)
        assert (found[:, tall:] == -1).all() and (found[..., wide:] == -1).all()
        wanted = np.zeros((layers, tall, heads, wide))
        at = [np.arange(n) * m // n for n, m in ((n_q, tall), (n_k, wide))]
        for layer in range(layers):
            for head in range(heads):
                target, given = wanted[layer, :, head], weights[layer, head].numpy()
                np.maximum.at(target, (at[0][:, None], at[1][None]), np.rint(given * 65535))
        assert (found[:, :tall, :, :wide] == wanted).all()


def test_both_say_the_same_of_any_word():
    draw = random.Random(3)
    words = ["the", "cat", "", "\n", " the", "sat", "the", "Ġit", "NBSP\u00a0", "  "]
    weights = rows(2, 2, 10, 10, seed=5)
    weights[1, 1] = torch.eye(10)
    weights[0, 1, 3] = 0
    source = js.inside("attention_view", "unpack", "sentence", "naming") + (
        "\nexport const say = (given, layer, head, query, key, words) => {"
        " const { shape: [, h, n], values } = unpack(given); const names = naming(words);"
        " const weight = (i, j) => values[((layer * h + head) * n + i) * n + j] / 65535;"
        " return sentence(weight, n, n, query, key, names, names); };"
    )
    cases = [[draw.randrange(2), draw.randrange(2), draw.randrange(-1, 10), draw.randrange(-1, 10)]
             for _ in range(300)]  # fmt: skip
    cases += [[1, 1, -1, -1], [0, 1, 3, -1], [0, 1, 3, 2]]
    view = AttentionView(weights, words)
    packed = _given.pack(weights)
    got = js.javascript([["say", packed, *case, words] for case in cases], source)
    for case, said in zip(cases, got, strict=True):
        view.layer, view.head, view.query, view.key = case
        assert view._told() == said, case
    assert any("next to nothing" in said for said in got)


# ------------------------------------------------------------------ the saved file


class Offline(Alone):
    """A saved view in a browser that has no network."""

    def __init__(self, chrome, view, folder, **more):
        super().__init__(chrome, **more)
        self.context.set_offline(True)
        self.address = view.save(folder / "view.html").as_uri()
        self.page.goto(self.address)
        self.page.locator(".all-heads").wait_for()

    def check(self):
        super().check()
        assert [url for url in self.asked if not url.startswith(("data:", self.address))] == []


@functools.cache
def large() -> AttentionView:
    mask = torch.ones(128, 128).tril().bool()
    scores = torch.randn(12, 12, 128, 128).masked_fill(~mask, -torch.inf)
    return AttentionView([layer[None] for layer in scores.softmax(-1)], (WORDS * 13)[:128])


@pytest.mark.browser
def test_a_saved_view_opens_offline_and_answers_the_keyboard(chrome, tmp_path):
    view = AttentionView(rows(2, 3, 10, 10), [*WORDS[:-1], "</script><b>&"], layer=1)
    with Offline(chrome, view, tmp_path) as saved:
        keys, page = saved.page.keyboard, saved.page
        assert saved.says() == f"2 layers of 3 heads each. In L1H0, {view._told()}."
        page.locator(".all-heads [tabindex='0']").focus()
        for key, head in (("ArrowUp", (0, 0)), ("End", (0, 2)), ("ArrowLeft", (0, 1))):
            keys.press(key)
            view.layer, view.head = head
            assert saved.says().endswith(f"{view._told()}.")
            assert page.evaluate("document.activeElement.textContent") == "L{}H{}".format(*head)
        page.locator(".word-grid [tabindex='0']").focus()
        for key, query, other in (
            ("ArrowUp", 8, -1), ("Home", 0, -1), ("ArrowRight", -1, 0), ("End", -1, 9),
        ):  # fmt: skip
            keys.press(key)
            view.query, view.key = query, other
            assert saved.says().endswith(f"{view._told()}.")
        lines = page.locator(".thread")
        assert lines.count() == int((view.weights[0, 1, :, 9] >= 0.005).sum())
        keys.press("Escape")
        assert "the largest weight is" in saved.says()
        page.locator(".raster [tabindex='0']").focus()
        keys.press("ArrowDown")
        keys.press("Enter")
        view.query, view.key = 1, 0
        assert saved.says().endswith(f"{view._told()}.") and lines.count() == 1
        page.locator(".reset").click()
        view.layer, view.head, view.query, view.key = 1, 0, 9, -1
        assert saved.says().endswith(f"{view._told()}.")
        page.locator(".word-grid .as-query").nth(3).hover()
        shown = page.locator(".word-grid .as-key small").all_inner_texts()
        assert shown == [f"{w:.2f}" if w >= 0.005 else "" for w in view.weights[1, 0, 3].tolist()]


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_maps_show_the_weights_on_a_phone_too(chrome, tmp_path, theme):
    phone = {"viewport": {"width": 320, "height": 700}, "color_scheme": theme, "has_touch": True}
    with Offline(chrome, large(), tmp_path, **phone) as saved:
        assert saved.page.evaluate("document.documentElement.scrollWidth") <= 320
        shades = saved.page.evaluate(
            """() => {
              const canvas = document.querySelector(".all-heads canvas");
              const { data } = canvas.getContext("2d").getImageData(0, 0, 48, 48);
              return [0, 47 * 4, 47 * 48 * 4].map((at) => [...data.slice(at, at + 4)]);
            }"""
        )
        strong, none, weak = shades  # query 0 sees itself alone, nobody sees the future
        far = [sum(abs(a - b) for a, b in zip(x, none, strict=True)) for x in (strong, weak)]
        assert none[3] == 255 and far[0] > 150 and 0 < far[1] < far[0]
        saved.page.locator(".all-heads .tile").nth(143).tap()
        assert "In L11H11, " in saved.says()
        small = saved.page.evaluate(
            """() => [...document.querySelectorAll(".explorer :is(.tile, button, label.switch)")]
                 .filter((e) => Math.min(e.offsetWidth, e.offsetHeight) < 24).length"""
        )
        assert small == 0

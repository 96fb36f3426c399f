"""Every explorer on its built page: moved by hand and at random, it never breaks or falls silent.

`make test` builds `_site` first; by hand, run `make book` before these.
"""

import copy
from pathlib import Path

import pytest
from site_browser import SITE, Visit, html

from attention.widgets import _base
from attention.widgets._base import SHARED, static_module, weights_of

EXT = Path(__file__).parents[1] / "book" / "_ext"
pytestmark = pytest.mark.browser

PLACES = [
    (page.relative_to(SITE).as_posix(), place["data-explorer"])
    for page in sorted([*SITE.glob("*.html"), *(SITE / "book").glob("*.html")])
    for place in html(page.relative_to(SITE).as_posix()).select("[data-explorer]")
]
PAGES = list(dict.fromkeys(page for page, _ in PLACES))
FIRST = {name: page for page, name in reversed(PLACES)}

# What the tests do inside the page. `root` is one explorer.
TOOLS = r"""
  const CONTROLS = "button, input, select, textarea, summary, [role=grid]";
  const seen = window.seen = (e) => e.checkVisibility() && !e.closest("[aria-hidden=true]");
  window.controlsOf = (root) => [...root.querySelectorAll(CONTROLS)]
    .filter((e) => seen(e) && !e.disabled);
  window.nameOf = (e) => `${e.type || e.role || e.localName} “${(e.getAttribute("aria-label")
    || e.labels?.[0]?.textContent || e.textContent).trim().slice(0, 60)}”`;

  // What a person could see or hear that no person should: "" if nothing.
  window.nonsense = (root) => {
    const values = [...root.querySelectorAll("input, select")].map((e) => e.value).join(" ");
    const found = /.{0,40}(NaN|Infinity|∞|undefined|\bnull\b|\[object).{0,20}/
      .exec(root.outerHTML + values);
    if (found) return found[0];
    const empty = [...root.querySelectorAll("output, dd, .weight, .tile, .say")]
      .find((e) => !e.textContent.trim() && seen(e));
    return empty ? `nothing in ${empty.outerHTML.slice(0, 80)}` : "";
  };

  // The state as it is shown, without what belongs to one view alone (focus, pointer, ids).
  window.shown = (root) => [...root.querySelectorAll("*")]
    .filter((e) => !e.matches(".readline, .say *") && !e.closest(".raster [role=row]"))
    .map((e) => [e.localName, e.children.length || e.matches(".say") ? "" : e.textContent, e.value,
      e.checked, e.disabled, e.ariaSelected === "true", ...["class", "style", "d", "hidden",
        "aria-pressed", "aria-valuetext", "aria-label", "open"]
        .map((a) => e.getAttribute(a)?.trim() ?? "–")].join("|"));

  const fire = (e, ...types) => types.forEach((type) =>
    e.dispatchEvent(new Event(type, { bubbles: true })));
  const key = (e, name, more = {}) => e.dispatchEvent(
    new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
  window.dice = (seed) => () => { // mulberry32
    seed = (seed + 0x6d2b79f5) >>> 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  // One control set at random, as a hand would; returns what came of it: "" if all is well.
  window.shake = (root, e, random) => {
    const among = (list) => list[Math.floor(random() * list.length)];
    if (e.type === "range" || e.type === "number") {
      const [low, high] = [Number(e.min), Number(e.max)];
      const x = low + random() * (high - low);
      e.value = e.step === "any" ? x : low + Math.round((x - low) / e.step) * e.step;
      fire(e, "input", "change");
    } else if (e.localName === "select") {
      e.value = among([...e.options]).value;
      fire(e, "input", "change");
    } else if (e.type === "checkbox") {
      if (random() < 0.5) e.click();
    } else if (e.localName === "textarea") {
      e.value = among(["", "The old hen", "x".repeat(500), "日本 🐕 \u0007"]);
      fire(e, "input");
    } else if (e.role === "grid") {
      const cell = among([...e.querySelectorAll(".tile, .cursor")]);
      cell.focus();
      const arrow = among(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]);
      for (let i = Math.floor(random() * 40); i > 0; i--) key(document.activeElement, arrow);
      key(document.activeElement, among(["Enter", " "]));
    } else if (e.matches(".handle")) {
      const arrow = among(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]);
      for (let i = Math.floor(random() * 60); i > 0; i--) key(e, arrow, { shiftKey: i % 2 });
    } else if (random() < 0.3) e.click();
    return nonsense(root);
  };
  // Every control once, in an order of its own; a control may vanish meanwhile.
  window.shakeAll = (root, seed) => {
    const random = dice(seed);
    for (const e of controlsOf(root).map((e) => [random(), e]).sort((a, b) => a[0] - b[0])) {
      if (!e[1].isConnected || e[1].disabled || !seen(e[1])) continue;
      const name = nameOf(e[1]);
      const wrong = shake(root, e[1], random);
      if (wrong) return `${name}: ${wrong}`;
    }
    return "";
  };

  // What runs by itself is stopped, so that two looks at it see the same.
  window.rest = (root) =>
    [...root.querySelectorAll("button")].find((e) => e.textContent === "Pause")?.click();

  // Time is short: what an explorer says when the hand has rested for 200 ms, it says at once.
  window.hurry = () => {
    window.later = window.setTimeout;
    window.setTimeout = (f) => later(f, 0);
  };
  // The control in hand, focused, in an explorer as it opened (for buttons: in another state).
  window.take = (root, [place, seed]) => {
    root.querySelector(".reset").click();
    if (!controlsOf(root)[place]) return null;
    const again = controlsOf(root)[place].localName === "button";
    if (again) {
      shakeAll(root, seed);
      const before = controlsOf(root)[place - 1];
      if (before?.localName === "button") before.click();
      if (!controlsOf(root)[place]) root.querySelector(".reset").click(); // fewer than before
    }
    const e = controlsOf(root)[place];
    (e.querySelector("[tabindex='0']") ?? e).focus();
    return [e.type || e.role || e.localName, nameOf(e), e.min, e.max,
      e.matches(".handle") ? "handle" : e.ariaPressed === "true" || e.ariaCurrent ? "pressed" : ""];
  };
  window.hear = async (root) => {
    await new Promise((done) => later(done, 5));
    const cell = document.activeElement.matches(".tile, .cursor") ? document.activeElement : null;
    const all = JSON.stringify([shown(root), cell?.textContent, cell?.ariaLabel, cell?.dataset]);
    return [nonsense(root), root.querySelector("[aria-live=polite]").textContent,
      [...all].reduce((sum, c) => (31 * sum + c.charCodeAt(0)) | 0, 0)];
  };
"""


def opened(visit, name):
    visit.page.evaluate(f"() => {{ {TOOLS} }}")
    return visit.page.locator(f"[data-explorer={name}] .explorer").first


def moves(kind: str, low: str, high: str, shape: str) -> list[list[str]]:
    """The keys that take a control to its ends and do what else it can; they are said in groups."""
    if shape == "handle":
        return [["Shift+" + arrow] * 17 for arrow in ("ArrowLeft", "ArrowUp", "ArrowRight")]
    return {
        "number": [[low], [high], ["-", "1e9"], [str((float(low or 0) + float(high or 0)) / 2)]],
        "range": [["Home"], ["ArrowRight"], ["End", "ArrowLeft"]],
        "select-one": [["Home"], ["End"], ["ArrowUp"]],
        "checkbox": [["Space"], ["Space"]],
        "grid": [
            ["ArrowDown", "ArrowRight", "Enter"],
            ["End", "ArrowDown", "Space"],
            ["PageDown", "ArrowLeft", "Enter"],
            ["Home", "PageUp", "ArrowUp", "Space"],
        ],
    }.get(kind, [["Enter"], ["Space"]])


@pytest.mark.parametrize("name", FIRST)
def test_each_control_answers_the_keyboard_and_nothing_ever_breaks(chrome, address, name):
    with Visit(chrome, address["file"], FIRST[name]) as visit:
        explorer, keyboard = opened(visit, name), visit.page.keyboard
        visit.page.evaluate("hurry()")
        silent, dead, place, tries = [], [], 0, 0
        while about := explorer.evaluate("take", [place, 50 * place + tries]):
            kind, label, *more = about
            heard, values = set(), set()
            if tries:  # a worker may still be busy with what was chosen
                visit.page.wait_for_timeout(250)
            for keys in [[], *moves(kind, *more)]:
                for key in keys:
                    if kind == "number":
                        keyboard.press("ControlOrMeta+A")
                        keyboard.type(key)
                    else:
                        keyboard.press(key)
                wrong, said, value = explorer.evaluate("hear")
                assert not wrong, f"{label} after {keys}: {wrong}"
                heard.add(said)
                values.add(value)
            still = len(values) < 2 and more[2] != "pressed"
            if still and kind in ("button", "submit") and tries < 8:
                tries += 1  # there was nothing to do in this state, perhaps: try another
                continue
            if still:
                dead.append(label)
            if len(heard) < 2 and kind in ("range", "select-one"):
                silent.append(label)
            place, tries = place + 1, 0
        assert (silent, dead) == ([], []) and place > 4
        for seed in range(12):
            wrong = explorer.evaluate("shakeAll", seed)
            assert not wrong, f"seed {seed}, {wrong}"
        assert visit.complaints == []


@pytest.mark.parametrize("name", FIRST)
def test_tab_reaches_every_control(chrome, address, name):
    with Visit(chrome, address["file"], FIRST[name]) as visit:
        explorer = opened(visit, name)
        wanted = explorer.evaluate(
            """root => {
              root.tabIndex = -1;
              root.focus();
              return window.wanted = controlsOf(root).length;
            }"""
        )
        reached = []
        for _ in range(wanted + 5):
            visit.page.keyboard.press("Tab")
            place = explorer.evaluate(
                """root => document.activeElement.matches(".explorer a") ? null
                     : controlsOf(root).findIndex(e => e === document.activeElement
                       || e.role === "grid" && e.contains(document.activeElement))"""
            )
            if place is None:  # a link of the explorer's, which is no control
                continue
            if place < 0:
                break
            reached.append(place)
        assert sorted(set(reached)) == list(range(wanted)), (
            "the rest is out of the keyboard's reach"
        )
        assert reached == sorted(reached), "the order of the keyboard is not the order of reading"


@pytest.mark.parametrize("page", PAGES)
def test_on_a_phone_nothing_overflows_and_a_finger_finds_each_control(chrome, address, page):
    with Visit(chrome, address["file"], page, width=320, has_touch=True) as visit:
        visit.page.evaluate(f"() => {{ {TOOLS} }}")
        for explorer in visit.page.locator("[data-explorer] .explorer").all():
            for seed in (None, 1, 2):
                if seed is not None:
                    assert explorer.evaluate("shakeAll", seed) == ""
                wide = explorer.evaluate(
                    """root => [...root.querySelectorAll("*")].filter(e => seen(e)
                         && !e.closest(".scroll, svg, canvas, .unseen, .cursor")
                         && (e.getBoundingClientRect().right > innerWidth + 1
                          || e.matches("button:not(.handle), label, output, dd, .say, .heatbox")
                             && e.scrollWidth > e.clientWidth + 1 && e.clientWidth))
                       .map(e => e.outerHTML.slice(0, 100))"""
                )
                assert wide == []
                assert visit.page.evaluate("document.documentElement.scrollWidth") <= 320
                small = explorer.evaluate(
                    """root => controlsOf(root).flatMap(e => e.role === "grid"
                         ? [...e.querySelectorAll(".tile")] : [e.closest("label.switch") ?? e])
                       .map(e => [nameOf(e), e.getBoundingClientRect()])
                       .filter(([, box]) => Math.min(box.width, box.height) < 23.99)
                       .map(([name, box]) => `${name}: ${box.width} by ${box.height}`)"""
                )
                assert small == []


@pytest.mark.parametrize("page", PAGES)
def test_forced_colours_and_reduced_motion_are_respected(chrome, address, page):
    wishes = {"forced_colors": "active", "reduced_motion": "reduce"}
    with Visit(chrome, address["file"], page, **wishes) as visit:
        visit.page.evaluate(f"() => {{ {TOOLS} }}")
        for explorer in visit.page.locator("[data-explorer] .explorer").all():
            assert explorer.evaluate("shakeAll", 1) == ""
            moving = explorer.evaluate(
                """root => [...root.querySelectorAll("*")].filter(e => e.getAnimations().length
                     || getComputedStyle(e).transitionDuration !== "0s").map(e => e.className)"""
            )
            assert moving == []
            # Forced colours wash out backgrounds: bars and curves must be drawn in the system's.
            faint = explorer.evaluate(
                """root => {
                  const ink = document.createElement("i");
                  ink.style.color = "CanvasText";
                  root.append(ink);
                  const colour = getComputedStyle(ink).color;
                  ink.remove();
                  return [...root.querySelectorAll(".bar i, .curve, .hand, .ray, .dot")].filter(e =>
                    !getComputedStyle(e).backgroundImage.includes(colour)
                      && getComputedStyle(e).stroke !== colour).map(e => e.outerHTML.slice(0, 80));
                }"""
            )
            assert faint == []
        assert visit.complaints == []


@pytest.mark.parametrize("page", PAGES)
def test_over_http_too_each_explorer_moves_and_speaks_once_the_hand_rests(chrome, address, page):
    with Visit(chrome, address["http"], page) as visit:
        visit.page.evaluate(f"() => {{ {TOOLS} }}")
        for explorer in visit.page.locator("[data-explorer] .explorer").all():
            say = explorer.locator("[aria-live=polite]")
            before = say.inner_text()
            moved = "e => [shakeAll(e, 5), e.querySelector('[aria-live=polite]').innerText]"
            wrong, said = explorer.evaluate(moved)  # in one breath: a busy machine may rest later
            assert wrong == "" and said == before, "it speaks before the hand rests"
            visit.page.wait_for_function(
                "([say, before]) => say.innerText !== before",
                arg=[say.element_handle(), before],
                timeout=5000,
            )
        assert visit.complaints == []


def test_two_views_of_one_model_agree(chrome, tmp_path):
    body = []
    for page, name in dict.fromkeys(PLACES):
        if FIRST[name] == page:
            place = copy.copy(html(page).select_one(f"[data-explorer={name}]"))
            for still in place.select("img"):
                still.decompose()  # its address is relative to the page it was taken from
            body += [str(place), str(place)]
    weights = list(dict.fromkeys(file for name in FIRST for file in weights_of(name)))
    scripts = [static_module(name) for name in [*SHARED, *weights, *FIRST]]
    scripts.append((EXT / "host.js").read_text("utf-8"))
    styles = (Path(_base.__file__).with_name("explorer.css")).read_text("utf-8")
    for name in weights:
        (tmp_path / f"{name}.js").write_text(static_module(name), "utf-8")
    (tmp_path / "two.js").write_text("\n".join(scripts), "utf-8")
    (tmp_path / "two.html").write_text(
        f"<!doctype html><meta charset=utf-8><title>Two</title><style>{styles}</style>"
        f'{"".join(body)}<script src="two.js"></script>',
        "utf-8",
    )
    with Visit(chrome, tmp_path.as_uri(), "two.html") as visit:
        visit.page.evaluate(f"() => {{ {TOOLS} }}")
        for name in FIRST:
            pair = visit.page.locator(f"[data-explorer={name}] .explorer")
            assert pair.count() == 2
            seen = set()
            for seed in range(6):
                assert pair.nth(seed % 2).evaluate("shakeAll", seed) == ""
                pair.nth(seed % 2).evaluate("rest")
                visit.page.evaluate("document.activeElement.blur()")
                visit.page.wait_for_timeout(200)  # typed numbers follow once the hand rests
                visit.page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
                for _ in range(30):  # what is computed beside the page may reach one view later
                    one, two = pair.nth(0).evaluate("shown"), pair.nth(1).evaluate("shown")
                    if one == two:
                        break
                    visit.page.wait_for_timeout(100)
                assert [(a, b) for a, b in zip(one, two, strict=True) if a != b] == [], name
                seen.add(str(one))
            assert len(seen) > 2, f"{name} does not move"  # a preset may come last twice
        assert visit.complaints == []

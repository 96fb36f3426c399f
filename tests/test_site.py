"""The built book in a browser: offline, quiet, typeset, accessible, and its explorers alive.

`make test` builds `_site` first; by hand, run `make book` before these.
"""

import copy
import functools
import gzip
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from site_browser import SITE, Visit, html

sys.path.insert(0, str(SITE.parent / "scripts"))

import fonts  # noqa: E402

pytestmark = pytest.mark.browser
PAGES = sorted(p.relative_to(SITE).as_posix() for p in (SITE / "book").glob("*.html"))
assert PAGES, "there is no built book in _site: run `make book`"


EXPLORED = [page for page in PAGES if html(page).select("[data-explorer]")]


@pytest.mark.parametrize("way", ["file", "http"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_asks_no_other_address_and_logs_no_error(chrome, address, page, way):
    with Visit(chrome, address[way], page) as visit:
        assert visit.complaints == []
        outside = [u for u in visit.requests if not u.startswith((address[way], "data:", "blob:"))]
        assert outside == []


@pytest.mark.parametrize("page", PAGES)
def test_a_first_visit_is_light(chrome, address, page):
    """At most 12 requests, 180 KB gzipped without fonts, and 13,000 elements before a scroll."""
    with Visit(chrome, address["http"], page) as visit:
        elements = visit.page.evaluate("document.querySelectorAll('*').length")
    paths = {urlsplit(u).path.lstrip("/") for u in visit.requests if u.startswith(address["http"])}
    files = [SITE / path for path in paths if "_weights" not in path]  # fetched where they are near
    plain = [f.read_bytes() for f in files if f.suffix != ".woff2"]
    assert len(files) <= 12, files
    assert sum(len(gzip.compress(data)) for data in plain) <= 180 * 1024
    assert elements <= 13_000


@pytest.mark.parametrize("page", [*PAGES, "404.html", "search.html"])
def test_a_page_says_that_it_loads_nothing_but_its_own_files(page):
    policy = html(page).select_one('meta[http-equiv="Content-Security-Policy"]')["content"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == "'none'"
    # what keeps read pages, and the worker that "Train it here" makes of its own text
    assert rules.pop("worker-src") == "'self' blob:"
    allowed = {word for rule in rules.values() for word in rule.split() if "sha256" not in word}
    assert allowed == {"'none'", "'self'", "file:", "data:", "'unsafe-inline'"}
    assert "unsafe" not in rules["script-src"]


def test_the_door_has_the_title_and_the_card_of_the_start_page():
    start, door = (BeautifulSoup((SITE / p).read_text("utf-8"), "html.parser")
                   for p in ("book/index.html", "index.html"))  # fmt: skip
    assert door.title.text == start.title.text == start.h1.text.rstrip("#")
    for name in ("og:title", "og:description", "og:site_name"):
        same = [page.find("meta", property=name)["content"] for page in (start, door)]
        assert same[0] == same[1] and "not set" not in same[0], name
    assert (SITE / door.find("link", rel="icon")["href"]).is_file()
    assert door.a["href"] == "book/index.html"


def test_a_search_shows_the_words_around_what_was_typed(chrome, address):
    with Visit(chrome, address["http"], "search.html?q=rotary") as visit:  # its stem is "rotari"
        visit.page.wait_for_selector(".context")
        visit.page.wait_for_timeout(1500)
        shown = visit.page.locator(".context").all_inner_texts()
    assert len(shown) > 2 and all("rotary" in text.lower() for text in shown), shown


@pytest.mark.parametrize("page", PAGES)
def test_maths_is_typeset_and_no_markup_is_left(page):
    article = copy.copy(html(page).select_one("article"))
    formulas = article.select(".math")
    for formula in formulas:
        assert formula.select_one("math"), f"not typeset: {formula.get_text()[:60]}"
        assert not formula.select("merror, .temml-error"), formula.get_text()[:60]
        kept, after = formula.get_text()[-1:], str(formula.next_sibling or "")
        assert kept not in list(".,;:") or not re.match(r"[.,;:]", after), f"twice: {kept}{after}"
    for code in article.select("pre, code, math, script"):
        code.decompose()
    text = article.get_text(" ")
    assert not re.search(r"\\(frac|sqrt|begin|top|text)\b|\{[a-z:]+\}`|^:::|\$\S", text, re.M)


def italic(letter: str) -> str:
    """The letter that a browser draws for a variable of one letter."""
    for first, last, at in (("A", "Z", 0x1D434), ("a", "z", 0x1D44E), ("α", "ω", 0x1D6FC)):
        if first <= letter <= last:
            return "ℎ" if letter == "h" else chr(at + ord(letter) - ord(first))
    return letter


@pytest.mark.parametrize("page", PAGES)
def test_the_mathematics_font_has_every_letter_of_the_formulas(page):
    letters = fonts.letters(fonts.MATHS)
    words = [(tag.name, tag.get("mathvariant"), tag.text)
             for tag in html(page).select("math :is(mi, mo, mn, mtext)")]  # fmt: skip
    drawn = {
        italic(text) if (name, upright) == ("mi", None) and len(text) == 1 else letter
        for name, upright, text in words
        for letter in text
    }
    assert {letter for letter in drawn if ord(letter) not in letters} == set()


@pytest.mark.parametrize("way", ["file", "http"])
def test_the_temperature_slider_changes_the_weights(chrome, address, way):
    with Visit(chrome, address[way], "book/scaling.html") as visit:
        explorer = visit.page.locator("[data-explorer=temperature]").first
        explorer.scroll_into_view_if_needed()
        weights = explorer.locator(".weight")
        before = weights.all_inner_texts()
        slider = explorer.locator("input[type=range]").first
        slider.focus()
        visit.page.keyboard.press("Home")
        cold = weights.all_inner_texts()
        visit.page.keyboard.press("End")
        hot = weights.all_inner_texts()
        assert len({str(before), str(cold), str(hot)}) == 3
        shares = [float(w) for w in hot if re.fullmatch(r"[\d.]+", w)]
        assert max(shares) - min(shares) < 0.05, "at temperature 20 the weights are nearly even"
        assert visit.complaints == []


@pytest.mark.parametrize("page", EXPLORED)
def test_without_scripts_a_still_picture_stands_in_each_explorers_place(chrome, address, page):
    with Visit(chrome, address["file"], page, script=False) as visit:
        places = visit.page.locator(".explorer-place")
        assert places.count() == len(html(page).select("[data-explorer]"))
        for place in places.all():
            picture = place.locator("img")
            picture.scroll_into_view_if_needed()
            assert picture.evaluate("i => i.complete && i.naturalWidth > 200")
            assert len(picture.get_attribute("alt")) > 40


@pytest.mark.parametrize("page", EXPLORED)
def test_every_explorer_answers_the_ends_of_each_slider(chrome, address, page):
    with Visit(chrome, address["file"], page) as visit:
        for explorer in visit.page.locator("[data-explorer]").all():
            name = explorer.get_attribute("data-explorer")
            sliders = explorer.locator("input[type=range]:visible")
            assert explorer.locator("button, input, select").count(), f"{name} did not start"
            for slider in sliders.all():
                for key in ("End", "Home"):
                    if slider.is_enabled():
                        slider.focus()
                        visit.page.keyboard.press(key)
            text = explorer.inner_text()
            assert not re.search(r"\b(NaN|Infinity|undefined|null)\b", text), f"{name}: {text}"
            assert explorer.locator("[aria-live]").count(), f"{name} says nothing"
        assert visit.complaints == []


# What reaches beyond the page's right edge and is in no box that scrolls.
CUT_OFF = """() => [...document.querySelectorAll(".bd-article :is(code, .math, p, input, svg)")]
  .filter(e => !e.closest("pre, .explorer, .pst-scrollable-table-container, .text_html, div.math")
               && !e.parentElement.closest("svg")
               && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(e => e.textContent.slice(0, 60))"""


@pytest.mark.parametrize("width", [320, 360])
@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_wider_than_a_phone(chrome, address, page, width):
    with Visit(chrome, address["file"], page, width=width) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        assert visit.page.evaluate(CUT_OFF) == []
        wide = visit.page.evaluate(
            """() => [...document.querySelectorAll(".explorer *")]
                 .filter(e => e.getBoundingClientRect().right > innerWidth + 1
                              && !e.closest(".scroll")).map(e => e.outerHTML.slice(0, 80))"""
        )
        assert wide == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("page", ["book/index.html", "book/scaling.html", "book/review.html"])
def test_what_the_keyboard_reaches_shows_that_it_has_the_focus(chrome, address, page, width):
    with Visit(chrome, address["file"], page, width=width) as visit:
        visit.page.keyboard.press("Tab")  # from now on the focus is the keyboard's
        reached, unseen = visit.page.evaluate(
            """() => {
              const seen = (tag) => ["", "::before", "::after"].some((part) => {
                const style = getComputedStyle(tag, part);
                return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1
                  || style.boxShadow !== "none";
              });
              const tags = [...document.querySelectorAll("a[href], button, input, select, summary")]
                .filter((tag) => tag.tabIndex >= 0 && !tag.disabled && tag.checkVisibility());
              const wrong = tags.filter((tag) => {
                tag.focus({ preventScroll: true });
                return document.activeElement === tag
                  && ![tag, tag.parentElement, tag.nextElementSibling, ...tag.children]
                    .some((near) => near && seen(near));
              });
              return [tags.length, wrong.map((tag) => tag.outerHTML.slice(0, 120))];
            }"""
        )
        assert reached > 10 and unseen == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_no_violation(chrome, address, page, theme):
    axe = (Path(__import__("axe_playwright_python").__file__).parent / "axe.min.js").read_text()
    with Visit(chrome, address["file"], page, theme=theme) as visit:
        visit.page.evaluate(axe)
        rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
        if theme == "dark":  # the same page but for its colours
            rules = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
        found = visit.page.evaluate(
            """async (rules) => (await axe.run(document, {
                 runOnly: rules, resultTypes: ["violations"]})).violations.map(v =>
                 v.id + ": " + v.nodes.slice(0, 4).map(n => n.html.slice(0, 160)).join(" | "))""",
            rules,
        )
        assert found == []


@functools.cache
def ids(page: str) -> set[str]:
    return {tag["id"] for tag in html(page).find_all(id=True)}


@pytest.mark.parametrize("page", [*PAGES, "404.html", "search.html"])
def test_links_lead_somewhere(page):
    soup = html(page)
    for tag in soup.select("a[href], link[href], script[src], img[src]"):
        link = tag.get("href") or tag.get("src")
        parts = urlsplit(link)
        if parts.scheme or link.startswith("data:"):
            continue
        path = parts.path.lstrip("/") if page == "404.html" else parts.path
        target = (SITE / page).parent / unquote(path) if path else SITE / page
        if target.is_dir():
            target = target / "index.html"
        assert target.exists(), f"{page} links to {link}"
        if parts.fragment and target.suffix == ".html":
            other = target.resolve().relative_to(SITE.resolve()).as_posix()
            assert unquote(parts.fragment) in ids(other), f"{page} links to {link}"


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_says_what_it_shows(page):
    for figure in html(page).select("article svg.figure-svg"):
        assert len(figure.get("aria-label", "")) > 30, str(figure)[:200]
    for image in html(page).select("article img"):
        assert image.get("alt"), str(image)[:200]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_a_title_a_description_and_one_heading(page):
    soup = html(page)
    assert soup.title.text.strip()
    assert soup.html["lang"] == "en"
    assert len(soup.select("article h1")) == 1
    assert soup.select_one('meta[property="og:title"]')
    assert soup.select_one('link[rel="icon"], link[rel="shortcut icon"]')
    description = soup.select_one('meta[name="description"], meta[property="og:description"]')
    assert description and len(description["content"]) > 40


PLACES = "() => [...document.querySelectorAll('.bd-article :is(h2, h3)')].map(h => h.offsetTop)"
SETTLED = ".bd-article.settled section.live"


@pytest.mark.parametrize(
    ("page", "width"),
    [("book/index.html", 360), ("book/masking.html", 1200), ("book/scaling.html", 360)],
)
def test_leaving_out_what_is_far_away_moves_nothing(chrome, address, page, width):
    """Blocks far from the window are not drawn, and every jump still lands where it should."""
    with Visit(chrome, address["http"], page, width=width, reduced_motion="reduce") as visit:
        visit.page.add_style_tag(content="html { scroll-behavior: auto !important }")
        visit.page.wait_for_selector(SETTLED)
        settled = visit.page.evaluate(PLACES)
        visit.page.evaluate("document.querySelector('.bd-article').className = 'bd-article'")
        assert visit.page.evaluate(PLACES) == pytest.approx(settled, abs=1)
        visit.page.set_viewport_size({"width": width + 40, "height": 700})  # heights change
        visit.page.wait_for_selector(SETTLED)
        ids = visit.page.evaluate(
            "[...document.querySelectorAll('.bd-article section > h2')].map(h => h.parentNode.id)"
        )
        for name in reversed(ids):
            visit.page.evaluate("name => { location.hash = name; }", name)
            visit.page.wait_for_timeout(100)
            top, below = visit.page.evaluate(
                "name => [document.getElementById(name).getBoundingClientRect().top, "
                "document.documentElement.scrollHeight - innerHeight - scrollY]",
                name,
            )
            assert below < 2 or 0 <= top < 100, f"{name} is at {top}"
        drawn = "e => e.checkVisibility({contentVisibilityAuto: true})"
        first = visit.page.locator(f"{SETTLED} > p").first
        assert first.evaluate(drawn)
        if page != "book/index.html":  # all of which is near
            last = visit.page.locator(f"{SETTLED} > section:not(.live) p").last
            assert not last.evaluate(drawn)


def test_a_jump_while_the_page_arrives_lands_where_it_should(chrome, address):
    context = chrome.new_context(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.add_init_script(
        "addEventListener('DOMContentLoaded', () => {"
        "  window.arrived = document.documentElement.className; location.hash = 'exercises'; });"
    )
    page.goto(f"{address['http']}/book/scaling.html")
    page.wait_for_selector(SETTLED)
    assert "arriving" in page.evaluate("arrived")
    assert "arriving" not in page.evaluate("document.documentElement.className")
    assert (
        0 <= page.evaluate("document.getElementById('exercises').getBoundingClientRect().top") < 100
    )
    context.close()

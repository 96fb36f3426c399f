"""The built book in Firefox and WebKit: every page opens, explorers and questions answer.

`make test` builds `_site` first; by hand, run `make book` before these. The pages are opened from
a folder: a copy of the book, with one script more that keeps what a page complains of.
"""

import json
import os
import shutil
import sys

import browser
import engines
import pytest
from site_browser import SITE, html
from test_explorers import PLACES, TOOLS

sys.path.append(str(SITE.parent / "book" / "_ext"))
import question_values as values  # noqa: E402

pytestmark = pytest.mark.browser
PAGES = [
    page.relative_to(SITE).as_posix()
    for page in sorted([*SITE.glob("*.html"), *SITE.glob("book/*.html")])
    # one only leads to the start page, and one is served in the place of a page that is not there
    if page not in (SITE / "index.html", SITE / "404.html")
]

EAR = """
  window.complaints = [];
  addEventListener("error", (e) => complaints.push(
    e.message ?? `${e.target.src ?? e.target.href} did not load`), true);
  addEventListener("unhandledrejection", (e) => complaints.push(String(e.reason)));
  for (const kind of ["error", "warn"])
    console[kind] = (...words) => complaints.push(words.join(" "));
"""

# What a page's explorers and questions say when they are used: a list of what is wrong.
USE = (
    TOOLS
    + r"""
  const wrong = [];
  const until = async (test, seconds) => {
    for (const end = Date.now() + 1000 * seconds; !test() && Date.now() < end;)
      await new Promise((done) => setTimeout(done, 50));
    return test();
  };
  for (const place of document.querySelectorAll("[data-explorer]")) {
    const name = place.dataset.explorer;
    place.scrollIntoView({ block: "center", behavior: "instant" });
    if (!await until(() => place.querySelector(".explorer"), 20)) {
      wrong.push(`${name} did not start: ${place.textContent.trim().slice(-200)}`);
      continue;
    }
    const root = place.querySelector(".explorer");
    const say = root.querySelector("[aria-live=polite]");
    const before = say.textContent;
    const broken = nonsense(root) || shakeAll(root, 5);
    if (broken) wrong.push(`${name}: ${broken}`);
    if (!await until(() => say.textContent !== before, 20))
      wrong.push(`${name} still says: ${before}`);
    rest(root);
  }
  for (const place of document.querySelectorAll("[data-question]")) {
    const { name, type, answer } = JSON.parse(place.dataset.question);
    const form = place.querySelector("form");
    const folded = place.querySelector(":scope > .question-answer");
    if (!form) {
      wrong.push(`${name} takes no answer`);
      continue;
    }
    const expect = (words, open, typed) => {
      const inputs = form.querySelectorAll("fieldset input");
      if (type === "choice") typed.forEach((k) => inputs[k - 1].click());
      else [typed].flat(2).forEach((value, k) => {
        inputs[k].value = value;
        inputs[k].dispatchEvent(new Event("input", { bubbles: true }));
      });
      form.querySelector("button").click();
      const said = place.querySelector(".question-said").textContent;
      if (!said.startsWith(words)) wrong.push(`${name} says: ${said}`);
      if (folded.open !== open) wrong.push(`${name}: its answer is ${open ? "folded" : "open"}`);
    };
    if (type === "open") {
      folded.open = true;
      if (!await until(() => form.offsetHeight, 5)) wrong.push(`${name} shows no buttons`);
      expect("Noted.", true, []);
      continue;
    }
    if (place.classList.contains("check") && ["number", "matrix"].includes(type))
      expect("✗ Not yet. ", false, [answer].flat(2).map((number) => number + 1000));
    expect("✓ Right.", true, answer);
    const figure = place.querySelector(".question-figure");
    if (figure) for (const which of ["::before", "::after"])
      if (getComputedStyle(figure, which).display === "none") wrong.push(`${name}: no ${which}`);
  }
  return wrong.concat(complaints);
"""
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines") / "site"
    shutil.copytree(SITE, folder)
    (folder / "ear.js").write_text(EAR, "utf-8")
    for page in PAGES:
        text = (folder / page).read_text("utf-8")
        ear = os.path.relpath(folder / "ear.js", (folder / page).parent)
        assert text.count("<head>") == 1
        text = text.replace("<head>", f'<head><script src="{ear}"></script>')
        (folder / page).write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module", params=["Firefox", "WebKit"])
def engine(request, tmp_path_factory):
    if not browser.engine(request.param):
        pytest.skip(browser.ABSENT[request.param])
    with getattr(engines, request.param)(tmp_path_factory.mktemp(request.param)) as running:
        yield running


def test_the_book_asks_in_every_way():
    asked = [q for page in PAGES for q in html(page).select("[data-question]")]
    assert {json.loads(q["data-question"])["type"] for q in asked} == set(values.TYPES)
    assert any(q.select_one(".question-figure") for q in asked)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_and_all_that_is_on_it_answers(engine, copy, page):
    engine.open((copy / page).as_uri())
    wrong = engine.run(USE)
    assert not wrong, "\n".join(wrong)
    assert engine.run("return location.href.split('#')[0]") == (copy / page).as_uri()
    assert engine.run("return [...document.querySelectorAll('h1')].some(seen)")
    used = engine.run("return document.querySelectorAll('.explorer').length")
    assert used == [where for where, _ in PLACES].count(page)

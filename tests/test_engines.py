"""The built book in Firefox and WebKit: every page opens, explorers and questions answer.

`make test` builds `_site` first; by hand, run `make book` before these. The pages are opened from
a folder: a copy of the book, with one script more that keeps what a page complains of.
"""

import os
import shutil

import browser
import engines
import pytest
from site_browser import SITE
from test_explorers import PLACES, TOOLS

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
    if (!form) wrong.push(`${name} takes no answer`);
    else if (type === "choice") {
      for (const k of answer) form.querySelectorAll("input")[k - 1].click();
      form.querySelector("button").click();
      const said = place.querySelector(".question-said").textContent;
      if (!said.includes("✓ Right.")) wrong.push(`${name} says: ${said}`);
    }
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


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_and_all_that_is_on_it_answers(engine, copy, page):
    engine.open((copy / page).as_uri())
    wrong = engine.run(USE)
    assert not wrong, "\n".join(wrong)
    assert engine.run("return location.href.split('#')[0]") == (copy / page).as_uri()
    assert engine.run("return [...document.querySelectorAll('h1')].some(seen)")
    used = engine.run("return document.querySelectorAll('.explorer').length")
    assert used == [where for where, _ in PLACES].count(page)

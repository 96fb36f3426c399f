"""Other languages: what is fixed stays, what is not translated is English, and versions are linked.

No chapter is built here; a small book goes through both builders, and the catalogues are read.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from bs4 import BeautifulSoup
from test_widgets_math import javascript

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "scripts")]

import languages  # noqa: E402
import translations  # noqa: E402

CATALOGUES = [
    (language, page, path)
    for language, pages in translations.catalogues().items()
    for page, path in pages.items()
]


@pytest.mark.parametrize(("language", "page", "path"), CATALOGUES)
def test_code_numbers_formulas_labels_and_links_are_the_same_in_every_language(
    language, page, path
):
    for text, translated in translations.sentences(path).items():
        assert not (said := translations.wrong(text, translated)), f"{path}: {text[:60]!r} {said}"
        for mark in ("**", "“"):
            assert mark != "**" or text.count(mark) == translated.count(mark), text
        assert text.count("*") == translated.count("*"), f"{path}: emphasis of {text[:60]!r}"


def test_the_start_page_is_translated_in_german_and_chinese():
    for language in ("de", "zh"):
        pages = translations.catalogues()[language]
        for page in ("book/index", "words"):
            everything = [m for m in translations.read(pages[page]) if m.id]
            done = translations.sentences(pages[page])
            assert len(done) > 0.8 * len(everything), f"{language}: {page}"
            assert sum(text == translated for text, translated in done.items()) <= 3


TEXT = "See {ref}`chapter 1 <ch-one>`: $x_i$ is 0.5 in `f(x)`, [there](a.html)[^n], {0} of 12,000."


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.5", "0,5", "lacks 0.5; adds 0,5"),
        ("12,000", "12.000", "lacks 12,000; adds 12.000"),
        ("ch-one", "ch-two", "lacks ref ch-one; adds ref ch-two"),
        ("$x_i$", "$x_j$", "lacks $x_i$; adds $x_j$"),
        ("`f(x)`", "`g(x)`", "lacks `f(x)`; adds `g(x)`"),
        ("a.html", "b.html", "lacks ](a.html); adds ](b.html)"),
        ("[^n]", "", "lacks [^n]"),
        ("{0} ", "", "lacks {0}"),
        ("See", "See 3", "adds 3"),
        ("chapter 1", "Kapitel eins", ""),
        ("See", "Siehe", ""),
    ],
)
def test_a_translation_that_changes_what_is_fixed_is_named(old, new, said):
    assert old in TEXT
    assert translations.wrong(TEXT, TEXT.replace(old, new)) == said


def test_the_templates_have_every_sentence_of_the_explorer_of_the_start_page():
    words = translations.explorer_words()
    assert words["The model thinks that “it” means “{0}” ({1})."] == "heads.js"
    assert all("$" not in text and "`" not in text for text in words)
    for path in [path for language, page, path in CATALOGUES if page == "words"]:
        assert set(words) <= {str(m.id) for m in translations.read(path)}, "run `make messages`"


def test_an_explorer_speaks_the_language_of_the_page():
    source = "globalThis.attentionWords = {'{0} and {1}': '{1} und {0}'};\n"
    from test_widgets_math import SHARED

    assert javascript([["list", ["a", "b{0}"]]], source + SHARED) == ["b{0} und a"]
    assert javascript([["list", ["a", "b"]]]) == ["a and b"]


# a small book

ONE = """---
myst:
  html_meta:
    description: "About one."
---
(ch-one)=
# One *way*

A word, $x_i$ and `code`, see {ref}`ch-two` and {ref}`itself <ch-one>`.

## A section

- Not translated.

| Head | Other |
|---|---|
| cell 1 | $y$ |

```{math}
:label: eq-one
a = b
```
"""
GERMAN = {
    "One *way*": "Ein *Weg*",
    "A word, $x_i$ and `code`, see {ref}`ch-two` and {ref}`itself <ch-one>`.": (
        "Ein Wort, $x_i$ und `code`, siehe {ref}`ch-two` und {ref}`sich <ch-one>`."
    ),
    "cell 1": "Zelle 1",
    "A section": "Ein Abschnitt",
    "About one.": "Über eins.",
}
CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
extensions = ["myst_nb", "maths", "translations"]
root_doc = "other"
html_theme = "sphinx_book_theme"
html_title = "A book"
html_math_renderer = "temml"
html_theme_options = {{"search_bar_text": "Search the book"}}
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
attention_site = ""
attention_catalogues = "CATALOGUES"
suppress_warnings = ["myst.domains"]
def setup(app):
    app.add_config_value("attention_site", "", "env")
"""
RUN = """
import sys
from sphinx.cmd.build import build_main
for builder in ("html", "messages", "translated"):
    if status := build_main(["-q", "-W", "-b", builder, "-d", "trees", "source", f"out/{builder}"]):
        sys.exit(status)
"""


def save(path: Path, sentences: dict[str, str]) -> None:
    catalog = Catalog(locale=path.relative_to(path.parents[1]).parts[0], charset="utf-8")
    for text, translated in sentences.items():
        catalog.add(text, translated)
    path.parent.mkdir(parents=True, exist_ok=True)
    translations.save(path, catalog)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    source = folder / "source"
    source.mkdir()
    (source / "one.md").write_text(ONE, "utf-8")
    (source / "two.md").write_text("(ch-two)=\n# Two\n\nWords.\n")
    (source / "other.md").write_text("# Other\n\n```{toctree}\n:caption: Contents\none\ntwo\n```\n")
    (source / "conf.py").write_text(CONFIG.replace("CATALOGUES", str(folder / "locale")))
    save(folder / "locale" / "de" / "one.po", GERMAN)
    words = {"Two": "Zwei", "Search the book": "Suchen", "Contents": "Inhalt", "Reset": "Zurück"}
    save(folder / "locale" / "de" / "words.po", words)
    save(folder / "locale" / "fr" / "one.po", {"One *way*": "Un *chemin*"})
    save(folder / "locale" / "fr" / "words.po", {"Reset": "Recommencer"})
    done = subprocess.run([sys.executable, "-c", RUN], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def page(small, *parts):
    return BeautifulSoup(small.joinpath("out", *parts).read_text("utf-8"), "html.parser")


def test_the_templates_have_the_sentences_of_each_page(small):
    template = translations.read(small / "out" / "messages" / "one.pot")
    texts = {str(m.id) for m in template if m.id}
    assert {*GERMAN, "Not translated.", "Head", "Other"} == texts
    words = translations.read(small / "out" / "messages" / "words.pot")
    assert {"Two", "Other", "Search the book"} <= {str(m.id) for m in words}


def test_a_catalogue_learns_new_sentences_and_keeps_its_own(small):
    after = translations.read(small / "locale" / "de" / "one.po")
    assert {str(m.id) for m in after if m.id and not m.string} == {
        "Not translated.",
        "Head",
        "Other",
    }
    assert translations.sentences(small / "locale" / "de" / "one.po") == GERMAN


def test_a_translated_page_has_its_language_and_the_same_formulas_labels_and_links(small):
    english, german = page(small, "html", "one.html"), page(small, "translated", "de", "one.html")
    assert english.html["lang"] == "en" and german.html["lang"] == "de"
    body = german.select_one("article")
    assert "Ein Wort, " in body.text and "Zelle 1" in body.text and "Not translated." in body.text
    assert german.select_one("h1 em").text == "Weg"
    assert german.find("meta", attrs={"name": "description"})["content"] == "Über eins."
    assert "translated=" not in str(german)
    for what in ("article math", "article code"):
        assert list(map(str, english.select(what))) == list(map(str, german.select(what)))
    ids = [[tag["id"] for tag in soup.select("article [id]")] for soup in (english, german)]
    assert ids[0] == ids[1]
    links = [[a["href"] for a in soup.select("article p a")] for soup in (english, german)]
    assert links == [["two.html#ch-two", "#ch-one"], ["../two.html#ch-two", "#ch-one"]]
    assert body.select_one("p a").text == "Zwei", "a title of the contents"
    nav = [a["href"] for a in german.select(".bd-links a")]
    assert "../two.html" in nav and "Zwei" in german.select_one(".bd-links").text
    sheet = german.find("link", rel="stylesheet")["href"]
    assert sheet.startswith("../_static/")
    assert german.select_one("input[type=search]")["placeholder"] == "Suchen"
    assert "Inhalt" in german.select_one(".bd-links").text
    assert "Ein Abschnitt" in german.select_one(".page-toc, #pst-page-toc-nav, .toc-entry").text
    french = page(small, "translated", "fr", "one.html")
    assert french.html["lang"] == "fr" and french.select_one("h1 em").text == "chemin"
    assert "Contents" in french.select_one(".bd-links").text and "Ein Wort" not in french.text
    for soup, said in ((german, "Zurück"), (french, "Recommencer")):
        (script,) = [tag.text for tag in soup.select("script") if "attentionWords" in tag.text]
        assert script == f'window.attentionWords = {{"Reset": "{said}"}};'
    assert not (small / "out" / "translated" / "de" / "two.html").exists()


def test_versions_of_a_page_are_linked(small, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    text = (small / "out" / "html" / "one.html").read_text("utf-8")
    (site / "one.html").write_text(text, "utf-8")
    languages.place(small / "out" / "translated", site, ["de"], "https://book.example")
    for name, to, said in [("one.html", "de/one.html", "Deutsch"),
                           ("de/one.html", "../one.html", "English")]:  # fmt: skip
        soup = BeautifulSoup((site / name).read_text("utf-8"), "html.parser")
        (link,) = soup.select("article > nav.languages a")
        assert (link["href"], link.text) == (to, said) and link["lang"] == link["hreflang"]
        tags = {t["hreflang"]: t["href"] for t in soup.head.select("link[hreflang]")}
        assert tags == {
            "en": "https://book.example/one.html", "de": "https://book.example/de/one.html",
            "x-default": "https://book.example/one.html",
        }  # fmt: skip


def test_without_languages_the_site_is_as_it_was(tmp_path):
    languages.place(tmp_path / "none", tmp_path, [])
    assert list(tmp_path.iterdir()) == []


def test_a_language_without_catalogues_is_refused_in_a_sentence():
    assert languages.wanted(ROOT / "book" / "locale", "zh de") == ["zh", "de"]
    assert languages.wanted(ROOT / "book" / "locale", "") == []
    with pytest.raises(SystemExit, match=re.escape("which are de, zh; got 'xx'")):
        languages.wanted(ROOT / "book" / "locale", "de xx")
    assert json.dumps(languages.own_name("de")) == '"Deutsch"'

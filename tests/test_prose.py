"""What a chapter promises its reader: length, figures, little printing, terms in the glossary."""

import ast
import re

import pytest
from pages import BOOK, printed

CHAPTERS = [
    "motivation",
    "qkv",
    "scaling",
    "multi-head",
    "positions",
    "masking",
    "blocks",
    "writing",
    "relatives",
    "in-practice",
]
# Chapter 11 is made of questions: it has no exercises and no guesses, it is as long as its
# questions, and it draws one picture. All other rules hold for it, too.
PAGES = [*CHAPTERS, "questions"]
WORDS, FIGURES, PRINTS, WIDTH = 4500, 10, 6, 72
HIDDEN = ("hide-input", "hide-cell", "remove-input", "remove-cell", "setup")
FORBIDDEN = [
    "in circulation", "some tutorials", "many pages", "one reads that", "one sometimes reads",
    "simply", "let's dive", "dive in", "of course", "obviously", "it is easy to see", "needless",
    "trivial", "asks no other address", "just as easily", "as everyone knows", "crucial", "delve",
    "powerful", "seamless",
]  # fmt: skip
CELL = re.compile(r"^(`{3,})\{code-cell\}[^\n]*\n(.*?)^\1$", re.S | re.M)
BOLD = re.compile(r"\*\*([^*\n]+)\*\*")
DIRECTIVE = re.compile(r"^(`{3,}|:{3,})\{([\w-]+)\}", re.M)


def source(name):
    return (BOOK / f"{name}.md").read_text("utf-8")


def without_exercises(text):
    """The chapter without its exercises and their solutions, which have a heading of their own."""
    if text == source("questions"):
        return text
    start = re.search(r"^## Exercises", text, re.M).start()
    end = re.search(r"^## ", text[start + 5 :], re.M)
    return text[:start] + (text[start + 5 + end.start() :] if end else "")


def prose(text):
    """The words that a reader reads: no front matter, code, options, alternative text, markup.

    A hint is read by whoever made its mistake, so it does not count either.
    """
    text = re.sub(r"\A---\n.*?^---\n", "", text, flags=re.S | re.M)
    text = CELL.sub("", text)
    text = re.sub(r"^~~~python\n.*?^~~~$", "", text, flags=re.S | re.M)
    text = re.sub(r"^(`{3,})\{(math|literalinclude|explorer)\}.*?^\1$", "", text, flags=re.S | re.M)
    text = re.sub(r"^~~~.*?^~~~$", "", text, flags=re.S | re.M)  # code that is only shown
    text = re.sub(r"^=== hint .*?(?=^=== |^```)", "", text, flags=re.S | re.M)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.S)
    text = re.sub(r"^:[\w-]+:.*$|^\(.*\)=$|^[`:]{3,}.*$|^%.*$", "", text, flags=re.M)
    text = re.sub(r"\$[^$]*\$", "x", text)  # a formula in a line is read as one word
    return re.sub(r"\{[\w:-]+\}`([^`<]*)(<[^`]*>)?`", r"\1", text)


def cells(text):
    """(code, hidden) of every code cell outside the exercises."""
    for match in CELL.finditer(without_exercises(text)):
        body = match[2]
        yield body, any(tag in body.split("\n\n")[0] for tag in HIDDEN)


def code(body):
    """The lines of a cell without its options."""
    body = re.sub(r"\A---\n.*?^---\n", "", body, flags=re.S | re.M)
    return [line for line in body.splitlines() if not re.match(r":[\w-]+:", line)]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_is_short_enough(name):
    count = len(re.findall(r"[\w'-]+", prose(without_exercises(source(name)))))
    assert count <= WORDS, f"{name} has {count} words of prose, exercises apart"


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_shows_what_it_tells(name):
    figures = len(re.findall(r"^ +name: fig-", source(name), re.M))
    assert figures >= FIGURES, f"{name} has {figures} figures"


@pytest.mark.parametrize("name", PAGES)
def test_a_chapter_prints_little(name):
    text = source(name)
    prints = sum(
        line.count("print(") for body, hidden in cells(text) if not hidden for line in code(body)
    )
    assert prints <= PRINTS, f"{name} has {prints} calls of print in cells that a reader sees"


def names_of(body):
    """(assigned, read) names of a cell."""
    assigned, read = set(), set()
    for node in ast.walk(ast.parse("\n".join(code(body)))):
        if isinstance(node, ast.Name):
            (assigned if isinstance(node.ctx, ast.Store) else read).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            assigned.add(node.name)
        elif isinstance(node, ast.arg):
            assigned.add(node.arg)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            assigned |= {(a.asname or a.name).split(".")[0] for a in node.names}
    return assigned, read


def needs_what_is_removed(text):
    """Names that a cell of the notebook reads and that only a removed cell has assigned."""
    kept, removed, missing = set(), set(), set()
    for match in CELL.finditer(text):
        assigned, read = names_of(match[2])
        if "remove-cell" in match[2].split("\n\n")[0]:
            removed |= assigned
        else:
            missing |= (read - assigned - kept) & removed
            kept |= assigned
    return missing


@pytest.mark.parametrize("name", PAGES)
def test_a_notebook_needs_nothing_that_only_the_page_has(name):
    assert not needs_what_is_removed(source(name))


def test_a_name_that_only_the_page_has_would_be_seen():
    page = "```{code-cell} python\n:tags: [remove-cell]\n\nn = 3\n```\n\n"
    page += "```{code-cell} python\nprint(n)\n```\n"
    assert needs_what_is_removed(page) == {"n"}
    assert not needs_what_is_removed(page.replace("remove-cell", "remove-input"))


@pytest.mark.parametrize("name", PAGES)
def test_no_visible_line_of_code_runs_off_a_phone(name):
    long = [
        line for body, hidden in cells(source(name)) if not hidden for line in code(body)
        if len(line) > WIDTH
    ]  # fmt: skip
    assert not long, "\n".join(long)


@pytest.mark.parametrize("name", PAGES)
def test_no_phrase_that_the_book_does_without(name):
    text = re.sub(r"\s+", " ", prose(source(name))).lower()
    found = [phrase for phrase in FORBIDDEN if re.search(rf"\b{re.escape(phrase)}\b", text)]
    assert not found, f"{name}: {found}"


def test_every_bold_term_is_in_the_glossary_and_every_term_there_is_bold_in_a_chapter():
    bold = set()
    for name in PAGES:
        text = CELL.sub("", without_exercises(source(name)))
        text = re.sub(r"^[|>].*$", "", text, flags=re.M)  # tables and quoted sentences
        found = {match[1].lower() for match in BOLD.finditer(text)}
        bold |= {words for words in found if words[-1] not in '.:?!"'}  # else it is a lead-in
    inside = source("glossary").split("```{glossary}\n:sorted:\n")[1].split("```")[0]
    terms = [line.lower() for line in inside.splitlines() if re.match(r"\S", line)]
    assert len(terms) == len(set(terms)) > 80
    assert not bold - set(terms), f"not in the glossary: {sorted(bold - set(terms))}"
    assert not set(terms) - bold, f"bold in no chapter: {sorted(set(terms) - bold)}"


def test_the_hours_of_the_first_page_are_those_of_the_exercises():
    minutes = [sum(map(int, re.findall(r"star-\d minutes-(\d+)", source(c)))) for c in CHAPTERS]
    least, most = (round(found(minutes) / 60) for found in (min, max))
    words = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
    printed("index", f"take {words[least]} to {words[most]} hours more")


@pytest.mark.parametrize("name", CHAPTERS)
def test_guesses_and_questions_have_their_form(name):
    text = source(name)
    kinds = [match[2] for match in DIRECTIVE.finditer(text)]
    assert kinds.count("guess") >= 2 and kinds.count("check") >= 6, name
    assert "class: guess" not in text


def test_the_reader_of_chapters_counts_what_it_should():
    text = "---\na: b\n---\n# One two\n\n```{code-cell} python\n:tags: [hide-input]\n\nprint(1)\n"
    text += "```\n\n```{code-cell} python\nprint(2)\n```\n\nThree $x = 1$ {ref}`four <a>`.\n\n"
    text += "## Exercises\n\nMany words here.\n\n## Summary\n\nFive.\n"
    assert len(re.findall(r"[\w'-]+", prose(without_exercises(text)))) == 7
    seen = [(code(body), hidden) for body, hidden in cells(text)]
    assert seen == [(["", "print(1)"], True), (["print(2)"], False)]

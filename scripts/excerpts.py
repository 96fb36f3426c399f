"""Take the built book's pages apart: whole sentences up to a number of words, as HTML."""

import copy
import functools
import posixpath
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, NavigableString, PageElement, Tag

END = re.compile(r"(?<=[.!?])(?=\s+\S)")
SHORT = re.compile(r"(\b(Fig|Figs|al|e\.g|i\.e|eq|vs|cf)|\b[A-Z])\.$")  # no sentence ends there

BACK = re.compile(
    r"^(This|It|Its|These|Those|That|They|Such|Then|Both|The other)\b|\bsuch\b|\bit\.$"
)

DRAWN = re.compile(r'(<svg class="figure-svg"[^>]*)>(.*?)</svg>', re.S)


@functools.lru_cache(32)
def read(text: str) -> tuple[BeautifulSoup, list[str]]:
    """A page without what its drawings hold, which is most of it, and that.

    It is kept: to be looked at, not changed.
    """
    drawn: list[str] = []

    def put_aside(match: re.Match) -> str:
        drawn.append(match[0])
        return f'{match[1]} data-drawn="{len(drawn) - 1}"></svg>'

    made = BeautifulSoup(DRAWN.sub(put_aside, text), "html.parser")
    for note in made.select(".term-note"):
        note.decompose()
    for term in made.select("button.term"):
        term.unwrap()
    return made, drawn


def redrawn(text: str, drawn: list[str]) -> str:
    """A text with its drawings put back."""
    return re.sub(r'<svg[^>]*data-drawn="(\d+)"[^>]*></svg>', lambda m: drawn[int(m[1])], text)


def words(tags: Iterable[PageElement]) -> int:
    """How many words they have; a formula counts as one, a picture and a script as none.

    >>> words(BeautifulSoup("<p>Rows of <math><mi>X</mi><mo>+</mo></math> sum.</p>", "html.parser"))
    4
    """
    return sum(map(_words, tags))


def _words(tag: PageElement) -> int:
    if isinstance(tag, NavigableString):
        return len(re.findall(r"\w+(?:[-.,’']\w+)*", tag)) if type(tag) is NavigableString else 0
    if not isinstance(tag, Tag) or tag.name in ("svg", "script", "img", "canvas"):
        return 0
    return 1 if tag.name == "math" else words(tag.children)


def sentences(paragraph: Tag) -> list[list[PageElement]]:
    """A paragraph's sentences, each as its pieces of text and its tags.

    >>> p = BeautifulSoup("<p>One <em>word. Two</em> words. See Fig. 3 there.</p>", "html.parser").p
    >>> ["".join(x.text for x in s) for s in sentences(p)]
    ['One word. Two words.', ' See Fig. 3 there.']
    """
    made: list[list[PageElement]] = [[]]
    for child in paragraph.children:
        if type(child) is not NavigableString:
            if made[-1] and _ends(made[-1][-1]) and made[-1][-1].text != made[-1][-1].text.rstrip():
                made.append([])  # "… words. <em>Then</em> …"
            made[-1].append(copy.copy(child))
            continue
        for k, piece in enumerate(END.split(str(child))):
            if k and _ends(made[-1][-1]):
                made.append([])
            made[-1].append(NavigableString(piece))
    return [s for s in made if "".join(x.text for x in s).strip()]


def _ends(piece: PageElement) -> bool:
    said = piece.text.rstrip()
    return type(piece) is NavigableString and said[-1:] in list(".!?") and not SHORT.search(said)


def joined(parts: list[list[PageElement]]) -> str:
    """Sentences as one paragraph."""
    text = " ".join(
        "".join(str(x) if isinstance(x, Tag) else escaped(x) for x in s).strip() for s in parts
    )
    return f"<p>{text}</p>" if text else ""


def escaped(text: PageElement) -> str:
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def first(paragraph: Tag | None, limit: int, least: int = 1) -> str:
    """The first sentences of a paragraph that together have at most `limit` words."""
    chosen: list[list[PageElement]] = []
    for sentence in sentences(paragraph) if paragraph else []:
        if len(chosen) >= least and words(x for s in [*chosen, sentence] for x in s) > limit:
            break
        chosen.append(sentence)
    if chosen and "".join(x.text for x in chosen[-1]).rstrip().endswith(":") and len(chosen) > 1:
        chosen.pop()  # it leads to what is not taken
    return joined(chosen)


def last(paragraph: Tag | None, limit: int) -> str:
    """The last sentence of a paragraph, unless it has more words than `limit`."""
    chosen = sentences(paragraph)[-1:] if paragraph else []
    return joined(chosen) if words(x for s in chosen for x in s) <= limit else ""


def defining(paragraphs: list[Tag], limit: int) -> str:
    """The sentences that name a term in bold, up to `limit` words together.

    One that points back ("This is called …") brings the sentence before it.
    """
    chosen: list[list[PageElement]] = []
    for paragraph in paragraphs:
        before: list[PageElement] = []
        for sentence in sentences(paragraph):
            said = "".join(x.text for x in sentence).strip()
            if any(isinstance(x, Tag) and x.name == "strong" for x in sentence):
                back = before if BACK.search(said) and [before] != chosen[-1:] else []
                new = [s for s in (back, sentence) if s]
                if words(x for s in [*chosen, *new] for x in s) <= limit:
                    chosen += new
            before = sentence
    return joined(chosen)


def cleaned(tag: Tag, page: str) -> str:
    """A copy for another folder: no link to itself, no name, links back to `page`."""
    made = BeautifulSoup(str(tag), "html.parser")
    for extra in made.select("a.headerlink, .question-hint, details.hide > summary"):
        extra.decompose()
    for named in made.find_all(id=True):
        if not named.find_parent("svg"):
            del named["id"]
    for link in made.find_all("a", href=True):
        if not urlsplit(link["href"]).scheme:
            path, sign, name = link["href"].partition("#")
            there = posixpath.join(posixpath.dirname(page), path) if path else page
            link["href"] = there + sign + name
    return str(made)

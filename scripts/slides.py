"""Make a deck of slides for each chapter from its page in the built site: _site/slides.

Nothing is written for the slides alone. A rule takes from the page, in its order: what opens the
chapter, what one can do after it, each section's heading with the sentences that define a term,
figures with the first sentence of their captions, numbered formulas, guesses and checks with the
answer on the next slide, common mistakes, explorers, the summary. slides.js shows one at a time;
without it the deck is a page to be read.
"""

import html
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from excerpts import cleaned, defining, first, last, read, redrawn, words
from pack import policy, write

ROOT = Path(__file__).parents[1]
WORDS = 40  # a slide's, besides its heading and its figure; a question and its answer may have more
PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="auto" data-content_root="../">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Slides: {title}</title>
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="description" content="Slides of the chapter {title}.">
<link rel="icon" href="../_static/favicon.svg">
<link rel="stylesheet" href="{sheet}">
<link rel="stylesheet" href="../_static/{own_css}">
<script defer src="../_static/{own_js}"></script>
{scripts}
</head>
<body class="deck">
<main>
{slides}
</main>
</body>
</html>
"""
SLIDE = """<section class="slide is-{kind}" tabindex="-1" aria-label="{label}">
{title}<div class="fit bd-article">
{body}
</div>
<p class="slide-foot"><a href="{link}">{chapter}</a> <span>{number}</span></p>
</section>"""


@dataclass
class Deck:
    """The slides of one chapter."""

    page: str  # its address, seen from the decks' folder
    slides: list[dict[str, str]] = field(default_factory=list)
    heading: str = ""
    anchor: str = ""

    def add(self, kind: str, body: str, title: str | None = None) -> None:
        title = self.heading if title is None else title
        self.slides.append({"kind": kind, "title": title, "body": body, "link": self.anchor})

    def clean(self, tag: Tag) -> str:
        return cleaned(tag, self.page)

    def text(self, paragraph: str) -> str:
        return cleaned(BeautifulSoup(paragraph, "html.parser"), self.page)

    def section(self, section: Tag) -> None:
        """A section's slides, and those of the sections in it."""
        heading = section.find(["h1", "h2", "h3"], recursive=False)
        if heading is None:
            return
        name = heading.get_text().rstrip("#").strip()
        if name in ("Exercises", "Read on"):
            return
        self.anchor = f"{self.page}#{section['id']}"
        self.heading = inside(self.clean(heading))
        children = [c for c in section.find_all(recursive=False) if c.name != "section"]
        paragraphs = [c for c in children if c.name == "p"]
        if heading.name == "h1":
            self.opening(section, paragraphs)
        elif name == "Summary":
            for points in section.select(":scope > ul"):
                self.points("summary", points)
            return
        elif name != "Check yourself":
            said = defining(paragraphs, WORDS)
            if heading.name == "h2" and paragraphs:
                said = said or first(paragraphs[0], WORDS)
            if said:
                self.add("heading", self.text(said))
            elif not paragraphs and children[-1].name == "ul":
                self.points("points", children[-1], short=True)
        for k, child in enumerate(children):
            self.block(child, children[k - 1] if k else None, children[k + 1 :])
        for inner in section.find_all("section", recursive=False):
            self.section(inner)

    def opening(self, section: Tag, paragraphs: list[Tag]) -> None:
        about = section.find_parent("html").select_one('meta[name="description"]')["content"]
        self.add("title", f"<p>{html.escape(about)}</p>")
        if paragraphs:
            self.add("question", self.text(first(paragraphs[0], WORDS)), "The question")

    def block(self, child: Tag, before: Tag | None, after: list[Tag]) -> None:
        """What one block of a page gives."""
        classes = child.get("class") or []
        if "question" in classes:
            self.poll(child, before)
        elif "mistake" in classes:
            title, text = child.p, child.find_all("p", recursive=False)[1:2]
            told = self.text(first(text[0], WORDS)) if text else ""
            self.add("mistake", told, inside(self.clean(title)))
        elif "math" in classes and child.select_one(".eqno"):
            lead = last(before, WORDS // 2) if before is not None and before.name == "p" else ""
            where = after[0] if after and after[0].name == "p" else None
            left = WORDS - words(BeautifulSoup(lead, "html.parser"))
            told = first(where, left) if where else ""
            shown = BeautifulSoup(told, "html.parser")
            if words(shown) > left or not shown.get_text().endswith((".", "!", "?")):
                told = ""  # too much, or it leads to what is not here
            self.add("formula", self.text(lead) + self.clean(child) + self.text(told))
        elif child.select_one("[data-explorer]"):
            for place in child.select(".explorer-place") or [child]:
                self.add("explorer", self.clean(place))
        elif child.name == "ul" and before is not None and "you can" in before.get_text():
            self.points("goals", child, "After this chapter you can")
        else:
            for figure in [child] if child.name == "figure" else child.select("figure"):
                if figure.select_one("svg, img") and not figure.find_parent("details"):
                    self.figure(figure)

    def figure(self, figure: Tag) -> None:
        picture, caption = figure.select_one("svg, img"), figure.figcaption
        told = ""
        if caption is not None:
            number = caption.select_one(".caption-number")
            said = self.text(first(caption.select_one(".caption-text"), WORDS // 2))
            told = f"<figcaption>{self.clean(number) if number else ''}{inside(said)}</figcaption>"
        self.add("figure", f"<figure>{self.clean(picture)}{told}</figure>")

    def points(self, kind: str, points: Tag, title: str | None = None, short=False) -> None:
        """A list, on as many slides as it needs; of each item the first sentence if `short`."""
        pages: list[list[str]] = [[]]
        count = 0
        for point in points.find_all("li", recursive=False):
            text = inside(str(point))
            if short or words([point]) > WORDS:
                text = first(point.p or point, WORDS // 2 if short else WORDS)
            size = words(BeautifulSoup(text, "html.parser"))
            if pages[-1] and count + size > WORDS:
                pages.append([])
                count = 0
            pages[-1].append(f"<li>{text}</li>")
            count += size
        for page in pages:
            self.add(kind, self.text(f"<ul>{''.join(page)}</ul>"), title)

    def poll(self, question: Tag, before: Tag | None) -> None:
        """A question to vote on by hands, and its answer on the next slide."""
        asked = json.loads(question["data-question"])
        title = inside(self.clean(question.select_one(".admonition-title")))
        text = question.select_one(".question-text")
        options = question.select(".question-options > ul > li")
        formula = before is not None and "math" in (before.get("class") or [])
        if formula and not before.select_one(".eqno"):  # what is asked about it
            above = before.find_previous_sibling()
            said = last(above, WORDS // 2) if above is not None and above.name == "p" else ""
            shown = self.text(said) + self.clean(before) + self.clean(text)
        else:
            shown = self.clean(text)
        if drawn := question.select_one(".question-figure svg"):
            shown += f"<figure>{self.clean(drawn)}</figure>"

        def listed(right: list[int]) -> str:
            mark = ' class="right"'
            rows = [
                f"<li{mark * (k in right)}>{self.option(option)}</li>"
                for k, option in enumerate(options, 1)
            ]
            return f'<ol class="options" type="A">{"".join(rows)}</ol>' if rows else ""

        self.add("poll", shown + listed([]), title)
        answer = question.select_one(".question-answer")
        if answer is None:
            return
        told, count = "", 0
        for part in answer.find_all(recursive=False):
            if part.name == "summary" or {"question-hint"} & set(part.get("class") or []):
                continue
            if options and "question-lead" in (part.get("class") or []):
                continue  # the right option is marked
            if count and count + words([part]) > 1.5 * WORDS:
                break
            short = part.name == "p" and options
            told += self.text(first(part, WORDS)) if short else self.clean(part)
            count += words([part])
        right = asked["answer"] if options else []
        self.add("poll is-answer", listed(right) + told, title)

    def option(self, item: Tag) -> str:
        parts = item.find_all(recursive=False)
        alone = len(parts) == 1 and parts[0].name == "p"
        return inside(self.clean(parts[0] if alone else item))


def inside(text: str) -> str:
    """What one tag holds."""
    made = BeautifulSoup(text, "html.parser")
    return next(t for t in made.children if isinstance(t, Tag)).decode_contents() if text else ""


def deck(path: Path, own: dict[str, str]) -> str | None:
    """The deck of a built page, None if the page is no chapter."""
    page, drawn = read(path.read_text("utf-8"))
    chapter = page.select_one("article > section")
    if chapter is None or not chapter.select_one("h1 > .section-number"):
        return None
    made = Deck(f"../{path.parent.name}/{path.name}")
    made.section(chapter)
    name = chapter.h1.get_text().rstrip("#").strip()
    count = len(made.slides)
    shown = []
    for k, slide in enumerate(made.slides, 1):
        level = "h1" if k == 1 else "h2"
        plain = BeautifulSoup(slide["title"], "html.parser").get_text()
        label = html.escape(f"Slide {k} of {count}: {plain}")
        title = f"<{level}>{slide['title']}</{level}>\n"
        shown.append(SLIDE.format(
            kind=slide["kind"], label=label, title=title, body=slide["body"],
            link=slide["link"], chapter=html.escape(name), number=k,
        ))  # fmt: skip
    scripts = [s["src"] for s in page.select("script[src]") if "/page." in s["src"]]
    return PAGE.format(
        title=html.escape(name), policy=policy(""),
        sheet=page.select_one('link[rel="stylesheet"]')["href"],
        scripts="\n".join(f'<script defer src="{s}"></script>' for s in scripts),
        slides=redrawn("\n".join(shown), drawn), **own,
    )  # fmt: skip


def make(site: Path) -> int:
    """Write the decks of a packed site, and what they share; return how many there are."""
    folder, static = site / "slides", site / "_static"
    for old in static.glob("slides.*"):
        old.unlink()
    texts = {f"own_{kind}": (ROOT / f"scripts/slides.{kind}").read_text() for kind in ("css", "js")}
    pages = sorted((site / "book").glob("*.html"))
    own = {name: write(static, "slides", name[4:], text) for name, text in texts.items() if pages}
    count = 0
    for path in pages:
        text = deck(path, own)
        if text is not None:
            folder.mkdir(exist_ok=True)
            (folder / path.name).write_text(text, "utf-8")
            count += 1
    return count


def main() -> int:
    if not (ROOT / "_site" / "book").is_dir():
        sys.exit("there is no built book in _site: run `make book`")
    print(f"{make(ROOT / '_site')} decks are in _site/slides: open one in a browser")
    return 0


if __name__ == "__main__":
    sys.exit(main())

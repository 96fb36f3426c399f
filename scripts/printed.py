"""Join the built pages into one document for paper: what scripts/pdf.py prints.

The pages come in the order of _toc.yml. Explorers become their still pictures with a caption,
solutions move to the end, links between chapters become links within the document.
"""

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

import yaml
from bs4 import BeautifulSoup, Tag

ONLY_ON_SCREEN = {"review"}  # pages that are nothing without their scripts
IN_EVERY_CHAPTER = {"Check yourself", "Summary", "Read on"}  # left out of the contents
LONG = 16  # lines of code, rows of a table: more may be cut in two by the foot of a sheet
REFERS = ["for", "aria-labelledby", "aria-describedby", "aria-controls"]
DROPPED = [
    "script", "style", "link", ".term-note", "a.headerlink", "details.hide",
    ".tableofcontents-wrapper",
    ".toctree-wrapper", ".question-form :is(button, output, .question-said)", "input[type=text]",
]  # fmt: skip


class Page(NamedTuple):
    name: str
    number: str  # "6", or "" for what is no chapter
    title: str
    body: Tag


def names(toc: Path) -> list[str]:
    """The pages of the table of contents that paper can hold, the start page first."""
    read = yaml.safe_load(toc.read_text("utf-8"))
    files = [read["root"], *(c["file"] for part in read["parts"] for c in part["chapters"])]
    found = [Path(file).name for file in files]
    return [name for name in found if name not in ONLY_ON_SCREEN]


def read(path: Path) -> Page:
    """A built page as it will be printed; its links and ids are still its own."""
    if not path.exists():
        raise SystemExit(f"{path} is not there: run `make book` to build what _toc.yml names")
    soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    body = soup.select_one("article.bd-article")
    if body is None:
        raise SystemExit(f"{path} is no page of the book: it has no article")
    for place in body.select(".explorer-place"):
        still(soup, place)
    for selector in DROPPED:
        for tag in body.select(selector):
            tag.decompose()
    for term in body.select("button.term"):
        term.unwrap()
    for details in body.select("details"):
        details["open"] = ""
    for cell in body.select("div.cell"):  # what is left of a cell whose code was hidden
        if not cell.get_text(strip=True) and not cell.select_one("img, svg"):
            cell.decompose()
    for code in body.select(".highlight"):
        if code.get_text().strip().count("\n") >= LONG:
            code["class"].append("long")
    for table in body.select("table"):
        if len(table.select("tr")) >= LONG:
            table["class"] = [*table.get("class", []), "long"]
    heading = body.h1
    section = heading.select_one(".section-number")
    number = section.get_text().strip(" .") if section else ""
    if section:
        section.string = f"{number}\N{NO-BREAK SPACE}"  # kept at the end of a block
    if path.stem == "index":  # its title is the book's, which the cover has
        heading.string = "About this book"
    title = heading.get_text().removeprefix(number).strip()
    return Page(path.stem, number, title, body)


def still(soup: BeautifulSoup, place: Tag) -> None:
    """Put an explorer's still picture and what it says in the explorer's place."""
    picture = place.img
    what, _, says = picture["alt"].partition(": ")
    figure, caption = soup.new_tag("figure", attrs={"class": "still"}), soup.new_tag("figcaption")
    lead = soup.new_tag("strong")
    lead.string = f"{what}."
    caption.extend([lead, f" {says} (A still: in the page one can move it.)"])
    picture["alt"] = f"{what}: the explorer as it opens; its caption says what it shows."
    picture.attrs.pop("loading", None)
    figure.extend([picture.extract(), caption])
    place.replace_with(figure)


def settle(pages: list[Page], folder: Path, site: str) -> None:
    """Make every id the document's own, every address one that holds where the PDF lies.

    What leads to a file that is no part of the document leads to the site, where its address is
    known; else its words stay, without a link.
    """
    here = {page.name for page in pages}
    for page in pages:
        for number, drawing in enumerate(page.body.select("svg")):  # each has what it draws with
            rename(drawing.find_all(True), f"{page.name}--{number}-")
        rest = [tag for tag in page.body.find_all(True) if not tag.find_parent("svg")]
        rename(rest, f"{page.name}--")
        seen = set()
        for tag in rest:
            if "id" in tag.attrs and (tag["id"] in seen or seen.add(tag["id"])):
                del tag["id"]  # each exercise's text has the same, and no link leads there
            if "src" in tag.attrs and not tag["src"].startswith("data:"):
                tag["src"] = (folder / tag["src"]).resolve().as_uri()
            if "href" in tag.attrs:
                _lead(tag, page.name, here, site)
        page.body["id"] = page.name
        for place in page.body.select("section > span[id]:empty"):  # before its heading, on the
            after = place.find_next_sibling(lambda tag: tag.name != "span")  # sheet before, too
            if after and re.fullmatch("h[1-6]", after.name):
                after.insert(0, place.extract())


def rename(tags: list[Tag], prefix: str) -> None:
    """Put the prefix before the tags' ids, and before what refers to them within a drawing."""
    for tag in tags:
        for key in ("id", *REFERS):
            if key in tag.attrs:
                words = tag[key] if isinstance(tag[key], list) else tag[key].split()
                tag[key] = " ".join(prefix + word for word in words)
        for key, value in list(tag.attrs.items()):
            if isinstance(value, str) and "url(#" in value:
                tag[key] = value.replace("url(#", f"url(#{prefix}")
            elif key == "xlink:href" and value.startswith("#"):
                tag[key] = f"#{prefix}{value[1:]}"


def _lead(tag: Tag, name: str, here: set[str], site: str) -> None:
    file, hash_, place = tag["href"].partition("#")
    if re.match(r"[a-z]+:", file):
        return
    target = Path(file).stem if file else name
    if target in here and Path(file).suffix in ("", ".html") and file.count("/") == 0:
        tag["href"] = f"#{target}--{place}" if place else f"#{target}"
    elif site:
        file = file[3:] if file.startswith("../") else f"book/{file}"
        tag["href"] = f"{site}/{file}{hash_}{place}"
    else:
        tag.unwrap()


def solutions(pages: list[Page]) -> str:
    """Take the solutions out of the pages, each leaving its address; return them as a section."""
    parts = []
    for page in pages:
        found = page.body.select("div.solution")
        if not found:
            continue
        parts.append(
            f"<h2>{f'Chapter {page.number}: ' if page.number else ''}{escape(page.title)}</h2>"
        )
        for solution in found:
            exercise = solution.find_previous("div", class_="exercise")
            where = f'<p class="to-solution">{reference(solution["id"], "Solution")}</p>'
            exercise.append(BeautifulSoup(where, "html.parser"))
            title = solution.select_one(".admonition-title")
            words = title.decode_contents()
            title.clear()
            back = f'<a href="#{exercise["id"]}">{words}</a>'
            title.append(BeautifulSoup(back, "html.parser"))
            parts.append(str(solution.extract()))
    return f'<section id="solutions"><h1>Solutions</h1>{"".join(parts)}</section>' if parts else ""


def reference(target: str, words: str) -> str:
    """A link with the page that it leads to, which scripts/pdf.py fills in."""
    return (
        f'<a href="#{target}"><span class="words">{words}</span>'
        f'<span class="on-page" data-target="{target}"></span></a>'
    )


def contents(pages: list[Page], answers: str) -> str:
    """The table of contents: chapters with their sections, then the rest."""
    lines = []
    for page in pages:
        lead = f'<span class="number">{page.number}</span>' if page.number else ""
        lines.append(f'<li class="chapter">{reference(page.name, lead + escape(page.title))}</li>')
        for heading in page.body.select("section > section > h2") if page.number else []:
            words = heading.decode_contents()
            if words in IN_EVERY_CHAPTER:
                continue
            lines.append(
                f'<li class="part">{reference(heading.find_parent("section")["id"], words)}</li>'
            )
    if answers:
        lines.append(f'<li class="chapter">{reference("solutions", "Solutions")}</li>')
    return f'<nav id="contents"><h1>Contents</h1><ol>{"".join(lines)}</ol></nav>'

"""Put the translated pages into a site, and links between the languages of a page.

A page's other languages are named at its top, each in its own words, and in its head for search
engines, with whole addresses where the site's is known.
"""

import posixpath
import re
import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path

from babel import Locale

ENGLISH = "en"
ARTICLE = re.compile(r"<article\b[^>]*>")


def own_name(language: str) -> str:
    """A language's name in that language.

    >>> own_name("de"), own_name("zh")
    ('Deutsch', '中文')
    """
    name = Locale.parse(language, sep="-").get_display_name() or language
    return name[0].upper() + name[1:]


def wanted(catalogues: Path, given: str) -> list[str]:
    """The languages named in `given`, each with its catalogues; none if nothing is named."""
    there = sorted(path.name for path in catalogues.glob("*") if path.is_dir())
    for language in given.split():
        if language not in there:
            raise SystemExit(
                f"LANGUAGES names languages with a folder under book/locale, which are "
                f"{', '.join(there)}; got {language!r}"
            )
    return given.split()


def alternates(page: str, versions: dict[str, str], address: str = "") -> str:
    """The tags of a page's head that name its versions, all by their paths in the site."""
    here = posixpath.dirname(page) or "."
    links = {**versions, "x-default": versions[ENGLISH]}
    return "".join(
        f'<link rel="alternate" hreflang="{language}" '
        f'href="{escape(f"{address}/{path}" if address else posixpath.relpath(path, here))}">\n'
        for language, path in links.items()
    )


def choice(page: str, versions: dict[str, str]) -> str:
    """The links at the top of a page to its other languages."""
    here = posixpath.dirname(page) or "."
    links = [
        f'<a lang="{language}" hreflang="{language}" rel="alternate" '
        f'href="{escape(posixpath.relpath(path, here))}">{own_name(language)}</a>'
        for language, path in versions.items()
        if path != page
    ]
    names = ", ".join(own_name(language) for language in versions)
    return f'<nav class="languages" aria-label="{names}">{" · ".join(links)}</nav>'


def place(built: Path, site: Path, languages: Sequence[str], address: str = "") -> None:
    """Copy the pages of these languages from `built` into the site, and link all versions."""
    versions: dict[str, dict[str, str]] = {}
    for language in languages:
        shutil.copytree(built / language, site / language)
        for path in sorted((site / language).rglob("*.html")):
            name = path.relative_to(site / language).as_posix()
            versions.setdefault(name, {ENGLISH: name})[language] = f"{language}/{name}"
    for known in versions.values():
        for page in known.values():
            path = site / page
            text = path.read_text("utf-8")
            text = text.replace("</head>", f"{alternates(page, known, address)}</head>", 1)
            text = ARTICLE.sub(lambda m, p=page, k=known: m[0] + choice(p, k), text, count=1)
            path.write_text(text, "utf-8")

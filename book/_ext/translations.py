"""The book in other languages: its sentences as gettext templates, and pages made with catalogues.

Two builders over the doctrees of the English book, so that nothing is read or executed again.
`messages` writes a template (.pot) for each page, and one for the words of the explorers and of the
contents, and brings the catalogues under book/locale up to date. `translated` writes every page
that has a catalogue, as LANGUAGE/PAGE.html; links to other pages lead to the English ones.

What must be the same in every language stands in `fixed`; `wrong` names what is not.
"""

import json
import re
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from docutils import nodes
from sphinx import addnodes, locale
from sphinx.builders import Builder
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.errors import ExtensionError
from sphinx.transforms.i18n import Locale
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import sphinx_domains
from sphinx.util.nodes import extract_messages

from attention.widgets import _base

CATALOGUES = Path(__file__).parents[1] / "locale"  # LANGUAGE/PAGE.po, and LANGUAGE/words.po
WORDS = "words"
THEME = {"theme_search_bar_text": "Search the book"}  # what _config.yml says to the theme
FIXED = re.compile(
    r"\$\$?[^$]+\$\$?"  # a formula
    r"|(?<!`)\{[\w:]+\}`[^`]*`"  # a role: a reference, a citation, a number from a cell
    r"|`[^`]+`"  # code
    r"|\]\([^)]*\)|https?://[^\s)>]+"  # a link
    r"|\[\^[^\]]+\]"  # a footnote
    r"|\$\{[^}]*\}|\{\d+\}"  # a place in an explorer's sentence
    r"|(?<![\w.])[-−]?\d[\d.,]*\d|(?<![\w.])\d(?![\w])"  # a number
)


def fixed(text: str) -> Counter[str]:
    """Code, formulas, references, links and numbers of a sentence, each with its count.

    >>> sorted(fixed("See {ref}`chapter 1 <ch-one>`: $x_i$ is 0.5 in `f(x)`."))
    ['$x_i$', '0.5', '`f(x)`', 'ref ch-one']
    """
    found = Counter()
    for match in FIXED.findall(text):
        if role := re.fullmatch(r"\{([\w:]+)\}`(?:[^`<]*<)?([^`>]*)>?`", match):
            match = f"{role[1]} {role[2]}"  # the words of a reference are translated
        found[match.rstrip(".,")] += 1
    return found


def wrong(text: str, translated: str) -> str:
    """What a translation has lost or added of what is the same in every language; "" if nothing."""
    before, after = fixed(text), fixed(translated)
    lost, added = before - after, after - before
    said = [f"lacks {', '.join(sorted(lost))}"] * bool(lost)
    said += [f"adds {', '.join(sorted(added))}"] * bool(added)
    return "; ".join(said)


def catalogues(folder: Path = CATALOGUES) -> dict[str, dict[str, Path]]:
    """The catalogues that are there: by language, then by page."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.rglob("*.po")):
        language, *page = path.relative_to(folder).with_suffix("").parts
        found.setdefault(language, {})["/".join(page)] = path
    return found


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file)


def sentences(path: Path) -> dict[str, str]:
    """The sentences of a catalogue that are translated."""
    return {str(m.id): str(m.string) for m in read(path) if m.id and m.string and not m.fuzzy}


def explorer_words() -> dict[str, str]:
    """The sentences that explorers send through `tr`, each with the file that it stands in."""
    found = {}
    for path in sorted(Path(_base.__file__).parent.rglob("*.js")):
        if path.stem.endswith("_weights"):
            continue
        for text in re.findall(r"\btr`((?:[^`\\]|\\.)*)`", path.read_text("utf-8")):
            found[numbered(text)] = path.name
    return found


def captions(env: Any) -> list[str]:
    """The headings of the contents."""
    trees = env.get_doctree(env.config.root_doc).findall(addnodes.toctree)
    return [tree["caption"] for tree in trees if tree.get("caption")]


def numbered(template: str) -> str:
    """A JavaScript template with its places numbered, as `tr` looks it up.

    >>> numbered("${percent(p[0])} for “${word}”")
    '{0} for “{1}”'
    """
    count = iter(range(99))
    return re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", lambda _: f"{{{next(count)}}}", template)


# the templates


class MessagesBuilder(Builder):
    name = "messages"
    format = "gettext"
    epilog = "The templates are in %(outdir)s; the catalogues under book/locale are up to date."
    allow_parallel = False

    def get_outdated_docs(self) -> list[str]:
        return sorted(self.env.found_docs)

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        return docname

    def prepare_writing(self, docnames: set[str]) -> None:
        pass

    def write(self, build_docnames: Any, updated_docnames: Any, method: str = "update") -> None:
        templates = {name: self.page(name) for name in self.get_outdated_docs()}
        templates[WORDS] = self.words()
        for name, template in templates.items():
            path = Path(self.outdir, f"{name}.pot")
            path.parent.mkdir(parents=True, exist_ok=True)
            save(path, template)
        for pages in catalogues(Path(self.config.attention_catalogues)).values():
            for name, path in pages.items():
                if name not in templates:
                    raise ExtensionError(f"{path} translates {name}, which is no page of the book")
                catalog = read(path)
                catalog.update(templates[name], no_fuzzy_matching=True)
                save(path, catalog)

    def catalog(self) -> Catalog:
        return Catalog(project=self.config.project, charset="utf-8", header_comment="")

    def page(self, docname: str) -> Catalog:
        made = self.catalog()
        for node, text in extract_messages(self.env.get_doctree(docname)):
            bare = re.fullmatch(r"\$[^$]*\$|`[^`]*`|[\W\d_]*", text)  # the same everywhere
            if not isinstance(node, nodes.math_block) and not bare:
                made.add(text, locations=[(f"{docname}.md", node.line or 0)])
        return made

    def words(self) -> Catalog:
        made = self.catalog()
        for title in self.env.titles.values():
            made.add(title.astext(), auto_comments=["a page's title"])
        for text in [*captions(self.env), *THEME.values()]:
            made.add(text, auto_comments=["around the page"])
        for text, file in explorer_words().items():
            made.add(text, locations=[(file, 0)])
        return made

    def finish(self) -> None:
        pass


def save(path: Path, catalog: Catalog) -> None:
    with path.open("wb") as file:
        write_po(file, catalog, width=0, omit_header=False, include_lineno=False)


# the pages


class Translate(SphinxPostTransform):
    """Put the catalogue's sentences into a page, as Sphinx does while it reads one."""

    default_priority = 1  # before references are resolved
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        if isinstance(self.app.builder, TranslatedBuilder):
            with sphinx_domains(self.env):  # for the roles in a translation
                Locale(self.document, startnode=None).apply()


class TranslatedBuilder(StandaloneHTMLBuilder):
    name = "translated"
    epilog = "The translated pages are in %(outdir)s."
    allow_parallel = False
    search = False

    def get_outdated_docs(self) -> list[str]:
        return sorted(self.env.found_docs)

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        plain = super().get_target_uri(docname, typ)
        return f"{self.config.language}/{plain}" if docname in self.pages else plain

    def get_outfilename(self, pagename: str) -> str:
        return str(Path(self.outdir, self.get_target_uri(pagename)))

    pages: set[str] = set()
    words: dict[str, str] = {}

    def write(self, build_docnames: Any, updated_docnames: Any, method: str = "update") -> None:
        self.name = "html"  # what the pages' extensions look for
        self.contents = [
            (page, text.parent, text.parent.index(text), str(text))
            for trees in (self.env.titles, self.env.tocs)
            for page, tree in trees.items()
            for text in tree.findall(nodes.Text)
        ]
        self.labels = dict(self.env.domaindata["std"]["labels"])
        for language, pages in catalogues(Path(self.config.attention_catalogues)).items():
            self.speak(language, pages)
            self.prepare_writing(self.pages)
            self._write_serial(sorted(self.pages))

    def speak(self, language: str, pages: dict[str, Path]) -> None:
        """Compile the catalogues of a language, and let Sphinx, theme and contents speak it."""
        folder = Path(self.outdir, "catalogues")
        for name, path in pages.items():
            compiled = folder / language / "LC_MESSAGES" / f"{name}.mo"
            compiled.parent.mkdir(parents=True, exist_ok=True)
            with compiled.open("wb") as file:
                write_mo(file, read(path))
        self.pages = {name for name in pages if name in self.env.found_docs}
        self.config.language = language
        self.config.locale_dirs, self.config.gettext_compact = [str(folder)], False
        self.words = sentences(pages[WORDS]) if WORDS in pages else {}
        said = {page: self.words | sentences(path) for page, path in pages.items()}
        for page, parent, place, english in self.contents:
            known = said.get(page, self.words)
            plain = english.replace("’", "'")  # as it stands in the source
            parent[place] = nodes.Text(known.get(english) or known.get(plain, english))
        self.env.domaindata["std"]["labels"] = {
            label: (page, at, self.words.get(english, english))
            for label, (page, at, english) in self.labels.items()
        }
        locale.translators.clear()
        for catalog, dirs in around().items():
            locale.init(dirs, language.replace("-", "_"), catalog)
        self.templates.environment.install_gettext_translations(  # type: ignore[attr-defined]
            locale.translators["general", "sphinx"]
        )

    def handle_page(self, pagename: str, *args: Any, **kwargs: Any) -> None:
        super().handle_page(pagename, *args, **kwargs)
        path = Path(self.get_outfilename(pagename))
        text = path.read_text("utf-8")
        for english in captions(self.env):  # the theme takes them from the English start page
            said = escape(self.words.get(english, english))
            text = text.replace(f">{escape(english)}</span>", f">{said}</span>")
        path.write_text(text, "utf-8")

    def finish(self) -> None:
        self.name = self.format = "translated"  # scripts and styles are those of the English pages
        Path(self.outdir, "_static").mkdir(exist_ok=True)  # the theme writes one all the same


def around() -> dict[str, list[str]]:
    """Where Sphinx and the themes keep their own words."""
    import pydata_sphinx_theme
    import sphinx
    import sphinx_book_theme

    homes = [Path(str(module.__file__)).parent for module in (sphinx, pydata_sphinx_theme)]
    book = Path(str(sphinx_book_theme.__file__)).parent / "theme" / "sphinx_book_theme" / "static"
    dirs = [str(home / "locale") for home in homes]
    return {"sphinx": dirs, "booktheme": [str(book / "locales")]}


def _context(app, pagename, templatename, context, doctree):
    builder = app.builder
    if not isinstance(builder, TranslatedBuilder):
        return
    for key, text in THEME.items():
        context[key] = builder.words.get(text, text)
    if app.config.attention_site:
        context["pageurl"] = f"{app.config.attention_site}/{builder.get_target_uri(pagename)}"
    context["docstitle"] = builder.words.get(context["docstitle"], context["docstitle"])
    said = {text: builder.words[text] for text in explorer_words() if text in builder.words}
    text = json.dumps(said, ensure_ascii=False).replace("<", "\\u003c")
    context["metatags"] = context["metatags"].replace(' translated="True"', "")  # Sphinx's own mark
    context["metatags"] += f"<script>window.attentionWords = {text};</script>\n"


def setup(app):
    app.add_builder(MessagesBuilder)
    app.add_builder(TranslatedBuilder)
    app.add_config_value("attention_catalogues", str(CATALOGUES), "")
    app.add_post_transform(Translate)
    app.connect("html-page-context", _context, priority=399)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The directive {api}: a module's public names, from their docstrings, and where each is first met.

    ```{api} attention.masks
    ```

A docstring is plain text with ``code``, `names` and examples after >>>. Names that are public
become links. After the chapters are read, each name tells the section of the book whose code uses
it first, or else names it first.
"""

import inspect
import re
from importlib import import_module

from docutils import nodes
from sections import pages, place, sections
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

import attention
from attention import widgets

HOME = "book/api"
PUBLIC = {name: getattr(attention, name) for name in attention.__all__}
EXPLORERS = {n: getattr(widgets, n) for n in widgets.__all__ if n[0].isupper() and n != "Explorer"}
CONSTANTS = {"FEATURES": "attention.example", "POSITIONS": "attention.embedding"}
CODE = re.compile(r"``(.+?)``|`(.+?)`|\*(\w[^*]*)\*")


class first_met(nodes.General, nodes.Element):  # noqa: N801
    """Where a section of the book is named, once all are read; holds `name`."""


def module_of(name: str) -> str:
    return CONSTANTS.get(name) or PUBLIC.get(name, EXPLORERS.get(name)).__module__


def signature(value: object) -> str:
    """What goes into the parentheses, types without their modules; "" for a constant."""
    if not callable(value):
        return ""
    try:
        text = str(inspect.signature(value).replace(return_annotation=inspect.Signature.empty))
    except ValueError:
        return "()"
    text = re.sub(
        r"\b(?:collections\.abc|typing|torch|nn|attention)\.(?:\w+\.)*(?=[A-Z])", "", text
    )
    text = re.sub(r"(?<=: )'([^']+)'", r"\1", text)  # annotations kept as text
    return re.sub(r"\((self|cls)(, )?", "(", text)


def inline(text: str) -> list[nodes.Node]:
    """A paragraph of a docstring: ``code``, *titles* and `names`, which lead to their entries."""
    made, end = [], 0
    for match in CODE.finditer(text):
        made.append(nodes.Text(text[end : match.start()]))
        code = nodes.emphasis("", match[3]) if match[3] else nodes.literal("", match[1] or match[2])
        if match[2] in PUBLIC | EXPLORERS:
            code = nodes.reference("", "", code, internal=True, refid=f"api-{match[2]}")
        made.append(code)
        end = match.end()
    return [*made, nodes.Text(text[end:])]


def told(docstring: str) -> list[nodes.Node]:
    """A docstring as paragraphs, and its examples as code."""
    made = []
    for part in re.split(r"\n\s*\n", docstring.strip()):
        if part.lstrip().startswith(">>>"):
            text = part.replace("<BLANKLINE>", "")
            if made and isinstance(made[-1], nodes.literal_block):
                made[-1] = code_block(made[-1].rawsource + "\n" + text)
            else:
                made.append(code_block(text))
        else:
            made.append(nodes.paragraph("", "", *inline(re.sub(r"\s+", " ", part))))
    return made


def code_block(text: str) -> nodes.literal_block:
    text = inspect.cleandoc(text)
    return nodes.literal_block(text, text, language="pycon")


def entry(name: str, value: object, of: str = "") -> addnodes.desc:
    """One name: its signature, what its docstring tells, and its methods."""
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    made = addnodes.desc(domain="py", objtype="method" if of else kind, classes=["api"])
    head = addnodes.desc_signature(ids=[f"api-{of}.{name}" if of else f"api-{name}"])
    head += addnodes.desc_name("", name)
    head += nodes.inline("", signature(value), classes=["api-arguments"])
    made += [head, body := addnodes.desc_content()]
    if kind == "data":
        body += nodes.paragraph("", "", nodes.literal("", repr(value)))
    else:
        body += told(inspect.getdoc(value) or "")
    if not of:
        body += first_met(name=name)
    if kind == "class":
        for method, function in vars(value).items():
            if method[0] != "_" and callable(plain := getattr(function, "__func__", function)):
                if inspect.getdoc(plain) and (name not in EXPLORERS):
                    body += entry(method, getattr(value, method), of=name)
    return made


class Api(SphinxDirective):
    """All public names of the modules in the argument."""

    required_arguments, final_argument_whitespace = 1, True

    def run(self):
        made = []
        for module in self.arguments[0].split():
            here = EXPLORERS if module == "attention.widgets" else PUBLIC
            names = [n for n in here if module_of(n) == module or here is EXPLORERS]
            if not names:
                raise ExtensionError(f"{{api}} found no public name in {module}")
            summary = inspect.getdoc(import_module(module)).split("\n\n")[0]
            made.append(nodes.paragraph("", "", nodes.literal("", module), nodes.Text(": "),
                                        *inline(re.sub(r"\s+", " ", summary))))  # fmt: skip
            made += [entry(name, here[name]) for name in sorted(names, key=str.lower)]
        return made


def uses(text: str) -> set[str]:
    """The public names that a piece of code uses: calls of functions, mentions of the others."""
    text = re.sub(r"^(from|import) .*?(\(.*?\)|$)", "", text, flags=re.S | re.M)
    calls = set(re.findall(r"(?<![.\w])([A-Za-z_]\w*)\(", text))
    words = set(re.findall(r"(?<![.\w])[A-Z]\w*", text))
    return {n for n in PUBLIC | EXPLORERS if n in calls or (n in words and not n.islower())}


class Fill(SphinxPostTransform):
    default_priority = 200

    def run(self, **kwargs):
        spots = list(self.document.findall(first_met))
        if not spots:
            return
        first, named = {}, {}
        for docname, section, own in sections(self.env, pages(self.env, numbered=True)):
            for node in own:
                for block in node.findall(nodes.literal_block):
                    for name in uses(block.astext()):
                        first.setdefault(name, (docname, section))
                for code in node.findall(nodes.literal):
                    named.setdefault(code.astext().partition("(")[0], (docname, section))
        first = named | first
        for spot in spots:
            said = nodes.paragraph("", "First met in ", classes=["first-met"])
            if spot["name"] in first:
                said += [*place(self.app, *first[spot["name"]], HOME), nodes.Text(".")]
            spot.replace_self(said if len(said) > 1 else [])


def _outdated(app, env, added, changed, removed):
    """The page tells of all chapters."""
    return [HOME] if (added | changed | removed) and HOME in env.found_docs else []


def setup(app):
    app.add_node(first_met)
    app.add_directive("api", Api)
    app.add_post_transform(Fill)
    app.connect("env-get-outdated", _outdated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

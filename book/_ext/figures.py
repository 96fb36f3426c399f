"""Put the chapters' SVG figures into the page itself, so that they follow its theme and font.

matplotlib draws black; in the page black becomes `currentColor`, the colour of the text in light,
dark and print, and the colours of heatmaps become those that book.css names. The alternative text
of the cell becomes the figure's accessible name.
"""

import html
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from attention import plots

NAMED = {
    plots.ABOVE: "var(--above)",
    plots.BELOW: "var(--below)",
    plots.INK: "var(--ink)",
    plots.INK_BETWEEN: "#000",
    plots.INK_DEEP: "var(--ink-deep)",
}


def page_tag(tag: str, used: set[str]) -> str:
    """A tag of a matplotlib SVG with the page's colour and font, and an id only if it is used."""
    tag = re.sub(r"\b(fill|stroke|color)(=\"|: ?)(#000000|black)\b", r"\1\2currentColor", tag)
    tag = re.sub("|".join(NAMED), lambda m: NAMED[m[0]], tag)
    tag = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--figure-font)", tag)
    return re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", tag)


def page_svg(svg: str, alt: str) -> str:
    """A matplotlib SVG document as an element for an HTML page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    head, body = re.match(r"(<svg[^>]*>)(.*)", svg, flags=re.S).groups()
    view_box = re.search(r'viewBox="([^"]*)"', head)[1]
    width, height = (float(n) for n in view_box.split()[2:])
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', body))
    body = re.sub(r"<[^>]*>", lambda m: page_tag(m[0], used), body)  # words stay as they are
    body = re.sub(r">\s+<", "><", body.replace("<!--", "\0").replace("-->", "\1"))
    body = re.sub("\0.*?\1", "", body, flags=re.S)
    return (
        f'<svg class="figure-svg" role="img" aria-label="{html.escape(alt, quote=True)}" '
        f'viewBox="{view_box}" width="{width:.0f}" height="{height:.0f}" fill="currentColor" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink">{body}'
    )


class InlineFigures(SphinxPostTransform):
    default_priority = 8  # after MyST-NB has chosen an output's format (4)
    formats = ("html",)

    def run(self, **kwargs):
        for image in list(self.document.findall(nodes.image)):
            path = Path(self.env.srcdir) / image["uri"].lstrip("/")
            if path.suffix != ".svg" or "jupyter_execute" not in path.parts or not path.exists():
                continue
            drawn = page_svg(path.read_text("utf-8"), image.get("alt", ""))
            image.replace_self(nodes.raw("", drawn, format="html"))


def setup(app):
    app.add_post_transform(InlineFigures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

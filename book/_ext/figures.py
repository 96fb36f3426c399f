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


# What matplotlib sets words and formulas in, and what the page does.
FONTS = {"'DejaVu Sans'": "var(--figure-font)", "'STIXGeneral'": "var(--serif)"}
SPAN = re.compile(r'<tspan x="([^"]*)" y="([^"]*)" style="([^"]*)">([^<]*)</tspan>')
# matplotlib says both of every element, by a rule that would hold for the whole page
ROOT = 'style="font-family: var(--figure-font); stroke-linejoin: round; stroke-linecap: butt"'


def page_tag(tag: str, used: set[str]) -> str:
    """A tag of a matplotlib SVG with the page's colour and font, and an id only if it is used."""
    tag = re.sub(r"\b(fill|stroke|color)(=\"|: ?)(#000000|black)\b", r"\1\2currentColor", tag)
    tag = re.sub("|".join(NAMED), lambda m: NAMED[m[0]], tag)
    tag = re.sub(f'({"|".join(FONTS)})[^;"]*', lambda m: FONTS[m[1]], tag)
    tag = re.sub(r"; (font-family: var\(--figure-font\)|text-anchor: start)(?=[;\"])", "", tag)
    tag = re.sub(r' transform="rotate\(-?0 [^"]*"', "", tag)
    tag = re.sub(r' (d|x|y|transform)="(?!scale|matrix)[^"]*', lambda m: shorter(m[0]), tag)
    return re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", tag)


def shorter(numbers: str) -> str:
    """Coordinates to a hundredth of a point, with no space that they do not need.

    >>> shorter('d="M 1.5 2.123456 \\nL 3.0 4.999999 \\nz')
    'd="M1.5 2.12L3 5z'
    """
    numbers = re.sub(r"\d+\.\d+", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), numbers)
    return re.sub(r"\s*\b([A-Zz])\s*", r"\1", numbers) if "d=" in numbers else numbers


def joined(text: re.Match) -> str:
    """A formula's letters, each of which matplotlib places, as runs of one line and kind.

    >>> line = '<tspan x="{}" y="0" style="font-size: 9px">{}</tspan>'
    >>> letters = [(7, "o"), (0, "l"), (14, " "), (18, " "), (22, "g")]
    >>> made = joined(re.match(".*", "".join(line.format(*letter) for letter in letters)))
    >>> made.replace(line.format(22, "g"), "")
    '<tspan x="19.30" y="0" style="font-size: 9px; text-anchor: end">lo</tspan>'
    """
    runs: list[list[str]] = []
    end: float | None = None  # of a run: where its last letter begins
    beyond = ""  # where the second run begins, if the first is of words and goes up to it
    for x, y, style, letter in sorted(SPAN.findall(text[0]), key=lambda span: float(span[0])):
        size = float(re.search(r"font-size: ([\d.]+)px", style)[1])
        letter = letter.replace("\xa0", " ")  # so matplotlib writes a space
        goes_on = end is not None and runs[-1][1:3] == [y, style] and float(x) - end < 1.1 * size
        if letter == " " and (not goes_on or runs[-1][3].endswith(" ")):
            end = None  # a page shows one space of several
            continue
        end = None if letter in "=+−×·<>≤≥" else float(x)  # which a formula sets apart
        if goes_on and end:
            runs[-1][3] += letter
        else:
            if len(runs) == 1 and "font-family" not in runs[0][2]:
                space = 0.3 * size if runs[0][3].endswith(" ") else 0
                beyond = f"{float(x) - space:.2f}"
            runs.append([x, y, style, letter])
    if beyond:  # the page's letters are not as wide as those that matplotlib measured
        runs[0] = [beyond, runs[0][1], f"{runs[0][2]}; text-anchor: end", runs[0][3].strip()]
    return "".join(f'<tspan x="{x}" y="{y}" style="{s}">{words}</tspan>' for x, y, s, words in runs)


def without_groups(body: str) -> str:
    """The drawing without groups that say nothing, and without the ground that nobody sees.

    >>> without_groups('<g><g fill="red"><path d="M0 0"/></g></g><g/>')
    '<g fill="red"><path d="M0 0"/></g>'
    """
    body = re.sub(r'<path d="[^"]*" style="fill: none"/>', "", body)
    kept, said = [], []
    for part in re.findall(r"<[^>]*>|[^<]+", body):
        if part == "<g>":
            said.append(False)
        elif part == "</g>":
            if said.pop():
                kept.append(part)
        elif part != "<g/>":
            if re.match(r"<g\b[^>]*[^/]>", part):
                said.append(True)
            kept.append(part)
    return "".join(kept)


def page_svg(svg: str, alt: str) -> str:
    """A matplotlib SVG document as an element for an HTML page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", svg, flags=re.S)
    head, body = re.match(r"(<svg[^>]*>)(.*)", svg, flags=re.S).groups()
    view_box = re.search(r'viewBox="([^"]*)"', head)[1]
    width, height = (float(n) for n in view_box.split()[2:])
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', body))
    body = re.sub(r"<[^>]*>", lambda m: page_tag(m[0], used), body)  # words stay as they are
    body = re.sub(rf"({SPAN.pattern}\s*)+", joined, body)
    body = re.sub(r">\s+<", "><", body.replace("<!--", "\0").replace("-->", "\1"))
    body = re.sub("\0.*?\1", "", body, flags=re.S)
    body = without_groups(body).replace("<defs></defs>", "")
    return (
        f'<svg class="figure-svg" role="img" aria-label="{html.escape(alt, quote=True)}" '
        f'viewBox="{view_box}" width="{width:.0f}" height="{height:.0f}" fill="currentColor" '
        f'{ROOT} xmlns:xlink="http://www.w3.org/1999/xlink">{body.lstrip()}'
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

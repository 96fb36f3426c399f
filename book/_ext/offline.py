"""Keep the built site whole by itself: no other address, no weight that no page needs.

Font Awesome's script and fonts weigh 840 KB gzipped for some fifteen icons. The theme's markup
names them by class; this writes icons.css with the drawings of just those, taken from the copy of
Font Awesome Free that the theme carries (icons CC BY 4.0, fontawesome.com/license/free).
"""

import re
import shutil
from pathlib import Path
from urllib.parse import quote

import pydata_sphinx_theme

VENDOR = Path(pydata_sphinx_theme.__file__).parent.joinpath(
    "theme", "pydata_sphinx_theme", "static", "vendor", "fontawesome"
)
BASE = """.fa-solid,.fas,.fa-regular,.far,.fa-brands,.fab{display:inline-block;width:1em;height:1em;
vertical-align:-.125em;background:currentColor;-webkit-mask:var(--icon) center/contain no-repeat;
mask:var(--icon) center/contain no-repeat}.fa-lg{font-size:1.25em}
@media(forced-colors:active){.fa-solid,.fas,.fa-regular,.far,.fa-brands,.fab{background:ButtonText}}
"""


def icon_css(names: set[str], script: str) -> str:
    """A style sheet that draws the named icons with the outlines in Font Awesome's script."""
    rules = [BASE]
    for name in sorted(names):
        found = re.search(
            rf'(?:[{{,]"?){re.escape(name)}"?:\[(\d+),(\d+),\[[^\]]*\],"\w+","([^"]+)"\]', script
        )
        if found:
            width, height, outline = found.groups()
            svg = (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
                f'<path d="{outline}"/></svg>'
            )
            rules.append(f'.fa-{name}{{--icon:url("data:image/svg+xml,{quote(svg)}")}}\n')
    return "".join(rules)


def _finish(app, exception):
    if exception or app.builder.name != "html":
        return
    out = Path(app.outdir)
    names = set()
    for page in out.rglob("*.html"):
        for classes in re.findall(r'class="([^"]*\bfa-[^"]*)"', page.read_text("utf-8")):
            names.update(c[3:] for c in classes.split() if c.startswith("fa-"))
    # pydata-sphinx-theme.js adds these when it runs
    names |= {"circle-half-stroke", "sun", "moon", "magnifying-glass", "chevron-down", "xmark"}
    script = next(VENDOR.glob("*/js/all.min.js")).read_text("utf-8")
    (out / "_static" / "icons.css").write_text(icon_css(names, script), encoding="utf-8")
    shutil.rmtree(out / "_static" / "vendor", ignore_errors=True)


def setup(app):
    # Jupyter Book sets this for sphinx-comments, which is not loaded: it would ask other hosts
    app.add_config_value("comments_config", {}, "html")
    app.connect("build-finished", _finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

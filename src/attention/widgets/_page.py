"""An explorer as one file that opens in a browser and asks for nothing else."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from ._base import Explorer, _read, module_text

# The policy forbids what its author might have overlooked: no address but the file's own.
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
  script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{TITLE}</title>
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 1rem auto; padding: 0 8px; }
{STYLE}</style>
<main><h1>{TITLE}</h1><noscript>{CAPTION}</noscript><div id="view"></div></main>
<script type="module">
{MODULE}
const values = {STATE};
const listeners = {};
const model = {
  get: (key) => values[key],
  set(key, value) {
    if (values[key] === value) return;
    values[key] = value;
    for (const f of listeners[`change:${key}`] ?? []) f();
  },
  save_changes() {},
  on(event, f) { (listeners[event] ??= new Set()).add(f); },
  off(event, f) { listeners[event].delete(f); },
};
render({ model, el: document.getElementById("view") });
</script>
</html>
"""


def page(explorer: Explorer, state: dict[str, Any]) -> str:
    """The explorer in this state as the text of one HTML file."""
    parts = {
        "{TITLE}": html.escape(explorer.title),
        "{STYLE}": _read("explorer.css"),
        "{CAPTION}": html.escape(explorer.caption),
        "{MODULE}": module_text(explorer.name).replace("export default { render };", ""),
        "{STATE}": json.dumps(state).replace("<", "\\u003c"),
    }
    return re.sub(r"\{[A-Z]+\}", lambda found: parts[found[0]], PAGE)

"""Show the explorers in the static page, with no kernel, no server and no third-party address.

An explorer is an anywidget: MyST-NB stores the state of each one with its page. Here every widget
output becomes an element with that state and, for readers without scripts, the still picture that
the widget draws of itself; host.js brings it to life with the same module that a notebook runs.
"""

import hashlib
import html
import importlib
import json
from pathlib import Path

from docutils import nodes
from myst_nb.core.render import WIDGET_STATE_MIMETYPE, WIDGET_VIEW_MIMETYPE
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform

from attention.widgets import _base
from attention.widgets._base import weights_of

HOST = Path(__file__).with_name("host.js")
# Behind the first explorer of a page: where scripts/pack.py puts the script of all of them.
START = "<!-- the explorers start here -->"
# Before the page is laid out: opened at its top, it may leave out what is out of sight (host.js).
# A jump, a reload or a way back needs every height; so does a browser that cannot hold its place.
ARRIVE = """if (!location.hash && CSS.supports("overflow-anchor", "auto")
    && performance.getEntriesByType("navigation")[0]?.type === "navigate") {
  document.documentElement.classList.add("arriving");
}"""


def _weights_file(stem: str) -> str:
    """A file of trained weights, with a mark that changes with its contents."""
    text = _base.static_module(stem)
    return f"{stem}.js?v={hashlib.sha256(text.encode()).hexdigest()[:8]}"


def in_script(state: dict) -> str:
    """The state as JSON that ends no script and opens none: `<!--<script>` would hide its end."""
    return json.dumps(state).replace("<", "\\u003c")


def _models(env, docname: str) -> dict:
    """The page's widget models by id: explorer's name and its public state."""
    files = NbMetadataCollector.get_js_files(env, docname)
    if "ipywidgets_state" not in files:
        return {}
    models = {}
    for model_id, model in json.loads(files["ipywidgets_state"][1]["body"])["state"].items():
        kind = model["state"].get("_anywidget_id")
        if kind:
            module, _, cls = kind.rpartition(".")
            name = getattr(importlib.import_module(module), cls).name
            public = {k: v for k, v in model["state"].items() if k[0] != "_" and k != "layout"}
            models[model_id] = {"name": name, "state": public}
    return models


class StaticExplorers(SphinxPostTransform):
    default_priority = 3  # before MyST-NB chooses one format of each output (4)
    formats = ("html",)

    def run(self, **kwargs):
        models = _models(self.env, self.env.docname)
        shown = []
        for bundle in list(self.document.findall(nodes.container)):
            if bundle.get("nb_element") != "mime_bundle":
                continue
            by_type = {child.get("mime_type"): child for child in bundle.children}
            view = by_type.get(WIDGET_VIEW_MIMETYPE)
            if view is None:
                continue
            raw = view.astext()
            model_id = json.loads(raw[raw.index(">") + 1 : raw.rindex("<")])["model_id"]
            if model_id not in models:
                raise ExtensionError(f"{self.env.docname}: a widget without state; is it closed?")
            still = by_type.get("image/png")
            images = list(still.findall(nodes.image)) if still else []
            if not images:
                raise ExtensionError(
                    f"{self.env.docname}: {models[model_id]['name']} has no still picture"
                )
            model = models[model_id]
            shown.append(model["name"])
            state = in_script(model["state"])
            figure = nodes.container(classes=["explorer-place"])
            attributes = (
                f'class="explorer-live" data-explorer="{html.escape(model["name"])}" '
                f'data-model="{model_id}"'
            )
            script = f'<script type="application/json">{state}</script>'
            picture = images[0].deepcopy()
            picture["alt"] = by_type["text/plain"].astext().strip()  # the state, in words
            if stems := weights_of(
                model["name"]
            ):  # fetched when it comes near: till then, the picture
                files = " ".join(_weights_file(stem) for stem in stems)
                before = (
                    f'<div {attributes} data-weights="{files}">{script}<div class="explorer-still">'
                )
                after = "</div></div>"
                picture["loading"] = "lazy"
            else:
                before, after = f"<div {attributes}>{script}</div><noscript>", "</noscript>"
            figure += nodes.raw("", before, format="html")
            figure += picture
            figure += nodes.raw("", after, format="html")
            first = [nodes.raw("", START, format="html")] if len(shown) == 1 else []
            bundle.replace_self([figure, *first])
        if not hasattr(self.env, "explorers_shown"):
            self.env.explorers_shown = {}
        self.env.explorers_shown[self.env.docname] = list(dict.fromkeys(shown))


def _page_scripts(app, pagename, templatename, context, doctree):
    """Drop MyST-NB's copy of the widget state, add the modules that this page needs."""

    def is_state(script):
        return getattr(script, "attributes", {}).get("type") == WIDGET_STATE_MIMETYPE

    context["script_files"][:] = [s for s in context["script_files"] if not is_state(s)]
    names = getattr(app.env, "explorers_shown", {}).get(pagename, [])
    if names:
        for name in [*_base.shared_parts(names), *names, "host"]:
            app.add_js_file(f"explorers/{name}.js", loading_method="defer")
        app.add_js_file(None, body=ARRIVE)
        app.add_css_file("explorers/explorer.css")


def _write_modules(app, exception):
    if exception or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / "explorers"
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(_base.__file__).parent
    for name in [path.stem for path in source.glob("*.js") if path.stem != "shared"] + _base.SHARED:
        (folder / f"{name}.js").write_text(_base.static_module(name), encoding="utf-8")
    (folder / "explorer.css").write_text((source / "explorer.css").read_text("utf-8"), "utf-8")
    (folder / "host.js").write_text(HOST.read_text("utf-8"), encoding="utf-8")


def setup(app):
    app.add_post_transform(StaticExplorers)
    app.connect("html-page-context", _page_scripts, priority=900)
    app.connect("build-finished", _write_modules)
    return {"parallel_read_safe": True, "parallel_write_safe": False}

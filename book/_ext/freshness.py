"""Re-execute the chapters when the package or the pinned versions they run on change.

Jupyter Book's execution cache looks at a chapter's own cells only; after an edit under src/ it
would show yesterday's numbers. Here a digest of both is kept beside the cache: when it
differs, the cache is emptied and, being a configuration value, makes Sphinx read every page anew.
So does an edit of these extensions, which execute nothing. Chapters execute side by side. And a
page whose source is gone goes too, which Sphinx would leave where it is.
"""

import hashlib
import os
import shutil
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "attention"
GENERATED = {"404", "genindex", "index", "py-modindex", "search"}  # pages without a source
SILENT = {"sphinx_multitoc_numbering", "sphinx_jupyterbook_latex"}  # safe, and do not say so
KINDS = {".py", ".js", ".css", ".txt"}


def package_digest(root: Path = PACKAGE) -> str:
    """A digest of the names and contents of the package's files."""
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.suffix in KINDS):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def digest() -> str:
    """A digest of what the chapters run on: the package and the pins."""
    pins = (PACKAGE.parents[1] / "requirements.txt").read_bytes()
    return package_digest() + hashlib.sha256(pins).hexdigest()


def _set_digest(app, config):
    config.attention_digest = os.environ.get("ATTENTION_DIGEST") or digest()
    config.extensions_digest = package_digest(Path(__file__).parent)


def _drop_stale_cache(app):
    cache = Path(app.config.nb_execution_cache_path or Path(app.outdir).parent / ".jupyter_cache")
    mark = cache / "attention-digest"
    if cache.exists() and (not mark.exists() or mark.read_text() != app.config.attention_digest):
        shutil.rmtree(cache)
    cache.mkdir(parents=True, exist_ok=True)
    mark.write_text(app.config.attention_digest)


def _execute_side_by_side(app):
    """Read, and so execute, as many chapters at once as there are cores; each uses one thread."""
    app.parallel = max(app.parallel, os.cpu_count() or 1)
    for name in SILENT & app.extensions.keys():
        app.extensions[name].parallel_read_safe = True


def _write_one_by_one(app, env):
    app.parallel = 1  # pages are quick, and not all extensions can write them side by side


def drop_old_pages(out: Path, documents: set[str]) -> None:
    """Remove the pages under `out` that were made of documents that are no more."""
    for page in out.rglob("*.html"):
        name = page.relative_to(out).with_suffix("").as_posix()
        if name not in documents | GENERATED and not name.startswith("_"):
            page.unlink()


def _drop_old_pages(app, exception):
    if not exception and app.builder.name == "html":
        drop_old_pages(Path(app.outdir), app.env.found_docs)


def setup(app):
    app.add_config_value("attention_digest", "", "env")
    app.add_config_value("extensions_digest", "", "env")
    app.connect("config-inited", _set_digest)
    app.connect("builder-inited", _drop_stale_cache, priority=100)
    app.connect("builder-inited", _execute_side_by_side)
    app.connect("env-updated", _write_one_by_one)
    app.connect("build-finished", _drop_old_pages, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

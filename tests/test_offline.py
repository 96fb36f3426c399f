"""Over http a worker keeps what was read: it opens, and computes, when the server is gone."""

import functools
import http.server
import shutil
import sys
import threading

import pytest
from site_browser import SITE

sys.path.insert(0, str(SITE.parent / "scripts"))

import build  # noqa: E402

pytestmark = pytest.mark.browser
KEPT = """async () => (await Promise.all((await caches.keys()).map(async (name) =>
  (await (await caches.open(name)).keys()).map(({ url }) => `${name} ${url}`)))).flat()"""

PARTS = """() => [location.href.split(/[?#]/)[0], ...[...document.querySelectorAll(
  "script[src], link[rel=stylesheet]")].map((part) => part.src || part.href)]"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Served:
    """A folder on a port, until it is stopped."""

    def __init__(self, folder):
        handler = functools.partial(Quiet, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.at = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def reader(chrome):
    """A page in a browser that has read nothing yet."""
    context = chrome.new_context()
    yield context.new_page()
    context.close()


def kept(page, *wanted):
    """What is kept, as soon as all that is wanted is in it, and all that the page is made of."""
    wanted = [*wanted, *page.evaluate(PARTS)]
    for _ in range(600):
        found = page.evaluate(KEPT)
        if all(any(end in line for line in found) for end in wanted):
            return found
        page.wait_for_timeout(100)
    raise AssertionError(f"{wanted} were not kept, but {found}")


def test_what_was_read_opens_without_the_server(reader):
    site = Served(SITE)
    try:
        reader.goto(f"{site.at}/book/notation.html?from=a-link#top")
        kept(reader, ".woff2")
        reader.goto(f"{site.at}/book/scaling.html")
        found = kept(reader)
    finally:
        site.stop()
    assert not [line for line in found if "?from" in line or ".ipynb" in line]
    reader.goto(f"{site.at}/book/notation.html")
    assert reader.title().startswith("Notation")
    reader.goto(f"{site.at}/book/scaling.html")
    explorer = reader.locator("[data-explorer=temperature] .explorer")
    before = explorer.inner_text()
    explorer.locator("input[type=range]").first.press("End")
    assert explorer.inner_text() != before
    body = "getComputedStyle(document.querySelector('.bd-article')).fontFamily"
    assert "Book Text" in reader.evaluate(body)
    reader.goto(f"{site.at}/book/qkv.html")
    assert "You have not read this page before" in reader.inner_text("body")
    reader.get_by_role("link", name="Scaled dot-product").click()
    assert "Scaled dot-product" in reader.inner_text("h1")


def test_another_build_takes_the_place_of_what_was_kept(reader, tmp_path):
    """Its pages are fetched anew, also those that nobody has opened since."""
    folder = tmp_path / "site"
    shutil.copytree(SITE, folder, ignore=shutil.ignore_patterns("notebooks", "slides"))
    site = Served(folder)
    try:
        for name in ("notation", "bibliography"):
            reader.goto(f"{site.at}/book/{name}.html")
            before = kept(reader)
        page = folder / "book" / "notation.html"
        page.write_text(page.read_text("utf-8").replace("<h1>Notation", "<h1>Signs"), "utf-8")
        build.keep_reading(folder)
        reader.reload()
        version = before[0].split()[0]
        for _ in range(600):
            after = reader.evaluate(KEPT)
            if not any(line.startswith(version) for line in after):
                break
            reader.wait_for_timeout(100)
    finally:
        site.stop()
    assert {line.split()[0] for line in after}.isdisjoint({version})
    reader.goto(f"{site.at}/book/notation.html")
    assert reader.inner_text("h1").startswith("Signs")


def test_the_version_is_that_of_the_content(tmp_path):
    versions = []
    for text in ("one", "one", "two"):
        (tmp_path / "index.html").write_text(text)
        build.keep_reading(tmp_path)
        versions.append((tmp_path / "sw.js").read_text("utf-8").splitlines()[2])
    assert versions[0] == versions[1] != versions[2] and "{" not in versions[0]

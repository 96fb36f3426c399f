"""Weight and latency of the built pages, beside a stock Jupyter Book measured in the same run.

    python -m benchmarks.pages            # needs _site (make book) and Chromium or Chrome

Weights are the gzipped bytes that a page asks for before it is scrolled. The stock book's own
weight leaves out what it fetches from other hosts, which is named but not fetched.
"""

import functools
import gzip
import http.server
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_site"
sys.path.insert(0, str(ROOT / "scripts"))
import browser  # noqa: E402

SLOW_4G = {"offline": False, "latency": 150, "downloadThroughput": 200e3, "uploadThroughput": 94e3}
STOCK_PAGE = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# A slider

$$\\frac{QK^\\top}{\\sqrt{d_k}}$$

```{code-cell} python
from ipywidgets import FloatSlider

FloatSlider()
```
"""
# Milliseconds from the visit until the first explorer's control is there and the page has been
# drawn with it; the page says so itself, since a question from outside waits for its frames.
USABLE = """new MutationObserver((_, observer) => {
  if (!document.querySelector(".explorer input, .explorer button")) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.usable = performance.now(); }));
}).observe(document, { childList: true, subtree: true });"""
# Milliseconds from an event inside a frame until its answer is laid out, and until the frame is
# painted and handed to the compositor: the task queued meanwhile runs right after that.
MOVE = """async (node) => {
  const frame = () => new Promise(r => requestAnimationFrame(() => setTimeout(r, 20)));
  const has = (kind) => node.matches(kind);
  const act = (i) => {
    if (has("select")) node.selectedIndex = (node.selectedIndex + 1) % node.options.length;
    else if (has("input")) {
      const [low, high] = [Math.max(+node.min, -9), Math.min(+node.max, +node.min + 1e4)];
      node.value = low + (has("[type=range]") ? node.max - low : high - low) * ((i * 37) % 61) / 60;
    } else if (has(".handle")) {
      const key = ["ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"][Math.floor(i / 15)];
      return node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    } else return node.click();
    node.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const times = [];
  for (let i = 0; i < 60; i++) {
    await frame();
    times.push(await new Promise(done => requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      const start = performance.now();
      act(i);
      node.getBoundingClientRect();
      const laid = performance.now() - start;
      port1.onmessage = () => done([laid, performance.now() - start]);
      port2.postMessage(0);
    })));
  }
  if (has("[type=range]")) { node.value = node.max; node.dispatchEvent(new Event("input")); }
  return times;
}"""
# The yardstick: the browser's own slider and its number, on a page that holds nothing else.
BARE = """<!doctype html><input type="range" id="a"><output id="b"></output>
<script>a.oninput = () => { b.textContent = a.value; };</script>"""
# The same slider before the first explorer of a chapter: what the page itself costs a move.
BARE_HERE = """() => {
  const [box, bar, out] = ["p", "input", "output"].map(tag => document.createElement(tag));
  bar.type = "range";
  bar.oninput = () => { out.textContent = bar.value; };
  box.append(bar, out);
  document.querySelector("[data-explorer]").before(box);
  return bar;
}"""
# Each explorer is measured at its largest: all sliders at their upper ends.
LARGEST = """(place) => place.querySelectorAll("input[type=range]").forEach((slider) => {
  slider.value = slider.max;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
})"""
NAME = """(node) => node.ariaLabel || node.labels?.[0]?.innerText || node.innerText || "" """


def serve(folder: Path) -> tuple[http.server.ThreadingHTTPServer, str]:
    class Zipped(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            path = Path(self.translate_path(self.path))
            if not path.is_file():
                return super().do_GET()
            body = (
                gzip.compress(path.read_bytes()) if path.suffix != ".woff2" else path.read_bytes()
            )
            self.send_response(200)
            self.send_header("Content-Type", self.guess_type(str(path)))
            if path.suffix != ".woff2":
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Cache-Control", "max-age=600")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Zipped, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


def weigh(context, folder: Path, base: str, path: str, seen: set[str]) -> tuple[float, set[str]]:
    """KB asked for by the page, less what is in `seen`, and the other hosts it asked."""
    page, own, others = context.new_page(), set(), set()

    def note(request):
        parts = urlsplit(request.url)
        if request.url.startswith(base):
            own.add(unquote(parts.path).lstrip("/"))
        elif parts.scheme.startswith("http"):
            others.add(parts.hostname)

    page.on("request", note)
    page.route(lambda url: url.startswith("http") and not url.startswith(base), lambda r: r.abort())
    page.goto(f"{base}/{path}")
    page.wait_for_timeout(500)
    page.close()
    size = 0
    for name in own - seen:
        file = folder / name
        if file.is_file():
            data = file.read_bytes()
            size += len(data if file.suffix in (".woff2", ".png") else gzip.compress(data))
    seen |= own
    return size / 1024, others


def stock(folder: Path) -> Path:
    """Build a book of one slider as Jupyter Book does it by itself."""
    (folder / "_config.yml").write_text("title: Stock\nexecute: {execute_notebooks: force}\n")
    (folder / "_toc.yml").write_text("format: jb-book\nroot: page\nchapters: [{file: other}]\n")
    (folder / "page.md").write_text(STOCK_PAGE)
    (folder / "other.md").write_text("# Other\n")
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    subprocess.run([jupyter_book, "build", folder], check=True, capture_output=True)
    return folder / "_build" / "html"


def interact_time() -> float:
    """Milliseconds to redraw a bar chart the usual way: ipywidgets' interact with matplotlib."""
    import contextlib
    import io

    import ipywidgets
    import matplotlib
    import torch

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from attention import softmax

    def draw(temperature):
        figure, ax = plt.subplots()
        ax.bar(range(3), softmax(torch.tensor([2.0, 1.0, 0.0]), temperature))
        figure.savefig(io.BytesIO(), format="png")
        plt.close(figure)

    shown = ipywidgets.interactive(draw, temperature=(0.05, 20.0))
    slider, times = shown.children[0], []
    for i in range(20):
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            slider.value = 0.5 + i
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def timed(session, control) -> list[tuple[float, ...]]:
    """Milliseconds of each move until it is laid out, and until it is painted; a slower CPU."""
    session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    times = control.evaluate(MOVE)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    return list(zip(*times, strict=True))


def spread(times: tuple[float, ...]) -> str:
    return f"{statistics.median(times):.1f} / {sorted(times)[int(0.95 * len(times))]:.1f}"


def main() -> None:
    pages = sorted(p.relative_to(SITE).as_posix() for p in (SITE / "book").glob("*.html"))
    server, base = serve(SITE)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        chrome = playwright.chromium.launch(
            executable_path=browser.find(), args=["--no-sandbox", "--disable-gpu"]
        )
        print("Weight, KB gzipped\n\n| page | first visit | after another page | other hosts |")
        print("|---|---|---|---|")
        for path in pages:
            context = chrome.new_context(viewport={"width": 1280, "height": 800})
            first, others = weigh(context, SITE, base, path, set())
            seen: set[str] = set()
            weigh(context, SITE, base, "book/notation.html", seen)
            later, _ = weigh(context, SITE, base, path, seen)
            print(f"| {path} | {first:.0f} | {later:.0f} | {len(others)} |", flush=True)
            context.close()
        html = stock(Path(scratch))
        stock_server, stock_base = serve(html)
        context = chrome.new_context(viewport={"width": 1280, "height": 800})
        own, others = weigh(context, html, stock_base, "page.html", set())
        print(f"| stock Jupyter Book, one slider | {own:.0f} + other hosts | | {len(others)} |")
        context.close()

        print("\nFirst slider usable, slow 4G (1.6 Mbit/s, 150 ms) and a CPU 4 times slower\n")
        print("| page | seconds |\n|---|---|")
        explored = [p for p in pages if 'data-explorer="' in (SITE / p).read_text("utf-8")]
        for path in explored:
            context = chrome.new_context(viewport={"width": 1280, "height": 800})
            page = context.new_page()
            session = context.new_cdp_session(page)
            session.send("Network.enable")
            session.send("Network.emulateNetworkConditions", SLOW_4G)
            session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
            page.add_init_script(USABLE)
            page.goto(f"{base}/{path}", wait_until="commit")
            # a trained model is fetched when the reader comes near its explorer
            page.locator("[data-explorer]").first.scroll_into_view_if_needed()
            page.wait_for_function("() => window.usable")
            print(f"| {path} | {page.evaluate('usable') / 1000:.1f} |", flush=True)
            context.close()

        print("\nFrom a move to its answer, ms, CPU 4 times slower: median / 95th percentile;")
        print("the last column: the median beside that of a bare slider, alone on its page\n")
        print("| explorer | control | laid out | painted | times a bare slider |")
        print("|---|---|---|---|---|")
        context = chrome.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.set_content(BARE)
        slider = page.query_selector("input")
        assert slider
        bare = timed(context.new_cdp_session(page), slider)
        print(f"| none | a bare slider | {' | '.join(map(spread, bare))} | 1.0 |", flush=True)
        context.close()
        for path in explored:
            context = chrome.new_context(viewport={"width": 1280, "height": 800})
            page = context.new_page()
            page.goto(f"{base}/{path}")
            session = context.new_cdp_session(page)
            page.wait_for_timeout(2000)  # the whole page has been laid out
            slider = page.evaluate_handle(BARE_HERE).as_element()
            assert slider
            slider.scroll_into_view_if_needed()
            page.wait_for_timeout(500)
            here = timed(session, slider)
            ratio = statistics.median(here[1]) / statistics.median(bare[1])
            columns = " | ".join(map(spread, here))
            print(f"| none | a bare slider in {Path(path).stem} | {columns} | {ratio:.1f} |")
            slider.evaluate("bar => bar.parentElement.remove()")
            for explorer in page.query_selector_all("[data-explorer]"):
                explorer.scroll_into_view_if_needed()
                name = explorer.get_attribute("data-explorer")
                explorer.wait_for_selector(".explorer button")
                page.wait_for_timeout(500)  # what loads late has loaded, and the page is settled
                explorer.evaluate(LARGEST)
                moved = explorer.query_selector_all("input[type=range], select, .handle")
                # step by step has neither: its numbers and its steps
                for control in moved or explorer.query_selector_all(".number, .steps button")[-9:]:
                    if not control.is_visible() or not control.is_enabled():
                        continue
                    times = timed(session, control)
                    ratio = statistics.median(times[1]) / statistics.median(bare[1])
                    label = " ".join(control.evaluate(NAME).split())[:40]
                    columns = " | ".join(map(spread, times))
                    print(f"| {name} | {label} | {columns} | {ratio:.1f} |", flush=True)
            context.close()
        chrome.close()
        stock_server.shutdown()
    server.shutdown()
    print(
        f"\nThe usual way, interact with matplotlib in a live kernel, CPU at full speed: "
        f"{interact_time():.0f} ms a move, before anything travels to the page."
    )


if __name__ == "__main__":
    main()

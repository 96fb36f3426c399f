"""``python -m benchmarks.training``: how fast "Train it here" learns, and what it weighs.

500 steps (two layers, 32 wide, 16 sequences of 12) in a worker at full speed, and in the page
itself, where browsers let a CPU be slowed four times.
"""

import gzip
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from attention.widgets import TrainHere, _base, _page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import browser  # noqa: E402
import pack  # noqa: E402

STEPS = 500
SMALL = """require(process.argv[1] + "/esbuild").transform(require("fs").readFileSync(0, "utf-8"),
  { minify: true }).then((result) => process.stdout.write(result.code));"""
REACHED = "step => parseInt(document.querySelector('.readouts dd').innerText) >= step"
# The longest that the page kept a reader waiting while it trained, and how often beyond 50 ms.
WAITS = """() => { window.waits = [];
  new PerformanceObserver((list) => waits.push(...list.getEntries().map((e) => e.duration)))
    .observe({ type: "longtask" }); }"""


def weight(*parts: str) -> float:
    """KB, minified and gzipped."""
    source = "".join(_base.static_module(part) for part in parts)
    done = subprocess.run([pack.NODE, "-e", SMALL, str(pack.TOOLS)], input=source,
                          capture_output=True, encoding="utf-8", check=True)  # fmt: skip
    return len(gzip.compress(done.stdout.encode())) / 1024


def main() -> None:
    print(f"learner {weight('learner'):.1f} KB, with the explorer "
          f"{weight('learner', 'train_here'):.1f} KB, minified and gzipped\n")  # fmt: skip
    explorer = TrainHere()
    state = {k: v for k, v in explorer.get_state().items() if k[0] != "_" and k != "layout"}
    here = _page.page(explorer, state)
    worker = here.replace("default-src 'none';", "default-src 'none'; worker-src blob:;")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chrome = playwright.chromium.launch(
            executable_path=browser.find(), args=["--no-sandbox", "--disable-gpu"]
        )
        print(f"| where | CPU | {STEPS} steps, s | steps a second | longest task of the page, ms |")
        print("|---|---|---|---|---|")
        for name, text, rate in (("worker", worker, 1), ("page", here, 1), ("page", here, 4)):
            file = Path(folder) / "train.html"
            file.write_text(text, "utf-8")
            page = chrome.new_page()
            page.goto(file.as_uri())
            page.locator(".written span").nth(5).wait_for()  # it has begun
            page.evaluate(WAITS)
            session = page.context.new_cdp_session(page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": rate})
            start = time.perf_counter()
            page.get_by_role("button", name="Train", exact=True).click()
            page.wait_for_function(REACHED, arg=STEPS, timeout=300_000)
            spent = time.perf_counter() - start
            page.get_by_role("button", name="Pause").click()
            longest = max(page.evaluate("waits"), default=0)
            print(f"| {name} | 1/{rate} | {spent:.1f} | {STEPS / spent:.0f} | {longest:.0f} |",
                  flush=True)  # fmt: skip
            page.close()
        chrome.close()


if __name__ == "__main__":
    main()

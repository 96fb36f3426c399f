"""``python -m benchmarks.view``: how fast AttentionView draws 12 x 12 heads of 128 tokens."""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from playwright.sync_api import sync_playwright

from attention.widgets import AttentionView

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import browser  # noqa: E402

# Milliseconds from each event until the next frame has been painted.
TIMES = """async ([selector, kind]) => {
  const times = [];
  for (let i = 0; i < 40; i++) {
    const node = document.querySelector(`${selector} [tabindex='0']`);
    const all = document.querySelectorAll(`${selector} .tile`);
    const start = performance.now();
    if (kind === "hover") {
      all[(i * 37) % all.length].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    } else {
      const key = ["ArrowRight", "ArrowUp", "ArrowLeft", "ArrowUp"][i % 4];
      node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    }
    await new Promise((done) => requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = done;
      port2.postMessage(0);
    }));
    times.push(performance.now() - start);
  }
  return times;
}"""
MOVES = [("another head", ".all-heads", "key"), ("another word", ".word-grid", "key"),
         ("a word hovered", ".word-grid", "hover")]  # fmt: skip


def main() -> None:
    torch.manual_seed(0)
    seen = torch.ones(128, 128).tril().bool()
    weights = torch.randn(12, 12, 128, 128).masked_fill(~seen, -torch.inf).softmax(-1)
    words = ("the cat sat on the mat because it was tired " * 13).split()[:128]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        start = time.perf_counter()
        file = AttentionView(weights, words).save(f"{folder}/view.html")
        print(
            f"made and saved in {time.perf_counter() - start:.2f} s, {file.stat().st_size:,} bytes"
        )
        chrome = playwright.chromium.launch(
            executable_path=browser.find(), args=["--no-sandbox", "--disable-gpu"]
        )
        print("\n| CPU | opened, s | move | ms to the next frame, median / 95th percentile |")
        print("|---|---|---|---|")
        for rate in (1, 4):
            page = chrome.new_page()
            page.context.new_cdp_session(page).send(
                "Emulation.setCPUThrottlingRate", {"rate": rate}
            )
            start = time.perf_counter()
            page.goto(file.as_uri())
            page.locator(".all-heads").wait_for()
            opened = time.perf_counter() - start
            for name, selector, kind in MOVES:
                times = sorted(page.evaluate(TIMES, [selector, kind]))
                shown = f"{statistics.median(times):.0f} / {times[int(0.95 * len(times))]:.0f}"
                print(f"| 1/{rate} | {opened:.1f} | {name} | {shown} |", flush=True)
            page.close()
        chrome.close()


if __name__ == "__main__":
    main()

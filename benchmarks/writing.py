"""How fast the language model of the tales writes in a page, and what it weighs.

    python -m benchmarks.writing          # needs Chromium or Chrome

From the script as the page gets it: unpacking the numbers, reading 100 tokens, then writing 28 one
by one, each with its probabilities and a draw. At full speed, and with a CPU four times slower.
"""

import gzip
import statistics
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from attention.widgets import _base

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import browser  # noqa: E402

WRITE = """() => {
  const { tales_weights: weights, shared } = window.attentionExplorers;
  const { bytePairs, drawToken, nextProbabilities, textModel, uniform, unpacked } = shared;
  const times = [performance.now()];
  const model = textModel(weights.sizes, unpacked(weights.sizes, weights), weights.context);
  const tokens = bytePairs(weights.merges.split(" ").map(Number));
  times.push(performance.now());
  const ids = tokens.encode("The old bear looked for his hat. ".repeat(20)).slice(0, 100);
  model.read(ids);
  times.push(performance.now());
  while (ids.length < weights.context) {
    model.read(ids);
    const p = nextProbabilities(model.logits(ids.length - 1), 0.8);
    ids.push(drawToken(p, uniform(0, ids.length)));
  }
  times.push(performance.now());
  return times.slice(1).map((time, i) => time - times[i]);
}"""


def main() -> None:
    names = [*_base.SHARED, "tales_weights"]
    page_text = "".join(f"<script>{_base.static_module(name)}</script>" for name in names)
    print("| CPU | ready, ms | 100 tokens read, ms | tokens a second |\n|---|---|---|---|")
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(
            executable_path=browser.find(), args=["--no-sandbox", "--disable-gpu"]
        )
        for slower in (1, 4):
            page = chrome.new_page()
            page.set_content(f"<!doctype html><meta charset=utf-8>{page_text}")
            session = page.context.new_cdp_session(page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
            first = page.evaluate(WRITE)  # as the reader meets it, nothing compiled yet
            times = [first, *(page.evaluate(WRITE) for _ in range(4))]
            ready, read, wrote = (statistics.median(kind) for kind in zip(*times, strict=True))
            name = "full speed" if slower == 1 else f"{slower} times slower"
            print(f"| {name} | {ready:.0f} | {read:.0f} | {28000 / wrote:.0f} |")
            print(f"| {name}, first time | {first[0]:.0f} | {first[1]:.0f} | "
                  f"{28000 / first[2]:.0f} |", flush=True)  # fmt: skip
            page.close()
        chrome.close()
    print("\n| file | KB gzipped |\n|---|---|")
    for name in ("byte_pairs", "text_model", "write", *_base.weights_of("write")):
        size = len(gzip.compress(_base.static_module(name).encode()))
        print(f"| {name}.js | {size / 1024:.1f} |")


if __name__ == "__main__":
    main()

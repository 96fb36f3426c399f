"""List the outside links of the built book, and ask each whether it is still there.

    python scripts/links.py             # or: make links
    python scripts/links.py --list      # the links and the pages that have them; asks nobody

Links inside the book are tests/test_site.py's business. Fails if a link is gone. A site that
refuses programs is named, not blamed; without a network nothing is judged, and that is said.
"""

import argparse
import http.client
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

from bs4 import BeautifulSoup
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_site"
BROWSER = "Mozilla/5.0 (compatible; a link checker of a free textbook)"
FINE, GONE, UNSURE, SILENT = "fine", "gone", "unsure", "no answer"


def outside(site: Path) -> dict[str, list[str]]:
    """Each outside address of the pages in `site`, without its fragment, and the pages it is on."""
    found = defaultdict(set)
    for page in sorted(site.rglob("*.html")):
        soup = BeautifulSoup(page.read_text("utf-8"), "html.parser")
        for tag in soup.select("a[href]"):
            if urlsplit(tag["href"]).scheme in ("http", "https"):
                found[urldefrag(tag["href"]).url].add(page.relative_to(site).as_posix())
    return {link: sorted(pages) for link, pages in sorted(found.items())}


def ask(link: str, timeout: float = 20) -> tuple[str, str]:
    """What a link's server says, and why: fine, gone, unsure (it may be) or no answer."""
    for method in ("HEAD", "GET"):  # some servers do not know HEAD
        request = urllib.request.Request(link, method=method, headers={"User-Agent": BROWSER})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return FINE, str(answer.status)
        except urllib.error.HTTPError as error:
            if method == "GET":
                return GONE if error.code in (404, 410) else UNSURE, f"{error.code} {error.reason}"
        except (OSError, http.client.HTTPException) as error:
            return SILENT, str(getattr(error, "reason", error)) or type(error).__name__
    raise AssertionError("not reached")


def check(links: list[str], pause: float = 1.0) -> dict[str, tuple[str, str]]:
    """Ask for all links: hosts side by side, one host's links in a row with a pause between."""
    hosts = defaultdict(list)
    for link in links:
        hosts[urlsplit(link).netloc].append(link)

    def visit(group):
        for i, link in enumerate(group):
            time.sleep(pause * bool(i))
            yield link, ask(link)

    said = {}
    with tqdm(total=len(links), unit="link", disable=not sys.stderr.isatty()) as bar:
        with ThreadPoolExecutor(8) as pool:
            for done in as_completed(
                [pool.submit(lambda g=g: list(visit(g))) for g in hosts.values()]
            ):
                said.update(done.result())
                bar.update(len(said) - bar.n)
    return said


def main(arguments: list[str] | None = None, site: Path = SITE) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the links and ask nobody")
    options = parser.parse_args(arguments)
    if not site.exists():
        print("There is no built book in _site: run `make book`.", file=sys.stderr)
        return 2
    found = outside(site)
    if options.list:
        for link, pages in found.items():
            print(link, "  on", ", ".join(pages))
        print(f"{len(found)} outside links")
        return 0
    said = check(list(found))
    if found and all(state == SILENT for state, _ in said.values()):
        print(
            f"No answer from any of {len(found)} addresses: is there a network? Nothing is judged."
        )
        return 3
    for state in (GONE, SILENT, UNSURE):
        for link in [link for link in found if said[link][0] == state]:
            print(f"{state}: {link} ({said[link][1]}), on {', '.join(found[link])}")
    count = {
        state: sum(s == state for s, _ in said.values()) for state in (FINE, GONE, SILENT, UNSURE)
    }
    print(", ".join(f"{number} {state}" for state, number in count.items()))
    return 1 if count[GONE] or count[SILENT] else 0


if __name__ == "__main__":
    sys.exit(main())

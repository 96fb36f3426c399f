"""What the tests in a browser share; the browser itself is in conftest.py."""

import functools
import re
from pathlib import Path

from bs4 import BeautifulSoup
from playwright.sync_api import TimeoutError

SITE = Path(__file__).parents[1] / "_site"


@functools.cache
def html(page: str) -> BeautifulSoup:
    """A page of the built book, read once: to be looked at, not changed."""
    return BeautifulSoup((SITE / page).read_text("utf-8"), "html.parser")


class Alone:
    """An explorer alone in the browser; at the end nothing may have gone wrong."""

    def __init__(self, chrome, width=800, **more):
        self.context = chrome.new_context(**{"viewport": {"width": width, "height": 900}} | more)
        self.page, self.asked, self.complaints = self.context.new_page(), [], []
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))

    def __enter__(self):
        return self

    def says(self):
        self.page.wait_for_timeout(300)
        return self.page.locator(".say").inner_text()

    def check(self):
        assert self.complaints == []
        text = self.page.locator("body").inner_text()
        assert not re.search(r"\b(NaN|Infinity|undefined|null)\b", text)

    def __exit__(self, *error):
        if error[0] is None:
            self.check()
        self.context.close()


class Visit:
    """A page of the book open in the browser, with what it asked for and complained of."""

    def __init__(self, chrome, base, page, *, width=1200, theme="light", script=True, **more):
        self.context = chrome.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=script,
            color_scheme=theme, **more,
        )  # fmt: skip
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on(
            "console",
            lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None,
        )
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.goto(f"{base}/{page}")
        if script:
            self.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        self.page.wait_for_timeout(150)
        if script:
            self.wake()

    def wake(self):
        """Wait until each explorer has started: those with a trained model do when in sight."""
        here = """place => {
          const started = place.querySelector(".explorer") !== null;
          if (!started) place.scrollIntoView({ block: "center", behavior: "instant" });
          return started;
        }"""
        places = self.page.query_selector_all("[data-explorer]")
        for place in places:  # again and again: while a page arrives, what is above may still grow
            try:
                self.page.wait_for_function(here, arg=place, polling=250)
            except TimeoutError as error:
                state = self.page.evaluate(
                    """() => [document.readyState, document.documentElement.className, scrollY,
                       Object.keys(window.attentionExplorers ?? {}).join(" "), [...document.scripts]
                       .map(s => s.src.split("/").at(-1)).join(" ")]"""
                )
                about = place.evaluate("place => place.outerHTML.slice(0, 300)")
                raise AssertionError(
                    f"{about} did not start; {state}; {self.complaints}"
                ) from error
        if places:
            self.page.evaluate("scrollTo({top: 0, behavior: 'instant'})")

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.context.close()

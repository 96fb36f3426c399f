"""Firefox and WebKit as the tests drive them: each opens a page and runs code in it.

Firefox speaks WebDriver BiDi itself, so it needs no driver beside it; WebKit has Debian's driver
and a screen that nobody sees.
"""

import json
import os
import re
import subprocess
import time
import warnings

from browser import engine
from selenium import webdriver
from selenium.webdriver.webkitgtk.service import Service
from websocket import create_connection

PATIENCE = 60  # seconds for one call on a busy machine


def said(log, pattern: str) -> str:
    """What a program wrote into its log that matches, once it has."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text("utf-8", "replace")):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"no {pattern} within {PATIENCE} s: {log.read_text('utf-8', 'replace')}")


class Engine:
    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()


class Firefox(Engine):
    def __init__(self, folder):
        words = [engine("Firefox")[0], "--headless", "--no-remote", "--profile", str(folder),
                 "--remote-debugging-port", "0", "about:blank"]  # fmt: skip
        log = folder / "log.txt"
        with log.open("w") as out:
            self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=out)
        try:
            address = said(log, r"WebDriver BiDi listening on (ws://\S+)\s")
            self.socket = create_connection(
                f"{address}/session", timeout=PATIENCE, suppress_origin=True
            )
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.calls = 0
        self.call("session.new", capabilities={})
        self.tab = self.call("browsingContext.getTree")["contexts"][0]["context"]
        size = {"width": 1200, "height": 900}
        self.call("browsingContext.setViewport", context=self.tab, viewport=size)

    def call(self, method, **params):
        self.calls += 1
        self.socket.send(json.dumps({"id": self.calls, "method": method, "params": params}))
        while (answer := json.loads(self.socket.recv())).get("id") != self.calls:
            pass
        assert answer["type"] == "success", f"{method}: {answer}"
        return answer["result"]

    def open(self, address: str):
        self.call("browsingContext.navigate", context=self.tab, url=address, wait="complete")

    def run(self, code: str):
        """What the body of an asynchronous function returns, run in the page."""
        done = self.call(
            "script.evaluate", awaitPromise=True, target={"context": self.tab},
            expression=f"(async () => {{ {code} }})().then((x) => JSON.stringify(x ?? null))",
        )  # fmt: skip
        assert done["type"] == "success", done["exceptionDetails"]["text"]
        return json.loads(done["result"]["value"])

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(PATIENCE)


class WebKit(Engine):
    def __init__(self, folder):
        driver, screen = engine("WebKit")
        log, number = folder / "log.txt", folder / "screen.txt"
        with log.open("w") as out, number.open("w") as file:
            self.screen = subprocess.Popen(
                [screen, "-displayfd", str(file.fileno()), "-screen", "0", "1200x900x24",
                 "-nolisten", "tcp"],
                stdout=out, stderr=out, pass_fds=[file.fileno()],
            )  # fmt: skip
        try:
            display = said(number, r"(\d+)\n")
            env = os.environ | {"DISPLAY": f":{display}", "GDK_BACKEND": "x11"}
            with warnings.catch_warnings():  # selenium warns of a call of its own
                warnings.simplefilter("ignore", DeprecationWarning)
                # its path is given, so that selenium fetches nothing
                self.browser = webdriver.WebKitGTK(service=Service(driver, env=env))
        except BaseException:
            self.screen.kill()
            self.screen.wait()
            raise
        self.browser.set_page_load_timeout(PATIENCE)
        self.browser.set_script_timeout(PATIENCE)

    def open(self, address: str):
        self.browser.get(address)

    def run(self, code: str):
        answer = self.browser.execute_async_script(
            f"""(async () => {{ {code} }})().then(
                  (x) => arguments[0](JSON.stringify([x ?? null])),
                  (error) => arguments[0](JSON.stringify(String(error))));"""
        )
        answer = json.loads(answer)
        assert isinstance(answer, list), answer
        return answer[0]

    def close(self):
        self.browser.quit()
        self.screen.terminate()
        self.screen.wait(PATIENCE)

"""Draw the picture at the top of the README from the built pages: .github/book.png.

    python scripts/picture.py

Three views side by side: the start page, a chapter in dark colours, and an explorer on a phone.
"""

import base64
from pathlib import Path

import browser
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / ".github" / "book.png"
# page, element at the top of the view, width, height, dark
VIEWS = [
    ("index", "h1", 1000, 1180, False),
    ("positions", "[data-explorer]", 760, 1180, True),
    ("writing", "[data-explorer]", 390, 1180, False),
]
FRAME = (
    "<body style='margin:0;display:inline-flex;gap:28px;padding:28px;background:#dfe3e8'>{}</body>"
)
CARD = "<img src='data:image/png;base64,{}' style='height:820px;box-shadow:0 3px 14px #0005'>"


def view(chrome: Browser, name: str, top: str, width: int, height: int, dark: bool) -> bytes:
    """A screenshot of the page, scrolled to the first element that `top` finds."""
    page = chrome.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        device_scale_factor=1.5,
    )
    page.goto((ROOT / "_site" / "book" / f"{name}.html").as_uri())
    page.wait_for_timeout(800)
    place = page.locator(f"article {top}").first
    place.evaluate("place => place.scrollIntoView({ block: 'start', behavior: 'instant' })")
    page.evaluate("scrollBy(0, -70)")
    page.wait_for_timeout(1500)
    picture = page.screenshot()
    page.close()
    return picture


def main() -> None:
    program = browser.needed(ROOT / "_site", "draws the picture", "picture")
    with sync_playwright() as play:
        chrome = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        cards = [CARD.format(base64.b64encode(view(chrome, *v)).decode()) for v in VIEWS]
        page = chrome.new_page(viewport={"width": 1800, "height": 880})
        page.set_content(FRAME.format("".join(cards)))
        page.locator("body").screenshot(path=PICTURE)
        chrome.close()
    print(f"{PICTURE.relative_to(ROOT)}, {PICTURE.stat().st_size // 1000} KB")


if __name__ == "__main__":
    main()

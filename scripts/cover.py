"""Draw the book's cover: its sentence, and what each word takes from each, computed.

The weights are those of chapter 2: *it* asks for what is alive, and every other word asks nothing,
so it takes the same share of all.
"""

from html import escape

from attention import attention, cat_sentence

WIDTH, HEIGHT = 1600, 2400
GROUND, LINE, PAPER, WARM = "#0c2f57", "#7ab8f5", "#f4f6f9", "#f6c667"
LEFT, RIGHT, TOP, STEP = 560, 1040, 1130, 106


def weights() -> tuple[list[str], list[list[float]]]:
    """The words, and the share that each (a row) takes of each."""
    words, X = cat_sentence("tired")
    alive, place, pronoun = X[:, 0], X[:, 1], X[:, 2]
    q, k = 8 * pronoun.unsqueeze(1), (alive - place).unsqueeze(1)
    return words, attention(q, k, X)[1].tolist()


def thread(query: int, key: int, weight: float, asks: bool) -> str:
    """A line from a word on the left to one on the right, as wide as the weight."""
    y, to = TOP + STEP * query - 14, TOP + STEP * key - 14
    colour = WARM if asks else LINE
    middle = (LEFT + RIGHT) / 2
    path = f"M{LEFT + 26},{y} C{middle},{y} {middle},{to} {RIGHT - 26},{to}"
    return (
        f'<path d="{path}" stroke="{colour}" stroke-width="{max(26 * weight, 0.1):.2f}" '
        f'opacity="{1 if asks else 0.55}"/>'
    )


def svg(title: str, author: str) -> str:
    """The cover of a book with this title, "Name: what it is about", as an SVG element."""
    name, _, about = (escape(part.strip()) for part in title.partition(":"))
    words, rows = weights()
    order = sorted(range(len(words)), key=lambda i: words[i] == "it")  # that of it lies on top
    lines = [
        thread(i, j, weight, words[i] == "it") for i in order for j, weight in enumerate(rows[i])
    ]
    sides = []
    for i, word in enumerate(words):
        y = TOP + STEP * i
        for x, anchor, warm in ((LEFT, "end", "it"), (RIGHT, "start", "cat")):
            fill, style = (WARM, "italic") if word == warm else (PAPER, "normal")
            sides.append(
                f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}" '
                f'font-style="{style}" font-size="60">{escape(word)}</text>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cover" role="img" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Book Text, STIX Two Text, serif" '
        f'aria-label="Cover: {name}. {about.capitalize()}.">'
        f'<rect x="-400" y="-400" width="{WIDTH + 800}" height="{HEIGHT + 800}" fill="{GROUND}"/>'
        f'<text x="150" y="480" font-size="270" font-weight="500" letter-spacing="-6" '
        f'fill="{PAPER}">{name}</text>'
        f'<text x="160" y="610" font-size="76" font-style="italic" fill="{LINE}">{about}</text>'
        f'<line x1="160" y1="720" x2="420" y2="720" stroke="{WARM}" stroke-width="6"/>'
        f'<g fill="none" stroke-linecap="round">{"".join(lines)}</g>{"".join(sides)}'
        f'<text x="160" y="2290" font-size="44" fill="{PAPER}">{escape(author)}</text></svg>'
    )

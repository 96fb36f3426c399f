"""Read the chapters as the tests must: the page itself, not a copy of its numbers."""

import re
from pathlib import Path

BOOK = Path(__file__).parents[1] / "book"


def prose(name: str) -> str:
    """The chapter's text without its code cells, white space run together."""
    text = (BOOK / f"{name}.md").read_text("utf-8")
    text = re.sub(r"^```\{code-cell\}.*?^```$", "", text, flags=re.S | re.M)
    return re.sub(r"\s+", " ", text)


def printed(name: str, template: str, *values: float) -> None:
    """Fail unless the page says `template`, its {} filled with the computed values.

    >>> # printed("scaling", "the third row is [{:.3f}, {:.3f}]", *out[2])

    The template must hold words of its own, so that it can match in one place only.
    """
    wanted = re.sub(r"\s+", " ", template.format(*values))
    count = prose(name).count(wanted)
    assert count, f"book/{name}.md does not say: {wanted}"
    assert count == 1, f"book/{name}.md says it {count} times, so one can be wrong: {wanted}"


def table(name: str, label: str) -> list[list[str]]:
    """The cells of the Markdown table after the directive or target `label`, header included."""
    text = (BOOK / f"{name}.md").read_text("utf-8")
    assert label in text, f"book/{name}.md has no {label}"
    rows = []
    for line in text[text.index(label) :].splitlines():
        if line.lstrip().startswith("|"):
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            if not all(re.fullmatch(r":?-+:?", c) for c in cells):
                rows.append(cells)
        elif rows:
            break
    assert rows, f"book/{name}.md has no table after {label}"
    return rows

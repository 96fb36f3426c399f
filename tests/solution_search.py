"""Search a built site for the text of the exercises' solutions.

    python tests/solution_search.py _build/ipynb/exercises.json _site

prints what it found and exits 1, or says how much it searched for and exits 0. It looks for every
sentence, formula and line of code of a solution, without regard to spaces and punctuation, in
pages, scripts, notebooks, the wheel, and in the search index, which holds single words. What the
chapters say outside their solutions, the package's code outside its checks, and the sentences of
the checks are no leak: they are the book.
"""

import ast
import html
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from snowballstemmer import stemmer

# a directive {solution}, or {solution-start} with all up to {solution-end}
SOLUTION = re.compile(
    r"^(`{3,})\{solution-start\}.*?^\1\{solution-end\}\n\1$|^(`{3,})\{solution\}.*?^\2$",
    re.M | re.S,
)
# the hidden cell that draws an exercise's numbers and knows the answers
OWN = re.compile(r"^```\{code-cell\} python\n---\ntags: \[remove-cell\]\nown:.*?^```$", re.M | re.S)
LEAST = 18  # letters and digits: a shorter piece may stand anywhere
TEXT = {".html", ".js", ".json", ".css", ".svg", ".txt", ".py", ".md", ".xml", ".map"}


def bare(text: str) -> str:
    """Its letters and digits alone."""
    return re.sub(r"[\W_]+", "", html.unescape(text).lower())


def code_form(line: str) -> str:
    """A line of code without spaces, its comment and the kind of its quotes."""
    return re.sub(r"\s+", "", re.sub(r"\s#.*", "", line)).replace('"', "'")


def pieces(solution: str) -> tuple[set[str], set[str]]:
    """The sentences and formulas of a solution in Markdown, and its lines of code."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", solution, re.S))
    prose = re.sub(r"```.*?```", "\n", solution, flags=re.S)
    prose = re.sub(r"<[^>]+>|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)", " ", prose)
    parts = re.split(r"\$+|\n|(?<=[.:;?!]) ", prose)
    words = {bare(part) for part in parts if len(bare(part)) >= LEAST}
    return words, {f for line in code.splitlines() if len(f := code_form(line)) >= LEAST}


def files(site: Path) -> Iterator[tuple[str, str]]:
    """Every text below the folder by its name, those in wheels and notebooks' cells included."""
    for path in sorted(p for p in site.rglob("*") if p.is_file()):
        name = path.relative_to(site).as_posix()
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                for inside in wheel.namelist():
                    if Path(inside).suffix in TEXT:
                        yield f"{name}:{inside}", wheel.read(inside).decode("utf-8", "replace")
        elif path.suffix == ".ipynb":
            cells = json.loads(path.read_text("utf-8"))["cells"]
            yield name, "\n".join("".join(cell["source"]) for cell in cells)
        elif path.suffix in TEXT:
            yield name, path.read_text("utf-8")


def readings(name: str, text: str) -> tuple[str, set[str]]:
    """A text as words and as lines of code."""
    if name.endswith(".html"):
        plain = re.sub(r"<(?:script|style)\b.*?</(?:script|style)>", " ", text, flags=re.S)
        said = " ".join(re.findall(r'(?:alt|title|content|aria-label)="([^"]*)"', plain))
        plain = re.sub(r"<[^>]*>", "", plain) + said
    else:
        plain = re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), text)
        plain = plain.replace("\\n", "\n")
    return bare(plain), set(map(code_form, html.unescape(plain).splitlines()))


def given(known: dict, sources: Path, package: Path) -> tuple[str, set[str], str]:
    """What the book shows anyway: its words, its lines of code, and its text as it is written."""
    shown = [OWN.sub("", SOLUTION.sub("", p.read_text("utf-8"))) for p in sources.glob("*.md")]
    for e in (e for c in known["chapters"].values() for e in c["exercises"]):
        answer = re.sub(r"### BEGIN.*?### END", "", e.get("answer", ""), flags=re.S)
        shown += [e["prose"], answer, e.get("check", "")]
    code, said = [], []
    for path in package.rglob("*.py"):
        source = path.read_text("utf-8")
        if "checks" not in path.parts:
            code += source.splitlines()
        else:
            said += [n.value for n in ast.walk(ast.parse(source))
                     if isinstance(n, ast.Constant) and isinstance(n.value, str)]  # fmt: skip
    text = "\n".join(shown)
    lines = set(map(code_form, [*text.splitlines(), *code]))
    return bare(text + "\n".join(said)), lines, text


def search(exercises: Path, site: Path, sources: Path, package: Path) -> tuple[list[str], int]:
    """What of the solutions is found where, as sentences, and how many pieces were looked for.

    `sources` is the folder of the chapters, `package` the package with its answers.
    """
    known = json.loads(exercises.read_text("utf-8"))
    words, code, text = given(known, sources, package)
    prose, lines = {}, {}
    for chapter in known["chapters"].values():
        for e in chapter["exercises"]:
            found = pieces(e.get("solution", ""))
            prose |= {piece: e["id"] for piece in found[0] if piece not in words}
            lines |= {piece: e["id"] for piece in found[1] if piece not in code}
    leaks = []
    for name, content in files(site):
        said, written = readings(name, content)
        leaks += [f"{name} holds of {key}: {p}" for p, key in prose.items() if p in said]
        leaks += [f"{name} holds of {key}: {p}" for p, key in lines.items() if p in written]
    return [*leaks, *indexed(known, site, text)], len(prose) + len(lines)


def indexed(known: dict, site: Path, shown: str) -> list[str]:
    """Words in the search index that only solutions have."""
    index = site / "searchindex.js"
    if not index.exists():
        return []
    terms = json.loads(index.read_text("utf-8").removeprefix("Search.setIndex(").rstrip(");\n"))
    read = " ".join(t for name, t in files(site) if name.endswith(".html"))
    stem = stemmer("english").stemWord
    elsewhere = {stem(w) for w in re.findall(r"[^\W_]+", html.unescape(read + shown).lower())}
    only = {
        (stem(w), e["id"])
        for c in known["chapters"].values()
        for e in c["exercises"]
        for w in re.findall(r"[a-z]{5,}", re.sub(r"\$[^$]*\$", " ", e.get("solution", "").lower()))
    }
    return [
        f"searchindex.js holds of {key}: {word}"
        for word, key in sorted(only)
        if word in terms["terms"] and word not in elsewhere
    ]


if __name__ == "__main__":
    root = Path(__file__).parents[1]
    leaks, count = search(
        Path(sys.argv[1]), Path(sys.argv[2]), root / "book", root / "src" / "attention"
    )
    print("\n".join(leaks) or f"none of {count} pieces of solutions found")
    sys.exit(bool(leaks))

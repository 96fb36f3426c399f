"""Check a file of tales, one a line: length, vocabulary, characters, repeated runs and openings.

    python scripts/check_tales.py src/attention/tales.txt

Prints what is wrong, a line each, and a summary; exit status 1 if anything is.
"""

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

WORDS = Path(__file__).with_name("tale_words.txt")
SHORTEST, LONGEST = 60, 160  # words in a tale
LONGEST_RUN = 12  # words in a row that two tales may share
OPENING = 12  # tales that may begin with the same three words
CHARACTERS = re.compile(r"[A-Za-z0-9 .,;:!?'\"-]*")
WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")


def words_of(tale: str) -> list[str]:
    """The words of a tale in lower case, with their apostrophes."""
    return WORD.findall(tale.lower())


def unknown(words: list[str], known: set[str]) -> list[str]:
    """The words that are not in the list; a possessive counts as its noun."""
    return [w for w in words if w not in known and w.removesuffix("'s") not in known]


def opening(tale: str) -> str:
    """The first sentence of a tale; the full stop of Mr. and Mrs. ends none."""
    return re.split(r'(?<=[.!?])(?<!Mr\.)(?<!Mrs\.)"? ', tale, maxsplit=1)[0]


def faults(tales: list[str], known: set[str]) -> list[str]:
    """All that is wrong with the tales, a sentence each; the first tale is number 1."""
    found = []
    runs: dict[tuple[str, ...], int] = {}
    openings: dict[str, int] = {}
    starts: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, tale in enumerate(tales, 1):
        words = words_of(tale)
        if not SHORTEST <= len(words) <= LONGEST:
            found.append(f"tale {number} has {len(words)} words, not {SHORTEST} to {LONGEST}")
        if not CHARACTERS.fullmatch(tale) or "  " in tale or tale != tale.strip():
            strange = sorted(set(CHARACTERS.sub("", tale))) or ["spaces"]
            found.append(f"tale {number} has characters that are not allowed: {strange}")
        if tale.count('"') % 2:
            found.append(f"tale {number} opens a quotation and does not close it")
        if tale and tale[-1] not in '.!?"':
            found.append(f"tale {number} does not end with a sentence")
        if new := unknown(words, known):
            found.append(f"tale {number} uses words that are not in the list: {', '.join(new)}")
        first = opening(tale)
        if first in openings:
            found.append(f"tale {number} opens like tale {openings[first]}: {first}")
        openings.setdefault(first, number)
        starts[tuple(words[:3])].append(number)
        mine = {tuple(words[i : i + LONGEST_RUN + 1]) for i in range(len(words) - LONGEST_RUN)}
        for run in mine:
            if run in runs:
                found.append(f"tale {number} shares with tale {runs[run]}: {' '.join(run)}")
                break
        runs.update(dict.fromkeys(mine, number))
    for start, numbers in starts.items():
        if len(numbers) > OPENING:
            found.append(f"{len(numbers)} tales begin with '{' '.join(start)}': {numbers}")
    return found


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python scripts/check_tales.py FILE", file=sys.stderr)
        return 2
    tales = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    wrong = faults(tales, set(WORDS.read_text(encoding="utf-8").split()))
    print("\n".join(wrong))
    counts = Counter(w for tale in tales for w in words_of(tale))
    size = sum(len(tale) + 1 for tale in tales)
    print(f"{len(tales)} tales, {sum(counts.values()):,} words, {size:,} characters, "
          f"{len(counts):,} different words; {len(wrong)} faults")  # fmt: skip
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

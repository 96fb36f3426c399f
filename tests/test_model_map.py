"""The map of the model lights the parts of the chapter that it opens, and no others."""

import matplotlib
import pytest

matplotlib.use("Agg")

from attention.figures.model_map import FRAMES, LIT, PARTS, model_map
from attention.plots import BLUE


@pytest.mark.parametrize("name", LIT)
def test_the_parts_of_a_chapter_are_lit(name):
    ax = model_map(name).axes[0]
    blue = matplotlib.colors.to_rgb(BLUE)
    lit = [patch for patch in ax.patches if patch.get_edgecolor()[:3] == blue]
    assert len(lit) == len(LIT[name]) and set(LIT[name]) <= {*PARTS, *FRAMES}
    assert {text for *_, text in PARTS.values()} <= {text.get_text() for text in ax.texts}


def test_every_part_is_lit_in_some_chapter():
    assert {part for parts in LIT.values() for part in parts} == {*PARTS, *FRAMES}


def test_another_name_is_refused():
    with pytest.raises(ValueError, match="lit must be one of motivation, qkv.*; got 'softmax'"):
        model_map("softmax")

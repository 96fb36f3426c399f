"""Heatmaps and curves: their labels, their scales, and what they refuse."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from attention import plots  # noqa: E402

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.mark.parametrize("make", [list, tuple, np.array])
@pytest.mark.parametrize("weights", [torch.eye(2), [[1, 0], [0, 1]], np.eye(2), torch.eye(2) > 0])
def test_a_heatmap_takes_labels_and_weights_of_any_kind(make, weights):
    ax = plots.heatmap(weights, rows=make(["the", "sun"]), cols=make(["a", "b"]))
    assert (ticks(ax.yaxis), ticks(ax.xaxis)) == (["the", "sun"], ["a", "b"])
    assert [text.get_text() for text in ax.texts] == ["1.000", "0.000", "0.000", "1.000"]


def test_a_heatmap_without_labels_counts_from_0():
    ax = plots.heatmap(torch.zeros(2, 3, requires_grad=True))
    assert (ticks(ax.yaxis), ticks(ax.xaxis)) == (["0", "1"], ["0", "1", "2"])


def test_a_heatmap_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"weights must be a matrix .* got shape \(3,\)"):
        plots.heatmap(torch.zeros(3))
    with pytest.raises(ValueError, match="cols must name all 3; got 2 names"):
        plots.heatmap(torch.zeros(2, 3), cols=["a", "b"])


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
def test_curves_may_have_logarithmic_axes(log):
    ax = plots.curves([1, 2], {"a": torch.tensor([1.0, 2.0])}, log=log)
    scales = (ax.get_xscale(), ax.get_yscale())
    assert scales == tuple("log" if axis in log else "linear" for axis in "xy")


@pytest.mark.parametrize("log", ["z", True, None])
def test_curves_refuse_another_axis(log):
    with pytest.raises(ValueError, match='log must be "", "x", "y" or "xy"; got'):
        plots.curves([1, 2], {"a": [1, 2]}, log=log)


def _rgb(colour):
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def _luminance(rgb):
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def _named(theme):
    """The colours that book.css gives a heatmap's hues and numbers."""
    css = (ROOT / "book" / "_static" / "book.css").read_text("utf-8")
    start = {"light": ":root { --above", "dark": 'html[data-theme="dark"] { --above'}[theme]
    rule = css[css.index(start) :].split("}")[0]
    found = re.findall(r"--([\w-]+): #(\w+)", rule)
    return {name: "#" + (h if len(h) == 6 else "".join(c * 2 for c in h)) for name, h in found}


@pytest.mark.parametrize("value", [1, -1])
@pytest.mark.parametrize("place", ["light", "dark", "notebook"])
def test_the_numbers_of_a_heatmap_can_be_read_on_every_shade(place, value):
    shades = torch.linspace(0, 1, 201)[None] * value
    ax = plots.heatmap(shades, vmin=-1 if value < 0 else 0)
    hue = {1: "above", -1: "below"}[value]
    own = {"above": plots.ABOVE, "below": plots.BELOW, "ink": plots.INK, "ink-deep": plots.INK_DEEP}
    named = own if place == "notebook" else _named(place)
    page = _rgb("#16191e" if place == "dark" else "#ffffff")  # type.css
    inks = {plots.INK: named["ink"], plots.INK_DEEP: named["ink-deep"]}
    inks[plots.INK_BETWEEN] = "#000000"
    for text, cell in zip(ax.texts, ax.collections[0].to_rgba(shades.numpy())[0], strict=True):
        assert cell[3] < 0.01 or np.allclose(cell[:3], _rgb(own[hue]), atol=0.005)
        behind = _luminance(page * (1 - cell[3]) + _rgb(named[hue]) * cell[3])
        ink = _luminance(_rgb(inks.get(text.get_color(), text.get_color())))
        low, high = sorted((behind, ink))
        assert (high + 0.05) / (low + 0.05) >= 4.5
    assert cell[3] == 1, "the strongest hides the page"


def test_signed_numbers_are_shown_on_both_sides_of_zero():
    cells = plots.vectors([[-0.5, 0, 0.5]], ["x"], "abc").collections[0]
    below, zero, above = cells.to_rgba(np.array([-0.5, 0, 0.5]))
    assert (below[3], above[3], zero[3]) == pytest.approx((0.5, 0.5, 0), abs=0.01)
    assert np.allclose(below[:3], _rgb(plots.BELOW), atol=0.005)

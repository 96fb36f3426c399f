"""Heatmaps and curves: their labels, their scales, and what they refuse."""

import numpy as np
import pytest
import torch

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from attention import plots  # noqa: E402


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

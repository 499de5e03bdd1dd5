"""Maps of thresholds, and what compression costs in consistency."""

from __future__ import annotations

import numpy as np
import pytest

from ocf import CounterfactualDiscretizer, GuessingThresholds, SurrogateTree
from ocf.compression.plots import LEVELS, plot_thresholds, plot_tradeoff, threshold_map, tradeoff

pyplot = pytest.importorskip("matplotlib.pyplot")


pyplot.switch_backend("Agg")


def test_the_map_says_up_to_which_q_thresholds_are_kept(data, fitted):
    table = threshold_map(fitted, bins=4)
    assert table.shape == (30, 4)
    counts = fitted.thresholds_["multiplicity"].to_numpy()
    for (name, value), count in zip(
        fitted.thresholds_[["feature", "threshold"]].itertuples(index=False, name=None), counts, strict=True
    ):
        feature = fitted.space_.features[fitted.space_.index(name)]
        cell = min(int((value - feature.lower) / (feature.upper - feature.lower) * 4), 3)
        reached = max(q for q in LEVELS if count >= np.quantile(counts, q))
        assert table.loc[name, cell] >= reached
    assert table.notna().sum().sum() <= len(counts)
    guessed = threshold_map(GuessingThresholds(fitted.estimator_).fit(*data), bins=4)
    assert set(guessed.to_numpy()[guessed.notna()]) == {0.0}


def test_plots_show_what_there_is(data, fitted):
    ax = plot_thresholds(fitted)
    assert ax.get_xlabel() == "place in the feature's range"
    few = plot_thresholds(fitted, most=2)
    assert len(few.get_yticks()) == 2
    assert "not shown" in few.get_title("left")
    nothing = CounterfactualDiscretizer(fitted.estimator_, prefit=True, p1=0.5).fit(*data)
    plot_thresholds(nothing)
    rates = tradeoff(fitted, *data, trees={"cart": SurrogateTree()})
    assert fitted.Q == 0.0
    assert rates.index.tolist() == list(LEVELS)
    assert rates["compression"].is_monotonic_increasing
    assert (rates["cart"] <= 1 - rates["inconsistency"] + 1e-12).all()
    assert len(plot_tradeoff(rates).lines) == 3
    pyplot.close("all")

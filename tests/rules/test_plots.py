"""Plots of rules."""

from __future__ import annotations

import pandas as pd
import pytest

from ocf import CounterfactualRules


def test_plot_shows_each_condition(rules: CounterfactualRules, poor: pd.DataFrame) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    found = rules.local(poor, time_limit=None)
    ax = found.plot()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["income"]
    import matplotlib.pyplot as plt

    plt.close("all")

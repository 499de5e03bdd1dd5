"""Plots of regions."""

from __future__ import annotations

import matplotlib as mpl
import pytest

from ocf.errors import ProblemError

mpl.use("Agg")


@pytest.mark.parametrize("axes", [("area", "rooms"), ("kitchen", "area"), (None, None), ("rooms", None)])
@pytest.mark.parametrize("held", [False, True])
def test_plots(houses, axes, held) -> None:
    table, explainer = houses
    regions = explainer.counterfactual_regions(table.iloc[[3]], (350, None), radius=0.6, limit=50)
    ax = regions.plot(*axes, held=held)
    assert "0.6" in ax.get_title(loc="left")
    assert ax.get_xlabel() in explainer.space.names
    assert ax.get_legend() is not None
    if axes == ("area", "rooms") and not held:
        (drawn,) = ax.collections
        assert len(drawn.get_paths()) == len(regions)
        assert drawn.get_array().min() == pytest.approx(next(iter(regions)).cost)


def test_plots_that_mean_nothing(houses) -> None:
    table, explainer = houses
    regions = explainer.counterfactual_regions(table.iloc[[3]], (350, None), radius=0.3)
    with pytest.raises(ProblemError, match="did you mean 'area'"):
        regions.plot("areaa", "rooms")
    with pytest.raises(ProblemError, match="two different features"):
        regions.plot("area", "area")
    empty = explainer.counterfactual_regions(table.iloc[[3]], (1e6, None), radius=0.3)
    assert "0 regions" in empty.plot("area", "rooms").get_title(loc="left")

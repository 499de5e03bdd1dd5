"""Across files: relations between narrow floats, against all numbers that the columns hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, Linear
from ocf.cells import sliding

SCALES = {"a": 87.0, "b": 91.0}
FEATURES = {name: {"kind": "numeric", "scale": scale} for name, scale in SCALES.items()}

#: What float16 holds between 300 and 400: quarters.
NUMBERS = np.arange(1200, 1601) / 4


class Pairs:
    """A tree over two columns of float16 between 300 and 400, a row of class 0, and all points of class 1."""

    def __init__(self, dtype: str = "float16") -> None:
        table = pd.DataFrame({"a": np.linspace(300, 400, 26), "b": np.linspace(400, 300, 26)}).astype(dtype)
        self.model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(
            table, (table.a + table.b / 3 > 470).astype(int)
        )
        self.row = table[self.model.predict(table) == 0].head(1)
        self.explainer = Explainer(self.model, data=table, features=FEATURES)
        grid = pd.DataFrame([(a, b) for a in NUMBERS for b in NUMBERS], columns=["a", "b"]).astype(dtype)
        inside = (grid.a + 0 >= table.a.min()) & (grid.b >= table.b.min())
        grid = grid[inside & (self.model.predict(grid) == 1)].astype("float64")
        change = np.abs(grid.to_numpy() - self.row.to_numpy(float)) / np.array(list(SCALES.values()))
        self.points, self.costs = grid.to_numpy(), change.sum(axis=1)

    def least(self, holds: Callable[[Fraction, Fraction], bool]) -> float | None:
        """Cost of the cheapest point of class 1 for which something holds, exactly; None without one."""
        for k in np.argsort(self.costs, kind="stable"):
            if holds(*(Fraction(float(v)) for v in self.points[k])):
                return float(self.costs[k])
        return None


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return Pairs()


def window(low: str, high: str) -> tuple[Sequence[Linear], Callable[[Fraction, Fraction], bool]]:
    """``low <= a - 0.7 b <= high``, as constraints and exactly."""
    weights = {"a": 1, "b": -0.7}
    return (
        [Linear(weights, ">=", float(low)), Linear(weights, "<=", float(high))],
        lambda a, b: Fraction(low) <= a - Fraction("0.7") * b <= Fraction(high),
    )


WINDOWS = [("110.3", "110.32"), ("120.85", "120.87"), ("131.9", "131.92"), ("110.01", "110.015"), ("121.26", "121.265")]


@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
@pytest.mark.parametrize("ends", WINDOWS)
def test_narrow_windows_equal_an_enumeration(pairs: Pairs, ends: tuple[str, str], solver: str) -> None:
    constraints, holds = window(*ends)
    found, least = pairs.explainer.explain(pairs.row, 1, constraints=constraints, solver=solver)[0], pairs.least(holds)
    # that no numbers of wide cells fall into a window thinner than their steps may take too long to tell
    assert found.status in (("infeasible", "unknown") if least is None else ("optimal",))
    assert found.cost == (None if least is None else pytest.approx(least, rel=1e-9))


@pytest.mark.parametrize("ends", WINDOWS)
def test_nothing_is_claimed_of_numbers_that_were_not_tried(
    pairs: Pairs, ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sliding, "NUMBERS", 0)
    constraints, holds = window(*ends)
    found, least = pairs.explainer.explain(pairs.row, 1, constraints=constraints)[0], pairs.least(holds)
    if least is not None:
        assert found.bound <= least * (1 + 1e-9)
    if found.status in ("feasible", "unknown"):
        assert "rounding" in found.message


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("ends", WINDOWS[:3])
def test_a_gap_is_kept_by_the_numbers_and_not_by_the_solver(pairs: Pairs, ends: tuple[str, str], solver: str) -> None:
    constraints, holds = window(*ends)
    found = pairs.explainer.explain(pairs.row, 1, "l2", constraints=constraints, solver=solver, mip_gap=0.05)[0]
    costs = ((pairs.points - pairs.row.to_numpy(float)) / np.array(list(SCALES.values()))) ** 2
    inside = [holds(*(Fraction(float(v)) for v in point)) for point in pairs.points]
    least = costs.sum(axis=1)[inside].min()
    assert found.bound <= least * (1 + 1e-9)
    assert found.gap <= 0.05 * (1 + 1e-9)
    assert least * (1 - 1e-9) <= found.cost <= least / 0.95


@pytest.mark.parametrize("apart", ["0.1", "0.15", "0.2"])
def test_later_answers_by_distance_equal_an_enumeration(pairs: Pairs, apart: str) -> None:
    settings: dict[str, Any] = {"n_explanations": 2, "diversity": "distance", "min_distance": float(apart)}
    first, second = pairs.explainer.explain(pairs.row, 1, **settings)
    at = [Fraction(float(v)) for v in first.counterfactual.iloc[0]]
    least = pairs.least(lambda a, b: abs(a - at[0]) / 87 + abs(b - at[1]) / 91 >= Fraction(apart))
    assert least is not None
    assert second.status == "optimal"
    assert second.cost == pytest.approx(least, rel=1e-9)


def test_kinks_of_a_distance_fall_between_numbers_of_float32() -> None:
    """The cheapest slides of a Mahalanobis distance by absolute values lie where a form is 0, which float32 misses."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3)), columns=list("abc")).astype("float32")
    y = LogisticRegression().fit(table, table.a > 0).predict(table)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(table, y)
    explainer = Explainer(model, data=table)
    for k in np.flatnonzero(~model.predict(table))[:3].tolist():
        found = explainer.explain(table.iloc[[k]], True, norm="mahalanobis_l1")[0]
        assert model.predict(found.counterfactual)[0]
        wide = explainer.explain(table.iloc[[k]].astype("float64"), True, norm="mahalanobis_l1")[0]
        assert found.bound <= found.cost * (1 + 1e-9)
        assert found.cost == pytest.approx(wide.cost, rel=1e-5)


@pytest.mark.parametrize("norm", ["l1", "l2", "mahalanobis", "mahalanobis_l1"])
@pytest.mark.parametrize("seed", range(6))
def test_whole_numbers_stay_whole_beside_narrow_ones(seed: int, norm: str) -> None:
    """Of a wide range, so that they slide, in a window with a column of float16, against all points."""
    drawn, rng = np.random.default_rng(0), np.random.default_rng(seed)
    halves = np.unique(np.arange(1000, 1050, 0.5).astype("float16").astype(float))  # from 1024 on whole numbers
    table = pd.DataFrame({"a": drawn.choice(halves, 200), "n": drawn.integers(0, 4000, 200)})
    table = table.astype({"a": "float16", "n": "int32"})
    model = DecisionTreeClassifier(max_depth=1, random_state=0).fit(table, table.a.astype(float) > 1030)
    explainer, row = Explainer(model, table), table[~model.predict(table)].head(1)
    weight = int(rng.integers(1, 64)) / 8
    least = float(row.a.iloc[0] + weight * row.n.iloc[0]) + float(rng.integers(-2000, 2000)) + rng.random()
    weights = {"a": 1, "n": weight}
    constraints = [Linear(weights, ">=", least), Linear(weights, "<=", least + 0.5)]
    a, n = (grid.ravel() for grid in np.meshgrid(halves, np.arange(4000.0), indexing="ij"))
    inside = (a > 1030) & (a <= table.a.max()) & (n >= table.n.min()) & (n <= table.n.max())
    inside &= (a + weight * n >= least) & (a + weight * n <= least + 0.5)
    points = np.column_stack([a[inside], n[inside]])
    found = explainer.explain(row, True, constraints=constraints, norm=norm)[0]
    if not len(points):
        assert found.status == "infeasible"
        return
    assert found.status == "optimal"
    assert found.verified
    assert found.cost == pytest.approx(explainer.problem(row, True, norm).costs(points).min(), rel=1e-8)

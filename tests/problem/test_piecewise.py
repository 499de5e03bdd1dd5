"""Functions of a number as two sides of its value: what lies beyond the limits does not matter."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, Implication
from ocf.problem.piecewise import Sides, sides_of

INF = np.inf


def above(limit: float):
    return lambda v: Fraction(int(v > limit))


@pytest.mark.parametrize("unit", [0.0, 0.25])
@pytest.mark.parametrize("limits", [(0.0, 1.0), (-INF, 1.0), (0.5, 1.0), (0.25, 0.5), (0.5, 0.5)])
def test_a_jump_beyond_the_limits_is_none(limits: tuple[float, float], unit: float) -> None:
    assert sides_of(above(1.0), np.array([1.0]), 0.5, limits, unit) == Sides(0, 0, 0, 0)


@pytest.mark.parametrize("unit", [0.0, 0.25])
@pytest.mark.parametrize("limits", [(-INF, INF), (0.0, 0.75), (0.5, 0.75), (0.25, 0.5), (0.75, 2.0), (0.5, INF)])
def test_a_line_is_one_however_narrow_the_limits(limits: tuple[float, float], unit: float) -> None:
    found = sides_of(lambda v: 3 * Fraction(v) + 1, np.zeros(0), 0.5, limits, unit)
    assert found == Sides(0, 0, -3, 3)


@pytest.mark.parametrize("unit", [0.0, 0.25])
def test_a_jump_of_leaving_the_origin(unit: float) -> None:
    found = sides_of(above(0.5), np.array([0.5]), 0.5, (0.0, 2.0), unit)
    assert found == Sides(0, 1, 0, 0)
    assert sides_of(above(1.0), np.array([1.0]), 0.5, (0.0, 2.0), unit) is None


@pytest.mark.parametrize("end", ["min", "max"])
@pytest.mark.parametrize("seed", [2, 7, 24, 31, 33])
def test_a_conclusion_that_always_holds_changes_nothing(seed: int, end: str) -> None:
    """Beyond the range it would not hold: so the number was said to break it wherever it went."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(80, 3)) * 0.4, columns=list("abc"))
    table["i"] = rng.integers(0, 3, 80)
    model = make_pipeline(PCA(2), DecisionTreeClassifier(max_depth=3, random_state=0)).fit(table, table.sum(axis=1) > 0)
    explainer, row = Explainer(model, data=table), table.iloc[[0]]
    holds = Implication({"i": {"min": 0}}, {"b": {end: float(getattr(table.b, end)())}})
    target = not model.predict(row)[0]
    (alone,) = explainer.explain(row, target=target)
    (beside,) = explainer.explain(row, target=target, constraints=[holds])
    assert (alone.status, beside.status) == ("optimal", "optimal"), beside.message
    assert beside.cost == pytest.approx(alone.cost, rel=1e-9)

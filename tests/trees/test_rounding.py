from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf import Explainer
from ocf.problem.problem import Problem
from ocf.trees import rounding
from ocf.trees.ensemble import SplitKind
from ocf.trees.rounding import is_exact, uncertain, units

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300).filter(
    lambda v: v == 0 or abs(v) > 1e-290
)


@given(finite)
def test_the_unit_is_the_largest_power_of_two_that_divides(value: float) -> None:
    unit = float(units(value))
    if value == 0:
        assert unit == math.inf
        return
    assert math.frexp(unit)[0] == 0.5
    assert (Fraction(value) / Fraction(unit)).denominator == 1
    assert (Fraction(value) / (2 * Fraction(unit))).denominator == 2


def test_what_is_not_finite_divides_nothing() -> None:
    assert units([np.nan, np.inf, -0.0, 3.0, 0.75]).tolist() == [np.inf, np.inf, np.inf, 1.0, 0.25]


@given(
    st.lists(st.tuples(st.integers(-1000, 1000), st.integers(-12, 12)), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_sums_that_are_called_exact_are_so_in_every_order(parts: list[tuple[int, int]], random: object) -> None:
    values = [number * 2.0**power for number, power in parts]
    assert is_exact(units(values).min(), np.abs(values).sum())
    random.shuffle(values)  # type: ignore[attr-defined]
    total = 0.0
    for value in values:
        total += value
    assert Fraction(total) == sum(map(Fraction, values))


def test_sums_that_round_are_not_called_exact() -> None:
    for values in ([0.1, 0.2, 0.3], [2.0**53, 1.0], [1.0, 2.0**-53]):
        assert not is_exact(units(values).min(), np.abs(values).sum())


@pytest.mark.parametrize("at_once", [1, 7, 2**20])
def test_rows_near_a_split_of_their_way_are_uncertain(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many nodes share a total and are looked at together."""
    monkeypatch.setattr(rounding, "AT_ONCE", at_once)
    x, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), PCA(2), RandomForestClassifier(5, max_depth=4, random_state=0)).fit(x, y)
    problem = Explainer(model, data=x).problem(x[:1], target=1)
    assert isinstance(problem, Problem)
    ensemble = problem.trees
    nodes, rows = np.flatnonzero(ensemble.kind == SplitKind.OBLIQUE), x.copy()
    for k, v in enumerate(nodes[: len(rows) : 2].tolist()):  # moved upon thresholds, up to rounding
        features, _, weights = ensemble.oblique_entries(v)
        total = weights @ rows[k, features]
        rows[k, features[0]] += (ensemble.threshold[v] - total) / weights[0]
    wanted = np.zeros(len(rows), bool)
    for row, leaves in enumerate(ensemble.apply(rows)):
        for v in nodes.tolist():
            terms = ensemble.oblique_terms(v, rows[[row]])[0]
            near = abs(terms.sum() - ensemble.threshold[v]) <= 2 * ensemble.oblique_error_bound(v, np.abs(terms).sum())
            wanted[row] |= near and leaves[ensemble.node_tree[v]] in ensemble.leaves_below(v)
    assert 0 < wanted.sum() < len(rows)
    np.testing.assert_array_equal(uncertain(ensemble, rows), wanted)

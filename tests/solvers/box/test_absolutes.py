"""The least sum of absolute values over a box, against a linear program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy.optimize import linprog

from ocf.arrays import FloatArray
from ocf.solvers.box.absolutes import least_sum, new_table


@njit
def found_in(forms: Any, up: Any, down: Any, low: Any, high: Any, t: Any, table: Any, slope: Any) -> float:
    return least_sum(forms, up, down, low, high, t, table, slope)


def value(forms: FloatArray, up: FloatArray, down: FloatArray, t: FloatArray) -> float:
    return float(np.abs(forms @ t).sum() + up @ np.maximum(t, 0) + down @ np.maximum(-t, 0))


def optimum(forms: FloatArray, up: FloatArray, down: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Of the sums, and of the parts of each change above and below 0, which cost something."""
    n, m = forms.shape
    one = np.eye(m)
    cost = np.concatenate([np.zeros(m), np.ones(n), up, down])
    above = np.block([[forms, -np.eye(n), np.zeros((n, 2 * m))], [-forms, -np.eye(n), np.zeros((n, 2 * m))]])
    split = np.block([one, np.zeros((m, n)), -one, one])
    bounds = [*zip(low, high, strict=True), *[(0, None)] * (n + 2 * m)]
    return float(linprog(cost, above, np.zeros(2 * n), split, np.zeros(m), bounds).fun)


@pytest.mark.parametrize("kind", ["whole", "singular", "more", "none", "equal"])
@pytest.mark.parametrize("bent", [False, True])
def test_the_least_point_is_that_of_a_linear_program(kind: str, bent: bool) -> None:
    rng, loose = np.random.default_rng(len(kind) + bent), 0
    for _ in range(60):
        m = int(rng.integers(1, 9))
        n = {"whole": m, "singular": max(m // 2, 1), "more": 2 * m, "none": 0, "equal": m}[kind]
        forms = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-2, 2, (n, 1))
        if kind == "equal":  # ties in every step
            forms = rng.integers(-1, 2, (n, m)).astype(float)
        centre, half = rng.integers(-2, 3, m).astype(float), np.abs(rng.integers(0, 3, m)).astype(float)
        low, high = centre - half, centre + half
        up, down = (rng.uniform(0, 1, m) * bent * (rng.random(m) < 0.7) for _ in range(2))
        start, table, slope = rng.normal(size=m), new_table(n, m), np.zeros(m)
        bound = found_in(forms, up, down, low, high, start, table, slope)
        known = optimum(forms, up, down, low, high)
        at = value(forms, up, down, start)
        assert ((low <= start) & (start <= high)).all()
        assert at == pytest.approx(known, rel=1e-8, abs=1e-8)
        assert bound <= at
        loose += bound < known - 1e-8 * (1 + known)
        assert (np.abs(table.sign) <= 1).all()
        np.testing.assert_allclose(slope, forms.T @ table.sign, atol=1e-9 * (1 + np.abs(forms).sum()))
    assert loose <= (2 if kind == "equal" else 0), "where many ties meet, steps may end in the least point too early"


def test_nothing_moves_from_the_row_itself() -> None:
    forms = np.random.default_rng(0).normal(size=(4, 4))
    low, high, nothing, at = np.full(4, -1.0), np.full(4, 2.0), np.zeros(4), np.zeros(4)
    assert found_in(forms, nothing, nothing, low, high, at, new_table(4, 4), np.zeros(4)) == pytest.approx(0, abs=1e-12)
    assert not at.any()

"""Multipliers from a point alone: at the optimum they prove it, elsewhere they prove nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.solve.active_set import solve_by_active_set
from ocf.solve.multipliers import multipliers_at
from ocf.solve.polytope import Polytope

from .test_polytope import random_polytope


@given(seed=st.integers(0, 2**32 - 1), kinks=st.booleans())
def test_optima_of_quadratic_forms_are_proved(seed: int, kinks: bool) -> None:
    rng = np.random.default_rng(seed)
    p = random_polytope(rng, int(rng.integers(1, 6)), int(rng.integers(0, 3)), kinks=kinks)
    found = solve_by_active_set(p)
    if found is None:
        return
    x, known = found
    y = multipliers_at(p, x)
    assert (y >= 0).all()
    assert p.bound(y, x) <= p.cost(x) + 1e-12
    assert p.bound(y, x) == pytest.approx(p.bound(known, x), abs=1e-8)


def test_a_vertex_with_a_kink_an_end_and_a_relation() -> None:
    # 2 x + y + z >= 4: x ends at 1, y rises, z stays where it is; the rises of x and y sum up to at most 3
    p = Polytope(
        np.array([[-2.0, -1.0, -1.0]]), np.array([-4.0]), np.zeros(3), np.array([1.0, 9.0, 9.0]), np.zeros(3),
        np.ones(3), np.array([1.0, 1.0, 1.5]), np.zeros(3), np.zeros(3), None,
        np.zeros((1, 3)), np.array([[1.0, 1.0, 0.0]]), np.array([3.0]),
    )  # fmt: skip
    y = multipliers_at(p, np.array([1.0, 2.0, 0.0]))
    assert p.bound(y) == pytest.approx(3.0, rel=1e-12)
    # the relation is tight at another vertex, which is not the cheapest
    assert p.bound(multipliers_at(p, np.array([0.5, 2.5, 0.5]))) < 3.3


def test_a_point_that_is_not_optimal_is_not_proved() -> None:
    p = Polytope(
        np.array([[-1.0, -1.0]]), np.array([-1.0]), np.zeros(2), np.ones(2), np.zeros(2),
        np.ones(2), np.array([1.0, 2.0]), np.zeros(2), np.zeros(2),
    )  # fmt: skip
    assert p.bound(multipliers_at(p, np.array([1.0, 0.0]))) == pytest.approx(1.0, rel=1e-12)
    assert p.bound(multipliers_at(p, np.array([0.0, 1.0]))) <= 1.0

"""Continuous problems that differ in sides and bounds, by a solver that starts anew."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
import scipy.sparse as sp

from ocf.solvers import SOLVERS, Solver, StandardForm, get_solver
from ocf.solvers.adapter import Claim
from ocf.solvers.continuous import ColdSolver
from ocf.solvers.highs_warm import WarmHighs


def problem(rng: np.random.Generator, n: int) -> StandardForm:
    """Two rows with upper sides, columns from 0 to 1, costs above 0."""
    return StandardForm(
        c=rng.uniform(1, 2, n),
        c0=0.0,
        A=sp.csr_array(-rng.uniform(0.5, 1, (2, n))),
        row_lower=np.full(2, -np.inf),
        row_upper=np.full(2, -1.0),
        lower=np.zeros(n),
        upper=np.ones(n),
        integer=np.zeros(n, bool),
    )


@pytest.mark.parametrize("name", SOLVERS)
def test_points_are_those_of_highs(name: str) -> None:
    rng = np.random.default_rng(0)
    form = problem(rng, 4)
    warm, cold = WarmHighs(form), ColdSolver(form, cast(Solver, get_solver(name)))
    for side in (-1.0, -1.5, -0.5):
        sides, upper = np.full(2, side), rng.uniform(0.8, 1, 4)
        known, found = (solver.solve(sides, form.lower, upper, time_limit=None) for solver in (warm, cold))
        assert found.claim is Claim.OPTIMAL
        assert found.x == pytest.approx(known.x, abs=1e-8)
        assert found.multipliers is None
    assert cold.version


def test_squares_of_all_sizes_are_solved_for_their_own_cost() -> None:
    # the sum of q d² subject to a'd >= 1 is least at d = t a / q, where it costs t, 1 / t the sum of a² / q
    q, a = np.array([1e-10, 1e-4, 1.0, 1e3]), np.array([2e-6, 1e-3, 0.5, 1.0])
    t = 1 / (a * a / q).sum()
    form = StandardForm(
        c=np.append(np.zeros(4), [0.1, 0.2]),
        c0=0.0,
        A=sp.csr_array([[*-a, 0, 0], [0, 0, 0, 0, -1, -1]]),
        row_lower=np.full(2, -np.inf),
        row_upper=np.full(2, -1.0),
        lower=np.append(np.full(4, -np.inf), [0, 0]),
        upper=np.append(np.full(4, np.inf), [1, 1]),
        integer=np.zeros(6, bool),
        Q=sp.diags_array(np.append(2 * q, [0, 0])),
    )
    warm = WarmHighs(form)
    for size in (1.0, 3.0):  # the second starts where the first ended
        found = warm.solve(np.array([-size, -1.0]))
        assert found.claim is Claim.OPTIMAL
        assert found.x is not None
        assert found.multipliers is not None
        assert found.x == pytest.approx(np.append(size * t * a / q, [1, 0]), rel=1e-5, abs=1e-6)
        assert found.multipliers == pytest.approx([2 * size * t, 0.1], rel=1e-5)
    whole = get_solver("highs").solve(form)
    assert whole.objective == pytest.approx(t + 0.1, rel=1e-6)
    assert whole.bound <= t + 0.1 + 1e-6
    warm.append_rows([[0.0, 0, 0, 0, 1, 0]], [-np.inf], [0.25])
    again = warm.solve()
    assert again.x is not None
    assert again.x[4:] == pytest.approx([0.25, 0.75])


def test_multipliers_of_huge_rows_are_those_of_the_rows_as_they_are() -> None:
    form, factor = problem(np.random.default_rng(3), 5), np.array([2.0**90, 1.0])
    small, large = WarmHighs(form), WarmHighs(form.in_units(rows=factor))
    row = np.array([1.0, 0, 0, 0, 0])
    for side in (-1.0, -1.5):
        known, found = small.solve(np.full(len(factor), side)), large.solve(side * factor)
        assert found.x is not None
        assert found.x == pytest.approx(known.x)
        assert found.multipliers is not None
        assert found.multipliers * factor == pytest.approx(known.multipliers)
    small.append_rows(row, [-np.inf], [0.25])
    large.append_rows(row * 2.0**60, [-np.inf], [2.0**58])
    known, found = small.solve(), large.solve()
    assert found.x is not None
    assert found.x[0] <= 0.25 + 1e-9
    assert found.x == pytest.approx(known.x)


@pytest.mark.parametrize("name", SOLVERS)
def test_what_has_no_point_is_infeasible(name: str) -> None:
    form = problem(np.random.default_rng(1), 3)
    found = ColdSolver(form, cast(Solver, get_solver(name))).solve(np.full(2, -9.0), form.lower, form.upper)
    assert (found.claim, found.x) == (Claim.INFEASIBLE, None)

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


@pytest.mark.parametrize("name", SOLVERS)
def test_what_has_no_point_is_infeasible(name: str) -> None:
    form = problem(np.random.default_rng(1), 3)
    found = ColdSolver(form, cast(Solver, get_solver(name))).solve(np.full(2, -9.0), form.lower, form.upper)
    assert (found.claim, found.x) == (Claim.INFEASIBLE, None)

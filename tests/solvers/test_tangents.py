"""Tangents of squares: never above the objective, and exact where they are followed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from small_problems import violation

from ocf.solvers import get_solver
from ocf.solvers.result import SolverOptions
from ocf.solvers.standard_form import StandardForm
from ocf.solvers.tangents import Tangents

from .forms import all_points


def quadratic(seed: int, *, dense: bool, size: float = 1.0) -> StandardForm:
    """Whole numbers from -2 to 2 that three rows keep from 0, with a convex cost."""
    rng = np.random.default_rng(seed)
    n = 4
    root = rng.normal(size=(n, n)) if dense else np.diag(rng.uniform(0.1, 3, n) * (rng.random(n) < 0.8))
    return StandardForm(
        c=size * rng.normal(size=n) * (rng.random() < 0.5),
        c0=0.25 * size,
        Q=sp.csr_array(size * root.T @ root),
        A=sp.csr_array(rng.integers(-3, 4, (3, n)).astype(float)),
        row_lower=np.full(3, 1.0),
        row_upper=np.full(3, np.inf),
        lower=np.full(n, -2.0),
        upper=np.full(n, 2.0),
        integer=np.ones(n, bool),
    )


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_tangents_are_never_above(seed: int, dense: bool) -> None:
    form = quadratic(seed, dense=dense)
    for upper in (np.inf, 3.0):
        squares = Tangents.of(form, upper)
        linear, n = squares.form, form.n_cols
        for x in all_points(n)[seed::97]:
            for own in (linear, squares.followed(linear, np.append(x, np.zeros(linear.n_cols - n)))):
                rows = own.A[form.n_rows :]
                # of a row of one square alone its least value at x
                needed = np.zeros(own.n_cols - n)
                np.maximum.at(needed, rows[:, n:].nonzero()[1], own.row_lower[form.n_rows :] - rows[:, :n] @ x)
                value = own.objective(np.append(x, needed))
                assert value <= form.objective(x) + 1e-11
            assert value == pytest.approx(form.objective(x), rel=1e-8, abs=1e-8)  # followed there


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("seed", range(1))
def test_following_ends_at_the_optimum(seed: int, solver: str, dense: bool, size: float) -> None:
    form = quadratic(seed, dense=dense, size=size)
    costs = [form.objective(x) for x in all_points(form.n_cols) if violation(form, x) == 0]
    squares = Tangents.of(form, 2 * max(costs) if costs and max(costs) > 0 else np.inf)
    linear = squares.form
    for _ in range(30):
        result = get_solver(solver).solve(linear, SolverOptions())
        if result.x is None:
            break
        assert result.bound <= min(costs) + 1e-6 * size
        linear = squares.followed(linear, result.x)
    assert bool(costs) == (result.x is not None)
    if costs:
        assert result.bound == pytest.approx(min(costs), rel=1e-6, abs=1e-6 * size)

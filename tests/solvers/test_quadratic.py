"""Across files: quadratic objectives, from Pyomo to HiGHS where continuous and to SCIP with integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest

from ocf.errors import SolverError
from ocf.solvers import Status, compile_model, get_solver
from ocf.solvers.adapter import solve_by
from ocf.solvers.highs_warm import WarmHighs
from ocf.solvers.result import SolveResult
from ocf.solvers.standard_form import StandardForm, Vector


@pytest.fixture
def form() -> StandardForm:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), bounds=(-5, 5))
    model.z = pyo.Var(bounds=(0, 3), domain=pyo.Integers)
    model.cost = pyo.Objective(expr=(model.x[0] - 1) ** 2 + 2 * (model.x[1] + model.x[0]) ** 2 + (model.z - 1.4) ** 2)
    model.row = pyo.Constraint(expr=model.x[0] + model.x[1] + model.z >= 2)
    return compile_model(model, [model.x[0], model.x[1], model.z])


def test_the_form_is_the_model(form: StandardForm) -> None:
    for x in np.random.default_rng(0).normal(size=(20, 3)):
        wanted = (x[0] - 1) ** 2 + 2 * (x[1] + x[0]) ** 2 + (x[2] - 1.4) ** 2
        assert form.objective(x) == pytest.approx(wanted)


def test_integers_go_to_scip(form: StandardForm) -> None:
    # z = 2 leaves x0 = 1, x1 = -1 free of cost
    result = get_solver("scip").solve(form)
    assert result.objective == pytest.approx(0.36, abs=1e-5)
    assert result.x is not None
    assert result.x[2] == 2.0
    with pytest.raises(SolverError, match="scip"):
        get_solver("highs").solve(form)


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_continuous_ones_go_to_either(form: StandardForm, solver: str) -> None:
    smooth = replace(form, integer=np.zeros(3, bool))
    result = get_solver(solver).solve(smooth)
    # min 2 s**2 + (z - 1.4)**2 subject to s + z = 2 is at s = 0.2
    assert result.objective == pytest.approx(0.24, abs=1e-5)
    assert result.status in (Status.OPTIMAL, Status.FEASIBLE)
    reduced = smooth.substitute(np.eye(3)[:, :2], [0.0, 0.0, 1.4])
    assert get_solver(solver).solve(reduced.form).objective == pytest.approx(2 * 0.6**2, abs=1e-5)


def test_a_family_restarts_with_other_sides(form: StandardForm) -> None:
    smooth = replace(form, integer=np.zeros(3, bool), A=-form.A, row_lower=-form.row_upper, row_upper=-form.row_lower)
    family = WarmHighs(smooth)
    for need in (2.0, 2.5, 3.0):
        found = family.solve(row_upper=np.array([-need]))
        gap = need - 1.4
        assert found.x is not None
        assert found.multipliers is not None
        assert smooth.objective(found.x) == pytest.approx(gap**2 * 2 / 3, abs=1e-5)
        assert found.multipliers[0] == pytest.approx(gap * 4 / 3, abs=1e-4)


@pytest.mark.parametrize("cross_terms", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_squares_of_very_different_costs_against_enumeration(seed: int, cross_terms: bool) -> None:
    """A few units within ranges of up to a million: the optimum costs as little as 1e-12, the first square 1."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(0, 7, 2)
    weights, need = rng.integers(1, 4, 2).astype(float), float(rng.integers(1, 6)) - 0.5
    half = np.eye(2) / scale
    if cross_terms:
        half = (rng.integers(-2, 3, (2, 2)) + 3 * np.eye(2)) / scale
    square = half.T @ half
    form = StandardForm(
        c=np.zeros(2), c0=0.0, A=weights[None], row_lower=[need], row_upper=[np.inf], lower=[-1e6, -1e6],
        upper=[1e6, 1e6], integer=[True, False], Q=2 * square,
    )  # fmt: skip
    whole = np.arange(-50.0, 51.0)
    rest = np.maximum(-square[0, 1] * whole / square[1, 1], (need - weights[0] * whole) / weights[1])
    moves = np.stack([whole, rest], axis=1)
    best = np.einsum("ni,ij,nj->n", moves, square, moves).min()
    found = get_solver("scip").solve(form)
    assert found.objective == pytest.approx(best, rel=1e-4)
    assert found.bound <= best * (1 + 1e-4)


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_solver_without_integers_calls_no_dearer_point_optimal(seed: int, near: bool) -> None:
    """Ranges of 1 to 1e12, and an optimum in their middle, or a few units away: by its closed form."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(0, 13, 3)
    weights = rng.uniform(0.2, 2.0, 3) * rng.choice([-1, 1], 3) / (1 if near else scale)
    need = float(rng.uniform(0.5, 5.0) if near else rng.uniform(0.02, 0.15) * (abs(weights) @ scale))
    form = StandardForm(
        c=np.zeros(3), c0=0.0, A=weights[None], row_lower=[need], row_upper=[np.inf], lower=-100 * scale,
        upper=100 * scale, integer=[False] * 3, Q=np.diag(2 / scale**2),
    )  # fmt: skip
    best = need**2 / ((weights * scale) ** 2).sum()
    found = get_solver("highs").solve(form)
    assert found.status is Status.OPTIMAL or near
    if found.status is Status.OPTIMAL:
        assert found.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_a_cutoff_takes_nothing_away_that_is_cheaper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    square, c = 10.0 ** rng.integers(-4, 3, 2), rng.normal(size=2) * 10.0 ** rng.integers(-4, 2, 2)
    low, high, need = np.array([-20.0, -30.0]), np.array([20.0, 25.0]), float(rng.integers(-5, 20))
    form = StandardForm(
        c=c, c0=7.0, A=[[1.0, 1.0]], row_lower=[need], row_upper=[np.inf], lower=low, upper=high,
        integer=[True, False], Q=np.diag(2 * square),
    )  # fmt: skip
    whole = np.arange(low[0], high[0] + 1)
    rest = np.clip(np.maximum(-c[1] / (2 * square[1]), need - whole), low[1], high[1])
    x = np.stack([whole, rest], axis=1)[whole + rest >= need - 1e-9]
    best = 7.0 + (x**2 @ square + x @ c).min()
    for cutoff in (best + 1e-3 * abs(best - 7.0) + 1e-6, best + 10 * abs(best - 7.0) + 1e-3):
        found = get_solver("scip").solve(form, cutoff=cutoff)
        assert found.objective == pytest.approx(best, rel=1e-5)
    assert get_solver("scip").solve(form, cutoff=best - 0.1 * abs(best - 7.0)).status is Status.INFEASIBLE


@pytest.mark.parametrize("seed", range(12))
def test_squares_are_not_sized_by_what_rounding_leaves(seed: int) -> None:
    """Of a square of a sum that is 0 only the rounding of products is left; a small cost of its own is asked about."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=3)
    form = StandardForm(
        c=np.zeros(3), c0=0.0, A=np.zeros((0, 3)), row_lower=[], row_upper=[], lower=[-9] * 3, upper=[9] * 3,
        integer=[False] * 3, Q=2 * np.outer(root, root),
    )  # fmt: skip
    free = np.array([*rng.random(2), 0.0])
    free[2] = -(root @ free) / root[2]
    for x, calls in ((free, 1), (free + 1e-4, 2)):
        asked = list[object]()

        def once(start: object, _: object, x: Vector = x, asked: list[object] = asked) -> SolveResult:
            asked.append(start)
            return SolveResult(Status.FEASIBLE, x, form.objective(x))

        solve_by(once, (), form, None, None, None)
        assert len(asked) == calls

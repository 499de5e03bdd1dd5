"""An LP says the same in columns of cells as in columns of steps, and is smaller."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from small_problems import large_problem, random_problem

from ocf.arrays import FloatArray
from ocf.solvers.box.branching import restrict
from ocf.solvers.box.cell_columns import CellColumns, steps_of
from ocf.solvers.box.instance import make_instance, whole
from ocf.solvers.box.relaxation import Relaxation
from ocf.solvers.standard_form import StandardForm

from .cases import compiled


def optimum(form: StandardForm, lower: FloatArray, upper: FloatArray) -> tuple[float, FloatArray | None]:
    """Optimum of the relaxation within bounds, and a point; inf and None where there is none."""
    G = sp.vstack([form.A, -form.A])
    h = np.concatenate([form.row_upper, -form.row_lower])
    answer = linprog(form.c, G[np.isfinite(h)], h[np.isfinite(h)], bounds=np.column_stack([lower, upper]))
    return (answer.fun + form.c0, answer.x) if answer.status == 0 else (np.inf, None)


@pytest.mark.parametrize("problem", [random_problem, large_problem])
def test_both_have_the_same_optima_and_points(problem: object) -> None:
    assert callable(problem)
    fewer = solved = empty = 0
    for seed in range(25 if problem is random_problem else 5):
        cells = problem(seed)
        instance, rng = make_instance(cells), np.random.default_rng(seed)
        lp = Relaxation(compiled(cells), cells, instance, whole(instance))
        if lp.infeasible or lp.decided:
            continue
        steps = steps_of(lp.form, lp.columns.cell, instance.offsets, instance.ordered)
        by_cells = CellColumns(lp.form, steps)
        assert by_cells.form.n_cols == lp.form.n_cols + len(steps)
        fewer += lp.form.n_rows + len(steps) - by_cells.form.n_rows
        domain = whole(instance)
        for _ in range(4):
            lower, upper = lp.bounds_of(domain)
            if (lower > upper).any():
                break
            lower, upper = lower.copy(), upper.copy()
            least, most = by_cells.bounds(lower, upper)
            known, _ = optimum(lp.form, lower, upper)
            found, point = optimum(by_cells.form, least, most) if (least <= most).all() else (np.inf, None)
            assert found == pytest.approx(known, rel=1e-7, abs=1e-7)
            if point is None:
                empty += 1
            else:
                solved += 1
                back = by_cells.values(point)
                assert (lower - 1e-7 <= back).all()
                assert (back <= upper + 1e-7).all()
                assert (lp.form.A @ back >= lp.form.row_lower - 1e-6).all()
                assert (lp.form.A @ back <= lp.form.row_upper + 1e-6).all()
                assert lp.form.c @ back + lp.form.c0 == pytest.approx(found, abs=1e-7)
            f = int(rng.integers(len(instance.ordered)))
            first, last = instance.offsets[f], instance.offsets[f + 1] - 1
            if first < last:
                restrict(instance, domain, f, int(rng.integers(first + 1, last + 1)), bool(rng.random() < 0.5))
    assert fewer > 0
    assert solved > 10


def test_rows_of_one_feature_that_cells_fulfil_are_left_out_and_others_are_not() -> None:
    """Steps in columns 1 to 3, a column of its own, and rows: order, a bound, one with both."""
    A = np.array(
        [
            [0.0, 1.0, -1.0, 0.0],  # order
            [0.0, 0.0, 1.0, -1.0],
            [0.0, 1.0, 1.0, 1.0],  # at most two cells from the first: says something
            [-1.0, 1.0, 0.0, -1.0],  # the column at most what lies from the second to the third cell
            [-1.0, 1.0, 0.0, 0.0],  # or in all but the first
        ]
    )
    form = StandardForm(
        np.array([0.0, 1.0, 1.0, 2.0]), 5.0, sp.csr_array(A), np.array([0.0, 0.0, -np.inf, 0.0, 0.0]),
        np.array([np.inf, np.inf, 2.0, np.inf, np.inf]), np.zeros(4), np.ones(4), np.zeros(4, bool),
    )  # fmt: skip
    steps = steps_of(form, np.array([-1, 1, 2, 3]), np.array([0, 4]), np.array([True]))
    assert [own.tolist() for own in steps] == [[1, 2, 3]]
    by_cells = CellColumns(form, steps)
    # the column itself, then the four cells; three cells in a row become the one that is not among them
    assert by_cells.form.A.todense().tolist() == [
        [0.0, 0.0, 1.0, 2.0, 3.0],
        [-1.0, 0.0, 1.0, 1.0, 0.0],
        [-1.0, -1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 1.0, 1.0, 1.0],
    ]
    assert by_cells.form.row_lower.tolist() == [-np.inf, 0.0, -1.0, 1.0]
    assert by_cells.form.row_upper.tolist() == [2.0, np.inf, np.inf, 1.0]
    assert by_cells.form.c.tolist() == [0.0, 0.0, 1.0, 2.0, 4.0]
    assert by_cells.form.c0 == 5.0
    assert by_cells.multipliers(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]
    assert by_cells.values(np.array([0.25, 0.5, 0.0, 0.25, 0.25])).tolist() == [0.25, 0.5, 0.5, 0.25]
    # from the second cell on, and not beyond the third
    lower, upper = by_cells.bounds(np.array([0.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert lower.tolist() == [0.0] * 5
    assert upper.tolist() == [1.0, 0.0, 1.0, 1.0, 0.0]
    # in the third: it is there for sure
    lower, upper = by_cells.bounds(np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0]))
    assert lower.tolist() == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert upper.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_features_that_cannot_be_restated_stay_as_they_are() -> None:
    form = StandardForm(
        np.ones(4), 0.0, sp.csr_array((0, 4)), np.zeros(0), np.zeros(0), np.zeros(4),
        np.array([1.0, 1.0, 2.0, 1.0]), np.zeros(4, bool),
    )  # fmt: skip
    cell, offsets = np.array([-1, 0, 0, -1, 2, -1, 3, 1]), np.array([0, 3, 5, 6, 8])
    ordered = np.array([True, True, True, False])
    assert steps_of(form, cell, offsets, ordered) == []  # twice the same column, beyond 1, none, unordered
    same = CellColumns(form, []).form
    assert same.n_cols == 4
    assert same.upper.tolist() == form.upper.tolist()

"""Forms: what they check, what Pyomo's models become, and substitution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.errors import ProblemError
from ocf.solvers import StandardForm, compile_model

from .forms import WHOLE, all_points, exactly_feasible, form_of, small_forms

INF = np.inf


def test_a_form_is_checked():
    with pytest.raises(ProblemError, match=r"lower has shape \(1,\) where \(2,\) is needed"):
        form_of([[1, 1]], [0], [1], [0], [1, 1])
    with pytest.raises(ProblemError, match=r"upper\[1\] is NaN"):
        form_of([[1, 1]], [0], [1], [0, 0], [1, np.nan])
    with pytest.raises(ProblemError, match="finite"):
        form_of([[1, 1]], [0], [1], [0, 0], [1, 1], c=[1, INF])
    with pytest.raises(ProblemError, match="row_names has 2 names where 1 are needed"):
        form_of([[1, 1]], [0], [1], [0, 0], [1, 1], row_names=("a", "b"))


def test_the_matrix_is_kept_canonical_and_the_argument_unchanged():
    entries = sp.coo_array(([1.0, 2.0, 0.0, 4.0], ([0, 0, 0, 0], [1, 1, 0, 2])), shape=(1, 3))
    form = StandardForm([0, 0, 0], 0, entries, [0], [1], [0] * 3, [1] * 3, [False] * 3)
    assert form.A.indices.tolist() == [1, 2]
    assert form.A.data.tolist() == [3.0, 4.0]
    assert entries.nnz == 4


def test_looking_at_a_point():
    form = form_of([[1, 2], [3, -1]], [-INF, 1], [4, 1], [0, 0], [1, 5], [True, False], c=[2, 1], c0=0.5)
    x = [1.0, 2.0]
    assert form.objective(x) == 4.5
    assert form.activity(x).tolist() == [5.0, 1.0]


def test_other_numbers_leave_the_original_alone():
    form = form_of([[1, 2]], [0], [4], [0, 0], [1, 5], row_names=("a",))
    assert form.with_costs([3, 4], 1.0).objective([1, 1]) == 8.0
    assert form.with_bounds([1, 1], [1, 2]).lower.tolist() == [1, 1]
    longer = form.append_rows(sp.csr_array([[0.0, 1.0], [1.0, 0.0]]), 0.0, [1.0, 2.0])
    assert longer.A.toarray().tolist() == [[1, 2], [0, 1], [1, 0]]
    assert longer.row_upper.tolist() == [4, 1, 2]
    assert longer.row_names == ("a", "row1", "row2")
    assert form.append_rows([1.0, 1.0], -INF, 1.0).n_rows == 2
    assert (form.n_rows, form.objective([1, 1]), form.lower.tolist()) == (1, 2.0, [0, 0])
    with pytest.raises(ProblemError, match="3 columns"):
        form.append_rows([1.0, 1.0, 1.0], 0, 1)


def test_compile_gives_the_matrix_one_would_write():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 4))
    m.y = pyo.Var(domain=pyo.Binary)
    m.z = pyo.Var(domain=pyo.Integers, bounds=(-2, None))
    m.w = pyo.Var(initialize=3.0, bounds=(0, 9))
    m.w.fix()
    m.unused = pyo.Var(bounds=(-1, 1))
    m.unused_fixed = pyo.Var(initialize=0.25)
    m.unused_fixed.fix()
    m.equal = pyo.Constraint(expr=m.x + 2 * m.y + 1 == 3 + m.z)
    m.range = pyo.Constraint(expr=(-1, m.x - m.y + m.w, 5))
    m.least = pyo.Constraint(expr=m.z >= m.y - 4)
    m.most = pyo.Constraint(expr=3 * m.x <= 7)
    m.cost = pyo.Objective(expr=2 * m.x + m.z + m.w + 10)
    columns = [m.z, m.unused, m.y, m.w, m.unused_fixed, m.x]
    form = compile_model(m, columns, names=True)

    assert form.column_names == ("z", "unused", "y", "w", "unused_fixed", "x")
    assert form.row_names == ("equal", "range", "least", "most")
    sign = form.A.toarray()[2, 0]  # Pyomo may write the row either way round
    assert form.A.toarray().tolist() == [
        [-1, 0, 2, 0, 0, 1],
        [0, 0, -1, 0, 0, 1],
        [sign, 0, -sign, 0, 0, 0],
        [0, 0, 0, 0, 0, 3],
    ]
    least = [-4, INF] if sign > 0 else [-INF, 4]
    assert form.row_lower.tolist() == [2, -4, least[0], -INF]
    assert form.row_upper.tolist() == [2, 2, least[1], 7]
    assert form.lower.tolist() == [-2, -1, 0, 3, 0.25, 0]
    assert form.upper.tolist() == [INF, 1, 1, 3, 0.25, 4]
    assert form.integer.tolist() == [True, False, True, False, False, False]
    assert form.c.tolist() == [1, 0, 0, 0, 0, 2]
    assert form.c0 == 13


def test_compile_without_columns_takes_the_variables_in_use():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), domain=pyo.Binary)
    m.row = pyo.Constraint(expr=m.x[2] + m.x[0] <= 1)
    form = compile_model(m, names=True)
    assert sorted(form.column_names) == ["x[0]", "x[2]"]
    assert form.c.tolist() == [0, 0]


def test_columns_not_in_the_list_follow_it():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), domain=pyo.Binary)
    m.row = pyo.Constraint(expr=m.x[2] + 2 * m.x[1] + 3 * m.x[0] <= 1)
    form = compile_model(m, [m.x[1]], names=True)
    assert form.column_names[0] == "x[1]"
    assert form.n_cols == 3
    assert form.A.toarray()[0, 0] == 2


def test_compile_turns_a_maximisation_round():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    m.gain = pyo.Objective(expr=3 * m.x - 2, sense=pyo.maximize)
    form = compile_model(m, [m.x])
    assert (form.c.tolist(), form.c0, form.n_rows) == ([-3], 2, 0)


def test_compile_neighbouring_rows_with_equal_coefficients_stay_two():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), domain=pyo.Binary)
    m.rows = pyo.ConstraintList()
    m.rows.add(m.x[0] + m.x[1] <= 1)
    m.rows.add(m.x[0] + m.x[1] >= 1)
    assert compile_model(m, m.x.values()).n_rows == 2


def test_compile_a_constraint_that_fixed_variables_violate():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), domain=pyo.Binary, initialize=0)
    m.x[0].fix(0)
    m.row = pyo.Constraint(expr=m.x[0] >= 1)
    form = compile_model(m, m.x.values(), names=True)
    assert form.infeasible
    assert form.contradicts_itself()
    assert (form.n_cols, form.n_rows) == (2, 1)


def test_compile_says_what_it_cannot_do():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), domain=pyo.Binary)
    m.a = pyo.Objective(expr=m.x[0])
    m.b = pyo.Objective(expr=m.x[1])
    with pytest.raises(ProblemError, match="one active objective, this one has a, b"):
        compile_model(m)
    m.b.deactivate()
    m.row = pyo.Constraint(expr=m.x[0] * m.x[1] <= 1)
    with pytest.raises(ProblemError, match="only linear models"):
        compile_model(m)
    m.row.deactivate()
    m.odd = pyo.Var(domain=pyo.RangeSet(0, 10, 5))
    with pytest.raises(ProblemError, match="'odd' is neither an interval nor whole numbers"):
        compile_model(m, [m.odd])


@given(small_forms(WHOLE), st.data())
@settings(max_examples=60, deadline=None)
def test_substitute_keeps_the_points_that_satisfy_it(form, data):
    n = form.n_cols
    group = data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    x0 = np.array([data.draw(st.integers(-2, 2)) if g < 0 else 0 for g in group], dtype=float)
    names = sorted({g for g in group if g >= 0})
    P = np.array([[float(g == name) for name in names] for g in group]).reshape(n, len(names))
    form = replace(form, row_lower=np.floor(form.row_lower), row_upper=np.ceil(form.row_upper))
    reduced = form.substitute(sp.csr_array(P), x0)

    points = all_points(len(names))
    after = {tuple(reduced.restore(x)) for x in points if exactly_feasible(reduced.form, x)}
    before = {tuple(P @ x + x0) for x in points if exactly_feasible(form, P @ x + x0)}
    assert after == before
    for x in points:
        assert reduced.form.objective(x) == form.objective(reduced.restore(x))


def test_substitute_intersects_bounds_and_passes_integrality_on():
    form = form_of(
        [[1, 1, 2, 5]], [0], [9], [0, 1, -1, 0], [4, 5, 3, 1], [False, True, False, False], column_names=tuple("abcd")
    )
    P = sp.csr_array([[1.0, 0], [1, 0], [0, 1], [0, 0]])
    small = form.substitute(P, [0, 0, 0, 0.5]).form
    assert small.A.toarray().tolist() == [[2, 2]]
    assert (small.lower.tolist(), small.upper.tolist()) == ([1, -1], [4, 3])
    assert small.integer.tolist() == [True, False]
    assert (small.row_lower.tolist(), small.row_upper.tolist()) == ([-2.5], [6.5])
    assert small.column_names == ("a", "c")
    assert not small.infeasible
    assert form.substitute(P, [0, 0, 0, 2]).form.infeasible  # above the bound of d


def test_substitute_checks_its_arguments():
    form = form_of([[1, 1]], [0], [1], [0, 0], [1, 1])
    with pytest.raises(ProblemError, match="single 1"):
        form.substitute(sp.csr_array([[1.0, 1.0], [0, 0]]), [0, 0])
    with pytest.raises(ProblemError, match="single 1"):
        form.substitute(sp.csr_array([[2.0], [0]]), [0, 0])
    with pytest.raises(ProblemError, match="column 1 of P is empty"):
        form.substitute(sp.csr_array([[1.0, 0.0], [1.0, 0]]), [0, 0])
    with pytest.raises(ProblemError, match="P has 1 rows"):
        form.substitute(sp.csr_array([[1.0]]), [0, 0])
    with pytest.raises(ProblemError, match="whole where P keeps an integer column"):
        form.substitute(sp.csr_array([[1.0], [0]]), [0.5, 0])


def test_substitute_leaves_room_for_rounding() -> None:
    """0.1 + 0.2 is 0.30000000000000004: nothing of the equation is left but a contradiction of a last bit."""
    form = form_of([[0.1, 0.2, 0], [1, 2, 1]], [0.3, 3], [0.3, 3], [0, 0, 0], [1, 1, 1], [True, True, True])
    small = form.substitute(sp.csr_array([[0.0], [0], [1]]), [1, 1, 0]).form
    assert small.row_lower[0] <= 0 <= small.row_upper[0]
    assert small.row_upper[0] - small.row_lower[0] < 1e-14
    assert (small.row_lower[1], small.row_upper[1]) == (0, 0)  # whole numbers are exact
    assert not small.tidy().infeasible
    sides = np.array([0.31, 3])
    other = replace(form, row_lower=sides, row_upper=sides)
    assert other.substitute(sp.csr_array([[0.0], [0], [1]]), [1, 1, 0]).form.tidy().infeasible

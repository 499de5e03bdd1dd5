"""Across files: every solver finds the optima that brute force finds, and the other solvers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from ocf.solvers import SOLVERS, SolverOptions, StandardForm, Status, available, get_solver

from .forms import brute_force, check, form_of, random_form

INF = np.inf


@pytest.mark.parametrize("c0", [0.0, -5.0, 1.0])
def test_agrees_with_brute_force(solver, c0):
    seen = set()
    for seed in range(25):
        form = random_form(seed, c0, cost=(1.0, 1e-4, 1e5)[seed % 3])
        best = brute_force(form)
        for problem in (form, form.tidy()):
            result = solver.solve(problem)
            check(result, form)
            seen.add(result.status)
            if math.isinf(best):
                assert (result.status, result.bound, result.objective) == (Status.INFEASIBLE, INF, None)
            else:
                assert result.status is Status.OPTIMAL
                assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert seen == {Status.OPTIMAL, Status.INFEASIBLE}


@pytest.mark.parametrize("exponent", [40, 80, 300])
def test_rows_of_huge_coefficients_are_the_rows_they_are_multiples_of(solver, exponent):
    for seed in range(12):
        form = random_form(seed)
        rows = np.where(np.random.default_rng(seed).random(form.n_rows) < 0.6, 2.0**exponent, 1.0)
        result, best = solver.solve(form.in_units(rows=rows)), brute_force(form)
        check(result, form)
        assert (result.status is Status.INFEASIBLE) if math.isinf(best) else result.objective == pytest.approx(best)


def test_mixed_integer_and_continuous(solver):
    # minimise -x - 2 y over x in [0, 2.5] whole, y in [0, 1.5], x + y <= 3.2
    form = StandardForm([-1, -2], 0, sp.csr_array([[1.0, 1.0]]), [-INF], [3.2], [0, 0], [2.5, 1.5], [True, False])
    result = solver.solve(form)
    check(result, form)
    assert result.objective == pytest.approx(-4.4, rel=1e-9)
    assert result.x == pytest.approx([1, 1.5]) or result.x == pytest.approx([2, 1.2])


def test_integers_with_implied_fractional_bounds(solver):
    """HiGHS 1.14's presolve finds 200.01 here (its issue 3073); the optimum is x = 3, gap = 0, t = 3."""
    matrix = sp.csr_array([[1.0, 0, 1], [0, -1, 1], [0, -1, -1], [0, 0, 1], [0, 0, -1]])
    row_lower = [3, -INF, -INF, -INF, -INF]
    row_upper = [3, 0, 0, 3, -0.45]
    lower, upper = [0, -INF, 0], [INF] * 3
    form = StandardForm([100, 0.01, 0], 0, matrix, row_lower, row_upper, lower, upper, [False, False, True])
    result = solver.solve(form)
    check(result, form)
    assert result.objective == pytest.approx(0.03, rel=1e-9)


def tree_like_form(seed):
    """One-hot groups that set a value each, a big-M row on each value, and two further integers bound by fractions."""
    rng = np.random.default_rng(seed)
    groups, size = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    n_leaves = groups * size
    n = n_leaves + groups + 2
    on, count = n - 2, n - 1  # the big-M switch, and an integer bound by fractional rows
    rows, row_lower, row_upper = [], [], []

    def add(entries, low, high):
        rows.append(np.zeros(n))
        for place, value in entries:
            rows[-1][place] = value
        row_lower.append(low)
        row_upper.append(high)

    for g in range(groups):
        leaves, value = slice(g * size, (g + 1) * size), n_leaves + g
        levels = np.round(rng.normal(0, 1, size), 3) if rng.random() < 0.5 else rng.integers(0, 4, size)
        add([(leaves, 1)], 1, 1)
        add([(leaves, levels), (value, -1)], 0, 0)
        add([(value, 1), (on, -rng.choice([1, 1.5, 10, 1000]))], -INF, rng.choice([0, 0.5, 1]))
    add([(slice(n_leaves), np.round(rng.normal(0, 0.3, n_leaves), 4))], 0.01, INF)
    add([(count, rng.choice([1.0, 2.0, 3.0])), (on, 1)], -INF, 4.5)
    add([(count, 1), (int(rng.integers(n_leaves, on)), -1)], -0.45, INF)

    lower, upper = np.zeros(n), np.ones(n)
    lower[n_leaves:on], upper[n_leaves:on] = -5, 5
    upper[on:] = rng.choice([1, 3, 6]), 6
    c = np.round(rng.normal(0.3, 1, n), 2)
    c[on:] = abs(c[on]), rng.choice([-1, 0, 0.01])
    integer = rng.random(n) < np.where(np.arange(n) < n_leaves, 0.8, np.where(np.arange(n) < on, 0.2, 0.7))
    return StandardForm(c, 0, sp.csr_array(np.array(rows)), row_lower, row_upper, lower, upper, integer)


@pytest.mark.parametrize("presolve", [True, False])
def test_a_whole_point_a_hair_beyond_a_row(solver, presolve):
    """At (3, 0, 0, 0), which the second row forbids by 5e-9, HiGHS 1.15 gives up all that is left: it says 1.0."""
    rows = np.array([[-0.02123306, -0.56551147], [-0.53541346, 0.00080412]])
    A, sides = np.repeat(rows, 2, axis=1) * [1, -1, 1, -1], [0.79518455, -1.60624039]
    form = form_of(A, [-INF] * 2, sides, [0] * 4, [5, 0, 1, 4], c=np.full(4, 0.2))
    result = solver.solve(form, SolverOptions(presolve=presolve))
    assert (result.status, result.bound) == (Status.OPTIMAL, pytest.approx(0.8))


@pytest.mark.parametrize("n_forms", [80, pytest.param(500, marks=pytest.mark.slow)])
def test_solvers_agree_on_mixed_forms(n_forms):
    present = [get_solver(name) for name in SOLVERS if available()[name]]
    for seed in range(n_forms):
        form = tree_like_form(seed)
        for problem in (form, form.tidy()):
            results = [one.solve(problem) for one in present]
            statuses = {result.status for result in results}
            assert statuses in ({Status.OPTIMAL}, {Status.INFEASIBLE}), seed
            objectives = [result.objective for result in results if result.objective is not None]
            # Binaries that are off by the solvers' tolerance of 1e-9 move a continuous column behind a big-M by 1e-6.
            assert not objectives or max(objectives) - min(objectives) <= 1e-5, seed


def test_costs_far_apart_do_not_blur_the_optimum(solver):
    # The second solution is dearer by 1e-8 relative, which default tolerances cannot see.
    form = StandardForm(
        [1e-3, 1e-3 * (1 + 1e-8), 50.0],
        7.0,
        sp.csr_array([[1.0, 1.0, 1.0]]),
        [1],
        [INF],
        [0] * 3,
        [1] * 3,
        [True] * 3,
    )
    result = solver.solve(form, warm_start=[0, 1, 0])
    assert result.x.tolist() == [1, 0, 0]


def test_relaxation_bounds_the_optimum(solver, set_cover):
    form = set_cover(30, 40)
    optimum, relaxed = solver.solve(form), solver.solve_relaxation(form)
    assert relaxed.status is Status.OPTIMAL
    assert relaxed.bound <= optimum.objective
    assert 0 < relaxed.bound < INF


def test_forms_that_need_no_search(solver):
    nothing = StandardForm([], 2.0, sp.csr_array((1, 0)), [-1], [1], [], [], [])
    result = solver.solve(nothing)
    assert (result.status, result.objective, result.x.shape) == (Status.OPTIMAL, 2.0, (0,))
    free = StandardForm([1, -1, 0], 0, sp.csr_array((0, 3)), [], [], [0] * 3, [1] * 3, [True] * 3)
    assert solver.solve(free).objective == -1
    empty_rows = StandardForm([1], 0, sp.csr_array((2, 1)), [-1, -INF], [1, INF], [0], [1], [True])
    assert solver.solve(empty_rows).objective == 0


@pytest.mark.parametrize(
    "form",
    [
        StandardForm([1, 1], 0, sp.csr_array([[1.0, 1.0]]), [3], [INF], [0, 0], [1, 1], [True, True]),
        StandardForm([1, 1], 0, sp.csr_array([[2.0, 2.0]]), [1], [1], [0, 0], [1, 1], [True, True]),
        StandardForm([1, 1], 0, sp.csr_array([[1.0, 1.0]]), [3], [INF], [0, 0], [1, 1], [False, False]),
        StandardForm([1], 0, sp.csr_array((1, 1)), [1], [2], [0], [1], [True]),
        StandardForm([1], 0, sp.csr_array((0, 1)), [], [], [1], [0], [True]),
        StandardForm([1], 0, sp.csr_array([[1.0]]), [1], [0], [0], [1], [True]),
        StandardForm([], 0, sp.csr_array((1, 0)), [1], [2], [], [], []),
        # Infeasible with a direction in which the cost falls for ever.
        StandardForm([-1, 0], 0, sp.csr_array([[1, -1], [0, 2.0]]), [-INF, 1], [1, 1], [0, 0], [INF, 9], [True, True]),
    ],
)
def test_infeasible(solver, form):
    result = solver.solve(form)
    check(result, form)
    assert (result.status, result.bound, result.gap) == (Status.INFEASIBLE, INF, INF)
    assert result.message == ""
    assert result.proven


@pytest.mark.parametrize("integer", [True, False])
def test_unbounded_is_an_error_that_says_so(solver, integer):
    form = StandardForm([-1, 0], 0, sp.csr_array([[1.0, -1.0]]), [-INF], [1], [0, 0], [INF, INF], [integer] * 2)
    result = solver.solve(form)
    assert result.status is Status.ERROR
    assert "unbounded" in result.message
    assert result.bound == -INF


@pytest.mark.parametrize("side", [1e-9, 1e-8, 2.4e-8, 1e-7, 2e-7, 1e-6])
@pytest.mark.parametrize("cost", [0.1, 3276.8])
def test_a_point_a_hair_from_the_origin_is_there(solver, cost, side):
    """HiGHS 1.15's presolve calls some of these infeasible, where the second column rises by little."""
    row = sp.csr_array([[0.1, -0.1, 0.1, -0.1]])
    form = StandardForm([cost] * 4, 0, row, [-INF], [-side], [0] * 4, [7, 3, 7, 3], [False] * 4)
    result = solver.solve(form)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(10 * side * cost, abs=1e-5 * cost)

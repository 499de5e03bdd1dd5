"""The same tests on every solver that is present."""

import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from ocf.errors import OcfError, ProblemError, SolverError
from ocf.solvers import SOLVERS, SolverOptions, StandardForm, Status, available, get_solver
from ocf.solvers import adapter as solver_base
from ocf.solvers.result import CUTOFF, Progress, SolveResult, monotone, relative_gap

INF = np.inf


def random_form(seed, c0=0.0, cost=1.0):
    """Up to 9 whole columns and 6 rows of every kind; some of these forms are infeasible."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 10)), int(rng.integers(1, 7))
    matrix = rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < 0.7)
    activity = matrix @ rng.integers(0, 2, n)
    kind = rng.integers(0, 4, m)
    return StandardForm(
        c=np.round(rng.uniform(-1, 2, n), 3) * cost,
        c0=c0,
        A=sp.csr_array(matrix.astype(float)),
        row_lower=np.where(kind == 0, -INF, activity + (kind == 3) * rng.integers(0, 3, m)),
        row_upper=np.where(kind == 1, INF, activity + (kind != 2) * rng.integers(0, 2, m) + 2 * (kind == 3)),
        lower=np.zeros(n),
        upper=np.ones(n),
        integer=np.ones(n, dtype=bool),
    )


def brute_force(form):
    """Smallest cost over all binary points, inf when there is none."""
    points = np.array(list(itertools.product([0.0, 1.0], repeat=form.n_cols)))
    rows = points @ form.A.toarray().T
    good = np.all((rows >= form.row_lower) & (rows <= form.row_upper), axis=1)
    return float((points[good] @ form.c).min() + form.c0) if good.any() else math.inf


def check(result, form):
    """What holds for every result, however the solve ended."""
    assert (result.x is None) == (result.objective is None)
    if result.x is not None:
        assert form.max_violation(result.x) <= 1e-8
        assert result.objective == form.objective(result.x)
        assert result.bound <= result.objective
        assert result.gap in (0.0, relative_gap(result.objective, result.bound))
    if result.status is Status.OPTIMAL:
        assert result.gap == 0.0
    bounds = [record.bound for record in result.history]
    incumbents = [record.incumbent for record in result.history]
    times = [record.seconds for record in result.history]
    assert bounds == sorted(bounds)
    assert incumbents == sorted(incumbents, reverse=True)
    assert times == sorted(times)
    assert result.solver in SOLVERS
    assert result.version
    assert result.raw_status
    assert result.seconds >= 0


# ---- optima


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


@pytest.mark.parametrize("n_forms", [80, pytest.param(1000, marks=pytest.mark.slow)])
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


# ---- limits, starts, cutoffs


@pytest.fixture(scope="module")
def hard(set_cover):
    return set_cover(80, 120, c0=-0.7)


@pytest.fixture(scope="module")
def optimum(hard):
    return get_solver("scip").solve(hard)


@pytest.mark.parametrize("limit", [0.001, 0.03, 0.2])
def test_a_time_limit_leaves_a_valid_bound(solver, hard, optimum, limit):
    result = solver.solve(hard, SolverOptions(time_limit=limit))
    check(result, hard)
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN, Status.OPTIMAL)
    assert result.bound <= optimum.objective + 1e-9
    if result.status is Status.UNKNOWN:
        assert result.gap == INF
    else:
        assert result.objective >= optimum.objective - 1e-9


def test_a_time_limit_ends_what_would_not_end(solver, market_split):
    result = solver.solve(market_split, SolverOptions(time_limit=0.2))
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert result.seconds >= 0.1


def test_one_solver_object_serves_many_solves(solver, hard, optimum):
    solver.solve(hard, SolverOptions(time_limit=0.02))
    other = random_form(0)
    assert solver.solve(other).objective == pytest.approx(brute_force(other))
    # Neither the time spent nor the options of an earlier solve count against this one.
    assert solver.solve(hard, SolverOptions(time_limit=1e6)).objective == pytest.approx(optimum.objective, rel=1e-9)
    assert solver.solve(hard, cutoff=optimum.objective - 0.01).message == CUTOFF
    assert solver.solve(hard, warm_start=optimum.x).status is Status.OPTIMAL


def test_threads_may_change_between_solves(solver):
    form = random_form(0)
    for threads in (1, 2, 1):
        assert solver.solve(form, SolverOptions(threads=threads)).status is Status.OPTIMAL


def test_never_worse_than_the_start(solver, hard, optimum):
    greedy = np.ones(hard.n_cols)
    for j in np.argsort(-hard.c):
        greedy[j] = 0.0
        if (hard.activity(greedy) < 1).any():
            greedy[j] = 1.0
    for start in (greedy, optimum.x):
        result = solver.solve(hard, SolverOptions(time_limit=0.001), warm_start=start)
        check(result, hard)
        assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
        assert result.objective <= hard.objective(start)


def test_an_infeasible_start_does_no_harm(solver, hard, optimum):
    for start in (np.zeros(hard.n_cols), np.full(hard.n_cols, 0.3), np.full(hard.n_cols, np.nan)):
        result = solver.solve(hard, warm_start=start)
        assert result.objective == pytest.approx(optimum.objective, rel=1e-9)
    with pytest.raises(ProblemError, match=r"warm start has shape \(3,\)"):
        solver.solve(hard, warm_start=[0, 1, 0])


@pytest.mark.parametrize("distance", [1e-7, 1e-5, 1e-2])
@pytest.mark.parametrize("with_start", [False, True])
def test_cutoff(solver, hard, optimum, distance, with_start):
    start = np.ones(hard.n_cols) if with_start else None
    above = solver.solve(hard, warm_start=start, cutoff=optimum.objective + distance)
    check(above, hard)
    assert above.status is Status.OPTIMAL
    assert above.objective == pytest.approx(optimum.objective, rel=1e-9)

    below = solver.solve(hard, warm_start=start, cutoff=optimum.objective - distance)
    check(below, hard)
    assert (below.status, below.message) == (Status.INFEASIBLE, CUTOFF)
    assert below.bound == optimum.objective - distance
    assert below.x is None


def test_cutoff_on_random_forms(solver):
    for seed in range(30):
        form = random_form(seed, c0=(-10.0, 0.0, 10.0)[seed % 3])
        best = brute_force(form)
        if math.isinf(best):
            assert solver.solve(form, cutoff=0.0).status is Status.INFEASIBLE
            continue
        assert solver.solve(form, cutoff=best + 0.01).objective == pytest.approx(best, abs=1e-9)
        assert solver.solve(form, cutoff=best - 0.01).message == CUTOFF


def test_cutoff_on_a_linear_problem(solver):
    form = StandardForm([1, 2], 0, sp.csr_array([[1.0, 1.0]]), [1.5], [INF], [0, 0], [1, 1], [False, False])
    assert solver.solve(form, cutoff=2.1).objective == pytest.approx(2.0)
    assert solver.solve(form, cutoff=1.9).message == CUTOFF


def test_a_gap_lets_the_solver_stop_early(solver, hard, optimum):
    result = solver.solve(hard, SolverOptions(mip_gap=0.5))
    assert result.status is Status.OPTIMAL
    assert result.gap <= 0.5
    assert result.bound <= optimum.objective + 1e-9


def test_history_leads_to_the_result(solver, hard):
    result = solver.solve(hard)
    check(result, hard)
    assert len(result.history) >= 2
    last = result.history[-1]
    assert last.incumbent == pytest.approx(result.objective)
    assert last.bound <= result.objective


def test_interrupt_function(solver, market_split):
    asked = itertools.count()
    result = solver.solve(market_split, interrupt=lambda: next(asked) >= 5)
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN)

    def fail() -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solver.solve(market_split, interrupt=fail)


# ---- options


def test_raw_options(solver):
    form = random_form(0)
    name = {"highs": "mip_max_nodes", "scip": "limits/nodes"}[solver.name]
    result = solver.solve(form, SolverOptions(seed=3, options={name: 1000}))
    assert result.options[name] == 1000
    with pytest.raises(SolverError, match=f"did you mean '{name}'"):
        solver.solve(form, SolverOptions(options={name[:-1]: 1000}))
    with pytest.raises(SolverError, match="does not take the option"):
        solver.solve(form, SolverOptions(options={name: "many"}))


def test_log_goes_to_standard_output_only_when_asked(solver, capfd):
    solver.solve(random_form(0))
    assert capfd.readouterr() == ("", "")
    solver.solve(random_form(0), SolverOptions(log=True))
    assert capfd.readouterr().out


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"time_limit": 0}, "time_limit must be a positive number"),
        ({"time_limit": "1"}, "time_limit must be a positive number"),
        ({"time_limit": math.nan}, "time_limit must be a positive number"),
        ({"mip_gap": -1}, "mip_gap must be a relative gap"),
        ({"threads": 0}, "threads must be a whole number"),
        ({"threads": True}, "threads must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"log": 1}, "log must be True or False"),
        ({"options": [1]}, "options must map"),
    ],
)
def test_options_are_checked(bad, message):
    with pytest.raises(ProblemError, match=message):
        SolverOptions(**bad)


# ---- registry


def test_registry_names_the_nearest_solver():
    with pytest.raises(SolverError, match="no solver 'higs': did you mean 'highs'"):
        get_solver("higs")
    with pytest.raises(OcfError, match="The solvers are highs"):
        get_solver("xyz")


def test_a_solver_that_cannot_be_loaded(monkeypatch):
    monkeypatch.setitem(SOLVERS, "absent", ("ocf.solvers.no_such_module", "Absent"))
    ready = available()
    assert not ready["absent"]
    assert "pip install" in ready["absent"].reason
    with pytest.raises(SolverError, match="cannot be loaded"):
        get_solver("absent")


def test_importing_the_package_imports_no_solver():
    code = "import sys, ocf.solvers; print([m for m in ('highspy', 'pyscipopt', 'pyomo') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


# ---- results


def test_a_result_cannot_contradict_itself():
    with pytest.raises(ValueError, match="do not agree"):
        SolveResult(Status.OPTIMAL)
    with pytest.raises(ValueError, match="do not agree"):
        SolveResult(Status.INFEASIBLE, x=np.zeros(1), objective=0.0)


def test_relative_gap():
    assert relative_gap(None, 0.0) == INF
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(2.0, 2.0 - 1e-10) == 0.0
    assert relative_gap(2.0, 3.0) == 0.0
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(0.0, -1e-13) == INF
    assert relative_gap(0.0, -1e-13, noise=1e-12) == 0.0
    assert relative_gap(1.0, -INF) == INF


def test_history_is_made_monotone():
    records = [Progress(0.2, 1.0, 5.0), Progress(0.1, -INF, INF), Progress(0.3, 0.5, 6.0), Progress(0.4, 2.0, 4.0)]
    assert monotone(records) == (Progress(0.2, 1.0, 5.0), Progress(0.4, 2.0, 4.0))


def test_claims_are_not_taken_at_face_value(hard):
    """A solver that calls a wrong point optimal, or leaves a gap, is found out."""
    question = solver_base.ask(hard, None, None, None)

    def conclude(**answer):
        claimed = {"claim": solver_base.Claim.OPTIMAL, "raw_status": "done", "seconds": 0.0, **answer}
        return solver_base.conclude(question, solver_base.RawAnswer(**claimed), "test", "1", {})

    ones = np.ones(hard.n_cols)
    wrong = conclude(x=np.zeros(hard.n_cols), bound=0.0)
    assert (wrong.status, wrong.x) == (Status.ERROR, None)
    assert "violates the problem" in wrong.message
    gap = conclude(x=ones, bound=hard.objective(ones) - 1e-3)
    assert gap.status is Status.FEASIBLE
    assert "leaves a gap" in gap.message
    assert conclude(x=None, bound=0.0).status is Status.ERROR
    assert conclude(x=ones, bound=INF).status is Status.OPTIMAL


# ---- Ctrl-C


@pytest.fixture(scope="module")
def market_split():
    return market_split_form()


def market_split_form():
    """Make a market split problem: six equations in fifty binaries, with slacks; hours of work for any solver."""
    rng = np.random.default_rng(0)
    m, n = 6, 50
    D = rng.integers(0, 100, (m, n)).astype(float)
    half = np.floor(D.sum(axis=1) / 2)
    return StandardForm(
        c=np.concatenate([np.zeros(n), np.ones(2 * m)]),
        c0=0,
        A=sp.hstack([sp.csr_array(D), sp.eye_array(m), -sp.eye_array(m)], format="csr"),
        row_lower=half,
        row_upper=half,
        lower=np.zeros(n + 2 * m),
        upper=np.concatenate([np.ones(n), np.full(2 * m, INF)]),
        integer=np.concatenate([np.ones(n, bool), np.zeros(2 * m, bool)]),
    )


INTERRUPTED = """
import itertools, os, signal, sys, numpy as np, scipy.sparse as sp
from ocf.solvers import StandardForm, get_solver
signal.signal(signal.SIGINT, signal.default_int_handler)
arrays = np.load(sys.argv[2])
form = StandardForm(A=sp.csr_array(arrays["dense"]), c0=0, **{k: arrays[k] for k in arrays if k != "dense"})
solver = get_solver(sys.argv[1])
small = form.with_bounds(form.lower, np.where(form.integer, 0, form.upper))
solver.solve(small)
# the question comes while the solver runs, and Ctrl-C in the midst of it
asked = itertools.count()
def press() -> bool:
    if next(asked) == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return False
try:
    solver.solve(form, interrupt=press)
    print("finished")
except KeyboardInterrupt:
    print("interrupted", solver.solve(small).status.name, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_stops_the_solve_and_is_raised(solver, market_split, tmp_path):
    arrays = {k: getattr(market_split, k) for k in ("c", "row_lower", "row_upper", "lower", "upper", "integer")}
    np.savez(tmp_path / "form.npz", dense=market_split.A.toarray(), **arrays)
    command = [sys.executable, "-c", INTERRUPTED, solver.name, str(tmp_path / "form.npz")]
    child = subprocess.run(command, capture_output=True, text=True)
    assert child.stdout == "interrupted OPTIMAL\n", child.stderr
    assert child.returncode == 0

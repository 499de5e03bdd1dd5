"""Small forms, one too large for any solver, and what must hold of every result."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from small_problems import violation

from ocf.solvers import SOLVERS, StandardForm, Status
from ocf.solvers.result import relative_gap

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
        assert violation(form, result.x) <= 1e-8
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


def form_of(A, row_lower, row_upper, lower, upper, integer=True, c=None, c0=0.0, **names):
    A = np.asarray(A, dtype=float)
    n = A.shape[1]
    return StandardForm(
        c=np.ones(n) if c is None else c,
        c0=c0,
        A=sp.csr_array(A),
        row_lower=row_lower,
        row_upper=row_upper,
        lower=lower,
        upper=upper,
        integer=np.broadcast_to(integer, n),
        **names,
    )


def exactly_feasible(form, x):
    """Feasibility in rational arithmetic: the floats are taken at their word."""
    if form.infeasible:
        return False
    rows = form.A.toarray()
    for row, low, high in zip(rows, form.row_lower, form.row_upper, strict=True):
        value = sum((Fraction(a) * Fraction(v) for a, v in zip(row, x, strict=True)), Fraction(0))
        if (np.isfinite(low) and value < Fraction(low)) or (np.isfinite(high) and value > Fraction(high)):
            return False
        if low == INF or high == -INF:
            return False
    return bool(np.all((form.lower <= x) & (x <= form.upper)))


WHOLE = st.sampled_from([-2.0, -1.0, 1.0, 2.0, 3.0])
ANY = st.sampled_from([-2.0, -1.0, 1.0, 2.0, 3.0, 0.1, 0.3])


@st.composite
def small_forms(draw, coefficients):
    """Forms over few whole columns, with many empty, single and equal rows."""
    n = draw(st.integers(1, 4))
    entry = st.one_of(st.just(0.0), st.just(0.0), coefficients)
    pool = draw(st.lists(st.lists(entry, min_size=n, max_size=n), min_size=1, max_size=4))
    rows = draw(st.lists(st.sampled_from(pool), min_size=0, max_size=6))
    side = st.sampled_from([-3.0, -1.0, -0.3, 0.0, 0.1 + 0.2, 0.3, 0.5, 1.0, 2.0, 4.0, INF])
    sides = [sorted((draw(side) * draw(st.sampled_from([1, -1])), draw(side))) for _ in rows]
    lower = draw(st.lists(st.integers(-2, 0), min_size=n, max_size=n))
    upper = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    c = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    return StandardForm(
        c=c,
        c0=1.0,
        A=sp.csr_array(np.array(rows, dtype=float).reshape(len(rows), n)),
        row_lower=[low for low, _ in sides],
        row_upper=[high for _, high in sides],
        lower=lower,
        upper=upper,
        integer=np.ones(n, dtype=bool),
    )


def all_points(n):
    return [np.array(point, dtype=float) for point in itertools.product(range(-3, 4), repeat=n)]


def knapsack() -> StandardForm:
    return StandardForm(
        [1, 2, 3], 0, sp.csr_array([[1.0, 1, 1]]), [2], [np.inf], [0, 0, 0], [1, 1, 1], [True, True, True]
    )

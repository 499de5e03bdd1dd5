"""The cheapest point of a polytope, against exact arithmetic: bounds never too high, points optimal."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.cells.exact_programs import minimise
from ocf.solve import active_set
from ocf.solve.active_set import solve_by_active_set
from ocf.solve.dual_ascent import ascend
from ocf.solve.move_inside import move_inside
from ocf.solve.polytope import Polytope


def random_polytope(rng: np.random.Generator, n: int, m: int, *, kinks: bool, definite: bool = True) -> Polytope:
    """Small whole numbers, so that rows and box ends meet and depend on each other often."""
    root = rng.integers(-2, 3, (n, n)) * (rng.random((n, n)) < 0.5)
    q = (root.T @ root).astype(float) + (0.5 * np.eye(n) if definite else 0.0)
    lo = rng.integers(-3, 2, n).astype(float)
    hi = lo + rng.integers(0, 4, n)
    a, b, c, d = rng.integers(0, 3, (4, n)).astype(float) if kinks else np.zeros((4, n))
    return Polytope(
        rng.integers(-2, 3, (m, n)).astype(float),
        rng.integers(-3, 3, m).astype(float),
        lo,
        hi,
        rng.integers(-2, 3, n).astype(float),
        a,
        b,
        c / 2,
        d / 2,
        q,
    )


def exact_optimum(p: Polytope) -> Fraction | None:
    """Least cost in exact arithmetic: rise and fall of each coordinate are columns of their own."""
    n = len(p.xbar)
    form = np.array([[Fraction(v) for v in row] for row in p.Q.toarray()], object).reshape(n, n)
    rise, fall = (np.diag([Fraction(v) for v in q]) for q in (p.q_up, p.q_down))
    q = 2 * np.block([[form + rise, -form], [-form, form + fall]])
    c = [Fraction(v) for v in (*p.a_up, *p.a_down)]
    single = np.vstack([p.G, np.eye(n), -np.eye(n)])
    sides = np.concatenate([p.h - p.G @ p.xbar, p.hi - p.xbar, p.xbar - p.lo])
    rows = [[Fraction(v) for v in (*row, *-row)] for row in single]
    x = minimise(c, rows, [Fraction(v) for v in sides], q.tolist())
    if x is None:
        return None
    z = np.array(x, object)
    return Fraction(z @ c) + Fraction(z @ q @ z) / 2


@given(seed=st.integers(0, 2**32 - 1), kinks=st.booleans())
def test_active_sets_equal_exact_arithmetic(seed: int, kinks: bool) -> None:
    rng = np.random.default_rng(seed)
    p = random_polytope(rng, int(rng.integers(1, 6)), int(rng.integers(0, 4)), kinks=kinks)
    optimum = exact_optimum(p)
    found = solve_by_active_set(p)
    if found is None:
        return
    assert optimum is not None
    x, y = found
    assert (p.G @ x <= p.h + 1e-9).all()
    assert (np.clip(x, p.lo, p.hi) == x).all()
    assert p.cost(x) == pytest.approx(float(optimum), abs=1e-9)
    bound = p.bound(y, x)
    assert Fraction(bound) <= optimum
    assert bound >= float(optimum) - 1e-11 * (1 + abs(float(optimum)))


@pytest.mark.parametrize("definite", [False, True])
@pytest.mark.parametrize("kinks", [False, True])
@pytest.mark.parametrize(("n", "m"), [(4, 2), (5, 3), (3, 4)])
@pytest.mark.parametrize("guesses", [True, False])
def test_active_sets_are_found(
    guesses: bool, n: int, m: int, kinks: bool, definite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In all problems that have a point, and none in the others; with and without a Newton method that guesses."""
    if not guesses:
        monkeypatch.setattr(active_set, "MAX_STEPS", 0)
    solvable = 0
    for seed in range(30):
        p = random_polytope(np.random.default_rng(seed), n, m, kinks=kinks, definite=definite)
        optimum, found = exact_optimum(p), solve_by_active_set(p)
        assert (found is None) == (optimum is None), seed
        if found is not None and optimum is not None:
            x, y = found
            solvable += 1
            assert p.cost(x) == pytest.approx(float(optimum), abs=1e-9), seed
            assert p.bound(y, x) >= float(optimum) - 1e-11 * (1 + abs(float(optimum))), seed
    assert solvable >= 3


def test_two_ends_on_one_side_of_the_origin_are_two_guesses() -> None:
    """The guess that a coordinate is at its low end once passed for confirmed by the guess that it is at its high."""
    p = random_polytope(np.random.default_rng(65), 3, 4, kinks=True)
    found = solve_by_active_set(p)
    assert found is not None
    assert p.cost(found[0]) == pytest.approx(float(exact_optimum(p) or 0), abs=1e-9)


@given(seed=st.integers(0, 2**32 - 1), definite=st.booleans())
def test_bounds_hold_for_any_multipliers_and_any_tangent(seed: int, definite: bool) -> None:
    rng = np.random.default_rng(seed)
    p = random_polytope(rng, int(rng.integers(1, 6)), int(rng.integers(0, 4)), kinks=True, definite=definite)
    optimum = exact_optimum(p)
    y = rng.random(len(p.h)) * rng.integers(0, 2, len(p.h)) * 3
    around = p.lo + rng.random(len(p.lo)) * (p.hi - p.lo)
    if optimum is not None:
        assert Fraction(p.bound(y, around)) <= optimum


def test_the_bound_of_a_large_form_loses_little_to_rounding() -> None:
    """Chains of neighbours: the least change of a sum is spread, and bound and cost agree in 9 digits."""
    n = 2000
    q = np.eye(n) - 0.49 * (np.eye(n, k=1) + np.eye(n, k=-1))
    rng = np.random.default_rng(1)
    zero = np.zeros(n)
    p = Polytope(-rng.random((3, n)) + 0.2, np.full(3, -60.0), zero, np.full(n, 0.1), zero, zero, zero, zero, zero, q)
    found = solve_by_active_set(p)
    assert found is not None
    x, y = found
    assert (x == 0.1).any()
    assert (y > 0).any()
    assert p.bound(y, x) == pytest.approx(p.cost(x), rel=2e-10)
    assert p.bound(y, x) <= p.cost(x)


def inside(p: Polytope, x: Any, margin: float) -> Any:
    return move_inside(p, np.asarray(x, float), lambda v: np.full(len(p.h), margin), lambda v: np.clip(v, p.lo, p.hi))


def test_points_move_inside_along_the_box() -> None:
    """Only coordinates that leave an end of the box can gain the margin, and only in one direction each."""
    n = 6
    zero, one = np.zeros(n), np.ones(n)
    rows = np.array([[-1.0, 2, 2, 0, 0, 0], [0, 1, -1, -1, 3, 0]])
    p = Polytope(rows, zero[:2], zero, np.where(np.arange(n) == 5, 0.0, 1.0), zero, zero, zero, one, one)
    found = inside(p, zero, 1e-9)
    assert found is not None
    assert (p.G @ found <= -1e-9).all()
    assert found.min() >= 0
    assert found.max() < 1e-8
    assert found[5] == 0


def test_points_that_cannot_move_inside_are_none() -> None:
    zero, one = np.zeros(2), np.ones(2)
    p = Polytope(np.array([[1.0, 1.0]]), zero[:1], zero, one, zero, zero, zero, one, one)
    assert inside(p, zero, 1e-9) is None


@pytest.mark.parametrize("kinks", [False, True])
def test_ascent_reaches_the_optimum_of_strictly_convex_costs(kinks: bool) -> None:
    """Bounds equal the least cost in exact arithmetic, and the minimiser of the Lagrangian costs as much."""
    solvable = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        p = random_polytope(rng, int(rng.integers(1, 6)), int(rng.integers(1, 4)), kinks=kinks)
        p = replace(p, Q=np.zeros_like(p.Q.toarray()), q_down=p.q_down + 0.5, q_up=p.q_up + 1.0)
        optimum, separable = exact_optimum(p), replace(p, Q=None)
        assert separable.strictly_convex
        y = ascend(separable)
        bound = separable.bound(y)
        assert (y >= 0).all(), seed
        if optimum is None:
            continue
        solvable += 1
        assert Fraction(bound) <= optimum, seed
        assert bound == pytest.approx(float(optimum), rel=1e-9, abs=1e-9), seed
        assert separable.cost(separable.argmin(y @ p.G)) == pytest.approx(float(optimum), rel=1e-6, abs=1e-6), seed
    assert solvable >= 15

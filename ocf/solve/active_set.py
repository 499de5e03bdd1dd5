"""Cheapest point and multipliers of a polytope whose cost has a quadratic form, by its active set.

First a semismooth Newton method on ``x = prox(x - slope / weight)``, where the proximal point of the separable cost and
the box tells which coordinates are at an end, at the origin, falling or rising (the primal-dual active set method of
Hintermüller, Ito and Kunisch, SIAM J. Optim. 13, 2002, with kinks): few sparse systems where it converges. It does not
where a guess leaves fewer free coordinates than tight half-spaces, which no point then meets: multipliers without
bound, and the guesses go round in a circle. Lemke's pivots, one coordinate or half-space at a time, meet no such guess
and end at the optimum of any convex problem that is not too large for a dense tableau.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import MatrixRankWarning, spsolve

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.exact_programs import float_basis
from ocf.solve.polytope import Polytope

#: Newton steps at most; where they do not suffice, pivots do.
MAX_STEPS = 60

#: Conditions of optimality (ends, kinks, half-spaces) up to which pivoting is worth its dense tableau.
MAX_CONDITIONS = 250

#: A guess that goes round in a circle with one weight seldom does with another.
WEIGHTS = (1.0, 0.1, 10.0, 0.01, 100.0)


def solve_by_active_set(
    p: Polytope, x: FloatArray | None = None, y: FloatArray | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """Point and multipliers, by guessing what holds with equality and correcting that.

    Parameters
    ----------
    p : Polytope
        With a quadratic form and without relations.
    x : (n,) float64, optional
        Point to start from; the origin by default.
    y : (m,) float64, optional
        Multipliers to start from; 0 by default.

    Returns
    -------
    ((n,) float64, (m,) float64) or None
        None where there is no point, or the problem is large and the guesses do not settle.
    """
    assert p.Q is not None
    assert not len(p.k)
    start = np.clip(p.xbar if x is None else x, p.lo, p.hi), np.zeros(len(p.h)) if y is None else y
    double = 2 * p.Q
    weight = float((double.diagonal() + 2 * np.maximum(p.q_down, p.q_up)).max(initial=0.0)) or 1.0
    tries = (_Newton(p, double, weight * factor).settle(*start) for factor in WEIGHTS)
    return next((found for found in tries if found is not None), None) or _by_pivots(p)


@dataclass(frozen=True, eq=False)
class _Newton:
    """The semismooth Newton method with one weight; `double` is twice the form."""

    p: Polytope
    double: Any
    weight: float

    def settle(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Point and multipliers that confirm the guess by which they were found; None where none does."""
        p = self.p
        low, high, d = p.lo - p.xbar, p.hi - p.xbar, x - p.xbar
        gap = np.asarray(p.gap, np.float64)
        squares = (p.G**2).sum(axis=1)
        squares[squares == 0] = 1.0
        seen, last = set[bytes](), b""
        for _ in range(MAX_STEPS):
            curvature = np.where(d < 0, p.q_down, p.q_up)
            aim = d - (self.double @ d + 2 * curvature * d + y @ p.G) / self.weight
            up, down = aim - p.a_up / self.weight, aim + p.a_down / self.weight
            target = np.where(up >= 0, up, np.where(down < 0, down, 0.0))
            rising, held = target >= 0, (up < 0) & (down >= 0)
            place = np.where(target <= low, low, np.where(target >= high, high, 0.0))
            held |= (target <= low) | (target >= high)
            tight = y + self.weight / squares * (p.G @ d + gap) > 0
            # which end counts, and not its side alone: both may lie on the same side of the origin
            now = rising.tobytes() + held.tobytes() + (np.where(held, place, 0.0) + 0.0).tobytes() + tight.tobytes()
            if now in seen:
                # the same guess twice in a row is the answer, and later on it is a circle
                return (p.xbar + d, y) if now == last and p.is_met_by(d) and (y >= 0).all() else None
            seen.add(now)
            last, d = now, np.where(held, place, 0.0)
            free = np.flatnonzero(~held)
            solved = self._stationary(d, free, np.flatnonzero(tight), rising[free])
            if solved is None:
                return None
            d[free], y = solved
        return None

    def _stationary(
        self, d: FloatArray, free: IntArray, active: IntArray, rising: BoolArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Changes of the free coordinates, and multipliers, where the slope is 0 and active half-spaces are met."""
        p = self.p
        linear = np.where(rising, p.a_up[free], -p.a_down[free])
        curvature = 2 * np.where(rising, p.q_up[free], p.q_down[free])
        rows = p.G[np.ix_(active, free)]
        right = np.concatenate(
            [-linear - (self.double @ d)[free], -(p.G[active] @ d + np.asarray(p.gap, np.float64)[active])]
        )
        y = np.zeros(len(p.h))
        if not len(right):
            return np.zeros(0), y
        # a hair of slack where rows depend on each other; all of it in rows without a free coordinate
        slack = np.where(rows.any(axis=1), 1e-14, 1.0) * (p.G[active] ** 2).sum(axis=1) / self.weight
        hessian = self.double[free][:, free] + sp.diags_array(curvature)
        side = sp.csr_array(rows)
        system = sp.block_array([[hessian, side.T], [side, sp.diags_array(-slack)]], format="csc")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatrixRankWarning)
            solved = np.atleast_1d(spsolve(system, right))
        if not np.isfinite(solved).all():
            return None
        y[active] = solved[len(free) :]
        return solved[: len(free)], y


def _by_pivots(p: Polytope) -> tuple[FloatArray, FloatArray] | None:
    """Point and multipliers from the basis in which Lemke's pivots end, over rises and falls."""
    n, m, identity = len(p.xbar), len(p.h), np.eye(len(p.xbar))
    low, high = p.lo - p.xbar, p.hi - p.xbar
    above, below = np.flatnonzero(np.isfinite(high)), np.flatnonzero(np.isfinite(low))
    gap = np.asarray(p.gap, np.float64)
    single = np.vstack([p.G, identity[above], -identity[below]])
    size = 2 * n + len(single)
    if size > MAX_CONDITIONS:
        return None
    form = 2 * p.Q.toarray()
    rows = np.hstack([single, -single])
    M = np.zeros((size, size))
    M[:n, :n], M[n : 2 * n, n : 2 * n] = form + 2 * np.diag(p.q_up), form + 2 * np.diag(p.q_down)
    M[:n, n : 2 * n] = M[n : 2 * n, :n] = -form
    M[: 2 * n, 2 * n :], M[2 * n :, : 2 * n] = rows.T, -rows
    q = np.concatenate([p.a_up, p.a_down, -gap, high[above], -low[below]])
    basis = float_basis(M, q)
    if basis is None:
        return None
    basic = np.sort([b - size for b in basis if size <= b < 2 * size]).astype(np.int64)
    z = np.zeros(size)
    try:
        z[basic] = np.linalg.solve(M[np.ix_(basic, basic)], -q[basic])
    except np.linalg.LinAlgError:
        return None
    d = z[:n] - z[n : 2 * n]
    x, y = np.clip(p.xbar + d, p.lo, p.hi), np.maximum(z[2 * n : 2 * n + m], 0.0)
    return (x, y) if np.isfinite(z).all() and p.is_met_by(d) else None


def refine(p: Polytope, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One Newton step on the conditions of optimality with the solver's active sets.

    Parameters
    ----------
    p : Polytope
        With relations nothing is refined.
    x : (n,) float64
        Point of the solver.
    y : (m,) float64
        Its multipliers; half-spaces with positive ones are taken as tight.
    """
    if len(p.k):
        return x, y
    double = sp.csr_array((len(x), len(x))) if p.Q is None else 2 * p.Q
    d = x - p.xbar
    width = np.where(np.isfinite(p.hi - p.lo), p.hi - p.lo, 1.0)
    inside = (x > p.lo + 1e-7 * width) & (x < p.hi - 1e-7 * width)
    kink = (p.a_up + p.a_down > 0) & (np.abs(d) <= 1e-7 * width)
    free = np.flatnonzero(inside & ~kink)
    active = np.flatnonzero(y > 0)
    held = np.where(kink, p.xbar, np.where(x - p.lo < p.hi - x, p.lo, p.hi))
    start = np.where(np.isin(np.arange(len(x)), free), x, held)
    d = start - p.xbar
    rising = d > 0
    curvature = 2 * np.diag(np.where(rising, p.q_up, p.q_down)[free]) + double[free][:, free].toarray()
    gradient = np.where(rising, p.a_up, -p.a_down) + 2 * np.where(rising, p.q_up, p.q_down) * d
    gradient = gradient + double @ d
    rows = p.G[np.ix_(active, free)]
    top = np.hstack([curvature, rows.T])
    bottom = np.hstack([rows, np.zeros((len(active), len(active)))])
    right = np.concatenate([-gradient[free], p.h[active] - p.G[active] @ start])
    try:
        solved = np.linalg.solve(np.vstack([top, bottom]), right)
    except np.linalg.LinAlgError:
        return x, y
    new = start.copy()
    new[free] += solved[: len(free)]
    multipliers = np.zeros(len(y))
    multipliers[active] = np.maximum(solved[len(free) :], 0.0)
    if not np.isfinite(new).all() or (new < p.lo).any() or (new > p.hi).any():
        return x, y
    return new, multipliers

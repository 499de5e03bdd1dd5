"""The cheapest point of a polytope in numbers: bounds that hold whatever a solver says, and points that a tree accepts.

A solver answers an LP or QP within its tolerances, which are wider than what decides the side of a split. From its
multipliers this file proves a lower bound in float64 (weak duality), and its point is moved onto the side where even
the rounding of the tree's own dot product cannot disagree.

Nomenclature
------------
==================  ==================================================================================
symbol              meaning, shape
==================  ==================================================================================
``G, h``            half-spaces ``G x <= h``, (m, n) and (m,)
``lo, hi``          box of x, (n,); ends may be infinite
``xbar``            the origin, (n,)
``a, q``            cost of a change d: ``a |d| + q d**2``, with a and q of its direction, (n,) each
``Q``               quadratic form of d that is added, (n, n), sparse, or None
``K, k``            relations ``K_up rise + K_down fall <= k``, with d = rise - fall, (r, n) and (r,)
``y``               multipliers of the half-spaces and, behind them, the relations, at least 0, (m + r,)
==================  ==================================================================================
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import MatrixRankWarning, spsolve

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.exact_programs import float_basis

#: Unit roundoff of float64, and of the widest format that the machine has.
UNIT, _WIDE = 2.0**-53, float(np.finfo(np.longdouble).eps)

#: Newton steps at most; where they do not suffice, pivots do.
MAX_STEPS = 60

#: Conditions of optimality (ends, kinks, half-spaces) up to which pivoting is worth its dense tableau.
MAX_CONDITIONS = 250


@dataclass(frozen=True, eq=False)
class Polytope:
    """Cheapest change into ``G x <= h`` within a box; see the nomenclature above.

    Attributes
    ----------
    G : (m, n) float64
    h : (m,) float64
    lo, hi, xbar : (n,) float64
    a_down, a_up, q_down, q_up : (n,) float64
    Q : (n, n) sparse float64 or None
        Symmetric and positive semidefinite; an array becomes sparse.
    K_down, K_up : (r, n) float64
    k : (r,) float64
    credit : float
        Added to every bound.
    """

    G: FloatArray
    h: FloatArray
    lo: FloatArray
    hi: FloatArray
    xbar: FloatArray
    a_down: FloatArray
    a_up: FloatArray
    q_down: FloatArray
    q_up: FloatArray
    Q: Any = None
    K_down: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    K_up: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    k: FloatArray = field(default_factory=lambda: np.zeros(0))
    credit: float = 0.0

    def __post_init__(self) -> None:
        if self.Q is not None:
            object.__setattr__(self, "Q", sp.csr_array(self.Q))

    @cached_property
    def strictly_convex(self) -> bool:
        """Whether the cost is separable and each coordinate that a half-space weighs has a square."""
        used = self.G.any(axis=0)
        return self.Q is None and not len(self.k) and bool(((self.q_down > 0) & (self.q_up > 0))[used].all())

    def separable_cost(self, d: FloatArray) -> FloatArray:
        """Cost of each coordinate's change, without Q, (n,)."""
        return np.where(d > 0, (self.a_up + self.q_up * d) * d, (-self.a_down + self.q_down * d) * d)

    def cost(self, x: FloatArray) -> float:
        """Cost of a point."""
        d = x - self.xbar
        return float(self.separable_cost(d).sum()) + (0.0 if self.Q is None else float(d @ (self.Q @ d)))

    def within(self, cost: float) -> Polytope:
        """The same with the box cut down to where points of at most this cost can lie; for bounds below it."""
        if not np.isfinite(cost):
            return self
        reach = {}
        for side, a, q in (("up", self.a_up, self.q_up), ("down", self.a_down, self.q_down)):
            with np.errstate(divide="ignore", invalid="ignore"):
                by_l1 = np.where(a > 0, cost / a, np.inf)
                by_l2 = np.where(q > 0, np.sqrt(cost / q), np.inf)
            reach[side] = np.minimum(by_l1, by_l2) * (1 + 8 * UNIT)
        return replace(
            self, lo=np.maximum(self.lo, self.xbar - reach["down"]), hi=np.minimum(self.hi, self.xbar + reach["up"])
        )

    def argmin(self, slope: FloatArray) -> FloatArray:
        """Minimiser of separable cost plus ``slope . x`` over the box, coordinate by coordinate, (n,)."""
        return self._minimise(slope)[0]

    def _minimise(self, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = self.lo - self.xbar, self.hi - self.xbar
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            up = np.where(self.q_up > 0, (-slope - self.a_up) / (2 * self.q_up), 0.0)
            down = np.where(self.q_down > 0, (self.a_down - slope) / (2 * self.q_down), 0.0)
            candidates = np.stack(
                [
                    np.clip(0.0, low, high),
                    low,
                    high,
                    np.clip(np.maximum(up, 0.0), low, high),
                    np.clip(np.minimum(down, 0.0), low, high),
                ]
            )
            finite = np.where(np.isfinite(candidates), candidates, 0.0)
            values = self.separable_cost(finite) + slope * finite
            # at an infinite end the cost grows or falls without end, by the sign of its slope there
            growth = np.where(candidates > 0, slope + self.a_up, self.a_down - slope)
            curved = np.where(candidates > 0, self.q_up, self.q_down) > 0
            at_end = np.where(curved | (growth >= 0), np.inf, -np.inf)
        values = np.where(np.isfinite(candidates), values, at_end)
        best = values.argmin(axis=0)
        index = np.arange(values.shape[1])
        return self.xbar + candidates[best, index], values[best, index]

    def bound(self, y: FloatArray, around: FloatArray | None = None) -> float:
        """Lower bound on the cost of every point of the polytope, by weak duality, rounding included.

        ``min over the box of E(x) + y . (G x - h)`` is one for any ``y >= 0``; a quadratic form is replaced by its
        tangent at `around`, which it never falls below.

        Parameters
        ----------
        y : (m,) float64
        around : (n,) float64, optional
            Needed where there is a Q.
        """
        if len(self.k):
            return self._relaxed(y[len(self.h) :]).bound(y[: len(self.h)], around)
        wide = np.asarray(y, np.longdouble)
        slope = wide @ self.G
        constant = wide @ self._gap
        size = float(np.abs(y) @ self._gap_size)
        tangent: Any = 0.0  # by how much a slope may be wrong, per unit of change, (n,)
        if self.Q is not None:
            assert around is not None
            d = around - self.xbar
            slope_q, tangent = self._slope_of_form(d)
            slope = slope + slope_q
            constant -= d @ slope_q / 2
            size += float(np.abs(d) @ np.abs(slope_q.astype(np.float64))) + float(np.abs(d) @ tangent) / _WIDE
        x, values = self._minimise(slope.astype(np.float64))
        if not np.isfinite(values).all():
            return -np.inf
        # a value is a sum of cost and slope times change, each of which rounds a few times
        terms = np.abs(values) + np.abs(slope.astype(np.float64) * (x - self.xbar))
        rounding = float((tangent * np.abs(x - self.xbar)).sum())
        rounding += 8 * UNIT * float(terms.sum()) + (len(x) + len(y) + 8) * _WIDE * (size + float(terms.sum()))
        return float(math.fsum(values) + constant + self.credit) - rounding - 2 * UNIT * abs(self.credit)

    def _slope_of_form(self, d: FloatArray) -> tuple[Any, FloatArray]:
        """``2 Q d`` in extended precision, and what the rounding of its sums and of Q's entries may change in it."""
        q = self.Q
        slope = np.zeros(len(d), np.longdouble)
        filled = np.flatnonzero(np.diff(q.indptr))
        if len(filled):
            slope[filled] = np.add.reduceat(q.data.astype(np.longdouble) * d[q.indices], q.indptr[filled])
        longest = int(np.diff(q.indptr).max(initial=0))
        return 2 * slope, 2 * (4 * UNIT + (longest + 2) * _WIDE) * (abs(q) @ np.abs(d))

    def _relaxed(self, z: FloatArray) -> Polytope:
        """Without the relations, whose violation is priced by `z`: they bend at the origin as the cost does."""
        size = np.abs(z) @ (np.abs(self.K_up) + np.abs(self.K_down))
        slack = 2 * (len(z) + 2) * UNIT * size
        spent = float(z @ self.k)
        spent += 2 * (len(z) + 2) * UNIT * float(np.abs(z) @ np.abs(self.k))
        return replace(
            self,
            a_down=self.a_down + z @ self.K_down - slack,
            a_up=self.a_up + z @ self.K_up - slack,
            K_down=np.zeros((0, 0)),
            K_up=np.zeros((0, 0)),
            k=np.zeros(0),
            credit=self.credit - spent,
        )

    def rows_at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """All rows as half-spaces that hold on the side of the origin where each coordinate of x lies."""
        if not len(self.k):
            return self.G, self.h
        side = np.where(x > self.xbar, self.K_up, -self.K_down)
        return np.vstack([self.G, side]), np.concatenate([self.h, self.k + side @ self.xbar])

    @cached_property
    def _gap(self) -> Any:
        """``G xbar - h`` in extended precision: by how much the origin violates each half-space."""
        return np.asarray(self.G, np.longdouble) @ self.xbar - self.h

    @cached_property
    def _gap_size(self) -> FloatArray:
        return np.abs(self.G) @ np.abs(self.xbar) + np.abs(self.h)

    def ascend(self, y: FloatArray | None = None) -> FloatArray:
        """Multipliers that maximise the bound, for strictly convex costs, by projected Newton steps.

        The bound is concave, piecewise quadratic and smooth in the few multipliers, and its gradient is the violation
        of the half-spaces at the minimiser of the Lagrangian.
        """
        y = np.zeros(len(self.h)) if y is None else y
        value = self._dual(y)
        for _ in range(MAX_STEPS):
            slope = y @ self.G
            x = self.argmin(slope)
            residual = np.asarray(self.G @ (x - self.xbar) + self._gap, np.float64)
            active = (y > 0) | (residual > 0)
            if not active.any():
                break
            best = y, value
            for step in self._steps(x, residual, active):
                length = 1.0
                while length > 1e-12 and best[1] <= value:
                    trial = y.copy()
                    trial[active] = np.maximum(y[active] + length * step, 0.0)
                    best = max(best, (trial, self._dual(trial)), key=lambda pair: pair[1])
                    length /= 4
                if best[1] > value:
                    break
            gain = best[1] - value
            y, value = best
            if gain <= 1e-15 * abs(value):
                break
        return y

    def _dual(self, y: FloatArray) -> float:
        """The bound without its rounding."""
        return float(self._minimise(y @ self.G)[1].sum()) + float(y @ self._gap)

    def _steps(self, x: FloatArray, residual: FloatArray, active: BoolArray) -> Iterator[FloatArray]:
        """Directions of ascent to try in turn: Newton's, and the gradient, scaled."""
        d = x - self.xbar
        curvature = np.where(d > 0, self.q_up, self.q_down)
        inverse = np.where(curvature > 0, 0.5 / np.where(curvature > 0, curvature, 1.0), 0.0)
        free = (x > self.lo) & (x < self.hi) & ((d != 0) | (self.a_up + self.a_down == 0))
        rows = self.G[active]
        every = (rows * inverse) @ rows.T
        bent = (rows * (inverse * free)) @ rows.T
        # where no coordinate is free to move the dual is linear; a step by the full curvature gets away from there
        weight = 1e-12 if np.trace(bent) > 1e-9 * np.trace(every) else 1.0
        ridge = bent + weight * np.diag(np.diag(every)) + 1e-300 * np.eye(len(rows))
        yield np.asarray(np.linalg.lstsq(ridge, residual[active], rcond=1e-15)[0])
        for matrix in (bent, every):
            diagonal = np.diag(matrix)
            yield residual[active] / np.where(diagonal > 0, diagonal, np.inf)

    def active_set(
        self, x: FloatArray | None = None, y: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray] | None:
        """Point and multipliers for costs with a Q, by guessing what holds with equality and correcting that.

        A semismooth Newton method on ``x = prox(x - slope / weight)``, where the proximal point of the separable cost
        and the box tells which coordinates are at an end, at the origin, falling or rising (the primal-dual active set
        method of Hintermüller, Ito and Kunisch, SIAM J. Optim. 13, 2002, with kinks): few sparse systems where it
        converges. It does not where a guess leaves fewer free coordinates than tight half-spaces, which no point then
        meets: multipliers without bound, and the guesses go round in a circle. Lemke's pivots, one coordinate or
        half-space at a time, meet no such guess and end at the optimum of any convex problem that is not too large for
        a dense tableau.

        Returns
        -------
        ((n,) float64, (m,) float64) or None
            None where there is no point, or the problem is large and the guesses do not settle.

        Parameters
        ----------
        x : (n,) float64, optional
            Point to start from; the origin by default.
        y : (m,) float64, optional
        """
        assert self.Q is not None
        assert not len(self.k)
        start = np.clip(self.xbar if x is None else x, self.lo, self.hi), np.zeros(len(self.h)) if y is None else y
        double = 2 * self.Q
        weight = float((double.diagonal() + 2 * np.maximum(self.q_down, self.q_up)).max(initial=0.0)) or 1.0
        # a guess that goes round in a circle with one weight seldom does with another
        tries = (self._active_set(*start, double, weight * factor) for factor in (1.0, 0.1, 10.0, 0.01, 100.0))
        return next((found for found in tries if found is not None), None) or self._by_pivots()

    def _by_pivots(self) -> tuple[FloatArray, FloatArray] | None:
        """Point and multipliers from the basis in which Lemke's pivots end, over rises and falls."""
        n, m, identity = len(self.xbar), len(self.h), np.eye(len(self.xbar))
        low, high = self.lo - self.xbar, self.hi - self.xbar
        above, below = np.flatnonzero(np.isfinite(high)), np.flatnonzero(np.isfinite(low))
        gap = np.asarray(self._gap, np.float64)
        single = np.vstack([self.G, identity[above], -identity[below]])
        size = 2 * n + len(single)
        if size > MAX_CONDITIONS:
            return None
        form = 2 * self.Q.toarray()
        rows = np.hstack([single, -single])
        M = np.zeros((size, size))
        M[:n, :n], M[n : 2 * n, n : 2 * n] = form + 2 * np.diag(self.q_up), form + 2 * np.diag(self.q_down)
        M[:n, n : 2 * n] = M[n : 2 * n, :n] = -form
        M[: 2 * n, 2 * n :], M[2 * n :, : 2 * n] = rows.T, -rows
        q = np.concatenate([self.a_up, self.a_down, -gap, high[above], -low[below]])
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
        x, y = np.clip(self.xbar + d, self.lo, self.hi), np.maximum(z[2 * n : 2 * n + m], 0.0)
        return (x, y) if np.isfinite(z).all() and self._met(d) else None

    def _met(self, d: FloatArray) -> bool:
        """Whether a change meets the half-spaces, as far as rounding tells."""
        violation = self.G @ d + np.asarray(self._gap, np.float64)
        return bool((violation <= 1e-9 * (self._gap_size + np.abs(self.G) @ np.abs(d))).all())

    def _active_set(
        self, x: FloatArray, y: FloatArray, double: Any, weight: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """The method with one weight; `double` is twice the form."""
        low, high, d = self.lo - self.xbar, self.hi - self.xbar, x - self.xbar
        gap = np.asarray(self._gap, np.float64)
        squares = (self.G**2).sum(axis=1)
        squares[squares == 0] = 1.0
        seen, last = set[bytes](), b""
        for _ in range(MAX_STEPS):
            curvature = np.where(d < 0, self.q_down, self.q_up)
            aim = d - (double @ d + 2 * curvature * d + y @ self.G) / weight
            up, down = aim - self.a_up / weight, aim + self.a_down / weight
            target = np.where(up >= 0, up, np.where(down < 0, down, 0.0))
            rising, held = target >= 0, (up < 0) & (down >= 0)
            place = np.where(target <= low, low, np.where(target >= high, high, 0.0))
            held |= (target <= low) | (target >= high)
            tight = y + weight / squares * (self.G @ d + gap) > 0
            # which end counts, and not its side alone: both may lie on the same side of the origin
            now = rising.tobytes() + held.tobytes() + (np.where(held, place, 0.0) + 0.0).tobytes() + tight.tobytes()
            if now in seen:
                # the same guess twice in a row is the answer, and later on it is a circle
                return (self.xbar + d, y) if now == last and self._met(d) and (y >= 0).all() else None
            seen.add(now)
            last, d = now, np.where(held, place, 0.0)
            free = np.flatnonzero(~held)
            solved = self._stationary(double, d, free, np.flatnonzero(tight), rising[free], weight)
            if solved is None:
                return None
            d[free], y = solved
        return None

    def _stationary(
        self, double: Any, d: FloatArray, free: IntArray, active: IntArray, rising: BoolArray, weight: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """Changes of the free coordinates, and multipliers, where the slope is 0 and active half-spaces are met."""
        linear = np.where(rising, self.a_up[free], -self.a_down[free])
        curvature = 2 * np.where(rising, self.q_up[free], self.q_down[free])
        rows = self.G[np.ix_(active, free)]
        right = np.concatenate(
            [-linear - (double @ d)[free], -(self.G[active] @ d + np.asarray(self._gap, np.float64)[active])]
        )
        y = np.zeros(len(self.h))
        if not len(right):
            return np.zeros(0), y
        # a hair of slack where rows depend on each other; all of it in rows without a free coordinate
        slack = np.where(rows.any(axis=1), 1e-14, 1.0) * (self.G[active] ** 2).sum(axis=1) / weight
        hessian = double[free][:, free] + sp.diags_array(curvature)
        side = sp.csr_array(rows)
        system = sp.block_array([[hessian, side.T], [side, sp.diags_array(-slack)]], format="csc")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatrixRankWarning)
            solved = np.atleast_1d(spsolve(system, right))
        if not np.isfinite(solved).all():
            return None
        y[active] = solved[len(free) :]
        return solved[: len(free)], y

    def refine(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """One Newton step on the conditions of optimality with the solver's active sets, for costs with a Q.

        Parameters
        ----------
        x : (n,) float64
            Point of the solver.
        y : (m,) float64
            Its multipliers; half-spaces with positive ones are taken as tight.
        """
        assert self.Q is not None
        if len(self.k):
            return x, y
        d = x - self.xbar
        width = np.where(np.isfinite(self.hi - self.lo), self.hi - self.lo, 1.0)
        inside = (x > self.lo + 1e-7 * width) & (x < self.hi - 1e-7 * width)
        kink = (self.a_up + self.a_down > 0) & (np.abs(d) <= 1e-7 * width)
        free = np.flatnonzero(inside & ~kink)
        active = np.flatnonzero(y > 0)
        held = np.where(kink, self.xbar, np.where(x - self.lo < self.hi - x, self.lo, self.hi))
        start = np.where(np.isin(np.arange(len(x)), free), x, held)
        d = start - self.xbar
        rising = d > 0
        curvature = 2 * np.diag(np.where(rising, self.q_up, self.q_down)[free]) + 2 * self.Q[free][:, free].toarray()
        gradient = np.where(rising, self.a_up, -self.a_down) + 2 * np.where(rising, self.q_up, self.q_down) * d
        gradient = gradient + 2 * (self.Q @ d)
        rows = self.G[np.ix_(active, free)]
        top = np.hstack([curvature, rows.T])
        bottom = np.hstack([rows, np.zeros((len(active), len(active)))])
        right = np.concatenate([-gradient[free], self.h[active] - self.G[active] @ start])
        try:
            solved = np.linalg.solve(np.vstack([top, bottom]), right)
        except np.linalg.LinAlgError:
            return x, y
        new = start.copy()
        new[free] += solved[: len(free)]
        multipliers = np.zeros(len(y))
        multipliers[active] = np.maximum(solved[len(free) :], 0.0)
        if not np.isfinite(new).all() or (new < self.lo).any() or (new > self.hi).any():
            return x, y
        return new, multipliers

    def move_inside(
        self, x: FloatArray, margin: Callable[[FloatArray], FloatArray], round_to: Callable[[FloatArray], FloatArray]
    ) -> FloatArray | None:
        """The point after the shortest moves that take it inside the half-spaces by a margin; None if they do not.

        Parameters
        ----------
        x : (n,) float64
        margin : callable
            Of a point: by how much each half-space must hold, (m,).
        round_to : callable
            Nearest admissible values, (n,).
        """
        x = round_to(np.clip(x, self.lo, self.hi))
        width = np.where(np.isfinite(self.hi - self.lo), self.hi - self.lo, np.maximum(1.0, np.abs(x)))
        for attempt in range(12):
            needed = margin(x)
            rows, sides = self.rows_at(x)
            residual = rows @ x - sides + needed
            if (residual <= 0).all():
                return x
            residual = residual + np.abs(needed) / 2  # aim beyond the margin, since the step rounds as well
            inside = (x > self.lo) & (x < self.hi)
            # a coordinate at the origin stays there as long as others can do it
            free = inside & (x != self.xbar) if attempt < 4 else inside
            step = self._shortest(x, residual, free, width)
            if step is None:
                step = self._shortest(x, residual, inside, width)
            if step is None or attempt >= 6:
                step = self._least_move(x, residual, width)
            x = round_to(np.clip(x + step, self.lo, self.hi))
        return None

    def _least_move(self, x: FloatArray, residual: FloatArray, width: FloatArray) -> FloatArray:
        """Least change within the box, in units of the widths, that takes the residuals to 0, as near as it gets."""
        rows = self.rows_at(x)[0]
        unit = float(residual.max())
        zero, price = np.zeros(len(x)), np.where(width > 0, width, 1.0) ** -2.0
        low, high = (self.lo - x) / unit, (self.hi - x) / unit
        moves = Polytope(rows, -residual / unit, low, high, zero, zero, zero, price, price)
        return unit * moves.argmin(moves.ascend() @ rows)

    def _shortest(self, x: FloatArray, residual: FloatArray, free: BoolArray, width: FloatArray) -> FloatArray | None:
        """Least change of the free coordinates, in units of their widths, that takes the residuals to 0."""
        every, sides = self.rows_at(x)
        size = np.abs(every) @ np.abs(x) + np.abs(sides)
        near = residual > -1e-6 * size
        rows = every[np.ix_(near, free)] * width[free]
        target = np.minimum(-residual[near], 0.0)
        if not rows.any():
            return None
        found = np.linalg.lstsq(rows, target, rcond=1e-12)[0]
        if np.abs(rows @ found - target).max() > 1e-3 * np.abs(target).max() + 1e-300:
            violated = residual[near] > 0
            found = np.linalg.lstsq(rows[violated], target[violated], rcond=1e-12)[0]
            if np.abs(rows[violated] @ found - target[violated]).max() > 0.5 * np.abs(target[violated]).max():
                return None
        step = np.zeros(len(x))
        step[free] = found * width[free]
        return step

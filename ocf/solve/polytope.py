"""The cheapest change into a polytope, in numbers: its cost, and bounds that hold whatever a solver says.

A solver answers an LP or QP within its tolerances, which are wider than what decides the side of a split. From its
multipliers `Polytope.bound` proves a lower bound in float64 (weak duality). Who finds multipliers:
`ocf.solve.dual_ascent` where the cost is separable and strictly convex, `ocf.solve.active_set` where it has a quadratic
form, and HiGHS. `ocf.solve.move_inside` takes a point off the half-spaces.

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
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ocf.arrays import FloatArray

#: Unit roundoff of float64, and of the widest format that the machine has.
UNIT, _WIDE = 2.0**-53, float(np.finfo(np.longdouble).eps)


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

    def noise(self, x: FloatArray) -> float:
        """What rounding may add to the cost of a point by the quadratic form, whose products may cancel; else 0."""
        if self.Q is None:
            return 0.0
        d = np.abs(x - self.xbar)
        return UNIT * float(d @ (abs(self.Q) @ d))

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
        return self.minimise(slope)[0]

    def minimise(self, slope: FloatArray, slack: FloatArray | float = 0.0) -> tuple[FloatArray, FloatArray]:
        """The same, and what each coordinate's change comes to, (n,) each; -inf where that falls without end.

        Parameters
        ----------
        slope : (n,) float64
        slack : (n,) float64, optional
            By how much the slope may be wrong: the least that any slope so near to it leads to.
        """
        low, high = self.lo - self.xbar, self.hi - self.xbar
        a_up, a_down = self.a_up - slack, self.a_down - slack
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            up = np.where(self.q_up > 0, (-slope - a_up) / (2 * self.q_up), 0.0)
            down = np.where(self.q_down > 0, (a_down - slope) / (2 * self.q_down), 0.0)
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
            values = self.separable_cost(finite) + slope * finite - slack * np.abs(finite)
            # at an infinite end the cost grows or falls without end, by the sign of its slope there
            growth = np.where(candidates > 0, slope + a_up, a_down - slope)
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
        constant = wide @ self.gap
        size = float(np.abs(y) @ self.gap_size)
        tangent: Any = 0.0  # by how much a slope may be wrong, per unit of change, (n,)
        if self.Q is not None:
            assert around is not None
            d = around - self.xbar
            slope_q, tangent = self._slope_of_form(d)
            slope = slope + slope_q
            constant -= d @ slope_q / 2
            size += float(np.abs(d) @ np.abs(slope_q.astype(np.float64))) + float(np.abs(d) @ tangent) / _WIDE
        slack = (len(y) + 2) * _WIDE * (np.abs(y) @ np.abs(self.G))  # products of a slope may cancel
        x, values = self.minimise(slope.astype(np.float64), slack)
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
    def gap(self) -> Any:
        """``G xbar - h`` in extended precision: by how much the origin violates each half-space."""
        return np.asarray(self.G, np.longdouble) @ self.xbar - self.h

    @cached_property
    def gap_size(self) -> FloatArray:
        """Magnitudes of what `gap` sums, (m,)."""
        return np.abs(self.G) @ np.abs(self.xbar) + np.abs(self.h)

    def is_met_by(self, change: FloatArray) -> bool:
        """Whether a change from the origin meets the half-spaces, as far as rounding tells."""
        violation = self.G @ change + np.asarray(self.gap, np.float64)
        return bool((violation <= 1e-9 * (self.gap_size + np.abs(self.G) @ np.abs(change))).all())

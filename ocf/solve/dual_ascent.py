"""Multipliers of a polytope whose cost is separable and strictly convex, by projected Newton steps on the dual."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ocf.arrays import BoolArray, FloatArray
from ocf.solve.polytope import Polytope

#: Newton steps at most.
MAX_STEPS = 60


def ascend(p: Polytope, y: FloatArray | None = None) -> FloatArray:
    """Multipliers that maximise the bound, for strictly convex costs, by projected Newton steps.

    The bound is concave, piecewise quadratic and smooth in the few multipliers, and its gradient is the violation
    of the half-spaces at the minimiser of the Lagrangian.

    Parameters
    ----------
    p : Polytope
        Without relations.
    y : (m,) float64, optional
        Multipliers to start from; 0 by default.
    """
    y = np.zeros(len(p.h)) if y is None else y
    value = _dual(p, y)
    for _ in range(MAX_STEPS):
        slope = y @ p.G
        x = p.argmin(slope)
        residual = np.asarray(p.G @ (x - p.xbar) + p.gap, np.float64)
        active = (y > 0) | (residual > 0)
        if not active.any():
            break
        best = y, value
        for step in _steps(p, x, residual, active):
            length = 1.0
            while length > 1e-12 and best[1] <= value:
                trial = y.copy()
                trial[active] = np.maximum(y[active] + length * step, 0.0)
                best = max(best, (trial, _dual(p, trial)), key=lambda pair: pair[1])
                length /= 4
            if best[1] > value:
                break
        gain = best[1] - value
        y, value = best
        if gain <= 1e-15 * abs(value):
            break
    return y


def _dual(p: Polytope, y: FloatArray) -> float:
    """The bound without its rounding."""
    return float(p.minimise(y @ p.G)[1].sum()) + float(y @ p.gap)


def _steps(p: Polytope, x: FloatArray, residual: FloatArray, active: BoolArray) -> Iterator[FloatArray]:
    """Directions of ascent to try in turn: Newton's, and the gradient, scaled."""
    d = x - p.xbar
    curvature = np.where(d > 0, p.q_up, p.q_down)
    inverse = np.where(curvature > 0, 0.5 / np.where(curvature > 0, curvature, 1.0), 0.0)
    free = (x > p.lo) & (x < p.hi) & ((d != 0) | (p.a_up + p.a_down == 0))
    rows = p.G[active]
    every = (rows * inverse) @ rows.T
    bent = (rows * (inverse * free)) @ rows.T
    # where no coordinate is free to move the dual is linear; a step by the full curvature gets away from there
    weight = 1e-12 if np.trace(bent) > 1e-9 * np.trace(every) else 1.0
    ridge = bent + weight * np.diag(np.diag(every)) + 1e-300 * np.eye(len(rows))
    yield np.asarray(np.linalg.lstsq(ridge, residual[active], rcond=1e-15)[0])
    for matrix in (bent, every):
        diagonal = np.diag(matrix)
        yield residual[active] / np.where(diagonal > 0, diagonal, np.inf)

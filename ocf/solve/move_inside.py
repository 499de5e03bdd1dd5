"""A point of a polytope taken off its half-spaces, onto the side where rounding cannot disagree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ocf.arrays import BoolArray, FloatArray
from ocf.solve.dual_ascent import ascend
from ocf.solve.polytope import Polytope


def move_inside(
    p: Polytope, x: FloatArray, margin: Callable[[FloatArray], FloatArray], round_to: Callable[[FloatArray], FloatArray]
) -> FloatArray | None:
    """The point after the shortest moves that take it inside the half-spaces by a margin; None if they do not.

    Parameters
    ----------
    p : Polytope
    x : (n,) float64
    margin : callable
        Of a point: by how much each half-space must hold, (m,).
    round_to : callable
        Nearest admissible values, (n,).
    """
    x = round_to(np.clip(x, p.lo, p.hi))
    width = np.where(np.isfinite(p.hi - p.lo), p.hi - p.lo, np.maximum(1.0, np.abs(x)))
    for attempt in range(12):
        needed = margin(x)
        rows, sides = p.rows_at(x)
        residual = rows @ x - sides + needed
        if (residual <= 0).all():
            return x
        residual = residual + np.abs(needed) / 2  # aim beyond the margin, since the step rounds as well
        inside = (x > p.lo) & (x < p.hi)
        # a coordinate at the origin stays there as long as others can do it
        free = inside & (x != p.xbar) if attempt < 4 else inside
        step = _shortest(p, x, residual, free, width)
        if step is None:
            step = _shortest(p, x, residual, inside, width)
        if step is None or attempt >= 6:
            step = _least_move(p, x, residual, width)
        x = round_to(np.clip(x + step, p.lo, p.hi))
    return None


def _least_move(p: Polytope, x: FloatArray, residual: FloatArray, width: FloatArray) -> FloatArray:
    """Least change within the box, in units of the widths, that takes the residuals to 0, as near as it gets."""
    rows = p.rows_at(x)[0]
    unit = float(residual.max())
    zero, price = np.zeros(len(x)), np.where(width > 0, width, 1.0) ** -2.0
    low, high = (p.lo - x) / unit, (p.hi - x) / unit
    moves = Polytope(rows, -residual / unit, low, high, zero, zero, zero, price, price)
    return unit * moves.argmin(ascend(moves) @ rows)


def _shortest(
    p: Polytope, x: FloatArray, residual: FloatArray, free: BoolArray, width: FloatArray
) -> FloatArray | None:
    """Least change of the free coordinates, in units of their widths, that takes the residuals to 0."""
    every, sides = p.rows_at(x)
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

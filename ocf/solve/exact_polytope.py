"""The cheapest change into a small polytope in exact arithmetic, for what solvers and methods in float64 leave open.

Over rises and falls the cost is a convex quadratic programme on ``rise, fall >= 0``, which Lemke's pivots
(`ocf.cells.exact_programs`) settle whatever the sizes of its numbers are: weights of 1e-9 beside others of 1, say.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ocf.arrays import FloatArray
from ocf.cells.exact_programs import Matrix, Vector, minimise_with_multipliers
from ocf.solve.polytope import Polytope

#: Conditions of optimality (ends, kinks, half-spaces) of a linear and of a quadratic cost up to which exact arithmetic
#: takes about a second at most.
MAX_LINEAR, MAX_CURVED = 60, 40


def is_exactly_solvable(p: Polytope) -> bool:
    """Whether `solve_exactly` takes a polytope: a small one without relations, and no change that is paid for.

    Parameters
    ----------
    p : Polytope
    """
    ends = int(np.isfinite(p.lo).sum() + np.isfinite(p.hi).sum())
    curved = p.Q is not None or p.q_up.any() or p.q_down.any()
    small = 2 * len(p.xbar) + len(p.h) + ends <= (MAX_CURVED if curved else MAX_LINEAR)
    return small and not len(p.k) and bool((p.a_up >= 0).all() and (p.a_down >= 0).all())


def solve_exactly(p: Polytope) -> tuple[FloatArray, FloatArray] | None:
    """Point and multipliers, the nearest float64 numbers to the exact ones; None where there is no point.

    Parameters
    ----------
    p : Polytope
        One that `is_exactly_solvable`.

    Returns
    -------
    ((n,) float64, (m,) float64) or None
    """
    n, identity = len(p.xbar), np.eye(len(p.xbar))
    above, below = np.flatnonzero(np.isfinite(p.hi)), np.flatnonzero(np.isfinite(p.lo))
    origin = _exact(p.xbar)
    single = np.vstack([p.G, identity[above], -identity[below]])
    sides = _exact(np.concatenate([p.h, p.hi[above], -p.lo[below]]))
    rows = [_exact(row) for row in single]
    b = [
        side - sum((v * x for v, x in zip(row, origin, strict=True) if v), Fraction())
        for row, side in zip(rows, sides, strict=True)
    ]
    c = _exact(np.concatenate([p.a_up, p.a_down]))
    found = minimise_with_multipliers(c, [[*row, *(-v for v in row)] for row in rows], b, _form(p))
    if found is None:
        return None
    change, multipliers = found
    x = [float(o + up - down) for o, up, down in zip(origin, change[:n], change[n:], strict=True)]
    return np.clip(x, p.lo, p.hi), np.array([float(v) for v in multipliers[: len(p.h)]])


def _form(p: Polytope) -> Matrix | None:
    """Second derivatives of the cost over rises and falls; None where it has none."""
    if p.Q is None and not p.q_up.any() and not p.q_down.any():
        return None
    n = len(p.xbar)
    double = np.zeros((n, n)) if p.Q is None else 2 * p.Q.toarray()
    rising = [_exact(row) for row in np.hstack([double, -double])]
    falling = [_exact(row) for row in np.hstack([-double, double])]
    for i, (up, down) in enumerate(zip(_exact(2 * p.q_up), _exact(2 * p.q_down), strict=True)):
        rising[i][i] += up
        falling[i][n + i] += down
    return rising + falling


def _exact(values: FloatArray) -> Vector:
    return [Fraction(v) for v in values.tolist()]

"""Multipliers of a polytope's half-spaces at a point, from the point alone: for solvers that give no others.

At an optimum no coordinate can rise or fall for less than nothing. A coordinate that is neither at an end nor at the
origin can do both, so that its slope is 0: equations over the multipliers of the half-spaces that the point meets. A
coordinate at the origin or at an end can do one of them, or has a kink: inequalities, which join in, each with a slack
of its own, where the multipliers of the others break them.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from ocf.arrays import FloatArray
from ocf.solve.polytope import Polytope

#: Part of the sizes involved up to which a half-space counts as met with equality, and a coordinate as at its end.
NEAR = 1e-7

#: Times that inequalities may join in.
MAX_ROUNDS = 20


def multipliers_at(p: Polytope, x: FloatArray) -> FloatArray:
    """Multipliers with which a point is optimal, as nearly as they are found; `Polytope.bound` says what they prove.

    Parameters
    ----------
    p : Polytope
    x : (n,) float64

    Returns
    -------
    (m + r,) float64
        Those of half-spaces and relations that the point is not near are 0.
    """
    shape = len(p.k), len(x)  # without relations the matrices are empty
    K_up, K_down = p.K_up.reshape(shape), p.K_down.reshape(shape)
    d = x - p.xbar
    d = np.where(np.abs(d) <= 1e-3 * NEAR * np.abs(d).max(initial=0.0), 0.0, d)
    rise, fall = np.maximum(d, 0.0), np.maximum(-d, 0.0)
    gaps = np.concatenate([p.G @ d + np.asarray(p.gap, np.float64), K_up @ rise + K_down @ fall - p.k])
    sizes = np.concatenate(
        [p.gap_size + np.abs(p.G) @ np.abs(d), np.abs(K_up) @ rise + np.abs(K_down) @ fall + np.abs(p.k)]
    )
    tight = np.flatnonzero(gaps >= -NEAR * sizes)
    slope = 0.0 if p.Q is None else 2 * (p.Q @ d)
    near = NEAR * (np.abs(p.xbar) + np.where(np.isfinite(p.hi - p.lo), p.hi - p.lo, 1.0))
    low, high = x <= p.lo + near, x >= p.hi - near
    # what a rise and a fall cost, and whether that must be at least 0, or at most: where there is one to take back
    rows = np.vstack([np.vstack([p.G, K_up])[tight].T, np.vstack([-p.G, K_down])[tight].T])
    right = -np.concatenate([p.a_up + 2 * p.q_up * rise + slope, p.a_down + 2 * p.q_down * fall - slope])
    at_least = np.concatenate([(d >= 0) & ~high, (d <= 0) & ~low])
    at_most = np.concatenate([(d > 0) & ~low, (d < 0) & ~high])
    used = at_least & at_most
    slack = np.diag(np.where(at_most, 1.0, -1.0))[:, ~used]
    y = np.zeros(len(gaps))
    for _ in range(MAX_ROUNDS):
        own = slack[used][:, slack[used].any(axis=0)]
        if len(tight) and used.any():
            y[tight] = nnls(np.hstack([rows[used], own]), right[used])[0][: len(tight)]
        miss = rows @ y[tight] - right
        tolerance = 1e-9 * (np.abs(rows) @ y[tight] + np.abs(right))
        broken = ((miss < -tolerance) & at_least | (miss > tolerance) & at_most) & ~used
        if not broken.any():
            break
        used |= broken
    return y

"""Proofs that a polytope holds no point, whoever says so: multipliers by which its half-spaces contradict each other.

A solver that calls a linear programme infeasible may have lost a point to its tolerances: HiGHS 1.15 does within 1e-7
of a hyperplane. Half-spaces that are moved out far enough let points in; by how far at least, all of them alike, is a
linear programme that always has a point. Its multipliers prove the contradiction in float64, rounding included
(`Polytope.bound`, for costs of zero: Farkas' lemma). Where they do not, nothing is claimed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import linprog

from ocf.arrays import FloatArray
from ocf.solve.polytope import Polytope

#: Of the linear programme: multipliers need not be optimal, but a contradiction by little must not be lost.
TOLERANCES = {"presolve": False, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def is_proven_empty(p: Polytope) -> bool:
    """Whether multipliers prove that a polytope holds no point.

    Parameters
    ----------
    p : Polytope
        Half-spaces and relations with infinite sides say nothing.
    """
    if (p.lo > p.hi).any():
        return True
    free = _without_costs(p)
    multipliers = _contradiction(free)
    return multipliers is not None and free.bound(multipliers) > 0


def _without_costs(p: Polytope) -> Polytope:
    """The same for nothing, and without rows that say nothing."""
    held, zeros = np.isfinite(p.h), np.zeros(len(p.xbar))
    free = replace(p, G=p.G[held], h=p.h[held], a_down=zeros, a_up=zeros, q_down=zeros, q_up=zeros, Q=None, credit=0.0)
    if not len(p.k):
        return free
    kept = np.isfinite(p.k)
    return replace(free, K_down=p.K_down[kept], K_up=p.K_up[kept], k=p.k[kept])


def _contradiction(p: Polytope) -> FloatArray | None:
    """Multipliers of the half-spaces and relations at the least move of all that lets a point in, (m + r,)."""
    A = np.block([[p.G, -p.G], [p.K_up, p.K_down]]) if len(p.k) else np.hstack([p.G, -p.G])
    sides = np.concatenate([-np.asarray(p.gap, float), p.k])
    low = np.concatenate([np.maximum(p.lo - p.xbar, 0.0), np.maximum(p.xbar - p.hi, 0.0)])
    high = np.concatenate([np.maximum(p.hi - p.xbar, 0.0), np.maximum(p.xbar - p.lo, 0.0)])
    # in units of each change's range, and of what a row is made of
    width = np.where(np.isfinite(high) & (high > low), high - low, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(A * width).max(axis=1, initial=0.0)
        size = np.where(size > 0, size, 1.0)
        rows, sides = A * width / size[:, None], sides / size
    if not np.isfinite(rows).all() or not np.isfinite(sides).all():
        return None
    moved = np.column_stack([rows, -np.ones(len(size))])
    ends = np.column_stack([np.append(low / width, 0.0), np.append(high / width, np.inf)])
    cost = np.append(np.zeros(len(width)), 1.0)
    found = linprog(cost, moved, sides, bounds=ends, method="highs-ds", options=TOLERANCES)
    return None if found.status != 0 else np.maximum(-found.ineqlin.marginals, 0.0) / size

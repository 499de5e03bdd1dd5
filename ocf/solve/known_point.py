"""A row of the data in the place of an answer that a limit left without a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import numpy as np

from ocf.arrays import BoolArray, FloatArray
from ocf.features.feature import has_grid
from ocf.problem.piecewise import exact_rows
from ocf.problem.problem import Problem
from ocf.problem.rows import satisfied
from ocf.solve.outcome import Outcome, unproven
from ocf.solvers.result import Status
from ocf.support.messages import with_remark

#: Rows that the user's model is asked about, at most.
MOST_ROWS = 32


def with_known_point(
    outcome: Outcome, problem: Problem, known: FloatArray, judge: Callable[[FloatArray], bool]
) -> Outcome:
    """The same with the cheapest of the data's rows, where a search neither found one nor showed that there is none.

    What a row may not take from another stays as it is. A row also refutes a solver's claim that there is no point.

    Parameters
    ----------
    outcome : Outcome
        Without a point.
    problem : Problem
    known : (n, n_features) float64
        Coded rows of the data that have the target.
    judge : callable
        Whether the user's own model gives the target to a coded point.
    """
    if problem.penalty is not None or problem.margins:  # more is asked of a point than the judge looks at
        return outcome
    points = np.where(problem.permits(known) & _on_grids(problem, known), known, problem.origin)
    points = points[problem.permits(points).all(axis=1)]
    costs, rows = problem.costs(points), exact_rows(problem)
    order = (k for k in np.argsort(costs, kind="stable").tolist() if np.isfinite(costs[k]))
    for k in islice((k for k in order if satisfied(rows, problem.space, points[k])), MOST_ROWS):
        if judge(points[k]):
            said = "the point is the nearest row of the data"
            if outcome.status is Status.INFEASIBLE:
                outcome = unproven(outcome, "a row of the data refutes the solver's claim that there is no point")
            said = with_remark(outcome.message, said)
            return replace(outcome, status=Status.FEASIBLE, point=points[k], cost=float(costs[k]), message=said)
    return outcome


def _on_grids(problem: Problem, points: FloatArray) -> BoolArray:
    """Which values are whole numbers, or multiples of a step, where their feature takes no others, (n, n_features)."""
    out = np.ones(points.shape, bool)
    for i, feature in enumerate(problem.space.features):
        if has_grid(feature):
            out[:, i] = np.isnan(points[:, i]) | (feature.at_most(points[:, i]) == points[:, i])
    return out

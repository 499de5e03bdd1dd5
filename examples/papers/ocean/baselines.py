"""Baselines of table 3 that prove no optimum: feature tweaking, FOCUS, and the search of MACE.

Feature tweaking (FT) is `tweaking.py` one folder up, FOCUS is `focus.py`; points that break a data set's own facts,
such as a lower age, do not count, since the other methods keep them.

MACE (Karimi, Barthe, Balle & Valera, AISTATS 2020) says model and distance in logic, asks a solver of formulas whether
there is a point within a distance, and halves the interval of distances until it is shorter than 1e-3 (of the mean over
the features). Here the logic is that of OAE's model and HiGHS decides whether a point exists: the same search, by
another solver.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from focus import focus
from tweaking import tweak

from ocf.problem.problem import Problem
from ocf.solve.compile import compile_formulation
from ocf.solvers import get_solver
from ocf.solvers.result import SolverOptions, Status

if TYPE_CHECKING:
    from common import Case

#: Of the mean distance over the features, at which MACE's search ends.
PRECISION = 1e-3

#: Status and cost of an answer: "found" without a proof, "none", or "late".
Found = tuple[str, float | None]


def nearest(look: Callable[..., pd.DataFrame | None], case: Case, row: pd.DataFrame, norm: str, limit: float) -> Found:
    """The cheapest of the points that a method finds in one pass.

    Parameters
    ----------
    look : callable
        `tweaking.tweak` or `focus.focus`.
    case : Case
    row : DataFrame (1, n_columns)
    norm : str
    limit : float
        Not looked at: the paths, or the steps, are counted.
    """
    explain = case.explainer
    problem = explain.problem(row, 1, norm)

    def distance(table: pd.DataFrame) -> np.ndarray:
        return np.array([price(problem, point) for point in explain.space.from_frame(table)])

    settings = case.settings
    point = look(explain.model.native, row, 1, case.train, settings, distance)
    return ("none", None) if point is None else ("found", float(distance(point)[0]))


def price(problem: Problem, point: np.ndarray) -> float:
    """Cost of a coded point; infinite where a feature may not have its value."""
    for feature, old, new in zip(problem.space.features, problem.origin.tolist(), point.tolist(), strict=True):
        low, high = feature.limits(old)
        if not low <= new <= high:
            return np.inf
    return problem.cost.total(problem.space, problem.origin, point)


def bisected(case: Case, row: pd.DataFrame, norm: str, limit: float) -> Found:
    """The point at which MACE's search ends.

    Parameters
    ----------
    case : Case
    row : DataFrame (1, n_columns)
    norm : str
    limit : float
        Seconds of the processor in all.
    """
    end = time.process_time() + limit
    problem = case.explainer.problem(row, 1, norm)
    cells = case.explainer.cells(problem)
    form = compile_formulation("oae", cells).instance(cells).form
    solver: Any = get_solver("highs")
    low, high, best = 0.0, float(form.upper @ np.maximum(form.c, 0.0)) + form.c0, None
    whole = high
    while high - low > PRECISION * len(problem.origin):
        left = end - time.process_time()
        if left <= 0:
            return "late", best
        middle = whole if best is None else (low + high) / 2
        within = form.append_rows(form.c, -np.inf, middle - form.c0).with_costs(np.zeros(form.n_cols))
        found = solver.solve(within, SolverOptions(time_limit=left))
        if found.status is Status.INFEASIBLE:
            if best is None:
                return "none", None
            low = middle
        elif found.x is None:
            return "late", best
        else:
            high = best = float(form.c @ found.x) + form.c0
    return "found", best


#: Name of a column of table 3 -> baseline.
BASELINES: dict[str, Callable[[Case, pd.DataFrame, str, float], Found]] = {
    "FT": partial(nearest, tweak),
    "FOCUS": partial(nearest, focus),
    "MACE": bisected,
}

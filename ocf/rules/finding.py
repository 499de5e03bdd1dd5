"""The set of features that rules are about, and the boxes of rules, by the method that is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ocf.regional.query import ProbabilityQuery
from ocf.rules.search import FoundBox, divergent_set, greedy_boxes, largest_box
from ocf.rules.solving import solve_box, solve_minimal_sets, solve_most_divergent_set
from ocf.solvers.result import SolverOptions, Status


def find_features(
    query: ProbabilityQuery, candidates: Sequence[int], level: float, *, sets: str, solver: str
) -> tuple[tuple[int, ...], bool]:
    """S, and whether it reaches the level.

    Parameters
    ----------
    query : ProbabilityQuery
    candidates : sequence of int
    level : float
        The paper's pi.
    sets : {"exhaustive", "milp"}
    solver : {"highs", "scip"}
        For ``"milp"``.
    """
    if sets == "exhaustive":
        return divergent_set(query, candidates, level)
    found = solve_minimal_sets(query, candidates, level, solver=solver)
    if found:
        return found[0], True
    return solve_most_divergent_set(query, candidates, solver=solver), False


def find_boxes(
    query: ProbabilityQuery,
    features: tuple[int, ...],
    level: float,
    n_rules: int,
    *,
    method: str,
    solver: str,
    time_limit: float | None,
) -> list[FoundBox]:
    """Boxes of disjoint rules, the one that captures most first.

    Parameters
    ----------
    query : ProbabilityQuery
    features : tuple of int
        S.
    level : float
        The paper's pi_C.
    n_rules : int
        Boxes at most.
    method : {"search", "greedy", "milp"}
    solver : {"highs", "scip"}
        For ``"milp"``.
    time_limit : float or None
        Seconds for each box.
    """
    greedy = greedy_boxes(query, features, level, n_rules)
    if method == "greedy":
        return [FoundBox(box, w, np.inf, Status.FEASIBLE, 0.0) for box, w in greedy[:n_rules]]
    found: list[FoundBox] = []
    while len(found) < n_rules:
        earlier = [box.region for box in found if box.region is not None]
        # later rules have to keep away from the earlier ones, which the greedy ones need not
        start = greedy[0] if greedy and not found else None
        if method == "search":
            box = largest_box(query, features, level, earlier=earlier, start=start, most=10**9, time_limit=time_limit)
        else:
            box = solve_box(
                query, features, level, earlier=earlier, start=start and start[0], solver=solver,
                options=SolverOptions(time_limit=time_limit),
            )  # fmt: skip
        if box.region is None:
            break
        found.append(box)
    return found

"""The set of features that rules are about, and the boxes of rules, by the method that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ocf.arrays import BoolArray
from ocf.errors import ProblemError
from ocf.regional.forest import CellBox
from ocf.regional.query import ProbabilityQuery
from ocf.rules.search import (
    FoundBox,
    divergent_set,
    greedy_boxes,
    highest_level,
    largest_box,
    minimal_sets,
    path_sets,
)
from ocf.rules.solving import solve_box, solve_minimal_sets, solve_most_divergent_set
from ocf.solvers.result import SolverOptions, Status
from ocf.support.amounts import real_number
from ocf.support.messages import nearest

SET_METHODS = ("exhaustive", "milp", "paths")

RULE_METHODS = ("search", "greedy", "milp")

PREFERENCES = ("large", "probable")

#: Seconds that the search for a rule takes at most by default. In ten the rules found on the data sets at hand were no
#: larger, and a row took thirteen.
TIME_LIMIT = 1.0

#: What leaves no question open.
PROVED = (Status.OPTIMAL, Status.INFEASIBLE)

#: Families of boxes that are looked at for a start of the mathematical model, which is the smaller the larger that is:
#: a fifth of a second of the processor.
GLANCE = 2_000


@dataclass(frozen=True)
class RuleSearch:
    """Which rules are asked for, and how they are found; see `ocf.rules.explainer.CounterfactualRules.local`."""

    level: float = 0.9
    rule_level: float = 0.9
    n_rules: int = 1
    prefer: str = "large"
    sets: str = "exhaustive"
    method: str = "search"
    solver: str = "highs"
    time_limit: float | None = TIME_LIMIT
    every_set: bool = False

    def __post_init__(self) -> None:
        check_choice("sets", self.sets, SET_METHODS)
        check_choice("method", self.method, RULE_METHODS)
        check_choice("prefer", self.prefer, PREFERENCES)
        if not isinstance(self.n_rules, int | np.integer) or self.n_rules < 1:
            raise ProblemError(f"n_rules is a number of rules, at least 1, not {self.n_rules!r}")
        SolverOptions(time_limit=self.time_limit)  # refuses what is no limit
        for name, value in (("level", self.level), ("rule_level", self.rule_level)):
            if not 0 < real_number(value) <= 1:
                raise ProblemError(f"{name} is a probability above 0 and at most 1, not {value!r}")


def check_choice(name: str, value: str, known: Sequence[str]) -> None:
    """Refuse a word that is not among the known ones.

    Parameters
    ----------
    name : str
        Of the setting.
    value : str
    known : sequence of str

    Raises
    ------
    ProblemError
        With the nearest known word.
    """
    if value not in known:
        raise ProblemError(f"{name} {nearest(value, known)}")


def find_features(
    query: ProbabilityQuery, candidates: Sequence[int], changeable: BoolArray, search: RuleSearch
) -> tuple[list[tuple[int, ...]], bool]:
    """S, with all others of its size that reach the level where they are asked for, and whether it does.

    Parameters
    ----------
    query : ProbabilityQuery
    candidates : sequence of int
    changeable : (n_features,) bool
        Which features may be in sets from decision paths.
    search : RuleSearch
    """
    if search.sets == "milp":
        found = solve_minimal_sets(query, candidates, search.level, solver=search.solver, every=search.every_set)
        if found:
            return found, True
        return [solve_most_divergent_set(query, candidates, solver=search.solver)], False
    pool = path_sets(query.forest, changeable) if search.sets == "paths" else None
    if search.every_set and (every := minimal_sets(query, candidates, search.level, pool)):
        return every, True
    features, divergent = divergent_set(query, candidates, search.level, pool)
    return [features], divergent


def find_boxes(query: ProbabilityQuery, features: tuple[int, ...], search: RuleSearch) -> list[FoundBox]:
    """Boxes of disjoint rules: the one that captures most first, or the most probable.

    Parameters
    ----------
    query : ProbabilityQuery
    features : tuple of int
        S.
    search : RuleSearch
    """
    if search.method == "greedy" and search.prefer == "large":
        return [_greedy(*rule) for rule in greedy_boxes(query, features, search.rule_level)[: search.n_rules]]
    found: list[FoundBox] = []
    while len(found) < search.n_rules:
        earlier = [box.region for box in found if box.region is not None]
        box = _next_box(query, features, search, earlier)
        if box.region is None:
            break
        found.append(box)
    return found


def _next_box(
    query: ProbabilityQuery, features: tuple[int, ...], search: RuleSearch, earlier: list[CellBox]
) -> FoundBox:
    """The largest box at the level or, where the most probable one is preferred, at the highest level of a leaf."""
    level = search.rule_level
    if search.prefer == "probable":
        level = highest_level(query, features, level, earlier)
    greedy = greedy_boxes(query, features, level, earlier=earlier)
    start = greedy[0] if greedy else None
    if search.method == "greedy":
        return _greedy(*start) if start else FoundBox(None, 0.0, np.inf, Status.UNKNOWN, 0.0)
    if search.method == "search":
        return largest_box(
            query, features, level, earlier=earlier, start=start, most=10**9, time_limit=search.time_limit
        )
    glance = largest_box(
        query, features, level, earlier=earlier, start=start, most=GLANCE, time_limit=search.time_limit
    )
    found = solve_box(
        query, features, level, earlier=earlier, start=glance.region, solver=search.solver,
        options=SolverOptions(time_limit=search.time_limit),
    )  # fmt: skip
    if found.status in PROVED or glance.status not in PROVED:
        return replace(found, bound=min(found.bound, glance.bound))
    return glance


def _greedy(box: CellBox, weight: float) -> FoundBox:
    return FoundBox(box, weight, np.inf, Status.FEASIBLE, 0.0)

"""Which of the points that cost the same is the answer: the least by l1, and then that with the fewest changes.

Each criterion after the cost is a problem of its own: the cheapest point by that criterion among those that cost no
more, and are no worse by the criteria before it, than the point at hand. So the answer is the lexicographic optimum,
with proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.features.curve import exact
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.problem.constraints import Check, Constraint, Origin
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.rows import ZERO, Part, Row
from ocf.support.tolerances import slack

#: Counted changes beyond this are not looked for among sums of costs.
MOST_SUMMED = 3


@dataclass(frozen=True, eq=False)
class NoDearer(Constraint):
    """The changes cost no more than those of a point, by a cost that the features add up to.

    Cells must have the same cheapest value by this cost as by that of the problem, which the nearest value is.
    """

    cost: Cost
    space: FeatureSpace
    point: FloatArray
    name: str = "costs no more"
    kind: ClassVar[str] = "no_dearer"

    def named(self) -> Iterator[tuple[str, Check]]:
        """No feature by its name."""
        return iter(())

    def rows_from(self, origin: Origin) -> Iterator[Row]:
        """The constraint as a row."""
        places = [(i, f, float(origin.coded[i])) for i, f in enumerate(self.space.features)]
        parts = {i: Part(self._amount(f, old), np.empty(0)) for i, f, old in places if not math.isnan(old)}
        limit = sum((part.of(float(self.point[i])) for i, part in parts.items()), ZERO)
        yield Row(self.title, parts, limit)

    def _amount(self, feature: Feature, origin: float) -> Callable[[float], Fraction]:
        def of(value: float) -> Fraction:
            return ZERO if value == origin or math.isnan(value) else exact(float(self.cost.of(feature, origin, value)))

        return of


def breakers(problem: Problem) -> list[Problem]:
    """The problems that break ties, one after the other, as yet without the constraint to cost no more.

    Ties of costs of the user's own, of costs that couple features and of costs of leaves stay.

    Parameters
    ----------
    problem : Problem
    """
    cost, features = problem.cost, problem.space.features
    if cost.couples or problem.penalty is not None or any(f.cost is not None for f in features):
        return []
    weighted = [f.name for f in features if (f.weight_down, f.weight_up) != (1.0, 1.0)]
    space = problem.space.updated({name: {"weight_down": 1.0, "weight_up": 1.0} for name in weighted})
    length, count = replace(problem, cost=Cost(l1=1.0)), replace(problem, cost=Cost(l0=1.0), space=space)
    others = bool(cost.l2 or cost.squares)
    if cost.l1 and not (cost.l0 or others):
        return [count]
    if cost.l0 and not (cost.l1 or others or weighted):
        return [length]
    return [length, count]


def among_equals(problem: Problem, before: Sequence[Problem], point: FloatArray) -> Problem:
    """A problem among points that are no worse than one by the costs of those before it.

    Parameters
    ----------
    problem : Problem
    before : sequence of Problem
    point : (n_features,) float64
        Coded.
    """
    own = tuple(NoDearer(p.cost, p.space, point) for p in before)
    return replace(problem, constraints=(*problem.constraints, *own))


def count_changes(problem: Problem, point: FloatArray) -> int:
    """How many features a coded point changes.

    Parameters
    ----------
    problem : Problem
    point : (n_features,) float64
    """
    return int((~np.isnan(problem.origin) & (point != problem.origin)).sum())


def may_tie(cost: FloatArray, offsets: IntArray, total: float, changes: int) -> bool:
    """Whether fewer changes might cost as much: False where no sum of the costs of so few cells is the same.

    Parameters
    ----------
    cost : (n_cells,) float64
        Of the cells of all features.
    offsets : (n_features + 1,) int64
        Where those of each feature begin.
    total : float
        Cost of the answer; nothing that has the target is cheaper.
    changes : int
        Of the answer.
    """
    feature = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if changes > MOST_SUMMED or np.bincount(feature[cost == 0]).max(initial=0) > 1:
        return True
    room = 2 * slack(total)
    near = (cost > 0) & (cost <= total + room)
    order = np.argsort(cost[near])
    each, of = cost[near][order], feature[near][order]
    if changes < 2 or (np.abs(each - total) <= room).any():
        return changes > 1
    first = np.searchsorted(each, total - each - room, "left")
    last = np.searchsorted(each, total - each + room, "right")
    pairs = np.flatnonzero(first < last).tolist() if changes > 2 else []
    return any((of[first[k] : last[k]] != of[k]).any() for k in pairs)

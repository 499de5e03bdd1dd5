"""Which of the points that cost the same is the answer: the least by l1, and then that with the fewest changes.

Each criterion after the cost is a problem of its own: the cheapest point by that criterion among those that cost no
more, and are no worse by the criteria before it, than the point at hand. So the answer is the lexicographic optimum,
with proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.features.curve import exact
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.rows import ZERO, Part, Row
from ocf.support.tolerances import equal_cost, equals_room

#: Changes of an answer beyond which sums of the costs of fewer are not looked at, and most sums of two that are.
MOST_SUMMED, MOST_PAIRS = 4, 100_000


def no_dearer(cost: Cost, space: FeatureSpace, origin: FloatArray, point: FloatArray) -> Row:
    """The changes cost no more than those of a point, up to rounding, by a cost that the features add up to.

    Cells must have the same cheapest value by this cost as by that of the problem, which the nearest value is.

    Parameters
    ----------
    cost : Cost
    space : FeatureSpace
        With the weights of the cost.
    origin, point : (n_features,) float64
        Coded.
    """
    known = [(i, f) for i, f in enumerate(space.features) if not math.isnan(origin[i])]
    parts = {i: Part(_amount(cost, f, float(origin[i])), np.empty(0)) for i, f in known}
    total = sum((part.of(float(point[i])) for i, part in parts.items()), ZERO)
    return Row("costs no more", parts, total + exact(equal_cost(float(total)) - float(total)))


def _amount(cost: Cost, feature: Feature, origin: float) -> Callable[[float], Fraction]:
    def of(value: float) -> Fraction:
        return ZERO if value == origin or math.isnan(value) else exact(float(cost.of(feature, origin, value)))

    return of


def breakers(problem: Problem) -> list[Problem]:
    """The problems that break ties, one after the other, as yet without the row to cost no more.

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
    return replace(problem, among=tuple(no_dearer(p.cost, p.space, p.origin, point) for p in before))


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
    room = equals_room(total)
    near = (cost > 0) & (cost <= total + room)
    order = np.argsort(cost[near])
    each, of = cost[near][order], feature[near][order]
    if changes > 3 and len(each) ** 2 > 2 * MOST_PAIRS:
        return True
    sums, taken = np.zeros(1), np.empty((1, 0), np.int64)
    for fewer in range(1, changes):
        if fewer > 1:
            sums, taken = _one_more(sums, taken, each, of, total + room)
        if _completes(sums, taken, each, of, total, room):
            return True
    return False


def _completes(sums: FloatArray, taken: IntArray, each: FloatArray, of: IntArray, total: float, room: float) -> bool:
    """Whether some sum and the cost of one more cell, of a feature that is not taken, make up a total."""
    first = np.searchsorted(each, total - sums - room, "left")
    last = np.searchsorted(each, total - sums + room, "right")
    hits = np.flatnonzero(first < last).tolist()
    return any(not np.isin(of[first[k] : last[k]], taken[k]).all() for k in hits)


def _one_more(
    sums: FloatArray, taken: IntArray, each: FloatArray, of: IntArray, most: float
) -> tuple[FloatArray, IntArray]:
    """Sums with one more cell, of a later feature than those taken, (m,), and the features of each, (m, n + 1)."""
    grown = sums[:, None] + each
    row, cell = np.nonzero((grown <= most) & (of > taken.max(axis=1, initial=-1)[:, None]))
    return grown[row, cell], np.column_stack([taken[row], of[cell]])

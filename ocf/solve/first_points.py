"""First points for trees with hyperplanes: on the way to known rows, and from there back feature by feature.

On breast cancer, under a forest of 100 trees of depth 5 beside 20 trees of an extended isolation forest, the points of
the first steps that have the target cost 1.4 to 5 times as much as what they were pulled back to.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.problem.problem import Problem
from ocf.problem.requirements import Requirements

#: Rows of the data that are asked whether they have the target, those on the way to which a first point is looked for,
#: and steps on it.
MOST_ROWS, MAX_STARTS, STEPS = 1000, 8, 16

#: Parts of the change of a feature that are tried in its place.
PARTS = np.arange(8) / 8

#: Least part of the cost that a change must save.
LEAST_GAIN = 1e-4


def leaves_at(problem: Problem, points: FloatArray) -> IntArray:
    """Leaf of each tree of a problem, the isolation trees behind those of the model, (n, n_trees).

    Parameters
    ----------
    problem : Problem
    points : (n, n_features) float64
        Coded.
    """
    if problem.plausibility is None:
        return problem.ensemble.apply(points)
    # each by itself: those without hyperplanes are gone through by a kernel
    behind = problem.plausibility.forest.apply(points) + problem.ensemble.n_leaves
    return np.hstack([problem.ensemble.apply(points), behind])


def meets(problem: Problem, requirements: Requirements, points: FloatArray) -> BoolArray:
    """Which points certainly have the target, by the trees, (n,).

    Parameters
    ----------
    problem : Problem
    requirements : Requirements
    points : (n, n_features) float64
        Coded.
    """
    total = requirements.gain[leaves_at(problem, points)].sum(axis=1)
    return np.asarray((total >= requirements.need + requirements.error_bound).all(axis=1))


def ways(problem: Problem, requirements: Requirements, known: FloatArray, start: FloatArray) -> Iterator[FloatArray]:
    """The first points with the target on the way to the cheapest known rows.

    Parameters
    ----------
    problem : Problem
    requirements : Requirements
    known : (n, n_features) float64
        Coded.
    start : (n_features,) float64
        Where the ways begin; rows that are near it come first.
    """
    # what is near the start is so in the units of the cost
    near = problem.costs(np.where(problem.space.discrete, known, problem.origin + (known - start)))
    nearest = known[np.argsort(near, kind="stable")[:MOST_ROWS]]
    for row in nearest[meets(problem, requirements, nearest)][:MAX_STARTS]:
        way = problem.way_to(row, STEPS, start)
        met = meets(problem, requirements, way)
        if met.any():
            yield way[met.argmax()]


def pulled_back(problem: Problem, requirements: Requirements, point: FloatArray) -> FloatArray:
    """A point with the target from which no feature alone can be moved back towards the row any more.

    As many features as can at once are moved back at every look at all of them.

    Parameters
    ----------
    problem : Problem
    requirements : Requirements
    point : (n_features,) float64
        Coded, with the target.
    """
    origin, cost = problem.origin, float(problem.costs(point[None])[0])
    discrete = problem.space.discrete
    while True:
        moved = np.flatnonzero(point != origin)
        feature, part = np.repeat(moved, len(PARTS)), np.tile(PARTS, len(moved))
        nearer = origin[feature] + part * (point[feature] - origin[feature])
        value = np.where(discrete[feature], origin[feature], nearer)
        tried = np.repeat(point[None], len(feature), axis=0)
        tried[np.arange(len(tried)), feature] = value
        costs = problem.costs(tried)
        order = np.flatnonzero(costs < cost - LEAST_GAIN * abs(cost))
        met = order[meets(problem, requirements, tried[order])]
        if not len(met):
            return point
        # the best move of each feature, and as many of these at once as hold together: the best first
        met = met[np.argsort(costs[met], kind="stable")]
        best = met[np.sort(np.unique(feature[met], return_index=True)[1])]
        together = np.repeat(point[None], len(best), axis=0)
        for k, move in enumerate(best):
            together[k:, feature[move]] = value[move]
        together = together[meets(problem, requirements, together)]
        costs = problem.costs(together)
        point, cost = together[costs.argmin()], float(costs.min())

"""Searches for divergent explanations and rules that need no solver: exhaustive ones, and the paper's greedy merging.

Source: Amoukou and Brunel (2024), section 4. `formulations/rules.py` states the same problems as mathematical models.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

import numpy as np

from ocf.arrays import BoolArray, IntArray
from ocf.errors import ProblemError
from ocf.regional.forest import CellBox, RegionalForest
from ocf.regional.query import ProbabilityQuery, exact_probability, probability, reaches
from ocf.rules.families import Families
from ocf.rules.family_kernels import RULE
from ocf.solvers.result import Status

#: Boxes that capture more by no more than this are not looked for.
LEAST_GAIN = 1e-12

#: Most sets of features that `path_sets` gives.
MOST_PATH_SETS = 2_000

#: Steps of the levels from 0 to 1 that `highest_level` gives.
LEVEL_STEPS = 10**9

# -- minimal divergent explanations ------------------------------------------------------------------------


def minimal_sets(
    query: ProbabilityQuery,
    candidates: Sequence[int],
    level: float,
    pool: Iterable[tuple[int, ...]] | None = None,
) -> list[tuple[int, ...]]:
    """All minimal divergent explanations (definition 2.2), the most probable first.

    Subsets are tried by size, so that all of the first size with CDP_S >= level are minimal. The empty set is not
    asked: an answer that is not wanted takes a change.

    Parameters
    ----------
    query : ProbabilityQuery
    candidates : sequence of int
        Features that may be in S; there are ``2**len(candidates)`` subsets.
    level : float
        The paper's pi.
    pool : iterable of tuple of int, optional
        The subsets to try, as of `path_sets`; by default all of the candidates.

    Returns
    -------
    list of tuple of int
        Empty when no subset reaches the level.
    """
    for counts in _by_size(query, candidates, pool):
        found = [s for s, c in counts.items() if reaches(c, level)]
        if found:
            return sorted(found, key=lambda s: (-exact_probability(counts[s]), s))
    return []


def divergent_set(
    query: ProbabilityQuery,
    candidates: Sequence[int],
    level: float,
    pool: Sequence[tuple[int, ...]] | None = None,
) -> tuple[tuple[int, ...], bool]:
    """The most probable minimal divergent explanation, or, where there is none, the most probable set.

    Parameters
    ----------
    query : ProbabilityQuery
    candidates : sequence of int
    level : float
        The paper's pi.
    pool : sequence of tuple of int, optional
        As in `minimal_sets`.

    Returns
    -------
    features : tuple of int
        Of the sets with the largest CDP_S a smallest one, where no set reaches the level.
    divergent : bool
        Whether CDP_S >= level.

    Raises
    ------
    ProblemError
        There is no candidate.
    """
    if not candidates or (pool is not None and not pool):
        raise ProblemError("no feature may change: every one is fixed or not used by the forest")
    best: tuple[tuple[int, ...], float] = ((), -1.0)
    for counts in _by_size(query, candidates, pool):
        found = [s for s, c in counts.items() if reaches(c, level)]
        if found:
            return min(found, key=lambda s: (-exact_probability(counts[s]), s)), True
        for s, c in counts.items():
            if probability(c) > best[1] + 1e-12:
                best = (s, probability(c))
    return best[0], False


def _by_size(
    query: ProbabilityQuery, candidates: Sequence[int], pool: Iterable[tuple[int, ...]] | None
) -> Iterator[dict[tuple[int, ...], IntArray]]:
    """Counts behind CDP_S of all subsets of one size after another."""
    if pool is not None:
        for _, same in groupby(sorted(pool, key=lambda s: (len(s), s)), key=len):
            yield {s: query.cdp_counts(s) for s in same}
        return
    for size in range(1, len(candidates) + 1):
        yield {s: query.cdp_counts(s) for s in combinations(sorted(candidates), size)}


def path_sets(forest: RegionalForest, changeable: BoolArray, most: int = MOST_PATH_SETS) -> list[tuple[int, ...]]:
    """Sets of features that decision paths of the forest split on, those of most paths first (section 4).

    A path is counted for the sets of all of its beginnings, so that small sets are among them.

    Parameters
    ----------
    forest : RegionalForest
    changeable : (n_features,) bool
        The others are left out of the sets.
    most : int
        Sets at most; the paper speaks of a few thousand.
    """
    node, times = forest.arrays.trees.node, Counter[frozenset[int]]()
    waiting: list[tuple[int, tuple[frozenset[int], ...]]] = [(int(k), ()) for k in forest.arrays.trees.root]
    while waiting:
        k, met = waiting.pop()
        f, left, right = int(node[k, 0]), int(node[k, 2]), int(node[k, 3])
        if f < 0:
            times.update(met)
            continue
        last = met[-1] if met else frozenset()
        if changeable[f] and f not in last:
            met = (*met, last | {f})
        waiting += [(left, met), (right, met)]
    order = sorted(times, key=lambda s: (-times[s], len(s), sorted(s)))
    return [tuple(sorted(s)) for s in order[:most]]


# -- the largest box ---------------------------------------------------------------------------------------


def box_of(query: ProbabilityQuery, masks: dict[int, BoolArray]) -> CellBox:
    """Region with the given cells on some features and the admissible ones on the others.

    Parameters
    ----------
    query : ProbabilityQuery
    masks : dict of int to (n_cells_of_feature,) bool
        By feature.
    """
    forest = query.forest
    n = forest.partition.n_features
    return forest.region(masks.get(i, forest.cells_of(query.free, i)) for i in range(n))


@dataclass(frozen=True, eq=False)
class FoundBox:
    """A maximal rule's box, and what is proven of it.

    Attributes
    ----------
    region : CellBox or None
        None when there is none (status INFEASIBLE), or none was found (UNKNOWN).
    weight : float
        Weight that it captures.
    bound : float
        No box with the asked precision captures more.
    status : Status
    seconds : float
    nodes : int
        Families that were looked at, or nodes of the solver.
    """

    region: CellBox | None
    weight: float
    bound: float
    status: Status
    seconds: float
    nodes: int = 0


def largest_box(
    query: ProbabilityQuery,
    features: Sequence[int],
    level: float,
    *,
    earlier: Sequence[CellBox] = (),
    start: tuple[CellBox, float] | None = None,
    most: int = 20_000,
    time_limit: float | None = None,
) -> FoundBox:
    """The box on S that captures most weight subject to CRP_S >= level, best first (definition 2.3).

    Families of boxes are divided in the order of the weight that their widest boxes capture: no box of a family
    captures more, so the first widest box that reaches the level is the largest rule, and until then the heaviest one
    that waits is an upper bound. A family none of whose boxes can reach the level is left out; see
    `ocf.rules.family_kernels`.

    Parameters
    ----------
    query : ProbabilityQuery
    features : sequence of int
        S.
    level : float
        The paper's pi_C.
    earlier : sequence of CellBox
        Boxes from which this one has to be disjoint.
    start : (Region, float), optional
        A box that reaches the level and its weight, for instance a greedy one: the answer if nothing better is found
        within the limits.
    most : int
        Families to look at at most.
    time_limit : float, optional
        Seconds.
    """
    families = Families(query, features, level, earlier)
    families.expand(families.all, families.no_bounds(), 0.0)  # compiles the kernels, which is no part of the time
    begin = time.perf_counter()
    best = start or (None, 0.0)
    waiting = [(-math.inf, 0, families.all, families.no_bounds())]
    tried, made = 0, 0
    while waiting:
        negative, _, family, upper = heapq.heappop(waiting)
        if -negative <= best[1] + LEAST_GAIN:  # nothing that waits is heavier than what is known
            break
        seconds = time.perf_counter() - begin
        if tried >= most or (time_limit is not None and seconds > time_limit):
            status = Status.UNKNOWN if best[0] is None else Status.FEASIBLE
            bound = min(-negative, float(families.evidence.weight.sum()))
            return FoundBox(best[0], best[1], bound, status, seconds, tried)
        tried += 1
        upper = upper.copy()
        found, weight, children = families.expand(family, upper, best[1] + LEAST_GAIN)
        if found == RULE and query.precise(features, box := families.widest(family), level):
            best = (box, weight)
            continue
        for held, child in children:
            made += 1
            heapq.heappush(waiting, (-held, made, child, upper))
    status = Status.INFEASIBLE if best[0] is None else Status.OPTIMAL
    return FoundBox(best[0], best[1], best[1], status, time.perf_counter() - begin, tried)


# -- greedy merging ----------------------------------------------------------------------------------------


def greedy_boxes(
    query: ProbabilityQuery,
    features: Sequence[int],
    level: float,
    most: int | None = None,
    earlier: Sequence[CellBox] = (),
) -> list[tuple[CellBox, float]]:
    """Rules by merging neighbouring leaves (section 4), disjoint, the one that captures most weight first.

    The possible leaves are the leaves, cut down to S, of the rows of positive weight, as far as their CRP_S reaches
    the level. Starting from the one that captures most, the neighbour is merged (to the hull of both) that adds most
    weight while CRP_S of the hull still reaches the level; then the same with the leaves that touch no rule so far.

    The paper does not say that a merged rectangle is checked again; without it the rule could fall below the level.

    Parameters
    ----------
    query : ProbabilityQuery
    features : sequence of int
        S.
    level : float
        The paper's pi_C.
    most : int, optional
        Stop at this many rules.
    earlier : sequence of CellBox
        Boxes from which these have to be disjoint.

    Returns
    -------
    list of (Region, float)
        Boxes and the weight that each captures; empty when no leaf is possible.
    """
    weights = _RowWeights(query, features)
    leaves = _possible_leaves(query, features, weights, level, earlier)
    rules: list[tuple[CellBox, float]] = []
    while leaves and (most is None or len(rules) < most):
        at = int(np.argmax([w for _, w in leaves]))
        box, weight = leaves.pop(at)
        box, weight = _merge(query, features, weights, level, box, weight, [b for b, _ in leaves])
        if all(_apart(query, features, box, other) for other in (*earlier, *(rule for rule, _ in rules))):
            rules.append((box, weight))
        leaves = [(b, w) for b, w in leaves if all(_apart(query, features, b, r) for r, _ in rules)]
    return sorted(rules, key=lambda rule: -rule[1])


def highest_level(
    query: ProbabilityQuery, features: Sequence[int], level: float, earlier: Sequence[CellBox] = ()
) -> float:
    """The largest CRP_S of a possible leaf, for a rule that is as probable as any of them.

    Parameters
    ----------
    query : ProbabilityQuery
    features : sequence of int
        S.
    level : float
        The paper's pi_C.
    earlier : sequence of CellBox
        Boxes from which the rule has to be disjoint.

    Returns
    -------
    float
        `level` where no leaf reaches it.
    """
    leaves = _possible_leaves(query, features, _RowWeights(query, features), level, earlier)
    highest = max((query.crp(features, box) for box, _ in leaves), default=level)
    return max(level, math.floor(highest * LEVEL_STEPS) / LEVEL_STEPS)  # so that rounding excludes no leaf


@dataclass(frozen=True, eq=False)
class PossibleLeaves:
    """Leaves cut down to S that reach a level, and the rows' weights, for growing boxes on the same S.

    Attributes
    ----------
    boxes : list of CellBox
    weights : _RowWeights
    """

    boxes: list[CellBox]
    weights: _RowWeights

    @classmethod
    def of(cls, query: ProbabilityQuery, features: Sequence[int], level: float) -> PossibleLeaves:
        """Those of a query.

        Parameters
        ----------
        query : ProbabilityQuery
        features : sequence of int
            S.
        level : float
        """
        weights = _RowWeights(query, features)
        return cls([box for box, _ in _possible_leaves(query, features, weights, level)], weights)


def grown_box(
    query: ProbabilityQuery, features: Sequence[int], level: float, start: CellBox, leaves: PossibleLeaves
) -> CellBox:
    """A box that reaches a level, widened by merging leaves while it does.

    Parameters
    ----------
    query : ProbabilityQuery
    features : sequence of int
        S.
    level : float
    start : CellBox
        Reaches the level.
    leaves : PossibleLeaves
        Of the same query and S.
    """
    return _merge(query, features, leaves.weights, level, start, leaves.weights.of(start), leaves.boxes)[0]


def _possible_leaves(
    query: ProbabilityQuery,
    features: Sequence[int],
    weights: _RowWeights,
    level: float,
    earlier: Sequence[CellBox] = (),
) -> list[tuple[CellBox, float]]:
    boxes = query.forest.leaves_within(query.free, features, np.unique(query.forest.leaves[weights.rows]))
    apart = (box for box in boxes if all(_apart(query, features, box, other) for other in earlier))
    weighed = ((box, weights.of(box)) for box in apart)
    return [(box, weight) for box, weight in weighed if weight > 0 and query.precise(features, box, level)]


class _RowWeights:
    """Rows of positive weight given what is held outside S, as boxes on S are tried by the thousand.

    Parameters
    ----------
    query : ProbabilityQuery
    features : sequence of int
        S.
    """

    def __init__(self, query: ProbabilityQuery, features: Sequence[int]) -> None:
        part, weights = query.forest.partition, query.weights(features)
        self.rows = np.flatnonzero(weights > 0)
        self._weights, cells = weights[self.rows], query.forest.cells[self.rows]
        self._ordered = np.array([i for i in features if part.ordered[i]], np.int64)
        self._cells = cells[:, self._ordered]
        levels = [i for i in features if not part.ordered[i]]
        self._members = [part.member_offsets[i] + cells[:, i] for i in levels]

    def of(self, box: CellBox) -> float:
        """The weight that a box captures."""
        inside = (box.low[self._ordered] <= self._cells) & (self._cells <= box.high[self._ordered])
        held = inside.all(axis=1)
        for places in self._members:
            held &= box.member[places]
        return float(self._weights[held].sum())


def _merge(
    query: ProbabilityQuery,
    features: Sequence[int],
    weights: _RowWeights,
    level: float,
    box: CellBox,
    weight: float,
    leaves: list[CellBox],
) -> tuple[CellBox, float]:
    while True:
        hulls = {_hull(query, features, box, leaf) for leaf in leaves if _touch(query, features, box, leaf)}
        gains = [(w, h) for h in hulls if (w := weights.of(h)) > weight + 1e-12]
        for w, hull in sorted(gains, key=lambda g: (-g[0], g[1].key)):
            if query.precise(features, hull, level):
                box, weight = hull, w
                break
        else:
            return box, weight


def _hull(query: ProbabilityQuery, features: Sequence[int], a: CellBox, b: CellBox) -> CellBox:
    forest, masks = query.forest, {}
    for i in features:
        mask = forest.cells_of(a, i) | forest.cells_of(b, i)
        if forest.partition.ordered[i]:
            at = np.flatnonzero(mask)
            mask = np.arange(len(mask)) >= at[0]
            mask[at[-1] + 1 :] = False
        masks[i] = mask
    return box_of(query, masks)


def _touch(query: ProbabilityQuery, features: Sequence[int], a: CellBox, b: CellBox) -> bool:
    """Whether two boxes overlap or are neighbours: no gap of cells between them on any ordered feature of S."""
    ordered = [i for i in features if query.forest.partition.ordered[i]]
    return all(a.low[i] <= b.high[i] + 1 and b.low[i] <= a.high[i] + 1 for i in ordered)


def _apart(query: ProbabilityQuery, features: Sequence[int], a: CellBox, b: CellBox) -> bool:
    """Whether two boxes have no cell in common on some feature of S."""
    forest = query.forest
    return any(not (forest.cells_of(a, i) & forest.cells_of(b, i)).any() for i in features)


def most_used(use: IntArray, changeable: BoolArray, k: int) -> list[int]:
    """The k features that the forest splits on most among those that may change, most used first.

    Parameters
    ----------
    use : (n_features,) int64
        How often the forest splits on each feature.
    changeable : (n_features,) bool
    k : int
    """
    order = np.argsort(-use, kind="stable")
    return [int(i) for i in order if changeable[i] and use[i] > 0][:k]

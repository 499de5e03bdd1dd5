"""Points inside a rule: the cheapest, and the most plausible by simulated annealing or by a mathematical model.

Source: Amoukou and Brunel (2024), section 5 (annealing: appendix B, algorithm 1) and section 7 (closed form).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.kernels import Int32Array, search_arrays
from ocf.cells.partition import Partition, partition
from ocf.errors import ProblemError, SolverError
from ocf.features.feature import Feature, permitted_span
from ocf.features.space import FeatureSpace
from ocf.formulations import plausible_point
from ocf.models.lift import lift
from ocf.problem.costs import Cost
from ocf.readers.isolation import read_isolation_forest
from ocf.rules.fitting import one_hot_encoding
from ocf.solvers import SolverOptions, Status, compile_model, matrix_solver
from ocf.support.numba_cache import array_helper, array_kernel, helper


@dataclass(frozen=True)
class RuleInterval:
    """Values of one feature that a rule admits, coded.

    Attributes
    ----------
    feature : int
    lower, upper : float
        ``lower < value <= upper``; for ordered features.
    levels : tuple of int or None
        Codes, of a feature that the forest splits by sets of levels.
    """

    feature: int
    lower: float = -np.inf
    upper: float = np.inf
    levels: tuple[int, ...] | None = None

    def holds(self, values: FloatArray) -> BoolArray:
        """Whether values lie in it."""
        if self.levels is not None:
            return np.isin(values, self.levels)
        return (self.lower < values) & (values <= self.upper)

    def permitted_by(self, feature: Feature) -> RuleInterval:
        """The part that a feature permits; itself where that is none of it, so that the feature stays as it is."""
        if feature.permitted is None:
            return self
        codes = feature.permitted_codes()
        if self.levels is not None:
            levels = tuple(c for c in self.levels if codes is None or c in codes)
            return replace(self, levels=levels or self.levels)
        first, last = permitted_span(feature)
        lower, upper = max(self.lower, float(np.nextafter(first, -np.inf))), min(self.upper, last)
        return replace(self, lower=lower, upper=upper) if lower < upper else self

    def pieces(self) -> tuple[FloatArray, FloatArray]:
        """It as half-open intervals, lower and upper ends."""
        if self.levels is None:
            return np.array([self.lower]), np.array([self.upper])
        codes = np.array(self.levels, np.float64)
        return codes - 1, codes


def cheapest_point(
    space: FeatureSpace, origin: FloatArray, intervals: Sequence[RuleInterval], cost: Cost
) -> FloatArray:
    """The cheapest point in a rule, in closed form: each feature takes its nearest admissible value by itself.

    Parameters
    ----------
    space : FeatureSpace
    origin : (n_features,) float64
    intervals : sequence of RuleInterval
    cost : Cost
        Separable, so that the features do not depend on each other.

    Raises
    ------
    ProblemError
        The rule holds no admissible value of a feature.
    """
    point = origin.copy()
    for interval in intervals:
        i = interval.feature
        values = _nearest(space.features[i], origin[i], *interval.pieces(), cost)
        prices = cost.of(space.features[i], origin[i], values)
        if np.isnan(prices).all():
            raise ProblemError(f"no admissible value of {space.names[i]!r} lies in the rule")
        point[i] = values[np.nanargmin(prices)]
    return point


def _nearest(feature: Feature, origin: float, lower: FloatArray, upper: FloatArray, cost: Cost) -> FloatArray:
    return feature.nearest(lower, upper, origin, lambda value: cost.of(feature, origin, value))


# -- plausibility --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class IsolationTrees:
    """An isolation forest over the features of a space.

    Attributes
    ----------
    native : sklearn.ensemble.IsolationForest
        Fitted to coded values, categories as indicators.
    partition : Partition
        Its only output is the depth.
    space : FeatureSpace
    rows : (n, n_features) float64
        Coded training rows.
    """

    native: Any
    partition: Partition
    space: FeatureSpace
    rows: FloatArray

    @classmethod
    def fit(cls, space: FeatureSpace, rows: FloatArray, *, seed: int = 0, **settings: Any) -> IsolationTrees:
        """Fit scikit-learn's isolation forest, with its defaults, to coded rows.

        Parameters
        ----------
        space : FeatureSpace
        rows : (n, n_features) float64
            Coded.
        seed : int
        **settings
            Of scikit-learn's `IsolationForest`.
        """
        from sklearn.ensemble import IsolationForest

        encoding = one_hot_encoding(space, rows[0])
        native = IsolationForest(random_state=seed, **settings).fit(encoding.encode(space.to_frame(rows)))
        return cls(
            native, partition(lift(read_isolation_forest(native).ensemble, encoding).ensemble, space), space, rows
        )

    def matrix(self, coded: FloatArray) -> FloatArray:
        """Rows as the library's forest takes them."""
        return one_hot_encoding(self.space, self.rows[0]).encode(self.space.to_frame(coded))

    def inliers(self, coded: FloatArray) -> BoolArray:
        """Whether the library takes rows for inliers, (n,)."""
        return np.asarray(self.native.predict(self.matrix(np.atleast_2d(coded))) == 1)

    def scores(self, coded: FloatArray) -> FloatArray:
        """The library's score of rows, (n,): the higher, the more plausible; inliers lie above its offset."""
        return np.asarray(self.native.score_samples(self.matrix(np.atleast_2d(coded))), np.float64)

    def depth(self, coded: FloatArray) -> FloatArray:
        """Average depth of rows, (n,)."""
        return self.partition.ensemble.scores(np.atleast_2d(coded))[:, 0] / self.partition.ensemble.n_trees

    @cached_property
    def normaliser(self) -> float:
        """``c`` in the score ``-2**(-depth / c)``."""
        row = self.rows[:1]
        return float(-self.depth(row)[0] / np.log2(-self.scores(row)[0]))

    @cached_property
    def cells(self) -> Int32Array:
        """Cells of the training rows, (n, n_features)."""
        return np.ascontiguousarray(self.partition.locate(self.rows), np.int32)


@dataclass(frozen=True, eq=False)
class FoundPoint:
    """A plausible point, and what is proven of it.

    Attributes
    ----------
    point : (n_features,) float64
        Coded.
    depth : float
        Average depth in the isolation forest.
    bound : float
        No point in the rule is deeper; inf when nothing is proven.
    """

    point: FloatArray
    depth: float
    bound: float = np.inf


def most_plausible_point(
    trees: IsolationTrees,
    origin: FloatArray,
    intervals: Sequence[RuleInterval],
    *,
    cost: Cost | None = None,
    solver: str = "highs",
    options: SolverOptions | None = None,
) -> FoundPoint:
    """The deepest point in a rule, by `ocf.formulations.plausible_point`; of equal cells' values the cheapest.

    Where nothing deeper was found within a limit, it is the cheapest point of the rule.

    Parameters
    ----------
    trees : IsolationTrees
    origin : (n_features,) float64
        Coded.
    intervals : sequence of RuleInterval
        The rule.
    cost : Cost, optional
        Separable; default l1.
    solver : {"highs", "scip"}
    options : SolverOptions, optional

    Raises
    ------
    ProblemError
        The rule holds no admissible value of a feature.
    SolverError
        The solver takes no matrices, or failed.
    """
    part, cost = trees.partition, cost or Cost(l1=1.0)
    held = part.locate(origin[None, :])[0]
    values = {t.feature: _values_by_cell(trees, origin, t, cost) for t in intervals}
    options_of = {i: np.flatnonzero(~np.isnan(v)) for i, v in values.items()}
    for i, own in options_of.items():
        if not len(own):
            raise ProblemError(f"no admissible value of {trees.space.names[i]!r} lies in the rule")
    built = plausible_point.build(part, held, options_of)
    variables = [*built.choices, *built.model.component_data_objects(pyo.Var)]
    form = compile_model(built.model, list({id(v): v for v in variables}.values()))
    result = matrix_solver(solver).solve(form, options)
    if result.x is None and result.status is not Status.UNKNOWN:
        raise SolverError(f"{solver} failed on the rule ({result.status.value}): ask another solver or method")
    point = cheapest_point(trees.space, origin, intervals, cost)
    depth = float(trees.depth(point)[0])
    if result.x is not None:
        found = origin.copy()
        for i, cell in built.decode(result.x[: len(built.choices)]).items():
            found[i] = values[i][cell]
        deepest = float(trees.depth(found)[0])
        point, depth = (found, deepest) if deepest >= depth else (point, depth)
    bound = depth if result.status is Status.OPTIMAL else -result.bound / part.ensemble.n_trees
    return FoundPoint(point, depth, bound)


def _values_by_cell(trees: IsolationTrees, origin: FloatArray, interval: RuleInterval, cost: Cost) -> FloatArray:
    """Admissible value of the rule in each cell of the isolation forest, NaN where there is none, (n_cells,)."""
    part, i = trees.partition, interval.feature
    feature, span = trees.space.features[i], part.cells_of(i)
    best = np.full(int(part.widths[i]), np.nan)
    price = np.full(len(best), np.inf)
    for low, high in zip(*interval.pieces(), strict=True):
        lower, upper = np.maximum(part.lower[span], low), np.minimum(part.upper[span], high)
        value = np.where(lower < upper, _nearest(feature, origin[i], lower, upper, cost), np.nan)
        own = cost.of(feature, origin[i], value)
        better = ~np.isnan(own) & (own < price)
        best[better], price[better] = value[better], own[better]
    return best


def annealed_point(
    trees: IsolationTrees,
    origin: FloatArray,
    intervals: Sequence[RuleInterval],
    *,
    iterations: int = 500,
    temperature: float = 0.5,
    cooling: float = 0.97,
    seed: int = 0,
) -> FoundPoint:
    """A plausible point in a rule by simulated annealing (appendix B, algorithm 1).

    Proposals change a random part S' of S, each feature to the value of a random training row that meets the rule on
    S'. Where no row meets it on all of S', a row that meets it on the feature alone serves; where there is none either,
    the feature stays at its nearest admissible value. Line 16 of the algorithm keeps the point with the *larger*
    outlier score; as the least is sought, the smaller is kept here.

    Parameters
    ----------
    trees : IsolationTrees
    origin : (n_features,) float64
    intervals : sequence of RuleInterval
    iterations, temperature, cooling : int, float, float
        maxIter, T and r of the algorithm, which gives no values.
    seed : int
    """
    part = trees.partition
    start = cheapest_point(trees.space, origin, intervals, Cost(l1=1.0))
    features = np.array([t.feature for t in intervals], np.int64)
    inside = np.column_stack(
        [t.holds(trees.rows[:, t.feature]) & _admissible(trees, origin, t.feature) for t in intervals]
    )
    arrays = search_arrays(part)
    picks = np.full(len(features), -1, np.int64)
    _anneal(
        arrays.trees.root, arrays.trees.node, arrays.trees.sets, part.ensemble.contributions[:, 0].copy(),
        part.locate(start[None, :])[0].astype(np.int32), trees.cells, features, inside,
        trees.normaliser * part.ensemble.n_trees, iterations, temperature, cooling, np.random.default_rng(seed), picks,
    )  # fmt: skip
    point = start
    for i, row in zip(features, picks, strict=True):
        if row >= 0:
            point[i] = trees.rows[row, i]
    return FoundPoint(point, float(trees.depth(point)[0]))


def _admissible(trees: IsolationTrees, origin: FloatArray, i: int) -> BoolArray:
    """Which training rows have a value that the row may take."""
    feature, values = trees.space.features[i], trees.rows[:, i]
    low, high = feature.limits(origin[i])
    codes = feature.permitted_codes()
    return (low <= values) & (values <= high) & (codes is None or np.isin(values, list(codes)))


@helper
def _depth(root: IntArray, node: Int32Array, sets: BoolArray, depth: FloatArray, x: Int32Array) -> float:
    """Sum of depths of a choice of cells."""
    total = 0.0
    for t in range(len(root)):
        k = root[t]
        while node[k, 0] >= 0:
            value, cut = x[node[k, 0]], node[k, 1]
            left = value <= cut if cut >= -1 else sets[-2 - cut, value]
            k = node[k, 2] if left else node[k, 3]
        total += depth[node[k, 2]]
    return total


@helper
def _inside_all(inside: BoolArray, r: int, chosen: BoolArray) -> bool:
    """Whether row r meets the rule on all chosen features."""
    s = 0
    while s < len(chosen) and (inside[r, s] or not chosen[s]):
        s += 1
    return s == len(chosen)


@array_helper
def _draw(inside: BoolArray, chosen: BoolArray, alone: int, rng: np.random.Generator) -> int:
    """A random row that meets the rule on the chosen features, or on one of them alone; -1 if there is none."""
    n, found, pick = len(inside), 0, -1
    for attempt in range(2):
        for r in range(n):
            good = inside[r, alone] and (attempt == 1 or _inside_all(inside, r, chosen))
            if good:
                found += 1
                if rng.integers(0, found) == 0:  # each row with the same chance
                    pick = r
        if pick >= 0:
            break
    return pick


@array_kernel
def _anneal(
    root: IntArray,
    node: Int32Array,
    sets: BoolArray,
    depth: FloatArray,
    start: Int32Array,
    rows: Int32Array,
    features: IntArray,
    inside: BoolArray,
    scale: float,
    iterations: int,
    temperature: float,
    cooling: float,
    rng: np.random.Generator,
    best_pick: IntArray,
) -> None:
    """Write to `best_pick` the training row that gives each feature its value, -1 for the value of the start."""
    n_features = len(features)
    chosen = np.ones(n_features, np.bool_)
    current, pick = start.copy(), np.full(n_features, -1)
    for s in range(n_features):
        pick[s] = _draw(inside, chosen, s, rng)
        if pick[s] >= 0:
            current[features[s]] = rows[pick[s], features[s]]
    outlier = 2.0 ** (-_depth(root, node, sets, depth, current) / scale)
    least = outlier
    best_pick[:] = pick
    new, new_pick = current.copy(), pick.copy()
    for _ in range(iterations):
        new[:] = current
        new_pick[:] = pick
        size = 0
        for s in range(n_features):
            chosen[s] = rng.random() < 0.5
            size += chosen[s]
        if size == 0:
            chosen[rng.integers(0, n_features)] = True
        for s in range(n_features):
            if chosen[s]:
                new_pick[s] = _draw(inside, chosen, s, rng)
                if new_pick[s] >= 0:
                    new[features[s]] = rows[new_pick[s], features[s]]
                else:
                    new[features[s]] = start[features[s]]
        score = 2.0 ** (-_depth(root, node, sets, depth, new) / scale)
        if score < outlier or np.exp(-(score - outlier) / temperature) > rng.random():
            current[:] = new
            pick[:] = new_pick
            outlier = score
            if outlier < least:
                least = outlier
                best_pick[:] = pick
        temperature *= cooling

"""What the leaves of a tree are to one row: columns, bounds, hyperplanes, and lower bounds that need no solver."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import splu

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.partition import Partition
from ocf.formulations.blocks.columns import MoveColumns, columns_of, grid_unit, quadratic_form, relation_rows
from ocf.formulations.oblique import build
from ocf.problem.piecewise import exact_rows
from ocf.problem.problem import Problem
from ocf.solve.leaf_bounds import demand_of, priced_demands
from ocf.solvers.standard_form import StandardForm, compile_model
from ocf.trees.ensemble import SplitKind

#: Totals of listed features that are told apart at a node, at most.
MOST_TOTALS = 20_000

#: A leaf, or one leaf per tree.
Leaves = int | tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Region:
    """Box ``(low, high]`` of single splits, sides of the oblique ones, and members of the unordered features."""

    low: FloatArray
    high: FloatArray
    path: Mapping[int, bool]
    member: BoolArray


class TreeSearch:
    """What all queries of one ensemble share: paths, boxes, and the compiled matrices.

    Parameters
    ----------
    part : Partition
    """

    def __init__(self, part: Partition) -> None:
        self.part = part
        self.tree = part.ensemble
        cells = part.offsets[:-1]
        # leaves below contradictory splits have boxes beyond the cells; they are never asked about
        low, high = (np.clip(ends, 0, part.widths - 1) for ends in (part.low, part.high))
        self.low = np.where(part.ordered, part.lower[cells + low], -np.inf)
        self.high = np.where(part.ordered, part.upper[cells + high], np.inf)
        self.split = part.ordered & (part.widths > 1)
        self.paths = self._paths()
        self._matrices: dict[tuple[Any, ...], _Matrix] = {}
        self._stiffness: dict[tuple[Any, ...], tuple[FloatArray, FloatArray]] = {}

    def _paths(self) -> list[dict[int, bool]]:
        """Oblique nodes above each leaf, and whether the path goes left."""
        tree, out = self.tree, [dict[int, bool]()] * self.tree.n_leaves
        stack: list[tuple[int, dict[int, bool]]] = [(int(root), {}) for root in tree.tree_offsets[:-1]]
        while stack:
            v, path = stack.pop()
            if tree.kind[v] == SplitKind.LEAF:
                out[int(tree.leaf[v])] = path
                continue
            for child, left in ((tree.left[v], True), (tree.right[v], False)):
                below = {**path, v: left} if tree.kind[v] == SplitKind.OBLIQUE else path
                stack.append((int(child), below))
        return out

    def region(self, leaves: Leaves) -> Region:
        """What a leaf, or the intersection of one leaf per tree, demands."""
        index = [leaves] if isinstance(leaves, int | np.integer) else list(leaves)
        path: dict[int, bool] = {}
        for k in index:
            path |= self.paths[k]
        member = np.asarray(self.part.member[index].all(axis=0))
        return Region(self.low[index].max(axis=0), self.high[index].min(axis=0), path, member)

    def stiffness(self, problem: Problem, form: Any, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each hyperplane ``z'Qz`` with ``2 Q z = w``, (n_planes,), and by how much that fails, (n_planes, n).

        The former is infinite where the hyperplane weighs features without a square, or Q is singular.

        Parameters
        ----------
        problem : Problem
        form : (n_features, n_features) sparse float64
            Its quadratic form Q.
        weights : (n_planes, n_features) float64
            What each hyperplane weighs the numbers by.
        """
        key = (problem.cost.squares, problem.cost.forms, weights.tobytes())
        if key not in self._stiffness:
            z, used = np.zeros_like(weights), np.flatnonzero(np.diff(form.indptr))
            try:
                z[:, used] = splu(form[used][:, used].tocsc()).solve(weights[:, used].T / 2).T
            except RuntimeError:  # singular
                z[:] = np.nan
            slope = (form @ z.T).T
            size = (z * slope).sum(axis=1)
            bare = np.delete(weights, used, axis=1).any(axis=1) | ~np.isfinite(size) | (size <= 0)
            # the product itself rounds by as much as this again
            miss = 2 * np.abs(weights - 2 * slope) + 1e-14 * (abs(form) @ np.abs(z).T).T
            self._stiffness[key] = np.where(bare, np.inf, size), np.where(bare[:, None], 0.0, miss)
        return self._stiffness[key]

    def matrix(self, problem: Problem, columns: MoveColumns) -> tuple[_Matrix, bool]:
        """Compiled matrix of a problem, and whether it is an earlier query's.

        Parameters
        ----------
        problem : Problem
        columns : MoveColumns
            Of the problem.
        """
        if problem.constraints:  # their rows are this row's own
            return _Matrix.compile(problem), False
        form = (problem.cost.squares, problem.cost.forms)
        key = (columns.signature, columns.square.tobytes(), form, columns.integer.tobytes())
        old = key in self._matrices
        if not old:
            self._matrices[key] = _Matrix.compile(problem)
        return self._matrices[key], old


@dataclass(frozen=True, eq=False)
class _Matrix:
    """The hyperplanes as rows over the columns, the rows that every leaf has, and the quadratic costs."""

    planes: FloatArray
    place: Mapping[int, int]
    always: StandardForm
    relation_places: IntArray
    build_seconds: float
    compile_seconds: float

    @classmethod
    def compile(cls, problem: Problem) -> _Matrix:
        start = time.perf_counter()
        models = build(problem)
        built = time.perf_counter()
        form = compile_model(models.model, models.variables, names=True)
        assert form.row_names is not None
        rows = {name: r for r, name in enumerate(form.row_names)}
        planes = [rows[f"hyperplane[{v}]"] for v in models.nodes]
        rest = sorted(set(range(form.n_rows)) - set(planes))
        always = replace(
            form, A=form.A[rest], row_lower=form.row_lower[rest], row_upper=form.row_upper[rest], row_names=None
        )
        done = time.perf_counter()
        place = {v: r for r, v in enumerate(models.nodes)}
        relations = [rest.index(rows[f"relation[{r}]"]) for r in range(len(rest)) if f"relation[{r}]" in rows]
        return cls(form.A[planes].toarray(), place, always, np.array(relations, int), built - start, done - built)


class LeafModel:
    """The leaves of a tree, or choices of one leaf per tree, as one row sees them.

    Parameters
    ----------
    search : TreeSearch
    problem : Problem
    """

    def __init__(self, search: TreeSearch, problem: Problem) -> None:
        self.search, self.problem = search, problem
        self.tree, self.origin = search.tree, problem.origin
        self.columns = columns_of(problem)
        self.matrix, self.matrix_is_old = search.matrix(problem, self.columns)
        self._demanded: dict[float, FloatArray] = {}
        self._prepare()

    def _prepare(self) -> None:
        columns, space = self.columns, self.problem.space
        listed = np.unique(columns.feature[columns.role == "level"])
        self.levels = {int(i): np.flatnonzero((columns.feature == i) & (columns.role == "level")) for i in listed}
        present = ~np.isnan(self.origin)
        # a feature without any admissible value has no column, and then there is no answer
        self.impossible = bool(np.setdiff1d(np.flatnonzero(present), columns.feature).size)
        number = present.copy()
        number[listed] = False
        grid = np.array([grid_unit(f) > 0 for f in space.features])
        self.number, self.smooth = number, np.flatnonzero(number & ~grid)
        self.grid = np.flatnonzero(number & grid)
        self.base = np.where(number, self.origin, 0.0)
        limits = np.array([f.limits(v) for f, v in zip(space.features, self.origin, strict=True)]).reshape(-1, 2)
        self.limits = limits[:, 0], limits[:, 1]
        self._price_numbers()
        self.relations = exact_rows(self.problem)
        self.relation_rows = relation_rows(self.problem, columns)
        # what levels that are preferred may give back, at most
        self.credit = sum(min(0.0, float(columns.linear[own].min())) for own in self.levels.values())
        form = quadratic_form(self.problem)
        self.form = form if form.nnz else None
        # weights of the numbers in each hyperplane
        self.weights = np.zeros((len(self.matrix.place), len(space)))
        for v, r in self.matrix.place.items():
            features, codes, data = self.tree.oblique_entries(v)
            np.add.at(self.weights[r], features[codes < 0], data[codes < 0])
        self.shift = self.weights @ self.base
        narrow = [i for i in self.smooth.tolist() if space.features[i].float_dtype != np.float64]
        self.narrow = {i: space.features[i].float_dtype for i in narrow}

    def _price_numbers(self) -> None:
        """Cost of each number's rise and fall, and of leaving its value, from the columns, (n,) each."""
        columns, n = self.columns, len(self.origin)
        self.a_down, self.a_up, self.q_down, self.q_up, self.leave_down, self.leave_up = np.zeros((6, n))
        for j in np.flatnonzero(columns.role != "level").tolist():
            i, role, unit = int(columns.feature[j]), columns.role[j], abs(float(columns.unit[j]))
            linear, square = float(columns.linear[j]), float(columns.square[j])
            if role == "moved":
                (self.leave_up if columns.value[j] > 0 else self.leave_down)[i] = linear
                continue
            if role in ("up", "delta"):
                self.a_up[i], self.q_up[i] = linear / unit, square / unit**2
            if role in ("down", "delta"):
                self.a_down[i], self.q_down[i] = linear / unit, square / unit**2

    # -- the leaves -------------------------------------------------------------------------------------------

    def box(self, leaf: Leaves, eps: float) -> tuple[FloatArray, FloatArray]:
        """Admissible closed interval of every number within a leaf, shrunk by eps at the leaf's own ends, (n,) each.

        Parameters
        ----------
        leaf : int or tuple of int
            A leaf, or one leaf per tree.
        eps : float
            Margin by which splits must hold, in units of the features.
        """
        low, high = self.limits[0].copy(), self.limits[1].copy()
        region = self.search.region(leaf)
        special = np.flatnonzero(self.search.split & (np.isfinite(region.low) | np.isfinite(region.high)))
        features = self.problem.space.features
        for i in np.union1d(special, self.grid).tolist():
            if not self.number[i]:
                continue
            f, a, b = features[i], float(region.low[i]), float(region.high[i])
            left = f.above(a) if eps == 0 else f.at_least(a + eps)
            ends = [float(f.at_least(low[i])) if np.isfinite(low[i]) else low[i], float(left)]
            tops = [float(f.at_most(high[i])) if np.isfinite(high[i]) else high[i], float(f.at_most(b - eps))]
            stays = low[i] <= self.origin[i] <= high[i] and a < self.origin[i] <= b and eps == 0
            low[i], high[i] = max(ends), min(tops)
            if stays:  # the row's own value is admissible whatever the grid
                low[i], high[i] = min(low[i], self.origin[i]), max(high[i], self.origin[i])
        return low, high

    def allowed(self, leaf: Leaves, i: int) -> BoolArray:
        """Which listed values of feature i the leaf admits, over the columns of the feature.

        Parameters
        ----------
        leaf : int or tuple of int
        i : int
            One of `levels`.
        """
        values, region, part = self.columns.value[self.levels[i]], self.search.region(leaf), self.search.part
        if not part.ordered[i]:
            return region.member[part.member_offsets[i] + values.astype(np.int64)]
        return np.asarray((region.low[i] < values) & (values <= region.high[i]))

    def rows(self, leaf: Leaves, eps: float) -> tuple[IntArray, FloatArray, FloatArray, bool]:
        """Hyperplanes of a leaf's path: places, signs, upper sides over the columns, and whether none contradicts.

        Parameters
        ----------
        leaf : int or tuple of int
        eps : float
            Margin by which splits must hold, in units of their totals.
        """
        place, sign, side = [], [], []
        for v, left in self.search.region(leaf).path.items():
            t = self.threshold(v, left, eps)
            if v not in self.matrix.place:  # no column has a weight in it: its total is 0, which decides the split
                if (t >= 0) != left:
                    return np.zeros(0, int), np.zeros(0), np.zeros(0), False
                continue
            if not np.isfinite(t) or (not left and v in self._left_only):
                return np.zeros(0, int), np.zeros(0), np.zeros(0), False
            r, s = self.matrix.place[v], 1.0 if left else -1.0
            place.append(r)
            sign.append(s)
            side.append(s * (t - self.shift[r]) - eps)
        return np.array(place, int), np.array(sign), np.array(side), True

    def threshold(self, v: int, left: bool, eps: float) -> float:
        """What the total of a node may be at most to the left, and must be at least to the right, but for a margin.

        Parameters
        ----------
        v : int
            An oblique node.
        left : bool
            Whether the path goes left there.
        eps : float
            The margin; above 0 the tree's own threshold is taken.
        """
        t = float(self.tree.threshold[v])
        return self._between.get(v, (t, t))[0 if left else 1] if eps == 0 else t

    @cached_property
    def _left_only(self) -> set[int]:
        """Nodes whose total has no positive term within the limits, and whose threshold is not negative.

        Rounding cannot make such a total positive. A closed half-space would let the total 0 through to the right.
        """
        out, tree = set(), self.tree
        low, high = self.limits
        for v in self.matrix.place:
            features, codes, weights = tree.oblique_entries(v)
            rises = ((weights > 0) & ~(high[features] <= 0)) | ((weights < 0) & ~(low[features] >= 0))
            positive = np.where(codes < 0, rises | np.isnan(self.origin[features]), weights > 0)
            if tree.threshold[v] >= 0 and not positive.any() and tree.oblique_slack[tree.oblique_index[v]] == 0:
                out.add(v)
        return out

    @cached_property
    def _between(self) -> dict[int, tuple[float, float]]:
        """What to ask to the left and to the right of nodes that weigh listed features alone.

        Such totals are few. A closed half-space lets those through to the right that the tree sends to the left, as a
        total of 0 at a threshold of 0, and to the left it gives them no room for rounding. The middle between what may
        go to a side and what surely does not is as good a threshold, and clear of both; infinite where there is nothing
        that may.
        """
        if not self.levels:
            return {}
        out, tree = {}, self.tree
        error_bounds = self._row_error_bounds(np.arange(len(self.matrix.planes)), *self._limit_bounds())
        listed = self.columns.role == "level"
        for v, r in self.matrix.place.items():
            row = self.matrix.planes[r]
            if row[~listed].any() or np.isnan(self.origin[tree.oblique_entries(v)[0]]).any():
                continue
            values = [np.unique(row[own]) for own in self.levels.values() if row[own].any()]
            if math.prod(map(len, values)) > MOST_TOTALS:
                continue
            totals, exact = np.zeros(1), np.full(1, tree.oblique_slack[tree.oblique_index[v]] == 0)
            for own in values:
                totals, exact = np.add.outer(totals, own).ravel(), np.logical_and.outer(exact, own == 0).ravel()
            t = float(tree.threshold[v])
            right = (totals > t + error_bounds[r]) | (exact & (totals > t))
            left = (totals <= t - error_bounds[r]) | (exact & (totals <= t))
            out[v] = (
                -np.inf if right.all() else _middle(totals[~right], totals[right]),
                np.inf if left.all() else _middle(totals[left], totals[~left]),
            )
        return out

    @cached_property
    def _nodes(self) -> dict[int, int]:
        return {r: v for v, r in self.matrix.place.items()}

    def bounds_of_columns(self, leaf: Leaves, eps: float) -> tuple[FloatArray, FloatArray]:
        """Bounds of the columns within a leaf.

        Parameters
        ----------
        leaf : int or tuple of int
        eps : float
            Margin by which splits of a single feature must hold, in units of the feature.
        """
        columns = self.columns
        low, high = self.box(leaf, eps)
        unit = np.where(columns.unit != 0, np.abs(columns.unit), 1.0)
        rise_low = (low[columns.feature] - self.origin[columns.feature]) / unit
        rise_high = (high[columns.feature] - self.origin[columns.feature]) / unit
        whole = columns.integer & (columns.role != "level") & (columns.role != "moved")
        rise_low = np.where(whole & np.isfinite(rise_low), np.rint(rise_low), rise_low)
        rise_high = np.where(whole & np.isfinite(rise_high), np.rint(rise_high), rise_high)
        lower, upper = np.zeros(columns.n), np.ones(columns.n)
        for role, a, b in (
            ("delta", rise_low, rise_high),
            ("up", np.maximum(rise_low, 0.0), np.where(rise_low <= rise_high, np.maximum(rise_high, 0.0), -1.0)),
            ("down", np.maximum(-rise_high, 0.0), np.maximum(-rise_low, 0.0)),
        ):
            at = columns.role == role
            lower[at], upper[at] = a[at], b[at]
        for i, own in self.levels.items():
            upper[own] = self.allowed(leaf, i)
        return lower, upper

    def _empty(self, lower: FloatArray, upper: FloatArray) -> bool:
        """Whether bounds of columns leave some feature no value."""
        bare = any(not upper[own].any() for own in self.levels.values())
        return self.impossible or bare or bool((lower > upper).any())

    # -- lower bounds that need no solver ---------------------------------------------------------------------

    def cheap_bound(self, leaf: Leaves, eps: float) -> float:
        """What the leaf's box costs, or one hyperplane of its path with the limits alone, if that is more.

        Parameters
        ----------
        leaf : int or tuple of int
        eps : float
            Margin by which splits must hold, in units of their totals.
        """
        lower, upper = self.bounds_of_columns(leaf, eps)
        if self._empty(lower, upper):
            return np.inf
        place, sign, _, possible = self.rows(leaf, eps)
        if not possible:
            return np.inf
        dearest = self._demands(eps)[(sign < 0).astype(int), place].max(initial=-np.inf)
        return max(self._box_cost(lower, upper), float(dearest))

    def _demands(self, eps: float) -> FloatArray:
        """Least cost of reaching the left and the right side of each hyperplane within the limits, (2, n_planes)."""
        if eps in self._demanded:
            return self._demanded[eps]
        columns, planes = self.columns, self.matrix.planes
        lower, upper = self._limit_bounds()
        number = np.isin(columns.role, ("delta", "up", "down"))
        at = np.clip(0.0, lower, upper)[number]
        linear, square = columns.linear[number], columns.square[number]
        threshold = np.array([self.tree.threshold[v] for v in self.matrix.place])
        out = np.empty((2, len(planes)))
        for k, s in enumerate((1.0, -1.0)):
            rows = s * planes
            w = rows[:, number]
            need = eps - s * (threshold - self.shift) - self._row_error_bounds(np.arange(len(planes)), lower, upper)
            falls = columns.role[number] == "delta"
            room = np.where(w < 0, upper[number] - at, np.where(falls, at - lower[number], 0.0))
            levels = [(rows[:, own], columns.linear[own]) for own in (o[upper[o] > 0] for o in self.levels.values())]
            if levels:
                out[k] = priced_demands(need + w @ at, np.abs(w), room, linear, square, levels)
            else:
                above = (need + w @ at).tolist()
                out[k] = [demand_of(*args, linear, square) for args in zip(above, np.abs(w), room, strict=True)]
            need += sum((row.min(axis=1) for row, _ in levels), np.zeros(len(planes)))
            out[k] += self._form_demands(need)
        self._demanded[eps] = out
        return out

    def _form_demands(self, need: FloatArray) -> FloatArray:
        """Least cost of each hyperplane's need by the quadratic form alone, (n_planes,).

        ``d'Qd >= 2 z'Qd - z'Qz`` for any z. With z along ``Q^-1 w`` this is ``need**2 / w'Q^-1 w``, less what the
        solution of the linear system misses by anywhere within the limits.
        """
        if self.form is None:
            return np.zeros(len(need))
        size, miss = self.search.stiffness(self.problem, self.form, self.weights)
        reach = np.maximum(np.abs(self.limits[0] - self.origin), np.abs(self.limits[1] - self.origin))
        with np.errstate(invalid="ignore", over="ignore"):
            left = need - np.where(miss > 0, miss * reach, 0.0).sum(axis=1)
            out = np.where(left > 0, left**2 / (4 * size), 0.0)
        return np.where(np.isfinite(out), out, 0.0) * (1 - 1e-9)

    def _limit_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of the columns from the features' limits alone."""
        lower, upper = self.columns.lower.copy(), self.columns.upper.copy()
        upper[self.columns.role == "up"] = np.maximum(upper[self.columns.role == "up"], 0.0)
        return lower, upper

    def _box_cost(self, lower: FloatArray, upper: FloatArray) -> float:
        """Cost of the closest point of the box alone, without a quadratic form, which is at least 0."""
        columns = self.columns
        at = np.clip(0.0, lower, upper)
        number = np.isin(columns.role, ("delta", "up", "down"))
        total = float((columns.linear * at + columns.square * at * at)[number].sum())
        return total + float(sum(columns.linear[own][upper[own] > 0].min() for own in self.levels.values()))

    def _row_error_bounds(self, place: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Rounding of hyperplanes' totals anywhere in a box of the columns, (n,)."""
        reach = np.maximum(np.abs(lower), np.abs(upper))
        reach = np.where(np.isfinite(reach), reach, 0.0)
        sizes = np.abs(self.matrix.planes[place]) @ reach + np.abs(self.weights[place]) @ np.abs(self.base)
        bounds = [
            self.tree.oblique_error_bound(self._nodes[r], size) for r, size in zip(place.tolist(), sizes, strict=True)
        ]
        return 4.0 * np.array(bounds).reshape(-1)


def _middle(below: FloatArray, above: FloatArray) -> float:
    """Number between totals; beyond them where there are none on one side."""
    if not len(below) or not len(above):
        return float(below.max() + 1.0 if len(below) else above.min() - 1.0)
    return float(below.max() + above.min()) / 2

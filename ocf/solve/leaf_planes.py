"""The hyperplanes of oblique splits as one row sees them: sides, thresholds, and bounds on the rounding of totals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.features.feature import grid_unit
from ocf.problem.lines import LineBound
from ocf.solve.leaf_answer import Leaves
from ocf.solve.leaf_domain import RowDomain
from ocf.solve.tree_search import LeafMatrix, TreeSearch
from ocf.trees.rounding import is_exact, unit_of_totals, units

#: Nodes and weights.
_Parts = tuple[tuple[int, float], ...]

#: Totals of listed features that are told apart at a node, at most.
MOST_TOTALS = 20_000


class PathRows(NamedTuple):
    """Hyperplanes of a leaf's path: ``sign * planes[place] @ columns <= side``, (m,) each.

    `total` is the side of the hyperplane's whole total, without the margin.
    """

    place: IntArray
    sign: FloatArray
    side: FloatArray
    total: FloatArray


class RowPlanes:
    """The hyperplanes over the columns of one row.

    Parameters
    ----------
    search : TreeSearch
    matrix : LeafMatrix
    domain : RowDomain
        Of the row.
    """

    def __init__(self, search: TreeSearch, matrix: LeafMatrix, domain: RowDomain) -> None:
        self.search, self.tree, self.domain = search, search.tree, domain
        self.over_columns, self.place = matrix.planes, matrix.place
        # nodes that add up to each hyperplane, and their weights
        self._parts: dict[int, _Parts] = {r: ((v, 1.0),) for v, r in matrix.place.items()}
        self._sums: dict[_Parts, int] = {}
        # weights of the numbers in each hyperplane
        self.weights = np.array([self._weights_of(r) for r in range(len(matrix.place))]).reshape(-1, len(domain.origin))
        self.shift = self.weights @ domain.base
        rows = self.tree.oblique_index[list(matrix.place)]
        self.slack = np.zeros(len(matrix.place))
        self.slack[list(matrix.place.values())] = self.tree.oblique_slack[rows]

    def __len__(self) -> int:
        return len(self.place)

    def entries(self, r: int) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
        """Features, codes and weights of a hyperplane.

        Parameters
        ----------
        r : int
            Which one.
        """
        own = [(*self.tree.oblique_entries(v)[:2], w * self.tree.oblique_entries(v)[2]) for v, w in self._parts[r]]
        if len(own) == 1:
            return own[0]
        features, codes, weights = (np.concatenate(side) for side in zip(*own, strict=True))
        keys, place = np.unique(np.column_stack([features, codes]), axis=0, return_inverse=True)
        merged = np.zeros(len(keys))
        np.add.at(merged, place.ravel(), weights)
        return keys[:, 0], keys[:, 1], merged

    def _weights_of(self, r: int) -> FloatArray:
        out = np.zeros(len(self.domain.origin))
        features, codes, data = self.entries(r)
        np.add.at(out, features[codes < 0], data[codes < 0])
        return out

    # -- the path of a leaf -----------------------------------------------------------------------------------

    def path_rows(self, leaf: Leaves, eps: float) -> PathRows | None:
        """Hyperplanes of a leaf's path; None where one contradicts the row's limits.

        Parameters
        ----------
        leaf : int or tuple of int
        eps : float
            Margin by which splits must hold, in units of their totals.
        """
        place, sign, side, total = [], [], [], []
        for v, left in self.search.region(leaf).path.items():
            if v in self._lines:
                continue
            t = self.threshold(v, left, eps)
            if v not in self.place:  # no column has a weight in it: its total is 0, which decides the split
                if (t >= 0) != left:
                    return None
                continue
            if not np.isfinite(t) or (not left and v in self._left_only):
                return None
            r, s = self.place[v], 1.0 if left else -1.0
            place.append(r)
            sign.append(s)
            side.append(s * (t - self.shift[r]) - eps)
            total.append(s * t)
        return PathRows(np.array(place, int), np.array(sign), np.array(side), np.array(total))

    def with_lines(self, rows: PathRows, bounds: Sequence[LineBound]) -> PathRows | None:
        """The rows, and the sides of lines; None where one is missed whatever the columns are.

        Parameters
        ----------
        rows : PathRows
        bounds : sequence of LineBound
        """
        place, sign, side, total = (list(part) for part in rows)
        for bound in bounds:
            parts = [(int(self.tree.tree_offsets[tree]), w) for tree, w in bound.parts]
            most = bound.most + sum(w * float(self.tree.threshold[v]) for v, w in parts)
            parts = [(v, w) for v, w in parts if v in self.place]
            if not parts:  # nothing of the lines moves
                if most < 0:
                    return None
                continue
            r, s = (self.place[parts[0][0]], parts[0][1]) if len(bound.parts) == 1 else (self._sum(tuple(parts)), 1.0)
            place.append(r)
            sign.append(s)
            side.append(most - s * self.shift[r])
            total.append(most)
        return PathRows(np.array(place, int), np.array(sign), np.array(side), np.array(total))

    def of_lines(self, place: IntArray) -> BoolArray:
        """Which hyperplanes are lines, or sums of lines, (m,).

        Parameters
        ----------
        place : (m,) int64
        """
        own = [r for v, r in self.place.items() if v in self._lines]
        return np.isin(place, own) | (place >= len(self))

    def _sum(self, parts: _Parts) -> int:
        """Place of a sum of lines, behind the hyperplanes of the tree itself."""
        if parts not in self._sums:
            r = self._sums[parts] = len(self.over_columns)
            self._parts[r] = parts
            rows, by = [self.place[v] for v, _ in parts], np.array([w for _, w in parts])
            self.over_columns = np.vstack([self.over_columns, by @ self.over_columns[rows]])
            self.weights = np.vstack([self.weights, self._weights_of(r)])
            self.shift = np.append(self.shift, self.weights[r] @ self.domain.base)
            self.slack = np.append(self.slack, np.abs(by) @ self.slack[rows])
        return self._sums[parts]

    @cached_property
    def _lines(self) -> frozenset[int]:
        """Roots of lines, which have no sides."""
        return frozenset(self.tree.tree_offsets[self.tree.lines[:, 0]].tolist())

    def not_implied(self, rows: PathRows, lower: FloatArray, upper: FloatArray) -> PathRows:
        """Those that a box of the columns does not already imply, and of parallel ones the tightest.

        Parameters
        ----------
        rows : PathRows
        lower, upper : (n_columns,) float64
        """
        place, sign, side, total = rows
        signed = sign[:, None] * self.over_columns[place]
        number = self.domain.columns.role != "level"
        with np.errstate(invalid="ignore"):
            ends = np.where(signed == 0, 0.0, np.where(signed > 0, signed * upper, signed * lower))
        most = ends[:, number].sum(axis=1)
        for own in self.domain.levels.values():
            most += signed[:, own[upper[own] > 0]].max(axis=1)
        keep = ~(most < side - self.error_bounds(place, lower, upper))
        tightest: dict[bytes, int] = {}
        for k in np.flatnonzero(keep).tolist():
            other = tightest.setdefault(signed[k].tobytes(), k)
            if other != k:
                loser = k if side[k] >= side[other] else other
                keep[loser] = False
                tightest[signed[k].tobytes()] = other if loser == k else k
        return PathRows(place[keep], sign[keep], side[keep], total[keep])

    def threshold(self, v: int, left: bool, eps: float) -> float:
        """What the total of a node may be at most to the left, and must be at least to the right, but for a margin.

        Parameters
        ----------
        v : int
            An oblique node.
        left : bool
            Whether the path goes left there.
        eps : float
            The margin; above 0 the tree's own threshold is taken, unless totals lie on a grid.
        """
        t = float(self.tree.threshold[v])
        if eps == 0:
            return self._between.get(v, (t, t))[0 if left else 1]
        unit = self._grid_units.get(v)
        if unit is None:
            return t
        # between two totals as well, from which the margin is taken off again
        if left:
            return math.floor((Fraction(t) - Fraction(eps)) / Fraction(unit)) * unit + unit / 2 + eps
        return math.ceil((Fraction(t) + Fraction(eps)) / Fraction(unit)) * unit - unit / 2 - eps

    @cached_property
    def _left_only(self) -> set[int]:
        """Nodes whose total has no positive term within the limits, and whose threshold is not negative.

        Rounding cannot make such a total positive. A closed half-space would let the total 0 through to the right.
        """
        out, tree = set(), self.tree
        low, high = self.domain.limits
        for v in self.place:
            features, codes, weights = tree.oblique_entries(v)
            rises = ((weights > 0) & ~(high[features] <= 0)) | ((weights < 0) & ~(low[features] >= 0))
            positive = np.where(codes < 0, rises | np.isnan(self.domain.origin[features]), weights > 0)
            if tree.threshold[v] >= 0 and not positive.any() and tree.oblique_slack[tree.oblique_index[v]] == 0:
                out.add(v)
        return out

    @cached_property
    def _between(self) -> dict[int, tuple[float, float]]:
        """What to ask to the left and to the right of nodes that weigh listed features, or numbers on grids, alone.

        Such totals are few, or lie on a grid. A closed half-space lets those through to the right that the tree sends
        to the left, as a total of 0 at a threshold of 0, and to the left it gives them no room for rounding. The middle
        between what may go to a side and what surely does not is as good a threshold, and clear of both; infinite
        where there is nothing that may.
        """
        domain, tree = self.domain, self.tree
        if not domain.levels and not len(domain.grid):
            return {}
        out: dict[int, tuple[float, float]] = {}
        error_bounds = self.error_bounds(np.arange(len(self)), *domain.limit_bounds())
        listed = domain.columns.role == "level"
        for v, r in self.place.items():
            row = self.over_columns[r]
            if np.isnan(domain.origin[tree.oblique_entries(v)[0]]).any():
                continue
            if v in self._grid_units:
                unit = self._grid_units[v]
                middle = math.floor(float(tree.threshold[v]) / unit) * unit + unit / 2
                out[v] = middle, middle
                continue
            if row[~listed].any():
                continue
            values = [np.unique(row[own]) for own in domain.levels.values() if row[own].any()]
            if math.prod(map(len, values)) > MOST_TOTALS:
                continue
            totals, terms = np.zeros(1), np.zeros(1, np.int64)
            for own in values:
                totals, terms = np.add.outer(totals, own).ravel(), np.add.outer(terms, own != 0).ravel()
            # a single indicator's weight is not rounded, a product may be
            lone = 1 if (tree.oblique_entries(v)[1] >= 0).all() else 0
            exact = (terms <= lone) & (tree.oblique_slack[tree.oblique_index[v]] == 0)
            t = float(tree.threshold[v])
            right = (totals > t + error_bounds[r]) | (exact & (totals > t))
            left = (totals <= t - error_bounds[r]) | (exact & (totals <= t))
            out[v] = (
                -np.inf if right.all() else _middle(totals[~right], totals[right]),
                np.inf if left.all() else _middle(totals[left], totals[~left]),
            )
        return out

    @cached_property
    def _grid_units(self) -> dict[int, float]:
        """A number of which all totals of a node are multiples, of those nodes whose totals are not rounded."""
        domain, tree = self.domain, self.tree
        if not domain.levels and not len(domain.grid):
            return {}
        known = {v: r for v, r in self.place.items() if not np.isnan(domain.origin[tree.oblique_entries(v)[0]]).any()}
        units_of = {v: self._grid_unit(v, r) for v, r in known.items()}
        return {v: unit for v, unit in units_of.items() if unit is not None}

    def _grid_unit(self, v: int, r: int) -> float | None:
        """A number of which all totals of a node are multiples; None where there is none, or they are rounded."""
        domain, tree = self.domain, self.tree
        features, codes, weights = tree.oblique_entries(v)
        if tree.oblique_slack[tree.oblique_index[v]] or np.isin(features, domain.smooth).any():
            return None
        steps = np.array([grid_unit(f) or 1.0 for f in domain.problem.space.features])
        own = np.minimum(units(steps), units(domain.origin))
        for i, columns in domain.levels.items():
            own[i] = units(domain.columns.value[columns]).min()
        t = float(tree.threshold[v])
        unit = float(unit_of_totals(weights, np.where(codes < 0, own[features], 1.0)[None], t)[0])
        lower, upper = domain.limit_bounds()
        reach = np.abs(self.weights[r]) @ np.abs(domain.base) + abs(t)
        weighed = self.over_columns[r] != 0  # others may have no limits
        reach += np.abs(self.over_columns[r, weighed]) @ np.maximum(np.abs(lower), np.abs(upper))[weighed]
        return unit if is_exact(unit, reach) else None

    # -- rounding ---------------------------------------------------------------------------------------------

    def error_bounds(self, place: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Bounds on the rounding of hyperplanes' totals anywhere in a box of the columns, (m,).

        Parameters
        ----------
        place : (m,) int64
            Which hyperplanes.
        lower, upper : (n_columns,) float64
        """
        reach = np.maximum(np.abs(lower), np.abs(upper))
        reach = np.where(np.isfinite(reach), reach, 0.0)
        sizes = np.abs(self.over_columns[place]) @ reach + np.abs(self.weights[place]) @ np.abs(self.domain.base)
        own = [self._error_bound(r, size) for r, size in zip(place.tolist(), sizes.tolist(), strict=True)]
        return 4.0 * np.array(own).reshape(-1)

    def _error_bound(self, r: int, size: float) -> float:
        """Bound on the rounding of a hyperplane's total, given the sum of the magnitudes of its terms."""
        return sum(abs(w) * float(self.tree.oblique_error_bound(v, size / abs(w))) for v, w in self._parts[r])

    def error_bounds_at(self, place: IntArray, reach: FloatArray) -> FloatArray:
        """Twice the rounding of hyperplanes' totals: the tree's own, and that of the numbers here, (m,).

        Parameters
        ----------
        place : (m,) int64
            Which hyperplanes.
        reach : (n_features,) float64
            Magnitudes of the values.
        """
        return np.array([self._error_bound_at(r, reach) for r in place.tolist()])

    def _error_bound_at(self, r: int, reach: FloatArray) -> float:
        features, codes, weights = self.entries(r)
        size = float(np.abs(weights) @ np.where(codes < 0, reach[features], 1.0))
        return 2.0 * self._error_bound(r, size)


def _middle(below: FloatArray, above: FloatArray) -> float:
    """Number between totals; beyond them where there are none on one side."""
    if not len(below) or not len(above):
        return float(below.max() + 1.0 if len(below) else above.min() - 1.0)
    return float(below.max() + above.min()) / 2

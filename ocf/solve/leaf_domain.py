"""What one row's features may become, by their limits and within a leaf, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.features.feature import grid_unit
from ocf.formulations.blocks.columns import MoveColumns, columns_of
from ocf.problem.problem import Problem
from ocf.solve.leaf_answer import LeafTask, Leaves
from ocf.solve.tree_search import TreeSearch


@dataclass(frozen=True, eq=False)
class MovePrices:
    """What a number's fall or rise d costs: ``a |d| + q d**2``, and something for leaving its value, (n,) each."""

    a_down: FloatArray
    a_up: FloatArray
    q_down: FloatArray
    q_up: FloatArray
    leave_down: FloatArray
    leave_up: FloatArray

    @classmethod
    def of_columns(cls, columns: MoveColumns, n_features: int) -> MovePrices:
        """Prices of the features that have columns; 0 for others.

        Parameters
        ----------
        columns : MoveColumns
        n_features : int
        """
        prices = cls(*np.zeros((6, n_features)))
        for j in np.flatnonzero(columns.role != "level").tolist():
            i, role, unit = int(columns.feature[j]), columns.role[j], abs(float(columns.unit[j]))
            linear, square = float(columns.linear[j]), float(columns.square[j])
            if role == "moved":
                (prices.leave_up if columns.value[j] > 0 else prices.leave_down)[i] = linear
                continue
            if role in ("up", "delta"):
                prices.a_up[i], prices.q_up[i] = linear / unit, square / unit**2
            if role in ("down", "delta"):
                prices.a_down[i], prices.q_down[i] = linear / unit, square / unit**2
        return prices

    def of(self, features: IntArray, d: FloatArray) -> FloatArray:
        """Cost of changes of some features, (n,).

        Parameters
        ----------
        features : (n,) int64
        d : (n,) float64
        """
        out = np.where(
            d > 0,
            self.a_up[features] * d + self.q_up[features] * d * d,
            -self.a_down[features] * d + self.q_down[features] * d * d,
        )
        return np.asarray(
            out + np.where(d > 0, self.leave_up[features], np.where(d < 0, self.leave_down[features], 0.0))
        )


class RowDomain:
    """One row's features and their columns: which are listed by levels, which are numbers, and how far each may go.

    Parameters
    ----------
    search : TreeSearch
    problem : Problem
    """

    def __init__(self, search: TreeSearch, problem: Problem) -> None:
        self.search, self.problem, self.origin = search, problem, problem.origin
        columns = self.columns = columns_of(problem)
        features, origin = problem.space.features, self.origin
        listed = np.unique(columns.feature[columns.role == "level"])
        self.levels = {int(i): np.flatnonzero((columns.feature == i) & (columns.role == "level")) for i in listed}
        present = ~np.isnan(origin)
        # a feature without any admissible value has no column, and then there is no answer
        self.impossible = bool(np.setdiff1d(np.flatnonzero(present), columns.feature).size)
        number = present.copy()
        number[listed] = False
        grid = np.array([grid_unit(f) > 0 for f in features])
        self.number, self.smooth = number, np.flatnonzero(number & ~grid)
        self.grid = np.flatnonzero(number & grid)
        self.base = np.where(number, origin, 0.0)
        limits = np.array([f.limits(v) for f, v in zip(features, origin, strict=True)]).reshape(-1, 2)
        self.limits = limits[:, 0], limits[:, 1]
        self.prices = MovePrices.of_columns(columns, len(origin))
        # what levels that are preferred may give back, at most
        self.credit = sum(min(0.0, float(columns.linear[own].min())) for own in self.levels.values())
        narrow = [i for i in self.smooth.tolist() if features[i].float_dtype != np.float64]
        self.narrow = {i: features[i].float_dtype for i in narrow}

    # -- by the limits ----------------------------------------------------------------------------------------

    def limit_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of the columns from the features' limits alone."""
        lower, upper = self.columns.lower.copy(), self.columns.upper.copy()
        upper[self.columns.role == "up"] = np.maximum(upper[self.columns.role == "up"], 0.0)
        return lower, upper

    # -- within a leaf ----------------------------------------------------------------------------------------

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
            ends = [float(f.at_least(low[i])), float(left)]
            tops = [float(f.at_most(high[i])), float(f.at_most(b - eps))]
            stays = low[i] <= self.origin[i] <= high[i] and a < self.origin[i] <= b and eps == 0
            low[i], high[i] = max(ends), min(tops)
            if stays:  # the row's own value is admissible whatever the grid
                low[i], high[i] = min(low[i], self.origin[i]), max(high[i], self.origin[i])
        return low, high

    def box_of(self, task: LeafTask) -> tuple[FloatArray, FloatArray]:
        """The same for a leaf's problem: numbers whose l0 binaries are closed stay at the origin."""
        low, high = self.box(task.leaf, task.eps)
        columns = self.columns
        for j in np.flatnonzero(columns.role == "moved").tolist():
            if task.upper[j] == 0:
                i = int(columns.feature[j])
                if columns.value[j] > 0:
                    high[i] = min(high[i], self.origin[i])
                else:
                    low[i] = max(low[i], self.origin[i])
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

    def bounds(self, leaf: Leaves, eps: float) -> tuple[FloatArray, FloatArray]:
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
        # of neighbouring ends the distances to the origin may be one number
        empty = columns.is_number & (low > high)[columns.feature]
        lower[empty], upper[empty] = 1.0, 0.0
        for i, own in self.levels.items():
            upper[own] = self.allowed(leaf, i)
        return lower, upper

    # -- by bounds of the columns -----------------------------------------------------------------------------

    def is_empty(self, lower: FloatArray, upper: FloatArray) -> bool:
        """Whether bounds of columns leave some feature no value.

        Parameters
        ----------
        lower, upper : (n_columns,) float64
        """
        bare = any(not upper[own].any() for own in self.levels.values())
        return self.impossible or bare or bool((lower > upper).any())

    def box_cost(self, lower: FloatArray, upper: FloatArray) -> float:
        """Cost of the closest point of the box alone, without a quadratic form, which is at least 0.

        Parameters
        ----------
        lower, upper : (n_columns,) float64
        """
        columns = self.columns
        at = np.clip(0.0, lower, upper)
        number = columns.is_number
        total = float((columns.linear * at + columns.square * at * at)[number].sum())
        return total + float(sum(columns.linear[own][upper[own] > 0].min() for own in self.levels.values()))

    def cheapest_levels(self, upper: FloatArray) -> dict[int, int]:
        """Column of the cheapest level that is left to each listed feature, by upper bounds of the columns."""
        out = {}
        for i, own in self.levels.items():
            usable = own[upper[own] > 0]
            out[i] = int(usable[self.columns.linear[usable].argmin()])
        return out

"""The problem of a linear model: moves of features against one score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocf.arrays import FloatArray
from ocf.features.feature import grid_unit, has_grid, rounds_its_grid
from ocf.features.space import FeatureSpace
from ocf.problem.constraints import Constraint
from ocf.problem.costs import Cost
from ocf.problem.targets import ClassTarget

#: Part of a step by which a column of float32 may round its multiples and they still count as whole steps.
MOST_OFF = 2.0**-6


@dataclass(frozen=True)
class Move:
    """How far a numeric feature may move, in units of its scale.

    Attributes
    ----------
    low, high : float
        Of the signed distance; a permitted range may exclude 0. The low end is above the high one where no value is
        left.
    """

    low: float
    high: float

    @property
    def up(self) -> float:
        """Longest way up."""
        return max(self.high, 0.0)

    @property
    def down(self) -> float:
        """Longest way down."""
        return max(-self.low, 0.0)

    def times(self, factor: float) -> Move:
        """The same in a unit so many times finer."""
        return Move(self.low * factor, self.high * factor)


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """The cheapest point to which a linear model gives a class.

    Attributes
    ----------
    space : FeatureSpace
    origin : (n_features,) float64
        Coded row.
    target : ClassTarget
    cost : Cost
    constant : (n_rows,) float64
    slopes : (n_rows, n_features) float64
        In coded values; 0 for discrete features.
    tables : tuple of (n_levels, n_rows) float64, one per feature
        What each level of a discrete feature adds; no levels for numeric features.
    error_bound : (n_rows,) float64
        The class is given where each ``constant + slopes @ x + sum of tables`` exceeds its error bound, and is not
        where one lies below minus its error bound.
    moves : tuple of Move or None, one per feature
        None for features that keep their value, and for listed ones.
    values : tuple of (n_values,) float64, one per feature
        Coded values of the listed features: the discrete ones, and those on a grid that their column rounds.
    value_costs : tuple of (n_values,) float64, one per feature
        inf for values that are not allowed.
    constraints : tuple
        None: relations between features are for trees.
    """

    space: FeatureSpace
    origin: FloatArray
    target: ClassTarget
    cost: Cost
    constant: FloatArray
    slopes: FloatArray
    tables: tuple[FloatArray, ...]
    error_bound: FloatArray
    moves: tuple[Move | None, ...]
    values: tuple[FloatArray, ...]
    value_costs: tuple[FloatArray, ...]
    constraints: tuple[Constraint, ...] = ()

    def at_origin(self, r: int) -> float:
        """Requirement r at the row, without its discrete features."""
        return float(self.constant[r] + self.slopes[r] @ self.origin)

    def added(self, i: int, r: int) -> FloatArray:
        """What each value of a listed feature adds to a requirement at the row, (n_values,).

        Parameters
        ----------
        i, r : int
            Feature and requirement.
        """
        if self.space.features[i].discrete:
            return self.tables[i][:, r]
        return np.asarray(self.slopes[r, i] * (self.values[i] - self.origin[i]))

    def takes_steps(self, i: int) -> bool:
        """Whether a numeric feature moves by whole steps; where its column rounds them by much it has other values.

        In a column of float32, 0.1 is off by a hundred-millionth, which is less than solvers tell apart.
        """
        feature = self.space.features[i]
        return has_grid(feature) and not rounds_its_grid(feature, float(self.origin[i]), MOST_OFF)

    def surplus(self, point: FloatArray) -> FloatArray:
        """By how much a point exceeds each requirement, (n_rows,)."""
        total = self.constant + self.slopes @ point
        for i, table in enumerate(self.tables):
            if len(table):
                total = total + table[int(point[i])]
        return np.asarray(total)

    def multiple(self, i: int, steps: float) -> float:
        """Value of a feature with a grid at a number of steps.

        Parameters
        ----------
        i : int
            Feature.
        steps : float
            A whole number.
        """
        feature = self.space.features[i]
        return float(feature.at_most((steps + 0.5) * grid_unit(feature)))

    def starts_on_grid(self, i: int) -> bool:
        """Whether the row's value is a multiple of the feature's step."""
        origin = self.origin[i]
        return bool(self.space.features[i].at_most(origin) == origin)

    def steps(self, i: int) -> tuple[float, float]:
        """First and last multiple of its step that a feature with a grid may take."""
        feature, move = self.space.features[i], self.moves[i]
        assert move is not None
        step = grid_unit(feature)
        low, high = feature.limits(float(self.origin[i]))  # by its scale, an end would be rounded and lost
        return float(np.rint(feature.at_least(low) / step)), float(np.rint(feature.at_most(high) / step))

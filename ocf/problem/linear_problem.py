"""The problem of a linear model: moves of features against one score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocf.arrays import FloatArray
from ocf.features.space import FeatureSpace
from ocf.problem.constraints import Constraint
from ocf.problem.costs import Cost
from ocf.problem.targets import ClassTarget


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
        What each level adds; no levels for numeric features.
    error_bound : (n_rows,) float64
        The class is given where each ``constant + slopes @ x + sum of tables`` exceeds its error bound, and is not
        where one lies below minus its error bound.
    moves : tuple of Move or None, one per feature
        None for features that keep their value, and for discrete ones.
    level_costs : tuple of (n_levels,) float64, one per feature
        inf for levels that are not allowed.
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
    level_costs: tuple[FloatArray, ...]
    constraints: tuple[Constraint, ...] = ()

    def at_origin(self, r: int) -> float:
        """Requirement r at the row, without its discrete features."""
        return float(self.constant[r] + self.slopes[r] @ self.origin)

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
        return float(feature.at_most((steps + 0.5) * (feature.step or 1.0)))

    def starts_on_grid(self, i: int) -> bool:
        """Whether the row's value is a multiple of the feature's step."""
        origin = self.origin[i]
        return bool(self.space.features[i].at_most(origin) == origin)

    def steps(self, i: int) -> tuple[float, float]:
        """First and last multiple of its step that a feature with a grid may take."""
        feature, move = self.space.features[i], self.moves[i]
        assert move is not None
        step = feature.step or 1.0
        low, high = feature.limits(float(self.origin[i]))  # by its scale, an end would be rounded and lost
        return float(np.rint(feature.at_least(low) / step)), float(np.rint(feature.at_most(high) / step))

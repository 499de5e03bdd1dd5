"""Relations between features, and costs of features' own, over values instead of cells.

An exact row ``sum_i f_i(x_i) <= limit`` (`ocf.problem.constraints`) is linear over the columns of
`ocf.formulations.oblique`
when each ``f_i`` of a number is a line on either side of the origin, perhaps with a jump where the number leaves it. A
number with a grid whose function is something else is listed value by value; a continuous one is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.features.curve import exact
from ocf.features.feature import Feature
from ocf.features.own_cost import amount_of, cuts_of
from ocf.problem.problem import Problem
from ocf.problem.rows import Row


@dataclass(frozen=True)
class Sides:
    """A function of a number: ``start``, plus a jump and a slope per unit of change on either side of the origin."""

    start: float
    jump_down: float
    jump_up: float
    rate_down: float
    rate_up: float

    @property
    def straight(self) -> bool:
        """Whether it is one line through the origin."""
        return self.rate_down == -self.rate_up and not self.jumps

    @property
    def jumps(self) -> bool:
        """Whether leaving the origin costs something by itself."""
        return self.jump_down != 0 or self.jump_up != 0

    @property
    def convex(self) -> bool:
        """Whether rising and falling at once, or a jump without a move, cannot make it smaller."""
        return self.rate_down + self.rate_up >= 0 and self.jump_down >= 0 and self.jump_up >= 0


def sides_of(
    of: Callable[[float], Fraction], cuts: FloatArray, origin: float, limits: tuple[float, float], unit: float
) -> Sides | None:
    """A function of a number as two sides of the origin; None where it bends elsewhere.

    Parameters
    ----------
    of : callable
        Exact amount at a value.
    cuts : (n,) float64
        Where it may bend or jump.
    origin : float
    limits : tuple of float
        Between which it matters.
    unit : float
        Of the grid; 0 for a continuous number.
    """
    own = (math.nextafter(origin, -math.inf), origin, math.nextafter(origin, math.inf))
    elsewhere = [c for c in cuts.tolist() if c not in own and limits[0] <= c < limits[1]]
    if elsewhere:
        return None
    step, start = unit or 1.0, of(origin)

    def side(sign: float) -> tuple[Fraction, Fraction]:
        """Jump, and rate per unit of change away from the origin."""
        near, far = origin + sign * step, origin + 2 * sign * step
        rate = (of(far) - of(near)) / abs(exact(far) - exact(near))
        return of(near) - start - rate * abs(exact(near) - exact(origin)), rate

    (jump_down, rate_down), (jump_up, rate_up) = side(-1.0), side(1.0)
    return Sides(*map(float, (start, jump_down, jump_up, rate_down, rate_up)))


@dataclass(frozen=True)
class Shape:
    """What the relations and its own cost ask of the columns of a number.

    Attributes
    ----------
    listed : bool
        Its values must be listed one by one.
    split : bool
        Rise and fall need a column each.
    counted : bool
        Whether it moves at all needs a column.
    cost : Sides or None
        Its own cost, where it has one.
    """

    listed: bool = False
    split: bool = False
    counted: bool = False
    cost: Sides | None = None


def exact_rows(problem: Problem) -> list[Row]:
    """All rows of a problem's constraints."""
    return [row for c in problem.constraints for row in c.rows(problem.space, problem.origin)]


def shape_of(problem: Problem, rows: list[Row], i: int, unit: float) -> Shape:
    """What is asked of the columns of number i.

    Parameters
    ----------
    problem : Problem
    rows : list of Row
        Constraints that the columns must express.
    i : int
        Number of the feature.
    unit : float
        Of the values: the columns count multiples of it.

    Raises
    ------
    ProblemError
        A continuous number has a relation or a cost that is no line on either side of its value.
    """
    feature, origin = problem.space.features[i], float(problem.origin[i])
    shape = Shape()
    for row in rows:
        if i in row.parts:
            found = sides_of(row.parts[i].of, row.parts[i].cuts, origin, feature.limits(origin), unit)
            shape = _joined(shape, found, feature, f"the constraint {row.name!r}", unit)
    if feature.cost is not None:
        cost = feature.cost

        def amount(value: float) -> Fraction:
            return amount_of(cost, feature, origin, value)

        found = sides_of(amount, cuts_of(cost, feature, origin), origin, feature.limits(origin), unit)
        if found is not None and min(found.rate_down, found.rate_up, found.jump_down, found.jump_up) < 0:
            found = None
        shape = _joined(shape, found, feature, "its own cost", unit)
        if not shape.listed:
            assert found is not None
            shape = Shape(False, True, shape.counted, found)
    return shape


def _joined(shape: Shape, found: Sides | None, feature: Feature, what: str, unit: float) -> Shape:
    if found is not None and found.convex:
        return Shape(shape.listed, shape.split or not found.straight, shape.counted or found.jumps, shape.cost)
    if not unit:
        raise ProblemError(
            f"{what} says something of {feature.name!r} that is no line on either side of the row's value; models with "
            "hyperplanes can ask that of features with levels, whole numbers or a step only: describe it so"
        )
    return Shape(True, shape.split, shape.counted, shape.cost)


def level_amounts(row: Row, i: int, values: FloatArray) -> FloatArray:
    """What listed values of feature i add to a row.

    Parameters
    ----------
    row : Row
    i : int
        Number of the feature.
    values : (n,) float64
        Coded.
    """
    return np.array([float(row.parts[i].of(v)) for v in values.tolist()])

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

#: Part of a step by which rounding may miss it.
STEP = 1e-3


@dataclass(frozen=True)
class Sides:
    """What a number's change adds to a function of it: a jump, and a slope per unit, on either side of the origin."""

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
    start, here = of(origin), exact(origin)

    def side(sign: float) -> tuple[Fraction, Fraction] | None:
        """Jump, and rate per unit of change away from the origin; None where no value lies on that side."""
        ends = _within(origin, limits, unit, sign)
        if ends is None:
            return None
        near, far = (abs(exact(v) - here) for v in ends)
        if near == far:
            return Fraction(0), (of(ends[1]) - start) / far
        rate = (of(ends[1]) - of(ends[0])) / (far - near)
        return of(ends[0]) - start - rate * near, rate

    down, up = side(-1.0), side(1.0)
    # a side without values says nothing, and goes on as the other
    down = down or (Fraction(0), -up[1] if up else Fraction(0))
    up = up or (Fraction(0), -down[1])
    return Sides(*map(float, (down[0], up[0], down[1], up[1])))


def _within(origin: float, limits: tuple[float, float], unit: float, sign: float) -> tuple[float, float] | None:
    """Two values, the nearer first, on one side of the origin and within the limits; the same where there is one."""
    low, high = sorted(sign * end for end in limits)
    first, last = max(low - sign * origin, 0.0), high - sign * origin
    if unit:
        nearest = max(math.ceil(first / unit - STEP), 1)
        first, last = nearest * unit, math.floor(min(last / unit, nearest + 1.0) + STEP) * unit
    else:
        last = min(last, first + 2 * max(1.0, abs(origin)))
        first = first or last / 2
    if last <= 0 or first > last:
        return None
    near, far = (min(max(origin + sign * v, limits[0]), limits[1]) for v in (first, last))
    if far == origin:
        return None
    return (far if near == origin else near), far


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

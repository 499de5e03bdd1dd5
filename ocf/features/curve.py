"""Amounts that a change of one feature takes: per unit, per level, piecewise linear or stepwise.

Amounts are exact fractions of what the numbers read as: 0.1 is one tenth, as a user wrote it, and not the float64
that is nearest to it. A curve says where it bends, so that cells can be cut there; within a cell it is a line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ocf.errors import ProblemError
from ocf.support.amounts import real_number
from ocf.support.messages import nearest

#: Keys of a curve that is given as a table of points.
POINT_KEYS = ("points", "of", "steps")


def exact(value: float) -> Fraction:
    """The decimal that a number reads as, exactly."""
    return Fraction(repr(float(value)))


@dataclass(frozen=True)
class Curve:
    """The amount that moving one feature from the row's value to another takes; 0 for no change.

    Exactly one of the first four is given.

    Attributes
    ----------
    rate : tuple of two floats or None
        Amount per unit of a change down and up, in the user's units.
    levels : tuple of (level, amount) or None
        Amount of moving to a level; levels that are not named take nothing.
    between : tuple of float or None
        Amount of passing from each level to the next, and back; one less than there are levels (ocean, (37)).
    points : tuple of (number, amount) or None
        By increasing number; between them the amount is linear, beyond them it stays (as `numpy.interp` has it).
    of : {"change", "value"}
        Whether the numbers of the points are signed changes or values.
    steps : bool
        With points: the amount is that of the last point reached, and nothing before the first.
    """

    rate: tuple[float, float] | None = None
    levels: tuple[tuple[Any, float], ...] | None = None
    between: tuple[float, ...] | None = None
    points: tuple[tuple[float, float], ...] | None = None
    of: str = "change"
    steps: bool = False

    @classmethod
    def parse(cls, said: Any) -> Curve:
        """Curve from what a user writes.

        Parameters
        ----------
        said : number, (down, up), mapping of level to amount, ``{"between": [1, 2, 4]}``, or
            ``{"points": [[0, 0], [12, 5]], "of": "change", "steps": False}``
        """
        if isinstance(said, Curve):
            return said
        if isinstance(said, Mapping):
            if set(said) == {"between"}:
                return cls(between=tuple(_finite(a) for a in _listed(said["between"])))
            if set(said) == {"levels"} and isinstance(said["levels"], list | tuple):
                return cls(levels=tuple((level, _finite(amount)) for level, amount in _pairs(said["levels"])))
            if "points" not in said:
                return cls(levels=tuple((level, _finite(amount)) for level, amount in said.items()))
            return cls._through_points(said)
        if isinstance(said, Sequence) and not isinstance(said, str):
            if len(said) != 2:
                raise ProblemError(f"an amount per unit is a number or (down, up), not {said!r}")
            return cls(rate=(_finite(said[0]), _finite(said[1])))
        return cls(rate=(_finite(said), _finite(said)))

    @classmethod
    def _through_points(cls, said: Mapping[str, Any]) -> Curve:
        for key in said:
            if key not in POINT_KEYS:
                raise ProblemError(f"unknown key of a curve {nearest(key, POINT_KEYS)}")
        points = tuple(sorted((_finite(x), _finite(y)) for x, y in _pairs(said["points"])))
        if len({x for x, _ in points}) < len(points):
            raise ProblemError(f"two points of a curve share a number: {list(points)}")
        of, steps = said.get("of", "change"), bool(said.get("steps", False))
        if of not in ("change", "value"):
            raise ProblemError(f"'of' says {nearest(of, ('change', 'value'))}")
        if len(points) < (1 if steps else 2):
            raise ProblemError("a piecewise linear curve needs at least two points, a stepwise one at least one")
        return cls(points=points, of=of, steps=steps)

    def to_plain(self) -> Any:
        """JSON-ready form that `parse` takes; levels with their amounts as pairs."""
        if self.rate is not None:
            return list(self.rate)
        if self.levels is not None:
            return {"levels": [[level, amount] for level, amount in self.levels]}
        if self.between is not None:
            return {"between": list(self.between)}
        return {"points": [list(p) for p in self.points or ()], "of": self.of, "steps": self.steps}

    @cached_property
    def exact_points(self) -> list[tuple[Fraction, Fraction]]:
        """The points, exactly as they read."""
        return [(exact(x), exact(y)) for x, y in self.points or ()]

    @cached_property
    def rewards(self) -> bool:
        """Whether some change takes less than nothing."""
        by_key = (self.levels or ()) + (self.points or ())
        return any(amount < 0 for amount in (*(self.rate or ()), *(self.between or ()), *(a for _, a in by_key)))

    def words(self, unit: str = "") -> str:
        """What the curve says, in a few words."""
        if self.rate is not None:
            down, up = self.rate
            return f"{up:g}{unit} per unit" if down == up else f"{down:g}{unit} per unit down, {up:g}{unit} up"
        if self.levels is not None:
            return ", ".join(f"{level}: {amount:g}" for level, amount in self.levels)
        if self.between is not None:
            return "between levels: " + ", ".join(f"{amount:g}" for amount in self.between)
        return ("steps at " if self.steps else "through ") + ", ".join(f"({x:g}, {y:g})" for x, y in self.points or ())


def _listed(amounts: Any) -> Sequence[Any]:
    if isinstance(amounts, list | tuple | np.ndarray):
        return list(amounts)
    raise ProblemError(f"'between' is a list of amounts, not {amounts!r}")


def _pairs(points: Any) -> list[tuple[Any, Any]]:
    try:
        pairs = [(x, y) for x, y in points]
        hash(tuple(x for x, _ in pairs))  # numbers, or levels, which are keys
        return pairs
    except (TypeError, ValueError):
        raise ProblemError(f"points are pairs of a number and an amount, not {points!r}") from None


def _finite(value: Any) -> float:
    number = real_number(value)
    if not math.isfinite(number):
        raise ProblemError(f"{value!r} should be a finite number")
    return number

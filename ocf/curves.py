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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ocf.errors import ProblemError
from ocf.words import nearest

if TYPE_CHECKING:
    from ocf.features import Feature

FloatArray = NDArray[np.float64]

#: Keys of a curve that is given as a table of points.
POINT_KEYS = ("points", "of", "steps")


def exact(value: float) -> Fraction:
    """The decimal that a number reads as, exactly."""
    return Fraction(repr(float(value)))


def position(feature: Feature, code: float) -> Fraction:
    """Coded value in the user's units: the number itself, or that of the level."""
    if not feature.discrete:
        return exact(code)
    level = feature.levels[int(code)]
    if not isinstance(level, int | float | np.number | np.bool_):
        raise ProblemError(
            f"the levels of {feature.name!r} are no numbers: name a level, such as {{{feature.levels[0]!r}: 1}}"
        )
    return exact(float(level))


def level_code(feature: Feature, level: Any) -> int:
    """Code of a level, by itself or by its text (keys of TOML are texts)."""
    if level in feature.codes:
        return feature.codes[level]
    texts = {str(known): code for known, code in feature.codes.items()}
    if str(level) in texts:
        return texts[str(level)]
    raise ProblemError(f"feature {feature.name!r} has no level {nearest(level, feature.levels)}")


def codes_of(feature: Feature) -> FloatArray:
    """All codes of a discrete feature but the last: cuts that make every level a cell."""
    return np.arange(len(feature.levels) - 1, dtype=np.float64)


def around(value: float) -> FloatArray:
    """Cuts that make a single value a cell of its own."""
    return np.array([math.nextafter(value, -math.inf), value])


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
        if isinstance(said, Sequence) and not isinstance(said, str):
            if len(said) != 2:
                raise ProblemError(f"an amount per unit is a number or (down, up), not {said!r}")
            return cls(rate=(_finite(said[0]), _finite(said[1])))
        return cls(rate=(_finite(said), _finite(said)))

    def to_plain(self) -> Any:
        """JSON-ready form that `parse` takes; levels with their amounts as pairs."""
        if self.rate is not None:
            return list(self.rate)
        if self.levels is not None:
            return {"levels": [[level, amount] for level, amount in self.levels]}
        if self.between is not None:
            return {"between": list(self.between)}
        return {"points": [list(p) for p in self.points or ()], "of": self.of, "steps": self.steps}

    def check(self, feature: Feature) -> None:
        """Refuse a curve that does not fit the feature."""
        if self.levels is not None:
            if not feature.discrete:
                raise ProblemError(f"{feature.name!r} is {feature.kind}: give it an amount per unit, or points")
            for level, _ in self.levels:
                level_code(feature, level)
        elif self.between is not None:
            if not feature.discrete or len(self.between) != len(feature.levels) - 1:
                raise ProblemError(f"{feature.name!r} has {len(feature.levels)} levels: 'between' has one amount less")
        elif feature.discrete:
            for code in range(len(feature.levels)):
                position(feature, code)

    @cached_property
    def _exact_points(self) -> list[tuple[Fraction, Fraction]]:
        return [(exact(x), exact(y)) for x, y in self.points or ()]

    def amount(self, feature: Feature, origin: float, value: float) -> Fraction:
        """Amount of moving a feature from one coded value to another; nothing where it is missing."""
        if value == origin or math.isnan(value) or math.isnan(origin):
            return Fraction(0)
        if self.levels is not None:
            return sum((exact(a) for level, a in self.levels if level_code(feature, level) == int(value)), Fraction(0))
        if self.between is not None:
            first, last = sorted((int(origin), int(value)))
            return sum(map(exact, self.between[first:last]), Fraction(0))
        here, there = position(feature, origin), position(feature, value)
        if self.rate is not None:
            down, up = map(exact, self.rate)
            return (there - here) * up if there > here else (here - there) * down
        return self._at(there - here if self.of == "change" else there)

    def _at(self, x: Fraction) -> Fraction:
        points = self._exact_points
        if self.steps:
            return max(((px, py) for px, py in points if px <= x), default=(x, Fraction(0)))[1]
        if not points[0][0] < x < points[-1][0]:
            return points[0][1] if x <= points[0][0] else points[-1][1]
        k = sum(px <= x for px, _ in points)
        (ax, ay), (bx, by) = points[k - 1], points[k]
        return ay + (by - ay) * (x - ax) / (bx - ax)

    def cuts(self, feature: Feature, origin: float) -> FloatArray:
        """Coded values at which cells must end for the curve to be a line within each of them."""
        if math.isnan(origin):
            return np.empty(0)
        if feature.discrete:
            return codes_of(feature)
        ends = [around(origin)]
        for x, _ in self.points or ():
            at = float(exact(x) + position(feature, origin)) if self.of == "change" else x
            ends.append(around(at) if self.steps else np.array([at]))
        return np.concatenate(ends)

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
    if isinstance(value, bool | str) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ProblemError(f"{value!r} should be a finite number")
    return float(value)

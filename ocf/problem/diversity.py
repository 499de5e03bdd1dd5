"""Several explanations of one row: the best, then the best that differs from those before it.

What "differs" means is exact and the user's choice:

* ``"features"``: at least one feature that the earlier one changes stays as it is;
* ``"region"``: some tree gives another leaf, so that the model has another reason, or the same leaf by another
  interval, where a split of what a step makes of a column sends several of its intervals to one side;
* ``"distance"``: the points lie at least `min_distance` apart, in l1 with each feature in units of its scale, and any
  other category 1, as is what is missing, or a code, beside anything else.

Each is a proven optimum of its own problem: the first cut is a row over leaves, the others are constraints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ocf.errors import ProblemError
from ocf.features.curve import exact
from ocf.features.feature import Feature
from ocf.features.own_cost import around
from ocf.problem.constraints import Check, Constraint, Origin, any_feature, changed
from ocf.problem.rows import Part, Row
from ocf.support.amounts import real_number
from ocf.support.messages import nearest

DIVERSITIES = ("features", "region", "distance")

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Several:
    """How many explanations of each row, and how they must differ.

    Attributes
    ----------
    n : int
    diversity : {"features", "region", "distance"}
    min_distance : float
        Of ``"distance"``.
    """

    n: int = 1
    diversity: str = "features"
    min_distance: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int | np.integer) or self.n < 1:
            raise ProblemError(f"n_explanations is a whole number of at least 1, not {self.n!r}")
        if self.diversity not in DIVERSITIES:
            raise ProblemError(f"unknown diversity {nearest(self.diversity, DIVERSITIES)}")
        if not 0 < real_number(self.min_distance) < math.inf:
            raise ProblemError(f"min_distance is a positive number, not {self.min_distance!r}")


@dataclass(frozen=True)
class Keeps(Constraint):
    """At least one of the features keeps its value."""

    features: tuple[str, ...]
    name: str = ""
    kind: ClassVar[str] = "keeps"

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))

    def named(self) -> Iterator[tuple[str, Check]]:
        """Names of the features that it speaks of."""
        return ((name, any_feature) for name in self.features)

    def rows_from(self, origin: Origin) -> Iterator[Row]:
        """The constraint as a row."""
        parts = {i: changed(value) for i, _, value in map(origin.at, self.features)}
        yield Row(self.title, parts, Fraction(len(parts) - 1))

    def words(self) -> str:
        """What it says."""
        return f"at least one of {', '.join(self.features)} stays" if self.features else "something else"


@dataclass(frozen=True)
class Apart(Constraint):
    """The point lies at least so far from another one, in l1 of features in units of their scales.

    Of the other point it holds coded values, None where one is missing.
    """

    point: tuple[tuple[str, float | None], ...]
    distance: float
    name: str = ""
    kind: ClassVar[str] = "apart"

    def __post_init__(self) -> None:
        point = tuple((name, None if value is None else float(value)) for name, value in self.point)
        object.__setattr__(self, "point", point)
        object.__setattr__(self, "distance", float(self.distance))

    def named(self) -> Iterator[tuple[str, Check]]:
        """Names of the features that it speaks of."""
        return ((name, any_feature) for name, _ in self.point)

    def rows_from(self, origin: Origin) -> Iterator[Row]:
        """The constraint as a row."""
        parts = {}
        for name, other in self.point:
            i, feature, old = origin.at(name)
            value = feature.missing_code if other is None else other
            if feature.discrete:
                parts[i] = Part(_nearness(feature, value), feature.level_cuts)
            else:
                apart = [old, value, *feature.special_values.tolist()]
                cuts = np.concatenate([np.empty(0), *(around(v) for v in apart if math.isfinite(v))])
                parts[i] = Part(_nearness(feature, value), cuts, moving=True)
        yield Row(self.title, parts, -exact(self.distance))

    def words(self) -> str:
        """What it says."""
        return f"at least {self.distance:g} away from {self.point}"


def _nearness(feature: Feature, other: float) -> Callable[[float], Fraction]:
    """Minus the distance from a coded value, in units of the scale."""

    def of(v: float) -> Fraction:
        if math.isnan(v) or v == other:
            return ZERO
        if feature.kind in ("categorical", "binary") or feature.is_special([v, other]).any():
            return -ONE
        if not feature.discrete:  # a scale reads as numbers on the grid do
            return -abs(feature.position(v) - feature.position(other)) / feature.position(feature.scale)
        places = feature.positions[[int(v), int(other)]]
        return -abs(exact(places[0]) - exact(places[1])) / exact(feature.scale)

    return of

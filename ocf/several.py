"""Several explanations of one row: the best, then the best that differs from those before it.

What "differs" means is exact and the user's choice:

* ``"region"``: some tree gives another leaf, so that the model has another reason;
* ``"features"``: at least one feature that the earlier one changes stays as it is;
* ``"distance"``: the points lie at least `min_distance` apart, in l1 with each feature in units of its scale and any
  change of category 1.

Each is a proven optimum of its own problem: the first cut is a row over leaves, the others are constraints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from ocf.constraints import Constraint, Part, Row
from ocf.curves import around, codes_of, exact
from ocf.ensemble import FloatArray, IntArray
from ocf.errors import OcfError, ProblemError
from ocf.features import Feature, FeatureSpace
from ocf.words import nearest

if TYPE_CHECKING:
    from ocf.explanation import Explanation
    from ocf.problem import Problem

DIVERSITIES = ("region", "features", "distance")

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Several:
    """How many explanations of each row, and how they must differ.

    Attributes
    ----------
    n : int
    diversity : {"region", "features", "distance"}
    min_distance : float
        Of ``"distance"``.
    """

    n: int = 1
    diversity: str = "region"
    min_distance: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int | np.integer) or self.n < 1:
            raise ProblemError(f"n_explanations is a whole number of at least 1, not {self.n!r}")
        if self.diversity not in DIVERSITIES:
            raise ProblemError(f"unknown diversity {nearest(self.diversity, DIVERSITIES)}")
        if isinstance(self.min_distance, bool) or not 0 < self.min_distance < math.inf:
            raise ProblemError(f"min_distance is a positive number, not {self.min_distance!r}")


@dataclass(frozen=True)
class Keeps(Constraint):
    """At least one of the features keeps its value."""

    features: tuple[str, ...]
    name: str = ""
    kind: ClassVar[str] = "keeps"

    def check(self, space: FeatureSpace) -> None:
        """Refuse names that the features do not have."""
        for name in self.features:
            space.index(name)

    def rows(self, space: FeatureSpace, origin: FloatArray) -> Iterator[Row]:
        """The constraint as a row."""
        parts = {i: Part(_kept(float(origin[i])), np.empty(0)) for i in map(space.index, self.features)}
        yield Row(self.title, parts, -ONE)

    def words(self) -> str:
        """What it says."""
        return f"at least one of {', '.join(self.features)} stays" if self.features else "something else"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {"kind": self.kind, "name": self.name, "features": list(self.features)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Keeps:
        """Inverse of `to_dict`."""
        return cls(tuple(data["features"]), data["name"])


def _kept(origin: float) -> Callable[[float], Fraction]:
    return lambda v: -ONE if v == origin else ZERO


@dataclass(frozen=True)
class Apart(Constraint):
    """The point lies at least so far from another one, in l1 of features in units of their scales."""

    point: tuple[tuple[str, float], ...]
    distance: float
    name: str = ""
    kind: ClassVar[str] = "apart"

    def check(self, space: FeatureSpace) -> None:
        """Refuse names that the features do not have."""
        for name, _ in self.point:
            space.index(name)

    def rows(self, space: FeatureSpace, origin: FloatArray) -> Iterator[Row]:
        """The constraint as a row."""
        parts = {}
        for name, value in self.point:
            i = space.index(name)
            feature = space.features[i]
            if feature.discrete:
                parts[i] = Part(_nearness(feature, value), codes_of(feature))
            else:
                cuts = np.concatenate([around(float(origin[i])), around(value)])
                parts[i] = Part(_nearness(feature, value), cuts, moving=True)
        yield Row(self.title, parts, -exact(self.distance))

    def words(self) -> str:
        """What it says."""
        return f"at least {self.distance:g} away from {self.point}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "kind": self.kind,
            "name": self.name,
            "point": [list(p) for p in self.point],
            "distance": self.distance,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Apart:
        """Inverse of `to_dict`."""
        return cls(tuple((n, float(v)) for n, v in data["point"]), float(data["distance"]), data["name"])


def _nearness(feature: Feature, other: float) -> Callable[[float], Fraction]:
    """Minus the distance from a coded value, in units of the scale."""

    def of(v: float) -> Fraction:
        if math.isnan(v) or v == other:
            return ZERO
        if feature.kind in ("categorical", "binary"):
            return -ONE
        places = feature.positions[[int(v), int(other)]] if feature.discrete else (v, other)
        return -abs(exact(places[0]) - exact(places[1])) / exact(feature.scale)

    return of


class Ask(Protocol):
    """Solves a problem with choices of leaves excluded."""

    def __call__(self, problem: Problem, excluded: tuple[IntArray, ...]) -> Explanation:
        """The explanation."""


def explain_several(ask: Ask, problem: Problem, several: Several) -> list[Explanation]:
    """The best explanations of one row, in the order of their costs.

    Parameters
    ----------
    ask : callable
        Solves a problem with choices of leaves excluded.
    problem : Problem
    several : Several

    Returns
    -------
    list of Explanation
        Fewer than asked for, with a remark on the last, where there are no more or none was found in time.
    """
    found = [ask(problem, ())]
    excluded: tuple[IntArray, ...] = ()
    now = problem
    while len(found) < several.n and found[-1].counterfactual is not None:
        point = problem.space.from_frame(found[-1].counterfactual)[0]
        if several.diversity == "region":
            excluded = (*excluded, problem.ensemble.apply(point[None, :])[0])
        else:
            now = replace(now, constraints=(*now.constraints, _different(problem, point, several, len(found))))
        try:
            following = ask(now, excluded)
        except OcfError as error:  # what is found is kept
            return _ended(found, several, str(error))
        if following.counterfactual is None:
            proven = following.status == "infeasible"
            return _ended(found, several, "there is no further one" if proven else following.message or "none in time")
        found.append(replace(following, rank=len(found) + 1))
    return found


def _ended(found: list[Explanation], several: Several, why: str) -> list[Explanation]:
    """The explanations, the last with the reason why there are no more."""
    said = f"{len(found)} of {several.n} explanations: {why}"
    return [*found[:-1], replace(found[-1], message="; ".join(filter(None, [found[-1].message, said])))]


def _different(problem: Problem, point: FloatArray, several: Several, rank: int) -> Constraint:
    """What keeps further explanations from one that has been found."""
    space, origin = problem.space, problem.origin
    present = [i for i in range(len(space)) if not np.isnan(origin[i])]
    if several.diversity == "features":
        changed = tuple(space.names[i] for i in present if point[i] != origin[i])
        return Keeps(changed, name=f"other features than explanation {rank}")
    own = tuple((space.names[i], float(point[i])) for i in present)
    return Apart(own, several.min_distance, name=f"apart from explanation {rank}")

"""Grids of numbers as people write them: those that the data use, or a number of digits of a feature's range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ProblemError
from ocf.features.feature import Feature, grid_unit
from ocf.features.space import FeatureSpace

#: Decimal places that are looked at, share of the values that may lie off a grid, and the most that a float64 counts.
PLACES, OFF, COUNTABLE = 6, 0.01, 2.0**53


def rounded_space(space: FeatureSpace, round_to: Any, known: FloatArray | None) -> FeatureSpace:
    """Features whose new values lie on grids of human numbers, as steps.

    A feature that has a step of its own keeps it where the grid does not go with it; levels and times stay as they are.

    Parameters
    ----------
    space : FeatureSpace
    round_to : "data", int, mapping of feature name to one of these, or None
        ``"data"``: the coarsest grid of which all values of the data are multiples, or 99 of 100 of a round one (1, 2
        or 5 times a power of ten); none where they have more than 6 decimal places. A whole number: so many
        significant digits of the feature's range.
    known : (n, n_features) float64 or None
        Coded rows of the data.

    Raises
    ------
    ProblemError
        It is something else, or there is no data.
    """
    if round_to is None:
        return space
    wishes = dict(round_to) if isinstance(round_to, Mapping) else dict.fromkeys(space.names, round_to)
    changes: dict[str, dict[str, Any]] = {}
    for name, wish in wishes.items():
        i = space.index(name)
        feature, step = space.features[i], None
        check_round_to(wish)
        if feature.discrete or feature.is_time:
            continue
        if wish != "data":
            step = 10.0 ** (math.floor(math.log10(feature.scale)) - int(wish) + 1)
        elif known is None or not len(known):
            raise ProblemError("round_to='data' needs data: give the Explainer some, or a number of digits")
        else:
            step = step_of(known[:, i], feature)
        if step is not None and _goes_with(step, feature):
            changes[space.names[i]] = {"kind": "numeric", "step": float(f"{step:.12g}")}
    return space.updated(changes)


def check_round_to(wish: Any) -> None:
    """Refuse what is neither "data" nor a number of digits."""
    whole = isinstance(wish, int | np.integer) and not isinstance(wish, bool) and 1 <= wish <= 12
    if not whole and not (isinstance(wish, str) and wish == "data"):
        raise ProblemError(f"round_to is 'data' or a number of significant digits from 1 to 12, not {wish!r}")


def _goes_with(step: float, feature: Feature) -> bool:
    """Whether a grid is coarser than the feature's own, and a part of it."""
    own = grid_unit(feature)
    if not own:
        return True
    parts = Fraction(repr(step)) / Fraction(repr(own))
    return parts > 1 and parts.denominator == 1


def step_of(values: FloatArray, feature: Feature) -> float | None:
    """The coarsest grid through zero that some values of a feature lie on; None where they lie on none.

    Parameters
    ----------
    values : (n,) float64
        Coded; those that are missing or special do not count.
    feature : Feature
    """
    held = values[np.isfinite(values) & ~feature.is_special(values) & (values != 0)]
    own = held.astype(feature.float_dtype)
    for unit in 10.0 ** np.arange(PLACES + 1):
        counted = np.rint(held * unit)
        exact = (counted / unit).astype(feature.float_dtype) == own
        if len(held) and np.abs(counted).max() < COUNTABLE and exact.mean() >= 1 - OFF:
            units = np.abs(counted).astype(np.int64)
            return _coarsest(units, exact) / float(unit)
    return None


def _coarsest(units: IntArray, exact: BoolArray) -> int:
    """The coarsest grid, in whole units, that values lie on; what lies on no unit is not exact."""
    rounds = (m * 10**k for k in range(16) for m in (1, 2, 5))
    fitting = [r for r in rounds if r <= units.max() and (exact & (units % r == 0)).mean() >= 1 - OFF]
    return max([*fitting, *([int(np.gcd.reduce(units))] if exact.all() else [])])

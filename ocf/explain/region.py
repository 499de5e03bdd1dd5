"""Regions of counterfactuals: boxes in the user's units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ocf.arrays import FloatArray
from ocf.support.wording import word

if TYPE_CHECKING:
    from ocf.cells.ranges import Range, ValueInterval
    from ocf.features.feature import Feature
    from ocf.features.space import FeatureSpace


@dataclass(frozen=True, eq=False)
class CounterfactualRegion:
    """A box in which the model gives the target.

    Attributes
    ----------
    ranges : dict of feature name to Interval, tuple of labels, or None
        None for a missing value, which stays missing.
    cost : float
        Of the region's point nearest to the row.
    nearest : (n_features,) float64
        That point, coded (`FeatureSpace.to_frame`).
    prediction : label or float
        The model's class or value, everywhere in the region.
    probability : float or None
        The model's probability of that class, or of the likeliest target class where a probability was asked for.
    """

    ranges: dict[str, Range]
    cost: float
    nearest: FloatArray
    prediction: Any
    probability: float | None = None

    def contains(self, values: Any) -> bool:
        """Whether a row lies in the region.

        Parameters
        ----------
        values : mapping or Series of feature names to numbers, labels, dates and durations
        """
        return all(
            pd.isna(values[name]) if allowed is None else not pd.isna(values[name]) and values[name] in allowed
            for name, allowed in self.ranges.items()
        )

    def departures(self, space: FeatureSpace, origin: FloatArray) -> list[str]:
        """What a row must change to lie in the region, in words: ``["income at least 4100", "purpose car or house"]``.

        Parameters
        ----------
        space : FeatureSpace
        origin : (n_features,) float64
            The row, coded.
        """
        said = []
        for feature, value in zip(space.features, origin.tolist(), strict=True):
            allowed = self.ranges[feature.name]
            if allowed is None or math.isnan(value):
                continue
            if isinstance(allowed, tuple):
                held = feature.label(value) in allowed
                words = " or ".join(map(str, allowed))
            else:
                held = value in allowed
                words = _between(feature, allowed)
            if not held:
                said.append(f"{feature.name} {words}")
        return said


def _between(feature: Feature, allowed: ValueInterval) -> str:
    """A range in words."""
    ends = (allowed.lowest, allowed.highest)
    low, high = (word(feature.label(v) if feature.is_time else v, new=True) for v in ends)
    but = f" without {', '.join(map(word, allowed.without))}" if allowed.without else ""
    if math.isinf(allowed.lowest) or math.isinf(allowed.highest):
        return (f"at least {low}" if math.isinf(allowed.highest) else f"at most {high}") + but
    return low if low == high else f"{low} to {high}{but}"

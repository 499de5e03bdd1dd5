"""Regions of counterfactuals: boxes in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ocf.arrays import FloatArray

if TYPE_CHECKING:
    from ocf.cells.ranges import Range


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
        values : mapping or Series of feature names to numbers and labels
        """
        return all(
            pd.isna(values[name]) if allowed is None else values[name] in allowed
            for name, allowed in self.ranges.items()
        )

"""What cells of a feature hold, as a range of values in the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ocf.cells.cell_problem import CellProblem
from ocf.features import times
from ocf.features.feature import Feature


@dataclass(frozen=True)
class ValueInterval:
    """Values of a numeric or integer feature in a region; both ends belong to it, and may be infinite.

    Between the ends lie the values that the feature's grid and column admit.

    Attributes
    ----------
    lowest, highest : float
        In the user's units, and in days where they are dates or durations.
    dtype : str
        Of the user's column, where it holds dates or durations: such values, and words for them, are looked for.
    without : tuple of float
        Special values between the ends, which do not belong to it.
    """

    lowest: float
    highest: float
    dtype: str = ""
    without: tuple[float, ...] = ()

    def __contains__(self, value: Any) -> bool:
        number = times.days(value, self.dtype) if self.dtype else value
        return bool(self.lowest <= number <= self.highest) and number not in self.without


#: What a region allows of a feature: an interval, labels of levels, or None where the row has no value.
Range = ValueInterval | tuple[Any, ...] | None


def range_of_cells(cells: CellProblem, feature: Feature, i: int, own: Any, origin: float) -> Range:
    """What some cells of one feature, counted within it, hold of its admissible values.

    Parameters
    ----------
    cells : CellProblem
    feature : Feature
        The feature of number `i`.
    i : int
    own : slice or (n,) int64 or (n_cells of the feature,) bool
        The cells, in ascending order; of numbers a run of them.
    origin : float
        Coded value of the row; NaN where it has none.

    Returns
    -------
    Range
        None too for the cell of a special value; among others it is no part of the range.
    """
    if np.isnan(origin):
        return None
    span = cells.partition.cells_of(i)
    lower, upper = cells.partition.lower[span][own], cells.partition.upper[span][own]
    special = feature.special_values  # with cells of their own
    ordinary = ~((lower[:, None] < special) & (special <= upper[:, None])).any(axis=1)
    if not ordinary.any():
        return None
    lower, upper = lower[ordinary], upper[ordinary]
    low, high = feature.limits(float(origin))
    if feature.discrete:
        permitted = feature.permitted_codes()
        held = [
            c
            for c in range(len(feature.levels))
            if low <= c <= high and (permitted is None or c in permitted) and ((lower < c) & (c <= upper)).any()
        ]
        return tuple(feature.levels[c] for c in held)
    lowest = float(max(feature.above(lower[0]), feature.at_least(low)))
    highest = float(min(feature.at_most(upper[-1]), feature.at_most(high)))
    if lower[0] < origin <= upper[-1] and low <= origin <= high:
        lowest, highest = min(lowest, float(origin)), max(highest, float(origin))  # it may lie off the grid
    without = tuple(special[(lowest < special) & (special < highest)].tolist())
    return ValueInterval(lowest, highest, feature.dtype if feature.is_time else "", without)

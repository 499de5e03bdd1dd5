"""Boxes of a model's columns that are still to be searched, the one with the lowest bound first."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ocf.arrays import FloatArray


@dataclass(order=True)
class ColumnBox:
    """Bounds of the columns, and a bound of what a point of the box costs.

    Attributes
    ----------
    bound : float
    number : int
        Of two with the same bound the older comes first.
    lower, upper : (n_cols,) float64
    """

    bound: float
    number: int
    lower: FloatArray = field(compare=False)
    upper: FloatArray = field(compare=False)


class ColumnBoxes:
    """The boxes that are left of the one that holds all.

    Parameters
    ----------
    lower, upper : (n_cols,) float64
        Of the columns.

    Attributes
    ----------
    made : int
        How many boxes there were, the first aside.
    """

    def __init__(self, lower: FloatArray, upper: FloatArray) -> None:
        self.made = 0
        self._left = [ColumnBox(-np.inf, 0, lower, upper)]

    def __bool__(self) -> bool:
        return bool(self._left)

    @property
    def bound(self) -> float:
        """Of all that is left; inf when nothing is."""
        return self._left[0].bound if self._left else np.inf

    def pop(self) -> ColumnBox:
        """Take the box with the lowest bound."""
        return heapq.heappop(self._left)

    def push(self, box: ColumnBox) -> None:
        """Leave a box for later."""
        heapq.heappush(self._left, box)

    def part(self, box: ColumnBox, j: int, low: float, high: float) -> ColumnBox:
        """The part of a box in which one column lies within a range; it is not among those that are left yet.

        Parameters
        ----------
        box : ColumnBox
            Whose bound holds for the part.
        j : int
            Column.
        low, high : float
        """
        lower, upper = box.lower.copy(), box.upper.copy()
        lower[j], upper[j] = low, high
        self.made += 1
        return ColumnBox(box.bound, self.made, lower, upper)

    def push_around(self, box: ColumnBox, columns: Sequence[int], choice: FloatArray) -> None:
        """Leave all of a box but one choice of some of its whole columns.

        Parameters
        ----------
        box : ColumnBox
            Whose bound holds for what is left.
        columns : sequence of int
        choice : (n_columns,) float64
            Whole numbers within the box.
        """
        for j, z in zip(columns, choice, strict=True):
            for low, high in ((box.lower[j], z - 1), (z + 1, box.upper[j])):
                if low <= high:
                    self.push(self.part(box, j, low, high))
            box = self.part(box, j, z, z)

"""What a rule is to reach: classes or an interval of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray
from ocf.errors import ProblemError


@dataclass(frozen=True)
class Wanted:
    """The target: a class, or an interval of numbers."""

    label: Any = None
    ends: tuple[float, float] | None = None

    @classmethod
    def interval(cls, target: Any) -> Wanted:
        """An interval of answers that a user wants."""
        try:
            low, high = (float(end) for end in target)
        except (TypeError, ValueError):
            raise ProblemError(f"answers are numbers: the target must be (lowest, highest), not {target!r}") from None
        if not low <= high:
            raise ProblemError(f"the target interval [{low}, {high}] holds no value")
        return cls(ends=(low, high))

    @property
    def words(self) -> str:
        """For reading."""
        return str(self.label) if self.ends is None else f"[{self.ends[0]:g}, {self.ends[1]:g}]"

    def holds(self, answers: NDArray[Any]) -> BoolArray:
        """Which answers are wanted."""
        if self.ends is None:
            return np.asarray(answers == self.label)
        return np.asarray((self.ends[0] <= answers) & (answers <= self.ends[1]))


def is_regression(answers: NDArray[Any]) -> bool:
    """Whether answers are numbers rather than labels."""
    return answers.dtype.kind == "f" and bool(np.any(answers != np.floor(answers)))

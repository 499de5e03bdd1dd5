"""The last number of a leaf, float by float, where rounding decides which of its values the user's model takes.

A sum in a fixed order never falls as one of its terms rises, rounded or not. So the values that are on one side of a
hyperplane are all those up to one of them, or all from one on, and those that the model takes have no gap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.problem.rows import satisfied
from ocf.solve.leaf_model import LeafModel
from ocf.solve.leaf_polytope import ContinuousPart
from ocf.solve.leaf_rounding import LeafRounding

#: Values that are looked at one by one, at most.
MOST_VALUES = 200


def is_one_number(part: ContinuousPart, model: LeafModel) -> bool:
    """Whether one number is left, in hyperplanes whose totals are sums of its own and other values alone.

    Parameters
    ----------
    part : ContinuousPart
    model : LeafModel
    """
    place = part.task.place
    plain = not model.planes.of_lines(place).any() and not model.planes.slack[place].any()
    return len(part.used) == 1 and plain and bool(np.isfinite([part.polytope.lo, part.polytope.hi]).all())


class OneNumber:
    """Values of the only number of a part.

    Parameters
    ----------
    part : ContinuousPart
    rounding : LeafRounding
    takes : callable
        Whether the user's model takes a whole coded point.

    Attributes
    ----------
    has_room : bool
        Whether some values are on their side of all hyperplanes, however these are rounded.
    """

    def __init__(self, part: ContinuousPart, rounding: LeafRounding, takes: Callable[[FloatArray], bool]) -> None:
        self._part, self._takes, self._model = part, takes, rounding.model
        (feature,) = part.used.tolist()
        self._origin = float(rounding.model.origin[feature])
        self._dtype = np.dtype(rounding.model.domain.narrow.get(feature, np.float64))
        outer, g = rounding.widened(part, np.inf), part.polytope.G[:, 0]
        self._box = float(outer.lo[0]), float(outer.hi[0])
        inner = 2 * part.polytope.h - outer.h
        with np.errstate(divide="ignore", invalid="ignore"):
            ends, sure_ends = outer.h / g, inner / g
        surely = max(self._box[0], sure_ends[g < 0].max(initial=-np.inf))
        self.has_room = bool(surely < min(self._box[1], sure_ends[g > 0].min(initial=np.inf)))
        # from these ends of the box on, no hyperplane that the values come up against lies behind them
        self._sure = [v for v, behind in zip(self._box, (g < 0, g > 0), strict=True) if (g * v <= inner)[behind].all()]
        # outside of these the tree takes nothing, however it rounds
        self._low = max(self._box[0], float(np.nextafter(ends[g < 0].max(initial=-np.inf), -np.inf)))
        self._high = min(self._box[1], float(np.nextafter(ends[g > 0].min(initial=np.inf), np.inf)))

    def cheapest(self, known: float | None) -> tuple[bool, FloatArray | None]:
        """Whether the question is settled, and the point nearest to the row that the model takes, if there is one.

        Parameters
        ----------
        known : float or None
            A value that the model takes.
        """
        nearest, values = self._held(self._origin), self._few()
        if nearest is None:
            return True, None
        if known is None and values is not None:
            # those of other leaves may be taken, too, on the other side of the row
            return True, next((self._point(v) for v in sorted(values, key=self._cost) if self._is_taken(v)), None)
        if known is None:
            for end in map(self._held, self._sure):
                if end is None or not self._fits(end):
                    continue
                if not self._is_taken(end):
                    return True, None
                known = end
        if known is None or not (self._fits(nearest) and self._fits(known)):
            return False, None
        return True, self._point(nearest if self._is_taken(nearest) else self._last_taken(known, nearest))

    def _held(self, value: float) -> float | None:
        """The value nearest to another that the column can hold, between the ends; None where there is none."""
        value = min(max(value, self._low), self._high)
        if value == self._origin:
            return value
        near = self._rounded(value)
        if not self._low <= near <= self._high:  # the next one on the other side is
            near = np.nextafter(near, self._dtype.type(np.inf if near < value else -np.inf))
        return float(near) if self._low <= near <= self._high else None

    def _few(self) -> list[float] | None:
        """All values between the ends; None where there are more than a few."""
        if self._high - self._low > MOST_VALUES * np.spacing(self._rounded(max(abs(self._low), abs(self._high)))):
            return None
        values, value = [self._origin] if self._low <= self._origin <= self._high else [], self._rounded(self._low)
        while value <= self._high:
            if len(values) > MOST_VALUES:
                return None
            values += [float(value)] if value >= self._low else []
            value = np.nextafter(value, self._dtype.type(np.inf))
        return values

    def _last_taken(self, taken: float, refused: float) -> float:
        """The last value that is taken on the way from one that is to one that is not."""
        inside, outside = self._place(taken), self._place(refused)
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            inside, outside = (middle, outside) if self._is_taken(self._at(middle)) else (inside, middle)
        return self._at(inside)

    def _rounded(self, value: float) -> Any:
        """The nearest value that the column can hold, in its dtype."""
        return self._dtype.type(value)

    def _place(self, value: float) -> int:
        """Place of a value among all that the column can hold."""
        bits = int(self._rounded(value).view(f"i{self._dtype.itemsize}"))
        return bits if bits >= 0 else -(bits & np.iinfo(f"i{self._dtype.itemsize}").max)

    def _at(self, place: int) -> float:
        """The value at a place."""
        value = float(np.asarray(abs(place), f"i{self._dtype.itemsize}").view(self._dtype))
        return value if place >= 0 else -value

    def _point(self, value: float) -> FloatArray:
        return self._part.completed(np.array([value]))

    def _cost(self, value: float) -> float:
        problem = self._model.problem
        return problem.cost.total(problem.space, self._model.origin, self._point(value))

    def _is_taken(self, value: float) -> bool:
        return self._fits(value) and self._takes(self._point(value))

    def _fits(self, value: float) -> bool:
        return satisfied(self._model.relations, self._model.problem.space, self._point(value))

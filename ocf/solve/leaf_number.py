"""The last number of a leaf, float by float, where rounding decides which of its values the user's model takes.

A sum in a fixed order never falls as one of its terms rises, rounded or not. So the values that are on one side of a
hyperplane are all those up to one of them, or all from one on, and those that the model takes have no gap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ocf.arrays import FloatArray
from ocf.features.lattice import Lattice
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
        self._lattice = Lattice(np.dtype(rounding.model.domain.narrow.get(feature, np.float64)))
        outer, g = rounding.widened(part, np.inf), part.polytope.G[:, 0]
        low, high = float(outer.lo[0]), float(outer.hi[0])
        inner = 2 * part.polytope.h - outer.h
        with np.errstate(divide="ignore", invalid="ignore"):
            ends, sure_ends = outer.h / g, inner / g
        surely = max(low, sure_ends[g < 0].max(initial=-np.inf))
        self.has_room = bool(surely < min(high, sure_ends[g > 0].min(initial=np.inf)))
        # from these ends of the box on, no hyperplane that the values come up against lies behind them
        self._is_sure = [bool((g * v <= inner)[behind].all()) for v, behind in ((low, g < 0), (high, g > 0))]
        # outside of these the tree takes nothing, however it rounds
        low = max(low, float(np.nextafter(ends[g < 0].max(initial=-np.inf), -np.inf)))
        high = min(high, float(np.nextafter(ends[g > 0].min(initial=np.inf), np.inf)))
        below, last = self._lattice.at_most(np.array([np.nextafter(low, -np.inf), high])).tolist()
        #: Keys of the first and the last value that the column can hold between these.
        self._keys = below + 1, last
        self._may_stay = low <= self._origin <= high

    def cheapest(self, known: float | None) -> tuple[bool, FloatArray | None]:
        """Whether the question is settled, and the point nearest to the row that the model takes, if there is one.

        Parameters
        ----------
        known : float or None
            A value that the model takes.
        """
        first, last = self._keys
        own = [self._origin] if self._may_stay else []
        if known is None and last - first < MOST_VALUES:
            values = own + list(map(self._at, range(first, last + 1)))
            # those of other leaves may be taken, too, on the other side of the row
            return True, next((self._point(v) for v in sorted(values, key=self._cost) if self._is_taken(v)), None)
        if known is None:
            ends = [self._at(key) for key, sure in zip(self._keys, self._is_sure, strict=True) if sure]
            for end in filter(self._fits, ends):
                if not self._is_taken(end):
                    return True, None
                known = end
        nearest = self._origin if own else min(map(self._at, self._keys), key=lambda v: abs(v - self._origin))
        if known is None or not (self._fits(nearest) and self._fits(known)):
            return False, None
        return True, self._point(nearest if self._is_taken(nearest) else self._last_taken(known, nearest))

    def _last_taken(self, taken: float, refused: float) -> float:
        """The last value that is taken on the way from one that is to one that is not."""
        inside, outside = self._lattice.at_most(np.array([taken, refused])).tolist()
        if taken < refused != self._at(outside):  # which the column cannot hold
            outside += 1
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            inside, outside = (middle, outside) if self._is_taken(self._at(middle)) else (inside, middle)
        return self._at(inside)

    def _at(self, key: int) -> float:
        return float(self._lattice.values(np.array([key]))[0])

    def _point(self, value: float) -> FloatArray:
        return self._part.completed(np.array([value]))

    def _cost(self, value: float) -> float:
        return self._model.cost_of(self._point(value))

    def _is_taken(self, value: float) -> bool:
        return self._fits(value) and self._takes(self._point(value))

    def _fits(self, value: float) -> bool:
        return satisfied(self._model.relations, self._model.problem.space, self._point(value))

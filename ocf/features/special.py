"""Values of a feature that are no points on its line: codes such as -9 for "no record", and a value that is missing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ocf.support.amounts import real_number


@dataclass(frozen=True)
class Special:
    """Special values of a feature, and what leaving and entering them costs.

    A move between a special value and an ordinary one is a change with a price of its own: l0 counts it once, and the
    other norms take the price in the place of a distance. From one special value to another there is no move.

    Attributes
    ----------
    codes : tuple of float or int
        Numbers that stand for something else, in the user's units.
    missing : bool
        Whether a missing value is one of the feature's values; otherwise one stays missing.
    supplying : float or None
        Price of an ordinary value in the place of a special one; None: it stays.
    becoming : float or None
        Price of a special value in the place of an ordinary one; None: there is no such move.
    """

    codes: tuple[float, ...] = ()
    missing: bool = False
    supplying: float | None = None
    becoming: float | None = None

    def __post_init__(self) -> None:
        numbers = (real_number(c) if isinstance(c, int) and not isinstance(c, bool) else c for c in self.codes)
        object.__setattr__(self, "codes", tuple(numbers))

    def faults(self) -> Iterator[str]:
        """What is wrong with it."""
        for code in self.codes:
            if isinstance(code, bool) or not isinstance(code, int | float) or not math.isfinite(code):
                yield f"the special value {code!r} is no number: words are levels of their own, so leave it out"
        if len(set(self.codes)) != len(self.codes):
            yield f"the special values {list(self.codes)} hold one twice"
        for price in (self.supplying, self.becoming):
            if price is not None and not (math.isfinite(price) and price >= 0):
                yield f"the cost {price} of a missing or special value must be finite and at least 0"

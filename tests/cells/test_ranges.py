"""Intervals of values."""

from __future__ import annotations

import numpy as np

from ocf.cells.ranges import ValueInterval


def test_intervals_hold_their_ends() -> None:
    assert 1.0 in ValueInterval(1.0, 2.0)
    assert 2 in ValueInterval(1.0, 2.0)
    assert np.nextafter(2.0, 3.0) not in ValueInterval(1.0, 2.0)
    assert 1e300 in ValueInterval(0.0, np.inf)

from __future__ import annotations

import math

import numpy as np

from ocf.features.lattice import first_number, first_numbers


def test_bisection_ends_at_the_first_number_of_each_condition_either_way() -> None:
    cuts = np.array([0.1, -3.0, 0.0, 1e300])
    up = first_numbers(lambda x: x > cuts, np.full(4, -1e301), np.full(4, 1e301))
    np.testing.assert_array_equal(up, np.nextafter(cuts, math.inf))
    down = first_numbers(lambda x: x <= cuts, np.full(4, 1e301), np.full(4, -1e301))
    np.testing.assert_array_equal(down, cuts)
    assert first_number(lambda x: x * x >= 2, 0.0, 2.0) == math.nextafter(math.sqrt(2), 0) + math.ulp(1.0)
    assert first_number(lambda x: x >= 1, math.nextafter(1, 0), 1.0) == 1.0

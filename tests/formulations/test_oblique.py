"""The closest points of boxes."""

from __future__ import annotations

import numpy as np

from ocf.formulations.oblique import closest_in_boxes


def test_the_median_is_the_closest_point_of_a_box() -> None:
    rng = np.random.default_rng(0)
    ends = np.sort(rng.uniform(size=(2, 5, 3)), axis=0)
    ends[0, 0, 0], ends[1, 1, 2] = -np.inf, np.inf
    origins = rng.uniform(size=(4, 3))
    points = closest_in_boxes(ends[0], ends[1], origins)
    expected = np.median(np.broadcast_arrays(ends[0][None], ends[1][None], origins[:, None]), axis=0)
    np.testing.assert_array_equal(points, expected)

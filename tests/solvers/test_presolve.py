"""Fewer rows and the very same points, in exact arithmetic."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from .forms import ANY, all_points, exactly_feasible, form_of, small_forms

INF = np.inf


@given(small_forms(ANY))
@settings(max_examples=60, deadline=None)
def test_tidy_keeps_exactly_the_same_points(form):
    tidied = form.tidy()
    assert tidied.n_cols == form.n_cols
    assert tidied.n_rows <= form.n_rows
    for x in all_points(form.n_cols):
        assert exactly_feasible(tidied, x) == exactly_feasible(form, x)


def test_tidy_drops_merges_and_bounds():
    form = form_of(
        [[0, 0, 0], [1, 1, 1], [1, 1, 1], [0, 2, 0], [1, 1, 0], [0, 0, -1]],
        [-1, 1, -INF, -INF, 0, -INF],
        [0, 3, 2, 3, 2, -0.5],
        [0, 0, 0],
        [1, 1, 1],
        [True, True, False],
        row_names=("empty", "cover", "pack", "single", "redundant", "half"),
    )
    out = form.tidy()
    assert out.row_names == ("cover",)
    assert (out.row_lower.tolist(), out.row_upper.tolist()) == ([1], [2])
    assert (out.lower.tolist(), out.upper.tolist()) == ([0, 0, 0.5], [1, 1, 1])
    assert not out.infeasible


def test_tidy_proves_infeasibility():
    assert form_of([[0, 0]], [1], [2], [0, 0], [1, 1]).tidy().infeasible
    assert form_of([[1, 1]], [3], [INF], [0, 0], [1, 1]).tidy().infeasible
    assert form_of([[1, 1], [1, 1]], [-INF, 2], [1, INF], [0, 0], [1, 1]).tidy().infeasible
    assert form_of([[2]], [1], [1], [0], [1]).tidy().infeasible  # 2 x = 1, x whole
    assert not form_of([[2]], [1], [1], [0], [1], False).tidy().infeasible


def test_tidy_drops_nothing_that_rounding_may_decide():
    # In float64 0.1 + 0.2 > 0.3, while the exact sum of the floats 0.1, 0.2 and the float 0.3 differ otherwise.
    for side in (0.3, 0.1 + 0.2, np.nextafter(0.3, 0)):
        assert form_of([[0.1, 0.2]], [-INF], [side], [0, 0], [1, 1]).tidy().n_rows == 1
    assert form_of([[0.1, 0.2]], [-INF], [0.31], [0, 0], [1, 1]).tidy().n_rows == 0
    # x <= 1/3 is not a float bound; x <= 1/4 is.
    assert form_of([[3.0]], [-INF], [1], [0], [1], False).tidy().n_rows == 1
    assert form_of([[4.0]], [-INF], [1], [0], [1], False).tidy().upper.tolist() == [0.25]
    assert form_of([[3.0]], [-INF], [7], [0], [9], True).tidy().upper.tolist() == [2]


def test_tidy_handles_infinite_bounds():
    form = form_of([[1, -1], [1, 1]], [-INF, -INF], [INF, 3], [-INF, 0], [INF, INF], False)
    out = form.tidy()
    assert out.A.toarray().tolist() == [[1, 1]]
    assert not out.infeasible

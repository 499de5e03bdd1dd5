from __future__ import annotations

import math

import pytest

from ocf.support.tolerances import PROOF_TOLERANCE, meets, slack


@pytest.mark.parametrize("cost", [1.0, 1e6, 1e-6, -3.0])
def test_a_bound_meets_a_cost_within_the_tolerance_and_not_beyond(cost: float) -> None:
    assert meets(cost, cost)
    assert meets(cost + 1.0, cost)
    assert meets(cost - 0.5 * PROOF_TOLERANCE * abs(cost), cost)
    assert not meets(cost - 2 * PROOF_TOLERANCE * abs(cost), cost)


def test_a_cost_of_nothing_is_met_within_rounding_only() -> None:
    assert meets(0.0, 0.0)
    assert meets(-1e-29, 0.0)
    assert not meets(-1e-25, 0.0)


def test_a_wider_gap_counts_and_a_narrower_one_does_not() -> None:
    assert meets(0.95, 1.0, gap=0.1)
    assert not meets(0.85, 1.0, gap=0.1)
    assert slack(2.0, gap=1e-12) == slack(2.0) == 2e-9


@pytest.mark.parametrize("bound", [-math.inf, 0.0, math.inf])
def test_nothing_meets_the_cost_of_nothing_found(bound: float) -> None:
    assert not meets(bound, math.inf)

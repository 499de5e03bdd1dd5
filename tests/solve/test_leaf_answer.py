"""What is claimed of a leaf follows from its point and its bound."""

from __future__ import annotations

import numpy as np
import pytest

from ocf.solve.leaf_answer import LeafAnswer, LeafClaim

FOUND = LeafAnswer.solved(3, np.zeros(2), 2.0)
NOTHING = LeafAnswer.empty(3)


@pytest.mark.parametrize(
    ("best", "bound", "cutoff", "claim"),
    [
        (FOUND, 2.0, np.inf, LeafClaim.SOLVED),
        (FOUND, 1.5, np.inf, LeafClaim.OPEN),
        (NOTHING, 1.5, 2.0, LeafClaim.OPEN),
        (NOTHING, 1.5, np.inf, LeafClaim.OPEN),
        (NOTHING, 2.0, 2.0, LeafClaim.PRUNED),
        (NOTHING, np.inf, np.inf, LeafClaim.EMPTY),
    ],
)
def test_a_search_that_has_ended(best: LeafAnswer, bound: float, cutoff: float, claim: LeafClaim) -> None:
    found = best.searched(bound, cutoff)
    assert (found.leaf, found.cost, found.bound, found.claim) == (3, best.cost, bound, claim)
    assert found.point is best.point


def test_a_leaf_without_a_known_point_is_open_whatever_its_bound() -> None:
    assert NOTHING.bounded(np.inf).claim is LeafClaim.OPEN
    assert LeafAnswer.open(3, 1.0).claim is LeafClaim.OPEN

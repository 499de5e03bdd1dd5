"""The fewest changes among the points that cost the same: what decides without a search, and what is asked of one.

The box search finds them by the proof of the cost itself, where it is asked from the start. A solver of matrices shows
by one proof that its start is the best and that nothing in other leaves costs as little. Where there is a tie it is
asked once more, for what costs as little in fewer features: the cost bounds that question as it bounds the first one.
To count changes among points that cost no more is another model, whose relaxation is weak.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.kernels import open_costs
from ocf.cells.reduction import reduce
from ocf.problem.tie_breaking import may_tie
from ocf.support.tolerances import equals_room

#: Pairs of leaves that are probed, and sums of costs that are looked at, to see that a point stands alone.
GLANCE, MOST_SUMS = 50_000, 10_000


def nothing_is_less(cells: CellProblem, cost: float, choice: IntArray) -> bool:
    """Whether sums of costs, or a reduction, tell that nothing that costs as little as an optimum changes less.

    Parameters
    ----------
    cells : CellProblem
    cost : float
        The optimum.
    choice : (n_features,) int64
        Cells of a point that costs it.
    """
    changes = cells.count_changes(choice)
    if changes < 2 or not may_tie(open_costs(cells), cells.partition.offsets, cost, changes):
        return True
    return stands_alone([cells], cost)


def stands_alone(alternatives: Sequence[CellProblem], cost: float) -> bool:
    """Whether an optimal point is the only one that costs so little: False where that is not seen at a glance.

    Parameters
    ----------
    alternatives : sequence of CellProblem
        All those of the target, whose cells alone decide and whose leaves cost nothing.
    cost : float
        Of the point.
    """
    most = cost + equals_room(cost)
    n_points = 0
    for cells in alternatives:
        left = reduce(cells, most, max_pairs=GLANCE, merge=False)
        n_points += 0 if left.proved else _n_choices(left.cells, most)
    return n_points <= 1


def _n_choices(cells: CellProblem, most: float) -> int:
    """How many choices of open cells cost no more, whatever their leaves; `MOST_SUMS` stands for that and more."""
    cost = np.split(open_costs(cells), cells.partition.offsets[1:-1])
    least = [float(own.min()) for own in cost]
    spare = most - sum(least)
    sums = np.zeros(1)
    for own, first in zip(cost, least, strict=True):
        sums = np.add.outer(sums, own[own <= first + spare] - first).ravel()
        sums = sums[sums <= spare]
        if len(sums) >= MOST_SUMS:
            return MOST_SUMS
    return len(sums)

"""Why leaves conflict: the proof of a cut between trees, read off the boxes anew.

Of leaves that conflict pairwise a point of use lies in one at most (`ocf.solvers.box.cliques`). That two leaves
conflict has one of two reasons: a feature of which no open cell lies in both, or what the cheapest point of both costs.
Here each is found by going over the cells, without the tables and bounds by which the cuts are found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ocf.arrays import BoolArray, IntArray
from ocf.cells.cell_problem import CellProblem


@dataclass(frozen=True)
class Conflict:
    """Why no point of use lies in two leaves.

    Attributes
    ----------
    leaves : tuple of two int
        Of the ensemble.
    features : tuple of int
        Those of which no open cell lies in both; none where the cost is the reason.
    cost : float
        Of the cheapest choice of open cells that lies in both; inf where there is none.
    """

    leaves: tuple[int, int]
    features: tuple[int, ...]
    cost: float


def clique_proof(cells: CellProblem, leaves: Sequence[int] | IntArray, limit: float) -> tuple[Conflict, ...] | None:
    """Why each two of some leaves conflict; None where two of them do not.

    Parameters
    ----------
    cells : CellProblem
    leaves : (n,) int64
    limit : float
        Cost from which on a point is of no use.
    """
    leaves, part = np.asarray(leaves, np.int64), cells.partition
    inside, proof = _open_inside(cells, leaves), []
    for a, b in combinations(range(len(leaves)), 2):
        cheapest = np.minimum.reduceat(np.where(inside[a] & inside[b], cells.cost, np.inf), part.offsets[:-1])
        none = np.flatnonzero(np.isinf(cheapest))
        cost = math.inf if len(none) else math.fsum(cheapest)
        if not cost >= limit:
            return None
        proof.append(Conflict((int(leaves[a]), int(leaves[b])), tuple(none.tolist()), cost))
    return tuple(proof)


def _open_inside(cells: CellProblem, leaves: IntArray) -> BoolArray:
    """Which open cells lie in the box of each of some leaves, (n, n_cells).

    `CellProblem.open_within` says so of all together, feature by feature: for all pairs of a clique it takes three to
    six times as long, and it needs the boxes of all leaves.
    """
    part = cells.partition
    boxes, feature = part.boxes(leaves), np.repeat(np.arange(part.n_features), part.widths)
    index = np.arange(len(feature)) - part.offsets[feature]
    inside = cells.open & (boxes.low[:, feature] <= index) & (index <= boxes.high[:, feature])
    for i in np.flatnonzero(~part.ordered).tolist():
        inside[:, part.cells_of(i)] &= boxes.member[:, part.member_offsets[i] : part.member_offsets[i + 1]]
    return np.asarray(inside)

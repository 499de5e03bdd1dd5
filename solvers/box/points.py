"""Points of a box: its cheapest one, roundings of the LP's point, and pulling a feasible point back to the origin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.kernels import Position, SearchArrays, locate, new_position, open_costs, scan, search_arrays
from ocf.cells.score_sum import ScoreSum, has_terms, score_sum, term_value
from ocf.solvers.box.instance import Domain, Instance, cheapest_open
from ocf.support.loops import copy_to, least
from ocf.support.numba_cache import array_kernel, helper, kernel

#: Levels at which the LP's point is rounded.
LEVELS = np.array([0.5, 0.9, 0.7, 0.3, 0.1, 0.99, 0.8, 0.6, 0.4, 0.2, 0.05])


class Evaluator(NamedTuple):
    """What evaluating choices of cells needs.

    Attributes
    ----------
    arrays : SearchArrays
    gain : (n_leaves, n_rows) float64
    need : (n_rows,) float64
    sums : ScoreSum
    cost : (n_cells,) float64
        inf where the cell is closed.
    line : (largest number of cells, n_rows) float64
        Scratch.
    at : Position
        Scratch; after a call it says where the last point stood.
    """

    arrays: SearchArrays
    gain: FloatArray
    need: FloatArray
    sums: ScoreSum
    cost: FloatArray
    line: FloatArray
    at: Position


def make_evaluator(cells: CellProblem) -> Evaluator:
    """Evaluator of a problem's open cells."""
    arrays, need = search_arrays(cells.partition), cells.requirements.need
    line = np.empty((int(cells.partition.widths.max()), len(need)))
    gain = np.ascontiguousarray(cells.requirements.gain)
    sums, at = score_sum(cells.requirements), new_position(arrays, len(need))
    return Evaluator(arrays, gain, need, sums, open_costs(cells), line, at)


@helper
def _meets(evaluator: Evaluator, totals: FloatArray) -> bool:
    need, failed, value = evaluator.need, 0, 0.0
    for r in range(len(need)):
        # the caller judges by exact sums; here nothing within rounding may be lost
        failed += totals[r] < need[r] - 1e-12 * (1.0 + abs(need[r]))
    if failed > 0 or not has_terms(evaluator.sums):
        return failed == 0
    for r in range(len(need)):
        if evaluator.sums.term[r] >= 0:
            value += term_value(evaluator.sums, evaluator.sums.term[r], totals[r])
    return value >= evaluator.sums.need[0]


@helper
def total_cost(evaluator: Evaluator, x: IntArray) -> float:
    """Cost of a choice of cells; inf when a cell is closed.

    Parameters
    ----------
    evaluator : Evaluator
    x : (n_features,) int64
        Cells, counted within the features.
    """
    total = 0.0
    for f in range(len(x)):
        total += evaluator.cost[evaluator.arrays.offsets[f] + x[f]]
    return total


@kernel
def meets_target(evaluator: Evaluator, x: IntArray) -> bool:
    """Whether the requirements hold at x, up to rounding. Leaves the leaves of x in ``evaluator.at.leaf``.

    Parameters
    ----------
    evaluator : Evaluator
    x : (n_features,) int64
        Cells, counted within the features.
    """
    trees = evaluator.arrays.trees
    locate(trees.root, trees.node, trees.sets, evaluator.gain, x, evaluator.at)
    return bool(_meets(evaluator, evaluator.at.sums))


@kernel
def cheapest_point(instance: Instance, domain: Domain, x: IntArray) -> None:
    """Write the cheapest point of a box that is not empty.

    Parameters
    ----------
    instance : Instance
    domain : Domain
    x : (n_features,) int64
        Overwritten: cells, counted within the features.
    """
    for f in range(len(x)):
        x[f] = instance.cell[cheapest_open(instance, domain, f)]


@helper
def _round(instance: Instance, domain: Domain, share: FloatArray, level: float, x: IntArray) -> None:
    """Write the last cell of each ordered feature that the LP's point reaches by `level`; the fullest of others."""
    for f in range(len(x)):
        offset = instance.offsets[f]
        if instance.ordered[f]:
            j = offset + domain.lo[f]
            while j < offset + domain.hi[f] and share[j + 1] >= level:
                j += 1
        else:
            j = cheapest_open(instance, domain, f)
            for other in range(offset, instance.offsets[f + 1]):
                if domain.level[other] and share[other] > share[j]:
                    j = other
        x[f] = instance.cell[j]


@helper
def _renew(last: IntArray, x: IntArray) -> bool:
    """Overwrite the last point with x; whether they differed."""
    differ = False
    for f in range(len(x)):
        differ = differ or last[f] != x[f]
        last[f] = x[f]
    return differ


@array_kernel
def best_rounding(
    evaluator: Evaluator, instance: Instance, domain: Domain, share: FloatArray, levels: FloatArray, limit: float
) -> tuple[float, IntArray, IntArray]:
    """Cheapest of the LP point's roundings that meet the requirements, each pulled back; inf when none is of use.

    The roundings come last, (n, n_features), as they were.

    Parameters
    ----------
    evaluator : Evaluator
    instance : Instance
    domain : Domain
    share : (n_open,) float64
        The LP's point; see `ocf.solvers.box.relaxation`.
    levels : (n,) float64
        At which it is rounded.
    limit : float
        Cost from which on a point is of no use.
    """
    n_features = len(instance.ordered)
    best, chosen = np.inf, np.zeros(n_features, np.int64)
    x, last = np.empty(n_features, np.int64), np.full(n_features, -1, np.int64)
    roundings, n = np.empty((len(levels), n_features), np.int64), 0
    for level in levels:
        _round(instance, domain, share, level, x)
        if not _renew(last, x):
            continue
        copy_to(roundings[n], x)
        n += 1
        if not meets_target(evaluator, x):
            continue
        pull_back(evaluator, x)
        cost = total_cost(evaluator, x)
        if cost < limit and cost < best:
            best = cost
            copy_to(chosen, x)
    return best, chosen, roundings[:n]


@helper
def pull_back(evaluator: Evaluator, x: IntArray) -> None:
    """Move features of a feasible point to cheaper cells while the requirements hold, the largest saving first.

    Parameters
    ----------
    evaluator : Evaluator
    x : (n_features,) int64
        Overwritten: cells, counted within the features.
    """
    trees, offsets = evaluator.arrays.trees, evaluator.arrays.offsets
    member = evaluator.arrays.boxes.member
    while True:
        meets_target(evaluator, x)
        best, best_f, best_cell = 0.0, -1, -1
        for f in range(len(x)):
            line = evaluator.line[: offsets[f + 1] - offsets[f]]
            cost = evaluator.cost[offsets[f] : offsets[f + 1]]
            if cost[x[f]] - least(cost) <= best:
                continue
            column = evaluator.arrays.column[f]
            scan(trees.node, trees.sets, member, column, evaluator.gain, x, f, evaluator.at, line)
            for j in range(len(cost)):
                saving = cost[x[f]] - cost[j]
                if saving > best and _meets(evaluator, line[j]):
                    best, best_f, best_cell = saving, f, j
        if best_f < 0:
            return
        x[best_f] = best_cell

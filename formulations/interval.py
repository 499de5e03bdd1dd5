r"""The interval model: leaves against the intervals that their own tree cuts (this project, after ocean).

Nomenclature
------------
===================  ===================================================================================
``t, l, i``          tree, leaf, feature
``y[l]``             := 1 if the point lies in leaf l
``mu[i,j]``          := 1 if the point lies in a cell >= j of the ordered feature i (mu[i,0] = 1,
                     mu[i,m_i] = 0)
``nu[i,j]``          := 1 if the point lies in level j of the unordered feature i
``I(t,i)``           := intervals [a, b) of cells between cuts that tree t itself makes on feature i
``R_l(i)``           := cells of feature i in leaf l's box
``M(t,i)``           := sets of levels that the paths of tree t admit on the unordered feature i
``g[l,r], h[r]``     := gain of leaf l in requirement r, and its need (`ocf.problem.requirements.Requirements`)
``c[i,j]``           := cost of cell j of feature i
===================  ===================================================================================

Model
-----
.. math::

    \min\ & \textstyle\sum_i c_{i0} + \sum_{i,j} (c_{ij} - c_{i,j-1}) \mu_{ij} + \sum_{i,j} c_{ij} \nu_{ij} \\
    \text{s.t. } & \textstyle\sum_{l \in t} y_l = 1 & \forall t & \quad (1) \\
    & \textstyle\sum_{l \in t:\ R_l(i) \subseteq [a,b)} y_l \le \mu_{ia} - \mu_{ib}
      & \forall t, i, [a,b) \in I(t,i) & \quad (2) \\
    & \textstyle\sum_{l \in t:\ R_l(i) \subseteq M} y_l \le \sum_{j \in M} \nu_{ij}
      & \forall t, i, M \in M(t,i) & \quad (3) \\
    & \textstyle\sum_l g_{lr} y_l \ge h_r & \forall r & \quad (4) \\
    & \mu_{i,j-1} \ge \mu_{ij}, \quad \textstyle\sum_j \nu_{ij} = 1 & & \quad (5) \\
    & \mu, \nu \in \{0, 1\}, \quad y \ge 0 & & \quad (6)

Why it is right: if mu and nu are 0/1 they name one cell per feature. A leaf whose box misses that cell on feature i
lies in some interval (its hull between the tree's own cuts) or set that misses it too, so (2) or (3) forces y[l] = 0,
and (1) leaves y = 1 for the one leaf that holds the cell. So y needs no integrality.

Why it is tight: the leaves below the left child of a node that splits feature i at j lie in [0, j), so (2) contains
ocean's (16) and (17) summed over *all* nodes of the tree that agree, and intervals bounded on both sides, which ocean
does not have. Intervals that split into two with no leaf across, or whose leaves fit a smaller one, are left out:
they follow from the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import BoolArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.partition import Partition
from ocf.formulations.base import OVER_VALUES, Formulated
from ocf.formulations.blocks.cells import beyond, cell_choice, choice_variables, linear, separable_cost
from ocf.formulations.blocks.target import reaches_target
from ocf.support.limits import check
from ocf.trees.ensemble import SplitKind


def build(cells: CellProblem) -> Formulated:
    """Build the interval model of a problem over cells.

    Parameters
    ----------
    cells : CellProblem
        Its closed cells and dead leaves are not left out: bounds on the variables do that, row by row.

    Returns
    -------
    Formulated
    """
    part = cells.partition
    part.refuse_hyperplanes(OVER_VALUES)
    model = pyo.ConcreteModel(name="interval")
    model.cells = cell_choice(part, integer=True)
    # a leaf below contradictory splits holds no point; its empty box would pass for an interval below
    model.y = pyo.Var(range(part.ensemble.n_leaves), bounds=lambda _, k: (0.0, float(part.reachable[k])))  # (6)
    y = [model.y[k] for k in range(part.ensemble.n_leaves)]
    offsets = part.ensemble.leaf_offsets.tolist()

    @model.Constraint(range(part.ensemble.n_trees))
    def single_leaf(_: pyo.Block, t: int) -> Any:  # (1)
        return (1.0, linear([(1.0, v) for v in y[offsets[t] : offsets[t + 1]]]), 1.0)

    inside = list(intervals(part))

    @model.Constraint(range(len(inside)))
    def within_interval(m: pyo.ConcreteModel, k: int) -> Any:  # (2)
        i, a, b, leaves = inside[k]
        ends = [(1.0, beyond(m.cells, part, i, a)), (-1.0, beyond(m.cells, part, i, b))]
        return (0.0, linear(ends + [(-1.0, y[leaf]) for leaf in leaves]), None)

    among = list(_level_sets(part))

    @model.Constraint(range(len(among)))
    def among_levels(m: pyo.ConcreteModel, k: int) -> Any:  # (3)
        i, levels, leaves = among[k]
        chosen = [(1.0, m.cells.nu[i, int(j)]) for j in levels]
        return (0.0, linear(chosen + [(-1.0, y[leaf]) for leaf in leaves]), None)

    model.reaches_target = reaches_target(cells.requirements, y)  # (4)
    model.cost = pyo.Objective(expr=separable_cost(model.cells, cells))
    return Formulated(model, tuple(y), *choice_variables(model.cells, part))


def intervals(part: Partition, most: float = np.inf) -> Iterator[tuple[int, int, int, IntArray]]:
    """(feature, a, b, leaves in [a, b)) for each interval of (2) that the others do not imply.

    Parameters
    ----------
    part : Partition
    most : float
        Leaves of a tree; of one with more there are only those of the sides of its splits, which name the leaf, too.
    """
    offsets = part.ensemble.leaf_offsets
    for t in range(part.ensemble.n_trees):
        check()
        span = slice(offsets[t], offsets[t + 1])
        low, high = part.low[span], part.high[span]
        if len(low) > most:
            yield from _sides(part, t)
            continue
        bounded = (low > 0) | (high < part.widths - 1)
        for i in np.flatnonzero(part.ordered & bounded.any(axis=0)).tolist():
            leaves = np.flatnonzero(bounded[:, i] & part.reachable[span])
            start, stop = low[leaves, i], high[leaves, i] + 1
            for a, b, chosen in _minimal_intervals(start, stop):
                yield i, a, b, offsets[t] + leaves[chosen]


def _sides(part: Partition, t: int) -> Iterator[tuple[int, int, int, IntArray]]:
    """(feature, a, b, leaves below) for both sides of each split of a tree."""
    trees = part.ensemble
    nodes = np.arange(*trees.tree_offsets[[t, t + 1]])
    nodes = nodes[trees.kind[nodes] == SplitKind.AXIS]
    for v in nodes[part.ordered[trees.feature[nodes]]].tolist():
        i, cut = int(trees.feature[v]), int(part.cuts[v]) + 1
        if 0 < cut < part.widths[i]:
            yield i, 0, cut, trees.leaves_below(int(trees.left[v]))
            yield i, cut, int(part.widths[i]), trees.leaves_below(int(trees.right[v]))


def _minimal_intervals(start: IntArray, stop: IntArray) -> Iterator[tuple[int, int, IntArray]]:
    """Intervals between starts and stops that are the hull of their leaves and do not split between leaves."""
    order = np.argsort(start, kind="stable")
    if (stop[order[:-1]] <= start[order[1:]]).all():
        # no two leaves overlap, as in a tree that splits one feature: each is an interval of its own
        yield from ((int(start[k]), int(stop[k]), np.array([k])) for k in order)
        return
    for a in np.unique(start).tolist():
        for b in np.unique(stop[start >= a]).tolist():
            chosen = np.flatnonzero((a <= start) & (stop <= b))
            if not len(chosen) or start[chosen].min() > a or stop[chosen].max() < b:
                continue
            order = chosen[np.argsort(start[chosen], kind="stable")]
            reach = np.maximum.accumulate(stop[order])[:-1]
            if not np.any(start[order][1:] >= reach):
                yield a, b, chosen


def _level_sets(part: Partition) -> Iterator[tuple[int, IntArray, IntArray]]:
    """(feature, levels M, leaves whose levels lie in M) for each set of (3)."""
    offsets = part.ensemble.leaf_offsets
    for i in np.flatnonzero(~part.ordered).tolist():
        member = part.members_of(i)
        split_sets = _split_sets(part, i)
        for t in range(part.ensemble.n_trees):
            own = member[offsets[t] : offsets[t + 1]]
            if own.all():
                continue
            level_sets = np.unique(np.vstack([own, split_sets[t]]), axis=0)
            seen: set[bytes] = set()
            # smaller sets first, so that of those with the same leaves the tightest stays
            for levels in level_sets[np.argsort(level_sets.sum(axis=1), kind="stable")]:
                leaves = ~(own & ~levels).any(axis=1)
                if levels.any() and not levels.all() and leaves.any() and leaves.tobytes() not in seen:
                    seen.add(leaves.tobytes())
                    yield i, np.flatnonzero(levels), offsets[t] + np.flatnonzero(leaves)


def _split_sets(part: Partition, i: int) -> list[BoolArray]:
    """Per tree, the sets of levels that its splits of feature i send left and right, (n_sets, n_levels)."""
    ensemble = part.ensemble
    nodes = np.flatnonzero((ensemble.feature == i) & (ensemble.set_index >= 0))
    sets = ensemble.sets[ensemble.set_index[nodes], : int(part.widths[i])]
    tree = ensemble.node_tree[nodes]
    return [np.vstack([sets[tree == t], ~sets[tree == t]]) for t in range(ensemble.n_trees)]

r"""Ensembles with oblique splits, in one MILP or MIQP: OCEAN's flow with hyperplanes (Parmentier & Vidal, ICML 2021).

Nomenclature
------------
===================  ===================================================================================
``t, v, l``          tree, node, leaf
``y[l]``             := 1 if the point lies in leaf l
``L(v), R(v)``       := leaves below the left and the right child of v
``x``                := columns of `ocf.formulations.oblique`: changes of numbers, levels of the others
``w[v], t[v]``       := weights and threshold of v over the columns, the origin's part taken off
``M[v], m[v]``       := largest and smallest value of ``w[v] . x`` within the bounds
``mu[i,j]``          := 1 if i, a number or a total that several splits share, lies in a cell >= j between thresholds
``I(t,i), R_l(i)``   := intervals [a, b) between cuts of tree t on i, and cells of i in the box of leaf l
``[z]+, [z]-``       := positive and negative part of z, of each entry
``g[l,r], h[r]``     := gain of leaf l in requirement r, and its need (`ocf.problem.requirements.Requirements`)
===================  ===================================================================================

Model
-----
.. math::

    \min\ & E(x; \bar x) \\
    \text{s.t. } & \textstyle\sum_{l \in t} y_l = 1 & \forall t & \quad (8)-(9) \\
    & \textstyle\sum_{l \in t:\ R_l(i) \subseteq [a,b)} y_l \le \mu_{ia} - \mu_{ib}
      & \forall t, i, [a,b) \in I(t,i) & \quad \text{(interval, 2)} \\
    & w_v \cdot x \le t_v + (M_v - t_v) (1 - \textstyle\sum_{l \in L(v)} y_l) & \forall v & \quad (16) \\
    & w_v \cdot x \ge t_v - (t_v - m_v) (1 - \textstyle\sum_{l \in R(v)} y_l) & \forall v & \quad (17) \\
    & [w_v]_+ \cdot x \ge [t_v]_+ \textstyle\sum_{l \in R(v)} y_l, \quad
      [w_v]_- \cdot x \ge [-t_v]_+ \textstyle\sum_{l \in L(v)} y_l & \forall v & \quad \text{(least moves)} \\
    & \textstyle\sum_{k \notin C_v} level_{ik} \le 1 - \textstyle\sum_{l \in L(v)} y_l, \quad
      \textstyle\sum_{k \in C_v} level_{ik} \le 1 - \textstyle\sum_{l \in R(v)} y_l & \forall v & \quad (24)-(25) \\
    & \textstyle\sum_l g_{lr} y_l \ge h_r & \forall r & \quad (13)-(14) \\
    & \mu, y \in \{0, 1\}

Splits of a single number keep the cells and the intervals of `ocf.formulations.interval`, the hull of one tree; the
cells have values by `ocf.formulations.blocks.value_cells`. So do totals that several splits share, as those of a
component behind a PCA do (`ocf.cells.totals`): v is a split by any other hyperplane, or of levels. In trees without
such hyperplanes y needs no integrality. The sums over the leaves below a child are OCEAN's flow through it, and
(16)-(17) its splits of numbers with the value itself in the place of the ordered cells. What sides, least moves and
lines are: `ocf.formulations.blocks.splits`.

Solvers meet such rows within their tolerances only: `ocf.solve.ensemble_search` takes from a solution the choice of
leaves, solves over their common region exactly, and asks for a better choice until there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.cells.partition import Partition
from ocf.cells.totals import TotalCells, with_totals
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.columns import MoveColumns, build_columns, columns_of
from ocf.formulations.blocks.splits import Global, Side, Terms, add_least_moves, add_lines, add_splits
from ocf.formulations.blocks.target import reaches_target
from ocf.formulations.blocks.value_cells import add_value_cells, numbers_in_cells
from ocf.formulations.interval import intervals
from ocf.problem.problem import Problem
from ocf.problem.requirements import Requirements
from ocf.trees.ensemble import SplitKind

#: Leaves of a tree of which all intervals have a row: 700 leaves of two totals have 60,000, and take 2.4 s to find. Of
#: larger trees only those do that are a side of a split.
MOST_HULL = 32


def build(problem: Problem, requirements: Requirements, part: Partition, columns: MoveColumns | None = None) -> Global:
    """Build the model of a problem and one alternative of its target.

    Parameters
    ----------
    problem : Problem
        With finite bounds for every number that is split.
    requirements : Requirements
    part : Partition
        Of all the problem's trees.
    columns : MoveColumns, optional
        Of the problem, by default within its own bounds.
    """
    ensemble, columns = problem.trees, columns_of(problem) if columns is None else columns
    cells = with_totals(part)
    model, x = build_columns(problem, columns, "hyperplanes")
    model.y = pyo.Var(range(ensemble.n_leaves), domain=pyo.Binary)
    y = [model.y[k] for k in range(ensemble.n_leaves)]
    for k in np.flatnonzero(~cells.partition.reachable).tolist():
        y[k].setub(0)
    offsets = ensemble.leaf_offsets.tolist()

    @model.Constraint(range(ensemble.n_trees))
    def single_leaf(_: pyo.Block, t: int) -> object:  # (8)-(9)
        return (1.0, linear([(1.0, v) for v in y[offsets[t] : offsets[t + 1]]]), 1.0)

    def flow(v: int, left: bool) -> Terms:
        child = int((ensemble.left if left else ensemble.right)[v])
        return [(1.0, y[k]) for k in ensemble.leaves_below(child).tolist()]

    done = add_lines(model, problem, columns, x, y)
    inside = _add_cells(model, problem, cells, columns, y)
    inner = sorted(set(np.flatnonzero(ensemble.kind != SplitKind.LEAF).tolist()) - done - inside)
    sides = {v: Side.of(problem, columns, v) for v in inner}
    add_splits(model, sides, x, flow)
    add_least_moves(model, sides, columns, x, flow)
    model.reaches_target = reaches_target(requirements, y)  # (13)-(14)
    return Global(model, tuple(x), tuple(y), columns)


def _add_cells(
    model: pyo.ConcreteModel, problem: Problem, cells: TotalCells, columns: MoveColumns, y: list[Any]
) -> set[int]:
    """Tie leaves to the cells of numbers and totals, and these to values; the nodes that need no rows of their own."""
    part, numbers = cells.partition, numbers_in_cells(cells.partition, columns)
    ensemble = part.ensemble
    axis = (ensemble.kind == SplitKind.AXIS) & np.isfinite(ensemble.threshold)
    for v in np.flatnonzero(axis & np.isin(ensemble.feature, numbers)).tolist():
        Side.of(problem, columns, v)  # names a number without bounds
    axes = add_value_cells(model, problem, cells, columns)
    inside = [own for own in intervals(part, MOST_HULL) if own[0] in axes]

    def beyond(i: int, j: int) -> Any:
        return 1.0 if j <= 0 else model.mu[i, j] if j < part.widths[i] else 0.0

    @model.Constraint(range(len(inside)))
    def within_interval(_: pyo.Block, k: int) -> Any:  # (2) of the interval model
        i, a, b, leaves = inside[k]
        ends = [(1.0, beyond(i, a)), (-1.0, beyond(i, b))]
        return (0.0, linear(ends + [(-1.0, y[leaf]) for leaf in leaves]), None)

    # where all splits of a tree are of cells or levels, these name the leaf
    plain = np.ones(ensemble.n_trees, bool)
    plain[ensemble.node_tree[ensemble.kind == SplitKind.OBLIQUE]] = False
    for k in np.flatnonzero(plain[ensemble.leaf_tree]).tolist():
        y[k].domain = pyo.UnitInterval
    return set(np.flatnonzero(axis & np.isin(ensemble.feature, list(axes))).tolist())

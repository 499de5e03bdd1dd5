r"""OCEAN: flow through the trees and an order simplex per feature (Parmentier & Vidal, ICML 2021).

Nomenclature
------------
===================  ===================================================================================
``t, v, d, i``       tree, node, depth, feature
``y[v]``             := flow through node v, 1 if the point passes it
``lam[t,d]``         := 1 if the point descends to the left at depth d of tree t
``mu[i,j]``          := 1 if the point lies in a cell >= j of the ordered feature i
``nu[i,j]``          := 1 if the point lies in level j of the unordered feature i
``l(v), r(v)``       := left and right child of v
``C+_v``             := levels that the split of v sends right
===================  ===================================================================================

Model
-----
.. math::

    y_{t1} &= 1 & (8) \\
    y_v &= y_{l(v)} + y_{r(v)} & (9) \\
    \textstyle\sum_{v \in V_{td}} y_{l(v)} &\le \lambda_{td}, \quad
    \textstyle\sum_{v \in V_{td}} y_{r(v)} \le 1 - \lambda_{td} & (10) \\
    \mu_i^{j-1} &\ge \mu_i^j & (15, 34) \\
    \mu_i^j &\le 1 - y_{l(v)}, \quad \mu_i^j \ge y_{r(v)} & (16-18, 21-22, 35-36) \\
    \textstyle\sum_{j \in C^+_v} \nu_i^j &\le 1 - y_{l(v)}, \quad
    \textstyle\sum_{j \in C^+_v} \nu_i^j \ge y_{r(v)} & (24-25, 42-43) \\
    \textstyle\sum_j \nu_i^j &= 1 & (27, 45) \\
    \textstyle\sum_v g_{vr} y_v &\ge h_r & (13-14)

Cells take the place of the paper's eps. There mu is the filled fraction of an interval, 0 left of a split and at least
eps right of it; here a cell has one nearest point and one cost, so that (17) and (18) become one constraint on one
variable and no solution depends on eps. The relaxation is at least as tight as the paper's.

Integrality: only the lam are binary. Theorem 1 of the paper: lam binary makes y binary. Then mu and nu are free
within an order simplex and a simplex, whose vertices are integral (supplement, "implied integrality"), so they are
continuous; a solution is read from the leaves, which makes the choice of a vertex needless.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.cells.cell_problem import CellProblem
from ocf.cells.partition import Partition
from ocf.formulations.base import OVER_VALUES, Formulated
from ocf.formulations.blocks.cells import beyond, cell_choice, choice_variables, linear, separable_cost
from ocf.formulations.blocks.target import reaches_target
from ocf.trees.ensemble import SplitKind


def build(cells: CellProblem) -> Formulated:
    """Build OCEAN's model of a problem over cells.

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
    ensemble = part.ensemble
    inner = np.flatnonzero(ensemble.kind != SplitKind.LEAF)
    model = pyo.ConcreteModel(name="ocean")
    model.cells = cell_choice(part, integer=False)
    model.y = pyo.Var(range(len(ensemble.kind)), bounds=(0.0, 1.0))  # (11)
    at_stage: dict[tuple[int, int], list[int]] = {}
    for v in inner.tolist():
        at_stage.setdefault((int(ensemble.node_tree[v]), int(ensemble.depth[v])), []).append(v)
    stages = sorted(at_stage)
    model.lam = pyo.Var(stages, domain=pyo.Binary)  # (12)
    y = [model.y[v] for v in range(len(ensemble.kind))]
    left, right = ensemble.left.tolist(), ensemble.right.tolist()

    @model.Constraint(range(ensemble.n_trees))
    def root(_: pyo.Block, t: int) -> Any:  # (8)
        return y[int(ensemble.tree_offsets[t])] == 1.0

    @model.Constraint(inner.tolist())
    def flow(_: pyo.Block, v: int) -> Any:  # (9)
        return (0.0, linear([(1.0, y[v]), (-1.0, y[left[v]]), (-1.0, y[right[v]])]), 0.0)

    @model.Constraint(stages)
    def left_branch(m: pyo.ConcreteModel, t: int, d: int) -> Any:  # (10a)
        return (None, linear([(1.0, y[left[v]]) for v in at_stage[t, d]] + [(-1.0, m.lam[t, d])]), 0.0)

    @model.Constraint(stages)
    def right_branch(m: pyo.ConcreteModel, t: int, d: int) -> Any:  # (10b)
        return (None, linear([(1.0, y[right[v]]) for v in at_stage[t, d]] + [(1.0, m.lam[t, d])]), 1.0)

    @model.Constraint(inner.tolist())
    def left_split(m: pyo.ConcreteModel, v: int) -> Any:  # (16), (21), (24), (35), (42)
        return (None, linear([*_goes_right(m.cells, part, v), (1.0, y[left[v]])]), 1.0)

    @model.Constraint(inner.tolist())
    def right_split(m: pyo.ConcreteModel, v: int) -> Any:  # (17)-(18), (22), (25), (36), (43)
        return (0.0, linear([*_goes_right(m.cells, part, v), (-1.0, y[right[v]])]), None)

    leaves = tuple(y[v] for v in np.flatnonzero(ensemble.kind == SplitKind.LEAF))
    model.reaches_target = reaches_target(cells.requirements, leaves)  # (13)-(14)
    model.cost = pyo.Objective(expr=separable_cost(model.cells, cells))  # (28)-(32)
    return Formulated(model, leaves, *choice_variables(model.cells, part))


def _goes_right(block: pyo.Block, part: Partition, v: int) -> list[tuple[float, Any]]:
    """Whether the point goes right at a split, as terms over the variables of its cells."""
    ensemble = part.ensemble
    i = int(ensemble.feature[v])
    if ensemble.kind[v] == SplitKind.SUBSET:
        stay = ensemble.sets[ensemble.set_index[v]]
        return [(1.0, block.nu[i, j]) for j in range(int(part.widths[i])) if not stay[j]]
    if not np.isfinite(ensemble.threshold[v]):
        return [(1.0, float(ensemble.threshold[v] < 0))]
    cuts = part.upper[part.cells_of(i)]
    return [(1.0, beyond(block, part, i, int(np.searchsorted(cuts, ensemble.threshold[v])) + 1))]

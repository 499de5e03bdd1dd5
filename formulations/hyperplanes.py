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
``g[l,r], h[r]``     := gain of leaf l in requirement r, and its need (`ocf.problem.requirements.Requirements`)
===================  ===================================================================================

Model
-----
.. math::

    \min\ & E(x; \bar x) \\
    \text{s.t. } & \textstyle\sum_{l \in t} y_l = 1 & \forall t & \quad (8)-(9) \\
    & w_v \cdot x \le t_v + (M_v - t_v) (1 - \textstyle\sum_{l \in L(v)} y_l) & \forall v & \quad (16) \\
    & w_v \cdot x \ge t_v - (t_v - m_v) (1 - \textstyle\sum_{l \in R(v)} y_l) & \forall v & \quad (17) \\
    & \textstyle\sum_{k \notin C_v} level_{ik} \le 1 - \textstyle\sum_{l \in L(v)} y_l, \quad
      \textstyle\sum_{k \in C_v} level_{ik} \le 1 - \textstyle\sum_{l \in R(v)} y_l & \forall v & \quad (24)-(25) \\
    & \textstyle\sum_l g_{lr} y_l \ge h_r & \forall r & \quad (13)-(14) \\
    & y \in \{0, 1\}

The sums over the leaves below a child are OCEAN's flow through it, and (16)-(17) its splits of numbers with the value
itself in the place of the ordered cells, for a hyperplane has none. What the sides are, nodes that share a hyperplane,
and lines: `ocf.formulations.blocks.splits`.

Solvers meet such rows within their tolerances only: `ocf.solve.ensemble_search` takes from a solution the choice of
leaves, solves over their common region exactly, and asks for a better choice until there is none.
"""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from ocf.cells.partition import Partition
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.columns import build_columns, columns_of
from ocf.formulations.blocks.splits import Global, Side, Terms, add_lines, add_shared_splits, add_splits
from ocf.formulations.blocks.target import reaches_target
from ocf.problem.problem import Problem
from ocf.problem.requirements import Requirements
from ocf.trees.ensemble import SplitKind


def build(problem: Problem, requirements: Requirements, part: Partition) -> Global:
    """Build the model of a problem and one alternative of its target.

    Parameters
    ----------
    problem : Problem
        With finite bounds for every number that is split.
    requirements : Requirements
    part : Partition
        Of all the problem's trees.
    """
    ensemble, columns = problem.trees, columns_of(problem)
    model, x = build_columns(problem, columns, "hyperplanes")
    model.y = pyo.Var(range(ensemble.n_leaves), domain=pyo.Binary)
    y = [model.y[k] for k in range(ensemble.n_leaves)]
    for k in np.flatnonzero(~part.reachable).tolist():
        y[k].setub(0)
    offsets = ensemble.leaf_offsets.tolist()

    @model.Constraint(range(ensemble.n_trees))
    def single_leaf(_: pyo.Block, t: int) -> object:  # (8)-(9)
        return (1.0, linear([(1.0, v) for v in y[offsets[t] : offsets[t + 1]]]), 1.0)

    def flow(v: int, left: bool) -> Terms:
        child = int((ensemble.left if left else ensemble.right)[v])
        return [(1.0, y[k]) for k in ensemble.leaves_below(child).tolist()]

    done = add_lines(model, problem, columns, x, y) | add_shared_splits(model, problem, columns, x, flow, numbers=True)
    inner = sorted(set(np.flatnonzero(ensemble.kind != SplitKind.LEAF).tolist()) - done)
    add_splits(model, {v: Side.of(problem, columns, v) for v in inner}, x, flow)
    model.reaches_target = reaches_target(requirements, y)  # (13)-(14)
    return Global(model, tuple(x), tuple(y), columns)

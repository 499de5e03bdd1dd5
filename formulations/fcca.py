r"""FCCA's leaf assignment with big-M splits (Piccialli, Romero Morales & Salvatore, EJOR 2023).

Nomenclature
------------
===================  ===================================================================================
``t, l, i, s``       tree, leaf, feature, split
``z[l]``             := 1 if the point lies in leaf l
``x[i]``             := position of the point on the ordered feature i: the number of cells below it
``mu[i,j]``          := 1 if the point lies in a cell >= j of the ordered feature i
``nu[i,j]``          := 1 if the point lies in level j of the unordered feature i
``L(l), R(l)``       := splits of ordered features on the path to l that it leaves to the left, to the right
``c[s]``             := cells of the split's feature that go left
``n[i]``             := cells of feature i
===================  ===================================================================================

Model
-----
.. math::

    \min\ & f(\mu, \nu) & & \quad (2) \\
    \text{s.t. } & x_{i(s)} - M^0_s (1 - z_l) \le c_s - 1 & \forall l, s \in L(l) & \quad (3) \\
    & x_{i(s)} + M^1_s (1 - z_l) \ge c_s & \forall l, s \in R(l) & \quad (4) \\
    & \textstyle\sum_{j \text{ on l's side of } s} \nu_{i(s) j} \ge z_l & \forall l, s \text{ on levels}
      & \quad (3, 4) \\
    & \textstyle\sum_{l \in t} z_l = 1 & \forall t & \quad (5) \\
    & \textstyle\sum_l g_{lr} z_l \ge h_r & \forall r & \quad (8, 9) \\
    & z \in \{0, 1\} & & \quad (6, 7)

The paper's x is a real number and keeps a distance eps from the thresholds. Here x counts cells, so that (3) and (4)
are exact; each split has the smallest valid constants, ``M0 = n - c`` and ``M1 = c``. The paper's cost mixes l0, l1 and
l2 with a binary per feature for l0; here ``x = sum_j mu_j`` with binary, ordered mu, in which every cost is linear.
The relaxation is never above OCEAN's, whose rows ``mu_c <= 1 - y`` and ``mu_c >= y`` imply (3) and (4).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.cells.cell_problem import CellProblem
from ocf.cells.partition import Partition
from ocf.formulations.base import Formulated
from ocf.formulations.blocks.cells import cell_choice, choice_variables, linear, separable_cost
from ocf.formulations.blocks.target import reaches_target
from ocf.formulations.oae import goes_left
from ocf.trees.ensemble import SplitKind


def build(cells: CellProblem) -> Formulated:
    """Build FCCA's model of a problem over cells.

    Parameters
    ----------
    cells : CellProblem
        Its closed cells and dead leaves are not left out: bounds on the variables do that, row by row.

    Returns
    -------
    Formulated
    """
    part = cells.partition
    ensemble = part.ensemble
    model = pyo.ConcreteModel(name="fcca")
    model.cells = cell_choice(part, integer=True)
    model.z = pyo.Var(range(ensemble.n_leaves), domain=pyo.Binary)  # (6)-(7)
    z = [model.z[k] for k in range(ensemble.n_leaves)]
    ordered = np.flatnonzero(part.ordered & (part.widths > 1)).tolist()
    model.x = pyo.Var(ordered, bounds=lambda _, i: (0.0, float(part.widths[i] - 1)))
    offsets = ensemble.leaf_offsets.tolist()

    @model.Constraint(ordered)
    def position(m: pyo.ConcreteModel, i: int) -> Any:
        passed = [(-1.0, m.cells.mu[i, j]) for j in range(1, int(part.widths[i]))]
        return (0.0, linear([(1.0, m.x[i]), *passed]), 0.0)

    splits = _splits(part)

    @model.Constraint(range(len(splits)))
    def path(m: pyo.ConcreteModel, k: int) -> Any:
        leaf, node, left = splits[k]
        i = int(ensemble.feature[node])
        mask = goes_left(part, node)
        if not part.ordered[i]:  # (3)-(4) on levels
            side = np.flatnonzero(mask if left else ~mask).tolist()
            return (0.0, linear([*((1.0, m.cells.nu[i, j]) for j in side), (-1.0, z[leaf])]), None)
        n, c = int(part.widths[i]), int(mask.sum())
        if c == (0 if left else n):  # no cell goes the leaf's way
            return (None, linear([(1.0, z[leaf])]), 0.0)
        if c == (n if left else 0):  # every cell does
            return pyo.Constraint.Feasible
        if left:  # (3) with M0 = n - c
            return (None, linear([(1.0, m.x[i]), (float(n - c), z[leaf])]), float(n - 1))
        return (0.0, linear([(1.0, m.x[i]), (-float(c), z[leaf])]), None)  # (4) with M1 = c

    @model.Constraint(range(ensemble.n_trees))
    def single_leaf(_: pyo.Block, t: int) -> Any:  # (5)
        return (1.0, linear([(1.0, v) for v in z[offsets[t] : offsets[t + 1]]]), 1.0)

    model.reaches_target = reaches_target(cells.requirements, z)  # (8)-(9)
    model.cost = pyo.Objective(expr=separable_cost(model.cells, cells))  # (2)
    return Formulated(model, tuple(z), *choice_variables(model.cells, part))


def _splits(part: Partition) -> list[tuple[int, int, bool]]:
    """(leaf, split on its path, whether the path goes left there) for all leaves."""
    ensemble = part.ensemble
    above: list[list[tuple[int, bool]]] = [[] for _ in ensemble.kind]
    inner = np.flatnonzero(ensemble.kind != SplitKind.LEAF)
    for node in inner[np.argsort(ensemble.depth[inner], kind="stable")].tolist():
        above[ensemble.left[node]] = [*above[node], (node, True)]
        above[ensemble.right[node]] = [*above[node], (node, False)]
    leaves = np.flatnonzero(ensemble.kind == SplitKind.LEAF).tolist()
    return [(k, node, left) for k, leaf in enumerate(leaves) for node, left in above[leaf]]

r"""OAE: the optimal action extraction of Cui et al. (KDD 2015) and Kanamori et al. (IJCAI 2020).

Stated as in Parmentier & Vidal (ICML 2021), section 4 and the proof of theorem 2.

Nomenclature
------------
===================  ===================================================================================
``t, k, i, j``       tree, leaf of a tree, feature, cell of a feature
``phi[k]``           := 1 if the point lies in leaf k
``v[i,j]``           := 1 if the point lies in cell j of feature i
``pi(k)``            := predicates on the path to leaf k, one per split
``S(p)``             := cells of its feature that satisfy predicate p
``C[i,j]``           := cost of cell j of feature i
===================  ===================================================================================

Model
-----
.. math::

    \min\ & \textstyle\sum_{i,j} C_{ij} v_{ij} \\
    \text{s.t. } & \textstyle\sum_j v_{ij} = 1 & \forall i & \quad (1) \\
    & \textstyle\sum_{k \in t} \phi_k = 1 & \forall t & \quad (2) \\
    & \textstyle|\pi(k)|\ \phi_k \le \sum_{p \in \pi(k)} \sum_{j \in S(p)} v_{i(p) j} & \forall k & \quad (3) \\
    & \textstyle\sum_k g_{kr} \phi_k \ge h_r & \forall r & \quad (4) \\
    & v, \phi \in \{0, 1\} & & \quad (5)

Both papers aggregate the predicates of a path into one row per leaf (3), which makes the rows few, long and weak: by
theorem 2 (iii) of Parmentier & Vidal the linear relaxation is never above that of OCEAN. The tests check that.

In the papers a numeric feature has a variable for each of its intervals; these are the cells. Predicates that every
value satisfies are no part of a path here. (A categorical feature has a variable per category, in all models.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import BoolArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.partition import Partition
from ocf.formulations.base import Formulated
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.target import reaches_target
from ocf.trees.ensemble import SplitKind


def build(cells: CellProblem) -> Formulated:
    """Build OAE's model of a problem over cells.

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
    model = pyo.ConcreteModel(name="oae")
    model.v = pyo.Var([(i, j) for i in range(part.n_features) for j in range(int(part.widths[i]))], domain=pyo.Binary)
    model.phi = pyo.Var(range(ensemble.n_leaves), domain=pyo.Binary)
    phi = [model.phi[k] for k in range(ensemble.n_leaves)]
    for k in np.flatnonzero(~part.reachable).tolist():  # a path that contradicts itself holds no point
        model.phi[k].setub(0)
    offsets = ensemble.leaf_offsets.tolist()

    @model.Constraint(range(part.n_features))
    def one_cell(m: pyo.ConcreteModel, i: int) -> Any:  # (1)
        return (1.0, linear([(1.0, m.v[i, j]) for j in range(int(part.widths[i]))]), 1.0)

    @model.Constraint(range(ensemble.n_trees))
    def single_leaf(_: pyo.Block, t: int) -> Any:  # (2)
        return (1.0, linear([(1.0, p) for p in phi[offsets[t] : offsets[t + 1]]]), 1.0)

    paths = _paths(part)

    @model.Constraint([k for k in range(ensemble.n_leaves) if paths[k]])
    def path_holds(m: pyo.ConcreteModel, k: int) -> Any:  # (3)
        counts: dict[tuple[int, int], float] = {}  # how many predicates a cell satisfies
        for i, satisfied in paths[k]:
            for j in np.flatnonzero(satisfied).tolist():
                counts[i, j] = counts.get((i, j), 0.0) + 1.0
        terms = [(count, m.v[index]) for index, count in counts.items()]
        return (0.0, linear([*terms, (-float(len(paths[k])), phi[k])]), None)

    model.reaches_target = reaches_target(cells.requirements, phi)  # (4)
    cost = np.where(np.isfinite(cells.cost), cells.cost, 0.0)
    model.cost = pyo.Objective(expr=linear([(float(cost[part.offsets[i] + j]), v) for (i, j), v in model.v.items()]))
    levels = tuple(tuple(model.v[i, j] for j in range(int(part.widths[i]))) for i in range(part.n_features))
    return Formulated(model, tuple(phi), tuple(() for _ in levels), levels)


def _paths(part: Partition) -> list[list[tuple[int, BoolArray]]]:
    """Predicates on the path to each leaf: feature, and which of its cells satisfy it."""
    ensemble = part.ensemble
    above: list[list[tuple[int, BoolArray]]] = [[] for _ in ensemble.kind]
    inner = np.flatnonzero(ensemble.kind != SplitKind.LEAF)
    for node in inner[np.argsort(ensemble.depth[inner], kind="stable")].tolist():
        i = int(ensemble.feature[node])
        left = goes_left(part, node)
        for child, satisfied in ((ensemble.left[node], left), (ensemble.right[node], ~left)):
            above[child] = above[node] + ([] if satisfied.all() else [(i, satisfied)])
    return [above[node] for node in np.flatnonzero(ensemble.kind == SplitKind.LEAF)]


def goes_left(part: Partition, node: int) -> BoolArray:
    """Which cells of its feature an inner node sends left, (n_cells of the feature,).

    Parameters
    ----------
    part : Partition
    node : int
    """
    ensemble, i = part.ensemble, int(part.ensemble.feature[node])
    if ensemble.kind[node] == SplitKind.SUBSET:
        return ensemble.sets[ensemble.set_index[node], : int(part.widths[i])]
    return np.asarray(part.upper[part.cells_of(i)] <= ensemble.threshold[node])

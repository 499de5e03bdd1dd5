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
itself in the place of the ordered cells, for a hyperplane has none. The big-M are the smallest that the bounds allow.
A split of a single number is a hyperplane with one weight, its right side closed at the next admissible value.

Solvers meet such rows within their tolerances only: `ocf.solve.ensemble_search` takes from a solution the choice of
leaves, solves over their common region exactly, and asks for a better choice until there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import FloatArray, IntArray
from ocf.cells.partition import Partition
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.columns import MoveColumns, build_columns, columns_of, node_row
from ocf.formulations.blocks.target import reaches_target
from ocf.problem.problem import Problem
from ocf.problem.requirements import Requirements
from ocf.trees.ensemble import SplitKind


@dataclass(frozen=True)
class Global:
    """The model of a whole ensemble, and where its parts stand.

    Attributes
    ----------
    model : pyomo.environ.ConcreteModel
    variables : tuple of variables, one per column of `columns`
    leaves : tuple of variables, one per leaf
    columns : MoveColumns
    """

    model: pyo.ConcreteModel
    variables: tuple[Any, ...]
    leaves: tuple[Any, ...]
    columns: MoveColumns


def build(problem: Problem, requirements: Requirements, part: Partition) -> Global:
    """Build the model of a problem and one alternative of its target.

    Parameters
    ----------
    problem : Problem
        With finite bounds for every number that a hyperplane weighs.
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
    def single_leaf(_: pyo.Block, t: int) -> Any:  # (8)-(9)
        return (1.0, linear([(1.0, v) for v in y[offsets[t] : offsets[t + 1]]]), 1.0)

    inner = np.flatnonzero(ensemble.kind != SplitKind.LEAF).tolist()
    sides = {v: _Side.of(problem, columns, part, v) for v in inner}

    @model.Constraint(inner)
    def left_split(_: pyo.Block, v: int) -> Any:  # (16), (24)
        side, below = sides[v], _leaves_below(problem, v, left=True)
        return _implied(side.row, side.most, side.left, below, x, y)

    @model.Constraint(inner)
    def right_split(_: pyo.Block, v: int) -> Any:  # (17), (25)
        side, below = sides[v], _leaves_below(problem, v, left=False)
        return _implied(-side.row, -side.least, -side.right, below, x, y)

    model.reaches_target = reaches_target(requirements, y)  # (13)-(14)
    return Global(model, tuple(x), tuple(y), columns)


@dataclass(frozen=True)
class _Side:
    """A split as ``row . x <= left`` or ``row . x >= right``, and the ends of ``row . x`` within the bounds."""

    row: FloatArray
    left: float
    right: float
    least: float
    most: float

    @classmethod
    def of(cls, problem: Problem, columns: MoveColumns, part: Partition, v: int) -> _Side:
        ensemble, origin = problem.trees, problem.origin
        if ensemble.kind[v] == SplitKind.OBLIQUE:
            row, constant = node_row(ensemble, v, columns, origin)
            left = right = float(ensemble.threshold[v]) - constant
            return cls(row, left, right, *_ends(row, columns))
        i = int(ensemble.feature[v])
        own = columns.of(i)
        row = np.zeros(columns.n)
        if not len(own):  # a missing value, whose side is decided
            goes_left = ensemble.threshold[v] == np.inf
            return cls(row, 0.0 if goes_left else -1.0, 1.0 if goes_left else 0.0, 0.0, 0.0)
        if columns.role[own[0]] == "level":
            # the row counts the levels that go right
            if ensemble.kind[v] == SplitKind.SUBSET:
                goes = ensemble.sets[ensemble.set_index[v]][columns.value[own].astype(np.int64)]
            else:
                goes = columns.value[own] <= ensemble.threshold[v]
            row[own] = ~goes
            return cls(row, 0.0, 1.0, 0.0, 1.0)
        feature = problem.space.features[i]
        numbers = own[columns.role[own] != "moved"]
        row[numbers] = columns.unit[numbers]
        cut = float(ensemble.threshold[v])
        left = float(feature.at_most(cut)) if np.isfinite(cut) else cut
        right = float(feature.above(cut)) if np.isfinite(cut) else cut
        # the row's own value is admissible on its side, whatever the grid
        if origin[i] <= cut:
            left = max(left, float(origin[i]))
        else:
            right = min(right, float(origin[i]))
        return cls(row, left - float(origin[i]), right - float(origin[i]), *_ends(row, columns))


def _ends(row: FloatArray, columns: MoveColumns) -> tuple[float, float]:
    """Smallest and largest ``row . x`` within the bounds, with one level per listed feature."""
    number = np.isin(columns.role, ("delta", "up", "down")) & (row != 0)
    a, b = row[number] * columns.lower[number], row[number] * columns.upper[number]
    least, most = float(np.minimum(a, b).sum()), float(np.maximum(a, b).sum())
    for i in np.unique(columns.feature[columns.role == "level"]).tolist():
        values = row[columns.of(i)]
        least, most = least + float(values.min()), most + float(values.max())
    return least, most


def _implied(row: FloatArray, most: float, side: float, below: IntArray, x: list[Any], y: list[Any]) -> Any:
    """``row . x <= side`` if one of the leaves below is chosen."""
    if most <= side:
        return pyo.Constraint.Feasible
    if side == -np.inf:
        return (None, linear([(1.0, y[k]) for k in below.tolist()]), 0.0)
    big = most - side
    terms = [(float(c), x[j]) for j, c in enumerate(row.tolist()) if c]
    return (None, linear(terms + [(big, y[k]) for k in below.tolist()]), float(most))


def _leaves_below(problem: Problem, v: int, *, left: bool) -> IntArray:
    ensemble = problem.trees
    child = int((ensemble.left if left else ensemble.right)[v])
    return ensemble.leaves_below(child)

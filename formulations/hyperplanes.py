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
``s[v]``             := 1 if the row goes left at v; the same for nodes of the same weights and threshold
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

Where several nodes weigh the columns alike (`Ensemble.oblique_index`), as those that split one column which a step in
front of the trees has added up, their total is one number, and lies on one side of each threshold:

.. math::

    & \textstyle\sum_{l \in L(v)} y_l \le s_v, \quad \textstyle\sum_{l \in R(v)} y_l \le 1 - s_v \\
    & s_u \le s_v & w_u = w_v,\ t_u \le t_v

with s in the place of the sums of y in (16)-(17), once for each threshold. Without the order a solver may choose leaves
on both sides of one hyperplane, which has points within its tolerance.

The sums over the leaves below a child are OCEAN's flow through it, and (16)-(17) its splits of numbers with the value
itself in the place of the ordered cells, for a hyperplane has none. The big-M are the smallest that the bounds allow.
Where the library's own total may differ by a slack, both sides are wider by it.
A split of a single number is a hyperplane with one weight, its right side closed at the next admissible value.

A line (`Ensemble.lines`) adds ``w . x - t`` to a score, as the linear model does on top of a stack that is given the
table. Its tree has no sides; its two leaves stand for the ends a and b between which it lies, and are chosen in parts:

.. math::

    w \cdot x - t = a\, y_a + b\, y_b, \quad y_a + y_b = 1, \quad 0 \le y_a, y_b \le 1

so that (13)-(14), and all that relaxes a target, hold of it as they stand.

Solvers meet such rows within their tolerances only: `ocf.solve.ensemble_search` takes from a solution the choice of
leaves, solves over their common region exactly, and asks for a better choice until there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import FloatArray
from ocf.cells.partition import Partition
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.columns import MoveColumns, build_columns, columns_of, node_row
from ocf.formulations.blocks.target import reaches_target
from ocf.problem.problem import Problem
from ocf.problem.requirements import Requirements
from ocf.trees.ensemble import Ensemble, SplitKind


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
    roots = _add_lines(model, problem, columns, x, y)

    @model.Constraint(range(ensemble.n_trees))
    def single_leaf(_: pyo.Block, t: int) -> Any:  # (8)-(9)
        return (1.0, linear([(1.0, v) for v in y[offsets[t] : offsets[t + 1]]]), 1.0)

    shared = _shared(ensemble)
    model.s = pyo.Var(range(len(shared)), bounds=(0, 1))
    inner = sorted(set(np.flatnonzero(ensemble.kind != SplitKind.LEAF).tolist()) - {*chain(*shared), *roots})
    sides = {v: _Side.of(problem, columns, part, v) for v in [*inner, *(nodes[0] for nodes in shared)]}

    @model.Constraint(inner)
    def left_split(_: pyo.Block, v: int) -> Any:  # (16), (24)
        side = sides[v]
        return _implied(side.row, side.most, side.left, x, _leaves_below(problem, y, v, left=True))

    @model.Constraint(inner)
    def right_split(_: pyo.Block, v: int) -> Any:  # (17), (25)
        side = sides[v]
        return _implied(-side.row, -side.least, -side.right, x, _leaves_below(problem, y, v, left=False))

    @model.Constraint(range(len(shared)))
    def left_of_shared(_: pyo.Block, k: int) -> Any:  # (16)
        side = sides[shared[k][0]]
        return _implied(side.row, side.most, side.left, x, [(1.0, model.s[k])])

    @model.Constraint(range(len(shared)))
    def right_of_shared(_: pyo.Block, k: int) -> Any:  # (17)
        side = sides[shared[k][0]]
        return _implied(-side.row, -side.least, -side.right, x, [(-1.0, model.s[k])], 1.0)

    nodes_of = [(v, k) for k, nodes in enumerate(shared) for v in nodes]

    @model.Constraint(range(len(nodes_of)))
    def left_below_shared(_: pyo.Block, n: int) -> Any:
        v, k = nodes_of[n]
        return (None, linear([*_leaves_below(problem, y, v, left=True), (-1.0, model.s[k])]), 0.0)

    @model.Constraint(range(len(nodes_of)))
    def right_below_shared(_: pyo.Block, n: int) -> Any:
        v, k = nodes_of[n]
        return (None, linear([*_leaves_below(problem, y, v, left=False), (1.0, model.s[k])]), 1.0)

    row_of = [int(ensemble.oblique_index[nodes[0]]) for nodes in shared]

    @model.Constraint([k for k in range(len(shared) - 1) if row_of[k] == row_of[k + 1]])
    def order(_: pyo.Block, k: int) -> Any:
        return (None, linear([(1.0, model.s[k]), (-1.0, model.s[k + 1])]), 0.0)

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
            side, slack = (
                float(ensemble.threshold[v]) - constant,
                float(ensemble.oblique_slack[ensemble.oblique_index[v]]),
            )
            return cls(row, side + slack, side - slack, *_ends(row, columns))
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


def _add_lines(
    model: pyo.ConcreteModel, problem: Problem, columns: MoveColumns, x: list[Any], y: list[Any]
) -> list[int]:
    """Tie the leaves of lines, which are chosen in parts from here on, to the columns; the roots of the lines."""
    ensemble = problem.trees
    rows = []
    for tree, output in ensemble.lines.tolist():
        first, root = int(ensemble.leaf_offsets[tree]), int(ensemble.tree_offsets[tree])
        for variable in y[first : first + 2]:
            variable.domain = pyo.NonNegativeReals
            variable.setub(1)
        low, high = ensemble.contributions[first : first + 2, output].tolist()
        row, constant = node_row(ensemble, root, columns, problem.origin)
        size = max(abs(low), abs(high)) or 1.0  # solvers' tolerances are absolute
        terms = [(c / size, x[j]) for j, c in enumerate(row.tolist()) if c]
        side = (float(ensemble.threshold[root]) - constant) / size
        rows.append((side, linear([*terms, (-low / size, y[first]), (-high / size, y[first + 1])]), side))
    model.line = pyo.Constraint(range(len(rows)), rule=lambda _, r: rows[r])
    return [int(v) for v in ensemble.tree_offsets[ensemble.lines[:, 0]]]


#: Coefficients and variables.
_Terms = list[tuple[float, Any]]


def _implied(row: FloatArray, most: float, side: float, x: list[Any], chosen: _Terms, constant: float = 0.0) -> Any:
    """``row . x <= side`` if the sum of what is chosen, and of a constant, is 1."""
    if most <= side:
        return pyo.Constraint.Feasible
    if side == -np.inf:
        return (None, linear(chosen), -constant)
    big = most - side
    terms = [(float(c), x[j]) for j, c in enumerate(row.tolist()) if c]
    return (None, linear(terms + [(big * c, v) for c, v in chosen]), float(most - big * constant))


def _leaves_below(problem: Problem, y: list[Any], v: int, *, left: bool) -> _Terms:
    ensemble = problem.trees
    child = int((ensemble.left if left else ensemble.right)[v])
    return [(1.0, y[k]) for k in ensemble.leaves_below(child).tolist()]


def _shared(ensemble: Ensemble) -> list[list[int]]:
    """Nodes that share both their weights and their threshold, where several share the weights; in order of both."""
    at = np.flatnonzero(ensemble.kind == SplitKind.OBLIQUE)
    at = at[np.bincount(ensemble.oblique_index[at], minlength=1)[ensemble.oblique_index[at]] > 1]
    keys = [(int(ensemble.oblique_index[v]), float(ensemble.threshold[v]), v) for v in at.tolist()]
    return [[v for *_, v in own] for _, own in groupby(sorted(keys), key=lambda key: key[:2])]

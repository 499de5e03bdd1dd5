r"""Splits as rows over the columns of `ocf.formulations.blocks.columns`, and lines that scores run along.

Nomenclature
------------
===================  ===================================================================================
``v``                node
``f(v)``             := flow into node v: 1 if the point passes it
``x``                := columns of `ocf.formulations.oblique`: changes of numbers, levels of the others
``w[v], t[v]``       := weights and threshold of v over the columns, the origin's part taken off
``M[v], m[v]``       := largest and smallest value of ``w[v] . x`` within the bounds
``C[v]``             := levels that go left at v
``[z]+, [z]-``       := positive and negative part of z, of each entry
``s[v]``             := 1 if the row goes left at v; the same for nodes of the same weights and threshold
===================  ===================================================================================

Model
-----
.. math::

    & w_v \cdot x \le t_v + (M_v - t_v) (1 - f_{l(v)}) & \text{(ocean, 38)} \\
    & w_v \cdot x \ge t_v - (t_v - m_v) (1 - f_{r(v)}) & \text{(ocean, 39)} \\
    & \textstyle\sum_{k \notin C_v} level_{ik} \le 1 - f_{l(v)}, \quad
      \textstyle\sum_{k \in C_v} level_{ik} \le 1 - f_{r(v)} & \text{(ocean, 24-25, 42-43)}

The big-M are the smallest that the bounds allow; with all numbers in [0, 1] they are ocean's (40)-(41).
Where the library's own total may differ by a slack, both sides are wider by it.
A split of a single number is a hyperplane with one weight, its right side closed at the next admissible value.

A big-M says next to nothing of a part of the flow. Where the row itself lies on one side, the other takes a move, and
a part of the flow takes a part of it:

.. math::

    & [w_v]_+ \cdot x \ge [t_v]_+ f_{r(v)}, \quad [w_v]_- \cdot x \ge [-t_v]_+ f_{l(v)} & x \ge 0

(`add_least_moves`). Twenty oblique trees of depth 5 on ten columns of breast cancer, one row: SCIP proves the optimum
in 47 nodes and 1.4 s with these rows, and in 30,070 nodes and 16 s without.

Where several nodes weigh the columns alike (`Ensemble.oblique_index`), as those that split one column which a step in
front of the trees has added up, their total is one number, and lies on one side of each threshold:

.. math::

    & f_{l(v)} \le s_v, \quad f_{r(v)} \le 1 - s_v \\
    & s_u \le s_v & w_u = w_v,\ t_u \le t_v

with s in the place of the flow, once for each threshold. Without the order a solver may choose leaves on both sides of
one hyperplane, which has points within its tolerance. So OCEAN's model; ours has cells of such totals
(`ocf.formulations.blocks.value_cells`).

A line (`Ensemble.lines`) adds ``w . x - t`` to a score, as the linear model does on top of a stack that is given the
table. Its tree has no sides; its two leaves stand for the ends a and b between which it lies, and are chosen in parts:

.. math::

    w \cdot x - t = a\, y_a + b\, y_b, \quad y_a + y_b = 1, \quad 0 \le y_a, y_b \le 1

so that the rows of a target, and all that relaxes it, hold of it as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import FloatArray, IntArray
from ocf.cells.totals import sharing_nodes
from ocf.errors import ProblemError
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.columns import MoveColumns, centred, node_row, signed_parts
from ocf.problem.problem import Problem
from ocf.solvers.standard_form import StandardForm
from ocf.trees.ensemble import Ensemble, SplitKind

#: Constraints with a big-M.
BIG_M = ("left_split", "right_split", "left_of_shared", "right_of_shared")

#: Coefficients and variables.
Terms = list[tuple[float, Any]]


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


@dataclass(frozen=True)
class Side:
    """A split as ``row . x <= left`` or ``row . x >= right``, and the ends of ``row . x`` within the bounds.

    Attributes
    ----------
    row : (n_cols,) float64
    left, right : float
    least, most : float
    """

    row: FloatArray
    left: float
    right: float
    least: float
    most: float

    @classmethod
    def of(cls, problem: Problem, columns: MoveColumns, v: int) -> Side:
        """The sides of a split.

        Parameters
        ----------
        problem : Problem
        columns : MoveColumns
        v : int
            Node.

        Raises
        ------
        ProblemError
            A number that the split weighs has no finite bounds.
        """
        ensemble, origin = problem.trees, problem.origin
        if ensemble.kind[v] == SplitKind.OBLIQUE:
            row, constant = node_row(ensemble, v, columns, origin)
            rows, sides = centred(columns, row[None], ensemble.threshold[[v]] - constant)
            row, side = rows[0], float(sides[0])
            slack = float(ensemble.oblique_slack[ensemble.oblique_index[v]])
            return cls(row, side + slack, side - slack, *_ends(problem, columns, row))
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
        return cls(row, left - float(origin[i]), right - float(origin[i]), *_ends(problem, columns, row))


def _ends(problem: Problem, columns: MoveColumns, row: FloatArray) -> tuple[float, float]:
    """Smallest and largest ``row . x`` within the bounds, with one level per listed feature."""
    number = columns.is_number & (row != 0)
    free = number & ~(np.isfinite(columns.lower) & np.isfinite(columns.upper))
    if free.any():
        name = problem.space.names[int(columns.feature[free][0])]
        raise ProblemError(
            f"feature {name!r} is split and has no finite bounds, which a model of all trees at once needs: give bounds"
        )
    a, b = row[number] * columns.lower[number], row[number] * columns.upper[number]
    least, most = float(np.minimum(a, b).sum()), float(np.maximum(a, b).sum())
    for i in np.unique(columns.feature[columns.role == "level"]).tolist():
        values = row[columns.of(i)]
        least, most = least + float(values.min()), most + float(values.max())
    return least, most


def implied(row: FloatArray, most: float, side: float, x: list[Any], chosen: Terms, constant: float = 0.0) -> Any:
    """``row . x <= side`` if the sum of what is chosen, and of a constant, is 1.

    Parameters
    ----------
    row : (n_cols,) float64
    most : float
        The largest ``row . x``.
    side : float
    x : list of variables
    chosen : list of (float, variable)
    constant : float
    """
    if most <= side:
        return pyo.Constraint.Feasible
    if side == -np.inf:
        return (None, linear(chosen), -constant)
    big = most - side
    terms = [(float(c), x[j]) for j, c in enumerate(row.tolist()) if c]
    return (None, linear(terms + [(big * c, v) for c, v in chosen]), float(most - big * constant))


def add_splits(
    model: pyo.ConcreteModel, sides: dict[int, Side], x: list[Any], flow: Callable[[int, bool], Terms]
) -> None:
    """Tie the flow into the children of nodes to the columns.

    Parameters
    ----------
    model : pyomo ConcreteModel
    sides : dict of int to Side
        By node.
    x : list of variables, one per column
    flow : callable
        Flow into a node's left child, if the second argument holds, or into its right one.
    """

    @model.Constraint(list(sides))
    def left_split(_: pyo.Block, v: int) -> Any:  # (16), (24), (38), (42)
        side = sides[v]
        return implied(side.row, side.most, side.left, x, flow(v, True))

    @model.Constraint(list(sides))
    def right_split(_: pyo.Block, v: int) -> Any:  # (17), (25), (39), (43)
        side = sides[v]
        return implied(-side.row, -side.least, -side.right, x, flow(v, False))


def add_least_moves(
    model: pyo.ConcreteModel,
    sides: dict[int, Side],
    columns: MoveColumns,
    x: list[Any],
    flow: Callable[[int, bool], Terms],
) -> None:
    """Have the columns move at least as far as the flow to the other side of a split asks for.

    Parameters
    ----------
    model : pyomo ConcreteModel
    sides : dict of int to Side
        By node.
    columns : MoveColumns
    x : list of variables, one per column
    flow : callable
        As in `add_splits`.
    """
    rows = []
    for v, side in sides.items():
        ends = ((side.least, side.right, False), (-side.most, -side.left, True))
        for weights, (least, end, left) in zip(signed_parts(columns, side.row), ends, strict=False):
            if least < 0 < end < np.inf:  # a big-M says as much otherwise
                size = max(side.most - side.least, end)
                moves = [(float(weights[j]) / size, x[j]) for j in np.flatnonzero(weights).tolist()]
                rows.append((0.0, linear([*moves, *((-end / size * c, f) for c, f in flow(v, left))]), None))
    model.least_move = pyo.Constraint(range(len(rows)), rule=lambda _, r: rows[r])


def add_shared_splits(
    model: pyo.ConcreteModel,
    problem: Problem,
    columns: MoveColumns,
    x: list[Any],
    flow: Callable[[int, bool], Terms],
) -> set[int]:
    """Give nodes of the same hyperplane one side; the nodes, which need no rows of their own.

    Parameters
    ----------
    model : pyomo ConcreteModel
    problem : Problem
    columns : MoveColumns
    x : list of variables, one per column
    flow : callable
        As in `add_splits`.
    """
    ensemble = problem.trees
    shared = _shared(ensemble)
    model.s = pyo.Var(range(len(shared)), bounds=(0, 1))
    sides = [Side.of(problem, columns, nodes[0]) for nodes in shared]

    @model.Constraint(range(len(shared)))
    def left_of_shared(_: pyo.Block, k: int) -> Any:  # (38)
        side = sides[k]
        return implied(side.row, side.most, side.left, x, [(1.0, model.s[k])])

    @model.Constraint(range(len(shared)))
    def right_of_shared(_: pyo.Block, k: int) -> Any:  # (39)
        side = sides[k]
        return implied(-side.row, -side.least, -side.right, x, [(-1.0, model.s[k])], 1.0)

    nodes_of = [(v, k) for k, nodes in enumerate(shared) for v in nodes]

    @model.Constraint(range(len(nodes_of)))
    def left_below_shared(_: pyo.Block, n: int) -> Any:
        v, k = nodes_of[n]
        return (None, linear([*flow(v, True), (-1.0, model.s[k])]), 0.0)

    @model.Constraint(range(len(nodes_of)))
    def right_below_shared(_: pyo.Block, n: int) -> Any:
        v, k = nodes_of[n]
        return (None, linear([*flow(v, False), (1.0, model.s[k])]), 1.0)

    total = [int(ensemble.oblique_index[nodes[0]]) for nodes in shared]

    @model.Constraint([k for k in range(len(shared) - 1) if total[k] == total[k + 1]])
    def shared_order(_: pyo.Block, k: int) -> Any:
        return (None, linear([(1.0, model.s[k]), (-1.0, model.s[k + 1])]), 0.0)

    return {v for v, _ in nodes_of}


def big_m_rows(form: StandardForm) -> IntArray:
    """The rows of a model that have a big-M, by their names.

    Parameters
    ----------
    form : StandardForm
        With names, of a model to which `add_splits` and `add_shared_splits` have added rows.
    """
    return np.flatnonzero([name.partition("[")[0] in BIG_M for name in form.row_names or ()])


def _shared(ensemble: Ensemble) -> list[list[int]]:
    """Nodes that share both their total and their threshold, where several share the total; in order of both."""
    nodes = sharing_nodes(ensemble).tolist()
    keys = sorted((int(ensemble.oblique_index[v]), float(ensemble.threshold[v]), v) for v in nodes)
    return [[v for *_, v in own] for _, own in groupby(keys, key=lambda key: key[:2])]


def add_lines(
    model: pyo.ConcreteModel, problem: Problem, columns: MoveColumns, x: list[Any], y: Sequence[Any]
) -> set[int]:
    """Tie the leaves of lines, which are chosen in parts from here on, to the columns; the roots of the lines.

    Parameters
    ----------
    model : pyomo ConcreteModel
    problem : Problem
    columns : MoveColumns
    x : list of variables, one per column
    y : sequence of variables, one per leaf
    """
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
    return {int(v) for v in ensemble.tree_offsets[ensemble.lines[:, 0]]}

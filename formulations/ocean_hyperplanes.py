r"""OCEAN with splits of several features, as the paper has it for extended isolation forests (ICML 2021, supplement).

Nomenclature
------------
===================  ===================================================================================
``t, v, d, i``       tree, node, depth, feature
``y[v]``             := flow through node v, 1 if the point passes it
``lam[t,d]``         := 1 if the point descends to the left at depth d of tree t
``x``                := columns of `ocf.formulations.oblique`: changes of numbers, levels of the others
``a[v], b[v]``       := weights and threshold of v over the columns, the origin's part taken off
``M+[v], M-[v]``     := largest ``a[v] . x - b[v]`` and ``b[v] - a[v] . x`` within the bounds
``mu[i,j]``          := filled fraction of the j-th interval between the thresholds of the number i
``c[i,j], e[i,j]``   := last value left of the j-th threshold of i, first value right of it; ``c[i,0]`` and the
                     last c are the bounds
``eps[i,j]``         := ``(e[i,j] - c[i,j]) / (c[i,j+1] - c[i,j])``
``C+_v``             := levels that the split of v sends right
===================  ===================================================================================

Model
-----
.. math::

    y_{t1} &= 1 & (8) \\
    y_v &= y_{l(v)} + y_{r(v)} & (9) \\
    \textstyle\sum_{v \in V_{td}} y_{l(v)} &\le \lambda_{td}, \quad
    \textstyle\sum_{v \in V_{td}} y_{r(v)} \le 1 - \lambda_{td} & (10) \\
    \mu_i^{j-1} &\ge \mu_i^j & (15) \\
    \mu_i^j &\le 1 - y_{l(v)}, \quad \mu_i^{j-1} \ge y_{r(v)}, \quad \mu_i^j \ge \epsilon_i^j y_{r(v)} & (16-18) \\
    x_i &= c_i^0 + \textstyle\sum_j (c_i^{j+1} - c_i^j) \mu_i^j & (20) \\
    a_v \cdot x &\le b_v + M^+_v (1 - y_{l(v)}), \quad a_v \cdot x \ge b_v - M^-_v (1 - y_{r(v)}) & (38-41) \\
    \textstyle\sum_{k \in C^+_v} x_{ik} &\le 1 - y_{l(v)}, \quad
    \textstyle\sum_{k \notin C^+_v} x_{ik} \le 1 - y_{r(v)} & (24-25, 42-43) \\
    \textstyle\sum_k x_{ik} &= 1 & (27, 45) \\
    \textstyle\sum_v g_{vr} y_v &\ge h_r & (13-14)

The paper keeps a point eps away from both sides of every split. Here eps[i,j] is what the float64 numbers, or the grid
of the feature, leave between the two sides; for most numbers it is below any tolerance, and (18) is then left out.
Sides of hyperplanes are closed: `ocf.solve.ensemble_search` solves exactly over the leaves that a solution names, and
asks again where they have no common point. Features are in the table's own units in the place of [0, 1], and M+ and M-
are those of (40)-(41) for bounds other than 0 and 1. Several nodes of one hyperplane, and lines, are those of
`ocf.formulations.blocks.splits`.

Integrality: only the lam, and the levels of listed features, are binary (theorem 1: lam binary makes y binary).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.cells.partition import Partition
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.columns import MoveColumns, build_columns, columns_of
from ocf.formulations.blocks.splits import Global, Side, Terms, add_lines, add_shared_splits, add_splits
from ocf.formulations.blocks.target import reaches_target
from ocf.problem.problem import Problem
from ocf.problem.requirements import Requirements
from ocf.trees.ensemble import Ensemble, SplitKind

#: An eps below which (18) says nothing within the tolerances of a solver.
LEAST_EPS = 1e-6


def build(problem: Problem, requirements: Requirements, part: Partition, columns: MoveColumns | None = None) -> Global:
    """Build OCEAN's model of a problem and one alternative of its target, with values in the place of cells.

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
    model, x = build_columns(problem, columns, "ocean_hyperplanes")
    model.y = pyo.Var(range(len(ensemble.kind)), bounds=(0.0, 1.0))  # (11)
    y = [model.y[v] for v in range(len(ensemble.kind))]
    leaves = [y[v] for v in np.flatnonzero(ensemble.kind == SplitKind.LEAF).tolist()]
    for k in np.flatnonzero(~part.reachable).tolist():
        leaves[k].setub(0)

    def flow(v: int, left: bool) -> Terms:
        return [(1.0, y[int((ensemble.left if left else ensemble.right)[v])])]

    roots = add_lines(model, problem, columns, x, leaves)
    inner = np.flatnonzero(ensemble.kind != SplitKind.LEAF).tolist()
    _add_flow(model, ensemble, y, inner, roots)
    done = roots | add_shared_splits(model, problem, columns, x, flow)
    sides = {v: Side.of(problem, columns, v) for v in inner if v not in done}
    simplex = [v for v in sides if _has_order(ensemble, columns, v)]
    _add_orders(model, ensemble, x, y, {v: sides.pop(v) for v in simplex})
    add_splits(model, sides, x, flow)
    model.reaches_target = reaches_target(requirements, leaves)  # (13)-(14)
    return Global(model, tuple(x), tuple(leaves), columns)


def _add_flow(model: pyo.ConcreteModel, ensemble: Ensemble, y: list[Any], inner: list[int], roots: set[int]) -> None:
    """The flow through the trees, and its direction at each depth; lines, whose roots are given, have none."""
    left, right = ensemble.left.tolist(), ensemble.right.tolist()
    at_stage: dict[tuple[int, int], list[int]] = defaultdict(list)
    for v in inner:
        if v not in roots:
            at_stage[int(ensemble.node_tree[v]), int(ensemble.depth[v])].append(v)
    stages = sorted(at_stage)
    model.lam = pyo.Var(stages, domain=pyo.Binary)  # (12)

    @model.Constraint(range(ensemble.n_trees))
    def root(_: pyo.Block, t: int) -> Any:  # (8)
        return y[int(ensemble.tree_offsets[t])] == 1.0

    @model.Constraint(inner)
    def flow(_: pyo.Block, v: int) -> Any:  # (9)
        return (0.0, linear([(1.0, y[v]), (-1.0, y[left[v]]), (-1.0, y[right[v]])]), 0.0)

    @model.Constraint(stages)
    def left_branch(m: pyo.ConcreteModel, t: int, d: int) -> Any:  # (10a)
        return (None, linear([(1.0, y[left[v]]) for v in at_stage[t, d]] + [(-1.0, m.lam[t, d])]), 0.0)

    @model.Constraint(stages)
    def right_branch(m: pyo.ConcreteModel, t: int, d: int) -> Any:  # (10b)
        return (None, linear([(1.0, y[right[v]]) for v in at_stage[t, d]] + [(1.0, m.lam[t, d])]), 1.0)


def _has_order(ensemble: Ensemble, columns: MoveColumns, v: int) -> bool:
    """Whether a node splits a number with a value, at a threshold."""
    if ensemble.kind[v] != SplitKind.AXIS or not np.isfinite(ensemble.threshold[v]):
        return False
    own = columns.of(int(ensemble.feature[v]))
    return bool(len(own)) and columns.role[own[0]] != "level"


def _add_orders(
    model: pyo.ConcreteModel, ensemble: Ensemble, x: list[Any], y: list[Any], sides: dict[int, Side]
) -> None:
    """The intervals of numbers between their thresholds, which fill one after the other, and the splits by them."""
    by_feature: dict[int, list[int]] = defaultdict(list)
    for v, side in sides.items():
        left, right = y[int(ensemble.left[v])], y[int(ensemble.right[v])]
        if side.left < side.least:
            left.setub(0)
        elif side.right > side.most:
            right.setub(0)
        else:
            by_feature[int(ensemble.feature[v])].append(v)
    cuts = {i: sorted({(sides[v].left, sides[v].right) for v in nodes}) for i, nodes in by_feature.items()}
    model.mu = pyo.Var([(i, j) for i, own in cuts.items() for j in range(len(own) + 1)], bounds=(0.0, 1.0))
    mu = model.mu

    @model.Constraint([(i, j) for i, own in cuts.items() for j in range(1, len(own) + 1)])
    def order(_: pyo.Block, i: int, j: int) -> Any:  # (15)
        return (0.0, linear([(1.0, mu[i, j - 1]), (-1.0, mu[i, j])]), None)

    @model.Constraint(list(by_feature))
    def filled(_: pyo.Block, i: int) -> Any:  # (20)
        side = sides[by_feature[i][0]]
        ends = [side.least, *(left for left, _ in cuts[i]), side.most]
        terms = [(float(c), x[k]) for k, c in enumerate(side.row.tolist()) if c]
        return (
            side.least,
            linear([*terms, *((-w, mu[i, j]) for j, w in enumerate(np.diff(ends).tolist()))]),
            side.least,
        )

    number = {i: {cut: j + 1 for j, cut in enumerate(own)} for i, own in cuts.items()}
    place = {v: (i, number[i][sides[v].left, sides[v].right]) for i, nodes in by_feature.items() for v in nodes}

    @model.Constraint(list(place))
    def left_order(_: pyo.Block, v: int) -> Any:  # (16)
        return (None, linear([(1.0, mu[place[v]]), (1.0, y[int(ensemble.left[v])])]), 1.0)

    @model.Constraint(list(place))
    def right_order(_: pyo.Block, v: int) -> Any:  # (17)
        i, j = place[v]
        return (0.0, linear([(1.0, mu[i, j - 1]), (-1.0, y[int(ensemble.right[v])])]), None)

    @model.Constraint(list(place))
    def right_reached(_: pyo.Block, v: int) -> Any:  # (18)
        i, j = place[v]
        side, ends = sides[v], [left for left, _ in cuts[i]]
        width = (ends[j] if j < len(ends) else side.most) - side.left
        if side.right - side.left <= LEAST_EPS * width:
            return pyo.Constraint.Feasible
        eps = (side.right - side.left) / width
        return (0.0, linear([(1.0, mu[i, j]), (-eps, y[int(ensemble.right[v])])]), None)

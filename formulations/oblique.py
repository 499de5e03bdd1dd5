r"""One tree, leaf by leaf: LP, QP, MILP or MIQP (Carreira-Perpiñán & Hada, AAAI 2021).

Nomenclature
------------
=======================  ===============================================================================
``i, v, k``              feature, node, level
``xbar[i]``              := the origin
``delta[i]``             := change of a numeric feature whose cost has no kink at the origin
``up[i], down[i]``       := rise and fall of the other numeric features, in grid steps where there is a grid
``level[i,k]``           := 1 if feature i, which takes listed values only, takes the k-th
``moved[i]``             := 1 if a numeric feature moves at all; only for costs with an l0 part
``x[i]``                 := xbar + delta, or xbar + unit (up - down), or the value of the level
``w[v], t[v]``           := weights and threshold of node v; w counts a value, or an indicator of a level
``P[l]``                 := path from the root to leaf l: nodes with the side that is taken
=======================  ===============================================================================

Model
-----
Theorem 3.1: the cheapest point with the target is the cheapest over the leaves with the target, and over one leaf the
problem is convex, up to categories. For leaf l:

.. math::

    \min\ & E(x; \bar x) & (3) \\
    \text{s.t. } & w_v \cdot x \le t_v \text{ for } (v, \text{left}) \in P_l, \quad
      w_v \cdot x \ge t_v \text{ for } (v, \text{right}) \in P_l & \quad h_l(x) \ge 0 \\
    & x_i = \bar x_i + \delta_i \text{ or } \bar x_i + u_i (up_i - down_i), \quad up, down \ge 0 & \quad \text{(3.6)} \\
    & \textstyle\sum_k level_{ik} = 1, \quad level_{ik} \in \{0, 1\} & \quad \text{(3.8)} \\
    & up_i + down_i \le M_i\, moved_i, \quad moved_i \in \{0, 1\} & \quad \text{(l0)}

with the cost a mix of l1 (linear in up and down), l2 (their squares) and ``delta' Q delta`` (6). Splits of single
features become bounds of the columns. `build` has every hyperplane of the tree as an equation: a leaf's problem keeps
those of its path, each relaxed to one side, so that one compiled matrix serves every leaf and every row.

The paper sends ``w . x + b >= 0`` to the right and shrinks each constraint by eps; here the closed half-spaces are what
the solver sees, and `ocf.solve.leaf_search` moves its answer into the region where the tree itself, with its
rounding, agrees.

Axis-aligned trees need no solver: in a box the cheapest point is, feature by feature, the median of the origin and the
box's ends (theorem 3.3), see `closest_in_boxes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import FloatArray
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.columns import build_columns, columns_of, node_row
from ocf.problem.problem import Problem
from ocf.trees.ensemble import SplitKind

if TYPE_CHECKING:
    from ocf.formulations.blocks.columns import MoveColumns


def closest_in_boxes(low: FloatArray, high: FloatArray, origins: FloatArray) -> FloatArray:
    """Theorem 3.3: the closest point of every box to every origin is the median of origin and ends.

    It is the cheapest one for every cost that is a sum over features and rises with the distance of each (corollary
    3.4); which box is the best depends on the weights.

    Parameters
    ----------
    low, high : (n_boxes, n_features) float64
        Closed boxes; ends may be infinite.
    origins : (n_queries, n_features) float64

    Returns
    -------
    (n_queries, n_boxes, n_features) float64
    """
    return np.minimum(np.maximum(origins[:, None, :], low[None]), high[None])


@dataclass(frozen=True)
class LeafModels:
    """The model of all leaves of a tree, and where its parts stand.

    Attributes
    ----------
    model : pyomo.environ.ConcreteModel
        With a constraint `hyperplane[v]` for every node of `nodes`.
    variables : tuple of variables, one per column of `columns`
    columns : MoveColumns
    nodes : tuple of int
        Oblique nodes that some column touches, in the order of the constraints. Nothing moves the total of the others,
        which is 0 and decides their side.
    """

    model: pyo.ConcreteModel
    variables: tuple[Any, ...]
    columns: MoveColumns
    nodes: tuple[int, ...]


def build(problem: Problem) -> LeafModels:
    """Build the matrix from which the models of all leaves are cut.

    Parameters
    ----------
    problem : Problem
        Its ensemble is one tree.

    Returns
    -------
    LeafModels
    """
    ensemble, columns = problem.trees, columns_of(problem)
    oblique = np.flatnonzero(ensemble.kind == SplitKind.OBLIQUE).tolist()
    rows = {v: node_row(ensemble, v, columns, problem.origin) for v in oblique}
    nodes = [v for v, (coefficients, _) in rows.items() if coefficients.any()]
    model, x = build_columns(problem, columns, "oblique")

    @model.Constraint(nodes)
    def hyperplane(_: pyo.Block, v: int) -> Any:  # h_l(x) >= 0, as an equation of which a leaf keeps one side
        coefficients, constant = rows[v]
        return linear([(c, x[j]) for j, c in enumerate(coefficients.tolist()) if c]) == ensemble.threshold[v] - constant

    return LeafModels(model, tuple(x), columns, tuple(nodes))

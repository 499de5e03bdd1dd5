r"""The most plausible point in a box: the deepest one in the trees of an isolation forest.

Source: Amoukou and Brunel (2024), section 5, ask for the point in a rule with the best isolation-forest score and look
for it by simulated annealing; Parmentier and Vidal (ocean), section 3.5, have the depth as a linear expression.
Together they make a model whose optimum is proven.

Nomenclature
------------
===================  ===================================================================================
``t, l, i``          tree, leaf, feature of S
``d[l]``             := depth of leaf l (the score is decreasing in the sum of depths)
``y[l]``             := 1 if the point lies in leaf l; only leaves that hold what does not change
``mu[i,j]``          := 1 if the point lies beyond cell j of the ordered feature i
``nu[i,k]``          := 1 if the point has level k of the unordered feature i
===================  ===================================================================================

Model
-----
.. math::

    \max\ & \textstyle\sum_l d_l y_l \\
    \text{s.t. } & \textstyle\sum_{l \in t} y_l = 1 & \forall t & \quad (1) \\
    & \textstyle\sum_{l \in t:\ l \text{ ends at or before } j} y_l \le 1 - \mu_{ij}, \quad
      \sum_{l \in t:\ l \text{ begins after } j} y_l \le \mu_{ij} & \forall t, i, j & \quad (2) \\
    & \textstyle\sum_{l \in t:\ \text{levels of } l \subseteq M} y_l \le \sum_{k \in M} \nu_{ik} & \forall t, i, M
      & \quad (3) \\
    & \mu_{ij} \ge \mu_{i,j+1}, \quad \textstyle\sum_k \nu_{ik} = 1 & & \quad (4) \\
    & \mu_{i,j-1} = \mu_{ij} \text{ where cell j has no admissible value in the box} & & \quad (5) \\
    & \mu, \nu \in \{0, 1\}, \quad y \ge 0

(1) and (2) are ocean's leaves against cells, summed over each tree: with 0/1 cells they leave one leaf per tree, so y
needs no integrality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.partition import Partition
from ocf.formulations.blocks.cells import linear


@dataclass(frozen=True, eq=False)
class PointModel:
    """Model of the most plausible point.

    Attributes
    ----------
    model : pyomo ConcreteModel
    options : dict of int to (n_options,) int64
        Cells of each feature of S that have an admissible value in the box.
    choices : tuple of variables
        Those that `decode` reads: per feature, in order, its steps or levels.
    """

    model: pyo.ConcreteModel
    options: dict[int, IntArray]
    ordered: BoolArray
    choices: tuple[Any, ...]

    def decode(self, values: FloatArray) -> dict[int, int]:
        """Cell of each feature of S at values of `choices`."""
        out, at = {}, 0
        for i, own in self.options.items():
            n = len(own) - 1 if self.ordered[i] else len(own)
            chosen = values[at : at + n] > 0.5
            out[i] = int(own[chosen.sum() if self.ordered[i] else chosen.argmax()])
            at += n
        return out


def build(part: Partition, held: IntArray, options: dict[int, IntArray]) -> PointModel:
    """Build the model of the deepest point.

    Cells without an admissible value are left out, which is (5): the steps run over the others.

    Parameters
    ----------
    part : Partition
        Of the isolation trees, whose only output is the depth.
    held : (n_features,) int64
        Cells of the row; those of S do not count.
    options : dict of int to (n_options,) int64
        For each feature of S its cells with an admissible value in the box, increasing.
    """
    leaves = _reachable(part, held, options)
    tree = part.ensemble.leaf_tree
    model = pyo.ConcreteModel(name="most_plausible_point")
    steps = [(i, k) for i, own in options.items() if part.ordered[i] for k in range(1, len(own))]
    levels = [(i, k) for i, own in options.items() if not part.ordered[i] for k in range(len(own))]
    model.mu = pyo.Var(steps, domain=pyo.Binary)
    model.nu = pyo.Var(levels, domain=pyo.Binary)
    model.y = pyo.Var(leaves.tolist(), domain=pyo.UnitInterval)

    @model.Constraint(range(part.ensemble.n_trees))
    def single_leaf(m: pyo.ConcreteModel, t: int) -> Any:  # (1)
        return (1.0, linear([(1.0, m.y[k]) for k in leaves[tree[leaves] == t].tolist()]), 1.0)

    model.within = pyo.ConstraintList()
    for t in range(part.ensemble.n_trees):
        own = leaves[tree[leaves] == t]
        for i, cells in options.items():
            rows = _steps(model, part, own, i, cells) if part.ordered[i] else _levels(model, part, own, i, cells)
            for row in rows:
                model.within.add(row)

    @model.Constraint([(i, k) for i, k in steps if k > 1])
    def order(m: pyo.ConcreteModel, i: int, k: int) -> Any:  # (4)
        return (0.0, linear([(1.0, m.mu[i, k - 1]), (-1.0, m.mu[i, k])]), None)

    @model.Constraint(sorted({i for i, _ in levels}))
    def one_level(m: pyo.ConcreteModel, i: int) -> Any:  # (4)
        return (1.0, linear([(1.0, m.nu[i, k]) for k in range(len(options[i]))]), 1.0)

    depth = part.ensemble.contributions[:, 0]
    model.depth = pyo.Objective(expr=linear([(-float(depth[k]), model.y[k]) for k in leaves.tolist()]))
    choices = tuple(
        model.mu[i, k] if part.ordered[i] else model.nu[i, k]
        for i, own in options.items()
        for k in range(1 if part.ordered[i] else 0, len(own))
    )
    return PointModel(model, options, part.ordered, choices)


def _reachable(part: Partition, held: IntArray, options: dict[int, IntArray]) -> IntArray:
    """Leaves that hold the row outside S and an option of each feature of S."""
    inside = part.reachable.copy()
    for i in range(part.n_features):
        cells = options.get(i, held[[i]])
        if part.ordered[i]:
            inside &= ((part.low[:, [i]] <= cells) & (cells <= part.high[:, [i]])).any(axis=1)
        else:
            inside &= part.members_of(i)[:, cells].any(axis=1)
    return np.flatnonzero(inside)


def _steps(model: pyo.ConcreteModel, part: Partition, own: IntArray, i: int, cells: IntArray) -> list[Any]:
    """Constraints (2) of one tree and feature, at the cuts of its own leaves."""
    first = np.searchsorted(cells, part.low[own, i])  # first and last option that each leaf holds
    last = np.searchsorted(cells, part.high[own, i], side="right") - 1
    rows = []
    for k in np.unique(np.concatenate([first, last + 1])).tolist():
        if not 1 <= k < len(cells):
            continue
        before, after = own[last < k].tolist(), own[first >= k].tolist()
        rows.append((None, linear([(1.0, model.mu[i, k]), *((1.0, model.y[j]) for j in before)]), 1.0))
        rows.append((None, linear([(-1.0, model.mu[i, k]), *((1.0, model.y[j]) for j in after)]), 0.0))
    return rows


def _levels(model: pyo.ConcreteModel, part: Partition, own: IntArray, i: int, cells: IntArray) -> list[Any]:
    """Constraints (3) of one tree and feature, for the sets of levels of its own leaves."""
    member = part.members_of(i)[own][:, cells]
    rows = []
    for levels in np.unique(member, axis=0):
        inside = own[~(member & ~levels).any(axis=1)].tolist()
        chosen = [(-1.0, model.nu[i, k]) for k in np.flatnonzero(levels).tolist()]
        rows.append((None, linear([*chosen, *((1.0, model.y[j]) for j in inside)]), 0.0))
    return rows

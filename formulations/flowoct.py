r"""FlowOCT: the optimal sparse classification tree on binary features, as a flow of the training rows.

Source: Aghaei, Gómez and Vayanos, *Strong optimal classification trees*, arXiv 2103.15965: the flow formulation. Rows
that agree in all binary features and in the class are one row with a weight, which a discretised table has many of.

Nomenclature
------------
=============  =======================================================================================
``n``          node of the complete binary tree of the given depth; 1 is the root, 2n and 2n + 1 the
               children of n; inner nodes B, last level T
``i, f, k``    group of equal rows, binary feature, class
``x[i,f]``     := value of feature f in group i; ``c[i]`` its class, ``w[i]`` its number of rows
``b[n,f]``     := 1 if inner node n tests feature f: 0 goes to 2n, 1 to 2n + 1
``p[n,k]``     := 1 if node n is a leaf that gives class k
``z[i,n]``     := 1 if group i enters node n on its way to a leaf of its own class
``e[i,n]``     := 1 if it ends there
=============  =======================================================================================

Model
-----
.. math::

    \min\ & \textstyle\sum_i w_i (1 - \sum_n e_{in}) + \text{penalty} (1 + \sum_{n,f} b_{nf}) & (1) \\
    \text{s.t. } & \textstyle\sum_f b_{nf} + \sum_k p_{nk} + \sum_{m \text{ above } n} \sum_k p_{mk} = 1
      & \forall n \in B & \quad (2) \\
    & \textstyle\sum_k p_{nk} + \sum_{m \text{ above } n} \sum_k p_{mk} = 1 & \forall n \in T & \quad (3) \\
    & z_{in} = z_{i,2n} + z_{i,2n+1} + e_{in} & \forall i, n \in B & \quad (4) \\
    & z_{in} = e_{in} & \forall i, n \in T & \quad (5) \\
    & z_{i1} \le 1 & \forall i & \quad (6) \\
    & z_{i,2n} \le \textstyle\sum_{f: x_{if} = 0} b_{nf} & \forall i, n \in B & \quad (7) \\
    & z_{i,2n+1} \le \textstyle\sum_{f: x_{if} = 1} b_{nf} & \forall i, n \in B & \quad (8) \\
    & e_{in} \le p_{n, c_i} & \forall i, n & \quad (9) \\
    & b, p \in \{0, 1\}, \quad z, e \ge 0 & & \quad (10)

A tree with as many tests as (1) counts has one leaf more; the penalty is in rows, for each leaf. With b and p fixed the
rows are flows in a tree with capacities 0 and 1, so z and e need no integrality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray

from ocf.arrays import FloatArray
from ocf.formulations.blocks.cells import linear


@dataclass(frozen=True)
class TreeProblem:
    """Rows to classify by a tree, equal ones together.

    Attributes
    ----------
    bits : (n_groups, n_features) int8
    label : (n_groups,) int64
        Index of the class.
    weight : (n_groups,) int64
    n_classes : int
    depth : int
    penalty : float
        Of a leaf, in rows.
    """

    bits: NDArray[np.int8]
    label: NDArray[np.int64]
    weight: NDArray[np.int64]
    n_classes: int
    depth: int
    penalty: float

    @classmethod
    def of(cls, bits: ArrayLike, label: ArrayLike, n_classes: int, depth: int, penalty: float) -> TreeProblem:
        """Problem of rows, (n, n_features), and the indices of their classes, (n,).

        Parameters
        ----------
        bits : (n, n_features) int array
            0/1 values.
        label : (n,) int array
            Indices of the classes.
        n_classes, depth : int
        penalty : float
            Of a leaf, in rows.
        """
        table = np.column_stack([np.asarray(bits, np.int64), np.asarray(label, np.int64)])
        groups, weight = np.unique(table, axis=0, return_counts=True)
        return cls(groups[:, :-1].astype(np.int8), groups[:, -1], weight.astype(np.int64), n_classes, depth, penalty)


@dataclass(frozen=True)
class FlowTree:
    """The model, and where a tree is read from.

    Attributes
    ----------
    model : pyomo.environ.ConcreteModel
    tests : dict of (node, feature) to variable
        b
    leaves : dict of (node, class) to variable
        p
    """

    model: pyo.ConcreteModel
    tests: dict[tuple[int, int], Any]
    leaves: dict[tuple[int, int], Any]

    @property
    def columns(self) -> list[Any]:
        """Variables of `tests` and `leaves`, in this order."""
        return [*self.tests.values(), *self.leaves.values()]

    def decode(self, x: FloatArray) -> dict[int, tuple[str, int]]:
        """Tree of a solution: node -> ("test", feature) or ("leaf", class), for the nodes that exist.

        Parameters
        ----------
        x : (n_columns,) float64
            Values of `columns`, or more.
        """
        at = dict(zip([*(("test", *key) for key in self.tests), *(("leaf", *key) for key in self.leaves)], x))  # noqa: B905
        return {n: (kind, int(which)) for (kind, n, which), value in at.items() if value > 0.5}


def build(problem: TreeProblem) -> FlowTree:
    """Build the model of a tree problem."""
    inner = range(1, 2**problem.depth)
    last = range(2**problem.depth, 2 ** (problem.depth + 1))
    nodes = [*inner, *last]
    groups, features, classes = range(len(problem.weight)), range(problem.bits.shape[1]), range(problem.n_classes)
    model = pyo.ConcreteModel(name="flowoct")
    model.b = pyo.Var(inner, features, domain=pyo.Binary)  # (10)
    model.p = pyo.Var(nodes, classes, domain=pyo.Binary)
    model.z = pyo.Var(groups, nodes, bounds=lambda _, i, n: (0.0, 1.0 if n == 1 else None))  # (6)
    model.e = pyo.Var(groups, nodes, bounds=(0.0, None))

    @model.Constraint(nodes)
    def test_or_leaf(m: pyo.ConcreteModel, n: int) -> Any:  # (2), (3)
        tests = [(1.0, m.b[n, f]) for f in features] if n in inner else []
        ends = [(1.0, m.p[a, k]) for a in (n, *_above(n)) for k in classes]
        return (1.0, linear(tests + ends), 1.0)

    @model.Constraint(groups, nodes)
    def flow(m: pyo.ConcreteModel, i: int, n: int) -> Any:  # (4), (5)
        out = [(-1.0, m.z[i, 2 * n]), (-1.0, m.z[i, 2 * n + 1])] if n in inner else []
        return (0.0, linear([(1.0, m.z[i, n]), (-1.0, m.e[i, n]), *out]), 0.0)

    @model.Constraint(groups, inner)
    def goes_left(m: pyo.ConcreteModel, i: int, n: int) -> Any:  # (7)
        tests = [(-1.0, m.b[n, f]) for f in features if not problem.bits[i, f]]
        return (None, linear([(1.0, m.z[i, 2 * n]), *tests]), 0.0)

    @model.Constraint(groups, inner)
    def goes_right(m: pyo.ConcreteModel, i: int, n: int) -> Any:  # (8)
        tests = [(-1.0, m.b[n, f]) for f in features if problem.bits[i, f]]
        return (None, linear([(1.0, m.z[i, 2 * n + 1]), *tests]), 0.0)

    @model.Constraint(groups, nodes)
    def ends_in_own_class(m: pyo.ConcreteModel, i: int, n: int) -> Any:  # (9)
        return (None, linear([(1.0, m.e[i, n]), (-1.0, m.p[n, int(problem.label[i])])]), 0.0)

    rows = [(-float(problem.weight[i]), model.e[i, n]) for i in groups for n in nodes]
    size = [(problem.penalty, model.b[n, f]) for n in inner for f in features] if problem.penalty else []
    model.loss = pyo.Objective(expr=linear(rows + size, float(problem.weight.sum()) + problem.penalty))  # (1)
    return FlowTree(model, dict(model.b.items()), dict(model.p.items()))


def _above(n: int) -> list[int]:
    """Nodes on the way from a node's parent to the root."""
    return [n >> k for k in range(1, n.bit_length())]

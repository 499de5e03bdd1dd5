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
``v[f]``       := least loss of a tree of depth 3 at most with feature f at the root, by counting
``v[k]``       := loss of the root as a leaf of class k
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
    & b, p \in \{0, 1\}, \quad z, e \ge 0 & & \quad (10) \\
    & (1) \ge \textstyle\sum_f v_f b_{1f} + \sum_k v_k p_{1k} & \text{depth 3} & \quad (11)

A tree with as many tests as (1) counts has one leaf more; the penalty is in rows, for each leaf. With b and p fixed the
rows are flows in a tree with capacities 0 and 1, so z and e need no integrality.

(11) is not part of the paper. The relaxation of (1)-(10) sends every row to a leaf of its own class, whatever it tests:
its bound is near 0 errors. Below a test at the root two trees of depth 2 are independent of each other, and the best of
each is found by counting rows for every pair of features, which is as much work as a few products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray

from ocf.arrays import FloatArray
from ocf.formulations.blocks.cells import linear

#: Depth of the trees whose losses by root are counted: two levels below the root.
COUNTED = 3


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
    flows, ends : dict of (group, node) to variable
        z and e
    """

    model: pyo.ConcreteModel
    tests: dict[tuple[int, int], Any]
    leaves: dict[tuple[int, int], Any]
    flows: dict[tuple[int, int], Any]
    ends: dict[tuple[int, int], Any]

    @property
    def columns(self) -> list[Any]:
        """Variables of `tests` and `leaves`, in this order."""
        return [*self.tests.values(), *self.leaves.values()]

    @property
    def all_columns(self) -> list[Any]:
        """The same, and behind them the variables of `flows` and `ends`."""
        return [*self.columns, *self.flows.values(), *self.ends.values()]

    def start(self, problem: TreeProblem, root: Any, split: Callable[[Any], Any]) -> FloatArray:
        """Values of `all_columns` for a tree that is known, (n_columns,).

        Parameters
        ----------
        problem : TreeProblem
        root : object
            Node of the tree.
        split : callable
            Feature, left and right child of a node, or None for a leaf, which gives its most frequent class.
        """
        parts = self.tests, self.leaves, self.flows, self.ends
        ones: list[set[tuple[int, int]]] = [set(), set(), set(), set()]
        waiting = [(1, root, np.arange(len(problem.weight)))]
        while waiting:
            n, node, groups = waiting.pop()
            parted = split(node)
            if parted is not None:
                feature, left, right = parted
                ones[0].add((n, int(feature)))
                bit = problem.bits[groups, feature] > 0
                waiting += [(2 * n, left, groups[~bit]), (2 * n + 1, right, groups[bit])]
                continue
            label = problem.label[groups]
            best = int(np.bincount(label, problem.weight[groups], problem.n_classes).argmax())
            ones[1].add((n, best))
            own = groups[label == best].tolist()
            ones[2] |= {(i, m) for i in own for m in (n, *_above(n))}
            ones[3] |= {(i, n) for i in own}
        return np.array([float(key in one) for part, one in zip(parts, ones, strict=True) for key in part])

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
    if problem.depth == COUNTED:
        of_tests, of_leaves = root_losses(problem)
        roots = [(-v, model.b[1, f]) for f, v in enumerate(of_tests.tolist())]
        roots += [(-v, model.p[1, k]) for k, v in enumerate(of_leaves.tolist())]
        constant = float(problem.weight.sum()) + problem.penalty
        model.best_below_root = pyo.Constraint(expr=(-constant, linear(rows + size + roots), None))  # (11)
    return FlowTree(model, *(dict(part.items()) for part in (model.b, model.p, model.z, model.e)))


def root_losses(problem: TreeProblem) -> tuple[FloatArray, FloatArray]:
    """Least loss of the trees with each feature at the root, (n_features,), and of a leaf of each class, (n_classes,).

    Trees below the root have a depth of 2 at most.
    """
    counts = np.zeros((len(problem.weight), problem.n_classes))
    counts[np.arange(len(counts)), problem.label] = problem.weight
    bits, penalty = problem.bits.astype(float), problem.penalty
    tests = np.array([2 * penalty + _below(bits, counts, column > 0.5, penalty) for column in bits.T]).reshape(-1)
    return tests, penalty + counts.sum() - counts.sum(axis=0)


def _below(bits: FloatArray, counts: FloatArray, right: NDArray[np.bool_], penalty: float) -> float:
    """Least loss of the two trees of depth 2 at most below a test, without the leaf that each has at least."""
    return sum(_of_depth_2(bits[side], counts[side], penalty) for side in (~right, right))


def _of_depth_2(bits: FloatArray, counts: FloatArray, penalty: float) -> float:
    """Least errors of a tree of depth 2 at most, with the penalty of each of its tests.

    Parameters
    ----------
    bits : (n, n_features) float64
    counts : (n, n_classes) float64
        Rows of each class in each group.
    penalty : float
    """
    every = counts.sum(axis=0)
    both = np.array([(bits * c[:, None]).T @ bits for c in counts.T])  # (class, f, g): rows with f and g
    first = np.diagonal(both, axis1=1, axis2=2)[:, :, None]
    second = np.swapaxes(first, 1, 2)
    leaves = {(1, 1): both, (1, 0): first - both, (0, 1): second - both}
    leaves[0, 0] = every[:, None, None] - first - second + both
    # on each side of a first test the best second one, or none
    sides = []
    for s in (0, 1):
        split = _errors(leaves[s, 0]) + _errors(leaves[s, 1])
        whole = _errors(first[:, :, 0] if s else every[:, None] - first[:, :, 0])
        sides.append(np.minimum(split.min(axis=1, initial=np.inf) + penalty, whole))
    return float(min(_errors(every), penalty + (sides[0] + sides[1]).min(initial=np.inf)))


def _errors(counts: FloatArray) -> FloatArray:
    """Rows that a leaf of the most frequent class gets wrong; classes along the first axis."""
    return np.asarray(counts.sum(axis=0) - counts.max(axis=0))


def _above(n: int) -> list[int]:
    """Nodes on the way from a node's parent to the root."""
    return [n >> k for k in range(1, n.bit_length())]

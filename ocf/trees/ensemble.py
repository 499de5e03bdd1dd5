"""A tree ensemble as plain arrays: what every reader produces and everything else reads.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``n_nodes``            nodes of all trees together, inner nodes and leaves
``n_leaves``           leaves of all trees together, numbered in the order of their trees
``n_outputs``          scores per row: one per class, or one margin, or one regression value
=====================  =============================================================================

The score of a row ``x`` is ``base_score + sum_t tree_weights[t] * leaf_values[leaf of x in tree t]`` in exact
arithmetic; :attr:`Ensemble.rounding` bounds how far the library's own floating-point sum may lie from it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from ocf.arrays import IntArray
from ocf.errors import ModelError
from ocf.support.amounts import plain_value
from ocf.support.documents import fit
from ocf.support.kept import Kept
from ocf.support.schemas import ArraySchema, EnsembleSchema, FinalSchema
from ocf.trees.totals import Term, Total, plain, plain_term, term_of, total_of

if TYPE_CHECKING:
    from ocf.arrays import BoolArray, FloatArray
    from ocf.trees.traversal import TreeArrays

#: How many of the things that others work out from an ensemble it keeps: numbers for each leaf.
MOST_DERIVED = 8


class SplitKind(IntEnum):
    """What a node does with a row."""

    LEAF = 0
    #: left exactly when ``x[feature] <= threshold``, compared in float64
    AXIS = 1
    #: left exactly when the category code ``x[feature]`` is in the node's set
    SUBSET = 2
    #: left exactly when ``weights . x <= threshold``
    OBLIQUE = 3


@dataclass(frozen=True)
class Decision:
    """How the scores of a row become the model's answer.

    Attributes
    ----------
    kind : {"argmax", "threshold", "value"}
        ``argmax``: the class of the largest score, the lowest index on a tie. ``threshold``: one score; class 1
        when it exceeds `threshold`, or reaches it if `tie_is_positive`. ``value``: a regression value.
    classes : tuple
        Class labels as the user's model names them, in the order of their indices. Empty for ``value``.
    threshold : float
        Of kind ``threshold``, on the scale of the score.
    tie_is_positive : bool
        Whether a score exactly at the threshold gives class 1.
    link : {"identity", "logistic", "softmax", "exp", "mean", "normalized", "signed_square"}
        From the score to what the library shows as probability or value (``mean``: scores are probabilities;
        ``normalized``: totals are, once divided by their sum; ``signed_square``: ``sign(s) s**2``).
    slack : float
        Width of the zone around a tie in which the link's own rounding may decide, on the scale of the score.
    totals : tuple of Total
        Of models that stand on others: what the library shows of the scores, one total per class, or that of the value.
        Then ``argmax`` compares them, and the link says whether they are probabilities (``mean``, ``normalized``).
        Under ``normalized`` there may be several rounds of them, each divided by its own sum, whose mean is shown.
    margin : Total or None
        Of kind ``threshold``: what is compared with `threshold`, in the place of the one score.
    final : FinalTrees or None
        Trees that are given functions of the scores, and whose decision, the same as this one, is the answer.
    """

    kind: Literal["argmax", "threshold", "value"]
    classes: tuple[Any, ...] = ()
    threshold: float = 0.0
    tie_is_positive: bool = False
    link: Literal["identity", "logistic", "softmax", "exp", "mean", "normalized", "signed_square"] = "identity"
    slack: float = 0.0
    totals: tuple[Total, ...] = ()
    margin: Total | None = None
    final: FinalTrees | None = None

    @property
    def stands_on_others(self) -> bool:
        """Whether the answer is a function of several models' scores, or of one that it does not follow directly."""
        return bool(self.totals) or self.margin is not None or self.final is not None

    @property
    def rounds(self) -> tuple[tuple[Total, ...], ...]:
        """The totals, one per class in each round."""
        size = max(len(self.classes), 1)
        return tuple(self.totals[k : k + size] for k in range(0, len(self.totals), size))


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees of all kinds in one struct of arrays.

    Attributes
    ----------
    feature_names : tuple of str
        Names of the model's input columns.
    tree_offsets : (n_trees + 1,) int64
        Nodes of tree t are ``tree_offsets[t]:tree_offsets[t + 1]``; the first of them is its root.
    kind : (n_nodes,) uint8
        A `SplitKind`.
    feature : (n_nodes,) int32
        Column that an AXIS or SUBSET split tests; -1 elsewhere.
    threshold : (n_nodes,) float64
        Of AXIS and OBLIQUE splits: the largest float64 that the library itself sends left. NaN elsewhere.
    left, right : (n_nodes,) int32
        Children, counted over all nodes; -1 at leaves.
    leaf : (n_nodes,) int32
        Number of the leaf; -1 at inner nodes. Leaves of a tree are numbered consecutively, trees in order.
    leaf_values : (n_leaves, n_outputs) float64
        Before multiplication by the tree's weight.
    tree_weights : (n_trees,) float64
    base_score : (n_outputs,) float64
    decision : Decision
    precision : {"float32", "float64"}
        In which the library sums the scores.
    missing_left : (n_nodes,) bool or None
        Where NaN goes. None when the model has no rule for NaN.
    set_index : (n_nodes,) int32
        Row of `sets` for SUBSET splits, -1 elsewhere.
    sets : (n_sets, n_codes) bool
        Category codes that go left; a code outside the table goes right.
    oblique_index : (n_nodes,) int32
        Row of the sparse weight matrix for OBLIQUE splits, -1 elsewhere. The library computes the total of a row that
        several nodes share once.
    oblique_indptr, oblique_indices, oblique_data : arrays
        The weight matrix (n_oblique, n_features) in compressed sparse rows.
    oblique_codes : (n_weights,) int32
        -1: the weight multiplies the feature's value; otherwise it counts where the feature's value is this code.
    oblique_slack : (n_oblique,) float64
        By how much more than the rounding of the sum the library's own total may differ from this one.
    lines : (n_lines, 2) int64
        Trees of a single oblique split, and an output of each: to that score the tree adds what the split's total
        exceeds its threshold by, in the place of a leaf's value. Of one row's problem the values of the two leaves are
        the ends between which that lies.
    """

    feature_names: tuple[str, ...]
    tree_offsets: IntArray
    kind: NDArray[np.uint8]
    feature: NDArray[np.int32]
    threshold: FloatArray
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaf: NDArray[np.int32]
    leaf_values: FloatArray
    tree_weights: FloatArray
    base_score: FloatArray
    decision: Decision
    precision: Literal["float32", "float64"] = "float64"
    missing_left: BoolArray | None = None
    set_index: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    sets: BoolArray = field(default_factory=lambda: np.zeros((0, 0), bool))
    oblique_index: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    oblique_indptr: IntArray = field(default_factory=lambda: np.zeros(1, np.int64))
    oblique_indices: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    oblique_data: FloatArray = field(default_factory=lambda: np.zeros(0, np.float64))
    oblique_codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    oblique_slack: FloatArray = field(default_factory=lambda: np.zeros(0, np.float64))
    lines: IntArray = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def __post_init__(self) -> None:
        _fill(self)
        _check_shapes(self)
        _check_numbers(self)

    @property
    def n_features(self) -> int:
        """Number of model columns."""
        return len(self.feature_names)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_offsets) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return len(self.leaf_values)

    @property
    def n_outputs(self) -> int:
        """Scores per row."""
        return self.leaf_values.shape[1]

    @cached_property
    def node_tree(self) -> IntArray:
        """Tree of each node, (n_nodes,)."""
        return np.repeat(np.arange(self.n_trees), np.diff(self.tree_offsets))

    @cached_property
    def parent(self) -> NDArray[np.int32]:
        """Parent of each node, -1 at roots, (n_nodes,)."""
        parent = np.full(len(self.kind), -1, np.int32)
        inner = np.flatnonzero(self.kind != SplitKind.LEAF)
        parent[self.left[inner]] = parent[self.right[inner]] = inner
        return parent

    @cached_property
    def leaf_node(self) -> IntArray:
        """Node of each leaf, (n_leaves,)."""
        return np.flatnonzero(self.kind == SplitKind.LEAF)

    @cached_property
    def leaf_tree(self) -> IntArray:
        """Tree of each leaf, (n_leaves,)."""
        return self.node_tree[self.kind == SplitKind.LEAF]

    @cached_property
    def leaf_offsets(self) -> IntArray:
        """Leaves of tree t are ``leaf_offsets[t]:leaf_offsets[t + 1]``, (n_trees + 1,)."""
        return np.searchsorted(self.leaf_tree, np.arange(self.n_trees + 1))

    @cached_property
    def contributions(self) -> FloatArray:
        """Leaf values times the tree's weight, (n_leaves, n_outputs)."""
        return self.leaf_values * self.tree_weights[self.leaf_tree, None]

    @cached_property
    def derived(self) -> Kept[Hashable, Any]:
        """What others have worked out from these trees alone, for all rows, by what was asked."""
        return Kept(MOST_DERIVED)

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Depth of each node, the root's is 0, (n_nodes,)."""
        depth = np.zeros(len(self.kind), np.int32)
        level = self.tree_offsets[:-1]
        while len(level := level[self.kind[level] != SplitKind.LEAF]):
            children = np.concatenate([self.left[level], self.right[level]])
            depth[children] = np.tile(depth[level], 2) + 1
            level = children
        return depth

    @cached_property
    def rounding(self) -> float:
        """Bound on the distance between the library's score and the exact one, and on the link's rounding around a tie.

        The standard bound of recursive summation in any order, ``(n + 3) u sum |v|``, with the largest leaf of
        every tree for ``|v|``; one operation more per term covers the multiplication by a weight or a division.
        """
        unit = 2.0**-24 if self.precision == "float32" else 2.0**-53
        largest = np.maximum.reduceat(np.abs(self.contributions).max(axis=1), self.leaf_offsets[:-1])
        return float((self.n_trees + 3) * unit * (largest.sum() + np.abs(self.base_score).max()) + self.decision.slack)

    def apply(self, x: FloatArray) -> IntArray:
        """Leaf that each row reaches in each tree.

        Parameters
        ----------
        x : (n, n_features) float64

        Returns
        -------
        (n, n_trees) int64
            Leaf numbers.
        """
        from ocf.trees.traversal import PlaneArrays, contiguous, leaves_by_totals, leaves_reached

        asked = self.for_kernel(np.asarray(x, np.float64))
        if not self.is_oblique:
            return cast(IntArray, leaves_reached(*asked))
        planes: list[NDArray[Any]] = [self.oblique_index, self.oblique_indptr, self.oblique_indices]
        planes += [self.oblique_codes, self.oblique_data]
        return cast(IntArray, leaves_by_totals(*asked, PlaneArrays(*map(contiguous, planes))))

    def for_kernel(self, x: FloatArray) -> tuple[FloatArray, TreeArrays]:
        """What kernels that send rows down the trees take."""
        from ocf.trees.traversal import TreeArrays, contiguous

        missing = np.zeros(0, bool) if self.missing_left is None else self.missing_left
        arrays: list[NDArray[Any]] = [self.tree_offsets[:-1], self.kind, self.feature, self.threshold, self.left]
        arrays += [self.right, self.leaf, self.set_index, self.sets, missing]
        return contiguous(x), TreeArrays(*map(contiguous, arrays))

    def goes_left(self, x: FloatArray, rows: IntArray, at: IntArray) -> BoolArray:
        """Whether rows go left at inner nodes.

        Parameters
        ----------
        x : (n, n_features) float64
        rows : (m,) int64
            Rows of `x`.
        at : (m,) int64
            The node at which each of them stands.

        Returns
        -------
        (m,) bool
        """
        kind = self.kind[at]
        value = x[rows, np.maximum(self.feature[at], 0)]
        goes = value <= self.threshold[at]
        subset = kind == SplitKind.SUBSET
        if subset.any():
            code = np.where(np.isfinite(value[subset]), value[subset], -1).astype(np.int64)
            known = (code >= 0) & (code < self.sets.shape[1])
            goes[subset] = known & self.sets[self.set_index[at[subset]], np.where(known, code, 0)]
        oblique = np.flatnonzero(kind == SplitKind.OBLIQUE)
        total = self.oblique_index[at[oblique]]
        for k in np.unique(total):  # several nodes may share it
            here = oblique[total == k]
            goes[here] = self.oblique_terms(int(at[here[0]]), x[rows[here]]).sum(axis=1) <= self.threshold[at[here]]
        if self.missing_left is not None:
            missing = np.isnan(value) & (kind != SplitKind.OBLIQUE)
            goes[missing] = self.missing_left[at[missing]]
        return goes

    @cached_property
    def is_oblique(self) -> bool:
        """Whether any split is oblique."""
        return bool((self.kind == SplitKind.OBLIQUE).any())

    def oblique_entries(self, v: int) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]:
        """Features, codes and weights of an oblique node."""
        span = slice(*self.oblique_indptr[self.oblique_index[v] :][:2])
        return self.oblique_indices[span], self.oblique_codes[span], self.oblique_data[span]

    def oblique_terms(self, v: int, x: FloatArray) -> FloatArray:
        """Summands of an oblique node's total for each row, (n, n_entries).

        Parameters
        ----------
        v : int
            Node.
        x : (n, n_features) float64
        """
        features, codes, weights = self.oblique_entries(v)
        values = x[:, features]
        return np.asarray(weights * np.where(codes < 0, values, values == codes))

    @cached_property
    def oblique_rounding(self) -> FloatArray:
        """Part of its products' magnitudes and its threshold by which a library's total may err, (n_oblique,).

        A sum of n products in any order, with or without fused operations, errs by at most ``n u / (1 - n u)`` times
        the sum of their magnitudes (Higham, *Accuracy and stability of numerical algorithms*, section 3.1); one term
        more lets the library add a bias and compare with 0.
        """
        share = (np.diff(self.oblique_indptr) + 2) * 2.0**-53
        return np.asarray(share / (1 - share))

    def oblique_error_bound(self, v: Any, sizes: FloatArray | float) -> Any:
        """Bound on how far a floating-point total of an oblique node is from the exact one, however the library sums.

        Parameters
        ----------
        v : int or int array
            Node, or nodes that broadcast with the sizes.
        sizes : float or (n,) float64
            Sums of the magnitudes of the products, ``sum |w_j x_j|``.
        """
        k = self.oblique_index[v]
        return self.oblique_rounding[k] * (sizes + abs(self.threshold[v])) + self.oblique_slack[k]

    def leaves_below(self, v: int) -> IntArray:
        """Leaves that are reached through a node."""
        found, level = [], np.array([v])
        while len(level):
            is_leaf = self.kind[level] == SplitKind.LEAF
            found.append(self.leaf[level[is_leaf]])
            inner = level[~is_leaf]
            level = np.concatenate([self.left[inner], self.right[inner]])
        return np.sort(np.concatenate(found)).astype(np.int64)

    def scores(self, x: FloatArray) -> FloatArray:
        """Scores of rows, summed in float64.

        Parameters
        ----------
        x : (n, n_features) float64

        Returns
        -------
        (n, n_outputs) float64
        """
        leaves = self.apply(x)
        if len(self.lines):
            own = np.delete(leaves, self.lines[:, 0], axis=1)
            return self.base_score + self.contributions[own].sum(axis=1) + _line_scores(self, x)
        return self.base_score + self.contributions[leaves].sum(axis=1)

    def decide(self, scores: FloatArray) -> NDArray[Any]:
        """Class index (int64), or the value itself for regression, from scores (n, n_outputs)."""
        rule = self.decision
        if rule.final is not None:
            return rule.final.trees.decide(rule.final.scores(scores))
        if rule.totals and rule.kind != "threshold":
            shown = shown_totals(rule, scores) if len(rule.rounds) > 1 else _side_by_side(rule.totals, scores)
            return shown.argmax(axis=1) if rule.kind == "argmax" else shown[:, 0]
        if rule.kind == "argmax":
            return scores.argmax(axis=1)
        if rule.kind == "threshold":
            s = scores[:, 0] if rule.margin is None else rule.margin(scores)
            return (s >= rule.threshold if rule.tie_is_positive else s > rule.threshold).astype(np.int64)
        return scores[:, 0]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of all arrays; `from_dict` is its inverse."""
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                value = {
                    "dtype": str(value.dtype),
                    "shape": list(value.shape),
                    "data": value.ravel().tolist(),
                }
            elif isinstance(value, Decision):
                value = {g.name: getattr(value, g.name) for g in fields(value)} | {
                    "totals": [plain(total) for total in value.totals],
                    "margin": None if value.margin is None else plain(value.margin),
                    "final": None if value.final is None else value.final.to_dict(),
                }
                value["classes"] = [plain_value(c) for c in value["classes"]]
            out[f.name] = value
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ensemble:
        """Ensemble from what `to_dict` wrote.

        Raises
        ------
        ModelError
            The arrays do not describe trees.
        """
        return cls.from_schema(fit(data, EnsembleSchema, "the ensemble", ModelError))

    @classmethod
    def from_schema(cls, found: EnsembleSchema) -> Ensemble:
        """Ensemble from plain values that are known to have the right types.

        Raises
        ------
        ModelError
            The arrays do not describe trees.
        """
        made = asdict(found)
        if found.oblique_codes is None:
            made["oblique_codes"] = np.full(len(found.oblique_data.data), -1, np.int32)
        if found.lines is None:
            made["lines"] = np.zeros((0, 2), np.int64)
        if found.oblique_slack is None:
            made["oblique_slack"] = np.zeros(max(len(found.oblique_indptr.data) - 1, 0))
        for name, value in made.items():
            if isinstance(value, ArraySchema):
                made[name] = np.array(value.data, dtype=value.dtype).reshape(value.shape)
        rule = found.decision
        decision = asdict(rule) | {
            "classes": tuple(rule.classes),
            "totals": tuple(map(total_of, rule.totals)),
            "margin": None if rule.margin is None else total_of(rule.margin),
            "final": None if rule.final is None else FinalTrees.from_schema(rule.final),
        }
        made |= {"feature_names": tuple(found.feature_names), "decision": Decision(**decision)}
        ensemble = cls(**made)
        check_structure(ensemble)
        return ensemble


def _line_scores(ensemble: Ensemble, x: FloatArray) -> FloatArray:
    """What lines add to the scores, (n, n_outputs)."""
    out = np.zeros((len(x), ensemble.n_outputs))
    for tree, output in ensemble.lines.tolist():
        root = int(ensemble.tree_offsets[tree])
        out[:, output] += ensemble.oblique_terms(root, x).sum(axis=1) - ensemble.threshold[root]
    return out


def line_rounding(ensemble: Ensemble, x: FloatArray) -> FloatArray:
    """Bound on what rounding does to the lines' part of any score, (n,).

    Parameters
    ----------
    ensemble : Ensemble
    x : (n, n_features) float64
    """
    out = np.zeros(len(x))
    for root in ensemble.tree_offsets[ensemble.lines[:, 0]].tolist():
        out += 2 * ensemble.oblique_error_bound(root, np.abs(ensemble.oblique_terms(root, x)).sum(axis=1))
    return out


def _side_by_side(totals: Sequence[Total], scores: FloatArray) -> FloatArray:
    return np.column_stack([total(scores) for total in totals])


def shown_totals(rule: Decision, scores: FloatArray) -> FloatArray:
    """What totals show of rows of scores, one column per class or value.

    Parameters
    ----------
    rule : Decision
        With totals.
    scores : (n, n_outputs) float64
    """
    parts = []
    for totals in rule.rounds:
        shown = _side_by_side(totals, scores)
        if rule.link == "normalized":  # where all are 0, all are as probable
            size = shown.sum(axis=1, keepdims=True)
            shown = np.where(size > 0, shown / np.where(size > 0, size, 1.0), 1 / shown.shape[1])
        parts.append(shown)
    return parts[0] if len(parts) == 1 else np.asarray(sum(parts) / len(parts))


#: What the splits of an ensemble are, in the order of its nodes.
_SPLITS = (
    "tree_offsets",
    "kind",
    "feature",
    "threshold",
    "left",
    "right",
    "leaf",
    "missing_left",
    "set_index",
    "sets",
    "oblique_index",
    "oblique_indptr",
    "oblique_indices",
    "oblique_data",
    "oblique_codes",
)


def splits_alike(first: Ensemble, second: Ensemble) -> bool:
    """Whether two ensembles send every row to the same leaves, whatever these are worth, node by node.

    Parameters
    ----------
    first, second : Ensemble
    """
    pairs = [(getattr(first, name), getattr(second, name)) for name in _SPLITS]
    return all(
        a is b or (a is not None and b is not None and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
        for a, b in pairs
    )


def values_alike(first: Ensemble, second: Ensemble) -> bool:
    """Whether two ensembles of the same splits give every row the same answer, as far as that is told at once.

    Parameters
    ----------
    first, second : Ensemble
    """
    one, other = first.decision, second.decision
    if one is not other and (one.stands_on_others or other.stands_on_others or one != other):
        return False
    pairs = [(getattr(first, name), getattr(second, name)) for name in ("leaf_values", "tree_weights", "base_score")]
    return first.precision == second.precision and all(a is b or np.array_equal(a, b) for a, b in pairs)


@dataclass(frozen=True)
class FinalTrees:
    """Trees on top of others, as a stack has them: their columns are functions of the others' scores.

    Attributes
    ----------
    inputs : tuple of Term
        Of each column.
    trees : Ensemble
        With axis splits, and a decision of their own.
    """

    inputs: tuple[Term, ...]
    trees: Ensemble

    def columns(self, scores: FloatArray) -> FloatArray:
        """What the trees are given for rows of scores, (n, n_outputs) -> (n, n_inputs)."""
        return np.column_stack([term(scores[:, term.output]) for term in self.inputs])

    def scores(self, scores: FloatArray) -> FloatArray:
        """Scores of the trees for rows of the others' scores, (n, n_outputs) -> (n, n_final_outputs)."""
        return self.trees.scores(self.columns(scores))

    def between(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds on what the trees are given for scores in intervals, monotone functions of the ends.

        Parameters
        ----------
        low, high : (n, n_outputs) float64

        Returns
        -------
        least, most : (n, n_inputs) float64
        """
        least, most = np.empty((2, len(low), len(self.inputs)))
        for j, term in enumerate(self.inputs):
            ends = (low, high) if term.rises else (high, low)
            first, last = (end[:, term.output] for end in ends)
            least[:, j], most[:, j] = term.between(first, first, False)[0], term.between(last, last, False)[1]
        return least, most

    def sure(self, low: FloatArray, high: FloatArray) -> BoolArray:
        """Rows of intervals of scores whose leaves are the same throughout, (n,).

        Parameters
        ----------
        low, high : (n, n_outputs) float64
        """
        least, most = self.between(low, high)
        return np.asarray((self.trees.apply(least) == self.trees.apply(most)).all(axis=1))

    @cached_property
    def leaf_ranges(self) -> tuple[FloatArray, FloatArray]:
        """Between which numbers a leaf holds each column, ``low < column <= high``, each (n_leaves, n_inputs)."""
        trees = self.trees
        low = np.full((len(trees.kind), trees.n_features), -np.inf)
        high = np.full_like(low, np.inf)
        for v in np.argsort(trees.depth, kind="stable").tolist():
            if trees.kind[v] == SplitKind.LEAF:
                continue
            left, right, j, at = trees.left[v], trees.right[v], trees.feature[v], trees.threshold[v]
            low[[left, right]], high[[left, right]] = low[v], high[v]
            high[left, j], low[right, j] = min(high[v, j], at), max(low[v, j], at)
        return low[trees.leaf_node], high[trees.leaf_node]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {"inputs": [plain_term(term) for term in self.inputs], "trees": self.trees.to_dict()}

    @classmethod
    def from_schema(cls, found: FinalSchema) -> FinalTrees:
        """Final trees from plain values that are known to have the right types.

        Raises
        ------
        ModelError
            They do not describe trees on top of others.
        """
        out = cls(tuple(map(term_of, found.inputs)), Ensemble.from_schema(found.trees))
        trees = out.trees
        plain_splits = np.isin(trees.kind, (SplitKind.LEAF, SplitKind.AXIS)).all()
        _require(plain_splits and not trees.decision.stands_on_others, "final trees have splits or decisions of others")
        _require(len(out.inputs) == trees.n_features, f"{len(out.inputs)} functions are given to final trees")
        return out


# -- arrays from a file ----------------------------------------------------------------------------------------


def check_structure(ensemble: Ensemble) -> None:
    """Refuse arrays that do not describe trees, beyond what every `Ensemble` is checked for.

    Raises
    ------
    ModelError
        The message names the array.
    """
    _check_decision(ensemble)
    _check_trees(ensemble)
    _check_tables(ensemble)


def _fill(e: Ensemble) -> None:
    """Give what was not said the values that mean that there is none."""
    n = len(e.kind)
    for name in ("set_index", "oblique_index"):
        if len(getattr(e, name)) == 0 and n:
            object.__setattr__(e, name, np.full(n, -1, np.int32))
    if len(e.oblique_codes) == 0:
        object.__setattr__(e, "oblique_codes", np.full(len(e.oblique_data), -1, np.int32))
    if len(e.oblique_slack) == 0:
        object.__setattr__(e, "oblique_slack", np.zeros(len(e.oblique_indptr) - 1))


def _check_shapes(e: Ensemble) -> None:
    n = len(e.kind)
    offsets = e.tree_offsets
    if len(offsets) > 1 and (offsets[0] != 0 or offsets[-1] != n or np.any(offsets[1:] <= offsets[:-1])):
        raise ModelError("tree_offsets do not divide the nodes into trees: the model is corrupt")
    for name in ("feature", "threshold", "left", "right", "leaf", "set_index", "oblique_index"):
        if getattr(e, name).shape != (n,):
            raise ModelError(f"ensemble array {name!r} has shape {getattr(e, name).shape}, not ({n},)")
    if e.n_trees == 0 or n == 0:
        raise ModelError("the ensemble has no trees: fit the model before reading it")
    if e.leaf_values.ndim != 2 or e.base_score.shape != (e.n_outputs,):
        raise ModelError("leaf_values must be (n_leaves, n_outputs) and base_score (n_outputs,)")
    inner = e.kind != SplitKind.LEAF
    if not np.array_equal(e.leaf[~inner], np.arange(e.n_leaves)):
        raise ModelError("leaves must be numbered consecutively in the order of the nodes")
    start = np.repeat(e.tree_offsets[:-1], np.diff(e.tree_offsets))
    stop = np.repeat(e.tree_offsets[1:], np.diff(e.tree_offsets))
    for child in (e.left, e.right):
        if np.any(child[inner] <= start[inner]) or np.any(child[inner] >= stop[inner]):
            raise ModelError("a child of a node lies outside its tree: the model is corrupt")


def _check_numbers(e: Ensemble) -> None:
    tested = np.isin(e.kind, (SplitKind.AXIS, SplitKind.SUBSET))
    if np.any(e.feature[tested] < 0) or np.any(e.feature[tested] >= e.n_features):
        raise ModelError(f"a split tests a column outside 0..{e.n_features - 1}: the model is corrupt")
    if not (np.isfinite(e.leaf_values).all() and np.isfinite(e.tree_weights).all()):
        raise ModelError("a leaf value or tree weight is not finite: the model is corrupt")
    if np.isnan(e.threshold[np.isin(e.kind, (SplitKind.AXIS, SplitKind.OBLIQUE))]).any():
        raise ModelError("a threshold is NaN: the model is corrupt")
    if not (np.isfinite(e.oblique_data).all() and np.isfinite(e.oblique_slack).all()):
        raise ModelError("a weight of a split is not finite: the model is corrupt")


def _require(holds: Any, what: str) -> None:
    if not holds:
        raise ModelError(f"{what}: the model is corrupt")


def _check_decision(e: Ensemble) -> None:
    rule, n = e.decision, e.n_outputs
    outputs = {"argmax": len(rule.classes), "threshold": 1, "value": 1}[rule.kind]
    labels = {"argmax": max(n, 2), "threshold": 2, "value": 0}[rule.kind]
    if rule.final is not None:
        own = rule.final.trees.decision
        _require((own.kind, own.link, own.threshold) == (rule.kind, rule.link, rule.threshold), "final trees misfit")
        outputs, labels = n, len(own.classes)
        _require(all(0 <= t.output < n for t in rule.final.inputs), "final trees name a score that does not exist")
    elif rule.stands_on_others:
        outputs, labels = n, len(rule.classes) if rule.kind == "argmax" else labels
        shown = {"argmax": {len(rule.classes)}, "threshold": {0, 2}, "value": {1}}[rule.kind]
        several = rule.link == "normalized" and rule.totals and len(rule.totals) % len(rule.classes) == 0
        _require(
            (several or len(rule.totals) in shown) and (rule.kind == "threshold") == (rule.margin is not None),
            "totals misfit",
        )
        for total in filter(None, (*rule.totals, rule.margin)):
            _require(all(0 <= term.output < n for term in total.terms), "a total names a score that does not exist")
    _require(n == outputs and len(rule.classes) == labels, f"{n} scores and {len(rule.classes)} classes do not fit")
    _require(len(set(map(str, rule.classes))) == len(rule.classes), "two classes have one label")
    numbers = (rule.threshold, rule.slack, *e.base_score.tolist())
    _require(np.isfinite(numbers).all(), "a base score or the threshold of the decision is not finite")
    _require(len(set(e.feature_names)) == e.n_features, "two columns have one name")


def _check_trees(e: Ensemble) -> None:
    n, offsets = len(e.kind), e.tree_offsets
    _require(e.tree_weights.shape == (e.n_trees,), f"there are {e.tree_weights.size} weights of {e.n_trees} trees")
    inner = e.kind != SplitKind.LEAF
    _require(len(e.leaf_values) == n - inner.sum(), "leaf_values do not fit the leaves")
    children = np.concatenate([e.left[inner], e.right[inner]])
    parents = np.bincount(children, minlength=n)
    parents[offsets[:-1]] += 1
    _require((parents == 1).all(), "a node has no parent, or several")
    level, reached = offsets[:-1], 0  # no node has two parents, so this ends
    while len(level):
        reached += len(level)
        level = level[inner[level]]
        level = np.concatenate([e.left[level], e.right[level]])
    _require(reached == n, "a node cannot be reached from the root of its tree")
    _require(np.isfinite(e.leaf_values).all() and e.leaf_values.shape[1], "leaf_values are empty or not finite")
    _require((e.leaf[inner] == -1).all(), "an inner node has the number of a leaf")
    _require(e.missing_left is None or e.missing_left.shape == (n,), "missing_left does not fit the nodes")


def _check_tables(e: Ensemble) -> None:
    subset, oblique = e.kind == SplitKind.SUBSET, e.kind == SplitKind.OBLIQUE
    _require(e.sets.ndim == 2, "sets is no table")
    rows = e.set_index[subset]
    _require(((rows >= 0) & (rows < len(e.sets))).all(), "set_index names a set that does not exist")
    pointers, size = e.oblique_indptr, len(e.oblique_data)
    ordered = pointers.ndim == 1 and len(pointers) and pointers[0] == 0 and pointers[-1] == size
    _require(ordered and (np.diff(pointers) >= 0).all(), "oblique_indptr does not divide the weights into rows")
    rows = e.oblique_index[oblique]
    _require(((rows >= 0) & (rows < len(pointers) - 1)).all(), "oblique_index names weights that do not exist")
    same = e.oblique_indices.shape == e.oblique_codes.shape == (size,) == e.oblique_data.shape
    _require(same and e.oblique_slack.shape == (len(pointers) - 1,), "the arrays of oblique splits do not fit")
    trees, outputs = e.lines.T if e.lines.shape[1:] == (2,) else (np.array([-1]), np.zeros(1))
    _require(((trees >= 0) & (trees < e.n_trees) & (outputs >= 0) & (outputs < e.n_outputs)).all(), "lines misfit")
    roots, sizes = e.tree_offsets[trees], np.diff(e.tree_offsets)[trees]
    _require((e.kind[roots] == SplitKind.OBLIQUE).all() and (sizes == 3).all(), "a line is no single hyperplane")
    columns = e.oblique_indices
    _require(((columns >= 0) & (columns < e.n_features)).all(), "an oblique split tests a column that does not exist")

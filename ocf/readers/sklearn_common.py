"""What the scikit-learn readers share: stacking trees, laying out rows, naming classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import DataError, ModelError, UnsupportedModelError
from ocf.readers.base import Rows, TreeModel
from ocf.readers.nesting import name_of
from ocf.trees.ensemble import Decision, Ensemble, SplitKind


@dataclass(frozen=True)
class Tree:
    """One tree, its nodes numbered from its own root.

    Attributes
    ----------
    left, right : (n,) int
        Children; -1 at leaves.
    feature : (n,) int
        Model column; anything at leaves.
    threshold : (n,) float64
        Largest float64 that goes left; anything at leaves and at category splits.
    values : (n, n_outputs) float64
        Anything at inner nodes.
    missing_left : (n,) bool
        Where NaN goes, if the model takes NaN.
    goes_left : (n, n_codes) bool or None
        Category codes that go left, read where `is_set` is true.
    is_set : (n,) bool or None
        The inner nodes that split on a set of categories.
    """

    left: IntArray
    right: IntArray
    feature: IntArray
    threshold: FloatArray
    values: FloatArray
    missing_left: BoolArray
    goes_left: BoolArray | None = None
    is_set: BoolArray | None = None


def stack_trees(
    trees: Sequence[Tree],
    *,
    feature_names: tuple[str, ...],
    weights: FloatArray,
    base_score: FloatArray,
    decision: Decision,
) -> Ensemble:
    """Join single trees, in their order, to one ensemble.

    Parameters
    ----------
    trees : sequence of Tree
    feature_names : tuple of str
    weights : (n_trees,) float64
    base_score : (n_outputs,) float64
    decision : Decision
    """
    if not trees:
        raise ModelError("the ensemble has no trees: fit the model before reading it")
    sizes = np.array([len(tree.left) for tree in trees])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shift = np.repeat(offsets[:-1], sizes)
    left = np.concatenate([tree.left for tree in trees])
    right = np.concatenate([tree.right for tree in trees])
    is_leaf = left < 0
    _check_children(left + shift, right + shift, ~is_leaf, offsets)
    kind = np.where(is_leaf, SplitKind.LEAF, SplitKind.AXIS).astype(np.uint8)
    is_set = np.concatenate([np.zeros(len(t.left), bool) if t.is_set is None else t.is_set for t in trees])
    kind[is_set] = SplitKind.SUBSET
    tables = [t.goes_left[t.is_set] for t in trees if t.goes_left is not None and t.is_set is not None]
    return Ensemble(
        feature_names=feature_names,
        tree_offsets=offsets,
        kind=kind,
        feature=np.where(is_leaf, -1, np.concatenate([tree.feature for tree in trees])).astype(np.int32),
        threshold=np.where(is_leaf | is_set, np.nan, np.concatenate([tree.threshold for tree in trees])),
        left=np.where(is_leaf, -1, left + shift).astype(np.int32),
        right=np.where(is_leaf, -1, right + shift).astype(np.int32),
        leaf=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        leaf_values=np.concatenate([tree.values for tree in trees])[is_leaf].astype(np.float64),
        tree_weights=np.asarray(weights, np.float64),
        base_score=np.asarray(base_score, np.float64),
        decision=decision,
        missing_left=np.concatenate([tree.missing_left for tree in trees]),
        set_index=np.where(is_set, np.cumsum(is_set) - 1, -1).astype(np.int32),
        sets=np.concatenate(tables) if is_set.any() else np.zeros((0, 0), bool),
    )


def threshold_tree(column: int, cuts: FloatArray, values: FloatArray) -> Tree:
    """A balanced tree of a column's thresholds.

    Parameters
    ----------
    column : int
    cuts : (n,) float64
        The thresholds, increasing.
    values : (n + 1, n_outputs) float64
        Of the leaves, by the number of thresholds below.
    """
    left: list[int] = []
    right: list[int] = []
    threshold: list[float] = []
    below: list[int] = []

    def grow(first: int, last: int) -> int:
        """The node for ``first`` to ``last`` thresholds below."""
        here = len(left)
        half = (first + last) // 2
        left.append(-1)
        right.append(-1)
        threshold.append(float(cuts[half]) if first < last else np.nan)
        below.append(first)
        if first < last:
            left[here], right[here] = grow(first, half), grow(half + 1, last)
        return here

    grow(0, len(cuts))
    return Tree(
        left=np.array(left),
        right=np.array(right),
        feature=np.full(len(left), column),
        threshold=np.array(threshold, np.float64),
        values=values[below],
        missing_left=np.zeros(len(left), bool),
    )


def _check_children(left: IntArray, right: IntArray, inner: BoolArray, offsets: IntArray) -> None:
    """Refuse nodes with no or two parents and children before their parent, on which a walk might not end."""
    children = np.concatenate([left[inner], right[inner]])
    below = np.setdiff1d(np.arange(len(left)), offsets[:-1])
    place = np.flatnonzero(inner)
    if not np.array_equal(np.sort(children), below) or (np.minimum(left, right)[inner] <= place).any():
        raise ModelError("the nodes of a tree do not form a tree: the model is corrupt, save or fit it again")


def by_known_name(columns: Iterable[str]) -> dict[str, str]:
    """Columns of a table by the names under which a model may know them: LightGBM writes ``_`` for a space.

    Parameters
    ----------
    columns : iterable of str
    """
    return {_underscored(c): c for c in columns} | {c: c for c in columns}


def known_names(estimators: Iterable[Any]) -> tuple[str, ...] | None:
    """Names of the columns that estimators were fitted on, by the first that knows any; None where none does.

    What holds others may have taken them from LightGBM; one that knows them with their spaces is believed then.

    Parameters
    ----------
    estimators : iterable of estimator
        Fitted on the same columns.
    """
    found = [tuple(map(str, one.feature_names_in_)) for one in estimators if hasattr(one, "feature_names_in_")]
    spaced = [own for own in found if own != found[0] and tuple(map(_underscored, own)) == found[0]]
    return next(iter([*spaced, *found]), None)


def _underscored(name: Any) -> str:
    return re.sub(r"\s", "_", str(name))


@dataclass(frozen=True)
class RowLayout:
    """How rows are handed to a fitted estimator so that it neither warns nor guesses.

    Attributes
    ----------
    n_features : int
    names : tuple of str or None
        Columns that the estimator was fitted with; None if it was fitted with an array.
    categories : mapping of int to array
        Columns whose codes stand for the categories in this order.
    """

    n_features: int
    names: tuple[str, ...] | None
    categories: Mapping[int, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Any, categories: Mapping[int, NDArray[Any]] | None = None) -> RowLayout:
        """Layout of a fitted estimator.

        Parameters
        ----------
        model : estimator
            Fitted.
        categories : mapping of int to array, optional
            As in the attribute.
        """
        return cls(int(model.n_features_in_), known_names([model]), dict(categories or {}))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The estimator's column names, or ``x0, x1, …`` as scikit-learn calls nameless columns."""
        return self.names or tuple(f"x{j}" for j in range(self.n_features))

    def arrange(self, rows: Rows) -> Rows:
        """Rows in the container that the estimator was fitted with.

        A table is taken to hold the user's own values; an array holds model values, categories as codes.
        """
        if rows.ndim != 2:
            raise DataError(f"rows must be two-dimensional, got {rows.ndim} dimension(s): pass [row]")
        if isinstance(rows, pd.DataFrame):
            return self._from_table(rows)
        if rows.shape[1] != self.n_features:
            raise DataError(f"rows have {rows.shape[1]} columns, the model was fitted on {self.n_features}")
        if not self.categories:
            return rows if self.names is None else pd.DataFrame(rows, columns=list(self.names))
        columns = {
            name: self._decode(j, rows[:, j]) if j in self.categories else rows[:, j]
            for j, name in enumerate(self.feature_names)
        }
        table = pd.DataFrame(columns)
        return table if self.names is not None else table.to_numpy()

    def _from_table(self, rows: pd.DataFrame) -> Rows:
        if self.names is None:
            if rows.shape[1] != self.n_features:
                raise DataError(f"rows have {rows.shape[1]} columns, the model was fitted on {self.n_features}")
            return rows.to_numpy()
        by_name = by_known_name(rows.columns)
        absent = [name for name in self.names if name not in by_name]
        if absent:
            raise DataError(f"the table lacks column(s) {', '.join(map(repr, absent))} that the model was fitted on")
        own = [by_name[name] for name in self.names]
        return rows if rows.columns.tolist() == own else rows[own]

    def _decode(self, column: int, codes: NDArray[Any]) -> NDArray[Any]:
        values = self.categories[column]
        known = np.isin(codes, np.arange(len(values)))
        decoded = values[np.where(known, codes, 0).astype(np.int64)]
        if not known.all():
            decoded = decoded.astype(object)
            decoded[~known] = np.nan
        return decoded


def class_labels(model: Any) -> tuple[Any, ...]:
    """Labels of a fitted classifier as plain Python values, in the order of their indices."""
    labels = tuple(np.asarray(model.classes_).tolist())
    if len(labels) < 2:
        raise ModelError(
            f"{name_of(model)} was trained on the single class {labels[0]!r}, so no change leads to "
            "another decision: train it on rows of at least two classes"
        )
    return labels


def check_fitted(model: Any) -> None:
    """Raise `ModelError` if the estimator was not fitted."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ModelError(f"this {type(model).__name__} is not fitted: call its fit(X, y) first") from None


def check_single_output(model: Any) -> None:
    """Raise `UnsupportedModelError` if the estimator predicts several targets at once."""
    if getattr(model, "n_outputs_", 1) != 1:
        raise UnsupportedModelError(
            f"this {type(model).__name__} predicts {model.n_outputs_} targets at once: say which one, for example "
            "Explainer(model, data, output=0)"
        )


def tree_model(
    model: Any,
    trees: Sequence[Tree],
    *,
    weights: FloatArray,
    base_score: FloatArray,
    decision: Decision,
    native_scores: Callable[[Rows], NDArray[Any]],
    categories: Mapping[int, NDArray[Any]] | None = None,
) -> TreeModel:
    """Ensemble of single trees beside the estimator that they come from.

    Parameters
    ----------
    model : estimator
    trees : sequence of Tree
    weights : (n_trees,) float64
    base_score : (n_outputs,) float64
    decision : Decision
    native_scores : callable
        The estimator's own function for scores on the ensemble's scale.
    categories : mapping of int to array, optional
        Columns whose codes stand for these categories.
    """
    import sklearn

    layout = RowLayout.of(model, categories)
    decide = partial(decide_rows, model, layout)
    ensemble = stack_trees(
        trees,
        feature_names=layout.feature_names,
        weights=weights,
        base_score=base_score,
        decision=decision,
    )
    # asked last: a corrupt model could crash the library, and has been refused by now
    if not _accepts_missing(decide, layout.n_features):
        ensemble = replace(ensemble, missing_left=None)
    return TreeModel(
        ensemble=ensemble,
        native=model,
        scores=partial(score_rows, native_scores, layout),
        decide=decide,
        library=f"scikit-learn {sklearn.__version__}",
        categories={j: tuple(values.tolist()) for j, values in layout.categories.items()},
        probabilities=partial(probability_rows, model, layout) if hasattr(model, "predict_proba") else None,
    )


def score_rows(native: Callable[[Rows], NDArray[Any]], layout: RowLayout, rows: Rows) -> FloatArray:
    """Raw scores of rows by a model's own function, (n, n_outputs).

    Parameters
    ----------
    native : callable
        From rows as the estimator takes them to (n,) or (n, n_outputs).
    layout : RowLayout
    rows : Rows
        (n, n_features).
    """
    scores = np.asarray(native(layout.arrange(rows)), np.float64)
    return scores.reshape(-1, 1) if scores.ndim == 1 else scores


def probability_rows(model: Any, layout: RowLayout, rows: Rows) -> FloatArray:
    """Probabilities of rows by the model itself, (n, n_classes).

    Parameters
    ----------
    model : estimator
        Fitted.
    layout : RowLayout
    rows : Rows
        (n, n_features).
    """
    return np.asarray(model.predict_proba(layout.arrange(rows)), np.float64)


def decide_rows(model: Any, layout: RowLayout, rows: Rows) -> NDArray[Any]:
    """Class indices or values of rows by the model itself, (n,).

    Parameters
    ----------
    model : estimator
        Fitted.
    layout : RowLayout
    rows : Rows
        (n, n_features).
    """
    answer = model.predict(layout.arrange(rows))
    # classes_ is sorted, so a label's place in it is its index
    return np.searchsorted(model.classes_, answer) if hasattr(model, "classes_") else np.asarray(answer, np.float64)


def _accepts_missing(decide: Callable[[Rows], NDArray[Any]], n_features: int) -> bool:
    """Whether the fitted model takes NaN, which depends on the version and the data: ask the model."""
    try:
        decide(np.full((1, n_features), np.nan))
    except ValueError:
        return False
    return True

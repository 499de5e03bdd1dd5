"""The final model of a stack, where it is made of trees.

It is read as any model of trees is; its columns are what the members show, each a function of one score. With
``passthrough=True`` it is given the table as well. A column of the table that it splits becomes one more score: a tree
of that column's thresholds whose leaves count how many of them a value exceeds, so that a split of the final model is
once more a threshold of a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.base import Rows, TreeModel
from ocf.readers.conformance import check_conformance
from ocf.readers.members import Members, chained, whole_model
from ocf.readers.nesting import bare
from ocf.readers.sklearn_common import RowLayout, class_labels, known_names, stack_trees, threshold_tree
from ocf.trees.ensemble import Decision, Ensemble, FinalTrees, SplitKind
from ocf.trees.totals import Term, Total


def read_final_trees(model: Any, members: Members, shown: Sequence[Total], known: str) -> TreeModel:
    """A stack whose final model is made of trees.

    Parameters
    ----------
    model : estimator
        StackingClassifier or StackingRegressor.
    members : Members
    shown : sequence of Total
        What the members hand on, in order.
    known : str
        A linear final model, for the message.

    Raises
    ------
    UnsupportedModelError
        The final model is not made of trees, or a member hands on a sum of functions of several scores.
    """
    final = _read(model, known)
    trees, given = final.ensemble, [chained(total, (), model).terms[0] for total in shown]
    width = members.models[0].ensemble.n_features if model.passthrough else 0
    if trees.n_features != len(given) + width:
        raise ModelError(f"the final model of this {type(model).__name__} does not fit its members: fit it again")
    used = np.unique(trees.feature[trees.feature >= 0])
    own, columns = used[used < len(given)], used[used >= len(given)]
    counted = {int(j) - len(given): np.unique(trees.threshold[trees.feature == j]) for j in columns}
    first = members.starts[-1]
    if counted:
        members = Members((*members.models, _counts(model, members, counted)))
    inputs = [given[j] for j in own] + [Term(first + n) for n in range(len(columns))]
    if not inputs:
        raise ModelError(f"the final model of this {type(model).__name__} asks nothing of its members: fit it again")
    rule = replace(trees.decision, final=FinalTrees(tuple(inputs), _renumbered(trees, used, len(own))))
    return whole_model(model, members, replace(rule, classes=class_labels(model) if rule.classes else ()))


def _read(model: Any, known: str) -> TreeModel:
    """The final model."""
    native = bare(model.final_estimator_)
    try:
        final = read_model(native)
        rule = final.ensemble.decision
        plain = np.isin(final.ensemble.kind, (SplitKind.LEAF, SplitKind.AXIS)).all() and not final.categories
        if rule.stands_on_others or not plain:
            raise UnsupportedModelError("it is no plain sum of trees with thresholds")
    except UnsupportedModelError as cause:
        raise UnsupportedModelError(
            f"the final model of this {type(model).__name__} is a {type(native).__name__}, which neither adds up what "
            f"its members show nor is read as trees over it ({cause}): fit it with final_estimator={known}() or trees"
        ) from None
    check_conformance(final)
    classes = tuple(range(len(class_labels(model)))) if hasattr(model, "classes_") else ()
    if tuple(rule.classes) != classes:
        raise ModelError(f"the final model of this {type(model).__name__} knows other classes: fit it again")
    return final


def _renumbered(trees: Ensemble, used: Any, n_shown: int) -> Ensemble:
    """The final trees over the columns that they split, those of the table by counts of thresholds."""
    feature, threshold = trees.feature.copy(), trees.threshold.copy()
    for n, j in enumerate(used.tolist()):
        here = trees.feature == j
        feature[here] = n
        if n >= n_shown:
            cuts = np.unique(trees.threshold[here])
            threshold[here] = (np.searchsorted(cuts, trees.threshold[here]) + 0.5) * _unit(cuts)
    names = tuple(trees.feature_names[j] for j in used.tolist())
    return replace(trees, feature_names=names, feature=feature, threshold=threshold)


def _unit(cuts: FloatArray) -> float:
    """What one threshold counts: a power of two, by which all counts stay below 1."""
    return float(2.0 ** -np.ceil(np.log2(len(cuts) + 1)))


def _counts(model: Any, members: Members, counted: dict[int, FloatArray]) -> TreeModel:
    """How many of the final model's thresholds the columns of the table exceed, one score per column."""
    like = members.models[0].ensemble
    names = known_names([model, *(m.native for m in members.models)])
    layout = RowLayout(like.n_features, names)
    trees = []
    for n, (column, cuts) in enumerate(counted.items()):
        values = np.zeros((len(cuts) + 1, len(counted)))
        values[:, n] = np.arange(len(cuts) + 1) * _unit(cuts)
        trees.append(threshold_tree(column, cuts, values))
    ensemble = stack_trees(
        trees,
        feature_names=like.feature_names,
        weights=np.ones(len(trees)),
        base_score=np.zeros(len(trees)),
        decision=Decision("value"),
    )
    return TreeModel(
        ensemble=replace(ensemble, missing_left=None),
        native=model,
        scores=partial(_counted, layout, counted),
        decide=members.models[0].decide,
        library=members.models[0].library,
    )


def _counted(layout: RowLayout, counted: dict[int, FloatArray], rows: Rows) -> FloatArray:
    values = np.asarray(layout.arrange(rows), np.float64)
    return np.column_stack([np.searchsorted(cuts, values[:, j]) * _unit(cuts) for j, cuts in counted.items()])

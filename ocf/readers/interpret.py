"""Reader of InterpretML's explainable boosting machines: sums of tables over one feature or several.

How a machine scores

* A number falls into a bin between cuts; a number at a cut falls into the upper one. Bin 0 is that of missing values.
* A category is known by its text and has a bin of its own; unknown categories share the last one.
* Each term adds the entry of its table where its features' bins meet. The sum is made in float64; of two classes the
  second is given where it exceeds zero, of several the largest wins.

Each term becomes a tree: splits of its first feature, then of its second below. Bins with the same entries are not told
apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.base import Rows, TreeModel, whole
from ocf.readers.sklearn_common import Tree, check_fitted, stack_trees
from ocf.readers.trees import category_text, fit_columns
from ocf.trees.ensemble import Decision

#: Most nodes of one tree.
_MAX_NODES = 2**20

_KINDS = ("continuous", "nominal", "ordinal")


def matches(model: object) -> bool:
    """Whether the object is an explainable boosting machine, without importing the library."""
    return "EBMModel" in {c.__name__ for c in type(model).__mro__ if c.__module__.split(".")[0] == "interpret"}


def read(model: Any) -> TreeModel:
    """Ensemble of a fitted ExplainableBoostingClassifier or ExplainableBoostingRegressor.

    Parameters
    ----------
    model : ExplainableBoostingClassifier or ExplainableBoostingRegressor
        Never changed.

    Raises
    ------
    ModelError
        It is not fitted, or its tables do not fit its bins.
    UnsupportedModelError
        A link or a kind of feature that ocf does not know.
    """
    check_fitted(model)
    with whole(model):
        return _read(model, {})


def _read(model: Any, levels: Mapping[int, tuple[Any, ...]]) -> TreeModel:
    """Ensemble of a machine whose category columns have these levels, by default those that it was fitted on."""
    import interpret

    names = tuple(map(str, model.feature_names_in_))
    kinds = dict(zip(model.feature_types_in_, names, strict=True))
    if unknown := sorted(set(kinds) - set(_KINDS)):
        raise UnsupportedModelError(
            f"feature {kinds[unknown[0]]!r} is of the kind {unknown[0]!r}, which ocf does not know: declare it in "
            f"feature_types as one of {', '.join(_KINDS)}"
        )
    own = [j for j, kind in enumerate(model.feature_types_in_) if kind != "continuous"]
    categories = {j: levels.get(j, tuple(model.bins_[j][0])) for j in own}
    intercept = np.atleast_1d(np.asarray(model.intercept_, np.float64))
    trees = [
        _grown(model, term, np.asarray(scores, np.float64), len(intercept), categories)
        for term, scores in zip(model.term_features_, model.term_scores_, strict=True)
    ]
    decision = _decision(model)
    library = _Machine(model, names, decision, categories)
    return TreeModel(
        ensemble=stack_trees(
            trees,
            feature_names=names,
            weights=np.ones(len(trees)),
            base_score=intercept,
            decision=decision,
        ),
        native=model,
        scores=library.scores,
        decide=library.decide,
        library=f"interpret {interpret.__version__}",
        categories=categories,
        probabilities=library.probabilities if decision.classes else None,
        naming=partial(_read, model) if own else None,
    )


def _decision(model: Any) -> Decision:
    if model.link_ in ("identity", "log"):
        return Decision("value", link="identity" if model.link_ == "identity" else "exp")
    if model.link_ == "monoclassification":
        raise ModelError(f"{type(model).__name__} was trained on a single class: train it on rows of two")
    classes = tuple(np.asarray(model.classes_).tolist())
    if model.link_ == "logit":
        return Decision("threshold", classes, 0.0, link="logistic")
    if model.link_ in ("mlogit", "vlogit"):
        return Decision("argmax", classes, link="softmax" if model.link_ == "mlogit" else "logistic")
    raise UnsupportedModelError(f"the link {model.link_!r} of {type(model).__name__} is not read")


# -- trees ---------------------------------------------------------------------------------------------------------


def _grown(
    model: Any, term: Sequence[int], scores: FloatArray, n_outputs: int, categories: Mapping[int, tuple[Any, ...]]
) -> Tree:
    """Tree of a term, whose table has one axis per feature, and one more where there are several scores."""
    table = scores.reshape(*scores.shape[: len(term)], n_outputs)
    columns: list[_NumberBins | _CategoryBins] = []
    for k, j in enumerate(term):
        bins = model.bins_[j][min(len(model.bins_[j]), len(term)) - 1]
        n = max([1, *bins.values()]) + 2 if isinstance(bins, dict) else len(bins) + 3
        if isinstance(bins, dict) and not bins:
            n = 2
        if table.shape[k] != n:
            raise ModelError(f"a table of this {type(model).__name__} does not fit its bins: fit it again")
        if isinstance(bins, dict):
            columns.append(
                _CategoryBins(j, np.array([bins.get(category_text(v), n - 1) for v in categories[j]], np.int64))
            )
        else:
            columns.append(_NumberBins(j, np.nextafter(np.asarray(bins, np.float64), -np.inf)))
    growing = _TermTree(columns, max(map(len, categories.values()), default=0), n_outputs)
    growing.grow(table, 0)
    return growing.tree()


@dataclass(frozen=True)
class _NumberBins:
    """A column of numbers, and the largest float64 below each cut."""

    column: int
    last: FloatArray


@dataclass(frozen=True)
class _CategoryBins:
    """A column of categories, and the bin of each code."""

    column: int
    bins: NDArray[np.int64]


@dataclass
class _TermTree:
    """Nodes of a tree in the making; parents come before their children."""

    columns: Sequence[_NumberBins | _CategoryBins]
    n_codes: int
    n_outputs: int
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    goes_left: list[BoolArray | None] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)

    def grow(self, table: FloatArray, depth: int) -> int:
        """Node under which the columns from the one at `depth` on are asked; `table` has an axis for each of them."""
        if depth == len(self.columns):
            return self._add(value=table)
        column = self.columns[depth]
        if isinstance(column, _CategoryBins):
            return self._categories(column, table, depth)
        # a feature without cuts has a single bin beside those of missing and unknown values
        same = (table[1:-2] == table[2:-1]).all(axis=tuple(range(1, table.ndim)))
        last, bins = column.last[~same], np.r_[1, 2 + np.flatnonzero(~same)]
        if np.array_equal(table[0], table[1]):
            return self._numbers(column.column, last, table[bins], depth)
        top = self._add(column.column, np.inf)
        self.left[top] = self._numbers(column.column, last, table[bins], depth)
        self.right[top] = self.grow(table[0], depth + 1)
        return top

    def _numbers(self, column: int, last: FloatArray, tables: FloatArray, depth: int) -> int:
        """Nodes over bins between ascending borders; missing values go the way of the first bin."""
        if not len(last):
            return self.grow(tables[0], depth + 1)
        middle = len(last) // 2
        node = self._add(column, float(last[middle]), missing_left=True)
        self.left[node] = self._numbers(column, last[:middle], tables[: middle + 1], depth)
        self.right[node] = self._numbers(column, last[middle + 1 :], tables[middle + 1 :], depth)
        return node

    def _categories(self, column: _CategoryBins, table: FloatArray, depth: int) -> int:
        """Nodes over groups of categories with the same entries; missing values have bin 0."""
        kept = np.unique(np.r_[0, column.bins])
        flat = table[kept].reshape(len(kept), -1)
        entries, group_of_bin = np.unique(flat, axis=0, return_inverse=True)
        group = np.zeros(len(table), np.int64)
        group[kept] = group_of_bin.ravel()
        return self._groups(
            column.column, group[column.bins], int(group[0]), range(len(entries)), entries, table, depth
        )

    def _groups(
        self,
        column: int,
        group: NDArray[np.int64],
        missing: int,
        among: range,
        entries: FloatArray,
        table: FloatArray,
        depth: int,
    ) -> int:
        if len(among) == 1:
            return self.grow(entries[among[0]].reshape(table.shape[1:]), depth + 1)
        middle = among[len(among) // 2]
        goes_left = np.zeros(self.n_codes, bool)
        goes_left[: len(group)] = group < middle
        node = self._add(column, missing_left=missing < middle, goes_left=goes_left)
        lower, upper = range(among.start, middle), range(middle, among.stop)
        self.left[node] = self._groups(column, group, missing, lower, entries, table, depth)
        self.right[node] = self._groups(column, group, missing, upper, entries, table, depth)
        return node

    def _add(
        self,
        feature: int = -1,
        threshold: float = np.nan,
        *,
        missing_left: bool = False,
        goes_left: BoolArray | None = None,
        value: FloatArray | None = None,
    ) -> int:
        if len(self.left) >= _MAX_NODES:
            raise UnsupportedModelError(
                f"a term of several features has more than {_MAX_NODES} bins: fit with fewer max_interaction_bins"
            )
        self.left.append(-1)
        self.right.append(-1)
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.missing_left.append(missing_left)
        self.goes_left.append(goes_left)
        self.values.append(np.zeros(self.n_outputs) if value is None else value)
        return len(self.left) - 1

    def tree(self) -> Tree:
        """The finished tree."""
        none = np.zeros(self.n_codes, bool)
        return Tree(
            left=np.array(self.left, np.int64),
            right=np.array(self.right, np.int64),
            feature=np.array(self.feature, np.int64),
            threshold=np.array(self.threshold),
            values=np.array(self.values),
            missing_left=np.array(self.missing_left),
            goes_left=np.array([none if goes is None else goes for goes in self.goes_left]),
            is_set=np.array([goes is not None for goes in self.goes_left]),
        )


# -- the user's own object -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Machine:
    """The user's own object, given rows in the form that it takes."""

    native: Any
    names: tuple[str, ...]
    decision: Decision
    categories: Mapping[int, tuple[Any, ...]]

    def _fit(self, rows: Rows) -> pd.DataFrame:
        rows = fit_columns(rows, self.names, named=True)
        if isinstance(rows, pd.DataFrame):
            return rows
        table = pd.DataFrame(rows, columns=list(self.names))
        for j, levels in self.categories.items() if rows.dtype.kind == "f" else ():
            codes = np.where(np.isnan(rows[:, j]), len(levels), rows[:, j]).astype(np.int64)
            table.isetitem(j, np.array([*levels, None], object)[codes])
        return table

    def scores(self, rows: Rows) -> FloatArray:
        table = self._fit(rows)
        if self.decision.classes:
            return np.asarray(self.native.decision_function(table), np.float64).reshape(len(rows), -1)
        # a regressor shows its score behind the link only
        terms = np.asarray(self.native.eval_terms(table), np.float64)
        return terms.sum(axis=1, keepdims=True) + np.asarray(self.native.intercept_, np.float64)

    def decide(self, rows: Rows) -> NDArray[Any]:
        answers = np.asarray(self.native.predict(self._fit(rows)))
        if not self.decision.classes:
            return answers.astype(np.float64)
        number = {label: k for k, label in enumerate(self.decision.classes)}
        return np.array([number[label] for label in answers.tolist()], np.int64)

    def probabilities(self, rows: Rows) -> FloatArray:
        return np.asarray(self.native.predict_proba(self._fit(rows)), np.float64)

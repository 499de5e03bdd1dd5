"""Readers of isolation forests: trees whose leaf value is the depth that the library itself reckons with.

An isolation tree cuts a sample of the rows at random; a row that is soon alone is an outlier (Liu, Ting and Zhou 2008;
ocean, section 3.5). The depth of a leaf is its number of splits and, where several rows of the sample share it, the
average number of further splits that would part them.

* scikit-learn casts a row to float32 and sends it left when the value is at most the node's float64 threshold. Its
  score is ``-2 ** (-depth / c)``, where ``c`` is the average path length of a tree of the sample's size.
* isotree compares in float64 with ``<=``; its score, ``2 ** (-depth / c)``, is large for outliers. Its extended forests
  split by hyperplanes (`ocf.readers.isotree_hyperplanes`).

Adding a library is one function and one line in `_READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import ConformanceError, ModelError, UnsupportedModelError
from ocf.readers.base import Rows, whole
from ocf.readers.isotree_hyperplanes import Hyperplanes, read_hyperplanes
from ocf.readers.sklearn import tree_of
from ocf.readers.sklearn_checks import average_path_length
from ocf.readers.sklearn_common import RowLayout, Tree, check_fitted, stack_trees
from ocf.trees.ensemble import Decision, Ensemble, SplitKind
from ocf.trees.rounding import uncertain

_UNIT = 2.0**-53


@dataclass(frozen=True)
class IsolationModel:
    """An isolation forest of a library beside the ensemble that was read from it.

    Attributes
    ----------
    ensemble : Ensemble
        One output, the depth of the leaf; the decision is the sum of depths (`Decision` of kind ``"value"``).
    native : object
        The user's own object; never changed.
    measure : callable
        Rows -> (depth, score), both (n,) float64: the average depth over the trees as the library reckons it, and
        the library's own score. Deeper rows are more plausible.
    recount : callable
        Rows -> (n,) float64: the average depth once more, from the paths through the library's own trees.
    library : str
        Name and version.
    names : tuple of str or None
        Columns that it was fitted with; None if it was fitted with an array.
    error_bound : float
        Bound on how far the measured depth, times the number of trees, may lie from the exact sum of depths.
    """

    ensemble: Ensemble
    native: Any
    measure: Callable[[Rows], tuple[FloatArray, FloatArray]]
    recount: Callable[[Rows], FloatArray]
    library: str
    names: tuple[str, ...] | None
    error_bound: float


def is_isolation_forest(model: object) -> bool:
    """Whether the object is an isolation forest of a library that ocf reads; asked without importing the library."""
    return _kind(model) is not None


def read_isolation_forest(model: Any) -> IsolationModel:
    """Trees and depths of a fitted isolation forest.

    Parameters
    ----------
    model : sklearn.ensemble.IsolationForest or isotree.IsolationForest

    Raises
    ------
    ModelError
        Not fitted.
    UnsupportedModelError
        Of another library, or with options under which the score is no sum of depths of axis-parallel trees.
    ConformanceError
        The trees that were read give other depths than the library.
    """
    kind = _kind(model)
    if kind is None:
        raise UnsupportedModelError(
            f"plausibility needs an isolation forest of scikit-learn or isotree, or a Pipeline that ends in one, not "
            f"{type(model).__module__}.{type(model).__qualname__}"
        )
    with whole(model):
        read = _READERS[kind](model)
        _check(read)
    return read


def _kind(model: object) -> str | None:
    for cls in type(model).__mro__:
        name = f"{cls.__module__.split('.')[0]}.{cls.__name__}"
        if name in _READERS:
            return name
    return None


def _check(read: IsolationModel) -> None:
    """Compare depths at, and next to, every threshold; of hyperplanes, at random points."""
    ensemble = read.ensemble
    rng = np.random.default_rng(0)
    columns = []
    for j in range(ensemble.n_features):
        cuts = np.unique(ensemble.threshold[(ensemble.feature == j) & np.isfinite(ensemble.threshold)])
        if not len(cuts):
            weights = np.abs(ensemble.oblique_data[ensemble.oblique_indices == j])
            cuts = rng.normal(size=64) / (np.median(weights) if len(weights) else 1.0)
        columns.append(np.concatenate([cuts, np.nextafter(cuts, np.inf)]))
    count = max(map(len, columns))
    rows = np.column_stack([rng.permutation(np.resize(c, count)) for c in columns])
    depth, _ = read.measure(rows)
    total = ensemble.scores(rows)[:, 0]
    wrong = np.flatnonzero((np.abs(depth * ensemble.n_trees - total) > read.error_bound) & ~uncertain(ensemble, rows))
    if len(wrong):
        k = int(wrong[0])
        raise ConformanceError(
            f"the isolation forest gives row {rows[k].tolist()} an average depth of {depth[k]!r}, the trees that were "
            f"read {total[k] / ensemble.n_trees!r}: this version of {read.library} is not understood"
        )


def _rounding_bound(ensemble: Ensemble, normaliser: float) -> float:
    """Bound on the rounding of a sum of depths, and of the way from it to a score of ``2 ** (-depth / c)`` and back.

    The relative error of the score is that of the exponential and of its exponent, ``depth / c``; as an error of the
    depth sum that is a few units of ``n_trees * c`` and of the sum.
    """
    largest = np.maximum.reduceat(np.abs(ensemble.leaf_values[:, 0]), ensemble.leaf_offsets[:-1]).sum()
    return float(_UNIT * ((ensemble.n_trees + 32) * largest + 64 * ensemble.n_trees * normaliser))


# -- scikit-learn ----------------------------------------------------------------------------------------------


def _read_sklearn(model: Any) -> IsolationModel:
    import sklearn

    check_fitted(model)
    trees: list[Tree] = []
    for estimator, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        tree = estimator.tree_
        taken = tree_of(estimator, np.zeros((tree.node_count, 1)), np.asarray(columns))
        # asked after the nodes were checked: it writes a depth for each child
        depth = tree.compute_node_depths() + average_path_length(tree.n_node_samples) - 1.0
        trees.append(replace(taken, values=depth[:, None]))
    layout = RowLayout.of(model)
    normaliser = float(average_path_length(np.array([model.max_samples_]))[0])
    if normaliser == 0:
        raise ModelError("the isolation forest was fitted on samples of a single row: it tells no rows apart")
    measure = partial(_measure_sklearn, model, layout, normaliser)
    ensemble = _depths(trees, layout.feature_names, accepts_missing=_accepts_missing(measure, layout.n_features))
    return IsolationModel(
        ensemble,
        model,
        measure,
        partial(_recount_sklearn, model, layout),
        f"scikit-learn {sklearn.__version__}",
        layout.names,
        _rounding_bound(ensemble, normaliser),
    )


def _measure_sklearn(model: Any, layout: RowLayout, normaliser: float, rows: Rows) -> tuple[FloatArray, FloatArray]:
    score = np.asarray(model.score_samples(layout.arrange(rows)), np.float64)
    return -normaliser * np.log2(-score), score


def _recount_sklearn(model: Any, layout: RowLayout, rows: Rows) -> FloatArray:
    given = np.asarray(layout.arrange(rows), np.float32)
    total = np.zeros(len(given))
    for estimator, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        # the tree and not its estimator, which checks the table anew: 100 times as long as the way of one row
        seen = np.ascontiguousarray(given[:, columns])
        leaf = estimator.tree_.apply(seen)  # not decision_path, which before scikit-learn 1.8 loses what is missing
        splits = estimator.tree_.compute_node_depths()[leaf] - 1.0
        total += splits + average_path_length(estimator.tree_.n_node_samples[leaf])
    return total / len(model.estimators_)


def _accepts_missing(measure: Callable[[Rows], Any], n_features: int) -> bool:
    """Whether the fitted forest takes NaN, which depends on the version: ask it."""
    try:
        measure(np.full((1, n_features), np.nan))
    except ValueError:
        return False
    return True


# -- isotree ---------------------------------------------------------------------------------------------------


def _read_isotree(model: Any) -> IsolationModel:
    import isotree

    if not getattr(model, "is_fitted_", False):
        raise ModelError("this IsolationForest of isotree is not fitted: call its fit(X) first")
    _check_isotree(model)
    names = tuple(map(str, model.cols_numeric_)) if len(getattr(model, "cols_numeric_", ())) else None
    n_features = int(model._ncols_numeric)
    shown = names or tuple(f"column_{j}" for j in range(n_features))
    if model.ndim_ > 1:
        ensemble = _extended(read_hyperplanes(model), shown)
    else:
        trees = [_isotree_tree(model, t, int(n)) for t, n in enumerate(model.get_num_nodes()[0])]
        ensemble = _depths(trees, shown, accepts_missing=False)
    return IsolationModel(
        ensemble,
        model,
        partial(_measure_isotree, model, names),
        partial(_recount_isotree, model, names),
        f"isotree {_version(isotree)}",
        names,
        _rounding_bound(ensemble, float(model._cpp_obj.get_expected_isolation_depth())),
    )


def _check_isotree(model: Any) -> None:
    """Refuse options under which the score is no sum of depths."""
    refused = {
        "categorical columns": model._ncols_categ > 0,
        "penalize_range=True": bool(model.penalize_range),
        f"scoring_metric={model.scoring_metric!r}": model.scoring_metric not in ("depth", "adj_depth"),
    }
    for what, used in refused.items():
        if used:
            raise UnsupportedModelError(
                f"an isolation forest of isotree with {what} is not supported as plausibility: fit it on numbers with "
                "penalize_range=False and scoring_metric='depth' (or 'adj_depth')"
            )


def _isotree_tree(model: Any, tree: int, n: int) -> Tree:
    """One tree of isotree; a node is (leaf or split, depth or column, threshold, side of NaN, left, right)."""
    nodes, buffer = np.empty((n, 6)), np.empty(6)
    for k in range(n):
        model._cpp_obj.get_node(tree, k, buffer)
        nodes[k] = buffer
    leaf = nodes[:, 0] == 1
    link = np.where(leaf[:, None], -1, nodes[:, 4:6]).astype(np.int64)
    return Tree(
        left=link[:, 0],
        right=link[:, 1],
        feature=np.where(leaf, -1, nodes[:, 1]).astype(np.int64),
        threshold=np.where(leaf, np.nan, nodes[:, 2]),
        values=np.where(leaf, nodes[:, 1], 0.0)[:, None],
        missing_left=np.zeros(n, bool),
    )


def _extended(trees: Sequence[Hyperplanes], names: tuple[str, ...]) -> Ensemble:
    """Trees whose splits are hyperplanes; the centres go to the thresholds, and what that rounds into the slack."""
    plain = _depths(
        [
            Tree(
                left=t.left,
                right=t.right,
                feature=np.where(t.left < 0, -1, 0),
                threshold=t.threshold,
                values=t.depth[:, None],
                missing_left=np.zeros(len(t.left), bool),
            )
            for t in trees
        ],
        names,
        accepts_missing=False,
    )
    split = plain.kind == SplitKind.AXIS
    columns, weights, centres = (
        [a for t in trees for a, k in zip(getattr(t, what), t.left, strict=True) if k >= 0]
        for what in ("columns", "coefficients", "centres")
    )
    products = [w * c for w, c in zip(weights, centres, strict=True)]
    threshold = plain.threshold.copy()
    moved = threshold[split] + [p.sum() for p in products]
    sizes = np.abs(threshold[split]) + [np.abs(p).sum() for p in products]
    threshold[split] = moved
    return replace(
        plain,
        kind=np.where(split, SplitKind.OBLIQUE, plain.kind).astype(np.uint8),
        feature=np.full(len(split), -1, np.int32),
        threshold=threshold,
        oblique_index=np.where(split, np.cumsum(split) - 1, -1).astype(np.int32),
        oblique_indptr=np.concatenate([[0], np.cumsum([len(w) for w in weights])]).astype(np.int64),
        oblique_indices=np.concatenate(columns).astype(np.int32),
        oblique_data=np.concatenate(weights),
        # the library subtracts the centre first: one more rounding for each product, and those of the moved threshold
        oblique_slack=_UNIT * (np.array([len(w) for w in weights]) + 4) * 2 * sizes,
    )


def _for_isotree(names: tuple[str, ...] | None, rows: Rows) -> Any:
    """Rows in the container that the forest was fitted with."""
    if isinstance(rows, pd.DataFrame):
        return (rows[list(names)] if names else rows).astype(np.float64)
    given = np.asarray(rows, np.float64)
    return pd.DataFrame(given, columns=list(names)) if names else given


def _measure_isotree(model: Any, names: tuple[str, ...] | None, rows: Rows) -> tuple[FloatArray, FloatArray]:
    given = _for_isotree(names, rows)
    depth, score = (model.predict(given, output=what) for what in ("avg_depth", "score"))
    return np.asarray(depth, np.float64), np.asarray(score, np.float64)


def _recount_isotree(model: Any, names: tuple[str, ...] | None, rows: Rows) -> FloatArray:
    depths = model.predict(_for_isotree(names, rows), output="tree_depths")
    return np.asarray(depths, np.float64).mean(axis=1)


def _version(module: Any) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(module.__name__)
    except PackageNotFoundError:
        return "of unknown version"


# -- both ------------------------------------------------------------------------------------------------------


def _depths(trees: list[Tree], names: tuple[str, ...], *, accepts_missing: bool) -> Ensemble:
    ensemble = stack_trees(
        trees, feature_names=names, weights=np.ones(len(trees)), base_score=np.zeros(1), decision=Decision("value")
    )
    return ensemble if accepts_missing else replace(ensemble, missing_left=None)


#: Package and class -> reader.
_READERS: dict[str, Callable[[Any], IsolationModel]] = {
    "sklearn.IsolationForest": _read_sklearn,
    "isotree.IsolationForest": _read_isotree,
}

"""Steps whose columns depend on several features at once.

Where such a column is a weighted sum of those before it, a split of it is a hyperplane, and oblique in the features:
the reader gives the weights, and a bound on what the library's own rounding may do to the sum, in whatever order it is
computed. Any other is refused where a tree splits it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from ocf.arrays import FloatArray
from ocf.readers.transformers.column import CONSTANT, Column, Mixture, mixed
from ocf.readers.transformers.flow import Flow, shown


@dataclass(frozen=True)
class _Sums:
    """``weights @ (z - mean)``.

    Attributes
    ----------
    weights : (n_out, n_in) float array
    mean : (n_in,) float array or None
    sizes : (n_out, n_in) float array or None
        Magnitudes of the products whose sum each weight is; None where it is none.
    """

    weights: Any
    mean: Any = None
    sizes: Any = None


def _principal(step: Any) -> _Sums:
    if not step.whiten:
        return _Sums(step.components_, step.mean_)
    scale = np.sqrt(step.explained_variance_)
    return _Sums(step.components_ / np.maximum(scale, np.finfo(scale.dtype).eps)[:, None], step.mean_)


def _factors(step: Any) -> _Sums:
    # as FactorAnalysis.transform has it, to the last bit of the inverse
    scaled = step.components_ / step.noise_variance_
    inverse = linalg.inv(np.eye(len(step.components_)) + np.dot(scaled, step.components_.T))
    return _Sums(inverse.T @ scaled, step.mean_, np.abs(inverse).T @ np.abs(scaled))


def _discriminants(step: Any) -> _Sums:
    most = vars(step)["_max_components"]
    return _Sums(step.scalings_[:, :most].T, step.xbar_ if step.solver == "svd" else None)


def _projected(step: Any) -> _Sums:
    sparse = hasattr(step.components_, "toarray")
    return _Sums(step.components_.toarray() if sparse else step.components_)


def _means(step: Any) -> _Sums | None:
    if step.pooling_func is not np.mean:
        return None
    member = step.labels_ == np.unique(step.labels_)[:, None]
    return _Sums(member / member.sum(axis=1, keepdims=True))


#: Class -> what it adds up, if it does.
SUMS: dict[str, Callable[[Any], _Sums | None]] = {
    "PCA": _principal,
    "IncrementalPCA": _principal,
    "TruncatedSVD": _projected,
    "FactorAnalysis": _factors,
    "FastICA": lambda step: _Sums(step.components_, step.mean_ if step.whiten else None),
    "GaussianRandomProjection": _projected,
    "SparseRandomProjection": _projected,
    "LinearDiscriminantAnalysis": _discriminants,
    "FeatureAgglomeration": _means,
}

#: Class -> what else it does, in words.
REASONS = {
    "Normalizer": "divides each row by its own length",
    "SparsePCA": "solves a system of equations for each row",
    "FeatureAgglomeration": "pools several columns by a function that may do anything",
}

CLASSES = ("Normalizer", "SparsePCA", *SUMS)


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """As many columns as the step has: sums of those before it, or refused.

    Parameters
    ----------
    name : str
    step : transformer
        Fitted.
    flow : Flow
    """
    kind = type(step).__name__
    sums = SUMS[kind](step) if kind in SUMS else None
    if sums is not None:
        return _added(name, step, flow, sums)
    width = len(flow.columns) if kind == "Normalizer" else len(step.get_feature_names_out())
    if all(column.constant for column in flow.columns):
        return (CONSTANT,) * width
    return (refused(name, step, REASONS[kind]),) * width


def _added(name: str, step: Any, flow: Flow, sums: _Sums) -> tuple[Column, ...]:
    """Columns that add up those before the step."""
    weights = np.asarray(sums.weights, np.float64)
    sizes = np.abs(weights) if sums.sizes is None else np.asarray(sums.sizes, np.float64)
    mean = np.zeros(len(flow.columns)) if sums.mean is None else np.asarray(sums.mean, np.float64)
    # a table whose columns are all of float32 stays so
    dtypes = [str(getattr(part, "dtype", "")) for part in (sums.weights, sums.mean)] + [flow.dtype(0).lower()]
    single = "float32" in dtypes
    return tuple(_sum(name, step, flow, Mixture(flow, *parts, single=single)) for parts in _parts(weights, sizes, mean))


def _parts(
    weights: FloatArray, sizes: FloatArray, mean: FloatArray
) -> list[tuple[FloatArray, FloatArray, float, float, int]]:
    """Of each sum its weights and offset, the sizes of both, and how many operations a product passes through."""
    terms = weights.shape[1] + 6
    return [
        (row, size, -float(row @ mean), float(size @ np.abs(mean)), terms + 2 * len(weights))
        for row, size in zip(weights, sizes, strict=True)
    ]


def _sum(name: str, step: Any, flow: Flow, mixture: Mixture) -> Column:
    """A column that adds up others; the same for every row if those are, refused if one is no line."""
    used = [flow.columns[j] for j in np.flatnonzero(mixture.weights).tolist()]
    if all(column.constant for column in used):
        return CONSTANT
    if not (np.isfinite(mixture.sizes).all() and np.isfinite(mixture.offset)):
        return refused(name, step, "adds up several columns with weights that are not finite")
    for j in np.flatnonzero(mixture.weights).tolist():
        column = flow.columns[j]
        if column.mixed and column.mixture is None:
            return column
        if column.number and not column.affine:
            what = f"adds up several columns, and that of feature {flow.named(j)} is no line in its numbers"
            return refused(name, step, what)
    return replace(refused(name, step, "adds up several columns"), mixture=mixture)


def refused(name: str, step: Any, what: str) -> Column:
    """A column that depends on several features.

    Parameters
    ----------
    name : str
    step : transformer
    what : str
        It does, in words.
    """
    return mixed(
        f"{shown(name, step)} {what}, so that a split of its columns depends on several features at once: give ocf the "
        "table after that step, or train the model without it"
    )

"""Exact reader of scikit-learn's linear classifiers.

How scikit-learn decides (source: ``sklearn/linear_model/_base.py``): the scores are ``X @ coef_.T + intercept_``; one
score decides for the second class when it is above 0, several for the largest, the first of them on a tie. A support
vector machine with a linear kernel sums over its support vectors instead, which is the same number with more rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.base import Rows, whole


@dataclass(frozen=True)
class LinearModel:
    """A linear classifier: ``scores = weights @ x + intercept``.

    Attributes
    ----------
    weights : (n_scores, n_columns) float64
        One score for two classes, one for each class otherwise.
    intercept : (n_scores,) float64
    classes : tuple
    feature_names : tuple of str
        Of the model columns.
    single : bool
        Whether the coefficients are float32, so that scores may be computed in float32.
    terms : int
        Products that the library sums for one score.
    size : (n_columns,) float64
        Sum of the absolute values of the coefficients that the library multiplies a column by, the largest over the
        scores; more than ``|weights|`` where it sums over support vectors.
    native : object
    decide : callable
        Rows -> (n,) class indices, by the user's own ``predict``.
    library : str
    """

    weights: FloatArray
    intercept: FloatArray
    classes: tuple[Any, ...]
    feature_names: tuple[str, ...]
    single: bool
    terms: int
    size: FloatArray
    native: Any
    decide: Callable[[Rows], NDArray[Any]]
    library: str


def matches(model: object) -> bool:
    """Whether the object is one of scikit-learn's linear classifiers, or a support vector classifier."""
    names = {f"{cls.__module__}.{cls.__name__}" for cls in type(model).__mro__}
    return bool(names & {"sklearn.linear_model._base.LinearClassifierMixin", "sklearn.svm._base.BaseSVC"})


def read(model: Any) -> LinearModel:
    """Weights of a fitted linear classifier.

    Raises
    ------
    ModelError
        Not fitted, or coefficients that are not finite.
    UnsupportedModelError
        No linear classifier, another kernel than the linear one, or several classes by pairwise votes.
    """
    if not matches(model):
        raise UnsupportedModelError(
            f"{type(model).__name__} is no linear classifier: LogisticRegression, LinearSVC, SVC(kernel='linear'), "
            "SGDClassifier, RidgeClassifier and their like are read here, trees by ocf.Explainer, and neither linear "
            "regressors nor linear classifiers inside of other models"
        )
    with whole(model):
        return _read(model)


def _read(model: Any) -> LinearModel:
    import sklearn

    kernel = getattr(model, "kernel", "linear")
    if kernel != "linear":
        raise UnsupportedModelError(f"{type(model).__name__} with kernel={kernel!r} is not linear: use kernel='linear'")
    if not hasattr(model, "classes_"):
        raise ModelError(f"the {type(model).__name__} is not fitted: call fit before ocf")
    classes = tuple(np.asarray(model.classes_).tolist())
    if hasattr(model, "support_vectors_") and len(classes) > 2:
        raise UnsupportedModelError(
            f"a {type(model).__name__} with {len(classes)} classes lets pairs of classes vote: use LinearSVC"
        )
    weights = np.atleast_2d(_dense(model.coef_)).astype(np.float64)
    intercept = np.broadcast_to(np.asarray(model.intercept_, np.float64).ravel(), (len(weights),)).copy()
    if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
        raise ModelError("a coefficient is not finite: the model is corrupt, fit it again")
    terms, size = weights.shape[1], np.abs(weights).max(axis=0)
    if hasattr(model, "support_vectors_"):
        dual = np.abs(_dense(model.dual_coef_)).ravel()
        vectors = np.abs(_dense(model.support_vectors_))
        terms, size = terms + len(dual), dual @ vectors
    names = getattr(model, "feature_names_in_", None)
    return LinearModel(
        weights,
        intercept,
        classes,
        tuple(f"x{j}" for j in range(weights.shape[1])) if names is None else tuple(map(str, names)),
        np.asarray(model.coef_).dtype == np.float32 if not hasattr(model.coef_, "toarray") else False,
        terms,
        size,
        model,
        lambda rows: np.searchsorted(model.classes_, model.predict(rows)),
        f"scikit-learn {sklearn.__version__}",
    )


def _dense(values: Any) -> NDArray[Any]:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)

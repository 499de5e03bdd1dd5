"""Exact reader of scikit-learn's models that hold one model: searches, thresholds, calibration.

How they decide (source: ``sklearn/model_selection`` and ``sklearn/calibration.py``)

* A search asks its best estimator.
* A threshold classifier compares the probability (``predict_proba`` first) or the decision function of one class with a
  threshold: that class where the score reaches it.
* A calibrator maps the decision function, or else the probability, of the second class: a sigmoid
  ``expit(-(a s + b))``, or a table between whose points it interpolates. Of several folds the mean counts, and the
  larger of the two means decides, the first on a tie.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.base import TreeModel, whole
from ocf.readers.members import COMPLEMENT, Members, added, chained, check_classes, two_classes, whole_model
from ocf.readers.nesting import bare, held, holder_kind
from ocf.readers.sklearn_common import check_fitted
from ocf.trees.ensemble import Decision
from ocf.trees.totals import FLOAT32, Map, Total

_KINDS = ("BaseSearchCV", "FixedThresholdClassifier", "TunedThresholdClassifierCV", "CalibratedClassifierCV")


def matches(model: object) -> bool:
    """Whether the object is a search, a threshold or calibrated classifier of scikit-learn, or frozen."""
    return bare(model) is not model or holder_kind(model) in _KINDS


def read(model: Any) -> TreeModel:
    """Ensemble of what a fitted search, threshold or calibrated classifier holds.

    Parameters
    ----------
    model : estimator
        GridSearchCV, RandomizedSearchCV or a halving search, FixedThresholdClassifier, TunedThresholdClassifierCV,
        CalibratedClassifierCV, or FrozenEstimator.

    Returns
    -------
    TreeModel

    Raises
    ------
    ModelError
        It is not fitted.
    UnsupportedModelError
        What it holds is no model of trees, or its answer is no sum of functions of one score each.
    """
    if bare(model) is not model:
        return replace(read_model(bare(model)), native=model)
    kind = holder_kind(model)
    with whole(model):
        if kind == "BaseSearchCV":
            (best,) = held(model)
            return replace(read_model(best), native=model)
        if kind == "CalibratedClassifierCV":
            return _read_calibrated(model)
        return _read_threshold(model, kind)


# -- thresholds ----------------------------------------------------------------------------------------------------


def _read_threshold(model: Any, kind: str) -> TreeModel:
    estimator = held(model)[0]
    if kind == "TunedThresholdClassifierCV":
        check_fitted(model)
    members = Members.read(model, [estimator])
    classes = two_classes(model, "a threshold decides between two")
    check_classes(model, members, 2)
    total, label, default = _response(model, members, estimator)
    threshold = model.best_threshold_ if kind == "TunedThresholdClassifierCV" else model.threshold
    threshold = default if isinstance(threshold, str) else float(threshold)
    # the first class is decided for from its own threshold on: the second below it
    second = label is None or label == classes[1]
    margin = total if second else total.times(-1.0)
    try:
        shares = members.shares(0)
    except UnsupportedModelError:
        shares = ()
    decision = Decision(
        "threshold",
        classes,
        threshold=threshold if second else -threshold,
        tie_is_positive=second,
        link="mean" if shares else "identity",
        totals=shares,
        margin=margin,
    )
    return whole_model(model, members, decision)


def _response(model: Any, members: Members, estimator: Any) -> tuple[Total, Any, float]:
    """What is compared with the threshold, the label that it speaks for (None: the second), and the usual threshold."""
    label = model.pos_label if hasattr(model, "pos_label") else None
    if hasattr(model, "_curve_scorer"):
        label = model._curve_scorer._get_pos_label()
    method = model.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
    first = label is not None and label == estimator.classes_[0]
    if method == "predict_proba":
        return members.shares(0)[0 if first else 1], label, 0.5
    margins = members.margins(0)
    if margins is None:
        raise ModelError(f"{type(estimator).__name__} has no decision function: the model is corrupt, fit it again")
    return margins.times(-1.0) if first else margins, label, 0.0


# -- calibration -----------------------------------------------------------------------------------------------------


def _read_calibrated(model: Any) -> TreeModel:
    check_fitted(model)
    folds = model.calibrated_classifiers_
    classes = two_classes(
        model, "their calibrated probabilities are divided by their sum, which is no sum of functions of one score each"
    )
    members = Members.read(model, [bare(fold.estimator) for fold in folds])
    check_classes(model, members, 2)
    shares = []
    for k, fold in enumerate(folds):
        response = members.margins(k)
        if response is None:
            response = members.shares(k)[1]
        shares.append(chained(response, _calibrator(model, fold), model))
    ones = [1.0] * len(shares)
    second = added(shares, ones, float(len(shares)), replayed=True)
    first = added([chained(s, (COMPLEMENT,), model) for s in shares], ones, float(len(shares)), replayed=True)
    # 0.5 or more of the first class is a tie or its win; rounding may tell the two means apart
    margin = second if len(shares) == 1 else replace(second, replayed=False)
    decision = Decision("threshold", classes, 0.5, link="mean", totals=(first, second), margin=margin)
    return whole_model(model, members, decision)


def _calibrator(model: Any, fold: Any) -> tuple[Map, ...]:
    """What a fold's calibrator makes of its score."""
    (calibrator,) = fold.calibrators
    kind = type(calibrator).__name__
    if kind == "_SigmoidCalibration":
        return Map("affine", (-float(calibrator.a_), -float(calibrator.b_))), Map("logistic")
    if kind != "IsotonicRegression":
        raise UnsupportedModelError(
            f"{type(model).__name__} calibrates by {fold.method!r}: fit it with method='sigmoid' or method='isotonic'"
        )
    x, y = (np.asarray(getattr(calibrator, name)) for name in ("X_thresholds_", "y_thresholds_"))
    if calibrator.out_of_bounds != "clip" or not np.all(np.diff(x) > 0) or x.shape != y.shape:
        raise ModelError("the table of an isotonic calibrator is not in order: the model is corrupt, fit it again")
    table = Map("table", tuple(map(float, x.tolist())), tuple(map(float, y.tolist())))
    return (table if x.dtype == y.dtype == np.float64 else replace(table, unit=FLOAT32),)

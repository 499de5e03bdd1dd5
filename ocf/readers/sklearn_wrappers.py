"""Exact reader of scikit-learn's models that hold one model: searches, thresholds, calibration, transformed targets.

How they decide (source: ``sklearn/model_selection``, ``sklearn/calibration.py`` and ``sklearn/compose/_target.py``)

* A search asks its best estimator.
* A threshold classifier compares the probability (``predict_proba`` first) or the decision function of one class with a
  threshold: that class where the score reaches it.
* A calibrator maps the decision function, or else the probability, of the second class: a sigmoid
  ``expit(-(a s + b))``, or a table between whose points it interpolates. Of several folds the mean counts, and the
  larger of the two means decides, the first on a tie.
* Of several classes each has a calibrator, and what they give is divided by its sum.
* A temperature: softmax of the logits times ``beta_``. The logits are the decision functions (of two classes -s and s),
  else ``log(p + 1e-12)`` of the probabilities.
* A regressor of a transformed target takes the transformation back, in the dtype of what its regressor predicts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.base import TreeModel, whole
from ocf.readers.members import COMPLEMENT, Members, added, chained, check_classes, read_span, two_classes, whole_model
from ocf.readers.nesting import bare, held, holder_kind
from ocf.readers.sklearn_common import check_fitted, class_labels
from ocf.trees.ensemble import Decision
from ocf.trees.totals import FLOAT32, FLOAT64, Map, Total

_KINDS = (
    "BaseSearchCV", "FixedThresholdClassifier", "TunedThresholdClassifierCV", "CalibratedClassifierCV",
    "TransformedTargetRegressor",
)  # fmt: skip

#: What the library adds to a probability before it takes the logarithm.
_EPSILON = 1e-12


def matches(model: object) -> bool:
    """Whether the object is a search, a threshold, calibration or transformed target of scikit-learn, or frozen."""
    return bare(model) is not model or holder_kind(model) in _KINDS


def read(model: Any) -> TreeModel:
    """Ensemble of what a fitted search, threshold or calibrated classifier holds.

    Parameters
    ----------
    model : estimator
        GridSearchCV, RandomizedSearchCV or a halving search, FixedThresholdClassifier, TunedThresholdClassifierCV,
        CalibratedClassifierCV, TransformedTargetRegressor, or FrozenEstimator.

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
            return replace(read_span(best), native=model)
        if kind == "CalibratedClassifierCV":
            return _read_calibrated(model)
        if kind == "TransformedTargetRegressor":
            return _read_transformed(model)
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
    folds, classes = model.calibrated_classifiers_, class_labels(model)
    members = Members.read(model, [bare(fold.estimator) for fold in folds])
    check_classes(model, members, len(classes))
    if len(classes) > 2:
        return _read_several_classes(model, members, classes)
    pairs = [_pair(model, members, k) for k in range(len(folds))]
    ones = [1.0] * len(pairs)
    first, second = (added(own, ones, float(len(pairs)), replayed=True) for own in zip(*pairs, strict=True))
    # 0.5 or more of the first class is a tie or its win; rounding may tell the two means apart
    exact = len(pairs) == 1 and folds[0].method != "temperature"
    margin = second if exact else replace(second, replayed=False)
    decision = Decision("threshold", classes, 0.5, link="mean", totals=(first, second), margin=margin)
    return whole_model(model, members, decision)


def _pair(model: Any, members: Members, k: int) -> tuple[Total, Total]:
    """What fold k shows of the first and the second class."""
    response, (calibrator,) = members.margins(k), model.calibrated_classifiers_[k].calibrators
    if type(calibrator).__name__ != "_TemperatureScaling":
        shown = response or members.shares(k)[1]
        second = chained(shown, _calibrator(model, calibrator), model)
        return chained(second, (COMPLEMENT,), model), second
    odds = () if response else (Map("odds", (_EPSILON,)),)
    # of two classes the library makes the logits -s and s of a margin
    beta = float(calibrator.beta_) * (2.0 if response else 1.0)
    shown = response or members.shares(k)[1]
    first, second = (
        chained(shown, (*odds, Map("affine", (sign * beta, 0.0)), Map("logistic")), model) for sign in (-1.0, 1.0)
    )
    return first, second


def _read_several_classes(model: Any, members: Members, classes: tuple[Any, ...]) -> TreeModel:
    """One calibrator per class, whose values are divided by their sum; or one for all, of which a softmax is taken."""
    fold = model.calibrated_classifiers_[0]
    if len(members.models) == 1 and fold.method == "temperature" and hasattr(bare(fold.estimator), "decision_function"):
        return _read_softmax(model, members, classes)
    rounds = [_round(model, members, k, len(classes)) for k in range(len(members.models))]
    totals = tuple(total for own in rounds for total in own)
    return whole_model(model, members, Decision("argmax", classes, link="normalized", totals=totals))


def _read_softmax(model: Any, members: Members, classes: tuple[Any, ...]) -> TreeModel:
    """Of one fold, a softmax of its decision functions."""
    (fold,), (one,) = model.calibrated_classifiers_, members.models
    scale = float(fold.calibrators[0].beta_) * members.responses(0)[0].terms[0].weight
    scaled = replace(
        one,
        ensemble=replace(
            one.ensemble, tree_weights=scale * one.ensemble.tree_weights, base_score=scale * one.ensemble.base_score
        ),
        scores=lambda rows: scale * one.scores(rows),
    )
    return whole_model(model, Members((scaled,)), Decision("argmax", classes, link="softmax"))


def _round(model: Any, members: Members, k: int, n_classes: int) -> list[Total]:
    """What fold k makes of the scores of each class before it divides by their sum."""
    fold, responses = model.calibrated_classifiers_[k], members.responses(k)
    if fold.method != "temperature":
        if len(fold.calibrators) != n_classes:
            raise ModelError(f"the calibrators of this {type(model).__name__} do not fit its classes: fit it again")
        return [chained(r, _calibrator(model, c), model) for r, c in zip(responses, fold.calibrators, strict=True)]
    shown = () if hasattr(bare(fold.estimator), "decision_function") else (Map("log", (_EPSILON,)),)
    power = (*shown, Map("affine", (float(fold.calibrators[0].beta_), 0.0)), Map("exp"))
    return [chained(response, power, model) for response in responses]


def _calibrator(model: Any, calibrator: Any) -> tuple[Map, ...]:
    """What a calibrator of one class makes of a score."""
    kind = type(calibrator).__name__
    if kind == "_SigmoidCalibration":
        return Map("affine", (-float(calibrator.a_), -float(calibrator.b_))), Map("logistic")
    if kind != "IsotonicRegression":
        raise UnsupportedModelError(
            f"{type(model).__name__} calibrates by a {kind}: fit it with method='sigmoid', 'isotonic' or 'temperature'"
        )
    x, y = (np.asarray(getattr(calibrator, name)) for name in ("X_thresholds_", "y_thresholds_"))
    if calibrator.out_of_bounds != "clip" or not np.all(np.diff(x) > 0) or x.shape != y.shape:
        raise ModelError("the table of an isotonic calibrator is not in order: the model is corrupt, fit it again")
    table = Map("table", tuple(map(float, x.tolist())), tuple(map(float, y.tolist())))
    return (table if x.dtype == y.dtype == np.float64 else replace(table, unit=FLOAT32),)


# -- transformed targets -------------------------------------------------------------------------------------------


def _read_transformed(model: Any) -> TreeModel:
    check_fitted(model)
    if model._training_dim != 1:
        raise UnsupportedModelError(
            "this TransformedTargetRegressor was fitted on a table of targets: fit it on a single column, y.ravel()"
        )
    members = Members.read(model, held(model))
    unit = FLOAT32 if members.models[0].ensemble.precision == "float32" else FLOAT64
    maps = tuple(replace(step, unit=unit) for step in _taken_back(model.transformer_))
    total = replace(chained(members.values(0), maps, model), replayed=False)
    return whole_model(model, members, Decision("value", totals=(total,)))


def _taken_back(transformer: Any) -> tuple[Map, ...]:
    """The inverse of a transformation of the target.

    Raises
    ------
    UnsupportedModelError
        It is none of those that are known.
    """
    kind = type(transformer).__name__ if type(transformer).__module__.startswith("sklearn.") else ""
    if kind == "FunctionTransformer" and not transformer.inv_kw_args:
        known = {None: (), np.exp: (Map("exp"),), np.expm1: (Map("exp"), Map("affine", (1.0, -1.0)))}
        if transformer.inverse_func in known:
            return known[transformer.inverse_func]
    if kind in ("StandardScaler", "RobustScaler", "MaxAbsScaler"):
        place, scale = (getattr(transformer, name, None) for name in ("center_", "scale_"))
        place = getattr(transformer, "mean_", None) if kind == "StandardScaler" and transformer.with_mean else place
        return (Map("affine", (1.0 if scale is None else float(scale[0]), 0.0 if place is None else float(place[0]))),)
    if kind == "MinMaxScaler" and not transformer.clip:
        return Map("affine", (1.0, -float(transformer.min_[0]))), Map("affine", (1 / float(transformer.scale_[0]), 0.0))
    said = (
        f"inverse_func={transformer.inverse_func!r}" if kind == "FunctionTransformer" else f"a {kind or 'transformer'}"
    )
    raise UnsupportedModelError(
        f"TransformedTargetRegressor takes its target back by {said}, which is not read: fit it with func=numpy.log1p "
        "and inverse_func=numpy.expm1, or with a StandardScaler; or give ocf its regressor_, and the target in the "
        "transformed values"
    )

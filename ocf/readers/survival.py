"""Reader of scikit-survival's trees, forests and gradient boosting, whose trees are scikit-learn's.

What is explained is what ``predict`` shows: the risk score of a tree or forest (the sum of the cumulative hazards of a
leaf, averaged over the trees), the log hazard ratio of a Cox model, or the time until the event. `survival_at` makes a
model of the probability to survive up to a time, which each leaf of a forest knows, and which follows the log hazard
ratio ``f`` of a Cox model by ``S(t)**exp(f)`` with Breslow's estimate ``S`` of the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import ModelError, ProblemError, UnsupportedModelError
from ocf.readers.base import TreeModel, whole
from ocf.readers.nesting import Around
from ocf.readers.sklearn import check_constant_init, tree_of
from ocf.readers.sklearn_common import check_fitted, tree_model
from ocf.trees.ensemble import Decision
from ocf.trees.totals import Map, Term, Total

#: Models of a logarithm of the time until the event.
_TIME_LOSSES = ("squared", "ipcwls")


class SurvivalAt(Around):
    """A survival model that predicts the probability to survive up to a time.

    Parameters
    ----------
    model : estimator of scikit-survival
        Fitted; never changed.
    time : float
        In the units of the training.
    """

    def __init__(self, model: Any, time: float) -> None:
        self.model = model
        self.time = time

    @property
    def inner(self) -> Any:
        """The model."""
        return self.model

    @property
    def place(self) -> int:
        """Number of the event time that counts at `time`: the last one up to it, or the first of all.

        Raises
        ------
        ProblemError
            The model knows nothing of the time.
        """
        times = np.asarray(self.model.unique_times_, np.float64)
        if isinstance(self.time, bool) or not isinstance(self.time, int | float | np.number):
            raise ProblemError(f"a time is a number, not {self.time!r}")
        if not 0 <= self.time <= times[-1]:
            raise ProblemError(
                f"the model knows no survival at time {self.time!r}: give one between 0 and {float(times[-1])!r}, its "
                "last event or censoring"
            )
        return max(int(np.searchsorted(times, self.time, side="right")) - 1, 0)

    def predict(self, X: Any) -> FloatArray:
        """Probability of each row to survive up to the time, (n,)."""
        return np.asarray(self.model.predict_survival_function(X, return_array=True)[:, self.place], np.float64)


def survival_at(model: Any, time: float) -> Any:
    """Model of the probability to survive up to a time, to be explained like a regressor.

    Parameters
    ----------
    model : estimator of scikit-survival, or Pipeline that ends in one
        Fitted; never changed.
    time : float
        In the units of the training.

    Returns
    -------
    SurvivalAt or Pipeline
        For example, ``Explainer(survival_at(forest, 365), data=X).explain(row, target=(0.8, None))``.

    Raises
    ------
    ProblemError
        The model knows nothing of the time.
    ModelError
        It is not fitted.
    UnsupportedModelError
        It is no sum of trees, or keeps no survival functions.
    """
    if hasattr(model, "steps"):
        name, last = model.steps[-1]
        return type(model)([*model.steps[:-1], (name, survival_at(last, time))])
    _kind(model)
    with whole(model):
        check_fitted(model)
        _refuse_without_survival(model)
        found = SurvivalAt(model, time)
        _ = found.place
    return found


def matches(model: object) -> bool:
    """Whether the object is a model of scikit-survival, without importing the library, or one of `survival_at`."""
    return isinstance(model, SurvivalAt) or bool(_class_names(model))


def _class_names(model: object) -> set[str]:
    return {cls.__name__ for cls in type(model).__mro__ if cls.__module__.split(".")[0] == "sksurv"}


def read(model: Any) -> TreeModel:
    """Ensemble of a fitted survival tree, forest or gradient boosting, or of what `survival_at` makes of one.

    Parameters
    ----------
    model : SurvivalTree, ExtraSurvivalTree, RandomSurvivalForest, ExtraSurvivalTrees, \
GradientBoostingSurvivalAnalysis or SurvivalAt
        Never changed.

    Raises
    ------
    ModelError
        It is not fitted.
    UnsupportedModelError
        It is no sum of trees, or keeps no survival functions.
    """
    native = model.model if isinstance(model, SurvivalAt) else model
    kind = _kind(native)
    with whole(native):
        import sksurv

        check_fitted(native)
        if isinstance(model, SurvivalAt):
            _refuse_without_survival(native)
        return replace(_READERS[kind](model, native), library=f"scikit-survival {sksurv.__version__}")


def _kind(native: Any) -> str:
    """Class of `_READERS` that a model is of.

    Raises
    ------
    UnsupportedModelError
        It is of none.
    """
    names = _class_names(native)
    kind = next((name for name in _READERS if name in names), None)
    if kind is None:
        raise UnsupportedModelError(
            f"{type(native).__name__} is no sum of survival trees that ocf reads; it reads {', '.join(_READERS)}"
        )
    return kind


def _refuse_without_survival(native: Any) -> None:
    if getattr(native, "low_memory", False):
        raise UnsupportedModelError(
            f"this {type(native).__name__} keeps no survival functions: fit it with low_memory=False"
        )
    if getattr(native, "loss", "coxph") != "coxph":
        raise UnsupportedModelError(
            f"{type(native).__name__} with loss={native.loss!r} predicts times and no survival: fit it with "
            "loss='coxph'"
        )


def _read_tree(model: Any, native: Any) -> TreeModel:
    return _averaged(model, native, [native])


def _read_forest(model: Any, native: Any) -> TreeModel:
    return _averaged(model, native, native.estimators_)


def _averaged(model: Any, native: Any, trees: Sequence[Any]) -> TreeModel:
    """Trees whose risk scores or survival functions are averaged."""
    if isinstance(model, SurvivalAt):
        values = [tree.tree_.value[:, model.place, 1] for tree in trees]
    else:
        values = [_risks(tree) for tree in trees]
    # numpy adds the hazards of a leaf in an order of its own
    terms = 0 if isinstance(model, SurvivalAt) or native.low_memory else len(native.unique_times_)
    largest = max(float(np.abs(v).max()) for v in values)
    return tree_model(
        model,
        [tree_of(tree, v[:, None]) for tree, v in zip(trees, values, strict=True)],
        weights=np.full(len(trees), 1 / len(trees)),
        base_score=np.zeros(1),
        decision=Decision("value", link="identity" if terms else "mean", slack=terms * 2.0**-53 * largest),
        native_scores=model.predict,
    )


def _risks(tree: Any) -> FloatArray:
    """Risk score of each node: the sum of its cumulative hazards at the times of events."""
    if tree.low_memory:
        return np.asarray(tree.tree_.value[:, 0, 0])
    return np.asarray(tree.tree_.value[:, :, 0][:, tree.is_event_time_].sum(1))


def _boosted(model: Any, native: Any) -> TreeModel:
    check_constant_init(native)
    if native.loss != "coxph" and native.loss not in _TIME_LOSSES:
        raise UnsupportedModelError(f"the loss {native.loss!r} of {type(native).__name__} is not read")
    if isinstance(model, SurvivalAt):
        decision = Decision("value", totals=(_breslow(model, native),))
    else:
        decision = Decision("value", link="identity" if native.loss == "coxph" else "exp")
    scale = getattr(native, "_scale", np.ones(len(native.estimators_)))
    trees = [tree for (tree,) in native.estimators_]
    return tree_model(
        model,
        [tree_of(tree, tree.tree_.value[:, 0, :]) for tree in trees],
        weights=native.learning_rate * np.asarray(scale, np.float64)[: len(trees)],
        base_score=native._raw_predict_init(np.zeros((1, native.n_features_in_), np.float32))[0],
        decision=decision,
        native_scores=partial(_raw_scores, native),
    )


def _raw_scores(native: Any, rows: Any) -> FloatArray:
    """Scores before the exponential that makes times or survival of them."""
    return np.asarray(native._raw_predict(np.ascontiguousarray(rows, np.float32)), np.float64)


def _breslow(model: SurvivalAt, native: Any) -> Total:
    """Survival as a function of the log hazard ratio f: ``exp(log S * exp(f))``."""
    survival = float(native._get_baseline_model().baseline_survival_.y[model.place])
    if not 0 < survival < 1:
        raise ModelError(f"every row survives up to time {model.time!r} with probability {survival}: give another time")
    return Total((Term(0, (Map("exp"), Map("affine", (float(np.log(survival)), 0.0)), Map("exp"))),))


#: Class name -> reader, for every kind that can be read.
_READERS: dict[str, Callable[[Any, Any], TreeModel]] = {
    "SurvivalTree": _read_tree,
    "ExtraSurvivalTree": _read_tree,
    "RandomSurvivalForest": _read_forest,
    "ExtraSurvivalTrees": _read_forest,
    "GradientBoostingSurvivalAnalysis": _boosted,
}

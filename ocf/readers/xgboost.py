"""Reader of XGBoost models: files, boosters and scikit-learn estimators.

The ensemble comes from the model document (`ocf.readers.xgboost_format`), whichever way the model arrives;
scores and decisions come from the user's own object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ocf.arrays import FloatArray
from ocf.errors import DataError, MissingDependencyError, ModelError, UnsupportedModelError
from ocf.readers import ubjson
from ocf.readers.base import Rows, TreeModel
from ocf.readers.trees import Role, as_categories, fit_columns
from ocf.readers.xgboost_format import ensemble_of, parse, read_categories, read_document, read_saved, saved_role
from ocf.readers.xgboost_outputs import n_targets, of_all_targets, of_target
from ocf.readers.xgboost_writer import rewritten, write
from ocf.trees.ensemble import Decision


def matches(model: object) -> bool:
    """Whether `model` is a booster or a scikit-learn estimator of XGBoost, without importing the library."""
    return bool(_class_names(model) & {"Booster", "XGBModel"})


def _class_names(model: object) -> set[str]:
    return {c.__name__ for c in type(model).__mro__ if c.__module__.partition(".")[0] == "xgboost"}


def sniff(data: bytes) -> bool:
    """Whether a file that begins with `data` looks like XGBoost's JSON or UBJSON."""
    key = rb"(learner|version)"
    return re.match(rb'\s*\{\s*"' + key + rb'"\s*:|\{[iUIlL]\x00*.' + key, data, re.DOTALL) is not None


def load(path: Path) -> Any:
    """Model of a JSON or UBJSON file, loaded by XGBoost itself.

    The library may crash on a damaged file. So it never sees the file: this reader checks every part of it and
    writes it anew (`ocf.readers.xgboost_writer`).

    Returns
    -------
    Booster, XGBClassifier or XGBRegressor
        The estimator when the file was saved by one, else the booster.

    Raises
    ------
    ModelError
        The file is empty, truncated, corrupt or of another format.
    UnsupportedModelError
        See `read_document`.
    MissingDependencyError
        XGBoost is not installed.
    """
    data = Path(path).read_bytes()
    try:
        document = parse(data)
        checked = _checked(document)
    except ModelError as cause:
        raise type(cause)(f"{path}: {cause}") from cause
    try:
        import xgboost
    except ImportError as cause:
        raise MissingDependencyError("xgboost", "xgboost", f"re-predicting with the model in {path}") from cause
    kinds = {
        "booster": xgboost.Booster,
        "classifier": xgboost.XGBClassifier,
        "regressor": xgboost.XGBRegressor,
    }
    native = kinds[saved_role(document)]()
    try:
        native.load_model(bytearray(checked))
    except (xgboost.core.XGBoostError, ValueError, TypeError) as cause:
        raise ModelError(f"{path}: XGBoost cannot load it ({_first_line(cause)}): save the model again") from cause
    return native


def _checked(document: Mapping[str, Any]) -> bytes:
    """A document written anew from its checked parts; of several targets each is looked at by itself."""
    role, count = saved_role(document), n_targets(document)
    if count < 2:
        saved = read_saved(document)
        ensemble_of(saved, role)
        return write(document, saved)
    alone = [of_target(document, number) for number in range(count)]
    each = [read_saved(own) for own in alone]
    for saved in each:
        ensemble_of(saved, role)
    parts = [rewritten(own, saved) for own, saved in zip(alone, each, strict=True)]
    return ubjson.encode(of_all_targets(document, parts))


def read(native: Any) -> TreeModel:
    """Ensemble of a fitted booster or estimator, with the object's own scores and decisions.

    Parameters
    ----------
    native : Booster, XGBClassifier, XGBRegressor, XGBRFClassifier or XGBRFRegressor
        Never changed.

    Raises
    ------
    ModelError
        The model is not fitted.
    UnsupportedModelError
        A linear booster, vector leaves, several targets, an objective without a class or value, or a value
        other than NaN that stands for missing ones.
    """
    return _read(native, native, None)


def count_targets(native: Any) -> int:
    """How many targets a fitted model predicts."""
    return n_targets(json.loads(_booster(native).save_config()))


def read_output(shown: Any, native: Any, number: int) -> TreeModel:
    """Ensemble of one target of a model of several.

    Parameters
    ----------
    shown : object
        What stands for that target, as the model to be kept.
    native : Booster, XGBClassifier or XGBRegressor
    number : int
    """
    return _read(shown, native, number)


def _read(shown: Any, native: Any, number: int | None) -> TreeModel:
    """Ensemble of a model, or of one of its targets."""
    import xgboost

    role = _role(native)
    document = ubjson.decode(bytes(_booster(native).save_raw("ubj")))
    if number is not None:
        document = of_target(document, number)
    ensemble = read_document(document, role)
    named = bool(len(document["learner"].get("feature_names", ())))
    categories = read_categories(document)
    predict = partial(_predict, native, role, ensemble.feature_names, named, categories)
    if number is not None:
        predict = partial(_column, predict, number)
    return TreeModel(
        ensemble=ensemble,
        native=shown,
        scores=lambda rows: predict(rows, margin=True).astype(np.float64).reshape(-1, ensemble.n_outputs),
        decide=lambda rows: _answer(predict(rows, margin=False), ensemble.decision, role),
        library=f"xgboost {xgboost.__version__}",
        categories=categories,
        probabilities=partial(_probabilities, predict)
        if ensemble.decision.classes and ensemble.decision.link != "identity"
        else None,
        absent_is_missing=True,
    )


def _column(predict: Callable[..., NDArray[np.float32]], number: int, rows: Rows, **asked: bool) -> Any:
    """What a model of several targets says of one."""
    return predict(rows, **asked)[:, number]


def _role(native: Any) -> Role:
    names = _class_names(native)
    if "XGBModel" not in names:
        return "booster"
    if "XGBRanker" in names:
        raise UnsupportedModelError("a ranker has no class or value to aim at: train an XGBRegressor on the relevance")
    if native.missing is not None and not np.isnan(native.missing):
        raise UnsupportedModelError(
            f"the value {native.missing!r} stands for missing ones, and cuts a hole into every split: replace "
            "it by NaN in the data and fit with missing=numpy.nan"
        )
    return "classifier" if "XGBClassifier" in names else "regressor"


def _booster(native: Any) -> Any:
    if "XGBModel" not in _class_names(native):
        return native
    if not native.__sklearn_is_fitted__():
        raise ModelError(f"the {type(native).__name__} is not fitted: call fit before reading it")
    return native.get_booster()


def _predict(
    native: Any,
    role: Role,
    names: tuple[str, ...],
    named: bool,
    categories: Mapping[int, tuple[Any, ...]],
    rows: Rows,
    *,
    margin: bool,
    probabilities: bool = False,
) -> NDArray[np.float32]:
    """Ask the user's own object, for rows of either form."""
    import xgboost

    rows = as_categories(fit_columns(rows, names, named=named), names, categories, closed=True)
    try:
        if role == "classifier" and probabilities:
            return np.asarray(native.predict_proba(rows))
        if role != "booster":
            return np.asarray(native.predict(rows, output_margin=margin))
        # a table brings its own names and types, an array gets those that the booster expects
        described = {} if hasattr(rows, "columns") else _description(native)
        matrix = xgboost.DMatrix(rows, enable_categorical=True, nthread=1, **described)
        return np.asarray(native.predict(matrix, output_margin=margin))
    except (ValueError, TypeError) as cause:  # XGBoostError is a ValueError
        raise DataError(
            f"XGBoost cannot score these rows ({_first_line(cause)}): give the columns and dtypes of the training data"
        ) from cause


def _probabilities(predict: Callable[..., NDArray[np.float32]], rows: Rows) -> FloatArray:
    """Class probabilities in the library's own float32 arithmetic, as its ``predict_proba`` gives them."""
    shown = predict(rows, margin=False, probabilities=True)
    if shown.ndim == 1:  # a booster shows one probability of two, or of several classes the largest
        margin = predict(rows, margin=True)
        shown = softmax(margin, axis=1) if margin.ndim == 2 else np.column_stack([1.0 - shown, shown])
    return shown.astype(np.float64)


def _description(booster: Any) -> dict[str, Any]:
    return {"feature_names": booster.feature_names, "feature_types": booster.feature_types}


def _answer(shown: NDArray[np.float32], decision: Decision, role: Role) -> NDArray[Any]:
    """Class indices or values from what ``predict`` returns."""
    if decision.kind == "value":
        return shown.astype(np.float64)
    if shown.ndim == 2:  # probabilities, or an indicator per class
        return shown.argmax(axis=1)
    if decision.kind == "threshold" and role == "booster":
        # a booster shows the probability or, without a link, the score; hinge shows the class itself, 0 or 1
        return (shown > (0.5 if decision.link == "logistic" else 0.0)).astype(np.int64)
    return shown.astype(np.int64)


def _first_line(cause: BaseException) -> str:
    """Cut the stack trace off the library's message."""
    return re.sub(r"^\[[\d:]+\] (\S+:\d+: )?", "", str(cause).strip().partition("\n")[0])

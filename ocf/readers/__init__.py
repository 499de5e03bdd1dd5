"""Readers: one file for each library whose models become an Ensemble.

A reader module has two functions: ``matches(model) -> bool``, which judges an object by its type without
importing the library, and ``read(model) -> TreeModel``. One whose library has a file format adds
``sniff(data) -> bool`` and ``load(path) -> object``. Adding a library is one file and one line in `READERS`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ocf.errors import UnsupportedModelError
from ocf.readers.base import TreeModel

#: Modules asked in turn.
READERS = (
    "ocf.readers.survival",  # before scikit-learn's, whose ensembles its models derive from
    "ocf.readers.oblique",  # before scikit-learn's, whose Bagging may hold oblique trees
    "ocf.readers.sklearn_wrappers",
    "ocf.readers.sklearn_votes",
    "ocf.readers.sklearn",
    "ocf.readers.outputs",
    "ocf.readers.xgboost",
    "ocf.readers.lightgbm",
    "ocf.readers.catboost",
    "ocf.readers.interpret",
    "ocf.readers.onnx",
    "ocf.readers.treelite",
)

_SUPPORTED = (
    "XGBoost boosters and estimators, LightGBM boosters and estimators, CatBoost classifiers and regressors, "
    "InterpretML's explainable boosting machines, scikit-survival's trees, forests and gradient boosting, ONNX models "
    "of trees, treelite models, "
    "and scikit-learn's DecisionTree, "
    "ExtraTree, RandomForest, ExtraTrees, Bagging of trees, GradientBoosting, HistGradientBoosting and "
    "AdaBoostClassifier, searches, thresholds, calibration, transformed targets, votes and stacks of them, ocf's TAO "
    "trees, Bagging of them, and oblique trees as plain arrays"
)


def read_model(native: Any) -> TreeModel:
    """Ensemble of a trained model, beside the model itself.

    Parameters
    ----------
    native : object
        A fitted model of a supported library.

    Returns
    -------
    TreeModel

    Raises
    ------
    ModelError
        If the model is not fitted or corrupt.
    UnsupportedModelError
        If no reader knows the model.
    """
    if isinstance(native, type):
        raise UnsupportedModelError(
            f"{native.__qualname__} is a class, and no model: give ocf an object of it that was fitted, "
            f"{native.__qualname__}(...).fit(X, y)"
        )
    for name in READERS:
        reader = import_module(name)
        if reader.matches(native):
            return reader.read(native)
    if _is_pipeline(native):
        raise UnsupportedModelError(
            "a Pipeline is split into its encoders and its model before reading: pass the Pipeline to "
            "ocf.Explainer, or its last step, pipeline[-1], here"
        )
    kind = f"{type(native).__module__}.{type(native).__qualname__}"
    if getattr(native, "kernel", "linear") == "linear" and import_module("ocf.readers.linear").matches(native):
        raise UnsupportedModelError(f"{kind} is no sum of trees: linear models are explained by ocf.LinearExplainer")
    if kind.startswith("pyspark."):
        raise UnsupportedModelError(
            f"{kind} is not read: export its trees to ONNX (onnxmltools.convert_sparkml) and give ocf the ONNX model"
        )
    if callable(getattr(native, "predict", None)):
        otherwise = "For any model with predict CounterfactualRules (ocf rules) estimates ranges"
    else:
        otherwise = "It has no predict: the model comes first, then the data"
    raise UnsupportedModelError(f"no reader for {kind}; ocf reads {_SUPPORTED}. {otherwise}")


def _is_pipeline(native: Any) -> bool:
    return any(
        cls.__name__ == "Pipeline" and cls.__module__.split(".")[0] in ("sklearn", "imblearn")
        for cls in type(native).__mro__
    )

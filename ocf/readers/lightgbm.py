"""Reader of LightGBM models: text files, boosters and scikit-learn estimators.

The ensemble comes from the text model (`ocf.readers.lightgbm_format`), whichever way the model arrives; scores and
decisions come from the user's own object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import DataError, MissingDependencyError, ModelError, UnsupportedModelError
from ocf.readers.base import Rows, TreeModel
from ocf.readers.lightgbm_format import category_columns, parse, read_text, score_divisor
from ocf.readers.lightgbm_writer import write
from ocf.readers.trees import Role, as_categories, fit_columns
from ocf.trees.ensemble import Decision


def matches(model: object) -> bool:
    """Whether `model` is a booster or a scikit-learn estimator of LightGBM, without importing the library."""
    return bool(_class_names(model) & {"Booster", "LGBMModel"})


def _class_names(model: object) -> set[str]:
    return {c.__name__ for c in type(model).__mro__ if c.__module__.partition(".")[0] == "lightgbm"}


def sniff(data: bytes) -> bool:
    """Whether a file that begins with `data` looks like LightGBM's text format."""
    return re.match(rb"tree\r?\n(version|num_class)=", data) is not None


def load(path: Path) -> Any:
    """Booster of a text file, loaded by LightGBM itself.

    The library may crash on a damaged file. So it never sees the file: this reader checks every part of it and
    writes it anew (`ocf.readers.lightgbm_writer`).

    Returns
    -------
    lightgbm.Booster

    Raises
    ------
    ModelError
        The file is empty, truncated, corrupt or of another format.
    UnsupportedModelError
        See `ocf.readers.lightgbm_format.read_text`.
    MissingDependencyError
        LightGBM is not installed.
    """
    try:
        model = parse(Path(path).read_bytes().decode())
        read_text(model)
        checked = write(model)
    except UnicodeDecodeError as cause:
        raise ModelError(f"{path}: no text file, so no LightGBM model: save it with booster.save_model") from cause
    except ModelError as cause:
        raise type(cause)(f"{path}: {cause}") from cause
    try:
        import lightgbm
    except ImportError as cause:
        raise MissingDependencyError("lightgbm", "lightgbm", f"re-predicting with the model in {path}") from cause
    try:
        return lightgbm.Booster(model_str=checked)
    except (lightgbm.basic.LightGBMError, ValueError) as cause:
        raise ModelError(f"{path}: LightGBM cannot load it ({cause}): save the model again") from cause


def read(native: Any) -> TreeModel:
    """Ensemble of a fitted booster or estimator, with the object's own scores and decisions.

    Like ``predict``, it stops after the best round of early stopping.

    Parameters
    ----------
    native : Booster, LGBMClassifier or LGBMRegressor
        Never changed.

    Raises
    ------
    ModelError
        The model is not fitted.
    UnsupportedModelError
        Linear leaves, zero for missing, an objective without a class or value, or predictions that stop early.
    """
    import lightgbm

    role = _role(native)
    booster = _booster(native)
    text = parse(booster.model_to_string())
    ensemble = read_text(text, role, native.classes_.tolist() if role == "classifier" else None)
    categories = category_columns(text, booster.pandas_categorical or ())
    library = _Library(native, booster, role, ensemble.feature_names, categories)
    divisor = score_divisor(text)
    return TreeModel(
        ensemble=ensemble,
        native=native,
        scores=lambda rows: library.raw_scores(rows).reshape(-1, ensemble.n_outputs) / divisor,
        decide=lambda rows: library.decide(rows, ensemble.decision),
        library=f"lightgbm {lightgbm.__version__}",
        probabilities=library.probabilities if ensemble.decision.classes else None,
        categories=categories,
        margin_scale=divisor,
    )


def _role(native: Any) -> Role:
    names = _class_names(native)
    if "LGBMModel" not in names:
        return "booster"
    if "LGBMRanker" in names:
        raise UnsupportedModelError("a ranker has no class or value to aim at: train an LGBMRegressor on the relevance")
    if str(native.get_params().get("pred_early_stop", False)).lower() in ("true", "1", "+"):
        raise UnsupportedModelError(
            "pred_early_stop=True lets predict leave trees out: set it to False with model.set_params"
        )
    return "classifier" if "LGBMClassifier" in names else "regressor"


def _booster(native: Any) -> Any:
    if "LGBMModel" not in _class_names(native):
        return native
    if not native.__sklearn_is_fitted__():
        raise ModelError(f"the {type(native).__name__} is not fitted: call fit before reading it")
    return native.booster_


@dataclass(frozen=True)
class _Library:
    """The user's own object, given rows in the form that it takes without a warning."""

    native: Any
    booster: Any
    role: Role
    names: tuple[str, ...]
    categories: Mapping[int, tuple[Any, ...]]

    def raw_scores(self, rows: Rows) -> FloatArray:
        return self._predict(self.booster, self._fit(rows), raw_score=True).astype(np.float64)

    def decide(self, rows: Rows, decision: Decision) -> NDArray[Any]:
        rows = self._fit(rows)
        if self.role == "classifier" and not self._holds_codes(rows):
            labels = self._predict(self.native, self._with_names(rows))
            return np.searchsorted(self.native.classes_, labels).astype(np.int64)
        shown = self._predict(self.booster, rows)
        if decision.kind == "value":
            return shown.astype(np.float64)
        if decision.kind == "argmax":
            return shown.argmax(axis=1)
        return (shown > 0.5).astype(np.int64)

    def probabilities(self, rows: Rows) -> FloatArray:
        rows = self._fit(rows)
        if self.role == "classifier" and not self._holds_codes(rows):
            return np.asarray(self.native.predict_proba(self._with_names(rows)), np.float64)
        shown = self._predict(self.booster, rows).astype(np.float64)
        return np.column_stack([1.0 - shown, shown]) if shown.ndim == 1 else shown

    def _fit(self, rows: Rows) -> Rows:
        if isinstance(rows, pd.DataFrame):
            # the library writes names without spaces
            rows = rows.set_axis([str(c).replace(" ", "_") for c in rows.columns], axis=1)
        default = tuple(f"Column_{i}" for i in range(len(self.names)))
        return as_categories(fit_columns(rows, self.names, named=self.names != default), self.names, self.categories)

    def _holds_codes(self, rows: Rows) -> bool:
        """Whether category columns come as codes, which only the booster takes once it knows their categories."""
        return bool(self.booster.pandas_categorical) and not isinstance(rows, pd.DataFrame)

    def _with_names(self, rows: Rows) -> Rows:
        """Estimators fitted on a table warn about an array."""
        if isinstance(rows, pd.DataFrame) or not hasattr(self.native, "feature_names_in_"):
            return rows
        return pd.DataFrame(rows, columns=list(self.names))

    def _predict(self, model: Any, rows: Rows, **options: Any) -> NDArray[Any]:
        import lightgbm

        try:
            return np.asarray(model.predict(rows, **options))
        except (lightgbm.basic.LightGBMError, ValueError, TypeError) as cause:
            raise DataError(
                f"LightGBM cannot score these rows ({cause}): give the columns and dtypes of the training data"
            ) from cause

"""Models that are a sum of one function per feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import DataError, UnsupportedModelError
from ocf.features.feature import Feature
from ocf.features.frames import PANDAS, FrameKind
from ocf.models.encoding import Encoding
from ocf.models.user_model import UserModel, pipeline_encoder, preprocessing_of, working
from ocf.readers import linear as reader
from ocf.readers.linear import LinearModel


@dataclass(frozen=True)
class _Additive:
    """Scores as sums over features; the same for every row.

    Attributes
    ----------
    constant : (n_scores,)
    slopes : (n_scores, n_features)
    tables : tuple of (n_levels, n_scores)
    error_bound : (n_scores,)
        Bound on |the library's score - this sum|.
    """

    constant: FloatArray
    slopes: FloatArray
    tables: tuple[FloatArray, ...]
    error_bound: FloatArray


def is_linear(model: Any) -> bool:
    """Whether a model, or the last step of a Pipeline, is a linear classifier."""
    steps = getattr(model, "steps", None)
    return reader.matches(steps[-1][1] if steps else model)


def as_linear_model(model: Any, frames: FrameKind = PANDAS) -> UserModel:
    """Wrap a fitted linear classifier or a Pipeline that ends in one; `trees` of the result is its LinearModel.

    Parameters
    ----------
    model : estimator or Pipeline
    frames : FrameKind
        Of the user's data, where a Pipeline knows no names of its columns.

    Raises
    ------
    ModelError
        Unfitted or unsupported.
    """
    steps = getattr(model, "steps", None)
    if steps and len(steps) > 1:
        linear = reader.read(steps[-1][1])
        columns, given, encode = pipeline_encoder(model, frames=frames)
    else:
        model = steps[-1][1] if steps else model
        linear = reader.read(model)
        names = getattr(model, "feature_names_in_", None)
        columns = None if names is None else tuple(map(str, names))

        def given(table: pd.DataFrame) -> Any:
            return table[list(columns)] if columns else table.to_numpy()

        def encode(table: pd.DataFrame) -> FloatArray:
            return np.asarray(given(table), np.float64)

    classes = {label: index for index, label in enumerate(linear.classes)}

    def decide(table: pd.DataFrame) -> NDArray[Any]:
        with working(model):
            return np.array([classes[label] for label in np.asarray(model.predict(given(table))).tolist()], np.int64)

    def probabilities(table: pd.DataFrame) -> FloatArray:
        with working(model):
            return np.asarray(model.predict_proba(given(table)), np.float64)

    preprocessing = preprocessing_of(columns, given, steps[:-1] if steps else ())
    shown = probabilities if hasattr(model, "predict_proba") else None
    return UserModel(model, cast(Any, linear), columns, encode, decide, preprocessing, shown, frames)


# -- scores as sums over features --------------------------------------------------------------------------------


def requirement_signs(n_classes: int, target: int) -> FloatArray:
    """How scores combine to requirements that are at least 0, (n_rows, n_scores).

    Parameters
    ----------
    n_classes : int
    target : int
        Index of the class.
    """
    if n_classes == 2:
        return np.array([[1.0 if target == 1 else -1.0]])
    others = [k for k in range(n_classes) if k != target]
    signs = np.zeros((len(others), n_classes))
    signs[:, target] = 1.0
    signs[np.arange(len(others)), others] = -1.0
    return signs


def as_additive(model: LinearModel, encoding: Encoding) -> _Additive:
    """Slopes, tables and rounding of the scores.

    The bound on rounding: summing ``terms`` products in any order errs by at most ``(terms + 2) u`` times the
    sum of their absolute values, with u half a unit in the last place of the precision; `_affine` bounds what the
    encoding adds. All of it counts twice, because the sums here round as well.

    Parameters
    ----------
    model : LinearModel
    encoding : Encoding
        From features to the model's columns.
    """
    space = encoding.space
    encoding.check_width(model.feature_names)
    encoding.refuse_mixed(np.flatnonzero(np.any(model.weights != 0, axis=0)), model.feature_names)
    unit = 2.0**-24 if model.single or any(f.float_dtype.itemsize < 8 for f in space.features) else 2.0**-53
    n_scores, n = len(model.weights), len(space)
    still = encoding.column_feature < 0
    base = encoding.encode(space.to_frame(encoding.base))[0]
    constant = model.intercept + model.weights[:, still] @ base[still]
    slopes, tables = np.zeros((n_scores, n)), []
    largest = np.abs(base) * still
    encoding_error = np.zeros(len(base))
    for i, feature in enumerate(space.features):
        own = np.flatnonzero(encoding.column_feature == i)
        if feature.discrete:
            encoded = encoding.levels(i)[:, own]
            tables.append(encoded @ model.weights[:, own].T)
            largest[own] = np.abs(encoded).max(axis=0)
            continue
        tables.append(np.zeros((0, n_scores)))
        for column in own:
            slope, offset, reach = _affine(feature, encoding, i, int(column), unit)
            slopes[:, i] += model.weights[:, column] * slope
            constant = constant + model.weights[:, column] * offset
            largest[column] = abs(slope) * reach + abs(offset)
            encoding_error[column] = _encoding_error(slope, offset, reach, unit)
    summed = (model.terms + 2) * unit * (model.size @ largest + np.abs(model.intercept))
    return _Additive(constant, slopes, tuple(tables), 2 * (summed + model.size @ encoding_error))


def _affine(feature: Feature, encoding: Encoding, i: int, column: int, unit: float) -> tuple[float, float, float]:
    """Slope and offset of the encoding of a numeric feature, and the largest absolute value it is used for.

    Raises
    ------
    DataError
        No finite bounds.
    UnsupportedModelError
        The encoding is not affine.
    """
    if not (np.isfinite(feature.lower) and np.isfinite(feature.upper)):
        raise DataError(f"feature {feature.name!r}: a linear model needs finite bounds, for example bounds = [0, 100]")
    low, high = feature.lower, feature.upper if feature.upper > feature.lower else feature.lower + 1.0
    values = np.linspace(low, high, 33)
    if feature.float_dtype.itemsize < 8:
        values = values.astype(feature.float_dtype).astype(np.float64)
    encoded = encoding.varied(i, values)[:, column]
    if np.array_equal(encoded, values):
        slope, offset = 1.0, 0.0
    else:
        slope = float((encoded[-1] - encoded[0]) / (values[-1] - values[0]))
        offset = float(encoded[0] - slope * values[0])
    reach = max(abs(low), abs(high))
    fits = encoding.columns[column].affine
    if not fits or not np.abs(encoded - (slope * values + offset)).max() <= _encoding_error(slope, offset, reach, unit):
        raise UnsupportedModelError(
            f"the preprocessing of feature {feature.name!r} is not of the form a x + b, so the score is not linear in "
            "it: give ocf the table after that step"
        )
    return slope, offset, reach


def _encoding_error(slope: float, offset: float, reach: float, unit: float) -> float:
    """Bound on the difference of an affine encoding and its fitted line.

    A scaler rounds twice (subtract, divide; multiply, add), each time by a unit of an intermediate result, at most
    ``|slope| reach + |offset|`` in size once expressed in the result's units. Two scalers in a row and the line through
    two such values, which adds three times as much again, stay below 16 units. A chain that rounds more is refused,
    because its encoding leaves the line.
    """
    return 0.0 if (slope, offset) == (1.0, 0.0) else 16 * unit * (abs(slope) * reach + abs(offset))

"""The dtypes in which rows are asked about: preprocessing computes in them, so splits are read in them too.

A scaler computes in float32 where all its columns are float32, and in float64 otherwise. A row's numbers therefore stay
in the row's own precision; whole numbers and truth values that arrive as floats, as those of a list do, go back to the
data's dtype where that holds them exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace


def conformed(frame: pd.DataFrame, space: FeatureSpace) -> pd.DataFrame:
    """Rows with whole numbers, truth values and categories in the dtypes of the data; other numbers keep theirs.

    Parameters
    ----------
    frame : DataFrame
        With the columns of `space`, in any order.
    space : FeatureSpace
    """
    owner = {column: feature for feature in space.features for column in feature.columns}
    out = frame
    for place, column in enumerate(frame.columns):
        feature = owner[str(column)]
        if feature.dtype == "category":
            held: Any = _categories(frame.iloc[:, place], feature)
        else:
            held = _held(frame.iloc[:, place], feature.dtype)
        if held is not None:
            out = out.copy() if out is frame else out
            out.isetitem(place, held)
    return out


def in_dtypes_of(space: FeatureSpace, frame: pd.DataFrame) -> FeatureSpace:
    """The features with the dtypes in which rows hold their numbers; the space itself where these are its own.

    Parameters
    ----------
    space : FeatureSpace
    frame : DataFrame
        Rows in the user's columns.
    """
    own = {str(column): str(dtype) for column, dtype in frame.dtypes.items()}
    changes = {
        feature.name: {"dtype": own[feature.columns[0]]}
        for feature in space.features
        if own[feature.columns[0]] != feature.dtype
        and _is_number(own[feature.columns[0]])
        and _is_number(feature.dtype)
    }
    return space.updated(changes) if changes else space


def _categories(values: pd.Series[Any], feature: Feature) -> pd.Series[Any] | None:
    """A column of words as categories of the data; None where it has categories, or words that the data has not."""
    if isinstance(values.dtype, pd.CategoricalDtype) or not values.dropna().isin(feature.levels).all():
        return None
    return values.astype(pd.CategoricalDtype(list(feature.levels), ordered=feature.kind == "ordinal"))


def _held(values: pd.Series[Any], dtype: str) -> pd.Series[Any] | None:
    """The column in a dtype that suits the data; None where its own does."""
    if not _is_number(dtype) or str(values.dtype) == dtype:
        return None
    if not _is_number(str(values.dtype)):
        try:
            values = pd.to_numeric(values)
        except (ValueError, TypeError):
            return None
        if not _is_number(str(values.dtype)):
            return None
    real = np.dtype(np.float64).kind
    if _kind(dtype) == real and _kind(str(values.dtype)) == real and not _is_extension(dtype):
        return values
    return next((cast for to in (dtype, "float64") if (cast := _exactly(values, to)) is not None), values)


def _exactly(values: pd.Series[Any], dtype: str) -> pd.Series[Any] | None:
    try:
        cast: pd.Series[Any] = values.astype(dtype)  # type: ignore[call-overload]
        before, after = (v.to_numpy(np.float64, na_value=np.nan) for v in (values, cast))
    except (ValueError, TypeError, OverflowError):
        return None
    return cast if np.array_equal(before, after, equal_nan=True) else None


def _is_number(dtype: str) -> bool:
    return _kind(dtype) in "biuf"


def _kind(dtype: str) -> str:
    """NumPy's letter for the kind of a dtype; "O" for what is no number."""
    try:
        return np.dtype("bool" if dtype == "boolean" else dtype.lower()).kind
    except TypeError:
        return "O"


def _is_extension(dtype: str) -> bool:
    return dtype == "boolean" or dtype[:1].isupper()

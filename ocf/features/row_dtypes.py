"""The dtypes in which rows are asked about: preprocessing computes in them, so splits are read in them too.

A scaler computes in float32 where all its columns are float32, and in float64 otherwise. A row's numbers therefore stay
in the row's own precision; whole numbers and truth values that arrive as floats, as those of a list do, go back to the
data's dtype where that holds them exactly. Where a word is missing stands what does so in the data, None or NaN.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import DataError
from ocf.features.feature import Feature
from ocf.features.number_dtypes import is_nullable, narrow_float, number_dtype, recast, recast_level
from ocf.features.numbers import column_of, dtype_of, numbers_of
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
        own = frame.iloc[:, place]
        if feature.dtype == "category":
            held: Any = _categories(own, feature)
        elif not feature.discrete and number_dtype(feature.dtype) is None:
            held = _of_objects(own, feature)
        else:
            held = _held(_recast_levels(own, feature) if feature.discrete else own, feature.dtype)
            held = _with_gaps(own, feature) if held is None else held
        if held is not None:
            out = out.copy() if out is frame else out
            out.isetitem(place, held)
    return out


def in_dtypes_of(space: FeatureSpace, frame: pd.DataFrame, coded: FloatArray) -> tuple[FeatureSpace, FloatArray]:
    """The features with the dtypes in which rows hold their numbers, and the rows as these read them.

    Both are as they were where the dtypes are the space's own; codes of narrow columns are other numbers in others.

    Parameters
    ----------
    space : FeatureSpace
    frame : DataFrame
        Rows in the user's columns.
    coded : (n, n_features) float64
        The same as the space reads them.
    """
    own = {str(column): str(dtype) for column, dtype in frame.dtypes.items()}
    changes = {
        feature.name: _recast(feature, own[feature.columns[0]])
        for feature in space.features
        if own[feature.columns[0]] != feature.dtype
        and number_dtype(own[feature.columns[0]]) is not None
        and number_dtype(feature.dtype) is not None
    }
    if not changes:
        return space, coded
    recast_space = space.updated(changes)
    return recast_space, recast_space.from_frame(frame)


def _recast(feature: Feature, dtype: str) -> dict[str, Any]:
    """What changes of a feature in another dtype: its numbers are held as they read."""
    cast = partial(recast_level, before=feature.dtype, after=dtype)
    special, permitted = feature.special, feature.permitted
    changed = {
        "dtype": dtype,
        "permitted": None if permitted is None else tuple(map(cast, permitted)),
        "special": None if special is None else replace(special, codes=tuple(map(cast, special.codes))),
    }
    if feature.discrete:
        return {**changed, "levels": tuple(map(cast, feature.levels))}
    return {**changed, "lower": cast(feature.lower), "upper": cast(feature.upper)}


def exact_in(values: pd.Series[Any], dtype: Any) -> pd.Series[Any]:
    """Values in the dtype of a column if that holds them exactly; otherwise as they are, categories as objects.

    Parameters
    ----------
    values : Series
        None of them missing.
    dtype : dtype
    """
    plain = values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values
    try:
        cast: pd.Series[Any] = plain.astype(dtype)
        return cast if (cast.astype(object) == plain).all() else plain
    except (ValueError, TypeError, OverflowError):
        return plain


def other_gaps(frame: pd.DataFrame, space: FeatureSpace) -> dict[str, dict[str, str]]:
    """Where rows mark a missing word otherwise than the data, whose mark the model is shown.

    Parameters
    ----------
    frame : DataFrame
        As the user gave it.
    space : FeatureSpace

    Returns
    -------
    dict of str to dict
        By feature, the marks: ``{"row": "NaN", "data": "None"}``.
    """
    found = {}
    for feature in space.features:
        if feature.discrete and len(feature.columns) == 1 and feature.dtype != "category":
            others = _other_marks(frame[feature.columns[0]], feature)
            if others:
                found[feature.name] = {"row": " or ".join(others), "data": _own_mark(feature)}
    return found


def _own_mark(feature: Feature) -> str:
    """What stands in the data's column where a word is missing, in words."""
    return "pd.NA" if feature.dtype == "string" else "None" if feature.none else "NaN"


def _other_marks(values: pd.Series[Any], feature: Feature) -> list[str]:
    """What stands in a column of words where one is missing, other than in the data's, in words."""
    if number_dtype(feature.dtype) is not None:
        return []
    marks = {"None" if v is None else "pd.NA" if v is pd.NA else "NaN" for v in values[values.isna()]}
    return sorted(marks - {_own_mark(feature)})


def _with_gaps(values: pd.Series[Any], feature: Feature) -> pd.Series[Any] | None:
    """A column of words with the gaps that the data's column has; None where it has no others."""
    if not feature.discrete or not _other_marks(values, feature):
        return None
    filled = [feature.gap if absent else value for value, absent in zip(values, values.isna(), strict=True)]
    return pd.Series(filled, index=values.index, name=values.name, dtype=object)


def _categories(values: pd.Series[Any], feature: Feature) -> pd.Series[Any] | None:
    """A column of words as categories of the data; None where it has categories, or words that the data has not."""
    if isinstance(values.dtype, pd.CategoricalDtype) or not values.dropna().isin(feature.levels).all():
        return None
    return values.astype(pd.CategoricalDtype(list(feature.levels), ordered=feature.kind == "ordinal"))


def _of_objects(values: pd.Series[Any], feature: Feature) -> pd.Series[Any] | None:
    """A column of numbers or dates as the data holds them; None where it is one.

    Raises
    ------
    DataError
        The data's dtype does not hold a moment that is given to a smaller part of a second.
    """
    if dtype_of(values)[0] == feature.dtype:
        return None
    coded = numbers_of(values, feature.dtype)
    held = pd.Series(column_of(coded, feature.dtype, whole=feature.kind == "integer", gap=feature.gap)).set_axis(
        values.index
    )
    if not np.array_equal(numbers_of(held.rename(str(values.name)), feature.dtype), coded, equal_nan=True):
        raise DataError(
            f"column {values.name!r} holds times that the data's {feature.dtype} cannot hold: round them, such as by "
            "dt.floor('s')"
        )
    return held


def _recast_levels(values: pd.Series[Any], feature: Feature) -> pd.Series[Any]:
    """A column of narrow floats as one of nullable ones, as which it is going to be held, holds what they read as."""
    own = str(values.dtype)
    if narrow_float(own) is None or not is_nullable(feature.dtype) or number_dtype(own) == number_dtype(feature.dtype):
        return values
    return values.astype("float64").map(partial(recast, before=own, after=feature.dtype), na_action="ignore")


def _held(values: pd.Series[Any], dtype: str) -> pd.Series[Any] | None:
    """The column in a dtype that suits the data; None where its own does."""
    wanted, own = number_dtype(dtype), number_dtype(str(values.dtype))
    if wanted is None or str(values.dtype) == dtype:
        return None
    if own is None:
        try:
            values = pd.to_numeric(values)
        except (ValueError, TypeError):
            return None
        own = number_dtype(str(values.dtype))
        if own is None:
            return None
    if wanted.kind == "f" and own.kind == "f" and not is_nullable(dtype):
        return values
    return next((cast for to in (dtype, "float64") if (cast := _exactly(values, to)) is not None), values)


def _exactly(values: pd.Series[Any], dtype: str) -> pd.Series[Any] | None:
    try:
        cast: pd.Series[Any] = values.astype(dtype)  # type: ignore[call-overload]
        before, after = (v.to_numpy(np.float64, na_value=np.nan) for v in (values, cast))
    except (ValueError, TypeError, OverflowError):
        return None
    return cast if np.array_equal(before, after, equal_nan=True) else None

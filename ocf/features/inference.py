"""Feature descriptions inferred from a table, overridden by what the user says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.errors import DataError, ProblemError
from ocf.features.curve import Curve
from ocf.features.feature import Feature, Kind
from ocf.features.space import FeatureSpace
from ocf.support.messages import nearest

#: What a user may say of a feature (in a dict or in the ``[features.NAME]`` table of a problem file).
SETTINGS = (
    "kind", "columns", "base", "levels", "bounds", "step", "scale", "actionability", "weight", "permitted_range",
    "cost",
)  # fmt: skip


def as_table(data: pd.DataFrame | ArrayLike, names: tuple[str, ...] | None = None) -> pd.DataFrame:
    """Table of `data`; the columns of an array are named after the model's, or x0, x1, ….

    Parameters
    ----------
    data : DataFrame or (n, n_columns) array_like
    names : tuple of str, optional
        Columns as the model knows them.
    """
    if isinstance(data, pd.DataFrame):
        table = data.rename(columns=str)
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()][0]
            raise DataError(f"two columns of the table are named {twice!r}: give each a name of its own")
        return table
    array = np.asarray(data)
    if array.ndim != 2:
        raise DataError(f"data must be a table (n_rows, n_columns), not an array of shape {array.shape}")
    if names is None or len(names) != array.shape[1]:
        names = tuple(f"x{j}" for j in range(array.shape[1]))
    return pd.DataFrame(array, columns=list(names))


def infer_space(
    data: pd.DataFrame | ArrayLike, settings: Mapping[str, Mapping[str, Any]] | None = None
) -> FeatureSpace:
    """Describe the features of a table.

    Text, category and object columns become categorical; bool columns and number columns that hold just 0 and 1
    binary; whole-number dtypes integer; other numbers numeric. Bounds are the lowest and highest value in the
    data, the scale their difference.

    Parameters
    ----------
    data : DataFrame or array-like (n, n_columns)
        Ideally the training data.
    settings : mapping of feature name to mapping, optional
        Any of `SETTINGS`. A categorical feature that the table holds as indicator columns is described by
        ``{"job": {"kind": "categorical", "columns": {"clerk": "job_clerk", "smith": "job_smith"}}}``; levels
        without an indicator go in ``base``: ``{"base": "none", …}``.

    Returns
    -------
    FeatureSpace
    """
    table = as_table(data)
    if table.empty:
        raise DataError("the data table is empty: give at least one row")
    settings = dict(settings or {})
    groups = {name: s for name, s in settings.items() if isinstance(s.get("columns"), Mapping | list | tuple)}
    grouped = {column: name for name, s in groups.items() for column in _columns(s)}
    for name, setting in settings.items():
        for key in setting:
            if key not in SETTINGS:
                raise DataError(f"feature {name!r}: unknown setting {nearest(key, SETTINGS)}")
        if name not in groups and name not in table.columns:
            raise DataError(f"settings for a feature that the data does not have: {nearest(name, table.columns)}")
    for column in grouped:
        if column not in table.columns:
            raise DataError(f"feature {grouped[column]!r}: no column {nearest(column, table.columns)}")
    features: list[Feature] = []
    done: set[str] = set()
    for column in table.columns:
        name = grouped.get(column, column)
        if name not in done:
            done.add(name)
            setting = settings.get(name, {})
            features.append(_one_hot(name, setting, table) if name in groups else _single(table[column], setting))
    return FeatureSpace(tuple(features), tuple(table.columns))


def _columns(setting: Mapping[str, Any]) -> list[str]:
    columns = setting["columns"]
    return [str(c) for c in (columns.values() if isinstance(columns, Mapping) else columns)]


def _one_hot(name: str, setting: Mapping[str, Any], table: pd.DataFrame) -> Feature:
    columns = _columns(setting)
    unfit = {"levels", "bounds", "step"} & set(setting)
    if unfit:
        raise DataError(f"feature {name!r}: {', '.join(sorted(unfit))} does not fit indicator columns")
    if isinstance(setting["columns"], Mapping):
        levels = list(setting["columns"])
    else:
        levels = [c.removeprefix(f"{name}_") for c in columns]
    if "base" in setting:
        levels.insert(0, setting["base"])
    return Feature(
        name,
        cast(Kind, setting.get("kind", "categorical")),
        columns=tuple(columns),
        base="base" in setting,
        dtype=str(table[columns[0]].dtype),
        levels=tuple(levels),
        **_common(setting, default_scale=max(len(levels) - 1.0, 1.0)),
    )


def _single(column: pd.Series[Any], setting: Mapping[str, Any]) -> Feature:
    name = str(column.name)
    values = column.dropna()
    if "base" in setting:
        raise DataError(f"feature {name!r}: 'base' belongs to features with indicator columns")
    if values.empty:
        raise DataError(f"column {name!r} holds no value: drop it, or describe the feature without data")
    kind = cast(Kind, setting.get("kind") or _kind(values))
    dtype = str(column.dtype)
    unfit = {"levels"} if kind in ("numeric", "integer") else {"bounds", "step"}
    if unfit & set(setting):
        raise DataError(f"feature {name!r}: {', '.join(sorted(unfit & set(setting)))} does not fit kind {kind!r}")
    if kind in ("numeric", "integer"):
        try:
            numbers = values.to_numpy(np.float64)
        except (ValueError, TypeError) as error:
            raise DataError(f"column {name!r} should hold numbers: {error}") from None
        if np.isinf(numbers).any():
            raise DataError(f"column {name!r} holds an infinite value; replace it by a number")
        bounds = setting.get("bounds", (float(numbers.min()), float(numbers.max())))
        lower, upper = (float(b) for b in bounds)
        return Feature(
            name,
            kind,
            dtype=dtype,
            lower=lower,
            upper=upper,
            step=setting.get("step"),
            **_common(setting, default_scale=upper - lower),
        )
    levels = tuple(setting.get("levels", ())) or tuple(_sorted_levels(values))
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels)
    span = float(levels[-1] - levels[0]) if numeric and kind == "ordinal" else len(levels) - 1.0
    return Feature(
        name,
        kind,
        dtype=dtype,
        levels=levels,
        **_common(setting, default_scale=1.0 if kind == "binary" else span),
    )


def _kind(values: pd.Series[Any]) -> str:
    if pd.api.types.is_bool_dtype(values):
        return "binary"
    if not pd.api.types.is_numeric_dtype(values):
        return "categorical"
    if set(values.unique()) == {0, 1}:
        return "binary"
    return "integer" if pd.api.types.is_integer_dtype(values) else "numeric"


def _sorted_levels(values: pd.Series[Any]) -> list[Any]:
    if isinstance(values.dtype, pd.CategoricalDtype):
        return list(values.cat.categories)
    unique = [v.item() if isinstance(v, np.generic) else v for v in values.unique()]
    try:
        return sorted(unique)
    except TypeError:
        return sorted(unique, key=str)


def _curve(said: Any) -> Curve | None:
    try:
        return None if said is None else Curve.parse(said)
    except ProblemError as error:
        raise DataError(f"the cost {said!r} of a feature cannot be read: {error}") from None


def _common(setting: Mapping[str, Any], default_scale: float) -> dict[str, Any]:
    weight = setting.get("weight", 1.0)
    down, up = weight if isinstance(weight, list | tuple) else (weight, weight)
    scale = setting.get("scale", default_scale)
    permitted = setting.get("permitted_range")
    return {
        # a feature that is constant in the data is measured in its own units
        "scale": float(scale) if scale > 0 else 1.0,
        "action": setting.get("actionability", "free"),
        "weight_down": float(down),
        "weight_up": float(up),
        "permitted": None if permitted is None else tuple(permitted),
        "cost": _curve(setting.get("cost")),
    }

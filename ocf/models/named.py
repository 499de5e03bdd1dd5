"""Categories of a library that keeps no names of them, behind the steps of a Pipeline.

A category column of the model is moved by one discrete feature of the table at most, so that its categories are what
the user's own steps make of that feature's levels, and of its missing value where they take that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import DataError, OcfError, UnsupportedModelError
from ocf.features.space import FeatureSpace
from ocf.readers.base import TreeModel
from ocf.readers.transformers.column import Column
from ocf.readers.trees import category_text

#: Table in the user's columns -> what the last step of a Pipeline gets to see of it.
Through = Callable[[pd.DataFrame], Any]


def categories_behind(
    trees: TreeModel, columns: tuple[Column, ...], through: Through, space: FeatureSpace, base: FloatArray
) -> dict[int, tuple[Any, ...]]:
    """Values that each category column of a model has behind steps.

    Parameters
    ----------
    trees : TreeModel
    columns : tuple of Column
        Of the model.
    through : callable
    space : FeatureSpace
        Of the table.
    base : (n_features,) float64
        A coded row, from which features are varied.

    Raises
    ------
    UnsupportedModelError
        A column depends on several features.
    DataError
        A number moves one.
    """
    out = {}
    for j in trees.categories:
        column = columns[j]
        if column.mixed:
            raise UnsupportedModelError(f"model column {trees.feature_names[j]!r}: {column.mixed}")
        rows = base[None]
        if not column.constant:
            feature = space.features[column.feature]
            if not feature.discrete:
                raise DataError(
                    f"the model treats feature {feature.name!r} as categories: describe it as kind 'categorical'"
                )
            rows = np.tile(base, (len(feature.levels) + 1, 1))
            rows[:, column.feature] = [*range(len(feature.levels)), np.nan]
        found: dict[str, Any] = {}
        for row in rows:
            try:
                value = column_of(through(space.to_frame(row)), j)[0]
            except OcfError:  # a level that a step refuses is named where the levels are encoded
                continue
            if not pd.isna(value):
                found.setdefault(category_text(value), value)
        out[j] = tuple(found.values())
    return out


def column_of(values: Any, j: int) -> Any:
    """Column j of an array, or of a table of any library, (n,) objects.

    Parameters
    ----------
    values : (n, n_columns) array or table
    j : int
    """
    if hasattr(values, "iloc"):
        return values.iloc[:, j].to_numpy(object)
    return np.asarray(values, object)[:, j]


def coded(values: Any, categories: Mapping[int, tuple[Any, ...]]) -> FloatArray:
    """What a model sees behind steps as numbers: codes in its category columns, (n, n_columns) float64.

    Parameters
    ----------
    values : (n, n_columns) array or table
    categories : mapping of int to tuple
        Of each column of categories; the last one stands for all others.
    """
    out = np.empty(values.shape, np.float64)
    for j in range(out.shape[1]):
        own = column_of(values, j)
        if j not in categories:
            out[:, j] = pd.to_numeric(pd.Series(own), errors="raise").to_numpy(np.float64, na_value=np.nan)
            continue
        code = {category_text(value): k for k, value in enumerate(categories[j])}
        last = len(code) - 1
        out[:, j] = [np.nan if pd.isna(v) else code.get(category_text(v), last) for v in own]
    return out

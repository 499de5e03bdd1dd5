"""What a model is given of a table: a table where the user has tables, under the user's own labels, or an array.

scikit-learn keeps names of columns only where all are text, and a Pipeline those of its first step. A model that knows
none answers tables as well, but computes in each column's own dtype where an array has one for all: which of them it is
given must be what the user gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from ocf.errors import DataError
from ocf.features.frames import FrameKind
from ocf.readers.sklearn_common import by_known_name
from ocf.support.messages import listed


def input_columns(model: Any) -> tuple[str, ...] | None:
    """Names of the columns that a model was fitted on; of a Pipeline those of its first step that does anything."""
    names = getattr(_first(model), "feature_names_in_", None)
    return None if names is None else tuple(str(n) for n in names)


def _first(model: Any) -> Any:
    """What looks first at the table that a model is given."""
    while hasattr(model, "steps") and not hasattr(model, "feature_names_in_"):
        model = next((step for _, step in model.steps[:-1] if step not in (None, "passthrough")), model.steps[-1][1])
    return model


def giving(model: Any, columns: tuple[str, ...] | None, frames: FrameKind) -> Callable[[pd.DataFrame], Any]:
    """Table in the user's columns -> what a model is given of it.

    Parameters
    ----------
    model : estimator
    columns : tuple of str or None
        As it knows them, if it does.
    frames : FrameKind
        Of the user's data.
    """
    if columns is not None:
        return lambda table: frames.native(_columns_of(table, columns))
    if frames.like is None:
        return lambda table: table.to_numpy()
    # fitted on an array, or on labels that are no text: scikit-learn warns of names that it has not seen
    nameless = hasattr(_first(model), "n_features_in_")
    if nameless and all(isinstance(label, str) for label in frames.like.columns):
        return _numbered
    return lambda table: frames.native(frames.labelled(table))


def _columns_of(table: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    known = {*names} <= {*table.columns}
    return table[list(names if known else matching_columns(names, tuple(table.columns)))]


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """A copy of a table whose columns have their places for labels."""
    out = table.copy()
    out.columns = pd.RangeIndex(table.shape[1])
    return out


def matching_columns(names: tuple[str, ...], columns: tuple[str, ...]) -> tuple[str, ...]:
    """Columns of a table under the names that a model knows; LightGBM writes ``_`` for a space.

    Parameters
    ----------
    names : tuple of str
        As the model knows its columns.
    columns : tuple of str
        Of the table.

    Raises
    ------
    DataError
        Some are missing.
    """
    by_name = by_known_name(columns)
    missing = [n for n in names if n not in by_name]
    if missing:
        extra = [c for c in columns if c not in names]
        others = f"; it has others: {listed(extra)}" if extra else ""
        raise DataError(
            f"the data misses columns that the model was fitted on: {listed(missing)}{others}: give it with the names "
            "of the table that the model was fitted on"
        )
    return tuple(by_name[n] for n in names)

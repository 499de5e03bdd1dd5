"""Rows that a user asks about, in whatever they are, as tables in the user's columns; and in what to answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ocf.errors import DataError
from ocf.features.frames import PANDAS, FrameKind, kind_of, table_of
from ocf.features.space import FeatureSpace

#: What a question about no rows is answered.
NO_ROWS = "there are no rows to explain: give a table of at least one"


def rows_of(space: FeatureSpace, rows: Any, data: FrameKind = PANDAS) -> pd.DataFrame:
    """Rows as a table in the user's columns.

    Parameters
    ----------
    space : FeatureSpace
    rows : table, Series, dict, list of dicts, or array (n, n_columns) or (n_columns,)
        A table is taken as it is; the columns of an array are those of `space`, in order.
    data : FrameKind
        Of the data, whose labels the columns of an array get.

    Raises
    ------
    DataError
        They have another width.
    """
    if isinstance(rows, pd.Series):
        rows = rows.to_frame().T.infer_objects()
    elif isinstance(rows, pd.DataFrame):
        rows = table_of(rows)
    elif (table := table_of(rows)) is not None:
        # words, so that they take the categories of the data
        return table.astype({c: object for c, dtype in table.dtypes.items() if dtype == "category"})
    if not isinstance(rows, pd.DataFrame):
        if isinstance(rows, list | tuple) and not rows:
            raise DataError(NO_ROWS)
        # value by value: beside a word NumPy would turn numbers into text
        mixed = isinstance(rows, list | tuple)
        array = np.atleast_2d(np.asarray(rows, dtype=object) if mixed else np.asarray(rows))
        if array.ndim != 2 or array.shape[1] != len(space.columns):
            raise DataError(f"rows have shape {array.shape}; expected (n, {len(space.columns)})")
        rows = data.labelled(pd.DataFrame(array, columns=list(space.columns)).infer_objects())
    return rows


def one_row_of(space: FeatureSpace, row: Any, data: FrameKind = PANDAS) -> pd.DataFrame:
    """A single row as a table in the user's columns.

    Parameters
    ----------
    space : FeatureSpace
    row : one-row table, Series, dict, or array (n_columns,)
    data : FrameKind
        As for `rows_of`.
    """
    frame = rows_of(space, row, data)
    if len(frame) != 1:
        raise DataError(f"expected one row, not {len(frame)}")
    return frame


def frames_of(rows: Any, data: FrameKind) -> FrameKind:
    """In which kind of table to answer about rows: their own, and that of the data where they are in none.

    Parameters
    ----------
    rows : as for `rows_of`
    data : FrameKind
        Of the data.
    """
    if isinstance(rows, pd.DataFrame | pd.Series):
        return PANDAS
    return kind_of(rows) or data

"""Tables of all libraries: in as pandas, in which ocf works, and out as the user has them.

DataFrames of pandas are taken as they are, but for sparse columns, which become dense. polars, pyarrow and whatever
else narwhals knows or Arrow can read, NumPy's structured arrays, dicts and lists of dicts become such. Answers go back
in the kind of table that the rows came in, with its own dtypes, and so do the tables that the user's Pipeline is asked
about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ocf.errors import DataError
from ocf.features.number_dtypes import number_dtype
from ocf.features.numbers import DECIMAL, dtype_of
from ocf.features.times import is_time


@dataclass(frozen=True)
class FrameKind:
    """The library of a user's tables, and the labels and dtypes of their columns.

    Attributes
    ----------
    like : table or None
        An empty table of the library with the user's columns; None for arrays, which are answered in pandas.
    """

    like: Any = None

    def __bool__(self) -> bool:
        """Whether it is another library than pandas."""
        return not isinstance(self.like, pd.DataFrame | None)

    @property
    def library(self) -> str:
        """Name of the library."""
        return type(self.like).__module__.partition(".")[0] if self else "pandas"

    def labelled(self, table: pd.DataFrame) -> pd.DataFrame:
        """A copy of a table whose columns have the user's own labels, which may be numbers.

        Parameters
        ----------
        table : DataFrame (n, n_columns)
            With columns named by text.
        """
        own = {str(label): label for label in self.like.columns} if isinstance(self.like, pd.DataFrame) else {}
        out = table.copy()
        out.columns = pd.Index([own.get(str(label), label) for label in table.columns])
        return out

    def native(self, table: Any) -> Any:
        """A table of pandas as one of the library; its index is left out.

        Numbers keep the dtype that they have in pandas; words, categories, dates and Decimals take that of the user's
        column of the same name, and so do floats where that is of whole numbers or truth values and holds them.
        """
        if not self or not isinstance(table, pd.DataFrame):
            return table
        import narwhals.stable.v2 as nw

        library = nw.get_native_namespace(self.like)
        frames = []
        for place, name in enumerate(map(str, table.columns)):
            column = table.iloc[:, place]
            made = nw.new_series(name, *_values(column), backend=library)
            widened = name in self._whole and made.dtype.is_float()
            if name in self._dtypes and (widened or number_dtype(str(column.dtype)) is None):
                made = _cast(made, self._dtypes[name])
            frames.append(made.alias(name).to_frame())
        return nw.concat(frames, how="horizontal").to_native()

    @cached_property
    def _whole(self) -> set[str]:
        """Columns of whole numbers or truth values."""
        import narwhals.stable.v2 as nw

        schema = nw.from_native(self.like).schema
        return {name for name, dtype in schema.items() if dtype.is_integer() or dtype == nw.Boolean}

    @cached_property
    def _dtypes(self) -> dict[str, Any]:
        """The library's own dtype of each of the user's columns."""
        import narwhals.stable.v2 as nw

        own = {column.name: column.to_native() for column in nw.from_native(self.like).iter_columns()}
        return {name: getattr(c, "dtype", None) or c.type for name, c in own.items()}


#: That of users of arrays, and of all whose answers are tables of pandas.
PANDAS = FrameKind()


def _values(column: pd.Series[Any]) -> tuple[Any, Any]:
    """Values of a column of pandas as other libraries take them, and the dtype that they should have, if it is known.

    Missing values are None in either.
    """
    import narwhals.stable.v2 as nw

    name, plain = dtype_of(column)
    number = number_dtype(name)
    missing = column.isna().to_numpy()
    if number is not None:
        dtype = getattr(nw, {"bool": "Boolean"}.get(number.name, number.name.capitalize().replace("Ui", "UI")), None)
        if not missing.any():
            return column.to_numpy(number), dtype
        return [None if gone else value for value, gone in zip(column.tolist(), missing, strict=True)], dtype
    if name == DECIMAL:  # which the user's own dtype holds to a few digits only
        return [None if gone else float(v) for v, gone in zip(column, missing, strict=True)], nw.Float64
    values = [None if gone else value for value, gone in zip(column.astype(object), missing, strict=True)]
    if plain and is_time(name):
        return [v.to_pydatetime(warn=False) if isinstance(v, pd.Timestamp) else _python(v) for v in values], None
    if name == "object" and not plain and any(not isinstance(v, str) for v in values if v is not None):
        kinds = {type(v) for v in values if v is not None}
        values = values if len(kinds) == 1 else [None if v is None else str(v) for v in values]
    return values, None


def _python(value: Any) -> Any:
    return value.to_pytimedelta() if isinstance(value, pd.Timedelta) else value


def _cast(made: Any, dtype: Any) -> Any:
    """A series in the dtype of the user's own, unless that does not hold its values."""
    import narwhals.stable.v2 as nw

    try:
        cast = nw.from_native(made.to_native().cast(dtype), series_only=True)
        exact = made.dtype != nw.Float64 or cast.cast(nw.Float64).to_list() == made.to_list()
    except Exception:  # a level that an Enum has not, or a value that is too wide: each library has its own errors
        return made
    return cast if exact else made


def kind_of(data: Any) -> FrameKind:
    """The kind of a user's tables, from one of them."""
    frame = _other_frame(data)
    if frame is not None:
        return FrameKind(frame.head(0).to_native())
    table = table_of(data)
    return PANDAS if table is None else FrameKind(table.head(0))


def table_of(data: Any) -> pd.DataFrame | None:
    """A table of any kind as one of pandas; None for arrays and lists of values, which have no names.

    Raises
    ------
    DataError
        A lazy table, or a column of lists or structures.
    """
    if isinstance(data, pd.DataFrame):
        return plain_columns(data)
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return plain_columns(pd.DataFrame(np.atleast_1d(data)))
    if isinstance(data, Mapping):
        whole = [isinstance(v, list | tuple | np.ndarray | pd.Series) for v in data.values()]
        return pd.DataFrame(dict(data) if all(whole) else [dict(data)])
    if isinstance(data, list | tuple) and data and all(isinstance(row, Mapping) for row in data):
        return pd.DataFrame([dict(row) for row in data])
    frame = _other_frame(data)
    if frame is None:
        return None
    names = list(frame.columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"two columns of the table are named {twice[0]!r}: give each a name of its own")
    return pd.DataFrame({column.name: _column(column) for column in frame.iter_columns()}, columns=names)


def plain_columns(table: pd.DataFrame) -> pd.DataFrame:
    """A table without columns that are sparse or in another order of bytes; itself where it has none.

    Parameters
    ----------
    table : DataFrame
    """
    out = table
    for place, dtype in enumerate(table.dtypes):
        column: Any = table.iloc[:, place]
        if isinstance(dtype, pd.SparseDtype):
            column = column.sparse.to_dense()
        elif isinstance(dtype, np.dtype) and not dtype.isnative:
            column = column.astype(dtype.newbyteorder("="))
        else:
            continue
        out = table.copy(deep=False) if out is table else out
        out.isetitem(place, column)
    return out


def as_pandas(table: Any) -> Any:
    """A table of an answer as one of pandas."""
    return table if table is None or isinstance(table, pd.DataFrame) else table_of(table)


def _other_frame(data: Any) -> Any:
    """A table of another library than pandas, as narwhals has it; None for what is none."""
    if isinstance(data, pd.DataFrame | pd.Series | np.ndarray | list | tuple | Mapping):
        return None
    import narwhals.stable.v2 as nw

    found = nw.from_native(data, allow_series=True, pass_through=True)
    if isinstance(found, nw.Series):
        return None
    if isinstance(found, nw.LazyFrame):
        raise DataError("the table is lazy, its rows are not there yet: collect it first, such as by .collect()")
    if not isinstance(found, nw.DataFrame) and hasattr(data, "__arrow_c_stream__"):
        found = nw.from_arrow(data, backend="pyarrow")
    if not isinstance(found, nw.DataFrame):
        return None
    return found if nw.get_native_namespace(found) is not pd else None


def _column(column: Any) -> Any:
    """A column of narwhals as one of pandas that holds the same values, exactly."""
    dtype, missing = column.dtype, column.is_null().any()
    if dtype.is_nested():
        raise DataError(f"column {column.name!r} holds {dtype}: give each of its parts a column of its own")
    if dtype.is_numeric() and not dtype.is_decimal():
        if missing and dtype.is_integer():
            return pd.array(column.to_list(), dtype=str(dtype))
        return column.to_numpy()
    words = str(dtype)
    if words == "Boolean":
        return pd.array(column.to_list(), dtype="boolean") if missing else column.to_numpy()
    if words.startswith(("Enum", "Categorical")):
        # polars keeps categories of all tables together, unless they are said
        held = column.to_list()
        said = column.cat.get_categories().to_list() if words.startswith("Enum") else sorted({*held} - {None})
        return pd.Categorical(held, categories=[str(level) for level in said])
    if words == "Date":
        return pd.Series(column.to_numpy().astype("datetime64[s]"))
    if words.startswith("Datetime"):
        made = pd.Series(column.to_numpy())
        zone = dtype.time_zone
        return made if zone is None else made.dt.tz_localize("UTC").dt.tz_convert(zone)
    if words.startswith("Duration"):
        return pd.Series(column.to_numpy())
    return pd.Series(column.to_list(), dtype=object)

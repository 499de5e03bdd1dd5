"""Explanations as strict JSON: plain values, one-row tables, and files of one row or many.

JSON has no NaN and no infinities: a missing value is written as ``null``, an infinity as the word ``"inf"`` or
``"-inf"``. Numbers keep every bit, because Python writes the shortest decimal that reads back as the same float64.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ocf.errors import DataError
from ocf.support.documents import as_table, fit, parse_json, read_text, refused
from ocf.support.schemas import CategoriesSchema, TableSchema

#: Schema of the JSON of one explanation, and of a file of several.
ONE, MANY = "ocf.explanation/1", "ocf.explanations/1"

#: Names of dtypes; what makes an array of elements of any size is none.
_DTYPE = re.compile(r"[A-Za-z_]+\d{0,3}(\[[^\[\]]*\])?(\[pyarrow\])?")

#: Python's own objects in columns that pandas calls object: by their words, and how their texts are read.
OBJECTS: dict[str, tuple[type, Any]] = {
    "decimal": (Decimal, Decimal),
    "date": (date, date.fromisoformat),
    "datetime": (datetime, datetime.fromisoformat),
    "timedelta": (timedelta, lambda text: pd.Timedelta(text).to_pytimedelta()),
}

#: What the rows of a batch have in common and a file of several holds once.
SHARED = ("features", "norm", "constraints", "classes", "method")


def plain(value: Any) -> Any:
    """Value in types that strict JSON has; missing values become None, infinities words."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else str(value)
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    return value if isinstance(value, bool | int | str) else str(value)


def number(value: Any) -> float | None:
    """Float from what `plain` wrote."""
    return None if value is None else float(value)


def table_to_record(table: pd.DataFrame) -> dict[str, Any]:
    """Values and dtypes of a one-row table, by column; column labels become text."""
    return {
        "values": {str(c): plain(table.iloc[0, k]) for k, c in enumerate(table.columns)},
        "dtypes": {str(c): _dtype_record(table.iloc[:, k]) for k, c in enumerate(table.columns)},
    }


def table_from_record(record: Mapping[str, Any], row: Any) -> pd.DataFrame:
    """One-row table from what `table_to_record` wrote, with `row` as its index label.

    Parameters
    ----------
    record : mapping
    row : object
        Hashable.
    """
    return table_from_schema(fit(record, TableSchema, "a table of one row"), row)


def table_from_schema(found: TableSchema, row: Any) -> pd.DataFrame:
    """The same, from plain values that are known to have the right types.

    Parameters
    ----------
    found : TableSchema
    row : object
        Hashable.
    """
    arrays = [_column(value, found.dtypes[c]) for c, value in found.values.items()]
    # pandas would make words of an array of objects text
    columns = [pd.Series(array, index=[0], dtype=array.dtype) for array in arrays]
    table = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=[0])
    table.columns = pd.Index(list(found.values), dtype=object).infer_objects()
    table.index = pd.Index([row])
    return table


#: Dtype of a column of objects that holds NaN, where another might hold None: imputers tell them apart.
_NAN = "object[nan]"


def _dtype_record(column: pd.Series[Any]) -> Any:
    dtype, value = column.dtype, column.iloc[0]
    if dtype == "object":
        if isinstance(value, float) and math.isnan(value):
            return _NAN
        return next((word for word, (kind, _) in OBJECTS.items() if type(value) is kind), "object")
    if isinstance(dtype, pd.CategoricalDtype):
        return {"categories": plain(list(dtype.categories)), "ordered": bool(dtype.ordered)}
    return str(dtype)


def _column(value: Any, dtype: Any) -> Any:
    if isinstance(dtype, CategoriesSchema):
        return pd.Categorical([value], categories=dtype.categories, ordered=dtype.ordered)
    if not _DTYPE.fullmatch(dtype):
        raise DataError(f"{dtype[:40]!r} is no dtype of a column")
    if dtype in OBJECTS and value is not None:
        value = OBJECTS[dtype][1](value)
    if dtype in ("object", _NAN) or dtype in OBJECTS:
        held = np.empty(1, dtype=object)
        held[0] = math.nan if dtype == _NAN else value
        return held
    if value is None and dtype.startswith("float"):
        value = np.nan
    try:
        held = (
            pd.array([value], dtype=dtype) if value is None else pd.Series([_native(value, dtype)], dtype=dtype).array
        )
    except DataError:
        raise
    except Exception:  # of damaged names pandas raises anything, from assertions to zones that do not exist
        raise DataError(f"{dtype[:40]!r} is no dtype of a column that holds {value!r}") from None
    return held


def _native(value: Any, dtype: str) -> Any:
    """A value as a column of a dtype takes it.

    Raises
    ------
    DataError
        pandas would make a truth value or a number of it, and another than it says.
    """
    kind = pd.api.types.pandas_dtype(dtype)
    if pd.api.types.is_bool_dtype(kind) and value not in (False, True):
        raise DataError(f"{value!r} is no truth value, which a column of {dtype} holds")
    if isinstance(value, str) and dtype.lower().startswith("float") and value in ("inf", "-inf"):
        return float(value)  # written as a word
    if isinstance(value, str) and pd.api.types.is_numeric_dtype(kind):
        raise DataError(f"{value!r} is text, and a column of {dtype} holds numbers")
    return float(value) if dtype.lower().startswith("float") else value


def pack(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Records of several rows as one, with what they share written once; of each no more is kept than its own."""
    shared: dict[str, Any] = {}
    rows = []
    for record in records:
        for key in SHARED:
            # of the first row that has it: one that failed has none
            if key not in shared or (record[key] and not shared[key]):
                shared[key] = record[key]
        own = {k: v for k, v in record.items() if k != "schema"}
        rows.append({k: v for k, v in own.items() if not (shared.get(k) and v == shared[k])})
    for row in rows:
        for key in SHARED:
            if key in row and row[key] == shared[key]:
                del row[key]
    return {"schema": MANY, "shared": shared, "rows": rows}


def unpack(data: Any) -> list[dict[str, Any]]:
    """Records of the rows in what `pack` wrote, or in the record of one row.

    Raises
    ------
    DataError
        It is something else.
    """
    schema = data.get("schema") if isinstance(data, Mapping) else None
    if schema == ONE:
        return [dict(data)]
    if schema == MANY and isinstance(data.get("rows"), list):
        shared = as_table(data.get("shared", {}), "shared")
        return [
            {"schema": ONE, **shared, **as_table(row, f"rows[{number}]")} for number, row in enumerate(data["rows"])
        ]
    raise DataError(f"this is not an explanation that ocf wrote: its schema is {schema!r}, not {ONE!r} or {MANY!r}")


def dumps(data: Mapping[str, Any], path: str | Path | None) -> str:
    """Strict JSON of plain data, written to `path` if there is one.

    Parameters
    ----------
    data : mapping
        JSON-ready.
    path : str or Path or None
    """
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, indent=1)
    if path is not None:
        Path(path).write_text(text + "\n", encoding="utf-8")
    return text


def loads(source: str | Path) -> list[dict[str, Any]]:
    """Records of the rows in a JSON text or in the file of that name.

    Raises
    ------
    DataError
        No such file, no JSON, or none that ocf wrote.
    """
    is_text = isinstance(source, str) and source.lstrip().startswith(("{", "["))
    name = "the text" if is_text else str(source)
    data = parse_json(str(source) if is_text else read_text(source), name)
    with refused(name):
        return unpack(data)

"""Explanations as strict JSON: plain values, one-row tables, and files of one row or many.

JSON has no NaN and no infinities: a missing value is written as ``null``, an infinity as the word ``"inf"`` or
``"-inf"``. Numbers keep every bit, because Python writes the shortest decimal that reads back as the same float64.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ocf.errors import DataError
from ocf.support.documents import as_table, fit, parse_json, read_text, refused
from ocf.support.json_dtypes import column_of, dtype_record, plain
from ocf.support.schemas import TableSchema

#: Schema of the JSON of one explanation, and of a file of several.
ONE, MANY = "ocf.explanation/1", "ocf.explanations/1"

#: What the rows of a batch have in common and a file of several holds once.
SHARED = ("features", "norm", "constraints", "classes", "method")


def number(value: Any) -> float | None:
    """Float from what `plain` wrote."""
    return None if value is None else float(value)


def table_to_record(table: pd.DataFrame) -> dict[str, Any]:
    """Values and dtypes of a one-row table, by column; column labels become text."""
    columns = [(str(c), column) for c, column in table.items()]
    return {
        "values": {c: plain(column.iloc[0]) for c, column in columns},
        "dtypes": {c: dtype_record(column) for c, column in columns},
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
    arrays = [column_of(value, found.dtypes[c]) for c, value in found.values.items()]
    # pandas would make words of an array of objects text
    columns = [pd.Series(array, index=[0], dtype=object) if array.dtype == object else array for array in arrays]
    table = pd.DataFrame(dict(enumerate(columns)), index=[0])
    table.columns = pd.Index(list(found.values), dtype=object).infer_objects()
    table.index = pd.Index([row])
    return table


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


def dumps(data: Mapping[str, Any], path: str | Path | None, indent: int | None = 1) -> str:
    """Strict JSON of plain data, written to `path` if there is one.

    Parameters
    ----------
    data : mapping
        JSON-ready.
    path : str or Path or None
    indent : int or None
        As of `json.dumps`.
    """
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, indent=indent)
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

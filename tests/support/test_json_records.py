"""Tables of one row in JSON, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import DataError
from ocf.support.json_records import MANY, ONE, SHARED, pack, table_from_record, table_to_record, unpack


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1], dtype="int8"),
        pd.Series([1.5], dtype="float32"),
        pd.Series([True]),
        pd.Series([pd.NA], dtype="Int64"),
        pd.Series(["a"], dtype="str"),
        pd.Series(["a"], dtype="category"),
        pd.Series([np.nan], dtype=object),
        pd.Series([None], dtype=object),
        pd.Series([2.5], dtype="double[pyarrow]"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_tables_come_back_as_they_were(column: pd.Series[Any]) -> None:
    table = pd.DataFrame({"x": column}, index=[0])
    again = table_from_record(table_to_record(table), 0)
    pd.testing.assert_frame_equal(again, table)
    assert type(again.x.iloc[0]) is type(table.x.iloc[0])


@pytest.mark.parametrize(
    "dtype", ["float2", "decimal128(5, 2)[pyarrow]", "timestamp[2][pyarrow]", "timestamp[ns, 2][pyarrow]", "M8", ""]
)
def test_damaged_names_of_dtypes_are_refused(dtype: str) -> None:
    with pytest.raises(DataError, match="is no dtype of a column"):
        table_from_record({"values": {"x": 1.0}, "dtypes": {"x": dtype}}, 0)


def test_records_are_packed_as_they_come() -> None:
    """What all share is that of the first row that has it, and no row before or after keeps it."""
    empty = {"schema": ONE, "row": 0, "features": None, "norm": None, "constraints": [], "classes": [], "method": {}}
    full = empty | {"features": {"a": 1}, "norm": {"l1": 1.0}, "classes": ["no", "yes"], "method": {"solver": "box"}}
    other = full | {"method": {"solver": "highs"}}
    records = [one | {"row": k} for k, one in enumerate((empty, full, full, other, empty))]
    packed = pack(iter(records))
    assert packed["shared"] == {key: full[key] for key in SHARED}
    assert [set(row) & set(SHARED) for row in packed["rows"]] == [
        {"features", "norm", "classes", "method"},
        set(),
        set(),
        {"method"},
        {"features", "norm", "classes", "method"},
    ]
    assert unpack(packed) == records
    assert pack(iter([])) == {"schema": MANY, "shared": {}, "rows": []}
    assert pack([empty])["rows"] == [{"row": 0}]

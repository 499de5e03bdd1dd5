"""Tables of other libraries: in as pandas and out again, value by value and dtype by dtype."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import DataError
from ocf.features.frames import PANDAS, as_pandas, kind_of, table_of

COLUMNS = pl.DataFrame(
    {
        "whole": [1, None],
        "byte": pl.Series([3, 4], dtype=pl.UInt8),
        "narrow": pl.Series([0.1, None], dtype=pl.Float32),
        "wide": [1.5, None],
        "text": ["x", None],
        "day": [dt.date(2020, 1, 1), None],
        "moment": [dt.datetime(2020, 1, 1, 3), None],
        "maybe": [True, None],
        "truth": [True, False],
        "level": pl.Series(["u", None], dtype=pl.Enum(["v", "u"])),
        "word": pl.Series(["u", None], dtype=pl.Categorical),
        "money": [Decimal("1.20"), None],
        "span": [dt.timedelta(hours=3), None],
    }
).with_columns(zoned=pl.col("moment").dt.replace_time_zone("Europe/Berlin"))


@pytest.mark.parametrize("table", [COLUMNS, COLUMNS.to_arrow()], ids=["polars", "pyarrow"])
def test_columns_go_to_pandas_and_back(table: Any) -> None:
    kind = pickle.loads(pickle.dumps(kind_of(table)))
    back = kind.native(table_of(table))
    assert back.schema == table.schema
    for name in COLUMNS.columns:
        there = [
            column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
            for column in (back[name], table[name])
        ]
        assert there[0] == there[1], name


def test_dtypes_in_pandas() -> None:
    found = {name: str(dtype) for name, dtype in as_pandas(COLUMNS).dtypes.items()}
    assert found == {
        "whole": "Int64", "byte": "uint8", "narrow": "float32", "wide": "float64", "text": "object",
        "day": "datetime64[s]", "moment": "datetime64[us]", "maybe": "boolean", "truth": "bool", "level": "category",
        "word": "category", "money": "object", "span": "timedelta64[us]", "zoned": "datetime64[us, Europe/Berlin]",
    }  # fmt: skip


def test_a_column_keeps_the_dtype_that_its_numbers_have_now() -> None:
    """A row may be wider than the data; a word that an Enum lacks stays a word."""
    table = pd.DataFrame({"byte": [0.5], "level": ["w"], "new": [1]})
    back = kind_of(COLUMNS).native(table)
    assert back.schema == {"byte": pl.Float64, "level": pl.String, "new": pl.Int64}


def test_tables_of_python() -> None:
    expected = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    structured = np.array([(1, 0.5), (2, 1.5)], dtype=[("a", "i4"), ("b", "f4")])
    for said in ({"a": [1, 2], "b": [0.5, 1.5]}, [{"a": 1, "b": 0.5}, {"b": 1.5, "a": 2}]):
        pd.testing.assert_frame_equal(table_of(said), expected)
    pd.testing.assert_frame_equal(table_of(structured), expected.astype({"a": "int32", "b": "float32"}))
    pd.testing.assert_frame_equal(table_of({"a": 1, "b": 0.5}), expected.iloc[:1])
    assert len(table_of(structured[0:1].reshape(()))) == 1


@pytest.mark.parametrize("said", [np.zeros((2, 2)), [[1, 2]], [1, 2], pd.Series([1]), pl.Series([1]), 3, "a"])
def test_what_is_no_table(said: Any) -> None:
    assert table_of(said) is None
    assert kind_of(said) is PANDAS


def test_batches_of_arrow_are_tables() -> None:
    (batch,) = COLUMNS.to_arrow().to_batches()
    assert as_pandas(batch).equals(as_pandas(COLUMNS.to_arrow()))


def test_pandas_stays_as_it_is() -> None:
    table = pd.DataFrame({"a": [1]})
    assert table_of(table) is table
    assert PANDAS.native(table) is table


def test_refusals() -> None:
    with pytest.raises(DataError, match=r"lazy.*\.collect\(\)"):
        table_of(COLUMNS.lazy())
    with pytest.raises(DataError, match=r"'lists' holds List.*a column of its own"):
        table_of(pl.DataFrame({"lists": [[1, 2]]}))


@pytest.mark.parametrize("columns", [["p", "w", "k_a", "k_b", "k_c"], ["k_a", "k_b", "k_c"]])
def test_sparse_columns_of_pandas_are_read_as_dense_ones(columns: list[str]) -> None:
    rng = np.random.default_rng(5)
    dense = pd.DataFrame({"p": rng.integers(-3, 4, 300).astype(float), "w": rng.uniform(-1, 1, 300)})
    dense = pd.get_dummies(dense.assign(k=rng.choice(list("abc"), 300)), columns=["k"], dtype=float)
    sparse = dense.astype(dict.fromkeys(columns, pd.SparseDtype("float64", 0.0)))
    model = RandomForestClassifier(10, max_depth=4, random_state=0)
    model.fit(dense, (dense.p > 0) ^ (dense.w > 0.3) ^ (dense.k_a == 1))
    rows = np.flatnonzero(~model.predict(dense))[:3]
    explainer, wanted = Explainer(model, data=sparse), Explainer(model, data=dense)
    assert explainer.space == wanted.space
    found, as_dense = explainer.explain(sparse.iloc[rows]), wanted.explain(dense.iloc[rows])
    for e, other in zip(found, as_dense, strict=True):
        assert (e.status, e.verified, e.cost) == ("optimal", True, other.cost)
        assert e.counterfactual.to_numpy().tolist() == other.counterfactual.to_numpy().tolist()


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_whole_numbers_and_truth_values_with_gaps_keep_their_dtypes(library: str) -> None:
    """In pandas they are floats where one is missing; halves, which whole numbers do not hold, stay floats."""
    pytest.importorskip(library)
    data = {"whole": [3, 4], "sure": [True, False], "half": [1, 2], "real": [0.5, 1.0]}
    made = nw.from_dict(data, backend=library)
    kind = kind_of(made.to_native())
    gaps = pd.DataFrame({"whole": [np.nan, 4.0], "sure": [1.0, np.nan], "half": [1.5, np.nan], "real": [np.nan, 1.0]})
    back = nw.from_native(kind.native(gaps))
    dtypes = {**made.schema, "half": nw.Float64()}
    assert {name: str(dtype) for name, dtype in back.schema.items()} == {k: str(v) for k, v in dtypes.items()}
    assert back.to_dict(as_series=False) == {
        "whole": [None, 4],
        "sure": [True, None],
        "half": [1.5, None],
        "real": [None, 1.0],
    }

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from ocf.features.inference import infer_space
from ocf.features.one_row import ChangedRow, OneRow, RowOf, held

TABLE = pd.DataFrame({"n": [1, 2, 3], "x": [0.5, 1.5, 2.5], "w": ["a", "b", "a"]}, index=["p", "q", "r"])
SPACE = infer_space(TABLE)


@dataclass(frozen=True)
class Held:
    original: OneRow = OneRow()  # noqa: RUF009  # it describes the attribute
    other: OneRow = OneRow(optional=True)  # noqa: RUF009


def changed() -> ChangedRow:
    origin, point = SPACE.from_frame(TABLE.iloc[[1, 2]])
    return ChangedRow(RowOf(TABLE, 1), SPACE, origin, point)


def test_a_row_is_that_of_the_table() -> None:
    pd.testing.assert_frame_equal(RowOf(TABLE, 1)(), TABLE.iloc[[1]])


def test_a_changed_row_keeps_its_label_and_dtypes() -> None:
    found = changed()()
    assert found.index.tolist() == ["q"]
    assert found.iloc[0].tolist() == TABLE.iloc[2].tolist()
    assert found.dtypes.tolist() == TABLE.dtypes.tolist()


@pytest.mark.parametrize("maker", [RowOf(TABLE, 1), changed()])
def test_a_table_is_the_same_as_long_as_somebody_holds_it(maker: RowOf | ChangedRow) -> None:
    table = maker()
    assert maker() is table
    table.loc["q", "n"] = 7
    assert maker().loc["q", "n"] == 7
    del table
    assert maker().loc["q", "n"] != 7


def test_who_looks_at_a_table_may_write_to_it() -> None:
    for original in (RowOf(TABLE, 1), changed(), TABLE.iloc[[1]]):
        own = Held(original)
        before = own.original
        seen = own.original
        seen.iloc[0, 0] = 99
        pd.testing.assert_frame_equal(own.original, before)
        assert isinstance(held(own, "original"), type(original))


def test_a_row_travels_without_its_table() -> None:
    long = pd.DataFrame({"x": np.arange(100_000.0)})
    found = pickle.loads(pickle.dumps(RowOf(long, 70_000)))
    pd.testing.assert_frame_equal(found(), long.iloc[[70_000]])
    assert len(pickle.dumps(found)) < 5_000
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(changed()))(), changed()())


def test_an_attribute_takes_a_table_or_what_makes_it() -> None:
    maker = RowOf(TABLE, 2)
    one = Held(maker)
    pd.testing.assert_frame_equal(one.original, TABLE.iloc[[2]])
    assert held(one, "original") is maker
    assert one.other is None
    table = TABLE.iloc[[0]]
    pd.testing.assert_frame_equal(replace(one, other=table).other, table)
    with pytest.raises(TypeError, match="original"):
        Held()  # type: ignore[call-arg]

"""Groups of indicator columns, recognised where that is no accident."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import DataError, ProblemError
from ocf.features.indicators import NONE, indicator_groups
from ocf.features.inference import infer_space

RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, 60),
        "job": RNG.choice(["clerk", "self_employed", "smith"], 60),
        "bank_account": RNG.choice(["none", "low", "high"], 60),
        "has_car": RNG.integers(0, 2, 60),
    }
)


def levels(table: pd.DataFrame) -> dict[str, tuple[list[str], Any]]:
    """Levels and base of each group."""
    return {name: (list(s["columns"]), s.get("base")) for name, s in indicator_groups(table).items()}


@pytest.mark.parametrize("dtype", [bool, "uint8", "int64", "float32", "boolean", "Int8"])
def test_dummies_of_pandas_are_groups(dtype: Any) -> None:
    table = pd.get_dummies(PEOPLE, dtype=dtype)
    assert levels(table) == {
        "job": (["clerk", "self_employed", "smith"], None),
        "bank_account": (["high", "low", "none"], None),
    }


def test_a_first_level_that_was_dropped_is_the_base() -> None:
    table = pd.get_dummies(PEOPLE, drop_first=True)
    assert levels(table) == {"job": (["self_employed", "smith"], NONE), "bank_account": (["low", "none"], NONE)}
    # pulled apart, they are no neighbours: nothing but an accident may hold them together
    assert "job" not in levels(table[["job_self_employed", "age", "job_smith"]])


@pytest.mark.parametrize("separator", ["=", "__"])
def test_other_separators(separator: str) -> None:
    table = pd.get_dummies(PEOPLE[["job"]], prefix_sep=separator)
    assert levels(table) == {"job": (["clerk", "self_employed", "smith"], None)}


def test_every_level_finds_its_column() -> None:
    table = pd.get_dummies(PEOPLE, columns=["job"])
    job = infer_space(table[["age", *table.columns[3:]]], groups=True).features[1]
    assert (job.name, job.kind, job.base) == ("job", "categorical", False)
    assert dict(zip(job.levels, job.columns, strict=True)) == indicator_groups(table)["job"]["columns"]


def test_two_at_once_anywhere_are_no_group() -> None:
    table = pd.get_dummies(PEOPLE[["job"]], dtype=int)
    table.loc[7], table.loc[8] = [1, 1, 0], [0, 0, 0]  # as many ones as rows
    assert indicator_groups(table) == {}
    assert indicator_groups(table.drop(index=7))["job"]["base"] == NONE


def test_rare_indicators_are_no_group() -> None:
    """They keep apart, but so would any two columns with three ones in 200 rows."""
    table = pd.DataFrame(0, range(200), ["event_fraud", "event_default"])
    table.iloc[:3, 0] = table.iloc[10:13, 1] = 1
    assert indicator_groups(table) == {}
    table.iloc[100:190, 1] = table.iloc[20:90, 0] = 1
    assert list(indicator_groups(table)) == ["event"]


@pytest.mark.parametrize("names", [("has_dog", "has_cat"), ("dog", "cat"), ("pet_dog", "beast_cat")])
def test_names_that_no_category_has_are_no_group(names: tuple[str, str]) -> None:
    kind = RNG.integers(0, 3, 100)
    assert indicator_groups(pd.DataFrame({names[0]: kind == 0, names[1]: kind == 1})) == {}
    # of which one holds in every row, the question is the same
    assert len(indicator_groups(pd.DataFrame({"is_dog": kind == 0, "is_cat": kind != 0}))) == 1


def test_columns_that_hold_something_else_are_no_group() -> None:
    table = pd.get_dummies(PEOPLE[["job"]], dtype=float)
    for other in (
        table.assign(job_clerk=table["job_clerk"] * 2),
        table.assign(job_clerk=table["job_clerk"].mask([True] + [False] * 59)),
    ):
        assert "clerk" not in indicator_groups(other).get("job", {}).get("columns", {})
    with_gaps = table.astype("boolean").assign(job_clerk=table["job_clerk"].astype("boolean").mask(table.index == 3))
    assert "clerk" not in indicator_groups(with_gaps).get("job", {}).get("columns", {})
    # one that all rows have is no category
    assert indicator_groups(pd.DataFrame({"job_clerk": True, "job_smith": False}, range(60))) == {}
    # a flag beside them, of another dtype, does not keep them apart
    assert "job" in indicator_groups(table.assign(job_changed=True))
    assert indicator_groups(table.iloc[:4]) == {}


def test_a_name_that_is_taken_gets_a_star() -> None:
    table = pd.get_dummies(PEOPLE[["job"]]).assign(job=1.5)
    assert list(indicator_groups(table)) == ["job_*"]


def test_settings_go_by_the_name_of_the_group_and_those_of_a_column_keep_it_apart(caplog: Any) -> None:
    table = pd.get_dummies(PEOPLE)
    space = infer_space(table, {"job": {"actionability": "fixed"}}, groups=True)
    assert space.features[space.index("job")].action == "fixed"
    assert space.reading is not None
    assert space.reading.groups == ("job", "bank_account")
    assert not caplog.messages
    space = infer_space(table, {"job_clerk": {"actionability": "fixed"}}, groups=True)
    assert [m for m in caplog.messages if "'job_clerk', an indicator column of 'job'" in m]
    assert space.names == ("age", "has_car", "job_clerk", "job_self_employed", "job_smith", "bank_account")
    own = {"work": {"kind": "categorical", "columns": ["job_clerk", "job_self_employed", "job_smith"]}}
    caplog.clear()
    assert infer_space(table, own, groups=True).names == ("age", "has_car", "work", "bank_account")
    assert infer_space(table, {"job_clerk": own["work"]}, groups=True).names[2] == "job_clerk"  # one category
    assert not caplog.messages
    assert len(infer_space(table)) == len(table.columns)


def test_rows_that_break_a_group_and_names_of_its_columns_are_refused_with_a_remedy() -> None:
    table = pd.get_dummies(PEOPLE[["job"]])
    space = infer_space(table, groups=True)
    with pytest.raises(DataError, match=r"but job_clerk holds 1, job_smith holds 1; .*groups=False"):
        space.from_frame(pd.DataFrame([[True, False, True]], columns=table.columns))
    with pytest.raises(DataError, match="but none of them holds 1"):
        space.from_frame(pd.DataFrame([[False, False, False]], columns=table.columns))
    with pytest.raises(ProblemError, match=r"'job_clerk' is a column of the feature 'job', .*groups=False"):
        space.index("job_clerk")

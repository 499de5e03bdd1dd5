"""Completions of missing values are read as rows are, in the dtypes of the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from xgboost import XGBClassifier

from ocf import Explainer
from ocf.errors import DataError
from ocf.verify.files import verify_file

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "a": RNG.integers(0, 8, 150),
        "h": RNG.integers(0, 7, 150).astype(float),
        "c": pd.Categorical(RNG.choice(["u", "v", "w"], 150)),
        "i": pd.array(RNG.integers(0, 7, 150), dtype="Int64"),
    }
)
LABELS = (TABLE.a + TABLE.h + 3 * (TABLE.c == "u") + TABLE.i.astype(float) > 12).astype(int)


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    table = TABLE.copy()
    for name in ("h", "c", "i"):
        table[name] = table[name].mask(RNG.random(150) < 0.15)
    model = XGBClassifier(n_estimators=4, max_depth=4, enable_categorical=True, n_jobs=1).fit(table, LABELS)
    return Explainer(model, table)


def lacking(name: str, count: int = 1) -> pd.DataFrame:
    rows = TABLE[LABELS == 0].head(count).copy()
    rows[name] = rows[name].mask(rows[name].notna())
    return rows


@pytest.mark.parametrize(
    ("name", "said", "meant"),
    [
        ("c", pd.Categorical(["u", "v"]), ["u", "v"]),
        ("c", pd.Categorical(["u", "v"], categories=["v", "u"]), ["u", "v"]),
        ("c", pd.Categorical(["u", "v"], categories=["u", "v", "w", "x"], ordered=True), ["u", "v"]),
        ("h", pd.Categorical([3.0, 4.0]), [3.0, 4.0]),
        ("h", ["3", "4.5"], [3.0, 4.5]),
        ("i", ["3", "4"], [3, 4]),
        ("i", [2.5, 3.25], [2.5, 3.25]),
    ],
)
def test_draws_of_all_kinds_are_read_as_what_they_mean(
    explainer: Explainer, name: str, said: Any, meant: Any, tmp_path: Path
) -> None:
    row = lacking(name)
    found = explainer.explain(row, 1, imputations=pd.DataFrame({name: said}))
    assert found[0].status == "optimal", found[0].message
    assert found[0].verified
    assert found[0].imputations["values"] == {name: meant}
    assert found[0].cost == explainer.explain(row, 1, imputations=pd.DataFrame({name: meant}))[0].cost
    path = tmp_path / "found.json"
    path.write_text(found.to_json(), encoding="utf-8")
    assert verify_file(path, explainer.model)[0][1].ok


@pytest.mark.parametrize(
    ("name", "said", "message"),
    [
        ("c", pd.Categorical(["u", "q"]), r"imputations: column 'c', row 1: unknown level 'q'"),
        ("c", [1, 2], r"imputations: column 'c', row 0: unknown level 1"),
        ("h", ["x", "y"], r"imputations: column 'h' should hold numbers.*['\"]x['\"]"),
        ("h", [1 + 0j, 2], r"imputations: column 'h' should hold numbers.*complex"),
        ("i", [np.inf, 1], r"imputations: column 'i' holds an infinite value in row 0"),
    ],
)
def test_what_no_row_may_hold_is_refused_row_by_row(explainer: Explainer, name: str, said: Any, message: str) -> None:
    rows, bad = lacking(name, 2), pd.DataFrame({name: said})
    with pytest.raises(DataError, match=message):
        explainer.explain(rows.head(1), 1, imputations=bad)
    good = pd.DataFrame({name: TABLE[name].head(2)})
    first, second = explainer.explain(rows, 1, imputations=dict(zip(rows.index, (bad, good), strict=True)))
    assert (first.status, second.status) == ("error", "optimal")


def test_a_row_that_lacks_nothing_is_named(explainer: Explainer) -> None:
    with pytest.raises(DataError, match="imputations: row 3 has no missing value to complete"):
        explainer.explain(TABLE.loc[[3]], 1, imputations=pd.DataFrame({"h": [1.0]}))

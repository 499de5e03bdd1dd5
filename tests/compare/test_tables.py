"""The tables of a report, worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from ocf.compare.tables import tables

from .synthetic import comparison, standard


def table(folder: Path, name: str) -> pd.DataFrame:
    (found,) = (t for t in tables(comparison(folder)) if t.name == name)
    return found.frame.set_index(found.frame.columns[0])


def test_methods(tmp_path: Path) -> None:
    found = table(standard(tmp_path), "Methods")
    assert list(found.index) == ["box", "interval/highs", "ocean/highs"]
    row = found.loc["interval/highs"]
    assert (row["solved"], row["of"], row["time out"]) == (3, 4, 1)
    # (1 + 1)(2 + 1)(4 + 1)(10 + 1) = 330
    assert row["SGM"] == pytest.approx(330**0.25 - 1)
    assert row["PAR-2"] == pytest.approx((1 + 2 + 4 + 20) / 4)
    assert row["PAR-10"] == pytest.approx((1 + 2 + 4 + 100) / 4)
    assert (row["median"], row["maximum"], row["nodes"]) == (3.0, 10.0, 15.0)
    assert row["gap at limit"] == 0.75
    assert row["CPU"] == 1.5
    assert row["peak MB"] == 200.0
    assert "memory out" not in found
    # gap 1 for half the time, then (2 - 1) / 2 until the end: 3 / 4 of 1, 2, 4 and 10 s
    assert row["primal integral"] == pytest.approx(0.75 * (1 + 2 + 4 + 10) / 4)


def test_time_split(tmp_path: Path) -> None:
    found = table(standard(tmp_path), "Where the time goes")
    assert found.loc["box", "total"] == pytest.approx(7.5 / 4)
    assert found.loc["box", "outside solver"] == pytest.approx(0.5)


def test_ratios(tmp_path: Path) -> None:
    found = table(standard(tmp_path), "Ratios between methods").reset_index().set_index(["method", "against"])
    # the better is the second, and those of the best come first
    assert list(found.index) == [
        ("interval/highs", "box"),
        ("ocean/highs", "box"),
        ("ocean/highs", "interval/highs"),
    ]
    row = found.loc[("ocean/highs", "interval/highs")]
    # both solved 2 : 1 and 8 : 2; with penalties 100 : 4 as well
    assert row["both solved"] == 2
    assert row["ratio"].value == pytest.approx((2 * 4) ** (1 / 2))
    assert row["either solved"] == 3
    assert row["ratio with penalties"].value == pytest.approx((2 * 4 * 25) ** (1 / 3))
    assert row["ratio"].low <= row["ratio"].value <= row["ratio"].high
    assert found.loc[("interval/highs", "box")]["ratio"] == pytest.approx((2.0, 2.0, 2.0))


def test_bounds_and_sizes(tmp_path: Path) -> None:
    folder = standard(tmp_path)
    found = table(folder, "LP bounds")
    # every optimum is 1
    assert found.loc["interval", "bound / optimum"] == pytest.approx((0.8, 0.8, 0.8))
    assert found.loc["ocean", "median"] == 0.6
    sizes = table(folder, "Model size").loc["box"]
    assert [sizes[k] for k in ("rows", "columns", "nonzeros", "binaries")] == [30, 20, 90, 10]
    assert sizes["leaves left"] == 0.2


def test_instances(tmp_path: Path) -> None:
    found = table(standard(tmp_path), "Instances")
    assert found["box"].tolist() == [0.5, 1.0, 2.0, 4.0]
    assert math.isnan(found["interval/highs"].iloc[3])
    assert found["best cost"].tolist() == [1.0] * 4

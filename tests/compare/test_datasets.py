"""Data sets by name."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from ocf.compare.datasets import Dataset, load_dataset
from ocf.errors import DataError


def test_openml(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetch(**arguments: object) -> SimpleNamespace:
        asked.append(arguments)
        table = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Categorical(["x", "y"])})
        return SimpleNamespace(data=table, target=pd.Series(["good", "bad"]))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    found = load_dataset("openml:credit-g")
    assert isinstance(found, Dataset)
    assert found.settings == {"b": {"kind": "categorical", "levels": ["x", "y"]}}
    assert load_dataset("openml:31").table["b"].tolist() == ["x", "y"]
    assert [a.get("name", a.get("data_id")) for a in asked] == ["credit-g", 31]

    def unreachable(**arguments: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    with pytest.raises(DataError, match=r"'openml:x' cannot be had from openml\.org: no network"):
        load_dataset("openml:x")

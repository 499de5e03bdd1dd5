"""A small model in several formats, its data, and ``ocf solve`` on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from command_line import Answer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with a small model in several formats, and its data."""
    skops_io = pytest.importorskip("skops.io")
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 120),
            "income": rng.normal(50, 10, 120).round(2),
            "owner": rng.integers(0, 2, 120),
        }
    )
    wanted = ((table["age"] > 40) & (table["income"] > 48) | (table["owner"] == 1) & (table["income"] > 55)).astype(int)
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, wanted)
    skops_io.dump(forest, folder / "forest.skops")
    joblib.dump(forest, folder / "forest.joblib")
    joblib.dump(RandomForestClassifier(), folder / "unfitted.joblib")
    nameless = RandomForestClassifier(3, max_depth=2, random_state=0).fit(table.to_numpy(), wanted)
    skops_io.dump(nameless, folder / "nameless.skops")
    skops_io.dump(RandomForestRegressor(3, max_depth=2, random_state=0).fit(table, wanted), folder / "regressor.skops")
    skops_io.dump(
        RandomForestClassifier(3, max_depth=2, random_state=0).fit(
            table, np.array(["a", "b", "c"])[wanted + table.owner]
        ),
        folder / "three.skops",
    )
    table.to_csv(folder / "data.csv", index=False)
    table.to_csv(folder / "data.csv.gz", index=False)
    table.assign(**{"the label": wanted}).to_csv(folder / "labelled.csv", index=False)
    (folder / "classes.json").write_text(json.dumps(forest.predict(table).tolist()))
    return folder


@pytest.fixture
def ask(files: Path) -> Callable[..., Answer]:
    """``ocf solve`` on the forest and its data."""
    return lambda *args: Answer("solve", files / "forest.skops", files / "data.csv", *args)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def make(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return make


@pytest.fixture
def changed(files: Path, tmp_path: Path) -> Callable[..., Path]:
    """The data after a change, as a CSV."""

    def make(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Path:
        change(pd.read_csv(files / "data.csv")).to_csv(tmp_path / "changed.csv", index=False)
        return tmp_path / "changed.csv"

    return make

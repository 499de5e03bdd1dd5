"""Across files: users speak in category names, whatever codes a library gives them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf import Explainer
from ocf.errors import DataError


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": pd.Categorical(
                rng.choice(["clerk", "smith", "none", "nurse", "cook"], n),
                categories=["smith", "clerk", "none", "cook", "nurse", "judge"],
            ),
            "floor": pd.Categorical(rng.choice([10, 20, 30], n), categories=[30, 10, 20]),
        }
    )


@pytest.fixture(scope="module")
def wanted(table: pd.DataFrame) -> pd.Series:
    return (table["job"].isin(["clerk", "nurse"]) ^ ((table["age"] > 50) & (table["floor"] == 10))).astype(int)


def lightgbm() -> Any:
    return pytest.importorskip("lightgbm").LGBMClassifier(
        n_estimators=10, num_leaves=8, min_child_samples=3, min_data_per_group=1, cat_smooth=0.1, cat_l2=0,
        max_cat_to_onehot=1, n_jobs=1, verbose=-1,
    )  # fmt: skip


def xgboost(one_hot: int) -> Any:
    return pytest.importorskip("xgboost").XGBClassifier(
        n_estimators=10, max_depth=4, enable_categorical=True, max_cat_to_onehot=one_hot, n_jobs=1
    )


MODELS: dict[str, Callable[[], Any]] = {
    "lightgbm": lightgbm,
    "xgboost, partitions": lambda: xgboost(1),
    "xgboost, one-hot": lambda: xgboost(100),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=10, max_depth=4, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_in_the_users_words(name: str, table: pd.DataFrame, wanted: pd.Series) -> None:
    model = MODELS[name]().fit(table, wanted)
    explainer = Explainer(model, data=table)
    rows = table[model.predict(table) == 0].iloc[:4]
    found = explainer.explain(rows, target=1, norm="l0")
    for e, (_, row) in zip(found, rows.iterrows(), strict=True):
        assert e.status == "optimal", e.message
        assert e.verified, e.checks
        assert (e.counterfactual.dtypes == table.dtypes).all()
        assert model.predict(e.counterfactual)[0] == 1
        # one change is enough when some other word does it, by the library's own judgement
        other = pd.concat([row.to_frame().T.assign(job=w) for w in ["clerk", "smith", "none", "cook", "nurse"]])
        other = other.astype({"age": "int64"}).astype(table.dtypes)
        if (model.predict(other) == 1).any():
            assert e.cost == 1.0
    assert any(isinstance(e.changes["to"].iloc[0], str) for e in found)
    same = explainer.explain(rows, target=1, norm="l0", solver="scip", formulation="ocean", reduce=False)
    assert [e.cost for e in same] == [e.cost for e in found]


@pytest.mark.parametrize("name", MODELS)
def test_categories_that_a_pipeline_hands_on_by_brute_force(name: str, table: pd.DataFrame, wanted: pd.Series) -> None:
    scaled = make_column_transformer(
        (StandardScaler(), ["age"]), remainder="passthrough", verbose_feature_names_out=False
    )
    model = make_pipeline(scaled.set_output(transform="pandas"), MODELS[name]()).fit(table, wanted)
    explainer = Explainer(model, data=table)
    ages = range(table["age"].min(), table["age"].max() + 1)
    levels = [explainer.space.features[explainer.space.index(word)].levels for word in ("job", "floor")]
    points = pd.DataFrame(itertools.product(ages, *levels), columns=list(table.columns)).astype(table.dtypes)
    given = model.predict(points)
    rows = table.iloc[:12]
    for e, (_, row) in zip(explainer.explain(rows), rows.iterrows(), strict=True):
        turned = points[given != e.predicted]
        words = (turned["job"] != row["job"]).astype(int) + (turned["floor"] != row["floor"])
        cost = (turned["age"] - row["age"]).abs() / (len(ages) - 1) + words
        assert (e.status, e.verified) == ("optimal", True), e.message
        assert e.cost == pytest.approx(cost.min(), abs=1e-9)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost, partitions"])
def test_files_and_plain_words(name: str, table: pd.DataFrame, wanted: pd.Series, tmp_path: Path) -> None:
    """A model file and a CSV, in which categories are just words and numbers."""
    model = MODELS[name]().fit(table, wanted)
    path = tmp_path / ("model.txt" if name == "lightgbm" else "model.json")
    (model.booster_ if name == "lightgbm" else model).save_model(path)
    table.to_csv(tmp_path / "table.csv", index=False)
    words = pd.read_csv(tmp_path / "table.csv", keep_default_na=False)
    explainer = Explainer(path, data=words, features={"floor": {"kind": "categorical"}})
    rows = words[model.predict(table) == 0].iloc[:3]
    found = explainer.explain(rows, target=1, norm="l0")
    plain = Explainer(model, data=table).explain(table.loc[rows.index], target=1, norm="l0")
    assert all(e.verified for e in found)
    assert [e.cost for e in found] == [e.cost for e in plain]
    with pytest.raises(DataError, match="unknown level"):
        explainer.explain(rows.assign(job="pilot"), target=1)

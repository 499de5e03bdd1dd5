"""Across files: rows whose columns stand in another order than the data's, or are named by numbers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from ocf import Explainer, LinearExplainer, Plausibility
from ocf.errors import ModelError

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.normal(size=80), "b": RNG.normal(size=80), "c": RNG.normal(size=80)})
LABELS = (TABLE["a"] > TABLE["b"] / 2).astype(int).to_numpy()

#: Those that know no names are given arrays.
MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(5, max_depth=4, random_state=0),
    "Pipeline": lambda: make_pipeline(StandardScaler(), RandomForestClassifier(5, max_depth=4, random_state=0)),
    "places": lambda: make_pipeline(
        make_column_transformer((StandardScaler(), [0]), remainder="passthrough"),
        RandomForestClassifier(5, max_depth=4, random_state=0),
    ),
    "XGBoost": lambda: XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1),
    "LightGBM": lambda: LGBMClassifier(n_estimators=3, num_leaves=6, min_child_samples=5, n_jobs=1, verbose=-1),
}


def same(explainer: Any, rows: pd.DataFrame, others: pd.DataFrame, **asked: Any) -> None:
    """The rows have the same answers in both tables, in a batch and one by one."""
    wanted = explainer.explain(rows, target=1, **asked)
    assert {e.status for e in wanted} == {"optimal"}
    assert len({e.cost for e in wanted}) > 1
    batch = explainer.explain(others, target=1, **asked)
    alone = [explainer.explain(others.iloc[[k]], target=1, **asked)[0] for k in range(len(others))]
    for found in (batch, alone):
        assert [e.cost for e in found] == [e.cost for e in wanted]
        assert all(e.verified and e.predicted == 0 for e in found)
        assert all(e.counterfactual.columns.equals(others.columns) for e in found)


@pytest.mark.parametrize("name", MODELS)
def test_columns_in_another_order(name: str) -> None:
    model = MODELS[name]().fit(TABLE.to_numpy(), LABELS)
    explainer = Explainer(model, TABLE)
    rows = TABLE[model.predict(TABLE.to_numpy()) == 0].iloc[:4]
    same(explainer, rows, rows[["b", "c", "a"]])
    same(pickle.loads(pickle.dumps(explainer)), rows, rows[["c", "b", "a"]])


def test_columns_in_another_order_for_an_isolation_forest() -> None:
    model = MODELS["forest"]().fit(TABLE.to_numpy(), LABELS)
    forest = IsolationForest(n_estimators=10, random_state=0).fit(TABLE.to_numpy())
    rows = TABLE[model.predict(TABLE.to_numpy()) == 0].iloc[:4]
    wish = Plausibility(forest=forest, quantile=0.3)
    same(Explainer(model, TABLE), rows, rows[["b", "c", "a"]], plausibility=wish)


def test_columns_in_another_order_for_a_linear_model() -> None:
    model = LogisticRegression().fit(TABLE.to_numpy(), LABELS)
    rows = TABLE[model.predict(TABLE.to_numpy()) == 0].iloc[:6]
    same(LinearExplainer(model, TABLE), rows, rows[["b", "c", "a"]])


@pytest.mark.parametrize("name", MODELS)
def test_columns_named_by_numbers(name: str) -> None:
    table = TABLE.set_axis([0, 1, 2], axis=1)
    model = MODELS[name]().fit(table, LABELS)
    rows = table[model.predict(table) == 0].iloc[:4]
    same(Explainer(model, table), rows, rows[[1, 2, 0]])


@pytest.mark.parametrize("stem", ["x", "f", "Column_", "q"])
@pytest.mark.parametrize("library", ["XGBoost", "LightGBM"])
def test_names_that_a_library_might_have_made_up(library: str, stem: str, tmp_path: Path) -> None:
    """They are the names of the user's table all the same, and its columns may stand in another order."""
    table = TABLE.set_axis([f"{stem}{k}" for k in range(3)], axis=1)
    model = MODELS[library]().fit(table, LABELS)
    booster = model.get_booster() if library == "XGBoost" else model.booster_
    booster.save_model(path := tmp_path / ("model.json" if library == "XGBoost" else "model.txt"))
    rows = table[model.predict(table) == 0].iloc[:4]
    turned = table.columns[[2, 0, 1]]
    for native in (booster, path):
        same(Explainer(native, table), rows, rows[turned])
        found = Explainer(native, table[turned]).explain(rows[turned], target=1)
        assert [e.cost for e in found] == [e.cost for e in Explainer(native, table).explain(rows, target=1)]
        assert all((model.predict(e.counterfactual[table.columns]) == 1).all() for e in found)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("name", ["forest", "Pipeline"])
def test_a_row_that_the_model_itself_refuses_has_an_error_of_its_own(name: str) -> None:
    """1e300 is infinite to the forest, which takes numbers of single precision."""
    model = MODELS[name]().fit(TABLE, LABELS)
    explainer = Explainer(model, TABLE)
    rows = TABLE[model.predict(TABLE) == 0].iloc[:3].reset_index(drop=True)
    rows.loc[1, "a"] = 1e300
    found = explainer.explain(rows, target=1)
    assert [e.status for e in found] == ["optimal", "error", "optimal"]
    assert "too large" in found[1].message
    with pytest.raises(ModelError, match="too large"):
        explainer.explain(rows.iloc[[1]], target=1)

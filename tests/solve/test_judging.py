"""Points that the user's model refuses: cut off where rounding keeps them from the target, and nowhere else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer


@pytest.mark.parametrize("solver", ["auto", "box", "highs", "scip"])
@pytest.mark.parametrize("reduce", [True, False])
def test_a_misread_point_is_no_proof(solver: str, reduce: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(0, 1, 100), "b": rng.normal(0, 3, 100)}).astype(np.float32)
    table.loc[rng.random(100) < 0.3, "a"] = np.nan
    labels = (table.a.isna() & (table.b > 0.1)).astype(int)
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)).fit(table, labels)
    row = table[(model.predict(table) == 0) & (table.b < 0) & table.a.notna()].head(1)
    explainer = Explainer(model, table)
    missing = {"may_become_missing": ["a"], "cost_of_becoming_missing": 0.001}
    asked = {"target": 1, "missing": missing, "solver": solver, "reduce": reduce}
    assert explainer.explain(row, **asked)[0].status == "optimal"
    # a gap that makes float64 of its column: the scaler then computes otherwise than the splits were read
    monkeypatch.setattr("ocf.features.space.holds_gaps", lambda dtype: False)
    found = explainer.explain(row, **asked)[0]
    assert found.status == "error"
    assert "part at feature 'b'" in found.message


def test_the_row_itself_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    model = RandomForestClassifier(10, max_depth=3, random_state=0).fit(table, table.sum(axis=1) > 0)
    explainer = Explainer(model, table)
    row = table[~model.predict(table)].head(1) - 0.001  # rows of the data are asked about, too
    assert not model.predict(row)[0]
    asked: list[pd.DataFrame] = []
    predict = type(model).predict

    def told(self: RandomForestClassifier, rows: pd.DataFrame) -> np.ndarray:
        asked.append(rows)
        return predict(self, rows)

    monkeypatch.setattr(type(model), "predict", told)
    answer = explainer.explain(row, True, plausibility={"trees": 5, "samples": 16})[0]
    assert answer.status == "optimal"
    assert sum(int((np.asarray(seen) == row.to_numpy()).all(axis=1).sum()) for seen in asked) == 1

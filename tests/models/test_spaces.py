"""Across files: columns whose names have spaces, in place of which LightGBM writes ``_``, in models that hold such."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier

from ocf import Explainer

lightgbm = pytest.importorskip("lightgbm")


def boosted() -> Any:
    return lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1)


def forest() -> Any:
    return RandomForestClassifier(3, max_depth=2, random_state=0)


MODELS: dict[str, Any] = {
    "alone": boosted,
    "calibrated": lambda: CalibratedClassifierCV(boosted(), cv=2),
    "threshold": lambda: FixedThresholdClassifier(boosted(), threshold=0.4),
    "one against the rest": lambda: OneVsRestClassifier(boosted()),
    "behind a forest": lambda: VotingClassifier([("a", forest()), ("b", boosted())], voting="soft"),
    "before a forest": lambda: VotingClassifier([("a", boosted()), ("b", forest())], voting="soft"),
    "two": lambda: VotingClassifier([("a", boosted()), ("b", boosted())], voting="soft"),
    "stacked": lambda: StackingClassifier(
        [("a", HistGradientBoostingClassifier(max_iter=3)), ("b", boosted())], LogisticRegression(), cv=2
    ),
    "stacked beside the table": lambda: StackingClassifier(
        [("a", forest()), ("b", boosted())], forest(), cv=2, passthrough=True
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_names_with_spaces(name: str) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"open credits": rng.normal(size=200).round(2), "age": rng.integers(0, 50, 200)})
    model = MODELS[name]().fit(table, (table["open credits"] + table.age / 25 > 1).astype(int))
    rows = table[model.predict(table) == 0].head(3)
    found = Explainer(model, table).explain(rows, target=1)
    assert all(e.status == "optimal" and e.verified for e in found)
    assert all(model.predict(e.counterfactual)[0] == 1 for e in found)
    turned = Explainer(model, table[["age", "open credits"]]).explain(rows[["age", "open credits"]], target=1)
    assert [e.cost for e in turned] == [e.cost for e in found]

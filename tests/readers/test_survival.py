"""scikit-survival's models: risk, time and survival, compared with the library and with brute force."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf import Explainer, survival_at
from ocf.errors import ModelError, ProblemError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.conformance import check_conformance

pytest.importorskip("sksurv")
from sksurv.ensemble import (
    ComponentwiseGradientBoostingSurvivalAnalysis,
    ExtraSurvivalTrees,
    GradientBoostingSurvivalAnalysis,
    RandomSurvivalForest,
)
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.tree import ExtraSurvivalTree, SurvivalTree
from sksurv.util import Surv

SMALL: dict[str, Any] = {"max_depth": 2, "random_state": 0}
BOOSTED: dict[str, Any] = {"n_estimators": 4, "max_depth": 2, "learning_rate": 0.5, "random_state": 0}

RISKS: dict[str, Callable[[], Any]] = {
    "tree": lambda: SurvivalTree(**SMALL),
    "extra tree": lambda: ExtraSurvivalTree(**SMALL),
    "forest": lambda: RandomSurvivalForest(4, **SMALL),
    "extra forest": lambda: ExtraSurvivalTrees(4, **SMALL),
    "boosting": lambda: GradientBoostingSurvivalAnalysis(**BOOSTED),
    "dropout": lambda: GradientBoostingSurvivalAnalysis(**BOOSTED, dropout_rate=0.5),
}
TIMES: dict[str, Callable[[], Any]] = {
    "low memory": lambda: RandomSurvivalForest(4, **SMALL, low_memory=True),
    "squared": lambda: GradientBoostingSurvivalAnalysis(**BOOSTED, loss="squared"),
    "weighted, dropout": lambda: GradientBoostingSurvivalAnalysis(**BOOSTED, loss="ipcwls", dropout_rate=0.5),
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=150).round(1), "b": rng.integers(0, 4, 150), "c": rng.random(150)})


def times(table: pd.DataFrame) -> Any:
    rng = np.random.default_rng(1)
    scale = 20 * np.exp(-table["a"].fillna(0) - (table["b"] > 1))
    return Surv.from_arrays(rng.random(len(table)) < 0.7, np.ceil(rng.exponential(scale)))


@pytest.mark.parametrize("name", [*RISKS, *TIMES])
def test_risk_agrees_at_every_threshold(name: str, table: pd.DataFrame) -> None:
    model = (RISKS | TIMES)[name]().fit(table, times(table))
    read = read_model(model)
    check_conformance(read, table)
    scores = read.ensemble.scores(table.to_numpy(float))[:, 0]
    shown = np.exp(scores) if name in ("squared", "weighted, dropout") else scores
    np.testing.assert_allclose(model.predict(table), shown, rtol=1e-12)
    assert len(np.unique(shown)) > 2
    assert read.library.startswith("scikit-survival")


@pytest.mark.parametrize("name", RISKS)
@pytest.mark.parametrize("place", ["first", "between", "at an event", "last"])
def test_survival_is_that_of_the_librarys_functions(name: str, place: str, table: pd.DataFrame) -> None:
    model = RISKS[name]().fit(table, times(table))
    known = model.unique_times_
    time = {"first": known[0], "between": known[3] + 0.25, "at an event": known[5], "last": known[-1]}[place]
    found = survival_at(model, time)
    shown = np.array([function(time) for function in model.predict_survival_function(table)])
    np.testing.assert_array_equal(found.predict(table), shown)
    read = read_model(found)
    check_conformance(read, table)
    if place == "between":
        assert len(np.unique(shown)) > 2


@pytest.mark.parametrize("name", ["extra tree", "forest", "boosting"])
@pytest.mark.parametrize("wish", ["risk", "survival"])
def test_answers_equal_brute_force(name: str, wish: str, table: pd.DataFrame) -> None:
    model = RISKS[name]().fit(table, times(table))
    asked = survival_at(model, 10) if wish == "survival" else model
    shown = asked.predict(table)
    # thresholds that rows attain, and to which the last bit matters
    bound = float(np.quantile(shown, 0.8 if wish == "survival" else 0.2, method="nearest"))
    target = (bound, None) if wish == "survival" else (None, bound)
    explainer = Explainer(asked, data=table)
    ensemble = explainer.prepared.ensemble
    cuts = [np.unique(ensemble.threshold[ensemble.feature == j]) for j in range(3)]
    row = table.iloc[[int(np.argmin(shown) if wish == "survival" else np.argmax(shown))]]
    grids = [
        np.unique(np.r_[row.iloc[0, 0], cuts[0], np.nextafter(cuts[0], np.inf)]),
        np.arange(4),
        np.unique(np.r_[row.iloc[0, 2], cuts[2], np.nextafter(cuts[2], np.inf)]),
    ]
    grid = pd.DataFrame(itertools.product(*grids), columns=table.columns).astype(table.dtypes)
    reached = asked.predict(grid) >= bound if wish == "survival" else asked.predict(grid) <= bound
    answer = explainer.explain(row, target=target, norm="l0")[0]
    assert answer.status == "optimal", answer.message
    assert answer.verified, answer.checks
    assert answer.cost == (grid[reached] != row.iloc[0]).sum(axis=1).min()


def test_missing_values_follow_the_librarys_rule(table: pd.DataFrame) -> None:
    holes = table.assign(a=table["a"].mask(table.index % 5 == 0))
    model = RandomSurvivalForest(3, **SMALL).fit(holes, times(holes))
    read = read_model(model)
    assert read.ensemble.missing_left is not None
    check_conformance(read, holes)
    check_conformance(read_model(survival_at(model, 8)), holes)


def test_a_row_among_others_is_answered_as_it_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"a": rng.integers(0, 7, 60), "b": rng.integers(0, 5, 60)})
    weeks = np.round(np.exp(0.3 * table.a + rng.normal(0, 0.3, 60)) * 5) + 1
    model = SurvivalTree(max_depth=3, random_state=0).fit(table, Surv.from_arrays(rng.random(60) < 0.7, weeks))
    explainer, alone = Explainer(model, table), SurvivalTree.predict

    def predict(self: SurvivalTree, rows: Any) -> Any:
        """Among others a row's sum ends a last bit lower, as in NumPy on some processors."""
        return alone(self, rows) if len(rows) == 1 else np.nextafter(alone(self, rows), -np.inf)

    monkeypatch.setattr(SurvivalTree, "predict", predict)
    assert float(model.predict(table.iloc[[9]])[0]) > model.predict(table.iloc[:20])[9]
    for k in range(0, 20, 3):
        least = float(model.predict(table.iloc[[k]])[0])
        answer = explainer.explain(table.iloc[:20], target=(least, None))[k]
        assert (answer.status, answer.cost, answer.predicted) == ("optimal", 0.0, least)


def test_behind_a_pipeline(table: pd.DataFrame) -> None:
    model = make_pipeline(StandardScaler(), RandomSurvivalForest(3, **SMALL)).fit(table, times(table))
    asked = survival_at(model, 10)
    shown = asked.predict(table)
    row = table.iloc[[int(np.argmin(shown))]]
    answer = Explainer(asked, data=table).explain(row, target=(float(np.median(shown)), None))[0]
    assert answer.verified
    assert model.predict_survival_function(answer.counterfactual)[0](10) >= np.median(shown)


def test_what_is_not_read_is_refused_by_name(table: pd.DataFrame) -> None:
    y = times(table)
    with pytest.raises(ModelError, match="not fitted"):
        read_model(RandomSurvivalForest())
    with pytest.raises(ModelError, match="not fitted"):
        survival_at(RandomSurvivalForest(), 3)
    for linear in (ComponentwiseGradientBoostingSurvivalAnalysis(n_estimators=2), CoxPHSurvivalAnalysis()):
        with pytest.raises(UnsupportedModelError, match=f"{type(linear).__name__} is no sum of survival trees"):
            read_model(linear.fit(table, y))
        with pytest.raises(UnsupportedModelError, match="is no sum of survival trees"):
            survival_at(linear, 3)
    with pytest.raises(UnsupportedModelError, match="fit it with low_memory=False"):
        survival_at(TIMES["low memory"]().fit(table, y), 3)
    with pytest.raises(UnsupportedModelError, match="fit it with loss='coxph'"):
        survival_at(TIMES["squared"]().fit(table, y), 3)
    forest = RISKS["forest"]().fit(table, y)
    with pytest.raises(ProblemError, match=r"give one between 0 and"):
        survival_at(forest, forest.unique_times_[-1] + 1)
    with pytest.raises(ProblemError, match=r"give one between 0 and"):
        survival_at(forest, -1)
    with pytest.raises(ProblemError, match="a time is a number, not 'soon'"):
        survival_at(forest, "soon")
    broken = copy.copy(forest)
    broken.estimators_ = [object()]
    with pytest.raises(ModelError, match="lacks parts of a fitted one"):
        read_model(broken)

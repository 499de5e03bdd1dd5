"""CatBoost's models, read and compared with the library at, just above and around every border."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle import brute_force
from oracle.harness import Method, case_of, same
from oracle.instances import Instance, Spec
from sklearn.calibration import CalibratedClassifierCV
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from ocf import Explainer
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.conformance import check_conformance

catboost = pytest.importorskip("catboost")

SETTINGS = {"iterations": 4, "depth": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
POLICIES = ("SymmetricTree", "Depthwise", "Lossguide")


def table(seed: int = 0, holes: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = pd.DataFrame(rng.normal(size=(60, 3)).round(1), columns=["a", "b", "c"])
    score = (x["a"] + x["b"] * x["c"] + rng.normal(size=60) / 3).to_numpy()
    if holes:
        x.loc[::7, "b"] = np.nan
    return x, score


def fitted(x: Any, y: Any, values: bool = False, **settings: Any) -> Any:
    kind = catboost.CatBoostRegressor if values else catboost.CatBoostClassifier
    return kind(**(SETTINGS | settings)).fit(x, y)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
@pytest.mark.parametrize("kind", ["two", "three", "one against all", "values", "words"])
def test_trees_agree_at_every_border(policy: str, nan_mode: str, kind: str) -> None:
    x, score = table(holes=True)
    y = score if kind == "values" else np.digitize(score, [0.0] if kind in ("two", "words") else [-0.5, 0.5])
    y = np.array(["no", "yes"])[y] if kind == "words" else y
    loss = {"loss_function": "MultiClassOneVsAll"} if kind == "one against all" else {}
    given = x.to_numpy() if kind == "two" else x
    model = fitted(given, y, kind == "values", grow_policy=policy, nan_mode=nan_mode, **loss)
    read = read_model(model)
    check_conformance(read, x.to_numpy())
    rows = np.vstack([x.to_numpy(), np.full((1, 3), np.nan)])
    shown = read.ensemble.decide(read.ensemble.scores(rows))
    np.testing.assert_allclose(read.decide(rows), shown, rtol=1e-12)
    assert read.ensemble.missing_left is not None


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(2))
def test_answers_equal_brute_force(policy: str, seed: int) -> None:
    x, score = table(seed)
    model = fitted(x, np.where(score > 0, "yes", "no"), grow_policy=policy, depth=2, iterations=3)
    question = {"target": ["no", "yes"][seed], "norm": "l1"}
    row = x.iloc[[int(np.argmax(score) if seed == 0 else np.argmin(score))]]
    case = case_of(Instance(Spec("catboost", policy, seed), model, x, row, {}, question))
    best = brute_force.search(case.question)
    found = case.answer(Method("interval", "auto", True))
    assert found.status == ("optimal" if best.point is not None else "infeasible")
    assert best.point is not None
    assert same(found.cost, best.cost)


def test_labels_of_booleans_come_back_as_words_and_are_matched() -> None:
    x, score = table()
    read = read_model(fitted(x, score > 0))
    check_conformance(read, x.to_numpy())
    assert set(read.decide(x).tolist()) == {0, 1}


def test_three_classes_behind_a_pipeline() -> None:
    x, score = table()
    y = np.digitize(score, np.quantile(score, [0.3, 0.7]))
    model = make_pipeline(SimpleImputer(), catboost.CatBoostClassifier(**SETTINGS)).fit(x, y)
    row = x[model.predict(x)[:, 0] == 0].iloc[[0]]
    answer = Explainer(model, x).explain(row, 2)[0]
    assert answer.status == "optimal"
    assert model.predict(answer.counterfactual).tolist() == [[2]]


def test_a_threshold_of_ones_own_and_calibration() -> None:
    x, score = table()
    y = (score > 0).astype(int)
    model = fitted(x, y)
    model.set_probability_threshold(0.6)
    read = read_model(model)
    check_conformance(read, x.to_numpy())
    wanted = model.predict_proba(x)[:, 1] > 0.6
    np.testing.assert_array_equal(read.ensemble.decide(read.ensemble.scores(x.to_numpy())), wanted)
    calibrated = CalibratedClassifierCV(catboost.CatBoostClassifier(**SETTINGS), cv=2).fit(x, y)
    check_conformance(read_model(calibrated), x.to_numpy())


def test_what_is_not_read_is_refused_by_name() -> None:
    x, score = table()
    words = x.assign(c=np.where(x["c"] > 0, "up it goes", "down it goes"))
    y = (score > 0).astype(int)
    with pytest.raises(UnsupportedModelError, match=r"has columns of text \(c\), .*: train it without them"):
        read_model(fitted(words, y, text_features=["c"]))
    with pytest.raises(UnsupportedModelError, match="loss 'Poisson' is not read"):
        read_model(fitted(x, np.exp(score), values=True, loss_function="Poisson"))
    with pytest.raises(UnsupportedModelError, match="train a CatBoostClassifier"):
        read_model(catboost.CatBoost(SETTINGS | {"loss_function": "RMSE"}).fit(x, score))
    with pytest.raises(ModelError, match="not fitted"):
        read_model(catboost.CatBoostClassifier())

"""XGBoost models of several targets: each is read by itself, from trees of one target and from leaves with vectors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf import Explainer
from ocf.errors import ModelError, UnsupportedModelError
from ocf.models.user_model import as_user_model
from ocf.readers.conformance import check_conformance
from ocf.readers.xgboost_outputs import n_targets, of_target

xgboost = pytest.importorskip("xgboost")

NEW = tuple(map(int, xgboost.__version__.split(".")[:2])) >= (3, 2)
VECTORS = pytest.mark.skipif(not NEW, reason="vectors stood elsewhere before 3.2")
STRATEGIES = ["one_output_per_tree", pytest.param("multi_output_tree", marks=VECTORS)]


def fitted(strategy: str, classes: bool, **more: Any) -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(80, 3)).round(2), columns=["a", "b", "c"]).mask(rng.random((80, 3)) < 0.05)
    y = np.column_stack([x["a"] + x["b"], x["c"] * x["a"], x["b"]])
    y = np.nan_to_num(y)
    kind = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
    model = kind(n_estimators=4, max_depth=3, multi_strategy=strategy, n_jobs=1, **more)
    return model.fit(x, (y > 0).astype(int) if classes else y), x


def document(model: Any) -> dict[str, Any]:
    return dict(json.loads(model.get_booster().save_raw("json").decode()))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("number", [0, 2])
def test_each_target_is_read_and_explained_by_itself(strategy: str, classes: bool, number: int) -> None:
    model, x = fitted(strategy, classes)
    user = as_user_model(model, output=number)
    check_conformance(user.trees, x)
    found = user.trees.ensemble.decide(user.trees.ensemble.scores(user.encode(x)))
    wanted = model.predict(x)[:, number]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert (user.trees.probabilities is not None) == classes
    whole = x.dropna()
    target: Any = 1 - int(model.predict(whole)[0, number]) if classes else (float(np.quantile(wanted, 0.8)), None)
    question = {"probability": 0.55} if classes else {}
    answer = Explainer(model, data=x, output=number).explain(whole.iloc[[0]], target=target, **question)[0]
    assert (answer.status, answer.verified) == ("optimal", True)
    got = model.predict(answer.counterfactual)[0, number]
    assert got == target if classes else got >= target[0]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_boosters_and_parallel_trees_are_read(strategy: str) -> None:
    model, x = fitted(strategy, classes=False, num_parallel_tree=2, subsample=0.8)
    user = as_user_model(model.get_booster(), output="1")
    check_conformance(user.trees, x)
    shown = user.trees.ensemble.scores(user.encode(x))[:, 0]
    np.testing.assert_allclose(shown, model.predict(x)[:, 1], rtol=1e-5)


@VECTORS
def test_a_document_of_one_target_leaves_the_whole_as_it_was() -> None:
    model, _ = fitted("multi_output_tree", classes=False)
    whole = document(model)
    before = json.dumps(whole)
    alone = of_target(whole, 1)
    assert (n_targets(whole), n_targets(alone)) == (3, 1)
    assert json.dumps(whole) == before


@VECTORS
def test_what_is_not_read_is_refused() -> None:
    model, x = fitted("multi_output_tree", classes=False)
    with pytest.raises(UnsupportedModelError, match=r"3 targets at once.*output=0"):
        as_user_model(model)
    with pytest.raises(ModelError, match="the outputs 0 to 2"):
        Explainer(model, x, output=3)
    older = document(model)
    del older["learner"]["gradient_booster"]["model"]["trees"][0]["leaf_weights"]
    with pytest.raises(UnsupportedModelError, match=r"before 3\.2"):
        of_target(older, 0)
    wrong = document(model)
    tree = wrong["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["right_children"][tree["left_children"].index(-1)] = len(tree["left_children"]) - 1
    with pytest.raises(ModelError, match="a leaf has no vector"):
        of_target(wrong, 0)
    with pytest.raises(UnsupportedModelError, match="booster 'dart'"):
        as_user_model(fitted("one_output_per_tree", classes=False, booster="dart")[0], output=0)

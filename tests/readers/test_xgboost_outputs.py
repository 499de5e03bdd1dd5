"""XGBoost models of several targets: each is read by itself, from trees of one target and from leaves with vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf import Explainer
from ocf.errors import ModelError, UnsupportedModelError
from ocf.models.user_model import as_user_model
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model
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


@pytest.mark.parametrize("classes", [False, True])
def test_dart_weighs_the_trees_of_each_target(classes: bool) -> None:
    model, x = fitted("one_output_per_tree", classes, booster="dart", rate_drop=0.5)
    weights = document(model)["learner"]["gradient_booster"].get("weight_drop", [])
    assert weights == [] or len(set(weights)) > 1  # since 3.4 they stand elsewhere
    for number in range(3):
        user = as_user_model(model, output=number)
        check_conformance(user.trees, x)
        wanted = model.predict(x)[:, number]
        np.testing.assert_allclose(user.trees.ensemble.decide(user.trees.ensemble.scores(user.encode(x))), wanted, 1e-5)


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("strategy", [*STRATEGIES, "dart"])
@pytest.mark.parametrize("classes", [False, True])
def test_a_file_is_read_as_the_object_is(strategy: str, classes: bool, form: str, tmp_path: Path) -> None:
    more: dict[str, Any] = {"booster": "dart", "rate_drop": 0.5} if strategy == "dart" else {}
    model, x = fitted("one_output_per_tree" if strategy == "dart" else strategy, classes, **more)
    model.save_model(tmp_path / f"model.{form}")
    loaded = load_model(tmp_path / f"model.{form}")
    assert type(loaded) is type(model)
    edges = np.unique(np.concatenate([np.asarray(t.threshold)[np.isfinite(t.threshold)] for t in trees_of(model)]))
    near = np.concatenate([np.nextafter(np.float32(edges), np.float32(end)) for end in (-np.inf, np.inf)])
    beside = pd.DataFrame({c: [*edges, *near, np.nan] for c in x.columns}).astype(np.float32)
    for rows in (x, beside):
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
        if classes:
            np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    for number in range(3):
        check_conformance(as_user_model(tmp_path / f"model.{form}", output=number).trees, x)
    with pytest.raises(UnsupportedModelError, match="say which one"):
        as_user_model(tmp_path / f"model.{form}")


def nested(depth: int) -> dict[str, Any]:
    """Dicts in dicts, so deep that what copies them stumbles."""
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


def trees_of(model: Any) -> list[Any]:
    return [as_user_model(model, output=number).trees.ensemble for number in range(3)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_damaged_file_never_reaches_the_library(strategy: str, tmp_path: Path) -> None:
    model, _ = fitted(strategy, classes=False)
    whole = document(model)
    trees = whole["learner"]["gradient_booster"]["model"]["trees"]
    damages: list[tuple[Any, str, Any]] = [
        (trees[-1], "left_children", [10**6, *trees[-1]["left_children"][1:]]),
        (trees[-1], "split_indices", [10**6, *trees[-1]["split_indices"][1:]]),
        (trees[-1], "base_weights", trees[-1]["base_weights"][1:]),
        (whole["learner"]["gradient_booster"]["model"], "tree_info", [7] * len(trees)),
        (whole["learner"]["gradient_booster"]["model"], "iteration_indptr", [0, len(trees) + 1]),
        (whole["learner"]["learner_model_param"], "base_score", "[0.5,0.5]"),
        (whole["learner"]["learner_model_param"], "num_target", "4"),
        (trees[0], "split_type", nested(900)),
        (whole["learner"]["gradient_booster"]["model"], "gbtree_model_param", "none"),
    ]
    for part, key, wrong in damages:
        kept, part[key] = part[key], wrong
        (tmp_path / "model.json").write_text(json.dumps(whole))
        with pytest.raises(ModelError):
            load_model(tmp_path / "model.json")
        part[key] = kept
    (tmp_path / "model.json").write_text(json.dumps(whole))
    assert load_model(tmp_path / "model.json") is not None


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
    mixed = document(model)
    mixed["learner"]["gradient_booster"]["model"]["trees"][0]["tree_param"]["size_leaf_vector"] = "1"
    with pytest.raises(ModelError, match="some leaves hold vectors"):
        of_target(mixed, 0)
    linear = document(model)
    linear["learner"]["gradient_booster"]["name"] = "gblinear"
    with pytest.raises(UnsupportedModelError, match="booster 'gblinear'"):
        of_target(linear, 0)

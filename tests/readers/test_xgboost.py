"""XGBoost's models, read and compared with the library at, just above and around every threshold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocf.errors import DataError, ModelError, UnsupportedModelError
from ocf.readers import xgboost as reader
from ocf.readers.base import TreeModel
from ocf.readers.xgboost_format import parse, read_document
from ocf.trees.ensemble import Ensemble, SplitKind

from .boosted import N, check_decisions, codes, same, table
from .xgboost_models import BINARY, MULTICLASS, VALUES, labels, train, xgb


def probes(ensemble: Ensemble, x: np.ndarray, limit: int = 400) -> np.ndarray:
    """Rows of `x` moved to every threshold and next to it, in float64 and in float32."""
    rng = np.random.default_rng(2)
    rows = [x[:50], np.full((1, x.shape[1]), np.nan)]
    pairs = {(f, b) for k, f, b in zip(ensemble.kind, ensemble.feature, ensemble.threshold, strict=True) if k == 1}
    for f, b in sorted(pairs)[:limit]:
        single = np.float32(b)
        edge = [b, np.nextafter(b, -np.inf), np.nextafter(b, np.inf), float(single)]
        edge += [float(np.nextafter(single, np.float32(to))) for to in (-np.inf, np.inf)]
        moved = x[rng.integers(0, len(x), len(edge))].copy()
        moved[:, f] = edge
        rows.append(moved)
    return np.concatenate(rows)


def booster_of(native: Any) -> Any:
    return native if isinstance(native, xgb.Booster) else native.get_booster()


def check(native: Any, x: np.ndarray) -> TreeModel:
    """The three promises: same leaves, same scores, same decisions."""
    model = reader.read(native)
    ensemble = model.ensemble
    points = probes(ensemble, x)
    booster = booster_of(native)
    matrix = xgb.DMatrix(
        points, feature_names=booster.feature_names, feature_types=booster.feature_types, enable_categorical=True
    )
    theirs = booster.predict(matrix, pred_leaf=True).reshape(len(points), -1)[:, : ensemble.n_trees]
    nodes = np.flatnonzero(ensemble.kind == SplitKind.LEAF)[ensemble.apply(points)]
    np.testing.assert_array_equal(nodes - ensemble.tree_offsets[:-1], theirs)
    np.testing.assert_allclose(model.scores(points), ensemble.scores(points), rtol=0, atol=ensemble.rounding)
    check_decisions(model, points, rtol=1e-5, atol=1e-6)
    return model


@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softprob"])
def test_link_rounding_decides_only_within_the_slack(objective: str) -> None:
    """Leaves around a tie, written into a document: outside the slack the exact scores give the answer."""
    document = json.loads(
        bytes(
            train(objective, rounds=1, max_depth=0, base_score=0.5, grow_policy="lossguide", max_leaves=1).save_raw(
                "json"
            )
        )
    )
    trees = document["learner"]["gradient_booster"]["model"]["trees"]
    for tree in trees:
        tree["split_conditions"] = [0.0]
    undecided = []
    for gap in np.float32(2.0) ** np.arange(-30, -15, 0.25, dtype=np.float32):
        for sign in (-1, 1):
            trees[0]["split_conditions"] = [float(sign * gap)]
            booster = xgb.Booster()
            booster.load_model(bytearray(json.dumps(document).encode()))
            model = reader.read(booster)
            row = np.zeros((1, 3))
            if model.decide(row)[0] != model.ensemble.decide(model.ensemble.scores(row))[0]:
                undecided.append(float(gap))
    assert undecided
    assert max(undecided) < model.ensemble.decision.slack


@pytest.mark.parametrize("objective", BINARY + MULTICLASS + VALUES)
@pytest.mark.parametrize("base_score", [None, 0.3])
def test_boosters_of_every_objective(objective: str, base_score: float | None) -> None:
    check(train(objective, **({} if base_score is None else {"base_score": base_score})), table())


@pytest.mark.parametrize("base_score", [1e-6, 0.4999999, 0.5000001, 1 - 1e-6])
def test_base_score_is_turned_to_a_margin_in_float32(base_score: float) -> None:
    x = table()
    # tiny leaves: nothing but the base score matters
    model = check(train(x=x, rounds=1, eta=1e-7, base_score=base_score), x)
    exact = model.scores(x) - (model.ensemble.scores(x) - model.ensemble.base_score)
    np.testing.assert_allclose(exact, model.ensemble.base_score[0], rtol=3e-7)


@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softprob", "reg:squarederror"])
@pytest.mark.parametrize("extra", [{"rate_drop": 0.5}, {"rate_drop": 0.5, "normalize_type": "forest"}])
def test_dart_weighs_its_trees(objective: str, extra: dict[str, Any]) -> None:
    model = check(train(objective, rounds=8, booster="dart", **extra), table())
    assert len(set(model.ensemble.tree_weights)) > 1


@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softprob"])
@pytest.mark.parametrize("params", [{"num_parallel_tree": 3}, {"tree_method": "exact"}, {"tree_method": "approx"}])
def test_other_ways_to_grow(objective: str, params: dict[str, Any]) -> None:
    check(train(objective, rounds=3, subsample=0.7, **params), table())


def test_pruned_nodes_are_dropped() -> None:
    x = table(missing=0.0)
    booster = train("reg:squarederror", x, rounds=3, tree_method="exact", max_depth=5, gamma=0.3)
    document = parse(bytes(booster.save_raw("ubj")))
    trees = document["learner"]["gradient_booster"]["model"]["trees"]
    model = reader.read(booster)
    assert sum(len(t["left_children"]) - int(t["tree_param"]["num_deleted"]) for t in trees) == len(model.ensemble.kind)
    points = probes(model.ensemble, x)
    np.testing.assert_allclose(
        model.scores(points), model.ensemble.scores(points), rtol=0, atol=model.ensemble.rounding
    )


def test_trees_without_a_split() -> None:
    model = check(train("reg:squarederror", gamma=1e9), table())
    assert model.ensemble.n_leaves == model.ensemble.n_trees


@pytest.mark.parametrize(
    ("estimator", "objective"),
    [
        ("XGBClassifier", "binary:logistic"),
        ("XGBClassifier", "binary:logitraw"),
        ("XGBClassifier", "binary:hinge"),
        ("XGBClassifier", "reg:squarederror"),
        ("XGBClassifier", "reg:logistic"),
        ("XGBClassifier", "multi:softmax"),
        ("XGBClassifier", "multi:softprob"),
        ("XGBRFClassifier", "binary:logistic"),
        ("XGBRFClassifier", "multi:softprob"),
        ("XGBRegressor", "reg:squarederror"),
        ("XGBRegressor", "reg:gamma"),
        ("XGBRegressor", "binary:logistic"),
        ("XGBRFRegressor", "reg:squarederror"),
    ],
)
def test_estimators(estimator: str, objective: str) -> None:
    x = table()
    native = getattr(xgb, estimator)(n_estimators=5, max_depth=3, n_jobs=1, objective=objective)
    classes = "Classifier" in estimator
    y = labels(x, objective if not classes or objective in MULTICLASS else "binary:logistic")
    model = check(native.fit(x, y), x)
    np.testing.assert_array_equal(model.decide(x), native.predict(x))
    if classes:
        assert model.ensemble.decision.classes == tuple(native.classes_.tolist())


@pytest.mark.parametrize("objective", MULTICLASS)
def test_two_classes_of_a_multiclass_objective(objective: str) -> None:
    x = table()
    native = xgb.XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1, objective=objective, num_class=2)
    check(native.fit(x, labels(x, "binary:logistic")), x)


@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softprob"])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_estimators_stop_after_the_best_round_and_boosters_do_not(objective: str, booster: str, tmp_path: Path) -> None:
    x = table()
    y = np.random.default_rng(0).permutation(labels(x, objective))
    native = xgb.XGBClassifier(
        n_estimators=30, n_jobs=1, early_stopping_rounds=5, num_parallel_tree=2, subsample=0.7, booster=booster
    )
    native.fit(x[:100], y[:100], eval_set=[(x[100:], y[100:])], verbose=False)
    per_round = 2 * (3 if objective == "multi:softprob" else 1)
    model = check(native, x)
    assert model.ensemble.n_trees == (native.best_iteration + 1) * per_round
    assert check(native.get_booster(), x).ensemble.n_trees == native.get_booster().num_boosted_rounds() * per_round
    native.save_model(tmp_path / "model.json")
    same(reader.read(reader.load(tmp_path / "model.json")).ensemble, model.ensemble)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softprob", "reg:gamma"])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_files_give_the_ensemble_of_the_object(objective: str, suffix: str, booster: str, tmp_path: Path) -> None:
    native = train(objective, booster=booster)
    path = tmp_path / f"model.{suffix}"
    native.save_model(path)
    data = path.read_bytes()
    assert reader.sniff(data[:64])
    expected = reader.read(native).ensemble
    same(read_document(parse(data)), expected)
    same(check(reader.load(path), table()).ensemble, expected)


@pytest.mark.parametrize("estimator", ["XGBClassifier", "XGBRegressor"])
def test_files_of_estimators_come_back_as_estimators(estimator: str, tmp_path: Path) -> None:
    x = table()
    native = getattr(xgb, estimator)(n_estimators=3, n_jobs=1).fit(x, labels(x, "binary:logistic"))
    native.save_model(tmp_path / "model.ubj")
    loaded = reader.load(tmp_path / "model.ubj")
    assert type(loaded).__name__ == estimator
    same(reader.read(loaded).ensemble, reader.read(native).ensemble)


def test_base_score_and_categories_of_older_files() -> None:
    booster = train("binary:logistic")
    document = json.loads(bytes(booster.save_raw("json")))
    expected = read_document(document)
    learner = document["learner"]
    # before 3.1 one number, before 1.3 no categories, before 2.0 no bounds of rounds
    learner["learner_model_param"]["base_score"] = learner["learner_model_param"]["base_score"].strip("[]")
    del learner["gradient_booster"]["model"]["iteration_indptr"]
    for tree in learner["gradient_booster"]["model"]["trees"]:
        for key in ("split_type", "categories", "categories_nodes", "categories_segments", "categories_sizes"):
            del tree[key]
    same(read_document(document), expected)
    learner["attributes"]["best_iteration"] = "3"
    assert read_document(document, "classifier").n_trees == 4


@pytest.mark.parametrize(
    ("center", "spread"), [(0, 1e-3), (1e3, 1e-3), (1.7e9, 1e4), (0, 1e-30), (0, 1e-42), (0, 1e30), (2**24, 4)]
)
def test_hostile_scales(center: float, spread: float) -> None:
    x = table(missing=0.1)
    scaled = center + spread * x
    booster = xgb.train(
        {"max_depth": 4, "nthread": 1, "max_bin": 512, "tree_method": "exact"},
        xgb.DMatrix(scaled, labels(x, "reg:squarederror")),
        5,
    )
    check(booster, scaled)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**31), st.integers(-140, 120), st.sampled_from(["hist", "exact"]))
def test_neighbouring_float32_values(seed: int, exponent: int, method: str) -> None:
    """Columns of a few adjacent float32 values: thresholds lie between neighbours."""
    rng = np.random.default_rng(seed)
    values = np.float32(2.0) ** np.float32(exponent) * np.ones(8, np.float32)
    for i in range(1, 8):
        values[i] = np.nextafter(values[i - 1], np.float32(np.inf))
    x = rng.choice(values.astype(np.float64), (60, 2))
    y = x[:, 0] > np.median(x[:, 0])
    booster = xgb.train(
        {"max_depth": 3, "nthread": 1, "tree_method": method, "min_child_weight": 0}, xgb.DMatrix(x, y), 3
    )
    check(booster, x)


def categorical_table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    # not in alphabetical order, one category never seen
    color = pd.Categorical(rng.choice(list("xyzuv"), N), categories=list("zyxwvu"))
    size = pd.Categorical(rng.choice([10, 20, 30], N), categories=[30, 10, 20])
    frame = pd.DataFrame({"width": rng.normal(size=N), "color": color, "size": size})
    y = (np.isin(color, ["x", "u"]) ^ (frame["width"] > 0) ^ (frame["size"] == 10)).astype(int)
    frame.loc[::11, "color"] = np.nan
    return frame, y.to_numpy()


@pytest.mark.parametrize("one_hot", [1, 100])
@pytest.mark.parametrize("kind", ["booster", "classifier"])
def test_categories_of_a_table(kind: str, one_hot: int) -> None:
    frame, y = categorical_table()
    native = xgb.XGBClassifier(
        n_estimators=8, max_depth=4, n_jobs=1, enable_categorical=True, max_cat_to_onehot=one_hot
    ).fit(frame, y)
    model = check(native if kind == "classifier" else native.get_booster(), codes(frame))
    assert (model.ensemble.kind == SplitKind.SUBSET).any()
    assert model.ensemble.feature_names == ("width", "color", "size")
    np.testing.assert_array_equal(model.scores(frame), model.scores(codes(frame)))
    np.testing.assert_array_equal(model.scores(frame[["size", "width", "color"]]), model.scores(frame))
    np.testing.assert_array_equal(model.decide(frame), native.predict(frame))
    assert model.categories == {1: tuple("zyxwvu"), 2: (30, 10, 20)}
    words = frame.astype({"color": object, "size": "int64"})
    np.testing.assert_array_equal(model.scores(words), model.scores(frame))
    missing = model.scores(codes(frame.assign(color=pd.Categorical([None] * N, categories=list("zyxwvu")))))
    np.testing.assert_array_equal(model.scores(words.assign(color=None)), missing)
    with pytest.raises(DataError, match="column 'color' holds 'pink', with which the model was not fitted"):
        model.scores(words.assign(color="pink"))  # XGBoost predicts no such row
    odd = np.column_stack([np.zeros(9), [-1, -7, 0, 3, 5, 6, 32, 1e6, 1e9], [np.nan, 0, 1, 2, 3, 31, 32, 64, -1]])
    np.testing.assert_allclose(model.scores(odd), model.ensemble.scores(odd), rtol=0, atol=model.ensemble.rounding)


@pytest.mark.parametrize("position", [0, 2])
def test_categories_that_xgboost_cuts_short_are_refused(position: int) -> None:
    """It counts characters where it needs bytes: 'é ü' becomes 'é ', and the names after it shift."""
    names = ["b", "x"]
    names.insert(position, "é ü")
    color = np.random.default_rng(0).choice(names, N)
    frame = pd.DataFrame({"color": pd.Categorical(color, categories=names)})
    native = xgb.XGBClassifier(n_estimators=2, n_jobs=1, enable_categorical=True).fit(frame, color == "é ü")
    with pytest.raises(UnsupportedModelError, match=r"cats\.enc\[0\]: rename the categories"):
        reader.read(native)


def test_integer_categories_of_an_array(tmp_path: Path) -> None:
    frame, y = categorical_table()
    x = codes(frame)
    matrix = xgb.DMatrix(x, y, feature_types=["q", "c", "c"], enable_categorical=True)
    booster = xgb.train({"max_depth": 4, "max_cat_to_onehot": 1, "nthread": 1}, matrix, 5)
    model = check(booster, x)
    booster.save_model(tmp_path / "model.json")
    same(check(reader.load(tmp_path / "model.json"), x).ensemble, model.ensemble)


def test_splits_of_categories_of_xgboost_2() -> None:
    """It writes NaN where a number's threshold would stand."""
    frame, y = categorical_table()
    native = xgb.XGBClassifier(n_estimators=3, n_jobs=1, enable_categorical=True, max_cat_to_onehot=1).fit(frame, y)
    document = json.loads(bytes(native.get_booster().save_raw("json")))
    expected = read_document(document)
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        conditions, kinds = tree["split_conditions"], tree["split_type"]
        tree["split_conditions"] = [np.nan if kind else value for value, kind in zip(conditions, kinds, strict=True)]
    same(read_document(document), expected)
    tree["split_conditions"][-1] = np.nan
    with pytest.raises(ModelError, match="a threshold or leaf value is no number"):
        read_document(document)


@pytest.mark.parametrize("kind", ["booster", "estimator"])
def test_tables_are_matched_by_name_and_bad_ones_are_refused(kind: str) -> None:
    x = table()
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    native = xgb.XGBClassifier(n_estimators=3, n_jobs=1).fit(frame, labels(x, "binary:logistic"))
    model = check(native if kind == "estimator" else native.get_booster(), x)
    np.testing.assert_array_equal(model.scores(frame[["c", "a", "b"]].assign(more=1)), model.scores(x))
    with pytest.raises(DataError, match=r"lacks the columns \['b'\]"):
        model.scores(frame.drop(columns="b"))
    with pytest.raises(DataError, match="a column per feature"):
        model.decide(x[:, :2])
    with pytest.raises(DataError, match="XGBoost cannot score"):
        model.decide(frame.assign(b="text"))


@pytest.mark.parametrize("kind", ["booster", "estimator"])
def test_models_of_arrays_take_tables_by_position(kind: str) -> None:
    x = table()
    native = xgb.XGBClassifier(n_estimators=3, n_jobs=1).fit(x, labels(x, "binary:logistic"))
    model = reader.read(native if kind == "estimator" else native.get_booster())
    assert model.ensemble.feature_names == ("f0", "f1", "f2")
    np.testing.assert_array_equal(model.scores(pd.DataFrame(x, columns=["a", "b", "c"])), model.scores(x))


def test_matches_by_module_only() -> None:
    assert reader.matches(xgb.XGBRFRegressor())
    assert reader.matches(train(rounds=1))
    assert not reader.matches(xgb.DMatrix(table()))
    assert not reader.matches(object())


def unsupported() -> dict[str, Callable[[], Any]]:
    x = table()
    y = labels(x, "binary:logistic")
    kwargs: dict[str, Any] = {"n_estimators": 2, "n_jobs": 1}
    two = np.c_[y, 1 - y]
    return {
        "booster='gbtree'": lambda: train(booster="gblinear", x=table(missing=0), verbosity=0),
        "one_output_per_tree": lambda: train("multi:softprob", multi_strategy="multi_output_tree"),
        "one model per target": lambda: xgb.XGBRegressor(**kwargs).fit(x, two),
        "'survival:cox' gives neither": lambda: xgb.XGBRegressor(objective="survival:cox", **kwargs).fit(x, y + 1),
        "'rank:pairwise' gives neither": lambda: train("rank:pairwise"),
        "a ranker has no class": lambda: xgb.XGBRanker(**kwargs).fit(x, y, qid=np.zeros(N, int)),
        "fit with missing=numpy.nan": lambda: xgb.XGBClassifier(missing=-1.0, **kwargs).fit(x, y),
        "use XGBClassifier": lambda: xgb.XGBRegressor(objective="binary:hinge", **kwargs).fit(x, y),
        "binary:logistic": lambda: xgb.XGBClassifier(objective="count:poisson", **kwargs).fit(x, y),
    }


@pytest.mark.parametrize("remedy", unsupported())
def test_refusals_name_a_remedy(remedy: str) -> None:
    with pytest.raises(UnsupportedModelError, match=remedy):
        reader.read(unsupported()[remedy]())


def test_unfitted_models() -> None:
    with pytest.raises(ModelError, match="call fit"):
        reader.read(xgb.XGBClassifier())
    with pytest.raises(ModelError, match="no trees"):
        reader.read(train(rounds=0))


def test_sniff() -> None:
    assert reader.sniff(b'{ "learner": {')
    assert not reader.sniff(b"")
    assert not reader.sniff(b'{"other": 1}')
    assert not reader.sniff(b"tree\nversion=v4\n")


@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softprob", "reg:squarederror"])
def test_treelite_agrees(objective: str) -> None:
    treelite = pytest.importorskip("treelite")
    booster = train(objective)
    ensemble = reader.read(booster).ensemble
    points = probes(ensemble, table()).astype(np.float32)
    margins = treelite.gtil.predict(
        treelite.frontend.from_xgboost(booster), points, nthread=1, pred_margin=True
    ).reshape(len(points), -1)
    np.testing.assert_allclose(margins, ensemble.scores(points), rtol=0, atol=ensemble.rounding)

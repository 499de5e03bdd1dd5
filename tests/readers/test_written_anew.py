"""The libraries get files that ocf wrote anew, which predict bit by bit what the user's files do."""

import copy
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import ModelError
from ocf.readers import lightgbm as lightgbm_reader
from ocf.readers import read_model
from ocf.readers import xgboost as xgboost_reader
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model

xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")

N = 150


def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    x = np.c_[rng.normal(size=N), rng.integers(0, 5, N), rng.normal(size=N).round(1)]
    x[rng.random(N) < 0.2, 2] = np.nan
    return x


def labels(x: np.ndarray, n_classes: int) -> np.ndarray:
    signal = x[:, 0] + 0.5 * x[:, 1] + np.random.default_rng(1).normal(size=len(x))
    if n_classes:
        return np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    return (signal - signal.min() + 0.1) / (np.ptp(signal) + 0.2)


def category_table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    color = pd.Categorical(rng.choice(list("xyzuv"), N), categories=["z", "y", "x", "w", "v", "u", "e u"])
    size = pd.Categorical(rng.choice([10, 20, 30], N), categories=[30, 10, 20])
    frame = pd.DataFrame({"width": rng.normal(size=N), "color": color, "size": size})
    y = (np.isin(color, ["x", "u"]) ^ (frame["width"] > 0) ^ (frame["size"] == 10)).astype(int)
    frame.loc[::11, "color"] = np.nan
    return frame, y.to_numpy()


# ---------------------------------------------------------------------------------------------- XGBoost

XGB_MODELS: dict[str, dict[str, Any]] = {
    **{
        objective: {"objective": objective}
        for objective in (
            "binary:logistic",
            "binary:logitraw",
            "binary:hinge",
            "reg:squarederror",
            "reg:squaredlogerror",
            "reg:pseudohubererror",
            "reg:absoluteerror",
            "reg:logistic",
            "reg:gamma",
            "reg:tweedie",
            "count:poisson",
        )
    },
    "quantile": {"objective": "reg:quantileerror", "quantile_alpha": 0.4},
    "softmax": {"objective": "multi:softmax", "num_class": 3},
    "softprob": {"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2},
    "base score": {"objective": "binary:logistic", "base_score": 0.3},
    "pruned": {"objective": "reg:squarederror", "tree_method": "exact", "gamma": 0.3, "max_depth": 5},
    "dart": {"booster": "dart", "rate_drop": 0.5, "objective": "binary:logistic"},
    "pruned dart": {"booster": "dart", "rate_drop": 0.5, "gamma": 0.3, "tree_method": "exact", "max_depth": 5},
    "forest": {"objective": "binary:logistic", "num_parallel_tree": 4, "subsample": 0.7, "colsample_bynode": 0.8},
    "lossguide": {"objective": "count:poisson", "grow_policy": "lossguide", "max_leaves": 6, "max_depth": 0},
}


def xgb_model(params: dict[str, Any], names: list[str] | None = None) -> Any:
    x = table()
    n_classes = params.get("num_class", 2 if params.get("objective", "").startswith("binary") else 0)
    matrix = xgb.DMatrix(x, labels(x, n_classes), feature_names=names, nthread=1)
    return xgb.train({"max_depth": 3, "nthread": 1, "seed": 0, **params}, matrix, 5)


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("name", XGB_MODELS)
def test_xgboost_boosters_predict_as_their_files(name: str, form: str, tmp_path: Path) -> None:
    booster = xgb_model(XGB_MODELS[name], ["a b", "é", "c"] if form == "ubj" else None)
    path = tmp_path / f"model.{form}"
    booster.save_model(path)
    original, ours = xgb.Booster(model_file=str(path)), load_model(path)
    assert ours.feature_names == original.feature_names
    rows = xgb.DMatrix(table(), feature_names=original.feature_names, nthread=1)
    for options in ({"output_margin": True}, {}, {"pred_leaf": True}):
        np.testing.assert_array_equal(ours.predict(rows, **options), original.predict(rows, **options))
    assert ours.get_dump(with_stats=True) == original.get_dump(with_stats=True)
    check_conformance(read_model(ours))


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("one_hot", [1, 100])
def test_xgboost_categories_survive(form: str, one_hot: int, tmp_path: Path) -> None:
    frame, y = category_table()
    native = xgb.XGBClassifier(
        n_estimators=8, max_depth=4, n_jobs=1, enable_categorical=True, max_cat_to_onehot=one_hot
    ).fit(frame, y)
    path = tmp_path / f"model.{form}"
    native.save_model(path)
    original = xgb.XGBClassifier()
    original.load_model(path)
    ours = load_model(path)
    assert isinstance(ours, xgb.XGBClassifier)
    np.testing.assert_array_equal(ours.predict_proba(frame), original.predict_proba(frame))
    # another order of the categories, which the library maps to that of the training table
    turned = frame.assign(color=frame["color"].cat.set_categories(list("uvxyz")))
    np.testing.assert_array_equal(ours.predict_proba(turned), original.predict_proba(turned))
    model = read_model(ours)
    assert model.categories == {1: ("z", "y", "x", "w", "v", "u", "e u"), 2: (30, 10, 20)}
    check_conformance(model)


@pytest.mark.parametrize("kind", ["XGBClassifier", "XGBRegressor"])
def test_xgboost_early_stopping_survives(kind: str, tmp_path: Path) -> None:
    x = table()
    y = labels(x, 2)
    native = getattr(xgb, kind)(n_estimators=60, early_stopping_rounds=2, max_depth=3, n_jobs=1)
    native.fit(x[:100], y[:100], eval_set=[(x[100:], y[100:])], verbose=False)
    native.save_model(tmp_path / "model.json")
    ours = load_model(tmp_path / "model.json")
    assert type(ours).__name__ == kind
    assert ours.best_iteration == native.best_iteration < 57
    np.testing.assert_array_equal(ours.predict(x, output_margin=True), native.predict(x, output_margin=True))


# what a stranger may have done to a file, and the place that the message names

Change = Callable[[dict[str, Any]], Any]


def trees(document: dict[str, Any]) -> list[dict[str, Any]]:
    booster = document["learner"]["gradient_booster"]
    return booster["model"]["trees"]


def put(key: str, index: int, value: Any, tree: int = 1) -> Change:
    return lambda document: trees(document)[tree][key].__setitem__(index, value)


def put_in(path: str, value: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        part: Any = document
        *way, last = path.split(".")
        for key in way:
            part = part[key]
        part[last] = value

    return change


MODEL = "learner.gradient_booster.model"
XGB_DAMAGE: dict[str, tuple[Change, str]] = {
    "child out of range": (put("left_children", 0, 99), rf"{MODEL}\.trees\[1\]\.left_children\[0\]"),
    "child far out of range": (put("right_children", 0, 2**31), rf"{MODEL}\.trees\[1\]\.right_children\[0\]"),
    "a circle": (put("left_children", 1, 0), "two parents"),
    "one child": (put("right_children", 1, -1), rf"one child, at {MODEL}\.trees\[1\]\.right_children\[1\]"),
    "a fraction for a child": (put("left_children", 0, 1.5), r"trees\[1\]\.left_children\[0\]"),
    "true for a child": (put("left_children", 0, True), rf"true or false is not what belongs, at {MODEL}"),
    "text for a child": (put("left_children", 0, "1"), "text is not what belongs"),
    "parents disagree": (put("parents", 3, 2), rf"disagree, at {MODEL}\.trees\[1\]\.parents\[3\]"),
    "a parent out of range": (put("parents", 3, -2), r"no node -2, at .*\.parents\[3\]"),
    "a root with a parent": (put("parents", 0, -2), r"no node -2, at .*\.parents\[0\]"),
    "feature out of range": (put("split_indices", 0, 3), r"no feature 3, at .*\.split_indices\[0\]"),
    "NaN for a threshold": (put("split_conditions", 0, float("nan")), r"split_conditions\[0\]"),
    "an infinite leaf": (put("split_conditions", 6, float("inf")), r"split_conditions\[6\]"),
    "beyond float32": (put("split_conditions", 0, 1e39), r"does not fit into float32, at .*split_conditions\[0\]"),
    "a default of 2": (put("default_left", 0, 2), r"default_left\[0\]"),
    "a set of no split": (put("split_type", 0, 1), "categories_nodes"),
    "statistics of other lengths": (lambda d: trees(d)[1]["sum_hessian"].pop(), "6 entries where 7 belong"),
    "another id": (lambda d: trees(d)[1].update(id=0), r"trees\[1\]\.id"),
    "pruned nodes that are none": (lambda d: trees(d)[1]["tree_param"].update(num_deleted="1"), "hang loose"),
    "unknown part of a tree": (lambda d: trees(d)[1].update(slope=[0.0]), "does not know the part 'slope'"),
    "a class that is none": (put_in(f"{MODEL}.tree_info", [0, 1, 2]), r"1 is not between 0 and 0, at .*tree_info\[1\]"),
    "more trees announced": (put_in(f"{MODEL}.gbtree_model_param.num_trees", "7"), "7 trees are announced"),
    "rounds out of range": (put_in(f"{MODEL}.iteration_indptr", [0, 1, 9]), r"iteration_indptr\[2\]"),
    "no rounds": (put_in(f"{MODEL}.iteration_indptr", []), "rounds do not fit the trees, at"),
    "huge count of classes": (put_in("learner.learner_model_param.num_class", "2000000000"), "num_class"),
    "huge count of features": (put_in("learner.learner_model_param.num_feature", "2000000000"), "train on fewer"),
    "a number for a text": (put_in("learner.learner_model_param.num_class", 0), "text is expected"),
    "NaN to start with": (put_in("learner.learner_model_param.base_score", "nan"), "base_score"),
    "half a character": (put_in("learner.feature_names", ["\ud800", "b", "c"]), r"feature_names\[0\]"),
    "one name twice": (put_in("learner.feature_names", ["b", "b", "c"]), "comes twice"),
    "unknown type of feature": (put_in("learner.feature_types", ["q", "z", "q"]), "feature_types"),
    "best round out of range": (
        put_in("learner.attributes", {"best_iteration": "3", "scikit_learn": '{"_estimator_type": "regressor"}'}),
        "best round is 3 of 3",
    ),
    "an objective's parameter": (
        put_in("learner.objective.reg_loss_param", {"scale_pos_weight": "one"}),
        r"learner\.objective\.reg_loss_param\.scale_pos_weight",
    ),
    "unknown part": (put_in("learner.calibration", {}), "does not know the part 'calibration', at learner"),
}


@pytest.fixture(scope="module")
def regressor() -> dict[str, Any]:
    booster = xgb.train({"max_depth": 2, "nthread": 1}, xgb.DMatrix(table(), labels(table(), 0), nthread=1), 3)
    return json.loads(bytes(booster.save_raw("json")))


@pytest.mark.parametrize("damage", XGB_DAMAGE)
def test_xgboost_damage_is_named_by_its_place(damage: str, regressor: dict[str, Any], tmp_path: Path) -> None:
    change, message = XGB_DAMAGE[damage]
    document = copy.deepcopy(regressor)
    change(document)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=message) as caught:
        xgboost_reader.load(path)
    assert str(caught.value).startswith(str(path))


def test_parents_of_pruned_nodes(tmp_path: Path) -> None:
    document = json.loads(bytes(xgb_model(XGB_MODELS["pruned"]).save_raw("json")))
    number = next(t for t, tree in enumerate(trees(document)) if tree["tree_param"]["num_deleted"] != "0")
    node = trees(document)[number]["split_indices"].index(2**31 - 1)
    trees(document)[number]["parents"][node] = 99_999
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=rf"trees\[{number}\]\.parents\[{node}\]"):
        xgboost_reader.load(path)


def test_dart_wraps_a_booster_of_trees(tmp_path: Path) -> None:
    document = json.loads(bytes(xgb_model(XGB_MODELS["dart"]).save_raw("json")))
    path = tmp_path / "model.json"
    for name in ("dart", None):
        document["learner"]["gradient_booster"]["gbtree"]["name"] = name
        path.write_text(json.dumps(document))
        with pytest.raises(ModelError, match=r"at learner\.gradient_booster\.gbtree\.name"):
            xgboost_reader.load(path)


def test_a_key_that_comes_twice_in_json(regressor: dict[str, Any], tmp_path: Path) -> None:
    """Python and XGBoost need not keep the same one."""
    path = tmp_path / "model.json"
    text = json.dumps(regressor)
    path.write_text(text.replace('"num_class": "0"', '"num_class": "0", "num_class": "1"'))
    with pytest.raises(ModelError, match="'num_class' comes twice"):
        xgboost_reader.load(path)


def test_unimportant_attributes_are_dropped(regressor: dict[str, Any], tmp_path: Path) -> None:
    document = copy.deepcopy(regressor)
    document["learner"]["attributes"]["note"] = "of the user"
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    assert xgboost_reader.load(path).attributes() == {}


@pytest.mark.parametrize("nested", [b"[", b'{"learner":'])
def test_deep_nesting(nested: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(b'{"learner":' + nested * 200_000)
    with pytest.raises(ModelError, match="save the model again"):
        xgboost_reader.load(path)


@pytest.mark.parametrize("start", [b"[$d#", b"[$T#", b"[$Z#", b"{#", b"[#"])
@pytest.mark.parametrize("count", [2**31, 2**40, 2**62])
def test_huge_counts_ask_for_no_memory(start: bytes, count: int, tmp_path: Path) -> None:
    path = tmp_path / "model.ubj"
    path.write_bytes(b"{L" + (7).to_bytes(8, "big") + b"learner" + start + b"L" + count.to_bytes(8, "big") + bytes(99))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError, match="invalid UBJSON at byte"):
        xgboost_reader.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_counts_without_bytes_do_not_multiply(tmp_path: Path) -> None:
    """Arrays of constants take no bytes for their entries: many of them would ask for the square of the file's size."""
    array = b"[$T#L" + (90_000).to_bytes(8, "big")
    path = tmp_path / "model.ubj"
    path.write_bytes(b"{L" + (7).to_bytes(8, "big") + b"learner[" + array * 7_000 + bytes(90_000))
    with pytest.raises(ModelError, match="more entries than the file has bytes"):
        xgboost_reader.load(path)


# ---------------------------------------------------------------------------------------------- LightGBM

LGB_MODELS: dict[str, dict[str, Any]] = {
    **{
        objective: {"objective": objective}
        for objective in (
            "binary",
            "regression",
            "regression_l1",
            "huber",
            "fair",
            "quantile",
            "mape",
            "poisson",
            "gamma",
            "tweedie",
            "cross_entropy",
        )
    },
    "multiclass": {"objective": "multiclass", "num_class": 3},
    "multiclassova": {"objective": "multiclassova", "num_class": 3, "sigmoid": 0.7},
    "sqrt": {"objective": "regression", "reg_sqrt": True},
    "dart": {"objective": "binary", "boosting": "dart", "drop_rate": 0.5},
    "rf": {"objective": "binary", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
    "monotone": {"objective": "binary", "monotone_constraints": [1, 0, -1]},
    "no split": {"objective": "regression", "min_data_in_leaf": 1000},
    "no missing": {"objective": "binary", "use_missing": False},
    "categories": {"objective": "binary", "categorical_feature": [1], "min_data_per_group": 1, "cat_smooth": 1},
    "one category": {"objective": "binary", "categorical_feature": [1], "max_cat_to_onehot": 9, "cat_smooth": 1},
}


def lgb_model(params: dict[str, Any]) -> Any:
    x = table()
    n_classes = params.get("num_class", 2 if params["objective"] == "binary" else 0)
    settings = {"num_leaves": 7, "min_data_in_leaf": 5, "num_threads": 1, "verbose": -1, "seed": 0, **params}
    categorical = settings.pop("categorical_feature", "auto")
    return lgb.train(settings, lgb.Dataset(x, labels(x, n_classes), categorical_feature=categorical), 6)


@pytest.mark.parametrize("name", LGB_MODELS)
def test_lightgbm_boosters_predict_as_their_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    lgb_model(LGB_MODELS[name]).save_model(path)
    original, ours = lgb.Booster(model_file=path), load_model(path)
    for options in ({"raw_score": True}, {}, {"pred_leaf": True}):
        theirs = original.predict(table(), **options)
        np.testing.assert_array_equal(ours.predict(table(), **options), theirs)
    np.testing.assert_array_equal(ours.feature_importance("gain"), original.feature_importance("gain"))
    for line in ("leaf_value", "threshold", "cat_threshold", "objective", "feature_infos", "average_output"):
        assert [row for row in ours.model_to_string().splitlines() if row.startswith(line)] == [
            row for row in original.model_to_string().splitlines() if row.startswith(line)
        ]
    check_conformance(read_model(ours))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lightgbm_categories_survive(ends: str, tmp_path: Path) -> None:
    frame, y = category_table()
    native = lgb.LGBMClassifier(
        n_estimators=8, num_leaves=6, min_child_samples=5, min_data_per_group=1, cat_smooth=1, verbose=-1, n_jobs=1
    ).fit(frame, y)
    path = tmp_path / "model.txt"
    path.write_bytes(native.booster_.model_to_string().replace("\n", ends).encode())
    ours = load_model(path)
    np.testing.assert_array_equal(ours.predict(frame), native.predict_proba(frame)[:, 1])
    model = read_model(ours)
    assert model.categories == {1: ("z", "y", "x", "w", "v", "u", "e u"), 2: (30, 10, 20)}
    check_conformance(model)


def test_lightgbm_own_objectives_by_either_name(tmp_path: Path) -> None:
    """A model of the user's own objective has no line of it; the library takes the word ``custom`` for the same."""
    text = lgb_model({"objective": "regression"}).model_to_string()
    for line in ("", "objective=custom\n"):
        (tmp_path / "model.txt").write_text(text.replace("objective=regression\n", line))
        ours = load_model(tmp_path / "model.txt")
        original = lgb.Booster(model_file=tmp_path / "model.txt")
        np.testing.assert_array_equal(ours.predict(table()), original.predict(table()))
        check_conformance(read_model(ours))


LGB_DAMAGE: dict[str, tuple[str, str, str]] = {
    "wrong num_cat": ("num_cat=1", "num_cat=0", r"0 sets for 1 categorical splits, at Tree=0\.num_cat"),
    "more sets than splits": ("num_cat=1", "num_cat=2", r"2 sets for 1 categorical splits"),
    "empty num_cat": ("num_cat=1", "num_cat=", r"Tree=0\.num_cat"),
    "empty objective": ("objective=binary sigmoid:1", "objective=", "the objective ''"),
    "no sigmoid": ("objective=binary sigmoid:1", "objective=binary", "the objective 'binary'"),
    "other parameters": ("objective=binary sigmoid:1", "objective=binary sigmoid:1 sqrt", "the objective"),
    "empty leaf_weight": ("leaf_weight=", "leaf_weight=\nx=", r"0 entries where 3 belong, at Tree=0\.leaf_weight"),
    "words in leaf_weight": ("leaf_weight=", "leaf_weight=x", r"Tree=0\.leaf_weight\[0\]"),
    "empty feature_infos": ("feature_infos=", "feature_infos=\nx=", "0 feature_infos"),
    "words in feature_infos": ("feature_infos=[", "feature_infos=[x", r"feature_infos\[0\]"),
    "a list in feature_infos": ("feature_infos=[", "feature_infos=1:x [", "feature_infos"),
    "a line after the trees": ("end of trees\n", "end of trees\nTree=9\n", "'Tree=9' after the trees"),
    "a broken parameter": ("[data: ]", "[da", "after the trees has no meaning"),
    "a line at the end": ("pandas_categorical:null", "pandas_categorical:null\nzero", "'zero' after the trees"),
    "categories that are none": ("pandas_categorical:null", "pandas_categorical:[1]", "no list of lists"),
    "categories twice": ("pandas_categorical:null", "pandas_categorical:[[1,1]]", "holds one twice"),
    "deep categories": ("pandas_categorical:null", "pandas_categorical:" + "[" * 100_000, "are no JSON"),
    "an empty line in a tree": ("split_gain=", "\nsplit_gain=", "of the form 'key=value'"),
    "a key twice": ("is_linear=0", "is_linear=0\nis_linear=0", "'is_linear' comes twice in Tree=0"),
    "unknown line of a tree": ("is_linear=0", "is_linear=0\nslope=0", "does not know the line 'slope' in Tree=0"),
    "unknown line of the header": ("label_index=0", "label_index=0\nslope=0", "'slope' in the header"),
    "underscores": ("num_leaves=3", "num_leaves=0_3", r"'0_3' is no whole number, at Tree=0\.num_leaves"),
    "another number": ("Tree=0", "Tree=1", r"this is tree 0, at Tree=0\.Tree"),
    "huge count of leaves": ("num_leaves=3", "num_leaves=1099511627776", "entries where"),
    "huge count of features": ("max_feature_idx=2", "max_feature_idx=1099511627776", "train on fewer"),
    "feature out of range": ("split_feature=", "split_feature=9 ", r"Tree=0\.split_feature"),
    "unknown decision": ("decision_type=", "decision_type=64 \nx=", "1 entries where 2 belong"),
    "NaN for a leaf": ("leaf_value=", "leaf_value=nan ", "leaf_value"),
    "unknown version": ("version=v4", "version=v9", "'v9'"),
}


@pytest.fixture(scope="module")
def small_text() -> str:
    """One tree of a numeric and a categorical split."""
    x = table()[:, :]
    y = ((x[:, 1] % 2 == 0) ^ (x[:, 0] > 0.3)).astype(int) | (x[:, 1] == 3)
    settings = {"num_leaves": 3, "min_data_in_leaf": 5, "min_data_per_group": 1, "cat_smooth": 1, "num_threads": 1}
    settings |= {"objective": "binary", "verbose": -1, "max_cat_to_onehot": 1}
    text = lgb.train(settings, lgb.Dataset(x, y, categorical_feature=[1]), 1).model_to_string()
    return text if "pandas_categorical" in text else text + "\npandas_categorical:null\n"


def resized(text: str) -> str:
    """Announce the trees' sizes anew."""
    blocks = (text.split("\nend of trees")[0] + "\n").split("Tree=")[1:]
    sizes = " ".join(str(len(f"Tree={block}".encode())) for block in blocks)
    return "".join(
        f"tree_sizes={sizes}\n" if line.startswith("tree_sizes=") else line for line in text.splitlines(keepends=True)
    )


def test_the_small_text_is_read(small_text: str, tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text(resized(small_text))
    check_conformance(read_model(lightgbm_reader.load(tmp_path / "model.txt")))


@pytest.mark.parametrize("damage", LGB_DAMAGE)
def test_lightgbm_damage_is_named_by_its_place(damage: str, small_text: str, tmp_path: Path) -> None:
    old, new, message = LGB_DAMAGE[damage]
    assert small_text.count(old) >= 1
    path = tmp_path / "model.txt"
    path.write_text(resized(small_text.replace(old, new, 1)))
    with pytest.raises(ModelError, match=message) as caught:
        lightgbm_reader.load(path)
    assert str(caught.value).startswith(str(path))

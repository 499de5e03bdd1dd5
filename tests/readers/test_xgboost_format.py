"""XGBoost's model documents: damaged ones are refused, with the place, before the library sees them."""

from __future__ import annotations

import contextlib
import copy
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocf.errors import MissingDependencyError, ModelError, UnsupportedModelError
from ocf.readers import xgboost as reader
from ocf.readers.xgboost_format import parse, read_document

from .boosted import answers, table
from .xgboost_models import XGB_MODELS, train, xgb, xgb_model


@pytest.fixture(scope="module")
def saved() -> dict[str, bytes]:
    booster = train("multi:softprob", rounds=1, max_depth=2)
    return {form: bytes(booster.save_raw(form)) for form in ("json", "ubj")}


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_files(saved: dict[str, bytes], form: str, part: float, tmp_path: Path) -> None:
    path = tmp_path / f"model.{form}"
    path.write_bytes(saved[form][: int(len(saved[form]) * part)])
    with pytest.raises(ModelError, match=rf"model\.{form}: .*save the model again") as caught:
        reader.load(path)
    assert not isinstance(caught.value, UnsupportedModelError)


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    with pytest.raises(ModelError):
        read_document(parse(data))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_are_read_or_refused(saved: dict[str, bytes], data: st.DataObject) -> None:
    """A flipped byte may change a number, but never breaks the reader in another way."""
    damaged = bytearray(saved[data.draw(st.sampled_from(["json", "ubj"]))])
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ModelError):
        read_document(parse(bytes(damaged)))


def test_the_library_is_named_when_it_is_missing(
    saved: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.json").write_bytes(saved["json"])
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'ocf\[xgboost\]'"):
        reader.load(tmp_path / "model.json")


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
    "no targets": (put_in("learner.learner_model_param.num_target", "0"), "at least one target"),
    "no size of leaves": (lambda d: trees(d)[0]["tree_param"].pop("size_leaf_vector"), "size_leaf_vector"),
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
    booster = xgb.train({"max_depth": 2, "nthread": 1}, xgb.DMatrix(table(), answers(table(), 0), nthread=1), 3)
    return json.loads(bytes(booster.save_raw("json")))


@pytest.mark.parametrize("damage", XGB_DAMAGE)
def test_xgboost_damage_is_named_by_its_place(damage: str, regressor: dict[str, Any], tmp_path: Path) -> None:
    change, message = XGB_DAMAGE[damage]
    document = copy.deepcopy(regressor)
    change(document)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=message) as caught:
        reader.load(path)
    assert str(caught.value).startswith(str(path))


def test_parents_of_pruned_nodes(tmp_path: Path) -> None:
    document = json.loads(bytes(xgb_model(XGB_MODELS["pruned"]).save_raw("json")))
    number = next(t for t, tree in enumerate(trees(document)) if tree["tree_param"]["num_deleted"] != "0")
    node = trees(document)[number]["split_indices"].index(2**31 - 1)
    trees(document)[number]["parents"][node] = 99_999
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=rf"trees\[{number}\]\.parents\[{node}\]"):
        reader.load(path)


def test_dart_wraps_a_booster_of_trees(tmp_path: Path) -> None:
    document = json.loads(bytes(xgb_model(XGB_MODELS["dart"]).save_raw("json")))
    if "gbtree" not in document["learner"]["gradient_booster"]:
        pytest.skip("XGBoost 3.4 and later keep the weights beside the trees")
    path = tmp_path / "model.json"
    for name in ("dart", None):
        document["learner"]["gradient_booster"]["gbtree"]["name"] = name
        path.write_text(json.dumps(document))
        with pytest.raises(ModelError, match=r"at learner\.gradient_booster\.gbtree\.name"):
            reader.load(path)


def test_weights_of_dropped_trees_beside_the_trees(tmp_path: Path) -> None:
    """As XGBoost 3.4 writes them."""
    document = json.loads(bytes(xgb_model(XGB_MODELS["dart"]).save_raw("json")))
    booster = document["learner"]["gradient_booster"]
    if "gbtree" in booster:
        booster["gbtree"]["model"]["weight_drop"] = booster["weight_drop"]
        document["learner"]["gradient_booster"] = booster["gbtree"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    weights = read_document(parse((tmp_path / "old.json").read_bytes())).tree_weights
    assert len(set(weights.tolist())) > 1
    document["learner"]["gradient_booster"]["model"]["weight_drop"].pop()
    with pytest.raises(ModelError, match="weight_drop"):
        read_document(document)


def test_a_key_that_comes_twice_in_json(regressor: dict[str, Any], tmp_path: Path) -> None:
    """Python and XGBoost need not keep the same one."""
    path = tmp_path / "model.json"
    text = json.dumps(regressor)
    path.write_text(text.replace('"num_class": "0"', '"num_class": "0", "num_class": "1"'))
    with pytest.raises(ModelError, match="'num_class' comes twice"):
        reader.load(path)


def test_unimportant_attributes_are_dropped(regressor: dict[str, Any], tmp_path: Path) -> None:
    document = copy.deepcopy(regressor)
    document["learner"]["attributes"]["note"] = "of the user"
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    assert reader.load(path).attributes() == {}


@pytest.mark.parametrize("nested", [b"[", b'{"learner":'])
def test_deep_nesting(nested: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(b'{"learner":' + nested * 200_000)
    with pytest.raises(ModelError, match="save the model again"):
        reader.load(path)


@pytest.mark.parametrize("start", [b"[$d#", b"[$T#", b"[$Z#", b"{#", b"[#"])
@pytest.mark.parametrize("count", [2**31, 2**40, 2**62])
def test_huge_counts_ask_for_no_memory(start: bytes, count: int, tmp_path: Path) -> None:
    path = tmp_path / "model.ubj"
    path.write_bytes(b"{L" + (7).to_bytes(8, "big") + b"learner" + start + b"L" + count.to_bytes(8, "big") + bytes(99))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError, match="invalid UBJSON at byte"):
        reader.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_counts_without_bytes_do_not_multiply(tmp_path: Path) -> None:
    """Arrays of constants take no bytes for their entries: many of them would ask for the square of the file's size."""
    array = b"[$T#L" + (90_000).to_bytes(8, "big")
    path = tmp_path / "model.ubj"
    path.write_bytes(b"{L" + (7).to_bytes(8, "big") + b"learner[" + array * 7_000 + bytes(90_000))
    with pytest.raises(ModelError, match="more entries than the file has bytes"):
        reader.load(path)

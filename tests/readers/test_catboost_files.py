"""CatBoost's binary and JSON files: read as their library reads them, or refused with the place of the damage."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf import Explainer
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers import catboost_files, read_model
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model

catboost = pytest.importorskip("catboost")

SETTINGS = {"iterations": 3, "depth": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 120
    return pd.DataFrame(
        {"a": rng.normal(size=n).round(1), "job": rng.choice(list("pqrst"), n), "two": rng.choice(["m", "f"], n)}
    )


def answers(table: pd.DataFrame) -> dict[str, Any]:
    score = table["a"] + 2.0 * table["job"].isin(["p", "s"]) - (table["two"] == "m")
    return {
        "words": np.where(score > 0.5, "yes", "no"),
        "flags": (score > 0.5).to_numpy(),
        "three": np.digitize(score, [0, 1]) + 5,
        "values": score.to_numpy(),
    }


def fitted(table: pd.DataFrame, y: Any, **settings: Any) -> Any:
    kind = catboost.CatBoostRegressor if y.dtype.kind == "f" else catboost.CatBoostClassifier
    return kind(**(SETTINGS | settings)).fit(table, y, cat_features=["job", "two"])


@pytest.mark.parametrize("suffix", ["cbm", "json"])
@pytest.mark.parametrize("what", ["words", "flags", "three", "values"])
@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_files_are_read_as_the_library_reads_them(
    suffix: str, what: str, policy: str, table: pd.DataFrame, tmp_path: Path
) -> None:
    model = fitted(table, answers(table)[what], grow_policy=policy)
    path = tmp_path / "model.file"  # the content decides, not the name
    model.save_model(str(path), format=suffix)
    loaded = load_model(path)
    assert type(loaded) is type(model)
    again = type(model)().load_model(str(path), format=suffix)
    kind = "RawFormulaVal"
    np.testing.assert_array_equal(
        loaded.predict(table, prediction_type=kind), again.predict(table, prediction_type=kind)
    )
    read = read_model(loaded)
    check_conformance(read)
    assert read.classes == tuple(np.asarray(model.classes_).tolist())


def test_a_threshold_of_ones_own_comes_along(table: pd.DataFrame, tmp_path: Path) -> None:
    model = fitted(table, answers(table)["words"])
    model.set_probability_threshold(0.7)
    for suffix in ("cbm", "json"):
        model.save_model(str(tmp_path / "m"), format=suffix)
        assert read_model(load_model(tmp_path / "m")).ensemble.decision.threshold == pytest.approx(np.log(7 / 3))


def test_a_file_answers_in_the_words_of_the_table(table: pd.DataFrame, tmp_path: Path) -> None:
    model = fitted(table, answers(table)["words"])
    model.save_model(str(tmp_path / "m.cbm"))
    row = table[model.predict(table) == "no"].iloc[:1]
    found = Explainer(tmp_path / "m.cbm", data=table).explain(row, target="yes", norm="l0")[0]
    assert found.verified
    assert found.cost == Explainer(model, data=table).explain(row, target="yes", norm="l0")[0].cost


def test_a_tree_of_a_single_leaf(table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    fitted(table, answers(table)["values"]).save_model(str(path), format="json")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["oblivious_trees"].append({"leaf_values": [0.25], "splits": None})
    path.write_text(json.dumps(document), encoding="utf-8")
    read = read_model(load_model(path))
    check_conformance(read)
    assert read.ensemble.n_trees == SETTINGS["iterations"] + 1


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "there is no 'model_info'": lambda d: d.pop("model_info"),
    "loss 'Poisson' is not read": lambda d: d["model_info"]["params"]["loss_function"].update(type="Poisson"),
    "a label of type String is expected": lambda d: d["model_info"]["class_params"].update(class_names=["a", 1]),
    "two different labels": lambda d: d["model_info"]["class_params"].update(class_names=["a", "a"]),
    "not numbered in their order": lambda d: d["model_info"]["class_params"].update(class_to_label=[1, 0]),
    "no type of labels": lambda d: d["model_info"]["class_params"].update(class_label_type="Words"),
    "true or false is expected": lambda d: d["features_info"]["float_features"][0].update(has_nans="no"),
    "the borders do not ascend": lambda d: d["features_info"]["float_features"][0]["borders"].reverse(),
    "does not fit into float32": lambda d: d["features_info"]["float_features"][0].update(borders=[1e300]),
    "not in their order": lambda d: d["features_info"]["categorical_features"].reverse(),
    "a column is left out": lambda d: d["features_info"]["categorical_features"][1].update(flat_feature_index=7),
    "has text features": lambda d: d["features_info"].update(text_features=[{}]),
    "a hash comes twice": lambda d: next(iter(d["ctr_data"].values())).update(hash_map=["7", 1, 2, "7", 3, 4]),
    "is no hash": lambda d: next(iter(d["ctr_data"].values())).update(hash_map=["-7", 1, 2]),
    "more than 16 splits": lambda d: d["oblivious_trees"][0].update(splits=d["oblivious_trees"][0]["splits"] * 9),
    "nan is not finite": lambda d: d["oblivious_trees"][0]["leaf_values"].__setitem__(0, float("nan")),
    "does not know the part 'linear'": lambda d: d["oblivious_trees"][0].update(linear=[1]),
}


@pytest.mark.parametrize("said", CHANGES)
def test_damaged_files_are_refused_in_words(said: str, table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    fitted(table, answers(table)["words"]).save_model(str(path), format="json")
    document = json.loads(path.read_text(encoding="utf-8"))
    CHANGES[said](document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises((ModelError, UnsupportedModelError), match=f"{path}: .*{said}"):
        load_model(path)


def test_a_binary_file_that_crashes_the_library_is_refused(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.cbm"
    fitted(table, answers(table)["words"]).save_model(str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="CatBoost cannot open the file: it is damaged"):
        load_model(path)
    path.write_bytes(whole)
    monkeypatch.setattr(catboost_files, "convert", lambda *given: os.abort())
    with pytest.raises(ModelError, match="CatBoost cannot open the file: it is damaged"):
        load_model(path)


def test_binary_files_where_forks_are_not_safe(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.cbm"
    model = fitted(table, answers(table)["words"])
    model.save_model(str(path))
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(os, "fork", None)
    np.testing.assert_array_equal(load_model(path).predict(table), model.predict(table))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ModelError, match="CatBoost cannot open the file"):
        load_model(path)

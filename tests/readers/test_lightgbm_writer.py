"""LightGBM gets files that ocf wrote anew, which predict bit by bit what the user's files predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model

from .boosted import answers, category_table, table
from .lightgbm_models import VALUES, lgb

LGB_MODELS: dict[str, dict[str, Any]] = {
    **{objective: {"objective": objective} for objective in ("binary", *VALUES)},
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
    return lgb.train(settings, lgb.Dataset(x, answers(x, n_classes), categorical_feature=categorical), 6)


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

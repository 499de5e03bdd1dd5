"""XGBoost gets files that ocf wrote anew, which predict bit by bit what the user's files predict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model

from .boosted import answers, category_table, table
from .xgboost_models import XGB_MODELS, xgb, xgb_model


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
    y = answers(x, 2)
    native = getattr(xgb, kind)(n_estimators=60, early_stopping_rounds=2, max_depth=3, n_jobs=1)
    native.fit(x[:100], y[:100], eval_set=[(x[100:], y[100:])], verbose=False)
    native.save_model(tmp_path / "model.json")
    ours = load_model(tmp_path / "model.json")
    assert type(ours).__name__ == kind
    assert ours.best_iteration == native.best_iteration < 57
    np.testing.assert_array_equal(ours.predict(x, output_margin=True), native.predict(x, output_margin=True))

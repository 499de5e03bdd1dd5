"""Categories of histogram gradient boosting, by name and by code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.trees.ensemble import SplitKind


def mixed_table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 9, n),
            "colour": rng.choice(["red", "green", "blue", "grey"], n),
            "code": rng.choice([3, 7, 10, 41], n),
            "flag": rng.random(n) < 0.5,
            "rate": rng.choice([0.25, -1.5, 2.75], n),
        }
    )
    frame.loc[::9, "age"] = np.nan
    return frame


def hist(frame: Any, categorical: Any, n_classes: int = 2) -> Any:
    rng = np.random.default_rng(2)
    values = pd.DataFrame(frame)
    target = (
        (pd.factorize(values.iloc[:, 1])[0] % 2) + (pd.factorize(values.iloc[:, 2])[0] > 1) + rng.normal(0, 0.3, 200)
    )
    y = np.array(list("abc"))[np.clip(np.floor(target), 0, n_classes - 1).astype(int)]
    return HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=3, categorical_features=categorical).fit(
        frame, y
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_categories_of_a_table(n_classes: int) -> None:
    frame = mixed_table()
    model = read_model(hist(frame, ["colour", "code", "flag", "rate"], n_classes))
    assert model.categories == {1: ("blue", "green", "grey", "red"), 3: (False, True), 4: (-1.5, 0.25, 2.75)}
    assert (model.ensemble.kind == SplitKind.SUBSET).any()
    codes = frame.assign(
        colour=[model.categories[1].index(c) for c in frame["colour"]],
        rate=[model.categories[4].index(c) for c in frame["rate"]],
    ).to_numpy(np.float64)
    np.testing.assert_array_equal(model.scores(frame), model.scores(codes))
    np.testing.assert_array_equal(model.decide(frame), model.decide(codes))
    assert np.abs(model.scores(frame) - model.ensemble.scores(codes)).max() <= 2 * model.ensemble.rounding
    check_conformance(model)
    check_conformance(model, frame)


def test_category_dtype_and_missing_category() -> None:
    frame = mixed_table()
    frame.loc[::5, "colour"] = None
    frame["colour"] = frame["colour"].astype("category")
    frame["code"] = frame["code"].astype("category")
    model = read_model(hist(frame, "from_dtype"))
    assert model.categories == {1: ("blue", "green", "grey", "red")}
    codes = np.column_stack([frame["age"], frame["colour"].cat.codes, frame["code"], frame["flag"], frame["rate"]])
    codes = np.where(codes == -1, np.nan, codes.astype(np.float64))
    np.testing.assert_array_equal(model.scores(frame), model.scores(codes))
    assert np.abs(model.scores(frame) - model.ensemble.scores(codes)).max() <= 2 * model.ensemble.rounding
    check_conformance(model, frame)


def test_unknown_category_goes_where_the_missing_go() -> None:
    x = mixed_table()[["age", "code", "code"]].to_numpy()
    model = read_model(hist(x, [1, 2]))
    assert model.categories == {}
    x[:20, 1] = 5
    x[20:40, 2] = np.nan
    np.testing.assert_allclose(model.scores(x), model.ensemble.scores(x), rtol=0, atol=1e-12)
    check_conformance(model)


def test_single_category_against_missing() -> None:
    x = np.column_stack([np.where(np.arange(200) % 2, 4.0, np.nan), np.random.default_rng(0).normal(size=(200, 2))])
    y = np.isnan(x[:, 0]).astype(int)
    model = read_model(HistGradientBoostingClassifier(max_iter=3, categorical_features=[0]).fit(x, y))
    np.testing.assert_allclose(model.scores(x), model.ensemble.scores(x), rtol=0, atol=1e-12)
    check_conformance(model, x)

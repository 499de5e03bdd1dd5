"""Across files: categories that are numbers, of models that know no names or behind encoders, by brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from ocf import Explainer

N = 400


def drawn(levels: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of levels, numbers, and labels that the last level alone brings about, or a great number."""
    rng = np.random.default_rng(1)
    places, numbers = rng.integers(0, len(levels), N), rng.normal(size=N).round(2)
    return places, numbers, ((places == len(levels) - 1) | (numbers > 1)).astype(int)


@pytest.mark.parametrize("last", [5000.0, 2.5, 1024.0])
def test_a_level_of_an_array_that_the_data_lacks(last: float) -> None:
    """The model alone knows it: scikit-learn's codes are places among the sorted values."""
    levels = [0.0, 1.0, 2.0, last]
    places, numbers, y = drawn(levels)
    x = np.column_stack([np.array(levels)[places], numbers])
    model = HistGradientBoostingClassifier(max_iter=20, categorical_features=[0]).fit(x, y)
    data = x[places != 3]
    explainer = Explainer(model, data, {"x0": {"kind": "categorical", "levels": levels}})
    row = data[model.predict(data) == 0][:1]
    answer = explainer.explain(row, target=1, features_to_vary=["x0"])[0]
    turned = [level for level in levels if model.predict([[level, row[0, 1]]])[0] == 1]
    assert turned == [last]
    assert (answer.status, answer.cost, answer.verified) == ("optimal", 1.0, True)
    assert answer.counterfactual.iloc[0, 0] == last
    there = explainer.explain(np.array([[last, 0.0]]), target=0)[0]
    assert (there.predicted, there.status, there.cost) == (1, "optimal", 1.0)


def booster(library: str, table: pd.DataFrame, y: np.ndarray) -> tuple[Any, Callable[[pd.DataFrame], np.ndarray]]:
    """A booster, and the classes that it itself says of a table."""
    if library == "LightGBM":
        own = lgb.train({"objective": "binary", "verbose": -1, "min_data_per_group": 1}, lgb.Dataset(table, y), 10)
        return own, lambda t: own.predict(t) > 0.5
    matrix = xgb.DMatrix(table, y, enable_categorical=True)
    own = xgb.train({"max_depth": 4, "objective": "binary:logistic", "nthread": 1}, matrix, 10)
    return own, lambda t: own.predict(xgb.DMatrix(t, enable_categorical=True)) > 0.5


@pytest.mark.parametrize("stem", ["f", "Column_", "g"])
@pytest.mark.parametrize("library", ["XGBoost", "LightGBM"])
def test_categories_by_numbers_in_a_table_whose_names_look_made_up(library: str, stem: str) -> None:
    levels = [0, 1, 2, 5]
    places, numbers, y = drawn(levels)
    category = pd.Categorical.from_codes(places, categories=pd.Index(levels))
    table = pd.DataFrame({f"{stem}0": category, f"{stem}1": numbers})
    model, predict = booster(library, table, y)
    data = table[places != 3]
    explainer = Explainer(model, data)
    row = data[~predict(data)].iloc[[0]]
    changed = row.assign(**{f"{stem}0": pd.Categorical([5], categories=levels)})
    assert predict(changed)[0]
    answer = explainer.explain(row, target=1, features_to_vary=[f"{stem}0"])[0]
    assert (answer.status, answer.cost, answer.verified) == ("optimal", 1.0, True)
    assert answer.counterfactual.iloc[0, 0] == 5
    assert explainer.explain(changed, target=0)[0].predicted == 1


@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_missing_words_encoded_as_minus_one(seed: int) -> None:
    """The usual encoder in front of histogram boosting: its codes are the model's categories."""
    rng = np.random.default_rng(seed)
    words = rng.choice(["a", "b", "c", "d"], N).astype(object)
    words[rng.random(N) < 0.15] = np.nan
    numbers = rng.normal(size=N).round(1)
    pull = pd.Series(words).map({"a": -0.5, "b": 0.5, "c": 0.0, "d": 1.0}).fillna(-1.0).to_numpy()
    table = pd.DataFrame({"word": words, "number": numbers})
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-2, encoded_missing_value=-1)
    model = make_pipeline(
        make_column_transformer((encoder, ["word"]), remainder="passthrough"),
        HistGradientBoostingClassifier(max_iter=20, categorical_features=[0]),
    ).fit(table, (numbers + pull > 0).astype(int))
    data = table if seed else table.dropna()
    explainer, low, high = Explainer(model, data), data["number"].min(), data["number"].max()
    cuts = np.concatenate([tree.nodes["num_threshold"] for (tree,) in model[-1]._predictors])
    known = np.unique(np.concatenate([numbers, cuts, np.nextafter(cuts, np.inf)]))
    known = known[(low <= known) & (known <= high)]
    for k in np.flatnonzero(data["word"].notna())[:6]:
        row = data.iloc[[k]]
        own = int(model.predict(row)[0])
        answer = explainer.explain(row, target=1 - own)[0]
        grid = pd.DataFrame({"word": np.repeat(["a", "b", "c", "d"], len(known)), "number": np.tile(known, 4)})
        far = abs(grid["number"] - row["number"].iloc[0]) / (high - low)
        cost = ((grid["word"] != row["word"].iloc[0]) + far)[model.predict(grid) != own]
        assert answer.status == "optimal"
        assert answer.cost == pytest.approx(cost.min(), abs=1e-12)
        assert model.predict(answer.counterfactual)[0] != own

"""A model that knows no names of its columns is given what the user's own ``predict`` is: tables, or arrays."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ocf import Explainer, LinearExplainer
from ocf.errors import UnsupportedModelError
from ocf.features.frames import PANDAS, kind_of
from ocf.features.inference import infer_space
from ocf.models.user_model import as_user_model
from ocf.verify.files import verify_file

#: Labels of the columns, whether text or not.
WHOLE, TEXT = (0, 1), ("months", "rate")


def table(labels: tuple[Hashable, Hashable], dtype: str = "float32", highest: int = 20_000) -> pd.DataFrame:
    """Two columns that have no dtype in common but float64."""
    rng = np.random.default_rng(0)
    months = rng.integers(0, highest, 200).astype(dtype)
    return pd.DataFrame({labels[0]: months, labels[1]: rng.normal(size=200).round(2)})


def answers(X: pd.DataFrame) -> np.ndarray:
    first = X.iloc[:, 0].astype(float)
    return ((first > first.max() / 2) ^ (X.iloc[:, 1] > 1)).to_numpy(int)


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(10, max_depth=5, random_state=0)


def scaled(*, switched_off: bool = False) -> Pipeline:
    """A scaler of the first column, and a forest; before them a step that is switched off."""
    first = ColumnTransformer([("scale", StandardScaler(), [0])], remainder="passthrough")
    return Pipeline([("off", "passthrough")] * switched_off + [("scale", first), ("forest", forest())])


@pytest.mark.parametrize(
    ("labels", "switched_off"), [(WHOLE, False), (WHOLE, True), ((True, False), False), (TEXT, True)]
)
def test_the_users_own_model_gives_the_target(labels: Any, switched_off: bool) -> None:
    X = table(labels)
    model = scaled(switched_off=switched_off).fit(X, answers(X))
    found = Explainer(model, X).explain(X.iloc[:60], target=1)
    assert [e.status for e in found] == ["optimal"] * 60
    assert all(e.verified for e in found)
    assert [int(model.predict(e.counterfactual)[0]) for e in found] == [1] * 60


@pytest.mark.parametrize(("labels", "before"), [(WHOLE, []), (TEXT, [("off", "passthrough")])])
def test_a_function_that_wraps_round_is_refused(labels: Any, before: list[Any]) -> None:
    X = table(labels, "uint8", 120)
    model = Pipeline([*before, ("square", FunctionTransformer(np.square)), ("forest", forest())]).fit(X, answers(X))
    with pytest.raises(UnsupportedModelError, match="wrap round"):
        Explainer(model, X)


def test_a_file_is_verified_with_tables(tmp_path: Path) -> None:
    X = table(WHOLE)
    model = scaled().fit(X, answers(X))
    Explainer(model, X).explain(X.iloc[:60], target=1).to_json(tmp_path / "tables.json")
    Explainer(model, X.to_numpy()).explain(X.to_numpy()[:60], target=1).to_json(tmp_path / "arrays.json")
    assert all(v.ok for _, v in verify_file(tmp_path / "tables.json", as_user_model(model)))
    assert all(v.ok for _, v in verify_file(tmp_path / "arrays.json", as_user_model(model)))


def test_a_file_of_answers_to_arrays_is_no_proof_for_tables(tmp_path: Path) -> None:
    X = table(WHOLE, "uint8", 120)
    model = make_pipeline(FunctionTransformer(np.square), forest()).fit(X, answers(X))
    whole = X.astype({0: "float64"})
    file = tmp_path / "answers.json"
    Explainer(model, whole, {"0": {"kind": "integer"}}).explain(whole, target=1).to_json(file)
    file.write_text(file.read_text().replace('"0": "float64"', '"0": "uint8"'))
    right = model.predict(X) == model.predict(whole)
    assert not right.all()
    found = zip(verify_file(file, as_user_model(model)), right, strict=True)
    assert not any(checked.ok for (_, checked), same in found if not same)


def test_features_without_data_are_of_a_table() -> None:
    X = table(WHOLE)
    model = scaled().fit(X, answers(X))
    found = Explainer(model, features=infer_space(X)).explain(X.iloc[:60], target=1)
    assert [int(model.predict(e.counterfactual)[0]) for e in found] == [1] * 60


class Labelled(TransformerMixin, BaseEstimator):
    """A step of the user's own, which keeps no names, and looks at labels."""

    def __init__(self, label: Any) -> None:
        self.label = label

    def fit(self, X: Any, y: Any = None) -> Labelled:
        return self

    def transform(self, X: Any) -> Any:
        return X[[self.label]].to_numpy(np.float64)


@pytest.mark.parametrize("labels", [WHOLE, TEXT])
def test_steps_see_the_users_own_labels(labels: Any) -> None:
    X = table(labels)
    own = as_user_model(Pipeline([("own", Labelled(labels[1])), ("forest", forest())]).fit(X, answers(X)))
    named = X.rename(columns=str)
    assert (own.in_frames(kind_of(X), named).encode(named) == X[[labels[1]]].to_numpy()).all()


def test_arrays_stay_arrays() -> None:
    X = table(TEXT).to_numpy()
    seen: list[type] = []

    def note(values: Any) -> Any:
        seen.append(type(values))
        return values

    model = make_pipeline(FunctionTransformer(note), forest()).fit(X, answers(pd.DataFrame(X)))
    seen.clear()
    rows = pd.DataFrame(X, columns=list(TEXT))
    own = as_user_model(model)
    own.in_frames(PANDAS, rows).decide(rows)
    assert {*seen} == {np.ndarray}
    own.in_frames(kind_of(rows), rows).decide(rows)
    assert seen[-1] is pd.DataFrame


def test_a_model_that_refuses_tables_is_given_arrays() -> None:
    X = table(TEXT)
    model = make_pipeline(FunctionTransformer(lambda a: a[:, ::-1]), forest()).fit(X.to_numpy(), answers(X))
    assert (as_user_model(model).in_frames(kind_of(X), X).decide(X) == model.predict(X.to_numpy())).all()


def test_pipelines_behind_what_makes_arrays_see_arrays() -> None:
    X = table(WHOLE)
    y = answers(X) + (X[1] < -0.5)
    own = as_user_model(OneVsOneClassifier(scaled()).fit(X, y)).in_frames(kind_of(X), X)
    pipeline = own.native.estimators_[0]
    assert (own.encode(X)[:, :2] == pipeline[:-1].transform(X.to_numpy())).all()
    assert (own.encode(X)[:, :2] != pipeline[:-1].transform(X)).any()


@pytest.mark.parametrize("labels", [WHOLE, TEXT])
def test_missing_values_of_nullable_columns_are_passed_through(labels: Any) -> None:
    X = table(labels)
    X[labels[0]] = X[labels[0]].round().astype("Int64").mask(np.arange(200) % 9 == 0)
    model = Pipeline([("off", "passthrough"), ("forest", forest())]).fit(X, answers(X.fillna(0)))
    row = X[(model.predict(X) == 0) & X[labels[0]].isna()].iloc[[0]]
    found = Explainer(model, X).explain(row, target=1)[0]
    assert found.status == "optimal", found.message
    assert model.predict(found.counterfactual)[0] == 1


@pytest.mark.parametrize("labels", [WHOLE, ("f0", "f1"), ("x0", "x1"), ("Column_0", "Column_1")])
@pytest.mark.parametrize("name", ["catboost", "booster", "hist", "forest"])
def test_missing_values_of_nullable_columns_are_read_under_names_that_libraries_make_up(name: str, labels: Any) -> None:
    X = table(labels, "int64", 120)
    X[labels[0]] = X[labels[0]].astype("Int64").mask(np.arange(200) % 9 == 0)
    y = answers(X.fillna(0))
    model: Any = {
        "catboost": CatBoostClassifier(iterations=4, depth=3, verbose=0, allow_writing_files=False),
        "hist": HistGradientBoostingClassifier(max_iter=5),
        "forest": forest(),
    }.get(name)
    if model is None:
        model = lgb.train({"objective": "binary", "verbose": -1, "num_threads": 1}, lgb.Dataset(X, y), 5)
    else:
        model.fit(X, y)
    decided = model.predict(X) > 0.5
    found = Explainer(model, X).explain(X[~decided & X[labels[0]].isna()].iloc[[0]], target=1)[0]
    assert found.status == "optimal", found.message
    assert found.verified
    assert model.predict(found.counterfactual)[0] > 0.5


def test_lightgbm_behind_a_step_that_is_switched_off_knows_names_with_spaces() -> None:
    X = table(("open credits", "rate"))
    model = Pipeline([("off", "passthrough"), ("trees", LGBMClassifier(n_estimators=5, verbose=-1))])
    model.fit(X, answers(X))
    row = X[model.predict(X) == 0].iloc[[0]]
    found = Explainer(model, X).explain(row, target=1)[0]
    assert found.status == "optimal", found.message
    assert model.predict(found.counterfactual)[0] == 1


def test_linear_models_see_tables() -> None:
    X = table(WHOLE)
    first = ColumnTransformer([("scale", StandardScaler(), [0])], remainder="passthrough")
    model = make_pipeline(first, LogisticRegression()).fit(X, X[0] > 9000)
    explainer = LinearExplainer(model, X)
    assert (explainer.model.encode(X) == model[:-1].transform(X)).all()

"""On what an isolation forest was fitted: told by names and values, and by the forest's own score of each answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.errors import DataError
from ocf.models.detector import recounter
from ocf.models.plausibility import Plausibility
from ocf.models.user_model import as_user_model
from ocf.problem.targets import ClassTarget
from ocf.readers.isolation import read_isolation_forest

#: Names of two columns, the other way round.
RENAMED = {"age": "income", "income": "age"}


def loans() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"age": rng.integers(18, 80, 200), "income": rng.integers(1000, 9000, 200)})
    return table, (table.income > 5000) & (table.age > 30)


def behind(steps: Any) -> Any:
    table, granted = loans()
    return make_pipeline(steps, RandomForestClassifier(5, max_depth=4, random_state=0)).fit(table, granted)


def forest_of(table: Any) -> IsolationForest:
    return IsolationForest(n_estimators=15, max_samples=64, random_state=0).fit(table)


def scaled() -> Any:
    return StandardScaler().set_output(transform="pandas")


@pytest.mark.parametrize(
    "steps",
    [
        scaled,
        lambda: make_column_transformer(
            (StandardScaler(), ["income"]), remainder="passthrough", verbose_feature_names_out=False
        ).set_output(transform="pandas"),
    ],
)
@pytest.mark.parametrize("of_table", [True, False])
def test_where_steps_keep_the_names_the_thresholds_tell(steps: Callable[[], Any], of_table: bool) -> None:
    table, _ = loans()
    model = behind(steps())

    def own(rows: pd.DataFrame) -> pd.DataFrame:
        return rows if of_table else model[:-1].transform(rows)

    forest = forest_of(own(table[model.predict(table)]))
    explainer = Explainer(model, table)
    found = explainer.explain(
        table[~model.predict(table)].iloc[:5], True, plausibility={"forest": forest, "quantile": 0.4}
    )
    assert all(e.verified for e in found)
    for e in found:
        assert e.plausibility is not None
        assert e.plausibility["score"] == pytest.approx(forest.score_samples(own(e.counterfactual))[0])
        assert e.plausibility["depth"] >= e.plausibility["least"]


def test_some_columns_of_those_that_the_model_sees_are_not_taken_for_the_tables() -> None:
    table, _ = loans()
    model = behind(scaled())
    explainer, seen = Explainer(model, table), model[:-1].transform(table)
    with pytest.raises(DataError, match=r"fitted on 1 columns \(income\), which are not those of the data"):
        explainer.prepared.detector(Plausibility.parse(forest_of(seen[["income"]])), ClassTarget(1))
    forest = forest_of(table[["income"]])
    (e,) = explainer.explain(table[~model.predict(table)].iloc[[0]], True, plausibility=forest)
    assert e.plausibility is not None
    assert e.plausibility["score"] == pytest.approx(forest.score_samples(e.counterfactual[["income"]])[0])


def test_what_names_and_thresholds_leave_open_is_refused() -> None:
    table, _ = loans()
    swapping = ColumnTransformer(
        [("swap", "passthrough", ["income", "age"])], verbose_feature_names_out=lambda _, name: RENAMED[name]
    ).set_output(transform="pandas")
    model = behind(make_pipeline(swapping, FunctionTransformer(np.log1p).set_output(transform="pandas")))
    near = table.assign(age=table.age % 8, income=table.income % 8)
    with pytest.raises(DataError, match="not clear on which it was fitted"):
        Explainer(model, table).prepared.detector(Plausibility.parse(forest_of(near)), ClassTarget(1))


@pytest.mark.parametrize("dense", [True, False])
def test_columns_that_the_model_sees_under_no_names_go_by_those_of_its_steps(dense: bool) -> None:
    """As many columns as the model sees, in the order of ``get_dummies``: none is taken for another."""
    table, granted = loans()
    table["home"] = np.random.default_rng(4).choice(["flat", "house", "room"], len(table))
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=not dense), ["home"]), remainder="passthrough", verbose_feature_names_out=False
    )
    model = make_pipeline(encode, RandomForestClassifier(5, max_depth=4, random_state=0)).fit(table, granted)
    explainer, rows = Explainer(model, table), table[~model.predict(table)].iloc[:3]
    dummies = pd.get_dummies(table[granted]).astype(float)
    names = model[:-1].get_feature_names_out()
    assert sorted(dummies.columns) == sorted(names)
    with pytest.raises(DataError, match="nor, in their order, the 5 that the model sees"):
        explainer.prepared.detector(Plausibility.parse(forest_of(dummies)), ClassTarget(1))
    forest = forest_of(dummies[names])
    for e in explainer.explain(rows, True, plausibility={"forest": forest, "quantile": 0.3}):
        seen = pd.get_dummies(pd.concat([e.counterfactual, table])).astype(float).iloc[[0]]
        assert e.verified
        assert e.plausibility is not None
        assert e.plausibility["score"] == pytest.approx(forest.score_samples(seen[names])[0])


def test_names_that_nobody_knows_are_refused() -> None:
    table, _ = loans()
    model = behind(FunctionTransformer(np.log1p))  # which gives no names
    seen = pd.DataFrame(np.log1p(table.to_numpy()), columns=["first", "second"])
    with pytest.raises(DataError, match=r"\(first, second\), which are not those of the data"):
        Explainer(model, table).prepared.detector(Plausibility.parse(forest_of(seen)), ClassTarget(1))


def test_each_row_is_counted_anew_by_what_the_forest_was_fitted_on() -> None:
    """The first row is the same behind the step, and does not tell on what the forest was fitted; the others do."""
    table, granted = loans()
    move = FunctionTransformer(_moved, feature_names_out="one-to-one")
    model = make_pipeline(move, RandomForestClassifier(5, max_depth=4, random_state=0)).fit(table, granted)
    seen = move.transform(table)
    same = (seen == table).all(axis=1)
    forest = forest_of(seen[~same])
    count = recounter(forest, as_user_model(model))
    rows = pd.concat([table[same].iloc[:1], table[~same].iloc[:3]])
    read = read_isolation_forest(forest)
    for k in range(len(rows)):
        assert count(rows.iloc[[k]]) == pytest.approx(float(read.recount(move.transform(rows.iloc[[k]]))[0]))


def _moved(rows: pd.DataFrame) -> pd.DataFrame:
    """Small numbers as they are, large ones far away: of other columns by the same names."""
    return rows.where(rows.age < 30, rows + 1_000_000)


def doubled(table: pd.DataFrame) -> Any:
    return table * 2


def of_polars(table: Any) -> Any:
    return table.with_columns(table["income"] * 2)


def test_a_word_on_functions_holds_for_the_steps_of_the_forest_too() -> None:
    table, granted = loans()
    steps = make_column_transformer((FunctionTransformer(doubled), ["income"]), remainder="passthrough")
    model = make_pipeline(steps, RandomForestClassifier(5, max_depth=3, random_state=0)).fit(table, granted)
    forest = make_pipeline(steps, IsolationForest(n_estimators=5, random_state=0)).fit(table[granted])
    for name in ("functiontransformer", "columntransformer__functiontransformer"):
        explainer = Explainer(model, table, monotone={name: "increasing"})
        found = explainer.explain(table[~model.predict(table)].iloc[[0]], True, plausibility=forest)[0]
        assert found.verified
        assert found.status == "optimal"


@pytest.mark.parametrize("fitted", [True, False])
def test_a_forest_is_given_tables_of_the_kind_that_it_was_fitted_on(fitted: bool) -> None:
    polars = pytest.importorskip("polars")
    own, granted = loans()
    table = polars.from_pandas(own)
    steps = make_column_transformer((FunctionTransformer(of_polars), ["income"]), remainder="passthrough")
    model = make_pipeline(steps, RandomForestClassifier(5, max_depth=3, random_state=0)).fit(table, granted.to_numpy())
    forest = make_pipeline(steps, IsolationForest(n_estimators=5, random_state=0))
    if fitted:
        forest.fit(table.filter(polars.Series(granted)))
    explainer = Explainer(model, table, monotone={"functiontransformer": "increasing"})
    row = table.filter(~polars.Series(model.predict(table)))[:1]
    found = explainer.explain(row, True, plausibility=Plausibility(forest=forest))[0]
    assert found.verified
    assert found.status == "optimal"


@pytest.mark.parametrize(
    ("wish", "said"), [({}, "no row of the data has the target"), ({"depth": 2.0}, "data with such rows")]
)
def test_data_without_a_row_of_the_target_are_said_to_have_none(wish: dict[str, float], said: str) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 6, 60), "b": rng.integers(0, 6, 60)})
    forest = IsolationForest(n_estimators=5, random_state=0).fit(table)
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2)).fit(table, table.a + table.b > 5)
    others = table[~model.predict(table)]
    features = {name: {"bounds": [0, 5]} for name in table}
    found = Explainer(model, data=others, features=features).explain(
        others.head(1), True, plausibility={"forest": forest, **wish}
    )[0]
    assert found.status == "error"
    assert said in found.message

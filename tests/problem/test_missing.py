"""What a user says of missing values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, LinearExplainer
from ocf.errors import DataError, OcfError, ProblemError
from ocf.features.curve import Curve
from ocf.features.feature import Feature
from ocf.features.own_cost import amount_of
from ocf.features.space import FeatureSpace
from ocf.features.special import Special
from ocf.problem.costs import Cost
from ocf.problem.missing import Missing

SPACE = FeatureSpace((Feature("age", "numeric"), Feature("debt", "numeric", special=Special((-9.0,)))))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("yes", "missing is True or a mapping"),
        ({"cost_of_suplying": 1}, "did you mean 'cost_of_supplying'"),
        ({"cost_of_supplying": -1}, "at least 0, not -1"),
        ({"cost_of_supplying": math.nan}, "at least 0"),
        ({"cost_of_supplying": {"age": "2"}}, "at least 0, not '2'"),
        ({"cost_of_supplying": {"age": None}}, "at least 0, not None"),
        ({"cost_of_supplying": True}, "at least 0"),
        ({"may_become_missing": True}, "say what it costs"),
        ({"may_become_missing": "age", "cost_of_becoming_missing": 1}, "list of feature names"),
        ({"may_become_missing": 1, "cost_of_becoming_missing": 1}, "list of feature names"),
        ({"may_become_missing": 5.5, "cost_of_becoming_missing": 1}, "list of feature names"),
        ({"cost_of_becoming_missing": 1}, "needs may_become_missing"),
    ],
)
def test_what_means_nothing_is_refused(said: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Missing.parse(said)


def test_features_that_there_are_not_are_refused() -> None:
    for said in ({"cost_of_supplying": {"ages": 1}}, {"may_become_missing": ["ages"], "cost_of_becoming_missing": 1}):
        with pytest.raises(ProblemError, match="did you mean 'age'"):
            Missing(**said).changes(SPACE)
    with pytest.raises(ProblemError, match="has no number for 'age'"):
        Missing(may_become_missing=["age"], cost_of_becoming_missing={"debt": 1}).changes(SPACE)


def test_prices_of_some_features_leave_the_others() -> None:
    wish = Missing({"age": 2}, ["debt"], 3)
    assert wish.changes(SPACE) == {
        "age": Special((), supplying=2.0),
        "debt": Special((-9.0,), supplying=None, becoming=3.0),
    }
    assert Missing.parse(True) == Missing(cost_of_supplying=1.0)
    assert Missing.parse(None) is None


def test_what_has_no_price_is_not_supplied(tmp_path: Path) -> None:
    x, y = data(holes=True)
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, random_state=0).fit(x, y)
    rows = x[~model.predict(x) & x["debt"].isna() & x["age"].notna()].head(3)
    file = tmp_path / "p.toml"
    file.write_text('[missing]\nmay_become_missing = ["age"]\ncost_of_becoming_missing = 2.0\n', encoding="utf-8")
    wish = {"may_become_missing": ["age"], "cost_of_becoming_missing": 2.0}
    for ex, said in [(Explainer(model, x), {}), (Explainer(model, x), wish), (Explainer(model, x, file), None)]:
        for found in ex.explain(rows, True, missing=said):
            assert not found.found or found.counterfactual["debt"].isna().all()
            assert "debt is missing and stays missing; missing={'cost_of_supplying'" in str(found)
        draws = pd.DataFrame({"debt": [0.0, 1.0]})
        completed = ex.explain(rows, True, missing=said, imputations=draws)
        assert all(found.status in ("optimal", "already") for found in completed)


def test_l0_counts_one_and_the_other_norms_take_the_price() -> None:
    feature = Feature("x", "numeric", upper=9.0, scale=9.0, special=Special((-9.0,), True, 3.0, 5.0))
    for norm, leaves, enters in [
        ({"l0": 1}, 1, 1), ({"l1": 1}, 3, 5), ({"l2": 1}, 3, 5), ({"l0": 0.5, "l1": 2}, 6.5, 10.5)
    ]:  # fmt: skip
        cost = Cost.parse(norm)
        assert cost.of(feature, math.inf, [math.inf, 4.0, -9.0]).tolist() == [0.0, leaves, math.inf]
        assert cost.of(feature, -9.0, [math.inf, 4.0, -9.0]).tolist() == [math.inf, leaves, 0.0]
        assert cost.of(feature, 4.0, [math.inf, 4.0, -9.0]).tolist() == [enters, 0.0, enters]


def data(n: int = 80, *, holes: bool) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.integers(20, 60, n).astype(float), "debt": rng.integers(0, 9, n).astype(float)})
    y = (table["age"] - 5 * table["debt"] > 20).to_numpy()
    return (table.mask(rng.random(table.shape) < 0.2) if holes else table), y


def test_a_model_without_a_rule_for_gaps_is_asked_for_none() -> None:
    x, y = data(holes=False)
    model = make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=3, random_state=0)).fit(x, y)
    explainer = Explainer(model, x)
    row = x[~model.predict(x)].iloc[[0]]
    wish = {"may_become_missing": ["age"], "cost_of_becoming_missing": 1}
    with pytest.raises(DataError, match=r"'age'.*no rule for it"):
        explainer.explain(row, True, missing=wish)
    with pytest.raises(DataError, match=r"'debt' is or may become missing.*fill in a value"):
        explainer.explain(row.assign(debt=np.nan), True, missing=True)


def test_relations_between_values_are_refused_where_one_may_be_missing() -> None:
    x, y = data(holes=True)
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, random_state=0).fit(x, y)
    explainer = Explainer(model, x)
    row = x[~model.predict(x) & x["age"].isna() & x["debt"].notna()].iloc[[0]]
    linear = [{"kind": "linear", "terms": {"age": 1, "debt": 1}, "sense": "<=", "bound": 100}]
    said = explainer.explain(row, True, missing=True, constraints=linear)[0]
    assert said.status == "error"
    assert "needs a number of age, which is missing or a special value in this row: leave it out" in said.message
    known = x[~model.predict(x) & x["age"].notna() & x["debt"].notna()].iloc[[0]]
    becoming = {"may_become_missing": ["age"], "cost_of_becoming_missing": 0.1}
    said = explainer.explain(known, True, missing=becoming, constraints=linear)[0]
    assert "which may become missing or a special value: leave it as it is, or" in said.message
    assert "needs a number of age" in explainer.explain(row, True, "mahalanobis", missing=True)[0].message
    other = [{"kind": "linear", "terms": {"debt": 1}, "sense": "<=", "bound": 100}]
    assert explainer.explain(row, True, missing=True, constraints=other)[0].verified


@pytest.mark.parametrize("cost", [[0.1, 0.0], [0.25, -0.1], {"points": [[-2, 1], [0, 0], [5, -1]]}])
def test_a_cost_that_falls_beside_a_gap(cost: Any) -> None:
    """To become missing is no way along the curve, and no end of it."""
    x, y = data(holes=True)
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, random_state=0).fit(x, y)
    row = x[~model.predict(x) & x.notna().all(axis=1)].iloc[[0]]
    curve = Curve.parse(cost)
    wish = {"may_become_missing": True, "cost_of_becoming_missing": 0.2}
    answer = Explainer(model, x, {"debt": {"cost": cost}}).explain(row, True, missing=wish)[0]
    (age, debt), span = row.iloc[0], x["age"].max() - x["age"].min()
    ages, debts = [*range(int(x["age"].min()), int(x["age"].max()) + 1), np.nan], [*range(9), np.nan]
    grid = pd.DataFrame([(a, d) for a in ages for d in debts], columns=["age", "debt"])
    feature = Feature("debt", "integer", lower=0, upper=8, cost=curve)
    price = {d: 0.2 if np.isnan(d) else float(amount_of(curve, feature, debt, d)) for d in debts}
    total = np.where(grid["age"].isna(), 0.2, (grid["age"] - age).abs() / span)
    total = total + [0.2 if np.isnan(d) else price[d] for d in grid["debt"]]
    assert answer.status == "optimal"
    assert answer.cost == pytest.approx(total[model.predict(grid)].min(), abs=1e-12)


def test_the_explainer_says_it_once_for_all_questions() -> None:
    x, y = data(holes=True)
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, random_state=0).fit(x, y)
    row = x[~model.predict(x) & x["debt"].isna()].iloc[[0]]
    said = {"cost_of_supplying": {"debt": 0.001}}
    once = Explainer(model, x, missing=said).explain(row, True)[0]
    assert once == Explainer(model, x).explain(row, True, missing=said)[0] or once.cost == 0.001
    assert once.cost == 0.001
    assert once.changes["from"].tolist() == [None]
    assert "supply debt, which is missing" in str(once)
    assert Explainer(model, x, missing=said).explain(row, True, missing=False)[0].cost != 0.001
    with pytest.raises(ProblemError, match="did you mean 'debt'"):
        Explainer(model, x, missing={"cost_of_supplying": {"debts": 1}})


def test_models_over_values_refuse_special_ones() -> None:
    x, y = data(holes=False)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, y)
    row = x[~tree.predict(x)].iloc[[0]]
    with pytest.raises(OcfError, match=r"'oblique'.* knows no special values"):
        Explainer(tree, x, special_values=[0]).explain(row, True, formulation="oblique")
    linear = LogisticRegression().fit(x, y)
    with pytest.raises(OcfError, match="special"):
        LinearExplainer(linear, x, {"debt": {"special_values": [0]}})


@pytest.mark.parametrize("seed", range(4))
def test_a_gap_among_float32_is_asked_in_float32(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(0, 1, 100), "b": rng.normal(0, 3, 100)}).astype(np.float32)
    table.loc[rng.random(100) < 0.3, "a"] = np.nan
    labels = (table.a.isna() & (table.b > 0.1)).astype(int)
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)).fit(table, labels)
    row = table[(model.predict(table) == 0) & (table.b < 0) & table.a.notna()].head(1)
    asked = {"target": 1, "missing": {"may_become_missing": ["a"], "cost_of_becoming_missing": 0.001}}
    found = Explainer(model, table).explain(row, **asked)[0]
    assert found.status == "optimal", found.message
    assert found.verified
    point = found.counterfactual
    assert point.dtypes.tolist() == [np.float32, np.float32]
    below = point.assign(b=np.nextafter(point.b.to_numpy(), np.float32(-9)))
    assert (model.predict(point)[0], model.predict(below)[0]) == (1, 0)


def test_a_gap_that_changes_the_dtype_of_all_is_refused_with_the_remedy() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"b": rng.normal(0, 3, 300), "n": rng.integers(-9, 9, 300)})
    table = table.astype({"b": np.float32, "n": np.int8})
    labels = (table.b + table.n > 0).astype(int)
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=6, random_state=0)).fit(table, labels)
    row = table[model.predict(table) == 0].head(1)
    asked = {"target": 1, "missing": {"may_become_missing": ["n"], "cost_of_becoming_missing": 0.001}}
    with pytest.raises(OcfError, match="or give n as floats"):
        Explainer(model, table).explain(row, **asked)
    floats = table.astype(np.float32)
    assert Explainer(model, floats).explain(floats.loc[row.index], **asked)[0].status == "optimal"


#: Ends of a number, and a cost of its own.
WITHOUT_END: list[tuple[tuple[float, float], dict[str, object]]] = [
    ((0, np.inf), {}),
    ((-np.inf, np.inf), {"cost": 2.0}),
    ((-np.inf, 9), {"step": 0.5, "cost": {"points": [[-9, 18], [0, 0], [9, 18]]}}),
    ((0, np.inf), {"step": 0.5, "cost": 2.0}),
]


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float16", "float32", "float64"])
@pytest.mark.parametrize(("bounds", "own"), WITHOUT_END)
def test_numbers_without_an_end_may_become_missing(
    dtype: str, bounds: tuple[float, float], own: dict[str, object]
) -> None:
    """Dearer than any change, and cheaper: the same as within bounds that nothing reaches."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 9, 80), "b": rng.integers(0, 9, 80)}).astype({"a": dtype})
    answers = (3 * table.a.astype(float) + table.b > 10).astype(int)
    model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3).fit(table, answers)
    row = table[model.predict(table) == 0].iloc[[0]]
    settings = own if "float" in dtype else {key: value for key, value in own.items() if key != "step"}
    for price in (0.01, 99.0):
        wish = {"may_become_missing": ["a"], "cost_of_becoming_missing": price}
        found, near = (
            Explainer(model, table, {"a": {"bounds": ends, "scale": 1.0, **settings}}).explain(row, 1, missing=wish)[0]
            for ends in (bounds, (-50, 50) if bounds[0] < 0 else (0, 50))
        )
        assert (found.status, found.verified) == ("optimal", True)
        assert found.cost == pytest.approx(near.cost)

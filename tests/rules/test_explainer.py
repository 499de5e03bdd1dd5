"""Rules as a user asks for them, over a bank whose rule is known, and as one misuses them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ocf import CounterfactualRules
from ocf.errors import DataError, ModelError, ProblemError

from .bank import FEATURES, LEVEL, Bank, explain


@pytest.mark.parametrize("method", ["search", "greedy"])
def test_a_local_rule_says_what_the_bank_wants(rules: CounterfactualRules, poor: pd.DataFrame, method: str) -> None:
    found = rules.local(poor, method=method, time_limit=None)
    assert (found.predicted, found.target, found.status) == ("refused", "granted", "found")
    assert found.features == ("income",)
    assert found.divergent
    assert found.probability >= LEVEL
    condition = found[0].conditions[0]
    assert condition.lower is not None
    assert 45 < condition.lower < 60
    assert condition.upper is None
    assert str(found[0]).startswith("income > 5")
    assert found[0].precision >= 0.9
    assert found[0].status == ("optimal" if method == "search" else "feasible")


def test_the_mathematical_models_agree_with_the_searches(rules: CounterfactualRules, poor: pd.DataFrame) -> None:
    searched, solved = (
        rules.local(poor, time_limit=None),
        rules.local(poor, sets="milp", method="milp", time_limit=None),
    )
    assert solved.probability == pytest.approx(searched.probability)
    assert solved[0].coverage == pytest.approx(searched[0].coverage)
    assert solved[0].status == "optimal"


def test_categories_are_named_and_fixed_features_never_change(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    rich = table[(table.income > 80) & (table.job == "none")].iloc[[0]]
    found = rules.local(rich, time_limit=None)
    assert str(found[0]).startswith("job ≠ none") or "job in {clerk, smith}" in str(found[0])
    fixed = rules.space.index("sex")
    assert fixed not in rules.candidates
    everything_else_fixed = {c: {"actionability": "fixed"} for c in table.columns if c != "age"}
    only_age = explain(Bank(), table, features=everything_else_fixed)
    assert only_age.local(rich, time_limit=None).features == ("age",)
    with pytest.raises(ProblemError, match="no feature may change"):
        CounterfactualRules(Bank(), table, features={c: {"actionability": "fixed"} for c in table.columns})


def test_features_that_are_not_to_vary_stay_out_of_rules(table: pd.DataFrame, poor: pd.DataFrame) -> None:
    unemployed = poor.assign(job="none")
    free = explain(Bank(), table, features=FEATURES).local(unemployed, "granted", time_limit=None)
    held = explain(Bank(), table, features=FEATURES, features_to_vary=["income", "age"])
    found = held.local(unemployed, "granted", time_limit=None)
    assert "job" in free.features
    assert set(found.features) <= {"income", "age"}
    assert all(set(rule.features) <= {"income", "age"} for rule in found)
    with pytest.raises(ProblemError, match="features_to_vary"):
        explain(Bank(), table, features_to_vary="income")


def test_monotone_features_only_rise(table: pd.DataFrame) -> None:
    class Club:
        def predict(self, table: pd.DataFrame) -> np.ndarray:
            return ((table.age < 30) | (table.age > 60)).to_numpy().astype(int)

    club = explain(Club(), table, features=FEATURES)
    found = club.local(table[table.age == 45].iloc[[0]])
    (condition,) = found[0].conditions
    assert (condition.feature, condition.upper) == ("age", None)
    assert condition.lower is not None
    assert condition.lower > 55
    regional = club.regional({"age": (40, 50)}, 1)
    assert regional[0].conditions[0].lower is not None
    assert regional[0].conditions[0].lower > 50


def test_points_in_a_rule(rules: CounterfactualRules, poor: pd.DataFrame) -> None:
    rule = rules.local(poor, time_limit=None)[0]
    depths = {}
    for method in ("annealing", "milp", "cheapest"):
        found = rules.sample(rule, poor, "granted", method=method)
        assert found.reached
        assert found.decided == "granted"
        assert found.changed == ("income",)
        assert rule.holds(rules.space.from_frame(found.point)).all()
        assert list(found.point.columns) == list(poor.columns)
        assert found.point.index.equals(poor.index)
        depths[method] = found.depth
    assert depths["milp"] >= max(depths.values()) - 1e-9
    with pytest.raises(ProblemError, match="did you mean 'cheapest'"):
        rules.sample(rule, poor, method="cheap")


class Patchy:
    """Grants to earners above 50, and above 80 to nearly none of them: the widest rule has a bad corner."""

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        return (
            ((table.income > 50) & ((table.income < 80) | ((10 * table.income).round() % 5 == 0)))
            .to_numpy()
            .astype(int)
        )


@pytest.mark.parametrize("method", ["search", "greedy", "milp"])
def test_the_most_probable_rule_leaves_the_bad_corner_out(table: pd.DataFrame, poor: pd.DataFrame, method: str) -> None:
    patchy = explain(Patchy(), table[["age", "income"]], rule_level=0.6, level=0.3, max_depth=3, n_estimators=5)
    row, asked = poor[["age", "income"]], {"method": method, "time_limit": None}
    large, probable = (patchy.local(row, 1, prefer=prefer, **asked) for prefer in ("large", "probable"))
    assert 0.6 <= large[0].precision < 0.8 < probable[0].precision
    assert probable[0].coverage < large[0].coverage
    regional = patchy.regional({"income": (None, 40)}, 1, prefer="probable", **asked)
    assert regional[0].precision > 0.8


def test_a_point_may_be_looked_for_in_the_most_probable_part(table: pd.DataFrame, poor: pd.DataFrame) -> None:
    patchy = explain(Patchy(), table[["age", "income"]], rule_level=0.6, level=0.3, max_depth=3, n_estimators=5)
    large, row = patchy.local(poor[["age", "income"]], 1, time_limit=None), poor[["age"]].assign(income=90.1)
    anywhere, safe = (patchy.sample(large, row, 1, method="cheapest", prefer=p) for p in ("large", "probable"))
    assert (anywhere.changed, anywhere.reached) == ((), False)
    assert float(safe.point["income"].iloc[0]) < 81
    assert large[0].holds(patchy.space.from_frame(safe.point)).all()
    with pytest.raises(ProblemError, match="the set has no rule"):
        patchy.sample(patchy.local(row.assign(income=60.1), 1), row)


def test_most_probable_rules_come_in_turn_and_do_not_overlap(table: pd.DataFrame, poor: pd.DataFrame) -> None:
    patchy = explain(Patchy(), table[["age", "income"]], level=0.3, max_depth=3, n_estimators=5)
    for method in ("search", "greedy"):
        found = patchy.local(poor[["age", "income"]], 1, prefer="probable", rule_level=0.2, n_rules=3, method=method)
        assert len(found) > 1
        assert not (found[0].holds(patchy.rows) & found[1].holds(patchy.rows)).any()
        assert found[0].precision >= found[1].precision


def test_a_call_says_its_own_levels(rules: CounterfactualRules, poor: pd.DataFrame) -> None:
    assert rules.local(poor).divergent
    assert not rules.local(poor, level=0.99).divergent
    assert rules.local(poor, rule_level=0.5)[0].coverage > rules.local(poor)[0].coverage
    assert not rules.regional({"income": (None, 40)}, "granted", level=0.99).divergent
    with pytest.raises(ProblemError, match="rule_level is a probability"):
        rules.local(poor, rule_level=2)
    with pytest.raises(ProblemError, match="did you mean 'probable'"):
        rules.local(poor, prefer="probably")


def test_all_minimal_sets_are_named_on_request(table: pd.DataFrame) -> None:
    class Either:
        def predict(self, table: pd.DataFrame) -> np.ndarray:
            return ((table.income > 40) | (table.age > 45)).to_numpy().astype(int)

    either = explain(Either(), table[["age", "income", "sex"]], level=0.5)
    row = table[(table.income < 20) & (table.age < 30)][["age", "income", "sex"]].iloc[[0]]
    asked = {"method": "greedy", "every_set": True}
    found = [either.local(row, 1, sets=sets, **asked) for sets in ("exhaustive", "milp", "paths")]
    for own in found:
        (other,) = own.others
        assert {own.features, other.features} == {("age",), ("income",)}
        assert own.probability >= other.probability >= 0.5
        assert f"or by {other.features[0]} ({other.probability:.2f})" in str(own)
        assert own.to_dict()["others"] == [{"features": list(other.features), "probability": other.probability}]
    assert either.local(row, 1, method="greedy").others == ()
    assert either.local(row, 1, level=0.999, **asked).others == ()


def test_regions_have_rules(rules: CounterfactualRules, table: pd.DataFrame, poor: pd.DataFrame) -> None:
    regions = rules.regions("granted", most=3)
    assert regions
    assert all(g.share >= 0.9 for g in regions)
    around = rules.region_of(poor, "granted")
    assert rules.forest.inside(around.region)[table.index.get_loc(poor.index[0])]
    found = rules.regional(around, "granted", time_limit=None)
    assert found.kind == "regional"
    assert str(found).startswith("where ")
    by_hand = rules.regional({"income": (None, 40), "job": ["clerk", "smith"]}, "granted", time_limit=None)
    assert by_hand.features == ("income",)
    assert str(by_hand[0]).startswith("income > 5")


def test_several_rules_do_not_overlap(table: pd.DataFrame) -> None:
    class Two:
        def predict(self, table: pd.DataFrame) -> np.ndarray:
            return (((table.income > 20) & (table.income < 40)) | (table.income > 70)).to_numpy().astype(int)

    two = explain(Two(), table)
    found = two.local(table[table.income < 10].iloc[[0]], n_rules=3, time_limit=None)
    assert len(found) >= 2
    coded = two.rows
    assert not (found[0].holds(coded) & found[1].holds(coded)).any()
    assert found[0].coverage >= found[1].coverage


def test_observed_answers_need_no_model(table: pd.DataFrame, poor: pd.DataFrame) -> None:
    answers = Bank().predict(table)
    found = explain(None, table, answers, features=FEATURES).local(poor, "granted")
    assert found.predicted is None
    assert found.features == ("income",)
    with pytest.raises(ProblemError, match="name the target: one of granted, refused"):
        CounterfactualRules(None, table, answers).local(poor)


def test_regression_takes_an_interval(table: pd.DataFrame, poor: pd.DataFrame) -> None:
    class Price:
        def predict(self, table: pd.DataFrame) -> np.ndarray:
            return table.income.to_numpy() * 2.5

    price = explain(Price(), table, level=0.3, max_depth=4)
    assert price.regression
    found = price.local(poor, (150, 250), method="greedy")
    assert found.features == ("income",)
    assert found.target == "[150, 250]"
    assert rules_reach(price, found, poor, (150, 250))
    for wrong in (None, 3, "high", (3, 1)):
        with pytest.raises(ProblemError, match="target"):
            price.local(poor, wrong)


def rules_reach(rules: CounterfactualRules, found, row: pd.DataFrame, target) -> bool:
    return bool(rules.sample(found[0], row, target).reached)


def test_any_model_with_predict_may_be_explained(table: pd.DataFrame, poor: pd.DataFrame) -> None:
    encode = make_column_transformer((OneHotEncoder(), ["sex", "job", "grade"]), (StandardScaler(), ["age", "income"]))
    network = make_pipeline(encode, MLPClassifier((8,), solver="lbfgs", random_state=0))
    network.fit(table, Bank().predict(table))
    found = explain(network, table, features=FEATURES).local(poor)
    assert found.features == ("income",)


def test_arrays_are_explained_as_arrays() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3))
    forest = RandomForestClassifier(20, random_state=0).fit(rows, (rows[:, 1] > 0).astype(int))
    rules = explain(forest, rows)
    row = rows[rows[:, 1] < -1][0]
    found = rules.local(row, time_limit=None)
    assert found.features == ("x1",)
    assert rules.sample(found[0], row, 1).reached


def test_a_row_with_the_target_needs_no_rule(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    found = rules.local(table[(table.income > 60) & (table.job == "smith")].iloc[0], "granted", time_limit=None)
    assert (found.status, len(found)) == ("already", 0)
    assert "nothing has to change" in str(found)


def test_a_class_that_is_a_number_is_named_by_its_text(table: pd.DataFrame) -> None:
    found = CounterfactualRules(None, table, np.where(table.income > 50, 1, -1))
    assert found.local(table[table.income > 50].iloc[[0]], "-1.0", time_limit=None).target == "-1"


def test_bad_questions_are_refused_with_a_remedy(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    with pytest.raises(ProblemError, match="there is no class 'grantet'"):
        rules.local(table.iloc[[0]], "grantet")
    with pytest.raises(DataError, match="use local_many"):
        rules.local(table.iloc[:2])
    with pytest.raises(DataError, match="'income' of row 0 is missing"):
        rules.local(table.iloc[[0]].assign(income=np.nan))
    with pytest.raises(DataError, match=r"'income' of row 1 is missing.*leave such rows out"):
        rules.local_many(table.iloc[:2].assign(income=[1.0, np.nan]))
    for ask in (rules.local_many, rules.regional_many, rules.regional_set):
        with pytest.raises(DataError, match="there are no rows"):
            ask(table.iloc[:0], "granted")
    with pytest.raises(ProblemError, match="give them as levels"):
        rules.trade_off(table.iloc[[0]], rule_level=0.5)
    with pytest.raises(ProblemError, match="no such feature: 'incomes'"):
        rules.regional({"incomes": (1, 2)}, "granted")
    with pytest.raises(ProblemError, match="needs \\(lowest, highest\\)"):
        rules.regional({"income": 3}, "granted")
    with pytest.raises(ProblemError, match="has no level 'baker'"):
        rules.regional({"job": ["baker"]}, "granted")
    with pytest.raises(ProblemError, match="holds no value"):
        rules.regional({"income": (9, 3)}, "granted")
    with pytest.raises(ProblemError, match="method 'magic'"):
        rules.local(table[table.income < 20].iloc[[0]], method="magic")
    with pytest.raises(ProblemError, match="n_rules is a number of rules, at least 1"):
        rules.local(table[table.income < 20].iloc[[0]], n_rules=0)


def of_library(library: str, table: pd.DataFrame) -> Any:
    return pl.from_pandas(table) if library == "polars" else pa.Table.from_pandas(table, preserve_index=False)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_all_kinds_and_dicts_are_taken(table: pd.DataFrame, library: str) -> None:
    """The model was fitted on the library's own tables, of which polars' are no arrays to scikit-learn."""
    columns = make_column_transformer((OneHotEncoder(), ["sex", "job", "grade"]), remainder="passthrough")
    granted = ((table.income > 50) & (table.job != "none")).to_numpy()
    own = of_library(library, table)
    fitted_on = own if library == "polars" else table
    model = make_pipeline(columns, RandomForestClassifier(10, random_state=0)).fit(fitted_on, granted)
    settings = {"features": FEATURES, "n_estimators": 5}
    theirs, ours = explain(model, own, **settings), explain(model, table, **settings)
    k = int(np.flatnonzero((table.income < 30) & (table.job == "clerk"))[0])
    one = table.iloc[k].to_dict()
    expected = ours.local(table.iloc[[k]], True, time_limit=None)
    assert expected.status == "found"
    for row in (own[k : k + 1] if library == "polars" else own.slice(k, 1), one, table.iloc[k]):
        assert str(theirs.local(row, True, time_limit=None)[0]) == str(expected[0])
    assert str(ours.local(one, True, time_limit=None)[0]) == str(expected[0])
    assert [str(r) for r in theirs.local_many([one, one], True, time_limit=None)[1]] == [str(r) for r in expected]
    assert isinstance(theirs.sample(expected, one, True).point, type(own))
    assert isinstance(theirs.trade_off(one, True), type(own))
    assert isinstance(ours.sample(expected, one, True).point, pd.DataFrame)
    assert theirs.lacks(own, True).tolist() == ours.lacks(table, True).tolist()
    cover = theirs.regional_set(own, True, most=2, time_limit=None)
    assert cover.assign(own).tolist() == cover.assign(table).tolist()


class Coded:
    """Asks for the codes of ordered categories, which are those of the data's dtype, and compares them."""

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        return ((table.c.cat.codes == 2) & (table.c > "mid") | (table.x > 0.8)).to_numpy().astype(int)


@pytest.mark.parametrize("levels", [("low", "mid", "high"), ("low", "mid", "high", "top")])
def test_models_are_asked_about_the_categories_of_the_data(levels: tuple[str, ...]) -> None:
    """By the alphabet "high" is the first; a level that no row has stands behind those of the data."""
    rng = np.random.default_rng(0)
    words = pd.Categorical(rng.choice(["low", "mid", "high"], 200), ["low", "mid", "high"], ordered=True)
    table = pd.DataFrame({"c": words, "x": rng.random(200)})
    found = explain(Coded(), table, features={"c": {"levels": levels}})
    assert found.forest.answers.tolist() == Coded().predict(table).tolist()
    row = table[(table.c == "low") & (table.x < 0.5)].iloc[[0]]
    rules = found.local(row, 1, time_limit=None)
    assert str(rules[0]).startswith("c = high")
    point = found.sample(rules, row, 1, method="cheapest")
    assert point.decided == Coded().predict(point.point)[0] == 1
    for made in (point.point, found.trade_off(row, 1, levels=(0.9,))):
        assert (list(made.c.cat.categories), made.c.cat.ordered) == (list(levels), True)


def test_a_model_that_tells_the_data_from_what_ocf_makes_of_them_is_refused() -> None:
    class Picky:
        def predict(self, table: pd.DataFrame) -> np.ndarray:
            return table.n.map(lambda v: isinstance(v, int)).to_numpy()

    mixed = pd.DataFrame({"n": pd.Series([1, 2.5, 3, 4.5], dtype=object), "x": range(4)})
    with pytest.raises(ModelError, match=r"answers 2 of 4 rows of the data otherwise .*the first is row 0\): fit it"):
        CounterfactualRules(Picky(), mixed)


def test_what_a_model_raises_on_a_table_is_told() -> None:
    class Broken:
        def predict(self, table: pd.DataFrame) -> np.ndarray:
            raise KeyError("salary")

    with pytest.raises(ModelError, match=r"Broken fails on this table .*salary"):
        CounterfactualRules(Broken(), pd.DataFrame({"a": [1.0, 2.0]}))


def test_regions_of_dates_and_of_no_value() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, 200), unit="D"), "n": range(200)}
    )
    found = CounterfactualRules(None, table, table.since > "2021-06-01", n_estimators=5)
    asked = [("2020-01-01", "2020-06-01"), (None, pd.Timestamp("2020-06-01")), (dt.date(2020, 1, 1), "2020-06-01")]
    said = {str(found.regional({"since": ends}, True)) for ends in asked}
    assert len({text.partition(";")[0] for text in said}) == 1
    with pytest.raises(ProblemError, match="the range of 'since': it should hold dates"):
        found.regional({"since": ("soon", None)}, True)
    with pytest.raises(ProblemError, match=r"'n' in \(2.2, 2.7\) holds no value"):
        found.regional({"n": (2.2, 2.7)}, True)


def test_bad_models_and_data_are_refused(table: pd.DataFrame) -> None:
    with pytest.raises(ModelError, match="no method predict"):
        CounterfactualRules(object(), table)
    with pytest.raises(ProblemError, match="give a model with predict"):
        CounterfactualRules(None, table)
    with pytest.raises(DataError, match="'income' has missing values"):
        CounterfactualRules(None, table.assign(income=table.income.where(table.income > 5)), Bank().predict(table))
    with pytest.raises(DataError, match="all answers are 'refused'"):
        CounterfactualRules(None, table, ["refused"] * len(table))
    with pytest.raises(DataError, match="without missing ones"):
        CounterfactualRules(None, table, [np.nan] * len(table))
    for level in (90, "0.9", None, True, np.nan):
        with pytest.raises(ProblemError, match="level is a probability"):
            CounterfactualRules(Bank(), table, level=level)  # type: ignore[arg-type]
    for candidates in (40, 2.5, 2.0, "5", True, None):
        with pytest.raises(ProblemError, match="candidates is a whole number between 1 and 25"):
            CounterfactualRules(Bank(), table, candidates=candidates)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="answers must be finite numbers"):
        CounterfactualRules(None, table, [np.inf, *np.arange(len(table) - 1.0)], regression=True)


def test_indicator_columns_are_one_category_unless_they_are_to_be_read_apart(table: pd.DataFrame) -> None:
    dummies = pd.get_dummies(table[["income", "job"]])
    granted = (table["income"] > 50) | (table["job"] == "smith")
    found = CounterfactualRules(None, dummies, granted, n_estimators=5)
    assert found.space.names == ("income", "job")
    rich_clerk = dummies[(table["income"] > 80) & (table["job"] == "clerk")].iloc[[0]]
    assert found.local(rich_clerk, target=False, time_limit=None).original["job"] == "clerk"
    apart = CounterfactualRules(None, dummies, granted, n_estimators=5, groups=False)
    assert apart.space.names == tuple(dummies.columns)


def test_ctrl_c_keeps_the_rules_of_finished_rows(
    rules: CounterfactualRules, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, rows = rules.local, table[table.income < 30].iloc[:3]

    def interrupted(row: pd.DataFrame, *args: object, **settings: object) -> object:
        if row.index[0] == rows.index[1]:
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
        return local(row, *args, **settings)

    monkeypatch.setattr(rules, "local", interrupted)
    found = rules.local_many(rows, "granted")
    assert [own.row for own in found] == [rows.index[0]]

    def failing(row: pd.DataFrame, *args: object, **settings: object) -> object:
        raise SystemError("something else")

    monkeypatch.setattr(rules, "local", failing)
    with pytest.raises(SystemError, match="something else"):
        rules.local_many(rows, "granted")


def test_a_class_named_opposite_is_named_in_a_list() -> None:
    table = pd.DataFrame({"a": [0.0, 1, 2, 3] * 20})
    model = RandomForestClassifier(5, random_state=0).fit(table, np.where(table.a > 1.5, "opposite", "other"))
    rules = CounterfactualRules(model, table, seed=0)
    with pytest.raises(ProblemError, match=r"a class is named 'opposite'.* target=\['opposite'\]"):
        rules.local(table.iloc[[0]], target="opposite")
    assert rules.local(table.iloc[[0]], target=["opposite"]).target == "opposite"
    assert rules.local(table.iloc[[0]]).target == "opposite"


@pytest.mark.parametrize("more", [{}, {"kind": "ordinal", "levels": list("ABCD")}])
def test_rules_name_and_count_permitted_levels_alone_where_others_stand_between(more: dict[str, Any]) -> None:
    table = pd.DataFrame({"o": np.repeat(["A", "B", "C", "D"], 20)})
    one = {"n_estimators": 1, "max_depth": 1, "forest": {"max_features": None, "bootstrap": False}}
    permitted = {"o": {"permitted_range": ["B", "D"], **more}}
    rules = CounterfactualRules(None, table, (table.o != "A").astype(int), features=permitted, **one)
    (rule,) = rules.local(table.iloc[[0]], 1)
    assert rule.conditions[0].levels == ("B", "D")
    assert (rule.coverage, rule.support) == (pytest.approx(40 / 60), 40)


def test_levels_of_a_region_with_others_between_them_are_refused_where_they_are_in_order() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"o": rng.choice(["lo", "mid", "hi"], 120), "b": rng.integers(0, 5, 120)})
    answers = ((table.o != "mid") & (table.b < 3)).to_numpy().astype(int)
    ordered = {"o": {"kind": "ordinal", "levels": ["lo", "mid", "hi"]}}
    rules = CounterfactualRules(None, table, answers, features=ordered, n_estimators=5)
    assert rules.regional({"o": ["lo", "mid"]}, 1).held
    with pytest.raises(
        ProblemError, match=r"name levels in a row of \['lo', 'mid', 'hi'\], .* or describe the feature as categorical"
    ):
        rules.regional({"o": ["lo", "hi"]}, 1)


def test_rows_that_miss_a_value_are_placed_in_no_region() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"b": rng.integers(0, 6, 60), "c": rng.choice(list("uvw"), 60)})
    rules = CounterfactualRules(None, table, np.where(table.b > 2, "yes", "no"), n_estimators=5)
    rows = table.astype({"b": float}).iloc[:3].assign(b=[1.0, np.nan, 2.0])
    found = rules.regional_set(table, "yes")
    for ask in (
        lambda: rules.regions("yes", rows),
        lambda: rules.regional_set(rows, "yes"),
        lambda: found.assign(rows),
    ):
        with pytest.raises(DataError, match=r"'b' of row 1 is missing; rules need complete rows"):
            ask()


def test_an_answer_that_no_row_of_the_data_has_is_another_one() -> None:
    table = pd.DataFrame({"a": np.arange(60) % 6, "b": np.arange(60) % 7})

    class Grade:
        def predict(self, rows: pd.DataFrame) -> Any:
            return np.where(rows.a > 5, "top", np.where(rows.a > 2, "yes", "no"))

    rules = CounterfactualRules(Grade(), table, n_estimators=5)
    found = rules.local({"a": 9, "b": 1}, "no")
    assert found.predicted == "top"
    assert found.rules
    with pytest.raises(ProblemError, match="'opposite' needs two classes and a row that has one"):
        rules.local({"a": 9, "b": 1}, "opposite")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"share": 9}, "share is a part"),
        ({"share": float("nan")}, "share is a part"),
        ({"n_rules": 1.5}, "n_rules is a"),
    ]
    + [({"time_limit": limit}, "time_limit must be a positive") for limit in (float("nan"), 0, -1, "1")],
)
def test_settings_out_of_range_are_refused(asked: dict[str, Any], message: str) -> None:
    table = pd.DataFrame({"a": np.arange(60) % 6, "b": np.arange(60) % 4})
    answers = (table.a > 2).astype(int).astype(object)  # numbers among objects
    rules = CounterfactualRules(None, table, answers, n_estimators=5)
    row = table[answers == 0].iloc[[0]]
    asks = [rules.regional_of, rules.region_of] if "share" in asked else [rules.local]
    for ask in asks:
        with pytest.raises(ProblemError, match=message):
            ask(row, 1, **asked)


@pytest.mark.parametrize("seed", [12, 40])
def test_a_set_that_reaches_no_level_has_no_superfluous_feature(seed: int) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(0, 3, 40) for name in "abcd"})
    answers = [rng.integers(0, 2, 40) for _ in range(seed + 1)][seed]
    rules = CounterfactualRules(None, table, answers, n_estimators=2, max_depth=2, seed=seed)
    by = [rules.local(table.iloc[[0]], 1 - answers[0], sets=sets, level=1.0) for sets in ("exhaustive", "milp")]
    assert by[0].features == by[1].features == ("b",)
    assert by[0].probability == pytest.approx(by[1].probability)


def test_what_the_forest_cannot_be_fitted_with_and_points_cannot_be_looked_for_in_is_refused() -> None:
    table = pd.DataFrame({"a": np.arange(40) % 5, "b": np.arange(40) % 3, "c": list("uv") * 20})
    answers = (table.a > 2).astype(int)
    for settings in ({"n_estimators": 0}, {"max_depth": 0}, {"seed": -1}, {"forest": {"zzz": 1}}):
        with pytest.raises(ProblemError, match="scikit-learn fits no forest of rules with these settings"):
            CounterfactualRules(None, table, answers, **settings)
    with pytest.raises(ProblemError, match="scikit-learn fits no forest"):
        CounterfactualRules(None, table, np.array(["p", "q"] * 20), regression=True)
    with pytest.raises(DataError, match="answers of several kinds"):
        CounterfactualRules(None, table, np.array(["a", 1] * 20, object))
    rules = CounterfactualRules(None, table, answers, n_estimators=5)
    row = table.iloc[[0]]
    found = rules.local(row, 1)
    for wrong in (None, found.rules, "a > 2"):
        with pytest.raises(ProblemError, match="a point is looked for in a rule"):
            rules.sample(wrong, row)  # type: ignore[arg-type]
    for levels in (0.5, ["x"]):
        with pytest.raises(ProblemError, match="levels are a list of probabilities"):
            rules.trade_off(row, 1, levels=levels)  # type: ignore[arg-type]
    one, other = (rules.regional({"c": levels}, 1) for levels in (np.array(["u", "v"]), ["u", "v"]))
    assert str(one) == str(other)


def test_what_a_row_has_may_be_said(rules: CounterfactualRules, table: pd.DataFrame, poor: pd.DataFrame) -> None:
    assert rules.local(poor, "granted", answer="granted").status == "already"
    assert rules.local(poor, answer="granted").target == "refused"
    both = pd.concat([poor, poor])
    found = rules.local_many(both, "granted", answers=["granted", "refused"])
    assert [own.status == "already" for own in found] == [True, False]
    assert [own.predicted for own in found] == ["granted", "refused"]
    assert rules.lacks(both, "granted", ["granted", "refused"]).tolist() == [False, True]
    assert len(rules.regional_many(both, "granted", answers=["granted", "granted"])) == 0
    assert rules.regional_set(both, "granted", answers=["granted", "granted"]).regions == ()
    with pytest.raises(DataError, match="3 answers for 2 rows"):
        rules.lacks(both, "granted", ["granted"] * 3)
    with pytest.raises(DataError, match="answer is 'perhaps', and answers are granted, refused"):
        rules.local(poor, "granted", answer="perhaps")


def test_what_a_row_has_is_one_of_the_classes(table: pd.DataFrame) -> None:
    numbers = table[["age"]].assign(b=range(len(table)))
    rules = CounterfactualRules(None, numbers, (numbers.age > numbers.age.median()).astype(int), n_estimators=5)
    row = numbers.iloc[[0]]
    (own,) = rules.local_many(row, 1, answers=[0.0])  # as in a column with a gap
    assert isinstance(own.predicted, int)
    for strange in (2, None, "x"):
        with pytest.raises(DataError, match="answers are 0, 1: mend it"):
            rules.local_many(row, 1, answers=[strange])
    with pytest.raises(DataError, match="answers are 0, 1: mend it"):
        rules.trade_off(row, 1, answer="x")


def test_what_is_no_region_and_no_seed_is_refused(rules: CounterfactualRules, poor: pd.DataFrame) -> None:
    for region in ("age", None, 5):
        with pytest.raises(ProblemError, match=f"a region is one of .*, not {region!r}"):
            rules.regional(region, "granted")
    found = rules.local(poor, "granted")
    for setting in ({"seed": -1}, {"seed": "x"}, {"iterations": 1.5}, {"iterations": -1}):
        ((name, value),) = setting.items()
        with pytest.raises(ProblemError, match=f"{name} is a whole number of at least 0, not {value!r}"):
            rules.sample(found, poor, **setting)


def test_a_distance_is_refused_by_what_takes_it(rules: CounterfactualRules, poor: pd.DataFrame) -> None:
    with pytest.raises(ProblemError, match=r"'mahalanobis' is a distance for `Explainer\.explain` .* give l0, l1, l2"):
        rules.trade_off(poor, "granted", norm="mahalanobis")

from __future__ import annotations

import json
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from ocf import CounterfactualRules
from ocf.cli import ExitCode, app
from ocf.errors import DataError, ModelError, ProblemError
from ocf.features.feature import Feature
from ocf.rules.objects import Condition
from ocf.rules.points import RuleInterval

FEATURES = {
    "age": {"kind": "integer", "actionability": "increasing"},
    "sex": {"actionability": "fixed"},
    "grade": {"kind": "ordinal", "levels": ["low", "middle", "high", "top"]},
}


#: Share of the rows in which one feature alone, drawn anew, does it.
LEVEL = 0.4


class Bank:
    """Grants to earners above 50 with a job, and counts how often it is asked."""

    asked = 0

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        self.asked += len(table)
        return np.where((table.income > 50) & (table.job != "none"), "granted", "refused")


def explain(model: object, table: object, answers: object = None, **settings: object) -> CounterfactualRules:
    """Rules over trees that see all features at every split, so that they find what the answers depend on."""
    return CounterfactualRules(model, table, answers, **{"level": LEVEL, "forest": {"max_features": None}, **settings})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.uniform(0, 100, n).round(1),
            "job": rng.choice(["none", "clerk", "smith"], n),
            "grade": rng.choice(["low", "middle", "high", "top"], n),
        }
    )


@pytest.fixture(scope="module")
def rules(table: pd.DataFrame) -> CounterfactualRules:
    return explain(Bank(), table, features=FEATURES)


@pytest.fixture(scope="module")
def poor(table: pd.DataFrame) -> pd.DataFrame:
    """An earner below 50 with a job."""
    return table[(table.income < 30) & (table.job == "clerk")].iloc[[0]]


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
    found = two.local(table[table.income < 10].iloc[[0]], n_rules=3)
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


def test_tables_json_and_words(rules: CounterfactualRules, table: pd.DataFrame, poor: pd.DataFrame) -> None:
    many = rules.local_many(pd.concat([poor, table[(table.income > 60) & (table.job == "smith")].iloc[:1]]), "granted")
    assert [own.status for own in many] == ["found", "already"]
    frame = many.to_frame()
    assert frame["feature"].tolist() == ["income"]
    record = json.loads(many.to_json())
    assert record["rule_sets"][0]["rules"][0]["conditions"][0]["feature"] == "income"
    assert json.loads(many[0].to_json())["original"]["job"] == "clerk"
    assert f"row {poor.index[0]}: refused → granted by income" in str(many)


def test_plot_shows_each_condition(rules: CounterfactualRules, poor: pd.DataFrame) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    found = rules.local(poor, time_limit=None)
    ax = found.plot()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["income"]
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize(
    ("feature", "interval", "words"),
    [
        (Feature("a", "numeric", lower=0, upper=9), RuleInterval(0, 2.5, 7.25), "a in (2.5, 7.25]"),
        (Feature("a", "numeric", lower=0, upper=9), RuleInterval(0, 2.5), "a > 2.5"),
        (Feature("a", "numeric", lower=0, upper=9), RuleInterval(0, upper=2.5), "a ≤ 2.5"),
        (Feature("a", "numeric", lower=0, upper=9), RuleInterval(0), "any a"),
        (Feature("a", "integer", lower=0, upper=9), RuleInterval(0, 2.5, 7.5), "a in [3, 7]"),
        (Feature("a", "integer", lower=0, upper=9), RuleInterval(0, 2.5, 3.5), "a = 3"),
        (Feature("a", "integer", lower=0, upper=9), RuleInterval(0, 2.5), "a ≥ 3"),
        (Feature("a", "numeric", lower=0, upper=9, step=0.5), RuleInterval(0, 2.6, 3.7), "a in [3, 3.5]"),
        (Feature("a", "ordinal", levels=("x", "y", "z", "w")), RuleInterval(0, -0.5, 2.5), "a from x to z"),
        (Feature("a", "categorical", levels=("x", "y", "z", "w")), RuleInterval(0, levels=(0, 1, 3)), "a ≠ z"),
        (Feature("a", "categorical", levels=("x", "y", "z", "w")), RuleInterval(0, levels=(0, 3)), "a in {x, w}"),
        (Feature("a", "categorical", levels=("x", "y")), RuleInterval(0, levels=(1,)), "a = y"),
    ],
)
def test_conditions_in_words(feature: Feature, interval: RuleInterval, words: str) -> None:
    assert str(Condition.of(feature, interval)) == words


def test_bad_questions_are_refused_with_a_remedy(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    with pytest.raises(ProblemError, match="there is no class 'grantet'"):
        rules.local(table.iloc[[0]], "grantet")
    with pytest.raises(DataError, match="use local_many"):
        rules.local(table.iloc[:2])
    with pytest.raises(DataError, match="'income' of the row is missing"):
        rules.local(table.iloc[[0]].assign(income=np.nan))
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
    with pytest.raises(ProblemError, match="n_rules must be at least 1"):
        rules.local(table[table.income < 20].iloc[[0]], n_rules=0)


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
    with pytest.raises(ProblemError, match="level is a probability"):
        CounterfactualRules(Bank(), table, level=90)
    with pytest.raises(ProblemError, match="candidates must lie between 1 and 25"):
        CounterfactualRules(Bank(), table, candidates=40)


# -- command line ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, table: pd.DataFrame) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    numbers = table[["age", "income"]].assign(job=(table.job != "none").astype(int))
    answers = np.where((numbers.income > 50) & (numbers.job == 1), "granted", "refused")
    network = make_pipeline(StandardScaler(), MLPClassifier((8,), solver="lbfgs", random_state=0))
    joblib.dump(network.fit(numbers, answers), folder / "network.joblib")
    joblib.dump(RandomForestClassifier(10, random_state=0).fit(numbers, answers), folder / "forest.joblib")
    numbers.to_csv(folder / "rows.csv", index=False)
    numbers.assign(answer=answers).to_csv(folder / "answers.csv", index=False)
    return folder


def run(files: Path, *words: str) -> tuple[int, str, str]:
    paths = [str(files / w) if "." in w else w for w in words]
    result = CliRunner().invoke(app, ["rules", *paths, "--trust-pickle", "--level", str(LEVEL), "--time-limit", "1e6"])
    return result.exit_code, result.stdout, result.stderr


def refused(files: Path, n: int) -> str:
    table = pd.read_csv(files / "rows.csv")
    return ",".join(map(str, table[(table.income < 30) & (table.job == 1)].index[:n]))


@pytest.mark.parametrize("model", ["network.joblib", "forest.joblib"])
def test_command_writes_rules(files: Path, model: str) -> None:
    code, _, err = run(files, model, "rows.csv", "--rows", refused(files, 2), "--target", "granted", "-o", "rules.json")
    assert code == ExitCode.SOLVED, err
    assert "2 rows: 2 with rules" in err
    sets = json.loads((files / "rules.json").read_text())["rule_sets"]
    assert [own["features"] for own in sets] == [["income"], ["income"]]
    code, out, _ = run(files, model, "rows.csv", "--rows", refused(files, 1), "--regional", "--target", "granted")
    assert code in (ExitCode.SOLVED, ExitCode.INFEASIBLE)
    assert out.startswith("where ")


def test_command_explains_labels(files: Path) -> None:
    words = ("forest.joblib", "answers.csv", "--labels", "answer", "--rows", refused(files, 1), "-o", "rules.csv")
    code, _, err = run(files, *words)
    assert code == ExitCode.SOLVED, err
    assert pd.read_csv(files / "rules.csv")["feature"].tolist() == ["income"]


def test_command_says_what_is_wrong(files: Path) -> None:
    assert "--labels: there is no column 'anser'" in run(files, "forest.joblib", "answers.csv", "--labels", "anser")[2]
    assert "there is no class 'grnted'" in run(files, "forest.joblib", "rows.csv", "--target", "grnted")[2]
    code, _, err = run(files, "forest.joblib", "rows.csv", "--rows", refused(files, 1), "--regional")
    assert code == ExitCode.USAGE
    assert "--regional needs --target" in err

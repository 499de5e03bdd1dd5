"""Plausibility from the user's side: what is fitted on what, how deep, and what is said about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ocf import Explainer, Explanations, Plausibility, Problem
from ocf.errors import DataError, ProblemError, UnsupportedModelError
from ocf.problem.targets import ClassTarget
from ocf.verify.files import verify_file


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 240
    good = rng.random(n) < 0.5
    return pd.DataFrame(
        {
            "income": np.where(good, rng.normal(5, 1, n), rng.normal(2, 1, n)),
            "debt": np.where(good, rng.normal(1, 0.4, n), rng.normal(3, 1.5, n)),
            "job": rng.choice(["none", "clerk", "smith"], n),
            "good": good.astype(int),
        }
    )


@pytest.fixture(scope="module")
def explainer(table: pd.DataFrame) -> Explainer:
    encode = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestClassifier(10, max_depth=3, random_state=0))
    x = table.drop(columns="good")
    return Explainer(model.fit(x, table["good"]), data=x)


@pytest.fixture(scope="module")
def rows(table: pd.DataFrame, explainer: Explainer) -> pd.DataFrame:
    x = table.drop(columns="good")
    return x[explainer.model.native.predict(x) == 0].iloc[:3]


def good_rows(table: pd.DataFrame, explainer: Explainer) -> pd.DataFrame:
    x = table.drop(columns="good")
    return x[explainer.model.native.predict(x) == 1]


FAST = {"trees": 20, "samples": 16}


def test_answers_are_as_deep_as_nine_of_ten_rows_of_the_class(
    explainer: Explainer, rows: pd.DataFrame, table: pd.DataFrame
) -> None:
    plain = explainer.explain(rows, target=1)
    found = explainer.explain(rows, target=1, plausibility=FAST)
    detector = next(d for d in explainer.prepared.detectors if d.wish.trees == 20)
    depths = detector.measure(good_rows(table, explainer))[0]
    assert 0 < (depths < detector.least).mean() <= 0.1
    for before, after in zip(plain, found, strict=True):
        assert after.status == "optimal"
        assert after.verified, after.checks
        assert after.cost >= before.cost
        assert after.plausibility["depth"] >= after.plausibility["least"] == detector.least
        score = detector.forest.native.score_samples(explainer.model.encode(after.counterfactual))[0]
        assert after.plausibility["score"] == score
        assert "average depth" in str(after)
        assert "isolation trees" in after.to_html()
    assert any(after.cost > before.cost for before, after in zip(plain, found, strict=True))


def test_a_point_exactly_at_the_threshold_is_deep_enough(explainer: Explainer, table: pd.DataFrame) -> None:
    """The least depth is a row's own, so that row is plausible, to the last bit."""
    x = good_rows(table, explainer)
    found = explainer.explain(x, target=1, plausibility=FAST)
    detector = next(d for d in explainer.prepared.detectors if d.wish.trees == 20)
    at_threshold = np.flatnonzero(detector.measure(x)[0] == detector.least)
    assert len(at_threshold)
    assert all(found[int(k)].cost == 0 for k in at_threshold)
    for method in ({"reduce": False, "solver": "highs"}, {"reduce": False, "solver": "box"}):
        again = explainer.explain(x.iloc[at_threshold[:1]], target=1, plausibility=FAST, **method)
        assert again[0].cost == 0


def test_the_requirement_holds_a_tie_and_little_more(explainer: Explainer, table: pd.DataFrame) -> None:
    x = good_rows(table, explainer)
    explainer.explain(x.iloc[:1], target=1, plausibility=FAST)
    detector = next(d for d in explainer.prepared.detectors if d.wish.trees == 20)
    depths = detector.measure(x)[0]
    for k in (np.flatnonzero(depths == detector.least)[0], np.flatnonzero(depths < detector.least)[0]):
        cells = explainer.cells(explainer.problem(x.iloc[[k]], 1, plausibility=detector.wish))
        leaves = cells.partition.leaves_at(cells.partition.locate(cells.problem.origin[None, :])[0])
        margin, error_bound = cells.margins(leaves)[-1], cells.requirements.error_bound[-1]
        assert margin == pytest.approx(20 * (depths[k] - detector.least), abs=2 * error_bound)
        assert (margin >= 0) == (depths[k] == detector.least)
        assert 0 < error_bound < 1e-9


def test_the_forest_may_see_the_table_the_matrix_or_what_a_pipeline_makes(
    explainer: Explainer, rows: pd.DataFrame, table: pd.DataFrame
) -> None:
    x = good_rows(table, explainer)
    settings = {"n_estimators": 10, "max_samples": 16, "random_state": 0}
    encoded = IsolationForest(**settings).fit(explainer.model.encode(x))
    numbers = IsolationForest(**settings).fit(x[["income", "debt"]])
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough"), IsolationForest(**settings)
    ).fit(x)
    unfitted = IsolationForest(**settings)
    costs = []
    for forest in (encoded, numbers, pipeline, unfitted, Plausibility(unfitted), {"forest": unfitted}):
        found = explainer.explain(rows.iloc[:1], target=1, plausibility=forest)[0]
        assert found.status == "optimal", found.message
        assert found.verified, found.checks
        costs.append(found.cost)
    assert costs[0] == costs[2] == costs[3] == costs[4] == costs[5]  # the same trees, however they came
    assert not hasattr(unfitted, "estimators_")  # the user's own object is left alone


def test_a_forest_without_a_seed_is_the_same_for_all_who_fit_it(
    explainer: Explainer, rows: pd.DataFrame, table: pd.DataFrame
) -> None:
    again, depths = Explainer(explainer.model.native, data=table.drop(columns="good")), []
    encode = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    forest = IsolationForest(n_estimators=10, max_samples=16)
    for one, seed in ((explainer, 0), (again, 0), (again, 1)):
        for own in (forest, make_pipeline(encode, forest)):
            found = one.explain(rows.iloc[:1], target=1, plausibility=Plausibility(own, seed=seed))[0]
            depths.append(found.plausibility["least"])
    assert depths[:2] == depths[2:4]
    assert depths[4:] != depths[:2]


@pytest.mark.parametrize("seeds", [{"random_seed": 7}, {"random_seed": 7, "random_state": 3}, {}], ids=str)
def test_a_forest_of_isotree_keeps_its_own_seed(seeds: dict[str, int]) -> None:
    isotree = pytest.importorskip("isotree")
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.integers(0, 9, (150, 2)), columns=list("ab"))
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, x.a + x.b > 8)
    own = isotree.IsolationForest(ntrees=8, ndim=1, sample_size=32, nthreads=1, missing_action="impute", **seeds)
    fitted = clone(own).fit(x[model.predict(x)])
    row, explainer = x[~model.predict(x)].head(1), Explainer(model, x)
    unfitted, mine = (explainer.explain(row, True, plausibility=forest)[0].plausibility for forest in (own, fitted))
    assert unfitted == mine


def test_the_soft_term_trades_cost_for_depth(explainer: Explainer, rows: pd.DataFrame) -> None:
    forest = FAST | {"required": False}
    found = [
        explainer.explain(rows.iloc[:1], target=1, plausibility=forest | {"weight": w})[0] for w in (1e-6, 0.05, 1.0)
    ]
    depths = [e.plausibility["depth"] for e in found]
    assert depths == sorted(depths)
    assert depths[0] < depths[-1]
    for e in found:
        assert e.status == "optimal"
        assert e.verified, e.checks
        lacking = e.plausibility["weight"] * (e.plausibility["deepest"] - e.plausibility["depth"])
        assert e.cost == pytest.approx(e.changes["cost"].sum() + lacking, rel=1e-12)


def test_results_and_problems_survive_json(
    explainer: Explainer, rows: pd.DataFrame, tmp_path: Path, table: pd.DataFrame
) -> None:
    wish = FAST | {"weight": 0.1}
    problem = explainer.problem(rows.iloc[[0]], 1, plausibility=wish)
    again = Problem.from_json(problem.to_json())
    assert again.to_json() == problem.to_json()
    np.testing.assert_array_equal(again.alternatives[0].gain, problem.alternatives[0].gain)
    np.testing.assert_array_equal(again.penalty, problem.penalty)
    assert explainer.cells(problem).partition.ensemble.n_trees == 30
    found = explainer.explain(rows, target=1, plausibility=wish)
    assert Explanations.from_json(found.to_json()) == found
    assert [n.split(":")[0] for n in json.loads(found.to_json())["rows"][0]["plausibility"]][:2] == ["depth", "least"]
    found.to_json(tmp_path / "found.json")
    detector = next(d for d in explainer.prepared.detectors if d.wish.weight == 0.1)
    for forest in (None, detector.recount):
        assert all(v.ok for _, v in verify_file(tmp_path / "found.json", explainer.model, forest))


def test_a_false_depth_is_noticed(explainer: Explainer, rows: pd.DataFrame, tmp_path: Path) -> None:
    found = explainer.explain(rows.iloc[:1], target=1, plausibility=FAST)
    detector = next(d for d in explainer.prepared.detectors if d.wish.trees == 20)
    false = found[0].to_dict()
    false["plausibility"]["depth"] += 1e-3
    (tmp_path / "false.json").write_text(json.dumps(false))
    ((_, check),) = verify_file(tmp_path / "false.json", explainer.model, detector.recount)
    assert any("average depth" in problem for problem in check.problems)
    shallow = found[0].to_dict()
    shallow["plausibility"]["least"] += 1.0
    (tmp_path / "shallow.json").write_text(json.dumps(shallow))
    ((_, check),) = verify_file(tmp_path / "shallow.json", explainer.model)
    assert any("less than the wanted" in problem for problem in check.problems)


def test_processes_find_the_same(explainer: Explainer, rows: pd.DataFrame) -> None:
    alone = explainer.explain(rows, target=1, plausibility=FAST)
    together = explainer.explain(rows, target=1, plausibility=FAST, n_jobs=2)
    assert [e.cost for e in alone] == [e.cost for e in together]
    assert all(e.verified for e in together)


def test_too_much_depth_is_infeasible(explainer: Explainer, rows: pd.DataFrame) -> None:
    found = explainer.explain(rows.iloc[:1], target=1, plausibility=FAST | {"depth": 100.0})[0]
    assert found.status == "infeasible"


def test_missing_values_need_a_rule_of_the_forest(table: pd.DataFrame) -> None:
    isotree = pytest.importorskip("isotree")
    x = table[["income", "debt"]]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x.mask(x > 6), table["good"])
    explainer = Explainer(model, data=x)
    row = x.iloc[[0]].assign(income=np.nan)
    ruled = IsolationForest(n_estimators=5, max_samples=16, random_state=0).fit(x.mask(x > 6))
    assert explainer.explain(row, target=1, plausibility={"forest": ruled, "quantile": 0.2})[0].status != "error"
    blind = isotree.IsolationForest(ntrees=5, ndim=1, nthreads=1, missing_action="fail").fit(x)
    assert "no rule" in explainer.explain(row, target=1, plausibility=blind)[0].message


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"quantil": 0.1}, "did you mean 'quantile'"),
        ({"quantile": 1.0}, "below 1"),
        ({"quantile": float("nan")}, "below 1"),
        ({"depth": "deep"}, "a number"),
        ({"weight": -1}, "at least 0"),
        ({"required": False}, "give a weight"),
        ({"trees": 0}, "at least 1"),
        ({"samples": 1}, "at least 2"),
        ({"seed": 1.5}, "whole number"),
        ("iforest", "isolation forest of scikit-learn or isotree"),
    ],
)
def test_mistakes_are_named(explainer: Explainer, rows: pd.DataFrame, wish: Any, words: str) -> None:
    with pytest.raises((ProblemError, UnsupportedModelError), match=words):
        explainer.explain(rows, target=1, plausibility=wish)


def test_forests_that_do_not_fit_are_named(explainer: Explainer, rows: pd.DataFrame, table: pd.DataFrame) -> None:
    wide = IsolationForest(n_estimators=3).fit(np.zeros((9, 7)))
    with pytest.raises(DataError, match="fitted on 7 columns"):
        explainer.problem(rows.iloc[[0]], 1, plausibility=wide)
    unknown = IsolationForest(n_estimators=3).fit(pd.DataFrame({"height": [1.0, 2.0, 3.0]}))
    with pytest.raises(DataError, match="height"):
        explainer.problem(rows.iloc[[0]], 1, plausibility=unknown)
    nowhere = Explainer(explainer.model.native, data=rows)
    with pytest.raises(ProblemError, match="too few"):
        nowhere.problem(rows.iloc[[0]], 1, plausibility=True)
    fitted = IsolationForest(n_estimators=3, max_samples=8).fit(table[["income", "debt"]])
    with pytest.raises(ProblemError, match="no row of the data"):
        nowhere.problem(rows.iloc[[0]], 1, plausibility=fitted)
    assert nowhere.explain(rows, target=1, plausibility={"forest": fitted, "depth": 2.0})[0].status == "optimal"


def test_a_forest_without_names_must_not_be_misread(table: pd.DataFrame) -> None:
    """As many nameless columns as the data have, and as the model sees in another order: no guess."""
    x = table[["income", "debt"]]
    swap = make_column_transformer(("passthrough", ["debt"]), ("passthrough", ["income"]))
    model = make_pipeline(swap, RandomForestClassifier(5, max_depth=3, random_state=0)).fit(x, table["good"])
    nameless = IsolationForest(n_estimators=3, max_samples=8).fit(x.to_numpy())
    with pytest.raises(DataError, match="without names"):
        Explainer(model, data=x).problem(x.iloc[[0]], 1, plausibility=nameless)
    named = IsolationForest(n_estimators=3, max_samples=8).fit(x)
    assert Explainer(model, data=x).explain(x.iloc[[0]], target=1, plausibility=named)[0].status != "error"


def test_the_same_wish_is_read_once(explainer: Explainer, rows: pd.DataFrame, table: pd.DataFrame) -> None:
    x, model = table.drop(columns="good"), explainer.model.native
    explainer = Explainer(model, data=x)  # which was asked for nothing yet

    def asked(wish: Any) -> tuple[int, float | None]:
        cost = explainer.explain(rows.iloc[[0]], target=1, plausibility=wish)[0].cost
        return len(explainer.prepared.detectors), cost

    first = asked(FAST)
    assert asked(dict(FAST)) == first
    assert asked(FAST | {"seed": 1})[0] == 2
    numbers = IsolationForest(n_estimators=20, max_samples=16, random_state=0)
    forest = make_pipeline(make_column_transformer(("passthrough", ["income", "debt"])), numbers).fit(x)
    mine = asked(forest)
    assert mine[0] == 3
    assert asked(forest) == mine
    numbers.set_params(max_samples=4)
    forest.fit(good_rows(table, explainer).iloc[:8])
    count, cost = asked(forest)
    assert count == 4
    fresh = Explainer(model, data=x).explain(rows.iloc[[0]], target=1, plausibility=forest)[0]
    assert cost == fresh.cost


def test_a_forest_that_is_fitted_anew_changes_nothing_that_was_asked() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    granted = x["a"] + x["b"] + 0.3 * rng.normal(size=300) > 0
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(x, granted)
    row = x[~model.predict(x)].head(1)

    def forest(seed: int) -> IsolationForest:
        return IsolationForest(n_estimators=2, max_samples=8, random_state=seed).fit(x[granted])

    for seed in range(4):
        explainer, mine = Explainer(model, data=x), forest(seed)
        wish = Plausibility(mine)
        first = explainer.explain(row, target=True, plausibility=wish)[0]
        mine.fit(pd.DataFrame(rng.normal(1, 0.5, (100, 2)), columns=["a", "b"]))
        anew = explainer.explain(row, target=True, plausibility=mine)[0]
        assert anew.cost == Explainer(model, data=x).explain(row, target=True, plausibility=mine)[0].cost
        for again in (wish, forest(seed)):
            found = explainer.explain(row, target=True, plausibility=again)[0]
            assert (found.status, found.cost, found.verified) == ("optimal", first.cost, True)


def test_a_forest_of_other_names_is_refused_and_not_taken_by_position() -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"age": rng.integers(0, 9, 120), "income": rng.integers(1000, 9000, 120)})
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(table, table.income > 5000)
    bare, scaled = Explainer(model, table), make_pipeline(StandardScaler().set_output(transform="pandas"), clone(model))
    behind = Explainer(scaled.fit(table, table.income > 5000), table)
    other = table.rename(columns={"age": "Age"})[["income", "Age"]]
    for explainer, rows in ((bare, other), (behind, other)):
        forest = IsolationForest(n_estimators=5, random_state=0).fit(rows)
        with pytest.raises(DataError, match=r"fitted on 2 columns \(income, Age\), which are not those of the data"):
            explainer.prepared.detector(Plausibility.parse(forest), ClassTarget(1))
    renaming = make_column_transformer(("passthrough", ["age", "income"])).set_output(transform="pandas")
    same = make_pipeline(renaming, clone(model))
    seen = same.fit(table, table.income > 5000)[:-1].transform(table)  # the same numbers by the model's own names
    assert [*seen.columns] == ["passthrough__age", "passthrough__income"]
    (found,) = Explainer(same, table).explain(
        table[~same.predict(table)].iloc[[0]],
        True,
        plausibility=IsolationForest(n_estimators=5, random_state=0).fit(seen),
    )
    assert found.verified
    named = IsolationForest(n_estimators=5, random_state=0).fit(table[["income", "age"]])  # by name, in any order
    row = table[model.predict(table) == 0].iloc[[0]]
    (found,) = bare.explain(row, True, plausibility=named)
    assert found.verified
    assert found.plausibility is not None
    assert found.plausibility["score"] == pytest.approx(named.score_samples(found.counterfactual[["income", "age"]])[0])


@pytest.mark.parametrize("fitted", [True, False])
def test_a_pipeline_of_an_isolation_forest_alone(fitted: bool) -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.integers(0, 9, 120), "b": rng.integers(0, 5, 120)})
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(table, (table.a > 4) | (table.b == 3))
    forest = make_pipeline(IsolationForest(n_estimators=5, random_state=0))
    wanted = forest.fit(table) if fitted else forest
    (found,) = Explainer(model, table).explain(table[~model.predict(table)].iloc[[0]], True, plausibility=wanted)
    assert (found.status, found.verified) == ("optimal", True)

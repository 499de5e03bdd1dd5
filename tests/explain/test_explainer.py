"""The Python interface as a user calls it, and as one misuses it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, FeatureSpace, Problem
from ocf.errors import DataError, ModelError, OcfError, ProblemError, SolverError
from ocf.explain.explanation import Explanation, Explanations

from .people import people, refused


def test_batch_in_users_terms(credit) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:6]
    explanations = explainer.explain(rows, target="granted")
    assert [e.row for e in explanations] == list(rows.index)
    for e in explanations:
        assert (e.status, e.verified, e.predicted, e.decided) == ("optimal", True, "refused", "granted")
        assert model.predict(e.counterfactual)[0] == "granted"
        assert e.counterfactual["age"].iloc[0] >= e.original["age"].iloc[0]
        assert e.bound == pytest.approx(e.cost, rel=1e-9)
        assert list(e.counterfactual.columns) == list(table.columns)
        assert e.counterfactual.dtypes.equals(table.dtypes)
    assert (model.predict(explanations.to_frame()[list(table.columns)].astype(table.dtypes)) == "granted").all()


@pytest.mark.parametrize("formulation", ["interval", "ocean"])
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_methods_and_processes_agree(credit, formulation, solver) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:4]
    reference = [e.cost for e in explainer.explain(rows, target="granted")]
    for extra in ({"reduce": False}, {"n_jobs": 2}):
        found = explainer.explain(rows, target="granted", formulation=formulation, solver=solver, **extra)
        assert [e.cost for e in found] == pytest.approx(reference, rel=1e-9)
        assert all(e.status == "optimal" and e.verified for e in found)


def test_compiled_model_is_kept_between_rows(credit) -> None:
    table, model, _ = credit
    explainer = Explainer(model, data=table)
    found = explainer.explain(refused(table, model).iloc[:3], target="granted", solver="highs", reduce=False)
    assert found[0].times["build"] > 0
    assert all(e.times["build"] == 0 for e in found[1:])


def test_options_narrow_the_answer(credit) -> None:
    table, model, explainer = credit
    row = refused(table, model).iloc[[0]]
    free = explainer.explain(row)[0]
    assert explainer.explain(row, features_to_vary=["income"])[0].changes.feature.tolist() == ["income"]
    ranged = explainer.explain(row, permitted_range={"income": (3500, 4000)})[0]
    assert 3500 <= ranged.counterfactual["income"].iloc[0] <= 4000
    assert ranged.cost >= free.cost
    dear = explainer.explain(row, weights={"income": (1.0, 50.0)})[0]
    assert dear.cost >= free.cost
    few = explainer.explain(row, norm={"l0": 1.0, "l1": 1e-3})[0]
    assert len(few.changes) == 1
    jobs = explainer.explain(row, permitted_range={"job": ["smith"]}, norm="l0")[0]
    assert jobs.counterfactual["job"].iloc[0] == "smith"


def test_target_that_is_already_met(credit) -> None:
    table, model, explainer = credit
    row = table[model.predict(table) == "granted"].iloc[[0]]
    found = explainer.explain(row, target="granted")[0]
    assert (found.status, found.cost, found.bound, found.proved_by) == ("optimal", 0.0, 0.0, "origin")
    pd.testing.assert_frame_equal(found.counterfactual, row)


def test_contradictory_range_is_proven_infeasible(credit) -> None:
    table, model, explainer = credit
    row = refused(table, model).iloc[[0]]
    out_of_bounds = float(table["income"].max()) + 1000
    found = explainer.explain(row, permitted_range={"income": (out_of_bounds, out_of_bounds + 1)})[0]
    assert (found.status, found.counterfactual, found.bound) == ("infeasible", None, np.inf)
    everything = list(table.columns)
    fixed = explainer.explain(refused(table, model).iloc[[0]], features_to_vary=[])[0]
    assert fixed.status == "infeasible"
    assert everything == list(table.columns)


def test_time_limit_keeps_a_verified_point() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(400, 20)), columns=[f"f{i}" for i in range(20)])
    y = (x.sum(axis=1) + rng.normal(size=400) > 0).astype(int)
    forest = RandomForestClassifier(60, max_depth=6, random_state=0).fit(x, y)
    row = x[forest.predict(x) == 0].iloc[[0]]
    found = Explainer(forest, data=x).explain(row, target=1, time_limit=1e-3)[0]
    assert found.status == "feasible"
    assert found.verified
    assert found.bound <= found.cost
    assert forest.predict(found.counterfactual)[0] == 1


def test_missing_values_stay_missing() -> None:
    table, y = people()
    numbers = table[["age", "income", "owner"]].astype(float)
    numbers.loc[::5, "age"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=10, max_depth=3, random_state=0).fit(numbers, y)
    rows = numbers[(model.predict(numbers) == "refused") & numbers.age.isna()].iloc[:3]
    for e in Explainer(model, data=numbers).explain(rows, target="granted"):
        assert (e.status, e.verified) == ("optimal", True)
        assert np.isnan(e.counterfactual["age"].iloc[0])


def test_missing_value_without_a_rule_is_refused() -> None:
    table, y = people()
    numbers = table[["age", "income"]].astype(float)
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(numbers, y)
    explainer = Explainer(model, data=numbers)
    row = numbers.iloc[[0]].assign(age=np.nan)
    with pytest.raises(DataError, match=r"(?s)age.*NaN"):
        explainer.explain(row)


def test_array_model() -> None:
    table, y = people()
    array = table[["age", "income"]].to_numpy(np.float32)
    model = RandomForestClassifier(10, max_depth=3, random_state=0).fit(array, y)
    explainer = Explainer(model, data=array)
    rows = array[model.predict(array) == "refused"][:3]
    for e in explainer.explain(rows, target="granted"):
        assert e.status == "optimal"
        assert model.predict(e.counterfactual.to_numpy(np.float32))[0] == "granted"


def test_problem_replays(credit) -> None:
    table, model, explainer = credit
    row = refused(table, model).iloc[[0]]
    problem = explainer.problem(row, target="granted")
    again = Problem.from_json(problem.to_json())
    assert again.to_json() == problem.to_json()
    assert isinstance(again.space, FeatureSpace)
    np.testing.assert_array_equal(explainer.cells(again).cost, explainer.cells(problem).cost)


def test_bad_questions(credit) -> None:
    table, _, explainer = credit
    row = table.iloc[[0]]
    for error, match, kwargs in (
        (ProblemError, "no class", {"target": "grantd"}),
        (ProblemError, "the model is a classifier", {"target": (0.5, None)}),
        (ProblemError, "unknown norm", {"norm": "l3"}),
        (ProblemError, "interval", {"formulation": "intervall"}),
        (SolverError, "highs", {"solver": "hihgs"}),
        (ProblemError, "income", {"features_to_vary": ["incom"]}),
        (ProblemError, "lowest, highest", {"permitted_range": {"income": (1, 2, 3)}}),
        (ProblemError, "smith", {"permitted_range": {"job": ["smit"]}}),
        (ProblemError, r"give a list, such as \['smith'\]", {"permitted_range": {"job": "smith"}}),
        (ProblemError, "other way round", {"permitted_range": {"income": (60, 20)}}),
        (ProblemError, "n_jobs", {"n_jobs": 0}),
        (ProblemError, "time_limit", {"time_limit": -1}),
        (ProblemError, "weight", {"weights": {"income": -1}}),
    ):
        with pytest.raises(error, match=match):
            explainer.explain(row, **kwargs)
    for bad, match in (
        (row.drop(columns="age"), "misses age"),
        (row.assign(extra=1), "extra"),
        (row.assign(job="pilot"), "pilot"),
        (row.assign(income=np.inf), "infinite"),
        (np.zeros((2, 3)), "shape"),
    ):
        with pytest.raises(DataError, match=match):
            explainer.explain(bad)
    pd.testing.assert_frame_equal(explainer.explain(row[row.columns[::-1]])[0].original[list(row.columns)], row)


def test_bad_models() -> None:
    table, y = people()
    numbers = table[["age", "income"]]
    with pytest.raises(ModelError, match="fit"):
        Explainer(RandomForestClassifier(), data=numbers)
    with pytest.raises(ModelError, match="LogisticRegression"):
        Explainer(LogisticRegression().fit(numbers, y == "granted"), data=numbers)
    model = RandomForestClassifier(3, random_state=0).fit(numbers, y)
    with pytest.raises(OcfError, match="data"):
        Explainer(model)
    with pytest.raises(DataError, match="misses"):
        Explainer(model, data=table[["age"]])


def test_text_for_a_model_of_numbers_names_the_remedy() -> None:
    table, y = people()
    numbers = table[["age", "income"]].astype(float)
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(numbers.to_numpy(), y)
    with pytest.raises(DataError, match="OneHotEncoder"):
        Explainer(model, data=table[["job", "income"]])


def test_native_categories_of_hist_gradient_boosting() -> None:
    table, y = people()
    table = table.astype({"job": "category"})
    model = HistGradientBoostingClassifier(max_iter=8, max_depth=3, categorical_features="from_dtype", random_state=0)
    model.fit(table, y)
    rows = refused(table, model).iloc[:4]
    for e in Explainer(model, data=table).explain(rows, target="granted", norm={"l0": 1.0, "l1": 0.1}):
        assert (e.status, e.verified) == ("optimal", True)
        assert e.counterfactual["job"].dtype == table["job"].dtype


@pytest.mark.parametrize("target", [(8000, 8500), (8000, None), (None, 5000)])
@pytest.mark.parametrize("solver", ["highs", "box"])
def test_intervals_of_a_regressor(prices, target, solver) -> None:
    table, model, explainer = prices
    found = explainer.explain(table.iloc[:3], target=target, solver=solver, n_jobs=1)
    low, high = (np.inf * s if end is None else end for end, s in zip(target, (-1, 1), strict=True))
    for e in found:
        assert (e.status, e.verified, e.target) == ("optimal", True, target), e.checks
        assert low <= model.predict(e.counterfactual)[0] <= high
        assert e.predicted == model.predict(e.original)[0]
        assert e.decided == model.predict(e.counterfactual)[0]
    again = Explanations.from_json(found.to_json())
    assert again == found
    assert again[0].target == target


def test_regressors_need_an_interval(prices) -> None:
    table, _, explainer = prices
    for target in ("opposite", 3.0):
        with pytest.raises(ProblemError, match="interval"):
            explainer.explain(table.iloc[[0]], target=target)
    with pytest.raises(ProblemError, match="interval"):
        explainer.problem(table.iloc[[0]])


def test_a_class_named_opposite_is_not_mistaken_for_the_other_class() -> None:
    table = pd.DataFrame({"a": [0.0, 1, 2, 3] * 5})
    labels = np.where(table.a > 1.5, "opposite", "other")
    explainer = Explainer(DecisionTreeClassifier(max_depth=1).fit(table, labels), data=table)
    for settings in ({}, {"target": "opposite"}):
        with pytest.raises(ProblemError, match=r"a class is named 'opposite'.* target=\['opposite'\]"):
            explainer.explain(table.iloc[[0]], **settings)
    assert explainer.explain(table.iloc[[0]], target=["opposite"])[0].cost == pytest.approx(0.5)
    assert explainer.explain(table.iloc[[3]], target="other")[0].cost == pytest.approx(0.5)


@pytest.mark.parametrize("solver", ["highs", "box"])
def test_any_of_several_classes(three, solver) -> None:
    numbers, model = three
    explainer = Explainer(model, data=numbers)
    rows = numbers[model.predict(numbers) == "a"].iloc[:4]
    both = explainer.explain(rows, target=["c", "b"], solver=solver)
    each = [explainer.explain(rows, target=label, solver=solver) for label in ("b", "c")]
    for k, e in enumerate(both):
        assert (e.status, e.verified, e.target) == ("optimal", True, ("b", "c"))
        assert e.cost == pytest.approx(min(one[k].cost for one in each), rel=1e-9)
        assert e.bound == pytest.approx(e.cost, rel=1e-9)
        seconds = [p.seconds for p in e.history]
        assert seconds == sorted(seconds)
    with pytest.raises(ProblemError, match="2 alternatives"):
        explainer.cells(explainer.problem(rows.iloc[[0]], target=["b", "c"]))


@pytest.mark.parametrize("solver", ["highs", "box"])
@pytest.mark.parametrize("target", ["b", ["b", "c"]])
def test_a_probability_of_a_softmax(three, target, solver) -> None:
    numbers, model = three
    explainer = Explainer(model, data=numbers)
    labels = [model.classes_.tolist().index(label) for label in target]
    costs = []
    for probability in (0.45, 0.5, 0.55):
        e = explainer.explain(
            numbers[model.predict(numbers) == "a"].iloc[[0]], target, probability=probability, solver=solver
        )[0]
        assert (e.status, e.verified, e.probability) == ("optimal", True, probability), e.checks
        assert model.predict_proba(e.counterfactual)[0, labels].max() >= probability
        costs.append(e.cost)
    assert costs == sorted(costs)
    again = Explanation.from_json(e.to_json())
    assert (again.target, again.probability) == (e.target, 0.55)

"""Linear models: optima against enumeration, and the user's own model as the judge."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, LinearExplainer
from ocf.errors import DataError, ModelError, ProblemError, SolverError, UnsupportedModelError
from ocf.explain.linear import explainer_for
from ocf.explain.question import Question
from ocf.features.feature import Feature
from ocf.problem.constraints import MaxChanges
from ocf.problem.costs import Cost
from ocf.problem.linear_problem import LinearProblem
from ocf.solvers.highs import HighsSolver
from ocf.solvers.result import SolveResult, Status

NORMS = ("l0", "l1", "l2", {"l0": 0.1, "l1": 1.0}, {"l0": 0.1, "l1": 1.0, "l2": 2.0})


def test_costs_beyond_norms_are_refused() -> None:
    x, y = load_iris(return_X_y=True, as_frame=True)
    explainer = LinearExplainer(LogisticRegression(max_iter=1000).fit(x, y), data=x)
    for cost in (Cost(squares=((x.columns[0], 1.0),)), Cost(l1=1.0, absolutes=(((x.columns[0], 1.0),),))):
        with pytest.raises(ProblemError, match="mix of the norms"):
            explainer.explain(x.iloc[[0]], 1, cost)


@pytest.mark.parametrize("how", ["raises", "answers"])
def test_another_solver_goes_on_where_one_errs(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = load_iris(return_X_y=True, as_frame=True)
    explainer = LinearExplainer(LogisticRegression(max_iter=1000).fit(x, y), data=x)
    (wanted,) = explainer.explain(x.iloc[[0]], 1, solver="scip")

    def solve(self: HighsSolver, *args: object, **settings: object) -> SolveResult:
        if how == "raises":
            raise SolverError("no licence")
        return SolveResult(Status.ERROR, solver="highs", message="no licence")

    monkeypatch.setattr(HighsSolver, "solve", solve)
    (e,) = explainer.explain(x.iloc[[0]], 1)
    assert (e.status, e.verified, e.proved_by) == ("optimal", True, "scip")
    assert e.cost == pytest.approx(wanted.cost, rel=1e-9)
    assert e.message == "highs failed (no licence); scip went on"
    assert e.method["solvers"] == ["highs", "scip"]
    (e,) = explainer.explain(x.iloc[[0]], 1, solver="highs")
    assert (e.status, e.message) == ("error", "no licence")  # who was asked for is not replaced


def optimum(problem: LinearProblem) -> float:
    """Cost of the cheapest point of a problem with one requirement, by enumeration.

    All levels of the discrete features, all sets of changed numeric ones; for each, the cheapest way to gain what is
    missing is a separable convex problem with one constraint: bisection on its multiplier.
    """
    space, cost = problem.space, problem.cost
    numeric = [i for i, f in enumerate(space.features) if not f.discrete]
    discrete = [i for i, f in enumerate(space.features) if f.discrete]
    best = np.inf
    for codes in itertools.product(*(range(len(space.features[i].levels)) for i in discrete)):
        price = sum(problem.value_costs[i][k] for i, k in zip(discrete, codes, strict=True))
        fixed = problem.at_origin(0) + sum(problem.tables[i][k, 0] for i, k in zip(discrete, codes, strict=True))
        for size in range(len(numeric) + 1):
            for changed in itertools.combinations(numeric, size):
                best = min(best, price + cheapest(problem, cost, list(changed), -fixed))
    return float(best)


def cheapest(problem: LinearProblem, cost: Cost, changed: list[int], missing: float) -> float:
    """Least cost of gaining `missing` by moving all of some numeric features in their useful direction."""
    gain, reach, weight = [], [], []
    for i in changed:
        feature, slope = problem.space.features[i], problem.slopes[0, i]
        low, high = feature.limits(problem.origin[i])
        up = slope > 0
        gain.append(abs(slope) * feature.scale)
        reach.append((high - problem.origin[i] if up else problem.origin[i] - low) / feature.scale)
        weight.append(feature.weight_up if up else feature.weight_down)
    gain, reach, weight = map(np.array, (gain, reach, weight))
    counted = float(cost.l0 * weight.sum()) if len(changed) else 0.0
    if missing <= 0:
        return counted
    if not len(changed) or gain @ reach < missing:
        return np.inf
    if cost.l2 == 0:
        total = counted
        for k in np.argsort(weight / gain):
            step = min(reach[k], missing / gain[k])
            total += cost.l1 * weight[k] * step
            missing -= step * gain[k]
        return total
    low, high = 0.0, 1e9

    def moves(multiplier: float) -> np.ndarray:
        return np.clip((multiplier * gain - cost.l1 * weight) / (2 * cost.l2 * weight), 0, reach)

    for _ in range(300):
        middle = (low + high) / 2
        low, high = (low, middle) if gain @ moves(middle) >= missing else (middle, high)
    d = moves(high)
    return counted + float(weight @ (cost.l1 * d + cost.l2 * d * d))


def random_case(seed: int) -> tuple[LinearExplainer, pd.DataFrame]:
    """A model on numeric, binary and categorical features, with some of them fixed, monotone or weighted."""
    rng = np.random.default_rng(seed)
    n = 60
    X = pd.DataFrame(
        {
            "a": rng.normal(5, 2, n),
            "b": rng.uniform(-1, 1, n),
            "c": rng.normal(0, 100, n),
            "flag": rng.integers(0, 2, n),
            "job": rng.choice(["x", "y", "z"], n),
        }
    )
    y = (X.a + 3 * X.b + X.c / 50 + X.flag + 2 * (X.job == "x") + rng.normal(0, 1, n)) > 6
    encode = ColumnTransformer(
        [("job", OneHotEncoder(sparse_output=False), ["job"]), ("scale", StandardScaler(), ["a", "b", "c"])],
        remainder="passthrough",
    )
    features = {
        "a": {"actionability": str(rng.choice(["free", "free", "increasing", "fixed"]))},
        "b": {"weight": [0.5, 2.0]},
    }
    model = make_pipeline(encode, LogisticRegression(C=10.0 ** float(rng.integers(-1, 2)))).fit(X, y)
    return LinearExplainer(model, X, features), X


@given(st.integers(0, 10_000), st.sampled_from(NORMS), st.sampled_from(["highs", "scip"]))
@settings(max_examples=15)
def test_optima_by_enumeration(seed, norm, solver):
    explainer, X = random_case(seed)
    row = X.iloc[[seed % len(X)]]
    found = explainer.explain(row, norm=norm, solver=solver)[0]
    origin = explainer.space.from_frame(row)[0]
    target = 1 - int(explainer.model.decide(row)[0])
    best = optimum(explainer.prepared.problem(origin, target, Cost.parse(norm), explainer.space))
    if np.isinf(best):
        assert found.status == "infeasible"
        return
    assert found.status == "optimal"
    assert found.verified
    assert found.cost == pytest.approx(best, rel=2e-9)
    assert found.decided != found.predicted


@pytest.mark.parametrize("norm", NORMS)
def test_solvers_agree_on_several_classes_and_nothing_sampled_is_cheaper(norm):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = make_pipeline(MinMaxScaler(), LogisticRegression()).fit(X, y)
    explainer = LinearExplainer(model, X)
    rows = X.iloc[[0, 60]]
    found = [explainer.explain(rows, target=2, norm=norm, solver=s) for s in ("highs", "scip")]
    cost = Cost.parse(norm)
    rng = np.random.default_rng(0)
    points = rng.uniform(X.min(), X.max(), (20000, 4))
    for first, second in zip(*found, strict=True):
        assert first.status == second.status == "optimal"
        assert first.verified
        assert second.verified
        assert first.cost == pytest.approx(second.cost, rel=2e-9)
        origin = explainer.space.from_frame(first.original)[0]
        mixed = np.where(rng.random(points.shape) < 0.5, origin, points)
        wins = mixed[model.predict(pd.DataFrame(mixed, columns=X.columns)) == 2]
        costs = sum(cost.of(f, origin[i], wins[:, i]) for i, f in enumerate(explainer.space.features))
        assert costs.min() >= first.cost * (1 - 1e-9)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), LinearSVC()),
        make_pipeline(StandardScaler(), SVC(kernel="linear")),
        make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
        make_pipeline(StandardScaler(), RidgeClassifier()),
        make_pipeline(LogisticRegression()),
        LogisticRegression(),
    ],
)
def test_the_users_own_model_flips_at_the_boundary_and_not_before(model):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X[y > 0], y[y > 0]
    explainer = explainer_for(model.fit(X, y), X)
    assert isinstance(explainer, LinearExplainer)
    for found in explainer.explain(X.iloc[::20]):
        assert found.status == "optimal"
        assert found.verified
        start, end = found.original, found.counterfactual
        before = end - (end - start) * 1e-7  # a ten-millionth of the way back
        assert model.predict(end)[0] == found.target
        assert model.predict(before)[0] == found.predicted
        if hasattr(model, "predict_proba"):
            assert [found.before, found.after] == [model.predict_proba(t)[0, found.target - 1] for t in (start, end)]
        else:
            assert found.before is None


@pytest.mark.parametrize("step", [None, 1.0, 0.7, 3.0, 50.0])
@pytest.mark.parametrize("end", [3000, 30000])
def test_grids_that_a_column_rounds_equal_enumeration(step: float | None, end: int) -> None:
    """Whole numbers of float16 are no longer one apart from 2,048 on; too many values to list leave a gap."""
    feature = Feature("a", "numeric" if step else "integer", step=step, dtype="float16")
    asked = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        a = feature.at_most(rng.uniform(end / 3, end / 3 + 120, 60) if seed % 2 else rng.uniform(0, end, 60))
        b = np.round(rng.uniform(0, 10, 60), 1)
        table = pd.DataFrame({"a": a.astype(np.float16), "b": b})
        total = table.to_numpy(float) @ (rng.normal(size=2) / [a.std(), b.std()])
        model = LogisticRegression().fit(table, total + rng.normal(size=60) * 0.3 > np.median(total))
        held = feature.between(a.min(), a.max()).tolist()
        lowest, highest = round(b.min() * 10), round(b.max() * 10)
        points = pd.DataFrame(itertools.product(held, np.arange(lowest, highest + 1) / 10), columns=["a", "b"])
        given = model.predict(points.astype({"a": np.float16}))
        explainer = LinearExplainer(model, table, features={"a": {"step": step or 1}, "b": {"step": 0.1}})
        for i in np.flatnonzero(~model.predict(table))[:2]:
            changes = np.abs(points.to_numpy() - table.iloc[i].to_numpy(float)) / [np.ptp(a), np.ptp(b)]
            best = changes.sum(axis=1)[given].min()
            (found,) = explainer.explain(table.iloc[[i]], True)
            assert found.verified
            assert found.counterfactual["a"].iloc[0] in held
            if len(held) < 300:
                assert (found.status, found.cost) == ("optimal", pytest.approx(best, rel=1e-9))
            else:
                assert found.bound <= best * (1 + 1e-9)
                assert best * (1 - 1e-9) <= found.cost <= best + 2e-3
            asked += 1
    assert asked == 8


def test_ends_of_a_permitted_range_are_on_the_grid() -> None:
    """Values too many to list are continuous to the solver, and rounded; 60.0005 is none of them."""
    rng = np.random.default_rng(0)
    a, b = np.round(rng.uniform(0, 100, 80), 3).astype(np.float32), np.round(rng.uniform(0, 10, 80), 1)
    table = pd.DataFrame({"a": a, "b": b})
    model = LogisticRegression(C=100).fit(table, a / 100 * 3 + b / 10 > 2)
    features = {"a": {"step": 0.0001, "permitted_range": (60.00005, 80.00005)}, "b": {"step": 0.1}}
    rejected = table[~model.predict(table)].iloc[:8]
    for found in LinearExplainer(model, table, features=features).explain(rejected, True):
        assert found.verified
        assert 60.0001 <= float(str(found.counterfactual["a"].iloc[0])) <= 80


def test_float32_tables_get_values_that_they_hold():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X[y > 0].astype("float32"), y[y > 0]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    for found in LinearExplainer(model, X).explain(X.iloc[::25]):
        assert found.verified
        assert found.gap < 1e-3
        assert found.status == "optimal" or "float32" in found.message
        assert "limit" not in found.message
        assert (found.counterfactual.dtypes == "float32").all()


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_grids_and_whole_numbers(solver):
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"count": rng.integers(0, 20, 50), "dose": rng.integers(0, 40, 50) / 4, "x": rng.normal(size=50)})
    y = X["count"] + 2 * X.dose > 18
    model = LogisticRegression().fit(X, y)
    explainer = LinearExplainer(model, X, {"dose": {"step": 0.25}, "x": {"actionability": "fixed"}})
    row = X[model.predict(X) == 0].iloc[[0]]
    found = explainer.explain(row, solver=solver)[0]
    grid = [
        (c, d, abs(c - row["count"].item()) / 19 + abs(d - row.dose.item()) / (X.dose.max() - X.dose.min()))
        for c in range(X["count"].min(), X["count"].max() + 1)
        for d in np.arange(X.dose.min(), X.dose.max() + 0.1, 0.25)
    ]
    table = pd.DataFrame({"count": [g[0] for g in grid], "dose": [g[1] for g in grid], "x": row.x.item()})
    best = min(g[2] for g, decided in zip(grid, model.predict(table), strict=True) if decided)
    assert found.status == "optimal"
    assert found.verified
    assert found.cost == pytest.approx(best, rel=1e-9)


def test_a_margin_a_permitted_range_and_a_row_that_is_there_already():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X[y > 0], y[y > 0]
    model = LinearSVC().fit(X, y)
    explainer = LinearExplainer(model, X)
    row = X[model.predict(X) == 1].iloc[[0]]
    plain, far = explainer.explain(row)[0], explainer.explain(row, margin=1.0)[0]
    assert plain.cost < far.cost
    assert model.decision_function(far.counterfactual)[0] == pytest.approx(1.0, abs=1e-9)
    assert explainer.explain(row, target=1)[0].proved_by == "origin"
    name = plain.changes.feature[0]
    kept = explainer.explain(row, features_to_vary=[c for c in X.columns if c != name])[0]
    assert kept.cost > plain.cost
    forced = explainer.explain(row, permitted_range={"sepal length (cm)": (7.5, 7.9)})[0]
    assert forced.verified
    assert forced.counterfactual["sepal length (cm)"].item() >= 7.5
    assert explainer.explain(row, features_to_vary=["sepal width (cm)"])[0].status in (
        "optimal",
        "infeasible",
    )


def test_processes_give_the_same():
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = LinearExplainer(LogisticRegression(max_iter=1000).fit(X, y), X)
    alone, together = (explainer.explain(X.iloc[:4], target=2, n_jobs=n) for n in (1, 2))
    assert [e.cost for e in alone] == [e.cost for e in together]


def test_a_category_that_no_row_has_is_left_out_as_for_trees():
    rng = np.random.default_rng(0)
    kinds = pd.Categorical(rng.choice(["z", "a"], 80), categories=["z", "a", "never"])
    X = pd.DataFrame({"kind": kinds, "x": rng.random(80)})
    y = ((X["kind"] == "z") & (X.x > 0.5)).astype(int)
    columns = ColumnTransformer([("kind", OneHotEncoder(), ["kind"])], remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(X, y)
    explainer = LinearExplainer(model, X)
    assert explainer.space.features[0].levels == ("z", "a")
    assert explainer.explain(X[model.predict(X) == 0].iloc[[0]], target=1)[0].status == "optimal"


def test_what_does_not_move_is_a_value_of_its_column_too() -> None:
    """Where no other change adds to the score, the solver's own point is rounded to what the column holds."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame({"a": rng.integers(-4, 5, 100), "b": rng.normal(size=100)})
        answers = (table.a * rng.normal() + table.b * rng.normal() + rng.normal(size=100) / 2 > 0).astype(int)
        model = LogisticRegression().fit(table, answers)
        row = table.iloc[[int(rng.integers(100))]]
        (e,) = LinearExplainer(model, data=table).explain(row, norm="l0", margin=0.3)
        assert e.verified, seed
        assert e.checks == ()


def test_what_is_refused():
    X, y = load_iris(return_X_y=True, as_frame=True)
    with pytest.raises(UnsupportedModelError, match="kernel='rbf' is not linear"):
        LinearExplainer(SVC().fit(X, y), X)
    with pytest.raises(UnsupportedModelError, match="lets pairs of classes vote"):
        LinearExplainer(SVC(kernel="linear").fit(X, y), X)
    with pytest.raises(ModelError, match="not fitted"):
        LinearExplainer(LogisticRegression(), X)
    calibrated = CalibratedClassifierCV(LogisticRegression(max_iter=1000))
    for other in (Ridge(), PoissonRegressor(), calibrated, DecisionTreeClassifier()):
        with pytest.raises(UnsupportedModelError, match="is no linear classifier: LogisticRegression"):
            LinearExplainer(other.fit(X, y), X)
    with pytest.raises(UnsupportedModelError, match="not of the form a x"):
        LinearExplainer(make_pipeline(FunctionTransformer(np.log), LogisticRegression()).fit(X, y), X)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    explainer = LinearExplainer(model, X)
    with pytest.raises(DataError, match="misses columns"):
        LinearExplainer(model, X.iloc[:, :3])
    with pytest.raises(DataError, match="does not take: more"):
        LinearExplainer(model, X.assign(more=1))
    with pytest.raises(ProblemError, match="take a weight, not a cost of its own: feature sepal width"):
        LinearExplainer(model, X, {"sepal width (cm)": {"cost": {"points": [[0, 0], [1, 2]]}}})
    with pytest.raises(DataError, match="give data"):
        LinearExplainer(model)
    with pytest.raises(DataError, match="missing values"):
        explainer.explain(X.iloc[:1].assign(**{"sepal width (cm)": np.nan}), target=1)
    with pytest.raises(ProblemError, match="needs two classes"):
        explainer.explain(X.iloc[:1])
    with pytest.raises(ProblemError, match="no class 7"):
        explainer.explain(X.iloc[:1], target=7)
    with pytest.raises(ProblemError, match="one of matrices: highs or scip"):
        explainer.explain(X.iloc[:1], target=1, solver="box")
    with pytest.raises(ProblemError, match="margin"):
        explainer.explain(X.iloc[:1], target=1, margin=-1)
    with pytest.raises(UnsupportedModelError, match=r"ocf\.LinearExplainer"):
        Explainer(model, X)


@pytest.mark.parametrize(
    "asked",
    [
        {"imputations": pd.DataFrame({"a": [1.0]})},
        {"missing": True},
        {"cuts": "root"},
        {"n_explanations": 2},
        {"n_optimal": 2},
        {"box": True},
        {"diagnose": True},
        {"plausibility": True},
        {"probability": 0.9},
        {"class_costs": {1: 2.0}},
        {"split_margin": 0.1},
        {"constraints": [MaxChanges(1)]},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_what_only_trees_have_is_refused_and_not_ignored(asked: dict[str, Any]) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = LinearExplainer(LogisticRegression(max_iter=1000).fit(X, y), X)
    (name,) = asked
    with pytest.raises(ProblemError, match=f"linear models take no {name}: leave that out"):
        explainer.explain(X.iloc[[0]], 1, **asked)


def test_settings_that_ask_for_nothing_and_the_margin_of_a_question_are_heeded() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = LinearExplainer(LogisticRegression(max_iter=1000).fit(X, y), X)
    plain, same, far = (
        explainer.asking.ask(X.iloc[[0]], Question(1, **asked))[0]
        for asked in (
            {},
            {"plausibility": False, "missing": False, "constraints": [], "reduce": False},
            {"margin": 1.0},
        )
    )
    assert plain.cost == same.cost
    assert far.cost == explainer.explain(X.iloc[[0]], 1, margin=1.0)[0].cost
    assert far.cost > plain.cost
    with pytest.raises(ProblemError, match="one number"):
        explainer.explain(X.iloc[[0]], 1, margin={X.columns[0]: 0.1})
    with pytest.raises(ProblemError, match="the formulation 'linear', not 'ocean'"):
        explainer.explain(X.iloc[[0]], 1, formulation="ocean")


def test_a_step_that_is_not_read_is_refused() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    labels = (table.a + table.b > 0).to_numpy(int)
    hole = FunctionTransformer(_hole)
    model = make_pipeline(hole, LogisticRegression()).fit(table, labels)
    row = table[labels == 0].iloc[[0]]
    with pytest.raises(UnsupportedModelError, match="functiontransformer"):
        LinearExplainer(model, table)
    assert LinearExplainer(model[-1], table).explain(row, target=1)[0].status == "optimal"


def _hole(table: pd.DataFrame) -> pd.DataFrame:
    return table.replace(99.0, 0.0)


@pytest.mark.parametrize(("low", "high", "at"), [(0, 22, 15), (0, 23, 13), (0, 39, 31), (3, 49, 32)])
@pytest.mark.parametrize("step", [1.0, 0.1])
def test_both_ends_of_a_grid_are_reached(low: int, high: int, at: int, step: float) -> None:
    """Ends that are told in units of the scale do not come back by it: 15 + 22 * (0 - 15) / 22 is above 0."""
    values = np.arange(low, high + 1) if step == 1 else np.round(np.arange(low, high + 1) * step, 1)
    table = pd.DataFrame({"n": np.tile(values, 6)})
    model = LogisticRegression().fit(table, table.n > values[at - low])
    row = pd.DataFrame({"n": [values[at - low]]})
    for end, beside, target in ((values[0], values[1], 0), (values[-1], values[-2], 1)):
        model.coef_, model.intercept_ = np.array([[1.0]]), np.array([-(end + beside) / 2])
        found = LinearExplainer(model, table, {} if step == 1 else {"n": {"step": step}}).explain(
            row, target=bool(target)
        )[0]
        assert found.status == "optimal"
        assert found.counterfactual is not None
        assert found.counterfactual.n.iloc[0] == end


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("norm", ["l0", "l1", "l2"])
@pytest.mark.parametrize("seed", range(3))
def test_ties_of_whole_numbers_and_levels_end_nothing(seed: int, norm: str, solver: str) -> None:
    """Where scores are sums of tenths many of them are 0, which no solver tells from a win: the model is asked."""
    rng = np.random.default_rng(seed)
    n_classes = 2 + seed % 2
    grid = pd.DataFrame(itertools.product(range(4), range(4), "abc"), columns=["n", "m", "c"])
    table = pd.concat([grid] * 3)
    encode = ColumnTransformer([("n", "passthrough", ["n", "m"]), ("c", OneHotEncoder(), ["c"])])
    model = make_pipeline(encode, LogisticRegression()).fit(table, np.arange(len(table)) % n_classes)
    n_rows = 1 if n_classes == 2 else n_classes
    model[-1].coef_ = rng.integers(-3, 4, (n_rows, 5)) / 10
    model[-1].intercept_ = rng.integers(-4, 5, n_rows) / 10
    row = grid.iloc[[int(rng.integers(len(grid)))]]
    target = int(rng.integers(n_classes))
    wins = np.concatenate([model.predict(grid.iloc[[i]]) for i in range(len(grid))]) == target
    far = np.column_stack([np.abs(grid[["n", "m"]] - row[["n", "m"]].to_numpy()) / 3, grid.c != row.c.iloc[0]])
    costs = {"l0": far > 0, "l1": far, "l2": far**2}[norm].astype(float).sum(axis=1)
    (found,) = LinearExplainer(model, table).explain(row, target=target, norm=norm, solver=solver)
    if wins.any():
        assert (found.status, found.verified) == ("optimal", True)
        assert found.cost == pytest.approx(costs[wins].min(), rel=1e-9)
    else:
        assert found.status == "infeasible"


def test_a_gap_that_a_tie_leaves_is_not_blamed_on_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocf.solve.linear_search.MOST_CHOICES", 1)
    grid = pd.DataFrame(itertools.product(range(4), range(4)), columns=["a", "b"])
    table = pd.concat([grid] * 8)
    model = LogisticRegression().fit(table, table.a > 1)
    model.coef_, model.intercept_ = np.array([[0.2, 0.1]]), np.array([-0.4])
    (found,) = LinearExplainer(model, table).explain(pd.DataFrame({"a": [1], "b": [0]}), target=True)
    assert (found.status, found.verified) == ("feasible", True)  # a win by more than a tolerance
    assert found.bound == pytest.approx(1 / 3)
    assert found.message.startswith("rounding")
    assert "time limit" not in found.message


@pytest.mark.parametrize("action", ["decreasing", "fixed"])
def test_wishes_that_leave_no_value_are_infeasible(action: str) -> None:
    table = pd.DataFrame(itertools.product(range(6), range(6)), columns=["a", "b"])
    model = LogisticRegression().fit(table, table.a + table.b > 5)
    explainer = LinearExplainer(model, table, {"a": {"actionability": action}})
    (found,) = explainer.explain(table.iloc[[0]], target=True, permitted_range={"a": (1, 5)})
    assert (found.status, found.proved_by) == ("infeasible", "reduction")


def test_a_class_named_opposite_is_named_in_a_list() -> None:
    table = pd.DataFrame({"a": [0.0, 1, 2, 3] * 5})
    explainer = LinearExplainer(LogisticRegression().fit(table, np.where(table.a > 1.5, "opposite", "other")), table)
    for wish in ({}, {"target": "opposite"}):
        with pytest.raises(ProblemError, match=r"a class is named 'opposite'.* target=\['opposite'\]"):
            explainer.explain(table.iloc[[0]], **wish)
    (found,) = explainer.explain(table.iloc[[0]], target=["opposite"])
    assert (found.target, found.status) == ("opposite", "optimal")
    assert explainer.explain(table.iloc[[3]], target="other")[0].status == "optimal"
    with pytest.raises(ProblemError, match="the target is one class here, not 2"):
        explainer.explain(table.iloc[[0]], target=["opposite", "other"])


@pytest.mark.parametrize("seed", range(15))
def test_whole_numbers_a_few_units_short_within_huge_ranges(seed: int) -> None:
    """The row stands in the middle of ranges of up to 1e9, and a few units one way or another win."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(1, 10, 2)
    middle, weights = np.floor(scale / 2), rng.choice([-3.0, -2, -1, 1, 2, 3], 2)
    short = float(rng.integers(1, 6)) - 0.5
    table = pd.DataFrame([[0.0, 0.0], scale, *[middle] * 3], columns=["x", "y"]).astype("int64")
    model = LogisticRegression().fit(table / scale, [0, 1, 0, 1, 0])
    model.coef_, model.intercept_ = weights[None], np.array([-(weights @ middle + short)])
    moves = np.array(list(itertools.product(range(-8, 9), repeat=2)), float)
    moves = moves[(np.abs(moves) <= scale / 2).all(axis=1) & (moves @ weights > short)]
    explainer = LinearExplainer(model, table)
    for norm, power in (("l0", 0), ("l1", 1), ("l2", 2)):
        costs = np.where(moves != 0, np.abs(moves / scale) ** power, 0.0).sum(axis=1)
        (found,) = explainer.explain(table.iloc[[2]], target=1, norm=norm)
        assert (found.status, found.verified) == ("optimal", True)
        assert found.cost == pytest.approx(costs.min(), rel=1e-9, abs=0)


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_the_nearer_end_of_a_range_that_leaves_the_row_out(solver: str) -> None:
    """Presolve once cut it off: its bound stood twice, as a row of rounded coefficients and as that of the steps."""
    for seed in range(0, 40, 2):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame({"a": rng.integers(-3, 7, 60), "b": rng.choice([1, 2, 5, 9], 60)})
        table.loc[0, "a"], table.loc[1, "a"] = -3, 6
        table.loc[2:5, "b"] = [1, 2, 5, 9]
        y = ((table.a + 3) * rng.random() + table.b * rng.random() > 4).astype(int)
        row, low = table.iloc[[int(rng.integers(60))]], int(rng.integers(-3, 6))
        a, b = row.iloc[0]
        if y.nunique() < 2:
            continue
        model = LogisticRegression().fit(table, y)
        target = 1 - int(model.predict(row)[0])
        points = pd.DataFrame([(u, v) for u in (low, low + 1) for v in (1, 2, 5, 9)], columns=["a", "b"])
        points = points[model.predict(points) == target]
        if low <= a <= low + 1 or not len(points):
            continue
        wanted = (((points.a - a) / 9) ** 2 + ((points.b - b) / 8) ** 2).min()
        features = {"a": {"permitted_range": (low, low + 1)}, "b": {"kind": "ordinal"}}
        found = LinearExplainer(model, table, features).explain(row, target, norm="l2", solver=solver)[0]
        assert found.status == "optimal"
        assert found.cost == pytest.approx(wanted, abs=1e-9), seed


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("action", ["free", "increasing", "decreasing"])
def test_a_value_off_its_grid_at_an_end_of_its_limits_may_stay(solver: str, action: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame({"a": rng.integers(0, 98, 120), "b": rng.integers(0, 98, 120)})
        table.loc[0] = [97, 3] if action != "increasing" else [5, 3]
        model = LogisticRegression(max_iter=1000).fit(table, (table.b * rng.random() - 0.5 * table.a > -10).astype(int))
        row = table.iloc[[0]]
        if model.predict(row)[0] == 1:
            continue
        a, b = row.iloc[0]
        spans = (table.max() - table.min()).to_numpy()
        first = a if action == "increasing" else table.a.min()
        last = a if action == "decreasing" else table.a.max()
        values = [v for v in (*range(0, 98, 10), a) if first <= v <= last]
        points = pd.DataFrame(itertools.product(values, [*range(10, 91, 10), b]), columns=["a", "b"])
        points = points[model.predict(points) == 1]
        found = LinearExplainer(model, table, {"a": {"actionability": action, "weight": 9.0}}).explain(
            row, 1, round_to=1, solver=solver
        )[0]
        costs = (np.abs(points - [a, b]) / spans * [9.0, 1.0]).sum(axis=1)
        wanted = costs.min() if len(points) else None
        assert (found.status, found.cost) == (
            ("infeasible", None) if wanted is None else ("optimal", pytest.approx(wanted, abs=1e-9))
        ), seed


def test_a_copy_from_another_process_knows_the_order_of_the_columns() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(100, 3)).round(2) * [1, 5, 20], columns=list("abc"))
    model = LogisticRegression().fit(table.to_numpy(), table.a + 0.3 * table.b - 0.05 * table.c > 0)
    explainer = LinearExplainer(model, table)
    rows = table.iloc[:10][list("cab")]
    first, second = explainer.explain(rows), pickle.loads(pickle.dumps(explainer)).explain(rows)
    assert [(e.status, e.verified, e.cost) for e in second] == [(e.status, e.verified, e.cost) for e in first]
    assert all(e.verified for e in second)


def test_answers_hold_in_a_table_of_others_too() -> None:
    """NumPy adds up many rows in another order than one, which a point at the very boundary would not survive."""
    answers = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame({"a": rng.normal(size=40).round(2), "k": rng.integers(0, 7, 40)})
        y = (table.a + table.k / 4 + rng.normal(size=40) * 0.4 > 0.7).astype(int)
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, y)
        found = LinearExplainer(model, data=table).explain(table)
        wanted = 1 - model.predict(table)
        points = pd.concat([answer.counterfactual for answer in found])
        assert (model.predict(points) == wanted).all()
        answers += len(points)
    assert answers == 320

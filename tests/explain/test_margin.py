"""Across files: answers that stand off the thresholds that they pass, against enumeration by the user's own trees."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, Explanation, Explanations
from ocf.errors import ProblemError
from ocf.problem.constraints import MaxChanges
from ocf.problem.problem import Problem
from ocf.verify.files import verify_file

RNG = np.random.default_rng(0)

DATA = pd.DataFrame({"a": RNG.normal(size=120), "b": RNG.normal(20, 6, 120), "c": RNG.integers(0, 12, 120)})

SCALE = DATA.max() - DATA.min()

WAYS = [("interval", "box"), ("interval", "highs"), ("ocean", "scip"), ("oae", "highs"), ("fcca", "scip")]


def forest(seed: int) -> RandomForestClassifier:
    score = (DATA / SCALE).sum(axis=1) + np.random.default_rng(seed).normal(0, 0.2, 120)
    model = RandomForestClassifier(4, max_depth=2, random_state=seed)
    return model.fit(DATA, (score > score.quantile(0.7)).astype(int))


def thresholds(model: Any, feature: int) -> list[float]:
    """The largest float64 that each split of a feature sends left: trees see float32."""
    found = []
    for tree in (e.tree_ for e in model.estimators_):
        for t in tree.threshold[tree.feature == feature]:
            low = np.float32(t) if np.float32(t) <= t else np.nextafter(np.float32(t), np.float32(-np.inf))
            high = np.nextafter(low, np.float32(np.inf))
            # halfway between two float32 numbers the even one is the nearer
            middle = (float(low) + float(high)) / 2
            found.append(middle if np.float32(middle) == low else float(np.nextafter(middle, -np.inf)))
    return found


def shown(model: Any, feature: int) -> list[float]:
    """The thresholds of a feature, as the library shows them."""
    return [t for e in model.estimators_ for t in e.tree_.threshold[e.tree_.feature == feature]]


def cheapest(model: Any, row: pd.DataFrame, margins: dict[str, float], norm: str) -> float:
    """Cost of the cheapest point whose leaves all stay when changed values fall short by less than their margins."""
    origin, values = row.iloc[0].astype(float), []
    for i, name in enumerate(DATA.columns):
        own, m = [origin[name]], margins.get(name, 0.0)
        for b in shown(model, i) if name == "c" and m else thresholds(model, i):
            up, down = (max(np.nextafter(b, np.inf), b + m), b - m) if m else (np.nextafter(b, np.inf), b)
            own.append(up if b >= origin[name] else down)
        own = [np.ceil(v) if v > origin[name] else np.floor(v) for v in own] if name == "c" else own
        values.append(np.unique([v for v in own if DATA[name].min() <= v <= DATA[name].max() or v == origin[name]]))
    points = pd.DataFrame(list(itertools.product(*values)), columns=DATA.columns)
    short = points.copy()
    for name, m in margins.items():
        less = np.ceil(m) - 1 if name == "c" else m * (1 - 1e-9)  # whole numbers fall short by whole numbers
        back = (points[name] - origin[name]).abs().clip(upper=less)
        short[name] = points[name] - np.sign(points[name] - origin[name]) * back
    held = (model.apply(points) == model.apply(short)).all(axis=1) & (model.predict(points) == 1)
    change = (points - origin).abs() / SCALE
    cost = {"l0": change > 0, "l1": change, "l2": change**2}[norm].sum(axis=1)
    return float(cost[held].min())


@pytest.mark.parametrize(("formulation", "solver"), WAYS)
@pytest.mark.parametrize("reduce", [True, False])
def test_the_answer_is_the_cheapest_that_stands_off(formulation: str, solver: str, reduce: bool) -> None:
    dearer = 0
    for seed, norm in enumerate(("l1", "l2", "l0")):
        model = forest(seed)
        explainer = Explainer(model, data=DATA)
        rows = DATA[model.predict(DATA) == 0].iloc[:3]
        asked: dict[str, Any] = {"formulation": formulation, "solver": solver, "reduce": reduce}
        for margin, absolute in (
            (0.03, {name: 0.03 * SCALE[name] for name in DATA.columns}),
            ({"b": 1.0, "c": 1.5}, {"b": 1.0, "c": 1.5}),
        ):
            for e in explainer.explain(rows, 1, norm, margin=margin, **asked):
                assert (e.status, e.verified) == ("optimal", True), e.checks
                assert e.cost == pytest.approx(cheapest(model, e.original, absolute, norm), rel=1e-6)
                dearer += e.cost > cheapest(model, e.original, {}, norm) * (1 + 1e-6)
    assert dearer > 3


@pytest.mark.parametrize("norm", ["mahalanobis", "mahalanobis_l1", {"mahalanobis": 1, "l1": 1}], ids=str)
def test_costs_that_couple_features_stand_off_as_well(norm: Any) -> None:
    """Points on the way back from rows of the data are judged by the user's model, which knows no margins."""
    table, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    table = table.iloc[:, :4]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, classes)
    rows, explainer = table[classes == 0].iloc[[0, 5, 9]], Explainer(model, table)
    wanted = explainer.explain(rows, 1, norm, margin=0.05, reduce=False)
    for own, e in zip(wanted, explainer.explain(rows, 1, norm, margin=0.05), strict=True):
        assert (e.status, e.verified, e.cost) == ("optimal", True, pytest.approx(own.cost, rel=1e-6))


def test_with_constraints_and_several_answers() -> None:
    model = forest(0)
    rows = DATA[model.predict(DATA) == 0].iloc[:2]
    explainer = Explainer(model, data=DATA)
    asked: dict[str, Any] = {"margin": 0.02, "constraints": MaxChanges(2), "n_explanations": 3}
    for diversity, answers in (("features", 2), ("region", 6)):
        found = explainer.explain(rows, 1, diversity=diversity, **asked)
        assert all(e.verified for e in found)
        assert len({(e.row, round(e.cost, 9)) for e in found}) == answers
        again = explainer.explain(rows, 1, diversity=diversity, solver="scip", **asked)
        assert [e.cost for e in found] == pytest.approx([e.cost for e in again])


def test_codes_and_missing_values_are_no_way_to_go() -> None:
    table = DATA.assign(b=DATA.b.where(DATA.index % 5 > 0, -9.0))
    model = forest(0).fit(table, (table.b > 20).astype(int))
    rows = table[(model.predict(table) == 0) & (table.b == -9)].iloc[:3]
    explainer = Explainer(model, data=table, special_values={"b": [-9.0]})
    found = explainer.explain(rows, 1, margin=0.03, missing={"cost_of_supplying": 0.01})
    assert all(e.verified for e in found), [e.checks for e in found]
    assert all("b" in set(e.changes.feature) for e in found)


def test_regressors() -> None:
    value = DATA.a * 3 + DATA.b
    model = RandomForestRegressor(4, max_depth=3, random_state=0).fit(DATA, value)
    (e,) = Explainer(model, data=DATA).explain(DATA.iloc[[0]], (30, None), margin={"a": 0.1, "b": 0.1})
    assert (e.status, e.verified) == ("optimal", True), e.checks


def test_an_answer_on_the_threshold_is_not_verified(tmp_path: Path) -> None:
    model = forest(0)
    explainer = Explainer(model, data=DATA)
    row = DATA[model.predict(DATA) == 0].iloc[[0]]
    plain, off = explainer.explain(row, 1)[0], explainer.explain(row, 1, margin=0.03)[0]
    assert off.margins == pytest.approx({name: 0.03 * SCALE[name] for name in DATA.columns})
    assert Explanation.from_json(off.to_json()).margins == off.margins
    path = tmp_path / "answers.json"
    for e, sound in ((off, True), (plain, False)):
        path.write_text(json.dumps(e.to_dict() | {"margins": off.margins}))
        (found,) = verify_file(path, explainer.model)
        assert found[1].ok == sound
        assert sound or "short by 0.5 of the margin" in found[1].problems[0]
    assert Explanations.from_json(Explanations([off]).to_json())[0] == off


def test_problems_keep_it() -> None:
    model = forest(0)
    explainer = Explainer(model, data=DATA)
    row = DATA[model.predict(DATA) == 0].iloc[[0]]
    problem = explainer.problem(row, 1, margin={"b": 1.0})
    again = Problem.from_json(problem.to_json())
    assert again.margins == problem.margins == (("b", 1.0),)
    assert again.dead == problem.dead
    assert again.to_json() == problem.to_json()
    damaged = json.loads(problem.to_json()) | {"dead": [10**6]}
    with pytest.raises(ProblemError, match="dead leaf"):
        Problem.from_json(json.dumps(damaged))


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        (-1, "at least 0"),
        ({"b": "wide"}, "at least 0"),
        ({"d": 1.0}, "'d'"),
        (np.inf, "at least 0"),
        (True, "at least"),
    ],
)
def test_what_is_no_margin(margin: Any, words: str) -> None:
    explainer = Explainer(forest(0), data=DATA)
    with pytest.raises(Exception, match=words):
        explainer.explain(DATA.iloc[[0]], margin=margin)


@pytest.mark.parametrize("library", ["scikit-learn", "xgboost", "lightgbm"])
@pytest.mark.parametrize("size", [0.5, 1, 1.5, 2])
def test_whole_numbers_count_from_the_threshold_itself(library: str, size: float) -> None:
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    made = {
        "scikit-learn": RandomForestClassifier(3, max_depth=3, random_state=0),
        "xgboost": XGBClassifier(n_estimators=3, max_depth=3, random_state=0),
        "lightgbm": LGBMClassifier(n_estimators=3, max_depth=3, min_child_samples=2, verbose=-1),
    }
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"n": rng.integers(0, 12, 90), "m": rng.integers(0, 12, 90)})
    model = made[library].fit(data, ((data.n + data.m + rng.normal(0, 2, 90)) > 12).astype(int))
    answers = model.predict(pd.MultiIndex.from_product([range(12), range(12)], names=["n", "m"]).to_frame())
    grid = answers.reshape(12, 12)
    short = int(np.ceil(size)) - 1  # whole numbers that fall short by less
    explainer = Explainer(model, data)
    for place in range(10):
        n, m = (int(v) for v in data.iloc[place])
        target = 1 - int(grid[n, m])

        def held(i: int, j: int, n: int = n, m: int = m, target: int = target) -> bool:
            """Whether all whole numbers that fall short by less have the target."""
            back = [
                max(i - short, n) if i > n else min(i + short, n),
                max(j - short, m) if j > m else min(j + short, m),
            ]
            box = grid[min(i, back[0]) : max(i, back[0]) + 1, min(j, back[1]) : max(j, back[1]) + 1]
            return bool((box == target).all())

        costs = [abs(i - n) + abs(j - m) for i, j in itertools.product(range(12), range(12)) if held(i, j)]
        found = explainer.explain(data.iloc[[place]], target=target, margin={"n": size, "m": size})[0]
        assert found.status in ("optimal", "infeasible")
        if found.counterfactual is not None:
            assert held(*found.counterfactual.iloc[0].astype(int))
            assert found.cost >= min(costs) / 11 - 1e-9  # leaves may part where answers do not


def test_half_a_unit_is_half_a_unit() -> None:
    data = pd.DataFrame({"n": np.arange(12).repeat(4)})
    model = RandomForestClassifier(1, bootstrap=False, max_depth=1, random_state=0).fit(data, (data.n > 3).astype(int))
    assert model.estimators_[0].tree_.threshold[0] == 3.5
    up, down = data.iloc[[0]], data.iloc[[-1]]
    for size, above, below in ((0.5, 4, 3), (0.6, 5, 2), (1.5, 5, 2)):
        asked = {"margin": {"n": size}, "box": True}
        explainer = Explainer(model, data)
        higher, lower = (explainer.explain(row, **asked)[0] for row in (up, down))
        assert (higher.counterfactual.n.iloc[0], lower.counterfactual.n.iloc[0]) == (above, below)
        assert (higher.box["ranges"]["n"]["lowest"], lower.box["ranges"]["n"]["highest"]) == (4, 3)


@pytest.mark.parametrize("steps", [StandardScaler(), MinMaxScaler((-3, 5))])
def test_whole_numbers_behind_steps_count_from_where_the_threshold_lies(steps: Any) -> None:
    """The same trees without the steps give the same answers: their splits part the same rows halfway."""
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"n": rng.integers(0, 40, 150), "m": rng.integers(-3, 9, 150)})
    wanted = (data.n + 3 * data.m + rng.normal(0, 3, 150) > 30).astype(int)
    tree = DecisionTreeClassifier(max_depth=5, random_state=0)
    bare, behind = clone(tree).fit(data, wanted), make_pipeline(steps, tree).fit(data, wanted)
    grid = pd.DataFrame(itertools.product(range(40), range(-3, 9)), columns=["n", "m"])
    assert (bare.predict(grid) == behind.predict(grid)).all()
    for size in (0.3, 0.5, 1.0, 2.5):
        asked = {"margin": {"n": size, "m": size}}
        found, wanted_ = (Explainer(model, data).explain(data.iloc[:12], **asked) for model in (behind, bare))
        assert [(e.status, e.cost) for e in found] == [(e.status, pytest.approx(e.cost)) for e in wanted_]
        assert all(e.verified or e.counterfactual is None for e in found)


@pytest.mark.parametrize("function", [np.log1p, np.negative])
def test_columns_that_bend_or_fall_have_their_threshold_between_the_same_whole_numbers(function: Any) -> None:
    data = pd.DataFrame({"n": np.repeat(np.arange(11), 10)})
    model = make_pipeline(FunctionTransformer(function), DecisionTreeClassifier()).fit(data, data.n > 5)
    explainer = Explainer(model, data)
    for row, size, answer in ((2, 0.5, 6), (2, 1.0, 7), (9, 0.3, 5), (9, 1.0, 4)):
        (e,) = explainer.explain(pd.DataFrame({"n": [row]}), margin={"n": size})
        assert (e.status, e.counterfactual.n.iloc[0]) == ("optimal", answer)


@pytest.mark.parametrize("base", [2**19, 2**21, 3_000_000, 5_000_000, 10_000_000, 14_000_000])
@pytest.mark.parametrize("size", [0.5, 1, 2])
def test_large_whole_numbers_stand_off_as_well(base: int, size: float) -> None:
    data = pd.DataFrame({"n": base + np.random.default_rng(base).integers(0, 40, 60)})
    model = RandomForestClassifier(1, bootstrap=False, random_state=0).fit(data, (data.n > base + 17).astype(int))
    threshold = model.estimators_[0].tree_.threshold[0]
    for row in (data[data.n == data.n.min()].head(1), data[data.n == data.n.max()].head(1)):
        found = Explainer(model, data).explain(row, margin={"n": size})[0]
        assert found.verified
        new = int(found.counterfactual.n.iloc[0])
        if base < 2**20:
            assert size <= abs(new - threshold) <= size + 0.5
        else:  # float32 has few numbers there: it is the model itself that must not change its mind
            short = new + np.sign(row.n.iloc[0] - new) * 0.999 * size
            assert model.predict(pd.DataFrame({"n": [short]}))[0] == found.target
            assert abs(new - threshold) <= size + 1.5

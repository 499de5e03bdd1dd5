"""Across files: stacks whose final model adds up numbers of the table, against an LP in each box of the members."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from ocf import Explainer, Problem
from ocf.errors import DataError, UnsupportedModelError
from ocf.readers import read_model
from ocf.trees.ensemble import Ensemble

FOREST = RandomForestClassifier(3, max_depth=2, random_state=0)
BOOSTING = GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0)
VALUES = RandomForestRegressor(3, max_depth=2, random_state=0)
NUMBERS = ["a", "b"]


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(
        {"a": rng.normal(size=80).round(1), "b": rng.normal(size=80).round(2), "c": rng.integers(0, 3, 80)}
    )
    return x, (x["a"] + x["b"] * (x["c"] - 1) + rng.normal(size=80) / 3).to_numpy()


def cuts(members: list[Any], column: int) -> list[float]:
    """Thresholds of a column in the trees of members."""
    trees = [tree.tree_ for member in members for tree in np.ravel(member.estimators_)]
    return sorted({float(t) for tree in trees for t in tree.threshold[tree.feature == column]})


def least(stack: Any, ask: Any, x: pd.DataFrame, row: pd.Series, level: float, sign: float = 1.0) -> float:
    """Cost by l1 of the cheapest change with ``sign * ask >= level``: in each box of the members it is a line."""
    scale, best = x.max() - x.min(), math.inf
    slopes = sign * np.ravel(stack.final_estimator_.coef_)[-3:]
    ends = [np.r_[x[name].min(), cuts(stack.estimators_, j), x[name].max()] for j, name in enumerate(NUMBERS)]
    boxes = list(itertools.product(*(zip(np.sort(e)[:-1], np.sort(e)[1:], strict=True) for e in ends), range(3)))
    middles = pd.DataFrame([[(a[0] + a[1]) / 2, (b[0] + b[1]) / 2, c] for a, b, c in boxes], columns=[*NUMBERS, "c"])
    levels = sign * ask(middles.astype(x.dtypes)) - middles.to_numpy() @ slopes
    rates = np.array([1 / scale[name] for name in NUMBERS])
    for (*box, c), constant in zip(boxes, levels, strict=True):
        # the numbers' rises, then their falls
        need = level - constant - slopes[:2] @ row[NUMBERS].to_numpy(float) - slopes[2] * c
        box_rows = np.vstack([np.hstack([np.eye(2), -np.eye(2)]), np.hstack([-np.eye(2), np.eye(2)])])
        sides = [high - row[n] for n, (_, high) in zip(NUMBERS, box, strict=True)]
        sides += [row[n] - low for n, (low, _) in zip(NUMBERS, box, strict=True)]
        found = linprog(
            np.r_[rates, rates],
            np.vstack([box_rows, np.r_[-slopes[:2], slopes[:2]]]),
            [*sides, -need],
            bounds=(0, None),
        )
        if found.status == 0:
            best = min(best, float(found.fun) + abs(row["c"] - c) / scale["c"])
    return best


def agree(found: Any, best: float) -> None:
    if math.isinf(best):
        assert found.status == "infeasible", found
        return
    assert (found.status, found.verified) == ("optimal", True), (found, found.message, found.checks)
    assert found.cost == pytest.approx(best, rel=1e-6, abs=1e-6)


STACKS = {
    "a forest": StackingClassifier([("a", FOREST)], cv=2, passthrough=True),
    "a forest and boosting": StackingClassifier([("a", FOREST), ("b", BOOSTING)], cv=2, passthrough=True),
    "under a ridge": StackingClassifier([("a", FOREST)], RidgeClassifier(), cv=2, passthrough=True),
}


@pytest.mark.parametrize("name", STACKS)
def test_the_cheapest_change_into_a_class(name: str) -> None:
    x, y = table()
    model = STACKS[name].fit(x, y > 0)
    explainer = Explainer(model, x)
    crossed = 0
    for k in range(4):
        row, sign = x.iloc[k], -1.0 if model.predict(x.iloc[[k]])[0] else 1.0
        found = explainer.explain(x.iloc[[k]], "opposite", progress=False)[0]
        agree(found, least(model, model.decision_function, x, row, 0.0, sign))
        at = abs(float(model.decision_function(found.counterfactual.astype(float))[0]))
        crossed += at < 1e-9
    assert crossed, "every answer lies beyond a threshold, so that no line was ever met"


def test_a_probability_and_any_of_several() -> None:
    x, y = table()
    model = STACKS["a forest and boosting"].fit(x, y > 0)
    explainer = Explainer(model, x)
    row = x.iloc[int(np.argmin(model.decision_function(x)))]
    odds = math.log(0.8 / 0.2)
    best = least(model, model.decision_function, x, row, odds)
    found = explainer.explain(row.to_frame().T.astype(x.dtypes), True, probability=0.8, progress=False)[0]
    agree(found, best)
    assert model.predict_proba(found.counterfactual)[0, 1] >= 0.8
    other = least(model, model.decision_function, x, row, odds, -1.0)
    either = explainer.explain(row.to_frame().T.astype(x.dtypes), [False, True], probability=0.8, progress=False)[0]
    agree(either, min(best, other))
    assert explainer.explain(x.iloc[[0]], [False, True], progress=False)[0].cost == 0


def test_values_between_bounds() -> None:
    x, y = table()
    model = StackingRegressor([("a", VALUES)], cv=2, passthrough=True).fit(x, y)
    explainer = Explainer(model, x)
    for k in range(3):
        value = float(model.predict(x.iloc[[k]])[0])
        found = explainer.explain(x.iloc[[k]], (value + 0.4, None), progress=False)[0]
        agree(found, least(model, model.predict, x, x.iloc[k], value + 0.4))
        between = explainer.explain(x.iloc[[k]], (value + 0.4, value + 0.41), progress=False)[0]
        assert between.status == "optimal"
        assert between.cost >= found.cost * (1 - 1e-9)
        assert value + 0.4 <= model.predict(between.counterfactual)[0] <= value + 0.41
    assert explainer.explain(x.iloc[[0]], (1e6, None), progress=False)[0].status == "infeasible"


def test_behind_steps_the_line_is_one_of_the_users_columns() -> None:
    x, y = table()
    x = x.assign(c=np.array(["u", "v", "w"])[x["c"]])
    steps = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), ["c"]))
    model = make_pipeline(steps, StackingClassifier([("a", FOREST)], cv=2, passthrough=True)).fit(x, y > 0)
    explainer = Explainer(model, x)
    row = x.iloc[[0]]
    found = explainer.explain(row, "opposite", progress=False)[0]
    assert (found.status, found.verified) == ("optimal", True)
    step = (x[NUMBERS].max() - x[NUMBERS].min()) * found.cost
    # no change of numbers alone, by the same cost less a hundredth, meets the target
    shares = np.linspace(-1, 1, 401)
    around = pd.DataFrame({"a": row["a"].iloc[0] + step["a"] * shares, "b": row["b"].iloc[0]})
    for part, sign in itertools.product((0.99, 0.5), (-1, 1)):
        grid = around.assign(a=row["a"].iloc[0] + part * step["a"] * shares)
        grid["b"] = row["b"].iloc[0] + sign * part * step["b"] * (1 - np.abs(shares))
        assert (model.predict(grid.assign(c=row["c"].iloc[0])) == model.predict(row)[0]).all()


def test_constraints_plausibility_and_a_second_solver() -> None:
    x, y = table()
    explainer = Explainer(STACKS["a forest"].fit(x, y > 0), x)
    row = x.iloc[[1]]
    free = explainer.explain(row, "opposite", cross_check=True, progress=False)[0]
    assert (free.status, free.verified) == ("optimal", True)
    most = [{"kind": "max_changes", "most": 1}]
    single = explainer.explain(row, "opposite", constraints=most, progress=False)[0]
    assert len(single.changes) == 1
    assert single.cost >= free.cost * (1 - 1e-9)
    deep = explainer.explain(row, "opposite", plausibility={"trees": 5, "samples": 16}, progress=False)[0]
    assert deep.verified
    assert deep.status == "infeasible" or deep.cost >= free.cost * (1 - 1e-9)
    problem = free.problem
    again = Problem.from_json(problem.to_json())
    assert again.to_json() == problem.to_json()


def test_the_reading_survives_files_and_is_refused_where_it_is_none() -> None:
    x, y = table()
    ensemble = read_model(STACKS["a forest"].fit(x, y > 0)).ensemble
    again = Ensemble.from_dict(json.loads(json.dumps(ensemble.to_dict())))
    np.testing.assert_array_equal(again.scores(x.to_numpy(float)), ensemble.scores(x.to_numpy(float)))
    for lines in ([[0, 0]], [[99, 0]], [[3, 9]]):
        broken = ensemble.to_dict()
        broken["lines"] = {"dtype": "int64", "shape": [1, 2], "data": lines[0]}
        with pytest.raises(Exception, match="line"):
            Ensemble.from_dict(broken)
    several = StackingClassifier([("a", FOREST)], cv=2, passthrough=True).fit(x, np.digitize(y, [-0.5, 0.5]))
    with pytest.raises(UnsupportedModelError, match=r"two classes alone.*passthrough=False"):
        read_model(several)
    narrow = StackingClassifier([("a", FOREST)], LogisticRegression(), cv=2, passthrough=True).fit(x, y > 0)
    narrow.final_estimator_.coef_ = narrow.final_estimator_.coef_.astype(np.float32)
    with pytest.raises(UnsupportedModelError, match="fit it on float64"):
        read_model(narrow)


def test_a_stack_in_a_vote_of_values_is_read_and_two_are_refused() -> None:
    x, y = table()
    stack = StackingRegressor([("a", VALUES)], Ridge(), cv=2, passthrough=True)
    vote = VotingRegressor([("s", stack), ("v", VALUES)]).fit(x, y)
    value = float(vote.predict(x.iloc[[0]])[0])
    found = Explainer(vote, x).explain(x.iloc[[0]], (value + 0.3, None), progress=False)[0]
    assert (found.status, found.verified) == ("optimal", True)
    assert vote.predict(found.counterfactual.astype(float))[0] == pytest.approx(value + 0.3, abs=1e-9)
    two = VotingRegressor([("s", stack), ("t", stack)]).fit(x, y)
    with pytest.raises(UnsupportedModelError, match=r"holds 2 stacks with passthrough=True.*fit them with"):
        read_model(two)


def test_a_final_model_that_weighs_no_number_has_no_line() -> None:
    x, y = table()
    model = StackingRegressor([("a", VALUES)], Lasso(alpha=10.0), cv=2, passthrough=True).fit(x, y)
    assert not len(read_model(model).ensemble.lines)
    found = Explainer(model, x).explain(x.iloc[[0]], (1e6, None), progress=False)[0]
    assert found.status == "infeasible"


def test_whole_numbers_behind_a_scaler() -> None:
    x, y = table()
    model = make_pipeline(MinMaxScaler(), clone(STACKS["a forest"])).fit(x.abs(), y > 0)
    found = Explainer(model, x.abs()).explain(x.abs().iloc[[0]], "opposite", progress=False)[0]
    assert (found.status, found.verified) == ("optimal", True)


def test_a_line_needs_ends() -> None:
    x, y = table()
    explainer = Explainer(
        STACKS["a forest"].fit(x, y > 0), x, features={"a": {"bounds": [-math.inf, math.inf], "scale": 1.0}}
    )
    with pytest.raises(DataError, match="finite bounds"):
        explainer.problem(x.iloc[[0]], "opposite")

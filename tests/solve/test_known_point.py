"""Answers that a limit leaves without a point, and the rows of the data in their place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from ocf import Explainer, Linear, MaxChanges
from ocf.solve.known_point import with_known_point
from ocf.solve.outcome import Outcome
from ocf.solvers.result import Status

UNKNOWN = Outcome(Status.UNKNOWN, None, None, 0.1, {}, message="late")


@pytest.fixture(scope="module")
def loans() -> tuple[pd.DataFrame, Explainer]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 8, (200, 3)), columns=["age", "income", "debt"])
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(
        table, table.income > table.debt + table.age / 8
    )
    return table, Explainer(model, table, features={"age": {"actionability": "increasing"}})


@pytest.mark.parametrize("norm", ["l0", "l1", "l2"])
def test_the_nearest_row_with_what_may_not_change_put_back(loans: tuple[pd.DataFrame, Explainer], norm: str) -> None:
    table, explainer = loans
    answers = explainer.model.native.predict(table)
    row = table[~answers].iloc[[0]]
    problem = explainer.problem(row, True, norm)
    known = table[answers].to_numpy(float)
    put_back = known.copy()
    put_back[:, 0] = np.maximum(known[:, 0], row.age.iloc[0])

    def judge(point: np.ndarray) -> bool:
        return bool(explainer.model.native.predict(pd.DataFrame(point[None], columns=table.columns))[0])

    found = with_known_point(UNKNOWN, problem, known, judge)
    prices = problem.costs(put_back)
    right = [prices[k] for k in range(len(known)) if judge(put_back[k])]
    assert (found.status, found.bound) == (Status.FEASIBLE, 0.1)
    assert found.cost == pytest.approx(min(right))
    assert found.point is not None
    assert judge(found.point)
    assert found.message == "late; the point is the nearest row of the data"
    assert with_known_point(UNKNOWN, problem, known, lambda point: False) == UNKNOWN
    assert with_known_point(UNKNOWN, problem, known[:0], judge) == UNKNOWN


def test_rows_that_break_a_constraint_are_passed_over(loans: tuple[pd.DataFrame, Explainer]) -> None:
    table, explainer = loans
    answers = explainer.model.native.predict(table)
    row = table[~answers].iloc[[0]]
    most, few = Linear({"income": 1, "debt": 1}, "<=", 5), MaxChanges(1)
    for constraints in ([most], [few], [most, few]):
        problem = explainer.problem(row, True, constraints=constraints)
        found = with_known_point(UNKNOWN, problem, table[answers].to_numpy(float), lambda point: True)
        points = table[answers].to_numpy(float).copy()
        points[:, 0] = np.maximum(points[:, 0], row.age.iloc[0])
        kept = np.ones(len(points), bool)
        if most in constraints:
            kept &= points[:, 1] + points[:, 2] <= 5
        if few in constraints:
            kept &= (points != problem.origin).sum(axis=1) <= 1
        assert found.cost == (pytest.approx(problem.costs(points[kept]).min()) if kept.any() else None)
        assert kept.any() or constraints == [most, few]


def test_more_than_the_judge_looks_at_is_kept_all_the_same(loans: tuple[pd.DataFrame, Explainer]) -> None:
    table, explainer = loans
    answers = explainer.model.native.predict(table)
    row, known = table[~answers].iloc[[0]], table[answers].to_numpy(float)
    plain = explainer.problem(row, True)
    assert with_known_point(UNKNOWN, replace(plain, margins=(("income", 0.1),)), known, lambda point: True) == UNKNOWN
    own = float(row.debt.iloc[0])
    beyond = explainer.problem(row, True, permitted_range={"debt": [own + 1, 9.0]})
    found = with_known_point(UNKNOWN, beyond, known, lambda point: True)
    assert found.point is None or found.point[2] > own
    stepped = Explainer(explainer.model.native, table.astype(float), features={"debt": {"step": 2.0}})
    even = with_known_point(UNKNOWN, stepped.problem(row.astype(float), True), known, lambda point: True)
    assert even.point is not None
    assert even.point[2] % 2 == 0 or even.point[2] == own


def test_multiples_of_a_decimal_step_are_on_its_grid() -> None:
    # three times 0.1 is not 0.3 in float64, which is the multiple that a table holds
    table = pd.DataFrame({"a": [0.0, 0.3, 0.7, 1.0], "b": [0.0, 0.1, 0.25, 1.0]})
    model = RandomForestClassifier(3, random_state=0).fit(table, [0, 1, 1, 1])
    explainer = Explainer(model, table, features={"a": {"step": 0.1}, "b": {"step": 0.1}})
    problem = explainer.problem(table.iloc[[0]], 1)
    for known, wanted in (([0.3, 0.7], [0.3, 0.7]), ([0.3, 0.25], [0.3, 0.0])):
        found = with_known_point(UNKNOWN, problem, np.array([known]), lambda point: True)
        assert found.point is not None
        assert found.point.tolist() == wanted


def test_a_row_refutes_a_claim_that_there_is_no_point(loans: tuple[pd.DataFrame, Explainer]) -> None:
    table, explainer = loans
    answers = explainer.model.native.predict(table)
    problem = explainer.problem(table[~answers].iloc[[0]], True)
    claimed = Outcome(Status.INFEASIBLE, None, None, np.inf, {})
    found = with_known_point(claimed, problem, table[answers].to_numpy(float), lambda point: True)
    assert (found.status, found.bound) == (Status.FEASIBLE, -np.inf)
    assert "refutes" in found.message
    assert with_known_point(claimed, problem, table[answers].to_numpy(float), lambda point: False) == claimed


def test_a_search_that_rounding_keeps_from_any_point_leaves_a_row_of_the_data() -> None:
    # steps of 5 diverge: leaves of 1e26 cancel each other, and what is left is rounding
    rng = np.random.default_rng(50)
    table = pd.DataFrame({c: rng.integers(0, 9, 86) for c in "abc"})
    y = (table.a - table.b + 2 * rng.normal(size=86) > table.c - 4).astype(int)
    boosted = GradientBoostingClassifier(
        n_estimators=40, max_depth=4, learning_rate=5.0, subsample=0.5, random_state=50
    )
    model = CalibratedClassifierCV(boosted, method="sigmoid", cv=2).fit(table, y)
    answers = model.predict(table)
    row = table[answers == answers[0]].iloc[[0]]
    explainer = Explainer(model, table)
    found = explainer.explain(row, target=1 - answers[0], time_limit=1, progress=False)[0]
    assert found.found
    alone = explainer.explain(row, target=1 - answers[0], time_limit=1, reduce=False, solver="scip", progress=False)[0]
    assert "row of the data" not in alone.message
    assert model.predict(found.counterfactual)[0] == 1 - answers[0]

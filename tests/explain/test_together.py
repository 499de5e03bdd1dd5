"""Rows that the user's model judges together get the answers of rows that it judges one by one."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, Plausibility
from ocf.features.one_row import Maker, held
from ocf.models.user_model import UserModel
from ocf.problem.problem import Problem
from ocf.solve.engine import Finding, answer
from ocf.support.limits import seconds_left

from .people import refused


def counted(explainer: Explainer) -> list[int]:
    """The numbers of rows of each call of the user's model, from now on."""
    calls: list[int] = []
    model: UserModel = explainer.prepared.model

    def decide(table: pd.DataFrame) -> np.ndarray:
        calls.append(len(table))
        return model.decide(table)

    explainer.prepared.model = replace(model, decide=decide)
    return calls


def test_the_answers_are_those_of_each_row_by_itself(credit) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:12]
    deep = {"plausibility": {"trees": 10, "quantile": 0.3}}
    soft = {"plausibility": {"trees": 10, "weight": 0.2, "required": False}}
    for settings in ({}, {"probability": 0.7}, {"norm": "l0"}, {"features_to_vary": ["income"]}, deep, soft):
        together = explainer.explain(rows, target="granted", **settings)
        for k, found in enumerate(together):
            alone = explainer.explain(rows.iloc[[k]], target="granted", **settings)[0]
            assert (found.row, found.status, found.verified) == (alone.row, alone.status, alone.verified)
            assert (found.cost, found.plausibility) == (alone.cost, alone.plausibility)
            if alone.counterfactual is not None:
                pd.testing.assert_frame_equal(found.counterfactual, alone.counterfactual)


@pytest.mark.parametrize("plausibility", [None, {"trees": 10}])
def test_the_model_is_asked_about_many_rows_at_once(
    plausibility: dict[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocf.explain.together.SECONDS", np.inf)  # however slow the searches are
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(x, (x.a + x.b > 0).astype(int))
    explainer = Explainer(forest, data=x)
    rows = x[forest.predict(x) == 0].iloc[:40]
    # rows of the data have been asked about then, kernels are there
    explainer.explain(rows.iloc[:2], target=1, plausibility=plausibility)
    calls = counted(explainer)
    found = explainer.explain(rows, target=1, plausibility=plausibility)
    assert all(e.verified and e.status == "optimal" for e in found)
    assert sum(calls) <= 4 * len(rows)
    assert max(calls) >= 10


def test_models_whose_answers_may_follow_the_number_of_rows_are_asked_one_by_one() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(200, 2)), columns=list("ab"))
    trees = [(name, DecisionTreeClassifier(max_depth=3, random_state=k)) for k, name in enumerate("pq")]
    stack = StackingClassifier(trees, LogisticRegression(), cv=2).fit(x, (x.a > 0).astype(int))
    explainer = Explainer(stack, data=x)
    rows = x[stack.predict(x) == 0].iloc[:6]
    explainer.explain(rows.iloc[:2], target=1)
    calls = counted(explainer)
    assert all(e.verified for e in explainer.explain(rows, target=1))
    assert calls[0] == len(rows)  # what the rows get, as they are read
    assert set(calls[1:]) == {1}


def test_a_point_that_the_model_refuses_is_looked_for_again() -> None:
    """The model says no to the first points that it is shown: those rows are solved with every point put to it."""
    rng = np.random.default_rng(1)
    x = pd.DataFrame(rng.normal(size=(300, 2)), columns=list("ab"))
    forest = GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0).fit(x, (x.a > 0.2).astype(int))
    explainer = Explainer(forest, data=x, check=False)  # its trees say otherwise
    rows = x[forest.predict(x) == 0].iloc[:6]
    plain = explainer.explain(rows, target=1)
    model = explainer.prepared.model
    forbidden = [e.counterfactual.to_numpy()[0] for e in plain]

    def decide(table: pd.DataFrame) -> np.ndarray:
        never = [any(np.array_equal(row, point) for point in forbidden) for row in table.to_numpy()]
        return np.where(never, 0, model.decide(table))

    explainer.prepared.model = replace(model, decide=decide)
    for found, before in zip(explainer.explain(rows, target=1), plain, strict=True):
        assert found.verified
        assert found.refused > 0
        assert found.cost > before.cost
        assert found.bound <= found.cost


@pytest.mark.parametrize("several", [False, True])
def test_a_point_that_the_isolation_forest_finds_too_shallow_is_looked_for_again(credit, several: bool) -> None:
    """Its library counts a smaller depth than its trees, for the first points that it is shown."""
    table, model, explainer = credit
    rows = refused(table, model).iloc[: 4 if several else 1]
    wish = Plausibility(trees=10)
    plain = explainer.explain(rows, target="granted", plausibility=wish)
    detector = explainer.prepared.detector(wish, plain[0].problem.target)
    own = detector.forest
    forbidden = np.vstack([detector.given(e.counterfactual) for e in plain])

    def measure(given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        depth, score = own.measure(given)
        never = [any(np.array_equal(row, point) for point in forbidden) for row in np.asarray(given)]
        return np.where(never, 0.0, depth), score

    object.__setattr__(detector, "forest", replace(own, measure=measure))
    try:
        again = explainer.explain(rows, target="granted", plausibility=wish)
    finally:
        object.__setattr__(detector, "forest", own)
    for found, before in zip(again, plain, strict=True):
        assert found.verified
        assert found.refused > 0
        assert found.cost >= before.cost
        assert not found.counterfactual.equals(before.counterfactual)


def test_a_row_that_the_model_answers_otherwise_than_its_trees_is_asked_about_anew(credit) -> None:
    """What is believed of a row by itself until the model is asked is no answer: its class is the model's."""
    table, model, explainer = credit
    row = refused(table, model).iloc[[0]]
    own = explainer.prepared.model
    assert explainer.explain(row, target="granted")[0].cost > 0
    granted = explainer.classes.index("granted")

    def decide(table: pd.DataFrame) -> np.ndarray:
        same = (table[row.columns].to_numpy() == row.to_numpy()).all(axis=1)
        return np.where(same, granted, own.decide(table))

    explainer.prepared.model = replace(own, decide=decide)
    try:
        found, opposite = explainer.explain(row, target="granted")[0], explainer.explain(row)[0]
    finally:
        explainer.prepared.model = own
    assert (found.predicted, found.cost, found.verified) == ("granted", 0, True)
    assert (opposite.predicted, opposite.target) == ("granted", "refused")


@pytest.mark.parametrize("several", [False, True])
def test_a_row_that_reaches_other_leaves_is_an_error(credit, several: bool) -> None:
    """The preprocessing makes something else of this row than was read: by itself as in a batch."""
    table, model, explainer = credit
    rows = refused(table, model).iloc[: 3 if several else 1]
    own = explainer.prepared.model

    def encode(table: pd.DataFrame) -> np.ndarray:
        same = (table[rows.columns].to_numpy() == rows.iloc[[0]].to_numpy()).all(axis=1)
        return np.where(same[:, None], 1e6, own.encode(table))

    explainer.prepared.model = replace(own, encode=encode)
    try:
        found = explainer.explain(rows, target="granted")
    finally:
        explainer.prepared.model = own
    assert found[0].status == "error"
    assert "part at feature" in found[0].message
    assert all(e.verified for e in found[1:])


def test_a_model_that_stumbles_over_many_rows_is_asked_one_by_one(credit) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:4]
    own = explainer.prepared.model
    plain = explainer.explain(rows, target="granted")
    calls = []

    def decide(table: pd.DataFrame) -> np.ndarray:
        calls.append(len(table))
        if len(calls) > 1 and len(table) > 1:
            raise MemoryError("too many rows")
        return own.decide(table)

    explainer.prepared.model = replace(own, decide=decide)
    try:
        found = explainer.explain(rows, target="granted")
    finally:
        explainer.prepared.model = own
    assert [(e.cost, e.verified) for e in found] == [(e.cost, e.verified) for e in plain]


def test_an_interruption_while_answers_are_checked_hands_over_none_twice(credit, monkeypatch) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:5]
    explained, calls = explainer.asking.explained, []

    def interrupted(row, *args, **kwargs):
        calls.append(row.label)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return explained(row, *args, **kwargs)

    # the model is asked about four rows, and the fifth is still open
    monkeypatch.setattr("ocf.explain.together.ROWS", 4)
    monkeypatch.setattr(explainer.asking, "explained", interrupted)
    found = explainer.explain(rows, target="granted")
    assert [e.row for e in found] == list(rows.index)
    assert [e.status for e in found] == ["optimal"] * 4 + ["interrupted"]
    assert all(e.verified for e in found[:4])


@pytest.mark.parametrize("jobs", [1, 2])
def test_processes_take_parts_of_the_rows(credit, jobs: int) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:7]
    found = explainer.explain(rows, target="granted", n_jobs=jobs)
    assert [e.row for e in found] == list(rows.index)
    assert [e.cost for e in found] == [e.cost for e in explainer.explain(rows, target="granted")]


def test_the_time_of_a_row_leaves_room_for_the_models_word_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=list("abc"))
    forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(x, (x.a + x.b > 0).astype(int))
    explainer = Explainer(forest, data=x)
    row = x[forest.predict(x) == 0].iloc[:1]
    assert explainer.explain(row, target=1, time_limit=1000.0)[0].status == "optimal"
    left: list[float] = []

    def search(*args: object) -> Finding[Problem]:
        left.append(seconds_left())
        return answer(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("ocf.explain.together.answer", search)
    explainer.asking.checking = 800.0  # as if the model had taken so long to judge the last answer
    assert explainer.explain(row, target=1, time_limit=1000.0)[0].status == "optimal"
    assert 0 < left[0] <= 200
    assert explainer.asking.checking < 800


class Clock:
    """A clock that moves when forests predict, and never else: by 10 s a call."""

    now = 0.0

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        show = RandomForestClassifier.predict_proba

        def predict_proba(forest: RandomForestClassifier, x: object) -> np.ndarray:
            self.now += 10.0
            return show(forest, x)

        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(RandomForestClassifier, "predict_proba", predict_proba)


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that each search has, in order."""
    said: list[float] = []

    def search(*args: object) -> Finding[Problem]:
        said.append(seconds_left())
        return answer(*args)  # type: ignore[arg-type]

    for module in ("together", "asking"):
        monkeypatch.setattr(f"ocf.explain.{module}.answer", search)
    return said


@pytest.mark.parametrize("by", ["forest", "stack"])
def test_the_first_row_leaves_room_too_and_what_comes_before_the_search_counts(
    monkeypatch: pytest.MonkeyPatch, left: list[float], by: str
) -> None:
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=list("abc"))
    forest = RandomForestClassifier(4, max_depth=3, random_state=0)
    model = forest if by == "forest" else StackingClassifier([("f", forest)], LogisticRegression(), cv=2)
    model.fit(x, (x.a + x.b > 0).astype(int))
    row = x[model.predict(x) == 0].iloc[:1]
    clock = Clock(monkeypatch)
    explainer = Explainer(model, data=x)
    begin = clock.now
    found = explainer.explain(row, target=1, time_limit=200.0)[0]
    assert found.verified
    # class and probabilities of a row, each by a call of the forest; a stack is asked about row and answer apart, and
    # about the row before the search
    assert left == [200.0 - (2 * 10 if by == "forest" else 10 + 2 * 2 * 10)]
    assert clock.now - begin <= 200


def test_a_point_that_the_model_refuses_is_looked_for_again_in_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, left: list[float]
) -> None:
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=list("abc"))
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(x, (x.a + x.b > 0).astype(int))
    row = x[forest.predict(x) == 0].iloc[:1]
    explainer = Explainer(forest, data=x, check=False)  # its trees say otherwise
    point = explainer.explain(row, target=1)[0].counterfactual.to_numpy()[0]
    left.clear()
    model, clock = explainer.prepared.model, Clock(monkeypatch)

    def decide(table: pd.DataFrame) -> np.ndarray:
        return np.where((table.to_numpy() == point).all(axis=1), 0, model.decide(table))

    explainer.prepared.model = replace(model, decide=decide)
    explainer.asking.checking = 0.0
    found = explainer.explain(row, target=1, time_limit=200.0)[0]
    assert found.refused
    # the row and its first answer: class and probabilities
    assert 0 < left[1] <= 200 - 2 * 10
    assert clock.now <= 200
    # the first search and the model's word on its point are part of what the row took
    assert found.times["total"] == clock.now


def test_rows_of_the_data_are_asked_about_before_any_row(credit) -> None:
    table, model, _ = credit
    explainer = Explainer(model, data=table)
    calls = counted(explainer)
    assert explainer.explain(refused(table, model).iloc[[0]], target="granted")[0].verified
    assert max(calls) < len(table) // 2


def test_answers_hold_no_tables_of_their_own(credit) -> None:
    """As tables, each row and its answer take tens of kilobytes of a batch."""
    table, model, explainer = credit
    asked = refused(table, model).iloc[:6].copy()
    rows = asked.copy()
    found = explainer.explain(asked, target="granted")
    asked.loc[:, "income"] = 0.0  # of no matter to answers
    for k, e in enumerate(found):
        assert isinstance(held(e, "original"), Maker)
        assert isinstance(held(e, "counterfactual"), Maker)
        pd.testing.assert_frame_equal(e.original, rows.iloc[[k]])
        assert e.verified
        assert e.problem.alternatives[0] is found[0].problem.alternatives[0]

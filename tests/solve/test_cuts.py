"""Cells that rows share are those of a problem, wherever the problem comes from."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.errors import ConformanceError, ProblemError
from ocf.problem.problem import Problem
from ocf.solvers import SolverOptions, get_solver

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.normal(size=(200, 3)), columns=list("abc"))


def fitted(seed: int) -> Explainer:
    answers = (TABLE.a + TABLE.b * RNG.normal(size=len(TABLE)) > 0).astype(int)
    return Explainer(RandomForestClassifier(7, max_depth=3, random_state=seed).fit(TABLE, answers), data=TABLE)


def best(explainer: Explainer, problem: Problem) -> float:
    return get_solver("box").solve_cells(explainer.cells(problem), SolverOptions()).objective


@pytest.mark.parametrize("plausibility", [None, {"trees": 5, "quantile": 0.3}])
def test_a_problem_from_elsewhere_has_its_own_cells(plausibility: dict[str, float] | None) -> None:
    """One that was pickled, written or made in another process, and one of another model, are solved as they are."""
    explainer, other = fitted(0), fitted(1)
    row = TABLE[explainer.prepared.model.decide(TABLE) == 0].iloc[[0]]
    problem = explainer.problem(row, 1, plausibility=plausibility)
    cost = best(explainer, problem)
    assert 0 < cost < np.inf
    found = explainer.explain(pd.concat([row, row + 0.01]), 1, plausibility=plausibility, n_jobs=2)[0]
    assert found.problem is not None
    for again in (pickle.loads(pickle.dumps(problem)), Problem.from_json(problem.to_json()), found.problem):
        assert best(explainer, again) == cost
        assert best(other, again) == cost
    # what the explainer itself poses shares its cells
    same = explainer.problem(row + 0.01, 1, plausibility=plausibility)
    assert explainer.cells(problem).partition is explainer.cells(same).partition


def test_values_that_are_no_numbers_count_among_the_cells() -> None:
    """The same trees over a feature with a special value are cut around it."""
    table = pd.DataFrame({"a": RNG.integers(0, 8, 80), "b": RNG.integers(0, 8, 80)})
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, table.a + table.b > 7)
    plain, special = (Explainer(forest, data=table, special_values={"a": codes}) for codes in ([], [3]))
    row = table[~forest.predict(table)].iloc[[0]]
    for asking, other in ((plain, special), (special, plain)):
        problem = asking.problem(row, True)
        assert best(other, problem) == best(asking, problem)


def test_levels_count_among_the_cells() -> None:
    table = pd.DataFrame({"a": RNG.integers(0, 3, 60), "b": RNG.integers(0, 2, 60)})
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(table, table.a > 0)
    few, many = (
        Explainer(forest, data=table, features={"a": {"kind": "categorical", "levels": tuple(range(n))}})
        for n in (3, 5)
    )
    row = table[~forest.predict(table)].iloc[[0]]
    for asking, other in ((few, many), (many, few)):
        problem = asking.problem(row, True)
        assert other.cells(problem).partition.n_cells == asking.cells(problem).partition.n_cells
        assert best(other, problem) == best(asking, problem)


def test_queries_of_other_models_are_refused() -> None:
    own, other = (
        Explainer(DecisionTreeClassifier(max_depth=depth, random_state=0).fit(TABLE, TABLE.a > 0), data=TABLE)
        for depth in (1, 3)
    )
    row = TABLE[TABLE.a < -0.5].iloc[[0]]
    problem = own.problem(row, True)
    assert own.query(problem) is not None
    again = Explainer(DecisionTreeClassifier(max_depth=2, random_state=0).fit(TABLE, TABLE.b > 0), data=TABLE)
    with pytest.raises(ProblemError, match="another explainer"):
        again.query(problem)
    assert other.explain(row, True)[0].verified


def test_threads_that_ask_at_once_share_what_is_made() -> None:
    explainer = fitted(2)
    rows = TABLE[explainer.prepared.model.decide(TABLE) == 0].iloc[:8]
    wish = {"trees": 5, "quantile": 0.3}
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: explainer.explain(rows.iloc[[k]], 1, plausibility=wish), range(8)))
    for settings in ({}, {"plausibility": wish}, {"solver": "highs", "reduce": False}):
        assert all(e.status == "optimal" and e.verified for e in explainer.explain(rows, 1, **settings))


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_with_a_plausibility_are_held_against_the_cells(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model sees of them is looked at without the isolation trees, and then the cells that have these."""
    explainer = fitted(3)
    asked = TABLE[explainer.prepared.model.decide(TABLE) == 0].iloc[:rows]

    def part(*_: object) -> None:
        raise ConformanceError("the cells and the trees part at feature 'a'")

    monkeypatch.setattr("ocf.solve.prepared.check_cells", part)
    for e in explainer.explain(asked, 1, plausibility={"trees": 5}):
        assert (e.status, "the trees part" in e.message) == ("error", True)
    assert all(e.verified for e in explainer.explain(asked, 1))

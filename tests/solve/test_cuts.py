"""Cells that rows share are those of a problem, wherever the problem comes from."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
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


def test_levels_count_among_the_cells() -> None:
    """The same trees over other levels of a feature are cut otherwise."""
    table = pd.DataFrame({"a": RNG.integers(0, 3, 60), "b": RNG.integers(0, 2, 60)})
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(table, table.a > 0)
    few, many = (
        Explainer(forest, data=table, features={"a": {"kind": "ordinal", "levels": tuple(range(n))}}) for n in (3, 4)
    )
    problem = many.problem(table[~forest.predict(table)].iloc[[0]], True)
    assert len(few.cells(problem).partition.ordered) == 2
    assert few.cells(problem).partition.n_cells == many.cells(problem).partition.n_cells

"""All optimal answers of a row, against brute force, by every way to solve."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from small_problems import exhaustive, random_problem

from ocf import Explainer, Explanation
from ocf.compiled import compile_formulation
from ocf.constraints import Implication, Linear
from ocf.errors import ProblemError
from ocf.solvers import get_solver
from ocf.solvers.result import SolverOptions, Status
from ocf.solving import solve
from ocf.ties import tied_points
from ocf.verify import verify_file


@pytest.mark.parametrize("way", [("interval", "box"), ("interval", "highs"), ("ocean", "scip")])
@pytest.mark.parametrize("seed", range(30))
def test_every_cheapest_choice_of_cells_is_found(seed: int, way: tuple[str, str]) -> None:
    cells = random_problem(seed)
    everything = exhaustive(cells)
    if not np.isfinite(everything.optimum):
        return
    tied = everything.feasible & (everything.cost <= everything.optimum * (1 + 1e-9))
    expected = {cells.point(choice).tobytes() for choice in everything.choices[tied]}
    form, solver = partial(compile_formulation, way[0], cells), get_solver(way[1])
    options = SolverOptions()

    def confirm(point: np.ndarray) -> bool:
        choice = cells.partition.locate(point[None, :])[0]
        return bool((cells.margins(cells.partition.leaves_at(choice)) >= 0).all())

    outcome = solve(cells, form, solver, options, confirm=confirm)
    assert outcome.status is Status.OPTIMAL
    points, complete = tied_points(outcome, [cells], [form], solver, options, confirm=confirm, limit=10_000)
    assert complete
    assert np.array_equal(points[0], outcome.point)
    assert len({p.tobytes() for p in points}) == len(points)
    assert {p.tobytes() for p in points} == expected
    few, complete = tied_points(outcome, [cells], [form], solver, options, confirm=confirm, limit=1)
    assert (len(few), complete) == (1, len(expected) == 1)


def test_ties_reach_the_user(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [0, 0, 1, 1] * 5, "b": [0, 1, 0, 1] * 5})
    model = DecisionTreeClassifier(random_state=0).fit(table, [0, 1, 1, 1] * 5)
    explainer = Explainer(model, data=table)
    row = table.iloc[[0]]
    (alone,) = explainer.explain(row, target=1)
    assert (alone.ties, alone.ties_complete) == ((), None)
    for solver in ("box", "highs"):
        (e,) = explainer.explain(row, target=1, n_optimal=5, solver=solver)
        assert (e.status, e.verified, e.ties_complete, len(e.ties)) == ("optimal", True, True, 1)
        answers = {tuple(t.iloc[0]) for t in (e.counterfactual, *e.ties)}
        assert answers == {(0, 1), (1, 0)}
        assert "or for the same cost: " in str(e)
        assert "or for the same cost: " in e.to_html()
        assert e.changes_to(e.ties[0]).cost.sum() == e.cost
    again = Explanation.from_json(e.to_json(tmp_path / "e.json"))
    assert again == e
    assert again.ties[0].equals(e.ties[0])
    ((_, checked),) = verify_file(tmp_path / "e.json", explainer.model)
    assert checked.ok
    forged = e.to_dict()
    forged["ties"][0]["values"] |= {"a": 0, "b": 0}
    Explanation.from_dict(forged).to_json(tmp_path / "e.json")
    ((_, checked),) = verify_file(tmp_path / "e.json", explainer.model)
    assert not checked.ok
    assert any(p.startswith("Tie 1: ") for p in checked.problems)


def test_a_limit_says_that_there_may_be_more() -> None:
    table = pd.DataFrame(np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T, columns=list("abcd"))
    table = pd.concat([table] * 3, ignore_index=True)
    model = RandomForestClassifier(40, random_state=0).fit(table, (table.sum(axis=1) > 0).astype(int))
    row = table.iloc[[0]]
    explainer = Explainer(model, data=table)
    (all_of_them,) = explainer.explain(row, target=1, n_optimal=10)
    assert all_of_them.ties_complete is True
    n = 1 + len(all_of_them.ties)
    assert n > 2
    (some,) = explainer.explain(row, target=1, n_optimal=n - 1)
    assert (1 + len(some.ties), some.ties_complete) == (n - 1, False)
    assert "there may be more answers of the same cost" in str(some)
    (exactly,) = explainer.explain(row, target=1, n_optimal=n)
    assert (1 + len(exactly.ties), exactly.ties_complete) == (n, True)
    with pytest.raises(ProblemError, match="n_optimal"):
        explainer.explain(row, target=1, n_optimal=0)


def test_ties_respect_constraints() -> None:
    table = pd.DataFrame({"a": [0, 0, 1, 1] * 5, "b": [0, 1, 0, 1] * 5, "c": np.linspace(0, 1, 20)})
    model = DecisionTreeClassifier(random_state=0).fit(table[["a", "b"]].assign(c=0.0), [0, 1, 1, 1] * 5)
    row = table.iloc[[0]]
    explainer = Explainer(model, data=table)
    (free,) = explainer.explain(row, target=1, n_optimal=5)
    assert len(free.ties) == 1
    (bound,) = explainer.explain(row, target=1, n_optimal=5, constraints=Implication({"a": 1}, {"b": 1}))
    assert (bound.ties, bound.ties_complete, bound.verified) == ((), True, True)
    numbers = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["c", "d"])
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(numbers, (numbers.c > 0).astype(int))
    relation = Linear({"c": 1.0, "d": 1.0}, "<=", 1.5)
    row = numbers[forest.predict(numbers) == 0].iloc[[0]]
    (sliding,) = Explainer(forest, data=numbers).explain(row, target=1, n_optimal=5, constraints=relation)
    assert (sliding.status, sliding.ties, sliding.ties_complete) == ("optimal", (), False)

"""All optimal answers of a row, against brute force, by every way to solve."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from small_problems import exhaustive, random_problem

from ocf import Explainer, Explanation
from ocf.errors import ProblemError
from ocf.problem.constraints import Implication, Linear
from ocf.solve.cell_search import solve
from ocf.solve.compile import compile_formulation
from ocf.solve.fewest import stands_alone
from ocf.solve.ties import tied_points
from ocf.solvers import get_solver
from ocf.solvers.result import SolverOptions, Status
from ocf.verify.files import verify_file


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


def test_only_a_single_cheapest_choice_of_cells_stands_alone() -> None:
    told = {True: 0, False: 0}
    for seed in range(120):
        cells = random_problem(seed)
        everything = exhaustive(cells)
        if not np.isfinite(everything.optimum):
            continue
        n_tied = int((everything.feasible & (everything.cost <= everything.optimum * (1 + 1e-9))).sum())
        alone = stands_alone([cells], everything.optimum)
        assert not alone or n_tied == 1
        told[n_tied == 1] += alone == (n_tied == 1)
    assert told[True] > 60
    assert told[False] > 5


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


def members(e: Explanation, rows: pd.DataFrame) -> np.ndarray:
    """Which rows the answers of an explanation, with their ranges, contain."""
    inside = np.zeros(len(rows), bool)
    assert e.counterfactual is not None
    for answer, ranges in zip((e.counterfactual, *e.ties), e.ranges, strict=True):
        own = np.ones(len(rows), bool)
        for name in rows.columns:
            said = ranges.get(name, [answer[name].iloc[0]])
            own &= (
                rows[name].between(said["lowest"], said["highest"]) if isinstance(said, dict) else rows[name].isin(said)
            )
        inside |= own
    return inside


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("norm", ["l0", "l1", {"l0": 1, "l1": 1e-3}])
def test_a_complete_list_contains_every_optimal_point(seed: int, norm: object, tmp_path: Path) -> None:
    """Random points lie in the ranges of the answers exactly when they get the target for the optimal cost."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(size=80), "b": rng.integers(0, 9, 80), "c": rng.choice(list("xyz"), 80)})
    y = (table.a + table.b / 4 + (table.c == "x") > 1.5).astype(int)
    coder = ColumnTransformer([("c", OneHotEncoder(), ["c"])], remainder="passthrough")
    model = make_pipeline(coder, RandomForestClassifier(4, max_depth=3, random_state=0)).fit(table, y)
    row = table[model.predict(table) == 0].iloc[[0]]
    (e,) = Explainer(model, data=table).explain(row, target=1, norm=norm, n_optimal=10_000)
    assert (e.status, e.verified, e.ties_complete, len(e.ranges)) == ("optimal", True, True, 1 + len(e.ties))
    n = 4000
    points = pd.concat([row] * n, ignore_index=True)
    for name, values in (
        ("a", rng.uniform(-2.5, 2.5, n)),
        ("b", rng.integers(0, 9, n)),
        ("c", rng.choice(list("xyz"), n)),
    ):
        points[name] = np.where(rng.random(n) < 0.4, values, points[name])
    points = points.astype(table.dtypes)
    space, cost = e.space, e.norm
    assert space is not None
    assert cost is not None
    origin = space.from_frame(row)[0]
    costs = np.array([cost.total(space, origin, point) for point in space.from_frame(points)])
    within = points.a.between(table.a.min(), table.a.max())
    optimal = within & (model.predict(points) == 1) & (costs == e.cost)
    assert (members(e, points)[within] == optimal[within]).all()
    if norm == "l0":
        assert optimal.any()
        assert any(e.ranges)
        assert "from" in str(e) or "any of" in str(e)
    assert Explanation.from_json(e.to_json(tmp_path / "e.json")) == e
    assert Explanation.from_json(tmp_path / "e.json").ranges == e.ranges


def test_values_that_a_relation_tells_apart_are_not_claimed() -> None:
    """With l0 every value of the cell costs the same, and the relation holds for some of them only."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["c", "d"])
    model = DecisionTreeClassifier(max_depth=1, random_state=0).fit(table, (table.c > 0).astype(int))
    row = table[table.c < 0].iloc[[0]]
    (free,) = Explainer(model, data=table).explain(row, target=1, norm="l0", n_optimal=3)
    assert (free.ties_complete, list(free.ranges[0])) == (True, ["c"])
    (bound,) = Explainer(model, data=table).explain(
        row, target=1, norm="l0", n_optimal=3, constraints=Linear({"c": 1.0}, "<=", 1.0)
    )
    assert (bound.status, bound.cost, bound.ties_complete) == ("optimal", free.cost, False)


def test_ties_of_a_later_answer_stay_out_of_the_regions_of_earlier_ones() -> None:
    """The regions of earlier answers hold cheaper points, which are no ties."""
    values = np.arange(5) + 0.5
    table = pd.DataFrame(np.array(np.meshgrid(values, values, values)).reshape(3, -1).T, columns=list("abc"))
    tree = DecisionTreeClassifier(random_state=0).fit(table, (table.a > 3) | ((table.b > 3) & (table.c > 3)))
    explainer = Explainer(tree, table, {name: {"step": 0.5} for name in "abc"})
    row = pd.DataFrame([[0.5, 0.5, 0.5]], columns=list("abc"))
    found = explainer.explain(row, True, "l0", n_explanations=3, n_optimal=3, diversity="region")
    assert [e.cost for e in found] == [1, 2]
    assert all(e.verified for e in found)

"""Answers from growing balls are those from all cells at once, whatever the sizes of the balls."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.table_check import play_table
from oracle.tables import spread
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestRegressor

from ocf import Explainer
from ocf.cells.cell_problem import cell_values
from ocf.problem.constraints import Implication, Linear, MaxChanges
from ocf.solve import balls, growing_ball, prepared
from ocf.solvers.result import SolverOptions

Data = tuple[pd.DataFrame, np.ndarray]


@pytest.fixture(params=[1, 300, 8000])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model is taken for a large one, and first balls are of some size."""
    monkeypatch.setattr(prepared, "MANY_LEAVES", 0)
    monkeypatch.setattr(growing_ball, "FIRST_NODES", request.param)


@pytest.fixture(scope="module")
def wine() -> Data:
    table, classes = load_wine(return_X_y=True, as_frame=True)
    return table.iloc[:, :7], classes.to_numpy()


def of_all_cells(explainer: Explainer, rows: pd.DataFrame, **question: object) -> list[float | None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "MANY_LEAVES", 10**9)
        return [e.cost for e in explainer.explain(rows, **question)]


@pytest.mark.parametrize("question", [{"target": 1}, {"target": [1, 2], "norm": "l2"}, {"target": 2, "norm": "l0"}])
def test_costs_are_those_of_all_cells(wine: Data, small: None, question: dict[str, object]) -> None:
    table, classes = wine
    explainer = Explainer(ExtraTreesClassifier(15, random_state=0).fit(table, classes), table)
    rows = table[classes == 0].iloc[:6]
    found = explainer.explain(rows, **question)
    assert [e.status for e in found] == ["optimal"] * len(rows)
    assert [e.cost for e in found] == pytest.approx(of_all_cells(explainer, rows, **question), rel=1e-9)
    assert all(e.verified and e.bound == pytest.approx(e.cost) for e in found)


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_solvers_of_matrices_search_balls_too(wine: Data, small: None, solver: str) -> None:
    table, classes = wine
    explainer = Explainer(ExtraTreesClassifier(6, max_depth=6, random_state=0).fit(table, classes), table)
    rows = table[classes == 0].iloc[:3]
    found = explainer.explain(rows, target=1, solver=solver)
    assert [e.cost for e in found] == pytest.approx(of_all_cells(explainer, rows, target=1), rel=1e-9)


def test_intervals_of_a_regressor(wine: Data, small: None) -> None:
    table, _ = wine
    y = table.iloc[:, 0].to_numpy() * table.iloc[:, 1].to_numpy()
    explainer = Explainer(RandomForestRegressor(8, random_state=0).fit(table, y), table)
    rows = table.iloc[:3]
    found = explainer.explain(rows, target=(50.0, 60.0))
    assert [e.cost for e in found] == pytest.approx(of_all_cells(explainer, rows, target=(50.0, 60.0)), rel=1e-9)


def test_categories_and_missing_values(small: None) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "job": pd.Categorical(rng.choice(list("abcdef"), 400)),
            "age": np.where(rng.random(400) < 0.2, np.nan, rng.integers(18, 80, 400)),
            "debt": rng.normal(size=400),
        }
    )
    wanted = (table["debt"] + table["job"].isin(["a", "d"]) - table["age"].fillna(50) / 60 > 0).to_numpy()
    model = HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype").fit(table, wanted)
    explainer = Explainer(model, table)
    rows = table[~model.predict(table)]
    rows = pd.concat([rows[rows["age"].isna()].iloc[:3], rows[rows["age"].notna()].iloc[:3]])
    found = explainer.explain(rows, target=True)
    assert [e.cost for e in found] == pytest.approx(of_all_cells(explainer, rows, target=True), rel=1e-9)


def test_nothing_at_all_is_proven(wine: Data, small: None) -> None:
    table, classes = wine
    settings = {name: {"actionability": "fixed"} for name in table.columns[1:]}
    model = ExtraTreesClassifier(10, random_state=0).fit(table, classes)
    explainer = Explainer(model, table, settings)
    rows = table[classes == 0].iloc[:4]
    found = explainer.explain(rows, target=2)
    assert "infeasible" in {e.status for e in found}
    assert [e.cost for e in found] == of_all_cells(explainer, rows, target=2)


def test_ties_and_several_answers(wine: Data, small: None) -> None:
    table, classes = wine
    explainer = Explainer(ExtraTreesClassifier(5, max_depth=4, random_state=0).fit(table, classes), table)
    row = table[classes == 0].iloc[[0]]
    question = {"target": 1, "norm": "l0", "n_optimal": 4}
    found = explainer.explain(row, **question)[0]
    assert of_all_cells(explainer, row, **question) == [found.cost]
    assert len(found.ties) > 1
    for tie in found.ties:
        assert explainer.model.native.predict(tie) == [1]
        assert int((tie.iloc[0] != row.iloc[0]).sum()) == found.cost
    costs = [e.cost for e in explainer.explain(row, target=1, n_explanations=3, diversity="region")]
    assert costs == pytest.approx(
        of_all_cells(explainer, row, target=1, n_explanations=3, diversity="region"), rel=1e-9
    )


def test_a_limit_leaves_a_bound(wine: Data, small: None) -> None:
    table, classes = wine
    explainer = Explainer(ExtraTreesClassifier(30, random_state=0).fit(table, classes), table)
    row = table[classes == 0].iloc[[0]]
    best = explainer.explain(row, target=1)[0].cost
    found = explainer.explain(row, target=1, time_limit=1e-9)[0]
    assert found.status in ("feasible", "unknown")
    assert found.bound <= best
    assert found.cost is None or found.cost >= best


def test_without_rows_of_the_target_balls_grow_to_it(small: None) -> None:
    table, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    table = table.iloc[:, :5]
    model = ExtraTreesClassifier(5, max_depth=6, random_state=0).fit(table, classes)
    predicted = model.predict(table)
    explainer = Explainer(model, table[predicted == 0])
    rows = table[predicted == 0].iloc[:3]
    found = explainer.explain(rows, target=1)
    assert [e.cost for e in found] == pytest.approx(of_all_cells(explainer, rows, target=1), rel=1e-9)


def test_the_incumbent_has_the_target_and_is_no_dearer_than_a_row(wine: Data) -> None:
    table, classes = wine
    explainer = Explainer(ExtraTreesClassifier(10, random_state=0).fit(table, classes), table)
    problem = explainer.problem(table[classes == 0].iloc[[0]], target=1)
    model = explainer.prepared
    part, known = model.tree_partition(problem), model.known_rows_of(problem.target)
    asked: list[np.ndarray] = []

    def judge(point: np.ndarray) -> bool:
        asked.append(point)
        return bool(model.current(point[None])[0] == problem.target.index)

    run = growing_ball.GrowingBall(problem, part, growing_ball.Pruner(part), SolverOptions(), judge)
    run.find_incumbent(run.starts(known))
    assert run.best is not None
    _, cost = cell_values(problem, part)
    of_rows = cost[part.offsets[:-1] + part.locate(known)].sum(axis=1)
    assert run.best.cost < of_rows.min()
    np.testing.assert_array_equal(asked[-1], run.best.point)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["any"])
def test_no_claim_of_random_tables_is_false(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MANY_LEAVES", 0)
    monkeypatch.setattr(growing_ball, "FIRST_NODES", 4)
    seen: Counter[tuple[str, str]] = Counter()
    false = [claim for _, seed in spread(16, 7, [theme]) if (claim := play_table(theme, seed, seen))]
    assert not false, "\n".join(false)


@pytest.mark.parametrize(
    "question",
    [
        {"constraints": [Linear({"alcohol": 1.0, "magnesium": -0.01}, ">=", 12.0)], "norm": "l1"},
        {"constraints": [Implication({"alcohol": (13.0, None)}, {"ash": (None, 2.3)})]},
        {"constraints": [MaxChanges(2)], "norm": "l2"},
        {"n_explanations": 3, "diversity": "features"},
        {"n_explanations": 2, "diversity": "distance", "min_distance": 0.2},
    ],
    ids=["linear", "implication", "max changes", "features", "distance"],
)
def test_constraints_are_met_in_balls(wine: Data, small: None, question: dict[str, object]) -> None:
    table, classes = wine
    explainer = Explainer(ExtraTreesClassifier(6, max_depth=5, random_state=0).fit(table, classes), table)
    rows = table[classes == 0].iloc[:2]
    found = explainer.explain(rows, target=1, **question)
    assert [e.cost for e in found] == pytest.approx(of_all_cells(explainer, rows, target=1, **question), rel=1e-9)
    assert all(e.verified for e in found if e.counterfactual is not None)
    assert "balls" in found[-1].sizes or found[-1].proved_by in ("incumbent", "origin")


def changes_of(explainer: Explainer, rows: pd.DataFrame, **question: object) -> list[tuple[float | None, int]]:
    return [(e.cost, len(e.changes)) for e in explainer.explain(rows, **question)]


def test_ties_are_broken_in_balls_as_over_all_cells(small: None) -> None:
    """Whole numbers, of which many changes cost the same: the fewest changes are taken."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.integers(0, 6, (300, 6)), columns=list("abcdef"))
    wanted = (table["a"] + table["b"] - table["c"] + table["d"] * table["e"] > 8).to_numpy()
    explainer = Explainer(ExtraTreesClassifier(12, max_depth=6, random_state=0).fit(table, wanted), table)
    rows = table[~explainer.model.native.predict(table)].iloc[:12]
    found = changes_of(explainer, rows, target=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "MANY_LEAVES", 10**9)
        expected = changes_of(explainer, rows, target=True)
    assert [n for _, n in found] == [n for _, n in expected]
    assert [cost for cost, _ in found] == pytest.approx([cost for cost, _ in expected], rel=1e-9)


def test_the_proof_in_a_ball_shows_that_the_answer_stands_alone(wine: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """No second search asks for points that cost as little; where the ball may not hold them all, one does."""
    pruned: list[float] = []

    def counted(self: growing_ball.Pruner, cost: np.ndarray, limit: float, most: int) -> Any:
        pruned.append(limit)
        return within(self, cost, limit, most)

    within = growing_ball.Pruner.within
    monkeypatch.setattr(prepared, "MANY_LEAVES", 0)
    monkeypatch.setattr(growing_ball, "FIRST_NODES", 1)
    monkeypatch.setattr(growing_ball.Pruner, "within", counted)
    table, classes = wine
    explainer = Explainer(ExtraTreesClassifier(15, random_state=0).fit(table, classes), table)
    rows = table[classes == 0].iloc[:6]
    assert all("balls" in e.sizes for e in explainer.explain(rows, target=1, solver="box"))
    once = len(pruned)
    monkeypatch.setattr(balls.Balls, "holds_ties", False)
    explainer.explain(rows, target=1, solver="box")
    assert len(pruned) > 2 * once


@pytest.mark.parametrize(("radius", "end", "expected"), [(1, 8, 2), (2, 8, 4), (4, 8, 8), (1, 5, 2.5), (3, 5, 5)])
def test_radii_halve_the_way_to_the_end(radius: float, end: float, expected: float) -> None:
    """Also to one that has come nearer since the ball before: none is a little less than another."""
    assert growing_ball.next_radius(10.0, 10.0 + radius, 10.0 + end) == 10.0 + expected

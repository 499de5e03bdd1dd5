"""Leaves that a model of all trees lets be chosen together."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, StackingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ocf import Explainer
from ocf.arrays import FloatArray
from ocf.cells.partition import Partition
from ocf.cells.totals import TotalCells
from ocf.formulations import hyperplanes
from ocf.formulations.blocks.columns import MoveColumns, columns_of
from ocf.oblique import TAOClassifier
from ocf.problem.problem import Problem
from ocf.solvers import get_solver
from ocf.solvers.result import SolverOptions, Status
from ocf.solvers.standard_form import compile_model


def test_no_two_leaves_lie_on_both_sides_of_one_threshold() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)).round(1), columns=["a", "b"])
    tree = DecisionTreeRegressor(max_depth=2, random_state=0)
    model = StackingRegressor([("a", tree), ("b", tree)], cv=2, passthrough=True).fit(table, table["a"] + table["b"])
    explainer = Explainer(model, data=table)
    problem = explainer.problem(table.iloc[[0]], (-1e3, None))
    part = explainer.query(problem).model.search.part
    built = hyperplanes.build(problem, problem.alternatives[0], part)
    first, second, line = problem.trees.leaf_offsets[:3].tolist()
    for own, other in itertools.product(range(first, second), range(second, line)):
        for leaf in range(line):
            built.leaves[leaf].setlb(float(leaf in (own, other)))
        form = compile_model(built.model, [*built.variables, *built.leaves])
        # a big-M alone is met by the number at the threshold itself, on either side
        found = get_solver("highs").solve(form, SolverOptions())
        assert (found.status is Status.OPTIMAL) == (own - first == other - second), (own, other, found.status)


def test_a_square_of_a_tiny_scale_that_is_no_number_is_refused_by_name() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=100), "b": rng.normal(size=100) * 1e-200})
    model = make_pipeline(PCA(2), DecisionTreeClassifier(max_depth=2, random_state=0)).fit(table, table.a > 0)
    row, explainer = table[~model.predict(table)].head(1), Explainer(model, table)
    assert explainer.explain(row, True, norm="l1")[0].status == "optimal"
    refused = explainer.explain(row, True, norm="l2")[0]
    assert refused.status == "error"
    assert "a change of 'b' by 1 costs more than 1e+300, squared" in refused.message


@cache
def models() -> dict[str, tuple[BaseEstimator, pd.DataFrame]]:
    """A forest behind a PCA beside categories and a column of its own, and a bag of oblique trees."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(120, 3)).round(2), columns=["a", "b", "c"])
    table["kind"] = rng.choice(["u", "v", "w"], 120)
    answer = (table.a + table.b + (table.kind == "u") > 0.2).astype(int)
    steps = make_column_transformer(
        (PCA(2, random_state=0), ["a", "b", "c"]), (OneHotEncoder(), ["kind"]), ("passthrough", ["a"])
    )
    forest = make_pipeline(steps, RandomForestClassifier(6, max_depth=4, random_state=0)).fit(table, answer)
    X, y = load_iris(return_X_y=True, as_frame=True)
    bag = BaggingClassifier(TAOClassifier(3, init="random"), 4, random_state=0).fit(X, y)
    return {"components": (forest, table), "bag": (bag, X)}


def columns_at(problem: Problem, columns: MoveColumns, coded: FloatArray) -> FloatArray:
    """What the columns of a problem are at a point."""
    x = np.zeros(columns.n)
    change = (coded - problem.origin)[columns.feature]
    level, number, moved = columns.role == "level", columns.is_number, columns.role == "moved"
    x[level] = coded[columns.feature[level]] == columns.value[level]
    x[number] = np.maximum(change[number] / columns.unit[number], columns.lower[number])
    x[moved] = change[moved] * columns.value[moved] > 0
    return x


@pytest.mark.parametrize("norm", ["l1", "l2", "l0"])
@pytest.mark.parametrize(("which", "most"), [("components", 32), ("components", 2), ("bag", 32)])
def test_every_point_is_a_solution_of_the_model(
    which: str, most: int, norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its own price, and of its own leaves alone, whether or not splits share what they weigh."""
    monkeypatch.setattr(hyperplanes, "MOST_HULL", most)
    model, table = models()[which]
    explainer = Explainer(model, data=table)
    problem = explainer.problem(table.iloc[[0]], 1 - int(model.predict(table.iloc[[0]])[0]), norm)
    assert isinstance(problem, Problem)
    part, columns = explainer.query(problem).model.search.part, columns_of(problem)
    built = hyperplanes.build(problem, problem.alternatives[0], part, columns)
    del built.model.reaches_target  # any point of any class
    form = compile_model(built.model, [*built.variables, *built.leaves])
    scip, n = get_solver("scip"), columns.n
    rng = np.random.default_rng(0)
    mixed = pd.DataFrame({name: rng.permutation(table[name]) for name in table})
    for coded in problem.space.from_frame(pd.concat([table.iloc[:20], mixed.iloc[:40]])):
        x, lower, upper = columns_at(problem, columns, coded), form.lower.copy(), form.upper.copy()
        room = 1e-9 * np.maximum(1.0, np.abs(x))
        lower[:n], upper[:n] = np.maximum(lower[:n], x - room), np.minimum(upper[:n], x + room)
        here = replace(form, lower=lower, upper=upper)
        found = scip.solve(here)
        assert found.x is not None
        assert found.objective == pytest.approx(float(problem.costs(coded[None])[0]), rel=1e-6, abs=1e-6)
        reached = np.zeros(form.n_cols)
        reached[n + problem.trees.apply(coded[None])[0]] = 1.0
        least = scip.solve(replace(here, c=reached, c0=0.0, Q=None))
        assert least.objective == pytest.approx(problem.trees.n_trees, abs=1e-6)


def test_large_trees_have_fewer_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    model, table = models()["components"]
    explainer = Explainer(model, data=table)
    problem = explainer.problem(table[model.predict(table) == 0].iloc[[0]], 1)
    part = explainer.query(problem).model.search.part
    sizes = []
    for most in (hyperplanes.MOST_HULL, 2):
        monkeypatch.setattr(hyperplanes, "MOST_HULL", most)
        sizes.append(len(hyperplanes.build(problem, problem.alternatives[0], part).model.within_interval))
    assert sizes[1] < sizes[0]


def root_bound(problem: Problem, part: Partition) -> float:
    """Of the linear relaxation of a model."""
    built = hyperplanes.build(problem, problem.alternatives[0], part)
    form = compile_model(built.model, [*built.variables, *built.leaves])
    return float(get_solver("highs").solve(form.relaxed()).bound)


def test_least_moves_and_cells_of_totals_bound_what_a_big_m_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :6]
    bag = BaggingClassifier(TAOClassifier(3, init="random"), 5, random_state=0).fit(X, y)
    forest = make_pipeline(
        StandardScaler(), PCA(2, random_state=0), RandomForestClassifier(8, max_depth=4, random_state=0)
    )
    for model, name, without in (
        (bag, "add_least_moves", lambda *_: None),
        (forest.fit(X, y), "with_totals", lambda part: TotalCells(part, part.n_features)),
    ):
        explainer = Explainer(model, data=X)
        gains = []
        for row in (X[model.predict(X) == 0].iloc[[k]] for k in (0, 10, 20)):
            problem = explainer.problem(row, 1)
            part = explainer.query(problem).model.search.part
            bound, optimum = root_bound(problem, part), explainer.explain(row, 1)[0].cost
            with monkeypatch.context() as patched:
                patched.setattr(hyperplanes, name, without)
                before = root_bound(problem, part)
            assert before <= bound * (1 + 1e-9)
            assert bound <= optimum * (1 + 1e-9)
            gains.append((bound - before) / optimum)
        assert np.mean(gains) > 0.1, gains

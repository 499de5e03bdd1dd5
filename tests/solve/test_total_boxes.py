"""The box search over cells of numbers and totals: against all rows by the user's Pipeline, and other solvers."""

from __future__ import annotations

import itertools
import re
import threading
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from ocf import Explainer, Linear
from ocf.arrays import FloatArray
from ocf.cells.partition import partition
from ocf.cells.totals import with_totals
from ocf.errors import SolverError
from ocf.formulations.blocks.columns import columns_of
from ocf.formulations.blocks.value_cells import ends_within
from ocf.oblique import TAOClassifier
from ocf.problem.problem import Problem
from ocf.solve import stand_in, total_boxes
from ocf.solve.leaf_answer import LeafAnswer, LeafClaim
from ocf.solve.leaf_choices import LeafChoices
from ocf.solve.leaf_query import Query
from ocf.solve.leaf_run import LeafRun
from ocf.solve.outcome import AT_GAP
from ocf.solvers.box import coupled_boxes, totals
from ocf.solvers.box.coupled_bounds import bound_box, price_cells

from .oblique_cases import assert_same


def behind_pca(table: pd.DataFrame, y: Any, model: Any, n: int = 2) -> Pipeline:
    """A model of components of the numbers, and of categories beside them."""
    numbers = [name for name in table if table[name].dtype.kind in "iuf"]
    rest = [name for name in table if name not in numbers]
    parts = [(make_pipeline(StandardScaler(), PCA(n, random_state=0)), numbers)]
    columns = make_column_transformer(*parts, *([(OneHotEncoder(), rest)] if rest else []))
    return make_pipeline(columns, model).fit(table, y)


def all_behind_pca(table: pd.DataFrame, y: Any, model: Any, n: int = 3) -> Pipeline:
    """A model of components of the numbers and the categories together."""
    kinds = [name for name in table if table[name].dtype.kind not in "iuf"]
    columns = make_column_transformer((OneHotEncoder(sparse_output=False), kinds), remainder="passthrough")
    return make_pipeline(columns, StandardScaler(), PCA(n, random_state=0), model).fit(table, y)


def whole_table(seed: int) -> tuple[pd.DataFrame, Any]:
    """Whole numbers, a category, and classes that depend on all of them."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.integers(0, top + 1, 150) for name, top in (("a", 9), ("b", 7), ("c", 11))})
    table["kind"] = rng.choice(["u", "v", "w"], 150)
    score = table.a - table.b + 0.5 * table.c + 2 * (table.kind == "u") + rng.normal(0, 1.5, 150)
    return table, (score > score.median()).astype(int)


def sets_beside_components(table: pd.DataFrame, y: Any, seed: int) -> Pipeline:
    """A model of components of the numbers and the categories, with splits by sets of the same categories."""
    components = all_behind_pca(table, y, "passthrough")[:-1]
    if seed % 2 == 0:
        encode, model = OneHotEncoder(sparse_output=False), forest(seed)
    else:
        encode = OrdinalEncoder()
        model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, categorical_features=[3])
    columns = make_column_transformer((components, [*table]), (encode, ["kind"]))
    return make_pipeline(columns, model).fit(table, y)


def forest(seed: int) -> Any:
    kinds = [RandomForestClassifier(5, max_depth=4, random_state=seed), GradientBoostingClassifier(n_estimators=6)]
    return kinds[seed % 2]


@pytest.mark.parametrize("norm", ["l1", "l2", {"l1": 1.0, "l2": 0.5}])
@pytest.mark.parametrize("seed", [0, 2, 3, 4, 6, 7, 9, 10])
def test_the_cheapest_of_all_rows_is_found(seed: int, norm: Any) -> None:
    table, y = whole_table(seed)
    if seed > 8:
        model = sets_beside_components(table, y, seed)
    elif seed > 5:
        table["flag"] = (table.a + table.b) % 2
        model = all_behind_pca(table, y, forest(seed), 2 + seed % 2)
    elif seed < 4:
        model = behind_pca(table, y, forest(seed))
    else:
        table = table[["a", "b", "c"]]
        model = BaggingClassifier(TAOClassifier(3, init="random"), 4, random_state=seed).fit(table, y)
    features = {"a": {"weight": [1.0, 2.0]}, "b": {"weight": 3.0}} if seed % 3 == 2 else {}
    explainer = Explainer(model, table, features=features)
    values = [np.unique(table[name]) for name in table]
    grid = pd.DataFrame(itertools.product(*values), columns=table.columns).astype(table.dtypes)
    reached = grid[model.predict(grid) == 1]
    for _, row in table[model.predict(table) == 0].iloc[:3].groupby(level=0):
        problem = explainer.problem(row, 1, norm)
        assert isinstance(problem, Problem)
        cheapest = float(problem.costs(problem.space.from_frame(reached)).min())
        for solver in ("auto", "box") if norm == "l1" else ("auto",):
            e = Explainer(model, table, features=features).explain(row, 1, norm, solver=solver)[0]
            assert_same(e, cheapest)
            assert set(e.method["solvers"]) <= {"box", "scip"}  # that for whole numbers of a choice of leaves


@cache
def cancers() -> tuple[pd.DataFrame, Any]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, :6], y


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("kind", ["components", "oblique", "beside", "limit", "bounds", "unlimited"])
def test_it_agrees_with_a_solver_of_matrices(kind: str, norm: str) -> None:
    X, y = cancers()
    trees = RandomForestClassifier(8, max_depth=None if kind == "unlimited" else 4, random_state=0)
    model: Any = behind_pca(X, y, trees, 3)
    if kind == "oblique":
        model = BaggingClassifier(TAOClassifier(3, init="random"), 4, random_state=0).fit(X, y)
    elif kind == "beside":
        parts = [(make_pipeline(StandardScaler(), PCA(2, random_state=0)), list(X)), ("passthrough", list(X)[:3])]
        model = make_pipeline(make_column_transformer(*parts), trees).fit(X, y)
    asked: dict[str, Any] = {}
    features = {name: {"actionability": "decreasing"} for name in list(X)[:2]} if kind == "bounds" else {}
    rows = X[model.predict(X) == 0].iloc[:2]
    if kind == "limit":  # binds: without it the answers move this sum up
        names = list(X)[:2]
        asked["constraints"] = [Linear(dict.fromkeys(names, 1.0), "<=", float(rows[names].sum(axis=1).min() - 1))]
    for k in range(2 if norm == "l1" else 1):
        row = rows.iloc[[k]]
        found = Explainer(model, X, features=features).explain(row, 1, norm, **asked)[0]
        assert "box" in found.method["solvers"]
        wanted = Explainer(model, X, features=features).explain(row, 1, norm, solver="scip", **asked)[0]
        assert wanted.status == "optimal"
        assert_same(found, wanted.cost)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("levels", [False, True])
def test_no_point_of_use_is_cut_off_or_cheaper_than_its_box(
    monkeypatch: pytest.MonkeyPatch, norm: str, levels: bool
) -> None:
    """Of all boxes that a search bounds, and of points on the way to the data's rows with the target."""
    X, y = cancers()
    trees = RandomForestClassifier(8, max_depth=4, random_state=0)
    if levels:
        X = X.iloc[:, :4].assign(kind=pd.qcut(X.iloc[:, 4], 4, labels=list("abcd")).astype(str))
    model = all_behind_pca(X, y, trees) if levels else behind_pca(X, y, trees, 3)
    row, known = X[model.predict(X) == 0].iloc[[0]], X[model.predict(X) == 1]
    problem = Explainer(model, X).problem(row, 1, norm)
    assert isinstance(problem, Problem)
    origin, coded = problem.origin, problem.space.from_frame(known)
    (own,) = problem.alternatives

    def have_target(points: FloatArray) -> Any:
        return (own.gain[problem.trees.apply(points)].sum(axis=1) >= own.need).all(axis=1)

    near = coded  # as near to the row as the target goes on the way, for each half of the rows' numbers as well
    for moved in (slice(None), slice(None, None, 2), slice(1, None, 2)):
        way, fixed = np.zeros_like(coded), [problem.space.index("kind")] if levels else []
        way[:, moved] = (coded - origin)[:, moved]
        start = np.tile(origin, (len(coded), 1))
        start[:, fixed], way[:, fixed] = coded[:, fixed], 0.0
        less, more = np.zeros((len(way), 1)), np.ones((len(way), 1))
        for _ in range(30):
            middle = (less + more) / 2
            met = have_target(start + middle * way)[:, None]
            less, more = np.where(met, less, middle), np.where(met, middle, more)
        near = np.concatenate([near, start + more * way])
    coded = near[have_target(near)]
    costs, made, seen = problem.costs(coded), list[total_boxes.TotalBoxes](), 0

    def boxes(*asked: Any, own: Any = total_boxes.boxes_of_totals) -> Any:
        made.append(own(*asked))
        return made[-1]

    def bound(coupling: Any, instance: Any, priced: Any, domain: Any, nothing: Any, limit: float, *rest: Any) -> float:
        nonlocal seen
        if not made:  # kernels are compiled
            return bound_box(coupling, instance, priced, domain, nothing, limit, *rest)
        at = ranks(made[-1], coded, instance)
        inside = ((domain.lo <= at) & (at <= domain.hi)).all(axis=1) & (costs < limit * (1 - 1e-9))
        out = bound_box(coupling, instance, priced, domain, nothing, limit, *rest)
        left = ((domain.lo <= at) & (at <= domain.hi)).all(axis=1)
        assert left[inside].all()
        assert (costs[inside] >= out * (1 - 1e-9)).all()
        live = np.append(domain.live, True)
        number = np.full(problem.trees.n_leaves, len(domain.live))
        number[instance.leaf] = np.arange(len(instance.leaf))
        assert live[number[problem.trees.apply(coded[inside])]].all()
        seen += int(inside.sum())
        priced_within(coupling, instance, priced, domain, rest[1], at[left], costs[left])
        return out

    monkeypatch.setattr(total_boxes, "boxes_of_totals", boxes)
    monkeypatch.setattr(coupled_boxes, "bound_box", bound)
    monkeypatch.setattr(LeafChoices, "start", lambda *_: None)  # no first point, by which all is too dear
    monkeypatch.setattr(totals, "OF_SQUARES", 0.5)  # bounds hold with any
    e = Explainer(model, X).explain(row, 1, norm)[0]
    assert e.status == "optimal"
    assert seen > 1000


def priced_within(
    coupling: Any, instance: Any, priced: Any, domain: Any, box: Any, at: FloatArray, costs: FloatArray
) -> None:
    """What cells cost by the tangent at a box's least point, and what is added, is no more than its points cost."""
    constant = price_cells(coupling, instance, priced, domain, box)
    by_cells = constant + priced.cost[instance.offsets[:-1] + at].sum(axis=1)
    assert (by_cells <= costs * (1 + 1e-9)).all()


def ranks(found: total_boxes.TotalBoxes, coded: FloatArray, instance: Any) -> FloatArray:
    """Ranks of the cells of points, (n, n_features), -1 for those that are closed."""
    problem, part = found.cells.problem, found.cells.partition
    total = with_totals(partition(problem.trees, problem.space), every=True)
    sums = []
    for i in total.totals:
        features, codes, weights = problem.trees.oblique_entries(int(total.nodes_of(i)[0]))
        sums.append(np.where(codes < 0, coded[:, features], coded[:, features] == codes) @ weights)
    cells, out = part.locate(np.column_stack([coded, *sums])), []
    for i in range(part.n_features):
        number = np.full(part.widths[i], -1)
        opened = instance.cell[instance.offsets[i] : instance.offsets[i + 1]]
        number[opened] = np.arange(len(opened))
        out.append(number[cells[:, i]])
    return np.array(out).T


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("l0", "the norm l0"),
        ("categories", "so many categories, or listed values"),
        ("free", "squares of some of the changes"),
        ("quadratic", "costs that couple columns"),
    ],
)
def test_what_it_does_not_know_goes_to_a_solver_of_matrices(
    kind: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    norm: Any = {"l0": "l0", "free": "l2", "quadratic": "mahalanobis"}.get(kind, "l1")
    table, y = cancers() if kind == "quadratic" else whole_table(0)
    features = {"a": {"weight": 0.0}} if kind == "free" else {}
    model: Any = behind_pca(table, y, forest(0))
    if kind == "categories":
        monkeypatch.setattr(total_boxes, "MOST_LEVELS", 2)
        model = all_behind_pca(table, y, forest(0))
    row = table[model.predict(table) == 0].iloc[[0]]
    e = Explainer(model, table, features=features).explain(row, 1, norm)[0]
    assert e.status == "optimal"
    assert "box" not in e.method["solvers"]
    refused = Explainer(model, table, features=features).explain(row, 1, norm, solver="box")[0]
    assert refused.status == "error"
    assert re.search(f"the solver 'box' does not know .*{words}.*: ask for 'auto', highs or scip", refused.message)


def test_so_many_hyperplanes_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = cancers()
    model = behind_pca(X, y, RandomForestClassifier(3, max_depth=3, random_state=0))
    row = X[model.predict(X) == 0].iloc[[0]]
    monkeypatch.setattr(total_boxes, "MOST_ENTRIES", 10)
    assert "scip" in Explainer(model, X).explain(row, 1)[0].method["solvers"]


def test_limits_keep_the_point_and_a_bound_that_holds() -> None:
    X, y = cancers()
    model = behind_pca(X, y, RandomForestClassifier(20, max_depth=5, random_state=0), 4)
    row = X[model.predict(X) == 0].iloc[[0]]
    wanted = Explainer(model, X).explain(row, 1)[0]
    e = Explainer(model, X).explain(row, 1, options={"node_limit": 3})[0]
    assert (e.status, e.verified, e.method["solvers"]) == ("feasible", True, ["box"])
    assert 0 < e.bound < wanted.cost <= e.cost
    assert "limit was reached" in e.message
    gap = Explainer(model, X).explain(row, 1, mip_gap=0.3)[0]
    assert gap.bound <= wanted.cost <= gap.cost <= gap.bound / (1 - 0.3) * (1 + 1e-9)
    assert gap.status == "optimal" or gap.message == AT_GAP


def test_a_time_limit_that_first_points_use_up_leaves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = cancers()
    model = behind_pca(X, y, RandomForestClassifier(8, max_depth=4, random_state=0), 3)
    row = X[model.predict(X) == 0].iloc[[0]]
    for left in (0.0, -0.5):
        with monkeypatch.context() as patched:
            patched.setattr(LeafRun, "seconds_left", lambda *_, left=left: left)
            e = Explainer(model, X).explain(row, 1)[0]
        assert (e.status, e.verified, e.bound) == ("feasible", True, 0.0)


def moved_number(seed: int) -> tuple[Any, pd.DataFrame, dict[str, Any], pd.DataFrame]:
    """A whole number that has to move far, beside a number that moves the total a little; model, table and row."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.integers(0, 30, 200), "b": rng.uniform(0, 2, 200)})
    score = table.a + table.b + rng.normal(size=200)
    trees = RandomForestClassifier(int(rng.integers(1, 8)), max_depth=4, random_state=seed)
    model = make_pipeline(PCA(2, random_state=0), trees).fit(table, score > np.quantile(score, 0.8))
    features = {name: {"weight": rng.choice([0.1, 0.3, 1.0, 3.0], 2).tolist()} for name in table}
    return model, table, features, table[~model.predict(table)].iloc[[int(rng.integers(100))]]


@pytest.mark.parametrize("seed", [3, 50, 173])
def test_a_number_that_cannot_stay_is_held_at_its_own_values(seed: int) -> None:
    model, table, features, row = moved_number(seed)
    wanted = Explainer(model, table, features=features).explain(row, True, solver="scip")[0]
    assert wanted.status == "optimal"
    assert_same(Explainer(model, table, features=features).explain(row, True)[0], wanted.cost)


@pytest.mark.parametrize("step", [0.01, 0.1, 0.07])
def test_no_value_of_a_grid_is_beyond_its_bounds(step: float) -> None:
    """0.07 - 0.06 is more than 0.01."""
    for first in range(-5, 3):
        values = np.round(step * np.arange(first, first + 6), 10)
        table = pd.DataFrame({"a": np.repeat(values, 5), "b": np.tile(np.arange(6.0), 5)})
        parts = [(PCA(2), ["a", "b"]), ("passthrough", ["a"])]
        model = make_pipeline(make_column_transformer(*parts), RandomForestClassifier(5, random_state=0))
        model.fit(table, table.a > values[4])
        explainer = Explainer(model, table, features={"a": {"step": step, "bounds": [values[0], values[-1]]}})
        for origin in values[:5]:
            problem = explainer.problem(pd.DataFrame({"a": [origin], "b": [1.0]}), True)
            assert isinstance(problem, Problem)
            part = partition(problem.trees, problem.space)
            ends = ends_within(problem, with_totals(part), columns_of(problem), 0)
            cells = part.locate(np.stack([values, np.zeros(6)], axis=1))[:, 0]
            assert part.widths[0] > 1
            assert (ends.low[cells] <= ends.high[-1]).all()
            assert (ends.high[cells] >= ends.low[0]).all()


@pytest.mark.parametrize("step", [0.01, 0.1, 0.07])
def test_the_last_value_of_a_grid_stays_where_steps_are_rounded(step: float) -> None:
    rng = np.random.default_rng(0)
    for k in range(5, 8):
        values = np.round(step * np.arange(k - 5, k + 1), 10)
        table = pd.DataFrame({"a": rng.choice(values, 150), "b": rng.integers(0, 4, 150)})
        y = (table.a + 0.1 * step * table.b > values[-2] + 0.05 * step).astype(int)
        model = make_pipeline(PCA(2), RandomForestClassifier(5, max_depth=4, random_state=k)).fit(table, y)
        features = {"a": {"step": step, "bounds": [values[0], values[-1]]}}
        grid = pd.DataFrame(itertools.product(values, range(4)), columns=["a", "b"])
        reached = grid[model.predict(grid) == 1]
        for _, row in table[model.predict(table) == 0].drop_duplicates().iloc[:8].groupby(level=0):
            explainer = Explainer(model, table, features=features)
            problem = explainer.problem(row, 1)
            assert isinstance(problem, Problem)
            assert_same(explainer.explain(row, 1)[0], float(problem.costs(problem.space.from_frame(reached)).min()))


def test_kernels_that_are_not_compiled_in_time_leave_a_row_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = cancers()
    model = behind_pca(X, y, RandomForestClassifier(3, max_depth=3, random_state=0))
    row = X[model.predict(X) == 0].iloc[[0]]
    monkeypatch.setattr(stand_in, "at_hand", lambda kernel: False)
    for seconds, solver in ((60.0, "scip"), (200.0, "box")):
        e = Explainer(model, X).explain(row, 1, time_limit=seconds)[0]
        assert (e.status, solver in e.method["solvers"]) == ("optimal", True)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_an_answer_is_the_same_by_any_number_of_threads(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = cancers()
    model = behind_pca(X, y, RandomForestClassifier(15, max_depth=4, random_state=0), 3)
    rows, visit, visits = X[model.predict(X) == 0].iloc[:2], coupled_boxes.CoupledWorker.visit, set[str]()
    wanted = Explainer(model, X).explain(rows, 1, norm, solver="box")

    def watched(self: coupled_boxes.CoupledWorker, node: coupled_boxes.OpenBox) -> list[coupled_boxes.OpenBox]:
        visits.add(threading.current_thread().name)
        return visit(self, node)

    monkeypatch.setattr(coupled_boxes.CoupledWorker, "visit", watched)
    for threads in (2, 3):
        found = Explainer(model, X).explain(rows, 1, norm, solver="box", threads=threads)
        for e, own in zip(found, wanted, strict=True):
            assert (e.status, e.verified) == ("optimal", True)
            assert e.cost == pytest.approx(own.cost, rel=1e-9)
    assert len(visits) > 1


def test_a_box_of_several_levels_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though each tree has one leaf left, and that choice was tried with the first of the levels."""
    made, own = list[totals.TotalsSearch](), totals.TotalsSearch

    def keep(*asked: Any) -> totals.TotalsSearch:
        made.append(own(*asked))
        return made[-1]

    monkeypatch.setattr(total_boxes, "TotalsSearch", keep)
    table, y = whole_table(10)
    model = sets_beside_components(table, y, 10)
    Explainer(model, table).explain(table[model.predict(table) == 0].iloc[[0]], 1, solver="box")
    search = made[0]
    worker = search.worker()
    instance, domain = worker.instance, worker.domain
    (kind,) = search.whole[~instance.ordered[search.whole]]
    first, last = instance.offsets[kind : kind + 2]
    assert last - first == 3
    domain.hi[:] = domain.lo
    domain.live[:] = False
    domain.live[instance.trees[:-1]] = True
    x = instance.cell[instance.offsets[:-1]]
    search.closed.add(search.key(instance.leaf[domain.live], x))
    domain.level[first:last] = [True, False, False]
    assert worker.is_done()
    domain.level[last - 1] = True
    assert not worker.is_done()


def test_dear_leaves_that_rounding_leaves_open_spoil_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = cancers()
    model = behind_pca(X, y, RandomForestClassifier(8, max_depth=4, random_state=0), 3)
    rows = X[model.predict(X) == 0].iloc[:8]
    wanted, solve, opened = Explainer(model, X).explain(rows, 1), Query.solve_leaf, list[float]()
    monkeypatch.setattr(LeafChoices, "start", lambda *_: None)  # no first point, by which dear leaves are closed
    for k, own in enumerate(wanted):

        def leaves_open(self: Query, *asked: Any, dear: float = 1.001 * own.cost, **more: Any) -> LeafAnswer:
            answer = solve(self, *asked, **more)
            if answer.point is None or answer.cost < dear:
                return answer
            opened.append(answer.cost)
            return LeafAnswer(answer.leaf, answer.point, answer.cost, 0.0, LeafClaim.OPEN)

        monkeypatch.setattr(Query, "solve_leaf", leaves_open)
        assert_same(Explainer(model, X).explain(rows.iloc[[k]], 1, solver="box")[0], own.cost)
    assert opened


@pytest.mark.parametrize("solver", ["box", "scip", "highs"])
def test_leaves_without_a_point_that_rounding_leaves_open_bound_the_cost(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what no point of them is below, which is no more than the optimum in them."""
    X, y = cancers()
    model = behind_pca(X, y, RandomForestClassifier(8, max_depth=4, random_state=0), 3)
    rows = X[model.predict(X) == 0].iloc[:4]
    wanted, solve = Explainer(model, X).explain(rows, 1), Query.solve_leaf
    for k, own in enumerate(wanted):

        def finds_none(self: Query, *asked: Any, dear: float = 1.1 * own.cost, **more: Any) -> LeafAnswer:
            answer = solve(self, *asked, **more)
            hidden = LeafAnswer(answer.leaf, None, np.inf, 0.0, LeafClaim.OPEN)
            return hidden if answer.point is not None and answer.cost < dear else answer

        monkeypatch.setattr(Query, "solve_leaf", finds_none)
        e = Explainer(model, X).explain(rows.iloc[[k]], 1, solver=solver)[0]
        assert e.status == "feasible"
        assert 0 < e.bound <= own.cost * (1 + 1e-9) < e.cost


def test_points_that_the_model_refuses_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = cancers()
    model = behind_pca(X, y, RandomForestClassifier(8, max_depth=4, random_state=0), 3)
    row = X[model.predict(X) == 0].iloc[[0]]
    wanted, settles, refused = Explainer(model, X).explain(row, 1)[0], LeafChoices.settles, list[float]()

    def refuses(self: LeafChoices, answer: Any) -> bool:
        if answer.point is not None and answer.cost < wanted.cost * 1.01:
            refused.append(answer.cost)
            return False
        return settles(self, answer)

    monkeypatch.setattr(LeafChoices, "settles", refuses)
    e = Explainer(model, X).explain(row, 1)[0]
    assert refused
    assert e.status == "optimal"
    assert e.cost > wanted.cost * 1.01


def test_the_penalty_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = cancers()
    model = behind_pca(X, y, RandomForestClassifier(8, max_depth=4, random_state=0), 3)
    row = X[model.predict(X) == 0].iloc[[1]]
    wanted = Explainer(model, X).explain(row, 1, solver="scip")[0].cost
    for penalty in (1.0, 1e4):
        monkeypatch.setattr(totals, "PENALTY", penalty)
        assert_same(Explainer(model, X).explain(row, 1)[0], wanted)


def test_options_of_other_solvers_are_refused() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    bag = BaggingClassifier(TAOClassifier(2, init="random"), 3, random_state=0).fit(X, y)
    with pytest.raises(SolverError, match="does not take the option"):
        Explainer(bag, X).explain(X.iloc[[0]], 1, solver="box", options={"mip_max_nodes": 3})

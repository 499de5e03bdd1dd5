"""The search by costs that couple features, against the exact cheapest points of all choices of cells."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer, Linear
from ocf.cells.cell_problem import CellProblem
from ocf.problem.costs import Cost
from ocf.problem.quadratic import quadratic_cost
from ocf.solvers.box import coupled_boxes
from ocf.solvers.box.coupled import CoupledSearch, refusal
from ocf.solvers.result import SolverOptions

NAMES = ["a", "b", "k"]


def case(seed: int, trees: int = 2, depth: int = 2) -> tuple[Explainer, pd.DataFrame]:
    """Correlated numbers, one of them whole with many values, a binary column and a category."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(150, 3)) @ rng.normal(size=(3, 3))
    table = pd.DataFrame(numbers, columns=NAMES)
    table["k"] = np.round(200 * table["k"]).astype(int)
    table["g"] = rng.integers(0, 2, 150)
    table["h"] = pd.Categorical(rng.choice(["x", "y", "z"], 150))
    score = table["a"] - table["b"] + table["g"] + table["k"] / 200 + (table["h"] == "x")
    model = RandomForestClassifier(trees, max_depth=depth, random_state=seed, max_features=None)
    encoded = pd.get_dummies(table, columns=["h"]).astype(float)
    model.fit(encoded, (score > score.median()).astype(int))
    row = encoded[model.predict(encoded) == 0].iloc[[seed]]
    return Explainer(model, data=encoded), row


def coupled_cost(seed: int, **norms: float) -> Cost:
    """A form of little rank and very unequal sizes, and a diagonal in every other case."""
    rng = np.random.default_rng(seed + 100)
    root = rng.normal(size=(2 + seed % 2, 3)) * 10.0 ** rng.uniform(-1.5, 0.5, (2 + seed % 2, 1))
    Q = root.T @ root + np.diag(rng.uniform(0.05, 0.3, 3)) * (seed % 2)
    size = np.array([1.0, 1.0, 0.005])
    return quadratic_cost(NAMES, Q * np.outer(size, size), **norms)


def absolute_cost(seed: int, **norms: float) -> Cost:
    """Absolute values of sums of all features, fewer than features or more, of very unequal sizes."""
    rng = np.random.default_rng(seed + 200)
    sums = rng.normal(size=(2 + seed % 3, 3)) * 10.0 ** rng.uniform(-1.5, 0.5, (2 + seed % 3, 1))
    rows = (sums * np.array([1.0, 1.0, 0.005])).tolist()
    return Cost(**norms, absolutes=tuple(tuple(zip(NAMES, row, strict=True)) for row in rows))


def cells_of(seed: int, **asked: Any) -> CellProblem:
    explainer, row = case(seed)
    return explainer.cells(explainer.problem(row, target=1, **asked))


def cheapest(cells: CellProblem) -> float:
    """By going through all choices of open cells, each of which has its cheapest point in exact arithmetic."""
    part, best = cells.partition, np.inf
    opened = [np.flatnonzero(cells.open[part.cells_of(i)]).tolist() for i in range(part.n_features)]
    for choice in itertools.product(*opened):
        x = np.array(choice)
        leaves = part.leaves_at(x)
        if (cells.margins(leaves) >= 0).all() and cells.live[leaves].all() and cells.cost_of(x) < best:
            placed = cells.place(x)
            best = best if placed is None else min(best, placed.cost)
    return best


#: What is added to the form: numbers that move, categories that change, and prices that bend at the row.
NORMS = [{"l1": 0.1}, {"l0": 0.02, "l1": 0.01}, {"l2": 0.5}]

COSTS = pytest.mark.parametrize("of", [coupled_cost, absolute_cost], ids=["squares", "absolutes"])


@pytest.mark.parametrize("norms", NORMS, ids=["l1", "l0+l1", "l2"])
@pytest.mark.parametrize("seed", range(4))
@COSTS
def test_nothing_is_cheaper(of: Callable[..., Cost], seed: int, norms: dict[str, float]) -> None:
    cells = cells_of(seed, norm=of(seed, **norms))
    if of is absolute_cost and "l2" in norms:
        assert "squares and absolute values together" in refusal(cells)
        return
    assert not refusal(cells)
    found = CoupledSearch(cells, SolverOptions()).run()
    assert found.status.name == "OPTIMAL"
    assert found.cost == pytest.approx(cheapest(cells), rel=1e-9)
    assert found.bound == found.cost


@pytest.mark.parametrize("seed", range(2))
@COSTS
def test_constraints_hold(of: Callable[..., Cost], seed: int) -> None:
    explainer, row = case(seed)
    origin = row.iloc[0]
    least = float(origin["a"] + origin["b"] + 0.3)
    asked = {"norm": of(seed, l1=0.1), "constraints": [Linear({"a": 1, "b": 1}, ">=", least)]}
    cells = explainer.cells(explainer.problem(row, target=1, **asked))
    found = CoupledSearch(cells, SolverOptions()).run()
    assert found.cost == pytest.approx(cheapest(cells), rel=1e-9)
    e = explainer.explain(row, target=1, solver="box", **asked)[0]
    assert (e.status, e.verified) == ("optimal", True)
    assert e.cost == pytest.approx(found.cost, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
@COSTS
def test_bounds_never_pass_the_optimum(of: Callable[..., Cost], seed: int) -> None:
    explainer, row = case(seed, trees=15, depth=4)
    cells = explainer.cells(explainer.problem(row, target=1, norm=of(seed, l1=0.05)))
    optimum = CoupledSearch(cells, SolverOptions()).run()
    assert optimum.status.name == "OPTIMAL"
    assert optimum.nodes > 4, "too easy"
    last = 0.0
    for nodes in (1, 2, 4):
        found = CoupledSearch(cells, SolverOptions(options={"node_limit": nodes})).run()
        assert found.status.name in ("UNKNOWN", "FEASIBLE")
        assert last <= found.bound <= optimum.cost
        last = found.bound
        bounds = [p.bound for p in found.history]
        assert bounds == sorted(bounds)
        if found.cells is not None:
            placed = cells.place(found.cells)
            assert placed is not None
            assert placed.cost == found.cost >= optimum.cost


@COSTS
def test_threads_agree_and_share_the_work(of: Callable[..., Cost], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the second box a thread waits until the other has the third."""
    explainer, row = case(0, trees=15, depth=4)
    cells = explainer.cells(explainer.problem(row, target=1, norm=of(0, l1=0.05)))
    one, visit = CoupledSearch(cells, SolverOptions()).run(), coupled_boxes.CoupledWorker.visit
    arrived, visits = threading.Barrier(2), list[str]()

    def patient(self: coupled_boxes.CoupledWorker, node: coupled_boxes.OpenBox) -> list[coupled_boxes.OpenBox]:
        visits.append(threading.current_thread().name)
        if len(visits) in (2, 3):
            arrived.wait(timeout=60)
        return visit(self, node)

    monkeypatch.setattr(coupled_boxes.CoupledWorker, "visit", patient)
    for threads in (2, 3):
        found = CoupledSearch(cells, SolverOptions(threads=threads)).run()
        assert (found.status, found.cost) == (one.status, pytest.approx(one.cost, rel=1e-12))
        assert found.bound == found.cost
    assert len(set(visits)) > 1


@pytest.mark.parametrize("seed", range(3))
@COSTS
def test_matrix_solvers_agree(of: Callable[..., Cost], seed: int) -> None:
    explainer, row = case(seed, trees=6, depth=3)
    norm = of(seed, l1=0.1)
    found = [explainer.explain(row, target=1, norm=norm, solver=s)[0] for s in ("box", "highs", "scip", "auto")]
    assert [e.status for e in found] == ["optimal"] * 4
    assert [e.verified for e in found] == [True] * 4
    assert [e.cost for e in found] == pytest.approx([found[0].cost] * 4, rel=1e-8)
    assert found[-1].method["solver"] == "box"


def test_a_cutoff_is_beaten_or_proves_that_nothing_is_cheaper() -> None:
    cells = cells_of(1, norm=coupled_cost(1, l1=0.1))
    optimum = cheapest(cells)
    assert CoupledSearch(cells, SolverOptions(), 1.01 * optimum).run().cost == pytest.approx(optimum, rel=1e-9)
    none = CoupledSearch(cells, SolverOptions(), 0.99 * optimum).run()
    assert (none.status.name, none.message, none.bound) == ("INFEASIBLE", "cutoff", 0.99 * optimum)


def test_refused_points_are_cut_off() -> None:
    """Where every point is in doubt, the judge decides."""
    explainer, row = case(0, trees=6, depth=3)
    cells = explainer.cells(explainer.problem(row, target=1, norm=coupled_cost(0, l1=0.1)))
    every = np.full_like(cells.requirements.error_bound, np.inf)
    refused: list[np.ndarray] = []

    def judge(x: np.ndarray) -> bool:
        if len(refused) < 2:
            assert cells.values is not None
            refused.append(cells.values.of_model(cells.partition.leaves_at(x)))
            return False
        return True

    doubtful = replace(cells, requirements=replace(cells.requirements, error_bound=every))
    found = CoupledSearch(doubtful, SolverOptions(), confirm=judge).run()
    known = CoupledSearch(replace(cells, excluded=tuple(refused)), SolverOptions()).run()
    assert (found.status.name, found.refused, len(refused)) == ("OPTIMAL", 2, 2)
    assert found.cost == known.cost


def test_excluded_leaves_are_not_searched() -> None:
    """Boxes in nothing but excluded leaves are left out as a whole, not cell by cell."""
    explainer, row = case(1, trees=6, depth=3)
    cells = explainer.cells(explainer.problem(row, target=1, norm=coupled_cost(1, l1=0.1)))
    costs: list[float] = []
    for _ in range(4):
        found = CoupledSearch(cells, SolverOptions(options={"node_limit": 14})).run()  # 42 cell by cell
        assert found.cells is not None
        assert found.cost is not None
        assert found.status.name == "OPTIMAL"
        assert cells.values is not None
        costs.append(found.cost)
        leaves = cells.values.of_model(cells.partition.leaves_at(found.cells))
        assert not cells.is_excluded(leaves)
        cells = replace(cells, excluded=(*cells.excluded, leaves))
    assert costs == sorted(costs)


def test_squares_beside_absolutes_are_refused() -> None:
    explainer, row = case(0)
    norm = {"mahalanobis_l1": 1, "mahalanobis": 0.1, "l1": 0.1}
    cells = explainer.cells(explainer.problem(row, target=1, norm=norm))
    assert "squares and absolute values together" in refusal(cells)
    e = explainer.explain(row, target=1, norm=norm, solver="box")[0]
    assert e.status == "error"
    assert "'auto'" in e.message

"""What an LP relaxation leaves of a model over cells, against brute force over all choices of cells."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_problems import exhaustive, random_problem

from ocf.cells.cell_problem import CellProblem
from ocf.solve.compile import compile_formulation
from ocf.solvers import root_bound
from ocf.solvers.box import solve_cells
from ocf.solvers.cell_form import CellModel

from .box.cases import compiled, forest, hard_problem


def model_of(cells: CellProblem, name: str = "interval") -> CellModel:
    formulation = compile_formulation(name, cells)
    return CellModel(formulation, cells, formulation.instance(cells))


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_bound, "LEAST_ROWS", 0)
    monkeypatch.setattr(root_bound, "at_hand", lambda kernel: True)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1 + 1e-9, 1.02, 1.5, 5.0]))
def test_nothing_below_the_limit_is_lost(seed: int, times: float) -> None:
    cells = random_problem(seed)
    assume(cells.partition.reachable.all())
    everything, model = exhaustive(cells), model_of(cells)
    assume(root_bound.fits(model))
    costs = everything.cost[everything.feasible]
    limit = times * float(costs.min()) + 1e-9 if len(costs) else 1.0
    left = root_bound.root_bound(model, limit)
    cheaper = everything.choices[everything.feasible & (everything.cost < limit)]
    assert left.bound <= (costs.min() if len(cheaper) else limit)
    if left.model is None:
        assert not len(cheaper)
        return
    own = left.model.cells
    for choice in cheaper:
        assert own.open[own.partition.offsets[:-1] + choice].all()
        assert own.live[own.partition.leaves_at(choice)].all()
    assert not (own.open & ~cells.open).any()
    assert not (own.live & ~cells.live).any()


def test_a_hard_problem_is_left_with_less() -> None:
    cells = hard_problem(rounded=False)
    cost = solve_cells(cells, relaxation=compiled(cells)).cost
    assert cost is not None
    whole = model_of(cells)
    left = root_bound.root_bound(whole, cost * (1 + 1e-9))
    assert left.model is not None
    assert 0 < left.bound <= cost
    assert left.model.cells.live.sum() < cells.live.sum()
    assert left.model.reduced.form.n_rows < whole.reduced.form.n_rows
    none = root_bound.root_bound(whole, left.bound / 2)
    assert none.model is None
    assert none.bound == left.bound / 2


def test_other_models_are_left_alone() -> None:
    cells = hard_problem()
    assert root_bound.fits(model_of(cells))
    assert not root_bound.fits(model_of(cells, "ocean"))


@pytest.mark.parametrize("norm", ["l0", "l1", {"l0": 0.01, "l1": 1.0}])
def test_scip_answers_as_the_search_does_with_and_without(norm: object, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, rows = forest(rounded=False)
    asked = Counter[str]()
    narrow = root_bound.root_bound

    def counting(*given: object) -> root_bound.RootBound:
        asked["lp"] += 1
        return narrow(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(root_bound, "root_bound", counting)
    answers = {solver: explainer.explain(rows, 1, norm, solver=solver, progress=False) for solver in ("box", "scip")}
    assert asked["lp"] > 0
    monkeypatch.setattr(root_bound, "LEAST_ROWS", np.inf)
    asked.clear()
    alone = explainer.explain(rows, 1, norm, solver="scip", progress=False)
    assert not asked
    for wanted, found, other in zip(answers["box"], answers["scip"], alone, strict=True):
        assert found.status == other.status == wanted.status == "optimal"
        assert found.cost == pytest.approx(wanted.cost, rel=1e-9)
        assert other.cost == pytest.approx(wanted.cost, rel=1e-9)
        assert len(found.changes) == len(wanted.changes) == len(other.changes)

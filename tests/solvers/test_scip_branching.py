"""SCIP that branches on cells, against brute force and against the box search."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyscipopt import SCIP_RESULT
from small_problems import exhaustive, random_problem

from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.formulations.base import decode
from ocf.solve.compile import compile_formulation
from ocf.solvers import SolverOptions, get_solver
from ocf.solvers.box import solve_cells
from ocf.solvers.cell_form import CellModel
from ocf.solvers.result import CUTOFF, Status
from ocf.solvers.scip_branching import CellBranching

from .box.cases import compiled, forest, hard_problem


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often SCIP has asked where to branch, in a test that compiles the kernels for it."""
    asked, branch = [0], CellBranching.branchexeclp

    def counting(self: CellBranching, allowaddcons: bool) -> dict[str, Any]:
        asked[0] += 1
        return branch(self, allowaddcons)

    monkeypatch.setattr(CellBranching, "branchexeclp", counting)
    monkeypatch.setattr("ocf.solvers.scip_branching.at_hand", lambda kernel: True)
    return asked


def cheapest(cells: CellProblem, cutoff: float) -> tuple[Status, IntArray | None, float]:
    """What SCIP finds below a cutoff, without anything that would spare it branching."""
    formulation = compiled(cells)
    reduced = formulation.instance(cells)
    over = CellModel(formulation, cells, reduced)
    assert CellBranching.fits(over) == (reduced.form.n_cols > 0)
    options = SolverOptions(options={"propagating/maxrounds": 0, "propagating/maxroundsroot": 0})
    result = get_solver("scip").solve(reduced.form, options, cutoff=cutoff, over=over)
    choice = None if result.x is None else decode(reduced.restore(result.x)[: formulation.n_leaves], cells)
    assert result.message in ("", CUTOFF)
    return result.status, choice, result.bound


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_cutoffs_equal_brute_force(seed: int) -> None:
    cells = random_problem(seed)
    assume(cells.partition.reachable.all())
    everything = exhaustive(cells)
    costs = np.unique(everything.cost[everything.feasible])
    for cutoff in () if not len(costs) else (costs[0] * (1 - 1e-9), 1.001 * costs[0] + 1e-3, 1.5 * costs[-1] + 1):
        status, choice, _ = cheapest(cells, float(cutoff))
        if costs[0] >= cutoff:
            assert status is Status.INFEASIBLE
        else:
            assert status is Status.OPTIMAL
            assert choice is not None
            assert cells.cost_of(choice) == pytest.approx(costs[0], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rounded", [False, True])
def test_a_problem_that_takes_branching(rounded: bool, counted: list[int], caplog: pytest.LogCaptureFixture) -> None:
    cells = hard_problem(rounded)
    found = solve_cells(cells, relaxation=compiled(cells))
    assert found.cost is not None
    assert found.cells is not None
    with caplog.at_level(logging.WARNING):
        status, choice, bound = cheapest(cells, 1.3 * found.cost)
        assert status is Status.OPTIMAL
        assert choice is not None
        assert cells.cost_of(choice) == pytest.approx(found.cost, rel=1e-9)
        assert bound == pytest.approx(found.cost, rel=1e-9)
        assert cheapest(cells, found.cost)[0] is Status.INFEASIBLE
        closed = replace(cells, excluded=(cells.partition.leaves_at(found.cells),))
        again = solve_cells(closed, relaxation=compiled(closed), cutoff=2 * found.cost)
        status, choice, _ = cheapest(closed, 2 * found.cost)
        assert (status is Status.OPTIMAL, choice is not None) == (again.cells is not None, again.cells is not None)
        assert choice is None or closed.cost_of(choice) == pytest.approx(again.cost, rel=1e-9)
    assert counted[0] > 10
    assert not caplog.records  # the rule never failed


def test_the_answer_is_that_of_the_other_ways(counted: list[int]) -> None:
    explainer, rows = forest(rounded=False)
    (wanted,), (e,) = (explainer.explain(rows[1:], 1, solver=solver) for solver in ("box", "scip"))
    assert (e.status, e.verified, e.proved_by) == ("optimal", True, "scip")
    assert e.cost == pytest.approx(wanted.cost, rel=1e-9)
    assert counted[0] > 0


def test_a_rule_that_fails_leaves_branching_to_scip(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ocf.solvers.scip_branching.propagate", fail)
    explainer, rows = forest(rounded=False)
    (wanted,), (e,) = (explainer.explain(rows[1:], 1, solver=solver) for solver in ("highs", "scip"))
    assert (e.status, e.proved_by) == ("optimal", "scip")
    assert e.cost == pytest.approx(wanted.cost, rel=1e-9)
    assert "SCIP branches itself" in caplog.text


def test_without_its_kernels_scip_branches_itself(monkeypatch: pytest.MonkeyPatch, counted: list[int]) -> None:
    monkeypatch.setattr("ocf.solvers.scip_branching.at_hand", lambda kernel: False)
    explainer, rows = forest(rounded=False)
    (e,) = explainer.explain(rows[1:], 1, solver="scip", reduce=False, time_limit=60)
    assert (e.status, e.proved_by) == ("optimal", "scip")
    assert counted == [0]


def test_another_model_gets_no_such_rule() -> None:
    cells = hard_problem()
    for name in ("interval", "ocean", "oae", "fcca"):
        formulation = compile_formulation(name, cells)
        over = CellModel(formulation, cells, formulation.instance(cells))
        assert CellBranching.fits(over) == (name == "interval")


def test_nodes_without_an_lp_are_left_to_scip() -> None:
    """Where its LP solver fails on huge coefficients SCIP asks a rule for branching all the same."""
    cells = hard_problem()
    formulation = compiled(cells)
    reduced = formulation.instance(cells)
    rule = CellBranching(CellModel(formulation, cells, reduced), [], 1.0)
    for ask in (rule.branchexecps, rule.branchexecext):
        assert ask(True) == {"result": SCIP_RESULT.DIDNOTRUN}

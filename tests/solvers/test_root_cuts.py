"""Cuts between trees before a solver of matrices, against brute force over all choices of cells."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from small_problems import exhaustive, random_ensemble, random_space

from ocf import Explainer
from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.cells.leaf_conflicts import clique_proof
from ocf.errors import ProblemError
from ocf.formulations.base import decode
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.solve.compile import compile_formulation
from ocf.solvers import SOLVERS, Solver, SolverOptions, get_solver
from ocf.solvers.box.bitsets import Bits
from ocf.solvers.box.cliques import conflicts
from ocf.solvers.box.instance import Instance
from ocf.solvers.result import Status
from ocf.solvers.root_cuts import RootCuts, root_cuts
from ocf.solvers.standard_form import Reduced


def problem(seed: int) -> CellProblem:
    rng = np.random.default_rng(seed)
    space, rows = random_space(rng)
    ensemble = random_ensemble(rng, space, rows, 10, 3, 2)
    return to_cells(Problem(ensemble, space, rows[0], ClassTarget(seed % 2), Cost.parse("l1")))


def cut(cells: CellProblem, limit: float, formulation: str = "ocean") -> tuple[Reduced, RootCuts]:
    reduced = compile_formulation(formulation, cells).instance(cells)
    return reduced, root_cuts(reduced, cells, limit)


SEEDS = [seed for seed in range(12) if np.isfinite(exhaustive(problem(seed)).optimum)]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_cut_removes_a_cheaper_point(seed: int) -> None:
    cells = problem(seed)
    everything = exhaustive(cells)
    limit = 1.1 * everything.optimum + 0.01
    _, cuts = cut(cells, limit)
    for choice in everything.choices[everything.feasible & (everything.cost < limit)]:
        leaves = cells.partition.leaves_at(choice)
        assert all(np.isin(clique, leaves).sum() <= 1 for clique in cuts.cliques)
    assert all(len(clique) > 1 for clique in cuts.cliques)
    assert list(cuts.bounds) == sorted(cuts.bounds)


def test_cuts_are_found_and_raise_the_bound() -> None:
    raised = 0
    for seed in SEEDS:
        cells = problem(seed)
        reduced, cuts = cut(cells, 1.1 * exhaustive(cells).optimum + 0.01)
        cold = get_solver("highs").solve_relaxation(cuts.added_to(reduced.form))
        assert cold.bound == pytest.approx(cuts.bounds[-1], rel=1e-6, abs=1e-9)
        assert len(cuts.side) == len(cuts.cliques) == len(cuts.proofs) == cuts.rows.shape[0]
        for clique, proof in zip(cuts.cliques, cuts.proofs, strict=True):
            assert [why.leaves for why in proof] == list(combinations(clique.tolist(), 2))
        raised += cuts.bounds[-1] > cuts.bounds[0] + 1e-3
    assert raised >= 3


@pytest.mark.parametrize("formulation", ["ocean", "oae"])
@pytest.mark.parametrize("seed", SEEDS[:5])
def test_the_optimum_stays(solver: Solver, formulation: str, seed: int) -> None:
    cells = problem(seed)
    optimum = exhaustive(cells).optimum
    for limit in (np.inf, 1.05 * optimum + 1e-3):
        reduced, cuts = cut(cells, limit, formulation)
        result = solver.solve(cuts.added_to(reduced.form))
        assert result.status is Status.OPTIMAL
        assert result.x is not None
        choice = decode(reduced.restore(result.x)[: len(cells.live)], cells)
        assert choice is not None
        assert cells.cost_of(choice) == pytest.approx(optimum, rel=1e-9)


def test_where_nothing_is_cheaper_the_solver_still_says_so(solver: Solver) -> None:
    cells = problem(SEEDS[0])
    limit = 0.9 * exhaustive(cells).optimum
    reduced, cuts = cut(cells, limit)
    result = solver.solve(cuts.added_to(reduced.form), cutoff=limit)
    assert result.status is Status.INFEASIBLE


def test_a_cut_without_a_proof_reaches_no_solver(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def all_conflict(instance: Instance, bits: Bits, limit: float) -> np.ndarray:
        return np.full_like(conflicts(instance, bits, limit), ~np.uint64(0))

    monkeypatch.setattr("ocf.solvers.root_cuts.conflicts", all_conflict)
    for seed in SEEDS:
        cells = problem(seed)
        limit = 1.1 * exhaustive(cells).optimum + 0.01
        _, cuts = cut(cells, limit)
        assert all(clique_proof(cells, clique, limit) for clique in cuts.cliques)
    assert "had no proof and are left out" in caplog.text


def test_rounds_take_a_part_of_the_time() -> None:
    cells = problem(SEEDS[0])
    reduced = compile_formulation("ocean", cells).instance(cells)
    cuts = root_cuts(reduced, cells, options=SolverOptions(time_limit=1e-9))
    assert (cuts.cliques, cuts.bounds) == ((), ())
    assert cuts.added_to(reduced.form) is reduced.form


@pytest.mark.parametrize("name", SOLVERS)
def test_an_answer_with_cuts_is_the_answer_without(name: str) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
    forest = RandomForestClassifier(12, max_depth=4, random_state=0).fit(x, (x.sum(axis=1) > 1).astype(int))
    row = x[forest.predict(x) == 0].iloc[[3]]
    explainer = Explainer(forest, data=x)
    (wanted,) = explainer.explain(row, target=1, solver="box")
    (e,) = explainer.explain(row, target=1, solver=name, cuts="root")
    assert (e.status, e.verified) == ("optimal", True)
    assert name in e.method["solvers"]
    assert e.cost == pytest.approx(wanted.cost, rel=1e-9)
    assert e.sizes["cuts"] > 0
    (e,) = explainer.explain(row, target=1, solver=name)
    assert "cuts" not in e.sizes
    (e,) = explainer.explain(row, target=1, cuts="root")
    assert (e.cost, e.method["solver"]) == (pytest.approx(wanted.cost, rel=1e-9), "highs")
    assert e.sizes["cuts"] > 0
    with pytest.raises(ProblemError, match="the solver 'box' does without one"):
        explainer.explain(row, target=1, solver="box", cuts="root")

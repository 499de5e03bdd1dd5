"""Every formulation with every solver, reduced and not, finds what brute force finds, on random small instances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracle import brute_force
from oracle.harness import Method, case_of, check_case, check_problem, methods, prepare, question_of
from oracle.instances import LIBRARIES, REGRESSORS, Instance, Spec, layouts_of
from oracle.playing import play
from sklearn.tree import DecisionTreeClassifier

from ocf.cells.forms import to_alternatives
from ocf.formulations import FORMULATIONS
from ocf.problem.problem import Problem
from ocf.solve.cell_search import solve_alternatives
from ocf.solve.compile import compile_formulation
from ocf.solvers import CELL_SOLVERS, available, get_solver
from ocf.solvers.result import SolverOptions, Status

#: Saved problems.
PAST = Path(__file__).parent / "past"


@pytest.mark.parametrize("library", LIBRARIES)
def test_methods_equal_brute_force(library: str) -> None:
    play(library, 5)


@pytest.mark.parametrize("library", REGRESSORS)
def test_methods_equal_brute_force_on_values(library: str) -> None:
    play(library, 3)


@pytest.mark.slow
@pytest.mark.parametrize("library", [*LIBRARIES, *REGRESSORS])
def test_methods_equal_brute_force_on_many(library: str) -> None:
    play(library, 4, 0)


@pytest.mark.parametrize("path", sorted(PAST.glob("*.json")), ids=lambda path: path.stem)
def test_past_failures(path: Path) -> None:
    """Saved problems on which a method was once wrong.

    contradictory_splits: XGBoost's leaf below splits that exclude each other; its empty box passed for an interval of
    the interval model, which then let a leaf through that misses the point. permitted_levels_on_both_sides: the
    cheapest of two permitted levels is not the one that is fewer levels away. scip_dual_presolving: the dual
    presolving of linear constraints of SCIP 10.0 cuts off the optimum of OCEAN's model. scip_dual_reductions: other
    dual reductions of SCIP do so too. highs_presolve_infeasible: the presolve of HiGHS 1.15 declares OCEAN's model
    infeasible.
    """
    assert check_problem(Problem.from_json(path.read_text())) < np.inf


def test_a_past_failure_with_values_within_cells() -> None:
    """A relation that cells attain with 3e-7 to spare: HiGHS's presolve called a dearer point optimal, by 1.5e-6.

    Methods are held against an optimum in exact fractions, since brute force chooses no values within cells.
    """
    problem = Problem.from_json((PAST / "within" / "highs_presolve_relation.json").read_text())
    (cells,) = to_alternatives(problem)
    question = question_of(problem, cells)
    played = [method for method in methods() if method.solver not in CELL_SOLVERS]
    for formulation, solver, reduced in played:
        found = solve_alternatives(
            [cells],
            [partial(compile_formulation, formulation, cells)],
            get_solver(solver),
            SolverOptions(),
            confirm=lambda point: bool(brute_force.gets_target(question, point[None])[0]),
            use_reduction=reduced,
        )
        assert (found.status, found.cost) == (Status.OPTIMAL, pytest.approx(1.4598593263483743, rel=1e-9))
    assert len(played) > 10


def test_all_registered_methods_play() -> None:
    played = methods()
    assert {m.formulation for m in played} == set(FORMULATIONS)
    assert {m.solver for m in played} == {name for name, usable in available().items() if usable}
    assert {m.reduce for m in played} == {True, False}


@pytest.mark.parametrize("library", [*LIBRARIES, *REGRESSORS])
def test_problems_survive_json(library: str) -> None:
    for layout in layouts_of(library):
        problem = prepare(Spec(library, layout, 3)).problem
        again = Problem.from_json(problem.to_json())
        assert again.to_json() == problem.to_json()
        np.testing.assert_array_equal(again.origin, problem.origin)


# -- the harness itself ----------------------------------------------------------------------------------------


@pytest.fixture
def stairs() -> Instance:
    """One feature that decides alone, at 2.5, beside one that does not matter."""
    table = pd.DataFrame({"height": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "noise": [1.0, 0.0] * 3})
    model = DecisionTreeClassifier(random_state=0).fit(table, [0, 0, 0, 1, 1, 1])
    return Instance(Spec("tree", "frame", 0), model, table, table.iloc[[1]], {}, {"target": 1, "norm": "l1"})


def test_brute_force_knows_a_known_answer(stairs: Instance) -> None:
    optimum = brute_force.search(case_of(stairs).question)
    threshold = np.float64(np.nextafter(np.float32(2.5), np.float32(np.inf)))  # scikit-learn compares in float32
    assert 2.5 < optimum.point[0] <= threshold
    assert optimum.cost == (optimum.point[0] - 1.0) / 5.0
    assert check_case(case_of(stairs)) == "optimal"


def test_sampling_refutes_a_cost_that_is_too_high(stairs: Instance) -> None:
    with pytest.raises(AssertionError, match="gets the target for"):
        brute_force.assert_nothing_cheaper(case_of(stairs).question, 0.5, np.random.default_rng(0))


def test_sampling_refutes_cuts_that_are_too_few(stairs: Instance) -> None:
    question = case_of(stairs).question
    blind = brute_force.Question(**{**vars(question), "cuts": [np.zeros(0)] * 2})
    with pytest.raises(AssertionError, match="same cells"):
        brute_force.assert_constant_within_cells(blind, np.random.default_rng(0))


def test_a_wrong_answer_is_reported_with_its_replay(
    stairs: Instance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OCF_FAILURES", str(tmp_path))
    search: Callable[[brute_force.Question], brute_force.Optimum] = brute_force.search
    monkeypatch.setattr(brute_force, "search", lambda q: brute_force.Optimum(search(q).cost * (1 + 1e-8), None, 0))
    monkeypatch.setattr(brute_force, "assert_nothing_cheaper", lambda *_: None)
    with pytest.raises(AssertionError, match=r"(?s)interval-highs: cost .*replay: .*problem: "):
        check_case(case_of(stairs), [Method("interval", "highs", True)])
    assert len(list(tmp_path.glob("*.json"))) == 1

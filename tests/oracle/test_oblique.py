"""Leaf by leaf and the models with hyperplanes, on the harness's axis-aligned instances of every feature kind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from oracle.harness import Method, check_case, prepare
from oracle.instances import Spec, specs
from oracle.playing import bounded

from ocf.cells.partition import partition
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassSetTarget
from ocf.solve.ensemble_search import solve_globally
from ocf.solve.leaf_query import Query
from ocf.solve.tree_search import TreeSearch
from ocf.solvers.result import SolverOptions

BY_VALUE = [
    Method("hyperplanes", "auto", True),
    *(Method(name, solver, True) for name in ("hyperplanes", "ocean_hyperplanes") for solver in ("highs", "scip")),
]


@pytest.mark.parametrize("library", ["tree", "forest"])
def test_values_instead_of_cells_equal_brute_force(library: str) -> None:
    seen: Counter[str] = Counter()

    @bounded(15)
    @given(spec=specs(library))
    def run(spec: Spec) -> None:
        case = prepare(spec)
        single = case.explainer.prepared.ensemble.n_trees == 1
        seen[check_case(case, [*BY_VALUE, *([Method("oblique", "highs", True)] if single else [])])] += 1

    run()
    assert seen["optimal"] > seen["infeasible"] / 2


def test_one_of_several_classes_by_value() -> None:
    """Two of three classes will do: the target has an alternative for each."""
    case = prepare(Spec("tree", "frame", 1481, 0))
    assert isinstance(case.problem.target, ClassSetTarget)
    assert len(case.problem.alternatives) == 2
    assert check_case(case, [*BY_VALUE, Method("oblique", "highs", True)]) == "optimal"


@pytest.mark.parametrize("method", BY_VALUE, ids=lambda method: f"{method.formulation}/{method.solver}")
def test_a_past_failure_of_presolving(method: Method) -> None:
    """A constraint that leaves three changes 1e-9 of room, and two none: SCIP's presolving called it infeasible."""
    path = Path(__file__).parent / "past" / "within" / "scip_presolve_side.json"
    problem = Problem.from_json(path.read_text())
    trees = problem.ensemble
    query = Query(TreeSearch(partition(trees, problem.space)), problem, SolverOptions(), method.solver)

    def has_the_target(point: np.ndarray) -> bool:
        return bool(trees.decide(trees.scores(point[None]))[0] == 1)

    found = solve_globally(query, has_the_target, method.formulation)
    assert (found.status.value, found.cost) == ("optimal", 3.0)
    assert found.point is not None
    assert (found.point != np.asarray(problem.origin)).sum() == 3

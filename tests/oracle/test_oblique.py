"""Leaf by leaf and the models with hyperplanes, on the harness's axis-aligned instances of every feature kind."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from oracle.harness import Method, check_case, prepare
from oracle.instances import Spec, specs
from oracle.playing import bounded

from ocf.problem.targets import ClassSetTarget

BY_VALUE = [Method(name, solver, True) for name in ("hyperplanes", "ocean_hyperplanes") for solver in ("highs", "scip")]


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

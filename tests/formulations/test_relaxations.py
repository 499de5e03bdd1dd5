"""Across files: linear relaxations of all formulations, and that the variables declared binary are enough."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import harness
from oracle.brute_force import search
from oracle.harness import Case
from oracle.instances import LIBRARIES, specs

from ocf.errors import ProblemError
from ocf.formulations import FORMULATIONS, get_formulation
from ocf.formulations.base import decode
from ocf.solve.compile import compile_formulation
from ocf.solvers import get_solver
from ocf.solvers.cell_form import Compiled
from ocf.solvers.result import Status

SPECS = st.sampled_from(list(LIBRARIES)).flatmap(specs)
FEW = settings(max_examples=25, deadline=None)
LP_TOLERANCE = 1e-6

#: Each formulation is given the same cases.
prepare = cache(harness.prepare)


def compiled(case: Case, name: str) -> Compiled:
    return compile_formulation(name, case.cells)


def lp_bound(case: Case, name: str) -> float:
    result = get_solver("highs").solve_relaxation(compiled(case, name).instance(case.cells).form)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return result.bound


@FEW
@given(SPECS)
def test_interval_is_at_least_as_tight_as_ocean_and_ocean_as_the_baselines(spec: object) -> None:
    case = prepare(spec)  # type: ignore[arg-type]
    if case.cells.infeasible:
        return
    # the cells are those of one alternative of the target; others may hold cheaper points
    alone = len(case.explainer.alternatives(case.problem)) == 1
    optimum = search(case.question).cost if alone else np.inf
    interval, ocean = lp_bound(case, "interval"), lp_bound(case, "ocean")
    slack = LP_TOLERANCE * (1.0 + abs(ocean)) if np.isfinite(ocean) else 0.0
    assert interval >= ocean - slack, case.describe()
    for baseline in ("oae", "fcca"):
        bound = lp_bound(case, baseline)
        slack = LP_TOLERANCE * (1.0 + abs(bound)) if np.isfinite(bound) else 0.0
        assert ocean >= bound - slack, f"{baseline}{case.describe()}"
    assert interval <= optimum + LP_TOLERANCE * (1.0 + abs(interval)) or optimum == interval, case.describe()


@pytest.mark.parametrize("name", FORMULATIONS)
def test_leaves_are_whole_whatever_the_objective(name: str) -> None:
    """Solutions with random costs on every column: only the declared binaries are forced to be whole."""

    @FEW
    @given(SPECS)
    def run(spec: object) -> None:
        case = prepare(spec)  # type: ignore[arg-type]
        if case.cells.infeasible:
            return
        formulation = compiled(case, name)
        rng = np.random.default_rng(0)
        for _ in range(3):
            instance = formulation.instance(case.cells)
            form = instance.form.with_costs(rng.normal(size=instance.form.n_cols))
            found = get_solver("highs").solve(form)
            if found.status is Status.INFEASIBLE:
                return
            leaves = instance.restore(found.x)[: formulation.n_leaves]
            np.testing.assert_allclose(leaves, np.round(leaves), atol=1e-6, err_msg=case.describe())
            choice = decode(leaves, case.cells)
            assert choice is not None, case.describe()
            np.testing.assert_array_equal(
                np.flatnonzero(leaves > 0.5), case.cells.partition.leaves_at(choice), err_msg=case.describe()
            )

    run()


@pytest.mark.parametrize("name", ["interval", "ocean"])
def test_whole_leaves_make_whole_cells(name: str) -> None:
    """Implied integrality (ocean, supplement): with the leaves fixed, a vertex names one cell per feature."""

    @FEW
    @given(SPECS)
    def run(spec: object) -> None:
        case = prepare(spec)  # type: ignore[arg-type]
        part, formulation = case.cells.partition, compiled(case, name)
        rng = np.random.default_rng(0)
        for _ in range(3):
            reached = part.leaves_at(np.array([rng.integers(w) for w in part.widths]))
            lower, upper = formulation.form.lower.copy(), formulation.form.upper.copy()
            lower[: formulation.n_leaves] = 0.0
            lower[reached] = 1.0
            upper[: formulation.n_leaves] = lower[: formulation.n_leaves]
            form = formulation.form.with_bounds(lower, upper).with_costs(rng.normal(size=formulation.form.n_cols))
            found = get_solver("highs").solve_relaxation(form)
            if (case.cells.margins(reached) < 1e-6).any():
                continue
            assert found.status is Status.OPTIMAL, case.describe()
            for columns in (*formulation.steps, *formulation.levels):
                np.testing.assert_allclose(
                    found.x[columns], np.round(found.x[columns]), atol=1e-6, err_msg=case.describe()
                )

    run()


@FEW
@given(SPECS)
def test_every_choice_of_cells_is_a_solution_exactly_when_it_reaches_the_target(spec: object) -> None:
    """The interval model with its cells fixed: no other leaves than those of the point, and all of those."""
    case = prepare(spec)  # type: ignore[arg-type]
    part = case.cells.partition
    formulation = compiled(case, "interval")
    rng = np.random.default_rng(0)
    for _ in range(4):
        choice = np.array([rng.integers(w) for w in part.widths])
        lower, upper = formulation.form.lower.copy(), formulation.form.upper.copy()
        for i, cell in enumerate(choice):
            steps, levels = formulation.steps[i], formulation.levels[i]  # one of the two is empty
            lower[steps] = upper[steps] = np.arange(1, len(steps) + 1) <= cell
            lower[levels] = upper[levels] = np.arange(len(levels)) == cell
        form = formulation.form.with_bounds(lower, upper).with_costs(rng.normal(size=formulation.form.n_cols))
        found = get_solver("highs").solve_relaxation(form)
        reached = part.leaves_at(choice)
        if (case.cells.margins(reached) >= 1e-6).all():
            leaves = found.x[: formulation.n_leaves]
            np.testing.assert_allclose(leaves, np.isin(np.arange(len(leaves)), reached), atol=1e-6)
        elif (case.cells.margins(reached) < -1e-6).any():
            assert found.status is Status.INFEASIBLE, case.describe()


@pytest.mark.parametrize("library", LIBRARIES)
def test_only_the_declared_variables_are_binary(library: str) -> None:
    case = prepare((library, "frame", 5, 0))
    part, ensemble = case.cells.partition, case.cells.partition.ensemble
    interval, ocean, oae, fcca = (compiled(case, name).form for name in ("interval", "ocean", "oae", "fcca"))
    assert interval.integer.sum() == part.n_cells - part.ordered.sum()
    inner = ensemble.leaf < 0
    stages = np.unique(np.column_stack([ensemble.node_tree, ensemble.depth])[inner], axis=0)
    assert ocean.integer.sum() == len(stages)
    assert oae.integer.sum() == part.n_cells + ensemble.n_leaves
    assert fcca.integer.sum() == interval.integer.sum() + ensemble.n_leaves


def test_unknown_formulation() -> None:
    with pytest.raises(ProblemError, match="did you mean 'interval'"):
        get_formulation("intervals")

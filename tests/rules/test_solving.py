"""Mathematical models on questions small enough to see through."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_rules import best_box, random_query

from ocf.errors import SolverError
from ocf.formulations.blocks import tree_values
from ocf.regional.query import ProbabilityQuery
from ocf.rules import finding
from ocf.rules import search as rule_search
from ocf.rules import solving as rule_solving
from ocf.rules.families import Families
from ocf.solvers import SolveResult, SolverOptions, StandardForm, Status, get_solver


def test_a_start_is_taken_by_the_model(band: ProbabilityQuery) -> None:
    start = rule_search.greedy_boxes(band, [0], 0.9)[0][0]
    found = rule_solving.solve_box(band, [0], 0.9, start=start)
    assert (found.status, found.weight) == (Status.OPTIMAL, pytest.approx(3 / 11))


def test_a_set_that_is_not_proven_is_not_given(band: ProbabilityQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    class OutOfTime:
        def solve(self, *_: object) -> SolveResult:
            return SolveResult(Status.UNKNOWN)

    monkeypatch.setattr(rule_solving, "matrix_solver", lambda _: OutOfTime())
    with pytest.raises(SolverError, match="sets='exhaustive'"):
        rule_solving.solve_minimal_sets(band, [0, 1], 0.2)


def test_a_set_within_tolerances_is_proven_by_the_other_solver(
    band: ProbabilityQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = rule_solving.solve_minimal_sets(band, [0, 1], 0.2)

    class Tolerant:
        def solve(self, form: StandardForm, options: SolverOptions | None) -> SolveResult:
            found = get_solver("highs").solve(form, options)
            return replace(found, status=Status.FEASIBLE, bound=found.bound - 1e-6, raw_status="Optimal")

    monkeypatch.setattr(rule_solving, "matrix_solver", lambda _: Tolerant())
    assert rule_solving.solve_minimal_sets(band, [0, 1], 0.2) == right
    monkeypatch.setattr(rule_solving, "other_matrix_solvers", lambda _: [Tolerant(), get_solver("scip"), Tolerant()])
    assert rule_solving.solve_minimal_sets(band, [0, 1], 0.2) == right
    monkeypatch.setattr(rule_solving, "other_matrix_solvers", lambda _: [Tolerant()])
    with pytest.raises(SolverError, match="sets='exhaustive'"):
        rule_solving.solve_minimal_sets(band, [0, 1], 0.2)


@pytest.fixture
def without_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tree counts as too large for the model."""
    monkeypatch.setattr(tree_values, "MOST_STATES", 1)
    monkeypatch.setattr(tree_values, "MOST_CONDITIONS", -1)


@pytest.mark.usefixtures("without_trees")
@settings(max_examples=12)
@given(st.integers(0, 10_000), st.booleans(), st.integers(1, 2), st.sampled_from(["highs", "scip"]))
def test_boxes_that_are_no_rules_are_cut_off_where_the_model_leaves_trees_out(
    seed: int, regional: bool, size: int, solver: str
) -> None:
    query, space = random_query(np.random.default_rng(seed), regional=regional)
    features = sorted(np.random.default_rng(seed).choice(len(space), size, replace=False).tolist())
    box, weight = best_box(query, features, 0.75)
    found = rule_solving.solve_box(query, features, 0.75, solver=solver)
    assert found.status is (Status.INFEASIBLE if box is None else Status.OPTIMAL)
    assert found.weight == pytest.approx(weight, abs=1e-9)
    if box is not None:
        assert rule_solving.solve_box(query, features, 0.75, solver=solver, start=box).weight == found.weight


@pytest.mark.usefixtures("without_trees")
def test_one_cut_closes_all_boxes_around_one_that_is_no_rule(band: ProbabilityQuery) -> None:
    families = Families(band, [0], 0.9)
    state = families.hopeless(band.forest.everywhere())
    _, last = int(families.all[0]), int(families.all[1])
    assert state[0] == 0  # with the low end as it is, whatever the high end
    assert state[3] == last
    assert families.most_share(state) < families.least
    assert (state[1] > 0) or (state[2] < last)


def test_a_solver_that_is_out_of_time_leaves_what_the_glance_has_proved(
    band: ProbabilityQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = rule_search.FoundBox(None, 0.0, np.inf, Status.UNKNOWN, 1.0)
    monkeypatch.setattr(finding, "solve_box", lambda *_, **__: nothing)
    asked = finding.RuleSearch(method="milp")
    found = finding.find_boxes(band, (0,), asked)[0]
    assert (found.status, found.weight) == (Status.OPTIMAL, pytest.approx(3 / 11))
    monkeypatch.setattr(finding, "GLANCE", 0)
    start = rule_search.greedy_boxes(band, [0], 0.9)[0]
    monkeypatch.setattr(finding, "solve_box", lambda *_, **__: replace(nothing, region=start[0], weight=start[1]))
    assert finding.find_boxes(band, (0,), asked)[0].bound == pytest.approx(1.0)

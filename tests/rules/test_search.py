"""Searches on questions small enough to see through; random ones are in formulations/test_rules.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_rules import best_box

from ocf.errors import ProblemError, SolverError
from ocf.features.inference import infer_space
from ocf.formulations.blocks import tree_values
from ocf.regional.query import ProbabilityQuery
from ocf.rules import search as rule_search
from ocf.rules import solving as rule_solving
from ocf.rules.families import Families
from ocf.rules.fitting import fit_forest
from ocf.solvers import Status


def test_the_rule_is_the_band(band: ProbabilityQuery) -> None:
    box, weight = best_box(band, [0], 0.9)
    assert box is not None
    np.testing.assert_array_equal(band.forest.inside(box), band.wanted)
    assert weight == pytest.approx(3 / 11)
    assert rule_search.greedy_boxes(band, [0], 0.9)[0][1] == pytest.approx(weight)


def test_a_limit_leaves_the_start_and_a_bound(band: ProbabilityQuery) -> None:
    greedy = rule_search.greedy_boxes(band, [0], 0.9)[0]
    found = rule_search.largest_box(band, [0], 0.9, start=greedy, most=0)
    assert (found.status, found.region, found.bound) == (Status.FEASIBLE, greedy[0], pytest.approx(1.0))
    assert rule_search.largest_box(band, [0], 0.9, most=0).status is Status.UNKNOWN
    assert rule_search.largest_box(band, [0], 0.9, time_limit=0.0).status is Status.UNKNOWN


def test_compiling_is_no_part_of_the_time(band: ProbabilityQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a fresh machine the first call of the kernels takes longer than the limit."""
    now, own = [0.0], Families.expand

    def slow_at_first(self: Families, *args: Any) -> Any:
        now[0] += 60.0 if now[0] == 0.0 else 0.01
        return own(self, *args)

    monkeypatch.setattr(Families, "expand", slow_at_first)
    monkeypatch.setattr(rule_search, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    found = rule_search.largest_box(band, [0], 0.9, time_limit=1.0)
    assert found.status is Status.OPTIMAL
    assert found.seconds < 1.0


def test_no_box_of_a_feature_that_says_nothing(band: ProbabilityQuery) -> None:
    assert rule_search.largest_box(band, [1], 0.9).status is Status.INFEASIBLE
    assert rule_search.greedy_boxes(band, [1], 0.9) == []
    assert rule_search.minimal_sets(band, [1], 0.9) == []
    assert rule_search.divergent_set(band, [1], 0.9) == ((1,), False)
    assert rule_solving.solve_box(band, [1], 0.9).status is Status.INFEASIBLE


def test_disjoint_rules_run_out(band: ProbabilityQuery) -> None:
    first = rule_search.largest_box(band, [0], 0.9)
    assert first.region is not None
    assert rule_search.largest_box(band, [0], 0.9, earlier=[first.region]).region is None
    assert rule_solving.solve_box(band, [0], 0.9, earlier=[first.region]).region is None


def test_rules_keep_apart_from_boxes_that_end_where_no_split_is_met() -> None:
    """Where b holds 0 nothing splits a at 5, but an earlier box may end there."""
    a, b = np.meshgrid(np.arange(11.0), np.arange(2.0))
    table = pd.DataFrame({"a": a.ravel(), "b": b.ravel()})
    space = infer_space(table)
    wanted = np.where(table.b == 0, (table.a > 3) & (table.a < 7), table.a > 4)
    forest = fit_forest(
        space, space.from_frame(table), wanted.astype(int), regression=False, n_estimators=1, bootstrap=False,
        max_features=None,
    )  # fmt: skip
    query = ProbabilityQuery(forest, forest.at(forest.cells[0]), forest.everywhere(), wanted)
    cut = int(forest.cells[4, 0])  # the last cell with a <= 4
    met = [int(forest.cells[k, 0]) for k in (3, 6)]
    masks = [forest.cells_of(query.free, i).copy() for i in range(2)]
    masks[0][cut + 1 :] = False
    earlier = forest.region(masks)
    assert query.cuts(0, met).tolist() == met
    assert query.cuts(0, met, [earlier]).tolist() == [met[0], cut, met[1]]
    assert query.with_free(earlier).cuts(0, met, [earlier]).tolist() == met[:1]
    best, weight = best_box(query, [0], 0.9, [earlier])
    assert best is not None
    assert (best.low[0], best.high[0]) == (cut + 1, met[1])
    for found in (
        rule_search.largest_box(query, [0], 0.9, earlier=[earlier]),
        rule_solving.solve_box(query, [0], 0.9, earlier=[earlier]),
    ):
        assert (found.status, found.region, found.weight) == (Status.OPTIMAL, best, pytest.approx(weight))


def test_most_used_features_come_first() -> None:
    use = np.array([3, 0, 9, 5])
    assert rule_search.most_used(use, np.array([True, True, True, False]), 2) == [2, 0]
    assert rule_search.most_used(use, np.ones(4, bool), 10) == [2, 3, 0]


def test_errors_name_the_remedy(band: ProbabilityQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProblemError, match="no feature may change"):
        rule_search.divergent_set(band, [], 0.9)
    with pytest.raises(SolverError, match="highs or scip"):
        rule_solving.solve_box(band, [0], 0.9, solver="box")
    with monkeypatch.context() as patch:
        patch.setattr(tree_values, "MOST_STATES", 1)
        patch.setattr(tree_values, "MOST_CONDITIONS", 1)
        with pytest.raises(ProblemError, match="more than 1 rows: search instead"):
            rule_solving.solve_minimal_sets(band, [0, 1], 0.2)


def test_sets_of_decision_paths_are_those_that_trees_split_on(band: ProbabilityQuery) -> None:
    forest = band.forest  # one tree that splits on a alone
    assert rule_search.path_sets(forest, np.array([True, True])) == [(0,)]
    assert rule_search.path_sets(forest, np.array([False, True])) == []
    with pytest.raises(ProblemError, match="no feature may change"):
        rule_search.divergent_set(band, [0], 0.5, [])


def test_sets_of_most_paths_come_first_and_no_other_is_tried() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(size=(200, 4)), columns=list("abcd"))
    space = infer_space(table)
    wanted = ((table.a > 0.5) & (table.b > 0.5)).to_numpy()
    forest = fit_forest(space, space.from_frame(table), wanted.astype(int), regression=False, n_estimators=5)
    pool = rule_search.path_sets(forest, np.ones(4, bool))
    by_leaf = [
        set(np.flatnonzero((forest.partition.low[k] > 0) | (forest.partition.high[k] < forest.partition.widths - 1)))
        for k in range(len(forest.partition.low))
    ]
    assert all(any(set(s) <= own for own in by_leaf) for s in pool)
    assert all(tuple(sorted(own)) in pool for own in by_leaf if own)
    assert rule_search.path_sets(forest, np.ones(4, bool), 2) == pool[:2]
    worst = forest.at(forest.cells[np.flatnonzero((table.a < 0.3) & (table.b < 0.3))[0]])
    query = ProbabilityQuery(forest, worst, forest.everywhere(), wanted)
    every = rule_search.minimal_sets(query, range(4), 0.2)
    assert rule_search.minimal_sets(query, range(4), 0.2, pool) == [s for s in every if s in pool] != []
    assert rule_search.minimal_sets(query, range(4), 0.2, [(2,), (2, 3)]) == []

"""The models of sets and rules against all subsets and all boxes."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import violation
from small_rules import best_box, random_query, ranges

from ocf.formulations.blocks import tree_values
from ocf.formulations.divergent_set import minimal_set
from ocf.formulations.maximal_rule import maximal_rule
from ocf.regional.query import ProbabilityQuery, probability, reaches
from ocf.rules import search as rule_search
from ocf.rules import solving as rule_solving
from ocf.solvers import Status, compile_model

seeds = st.integers(0, 10_000)
levels = st.sampled_from([0.5, 0.6, 0.75, 0.9, 1.0])
#: With 1 state no tree has a diagram, with 12 some have one.
states = st.sampled_from([1, 12, tree_values.MOST_STATES])


@pytest.fixture(autouse=True)
def limit_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_values, "MOST_STATES", tree_values.MOST_STATES)


def question(seed: int, regional: bool) -> tuple[ProbabilityQuery, list[int]]:
    query, space = random_query(np.random.default_rng(seed), regional=regional)
    return query, list(range(len(space)))


@settings(max_examples=25)
@given(seeds, levels, st.booleans(), st.sampled_from(["highs", "scip"]), states)
def test_minimal_sets_are_those_of_exhaustive_search(
    seed: int, level: float, regional: bool, solver: str, most: int
) -> None:
    tree_values.MOST_STATES = most
    query, candidates = question(seed, regional)
    wanted = rule_search.minimal_sets(query, candidates, level)
    found = rule_solving.solve_minimal_sets(query, candidates, level, solver=solver, every=True)
    assert set(found) == set(wanted)
    one = rule_solving.solve_minimal_sets(query, candidates, level, solver=solver)
    assert len(one) == min(len(wanted), 1)
    if wanted:
        assert query.cdp(one[0]) == pytest.approx(query.cdp(wanted[0]), abs=1e-9)


@settings(max_examples=20)
@given(seeds, st.booleans(), st.sampled_from(["highs", "scip"]), states)
def test_most_divergent_set_is_that_of_exhaustive_search(seed: int, regional: bool, solver: str, most: int) -> None:
    tree_values.MOST_STATES = most
    query, candidates = question(seed, regional)
    found = rule_solving.solve_most_divergent_set(query, candidates, solver=solver)
    assert query.cdp(found) == pytest.approx(query.cdp(rule_search.divergent_set(query, candidates, 1.1)[0]), abs=1e-9)


@settings(max_examples=40)
@given(seeds, levels, st.booleans(), st.sampled_from(["highs", "scip"]), st.integers(1, 3), states)
def test_maximal_rule_is_the_best_of_all_boxes(
    seed: int, level: float, regional: bool, solver: str, size: int, most: int
) -> None:
    tree_values.MOST_STATES = most
    query, candidates = question(seed, regional)
    features = sorted(np.random.default_rng(seed).choice(candidates, size, replace=False).tolist())
    box, weight = best_box(query, features, level)
    found = rule_solving.solve_box(query, features, level, solver=solver)
    assert found.status is (Status.INFEASIBLE if box is None else Status.OPTIMAL)
    assert found.weight == pytest.approx(weight, abs=1e-9)
    if found.region is not None:
        assert found.bound == pytest.approx(weight, abs=1e-6)
        assert reaches(query.crp_counts(features, found.region), level)
        assert query.captured(features, found.region) == found.weight

    searched = rule_search.largest_box(query, features, level)
    assert searched.status is found.status
    assert searched.weight == pytest.approx(weight, abs=1e-9)

    greedy = rule_search.greedy_boxes(query, features, level)
    assert all(reaches(query.crp_counts(features, g), level) for g, _ in greedy)
    assert max((w for _, w in greedy), default=0.0) <= weight + 1e-9
    for start in [*(g for g, _ in greedy[:1]), *([] if box is None else [box])]:  # boxes that capture less are left out
        again = rule_solving.solve_box(query, features, level, solver=solver, start=start)
        assert again.status is Status.OPTIMAL
        assert again.weight == pytest.approx(weight, abs=1e-9)


@settings(max_examples=15)
@given(seeds, st.booleans(), st.integers(1, 3), states)
def test_further_rules_are_the_best_boxes_apart_from_the_first(seed: int, regional: bool, size: int, most: int) -> None:
    tree_values.MOST_STATES = most
    query, candidates = question(seed, regional)
    features = sorted(np.random.default_rng(seed).choice(candidates, size, replace=False).tolist())
    first = rule_solving.solve_box(query, features, 0.6)
    if first.region is None:
        return
    second = rule_solving.solve_box(query, features, 0.6, earlier=[first.region])
    box, weight = best_box(query, features, 0.6, earlier=[first.region])
    assert (second.region is None) == (box is None)
    assert second.weight == pytest.approx(weight, abs=1e-9)
    searched = rule_search.largest_box(query, features, 0.6, earlier=[first.region])
    assert searched.weight == pytest.approx(weight, abs=1e-9)


@settings(max_examples=25)
@given(seeds, st.booleans(), states)
def test_true_values_satisfy_the_models_and_give_the_true_probability(seed: int, regional: bool, most: int) -> None:
    tree_values.MOST_STATES = most
    query, candidates = question(seed, regional)
    rng = np.random.default_rng(seed)
    features = sorted(rng.choice(candidates, int(rng.integers(1, 4)), replace=False).tolist())
    sets = minimal_set(query, candidates, 0.0)
    sets.assign(features)
    assert amiss(sets) == 0
    assert share(sets.trees, query.forest.n_trees) == pytest.approx(query.cdp(features), abs=1e-12)

    box = rule_search.box_of(query, {i: rng.choice(list(ranges(query, i))) for i in features})
    rules = maximal_rule(query, features, 0.0)
    rules.assign(box)
    assert amiss(rules) == 0
    assert share(rules.trees, query.forest.n_trees) == pytest.approx(
        probability(query.crp_counts(features, box)), abs=1e-12
    )
    values = np.array([v.value for v in rules.choices])
    decoded = rules.decode(values)
    assert query.captured(features, decoded) >= query.captured(features, box) - 1e-12  # widened between the cuts
    assert query.crp(features, decoded) == query.crp(features, box)


def amiss(built) -> float:
    variables = list(built.model.component_data_objects(pyo.Var))
    values = np.array([variable.value or 0.0 for variable in variables])
    return round(violation(compile_model(built.model, variables), values), 12)


def share(values, n_trees: int) -> float:
    terms, constant = values.total()
    return (sum(c * v.value for c, v in terms) + constant) / n_trees

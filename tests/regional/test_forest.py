"""Estimates against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_rules import condition, defined_cells, defined_weights, random_forest, random_query

from ocf.errors import ProblemError

seeds = st.integers(0, 10_000)


@settings(max_examples=50)
@given(seeds, st.booleans(), st.booleans())
def test_estimates_are_the_definitions(seed: int, small: bool, regional: bool) -> None:
    rng = np.random.default_rng(seed)
    query, space = random_query(rng, small=small, regional=regional)
    forest, n = query.forest, len(space)
    changed = [i for i in range(n) if rng.random() < 0.5]
    kept = [i for i in range(n) if i not in changed]

    held = condition(forest, query.held, kept) | condition(forest, query.free, changed)
    weights = defined_weights(forest, held)
    np.testing.assert_allclose(query.weights(changed), weights, rtol=1e-12)
    assert query.cdp(changed) == pytest.approx(sum(w for w, hit in zip(weights, query.wanted, strict=True) if hit))

    box = forest.leaf(int(rng.integers(forest.partition.ensemble.n_leaves)))
    within = held | condition(forest, box, changed)
    cells = defined_cells(forest, within)
    counts = query.crp_counts(changed, box)
    assert counts.tolist() == [[len(c), sum(bool(query.wanted[r]) for r in c)] for c in cells]
    weights = defined_weights(forest, within)
    assert query.crp(changed, box) == pytest.approx(sum(w for w, hit in zip(weights, query.wanted, strict=True) if hit))


def test_nothing_changed_is_the_forest_itself() -> None:
    rng = np.random.default_rng(0)
    _, _, forest = random_forest(rng)
    for r in range(5):
        same = (forest.leaves == forest.leaves[r]).T  # (n_trees, n)
        np.testing.assert_array_equal(forest.in_cells(forest.at(forest.cells[r])), same)


def test_rule_on_the_whole_line_has_the_probability_of_the_set() -> None:
    query, space = random_query(np.random.default_rng(3))
    for i in range(len(space)):
        assert query.crp([i], query.free) == query.cdp([i])


def test_everything_changed_is_the_share_in_the_data() -> None:
    query, space = random_query(np.random.default_rng(1))
    query = query.with_free(query.forest.everywhere())
    assert query.cdp(range(len(space))) == pytest.approx(query.wanted.mean())


def test_a_region_needs_a_cell_of_each_feature() -> None:
    _, _, forest = random_forest(np.random.default_rng(0))
    masks = [forest.cells_of(forest.everywhere(), i) for i in range(4)]
    with pytest.raises(ProblemError, match="leaves feature 'b' without a value"):
        forest.region([*masks[:1], np.zeros_like(masks[1]), *masks[2:]])


@settings(max_examples=50)
@given(seeds, st.booleans())
def test_leaves_within_a_region_are_their_common_cells_once_each(seed: int, small: bool) -> None:
    rng = np.random.default_rng(seed)
    query, space = random_query(rng, small=small)
    forest, n = query.forest, len(space)
    features = [i for i in range(n) if rng.random() < 0.5]
    leaves = rng.permutation(forest.partition.ensemble.n_leaves)
    region = query.free if rng.random() < 0.5 else forest.leaf(int(leaves[0]))

    expected = []
    for k in leaves:
        leaf = forest.leaf(int(k))
        masks = [forest.cells_of(region, i) & (forest.cells_of(leaf, i) | (i not in features)) for i in range(n)]
        if all(mask.any() for mask in masks):
            expected.append(forest.region(masks))
    assert forest.leaves_within(region, features, leaves) == list(dict.fromkeys(expected))

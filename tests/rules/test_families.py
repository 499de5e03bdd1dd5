"""Bounds of families of boxes against the boxes in them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_rules import random_query

from ocf.features.inference import infer_space
from ocf.regional.query import ProbabilityQuery, probability
from ocf.rules import search as rule_search
from ocf.rules.families import Families
from ocf.rules.family_kernels import CLOSED, OPEN, OUT, RULE
from ocf.rules.fitting import fit_forest
from ocf.solvers import Status

#: Of the rules on five features.
LEVEL = 0.7


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.booleans(), st.integers(1, 4))
def test_no_box_of_a_family_exceeds_its_bounds(seed: int, regional: bool, size: int) -> None:
    rng = np.random.default_rng(seed)
    query, space = random_query(rng, regional=regional)
    features = sorted(rng.choice(len(space), min(size, len(space)), replace=False).tolist())
    families = Families(query, features, 0.5)
    box = random_box(families, families.all, rng)
    share = families.most_share(families.state_of(box))
    assert share / query.forest.n_trees == pytest.approx(probability(query.crp_counts(features, box)), abs=1e-12)
    families.least = 0.0  # so that nothing but weight closes a family
    family = families.all
    while True:
        found, weight, children = families.expand(family, families.no_bounds(), 0.0)
        if found == CLOSED:
            assert query.captured(features, families.widest(family)) == 0.0
            return
        most = families.most_share(family)
        for _ in range(5):
            box = random_box(families, family, rng)
            assert query.crp(features, box) * query.forest.n_trees <= most + 1e-9
            assert query.captured(features, box) <= weight + 1e-9
        if not children:
            return
        family = children[rng.integers(len(children))][1]


def random_box(families: Families, family: np.ndarray, rng: np.random.Generator):
    """A box of a family, which may be any of them."""
    state = family.copy()
    for p, size, ordered in zip(families.fields.place, families.fields.size, families.fields.ordered, strict=False):
        if not ordered:
            own = state[p : p + size]
            undecided = np.flatnonzero(own == OPEN)
            chosen = rng.random(len(undecided)) < 0.5
            own[undecided[~chosen]] = OUT
            if (own == OUT).all():
                own[rng.choice(undecided)] = OPEN
            continue
        low_from, low_to, high_from, high_to = state[p : p + 4]
        low = rng.integers(low_from, min(low_to, high_to) + 1)
        state[p], state[p + 3] = low, rng.integers(max(low, high_from), high_to + 1)
    return families.widest(state)


@pytest.fixture(scope="module")
def wide() -> ProbabilityQuery:
    """Five features that all matter, over more cuts than all boxes of them could be tried on."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(size=(200, 5)).round(3), columns=list("abcde"))
    wanted = (table.sum(axis=1) + rng.normal(0, 0.1, 200) > 2.6).to_numpy()
    space = infer_space(table)
    forest = fit_forest(
        space,
        space.from_frame(table),
        wanted.astype(int),
        regression=False,
        n_estimators=4,
        max_depth=5,
    )
    worst = forest.at(forest.cells[np.argmin(table.sum(axis=1))])
    return ProbabilityQuery(forest, worst, forest.everywhere(), wanted)


def test_the_largest_rule_of_five_features_is_proved(wide: ProbabilityQuery) -> None:
    features = range(5)
    greedy = rule_search.greedy_boxes(wide, features, LEVEL)[0]
    found = rule_search.largest_box(wide, features, LEVEL, start=greedy, most=5_000)
    assert (found.status, found.bound) == (Status.OPTIMAL, found.weight)
    assert found.region is not None
    assert found.weight > greedy[1]
    assert wide.precise(features, found.region, LEVEL)
    assert wide.captured(features, found.region) == pytest.approx(found.weight)
    cold = rule_search.largest_box(wide, features, LEVEL, most=5_000)
    assert (cold.status, cold.weight) == (Status.OPTIMAL, pytest.approx(found.weight))


def test_a_limit_leaves_a_bound_that_the_largest_rule_keeps(wide: ProbabilityQuery) -> None:
    best = rule_search.largest_box(wide, range(5), LEVEL, most=5_000).weight
    bounds = [rule_search.largest_box(wide, range(5), LEVEL, most=most).bound for most in (0, 10, 100)]
    assert bounds == sorted(bounds, reverse=True)
    assert 1.0 + 1e-9 >= bounds[0] > bounds[-1] >= best - 1e-12


def test_a_family_whose_boxes_overlap_an_earlier_one_is_closed(wide: ProbabilityQuery) -> None:
    found = rule_search.largest_box(wide, range(5), LEVEL, most=5_000)
    assert found.region is not None
    families = Families(wide, range(5), LEVEL, [found.region])
    own = families.state_of(found.region)
    assert families.widest(own) == found.region
    assert families.expand(own.copy(), families.no_bounds(), 0.0)[0] == CLOSED
    assert Families(wide, range(5), LEVEL).expand(own, families.no_bounds(), 0.0)[0] == RULE

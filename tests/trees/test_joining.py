"""Several ensembles as one, and apart again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from small_problems import random_ensemble, random_space

from ocf.trees.ensemble import Decision
from ocf.trees.joining import join_trees, split_trees


def test_joined_trees_come_apart_again() -> None:
    rng = np.random.default_rng(3)
    space, coded = random_space(rng)
    model = random_ensemble(rng, space, coded, 4, 3, 3)
    forest = random_ensemble(rng, space, coded, 3, 2, 2)
    forest = replace(forest, decision=Decision("value"), leaf_values=np.abs(forest.leaf_values) + 1)
    joint = join_trees(model, forest)
    np.testing.assert_array_equal(joint.scores(coded)[:, :-1], model.scores(coded))
    np.testing.assert_allclose(joint.scores(coded)[:, -1:], forest.scores(coded), rtol=1e-14)
    first, second = split_trees(joint, model)
    np.testing.assert_array_equal(first.scores(coded), model.scores(coded))
    np.testing.assert_array_equal(second.scores(coded), forest.scores(coded))
    assert first.decision == model.decision
    np.testing.assert_array_equal(second.apply(coded), forest.apply(coded))

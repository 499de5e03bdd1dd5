"""What is said of a model's size against what is counted and measured."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.models.user_model import as_user_model
from ocf.solve.prepared import FEWEST_LEAVES, MANY_LEAVES, MOST_SCORED, leaves_looked_at
from ocf.solve.size import size_of


def test_thresholds_are_those_of_the_trees() -> None:
    x, y = make_classification(200, 5, random_state=0)
    forest = RandomForestClassifier(7, max_depth=4, random_state=0).fit(x, y)
    size = size_of(as_user_model(forest).trees.ensemble)
    own = [
        {(int(f), float(t)) for f, t in zip(e.tree_.feature, e.tree_.threshold, strict=True) if f >= 0}
        for e in forest.estimators_
    ]
    counted = set().union(*own)
    assert size.thresholds == tuple(sum(f == j for f, _ in counted) for j in range(5))


def test_memory_is_of_the_size_that_is_said() -> None:
    """In bytes that NumPy and Python ask for, which are the same on every machine."""
    x, y = make_classification(1500, 20, n_informative=8, flip_y=0.2, random_state=0)
    table = pd.DataFrame(x).rename(columns=str)
    model = as_user_model(RandomForestClassifier(30, random_state=0).fit(table, y))
    small = RandomForestClassifier(5, max_depth=4, random_state=0).fit(table, y)
    Explainer(small, data=table)  # imports and kernels are no part of what is measured
    tracemalloc.start()
    Explainer(model, data=table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = size_of(model.trees.ensemble)
    said = (
        size.memory - size_of(as_user_model(RandomForestClassifier(1, max_depth=1).fit(table, y)).trees.ensemble).memory
    )
    assert said / 3 < peak < 3 * said
    assert size.with_boxes == size.memory  # few leaves: all boxes are made
    assert np.sum(size.thresholds) > 1000


def test_the_check_of_the_reading_is_in_proportion_to_the_trees() -> None:
    x, y = make_classification(1500, 5, flip_y=0.3, random_state=0)
    forest = as_user_model(RandomForestClassifier(100, random_state=0).fit(x, y)).trees.ensemble
    assert forest.n_leaves > MANY_LEAVES
    assert leaves_looked_at(forest) == MANY_LEAVES
    few = as_user_model(RandomForestClassifier(10, random_state=0).fit(x, y)).trees.ensemble
    assert leaves_looked_at(few) is None
    # of more trees fewer leaves, of which each has all trees compared
    assert FEWEST_LEAVES * 5_000 == MOST_SCORED == MANY_LEAVES * 1_000

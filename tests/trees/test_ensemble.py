"""Ensembles that send rows to the same leaves are told from those that do not."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from ocf.readers import read_model
from ocf.trees.ensemble import Ensemble, splits_alike


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    """With thresholds, sets of categories and ways of missing values."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=300), "c": rng.integers(0, 6, 300)})
    table.loc[rng.random(300) < 0.2, "a"] = np.nan
    answers = (table.a.fillna(1) > 0) ^ table.c.isin([1, 4])
    model = HistGradientBoostingClassifier(max_iter=4, categorical_features=[1], random_state=0)
    return read_model(model.fit(table, answers)).ensemble


def test_copies_and_other_leaf_values_are_alike(ensemble: Ensemble) -> None:
    assert splits_alike(ensemble, pickle.loads(pickle.dumps(ensemble)))
    assert splits_alike(ensemble, replace(ensemble, leaf_values=2 * ensemble.leaf_values))


@pytest.mark.parametrize("name", ["threshold", "feature", "missing_left", "sets", "set_index", "left"])
def test_what_sends_a_row_elsewhere_is_seen(ensemble: Ensemble, name: str) -> None:
    array = getattr(ensemble, name).copy()
    used = np.flatnonzero(array.ravel() >= 0)  # of sets and sides all
    array.ravel()[used[-1]] = not array.ravel()[used[-1]] if array.dtype == bool else array.ravel()[used[-1]] + 1
    other = pickle.loads(pickle.dumps(ensemble))
    object.__setattr__(other, name, array)
    assert not splits_alike(ensemble, other)


def test_without_ways_of_missing_values(ensemble: Ensemble) -> None:
    assert not splits_alike(ensemble, replace(ensemble, missing_left=None))

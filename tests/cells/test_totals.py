"""Cells of totals that splits share, against the trees and the components themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.cells.partition import Partition
from ocf.cells.totals import with_totals
from ocf.oblique import TAOClassifier


def partition_of(model: BaseEstimator, table: pd.DataFrame) -> Partition:
    """Cells of a fitted model's trees."""
    explainer, row = Explainer(model, data=table), table.iloc[[0]]
    problem = explainer.problem(row, 1 - int(model.predict(row)[0] > 0))
    return explainer.query(problem).model.search.part


@pytest.mark.parametrize("depth", [3, None])
def test_a_leaf_holds_the_cells_of_the_components_that_lead_to_it(depth: int | None) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = make_pipeline(PCA(2, random_state=0), RandomForestClassifier(5, max_depth=depth, random_state=0)).fit(X, y)
    part = partition_of(model, X)
    cells = with_totals(part)
    assert with_totals(part) is cells
    own = cells.partition
    assert (cells.n_features, len(cells.totals)) == (4, 2)
    assert not own.ensemble.is_oblique
    assert part.ensemble.is_oblique  # which stays as it is
    rng = np.random.default_rng(0)
    table = rng.uniform(X.min(), X.max(), (300, 4))
    at = np.zeros((len(table), own.n_features), np.int64)
    for i in cells.totals:
        total = part.ensemble.oblique_terms(int(cells.nodes_of(i)[0]), table).sum(axis=1)
        at[:, i] = np.searchsorted(own.upper[own.cells_of(i)][:-1], total)
    for cell, reached in zip(at, part.ensemble.apply(table), strict=True):
        assert own.leaves_at(cell).tolist() == reached.tolist()
    for i in cells.totals:
        nodes = cells.nodes_of(i)
        assert (np.diff(part.ensemble.threshold[nodes]) > 0).all()
        assert len(nodes) == own.widths[i] - 1


def test_a_total_that_one_split_has_alone_stays_a_hyperplane() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    bag = BaggingClassifier(TAOClassifier(2, init="random"), 3, random_state=0).fit(X, y)
    part = partition_of(bag, X)
    cells = with_totals(part)
    assert cells.partition is part
    assert not len(cells.totals)


def test_names_of_totals_are_no_names_of_columns() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = pd.Index(["a", "a 0", "a 0 0", "a 0 1"])
    model = make_pipeline(PCA(3, random_state=0), DecisionTreeClassifier(random_state=0)).fit(X, y)
    names = with_totals(partition_of(model, X)).partition.ensemble.feature_names
    assert names[:4] == tuple(X.columns)
    assert len(set(names)) == len(names)

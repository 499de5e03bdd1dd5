"""Across files: models whose values are multiples of others': what they decide is the same, and so are the answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from solve.oblique_cases import random_tree

from ocf import Explainer
from ocf.oblique.tree import ObliqueTree

#: Multiples of all values: powers of two change no digit.
FACTORS = [2.0**50, 2.0**90, 2.0**300]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"solver": "highs"},
        {"solver": "scip"},
        {"solver": "highs", "cuts": "root"},
        {"formulation": "ocean", "solver": "highs", "reduce": False},
        {"formulation": "interval", "solver": "scip", "reduce": False},
    ],
    ids=str,
)
def test_leaf_values(settings: dict[str, object], factor: float) -> None:
    table, values = load_diabetes(return_X_y=True, as_frame=True)
    table = table[["bmi", "bp", "s5"]]
    costs = []
    for own in (1.0, factor):
        model = GradientBoostingRegressor(n_estimators=8, max_depth=3, random_state=0).fit(table, values * own)
        row, wanted = table.iloc[[int(np.argmin(values))]], (200.0 * own, None)
        found = Explainer(model, data=table).explain(row, wanted, progress=False, **settings)[0]
        assert (found.status, found.verified) == ("optimal", True)
        costs.append(found.cost)
    assert costs[1] == pytest.approx(costs[0], rel=1e-9)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_weights_of_hyperplanes(norm: str, solver: str, factor: float) -> None:
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 3, 2, 2, axis=0.0)
    table = pd.DataFrame(rng.random((30, 3)), columns=list("abc"))
    row = table.iloc[[0]]
    target = 1 - int(tree.predict(row)[0])
    costs = []
    for own in (1.0, factor):
        model = ObliqueTree(tree.weights * own, tree.threshold * own, tree.left, tree.right, tree.value, classes=(0, 1))
        found = Explainer(model, data=table).explain(row, target, norm, solver=solver, progress=False)[0]
        assert (found.status, found.verified) == ("optimal", True)
        costs.append(found.cost)
    assert costs[1] == pytest.approx(costs[0], rel=1e-7)

"""Values and costs of cells that are kept for other rows are those of the row itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.cells.cell_problem import cell_values

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"flag": RNG.random(80) < 0.5, "grade": RNG.integers(0, 4, 80), "amount": RNG.normal(size=80)})
FOREST = RandomForestClassifier(4, max_depth=3, random_state=0).fit(TABLE, RNG.integers(0, 2, 80))


def test_kept_cells_are_those_of_the_row() -> None:
    """Rows, norms, weights, directions and permitted levels come in turn, and none gets what another had."""
    explainer = Explainer(FOREST, data=TABLE, features={"grade": {"kind": "ordinal", "levels": (0, 1, 2, 3)}})
    shared = explainer.cells(explainer.problem(TABLE.iloc[[0]])).partition
    questions = [
        {},
        {"norm": "l0"},
        {"norm": "l2"},
        {"weights": {"grade": (3.0, 1.0), "flag": 2.0}},
        {"features_to_vary": ["amount"]},
        {"permitted_range": {"grade": [0, 3]}},
    ]
    for k in (*range(12), *range(12)):
        for question in (*questions, {}):
            problem = explainer.problem(TABLE.iloc[[k]], **question)
            value, cost = cell_values(problem, shared)
            own_value, own_cost = cell_values(problem, replace(shared))
            np.testing.assert_array_equal(value, own_value)
            np.testing.assert_array_equal(cost, own_cost)

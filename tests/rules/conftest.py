"""Customers of the bank, rules over them, and one who is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ocf import CounterfactualRules
from ocf.features.inference import infer_space
from ocf.regional.query import ProbabilityQuery
from ocf.rules.fitting import fit_forest

from .bank import FEATURES, Bank, explain


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.uniform(0, 100, n).round(1),
            "job": rng.choice(["none", "clerk", "smith"], n),
            "grade": rng.choice(["low", "middle", "high", "top"], n),
        }
    )


@pytest.fixture(scope="module")
def rules(table: pd.DataFrame) -> CounterfactualRules:
    return explain(Bank(), table, features=FEATURES)


@pytest.fixture(scope="module")
def poor(table: pd.DataFrame) -> pd.DataFrame:
    """An earner below 50 with a job."""
    return table[(table.income < 30) & (table.job == "clerk")].iloc[[0]]


@pytest.fixture(scope="module")
def band() -> ProbabilityQuery:
    """Wanted where a lies in (3, 7); b says nothing. One tree, so that the estimates are shares of rows."""
    a, b = np.meshgrid(np.arange(11.0), np.arange(3.0))
    table = pd.DataFrame({"a": a.ravel(), "b": b.ravel()})
    space = infer_space(table)
    wanted = ((table.a > 3) & (table.a < 7)).to_numpy()
    forest = fit_forest(
        space, space.from_frame(table), wanted.astype(int), regression=False, n_estimators=1, bootstrap=False,
        max_features=None,
    )  # fmt: skip
    return ProbabilityQuery(forest, forest.at(forest.cells[0]), forest.everywhere(), wanted)

"""Customers of the bank, rules over them, and one who is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ocf import CounterfactualRules

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

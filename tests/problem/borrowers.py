"""Borrowers, what is said of their features, and constraints on their changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ocf.explain.explanation import Explanation
from ocf.problem.constraints import Budget, Constraint, Implication, Linear, MaxChanges

SETTINGS: dict[str, dict[str, Any]] = {
    "job": {"kind": "categorical", "columns": {"clerk": "job_clerk", "smith": "job_smith"}, "base": "none"},
    "school": {"kind": "ordinal", "levels": ["none", "primary", "college"]},
    "amount": {"step": 0.1},
}
EXAMPLES: list[Constraint] = [
    Linear({"income": 1, "debt": -2.5, "job": {"smith": -500}}, ">=", 1000, name="solvent"),
    Linear({"income": 1, "debt": 1}, "<=", 200, relative=True),
    Implication({"job": "none"}, {"income": {"max": 4000}}, name="no job"),
    Implication({"school": {"min": "primary"}, "flag": 1}, {"age": (18, None), "job": ["clerk", "smith"]}),
    Budget(24, {"school": {"primary": 12, "college": 36}, "income": (0, 0.01), "age": 1}, name="months"),
    Budget(3, {"income": {"points": [[0, 0], [1000, 2]], "steps": True}, "school": {"between": [1, 2]}}),
    MaxChanges(2),
    MaxChanges(1, ("income", "debt"), name="money"),
]


def make_table(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    job = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "income": rng.uniform(0, 10000, n).round(2),
            "debt": rng.uniform(0, 5000, n).round(2),
            "age": rng.integers(18, 70, n),
            "amount": rng.integers(0, 50, n) / 10,
            "flag": rng.integers(0, 2, n),
            "school": rng.choice(["none", "primary", "college"], n),
            "job_clerk": (job == 1).astype(int),
            "job_smith": (job == 2).astype(int),
        }
    )


def value(explanation: Explanation, column: str) -> Any:
    assert explanation.counterfactual is not None
    return explanation.counterfactual[column].iloc[0]

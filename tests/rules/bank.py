"""A bank whose rule is known, and rules over it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ocf import CounterfactualRules

FEATURES = {
    "age": {"kind": "integer", "actionability": "increasing"},
    "sex": {"actionability": "fixed"},
    "grade": {"kind": "ordinal", "levels": ["low", "middle", "high", "top"]},
}
#: Share of the rows in which one feature alone, drawn anew, does it.
LEVEL = 0.4


class Bank:
    """Grants to earners above 50 with a job, and counts how often it is asked."""

    asked = 0

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        self.asked += len(table)
        return np.where((table.income > 50) & (table.job != "none"), "granted", "refused")


def explain(model: object, table: object, answers: object = None, **settings: object) -> CounterfactualRules:
    """Rules over trees that see all features at every split, so that they find what the answers depend on."""
    return CounterfactualRules(model, table, answers, **{"level": LEVEL, "forest": {"max_features": None}, **settings})

"""Applicants for credit, and who is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd


def people(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "income": rng.normal(2000, 600, n).round(2),
            "job": rng.choice(["clerk", "smith", "none"], n),
            "owner": rng.integers(0, 2, n).astype(bool),
        }
    )
    score = table.income / 600 + (table.job != "none") * 1.5 + table.owner - rng.normal(0, 0.5, n)
    return table, np.where(score > 4.2, "granted", "refused")


def refused(table: pd.DataFrame, model) -> pd.DataFrame:
    return table[model.predict(table) == "refused"]

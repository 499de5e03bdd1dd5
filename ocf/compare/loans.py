"""Applications for loans: a table to try things on, generated, of no real person and no real bank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray

#: Settings of the features, as `ocf.features.inference.infer_space` takes them.
SETTINGS: dict[str, dict[str, Any]] = {
    "age": {"kind": "integer", "actionability": "increasing"},
    "income": {"kind": "integer", "step": 100},
    "employed": {"kind": "integer", "actionability": "increasing"},
    "savings": {"kind": "integer", "step": 100},
    "open_credits": {"kind": "integer"},
    "late_payments": {"kind": "integer", "actionability": "fixed"},
    "housing": {"kind": "categorical", "levels": ["family", "owner", "tenant"]},
    "purpose": {"kind": "categorical", "levels": ["business", "car", "education", "furniture"]},
    "amount": {"kind": "integer", "step": 100},
    "months": {"kind": "integer", "step": 6},
}


def make_loans(n: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Applications and what became of them.

    Parameters
    ----------
    n : int
        Rows.
    seed : int

    Returns
    -------
    DataFrame (n, 12)
        The columns of `SETTINGS`: years, amounts of money (income a year) and counts; ``granted``, 1 or 0; and
        ``rate``, the interest that was asked for, in per cent a year.
    """
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, n)
    employed = np.minimum(rng.gamma(1.5, 5, n), age - 18).astype(int)
    income = _rounded_to_hundreds(rng.lognormal(10.2, 0.35, n) * (1 + 0.012 * employed))
    table = pd.DataFrame(
        {
            "age": age,
            "income": income,
            "employed": employed,
            "savings": _rounded_to_hundreds(rng.gamma(0.7, 0.25, n) * income),
            "open_credits": rng.poisson(1.6, n),
            "late_payments": rng.poisson(0.5, n),
            "housing": rng.choice(["family", "owner", "tenant"], n, p=[0.2, 0.3, 0.5]),
            "purpose": rng.choice(["business", "car", "education", "furniture"], n, p=[0.15, 0.4, 0.15, 0.3]),
            "amount": _rounded_to_hundreds(rng.lognormal(8.7, 0.6, n)),
            "months": 6 * rng.integers(1, 11, n),
        }
    )
    trust = _trust(table) + rng.logistic(0, 0.4, n)
    granted = (trust > 0).astype(int)
    rate = np.round(np.clip(7 - 1.1 * trust + 0.02 * table["months"] + rng.normal(0, 0.2, n), 1.5, 15), 2)
    return table.assign(granted=granted, rate=rate)


def _rounded_to_hundreds(amounts: FloatArray) -> FloatArray:
    return (100 * np.round(amounts / 100)).astype(np.int64)


def _trust(table: pd.DataFrame) -> FloatArray:
    """How likely an application is to be granted, as log-odds; the instalment a month weighs most."""
    burden = 12 * table["amount"] / table["months"] / table["income"]
    score = (
        1.2
        - 4.0 * burden
        + 1.5 * np.sqrt(table["savings"] / table["income"])
        + 0.05 * np.minimum(table["employed"], 15)
        - 0.35 * table["open_credits"]
        - 0.9 * table["late_payments"]
        + 0.5 * (table["housing"] == "owner")
        - 0.5 * (table["purpose"] == "business")
    )
    return np.asarray(score, dtype=np.float64)

"""Models of LightGBM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .boosted import answers, table

lgb = pytest.importorskip("lightgbm")
MULTICLASS = ["multiclass", "multiclassova"]
VALUES = [
    "regression",
    "regression_l1",
    "huber",
    "fair",
    "quantile",
    "mape",
    "poisson",
    "gamma",
    "tweedie",
    "cross_entropy",
]
FAST: dict[str, Any] = {
    "num_threads": 1,
    "verbosity": -1,
    "num_leaves": 6,
    "min_data_in_leaf": 3,
    "min_data_in_bin": 1,
    "seed": 0,
}


def labels(x: np.ndarray, objective: str) -> np.ndarray:
    return answers(x, 3 if objective in MULTICLASS else 2 if objective == "binary" else 0)


def train(objective: str = "binary", x: np.ndarray | None = None, **params: Any) -> Any:
    x = table() if x is None else x
    extra: dict[str, Any] = {"num_class": 3} if objective in MULTICLASS else {}
    rounds = params.pop("rounds", 6)
    data = lgb.Dataset(x, labels(x, objective))
    return lgb.train({"objective": objective, **FAST, **extra, **params}, data, rounds)


def estimator(name: str, **params: Any) -> Any:
    return getattr(lgb, name)(
        **{"n_estimators": 5, "num_leaves": 6, "min_child_samples": 3, "n_jobs": 1, "verbose": -1, **params}
    )

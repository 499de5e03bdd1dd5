"""Models of XGBoost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .boosted import answers, table

xgb = pytest.importorskip("xgboost")
BINARY = ["binary:logistic", "binary:logitraw", "binary:hinge"]
MULTICLASS = ["multi:softmax", "multi:softprob"]
VALUES = [
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "reg:logistic",
    "reg:gamma",
    "reg:tweedie",
    "count:poisson",
]


def labels(x: np.ndarray, objective: str) -> np.ndarray:
    return answers(x, 3 if objective in MULTICLASS else 2 if objective in BINARY else 0)


def train(objective: str = "binary:logistic", x: np.ndarray | None = None, **params: Any) -> Any:
    x = table() if x is None else x
    extra: dict[str, Any] = {"num_class": 3} if objective in MULTICLASS else {}
    if objective == "reg:quantileerror":
        extra["quantile_alpha"] = 0.4
    rounds = params.pop("rounds", 6)
    settings = {"objective": objective, "max_depth": 3, "nthread": 1, "seed": 0, **extra, **params}
    return xgb.train(settings, xgb.DMatrix(x, labels(x, objective), nthread=1), rounds)


XGB_MODELS: dict[str, dict[str, Any]] = {
    **{
        objective: {"objective": objective}
        for objective in (
            "binary:logistic",
            "binary:logitraw",
            "binary:hinge",
            "reg:squarederror",
            "reg:squaredlogerror",
            "reg:pseudohubererror",
            "reg:absoluteerror",
            "reg:logistic",
            "reg:gamma",
            "reg:tweedie",
            "count:poisson",
        )
    },
    "quantile": {"objective": "reg:quantileerror", "quantile_alpha": 0.4},
    "softmax": {"objective": "multi:softmax", "num_class": 3},
    "softprob": {"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2},
    "base score": {"objective": "binary:logistic", "base_score": 0.3},
    "pruned": {"objective": "reg:squarederror", "tree_method": "exact", "gamma": 0.3, "max_depth": 5},
    "dart": {"booster": "dart", "rate_drop": 0.5, "objective": "binary:logistic"},
    "pruned dart": {"booster": "dart", "rate_drop": 0.5, "gamma": 0.3, "tree_method": "exact", "max_depth": 5},
    "forest": {"objective": "binary:logistic", "num_parallel_tree": 4, "subsample": 0.7, "colsample_bynode": 0.8},
    "lossguide": {"objective": "count:poisson", "grow_policy": "lossguide", "max_leaves": 6, "max_depth": 0},
}


def xgb_model(params: dict[str, Any], names: list[str] | None = None) -> Any:
    x = table()
    n_classes = params.get("num_class", 2 if params.get("objective", "").startswith("binary") else 0)
    matrix = xgb.DMatrix(x, answers(x, n_classes), feature_names=names, nthread=1)
    return xgb.train({"max_depth": 3, "nthread": 1, "seed": 0, **params}, matrix, 5)

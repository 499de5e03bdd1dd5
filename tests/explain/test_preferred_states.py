"""Across files: levels that are preferred, whose amounts are negative, against a question for each level by itself."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ocf import Explainer
from ocf.oblique.tao import TAOClassifier

AMOUNTS = {"u": 0.3, "v": -0.05, "w": -0.2, "z": -0.45}

#: Models behind one-hot columns and scaled numbers, and the solvers that they know.
MODELS: dict[str, tuple[Any, list[str]]] = {
    "cells": (RandomForestClassifier(6, max_depth=4, random_state=2), ["box", "highs", "scip"]),
    "components": (make_pipeline(PCA(3), RandomForestClassifier(6, max_depth=4, random_state=2)), ["highs", "scip"]),
    "oblique": (TAOClassifier(3, random_state=2), ["highs", "scip"]),
    "bag": (BaggingClassifier(TAOClassifier(2, random_state=2), 3, random_state=2), ["highs", "scip"]),
}


@cache
def made(kind: str) -> tuple[Explainer, pd.DataFrame, list[float]]:
    """Explainer, rows, and the least cost of each row, level by level."""
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    table["k"] = rng.choice(list(AMOUNTS), 150)
    classes = (table.a + table.b + 1.5 * (table.k == "u") - 1.0 * (table.k == "z") > 0.5).astype(int)
    steps = make_column_transformer((OneHotEncoder(sparse_output=False), ["k"]), remainder=StandardScaler())
    model = make_pipeline(steps, MODELS[kind][0]).fit(table, classes)
    rows = table[model.predict(table) == 0].iloc[:4]
    free, least = Explainer(model, table, {"k": {"cost": dict.fromkeys(AMOUNTS, 0.0)}}), np.full(len(rows), np.inf)
    for level, amount in AMOUNTS.items():
        own = free.explain(rows, 1, permitted_range={"k": [level]})
        assert all(e.status in ("optimal", "infeasible") for e in own)
        costs = [np.inf if e.cost is None else e.cost for e in own]
        least = np.minimum(least, costs + np.where(rows.k == level, 0.0, amount))
    assert (least < 0).any()
    return Explainer(model, table, {"k": {"cost": AMOUNTS}}), rows, least.tolist()


@pytest.mark.parametrize(("kind", "solver"), [(kind, s) for kind, (_, solvers) in MODELS.items() for s in solvers])
def test_the_optimum_is_that_of_the_best_level(kind: str, solver: str) -> None:
    explainer, rows, least = made(kind)
    for reduce in (True, False):
        for e, wanted in zip(explainer.explain(rows, 1, solver=solver, reduce=reduce), least, strict=True):
            assert (e.status, e.verified) == ("optimal", True)
            assert e.cost == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("asked", [{"time_limit": 0.001}, {"time_limit": 0.02}, {"mip_gap": 0.6}], ids=str)
def test_no_bound_is_above_the_optimum(kind: str, asked: dict[str, float]) -> None:
    explainer, rows, least = made(kind)
    for solver in MODELS[kind][1]:
        for e, wanted in zip(explainer.explain(rows, 1, solver=solver, reduce=False, **asked), least, strict=True):
            assert e.bound <= wanted + 1e-9
            assert e.cost is None or e.cost >= wanted - 1e-9
            assert e.status != "optimal" or e.cost == pytest.approx(wanted, abs=1e-9)

"""Across files: answers on the grid of the data, against all points of it, by the user's own model."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from ocf import Explainer, LinearExplainer
from ocf.problem.constraints import Linear

GRID = {
    "amount": np.arange(50, 1001, 50),
    "rate": np.arange(4, 33, 2) / 4,
    "months": np.arange(6, 49, 6),
    "flag": [0, 1],
}

ALL = pd.DataFrame(list(itertools.product(*GRID.values())), columns=list(GRID)).astype({"rate": "float32"})

SPREAD = pd.Series({name: float(max(v) - min(v)) for name, v in GRID.items()})

#: A few rows of the data lie off the grids, of which 99 of 100 do not.
DATA = ALL.sample(400, random_state=0).reset_index(drop=True)
DATA.loc[:1, "amount"] = [313, 777]

WAYS = [("interval", "box"), ("interval", "highs"), ("ocean", "scip"), ("oae", "highs"), ("fcca", "scip")]


def model(seed: int) -> RandomForestClassifier:
    rng = np.random.default_rng(seed)
    score = (DATA / SPREAD).to_numpy() @ rng.uniform(0.5, 1.0, 4) + rng.normal(0, 0.2, len(DATA))
    forest = RandomForestClassifier(5, max_depth=3, random_state=seed)
    return forest.fit(DATA, (score > np.quantile(score, 0.7)).astype(int))


def cheapest(forest: RandomForestClassifier, row: pd.DataFrame, norm: str, allowed: Any = True) -> float:
    change = (ALL.astype(float) - row.iloc[0].astype(float)).abs() / SPREAD
    cost = {"l0": change > 0, "l1": change, "l2": change**2}[norm].sum(axis=1)
    return float(cost[(forest.predict(ALL) == 1) & allowed].min())


@pytest.mark.parametrize(("formulation", "solver"), WAYS)
def test_the_answer_is_the_cheapest_on_the_grid(formulation: str, solver: str) -> None:
    off = 0
    for seed, norm in enumerate(("l1", "l2", "l0")):
        forest = model(seed)
        rows = DATA[forest.predict(DATA) == 0].iloc[2:40:12]
        explainer = Explainer(forest, data=DATA)
        asked: dict[str, Any] = {"formulation": formulation, "solver": solver}
        for e, free in zip(
            explainer.explain(rows, 1, norm, round_to="data", **asked), explainer.explain(rows, 1, norm), strict=True
        ):
            assert (e.status, e.verified) == ("optimal", True), e.checks
            assert ((e.counterfactual.iloc[0] == ALL).all(axis=1)).any()
            assert e.cost == pytest.approx(cheapest(forest, e.original, norm), rel=1e-9)
            assert e.counterfactual.dtypes.to_dict() == e.original.dtypes.to_dict()
            off += not (free.counterfactual.iloc[0] == ALL).all(axis=1).any()
    assert off > 2  # without it the answer is another one


def test_numbers_that_a_constraint_relates_stay_on_the_grid() -> None:
    forest = model(0)
    rows = DATA[forest.predict(DATA) == 0].iloc[2:40:12]
    allowed = ALL.amount + 100.0 * ALL.rate <= 1150
    together = Linear({"amount": 1, "rate": 100}, "<=", 1150)
    explainer = Explainer(forest, data=DATA)
    for e in explainer.explain(rows, 1, round_to="data", constraints=together):
        assert (e.status, e.verified) == ("optimal", True)
        assert ((e.counterfactual.iloc[0] == ALL).all(axis=1)).any()
        assert e.cost == pytest.approx(cheapest(forest, e.original, "l1", allowed), rel=1e-9)


def test_the_rows_own_value_may_lie_off_the_grid() -> None:
    forest = model(1)
    row = DATA.iloc[[0]].assign(rate=np.float32(1.0), months=6, flag=0)
    (e,) = Explainer(forest, data=DATA).explain(row, 1, round_to={"rate": "data", "months": "data"})
    assert e.verified
    assert Explainer(forest, data=DATA).problem(row, 1, round_to=1).space.features[0].step == 100


def test_linear_models() -> None:
    logistic = LogisticRegression(max_iter=2000).fit(
        DATA.astype(float), (DATA.amount + 40 * DATA.rate > 700).astype(int)
    )
    rows = DATA[logistic.predict(DATA.astype(float)) == 0].iloc[:3].astype(float)
    for e in LinearExplainer(logistic, data=DATA.astype(float)).explain(rows, 1, round_to="data"):
        assert e.verified
        assert (ALL.astype(float) == e.counterfactual.iloc[0]).all(axis=1).any()

"""What couples features, all at once: constraints and plausibility, hard and soft, by every method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.harness import methods
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer, Plausibility
from ocf.problem.constraints import Constraint, Linear, MaxChanges
from ocf.solvers import CELL_SOLVERS

WISHES = {
    "anywhere": None,
    "inside": Plausibility(trees=10),
    "rather inside": Plausibility(trees=10, weight=0.3, required=False),
}


@pytest.fixture(scope="module")
def iris() -> tuple[Explainer, pd.DataFrame]:
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    forest = RandomForestClassifier(8, max_depth=3, random_state=0).fit(X, y)
    return Explainer(forest, data=X), X.iloc[[2, 60, 130]]


@pytest.mark.slow
@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize(
    "constraint",
    [MaxChanges(2), MaxChanges(1), Linear({"sepal_length": 1, "petal_length": -2}, "<=", 0)],
    ids=["two changes", "one change", "linear"],
)
def test_methods_agree(iris: tuple[Explainer, pd.DataFrame], constraint: Constraint, wish: str) -> None:
    explainer, rows = iris
    costs: dict[Any, list[list[float]]] = {}
    for formulation, solver, reduce in methods():
        if not reduce and solver == "scip":
            continue  # slow, and no other than HiGHS in this
        if solver in CELL_SOLVERS and isinstance(constraint, Linear):
            continue  # chooses no values inside cells
        for target in (1, 2):
            answers = explainer.explain(
                rows,
                target=target,
                constraints=[constraint],
                plausibility=WISHES[wish],
                formulation=formulation,
                solver=solver,
                reduce=reduce,
            )
            assert all(e.status in ("optimal", "infeasible") and e.verified == (e.cost is not None) for e in answers)
            costs.setdefault(target, []).append([np.inf if e.cost is None else e.cost for e in answers])
    for each in costs.values():
        np.testing.assert_allclose(each, np.broadcast_to(each[0], np.shape(each)), rtol=1e-9)

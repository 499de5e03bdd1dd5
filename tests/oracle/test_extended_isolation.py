"""Extended isolation forests, whose splits are hyperplanes, against all points of a grid."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import ProblemError

isotree = pytest.importorskip("isotree")

#: Features are whole numbers from 0 up to these.
SIZES = {"a": 9, "b": 7, "c": 4}


def case(seed: int) -> tuple[Explainer, Any, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    n = 120
    table = pd.DataFrame({name: rng.integers(0, size + 1, n) for name, size in SIZES.items()})
    score = table["a"] - table["b"] + rng.normal(0, 2, n)
    model = RandomForestClassifier(4, max_depth=3, random_state=seed).fit(table, (score > 0).astype(int))
    forest = isotree.IsolationForest(
        ntrees=4, ndim=2, sample_size=16, random_seed=seed + 1, nthreads=1, missing_action="fail"
    ).fit(table[model.predict(table) == 1].astype(float))
    features = {name: {"bounds": [0, size]} for name, size in SIZES.items()}
    return Explainer(model, data=table, features=features), forest, table[model.predict(table) == 0].iloc[:2]


@pytest.mark.parametrize(
    ("formulation", "solver"), [(f, s) for f in ("auto", "ocean") for s in ("highs", "scip", "auto")]
)
@pytest.mark.parametrize("seed", range(2))
def test_the_cheapest_of_all_points_is_found(seed: int, solver: str, formulation: str) -> None:
    explainer, forest, rows = case(seed)
    grid = pd.DataFrame(list(itertools.product(*(range(s + 1) for s in SIZES.values()))), columns=list(SIZES))
    depth = forest.predict(grid.astype(float), output="avg_depth")
    least = float(np.quantile(depth, 0.6))
    allowed = grid[(depth >= least) & (explainer.model.native.predict(grid) == 1)]
    assert len(allowed)
    scales = np.array([f.scale for f in explainer.space.features])
    wish = {"forest": forest, "depth": least}
    found = explainer.explain(rows, target=1, plausibility=wish, solver=solver, formulation=formulation)
    for e, row in zip(found, rows.to_numpy(), strict=True):
        cheapest = float((np.abs(allowed.to_numpy() - row) / scales).sum(axis=1).min())
        assert e.status == "optimal", e.message
        assert e.method["formulation"] == ("hyperplanes" if formulation == "auto" else "ocean_hyperplanes")
        assert e.verified, e.checks
        assert e.cost == pytest.approx(cheapest, rel=1e-9)
        assert e.plausibility["depth"] >= least


def test_cells_and_soft_terms_are_refused() -> None:
    explainer, forest, rows = case(0)
    with pytest.raises(ProblemError, match="hyperplanes"):
        explainer.explain(rows, target=1, plausibility=forest, formulation="interval")
    soft = explainer.explain(rows, target=1, plausibility={"forest": forest, "weight": 0.1})[0]
    assert soft.status == "error"
    assert "least depth" in soft.message

"""Polytopes that allow for the rounding of a tree's own sums, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf import Explainer, Linear, MaxChanges
from ocf.oblique.tao import TAOClassifier
from ocf.oblique.tree import ObliqueTree
from ocf.solve.leaf_polytope import continuous_part
from ocf.solve.leaf_rounding import LeafRounding
from ocf.solve.polytope import Polytope


def holds(polytope: Polytope, x: np.ndarray) -> bool:
    """Whether a point meets the half-spaces, exactly."""
    return all(
        sum((Fraction(g) * Fraction(v) for g, v in zip(row, x.tolist(), strict=True)), Fraction(0)) <= Fraction(side)
        for row, side in zip(polytope.G.tolist(), polytope.h.tolist(), strict=True)
    )


def test_points_that_the_tree_takes_by_rounding_alone_are_in_the_widened_polytope() -> None:
    table = pd.DataFrame(np.vstack([np.zeros(6), np.ones(6), np.full(6, 0.3)]), columns=[f"x{j}" for j in range(6)])
    outside = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        w, x = rng.normal(size=6), rng.uniform(0.2, 0.8, 6)
        threshold = float(sum(w * x))  # where the exact total may lie above
        tree = ObliqueTree(
            [w, *np.zeros((2, 6))], [threshold, 0, 0], [1, -1, -1], [2, -1, -1], np.eye(2)[[0, 0, 1]], classes=(0, 1)
        )
        explainer = Explainer(tree, data=table)
        leaf = int(explainer.prepared.ensemble.apply(x[None])[0, 0])
        target = int(tree.predict(x[None])[0])
        model = explainer.query(explainer.problem(table.iloc[[0]], target)).model
        task = model.task(leaf, 0.0)
        assert task is not None
        if not len(task.place):
            continue  # the whole box lies on that side
        part = continuous_part(model, task)
        outside += not holds(part.polytope, x[part.used])
        assert holds(LeafRounding(model).widened(part, np.inf), x[part.used])
    assert outside >= 3


def decimals() -> tuple[pd.DataFrame, pd.Series]:
    """Numbers of two digits, whose multiples float64 rounds, and classes."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 3)).round(2), columns=list("abd"))
    return table, (table["a"] + table["b"] * table["d"] > 0.4).astype(int)


@pytest.mark.parametrize(
    ("weights", "dtype", "solver"),
    [
        ((1, 0.5), np.float64, "box"),
        ((0.1, 0.3), np.float64, "scip"),
        ((1, -0.1), np.float64, "highs"),
        ((0.333, 0.25), np.float32, "box"),
    ],
)
def test_a_relation_that_numbers_meet_by_staying_costs_nothing(
    weights: tuple[float, float], dtype: Any, solver: str
) -> None:
    """It holds with equality where they stay, whatever its terms round to."""
    table, classes = decimals()
    table = table.astype(dtype)
    model = make_pipeline(StandardScaler(), PCA(2), RandomForestClassifier(6, max_depth=3, random_state=0))
    rows = table[model.fit(table, classes).predict(table) == 0].iloc[:5]
    stays = Linear(dict(zip("ad", weights, strict=True)), ">=", 0, relative=True)
    explainer, answers = Explainer(model, table), set[str]()
    for only in ({"features_to_vary": ["b"], "permitted_range": {"b": (-0.6, -0.485)}}, {"features_to_vary": ["b"]}):
        wanted = explainer.explain(rows, 1, **only)
        for own, e in zip(wanted, explainer.explain(rows, 1, constraints=stays, solver=solver, **only), strict=True):
            answers.add(own.status)
            assert e.status == own.status
            assert e.cost == (own.cost if own.cost is None else pytest.approx(own.cost, rel=1e-9))
    assert len(answers) > 1
    assert "infeasible" in answers


def test_one_change_is_enough_beside_a_relation_of_numbers_that_stay() -> None:
    table, classes = decimals()
    model = make_pipeline(StandardScaler(), PCA(2), RandomForestClassifier(6, max_depth=3, random_state=0))
    rows = table[model.fit(table, classes).predict(table) == 0].iloc[:4]
    explainer, stays = Explainer(model, table), Linear({"a": 1, "d": 0.5}, ">=", 0, relative=True)
    for norm in ("l1", {"l0": 0.1, "l1": 1.0}):
        alone = explainer.explain(rows, 1, norm=norm, features_to_vary=["b"])
        for own, e in zip(
            alone, explainer.explain(rows, 1, norm=norm, constraints=[stays, MaxChanges(1)]), strict=True
        ):
            assert e.status == "optimal"
            assert own.status == "infeasible" or e.cost <= own.cost * (1 + 1e-9)
            assert len(e.changes) == 1


@pytest.mark.parametrize("norm", ["l0", "l1", "l2"])
def test_a_row_that_has_the_target_and_meets_a_relation_stays(norm: str) -> None:
    table, _ = decimals()
    model = TAOClassifier(3, random_state=0).fit(table, (table["a"] + table["b"] > 0.4).astype(int))
    rows = table[model.predict(table) == 1].iloc[:8]
    stays = Linear({"a": 1, "d": 0.5}, ">=", 0, relative=True)
    for e in Explainer(model, table).explain(rows, 1, norm=norm, constraints=stays):
        assert (e.status, e.cost, len(e.changes)) == ("optimal", 0.0, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "wish", [Linear({"b": 1.0}, "=", -1.54), Linear({"b": 1.1}, "=", -1.199), Linear({"a": 0.7, "b": -0.3}, "=", 0.31)]
)
def test_equations_are_met_as_well_as_their_columns_can(wish: Linear, dtype: Any) -> None:
    """By the numbers nearest to it that a column holds: a spacing where it is, and not at the row."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 4)).round(2), columns=list("abcd")).astype(dtype)
    model = TAOClassifier(3, random_state=0).fit(table, table.astype(float) @ [1, -0.7, 0.5, 0.2] > 0.3)
    rows = table[~model.predict(table)].iloc[:4]
    for e in Explainer(model, table).explain(rows, True, constraints=wish):
        assert e.verified
        assert e.status == "optimal" or (dtype == np.float32 and e.gap < 1e-5)

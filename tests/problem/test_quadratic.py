"""Quadratic costs, against their matrix."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import ProblemError
from ocf.problem.quadratic import quadratic_cost

from .borrowers import value


def test_quadratic_costs_against_the_matrix(explainer: Explainer, row: pd.DataFrame) -> None:
    names = ["income", "debt", "age"]
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3)) / np.array([3000.0, 2000.0, 20.0])
    cost = quadratic_cost(names, root.T @ root, l0=0.01)
    found = {s: explainer.explain(row, norm=cost, solver=s)[0] for s in ("highs", "scip", "box")}
    for e in found.values():
        assert e.status == "optimal"
        assert e.verified, e.checks
        delta = np.array([float(value(e, n)) - float(row[n].iloc[0]) for n in names])
        assert e.cost == pytest.approx(delta @ root.T @ root @ delta + 0.01 * len(e.changes), rel=1e-8)
        assert e.changes.cost.sum() == pytest.approx(e.cost)
    assert found["highs"].cost == pytest.approx(found["scip"].cost, rel=1e-8)
    assert found["box"].cost == pytest.approx(found["scip"].cost, rel=1e-8)


def test_mahalanobis_of_the_data(table: pd.DataFrame) -> None:
    x = table[["income", "debt"]]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, (x.income > 2 * x.debt).astype(int))
    explainer = Explainer(model, data=x)
    row = x[model.predict(x) == 0].iloc[[3]]
    e = explainer.explain(row, target=1, norm="mahalanobis")[0]
    inverse = np.linalg.inv(np.cov(x.to_numpy(), rowvar=False))
    origin = row.to_numpy()[0]
    delta = e.counterfactual.to_numpy()[0] - origin
    assert e.status == "optimal"
    assert e.verified
    assert e.cost == pytest.approx(delta @ inverse @ delta, rel=1e-8)
    # nothing on a fine grid is cheaper
    grid = np.stack(np.meshgrid(*(np.linspace(x[c].min(), x[c].max(), 300) for c in x)), axis=-1).reshape(-1, 2)
    wins = grid[model.predict(pd.DataFrame(grid, columns=x.columns)) == 1] - origin
    assert np.einsum("ni,ij,nj->n", wins, inverse, wins).min() >= e.cost * (1 - 1e-9)


def whitened(x: pd.DataFrame) -> np.ndarray:
    """The symmetric root of the inverse correlations, over the standard deviations."""
    spread = x.std(ddof=0).to_numpy()
    values, vectors = np.linalg.eigh(np.linalg.inv(np.cov((x / spread).to_numpy(), rowvar=False)))
    return (vectors * np.sqrt(values)) @ vectors.T / spread


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("formulation", ["interval", "ocean"])
def test_absolute_mahalanobis_against_a_grid(table: pd.DataFrame, formulation: str, solver: str) -> None:
    x = table[["income", "debt"]]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, (x.income > 2 * x.debt).astype(int))
    row = x[model.predict(x) == 0].iloc[[3]]
    asked = {"norm": "mahalanobis_l1", "formulation": formulation, "solver": solver}
    e = Explainer(model, data=x).explain(row, target=1, **asked)[0]
    root, origin = whitened(x), row.to_numpy()[0]
    assert (e.status, e.verified) == ("optimal", True)
    assert e.cost == pytest.approx(np.abs(root @ (e.counterfactual.to_numpy()[0] - origin)).sum(), rel=1e-8)
    grid = np.stack(np.meshgrid(*(np.linspace(x[c].min(), x[c].max(), 300) for c in x)), axis=-1).reshape(-1, 2)
    wins = grid[model.predict(pd.DataFrame(grid, columns=x.columns)) == 1] - origin
    assert np.abs(wins @ root.T).sum(axis=1).min() >= e.cost * (1 - 1e-9)


def test_both_mahalanobis_distances_and_norms_add_up(table: pd.DataFrame) -> None:
    x = table[["income", "debt"]]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, (x.income > 2 * x.debt).astype(int))
    row = x[model.predict(x) == 0].iloc[[3]]
    e = Explainer(model, data=x).explain(row, 1, {"mahalanobis": 0.5, "mahalanobis_l1": 2.0, "l0": 0.01})[0]
    delta = whitened(x) @ (e.counterfactual.to_numpy()[0] - row.to_numpy()[0])
    assert (e.status, e.verified) == ("optimal", True)
    assert e.cost == pytest.approx(0.5 * delta @ delta + 2 * np.abs(delta).sum() + 0.01 * len(e.changes), rel=1e-8)
    assert e.changes.cost.sum() == pytest.approx(e.cost)


def test_oblique_trees_refuse_sums_of_absolutes_by_name(table: pd.DataFrame) -> None:
    x = table[["income", "debt"]]
    explainer = Explainer(RandomForestClassifier(2, max_depth=2).fit(x, (x.income > 2 * x.debt).astype(int)), data=x)
    with pytest.raises(ProblemError, match="knows no absolute values of sums"):
        explainer.explain(x.iloc[[0]], 1, "mahalanobis_l1", formulation="hyperplanes")
    with pytest.raises(ProblemError, match="weight of 'mahalanobis_l1'"):
        explainer.explain(x.iloc[[0]], 1, {"mahalanobis_l1": -1.0})


@given(seed=st.integers(0, 2**32 - 1))
def test_sparse_forms_whose_diagonal_dominates_are_sums_of_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 8
    beside = rng.choice([-0.5, 0.0, 0.25, 0.5], n - 1)
    unit = 10.0 ** rng.integers(-3, 4, n)
    q = (np.eye(n) + np.diag(beside, 1) + np.diag(beside, -1)) * np.outer(unit, unit)
    names = [f"x{i}" for i in range(n)]
    cost = quadratic_cost(names, q, l1=1.0)
    assert [len(form) for form in cost.forms] == [2] * np.count_nonzero(beside)
    found = np.diag([dict(cost.squares).get(name, 0.0) for name in names])
    for form in cost.forms:
        row = np.array([dict(form).get(name, 0.0) for name in names])
        found += np.outer(row, row)
    assert (np.abs(found - q) / np.outer(unit, unit)).max() <= 1e-10


def test_quadratic_costs_are_refused_by_name(explainer: Explainer, row: pd.DataFrame) -> None:
    with pytest.raises(ProblemError, match="not convex"):
        quadratic_cost(["a", "b"], [[1, 2], [2, 1]])
    with pytest.raises(ProblemError, match="matrix of that size"):
        quadratic_cost(["a"], [[1, 2], [2, 1]])
    with pytest.raises(ProblemError, match="needs numbers"):
        explainer.explain(row, norm=quadratic_cost(["job"], [[1]]))
    with pytest.raises(ProblemError, match="no price for a change of"):
        explainer.explain(row, norm="mahalanobis")

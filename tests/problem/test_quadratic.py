"""Quadratic costs, against their matrix."""

from __future__ import annotations

from typing import Any

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
    with pytest.raises(TypeError, match="L1"):
        quadratic_cost(["a"], [[1]], L1=5.0)  # type: ignore[call-arg]
    with pytest.raises(ProblemError, match="needs numbers"):
        explainer.explain(row, norm=quadratic_cost(["job"], [[1]]))
    with pytest.raises(ProblemError, match="no price for a change of"):
        explainer.explain(row, norm="mahalanobis")


def fitted(table: pd.DataFrame, of: str, **settings: Any) -> tuple[Any, Explainer, pd.DataFrame]:
    """A forest that likes high values of a column, and rows that it refuses."""
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(
        table, (table[of] > table[of].median()).astype(int)
    )
    return model, Explainer(model, table, **settings), table[model.predict(table) == 0]


def two_columns() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 20, 300), "b": rng.integers(0, 20, 300)})
    return table.assign(b=(table.a + table.b) // 2)


@pytest.mark.parametrize("norm", ["mahalanobis", "mahalanobis_l1"])
def test_the_covariance_is_that_of_rows_without_codes(norm: str) -> None:
    table = two_columns()
    table.loc[::7, "b"] = -99
    model, explainer, rows = fitted(table, "a", special_values={"b": [-99]})
    row = rows[rows.b != -99].iloc[[0]]
    found = explainer.explain(row, 1, norm=norm)[0]
    clean = table[table.b != -99]
    grid = pd.DataFrame(
        [(a, b) for a in range(20) for b in range(clean.b.min(), clean.b.max() + 1)], columns=["a", "b"]
    )
    delta = (grid[model.predict(grid) == 1] - row.iloc[0]).to_numpy(float)
    if norm == "mahalanobis":
        costs = np.einsum("ni,ij,nj->n", delta, np.linalg.inv(np.cov(clean.to_numpy(), rowvar=False)), delta)
    else:
        costs = np.abs(delta @ whitened(clean).T).sum(axis=1)
    assert found.status == "optimal"
    assert found.verified
    assert found.cost == pytest.approx(costs.min(), rel=1e-8)


def test_a_feature_with_a_cost_of_its_own_takes_no_part() -> None:
    table = two_columns().assign(c=lambda t: (t.a * 7 + t.b) % 5)
    model, explainer, rows = fitted(table, "a", features={"a": {"cost": 0.3}})
    row = rows.iloc[[0]]
    found = explainer.explain(row, 1, norm="mahalanobis")[0]
    assert found.verified
    grid = pd.DataFrame(
        [(a, b, c) for a in range(20) for b in range(table.b.min(), table.b.max() + 1) for c in range(5)],
        columns=["a", "b", "c"],
    )
    delta = (grid[model.predict(grid) == 1] - row.iloc[0]).to_numpy(float)
    inverse = np.linalg.inv(np.cov(table[["b", "c"]].to_numpy(), rowvar=False))
    costs = 0.3 * np.abs(delta[:, 0]) + np.einsum("ni,ij,nj->n", delta[:, 1:], inverse, delta[:, 1:])
    assert found.cost == pytest.approx(costs.min(), rel=1e-8)
    with pytest.raises(ProblemError, match="'a' has a cost of its own in place of the norm"):
        explainer.explain(row, 1, norm=quadratic_cost(["a", "b"], np.eye(2)))


@pytest.mark.parametrize("norm", ["mahalanobis", "mahalanobis_l1"])
def test_changes_along_which_the_data_do_not_spread_have_no_price(norm: str) -> None:
    table = two_columns().assign(net=lambda t: t.a - t.b, rate=3)
    _, explainer, rows = fitted(table, "a", features={"rate": {"bounds": [0, 9], "scale": 1}})
    row = rows.iloc[[0]]
    with pytest.raises(ProblemError, match="do not spread apart in a, b, net, rate"):
        explainer.explain(row, 1, norm=norm)
    with pytest.raises(ProblemError, match="do not spread in 'rate'"):
        explainer.explain(row, 1, norm=norm, features_to_vary=["rate"])
    mixed = explainer.explain(row, 1, norm={norm: 1, "l1": 1}, features_to_vary=["a", "b", "net"])[0]
    assert mixed.status == "optimal"
    assert mixed.verified
    assert mixed.cost is not None
    assert mixed.cost > 0
    _, explainer, rows = fitted(table[["a", "b"]], "a")
    assert explainer.explain(rows.head(1), 1, norm=norm)[0].verified
    with pytest.raises(ProblemError, match="takes no weights, and 'b' has one"):
        explainer.explain(rows.head(1), 1, norm=norm, weights={"b": 2.0})

"""How far features can move where the cost couples them, against brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from ocf import Cost, Explainer, quadratic_cost
from ocf.cells.reduction import reduce
from ocf.problem.problem import Problem

NAMES = ("a", "b", "c")


def forest(seed: int) -> tuple[Explainer, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3))
    x[:, 2] = np.round(3 * x[:, 2])
    table = pd.DataFrame(x, columns=list(NAMES)).astype({"c": int})
    y = (x @ rng.normal(size=3) > 0).astype(int)
    return Explainer(RandomForestClassifier(4, max_depth=3, random_state=0).fit(table, y), data=table), table


def random_cost(rng: np.random.Generator, kind: str) -> Cost:
    root = rng.normal(size=(3, 3)) * np.array([1.0, 0.1, 0.01]) ** rng.integers(0, 2, 3)[:, None]
    quadratic = quadratic_cost(NAMES, root.T @ root)
    forms = tuple(tuple(zip(NAMES, row.tolist(), strict=True)) for row in root)
    parts = {
        "squares": {"squares": quadratic.squares, "forms": quadratic.forms},
        "absolutes": {"absolutes": forms},
        "together": {"squares": (("a", 0.1), ("b", 10.0)), "forms": ((("a", 1.0), ("b", -1.0)),)},
        "both": {"squares": quadratic.squares, "forms": quadratic.forms, "absolutes": forms[:2], "l1": 0.2},
    }
    return Cost(**parts[kind])


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["squares", "absolutes", "together", "both"]),
)
def test_no_point_costs_less_than_its_cells_say(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    explainer, table = forest(seed % 3)
    problem = explainer.problem(table.iloc[[seed % len(table)]], norm=random_cost(rng, kind))
    cells = explainer.cells(problem)
    assert cells.values is not None
    beyond = cells.values.beyond
    assert beyond is not None
    low, high = table.to_numpy(float).min(0), table.to_numpy(float).max(0)
    points = low + rng.random((500, 3)) * (high - low)
    points = np.vstack([points, problem.origin + (points - problem.origin) * 10.0 ** rng.uniform(-3, 0, (500, 1))])
    both = problem.origin + rng.uniform(-1, 1, (200, 1)) * np.array([1.0, 1.0, 0.0])
    points = np.vstack([points, both[((low <= both) & (both <= high)).all(axis=1)]])
    points[:, 2] = np.round(points[:, 2])
    offsets = cells.partition.offsets[:-1] + cells.partition.locate(points)
    cost = problem.costs(points)
    told = cells.cost[offsets] + beyond[offsets]
    assert (told.max(axis=1) <= cost * (1 + 1e-9) + 1e-12).all()


def test_a_ball_closes_cells_of_correlated_features() -> None:
    explainer, table = forest(0)
    cells = explainer.cells(explainer.problem(table.iloc[[0]], norm="mahalanobis"))
    assert reduce(cells, 0.05).cells.open.sum() < 0.5 * reduce(cells).cells.open.sum()


@pytest.mark.parametrize("kind", ["squares", "absolutes", "both"])
def test_total_and_table_agree_on_costs(kind: str) -> None:
    explainer, table = forest(1)
    problem: Problem = explainer.problem(table.iloc[[0]], norm=random_cost(np.random.default_rng(5), kind))
    rows = table.to_numpy(float)[:20]
    one_by_one = [problem.cost.total(problem.space, problem.origin, row) for row in rows]
    assert problem.costs(rows) == pytest.approx(one_by_one, rel=1e-12)

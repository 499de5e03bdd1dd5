"""Baselines of OCEAN's table 3: never below the optimum, and the bisection within its precision of it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer

PAPERS = Path(__file__).parents[2] / "examples" / "papers"


@pytest.fixture
def baselines(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module, which finds what it shares with others one folder up."""
    monkeypatch.syspath_prepend(str(PAPERS))
    monkeypatch.syspath_prepend(str(PAPERS / "ocean"))
    yield importlib.import_module("baselines")
    for name in ("baselines", "tweaking"):
        sys.modules.pop(name)


def case(seed: int) -> Any:
    """A forest over a level, a level that may only grow, and a number."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"level": rng.integers(0, 5, 90), "age": rng.integers(20, 30, 90), "number": rng.normal(size=90)}
    )
    label = (table.level + table.number + (table.age - 25) / 4 > 2).astype(int)
    settings = {
        "level": {"kind": "ordinal", "levels": list(range(5))},
        "age": {"kind": "ordinal", "levels": list(range(20, 30)), "actionability": "increasing"},
        "number": {"kind": "numeric"},
    }
    model = RandomForestClassifier(5, max_depth=3, random_state=seed).fit(table, label)
    rows = table[model.predict(table) == 0].iloc[:4]
    explainer = Explainer(model, data=table, features=settings)
    return SimpleNamespace(explainer=explainer, settings=settings, train=table, rows=rows)


@pytest.mark.parametrize("seed", range(2))
def test_baselines_of_table_3_are_never_below_the_optimum(baselines: ModuleType, seed: int) -> None:
    the = case(seed)
    best = the.explainer.explain(the.rows, target=1, norm="l1")
    found = 0
    for e, k in zip(best, range(len(the.rows)), strict=True):
        row = the.rows.iloc[[k]]
        status, cost = baselines.bisected(the, row, "l1", 60.0)
        assert status == "found"
        assert e.cost - 1e-9 <= cost <= e.cost + baselines.PRECISION * 3 + 1e-9
        status, cost = baselines.tweaked(the, row, "l1", 60.0)
        if status == "found":
            found += 1
            assert cost >= e.cost - 1e-9
    assert found
    age = the.explainer.space.index("age")
    problem = the.explainer.problem(the.rows.iloc[[0]], 1, "l1")
    younger = problem.origin.copy()
    younger[age] -= 1
    assert baselines.price(problem, younger) == np.inf
    assert baselines.price(problem, problem.origin) == 0.0

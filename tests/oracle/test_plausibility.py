"""Plausibility against brute force: every method, with an isolation forest as constraint and as part of the cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle import brute_force
from oracle.harness import LIMIT, Case, case_of, check_case
from oracle.instances import Instance, Spec, make
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

Depth = Callable[[Any], np.ndarray]


def average_path_length(n: float) -> float:
    """Of an isolation tree of n rows, as scikit-learn reckons it."""
    return 0.0 if n <= 1 else 1.0 if n == 2 else 2 * (math.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n


def sklearn_forest(instance: Instance, rng: np.random.Generator) -> tuple[Any, Depth]:
    """A small fitted forest over the instance's own table, and its average depth."""
    forest: Any = IsolationForest(
        n_estimators=int(rng.integers(2, 5)),
        max_samples=int(rng.integers(4, 9)),
        max_features=float(rng.choice([0.6, 1.0])),
        random_state=int(rng.integers(1000)),
    )
    data = instance.data
    if isinstance(data, pd.DataFrame):
        words = [c for c in data.columns if not pd.api.types.is_numeric_dtype(data[c])]
        if words:
            forest = make_pipeline(
                make_column_transformer((OneHotEncoder(), words), remainder="passthrough", sparse_threshold=0.0), forest
            )
    forest.fit(data)
    last = forest[-1] if hasattr(forest, "steps") else forest
    unit = average_path_length(last.max_samples_)
    return forest, lambda table: -unit * np.log2(-forest.score_samples(table))


def isotree_forest(instance: Instance, rng: np.random.Generator) -> tuple[Any, Depth]:
    """The same of isotree; numbers only."""
    isotree = pytest.importorskip("isotree")
    forest = isotree.IsolationForest(
        ntrees=int(rng.integers(2, 5)),
        sample_size=int(rng.integers(4, 9)),
        ndim=1,
        scoring_metric=str(rng.choice(["depth", "adj_depth"])),
        missing_action="fail",
        random_seed=int(rng.integers(1000)),
        nthreads=1,
    ).fit(_numbers(instance.data))
    return forest, lambda table: forest.predict(_numbers(table), output="avg_depth")


def _numbers(table: Any) -> Any:
    return table.astype(np.float64)


def plausible_case(spec: Spec, make_forest: Callable[..., tuple[Any, Depth]]) -> Case:
    """An instance with an isolation forest, small enough for brute force."""
    rng = np.random.default_rng(spec.seed + 77)
    instance = make(spec)
    forest, depth = make_forest(instance, rng)
    depths = np.sort(np.unique(depth(instance.data)))
    middle = len(depths) // 3
    wish: dict[str, Any] = {"forest": forest, "depth": float(depths[max(middle - 1, 0) : middle + 1].mean())}
    if rng.random() < 0.4:
        wish["weight"] = float(rng.choice([0.01, 0.1, 1.0]))
        wish["required"] = bool(rng.random() < 0.5)
    for shrink in range(spec.shrink, 12):
        case = case_of(_free(make(spec._replace(shrink=shrink)), wish))
        if brute_force.n_products(case.question) <= LIMIT:
            return with_rules(case, depth, wish)
    pytest.skip("too many cells for brute force")


def _free(instance: Instance, wish: dict[str, Any]) -> Instance:
    """The instance with plausibility in the place of what may not change, with which few answers would be left."""
    dropped = ("actionability", "permitted_range")
    features = {name: {k: v for k, v in s.items() if k not in dropped} for name, s in instance.features.items()}
    question = {k: v for k, v in instance.question.items() if k != "features_to_vary"}
    return replace(instance, features=features, question=question | {"plausibility": wish})


def with_rules(case: Case, depth: Depth, wish: dict[str, Any]) -> Case:
    """The case with the forest's own library as a rule, and as a part of the cost, of brute force."""
    question = case.question

    def of(points: np.ndarray) -> np.ndarray:
        table = brute_force.table_of(question, points)
        given = table if isinstance(case.instance.data, pd.DataFrame) else table.to_numpy(case.instance.data.dtype)
        return depth(given)

    weight, deepest = wish.get("weight", 0.0), 0.0
    if weight:
        plausibility = case.problem.plausibility
        trees = plausibility.forest
        per_tree = [trees.leaf_values[trees.leaf_tree == t].max() for t in range(trees.n_trees)]
        deepest = sum(per_tree) / len(per_tree)
    rules = [lambda points: of(points) >= wish["depth"]] if wish.get("required", True) else []
    costs = [lambda points: weight * (deepest - of(points))] if weight else []
    return replace(case, question=replace(question, extra_rules=rules, extra_costs=costs))


def play(library: str, layouts: list[str], make_forest: Callable[..., Any], seeds: range) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        for layout in layouts:
            case = plausible_case(Spec(library, layout, seed), make_forest)
            seen[check_case(case)] += 1
    assert seen["optimal"] > seen["infeasible"]


def test_methods_equal_brute_force_within_scikit_learns_forest() -> None:
    play("forest", ["frame", "array32", "pipeline"], sklearn_forest, range(1))
    play("xgboost", ["pipeline32", "dummies"], sklearn_forest, range(1))


def test_methods_equal_brute_force_within_isotrees_forest() -> None:
    play("gradient_boosting", ["frame32", "array"], isotree_forest, range(2))  # takes no missing values, like isotree


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pure_forest", "hist_gradient_boosting"])
def test_methods_equal_brute_force_on_others(library: str) -> None:
    play(library, ["dummies", "pipeline"], sklearn_forest, range(1, 2))

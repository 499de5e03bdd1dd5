"""What is compiled ahead is what rows of people's own models use, in the same types."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from ocf import Explainer
from ocf.solve.ahead import compile_beginning, compile_bounds, compile_coupled, compile_search
from ocf.solvers.box import branching, coupled_boxes, worker
from ocf.support.numba_cache import CALLED

BOUNDS = ("_weights", "_column_bounds", "_best_cuts", "restrict", "try_cuts", "best_rounding")
BEGINNING = ("_improve", "_shrink", "_probe_leaves", "_descend")


def ask() -> None:
    """A row of a forest that reduction does not prove."""
    rng = np.random.default_rng(3)
    numbers = pd.DataFrame(rng.normal(size=(200, 6)), columns=list("abcdef"))
    forest = RandomForestClassifier(10, max_depth=4, random_state=0)
    forest.fit(numbers, (numbers.a * numbers.b + numbers.c > numbers.d * numbers.e).astype(int))
    rows = numbers[forest.predict(numbers) == 0].iloc[:1]
    explainer = Explainer(forest, data=numbers)
    explainer.explain(rows, solver="box", time_limit=60.0)
    explainer.explain(rows, solver="box", reduce=False, time_limit=60.0)


def test_the_search_that_is_compiled_ahead_is_that_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[Any]] = {"propagate": [], "dive": []}

    def watched(name: str) -> Any:
        kernel = getattr(worker, name)

        def call(*args: Any) -> Any:
            seen[name].append(tuple(numba.typeof(a) for a in args))
            return kernel(*args)

        return call

    for name in seen:
        monkeypatch.setattr(worker, name, watched(name))
    compile_search()
    ahead = {name: set(types) for name, types in seen.items()}
    assert {name: len(types) for name, types in ahead.items()} == {"propagate": 1, "dive": 1}
    ask()
    assert {name: set(types) for name, types in seen.items()} == ahead


def test_what_costs_that_couple_features_need_serves_trees_of_hyperplanes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def watched(*args: Any, own: Any = coupled_boxes.bound_box) -> Any:
        seen.append(tuple(numba.typeof(a) for a in args))
        return own(*args)

    monkeypatch.setattr(coupled_boxes, "bound_box", watched)
    compile_coupled()
    ahead = set(seen)
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = make_pipeline(PCA(3), RandomForestClassifier(10, max_depth=4, random_state=0)).fit(X, y)
    e = Explainer(model, X).explain(X[model.predict(X) == 0].iloc[[0]], 1, solver="box")[0]
    assert (e.status, e.method["solvers"]) == ("optimal", ["box"])
    assert len(ahead) == 1
    assert set(seen) == ahead


def test_the_beginning_that_is_compiled_ahead_is_that_of_rows() -> None:
    kernels = [k for k in CALLED if k.__name__ in BEGINNING]
    assert len(kernels) == len(BEGINNING)
    if not all(hasattr(kernel, "signatures") for kernel in kernels):
        pytest.skip("kernels are plain functions here")
    compile_beginning()
    assert all(kernel.signatures for kernel in kernels)
    ask()
    assert {kernel.__name__: len(kernel.signatures) for kernel in kernels} == dict.fromkeys(BEGINNING, 1)


def test_the_bounds_that_are_compiled_ahead_are_those_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [k for k in CALLED if k.__name__ in BOUNDS]
    assert len(kernels) == len(BOUNDS)
    if not all(hasattr(kernel, "signatures") for kernel in kernels):
        pytest.skip("kernels are plain functions here")
    assert compile_bounds().lp_solves
    assert all(kernel.signatures for kernel in kernels)
    table, answers = load_breast_cancer(return_X_y=True, as_frame=True)
    explainer = Explainer(RandomForestClassifier(15, max_depth=4, random_state=0).fit(table, answers), data=table)
    rows = table[explainer.model.decide(table) == 0].iloc[:1]
    tried: list[bool] = []

    def try_cuts(*args: Any) -> Any:
        tried.append(True)
        return branching.try_cuts(*args)

    monkeypatch.setattr(worker, "try_cuts", try_cuts)
    assert explainer.explain(rows, target=1, solver="box", reduce=False, time_limit=60.0)[0].status == "optimal"
    assert tried
    assert {kernel.__name__: len(kernel.signatures) for kernel in kernels} == dict.fromkeys(BOUNDS, 1)

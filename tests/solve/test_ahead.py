"""What is compiled ahead is what rows of people's own models use, in the same types."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.solve.ahead import compile_beginning, compile_search
from ocf.solvers.box import worker
from ocf.support.numba_cache import CALLED

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


def test_the_beginning_that_is_compiled_ahead_is_that_of_rows() -> None:
    kernels = [k for k in CALLED if k.__name__ in BEGINNING]
    assert len(kernels) == len(BEGINNING)
    if not all(hasattr(kernel, "signatures") for kernel in kernels):
        pytest.skip("kernels are plain functions here")
    compile_beginning()
    assert all(kernel.signatures for kernel in kernels)
    ask()
    assert {kernel.__name__: len(kernel.signatures) for kernel in kernels} == dict.fromkeys(BEGINNING, 1)

"""After the warm-up no answer waits for a kernel."""

from __future__ import annotations

from typing import Any

import pytest
from numba.core import event
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ocf import CounterfactualRules, Explainer
from ocf.explain.warm_up import count_kernels, warm_up


class _Compiled(event.Listener):
    """Names of the functions that Numba compiles."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: Any) -> None:
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        pass


@pytest.mark.slow
def test_nothing_is_left_to_be_compiled() -> None:
    told: list[str] = []
    warm_up(told.append)
    assert len(told) <= count_kernels()
    assert count_kernels() > 20
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(30, max_depth=4, random_state=1).fit(x, y)
    rows = x[forest.predict(x) == 0].iloc[:2]
    listener = _Compiled()
    event.register("numba:compile", listener)
    try:
        for solver, norm in (("auto", "l1"), ("box", "l0"), ("highs", "l2")):
            Explainer(forest, data=x).explain(rows, target=1, solver=solver, norm=norm)
        Explainer(forest, data=x).explain(rows, target=1, norm="mahalanobis", features_to_vary=list(x)[:5])
        Explainer(forest, data=x).explain(rows, target=1, solver="highs", cuts="root")
        list(Explainer(forest, data=x).counterfactual_regions(rows.iloc[:1], 1, radius=2.0, limit=1))
        few = ["worst perimeter", "worst concave points"]
        CounterfactualRules(None, x[few], y, n_estimators=3, candidates=2).local(rows[few].iloc[:1], target=1)
    finally:
        event.unregister("numba:compile", listener)
    assert listener.names == []

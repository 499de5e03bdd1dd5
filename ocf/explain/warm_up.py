"""All kernels compiled at once, for images, clusters and services: what is asked afterwards finds them in the cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import pandas as pd
from numba.core import event
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf.cells.nearby import Pruner
from ocf.explain.explainer import Explainer
from ocf.problem.constraints import MaxChanges
from ocf.rules.explainer import CounterfactualRules
from ocf.support.numba_cache import CALLED, KERNELS


class _Counter(event.Listener):
    """Tells of each kernel, once, that it has been compiled."""

    def __init__(self, done: Callable[[str], None]) -> None:
        self._done = done

    def on_start(self, event: Any) -> None:
        """Nothing to say."""

    def on_end(self, event: Any) -> None:
        """A kernel, or one of those that only kernels call, is there."""
        dispatcher = event.data["dispatcher"]
        if any(dispatcher is kernel for kernel in CALLED):
            self._done(dispatcher.py_func.__name__)


def count_kernels() -> int:
    """How many kernels Python may call, compiled or not."""
    for name in KERNELS:
        import_module("ocf." + name.removesuffix(".py").replace("/", "."))
    return len(CALLED)


def warm_up(done: Callable[[str], None] = lambda name: None) -> None:
    """Compile all kernels that answers need, or load them from the cache.

    Parameters
    ----------
    done : callable
        Told the name of each kernel that was compiled, when it is.
    """
    counter = _Counter(done)
    event.register("numba:compile", counter)
    try:
        # thirty numbers: the searches of smaller problems end before they need all that they have
        table, answers = load_breast_cancer(return_X_y=True, as_frame=True)
        explainer = Explainer(RandomForestClassifier(60, max_depth=5, random_state=0).fit(table, answers), data=table)
        for step in _questions(explainer, table, answers):
            step()
    finally:
        event.unregister("numba:compile", counter)


def _questions(explainer: Explainer, table: pd.DataFrame, answers: Any) -> list[Callable[[], Any]]:
    """What together asks for every kernel, the first answer's first."""
    rows = table[explainer.model.decide(table) == 0].iloc[:1]
    few = ["worst perimeter", "worst concave points"]
    ask = partial(explainer.explain, rows, target=1)

    def prune() -> None:
        problem = explainer.problem(rows, target=1)
        cells = explainer.cells(problem)
        Pruner(cells.partition).within(cells.cost, 1.0, 10**6)

    def planes() -> None:
        few_trees = RandomForestClassifier(5, max_depth=3, random_state=0)
        behind = make_pipeline(StandardScaler(), PCA(2, random_state=0), few_trees).fit(table, answers)
        Explainer(behind, data=table).explain(rows, target=1, solver="box")

    def rules() -> None:
        found = CounterfactualRules(None, table[few], answers, n_estimators=5, candidates=2, level=0.5)
        for rule in found.local(rows[few], target=1):
            found.sample(rule, rows[few], iterations=5)

    return [
        ask,
        partial(ask, solver="box", reduce=False),
        partial(ask, constraints=[MaxChanges(1)]),
        partial(ask, norm="mahalanobis", features_to_vary=few),
        partial(ask, solver="highs", reduce=False, cuts="root"),
        lambda: list(explainer.counterfactual_regions(rows, 1, radius=9.0, limit=2)),
        prune,
        planes,
        rules,
    ]

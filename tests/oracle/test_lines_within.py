"""Across files: a stack whose final model adds up numbers of the table, inside another model, against LPs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.lined import least_score, table
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.errors import UnsupportedModelError
from ocf.problem.totals import TotalThreshold
from ocf.readers import read_model
from ocf.solve import parts

FOREST = RandomForestClassifier(3, max_depth=2, random_state=0)
OTHER = RandomForestClassifier(3, max_depth=2, random_state=5)
TREE = DecisionTreeClassifier(max_depth=2)
STACK = StackingClassifier([("a", FOREST)], LogisticRegression(), cv=2, passthrough=True)


def logit(p: float) -> float:
    return -math.inf if p <= 0 else math.inf if p >= 1 else math.log(p / (1 - p))


def agree(found: Any, best: float) -> None:
    assert (found.status, found.verified) == ("optimal", True), (found, found.message, found.checks)
    assert found.cost == pytest.approx(best, rel=1e-6, abs=1e-6)


def opposite(model: Any, x: pd.DataFrame, stack: Any, others: list[Any], need: Callable[[np.ndarray], float]) -> None:
    """The cheapest changes into the other class, which the stack decides where others leave it to it."""
    explainer = Explainer(model, x)
    for k in range(3):
        found = explainer.explain(x.iloc[[k]], "opposite", progress=False)[0]
        agree(found, least_score(stack, others, x, x.iloc[k], need, up=not model.predict(x.iloc[[k]])[0]))


def test_a_soft_vote_of_a_stack_and_a_forest() -> None:
    x, y = table()
    model = VotingClassifier([("s", STACK), ("f", OTHER)], voting="soft", weights=[2, 1]).fit(x, y > 0)
    stack, other = model.estimators_
    opposite(model, x, stack, [other], lambda shown: logit((1.5 - shown[0]) / 2))
    explainer = Explainer(model, x)
    for k in range(2):
        found = explainer.explain(x.iloc[[k]], True, probability=0.7, progress=False)[0]
        agree(found, least_score(stack, [other], x, x.iloc[k], lambda shown: logit((2.1 - shown[0]) / 2), up=True))
        assert model.predict_proba(found.counterfactual.astype(float))[0, 1] >= 0.7


def test_a_hard_vote_in_which_a_stack_may_decide() -> None:
    x, y = table()
    model = VotingClassifier([("s", STACK), ("f", OTHER), ("t", TREE)]).fit(x, y > 0)
    stack, *others = model.estimators_
    opposite(model, x, stack, others, lambda shown: [math.inf, 0.0, -math.inf][int((shown > 0.5).sum())])


def test_a_threshold_and_a_calibrator_of_a_stack() -> None:
    x, y = table()
    model = FixedThresholdClassifier(STACK, threshold=0.3).fit(x, y > 0)
    opposite(model, x, model.estimator_, [], lambda _: logit(0.3))
    model = CalibratedClassifierCV(STACK, method="sigmoid", ensemble=False, cv=2).fit(x, y > 0)
    (fold,) = model.calibrated_classifiers_
    a, b = fold.calibrators[0].a_, fold.calibrators[0].b_
    opposite(model, x, fold.estimator, [], lambda _: -b / a)
    found = Explainer(model, x).explain(x.iloc[[0]], True, probability=0.8, progress=False)[0]
    agree(found, least_score(fold.estimator, [], x, x.iloc[0], lambda _: (-logit(0.8) - b) / a, up=True))
    model = CalibratedClassifierCV(STACK, method="isotonic", ensemble=False, cv=2).fit(x, y > 0)
    (fold,) = model.calibrated_classifiers_
    (table_of,) = fold.calibrators
    level = float(np.interp(0.5, table_of.y_thresholds_, table_of.X_thresholds_))
    assert (np.diff(table_of.y_thresholds_)[np.searchsorted(table_of.X_thresholds_, level) - 1]) > 0  # it rises there
    opposite(model, x, fold.estimator, [], lambda _: level)


def test_one_output_of_several_stacks_and_one_stack_a_class() -> None:
    x, y = table()
    model = MultiOutputClassifier(STACK).fit(x, np.column_stack([y > 0, y > 1]))
    found = Explainer(model, x, output=1).explain(x.iloc[[0]], True, progress=False)[0]
    agree(found, least_score(model.estimators_[1], [], x, x.iloc[0], lambda _: 0.0, up=True))
    model = OneVsRestClassifier(STACK).fit(x, np.digitize(y, [-0.5, 0.5]))
    found = Explainer(model, x).explain(x.iloc[[0]], 2, progress=False)[0]
    assert (found.status, found.verified) == ("optimal", True)
    scores = np.sort(model.decision_function(found.counterfactual.astype(float))[0])
    assert scores[2] - scores[1] < 1e-9  # two lines meet, of stacks over forests of their own
    rng, scale, row = np.random.default_rng(0), x.max() - x.min(), x.iloc[0]
    for c in range(3):
        left = 0.999 * found.cost - abs(c - row["c"]) / scale["c"]
        if left > 0:
            share = rng.dirichlet(np.ones(3), 20_000)[:, :2] * rng.choice([-1, 1], (20_000, 2)) * left
            near = pd.DataFrame({n: row[n] + share[:, j] * scale[n] for j, n in enumerate("ab")}).assign(c=c)
            near = near[((near >= x.min()) & (near <= x.max())).all(axis=1)]
            assert not (model.predict(near) == 2).any()


def test_where_scores_bend_on_the_way_the_rest_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = table()
    forest = RandomForestClassifier(8, max_depth=3, random_state=1)
    model = VotingClassifier([("s", STACK), ("f", forest)], voting="soft").fit(x, y > 0)
    stack, other = model.estimators_
    explainer, halved = Explainer(model, x), []
    monkeypatch.setattr(parts, "MOST_UNSPLIT", 1)
    split = TotalThreshold.split
    monkeypatch.setattr(TotalThreshold, "split", lambda self, point: halved.append(point) or split(self, point))
    share = float(np.quantile(model.predict_proba(x)[:, 1], 0.9))
    for k in range(3):
        found = explainer.explain(x.iloc[[k]], True, probability=share, progress=False)[0]
        agree(found, least_score(stack, [other], x, x.iloc[k], lambda shown: logit(2 * share - shown[0]), up=True))
    assert halved
    members = [("a", FOREST), ("h", HistGradientBoostingClassifier(max_iter=3, max_depth=2, min_samples_leaf=5))]
    bent = StackingClassifier(members, LogisticRegression(), cv=2, passthrough=True).fit(x, y > 0)
    found = Explainer(bent, x).explain(x.iloc[[2]], "opposite", progress=False)[0]
    assert (found.status, found.verified) == ("optimal", True)


def test_several_lines_through_curves_are_refused_by_name() -> None:
    x, y = table()
    vote = VotingClassifier([("s", STACK), ("t", clone(STACK))], voting="soft")
    for model, remedy in ((vote, "passthrough=False"), (CalibratedClassifierCV(STACK, cv=2), "ensemble=False")):
        with pytest.raises(UnsupportedModelError, match=f"{type(model).__name__} holds 2 stacks.*{remedy}"):
            read_model(clone(model).fit(x, y > 0))

"""Votes, stacks and one model per class: read, compared with the library, and refused where they must be."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from ocf import Explainer
from ocf.errors import ModelError, ProblemError, UnsupportedModelError
from ocf.models.user_model import as_user_model
from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.trees.ensemble import Ensemble
from ocf.trees.links import show

FOREST = RandomForestClassifier(4, max_depth=3, random_state=0)
BOOSTING = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
SCALED = make_pipeline(StandardScaler(), BOOSTING)
VALUES = RandomForestRegressor(4, max_depth=3, random_state=0)
BOOSTED = GradientBoostingRegressor(n_estimators=4, max_depth=2, random_state=0)
COUNTS = HistGradientBoostingRegressor(max_iter=4, loss="poisson", min_samples_leaf=3, random_state=0)

STACK = StackingClassifier([("a", FOREST)], LogisticRegression(), cv=2)

#: Model, and how many classes it is fitted on: 0 for values.
READ = {
    "soft": (VotingClassifier([("a", FOREST), ("b", BOOSTING)], voting="soft"), 2),
    "soft pipelines": (
        VotingClassifier([("a", FOREST), ("b", SCALED), ("c", TREE)], voting="soft", weights=[1, 2, 0.5]),
        2,
    ),
    "dropped": (VotingClassifier([("a", FOREST), ("b", "drop")], voting="soft", weights=[1, 2]), 2),
    "soft of three": (VotingClassifier([("a", FOREST), ("b", TREE)], voting="soft"), 3),
    "hard": (VotingClassifier([("a", FOREST), ("b", BOOSTING), ("c", TREE)]), 2),
    "hard weights": (VotingClassifier([("a", FOREST), ("b", SCALED)], weights=[1, 0.3]), 2),
    "one against the rest": (OneVsRestClassifier(BOOSTING), 3),
    "halved margins against the rest": (
        OneVsRestClassifier(GradientBoostingClassifier(n_estimators=4, loss="exponential", random_state=0)),
        3,
    ),
    "forests against the rest": (OneVsRestClassifier(FOREST), 3),
    "one against one": (OneVsOneClassifier(BOOSTING), 3),
    "forests against one": (OneVsOneClassifier(FOREST), 4),
    "trees against one": (OneVsOneClassifier(TREE), 3),
    "one against one of two": (OneVsOneClassifier(FOREST), 2),
    "halved margins against one": (
        OneVsOneClassifier(GradientBoostingClassifier(n_estimators=4, loss="exponential", random_state=0)),
        3,
    ),
    "two classes": (OneVsRestClassifier(FOREST), 2),
    "stack": (StackingClassifier([("a", FOREST), ("b", BOOSTING)], cv=2), 2),
    "stack of three": (StackingClassifier([("a", FOREST), ("b", TREE)], cv=2), 3),
    "stack under a tree": (StackingClassifier([("a", FOREST), ("b", SCALED)], TREE, cv=2), 2),
    "stack under a forest, of three": (StackingClassifier([("a", FOREST), ("b", TREE)], FOREST, cv=2), 3),
    "stack under boosting with the table": (
        StackingClassifier([("a", FOREST), ("b", BOOSTING)], BOOSTING, cv=2, passthrough=True),
        2,
    ),
    "stack beside the table": (StackingClassifier([("a", FOREST), ("b", BOOSTING)], cv=2, passthrough=True), 2),
    "stack of three beside the table": (StackingClassifier([("a", FOREST), ("b", TREE)], cv=2, passthrough=True), 3),
    "stack of four under a ridge beside the table": (
        StackingClassifier([("a", FOREST)], RidgeClassifier(), cv=2, passthrough=True),
        4,
    ),
    "stack of values beside the table": (StackingRegressor([("a", VALUES)], cv=2, passthrough=True), 0),
    "stack of values under a forest": (StackingRegressor([("a", VALUES)], VALUES, cv=2, passthrough=True), 0),
    "soft stacks": (
        VotingClassifier([("a", StackingClassifier([("a", FOREST)], cv=2)), ("b", STACK), ("c", TREE)], voting="soft"),
        2,
    ),
    "hard stacks": (VotingClassifier([("a", STACK), ("b", STACK), ("c", TREE)]), 2),
    "stacks against the rest": (OneVsRestClassifier(STACK), 3),
    "stacks against one": (OneVsOneClassifier(STACK), 3),
    "a stack of stacks": (StackingClassifier([("a", STACK), ("b", TREE)], cv=2), 2),
    "a stack of ridges": (
        StackingClassifier([("a", StackingClassifier([("a", FOREST)], RidgeClassifier(), cv=2)), ("b", TREE)], cv=2),
        3,
    ),
    "calibrated stacks": (CalibratedClassifierCV(STACK, cv=2), 2),
    "a stack of stacks of values": (
        StackingRegressor(
            [("a", StackingRegressor([("a", VALUES)], Ridge(), cv=2, passthrough=True))], cv=2, passthrough=True
        ),
        0,
    ),
    "values": (VotingRegressor([("a", VALUES), ("b", BOOSTED)]), 0),
    "counts": (VotingRegressor([("a", VALUES), ("b", COUNTS)], weights=[1, 2]), 0),
    "stack of values": (StackingRegressor([("a", VALUES), ("b", BOOSTED)], cv=2), 0),
}


def table(n_classes: int, n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(n, 3)).round(1), columns=["a", "b", "c"])
    score = (x["a"] + x["b"] * x["c"] + rng.normal(size=n) / 3).to_numpy()
    if not n_classes:
        return x, np.exp(score)
    return x, np.array(["u", "v", "w", "z"])[(score.argsort().argsort() * n_classes) // n]


@pytest.mark.parametrize("name", READ)
def test_the_read_model_decides_and_shows_as_the_library_does(name: str) -> None:
    model, n_classes = READ[name]
    x, y = table(n_classes)
    model = clone(model).fit(x, y)
    user = as_user_model(model)
    columns = user.encode(x)
    check_conformance(user.trees, columns)
    shown = user.trees.ensemble.decide(user.trees.ensemble.scores(columns))
    if n_classes:
        np.testing.assert_array_equal(np.array(user.classes)[shown], model.predict(x))
        np.testing.assert_array_equal(user.decide(x), shown)
    else:
        np.testing.assert_allclose(shown, model.predict(x), rtol=1e-12)


@pytest.mark.parametrize("final", [None, LogisticRegression(C=0.3), RidgeClassifier()])
def test_a_stack_shows_the_probabilities_of_its_final_model(final: Any) -> None:
    x, y = table(2)
    model = StackingClassifier([("a", FOREST), ("b", SCALED)], cv=2, final_estimator=final).fit(x, y)
    user = as_user_model(model)
    ensemble = user.trees.ensemble
    if isinstance(final, RidgeClassifier):
        assert ensemble.decision.link == "identity"
        return
    shown = show(ensemble, ensemble.scores(user.encode(x)))
    np.testing.assert_allclose(shown, model.predict_proba(x), atol=1e-12)
    bound = float(np.sort(shown[:, 1])[-5])
    low = int(shown[:, 1].argmin())
    found = Explainer(model, data=x).explain(x.iloc[[low]], target=user.classes[1], probability=bound)[0]
    assert found.status == "optimal"
    assert model.predict_proba(found.counterfactual)[0, 1] >= bound


def test_a_stack_of_several_classes_reaches_a_probability_as_cheaply_as_any_point() -> None:
    x, y = table(3)
    members = [("a", RandomForestClassifier(3, max_depth=2, random_state=0)), ("b", TREE)]
    model = StackingClassifier(members, LogisticRegression(C=10), cv=2).fit(x, y)
    trees = [t.tree_ for t in (*model.estimators_[0].estimators_, model.estimators_[1])]
    scale, explainer = (x.max() - x.min()).to_numpy(), Explainer(model, x)
    reached = 0
    for k, wanted, share in ((0, "w", 0.6), (0, "v", 0.25), (7, "u", 0.5), (7, "w", 0.99)):
        row = x.iloc[k].to_numpy()
        cuts = [np.concatenate([t.threshold[t.feature == j] for t in trees]).astype(np.float32) for j in range(3)]
        ends = [np.r_[row[j], own, *(np.nextafter(own, np.float32(e)) for e in (-9, 9))] for j, own in enumerate(cuts)]
        points = pd.DataFrame(np.stack(np.meshgrid(*ends), -1).reshape(-1, 3), columns=x.columns)
        good = points[model.predict_proba(points)[:, "uvw".index(wanted)] >= share].to_numpy()
        found = explainer.explain(x.iloc[[k]], wanted, probability=share, progress=False)[0]
        if len(good):
            reached += 1
            assert (found.status, found.verified) == ("optimal", True)
            assert found.cost == pytest.approx((np.abs(good - row) / scale).sum(axis=1).min(), abs=1e-6)
        else:
            assert found.status == "infeasible"
    assert 0 < reached < 4


@pytest.mark.parametrize(
    ("model", "n_classes", "remedy"),
    [
        (StackingClassifier([("a", FOREST)], RidgeClassifier(), cv=2), 3, r"LogisticRegression\(\)"),
        (OneVsRestClassifier(FOREST), 3, "trees as final_estimator"),
        (StackingClassifier([("a", FOREST)], RidgeClassifier(), cv=2), 2, r"LogisticRegression\(\)"),
        (VotingClassifier([("a", FOREST), ("b", BOOSTING)]), 2, "voting='soft'"),
    ],
)
def test_where_no_probability_is_read_the_remedy_is_one_of_the_whole(model: Any, n_classes: int, remedy: str) -> None:
    x, y = table(n_classes)
    explainer = Explainer(clone(model).fit(x, y), data=x)
    with pytest.raises(ProblemError, match=f"leave the probability out.*{remedy}"):
        explainer.explain(x.iloc[[0]], target="v", probability=0.6)


@pytest.mark.parametrize(
    ("model", "n_classes", "message"),
    [
        (VotingClassifier([("a", BOOSTING), ("b", TREE)], voting="soft"), 3, "a softmax of several scores"),
        (VotingClassifier([("a", FOREST)]), 3, "use voting='soft'"),
        (VotingClassifier([("a", FOREST), ("b", LogisticRegression())]), 2, "LogisticRegression is no sum of trees"),
        (OneVsOneClassifier(XGBClassifier(n_estimators=2)), 3, "a curve of its margin"),
        (
            VotingClassifier(
                [(name, StackingClassifier([("a", FOREST)], cv=2, passthrough=True)) for name in "ab"], voting="soft"
            ),
            2,
            "passthrough=False",
        ),
        (StackingClassifier([("a", FOREST)], GaussianNB(), cv=2), 2, "final_estimator=LogisticRegression"),
        (StackingClassifier([("a", FOREST), ("b", BOOSTING)], TREE, cv=2), 3, "a softmax of several scores"),
        (StackingClassifier([("a", FOREST)], BaggingClassifier(SCALED, 2), cv=2), 2, "neither adds up"),
        (StackingRegressor([("a", VALUES)], final_estimator=PoissonRegressor(), cv=2), 0, "neither adds up"),
    ],
)
def test_what_is_no_sum_of_curves_is_refused_with_the_reason(model: Any, n_classes: int, message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        read_model(clone(model).fit(*table(n_classes)))


def test_a_final_model_sees_the_table_before_the_steps_of_members() -> None:
    model = StackingClassifier([("a", FOREST), ("b", SCALED)], TREE, cv=2, passthrough=True)
    x, y = table(2)
    with pytest.raises(UnsupportedModelError, match=r"make_pipeline\(steps, StackingClassifier"):
        as_user_model(clone(model).fit(x, y))
    plain = model.set_params(estimators=[("a", FOREST), ("b", BOOSTING)])
    user = as_user_model(make_pipeline(StandardScaler(), plain).fit(x, y))
    shown = user.trees.ensemble.scores(user.encode(x))
    np.testing.assert_array_equal(user.trees.ensemble.decide(shown), user.decide(x))


@pytest.mark.parametrize("passthrough", [False, True])
def test_a_stack_under_trees_is_the_same_from_a_file(passthrough: bool) -> None:
    x, y = table(2)
    model = StackingClassifier([("a", FOREST), ("b", BOOSTING)], BOOSTING, cv=2, passthrough=passthrough).fit(x, y)
    ensemble = read_model(model).ensemble
    again = Ensemble.from_dict(json.loads(json.dumps(ensemble.to_dict())))
    scores = ensemble.scores(x.to_numpy())
    np.testing.assert_array_equal(again.decide(again.scores(x.to_numpy())), ensemble.decide(scores))
    np.testing.assert_allclose(show(again, scores), model.predict_proba(x), atol=1e-12)
    broken = ensemble.to_dict()
    broken["decision"]["final"]["inputs"][0]["output"] = 99
    with pytest.raises(ModelError, match="a score that does not exist"):
        Ensemble.from_dict(broken)


def test_several_labels_and_unfitted_models_are_refused() -> None:
    x, y = table(2)
    labels = np.column_stack([y == "u", x["a"] > 0]).astype(int)
    with pytest.raises(UnsupportedModelError, match="several labels at once"):
        read_model(OneVsRestClassifier(FOREST).fit(x, labels))
    for model, _ in READ.values():
        with pytest.raises(ModelError, match="not fitted"):
            read_model(clone(model))

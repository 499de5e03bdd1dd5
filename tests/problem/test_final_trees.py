"""Boxes of scores under final trees hold every choice of leaves with the target, and cuts refuse those without."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
)
from sklearn.ensemble import StackingRegressor as Values
from sklearn.tree import DecisionTreeClassifier

from ocf.problem.requirements import Requirements
from ocf.problem.targets import ClassSetTarget, ClassTarget, IntervalTarget, ProbabilityTarget, Target
from ocf.readers import read_model
from ocf.trees.ensemble import Ensemble
from ocf.trees.links import show

FOREST = RandomForestClassifier(3, max_depth=3, random_state=0)
BOOSTING = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0)


def data(classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    y = x[:, 0] + x[:, 1] * x[:, 2]
    return x, np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)) if classes else y


def stack(final: object, classes: int = 2) -> tuple[Ensemble, np.ndarray]:
    """A stack with the table passed through, and choices of leaves that its trees can make."""
    x, y = data(classes)
    members = [("a", FOREST), ("b", DecisionTreeClassifier(max_depth=3, random_state=0) if classes > 2 else BOOSTING)]
    model = StackingClassifier(members, final, cv=2, passthrough=True).fit(x, y)
    ensemble = read_model(model).ensemble
    return ensemble, ensemble.apply(np.random.default_rng(1).normal(size=(300, 3)))


def meets(rows: Requirements, leaves: np.ndarray) -> bool:
    return bool((rows.gain[leaves].sum(axis=0) >= rows.need).all())


CASES = [
    (ClassTarget(1), DecisionTreeClassifier(max_depth=3, random_state=0), 2),
    (ClassTarget(0), FOREST, 2),
    (ClassSetTarget((0, 2)), FOREST, 3),
    (ProbabilityTarget((1,), 0.6), BOOSTING, 2),
    (ProbabilityTarget((2,), 0.5), BOOSTING, 3),
]


@pytest.mark.parametrize(("target", "final", "classes"), CASES)
def test_branching_ends_at_the_choices_with_the_target(target: Target, final: object, classes: int) -> None:
    ensemble, choices = stack(final, classes)
    scores = ensemble.base_score + ensemble.contributions[choices].sum(axis=1)
    wanted = target.met_by(ensemble.decide(scores), show(ensemble, scores))
    waiting = list(target.alternatives(ensemble))
    for leaves, has in zip(choices, wanted, strict=True):
        holding = [rows for rows in waiting if meets(rows, leaves)]
        assert holding or not has
        while not has and holding:
            rows = holding.pop()
            parts = rows.tightened(leaves)
            assert parts, "a choice without the target was not cut off"
            waiting = [own for own in waiting if own is not rows] + list(parts)
            holding += [own for own in parts if meets(own, leaves)]
    for leaves in choices[wanted]:
        assert any(meets(rows, leaves) and not rows.tightened(leaves) for rows in waiting)
    assert set(wanted.tolist()) == {False, True}


def test_what_is_clear_by_the_error_bounds_has_the_target() -> None:
    clear = 0
    for target, final, classes in CASES:
        ensemble, choices = stack(final, classes)
        scores = ensemble.base_score + ensemble.contributions[choices].sum(axis=1)
        wanted = target.met_by(ensemble.decide(scores), show(ensemble, scores))
        for rows in target.alternatives(ensemble):
            beyond = (rows.gain[choices].sum(axis=1) >= rows.need + rows.error_bound).all(axis=1)
            assert wanted[beyond].all()
            clear += int(beyond.sum())
    assert clear > 100


def test_values_between_bounds() -> None:
    x, y = data(0)
    final = RandomForestRegressor(3, max_depth=3, random_state=0)
    ensemble = read_model(Values([("a", RandomForestRegressor(3, max_depth=3))], final, cv=2).fit(x, y)).ensemble
    choices = ensemble.apply(x)
    values = ensemble.decide(ensemble.scores(x))
    target = IntervalTarget(*np.quantile(values, [0.4, 0.6]).tolist())
    for leaves, value in zip(choices, values, strict=True):
        open_to = [rows for rows in target.alternatives(ensemble) if meets(rows, leaves)]
        assert open_to or not target.lower <= value <= target.upper
    assert target.alternatives(ensemble)
    (never,) = IntervalTarget(float(values.max() + 1), np.inf).alternatives(ensemble)
    assert not any(meets(never, leaves) for leaves in choices)

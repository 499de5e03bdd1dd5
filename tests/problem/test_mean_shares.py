"""A mean of shares over several folds: branching ends at the choices that have the target, and sure parts have it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier

from ocf.problem.mean_shares import MeanOfShares
from ocf.problem.targets import ClassTarget, ProbabilityTarget, Target
from ocf.readers import read_model
from ocf.trees.links import show


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("target", [ClassTarget(0), ClassTarget(2), ProbabilityTarget((1,), 0.4)])
def test_branching_ends_at_the_choices_with_the_target(target: Target, method: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    y = np.digitize(x[:, 0] + x[:, 1] * x[:, 2], [-0.5, 0.5])
    forest = RandomForestClassifier(4, max_depth=3, random_state=0)
    ensemble = read_model(CalibratedClassifierCV(forest, method=method, cv=2).fit(x, y)).ensemble
    choices = ensemble.apply(rng.normal(size=(60, 3)))
    scores = ensemble.base_score + ensemble.contributions[choices].sum(axis=1)
    wanted = target.met_by(ensemble.decide(scores), show(ensemble, scores))
    waiting = list(target.alternatives(ensemble))
    for leaves, has in zip(choices, wanted, strict=True):
        holding = [rows for rows in waiting if (rows.gain[leaves].sum(axis=0) >= rows.need).all()]
        assert holding or not has
        while not has and holding:
            rows = holding.pop()
            parts = rows.tightened(leaves)
            assert parts, "a choice without the target was not cut off"
            waiting = [own for own in waiting if own is not rows] + list(parts)
            holding += [own for own in parts if (own.gain[leaves].sum(axis=0) >= own.need).all()]
    for leaves in choices[wanted]:
        open_to = [rows for rows in waiting if (rows.gain[leaves].sum(axis=0) >= rows.need).all()]
        assert any(not rows.tightened(leaves) for rows in open_to)
    assert set(wanted.tolist()) == {False, True}


def test_a_sure_part_has_the_target_at_all_its_corners() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(90, 3))
    y = np.digitize(x[:, 0], [-0.5, 0.5])
    forest = RandomForestClassifier(4, max_depth=3, random_state=0)
    ensemble = read_model(CalibratedClassifierCV(forest, cv=2).fit(x, y)).ensemble
    (rows,) = ProbabilityTarget((0,), 0.3).alternatives(ensemble)
    assert isinstance(rows.curve, MeanOfShares)
    low, high = rows.curve.sure_part()
    assert (low <= high).all()
    corners = np.where(rng.random((200, len(low))) < 0.5, low, high)
    shown = np.zeros((200, ensemble.n_outputs))
    shown[:, [term.output for term in rows.curve.terms]] = corners
    assert (show(ensemble, shown)[:, 0] >= 0.3).all()

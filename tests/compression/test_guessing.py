"""Thresholds that a boosted model guesses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from ocf import Explainer, GuessingThresholds
from ocf.errors import ProblemError

from .small import small


def test_guessing_thins_out_and_keeps_the_training_accuracy(cancer):
    X, y = cancer
    guessed = GuessingThresholds(small()).fit(X, y)
    everything = Explainer(guessed.estimator_, data=X).prepared.ensemble
    splits = set(zip(everything.feature.tolist(), everything.threshold.tolist(), strict=True))
    assert {(t.feature, t.value) for t in guessed.kept_} <= splits
    bits = guessed.transform(X)
    before = float(np.mean(guessed.estimator_.predict(X) == y))
    assert np.mean(clone(small()).fit(bits, y).predict(bits) == y) >= before
    loose = GuessingThresholds(small(), tolerance=0.2).fit(X, y)
    assert len(loose.kept_) <= len(guessed.kept_)
    with pytest.raises(ProblemError, match="tolerance"):
        GuessingThresholds(small(), tolerance=2).fit(X, y)

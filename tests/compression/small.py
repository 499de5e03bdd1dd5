"""A small model."""

from __future__ import annotations

from sklearn.ensemble import GradientBoostingClassifier


def small(**settings):
    return GradientBoostingClassifier(n_estimators=5, max_depth=1, random_state=0, **settings)

"""The first rows of breast_cancer, a small model of them, and its thresholds."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier

from ocf import CounterfactualDiscretizer


@pytest.fixture(scope="session")
def data():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:60], y.iloc[:60]


@pytest.fixture(scope="session")
def model(data):
    return GradientBoostingClassifier(n_estimators=6, max_depth=1, random_state=0).fit(*data)


@pytest.fixture(scope="session")
def fitted(data, model):
    return CounterfactualDiscretizer(model, prefit=True).fit(*data)


@pytest.fixture(scope="session")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:80], y.iloc[:80]

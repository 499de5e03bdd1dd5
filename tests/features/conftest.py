"""The features of a table with a column of each kind."""

from __future__ import annotations

import pytest

from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace

from .tables import SETTINGS, TABLE


@pytest.fixture
def space() -> FeatureSpace:
    return infer_space(TABLE, SETTINGS)

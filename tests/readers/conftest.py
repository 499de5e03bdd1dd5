"""Rows, and good skops files."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def archives() -> dict[str, dict[str, bytes]]:
    """Members of the archives of good models."""
    from .skops_files import MODELS, members, skops_io

    return {name: members(skops_io.dumps(model.fit(rows, wanted))) for name, (model, rows, wanted) in MODELS.items()}


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    rows[:, 3] = np.round(rows[:, 3])
    return rows

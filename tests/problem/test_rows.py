"""Linear rows in exact arithmetic."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ocf import Explainer
from ocf.features.inference import infer_space
from ocf.problem.constraints import Linear


def test_decimals_are_taken_as_they_read(explainer: Explainer, row: pd.DataFrame) -> None:
    space = infer_space(pd.DataFrame({"x": [0.1, 0.2], "y": [0.1, 0.2], "z": [0.3, 0.4]}))
    constraint = Linear({"x": 1, "y": 1, "z": -1}, "=", 0)
    rows = tuple(constraint.rows(space, np.array([0.1, 0.2, 0.3])))
    assert all(r.holds(space, np.array([0.1, 0.2, 0.3])) for r in rows)  # as float64 they sum to more
    assert not all(r.holds(space, np.array([0.1, 0.2, 0.3000001])) for r in rows)

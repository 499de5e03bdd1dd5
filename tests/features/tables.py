"""A table with a column of each kind, and what is said of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

TABLE = pd.DataFrame(
    {
        "age": [20.5, 31.0, 45.25],
        "rooms": np.array([1, 2, 3], np.int8),
        "owner": [True, False, True],
        "size": pd.Categorical(["low", "high", "middle"], categories=["low", "middle", "high"], ordered=True),
        "colour": ["red", "green", "red"],
        "job_smith": np.array([0, 1, 0], np.uint8),
        "job_clerk": np.array([0, 0, 1], np.uint8),
        "narrow": np.array([0.1, 0.2, 0.3], np.float32),
    }
)
SETTINGS = {
    "size": {"kind": "ordinal"},
    "job": {"kind": "categorical", "base": "none", "columns": {"smith": "job_smith", "clerk": "job_clerk"}},
}

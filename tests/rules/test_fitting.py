"""What a regional forest is fitted to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small_rules import few_cells

from ocf.errors import DataError
from ocf.features.inference import infer_space
from ocf.rules.fitting import fit_forest


def test_missing_values_are_refused_by_name() -> None:
    table = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [1.0, 2.0, 3.0]})
    space = infer_space(table)
    with pytest.raises(DataError, match="'a' has missing values"):
        fit_forest(space, space.from_frame(table), np.array([0, 1, 0]), regression=False)


def test_answers_must_fit_the_rows() -> None:
    space, coded = few_cells(np.random.default_rng(0))
    with pytest.raises(DataError, match="3 answers for 40 rows"):
        fit_forest(space, coded, np.array([0, 1, 0]), regression=False)

"""What a regional forest is fitted to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small_rules import few_cells

from ocf import CounterfactualRules
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


def test_rules_count_no_rows_that_are_not_permitted() -> None:
    """A cell of the forest across the end of a permitted range gave a rule with the rows beyond it."""
    table = pd.DataFrame({"a": np.repeat([-6, 0], 20), "b": np.tile([0, 1], 20)})
    answers = (table["a"] < -2).astype(int)
    wishes = {"a": {"permitted_range": (-5, 0)}}
    found = CounterfactualRules(None, table, answers, features=wishes, n_estimators=5).local(table.iloc[[-1]], 1)
    assert not found.rules

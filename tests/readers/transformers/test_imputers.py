"""Missing values that are filled from other columns: read where nothing moves those, refused elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.table_check import check_table
from oracle.tables import TableInstance
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

RNG = np.random.default_rng(5)
TABLE = pd.DataFrame(RNG.normal(0, 3, (90, 3)).round(2), columns=["a", "b", "c"])
LABELS = (TABLE.a + TABLE.b.abs() > TABLE.c).to_numpy(int)
GAPPY = TABLE.mask(RNG.random(TABLE.shape) < 0.15)


def said(step: Any, row: pd.DataFrame) -> str:
    """What comes of the other class asked of a row, held against brute force."""
    model = make_pipeline(step, RandomForestClassifier(3, max_depth=3, random_state=0)).fit(GAPPY, LABELS)
    question = {"target": int(1 - model.predict(row)[0]), "norm": "l1"}
    return check_table(TableInstance("imputed", 0, model, True, GAPPY, row, row, {}, question))


def missing(*names: str) -> pd.DataFrame:
    return pd.DataFrame([[np.nan if name in names else 1.0 for name in "abc"]], columns=["a", "b", "c"])


@pytest.mark.parametrize("imputer", [KNNImputer(), IterativeImputer(random_state=0)])
def test_a_column_by_itself_is_filled_by_a_constant(imputer: Any) -> None:
    step = ColumnTransformer([(name, imputer, [name]) for name in "abc"])
    assert said(step, missing("b")) == "optimal"
    assert said(step, missing("a", "c")) == "infeasible"  # b alone changes nothing


def test_a_hole_at_a_number_is_filled_by_a_constant() -> None:
    step = ColumnTransformer([(name, KNNImputer(missing_values=1.0), [name]) for name in "abc"])
    table = GAPPY.fillna(1.0)
    model = make_pipeline(step, RandomForestClassifier(3, max_depth=3, random_state=0)).fit(table, LABELS)
    row = missing()
    question = {"target": int(1 - model.predict(row)[0]), "norm": "l1"}
    assert check_table(TableInstance("imputed", 1, model, True, table, row, row, {}, question)) == "optimal"


def test_neighbours_by_columns_that_nothing_moves_are_fixed() -> None:
    step = ColumnTransformer([("near", KNNImputer(), ["a", "b"]), ("c", KNNImputer(), ["c"])])
    assert said(step, missing("a", "b")) == "optimal"
    assert said(step, missing("a")).startswith("refused: model column")


def test_regressions_on_columns_that_are_all_missing_are_refused() -> None:
    """What they fill depends on whether another row of the same table is complete."""
    step = ColumnTransformer([("fit", IterativeImputer(random_state=0), ["a", "b"]), ("c", KNNImputer(), ["c"])])
    assert said(step, missing("a", "b")).startswith("refused: model column")


@pytest.mark.parametrize("missing_values", [np.nan, None])
def test_none_may_be_the_most_frequent_value(missing_values: Any) -> None:
    rng = np.random.default_rng(0)
    words = pd.Series(rng.choice(["a", "b", "c", None], 90, p=[0.2, 0.15, 0.15, 0.5]), dtype=object)
    table = pd.DataFrame({"w": words, "n": pd.Series(rng.integers(0, 9, 90), dtype=object)})
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    step = make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=missing_values), encoder)
    model = make_pipeline(*(s for _, s in step.steps), RandomForestClassifier(3, max_depth=3, random_state=0))
    model.fit(table, ((words == "a") | (table.n > 6)).astype(int))
    assert (model[0].statistics_[0] is None) == (missing_values is not None)
    for place in range(4):
        row = table.iloc[[place]].reset_index(drop=True)
        question = {"target": int(1 - model.predict(row)[0]), "norm": "l1"}
        assert check_table(TableInstance("imputed", place, model, True, table, row, row, {}, question)) == "optimal"

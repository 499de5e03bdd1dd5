"""What cannot be told of an encoding per feature is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.impute import KNNImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, PolynomialFeatures

from ocf.errors import DataError, UnsupportedModelError
from ocf.models.lift import lift

from .lifting import LABELS, TABLE, N, forest, lifted, with_holes


def test_missing_values_that_are_filled_from_several_features_are_refused() -> None:
    table = with_holes()
    ensemble, _, encoding, _ = lifted(make_pipeline(KNNImputer(), forest()).fit(table, LABELS), table)
    with pytest.raises(UnsupportedModelError, match=r"'knnimputer' fills missing values from the other columns"):
        lift(ensemble, encoding, frozenset({0}))


def test_missing_values_that_the_preprocessing_refuses() -> None:
    refusing = FunctionTransformer(validate=True)
    ensemble, _, encoding, _ = lifted(make_pipeline(refusing, forest()).fit(TABLE, LABELS), TABLE)
    with pytest.raises(DataError, match=r"features 'income', 'age' are missing .* the preprocessing refuses"):
        lift(ensemble, encoding, frozenset({0, 2}))


def test_missing_values_without_a_rule_are_refused() -> None:
    ensemble, _, encoding, _ = lifted(GradientBoostingClassifier(n_estimators=3).fit(TABLE, LABELS), TABLE)
    with pytest.raises(DataError, match=r"'income' is missing .* no rule for it: fill in a value"):
        lift(ensemble, encoding, frozenset({0}))


@pytest.mark.parametrize(
    ("mixing", "what"),
    [
        (PolynomialFeatures(2, interaction_only=True), "'polynomialfeatures' multiplies several columns"),
        (Normalizer(), "'normalizer' divides each row by its own length"),
    ],
)
def test_columns_of_several_features_are_refused(mixing: Any, what: str) -> None:
    pipe = make_pipeline(mixing, forest()).fit(TABLE, LABELS)
    with pytest.raises(UnsupportedModelError, match=f"{what}.* several features at once: give ocf the table after"):
        lifted(pipe, TABLE)


@pytest.mark.parametrize("bent", [FunctionTransformer(lambda x: (x - 0.1) ** 2), FunctionTransformer(np.sin)])
def test_functions_that_are_not_read_are_refused(bent: Any) -> None:
    pipe = make_pipeline(bent, forest()).fit(TABLE[["debt"]], LABELS)
    with pytest.raises(UnsupportedModelError, match=r"'functiontransformer' is not read: .* say so by monotone="):
        lifted(pipe, TABLE[["debt"]])


def test_categories_described_as_numbers_are_refused() -> None:
    table = pd.DataFrame({"code": np.random.default_rng(3).integers(0, 6, N), "debt": TABLE.debt})
    model = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=3, categorical_features=["code"])
    model.fit(table, (table.code % 2 == 0) ^ (table.debt > 1))
    with pytest.raises(DataError, match="describe it as kind 'categorical'"):
        lifted(model, table)


def test_wrong_width() -> None:
    *_, encoding, _ = lifted(forest().fit(TABLE, LABELS), TABLE)
    with pytest.raises(DataError, match="encodes to 3 model columns, but the model was fitted on 2"):
        encoding.check_width(("a", "b"))

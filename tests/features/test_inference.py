"""What is inferred of features from a table, and what settings change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import DataError
from ocf.features.inference import as_table, infer_space
from ocf.features.space import FeatureSpace

from .tables import SETTINGS, TABLE


def test_kinds_are_inferred(space: FeatureSpace) -> None:
    kinds = {f.name: f.kind for f in space.features}
    assert kinds == {
        "age": "numeric", "rooms": "integer", "owner": "binary", "size": "ordinal", "colour": "categorical",
        "job": "categorical", "narrow": "numeric",
    }  # fmt: skip
    age, job, size = (space.features[space.index(n)] for n in ("age", "job", "size"))
    assert (age.lower, age.upper, age.scale) == (20.5, 45.25, 24.75)
    assert job.levels == ("none", "smith", "clerk")
    assert size.levels == ("low", "middle", "high")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 1, 1], "binary"),
        ([0.0, 1.0, np.nan], "binary"),
        ([True, False], "binary"),
        ([0, 2], "integer"),
        ([1, 1], "integer"),
        ([0.0, 2.0], "numeric"),
        (["a", "b"], "categorical"),
        ([1, "b"], "categorical"),
        (pd.Categorical([3, 5]), "categorical"),
        (pd.array([1, 2, None], dtype="Int64"), "integer"),
    ],
)
def test_kind_of_a_column(values: Any, kind: str) -> None:
    assert infer_space(pd.DataFrame({"x": values})).features[0].kind == kind


def test_settings_override_what_is_inferred() -> None:
    table = pd.DataFrame({"x": [0.0, 4.0], "n": [1, 9]})
    space = infer_space(
        table,
        {
            "x": {"bounds": (0, 10), "step": 0.5, "weight": 2, "actionability": "increasing"},
            "n": {"kind": "ordinal", "weight": (1, 3), "scale": 2.0, "permitted_range": [9]},
        },
    )
    x, n = space.features
    assert (x.lower, x.upper, x.scale, x.step, x.weight_down, x.action) == (0, 10, 4, 0.5, 2, "increasing")
    assert (n.levels, n.weight_down, n.weight_up, n.scale, n.permitted) == ((1, 9), 1, 3, 2, (9,))


def test_constant_features_are_measured_in_their_own_units() -> None:
    table = pd.DataFrame({"x": [3.5, 3.5]})
    assert infer_space(table).features[0].scale == 1.0
    assert infer_space(table, {"x": {"bounds": (0, 10)}}).features[0].scale == 10.0


def test_a_column_without_values_is_as_it_is_said() -> None:
    table = pd.DataFrame({"x": [np.nan, np.nan], "w": pd.Series([None, None], dtype=object)})
    x, w = infer_space(table, {"x": {"bounds": (0, 9)}, "w": {"levels": ["a", "b"]}}).features
    assert (x.kind, x.lower, x.upper, x.scale) == ("numeric", 0, 9, 9)
    assert (w.kind, w.levels) == ("categorical", ("a", "b"))


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        (TABLE.iloc[:0], {}, "empty"),
        (TABLE, {"agee": {}}, "did you mean 'age'"),
        (TABLE, {"age": {"bound": (0, 1)}}, "did you mean 'bounds'"),
        (TABLE, {"job": {"columns": ["job_smith", "job_clrk"]}}, "did you mean 'job_clerk'"),
        (TABLE, {"colour": {"kind": "numeric"}}, "'colour' should hold numbers"),
        (TABLE.assign(age=np.nan), {}, "'age' holds no value"),
        (TABLE.assign(age=np.inf), {}, "infinite"),
        (TABLE, {"age": {"bounds": (3, 1)}}, "hold no value: the lowest comes first"),
        (TABLE, {"age": {"levels": [1, 2]}}, "does not fit kind 'numeric'"),
        (TABLE, {"colour": {"step": 0.1}}, "does not fit kind 'categorical'"),
        (TABLE, {"age": {"base": "x"}}, "'base' belongs to"),
        (TABLE, {"job": {**SETTINGS["job"], "levels": [1]}}, "does not fit indicator columns"),
        (TABLE, {"age": "fixed"}, "settings of feature 'age' are a mapping, such as in .*'actionability': 'fixed'"),
        (TABLE, ["age"], "features is a mapping of names to settings"),
    ],
)
def test_tables_and_settings_that_do_not_fit(table: pd.DataFrame, settings: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        infer_space(table, settings)


def test_data_must_be_a_table() -> None:
    with pytest.raises(DataError, match="must be a table"):
        as_table(np.zeros(3))
    assert list(as_table(np.zeros((1, 2)), ("a", "b")).columns) == ["a", "b"]
    levels = pd.DataFrame(np.zeros((1, 2)), columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    with pytest.raises(DataError, match=r"names of 2 levels, such as \('a', 'x'\): give each one name"):
        as_table(levels)

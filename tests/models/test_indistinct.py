"""Whole numbers that a model takes for one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.errors import DataError

BASE = 2**26


def table(values: Any, dtype: Any = "int64") -> pd.DataFrame:
    return pd.DataFrame({"id": pd.Series(values, dtype=dtype), "n": np.arange(len(values)) % 5})


def tree(data: pd.DataFrame, *, of: Any = "id") -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=1, random_state=0).fit(data, data[of] > data[of].median())


@pytest.mark.parametrize("dtype", ["int64", "Int64", object, "uint32"])
def test_neighbours_in_float32_are_refused(dtype: Any) -> None:
    data = table([BASE + k for k in range(40)], dtype)
    with pytest.raises(DataError, match=r"takes \d+ and \d+ of column 'id' for the same number.*float32.*drop the col"):
        Explainer(tree(data), data)
    step = {"id": {"kind": "numeric", "step": 8}}
    (e,) = Explainer(tree(data), data, step).explain(data.iloc[[0]])
    assert (e.status, e.verified) == ("optimal", True)
    assert e.counterfactual["id"].iloc[0] % 8 == 0


def test_what_is_told_apart_is_not_refused() -> None:
    far = table([BASE + 8 * k for k in range(40)])
    near = table([BASE + k for k in range(40)])
    small = table([2**24 - k for k in range(40)])
    double = LGBMClassifier(n_estimators=2, min_child_samples=2, n_jobs=1, verbose=-1).fit(near, near["id"] > BASE + 20)
    scaled = make_pipeline(StandardScaler(), tree(near)).fit(near, near["id"] > BASE + 20)
    for model, data in (
        (tree(far), far),
        (tree(small), small),
        (double, near),
        (scaled, near),
        (tree(near, of="n"), near),
    ):
        (e,) = Explainer(model, data).explain(data.iloc[[0]])
        assert (e.status, e.verified) == ("optimal", True)
        assert model.predict(e.counterfactual)[0] == e.target


def test_beyond_float64() -> None:
    words = r"column 'id' holds \d+, and beyond 2\*\*53 .*drop the column if it is an identifier"
    far = table([2**53 + 2**31 * (k - 38) for k in range(40)])
    with pytest.raises(DataError, match=words):
        Explainer(tree(far), far)
    rng = np.random.default_rng(0)
    all_far = pd.DataFrame({"id": 2**60 + rng.integers(0, 2**30, 200), "n": rng.normal(size=200)})
    boosted = HistGradientBoostingClassifier(max_iter=3).fit(all_far, all_far["id"] > all_far["id"].median())
    with pytest.raises(DataError, match=words):
        Explainer(boosted, all_far)
    data = far.head(38)
    model = tree(data)
    explainer = Explainer(model, data)
    with pytest.raises(DataError, match=words):
        explainer.explain({"id": 2**53 + 2, "n": 1})
    (e,) = explainer.explain(data.iloc[[3]])
    assert (e.status, e.verified) == ("optimal", True)


def test_columns_that_are_named_by_numbers() -> None:
    data = table([BASE + 8 * k for k in range(40)]).rename(columns={"id": 0, "n": 1})
    (e,) = Explainer(tree(data, of=0), data).explain(data.iloc[[0]])
    assert (e.status, e.verified, e.counterfactual.columns.tolist()) == ("optimal", True, [0, 1])


def test_an_identifier_that_no_tree_splits_stays_as_it_is() -> None:
    data = table([2**60 + 2 * k + 1 for k in range(40)])
    (e,) = Explainer(tree(data, of="n"), data).explain(data.iloc[[0]])
    assert (e.status, e.verified) == ("optimal", True)
    assert e.counterfactual["id"].iloc[0] == 2**60 + 1

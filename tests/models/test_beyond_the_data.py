"""Across files: maps and thresholds beyond the data, next to what rounding does, and at the ends of a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from ocf.errors import DataError
from ocf.explain.explainer import Explainer
from ocf.features.inference import infer_space
from ocf.models.encoding import Encoding
from ocf.models.lift import lift, why_unproven
from ocf.readers import read_model
from ocf.readers.transformers.column import Column
from ocf.trees.ensemble import SplitKind

from .brute_forced import cheapest, numbers, scaled_forest


@pytest.mark.parametrize("scaler", [StandardScaler(), RobustScaler(), MinMaxScaler(), PowerTransformer()])
def test_a_row_far_outside_the_range_of_the_data(scaler: Any) -> None:
    table = numbers()[0][["a", "b"]]
    labels = ((table.a > 60) | (table.b > 9)).to_numpy(int)
    model = scaled_forest(table, labels, scaler)
    narrow = ((table.a - 50).abs() < 2) & ((table.b - 2).abs() < 0.5)  # all that matters lies beyond these
    explainer = Explainer(model, table.loc[narrow])
    row = pd.DataFrame({"a": [80.0], "b": [12.0]})
    found = explainer.explain(row)[0]
    best = cheapest(explainer, row, "opposite", [np.linspace(48, 80, 300), np.linspace(1.5, 12, 300)])
    assert best < np.inf
    assert found.status == "optimal", found.message
    assert found.verified, found.checks
    assert 0.9 * best < found.cost <= best * (1 + 1e-9)


def test_tight_bounds_behind_a_scaler() -> None:
    table, labels = numbers()
    explainer = Explainer(scaled_forest(table, labels), table, {"a": {"bounds": (49.9, 50.0)}, "b": {"bounds": (9, 9)}})
    for k in range(8):
        row = table.iloc[[k]]
        found = explainer.explain(row)[0]
        own = [np.linspace(min(lo, row.iloc[0, j]), max(hi, row.iloc[0, j]), 60) for j, (lo, hi) in enumerate(
            [(49.9, 50.0), (9, 9), (table.c.min(), table.c.max())]
        )]  # fmt: skip
        assert found.status == ("optimal" if found.cost is not None else "infeasible")
        best = cheapest(explainer, row, "opposite", own)
        assert np.inf if found.cost is None else found.cost <= best * (1 + 1e-9)


def test_a_map_that_is_not_defined_everywhere() -> None:
    table, labels = numbers()
    table = table[["b"]]
    model = make_pipeline(FunctionTransformer(np.log), HistGradientBoostingClassifier(max_iter=5)).fit(table, labels)
    row = pd.DataFrame({"b": [1e-300]})
    found = Explainer(model, table).explain(row, target=int(1 - model.predict(row)[0]))[0]
    assert found.status == "optimal"
    assert found.verified
    with pytest.raises(DataError, match=r"'b' reach to -1, and the preprocessing makes no numbers of values beyond"):
        Explainer(model, table, {"b": {"bounds": (-1, 10)}})


@pytest.mark.parametrize(("beyond", "proven"), [(2, True), (60, False)])
def test_rounding_that_goes_back_and_forth_next_to_a_threshold(beyond: int, proven: bool) -> None:
    """What lies near is followed number by number; where it does not settle, nothing is proven."""
    table, labels = numbers()
    table = table[["a"]]
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(table.to_numpy(), labels)
    ensemble = read_model(forest).ensemble
    space = infer_space(table)
    cut = float(ensemble.threshold[ensemble.kind == SplitKind.AXIS][0])
    hole = cut
    for _ in range(beyond):
        hole = np.nextafter(hole, np.inf)

    def encode(given: pd.DataFrame) -> np.ndarray:
        x = given.to_numpy(np.float64)
        return np.where(x == hole, cut, x)  # so many numbers beyond the threshold the map goes back

    base = space.from_frame(table)[0]
    wiggly = lift(ensemble, Encoding(space, encode, base, lambda *_: (Column(0, exact=False),)))
    assert wiggly.unsteady == (() if proven else ("a",))
    assert bool(why_unproven(wiggly)) != proven
    points = np.array([[cut], [hole], [np.nextafter(hole, np.inf)], [np.nextafter(cut, np.inf)]])[:: 1 if proven else 3]
    np.testing.assert_array_equal(wiggly.apply(points), ensemble.apply(encode(pd.DataFrame(points))))
    steady = lift(ensemble, Encoding(space, lambda t: t.to_numpy(np.float64), base, lambda *_: (Column(0),)))
    np.testing.assert_array_equal(steady.ensemble.threshold, ensemble.threshold)


def test_xgboost_takes_what_a_sparse_matrix_leaves_out_for_missing() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"c": rng.choice(list("abcdef"), 200)})
    labels = rng.permutation([0, 0, 0, 1, 1, 1])[table.c.map("abcdef".index)]
    model = make_pipeline(OneHotEncoder(), XGBClassifier(n_estimators=2, max_depth=3)).fit(table, labels)
    encoded = model[:-1].transform(table)
    assert (model[-1].predict(encoded) != model[-1].predict(encoded.toarray())).any()  # so it matters
    found = Explainer(model, table).explain(table[model.predict(table) == 0].iloc[[0]], target=1)[0]
    assert (found.status, found.cost) == ("optimal", 1.0)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64"])
def test_whole_numbers_whose_smallest_has_no_opposite(dtype: str) -> None:
    table = pd.DataFrame({"n": np.arange(8, dtype=dtype).repeat(10), "m": np.tile(np.arange(10, dtype=dtype), 8)})
    labels = ((table.n > 3) & (table.m > 4)).to_numpy(int)
    model = make_pipeline(FunctionTransformer(np.negative), DecisionTreeClassifier(random_state=0)).fit(table, labels)
    found = Explainer(model, table).explain(table.iloc[[0]], target=1)[0]
    assert (found.status, found.counterfactual.iloc[0].tolist()) == ("optimal", [4, 5])


def test_numbers_that_wrap_round_are_refused() -> None:
    table = pd.DataFrame({"m": np.arange(8, dtype="int16").repeat(10), "n": np.arange(8, dtype="uint8").repeat(10)})
    model = make_pipeline(FunctionTransformer(np.negative), DecisionTreeClassifier(random_state=0))
    with pytest.raises(DataError, match="feature 'n' reach to 0, where the preprocessing wraps round in uint8"):
        Explainer(model.fit(table, (table.n > 3).to_numpy(int)), table)


def test_whole_numbers_that_wrap_round_beside_some_that_do_not() -> None:
    """Bytes reach down to their smallest number, which is none the worse for it where nothing negates them."""
    table = pd.DataFrame({"n": np.arange(8, dtype="int8").repeat(10), "m": np.tile(np.arange(10, dtype="uint8"), 8)})
    labels = ((table.n > 3) & (table.m > 4)).to_numpy(int)
    negated = make_column_transformer((FunctionTransformer(np.negative), ["n"]), remainder="passthrough")
    model = make_pipeline(negated, DecisionTreeClassifier(random_state=0)).fit(table, labels)
    found = Explainer(model, table).explain(table.iloc[[0]], target=1)[0]
    assert (found.status, found.counterfactual.iloc[0].tolist()) == ("optimal", [4, 5])

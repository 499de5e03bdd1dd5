"""Reading a table: no false `optimal` and no false `infeasible`, by brute force through the user's own model."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier

from ocf.errors import DataError
from ocf.explain.explainer import Explainer
from ocf.explain.explanation import Explanation
from ocf.models.tables import read_table

from .brute_forced import WAYS, assert_true, cheapest, numbers, scaled_forest

N = 300
COLOURS = ["red", "green", "blue", "grey", "white"]


def coloured(n_colours: int = 5) -> tuple[pd.DataFrame, np.ndarray]:
    """A category in front of two whole numbers, which have gaps, and labels."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "colour": pd.Categorical(rng.choice(COLOURS[:n_colours], N), COLOURS[:n_colours]),
            "a": rng.integers(0, 6, N).astype(float),
            "b": rng.integers(0, 6, N).astype(float),
        }
    )
    labels = (table.colour.isin(["red", "blue"]) ^ (table.a > 2)) | (table.b > 4)
    labels ^= rng.random(N) < 0.1
    return table.mask(pd.DataFrame(rng.random((N, 3)) < [0.0, 0.2, 0.0], columns=table.columns)), labels.to_numpy(int)


BOOSTED = {
    "lightgbm": lambda: LGBMClassifier(
        n_estimators=8, min_child_samples=5, min_data_per_group=1, cat_smooth=1.0, verbose=-1, n_jobs=1
    ),
    "histgb": lambda: HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5, categorical_features="from_dtype"),
    "xgboost": lambda: XGBClassifier(
        n_estimators=8, max_depth=3, enable_categorical=True, max_cat_to_onehot=1, n_jobs=1
    ),
}

WHOLE = {name: {"kind": "integer"} for name in ("a", "b")}


@pytest.mark.parametrize("way", WAYS, ids=["auto", "no_reduction", "box", "ocean"])
@pytest.mark.parametrize("library", BOOSTED)
def test_nan_rows_where_the_first_feature_is_an_unordered_category(library: str, way: dict[str, Any]) -> None:
    table, labels = coloured()
    model = BOOSTED[library]().fit(table, labels)
    explainer = Explainer(model, table, WHOLE)
    for k in np.flatnonzero(table.a.isna())[:6]:
        row = table.iloc[[k]]
        best = cheapest(explainer, row, "opposite", [range(5), range(6), range(6)])
        assert_true(explainer.explain(row, **way)[0], best)


@pytest.mark.parametrize("way", WAYS, ids=["auto", "no_reduction", "box", "ocean"])
def test_one_hot_level_that_the_background_data_lacks(way: dict[str, Any]) -> None:
    table, labels = coloured()
    table = table.astype({"colour": object}).fillna(0).astype({"colour": str})
    columns = ColumnTransformer([("c", OneHotEncoder(), ["colour"])], remainder="passthrough")
    model = make_pipeline(columns, RandomForestClassifier(10, max_depth=5, random_state=0, n_jobs=1))
    model.fit(table, labels)
    background = table[table.colour != "grey"]
    explainer = Explainer(model, background, WHOLE)
    for k in range(0, 60, 10):
        row = background.iloc[[k]]
        best = cheapest(explainer, row, "opposite", [range(4), range(6), range(6)])
        assert_true(explainer.explain(row, **way)[0], best)


def cheaper_nearby(explainer: Explainer, found: Explanation, grid: dict[str, np.ndarray]) -> float:
    """Cost of the cheapest point of a grid of numbers around each threshold, in the dtypes of the answer."""
    assert found.problem is not None
    problem = found.problem
    points = np.array(list(itertools.product(*grid.values())))
    table = pd.DataFrame(points, columns=list(grid)).astype(dict(found.original.dtypes))
    met = explainer.model.meets(problem.target, table)
    costs = [problem.cost.total(problem.space, problem.origin, p) for p in table.to_numpy(np.float64)[met]]
    return min(costs, default=np.inf)


def grid_around(model: Any, row: np.ndarray, dtype: Any) -> dict[str, np.ndarray]:
    """Numbers next to where each feature, scaled, crosses a threshold of the forest, found by the scaler's inverse."""
    scaler, forest = model.steps[0][1], model.steps[-1][1]
    out = {}
    for j, name in enumerate(scaler.feature_names_in_):
        cuts = np.unique(np.concatenate([t.tree_.threshold[t.tree_.feature == j] for t in forest.estimators_]))
        centre = np.unique((cuts * scaler.scale_[j] + scaler.mean_[j]).astype(dtype))
        near = centre[np.argsort(np.abs(centre - row[j]))[:7]]
        # the cast of the trees to float32 takes a threshold this far from where the scaler's inverse has it
        values = [(near * (1 + k * 2.0**-23)).astype(dtype) for k in range(-2, 3)]
        out[name] = np.unique(np.concatenate([*values, [row[j]]]).astype(dtype))
    return out


@pytest.mark.parametrize("given", ["float32", "float64", "list"])
def test_all_float32_data_behind_a_scaler(given: str) -> None:
    table, labels = numbers()
    table = table.astype("float32")
    model = scaled_forest(table, labels)
    explainer = Explainer(model, table)
    fresh = numbers(3)[0].iloc[:12]  # not in float32
    for k in range(5):
        row = fresh.iloc[[k]] if given == "float64" else fresh.iloc[[k]].astype("float32")
        asked: Any = row.to_numpy(np.float64).tolist() if given == "list" else row
        found = explainer.explain(asked)[0]
        assert found.status == "optimal", found.message
        assert found.verified, found.checks
        assert found.counterfactual is not None
        assert found.refused == 0
        dtype = "float32" if given == "float32" else "float64"
        assert set(map(str, found.counterfactual.dtypes)) == {dtype}
        best = cheaper_nearby(explainer, found, grid_around(model, row.to_numpy()[0].astype(dtype), dtype))
        assert found.cost is not None
        assert found.cost <= best * (1 + 1e-9)


def test_whole_numbers_of_a_list_go_back_to_the_dtypes_of_the_data() -> None:
    table, labels = numbers()
    table = table.assign(b=table.b.round().astype("int64"))
    explainer = Explainer(scaled_forest(table, labels), table)
    found = explainer.explain(table.iloc[[3]].to_numpy(np.float64).tolist())[0]
    assert found.counterfactual is not None
    assert found.counterfactual.dtypes.to_dict() == table.dtypes.to_dict()


def test_a_row_given_as_a_list_takes_the_dtypes_of_the_data() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"c": pd.Categorical(rng.choice(list("abcd"), N)), "x": rng.normal(size=N).astype(np.float32), "n": 7}
    )
    labels = (table.c.isin(["a", "c"]).to_numpy() ^ (table.x.to_numpy() > 0)).astype(int)
    model = LGBMClassifier(n_estimators=3, verbose=-1).fit(table, labels)
    row = table.iloc[[0]]
    for asked in (row.iloc[0].tolist(), [row.iloc[0].tolist()], row.iloc[0]):
        found = Explainer(model, table).explain(asked, target=int(1 - model.predict(row)[0]))[0]
        assert found.status == "optimal", found.message
        point = found.counterfactual
        assert str(point.dtypes["c"]) == "category"
        assert model.predict(point)[0] == 1 - model.predict(row)[0]
        changed = point.c.iloc[0] != row.c.iloc[0] or float(point.x.iloc[0]) != float(row.x.iloc[0])
        assert changed
        assert point.n.iloc[0] == 7


def test_numbers_among_words_are_words_however_long_the_file(tmp_path: Path) -> None:
    path, n = tmp_path / "data.csv", 400_000
    path.write_text("code,other\n" + "1,10000000\n2,10000000\n" * (n // 2) + "A,3\n")
    assert read_table(path)["code"].unique().tolist() == ["1", "2", "A"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a;b;c\n1,5;2,5;x\n", "single field, 'a;b;c': save it with commas"),
        (b"a,b,a\n1,2,3\n", "its header has 'a' more than once"),
        (b"a\tb\n1.5\t2.5\n", "in the place of '\\\\t'"),
        ("a,b\n1,2\n".encode("utf-16"), "no UTF-8 .one of its bytes is 0xff"),
        ("a,b\n1,\u00e9\n".encode("latin-1"), "save it as UTF-8"),
    ],
)
def test_csv_of_other_kinds_is_refused_with_the_reason(text: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(text)
    with pytest.raises(DataError, match=words):
        read_table(path)

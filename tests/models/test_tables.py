"""Reading a table: no false `optimal` and no false `infeasible`, by brute force through the user's own model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from ocf.errors import ConformanceError, DataError, UnsupportedModelError
from ocf.explain.explainer import Explainer
from ocf.explain.explanation import Explanation
from ocf.features.inference import infer_space
from ocf.models.encoding import Encoding
from ocf.models.lift import lift, why_unproven
from ocf.models.user_model import as_user_model
from ocf.readers import read_model
from ocf.readers.transformers.column import Column
from ocf.trees.ensemble import SplitKind

N = 300
WAYS: list[dict[str, Any]] = [
    {},
    {"reduce": False, "solver": "highs"},
    {"solver": "box"},
    {"reduce": False, "solver": "highs", "formulation": "ocean"},
]


def cheapest(explainer: Explainer, row: pd.DataFrame, target: Any, values: Iterable[Iterable[float]]) -> float:
    """Cost of the cheapest point of a product of coded values that the user's own model gives the target."""
    problem = explainer.problem(row, target)
    points = np.array(list(itertools.product(*values)), np.float64)
    points = np.where(np.isnan(problem.origin), np.nan, points)

    def cost(point: np.ndarray) -> float:
        return problem.cost.total(problem.space, problem.origin, point)

    # l1 adds up over features: the cheapest points come first, and the model is asked until it gives one the target
    about = np.zeros(len(points))
    for i, column in enumerate(points.T):
        held, place = np.unique(column, return_inverse=True)
        alone = np.tile(problem.origin, (len(held), 1))
        alone[:, i] = held
        about += np.array([cost(point) for point in alone])[place.ravel()]
    order = np.argsort(about, kind="stable")
    for some in np.array_split(order, len(order) // 4000 + 1):
        met = some[explainer.model.meets(problem.target, problem.space.to_frame(points[some]))]
        if len(met):
            return min(cost(points[k]) for k in met if about[k] <= about[met[0]] * (1 + 1e-9))
    return np.inf


def assert_true(found: Explanation, best: float) -> None:
    """The answer is proven, and it is the best that brute force knows."""
    assert found.status == ("optimal" if np.isfinite(best) else "infeasible"), found.message
    if np.isfinite(best):
        assert found.cost == pytest.approx(best, rel=1e-9)
        assert found.verified, found.checks


# -- splits that are decided, and a first feature without an order ---------------------------------------------

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
    table = table.fillna(0).astype({"colour": str})
    columns = ColumnTransformer([("c", OneHotEncoder(), ["colour"])], remainder="passthrough")
    model = make_pipeline(columns, RandomForestClassifier(10, max_depth=5, random_state=0, n_jobs=1))
    model.fit(table, labels)
    background = table[table.colour != "grey"]
    explainer = Explainer(model, background, WHOLE)
    for k in range(0, 60, 10):
        row = background.iloc[[k]]
        best = cheapest(explainer, row, "opposite", [range(4), range(6), range(6)])
        assert_true(explainer.explain(row, **way)[0], best)


# -- the dtype of the row ----------------------------------------------------------------------------------------


def numbers(seed: int = 0, n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(50, 10, n), "b": rng.exponential(3, n), "c": rng.normal(size=n)})
    return table, ((table.a > 50) ^ (table.b > 2) ^ (rng.random(n) < 0.1)).to_numpy(int)


def scaled_forest(table: pd.DataFrame, labels: np.ndarray, scaler: Any = None) -> Any:
    forest = RandomForestClassifier(15, max_depth=5, random_state=0, n_jobs=1)
    return make_pipeline(scaler or StandardScaler(), forest).fit(table, labels)


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
    for k in range(12):
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


# -- thresholds far from the data --------------------------------------------------------------------------------


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


# -- what no probe can see ---------------------------------------------------------------------------------------


def holes(kind: str) -> tuple[pd.DataFrame, np.ndarray, Any, float]:
    """A step that sends one value of the feature elsewhere, which no row of the data has."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"a": rng.uniform(1, 100, 300), "b": rng.normal(size=300)})
    labels = (table.a < 20).to_numpy(int)
    if kind == "imputer":
        imputer = SimpleImputer(missing_values=0, strategy="constant", fill_value=5.0)
        return table, labels, imputer, 0.0
    return table, labels, FunctionTransformer(lambda x: np.where(np.asarray(x) == 99, 0.0, x)), 99.0


def test_a_hole_at_one_value_is_found() -> None:
    table, labels, step, _ = holes("imputer")
    labels = 1 - labels  # large values are wanted, and 0 is filled in by 50
    step.set_params(fill_value=50.0)
    forest = RandomForestClassifier(8, random_state=0, n_jobs=1)
    settings = {"a": {"bounds": (0.0, 100.0)}}
    explainer = Explainer(make_pipeline(step, StandardScaler(), forest).fit(table, labels), table, settings)
    found = explainer.explain(pd.DataFrame({"a": [3.0], "b": [0.5]}))[0]
    assert (found.status, found.counterfactual.a.iloc[0]) == ("optimal", 0.0)
    assert found.cost == pytest.approx(0.03)
    assert found.verified
    narrow = explainer.explain(pd.DataFrame({"a": [3.0], "b": [0.5]}), permitted_range={"a": (1.0, 10.0)})[0]
    assert narrow.status == "infeasible"


def test_a_function_with_a_hole_is_refused() -> None:
    table, labels, step, _ = holes("function")
    model = make_pipeline(step, StandardScaler(), RandomForestClassifier(8, random_state=0)).fit(table, labels)
    with pytest.raises(UnsupportedModelError, match=r"'functiontransformer' is not read: its function may do anything"):
        Explainer(model, table)


def test_a_row_in_a_hole_is_refused_by_the_three_way_check() -> None:
    table, labels, step, hole = holes("function")
    model = make_pipeline(step, RandomForestClassifier(8, random_state=0)).fit(table, labels)
    word = {"functiontransformer": "increasing"}  # which is not true
    explainer = Explainer(model, table, monotone=word)
    found = explainer.explain(pd.DataFrame({"a": [hole], "b": [0.5]}))[0]
    assert found.status == "error"
    assert f"feature 'a' = {hole}" in found.message
    table.loc[7, "a"] = hole
    with pytest.raises(ConformanceError, match=f"feature 'a' = {hole}"):
        Explainer(explainer.model.native, table, monotone=word)


def test_interactions_whose_first_row_holds_a_zero() -> None:
    table, labels = numbers()
    table.iloc[0] = 0.0
    steps = PolynomialFeatures(2, interaction_only=True)
    model = make_pipeline(steps, RandomForestClassifier(8, random_state=0, n_jobs=1)).fit(table, labels)
    with pytest.raises(UnsupportedModelError, match=r"'polynomialfeatures' multiplies several columns"):
        Explainer(model, table)


class LooksLikeAScaler(StandardScaler):
    """A subclass may do something else."""


UNKNOWN = {
    "a subclass": LooksLikeAScaler(),
    "a function": FunctionTransformer(lambda x: x),
    "arguments": FunctionTransformer(np.tanh, kw_args={"where": True}),
    "nested": FeatureUnion([("same", "passthrough"), ("inner", make_pipeline(StandardScaler(), LooksLikeAScaler()))]),
    "on some columns": ColumnTransformer([("all", LooksLikeAScaler(), ["a"])], remainder="passthrough"),
}
KNOWN = {
    "standard": StandardScaler(),
    "clipped": MinMaxScaler(clip=True),
    "absolute": MaxAbsScaler(),
    "robust": RobustScaler(),
    "binary": Binarizer(threshold=1.0),
    "power": PowerTransformer(),
    "quantile": QuantileTransformer(n_quantiles=20),
    "bins": KBinsDiscretizer(4, encode="ordinal"),
    "imputer": SimpleImputer(add_indicator=True),
    "neighbours": KNNImputer(),
    "identity": FunctionTransformer(),
    "logarithm": FunctionTransformer(np.cbrt),
    "selection": SelectKBest(k=2),
    "union": FeatureUnion([("a", StandardScaler()), ("b", "passthrough"), ("c", "drop")]),
    "columns": ColumnTransformer(
        [("a", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "c"]), ("b", "drop", ["b"])]
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_steps_that_are_not_read(name: str) -> None:
    table, labels = numbers()
    model = Pipeline([("first", UNKNOWN[name]), ("second", StandardScaler()), ("last", RandomForestClassifier(3))])
    with pytest.raises(
        UnsupportedModelError, match=r"the step '\w+'( \(\w+\))? is not read: .* the table after that step"
    ):
        Explainer(model.fit(table, labels), table)


@pytest.mark.parametrize("name", KNOWN)
def test_steps_that_are_known_keep_their_proofs(name: str) -> None:
    table, labels = numbers()
    model = Pipeline([("first", KNOWN[name]), ("last", RandomForestClassifier(5, max_depth=4, random_state=0))])
    found = Explainer(model.fit(table, labels), table).explain(table.iloc[:3])
    assert {e.status for e in found} <= {"optimal", "infeasible"}, [e.message for e in found]


def test_values_filled_from_other_columns_are_known_where_nothing_is_missing() -> None:
    table, labels = numbers()
    explainer = Explainer(
        make_pipeline(KNNImputer(), RandomForestClassifier(3, random_state=0)).fit(table, labels), table
    )
    assert explainer.explain(table.iloc[[0]])[0].status == "optimal"
    with pytest.raises(UnsupportedModelError, match="fills missing values from the other columns"):
        explainer.explain(table.iloc[[0]].assign(a=np.nan))


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


def test_a_model_that_sees_something_else_than_its_encoder_shows_is_refused() -> None:
    table, labels = numbers()
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)).fit(table, labels)
    user = as_user_model(model)
    other = replace(user, decide=lambda rows: 1 - user.decide(rows))
    with pytest.raises(ConformanceError, match="does not see what ocf sees"):
        Explainer(other, table).explain(table.iloc[[0]])


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

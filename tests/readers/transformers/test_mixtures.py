"""Sums of columns in front of trees: the hyperplanes that are read of them, and answers against brute force."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.table_brute_force import thresholds
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FactorAnalysis, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from ocf import Explainer
from ocf.errors import DataError, UnsupportedModelError
from ocf.explain.linear import LinearExplainer
from ocf.features.inference import infer_space
from ocf.models.encoding import Encoding
from ocf.models.lift import check_lift, lift
from ocf.models.user_model import as_user_model
from ocf.trees.ensemble import Ensemble, SplitKind

RNG = np.random.default_rng(7)
N = 120
TABLE = pd.DataFrame(
    {
        "income": RNG.normal(50, 12, N),
        "debt": RNG.normal(0, 2, N),
        "age": RNG.integers(18, 80, N),
        "town": RNG.choice(["north", "south", "west"], N),
    }
)
NUMBERS, PAIR = TABLE[["income", "debt", "age"]], TABLE[["income", "debt"]]
LABELS = (
    TABLE.income / 12 - TABLE.debt + (TABLE.town == "west") + TABLE.age / 40 + RNG.normal(0, 0.3, N) > 5.5
).astype(int)


def scaled_projection() -> Any:
    return make_pipeline(StandardScaler(), PCA(2), MinMaxScaler())


#: Name -> maker of steps that add up numbers.
SUMS: dict[str, Callable[[], Any]] = {
    "PCA": lambda: PCA(2),
    "PCA(whiten)": lambda: PCA(2, whiten=True),
    "IncrementalPCA": lambda: IncrementalPCA(2),
    "TruncatedSVD": lambda: TruncatedSVD(2, random_state=0),
    "FactorAnalysis": lambda: FactorAnalysis(2, random_state=0),
    "FastICA": lambda: FastICA(2, random_state=0),
    "FastICA(whiten=False)": lambda: make_pipeline(PCA(2, whiten=True), FastICA(whiten=False, random_state=0)),
    "GaussianRandomProjection": lambda: GaussianRandomProjection(2, random_state=0),
    "SparseRandomProjection": lambda: SparseRandomProjection(2, density=0.9, random_state=2),
    "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis,
    "LinearDiscriminantAnalysis(eigen)": lambda: LinearDiscriminantAnalysis(solver="eigen"),
    "FeatureAgglomeration": lambda: FeatureAgglomeration(2),
    "between scalers": scaled_projection,
    "maximum behind": lambda: make_pipeline(PCA(2), MaxAbsScaler()),
    "robust behind": lambda: make_pipeline(PCA(2), RobustScaler()),
    "centred behind": lambda: make_pipeline(PCA(2), StandardScaler(with_std=False)),
    "divided behind": lambda: make_pipeline(PCA(2), StandardScaler(with_mean=False)),
    "twice": lambda: make_pipeline(StandardScaler(), PCA(2), TruncatedSVD(1)),
    "in a union": lambda: FeatureUnion(
        [("own", "passthrough"), ("sum", PCA(1))], transformer_weights={"own": 2.0, "sum": 3.0}
    ),
    "weighed": lambda: ColumnTransformer(
        [("sum", PCA(1), ["income", "debt"])], remainder="passthrough", transformer_weights={"sum": -0.7}
    ),
}


def fitted(steps: Any, model: Any, table: pd.DataFrame) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(steps, model).fit(table, LABELS)


def forest(n: int = 4, depth: int = 3) -> RandomForestClassifier:
    return RandomForestClassifier(n, max_depth=depth, random_state=0)


def trees_of(pipe: Any, table: pd.DataFrame) -> tuple[Ensemble, Ensemble, Encoding]:
    """Trees over model columns and over features, and the way between them."""
    user, space = as_user_model(pipe), infer_space(table)
    encoding = Encoding(space, user.encode, space.from_frame(table)[0], user.preprocessing.read)
    lifted = lift(user.trees.ensemble, encoding)
    check_lift(lifted, user.trees.ensemble, encoding)
    return user.trees.ensemble, lifted.ensemble, encoding


def worst(pipe: Any, table: pd.DataFrame) -> tuple[float, float]:
    """How far hyperplanes lie from the library's columns at random rows, at most: by their bound, and by their size."""
    plain, trees, encoding = trees_of(pipe, table)
    space, found = encoding.space, []
    ends = np.array([(f.lower, f.upper) if not f.discrete else (0, len(f.levels)) for f in space.features])
    rows = np.random.default_rng(0).uniform(ends[:, 0], ends[:, 1], (400, len(space)))
    rows = np.column_stack(
        [np.floor(r) if f.discrete or f.kind == "integer" else r for f, r in zip(space.features, rows.T, strict=True)]
    )
    frame = space.to_frame(rows)
    rows, columns = space.from_frame(frame), encoding.encode(frame)
    for v in np.flatnonzero(trees.kind == SplitKind.OBLIQUE).tolist():
        terms = trees.oblique_terms(v, rows)
        sizes = np.abs(terms).sum(axis=1) + abs(trees.threshold[v])
        gap = np.abs(columns[:, plain.feature[v]] - plain.threshold[v] - terms.sum(axis=1) + trees.threshold[v])
        bound = trees.oblique_error_bound(v, np.abs(terms).sum(axis=1))
        found.append((float((gap / bound).max()), float((bound / sizes).max())))
    assert found, "no split is a hyperplane"
    return max(ratio for ratio, _ in found), max(size for _, size in found)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_hyperplanes_are_the_librarys_columns(name: str, dtype: str) -> None:
    table = NUMBERS.astype(dtype)
    ratio, size = worst(fitted(SUMS[name](), forest(), table), table)
    assert ratio <= 1
    assert size <= (1e-11 if dtype == "float64" else 5e-3)


def test_categories_and_passed_columns_beside_sums() -> None:
    parts = [("town", OneHotEncoder(), ["town"]), ("sum", scaled_projection(), ["income", "debt"])]
    steps = ColumnTransformer(parts, remainder="passthrough")
    pipe = fitted(steps, forest(), TABLE)
    assert worst(pipe, TABLE)[0] <= 1
    kinds = set(trees_of(pipe, TABLE)[1].kind.tolist())
    assert {SplitKind.OBLIQUE, SplitKind.AXIS} <= kinds
    assert worst(fitted(make_pipeline(steps, TruncatedSVD(3)), forest(), TABLE), TABLE)[0] <= 1


def vertices(pipe: Any, table: pd.DataFrame, origin: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Where pairs of the lines meet that bound the leaves, the row's own values and the limits, and points beside.

    A line is where a column of the user's own transformers meets a threshold of the last step.
    """
    scale = ends[:, 1] - ends[:, 0]
    corners = np.vstack([np.zeros(2), np.eye(2)]) * scale + ends[:, 0]
    z = np.asarray(pipe[:-1].transform(pd.DataFrame(corners, columns=table.columns)))
    slopes, base = (z[1:] - z[0]).T / scale, z[0] - (z[1:] - z[0]).T @ (ends[:, 0] / scale)
    lines = [(*slopes[j], t - base[j]) for j, cuts in thresholds(pipe[-1]).items() for t in cuts]
    lines += [(float(i == 0), float(i == 1), v) for i in range(2) for v in (origin[i], *ends[i])]
    found = []
    for a, b in combinations(np.array(lines), 2):
        matrix = np.array([a[:2], b[:2]]) * scale
        if abs(np.linalg.det(matrix)) > 1e-9 * np.linalg.norm(matrix[0]) * np.linalg.norm(matrix[1]):
            found.append(np.linalg.solve(matrix, [a[2], b[2]]) * scale)
    steps = np.array(list(product((-1, 0, 1), repeat=2))) * 1e-8 * scale
    points = (np.array(found)[:, None] + steps).reshape(-1, 2)
    return points[((ends[:, 0] <= points) & (points <= ends[:, 1])).all(axis=1)]


MODELS: dict[str, Callable[[], Any]] = {
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": lambda: forest(5),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=4, max_depth=3, random_state=0),
    "xgboost": lambda: XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1, random_state=0),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["PCA(whiten)", "between scalers", "FactorAnalysis", "in a union"])
def test_nothing_is_cheaper_at_any_vertex(name: str, model: str) -> None:
    pipe = fitted(SUMS[name](), MODELS[model](), PAIR)
    explainer = Explainer(pipe, PAIR)
    rows = PAIR.iloc[[3, 20, 41]]
    ends = np.array([(f.lower, f.upper) for f in explainer.space.features])
    scale = np.array([f.scale for f in explainer.space.features])
    for (_, row), answer in zip(rows.iterrows(), explainer.explain(rows, progress=False), strict=True):
        origin = row.to_numpy()
        points = vertices(pipe, PAIR, origin, ends)
        flipped = pipe.predict(pd.DataFrame(points, columns=PAIR.columns)) != pipe.predict(row.to_frame().T)[0]
        best = (np.abs(points[flipped] - origin) / scale).sum(axis=1).min()
        assert answer.status == "optimal"
        assert answer.bound - 1e-12 <= best <= answer.cost + 1e-6
        assert pipe.predict(answer.counterfactual) != pipe.predict(row.to_frame().T)


def test_one_hyperplane_has_no_two_sides() -> None:
    """Trees of one forest share thresholds: closed half-spaces of both sides meet in the hyperplane."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(0, 3, 200), "b": rng.normal(5, 1, 200)})
    town, table["n"] = rng.choice(["x", "y", "z"], 200), rng.integers(0, 9, 200)
    labels = (table.a + 2 * table.b + (town == "x") * 2 + table.n * 0.3 > 11).astype(int)
    pipe = make_pipeline(PCA(2, whiten=True), StandardScaler(), forest(5)).fit(table, labels)
    trees = trees_of(pipe, table)[1]
    splits = trees.kind == SplitKind.OBLIQUE
    assert len(np.unique(trees.oblique_index[splits])) == 2
    assert len(np.unique(trees.threshold[splits])) < splits.sum()
    (answer,) = Explainer(pipe, table).explain(table.iloc[[3]], progress=False)
    assert answer.status == "optimal"


def test_float32_tables_are_answered_within_their_rounding() -> None:
    table = PAIR.astype("float32")
    pipe = fitted(scaled_projection(), forest(), table)
    for answer in Explainer(pipe, table).explain(table.iloc[:4], progress=False):
        assert answer.status in ("optimal", "feasible")
        assert answer.cost - 1e-4 <= answer.bound <= answer.cost
        assert answer.counterfactual.dtypes.tolist() == [np.float32] * 2


def test_a_filled_in_value_is_a_constant_of_the_sums() -> None:
    table = NUMBERS.copy()
    table.loc[::9, "debt"] = np.nan
    pipe = fitted(make_pipeline(SimpleImputer(), StandardScaler(), PCA(2)), forest(), table)
    row = table.iloc[[9]]
    (answer,) = Explainer(pipe, table).explain(row, progress=False)
    assert answer.status == "optimal"
    assert np.isnan(answer.counterfactual.debt.iloc[0])
    assert pipe.predict(answer.counterfactual) != pipe.predict(row)


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        (make_pipeline(PowerTransformer(), PCA(2)), "'pca' adds up .*, and that of feature 'income' is no line in its"),
        (make_pipeline(PCA(2), PowerTransformer()), "'powertransformer' is no scaler, and takes columns that add up"),
        (make_pipeline(PCA(2), MinMaxScaler(clip=True)), "'minmaxscaler' is no scaler, and takes columns that add up"),
        (make_pipeline(PCA(2), PolynomialFeatures(2)), "'polynomialfeatures' is no scaler, and takes columns that add"),
        (make_pipeline(PolynomialFeatures(2, interaction_only=True), PCA(2)), "'polynomialfeatures' multiplies"),
        (FeatureAgglomeration(2, pooling_func=np.max), "'featureagglomeration' pools several columns by a function"),
    ],
)
def test_what_is_no_sum_of_lines_is_refused(steps: Any, what: str) -> None:
    pipe = fitted(steps, forest(), NUMBERS)
    with pytest.raises(UnsupportedModelError, match=f"{what}.* give ocf the table after"):
        Explainer(pipe, NUMBERS)


def test_sums_of_numbers_without_bounds_are_refused() -> None:
    pipe = fitted(PCA(2), forest(), PAIR)
    with pytest.raises(DataError, match=r"feature 'debt': .* needs finite bounds, for example bounds = \[0, 100\]"):
        Explainer(pipe, PAIR, {"debt": {"bounds": [-np.inf, np.inf], "scale": 1.0}})


def test_linear_models_behind_sums_are_refused() -> None:
    from sklearn.linear_model import LogisticRegression

    pipe = fitted(PCA(2), LogisticRegression(), PAIR)
    with pytest.raises(UnsupportedModelError, match="'pca' adds up several columns"):
        LinearExplainer(pipe, PAIR)

"""Reading oblique trees: the same leaves and scores as the trees themselves, and a bound on the rounding of a split."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, QuantileTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import Ensemble, Explainer
from ocf.errors import DataError, ModelError, UnsupportedModelError
from ocf.oblique.tao import TAOClassifier, TAORegressor
from ocf.oblique.tree import ObliqueTree
from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.trees.ensemble import SplitKind
from ocf.trees.rounding import uncertain

X, Y = load_breast_cancer(return_X_y=True)
MODELS = [
    TAOClassifier(3, random_state=0),
    TAOClassifier(3, splits="axis", random_state=0),
    TAORegressor(3, random_state=0),
    BaggingClassifier(TAOClassifier(2), 4, max_features=0.5, max_samples=0.2, random_state=0),
    BaggingRegressor(TAORegressor(2), 3, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_scores_are_the_models_own(model: Any) -> None:
    read = read_model(model.fit(X, Y))
    check_conformance(read, X)
    ensemble = read.ensemble
    sure = ~uncertain(ensemble, X)
    assert sure.mean() > 0.99
    own = model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)[:, None]
    np.testing.assert_allclose(ensemble.scores(X)[sure], own[sure], rtol=0, atol=2 * ensemble.rounding)
    again = Ensemble.from_dict(json.loads(json.dumps(ensemble.to_dict())))
    assert json.dumps(again.to_dict()) == json.dumps(ensemble.to_dict())


def test_arrays_of_the_first_files_load() -> None:
    """They had no codes of categories, so that every weight multiplies a value."""
    data = json.loads(json.dumps(read_model(MODELS[0].fit(X, Y)).ensemble.to_dict()))
    del data["oblique_codes"], data["oblique_slack"]
    again = Ensemble.from_dict(data)
    assert len(again.oblique_data)
    np.testing.assert_array_equal(again.oblique_codes, np.full(len(again.oblique_data), -1))
    np.testing.assert_array_equal(again.oblique_slack, np.zeros(len(again.oblique_indptr) - 1))


def test_bagged_trees_that_miss_a_class() -> None:
    X, y = load_iris(return_X_y=True)
    bag = BaggingClassifier(TAOClassifier(1), 5, max_samples=3, random_state=1).fit(X, y)
    assert any(len(tree.classes_) < 3 for tree in bag.estimators_)
    check_conformance(read_model(bag), X)


def test_single_columns_become_axis_splits() -> None:
    ensemble = read_model(TAOClassifier(3, splits="axis", random_state=0).fit(X, Y)).ensemble
    assert not ensemble.is_oblique
    assert set(ensemble.kind) == {SplitKind.LEAF, SplitKind.AXIS}


@given(seed=st.integers(0, 300))
def test_error_bounds_hold_for_sums_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    weights = rng.normal(size=(3, n)) * 10.0 ** rng.integers(-3, 4, n)
    tree = ObliqueTree(weights, [rng.normal(), 0, 0], [1, -1, -1], [2, -1, -1], np.eye(2)[[0, 0, 1]], classes=(0, 1))
    ensemble = read_model(tree).ensemble
    if not ensemble.is_oblique:
        return
    x = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n)
    used = weights[0] * x
    exact = sum((Fraction(w) * Fraction(v) for w, v in zip(weights[0].tolist(), x.tolist(), strict=True)), Fraction(0))
    error_bound = Fraction(float(ensemble.oblique_error_bound(0, float(np.abs(used).sum()))))
    for order in (np.arange(n), rng.permutation(n), np.argsort(np.abs(used)), np.argsort(-np.abs(used))):
        total = 0.0
        for term in used[order].tolist():
            total += term
        assert abs(Fraction(total) - exact) <= error_bound
    assert abs(Fraction(float(weights[0] @ x)) - exact) <= error_bound


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scaled_columns_are_carried_over(scaler: Any, dtype: str) -> None:
    table = load_breast_cancer(as_frame=True).data.astype(dtype)
    model = make_pipeline(scaler, TAOClassifier(3, init="random", random_state=0)).fit(table, Y)
    found = Explainer(model, data=table).explain(table.iloc[[0]], target="opposite")[0]
    assert found.verified
    assert found.status == "optimal" if dtype == "float64" else found.gap < 1e-4


def test_preprocessing_that_is_not_linear_is_refused() -> None:
    table = load_breast_cancer(as_frame=True).data.iloc[:, :3]
    curved = make_pipeline(QuantileTransformer(n_quantiles=50), TAOClassifier(2, init="random", random_state=0)).fit(
        table, Y
    )
    with pytest.raises(UnsupportedModelError, match="makes no line of feature"):
        Explainer(curved, data=table).explain(table.iloc[[0]])
    mixed = make_pipeline(PolynomialFeatures(2), TAOClassifier(2, random_state=0)).fit(table, Y)
    with pytest.raises(UnsupportedModelError, match="several features"):
        Explainer(mixed, data=table)


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(ModelError, match="not fitted"):
        read_model(TAOClassifier())
    bag = BaggingClassifier(TAOClassifier(1), 3, random_state=0).fit(X, Y)
    bag.estimators_[1] = DecisionTreeClassifier().fit(X, Y)
    with pytest.raises(UnsupportedModelError, match="different kinds"):
        read_model(bag)


def test_missing_values_have_no_rule() -> None:
    table = load_breast_cancer(as_frame=True).data
    explainer = Explainer(TAOClassifier(2, random_state=0).fit(table, Y), data=table)
    row = table.iloc[[0]].copy()
    row.iloc[0, 0] = np.nan
    with pytest.raises((DataError, ValueError), match="NaN"):
        explainer.explain(row)

"""Across files: steps that hand XGBoost a sparse matrix, whose zeros, which are left out, it takes for missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.random_projection import SparseRandomProjection
from xgboost import XGBClassifier

from ocf.errors import UnsupportedModelError
from ocf.explain.explainer import Explainer

from .brute_forced import WAYS, cheapest


def table(seed: int, n: int = 300, *, zeros: bool = True) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, whole numbers and words, and labels that a 0 of theirs decides; `zeros`: whether the data have any."""
    rng = np.random.default_rng(seed)
    own = pd.DataFrame(
        {
            "kind": rng.choice(list("abcdefgh"), n),
            "f": rng.normal(size=n).round(1) if zeros else rng.uniform(-1, 1, n),
            "w": rng.integers(-4, 5, n) if zeros else rng.choice([-4, -3, -2, -1, 1, 2, 3, 4], n),
        }
    )
    score = own.f + own.w / 4 + (own.kind < "c") * 0.8 + rng.normal(0, 0.2, n)
    return own, ((score > 1) | (zeros & ((own.f == 0) | (own.w == 0)))).to_numpy(int)


def boosted(seed: int = 0, **settings: Any) -> XGBClassifier:
    return XGBClassifier(n_estimators=6, max_depth=3, random_state=seed, n_jobs=1, **settings)


def beside_words(*others: tuple[str, Any, list[str]], remainder: Any = "passthrough") -> ColumnTransformer:
    return ColumnTransformer([("kind", OneHotEncoder(), ["kind"]), *others], remainder=remainder, sparse_threshold=1.0)


def values_of(own: pd.DataFrame) -> list[Any]:
    """Coded values of each feature to try: of numbers the data, their mean, 0, and what lies between."""
    f = np.unique(np.concatenate([own.f, [0.0, own.f.mean()], np.linspace(own.f.min(), own.f.max(), 150)]))
    return [np.arange(own.kind.nunique()), f, np.arange(own.w.min(), own.w.max() + 1)]


def assert_none_cheaper(model: Any, own: pd.DataFrame, rows: pd.DataFrame, ways: list[dict[str, Any]]) -> None:
    """The answers about rows are proven, and brute force through the Pipeline finds nothing cheaper."""
    explainer = Explainer(model, own)
    for k in range(len(rows)):
        best = cheapest(explainer, rows.iloc[[k]], "opposite", values_of(own))
        for way in ways:
            found = explainer.explain(rows.iloc[[k]], **way)[0]
            assert found.status in ("optimal", "infeasible"), found.message
            assert found.verified or found.cost is None, found.checks
            cost = np.inf if found.cost is None else found.cost
            assert cost <= best * (1 + 1e-9), (way, found.changes, best)


STEPS = {
    "as it is": beside_words(),
    "standard scaler": beside_words(("f", StandardScaler(), ["f"])),
    "least is 0": beside_words(("f", MinMaxScaler(), ["f", "w"])),
    "bins": beside_words(("f", KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), ["f"])),
    "words of numbers": beside_words(("w", OneHotEncoder(handle_unknown="ignore"), ["w"])),
    "signs": beside_words(("f", Binarizer(threshold=0.2), ["f"])),
    "turned": beside_words(("f", FunctionTransformer(np.abs), ["f", "w"])),
    "scaled when sparse": Pipeline([("sparse", beside_words()), ("scale", MaxAbsScaler())]),
    "power": beside_words(("f", PowerTransformer(), ["f"])),
    "quantiles": beside_words(("f", QuantileTransformer(n_quantiles=50, output_distribution="normal"), ["f"])),
    "nothing else": beside_words(remainder="drop"),
}


@pytest.mark.parametrize("zeros", [True, False], ids=["zeros", "no zeros"])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_zeros_of_a_sparse_matrix_take_the_way_of_missing_values(steps: Any, zeros: bool) -> None:
    own, labels = table(int(zeros), zeros=zeros)
    model = make_pipeline(clone(steps), boosted(int(zeros))).fit(own, labels)
    assert_none_cheaper(model, own, own.iloc[:1], WAYS if zeros else WAYS[:1])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_zero_that_no_row_of_the_data_has(sign: int) -> None:
    own, _ = table(0, zeros=False)
    model = make_pipeline(beside_words(), boosted()).fit(own, (sign * own.f > 0.5).to_numpy(int))
    row = own.iloc[[0]].assign(f=-0.2 * sign)
    zero = row.assign(f=0.0)
    found = Explainer(model, own).explain(row, target=1)[0]
    assert found.status == "optimal"
    assert found.verified
    assert found.counterfactual is not None
    assert (found.counterfactual.f.item() == 0) == (model.predict(zero)[0] == 1)
    assert "-0 " not in str(found)


def test_a_whole_zero_that_bounds_let_in() -> None:
    own, _ = table(0)
    own = own.assign(w=np.random.default_rng(0).integers(1, 21, len(own)))
    model = make_pipeline(beside_words(), boosted()).fit(own, (own.w > 14).to_numpy(int))
    assert model.predict(own.iloc[[0]].assign(w=0))[0] == 1
    found = Explainer(model, own, {"w": {"bounds": (0, 20)}}).explain(own.iloc[[0]].assign(w=3), target=1)[0]
    assert found.status == "optimal"
    assert found.cost == pytest.approx(3 / 19)  # the range of the data


def test_bins_alone_are_sparse_and_dense_alike() -> None:
    own = table(0)[0][["f", "w"]].astype(float)
    labels = (own.f + own.w / 4 > 0.5).to_numpy(int)
    costs = []
    for encode in ("onehot", "onehot-dense"):
        bins = KBinsDiscretizer(6, encode=encode, quantile_method="averaged_inverted_cdf")
        model = make_pipeline(bins, boosted()).fit(own, labels)
        rows = own[model.predict(own) == 0].iloc[:5]
        costs.append([one.cost for one in Explainer(model, own).explain(rows, target=1)])
    assert costs[0] == pytest.approx(costs[1])


def test_pipelines_inside_a_vote_each_have_their_own_zeros() -> None:
    own, labels = table(3)
    forest = RandomForestClassifier(5, max_depth=3, random_state=0, n_jobs=1)
    parts = [("boosted", make_pipeline(beside_words(), boosted())), ("forest", make_pipeline(beside_words(), forest))]
    assert_none_cheaper(VotingClassifier(parts, voting="soft").fit(own, labels), own, own.iloc[:3], WAYS[:1])


def test_one_sparse_matrix_of_two_meanings_is_refused() -> None:
    own, labels = table(3)
    forest = RandomForestClassifier(5, max_depth=3, random_state=0, n_jobs=1)
    vote = VotingClassifier([("boosted", boosted()), ("forest", forest)], voting="soft")
    model = make_pipeline(beside_words(), vote).fit(own, labels)
    with pytest.raises(UnsupportedModelError, match=r"sparse matrix.*sparse_threshold=0"):
        Explainer(model, own)


def test_sums_in_a_sparse_matrix_are_refused() -> None:
    own, labels = table(3)
    added = SparseRandomProjection(4, dense_output=False, random_state=0)
    model = make_pipeline(beside_words(), added, boosted()).fit(own, labels)
    with pytest.raises(UnsupportedModelError, match=r"sparserandomprojection.*sparse matrix.*sparse_threshold=0"):
        Explainer(model, own)


def coarse(numbers: Any) -> np.ndarray:
    """Some numbers next to 0 become 0, and those between them do not."""
    f = np.ascontiguousarray(numbers, np.float64)
    return np.where((np.abs(f) < 1e-3) & (f.view(np.int64) % 2 == 0), 0.0, f)


def test_rounding_that_decides_about_a_zero_is_refused_where_a_tree_asks() -> None:
    own, labels = table(3)
    steps = beside_words(("coarse", FunctionTransformer(coarse), ["f"]))
    model = make_pipeline(steps, boosted()).fit(own, labels)
    with pytest.raises(UnsupportedModelError, match=r"sparse matrix.*rounding.*sparse_threshold=0"):
        Explainer(model, own, monotone={"coarse": "increasing"}).explain(own.iloc[[0]])

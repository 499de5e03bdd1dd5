"""Explainable boosting machines, compared with their library at every cut, category and missing value."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf import Explainer
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.base import TreeModel
from ocf.readers.conformance import check_conformance

glassbox = pytest.importorskip("interpret.glassbox")

SETTINGS = {
    "max_rounds": 15,
    "outer_bags": 1,
    "interactions": 2,
    "n_jobs": 1,
    "max_bins": 12,
    "learning_rate": 0.2,
    "random_state": 0,
}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 200
    made = pd.DataFrame(
        {
            "a": rng.normal(size=n).round(1),
            "b": rng.integers(0, 4, n),
            "job": rng.choice(list("pqrs"), n),
            "size": pd.Categorical(rng.choice([10, 20, 30], n), categories=[30, 10, 20]),
        }
    )
    return made.assign(a=made["a"].mask(made.index % 9 == 0))


def score_of(table: pd.DataFrame) -> np.ndarray:
    holes = table["a"].isna()
    score = table["a"].fillna(0) * (table["b"] - 1) + 2.0 * table["job"].isin(["p", "s"]) + holes
    return (score + (table["size"] == 10)).to_numpy(float)


def fitted(table: Any, y: Any, values: bool = False, **settings: Any) -> Any:
    kind = glassbox.ExplainableBoostingRegressor if values else glassbox.ExplainableBoostingClassifier
    return kind(**(SETTINGS | settings)).fit(table, y)


TASKS: dict[str, Callable[[pd.DataFrame], tuple[Any, dict[str, Any]]]] = {
    "two": lambda t: (np.where(score_of(t) > 1, "yes", "no"), {}),
    "three": lambda t: (np.digitize(score_of(t), [0, 2]), {"interactions": 0}),
    "values": lambda t: (score_of(t), {"values": True}),
    "positive values": lambda t: (np.exp(score_of(t) / 4), {"values": True, "objective": "gamma_deviance"}),
}


def everywhere(read: TreeModel) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers on both sides of every cut, with all categories; as the user has them and coded."""
    cuts = read.ensemble.threshold[read.ensemble.feature == 0]
    cuts = np.unique(cuts[np.isfinite(cuts)])
    numbers = np.r_[cuts, np.nextafter(cuts, np.inf), -0.0, -np.inf, np.inf, np.nan]
    words, sizes = read.categories[2], read.categories[3]
    codes = np.array(list(itertools.product(numbers, range(4), range(len(words)), range(len(sizes)))), float)
    rows = pd.DataFrame({"a": codes[:, 0], "b": codes[:, 1].astype(int)})
    rows["job"] = np.array(words, object)[codes[:, 2].astype(int)]
    rows["size"] = np.array(sizes, object)[codes[:, 3].astype(int)]
    return rows, codes


@pytest.mark.parametrize("task", TASKS)
def test_tables_agree_everywhere(task: str, table: pd.DataFrame) -> None:
    y, settings = TASKS[task](table)
    model = fitted(table, y, **settings)
    check_conformance(read_model(model), table)
    naming = read_model(model).naming
    assert naming is not None
    read = naming({2: (*"pqrs", "unknown"), 3: (10, 20, 30)})
    check_conformance(read)
    rows, codes = everywhere(read)
    ours = read.ensemble.scores(codes)
    np.testing.assert_allclose(read.scores(rows), ours, rtol=0, atol=2 * read.ensemble.rounding)
    assert len(np.unique(ours)) > 20
    if read.classes:
        labels = np.array(read.classes)[read.ensemble.decide(ours)]
        np.testing.assert_array_equal(model.predict(rows), labels)
        assert len(np.unique(labels)) == len(read.classes)
    else:
        shown = np.exp(ours[:, 0]) if task == "positive values" else ours[:, 0]
        np.testing.assert_allclose(model.predict(rows), shown, rtol=1e-13, atol=10 * read.ensemble.rounding)


def test_missing_categories_have_a_rule(table: pd.DataFrame) -> None:
    holes = table.assign(job=table["job"].mask(table.index % 5 == 0))
    model = fitted(holes, np.where(score_of(table) > 1, "yes", "no"))
    read = read_model(model)
    check_conformance(read, holes)
    row = holes[holes["job"].isna() & holes["a"].notna() & (model.predict(holes) == "no")].iloc[:1]
    answer = Explainer(model, data=holes).explain(row, target="yes")[0]
    assert answer.verified, answer.message
    assert answer.counterfactual["job"].isna().all()


def test_flags_and_whole_numbers_as_categories() -> None:
    rng = np.random.default_rng(1)
    made = pd.DataFrame({"on": rng.choice([True, False], 150), "i": rng.integers(-2, 3, 150)})
    model = fitted(made, (made["on"] ^ (made["i"].abs() > 1)).astype(int), feature_types=["nominal", "nominal"])
    explainer = Explainer(model, data=made, features={"i": {"kind": "categorical"}})
    answer = explainer.explain(made[:1])[0]
    assert answer.verified
    assert model.predict(answer.counterfactual)[0] != model.predict(made[:1])[0]


def test_a_column_without_cuts(table: pd.DataFrame) -> None:
    """One that never varies, but for missing values; in a term of its own and in one with another."""
    flat = table.assign(b=np.where(table.index % 6 == 0, np.nan, 1.0))
    y = np.where((score_of(table) > 1) ^ flat["b"].isna(), "yes", "no")
    model = fitted(flat, y, interactions=[("a", "b"), ("a", "b", "job")])
    read = read_model(model)
    check_conformance(read, flat)
    codes = flat.assign(job=flat["job"].map({w: k for k, w in enumerate("pqrs")}), size=flat["size"].cat.codes)
    coded = codes.to_numpy(float)
    np.testing.assert_allclose(read.scores(flat), read.ensemble.scores(coded), atol=2 * read.ensemble.rounding)


def test_arrays_of_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(150, 3)).round(1)
    model = fitted(x, x[:, 0] * x[:, 1] > 0, interactions=1)
    check_conformance(read_model(model), x)
    answer = Explainer(model, data=x).explain(x[:1])[0]
    assert answer.verified
    assert model.predict(answer.counterfactual)[0] != model.predict(x[:1])[0]


@pytest.mark.parametrize("target", ["yes", "no"])
def test_answers_equal_brute_force(target: str, table: pd.DataFrame) -> None:
    whole = table[table["a"].notna()]
    y, settings = TASKS["two"](whole)
    model = fitted(whole, y, **settings)
    explainer = Explainer(model, data=whole)
    rows = whole[model.predict(whole) != target].iloc[:3]
    found = explainer.explain(rows, target=target, norm="l0")
    values = [np.unique(whole["a"]), range(4), "pqrs", (10, 20, 30)]
    grid = pd.DataFrame(itertools.product(*values), columns=whole.columns).astype({"size": whole["size"].dtype})
    good = grid[model.predict(grid) == target].astype(object)
    for answer, (_, row) in zip(found, rows.iterrows(), strict=True):
        assert answer.status == "optimal", answer.message
        assert answer.verified, answer.checks
        assert model.predict(answer.counterfactual)[0] == target
        least = (good != row).sum(axis=1).min()
        assert answer.cost == least or answer.counterfactual["a"].item() not in set(whole["a"])
        assert answer.cost <= least


def test_values_and_probabilities_as_targets(table: pd.DataFrame) -> None:
    whole = table[table["a"].notna()]
    y, settings = TASKS["positive values"](whole)
    model = fitted(whole, y, **settings)
    row = whole[model.predict(whole) < 1.5].iloc[:1]
    answer = Explainer(model, data=whole).explain(row, target=(2.0, None))[0]
    assert model.predict(answer.counterfactual)[0] >= 2.0
    y, settings = TASKS["two"](whole)
    model = fitted(whole, y, **settings)
    row = whole[model.predict(whole) == "no"].iloc[:1]
    answer = Explainer(model, data=whole).explain(row, target="yes", probability=0.6)[0]
    assert answer.verified
    assert model.predict_proba(answer.counterfactual)[0, 1] >= 0.6


def test_what_is_not_read_is_refused_by_name(table: pd.DataFrame) -> None:
    with pytest.raises(ModelError, match="not fitted"):
        read_model(glassbox.ExplainableBoostingClassifier())
    model = fitted(table, TASKS["two"](table)[0])
    for name, value, said in (
        ("feature_types_in_", ["continuous", "fuzzy", "nominal", "nominal"], "'b' is of the kind 'fuzzy'"),
        ("link_", "cauchit", "the link 'cauchit'"),
        ("link_", "monoclassification", "trained on a single class"),
        ("term_scores_", [scores[:-1] for scores in model.term_scores_], "a table of this .* does not fit its bins"),
        ("term_features_", model.term_features_[:-1], "lacks parts of a fitted one"),
    ):
        other = copy.copy(model)
        setattr(other, name, value)
        with pytest.raises((ModelError, UnsupportedModelError), match=said):
            read_model(other)
    naming = read_model(model).naming
    assert naming is not None
    with pytest.raises(UnsupportedModelError, match=r"not 0\.5"):
        naming({2: (0.5,)})


def test_reading_otherwise_is_noticed(table: pd.DataFrame) -> None:
    """A library that put numbers at a cut into the lower bin would be found out."""
    model = fitted(table, TASKS["two"](table)[0])
    read = read_model(model)
    other = copy.copy(model)
    other.bins_ = [[b if isinstance(b, dict) else np.nextafter(b, np.inf) for b in bins] for bins in model.bins_]
    from dataclasses import replace

    from ocf.errors import ConformanceError

    with pytest.raises(ConformanceError):
        check_conformance(replace(read, ensemble=read_model(other).ensemble))

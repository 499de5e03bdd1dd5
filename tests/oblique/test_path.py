"""The penalty of oblique trees along a path, and its choice by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocf import Explainer
from ocf.oblique import TAOClassifier, TAOClassifierCV
from ocf.oblique.path import best_path, penalty_path
from ocf.readers import read_model

PENALTIES = [100.0, 1.0, 0.05]


@parametrize_with_checks([TAOClassifierCV(2, max_iter=2, Cs=2, cv=StratifiedKFold(2))])
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    return load_breast_cancer(return_X_y=True)


def weights_used(tree: TAOClassifier) -> int:
    return np.count_nonzero(tree.tree_.weights[tree.tree_.left >= 0])


def test_each_tree_of_a_path_starts_from_the_one_before(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    settings = TAOClassifier(3, scaling="range", max_iter=3, random_state=0)
    trees = penalty_path(settings, PENALTIES, X, y)
    going = TAOClassifier(3, scaling="range", max_iter=3, random_state=0, warm_start=True)
    for C, tree in zip(PENALTIES, trees, strict=True):
        going.set_params(C=C).fit(X, y)
        assert tree.C == C
        assert np.array_equal(tree.tree_.weights, going.tree_.weights)
        assert not tree.warm_start
    assert weights_used(trees[0]) > weights_used(trees[1]) > weights_used(trees[2])
    assert trees[0].n_leaves_ >= trees[1].n_leaves_ >= trees[2].n_leaves_
    # not an iteration: the tree is that of the fit before
    still = going.set_params(max_iter=0).fit(X, y)
    assert np.array_equal(still.tree_.weights, trees[-1].tree_.weights)
    assert not hasattr(settings, "tree_")


def test_the_tree_of_another_penalty_is_no_answer_to_this_one(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    weak, strong = penalty_path(TAOClassifier(3, scaling="range", random_state=0), [1000.0, 0.05], X, y)
    assert weak.score(X, y) > strong.score(X, y)


def test_several_starts_leave_the_one_of_the_fewest_errors(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    settings = TAOClassifier(3, init="random", scaling="range", max_iter=3)
    apart = [best_path(settings, [1000.0, 30.0], X, y, [seed]) for seed in range(4)]
    best = best_path(settings, [1000.0, 30.0], X, y, range(4))
    for trees, one in zip(zip(*apart, strict=True), best, strict=True):
        scores = [tree.score(X, y) for tree in trees]
        assert min(scores) < max(scores) == one.score(X, y)
        assert one.n_leaves_ == min(t.n_leaves_ for t, score in zip(trees, scores, strict=True) if score == max(scores))


def test_the_best_penalty_in_cross_validation_is_taken(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    folds = StratifiedKFold(3)
    model = TAOClassifierCV(2, Cs=[0.01, 3.0, 300.0], cv=folds, max_iter=5, random_state=0).fit(X, y)
    assert model.Cs_.tolist() == [300.0, 3.0, 0.01]
    means = model.scores_.mean(axis=0)
    assert model.C_ == model.Cs_[means.argmax()] == model.best_estimator_.C
    seed = model.best_estimator_.random_state
    settings = TAOClassifier(2, scaling="range", max_iter=5)
    for (a, b), scores in zip(folds.split(X, y), model.scores_, strict=True):
        trees = best_path(settings, model.Cs_.tolist(), X[a], y[a], [seed])
        assert [tree.score(X[b], y[b]) for tree in trees] == scores.tolist()
    assert model.scores_.mean(axis=0).max() > 0.93


def test_on_all_rows_the_path_ends_with_the_penalty_taken(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows
    trained: list[tuple[float, int]] = []
    fit = TAOClassifier.fit

    def noted(self: TAOClassifier, X: Any, y: Any) -> TAOClassifier:
        trained.append((self.C, len(X)))
        return fit(self, X, y)

    monkeypatch.setattr(TAOClassifier, "fit", noted)
    model = TAOClassifierCV(2, Cs=[300.0, 3.0, 0.001], cv=StratifiedKFold(2), max_iter=3, random_state=0).fit(X, y)
    assert model.C_ == 3.0
    assert [C for C, n in trained if n == len(X)] == [300.0, 3.0]
    assert len(trained) == 2 * 3 + 2
    monkeypatch.undo()
    settings = TAOClassifier(2, scaling="range", max_iter=3)
    whole = best_path(settings, model.Cs_.tolist(), X, y, [model.best_estimator_.random_state])
    assert np.array_equal(model.tree_.weights, whole[1].tree_.weights)
    assert np.array_equal(model.tree_.threshold, whole[1].tree_.threshold)


def test_of_equal_penalties_the_strongest_is_taken() -> None:
    X, y = load_iris(return_X_y=True)
    kept = y < 2  # any penalty tells these apart
    model = TAOClassifierCV(1, Cs=[1.0, 10.0, 100.0], random_state=0).fit(X[kept], y[kept])
    assert (model.scores_ == 1).all()
    assert model.C_ == 1.0


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_and_zero_points_of_columns_do_not_matter(unit: float) -> None:
    X, y = load_iris(return_X_y=True)
    model = TAOClassifier(2, scaling="range", init="random", random_state=0)
    here, there = (clone(model).fit(rows, y) for rows in (X, X * 2.0 ** round(np.log2(unit)) + 8 * unit))
    assert (here.predict(X) != there.predict(X * 2.0 ** round(np.log2(unit)) + 8 * unit)).mean() < 0.02
    off = clone(model).set_params(scaling="deviation")
    here, there = (clone(off).set_params(C=0.1).fit(rows, y) for rows in (X, X + 100))
    assert (here.predict(X) != there.predict(X + 100)).mean() > 0.02  # there the zero point counts


def test_an_explainer_reads_the_chosen_tree() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = TAOClassifierCV(2, Cs=[1.0, 10.0], cv=2, random_state=0).fit(X, y)
    assert model.tree_.feature_names == tuple(X.columns)
    read = read_model(model)
    assert read.ensemble.n_outputs == 3
    answer = Explainer(model, data=X).explain(X.iloc[[0]], target=2)[0]
    assert answer.status == "optimal"
    assert answer.verified
    assert isinstance(answer.counterfactual, pd.DataFrame)
    assert model.predict(answer.counterfactual).item() == 2


@pytest.mark.parametrize("wrong", [{"Cs": [1.0, -1.0]}, {"Cs": 0}, {"n_init": 0}, {"Cs": [[1.0]]}, {"scaling": "unit"}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TAOClassifierCV(2, **wrong).fit(X, y)


def test_a_warm_start_from_other_rows_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    tree = TAOClassifier(2, warm_start=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="clone"):
        tree.fit(X[:, :2], y)

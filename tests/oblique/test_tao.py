"""The training of oblique trees by alternating optimization."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_regression
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocf.oblique.tao import TAOClassifier, TAORegressor
from ocf.oblique.tree import ObliqueTree, dot


@parametrize_with_checks(
    [TAOClassifier(max_iter=3), TAOClassifier(2, init="random", splits="axis", max_iter=3), TAORegressor(max_iter=3)]
)
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("splits", ["oblique", "axis"])
@pytest.mark.parametrize("init", ["cart", "random"])
@pytest.mark.parametrize("seed", range(3))
def test_training_error_never_rises(init: str, splits: str, seed: int) -> None:
    X, y = load_iris(return_X_y=True)
    X = X[:, :2] + np.random.default_rng(seed).normal(scale=0.3, size=(150, 2))
    tree = TAOClassifier(4, init=init, splits=splits, random_state=seed, C=0.3).fit(X, y)
    assert (np.diff(tree.loss_curve_) <= 0).all()
    start = clone(tree).set_params(max_iter=0).fit(X, y)
    greatest = 1 - start.score(X, y) if init == "cart" else 1 - np.bincount(y).max() / len(y) - 0.1
    assert tree.loss_curve_[0] <= greatest
    # the last loss is that of the tree that predicts, pruned as it is
    assert tree.loss_curve_[-1] == pytest.approx(1 - tree.score(X, y), abs=1e-12)


@settings(max_examples=15)
@given(seed=st.integers(0, 200))
def test_squared_error_never_rises(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = make_regression(60, 4, noise=20.0, random_state=seed)
    tree = TAORegressor(
        int(rng.integers(1, 4)), init=str(rng.choice(["cart", "random"])), random_state=seed, max_iter=5
    )
    tree.fit(X, y)
    assert (np.diff(tree.loss_curve_) <= 1e-9 * tree.loss_curve_[0]).all()
    assert ((tree.predict(X) - y) ** 2).mean() == pytest.approx(tree.loss_curve_[-1])


def test_oblique_trees_beat_the_greedy_tree_that_they_start_from() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    greedy = DecisionTreeClassifier(max_depth=3, random_state=0).fit(train, y_train)
    tree = TAOClassifier(3, random_state=0).fit(train, y_train)
    assert tree.score(train, y_train) > greedy.score(train, y_train)
    assert tree.score(test, y_test) > greedy.score(test, y_test) - 0.01
    assert tree.n_leaves_ <= greedy.get_n_leaves()


def test_splits_with_an_empty_side_are_pruned() -> None:
    X, y = load_iris(return_X_y=True)
    tree = TAOClassifier(5, init="random", random_state=0).fit(X, y)
    reached = np.unique(tree.apply(X))
    assert set(reached) == set(tree.tree_.leaves)
    assert tree.n_leaves_ < 32


def prunings(tree: ObliqueTree, losses: np.ndarray, v: int = 0) -> list[tuple[float, int]]:
    """Loss and number of leaves of every pruning of the subtree at v."""
    own = [(float(losses[v]), 1)]
    if tree.left[v] < 0:
        return own
    below = [prunings(tree, losses, int(child[v])) for child in (tree.left, tree.right)]
    return own + [(a + b, m + n) for a, m in below[0] for b, n in below[1]]


@pytest.mark.parametrize("kind", [TAOClassifier, TAORegressor])
@pytest.mark.parametrize("seed", range(3))
def test_pruning_is_the_best_of_all_prunings(kind: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 3))
    y = rng.integers(0, 3, 120) if kind is TAOClassifier else rng.normal(size=120)
    whole = kind(4, random_state=seed, max_iter=4).fit(X, y)
    every = prunings(whole.tree_, whole.node_losses_)
    for alpha in (0.003, 0.01, 0.03, 1.0):
        cut = whole.pruned(alpha)
        leaves = cut.tree_.leaves
        assert leaves.size == cut.n_leaves_ == np.unique(cut.apply(X)).size
        loss = cut.node_losses_[leaves].sum()
        missed = (cut.predict(X) != y) if kind is TAOClassifier else (cut.predict(X) - y) ** 2
        assert loss == pytest.approx(missed.mean())
        assert loss + alpha * len(leaves) == pytest.approx(min(a + alpha * n for a, n in every))
        trained = kind(4, random_state=seed, max_iter=4, ccp_alpha=alpha).fit(X, y)
        assert np.array_equal(trained.predict(X), cut.predict(X))
    assert cut.n_leaves_ == 1


def test_a_row_alone_and_in_a_table_take_the_same_path() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(500, 37)), rng.normal(size=37)
    together = dot(x, w)
    assert all(dot(x[[k]], w)[0] == together[k] for k in range(500))
    assert np.array_equal(dot(np.asfortranarray(x), w), together)


@pytest.mark.parametrize(
    "wrong",
    [{"max_depth": -1}, {"C": 0}, {"init": "best"}, {"splits": "curved"}, {"ccp_alpha": -0.1}, {"max_depth": 2.5}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        clone(TAOClassifier()).set_params(**wrong).fit(X, y)

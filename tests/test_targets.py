from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

from ocf.ensemble import Decision, Ensemble, FloatArray, IntArray, SplitKind
from ocf.errors import ProblemError
from ocf.readers import read_model
from ocf.targets import ClassTarget, target_from_dict


def stumps(leaf_values: FloatArray, decision: Decision, base: FloatArray | None = None) -> Ensemble:
    """One stump per pair of leaves, so that every combination of leaves can be reached. (n_trees, 2, n_outputs)."""
    n, _, n_outputs = leaf_values.shape
    root = np.arange(n) * 3
    kind = np.tile([SplitKind.AXIS, SplitKind.LEAF, SplitKind.LEAF], n).astype(np.uint8)
    inner = kind == SplitKind.AXIS
    left, right = np.full(3 * n, -1, np.int32), np.full(3 * n, -1, np.int32)
    left[root], right[root] = root + 1, root + 2
    return Ensemble(
        feature_names=tuple(f"x{j}" for j in range(n)),
        tree_offsets=np.append(root, 3 * n),
        kind=kind,
        feature=np.where(inner, np.arange(3 * n) // 3, -1).astype(np.int32),
        threshold=np.where(inner, 0.0, np.nan),
        left=left,
        right=right,
        leaf=np.where(inner, -1, np.cumsum(~inner) - 1).astype(np.int32),
        leaf_values=leaf_values.reshape(2 * n, n_outputs).astype(float),
        tree_weights=np.ones(n),
        base_score=np.zeros(n_outputs) if base is None else base,
        decision=decision,
    )


def combinations(ensemble: Ensemble) -> IntArray:
    """Every choice of one leaf per stump, (2**n_trees, n_trees)."""
    choices = np.array(list(itertools.product([0, 1], repeat=ensemble.n_trees)))
    return choices + 2 * np.arange(ensemble.n_trees)


def margins(ensemble: Ensemble, target: ClassTarget, leaves: IntArray) -> FloatArray:
    rows = target.requirements(ensemble)
    return np.array([(rows.gain[choice].sum(axis=0) - rows.need).min() for choice in leaves])


@settings(max_examples=60)
@given(st.integers(1, 5), st.integers(2, 4), st.integers(0, 10**6))
def test_votes_decide_exactly_with_argmaxs_rule_for_ties(n_trees: int, n_classes: int, seed: int) -> None:
    votes = np.eye(n_classes)[np.random.default_rng(seed).integers(0, n_classes, (n_trees, 2))]
    ensemble = stumps(votes, Decision("argmax", tuple(range(n_classes)), link="mean"))
    leaves = combinations(ensemble)
    decided = ensemble.leaf_values[leaves].sum(axis=1).argmax(axis=1)
    for k in range(n_classes):
        target = ClassTarget(k)
        np.testing.assert_array_equal(margins(ensemble, target, leaves) >= 0, decided == k)
        assert not target.requirements(ensemble).doubt.any()


@settings(max_examples=60)
@given(st.integers(1, 5), st.booleans(), st.floats(-1, 1), st.integers(0, 10**6))
def test_a_margin_beyond_doubt_decides_and_no_winner_is_excluded(
    n_trees: int, tie_is_positive: bool, base: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice([0.1, 0.2, 0.3, -0.1, -0.6], (n_trees, 2, 1))
    decision = Decision("threshold", (0, 1), threshold=0.0, tie_is_positive=tie_is_positive)
    ensemble = stumps(values, decision, np.array([round(base, 1)]))
    leaves = combinations(ensemble)
    # any order in which a library may add
    sums = [np.cumsum(np.c_[np.full(len(leaves), ensemble.base_score[0]), ensemble.leaf_values[leaves, 0]], axis=1)]
    sums.append(np.cumsum(np.c_[ensemble.leaf_values[leaves[:, ::-1], 0], np.full(len(leaves), base)], axis=1))
    for k in (0, 1):
        target = ClassTarget(k)
        doubt = target.requirements(ensemble).doubt[0]
        margin = margins(ensemble, target, leaves)
        decided = ensemble.decide(sums[0][:, -1:])
        assert (margin[decided == k] >= 0).all()
        assert (decided[margin > doubt] == k).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [RandomForestClassifier, GradientBoostingClassifier])
def test_requirements_of_trained_models(model: type, n_classes: int) -> None:
    x, y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0)
    trees = read_model(model(n_estimators=8, max_depth=3, random_state=0).fit(x, y))
    points = np.random.default_rng(0).normal(size=(500, 5))
    decided = trees.decide(points)
    leaves = trees.ensemble.apply(points)
    met = np.array([margins(trees.ensemble, ClassTarget(k), leaves) >= 0 for k in range(n_classes)])
    np.testing.assert_array_equal(met.sum(axis=0), 1)
    np.testing.assert_array_equal(met.argmax(axis=0), decided)


BINARY = stumps(np.zeros((1, 2, 1)), Decision("threshold", ("no", "yes")))
NUMBERS = stumps(np.zeros((1, 2, 3)), Decision("argmax", (1, 2, 5)))


def test_classes_are_found_by_label_or_text() -> None:
    assert ClassTarget.parse(BINARY, "yes").index == 1
    assert ClassTarget.parse(NUMBERS, 5).index == 2
    assert ClassTarget.parse(NUMBERS, "5").index == 2
    assert ClassTarget.parse(BINARY, "opposite", current=1).index == 0
    named = stumps(np.zeros((1, 2, 1)), Decision("threshold", ("same", "opposite")))
    assert ClassTarget.parse(named, "opposite", current=1).index == 1


@pytest.mark.parametrize(
    ("ensemble", "target", "message"),
    [
        (BINARY, "yess", "did you mean 'yes'"),
        (BINARY, 1, "the model has no class"),
        (BINARY, "opposite", "'opposite' needs two classes"),
        (NUMBERS, "opposite", "name one of 1, 2, 5"),
        (NUMBERS, 0, "known: 1, 2, 5"),
    ],
)
def test_targets_that_do_not_exist(ensemble: Ensemble, target: object, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        ClassTarget.parse(ensemble, target)


def test_regressors_have_no_classes() -> None:
    trees = read_model(RandomForestRegressor(2, random_state=0).fit([[0.0], [1.0]], [0.5, 1.5]))
    with pytest.raises(ProblemError, match="regressor"):
        ClassTarget.parse(trees.ensemble, 1)


def test_round_trip() -> None:
    assert target_from_dict(ClassTarget(2).to_dict()) == ClassTarget(2)
    with pytest.raises(ProblemError, match="unknown kind of target"):
        target_from_dict({"kind": "intervall"})

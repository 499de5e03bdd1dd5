from __future__ import annotations

import itertools
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from small_problems import stumps

from ocf.arrays import FloatArray, IntArray
from ocf.errors import ProblemError
from ocf.problem.requirements import Requirements
from ocf.problem.targets import (
    ClassSetTarget,
    ClassTarget,
    IntervalTarget,
    ProbabilityTarget,
    Target,
    ValueBounds,
    parse_target,
    target_from_schema,
    wanted_class,
)
from ocf.readers import read_model
from ocf.support.documents import fit
from ocf.support.schemas import TargetSchema
from ocf.trees import links
from ocf.trees.ensemble import Decision, Ensemble


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
        assert not target.requirements(ensemble).error_bound.any()


@settings(max_examples=60)
@given(st.integers(1, 5), st.booleans(), st.floats(-1, 1), st.integers(0, 10**6))
def test_a_margin_beyond_the_error_bound_decides_and_no_winner_is_excluded(
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
        error_bound = target.requirements(ensemble).error_bound[0]
        margin = margins(ensemble, target, leaves)
        decided = ensemble.decide(sums[0][:, -1:])
        assert (margin[decided == k] >= 0).all()
        assert (decided[margin > error_bound] == k).all()


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
    assert wanted_class("yes", ("no", "yes")) == wanted_class(["yes"], ("no", "yes")) == 1
    assert wanted_class(5, (1, 2, 5)) == wanted_class("5", (1, 2, 5)) == 2
    assert [wanted_class(text, (0.0, 1.0, "1")) for text in ("0", "0.0", "1.0", "1")] == [0, 0, 1, 2]
    assert wanted_class("opposite", ("no", "yes"), current=1) == 0
    assert wanted_class(["opposite"], ("same", "opposite"), current=1) == 1


@pytest.mark.parametrize(
    ("ensemble", "target", "message"),
    [
        (BINARY, "yess", "did you mean 'yes'"),
        (BINARY, 1, "there is no class"),
        (BINARY, "opposite", "'opposite' needs two classes"),
        (NUMBERS, "opposite", "name one of 1, 2, 5"),
        (NUMBERS, 0, "known: 1, 2, 5"),
        (NUMBERS, pd.NA, "no class <NA>; known: 1, 2, 5"),
    ],
)
def test_targets_that_do_not_exist(ensemble: Ensemble, target: object, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        parse_target(ensemble, target)


def test_regressors_have_no_classes() -> None:
    trees = read_model(RandomForestRegressor(2, random_state=0).fit([[0.0], [1.0]], [0.5, 1.5]))
    with pytest.raises(ProblemError, match="regressor"):
        parse_target(trees.ensemble, 1)


def fitted(data: dict[str, Any]) -> TargetSchema:
    return fit(data, TargetSchema, "the target", ProblemError)


@pytest.mark.parametrize(
    "target",
    [
        ClassTarget(2),
        ClassSetTarget((0, 2)),
        ProbabilityTarget((1,), 0.7),
        IntervalTarget(1.0, 2.5),
        IntervalTarget(-np.inf, 0.1),
    ],
)
def test_round_trip(target: Target) -> None:
    assert target_from_schema(fitted(json.loads(json.dumps(target.to_dict())))) == target


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"kind": "intervall"}, "at kind: invalid value 'intervall'"),
        ({"kind": "interval"}, "`lower` is missing"),
        ({"kind": "class", "index": -1}, "at index: expected `int` >= 0"),
        ({"kind": "classes", "indices": []}, "at indices: expected `array` of length >= 1"),
        ({"kind": "probability", "indices": [1], "probability": 70}, "at probability: expected `float` <= 1.0"),
    ],
)
def test_what_is_no_target(data: dict[str, Any], words: str) -> None:
    with pytest.raises(ProblemError, match=re.escape(f"the target is incomplete or damaged: {words}")):
        fitted(data)


# -- class sets, probabilities and intervals -------------------------------------------------------------------


def verdicts(ensemble: Ensemble, target: Target, leaves: IntArray) -> tuple[np.ndarray, np.ndarray]:
    """Which choices of leaves may have a target, and which certainly have it, by any alternative."""
    may, sure = np.zeros(len(leaves), bool), np.zeros(len(leaves), bool)
    for rows in target.alternatives(ensemble):
        margin = np.array([rows.gain[choice].sum(axis=0) - rows.need for choice in leaves])
        may |= (margin >= 0).all(axis=1)
        sure |= (margin > rows.error_bound).all(axis=1)
    return may, sure


def scores_of(ensemble: Ensemble, leaves: IntArray) -> FloatArray:
    """Scores of choices of leaves, as libraries add them up: they divide a mean last."""
    if ensemble.decision.link == "mean":
        return ensemble.leaf_values[leaves].sum(axis=1) / ensemble.n_trees
    return ensemble.base_score + ensemble.contributions[leaves].sum(axis=1)


def check(ensemble: Ensemble, target: Target, leaves: IntArray) -> None:
    """No choice that has the target misses the requirements; what exceeds the error bound has it."""
    scores = scores_of(ensemble, leaves)
    shown = links.show(ensemble, scores)
    answers = shown if ensemble.decision.kind == "value" else ensemble.decide(scores)
    met = target.met_by(answers, shown)
    may, sure = verdicts(ensemble, target, leaves)
    assert may[met].all()
    assert met[sure].all()


@given(st.integers(1, 5), st.integers(3, 5), st.integers(0, 10**6))
def test_class_sets_beat_all_others(n_trees: int, n_classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    votes = np.eye(n_classes)[rng.integers(0, n_classes, (n_trees, 2))]
    ensemble = stumps(votes, Decision("argmax", tuple(range(n_classes)), link="mean"))
    indices = tuple(sorted(rng.choice(n_classes, rng.integers(2, n_classes + 1), replace=False).tolist()))
    leaves = combinations(ensemble)
    decided = ensemble.leaf_values[leaves].sum(axis=1).argmax(axis=1)
    may, _ = verdicts(ensemble, ClassSetTarget(indices), leaves)
    np.testing.assert_array_equal(may, np.isin(decided, indices))


@given(st.integers(1, 5), st.sampled_from(["softmax", "logistic"]), st.floats(0.05, 1), st.integers(0, 10**6))
def test_probabilities(n_trees: int, link: str, probability: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_classes = 2 if link == "logistic" else 4
    decision = Decision("threshold" if n_classes == 2 else "argmax", tuple(range(n_classes)), link=link)
    n_outputs = 1 if n_classes == 2 else n_classes
    ensemble = stumps(rng.normal(size=(n_trees, 2, n_outputs)), decision, rng.normal(size=n_outputs))
    leaves = combinations(ensemble)
    shown = links.show(ensemble, ensemble.base_score + ensemble.contributions[leaves].sum(axis=1))
    for p in (probability, float(rng.choice(shown.ravel()))):
        check(ensemble, ProbabilityTarget((0,), p), leaves)
        check(ensemble, ProbabilityTarget((0, n_classes - 1), p), leaves)


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_votes_reach_a_threshold_exactly(n_trees: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    votes = np.eye(3)[rng.integers(0, 3, (n_trees, 2))]
    ensemble = stumps(votes, Decision("argmax", (0, 1, 2), link="mean"))
    object.__setattr__(ensemble, "tree_weights", np.full(n_trees, 1 / n_trees))
    leaves = combinations(ensemble)
    shown = ensemble.leaf_values[leaves].sum(axis=1) / n_trees
    for p in (int(rng.integers(1, n_trees + 1)) / n_trees, float(rng.uniform(0.01, 1))):
        target = ProbabilityTarget((1,), p)
        may, sure = verdicts(ensemble, target, leaves)
        np.testing.assert_array_equal(may, shown[:, 1] >= p)
        np.testing.assert_array_equal(sure, may)


@given(
    st.integers(1, 5),
    st.sampled_from(["identity", "mean", "exp", "logistic", "signed_square"]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_intervals(n_trees: int, link: str, whole: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, (n_trees, 2, 1)) if whole else rng.normal(size=(n_trees, 2, 1))
    ensemble = stumps(values.astype(float), Decision("value", link=link), rng.normal(size=1) * (link != "mean"))
    if link == "mean":
        object.__setattr__(ensemble, "tree_weights", np.full(n_trees, 1 / n_trees))
    leaves = combinations(ensemble)
    shown = links.show(ensemble, scores_of(ensemble, leaves))
    low, high = sorted(rng.choice([*shown, -1.0, 0.0, 0.5, 2.0], 2))
    for bounds in ((low, high), (low, np.inf), (-np.inf, high), (low, low)):
        check(ensemble, IntervalTarget(*map(float, bounds)), leaves)


def test_tangents_cut_off_what_misses_a_probability_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    ensemble = stumps(rng.normal(size=(7, 2, 4)), Decision("argmax", tuple("abcd"), link="softmax"))
    target = ProbabilityTarget((2,), 0.5)
    (rows,) = target.alternatives(ensemble)
    leaves = combinations(ensemble)
    shown = links.show(ensemble, ensemble.contributions[leaves].sum(axis=1))
    refused = [choice for choice, p in zip(leaves, shown, strict=True) if p[2] < 0.5 - 1e-9 and inside(rows, choice)]
    assert refused  # the first rows alone do not tell
    for choice in refused:
        for tighter in rows.tightened(choice):
            assert not inside(tighter, choice)
            rows = tighter
    assert all(inside(rows, choice) == (p[2] >= 0.5) for choice, p in zip(leaves, shown, strict=True))
    assert ClassTarget(1).requirements(ensemble).tightened(leaves[0]) == ()


def inside(rows: Requirements, leaves: IntArray) -> bool:
    return bool((rows.gain[leaves].sum(axis=0) >= rows.need).all())


REGRESSOR = stumps(np.ones((1, 2, 1)), Decision("value"))
VOTES = stumps(np.ones((1, 2, 3)), Decision("argmax", ("a", "b", "c"), link="mean"))


@pytest.mark.parametrize(
    ("ensemble", "said", "probability", "target"),
    [
        (VOTES, "a", None, ClassTarget(0)),
        (VOTES, ["c", "a"], None, ClassSetTarget((0, 2))),
        (VOTES, {"b"}, None, ClassTarget(1)),
        (VOTES, ("a", "a"), None, ClassTarget(0)),
        (VOTES, "b", 0.7, ProbabilityTarget((1,), 0.7)),
        (VOTES, ["c", "a"], 1, ProbabilityTarget((0, 2), 1.0)),
        (NUMBERS, np.array([5, 1]), None, ClassSetTarget((0, 2))),
        (REGRESSOR, (1, 2.5), None, IntervalTarget(1.0, 2.5)),
        (REGRESSOR, [None, np.float32(0.5)], None, IntervalTarget(-np.inf, 0.5)),
        (REGRESSOR, (3, None), None, IntervalTarget(3.0, np.inf)),
    ],
)
def test_targets_from_what_users_say(
    ensemble: Ensemble, said: object, probability: float | None, target: Target
) -> None:
    assert parse_target(ensemble, said, probability=probability) == target


@pytest.mark.parametrize(
    ("ensemble", "said", "probability", "message"),
    [
        (VOTES, [], None, "names no class"),
        (VOTES, ValueBounds(0.7, 0.9), None, "for the value of a regressor, and the model is a classifier"),
        (REGRESSOR, ValueBounds(float("nan"), None), None, r"interval \(nan, None\) is no number"),
        (VOTES, (None, 0.9), None, "for the value of a regressor, and the model is a classifier"),
        (VOTES, ["a", "z"], None, "no class 'z'"),
        (VOTES, "a", 0.0, "above 0 and up to 1"),
        (VOTES, "a", float("nan"), "above 0 and up to 1"),
        (VOTES, "a", "high", "above 0 and up to 1"),
        (BINARY, "yes", 0.7, "shows no probabilities"),
        (REGRESSOR, "opposite", None, "give the target as an interval"),
        (REGRESSOR, 3.0, None, "give the target as an interval"),
        (REGRESSOR, (1, 2, 3), None, "give the target as an interval"),
        (REGRESSOR, (float("nan"), 1), None, "is no number: give a number, or None for an open end"),
        (REGRESSOR, (2, 1), None, "is empty"),
        (REGRESSOR, (None, None), None, "open at both ends"),
        (REGRESSOR, (1, 2), 0.5, "has no probabilities"),
        (REGRESSOR, {8, 1}, None, "has no order"),
        (REGRESSOR, {3: "x", 5: "y"}, None, "is a mapping"),
        (VOTES, {"a": 1}, None, "is a mapping"),
    ],
)
def test_targets_that_mean_nothing(ensemble: Ensemble, said: object, probability: float | None, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        parse_target(ensemble, said, probability=probability)

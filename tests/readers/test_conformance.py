"""The conformance check passes exact readers and catches broken ones, whatever is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from ocf.errors import ConformanceError
from ocf.readers import read_model
from ocf.readers.base import TreeModel
from ocf.readers.conformance import check_conformance
from ocf.trees.ensemble import Ensemble, SplitKind


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(300, 5))


@pytest.fixture(scope="module")
def boosted(x: np.ndarray) -> TreeModel:
    """A model with category splits, a rule for NaN, and no two leaves alike."""
    rows = x.copy()
    rows[:, 4] = np.random.default_rng(1).integers(0, 6, 300)
    rows[::7, 1] = np.nan
    y = rows[:, 0] + 2 * np.isin(rows[:, 4], (1, 4)) + np.where(np.isnan(rows[:, 1]), 1.3, rows[:, 1])
    return read_model(
        HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=4, categorical_features=[4]).fit(rows, y)
    )


@pytest.fixture(params=[None, 300], ids=["at once", "in steps"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are asked about all at once, or a few at a time, which leaves out those that others stand in for."""
    if request.param:
        monkeypatch.setattr("ocf.readers.conformance.MAX_SCORED", request.param)


def altered(model: TreeModel, **arrays: np.ndarray) -> TreeModel:
    return replace(model, ensemble=replace(model.ensemble, **arrays))


def listening(model: TreeModel) -> tuple[TreeModel, list[np.ndarray]]:
    """The model, and a list of the points at which its library is asked for scores."""
    asked: list[np.ndarray] = []

    def scores(points: np.ndarray) -> np.ndarray:
        asked.append(points)
        return model.scores(points)

    return replace(model, scores=scores), asked


def nodes_of(ensemble: Ensemble, kind: SplitKind) -> np.ndarray:
    return np.flatnonzero(ensemble.kind == kind)


@pytest.mark.parametrize(("step", "most"), [(-np.inf, 10**9), (np.inf, 300)])
def test_every_threshold_matters(boosted: TreeModel, step: float, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocf.readers.conformance.MAX_SCORED", most)
    for node in nodes_of(boosted.ensemble, SplitKind.AXIS):
        threshold = boosted.ensemble.threshold.copy()
        if not np.isfinite(threshold[node]):
            continue
        threshold[node] = np.nextafter(threshold[node], step)
        with pytest.raises(ConformanceError) as caught:
            check_conformance(altered(boosted, threshold=threshold))
        assert f"'x{boosted.ensemble.feature[node]}'" in str(caught.value)


@pytest.mark.usefixtures("steps")
def test_every_missing_direction_matters(boosted: TreeModel) -> None:
    rule = boosted.ensemble.missing_left
    assert rule is not None
    for node in np.flatnonzero(boosted.ensemble.kind != SplitKind.LEAF):
        wrong = rule.copy()
        wrong[node] ^= True
        if _column_is_tested_above(boosted.ensemble, int(node)):
            continue  # NaN may be unable to reach it
        with pytest.raises(ConformanceError, match="missing"):
            check_conformance(altered(boosted, missing_left=wrong))


def _column_is_tested_above(ensemble: Ensemble, node: int) -> bool:
    column = ensemble.feature[node]
    while len(above := np.flatnonzero((ensemble.left == node) | (ensemble.right == node))):
        node = int(above[0])
        if ensemble.feature[node] == column:
            return True
    return False


@pytest.mark.usefixtures("steps")
def test_every_category_set_matters(boosted: TreeModel) -> None:
    assert len(boosted.ensemble.sets)
    for row in range(len(boosted.ensemble.sets)):
        sets = boosted.ensemble.sets.copy()
        sets[row] ^= True
        with pytest.raises(ConformanceError):
            check_conformance(altered(boosted, sets=sets))


def _swapped_leaves(e: Ensemble) -> dict[str, np.ndarray]:
    values = e.leaf_values.copy()
    values[[0, 1]] = values[[1, 0]]
    return {"leaf_values": values}


BREAKS: dict[str, Callable[[Ensemble], dict[str, np.ndarray]]] = {
    "leaf value": lambda e: {"leaf_values": e.leaf_values + 1e-9 * (np.arange(e.n_leaves) == 3)[:, None]},
    "leaves swapped": _swapped_leaves,
    "tree weight": lambda e: {"tree_weights": e.tree_weights * (1 + 1e-9)},
    "base score": lambda e: {"base_score": e.base_score + 1e-9},
    "children swapped": lambda e: {"left": e.right, "right": e.left},
    "thresholds as stored in float32": lambda e: {"threshold": e.threshold.astype(np.float32).astype(np.float64)},
}


@pytest.mark.parametrize("what", BREAKS)
def test_broken_reader(x: np.ndarray, what: str) -> None:
    model = read_model(GradientBoostingClassifier(n_estimators=5).fit(x, x[:, 0] + x[:, 1] > 0.3))
    check_conformance(model, x)
    with pytest.raises(ConformanceError, match="the library scores"):
        check_conformance(altered(model, **BREAKS[what](model.ensemble)), x)


def test_broken_decision(x: np.ndarray) -> None:
    model = read_model(GradientBoostingClassifier(n_estimators=5).fit(x, x[:, 0] > 0.3))
    with pytest.raises(ConformanceError, match=r"answers 0 where .* give 1"):
        check_conformance(replace(model, decide=lambda rows: np.zeros(len(rows), np.int64)), x)
    with pytest.raises(ConformanceError, match="shape"):
        check_conformance(replace(model, scores=lambda rows: np.zeros((len(rows), 3))), x)


def test_broken_value(boosted: TreeModel) -> None:
    with pytest.raises(ConformanceError, match="answers"):
        check_conformance(replace(boosted, decide=lambda rows: boosted.decide(rows) + 1e-6))


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("background", [None, "array", "table"])
def test_both_sides_of_every_reachable_split_are_asked(x: np.ndarray, background: str | None) -> None:
    model, asked = listening(read_model(RandomForestClassifier(8, random_state=0).fit(x, x[:, 0] * x[:, 1] > 0)))
    ensemble = model.ensemble
    rows = {None: None, "array": x, "table": pd.DataFrame(x)}[background]
    check_conformance(model, rows)
    points = np.concatenate(asked)
    sides = {True: np.zeros(len(ensemble.kind), bool), False: np.zeros(len(ensemble.kind), bool)}
    for tree in range(ensemble.n_trees):
        at = np.full(len(points), ensemble.tree_offsets[tree])
        walking = np.arange(len(points))
        while len(walking := walking[ensemble.kind[at[walking]] != SplitKind.LEAF]):
            node = at[walking]
            value, cut = points[walking, ensemble.feature[node]], ensemble.threshold[node]
            sides[True][node[value == cut]] = True
            sides[False][node[value == np.nextafter(cut, np.inf)]] = True
            goes = ensemble.goes_left(points, walking, node)
            at[walking] = np.where(goes, ensemble.left[node], ensemble.right[node])
    inner = ensemble.kind != SplitKind.LEAF
    assert sides[True][inner].all()
    assert sides[False][inner].all()


def test_unreachable_nodes_are_skipped(x: np.ndarray) -> None:
    model = read_model(DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, x[:, 0] > 0.3))
    e = model.ensemble
    if len(nodes_of(e, SplitKind.AXIS)) < 2:
        native = DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, x[:, 0] + x[:, 1] > 0.3)
        model = read_model(native)
        e = model.ensemble
    # on the left of the root, repeat the root's test: its right side is empty, and what hangs there has no rows
    root, below = 0, int(e.left[0])
    assert e.kind[below] == SplitKind.AXIS
    feature, threshold = e.feature.copy(), e.threshold.copy()
    feature[below], threshold[below] = feature[root], threshold[root]
    e = replace(e, feature=feature, threshold=threshold)
    model, asked = listening(replace(model, ensemble=e, scores=e.scores, decide=lambda rows: e.decide(e.scores(rows))))
    check_conformance(model, x)
    assert sum(map(len, asked[1:]))  # after the rows of x themselves
    assert not np.isinf(np.concatenate(asked)).any()


def test_single_leaf_trees() -> None:
    model = read_model(DecisionTreeClassifier().fit(np.zeros((4, 2)), [0, 1, 1, 1]))
    check_conformance(model)
    with pytest.raises(ConformanceError):
        check_conformance(altered(model, base_score=model.ensemble.base_score + 0.1))


def test_background_of_categories() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.normal(size=200), "c": rng.choice(["p", "q", "r"], 200)})
    frame.loc[::8, "c"] = None
    native = HistGradientBoostingClassifier(max_iter=4, categorical_features=["c"]).fit(frame, frame["c"] == "q")
    check_conformance(read_model(native), frame)


def test_fast_enough(x: np.ndarray) -> None:
    y = x[:, 0] + np.random.default_rng(0).normal(size=300) > 0
    model = read_model(RandomForestClassifier(100, max_depth=5, random_state=0).fit(x, y))
    model, asked = listening(model)
    check_conformance(model, x)
    # on the left, on the right and with NaN, each at every split and no more
    assert sum(map(len, asked[1:])) <= 3 * len(nodes_of(model.ensemble, SplitKind.AXIS))


def test_points_that_others_stand_in_for_are_left_out(x: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    y = (x[:, 0] + x[:, 1] > 0.3).astype(int)
    model = read_model(RandomForestClassifier(10, random_state=0).fit(np.round(x), y))
    asked = []
    for most in (10**9, 200):
        monkeypatch.setattr("ocf.readers.conformance.MAX_SCORED", most)
        own, points = listening(model)
        check_conformance(own, np.round(x))
        asked.append(sum(map(len, points)))
    assert asked[1] < asked[0] / 2

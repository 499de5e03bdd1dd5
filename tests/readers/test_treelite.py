"""Treelite models against treelite's own interpreter: every comparison, what libraries import, and checkpoints."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import treelite
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation
from xgboost import XGBClassifier, XGBRegressor

from ocf import Explainer
from ocf.errors import ConformanceError, ModelError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.readers.files import load_model
from ocf.trees.links import show

GRID = np.array(list(itertools.product(range(5), repeat=3)), np.int64)
SMALL = {"n_estimators": 3, "max_depth": 2}


def labels(n_classes: int) -> np.ndarray:
    score = GRID[:, 0] + GRID[:, 1] * (GRID[:, 2] - 1.5) + np.random.default_rng(0).normal(size=len(GRID)) / 3
    return score.argsort().argsort() * n_classes // len(GRID) if n_classes else np.exp(score / 9)


def imported(name: str) -> Any:
    kind, n_classes = name.rsplit(" ", 1)
    y = labels(int(n_classes))
    if kind == "xgboost":
        model = XGBClassifier(**SMALL) if y.dtype.kind == "i" else XGBRegressor(**SMALL)
        return treelite.frontend.from_xgboost(model.fit(GRID, y).get_booster())
    if kind == "lightgbm":
        model = LGBMClassifier(n_estimators=3, num_leaves=4, sigmoid=0.7, verbose=-1) if int(n_classes) else None
        model = model or LGBMRegressor(n_estimators=3, num_leaves=4, objective="poisson", verbose=-1)
        return treelite.frontend.from_lightgbm(model.fit(GRID, y).booster_)
    estimators = {
        "forest": RandomForestClassifier(**SMALL, random_state=0),
        "values": RandomForestRegressor(**SMALL, random_state=0),
        "boosting": GradientBoostingClassifier(**SMALL, random_state=0),
        "boosted values": GradientBoostingRegressor(**SMALL, random_state=0),
        "histograms": HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, min_samples_leaf=3),
    }
    return treelite.sklearn.import_model(estimators[kind].fit(GRID, y))


def drawn(seed: int, single: bool = True, op: str = "") -> Any:
    """A random model of three regression trees with any comparison."""
    rng, kind = np.random.default_rng(seed), "float32" if single else "float64"
    builder = ModelBuilder(
        threshold_type=kind,
        leaf_output_type=kind,
        metadata=Metadata(
            num_feature=3,
            task_type="kRegressor",
            average_tree_output=False,
            num_target=1,
            num_class=[1],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=TreeAnnotation(num_tree=3, target_id=[0] * 3, class_id=[0] * 3),
        postprocessor=PostProcessorFunc(name="identity"),
        base_scores=[float(rng.normal())],
    )
    for _ in range(3):
        builder.start_tree()
        for node in range(7):
            builder.start_node(node)
            if node < 3:
                builder.numerical_test(
                    feature_id=int(rng.integers(3)),
                    threshold=float(np.dtype(kind).type(rng.choice([0, 1, 2, 3, 4, 0.1, 2.5, 1 / 3]))),
                    default_left=bool(rng.integers(2)),
                    opname=op or ["<", "<=", ">", ">=", "=="][rng.integers(5)],
                    left_child_key=2 * node + 1,
                    right_child_key=2 * node + 2,
                )
            else:
                builder.leaf(float(np.dtype(kind).type(rng.normal())))
            builder.end_node()
        builder.end_tree()
    return builder.commit()


IMPORTED = (
    *("xgboost 0", "xgboost 2", "xgboost 3", "lightgbm 0", "lightgbm 2", "lightgbm 3", "forest 2", "forest 3"),
    *("values 0", "boosting 2", "boosting 3", "boosted values 0", "histograms 2", "histograms 3"),
)


def shown_by_gtil(model: Any, rows: np.ndarray) -> np.ndarray:
    found = treelite.gtil.predict(model, rows.astype(model.input_type), nthread=1)
    return np.asarray(found).reshape(len(rows), -1)


def beside(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(float)
    holes = np.where(np.random.default_rng(1).random(rows.shape) < 0.2, np.nan, rows)
    return np.concatenate([rows, np.nextafter(rows, -np.inf), np.nextafter(rows, np.inf), rows + 0.5, holes])


@pytest.mark.parametrize("name", IMPORTED)
def test_imported_models_answer_as_the_interpreter_does(name: str) -> None:
    model = imported(name)
    read = read_model(model)
    check_conformance(read, GRID.astype(float))
    rows = beside(GRID)
    shown, ours = shown_by_gtil(model, rows), show(read.ensemble, read.ensemble.scores(rows))
    assert len(read.classes) == int(name[-1])
    if not read.classes:
        np.testing.assert_allclose(ours, shown[:, 0], rtol=1e-5)
        return
    assert read.probabilities is not None
    np.testing.assert_allclose(read.probabilities(rows), ours, atol=1e-6)
    np.testing.assert_allclose(ours[:, -1], shown[:, -1], atol=1e-6)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", ""])
def test_every_comparison_is_read_exactly(single: bool, op: str) -> None:
    for seed in range(3):
        model = drawn(seed, single, op)
        read = read_model(model)
        check_conformance(read)
        rows = beside(GRID)
        np.testing.assert_allclose(read.ensemble.scores(rows), shown_by_gtil(model, rows), atol=1e-5)


@pytest.mark.parametrize("name", ["xgboost 3", "lightgbm 2", "forest 2", "values 0", "drawn"])
def test_explanations_equal_brute_force(name: str) -> None:
    model = drawn(5) if name == "drawn" else imported(name)
    shown = shown_by_gtil(model, GRID)
    explainer = Explainer(model, data=GRID)
    for row in (7, 60, 111):
        if not explainer.classes:
            bound = float(np.quantile(shown, 0.8))
            target, wanted = (bound, None), shown[:, 0] >= bound
        else:
            answers = shown.argmax(axis=1) if shown.shape[1] > 1 else (shown[:, 0] > 0.5).astype(int)
            target = int((answers[row] + 1) % len(explainer.classes))
            wanted = answers == target
        best = (np.abs(GRID - GRID[row]).sum(axis=1) / 4)[wanted].min()
        found = explainer.explain(GRID[[row]], target=target)[0]
        assert (found.status, found.verified) == ("optimal", True)
        assert found.cost == pytest.approx(best, abs=1e-9)


def test_a_threshold_that_is_moved_is_noticed() -> None:
    read = read_model(imported("xgboost 2"))
    threshold = read.ensemble.threshold.copy()
    inner = np.flatnonzero(np.isfinite(threshold))[0]
    threshold[inner] = np.nextafter(threshold[inner], -np.inf)
    with pytest.raises(ConformanceError, match="differs from treelite"):
        check_conformance(replace(read, ensemble=replace(read.ensemble, threshold=threshold)))


@pytest.mark.parametrize("kind", ["xgboost 2", "lightgbm 3", "forest 3", "boosted values 0", "histograms 2"])
def test_checkpoints_are_known_by_their_content_and_checked_before_they_are_opened(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    imported(kind).serialize(str(path))
    found = load_model(path)
    assert found.dump_as_json() == imported(kind).dump_as_json()
    check_conformance(read_model(found))


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    path, good = tmp_path / "model.tl", bytes(imported("xgboost 2").serialize_bytes())
    rng = np.random.default_rng(0)
    for size in rng.integers(13, len(good), 20).tolist():
        path.write_bytes(good[:size])
        with pytest.raises(ModelError, match="the file ends within numbers"):
            load_model(path)
    for damaged, words in [
        (good + b"0", "1 bytes follow the last tree"),
        (good[:14] + (2**40).to_bytes(8, "little") + good[22:], "1099511627776 trees"),
        ((5).to_bytes(4, "little") + good[4:], r"treelite 5.*Model.deserialize\(path\)"),
    ]:
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match=words):
            load_model(path)
    flags = len(good) - 8  # gains stand before the last flags and two numbers
    n = next(k for k in range(1, 100) if int.from_bytes(good[flags - k - 8 : flags - k], "little") == k)
    path.write_bytes(good[: flags - n - 16 - 8 * n] + bytes(8) + good[flags - n - 8 :])
    with pytest.raises(ModelError, match="an array of"):
        load_model(path)
    refused = 0
    for place in range(12, len(good), 7):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x81]) + good[place + 1 :])
        try:  # a number that is no count or place may be any other
            read_model(load_model(path))
        except ModelError:
            refused += 1
    assert refused > len(good) / 7 / 4


def test_batches_go_to_other_processes() -> None:
    model = imported("forest 3")
    read = read_model(model)
    again = pickle.loads(pickle.dumps(read))
    np.testing.assert_array_equal(again.decide(GRID), read.decide(GRID))
    found = Explainer(model, data=GRID).explain(GRID[[3, 60]], target=1, n_jobs=2, progress=False)
    assert [answer.status for answer in found] == ["optimal", "optimal"]


def test_what_is_not_read_is_refused_by_name() -> None:
    x = GRID.astype(float)
    with pytest.raises(UnsupportedModelError, match="kIsolationForest"):
        read_model(treelite.sklearn.import_model(IsolationForest(n_estimators=3, random_state=0).fit(x)))
    several = RandomForestRegressor(**SMALL).fit(x, x[:, :2])
    with pytest.raises(UnsupportedModelError, match="2 targets at once"):
        read_model(treelite.sklearn.import_model(several))
    words = LGBMClassifier(n_estimators=2, min_child_samples=2, min_data_per_group=2, cat_smooth=0, verbose=-1)
    words.fit(x, labels(2), categorical_feature=[0, 1, 2])
    with pytest.raises(UnsupportedModelError, match="categorical_test_node"):
        read_model(treelite.frontend.from_lightgbm(words.booster_))
    hinge = XGBClassifier(**SMALL, objective="binary:hinge").fit(x, labels(2))
    with pytest.raises(UnsupportedModelError, match="'hinge'"):
        read_model(treelite.frontend.from_xgboost(hinge.get_booster()))

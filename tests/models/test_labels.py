"""Labels of the data in the place of what the model says of its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from ocf import CounterfactualDiscretizer, CounterfactualRules, Explainer, Explanations
from ocf.errors import DataError, ProblemError
from ocf.models.labels import LabelledRows, as_classes, class_array, labelled
from ocf.problem.targets import parse_target
from ocf.verify.files import verify_file

FAST = {"trees": 10, "samples": 16}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"income": rng.normal(3, 1, 150), "debt": rng.normal(2, 1, 150)})


@pytest.fixture(scope="module")
def labels(table: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Of which a quarter are not what the model, a weak one, makes of them."""
    flipped = np.random.default_rng(1).random(len(table)) < 0.25
    return np.where((table["income"] > table["debt"]) ^ flipped, "good", "bad")


@pytest.fixture(scope="module")
def model(table: pd.DataFrame, labels: Any) -> RandomForestClassifier:
    return RandomForestClassifier(4, max_depth=2, random_state=0).fit(table, labels)


def test_the_rows_of_the_target_are_those_with_its_label(table: Any, labels: Any, model: Any, tmp_path: Path) -> None:
    refused = table[model.predict(table) == "bad"].iloc[:2]
    explainer = Explainer(model, table, labels=labels)
    by_label = explainer.explain(refused, "good", plausibility=FAST)
    by_model = explainer.explain(refused, "good", plausibility={**FAST, "by": "prediction"})
    detectors = {d.rows.by: d for d in explainer.prepared.detectors}
    expected = {"label": table[labels == "good"], "prediction": table[model.predict(table) == "good"]}
    for by, found in (("label", by_label), ("prediction", by_model)):
        pd.testing.assert_frame_equal(detectors[by].rows.table, expected[by].reset_index(drop=True))
        depths = detectors[by].measure(expected[by])[0]
        assert detectors[by].least == np.quantile(depths, 0.1, method="lower")
        for e in found:
            assert (e.status, e.verified) == ("optimal", True)
            assert (e.plausibility["by"], e.plausibility["rows"]) == (by, len(expected[by]))
            words = {"label": "by their labels", "prediction": "by the model's answers"}[by]
            assert f"by {len(expected[by])} rows of the data that have the target {words}" in str(e)
    assert detectors["label"].least != detectors["prediction"].least
    path = tmp_path / "found.json"
    by_label.to_json(path)
    assert json.loads(path.read_text())["rows"][0]["plausibility"]["by"] == "label"
    assert Explanations.from_json(path) == by_label
    assert all(v.ok for _, v in verify_file(path, explainer.model))


def test_without_labels_the_model_says_it(table: Any, model: Any) -> None:
    explainer = Explainer(model, table)
    (e,) = explainer.explain(table.iloc[[0]], plausibility=FAST)
    assert e.plausibility["by"] == "prediction"
    with pytest.raises(ProblemError, match=r"by label needs the labels of the data: Explainer\(…, labels=y\)"):
        explainer.problem(table.iloc[[0]], plausibility={**FAST, "by": "label"})
    with pytest.raises(ProblemError, match="by = 'labels' should be 'prediction' or 'label'"):
        explainer.explain(table.iloc[[0]], plausibility={**FAST, "by": "labels"})


def test_a_depth_and_a_forest_of_the_users_own_rest_on_no_rows(table: Any, labels: Any, model: Any) -> None:
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=10, random_state=0).fit(table.to_numpy())
    explainer = Explainer(model, table, labels=labels)
    (e,) = explainer.explain(table.iloc[[0]], plausibility={"forest": forest, "depth": 2.0})
    assert "by" not in e.plausibility
    (e,) = explainer.explain(table.iloc[[0]], plausibility={"forest": forest})
    assert e.plausibility["by"] == "label"


def test_values_of_a_regressor(table: Any) -> None:
    values = table["income"] - table["debt"] + np.random.default_rng(2).normal(0, 1, len(table))
    model = RandomForestRegressor(4, max_depth=2, random_state=0).fit(table, values)
    explainer = Explainer(model, table, labels=list(values))
    (e,) = explainer.explain(table.iloc[[0]], (1.0, None), plausibility=FAST)
    assert (e.plausibility["by"], e.plausibility["rows"]) == ("label", int((values >= 1).sum()))


def test_labels_come_in_any_kind(table: pd.DataFrame) -> None:
    classes = (0, 1)
    target = parse_target_of(classes)
    short = table.iloc[:3]
    for said in ([0, 1, None], ["0", "1", None], pd.Series([0, 1, None]), pl.Series([0, 1, None])):
        rows = LabelledRows.of(short, said, classes).with_target(target)
        assert list(rows.index) == [1]
    assert labelled(classes, target, [1, 5]).tolist() == [True, False]


def parse_target_of(classes: tuple[int, ...]) -> Any:
    data = pd.DataFrame({"x": [0.0, 1.0]})
    ensemble = Explainer(RandomForestClassifier(1, bootstrap=False).fit(data, list(classes)), data).prepared.ensemble
    return parse_target(ensemble, 1, 0, None)


def test_bad_labels(table: Any, model: Any, labels: Any) -> None:
    for given, words in (
        (labels[:-1], "149 labels for 150 rows of the data: give one for each row"),
        (["god", *labels[1:]], r"no class 'god' \(did you mean 'good'\?\)"),
    ):
        with pytest.raises(DataError, match=words):
            Explainer(model, table, labels=given)
    with pytest.raises(DataError, match="give data, too"):
        Explainer(model, None, Explainer(model, table).space, labels=labels)
    few = np.where(np.arange(len(labels)) == 0, "good", "bad")
    (e,) = Explainer(model, table, labels=few).explain(table.iloc[[0]], "good", plausibility=FAST)
    assert "1 rows of the data have the target by their labels, too few" in e.message


def test_classes_beyond_int64_stay_whole(table: pd.DataFrame) -> None:
    names = np.array([5, 2**63 + 1, 2**63 + 2], np.uint64)
    for one, dtype in [(names.tolist(), "uint64"), ([0, 1], "int64"), ([True, False], "bool"), (["a", "b"], "<U1")]:
        assert (class_array(one).tolist(), str(class_array(one).dtype)) == (one, dtype)
    labels = names[np.digitize(table["income"] - table["debt"], [0.5, 1.5])]
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(table, labels)
    rules = CounterfactualRules(model, table)
    assert rules.classes == tuple(names.tolist())
    assert rules.local(table.iloc[[0]], str(names[1])).target == str(names[1])
    assert CounterfactualDiscretizer(model, prefit=True).fit(table, labels).classes_.tolist() == names.tolist()


def test_labels_are_looked_up_as_targets_are() -> None:
    assert as_classes(["1", 0, np.nan, "1.0", 1.0], (0, 1)) == [1, 0, None, 1, 1]
    with pytest.raises(DataError, match="column 'y': there is no class '2'; known: 0, 1"):
        as_classes([0, "2"], (0, 1), "column 'y'")

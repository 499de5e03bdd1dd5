"""What a problem file says of questions holds where nothing else is said, and is never passed over."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import ProblemError

FEW = ["worst perimeter", "worst concave points", "worst texture", "mean texture"]

SAID = """
[solve]
target = 1
norm = "l0"
features_to_vary = ["worst perimeter", "worst texture", "mean texture"]
n_explanations = 2

[plausibility]
trees = 10
seed = 3
"""


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return load_breast_cancer(as_frame=True).data[FEW]


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> RandomForestClassifier:
    return RandomForestClassifier(15, max_depth=4, random_state=0).fit(table, load_breast_cancer().target)


def read(model: RandomForestClassifier, table: pd.DataFrame, path: Path, text: str, **given: object) -> Explainer:
    path.write_text(text, encoding="utf-8")
    return Explainer(model, table, str(path), **given)


def test_questions_are_as_the_file_says(model: RandomForestClassifier, table: pd.DataFrame, tmp_path: Path) -> None:
    by_file = read(model, table, tmp_path / "problem.toml", SAID)
    rows = table[model.predict(table) == 0].iloc[[0, 1]]
    wish = {"trees": 10, "seed": 3}
    vary = ["worst perimeter", "worst texture", "mean texture"]
    asked = {"target": 1, "norm": "l0", "features_to_vary": vary, "n_explanations": 2, "plausibility": wish}
    plain = Explainer(model, table)
    by_hand = plain.explain(rows, **asked)
    found = by_file.explain(rows)
    assert [e.cost for e in found] == [e.cost for e in by_hand]
    pd.testing.assert_frame_equal(*(e.to_frame().drop(columns="seconds") for e in (found, by_hand)))
    assert max(e.rank for e in found) == 2
    problem = by_file.problem(rows.iloc[[0]])
    assert problem.cost == plain.problem(rows.iloc[[0]], norm="l0").cost
    assert problem.space == plain.problem(rows.iloc[[0]], features_to_vary=vary).space


def test_what_is_given_goes_before(model: RandomForestClassifier, table: pd.DataFrame, tmp_path: Path) -> None:
    by_file = read(model, table, tmp_path / "problem.toml", SAID)
    rows = table[model.predict(table) == 0].iloc[[0]]
    given = {"norm": "l1", "features_to_vary": "all", "n_explanations": 1, "plausibility": None}
    (free,) = by_file.explain(rows, "opposite", **given)
    (due,) = Explainer(model, table).explain(rows)
    assert free.cost == due.cost
    pd.testing.assert_frame_equal(free.counterfactual, due.counterfactual)


def test_regions_take_their_part(model: RandomForestClassifier, table: pd.DataFrame, tmp_path: Path) -> None:
    vary = '["worst perimeter", "worst concave points"]'
    text = f"[solve]\ntarget = 1\nmargin = 0.1\nfeatures_to_vary = {vary}\ntime_limit = 1e4\n"
    by_file = read(model, table, tmp_path / "problem.toml", text)
    row = table[model.predict(table) == 0].iloc[[0]]
    found = by_file.counterfactual_regions(row, radius=0.7).to_frame()
    due = Explainer(model, table).counterfactual_regions(row, 1, radius=0.7, features_to_vary=FEW[:2])
    pd.testing.assert_frame_equal(found, due.to_frame())
    assert len(found)


def test_a_saved_explainer_keeps_it(model: RandomForestClassifier, table: pd.DataFrame, tmp_path: Path) -> None:
    by_file = read(model, table, tmp_path / "problem.toml", SAID)
    by_file.save(tmp_path / "kept.ocf")
    assert Explainer.load(tmp_path / "kept.ocf", trust_pickle=True).said == by_file.said


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[solve]\nimputations = "draws.csv"\n', "imputations"),
        ('[plausibility]\nforest = "forest.joblib"\n', "the forest itself"),
        ('[plausibility]\nlabel = "paid"\n', "the labels"),
    ],
)
def test_what_only_a_command_looks_up_is_refused(
    model: RandomForestClassifier, table: pd.DataFrame, tmp_path: Path, text: str, named: str
) -> None:
    with pytest.raises(ProblemError, match=named):
        read(model, table, tmp_path / "problem.toml", text)


def test_labels_beside_the_file_will_do(model: RandomForestClassifier, table: pd.DataFrame, tmp_path: Path) -> None:
    text = '[plausibility]\nlabel = "benign"\n'
    by_file = read(model, table, tmp_path / "problem.toml", text, labels=load_breast_cancer().target)
    assert by_file.said == {"plausibility": True}


def test_wrong_arguments_are_named_as_ever(model: RandomForestClassifier, table: pd.DataFrame, tmp_path: Path) -> None:
    by_file = read(model, table, tmp_path / "problem.toml", SAID)
    with pytest.raises(TypeError, match="targets"):
        by_file.explain(table.iloc[[0]], targets=1)
    with pytest.raises(TypeError, match="'X'"):
        by_file.explain()

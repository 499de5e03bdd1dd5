"""Checkpoints of batches: what is finished is taken over, and nothing else is."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf import Explainer, LinearExplainer
from ocf.errors import DataError
from ocf.problem.problem_file import with_interval

from .people import refused

#: Ways to fill gaps.
HOW = ("mean", "median")


def posed(explainer, monkeypatch, stop_at=None) -> list:
    """Labels of the rows that are asked about from now on; Ctrl-C comes at one of them."""
    pose, calls = explainer.asking.pose, []

    def counting(row, task):
        calls.append(row.label)
        if stop_at is not None and len(calls) == stop_at + 1:  # the first one is for the fingerprint
            raise KeyboardInterrupt
        return pose(row, task)

    monkeypatch.setattr(explainer.asking, "pose", counting)
    return calls


@pytest.mark.parametrize("settings", [{}, {"n_explanations": 2}, {"norm": "l0", "n_optimal": 2}])
def test_a_batch_that_was_stopped_goes_on(credit, monkeypatch, tmp_path, settings) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:5]
    whole = explainer.explain(rows, target="granted", **settings)
    path = tmp_path / "rows.jsonl"
    with monkeypatch.context() as patch:
        posed(explainer, patch, stop_at=3)
        found = explainer.explain(rows, target="granted", checkpoint=path, **settings)
    assert [e.status for e in found if e.rank == 1] == ["optimal"] * 2 + ["interrupted"] * 3
    assert len(path.read_text().splitlines()) == 1 + 2
    with monkeypatch.context() as patch:
        calls = posed(explainer, patch)
        found = explainer.explain(rows, target="granted", checkpoint=path, **settings)
        assert calls[1:] == list(rows.index[2:])
        assert explainer.explain(rows, target="granted", checkpoint=path, **settings) == found
        assert len(calls) == 1 + 3 + 1
    assert [(e.row, e.rank, e.status, e.cost) for e in found] == [(e.row, e.rank, e.status, e.cost) for e in whole]
    assert len(path.read_text().splitlines()) == 1 + 5
    for own, other in zip(found, whole, strict=True):
        pd.testing.assert_frame_equal(own.original, other.original)
        pd.testing.assert_frame_equal(own.counterfactual, other.counterfactual)
        pd.testing.assert_frame_equal(own.changes, other.changes)
        assert str(own) == str(other)


def test_what_failed_is_done_again(credit, monkeypatch, tmp_path) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:3]
    pose = explainer.asking.pose

    def failing(row, task):
        if row.label == rows.index[1]:
            raise RuntimeError("boom")
        return pose(row, task)

    with monkeypatch.context() as patch:
        patch.setattr(explainer.asking, "pose", failing)
        found = explainer.explain(rows, target="granted", checkpoint=tmp_path / "rows")
    assert [e.status for e in found] == ["optimal", "error", "optimal"]
    calls = posed(explainer, monkeypatch)
    found = explainer.explain(rows, target="granted", checkpoint=tmp_path / "rows")
    assert [e.status for e in found] == ["optimal"] * 3
    assert calls[1:] == [rows.index[1]]


@pytest.mark.parametrize("failure", [MemoryError(), RuntimeError("boom")], ids=["memory", "fault"])
def test_a_later_row_that_fails_is_its_own_error(credit, monkeypatch, tmp_path, failure) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:3]
    rows = pd.concat([rows.iloc[:2], table[model.predict(table) == "granted"].iloc[:1]])  # the last is of another kind
    pose = explainer.asking.pose

    def failing(row, task):
        if row.label == rows.index[2]:
            raise failure
        return pose(row, task)

    monkeypatch.setattr(explainer.asking, "pose", failing)
    found = explainer.explain(rows, target="granted", checkpoint=tmp_path / "rows")
    assert [e.status for e in found] == ["optimal", "optimal", "error"]


def test_bounds_are_one_question_however_they_are_given(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(80, 2)), columns=list("ab"))
    explainer = Explainer(RandomForestRegressor(3, max_depth=2, random_state=0).fit(x, x.a + x.b), data=x)
    settings = with_interval({"at_least": 0.2, "at_most": 0.9})
    first = explainer.explain(x.iloc[:3], checkpoint=tmp_path / "rows", **settings)
    assert explainer.explain(x.iloc[:3], target=(0.2, 0.9), checkpoint=tmp_path / "rows") == first
    with pytest.raises(DataError, match="different in target:"):
        explainer.explain(x.iloc[:3], target=(0.2, 0.8), checkpoint=tmp_path / "rows")


def test_a_checkpoint_of_something_else_is_refused(credit, tmp_path) -> None:
    table, model, explainer = credit
    rows, path = refused(table, model).iloc[:3], tmp_path / "rows"
    explainer.explain(rows, target="granted", checkpoint=path)
    before = path.read_bytes()
    changed = rows.assign(income=rows.income + 1)
    problem = "the features, the cost or the model's steps"
    others = [
        (rows, {"norm": "l0"}, problem),
        (rows, {"time_limit": 9.0}, "time_limit"),
        (rows, {"n_explanations": 2}, "n_explanations or diversity"),
        (rows, {"features_to_vary": ["income"]}, problem),
        (rows, {"options": {"presolve": "off"}, "solver": "highs"}, "solver, options"),
        (rows.iloc[:2], {}, "the rows"),
        (rows.iloc[::-1], {}, "the rows"),
        (changed, {}, "the rows"),
    ]
    for asked, settings, differing in others:
        with pytest.raises(DataError, match=f"belongs to another question, different in {differing}: give another"):
            explainer.explain(asked, target="granted", checkpoint=path, **settings)
    assert path.read_bytes() == before
    # neither the processes nor the progress bar change an answer
    again = explainer.explain(rows, target="granted", checkpoint=path, progress=False, n_jobs=2, log=True)
    assert [e.status for e in again] == ["optimal"] * 3


def test_a_saved_explainer_goes_on_from_a_checkpoint(tmp_path) -> None:
    table = pd.DataFrame({"a": np.arange(60) % 9, "b": np.arange(60) % 7 / 7})
    answers = (table.a * 0.2 + table.b > 1).astype(int)
    explainer = Explainer(HistGradientBoostingClassifier(max_iter=3).fit(table, answers), table)
    explainer.save(tmp_path / "saved")
    rows = pd.concat([table[answers == 0][:1], table[answers == 1][:1]])  # of two kinds
    first = explainer.explain(rows, checkpoint=tmp_path / "rows")
    again = Explainer.load(tmp_path / "saved", trust_pickle=True).explain(rows, checkpoint=tmp_path / "rows")
    assert again == first


def test_the_default_time_limit_is_the_same_question_as_that_limit(tmp_path) -> None:
    table = pd.DataFrame({"a": np.arange(20), "b": np.arange(20) % 7})
    explainer = Explainer(RandomForestClassifier(3, max_depth=2, random_state=0).fit(table, table.a > 9), table)
    first = explainer.explain(table.iloc[:2], checkpoint=tmp_path / "rows")
    assert explainer.explain(table.iloc[:2], checkpoint=tmp_path / "rows", time_limit=60) == first


def test_the_checkpoint_of_another_model_is_refused(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(80, 2)), columns=list("ab"))
    y = (x.a + x.b > 0).astype(int)
    makers = (
        lambda y: Explainer(RandomForestClassifier(3, max_depth=2, random_state=0).fit(x, y), data=x),
        lambda y: LinearExplainer(LogisticRegression().fit(x, y), data=x),
    )
    for number, make in enumerate(makers):
        path = tmp_path / str(number)
        for _ in range(2):  # the same model, read anew
            assert all(e.verified for e in make(y).explain(x.iloc[:2], checkpoint=path))
        assert len(path.read_text().splitlines()) == 3
        with pytest.raises(DataError, match=r"different in the (model|features, the cost or the model's steps):"):
            make((x.a + 2 * x.b > 0).astype(int)).explain(x.iloc[:2], checkpoint=path)


@pytest.mark.parametrize("what", ["what fills gaps", "the scale of what the first row lacks", "the forest beside it"])
def test_steps_that_the_first_row_does_not_show_are_part_of_the_model(tmp_path, what) -> None:
    """Trees and first row are the same; a later row has a gap, or a value, of which the steps make something else."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.lognormal(size=(200, 2)), columns=list("ab"))
    y = ((x.a > 1) & (x.b < 1)).to_numpy(int)
    gaps = x.assign(b=x.b.where(rng.random(200) < 0.8))
    rows = pd.DataFrame({"a": [0.5, 0.6, 0.4], "b": [0.9, np.nan, np.nan]})
    plausibility: Any = None

    def pipeline(*steps: Any, table: pd.DataFrame) -> Any:
        return make_pipeline(*steps, RandomForestClassifier(5, max_depth=3, random_state=0)).fit(table, y)

    if what == "what fills gaps":
        first, second = (pipeline(SimpleImputer(strategy=how), table=x) for how in HOW)
    elif what == "the scale of what the first row lacks":
        first = pipeline(StandardScaler(), SimpleImputer(), table=gaps)
        second = pickle.loads(pickle.dumps(first))
        second[0].scale_[1] *= 1.5
        second[1].statistics_[1] = first[1].statistics_[1]
        rows = rows.iloc[::-1]
    else:
        first = second = pipeline(SimpleImputer(), table=x)
        forests = [
            make_pipeline(SimpleImputer(strategy=how), IsolationForest(n_estimators=5, random_state=0)) for how in HOW
        ]
        plausibility = [{"forest": forest.fit(x), "depth": 3.0} for forest in forests]
    settings = [{"plausibility": own} for own in plausibility or [None, None]]
    Explainer(first, x).explain(rows, target=1, checkpoint=tmp_path / "rows", **settings[0])
    Explainer(first, x).explain(rows, target=1, checkpoint=tmp_path / "rows", **settings[0])
    with pytest.raises(DataError, match=r"different in .*the model's steps:"):
        Explainer(second, x).explain(rows, target=1, checkpoint=tmp_path / "rows", **settings[1])


def test_damaged_lines_are_put_aside(credit, tmp_path) -> None:
    table, model, explainer = credit
    rows, path = refused(table, model).iloc[:3], tmp_path / "rows"
    explainer.explain(rows, target="granted", checkpoint=path)
    head, first, second, third = path.read_text().splitlines()
    wrong = json.loads(second)
    wrong["rows"][0]["status"] = "superb"
    path.write_text("\n".join([head, first, json.dumps(wrong), third.replace('"row": 2', '"row": 7', 1), ""]))
    found = explainer.explain(rows, target="granted", checkpoint=path)
    assert [(e.row, e.status) for e in found] == [(label, "optimal") for label in rows.index]
    assert len((tmp_path / "rows.unreadable").read_text().splitlines()) == 2


def test_what_is_taken_over_has_the_labels_and_dtypes_of_the_rows(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.normal(size=80).astype("float32"), "k": rng.integers(0, 9, 80).astype("int8")})
    x["open"] = rng.integers(0, 2, 80).astype(bool)
    y = np.where((x.a > 0) & x.open | (x.k > 6), "yes", "no")
    explainer = Explainer(RandomForestClassifier(3, max_depth=3, random_state=0).fit(x, y), data=x)
    rows = x.iloc[:4].set_index(pd.date_range("2020", periods=4))
    first, again = (explainer.explain(rows, checkpoint=tmp_path / "rows") for _ in range(2))
    assert first == again
    assert first[0].problem is not None
    assert again[0].problem is None  # it was taken over
    for own, other in zip(first, again, strict=True):
        assert (own.row, type(own.row)) == (other.row, type(other.row))
        pd.testing.assert_frame_equal(own.counterfactual, other.counterfactual)
    pd.testing.assert_frame_equal(first.to_frame(), again.to_frame())

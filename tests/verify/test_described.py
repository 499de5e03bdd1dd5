"""Files whose descriptions, amounts and verdicts were tampered with are refused, and honest ones of all kinds pass."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ocf import Budget, Explainer, Implication, Linear, LinearExplainer
from ocf.errors import DataError
from ocf.models.user_model import as_user_model
from ocf.verify.files import verify_file

Record = dict[str, Any]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 300
    columns = {"a": rng.integers(0, 20, n), "b": rng.normal(size=n).round(2), "c": rng.choice([0, 1, 2, 3], n)}
    jobs = rng.choice(["x", "y", "z"], n)
    indicators = {f"job_{job}": (jobs == job).astype(int) for job in "xyz"}
    return pd.DataFrame(columns | {"d": rng.random(n) < 0.5} | indicators | {"id": 2**53 + 2 * rng.integers(0, 9, n)})


@pytest.fixture(scope="module")
def honest(table: pd.DataFrame) -> tuple[Any, Record]:
    """A model, and the record of an answer that changes a number and a category of indicators."""
    y = ((table.b > 0.5) & (table.job_x == 1)).astype(int)
    model = DecisionTreeClassifier(random_state=0).fit(table, y)
    features = {"c": {"kind": "ordinal", "levels": [0, 1, 2, 3]}, "a": {"cost": {"points": [[0, 0], [20, 3]]}}}
    rows = table[(table.b < 0) & (table.job_y == 1)].iloc[[0]]
    return model, Explainer(model, table, features).explain(rows, target=1)[0].to_dict()


def problems(record: Record, model: Any, tmp_path: Path) -> str:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(record))
    ((_, found),) = verify_file(path, as_user_model(model))
    assert found.ok != bool(found.problems)
    return " ".join(found.problems)


def feature(record: Record, name: str) -> Record:
    return next(f for f in record["features"]["features"] if f["name"] == name)


def free(record: Record) -> None:
    """The answer at no cost."""
    record["cost"] = record["bound"] = 0.0


def _left_out(record: Record) -> None:
    record["features"]["features"].remove(feature(record, "b"))


def _moved_id(record: Record) -> None:
    feature(record, "id")["action"] = "fixed"
    old = record["original"]["values"]["id"]
    record["counterfactual"]["values"]["id"] = old + 1
    record["changes"].append({"feature": "id", "from": old, "to": old + 1, "change": 1.0, "cost": 0.0})


def called_infeasible(record: Record) -> None:
    """No answer, and the claim that there is none."""
    record.update(status="infeasible", counterfactual=None, cost=None, decided=None, bound="inf", changes=[], gap="inf")
    record["probabilities"].pop()
    record.update(verified=False, partway=None)


def _constrain(*constraints: Any) -> Callable[[Record], Any]:
    return lambda record: record["constraints"].extend(constraints)


LIES: dict[str, tuple[Callable[[Record], Any], str]] = {
    "left out": (_left_out, "'b' is described by 0 features"),
    "twice": (
        lambda r: r["features"]["features"].append(feature(r, "b") | {"name": "e"}),
        "'b' is described by 2 features",
    ),
    "one name": (lambda r: feature(r, "c").update(name="b"), "2 features are called 'b'"),
    "a duration": (lambda r: feature(r, "b").update(dtype="timedelta"), "'b' is described as timedelta, but the orig"),
    "narrow": (lambda r: feature(r, "b").update(dtype="float16"), "'b' is described as float16"),
    "scale 0": (lambda r: feature(r, "b").update(scale=0.0), "the scale 0.0 is not above 0"),
    "scale -1": (lambda r: feature(r, "b").update(scale=-1.0), "the scale -1.0 is not above 0"),
    "weight": (lambda r: feature(r, "b").update(weight_up=-1.0), "is below 0"),
    "step": (lambda r: feature(r, "b").update(step=0.0), "the step 0.0 is not above 0"),
    "between": (lambda r: feature(r, "b").update(cost={"between": []}), "'b' has no levels"),
    "levels": (lambda r: feature(r, "b").update(cost={"levels": []}), "'b' has no levels"),
    "malformed": (lambda r: feature(r, "b").update(cost={"foo": 1}), "is no curve"),
    "level twice": (lambda r: feature(r, "c").update(levels=[0, 1, 2, 2]), "occurs twice"),
    "permitted": (lambda r: feature(r, "b").update(permitted=[None, None]), "is no pair of numbers"),
    "norm": (lambda r: r["norm"].update(l1=0.0), "The norm counts no change"),
    "margin": (lambda r: r.update(margins={"zzz": 1e9}), "'zzz', which is no feature"),
    "beyond floats": (_moved_id, "'id': "),
    "change": (lambda r: r["changes"][0].update(change=123.0), "is listed as changing by 123.0"),
    "cost": (lambda r: r["changes"][0].update(cost=1e-9), "not 1e-09 as listed"),
    "indicators": (lambda r: r["changes"][1].update({"from": "z"}), "'job' is listed as going from 'z'"),
    "listed twice": (lambda r: r["changes"].append(r["changes"][0]), "is listed 2 times"),
    "not listed": (lambda r: r["changes"].pop(), "is not among the changes"),
    "tie": (lambda r: r["ties"].append(r["counterfactual"]), "Tie 1 is an answer that is there already"),
    "gap": (lambda r: r.update(status="feasible", bound=0.0, gap=0.0), "between bound and cost is 1.0, not 0.0"),
    "gap of a proof": (lambda r: r.update(gap=0.1), "between bound and cost is 0.0, not 0.1"),
    "gap of nothing": (
        lambda r: r.update(status="unknown", counterfactual=None, cost=None, decided=None),
        "between bound and cost is inf, not 0.0",
    ),
    "classes": (lambda r: r.update(classes=[1, 0]), "The classes [1, 0] are not those of the model in their order"),
    "probabilities": (lambda r: r["probabilities"].pop(), "There are probabilities of 1 rows, not of 2"),
    "verdict": (lambda r: r.update(verified=False), "It says verified: false"),
    "own checks": (lambda r: r.update(verified=False, checks=["all is wrong"]), "It says of itself: all is wrong"),
    "conflict": (lambda r: r.update(conflict=["'b' is fixed"]), "Wishes are said to conflict, but the status is 'opt"),
    "needless": (lambda r: r.update(target=[0, 1]), "The row has the target as it is"),
    "infeasible": (
        lambda r: called_infeasible(r) or r.update(target=[0, 1]),
        "The row has the target as it is, so that it is not infeasible",
    ),
    "unknown target": (lambda r: called_infeasible(r) or r.update(target=7), "The target 7 is no class of the model"),
    "decides without": (
        lambda r: called_infeasible(r) or r.update(decided=1),
        "no counterfactual, but the model is said to give it 1",
    ),
    "probabilities without": (
        lambda r: called_infeasible(r) or r["probabilities"].append([0.5, 0.5]),
        "There are probabilities of 2 rows, not of 1",
    ),
    "completions": (
        lambda r: r.update(imputations={"values": {"b": [2.0]}, "share": 1.0, "least": 1, "met": 1}),
        "but what the row lacks is []",
    ),
    "unknown level": (
        _constrain({"kind": "implication", "when": [["c", {"min": 77}]], "then": [["b", 1]], "name": "x"}),
        "77 is none of the levels of 'c'",
    ),
    "unknown consequence": (
        _constrain({"kind": "implication", "when": [["c", 0]], "then": [["zzz", 1]], "name": "x"}),
        "KeyError('zzz')",
    ),
    "linear": (
        _constrain({"kind": "linear", "terms": [["d", "x", 1.0]], "sense": "<=", "bound": 1.0, "name": ""}),
        "'x' is none of the levels of 'd'",
    ),
    "budget": (
        _constrain({"kind": "budget", "limit": 0.0, "costs": [["b", {"levels": []}]], "name": ""}),
        "'b' has no levels",
    ),
    "no description": (
        lambda r: r.update(features=None, norm=None, counterfactual=None, cost=None, bound="inf", status="infeasible"),
        "no description of the features",
    ),
}


def test_the_honest_answer_holds(honest: tuple[Any, Record], tmp_path: Path) -> None:
    model, record = honest
    assert [change["feature"] for change in record["changes"]] == ["b", "job"]
    assert problems(record, model, tmp_path) == ""


def test_a_row_that_a_wish_excludes_may_be_infeasible(honest: tuple[Any, Record], tmp_path: Path) -> None:
    record = copy.deepcopy(honest[1])
    called_infeasible(record)
    assert problems(record, honest[0], tmp_path) == ""
    record["target"] = [0, 1]
    excluded = {"kind": "implication", "when": [], "then": [["b", {"min": 1e6}]], "name": ""}
    record["constraints"].append(excluded)
    assert problems(record, honest[0], tmp_path) == ""


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_found(honest: tuple[Any, Record], tmp_path: Path, lie: str) -> None:
    tamper, sentence = LIES[lie]
    record = copy.deepcopy(honest[1])
    tamper(record)
    assert sentence in problems(record, honest[0], tmp_path)


@pytest.mark.parametrize(
    ("tamper", "sentence"),
    [
        (lambda r: r.update(probability=0.0), "at probability"),
        (lambda r: r.update(rank=0), "at rank"),
        (lambda r: r.update(ties_complete=0.5), "at ties_complete"),
        (lambda r: r.update(conflict="none"), "at conflict"),
        (lambda r: r["original"]["values"].update(d="False"), "no truth value"),
        (lambda r: r["original"]["values"].update(d=0.3), "no truth value"),
        (lambda r: r["original"]["values"].update(a="17"), "'17' is text"),
        (lambda r: r["original"]["values"].update(b="0.5"), "'0.5' is text"),
    ],
)
def test_what_is_no_record_is_refused(
    honest: tuple[Any, Record], tmp_path: Path, tamper: Callable[[Record], Any], sentence: str
) -> None:
    record = copy.deepcopy(honest[1])
    tamper(record)
    with pytest.raises(DataError, match=sentence):
        problems(record, honest[0], tmp_path)


# -- completions -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def completed(table: pd.DataFrame) -> tuple[Any, Record]:
    own = table.astype({"a": float})[["a", "b", "c"]]
    own.loc[:20, "a"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=10, max_depth=3).fit(own, (own.b + own.a.fillna(9) / 10 > 1))
    row = own[:20][model.predict(own[:20]) == 0].iloc[[0]]
    values = pd.DataFrame({"a": [5.0, 6.0, 8.0, 12.0]})
    return model, Explainer(model, own).explain(row, target=True, imputations=values, share=0.5)[0].to_dict()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({}, ""),
        ({"met": 4, "least": 2}, "completions get the target, not 4"),
        ({"share": 1.0}, "of 4 completions is 4, not 2"),
        ({"least": 1}, "of 4 completions is 2, not 1"),
        ({"values": {"b": [1.0]}}, "what the row lacks is ['a']"),
        ({"values": {"a": []}}, "fill in every missing cell"),
    ],
)
def test_completions(completed: tuple[Any, Record], tmp_path: Path, said: Record, sentence: str) -> None:
    record = copy.deepcopy(completed[1])
    assert record["imputations"]["met"] < 4
    record["imputations"] |= said
    found = problems(record, completed[0], tmp_path)
    assert sentence in found if sentence else not found


def _days(table: pd.DataFrame) -> pd.DataFrame:
    return (table - pd.Timestamp("2020-01-01")) / pd.Timedelta(days=1)


def test_completions_by_dates(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    since = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 200), unit="D"))
    own = pd.DataFrame({"since": since, "debt": rng.integers(0, 20, 200).astype(float)})
    granted = (since < pd.Timestamp("2021-06-01")) & (own.debt < 12)
    own.loc[::9, "since"] = pd.NaT
    days = ColumnTransformer([("days", FunctionTransformer(_days), ["since"])], remainder="passthrough")
    model = make_pipeline(days, HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5)).fit(own, granted)
    explainer = Explainer(model, own, monotone={"columntransformer__days": "increasing"})
    values = pd.DataFrame({"since": pd.to_datetime(["2020-03-01", "2020-07-05"])})
    found = explainer.explain(own.assign(debt=19.0).iloc[[0]], target=True, imputations=values)[0]
    assert found.status == "optimal"
    assert found.verified
    assert not problems(found.to_dict(), model, tmp_path)


# -- honest answers of all kinds -------------------------------------------------------------------------------


def test_constraints_and_costs_of_levels(table: pd.DataFrame, tmp_path: Path) -> None:
    own = table[["a", "b", "c", "d"]].astype({"b": "float32"})
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(own, (own.a / 20 + own.b + own.c / 3 > 1))
    features = {"c": {"kind": "ordinal", "levels": [0, 1, 2, 3], "cost": {"between": [0.3, 0.1, 0.4]}}}
    wishes = [
        Budget(6, {"a": 1, "c": {3: 2}}),
        Linear({"a": 1, "c": {2: -1}}, "<=", 18),
        Implication({"c": {"min": 2}}, {"b": {"max": 2}}),
    ]
    rows = own[~model.predict(own)].iloc[:4]
    found = Explainer(model, own, features).explain(rows, target=True, constraints=wishes, n_optimal=3)
    assert any(e.found for e in found)
    for e in found:
        assert problems(e.to_dict(), model, tmp_path) == ""


def test_rows_of_a_linear_model_in_another_precision(table: pd.DataFrame, tmp_path: Path) -> None:
    own = table[["a", "b"]].astype("float32")
    model = LogisticRegression().fit(own, own.a / 20 + own.b > 1)
    explainer = LinearExplainer(model, own)
    rows = own[~model.predict(own)].iloc[[0]].astype("float64")
    found = explainer.explain(rows, target=True)[0].to_dict()
    assert feature(found, "b")["dtype"] == "float64"
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(found))
    ((_, checked),) = verify_file(path, explainer.prepared.model)
    assert checked.ok, checked.problems


def test_ties_of_values_may_have_others(tmp_path: Path) -> None:
    grid = pd.DataFrame([(a, b) for a in range(4) for b in range(4)], columns=["a", "b"]).astype(float)
    model = DecisionTreeRegressor(random_state=0).fit(grid, grid.a + 1.5 * grid.b)
    (found,) = Explainer(model, grid).explain(grid.iloc[[0]], target=(1.0, None), n_optimal=3)
    assert found.ties
    assert problems(found.to_dict(), model, tmp_path) == ""


# -- boxes and ranges ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def boxed(table: pd.DataFrame) -> tuple[Any, Record]:
    own = table.drop(columns=["id"])
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(own, (own.a / 10 + own.b + own.job_x > 1.5))
    rows = own[~model.predict(own)].iloc[[0]]
    features = {"a": {"actionability": "increasing"}, "c": {"kind": "ordinal", "levels": [0, 1, 2, 3]}}
    return model, Explainer(model, own, features).explain(rows, target=True, box=True)[0].to_dict()


def _ends(record: Record, name: str, lowest: float, highest: float) -> None:
    record["box"]["ranges"][name] = {"lowest": lowest, "highest": highest}


BOXES: dict[str, tuple[Callable[[Record], Any], str]] = {
    "honest": (lambda r: None, ""),
    "elsewhere": (lambda r: _ends(r, "b", -3.0, -2.9), "of 'b' does not hold the answer"),
    "beyond": (lambda r: _ends(r, "b", -100.0, 100.0), "of 'b' does not hold the answer, or values that there are not"),
    "no levels": (lambda r: r["box"]["ranges"].update(job=["duke"]), "of 'job' does not hold the answer"),
    "level twice": (lambda r: r["box"]["ranges"].update(d=[True, False, True]), "of 'd' does not hold the answer"),
    "back": (lambda r: _ends(r, "a", -1.0, r["box"]["ranges"]["a"]["highest"]), "of 'a' does not hold the answer"),
    "not permitted": (
        lambda r: feature(r, "b").update(permitted=[-9.0, r["box"]["ranges"]["b"]["highest"] - 1e-3]),
        "of 'b' does not hold the answer",
    ),
    "gone": (lambda r: r["box"]["ranges"].pop("b"), "other features than the row"),
    "width": (lambda r: r["box"].update(width=50.0, bound=50.0), "do not add up to its width 50.0"),
    "bound": (lambda r: r["box"].update(bound=0.1), "does not fit its width"),
    "unproven": (lambda r: r["box"].update(bound=r["box"]["bound"] + 1), "does not fit its width"),
    "free": (lambda r: r["box"]["free"].append("b"), "does not hold all of 'b'"),
    "ranges": (lambda r: r.update(ranges=[{"b": {"lowest": -3.0, "highest": 3.0}}]), "At a point of the ranges: "),
    "no ranges": (lambda r: r.update(ranges=[{"b": {"lowest": -9.0, "highest": -8.0}}]), "of 'b' does not hold"),
}


@pytest.mark.parametrize("lie", BOXES)
def test_boxes(boxed: tuple[Any, Record], tmp_path: Path, lie: str) -> None:
    tamper, sentence = BOXES[lie]
    record = copy.deepcopy(boxed[1])
    tamper(record)
    found = problems(record, boxed[0], tmp_path)
    assert sentence in found if sentence else not found


def test_points_of_a_box_are_put_to_the_model(boxed: tuple[Any, Record], tmp_path: Path) -> None:
    record = copy.deepcopy(boxed[1])
    description = feature(record, "b")
    low, high = description["lower"], description["upper"]
    own = record["box"]["ranges"]["b"]
    wider = 1.0 - (own["highest"] - own["lowest"]) / (high - low)
    _ends(record, "b", low, high)
    record["box"] |= {"width": record["box"]["width"] + wider, "bound": record["box"]["bound"] + wider}
    assert "At a point of the box: " in problems(record, boxed[0], tmp_path)

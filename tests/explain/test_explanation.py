"""Explanations: building them, their tables, JSON, text, pages and plots."""

import json
import math
import pickle
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from ocf.errors import DataError
from ocf.explain.answer import TIMES
from ocf.explain.answers import failed, from_finding
from ocf.explain.explanation import Explanation, Explanations
from ocf.features.feature import Feature
from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace, counterfactual_frame
from ocf.models.user_model import UserModel, as_user_model
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.solve.engines import Finding
from ocf.solve.method import Way
from ocf.solve.outcome import Outcome
from ocf.solve.task import AskedRow
from ocf.solvers.result import Progress, Status
from ocf.support.wording import word
from ocf.verify.check import verify_file


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, 200),
            "rate": rng.random(200).astype(np.float32),
            "owner": rng.random(200) < 0.5,
            "job_clerk": 0,
            "job_smith": 1,
        }
    ).assign(job_clerk=lambda t: t["age"] % 2, job_smith=lambda t: 1 - t["age"] % 2)


GROUP = {"job": {"columns": {"clerk": "job_clerk", "smith": "job_smith"}}}


@pytest.fixture(scope="module")
def model(data: pd.DataFrame) -> UserModel:
    y = np.where(data["age"] + 30 * data["owner"] > 60, "granted", "refused")
    return as_user_model(RandomForestClassifier(5, max_depth=4, random_state=0).fit(data, y))


def solved(
    model: UserModel,
    space: FeatureSpace,
    original: pd.DataFrame,
    point: np.ndarray | None,
    *,
    status: Status = Status.OPTIMAL,
    norm: str = "l1",
    slack: float = 0.0,
) -> Explanation:
    """Explanation of an outcome made by hand."""
    origin = space.from_frame(original)[0]
    predicted = int(model.decide(original[list(space.columns)])[0])
    problem = Problem(model.trees.ensemble, space, origin, ClassTarget(1 - predicted), Cost.parse(norm))
    if len(space) != model.trees.ensemble.n_features:
        pytest.fail("the space has groups: lift the ensemble first")
    return explained(problem, model, original, predicted, point, status, slack)


def explained(
    problem: Problem,
    model: UserModel,
    original: pd.DataFrame,
    predicted: int,
    point: np.ndarray | None,
    status: Status,
    slack: float = 0.0,
) -> Explanation:
    cost = None if point is None else problem.cost.total(problem.space, problem.origin, point)
    bound = math.inf if cost is None else cost - slack
    outcome = Outcome(
        status, point, cost, bound, {"incumbent": 0.1, "solve": 0.2}, nodes=3, proved_by="highs",
        sizes={"leaves": 40}, history=(Progress(0.1, -math.inf, math.inf), Progress(0.2, bound, math.inf)),
    )  # fmt: skip
    method = {"formulation": "interval", "solver": "highs", "options": {"gap": 0.0}, "reduction": True}
    found = Finding(problem, outcome, Way("interval", "highs"), method, {"build": 0.5})
    row = AskedRow(original.index[0], original, problem.origin, predicted)
    return from_finding(found, row, model, model.trees.ensemble.decision.classes)


@pytest.fixture
def example(model: UserModel, data: pd.DataFrame) -> Explanation:
    """A refused young applicant who would be granted at 85."""
    space = infer_space(data)
    young = pd.DataFrame([data.iloc[0].to_dict()], index=pd.Index(["r<7>"], name="who")).astype(data.dtypes.to_dict())
    young = young.assign(age=20, owner=False)
    point = space.from_frame(young)[0]
    point[0] = 85
    return solved(model, space, young, point)


def test_from_finding(example: Explanation) -> None:
    assert example.status == "optimal"
    assert example.verified, example.checks
    assert (example.predicted, example.target, example.decided) == ("refused", "granted", "granted")
    assert example.gap == 0
    assert set(example.times) == set(TIMES)
    assert example.times["total"] == pytest.approx(0.8 + example.times["verify"])
    assert example.counterfactual is not None
    assert list(example.counterfactual.index) == ["r<7>"]
    pd.testing.assert_series_equal(example.counterfactual.dtypes, example.original.dtypes)
    pd.testing.assert_frame_equal(example.counterfactual.drop(columns="age"), example.original.drop(columns="age"))


def test_changes(example: Explanation) -> None:
    changes = example.changes
    assert list(changes.columns) == ["feature", "from", "to", "change", "cost"]
    assert changes[["feature", "from", "to", "change"]].to_numpy(object).tolist() == [["age", 20, 85, 65.0]]
    assert changes["cost"].sum() == example.cost
    changes["cost"] = 0.0
    assert example.changes["cost"].sum() == example.cost


def test_a_wrong_outcome_is_not_verified(model: UserModel, data: pd.DataFrame) -> None:
    space = infer_space(data)
    young = data.iloc[[0]].assign(age=20, owner=False)
    point = space.from_frame(young)[0]
    point[0] = 21
    e = solved(model, space, young, point)
    assert not e.verified
    assert any("not the wanted" in check for check in e.checks)
    assert "NOT VERIFIED" in str(e).splitlines()[0]
    assert "no smaller change" not in str(e)
    assert "not verified" in e.to_html()


def test_stopping_at_a_gap_is_not_optimal(model: UserModel, data: pd.DataFrame) -> None:
    space = infer_space(data)
    young = data.iloc[[0]].assign(age=20, owner=False)
    point = space.from_frame(young)[0]
    point[0] = 85
    e = solved(model, space, young, point, slack=0.1)
    assert (e.status, e.verified) == ("feasible", True)
    assert "gap" in e.message
    assert "not proven optimal" in str(e)


def test_infeasible(model: UserModel, data: pd.DataFrame) -> None:
    e = solved(model, infer_space(data), data.iloc[[3]], None, status=Status.INFEASIBLE)
    assert (e.counterfactual, e.cost, e.gap, e.checks) == (None, None, math.inf, ())
    assert e.changes.empty
    assert "no admissible change" in str(e)
    assert Explanation.from_json(e.to_json()) == e


@pytest.mark.parametrize("status", ["error", "interrupted"])
def test_failed(status: str, data: pd.DataFrame) -> None:
    e = failed(5, data.iloc[[5]], status, "the cause")
    assert (e.status, e.message, e.times) == (status, "the cause", dict.fromkeys(TIMES, 0.0))
    assert "the cause" in str(e)
    assert Explanation.from_json(e.to_json()) == e
    assert pickle.loads(pickle.dumps(e)) == e
    e.to_html()


def test_unknown_status() -> None:
    with pytest.raises(ValueError, match="not one of"):
        failed(0, pd.DataFrame({"a": [1]}), "fine", "")


# -- the user's dtypes -----------------------------------------------------------------------------------------


def moved(original: pd.DataFrame, space: FeatureSpace, **changes: float) -> pd.DataFrame:
    origin = space.from_frame(original)[0]
    point = origin.copy()
    for name, value in changes.items():
        point[space.index(name)] = value
    return counterfactual_frame(space, original, origin, point)


@pytest.mark.parametrize(
    ("column", "code", "expected"),
    [
        (pd.Series([3, 9], dtype="int64"), 7.0, 7),
        (pd.Series([3, 9], dtype="Int64"), 7.0, 7),
        (pd.Series([0.5, 0.1], dtype="float32"), float(np.float32(0.3)), np.float32(0.3)),
        (pd.Series([0.5, 0.1], dtype="float64"), 0.3, 0.3),
        (pd.Series([True, False]), 0.0, False),
        (pd.Series([True, False], dtype="boolean"), 0.0, False),
        (pd.Series(["b", "a"], dtype="category"), 0.0, "a"),
        (pd.Series(["b", "a"], dtype="str"), 0.0, "a"),
        (pd.Series(["b", "a"], dtype="string"), 0.0, "a"),
        (pd.Series(["b", "a"], dtype=object), 0.0, "a"),
    ],
)
def test_dtypes_are_kept(column: pd.Series, code: float, expected: Any) -> None:
    table = pd.DataFrame({"x": column, "other": [1.5, 2.5]}).set_index(pd.Index([10, 11]))
    out = moved(table.iloc[[0]], infer_space(table), x=code)
    assert out["x"].iloc[0] == expected
    pd.testing.assert_series_equal(out.dtypes, table.dtypes)
    assert list(out.index) == [10]
    again = moved(table.iloc[[0]], infer_space(table))
    pd.testing.assert_frame_equal(again, table.iloc[[0]])


@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", 0.1), ("int64", 3.5), ("int8", 300.0), ("float32", math.nextafter(0.5, 1))]
)
def test_exactness_goes_before_dtype(dtype: str, value: float) -> None:
    space = FeatureSpace((Feature("x", "numeric"),))
    out = moved(pd.DataFrame({"x": np.array([0], dtype)}), space, x=value)
    assert float(out["x"].iloc[0]) == value
    assert out["x"].dtype == np.float64


def test_a_level_that_the_rows_categories_lack() -> None:
    space = FeatureSpace((Feature("x", "categorical", levels=("a", "b")),))
    out = moved(pd.DataFrame({"x": pd.Categorical(["a"])}), space, x=1)
    assert out["x"].iloc[0] == "b"
    assert list(out["x"].cat.categories) == ["a", "b"]


def test_untouched_values_are_bit_identical() -> None:
    big = 2**62 + 1  # no float64 holds it
    table = pd.DataFrame({"x": [1.0], "big": [big], "minus": [-0.0], "gone": [np.nan]})
    space = FeatureSpace(tuple(Feature(c, "numeric") for c in table.columns))
    out = moved(table, space, x=2.0)
    assert out["big"].iloc[0] == big
    assert math.copysign(1, out["minus"].iloc[0]) == -1
    assert np.isnan(out["gone"].iloc[0])


@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "bool"])
def test_one_hot_groups(base: bool, dtype: str) -> None:
    table = pd.DataFrame({"job_a": [1, 0], "n": [5, 6], "job_b": [0, 1]}).astype({"job_a": dtype, "job_b": dtype})
    setting: dict[str, Any] = {"columns": ["job_a", "job_b"]} | ({"base": "none"} if base else {})
    space = infer_space(table, {"job": setting})
    out = moved(table.iloc[[0]], space, job=1 + base)
    assert out[["job_a", "job_b"]].to_numpy(int).tolist() == [[0, 1]]
    pd.testing.assert_series_equal(out.dtypes, table.dtypes)
    if base:
        assert moved(table.iloc[[0]], space, job=0)[["job_a", "job_b"]].to_numpy(int).tolist() == [[0, 0]]


def test_column_order_and_labels_that_are_no_text() -> None:
    space = FeatureSpace((Feature("0", "numeric"), Feature("1", "numeric")))
    out = moved(pd.DataFrame([[5.0, 6.0]], columns=[1, 0]), space, **{"0": 7.0})
    assert out.columns.tolist() == [1, 0]
    assert out.to_numpy().tolist() == [[5.0, 7.0]]


def test_pipeline_with_text_and_missing_values() -> None:
    table = pd.DataFrame({"job": ["a", "b", "c"] * 20})
    pipeline = make_pipeline(OrdinalEncoder(), RandomForestClassifier(3, random_state=0))
    model = as_user_model(pipeline.fit(table, (table["job"] == "c").astype(int)))
    e = solved(model, infer_space(table), table.iloc[[0]], np.array([2.0]))
    assert e.verified, e.checks
    assert e.changes.to_numpy(object)[0][:3].tolist() == ["job", "a", "c"]
    assert Explanation.from_json(e.to_json()) == e


# -- tables of several -----------------------------------------------------------------------------------------


@pytest.fixture
def several(example: Explanation, model: UserModel, data: pd.DataFrame) -> Explanations:
    stuck = solved(model, infer_space(data), data.iloc[[3]], None, status=Status.INFEASIBLE)
    return Explanations([example, stuck, failed(4, data.iloc[[4]], "error", "the cause")])


def test_to_frame(several: Explanations, data: pd.DataFrame) -> None:
    table = several.to_frame()
    assert list(table.index) == ["r<7>", 3, 4]
    assert list(table.columns) == [*data.columns, "status", "cost", "bound", "gap", "verified", "seconds"]
    assert table["age"].isna().tolist() == [False, True, True]
    assert table["status"].tolist() == ["optimal", "infeasible", "error"]
    one = several[:1].to_frame()
    assert one[list(data.columns)].dtypes.to_dict() == data.dtypes.to_dict()
    assert one.index.name == "who"
    assert several[1:].to_frame()["age"].isna().all()
    assert Explanations().to_frame().empty


def test_names_that_collide_get_a_prefix() -> None:
    table = failed(0, pd.DataFrame({"cost": [1.0]}), "error", "").to_frame()
    assert list(table.columns)[:3] == ["cost", "ocf_status", "ocf_cost"]


def test_sequence(several: Explanations, example: Explanation) -> None:
    assert several[0] is example
    assert isinstance(several[1:], Explanations)
    assert len(several[1:]) == 2
    assert [e.row for e in several] == ["r<7>", 3, 4]
    with pytest.raises(TypeError):
        several[0] = example  # type: ignore[index]


def test_summary(several: Explanations) -> None:
    summary = several.summary()
    assert summary["rows"].to_dict() == {"optimal": 1, "infeasible": 1, "error": 1}
    assert summary.loc["optimal", "verified"] == 1
    assert Explanations().summary().empty


def test_texts(several: Explanations, example: Explanation) -> None:
    text = str(example)
    assert text.startswith("row r<7>: refused → granted for a cost of")
    assert "optimal, proven by highs: no smaller change does it" in text
    assert re.search(r"age +20 +85", text)
    assert "rate" not in text
    assert str(several).splitlines()[0] == "3 rows (1 optimal, 1 infeasible, 1 error)"
    assert "optimal" in repr(example)
    assert "3 rows" in repr(several)
    assert str(Explanations()) == "0 rows"


@pytest.mark.parametrize(
    ("value", "other", "new", "expected"),
    [
        (3, 4, True, "3"),
        (1001.0, 2.0, True, "1001"),
        (math.nextafter(3.5, 4), 3.0, True, "just over 3.5"),
        (math.nextafter(3.5, 3), 4.0, True, "just under 3.5"),
        (math.nextafter(3.5, 4), 3.5, False, "3.5000000000000004"),
        (0.123456789, 1.0, False, "0.123457"),
        (0.123456789, 1.0, True, "about 0.123457"),
        (None, 1.0, False, "missing"),
        ("a", "b", True, "a"),
        (True, False, True, "True"),
    ],
)
def test_words_never_put_a_value_on_the_wrong_side(value: Any, other: Any, new: bool, expected: str) -> None:
    assert word(value, other, new=new) == expected


# -- JSON ------------------------------------------------------------------------------------------------------


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        pytest.fail(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_round_trip(example: Explanation, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    data = strict(example.to_json(path))
    assert data["schema"] == "ocf.explanation/1"
    for again in (Explanation.from_json(path), Explanation.from_dict(data)):
        assert again == example
        assert again.problem is None
        pd.testing.assert_frame_equal(again.changes, example.changes)
        pd.testing.assert_series_equal(again.original.dtypes, example.original.dtypes)
        assert str(again) == str(example)


def test_round_trip_of_several(several: Explanations, tmp_path: Path, model: UserModel) -> None:
    path = tmp_path / "many.json"
    data = strict(several.to_json(path))
    assert data["schema"] == "ocf.explanations/1"
    assert "features" not in data["rows"][0]
    assert Explanations.from_json(path) == several
    assert Explanations.from_dict(data) == several
    assert Explanations.from_json(Explanations().to_json()) == Explanations()
    assert Explanations.from_json(several[0].to_json()) == several[:1]
    with pytest.raises(DataError, match=r"Explanations\.from_json"):
        Explanation.from_json(path)
    assert [v.ok for _, v in verify_file(path, model)] == [True, True, True]


def test_verify_file_catches_tampering(example: Explanation, tmp_path: Path, model: UserModel) -> None:
    path = tmp_path / "one.json"
    data = example.to_dict()
    data["counterfactual"]["values"]["age"] = 84
    path.write_text(json.dumps(data))
    [(row, verification)] = verify_file(path, model)
    assert row == "r<7>"
    assert any("as claimed" in problem for problem in verification.problems)


def test_unequal(example: Explanation, several: Explanations) -> None:
    assert example != several[1]
    assert example != 3
    assert several != several[1:]
    assert several != 3


FLOATS = st.floats(allow_infinity=False, allow_nan=False, width=64)


@settings(deadline=None, max_examples=60)
@given(FLOATS, st.floats(width=32, allow_infinity=False), st.integers(-(2**63), 2**63 - 1), st.text())
def test_every_value_round_trips(double: float, single: float, whole: int, text: str) -> None:
    original = pd.DataFrame(
        {
            "double": [double],
            "single": np.array([single], np.float32),
            "whole": np.array([whole], np.int64),
            "text": np.array([text], object),
            "missing": [np.nan],
            "perhaps": pd.array([None], dtype="Int64"),
        },
        index=[("a", 1)],
    )
    e = failed(("a", 1), original, "error", text)
    again = Explanation.from_json(e.to_json())
    pd.testing.assert_frame_equal(
        again.original.reset_index(drop=True), original.reset_index(drop=True), rtol=0, atol=0
    )
    assert again.row == ("a", 1)
    assert again == e
    strict(e.to_json())


@pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, math.nextafter(1, 2), 0.1 + 0.2, -math.inf])
def test_bounds_round_trip(value: float) -> None:
    e = Explanation(row=0, status="unknown", original=pd.DataFrame({"x": [1.0]}), bound=value)
    assert Explanation.from_json(e.to_json()).bound == value


def test_damaged(example: Explanation) -> None:
    data = example.to_dict()
    del data["times"]
    with pytest.raises(DataError, match="incomplete or damaged"):
        Explanation.from_dict(data)
    with pytest.raises(DataError, match="schema"):
        Explanation.from_dict({"schema": "ocf.problem/1"})


# -- pages and plots -------------------------------------------------------------------------------------------

VOID = {"meta", "br", "hr", "img", "link"}


class Balanced(HTMLParser):
    """Checks that every tag is closed, and collects tags and links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [str(v) for k, v in attrs if k in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_pages_parse_and_need_no_network(several: Explanations, example: Explanation, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    pages = [example.to_html(), several.to_html(path), example._repr_html_(), several._repr_html_()]
    assert path.read_text(encoding="utf-8") == pages[1]
    for page in pages:
        seen = Balanced(page)
        assert seen.links == []
        assert "script" not in seen.tags
        assert not re.search(r"https?:|//|url\(|@import", page)
    assert "viewport" in pages[0]
    assert "r&lt;7&gt;" in pages[0]


def hostile() -> Explanation:
    """Names and levels that try to leave their place."""
    evil = '<script>alert("x")</script>'
    table = pd.DataFrame({evil: ["$a$", f"{evil}'\""] * 10})
    forest = make_pipeline(OrdinalEncoder(), RandomForestClassifier(3, random_state=0))
    model = as_user_model(forest.fit(table, np.where(table[evil] == "$a$", "<b>no", "yes&")))
    space = infer_space(table)
    return solved(model, space, table.iloc[[0]], 1 - space.from_frame(table.iloc[[0]])[0])


def test_hostile_words_are_escaped() -> None:
    e = hostile()
    assert e.verified, e.checks
    for page in (e.to_html(), e._repr_html_(), Explanations([e, e]).to_html()):
        assert "script" not in Balanced(page).tags
        assert "<b>no" not in page
        assert "&lt;script&gt;" in page
    assert Explanation.from_json(e.to_json()) == e


def test_plot(example: Explanation, several: Explanations) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for e in (example, several[1], hostile()):
        ax = e.plot()
        ax.figure.canvas.draw()
        plt.close(ax.figure)
    _, mine = plt.subplots()
    assert example.plot(ax=mine) is mine
    assert [t.get_text() for t in mine.get_yticklabels()] == ["age"]
    plt.close("all")

"""Across files: tables read as meant, from the user's table to the answer, by brute force through the user's model."""

from __future__ import annotations

import itertools
import logging
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, Explanations, LinearExplainer
from ocf.errors import DataError

N = 150
JOBS, ACCOUNTS = ["job_clerk", "job_cook", "job_smith"], ["account_low", "account_mid"]

#: What the columns of each category may hold together.
AS_MEANT = ([(1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 0), (1, 0), (0, 1)])
ONE_BY_ONE = (list(itertools.product((0, 1), repeat=3)), list(itertools.product((0, 1), repeat=2)))


def people() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(3)
    raw = pd.DataFrame(
        {
            "age": rng.integers(0, 13, N),
            "hours": rng.integers(0, 9, N),
            "job": rng.choice(["clerk", "cook", "smith"], N),
            "account": rng.choice(["high", "low", "mid"], N),
        }
    )
    score = raw["age"] + 2 * raw["hours"] + raw["job"].map({"clerk": 0, "cook": 7, "smith": -4})
    wanted = (score + raw["account"].map({"high": 8, "low": -6, "mid": 0}) > 20).astype(int)
    jobs = pd.get_dummies(raw[["job"]], dtype=int)
    accounts = pd.get_dummies(raw[["account"]], dtype=int, drop_first=True)
    return pd.concat([raw[["age", "hours"]], jobs, accounts], axis=1), wanted


def everything(held: tuple[Any, Any]) -> np.ndarray:
    """Every row that there can be, as an array."""
    numbers = itertools.product(range(13), range(9))
    return np.array([(*n, *job, *account) for n, job, account in itertools.product(numbers, *held)])


def cheapest(model: Any, table: pd.DataFrame, row: np.ndarray, held: tuple[Any, Any], *, grouped: bool) -> float:
    """Least cost of a change that turns the model's answer, among all rows that there can be."""
    points = everything(held)
    frame = pd.DataFrame(points, columns=table.columns)
    before = model.predict(pd.DataFrame([row], columns=table.columns))[0]
    turned = points[model.predict(frame) != before]
    cost = np.abs(turned[:, :2] - row[:2]) @ np.array([1 / 12, 1 / 8])
    moved = turned[:, 2:] != row[2:]
    changes = moved[:, :3].any(axis=1).astype(int) + moved[:, 3:].any(axis=1) if grouped else moved.sum(axis=1)
    return float((cost + changes).min())


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(7, max_depth=4, random_state=0),
        GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0),
        HistGradientBoostingClassifier(max_iter=6, max_depth=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_indicators_change_together_and_that_is_the_optimum(model: Any) -> None:
    table, wanted = people()
    model = model.fit(table, wanted)
    rows = table.iloc[:12]
    for held, groups in ((AS_MEANT, True), (ONE_BY_ONE, False)):
        found = Explainer(model, table, groups=groups).explain(rows)
        for answer, row in zip(found, rows.to_numpy(), strict=True):
            assert answer.status == "optimal"
            assert answer.verified
            assert answer.cost == pytest.approx(cheapest(model, table, row, held, grouped=groups), abs=1e-9)
            if groups:
                assert answer.counterfactual is not None
                assert answer.counterfactual[JOBS].to_numpy().sum() == 1
                assert answer.counterfactual[ACCOUNTS].to_numpy().sum() <= 1


@pytest.mark.parametrize("seed", range(6))
def test_random_tables_of_indicators_by_brute_force(seed: int) -> None:
    """Any number of categories and levels, dtype, separator and order of the columns, with and without a base."""
    rng = np.random.default_rng(seed)
    raw = pd.DataFrame({"size": rng.integers(0, 8, N)})
    parts, held, groups = [raw], [[(k,) for k in range(8)]], []
    for k in range(rng.integers(1, 4)):
        base = bool(rng.integers(2))
        count = int(rng.integers(2 + base, 5))
        words = pd.Series(rng.integers(0, count, N), name=f"kind{k}").map("level {}".format)
        dtype, separator = rng.choice(["bool", "uint8", "float32"]), str(rng.choice(["_", "="]))
        made = pd.get_dummies(words, prefix=words.name, prefix_sep=separator, drop_first=base, dtype=dtype)
        if not base:
            made = made[list(rng.permutation(made.columns))]
        unit = [tuple(row) for row in np.eye(made.shape[1], dtype=int).tolist()]
        parts, groups = [*parts, made], [*groups, list(made.columns)]
        held.append(unit + [(0,) * made.shape[1]] * base)
    table = pd.concat(parts, axis=1)
    points = np.array([sum(combination, ()) for combination in itertools.product(*held)])
    weights = rng.normal(size=table.shape[1]) * np.array([0.3, *[1.0] * (table.shape[1] - 1)])
    wanted = table.to_numpy(float) @ weights + rng.normal(size=N) * 0.2
    model = RandomForestClassifier(5, max_depth=5, random_state=seed).fit(table, wanted > np.median(wanted))
    every = model.predict(pd.DataFrame(points, columns=table.columns).astype(table.dtypes))
    explainer = Explainer(model, table)
    assert explainer.space.names == ("size", *(f"kind{k}" for k in range(len(groups))))
    for answer, row in zip(explainer.explain(table.iloc[:6]), table.to_numpy(float), strict=False):
        turned = points[every != answer.predicted]
        cost = np.abs(turned[:, 0] - row[0]) / 7
        for own in groups:
            places = [table.columns.get_loc(column) for column in own]
            cost = cost + (turned[:, places] != row[places]).any(axis=1)
        assert answer.status == ("optimal" if len(cost) else "infeasible")
        assert answer.cost == (pytest.approx(cost.min(), abs=1e-9) if len(cost) else None)


def test_one_by_one_answers_have_two_jobs_at_once_which_is_why() -> None:
    table, wanted = people()
    model = RandomForestClassifier(7, max_depth=4, random_state=0).fit(table, wanted)
    settings = {"features_to_vary": [*JOBS, *ACCOUNTS]}
    apart = Explainer(model, table, groups=False).explain(table.iloc[:40], **settings)
    found = [a.counterfactual for a in apart if a.counterfactual is not None]
    assert any(t[JOBS].to_numpy().sum() != 1 or t[ACCOUNTS].to_numpy().sum() > 1 for t in found)


def test_the_answer_says_which_categories_were_recognised() -> None:
    table, wanted = people()
    model = RandomForestClassifier(7, max_depth=4, random_state=0).fit(table, wanted)
    explainer = Explainer(model, table)
    answer = explainer.explain(table.iloc[:1])[0]
    assert answer.method["table"] == {"rows": N, "groups": ["job", "account"]}
    words = (
        "job, account: one category each, recognised by their indicator columns (groups=False reads them one by one)"
    )
    assert words in str(answer)
    assert words in answer.to_html()
    assert "one category each" not in str(Explainer(model, table, groups=False).explain(table.iloc[:1])[0])
    assert str(explainer) == str(explainer.space)
    several = explainer.explain(table.iloc[:3], features_to_vary=["age", "job"])
    _, *lines = str(several).splitlines()
    assert lines[0] == "  read by 150 rows of data: 7 columns as 4 features"
    assert "one category each: job (3 columns), account (2 columns, or none of them), recognised" in lines[2]
    assert lines[4] == "    fixed: hours, account"
    for line in lines[:5]:
        assert escape(line.strip(), quote=False) in several.to_html()
        assert escape(line.strip(), quote=False) in several._repr_html_()
    loaded = Explanations.from_json(several.to_json())
    assert (str(loaded), loaded.to_html()) == (str(several), several.to_html())
    assert str(Explanations.from_json(several.to_json().replace('"table"', '"other"'))) != str(several)
    assert repr(explainer) == "<Explainer of a RandomForestClassifier: 4 features>"


@pytest.mark.parametrize(
    ("explainer", "model", "settings"),
    [
        (Explainer, RandomForestClassifier(3, max_depth=3, random_state=0), {}),
        (Explainer, RandomForestClassifier(3, max_depth=3, random_state=0), {"n_explanations": 2}),
        (LinearExplainer, LogisticRegression(max_iter=500), {}),
    ],
)
def test_a_row_that_breaks_a_group_has_an_error_of_its_own(
    explainer: Any, model: Any, settings: dict[str, Any]
) -> None:
    table, wanted = people()
    rows = table.iloc[:6].set_axis(["a", "b", "b", "d", "e", "f"])
    rows.iloc[[1, 4], rows.columns.get_indexer(JOBS)] = [[1, 1, 0], [0, 0, 0]]
    asked = explainer(model.fit(table, wanted), table)
    found = asked.explain(rows, **settings).by_row()
    assert [own[0].row for own in found] == list(rows.index)
    assert [own[0].status == "error" for own in found] == [False, True, False, False, True, False]
    assert "job_clerk holds 1, job_cook holds 1; mend the row" in found[1][0].message
    assert "feature 'job': its indicator columns" in found[4][0].message
    assert "none of them holds 1" in str(found[4][0])
    whole = [0, 2, 3, 5]
    for k, own in zip(whole, asked.explain(rows.iloc[whole], **settings).by_row(), strict=True):
        assert [e.cost for e in found[k]] == [e.cost for e in own]
        assert all(e.verified for e in found[k])
    alone = asked.explain(rows.iloc[[4]], **settings)
    assert [e.status for e in alone] == ["error"]


def test_linear_models_read_groups_too() -> None:
    table, wanted = people()
    model = LogisticRegression(max_iter=500).fit(table, wanted)
    answers = LinearExplainer(model, table).explain(table.iloc[:8])
    for answer, row in zip(answers, table.to_numpy(), strict=False):
        assert answer.cost == pytest.approx(cheapest(model, table, row, AS_MEANT, grouped=True), abs=1e-9)


def test_whole_numbers_with_gaps_stay_whole() -> None:
    table, wanted = people()
    holed = table.mask(np.random.default_rng(0).random(table.shape) < 0.1)
    model = HistGradientBoostingClassifier(max_iter=6, max_depth=3, random_state=0).fit(holed, wanted)
    rows = holed[holed.notna().all(axis=1)].iloc[:10]
    for answer in Explainer(model, holed).explain(rows):
        assert (answer.counterfactual[["age", "hours"]].to_numpy() % 1 == 0).all()
    fractions = {"age": {"kind": "numeric"}, "hours": {"kind": "numeric"}}
    found = Explainer(model, holed, fractions).explain(rows)
    assert any((a.counterfactual[["age", "hours"]].to_numpy() % 1 != 0).any() for a in found)


def test_marks_of_missing_words_that_the_model_tells_apart_are_refused_where_the_data_have_none() -> None:
    words = {"c": np.array(["a", "b", "b", "d"] * 15, object), "e": np.array(["x", "x", "y", "y", "x"] * 12, object)}
    table = pd.DataFrame(words)
    target = ((table.c == "b") | (table.e == "y")).astype(int)
    encode = SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(*encode, DecisionTreeClassifier(random_state=0)).fit(table, target)
    none, nan = (pd.DataFrame({"c": np.array([mark], object), "e": ["x"]}) for mark in (None, np.nan))
    assert [model.predict(row)[0] for row in (none, nan)] == [0, 1]
    explainer = Explainer(model, table)
    assert explainer.explain(nan, 1)[0].cost == 0
    with pytest.raises(DataError, match="tells None, which marks a missing word in the rows, from NaN"):
        explainer.explain(none, 1)
    answers = explainer.explain(pd.concat([nan, none], ignore_index=True), 1)
    assert [answer.status for answer in answers] == ["optimal", "error"]


# -- few rows, and bounds ------------------------------------------------------------------------------------------


def test_few_rows_of_data_are_named(caplog: pytest.LogCaptureFixture) -> None:
    table, wanted = people()
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, wanted)
    with caplog.at_level(logging.WARNING, "ocf"):
        Explainer(model, table.iloc[:30])
        assert not caplog.records
        Explainer(model, table.iloc[:2])
    (record,) = caplog.records
    assert "only 2 rows of data" in record.getMessage()
    assert "--reference TABLE" in record.getMessage()


def test_infeasible_says_within_which_bounds() -> None:
    table, wanted = people()
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, wanted)
    refused = table[model.predict(table) == 0].iloc[[0]]
    explainer = Explainer(model, refused, {"hours": {"actionability": "fixed"}}, groups=False)
    answer = explainer.explain(refused)[0]
    assert answer.status == "infeasible"
    age, hours = refused[["age", "hours"]].to_numpy()[0]
    text = str(answer)
    assert f"within these bounds: age {age}" in text
    assert f"hours {hours}" not in text
    assert "fixed: hours" in text
    assert "from 1 row of data" in text
    assert "features={'age': {'bounds': (lowest, highest)}}" in text
    assert f"within these bounds: age {age}" in answer.to_html()
    narrow = Explainer(model, table).explain(
        refused, permitted_range={"hours": (0, 0), "age": (0, 1), "job": ["smith"]}
    )
    assert "  within these permitted ranges: age 0 to 1, hours 0, job smith\n" in f"{narrow[0]}\n"
    assert "within these bounds" not in str(narrow[0])
    beyond = Explainer(model, table).explain(refused, permitted_range={"age": (200, 210)})
    assert f"age 200 to 210 (nothing of {table.age.min()} to {table.age.max()})" in str(beyond[0])
    wide = Explainer(model, table, groups=False).explain(refused)[0]
    assert wide.status == "optimal"
    assert "bounds" not in str(wide)


# -- what is missing -----------------------------------------------------------------------------------------------


def test_what_is_missing_and_codes_that_stay_are_said() -> None:
    table, wanted = people()
    holed = table[["age", "hours"]].astype(float).assign(score=np.where(np.arange(N) % 3, np.arange(N) % 50, -9))
    holed.loc[::4, "hours"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=6, max_depth=3, random_state=0).fit(holed, wanted)
    explainer = Explainer(model, holed, special_values={"score": [-9]})
    row = holed.iloc[[0]]
    assert row["score"].iloc[0] == -9
    said = [
        "hours is missing and stays missing; missing={'cost_of_supplying': {'hours': 1.0}} lets the answer supply it",
        "score is -9, a code, and stays so; missing={'cost_of_supplying': {'score': 1.0}} lets the answer supply it",
    ]
    answer = explainer.explain(row)[0]
    for words in said:
        assert words in str(answer)
        assert words in answer.to_html().replace("&#39;", "'")
    allowed = explainer.explain(row, missing={"cost_of_supplying": {"hours": 50.0}})[0]
    assert "hours is missing and stays missing\n" in str(allowed)
    whole = holed[(holed["score"] >= 0) & holed["hours"].notna()].iloc[[0]]
    assert "stays" not in str(explainer.explain(whole)[0])


def test_a_code_that_nobody_named_is_pointed_at_where_it_changes() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.integers(0, 13, N), "score": np.where(rng.random(N) < 0.3, -9, rng.integers(0, 50, N))}
    )
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(table, table["score"] > 20)
    found = Explainer(model, table).explain(table.iloc[:30])
    words = "score is read as a number, though -9 looks like a code: special_values=[-9] tells them apart"
    changes = [-9 in e.own_changes[["from", "to"]].to_numpy() for e in found]
    assert any(changes)
    assert not all(changes)
    assert [words in str(e) for e in found] == changes
    assert words not in str(Explainer(model, table, special_values=[-9]).explain(table.iloc[:30])[changes.index(True)])


# -- features="ask" ------------------------------------------------------------------------------------------------


def test_features_are_written_down_to_be_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    table, wanted = people()
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, wanted)
    with caplog.at_level(logging.WARNING, "ocf"):
        asked = Explainer(model, table, features="ask")
    assert "problem.toml holds what was read" in caplog.text
    assert asked.space == Explainer(model, table).space == Explainer(model, table, features="problem.toml").space
    with pytest.raises(DataError, match="there already: use it with features='problem"):
        Explainer(model, table, features="ask")
    text = (tmp_path / "problem.toml").read_text()
    own = '[features.age]\nkind = "integer"\n'
    (tmp_path / "problem.toml").write_text(text.replace(own, own + 'actionability = "fixed"\n'))
    edited = Explainer(model, table, features="problem.toml")
    assert edited.space.features[0].action == "fixed"
    (tmp_path / "apart.toml").write_text("[table]\ngroups = false\n")
    assert len(Explainer(model, table, features="apart.toml").space) == len(table.columns)
    assert len(Explainer(model, table, features="apart.toml", groups=True).space) == 4


@pytest.mark.parametrize(("held", "mark"), [("None", None), ("NaN", np.nan)])
def test_a_word_that_is_missing_otherwise_is_asked_as_in_the_data(held: str, mark: Any) -> None:
    rng = np.random.default_rng(0)
    job = rng.choice(["clerk", "smith", ""], N).astype(object)
    table = pd.DataFrame({"job": pd.Series(np.where(job == "", mark, job), dtype=object), "age": rng.integers(0, 9, N)})
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder="passthrough")
    model = make_pipeline(encode, DecisionTreeClassifier(max_depth=3, random_state=0))
    explainer = Explainer(model.fit(table, (table["age"] > 4) ^ table["job"].isna()), table)
    own = table[table["job"].isna()].iloc[[0]]
    expected = explainer.explain(own)[0]
    assert "as in the data" not in str(expected)
    for other, word in ((None, "None"), (np.nan, "NaN"), (pd.NA, "pd.NA")):
        for dtype in (object, "str" if word == "NaN" else "string" if word == "pd.NA" else object):
            answer = explainer.explain(own.assign(job=pd.Series([other], index=own.index, dtype=dtype)))[0]
            assert (answer.status, answer.cost, answer.predicted) == ("optimal", expected.cost, expected.predicted)
            words = f"job lacks its word as {word}: the model was asked with {held}, as in the data"
            assert (words in str(answer)) == (word != held)
    whole = explainer.explain(table[table["job"].notna()].iloc[[0]])[0]
    assert "as in the data" not in str(whole)

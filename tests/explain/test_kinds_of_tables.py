"""Across files: tables of polars, pyarrow and Python, objects that hold numbers, dates, and nullable dtypes.

The oracle is the user's own model, asked about the answer's own table; costs are held against those of the same table
in pandas' plain dtypes, and of dates against all days there are.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, Explanations, LinearExplainer, nearest_instances
from ocf.errors import DataError, ProblemError
from ocf.explain.leaf_queries import explain_leaves, improve
from ocf.features.frames import as_pandas
from ocf.features.inference import infer_space
from ocf.models.user_model import as_user_model
from ocf.problem.constraints import Implication, Linear
from ocf.rules.explainer import CounterfactualRules
from ocf.verify.files import verify_file


def _data() -> tuple[pd.DataFrame, NDArray[Any]]:
    rng = np.random.default_rng(0)
    n = 120
    table = pd.DataFrame(
        {
            "amount": rng.integers(100, 5000, n),
            "age": rng.normal(40, 10, n).astype("float32").round(1),
            "job": rng.choice(["clerk", "smith", "none"], n).astype(object),
            "owner": rng.random(n) < 0.5,
        }
    )
    score = table["amount"] / 5000 + (table["age"] - 40) / 20 + (table["job"] == "smith") * 0.5
    return table, (score > 0.5).astype(int).to_numpy()


TABLE, LABELS = _data()


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4"])
def test_numbers_in_another_order_of_bytes(dtype: str) -> None:
    rng = np.random.default_rng(0)
    swapped = (9 * rng.random((80, 3))).astype(dtype)
    model = RandomForestClassifier(5, random_state=0).fit(swapped, swapped[:, 0] > 4)
    asked = swapped[~model.predict(swapped)][:1]
    plain = Explainer(model, swapped.astype(dtype[1:])).explain(asked.astype(dtype[1:]), target=True)[0]
    assert plain.status == "optimal"
    named = np.rec.fromarrays(swapped.T, names="x0,x1,x2")
    for data in (swapped, pd.DataFrame(swapped, columns=["x0", "x1", "x2"]), named):
        found = Explainer(model, data).explain(asked, target=True)[0]
        assert (found.status, found.cost, found.verified) == ("optimal", plain.cost, True)


def forest(table: Any) -> Any:
    encoder = make_column_transformer(
        (StandardScaler(), ["amount", "age"]), (OneHotEncoder(), ["job"]), remainder="passthrough"
    )
    return make_pipeline(encoder, RandomForestClassifier(4, max_depth=3, random_state=0)).fit(table, LABELS)


EXPECTED = [e.cost for e in Explainer(forest(TABLE), TABLE).explain(TABLE.iloc[:4])]

KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": pl.from_pandas,
    "polars categorical": lambda t: pl.from_pandas(t).with_columns(pl.col("job").cast(pl.Categorical)),
    "polars enum": lambda t: pl.from_pandas(t).with_columns(
        pl.col("job").cast(pl.Enum(["none", "clerk", "smith"]))
    ),
    "nullable": lambda t: t.convert_dtypes(),
    "arrow-backed": lambda t: t.convert_dtypes(dtype_backend="pyarrow"),
    "objects": lambda t: t.astype(object),
}  # fmt: skip


@pytest.mark.parametrize(("unknown", "levels"), [("error", 3), ("ignore", 4)])
def test_categories_that_no_row_has_are_levels_where_the_model_takes_them(unknown: str, levels: int) -> None:
    dtype = pd.CategoricalDtype(["clerk", "smith", "none", "pilot"])
    table = TABLE[["amount", "job"]].astype({"job": dtype})
    encoder = make_column_transformer((OneHotEncoder(handle_unknown=unknown), ["job"]), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeClassifier(max_depth=4, random_state=0)).fit(table, LABELS)
    explainer = Explainer(model, table)
    assert len(explainer.space.features[1].levels) == levels
    (answer,) = explainer.explain(table.iloc[[0]])
    assert answer.status == "optimal"
    assert answer.counterfactual["job"].dtype == dtype
    row = table.iloc[[0]].assign(job=pd.Categorical(["pilot"], dtype=dtype))
    if unknown == "error":
        with pytest.raises(DataError, match="unknown level 'pilot'; known: clerk, smith, none"):
            explainer.explain(row)
    else:
        assert explainer.explain(row)[0].status == "optimal"


@pytest.mark.parametrize("kind", KINDS)
def test_answers_in_the_users_tables(kind: str) -> None:
    table = KINDS[kind](TABLE)
    model = forest(table)
    found = Explainer(model, table).explain(table[:4])
    assert [e.cost for e in found] == pytest.approx(EXPECTED, rel=1e-5)
    for place, e in enumerate(found):
        assert (e.status, e.verified) == ("optimal", True)
        assert model.predict(e.counterfactual)[0] == e.target == 1 - LABELS[place]
        assert type(e.counterfactual) is type(e.original) is type(e.changes) is type(table)
        assert list(e.counterfactual.dtypes) == list(table.dtypes)
        assert as_pandas(e.original).equals(as_pandas(table[place : place + 1]).set_axis(as_pandas(e.original).index))
    frame = found.to_frame()
    assert type(frame) is type(table)
    assert list(frame["cost"]) == [e.cost for e in found]


def test_objects_that_hold_numbers_are_ordered() -> None:
    """A table that went through an array, as `to_numpy` gives a mixed one; the model takes columns by their places."""
    array = TABLE.to_numpy()
    model = make_pipeline(
        make_column_transformer((StandardScaler(), [0, 1]), (OneHotEncoder(), [2]), remainder="passthrough"),
        RandomForestClassifier(4, max_depth=3, random_state=0),
    ).fit(array, LABELS)
    found = Explainer(model, array).explain(array[:4])
    assert [e.cost for e in found] == pytest.approx(EXPECTED, rel=1e-5)
    for e in found:
        assert model.predict(e.counterfactual.to_numpy())[0] == e.target


def test_an_arrow_table_before_a_model_that_takes_pandas() -> None:
    model = forest(TABLE)
    table = pl.from_pandas(TABLE).to_arrow()
    found = Explainer(model, table).explain(table.slice(0, 4))
    assert [e.cost for e in found] == pytest.approx(EXPECTED)
    for e in found:
        assert type(e.counterfactual) is type(table)
        assert e.counterfactual.schema.types == table.schema.types
        assert model.predict(e.counterfactual.to_pandas())[0] == e.target


@pytest.mark.parametrize("rows", ["dict", "dicts", "tuple", "named tuple"])
def test_rows_of_python(rows: str) -> None:
    table = pl.from_pandas(TABLE)
    explainer = Explainer(forest(table), table)
    given = {
        "dict": table.row(0, named=True), "dicts": table[:1].to_dicts(), "tuple": table.row(0),
        "named tuple": dict(reversed(table.row(0, named=True).items())),
    }[rows]  # fmt: skip
    (e,) = explainer.explain(given)
    assert (e.cost, e.verified) == (pytest.approx(EXPECTED[0]), True)
    assert isinstance(e.counterfactual, pl.DataFrame)  # as the data


def test_structured_arrays() -> None:
    numbers = TABLE[["amount", "age"]]
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(numbers, LABELS)
    records = numbers.to_records(index=False)
    structured = np.array(records.tolist(), dtype=records.dtype)
    expected = Explainer(model, numbers).explain(numbers.iloc[:3])
    found = Explainer(model, structured).explain(structured[:3])
    assert [e.cost for e in found] == [e.cost for e in expected]


def test_processes_and_files_keep_the_kind(tmp_path: Any) -> None:
    table = pl.from_pandas(TABLE)
    explainer = Explainer(forest(table), table)
    found = explainer.explain(table[:2], n_jobs=2)
    assert [e.cost for e in found] == pytest.approx(EXPECTED[:2])
    path = tmp_path / "found.json"
    found.to_json(path)
    assert all(v.ok for _, v in verify_file(path, explainer.model))
    assert Explanations.from_json(path) == found
    assert found.to_csv().startswith(",amount,age")
    assert "age" in str(found[0])
    assert "age" in found.to_html()


def test_other_questions_answer_in_the_users_tables() -> None:
    numbers = pl.from_pandas(TABLE[["amount", "age"]])
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(numbers, LABELS)
    explainer = Explainer(tree, numbers)
    answers = [*nearest_instances(explainer, numbers[:1], numbers), *explain_leaves(explainer, numbers[:1])]
    line = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, LABELS)
    answers += LinearExplainer(line, numbers).explain(numbers[:1])
    assert len(answers) > 2
    for e in answers:
        assert isinstance(e.counterfactual, pl.DataFrame)
        assert e.counterfactual.schema == numbers.schema
        assert e.verified


# -- dates -----------------------------------------------------------------------------------------------------


def age_in_days(table: Any) -> Any:
    """Days since 1970 of all columns, as a user would write it for the library at hand."""
    if isinstance(table, pl.DataFrame):
        return table.with_columns(pl.all().dt.epoch("us").truediv(86_400e6))
    frame = pd.DataFrame(table)
    return frame.apply(lambda c: (pd.to_datetime(c, utc=True) - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1))


def _moments() -> pd.Series[Any]:
    return pd.Series(pd.Timestamp("2019-03-01") + pd.to_timedelta(np.random.default_rng(1).integers(0, 900, 80), "D"))


DATES: dict[str, Callable[[pd.Series[Any]], Any]] = {
    "seconds": lambda c: c.astype("datetime64[s]"),
    "nanoseconds": lambda c: c.astype("datetime64[ns]"),
    "zone": lambda c: c.dt.tz_localize("UTC"),
    "objects": lambda c: pd.Series(list(c.dt.date), dtype=object),
    "arrow": lambda c: c.astype("timestamp[us][pyarrow]"),
    "polars date": lambda c: pl.Series(list(c.dt.date)),
    "polars datetime": lambda c: pl.Series(c.to_numpy().astype("datetime64[ms]")),
    "polars zone": lambda c: pl.Series(c.to_numpy().astype("datetime64[us]")).dt.replace_time_zone("UTC"),
}

LATEST = ["2020-11-15", dt.date(2020, 11, 15), pd.Timestamp("2020-11-15"), np.datetime64("2020-11-15")]


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_days_in_order(kind: str) -> None:
    """The nearest day of all that the model gives the other class, and the answer is a date like the user's."""
    days = _moments()
    column = DATES[kind](days)
    table = pl.DataFrame({"since": column}) if isinstance(column, pl.Series) else pd.DataFrame({"since": column})
    labels = ((days > "2020-05-01") ^ (days > "2021-03-01")).astype(int)
    model = Pipeline(
        [("days", FunctionTransformer(age_in_days)), ("trees", RandomForestClassifier(5, max_depth=3, random_state=0))]
    ).fit(table, labels)
    explainer = Explainer(model, table, monotone={"days": "increasing"})
    (feature,) = explainer.space.features
    assert (feature.kind, feature.scale) == ("integer", (days.max() - days.min()).days)
    every = pd.date_range(days.min(), days.max())
    counted = pd.DataFrame({"since": (every - pd.Timestamp(0)) / pd.Timedelta(days=1)})
    said = model.named_steps["trees"].predict(counted)
    for place in range(0, 12, 3):
        (e,) = explainer.explain(table[place : place + 1])
        away = np.abs((every - days[place]).days)[said == e.target].min()
        assert e.cost == pytest.approx(away / feature.scale)
        assert (e.status, e.verified) == ("optimal", True)
        assert model.predict(e.counterfactual)[0] == e.target
        assert list(e.counterfactual.dtypes) == list(table.dtypes)
        assert abs(e.own_changes["change"].iloc[0]) == away
        assert "00:00:00" not in str(e).replace("00:00:00+", "")


@pytest.mark.parametrize(("kind", "latest"), [*zip(DATES, cycle(LATEST), strict=False)])
def test_dates_in_constraints_conflicts_and_regions(kind: str, latest: Any, tmp_path: Path) -> None:
    """An implication on a date against all days, in the result's own words too; a range of dates is said in dates."""
    days = _moments()
    column, n = DATES[kind](days), np.random.default_rng(3).integers(0, 9, len(days))
    held = {"since": column, "n": n}
    table = pl.DataFrame(held) if isinstance(column, pl.Series) else pd.DataFrame(held)
    columns = make_column_transformer((FunctionTransformer(age_in_days), ["since"]), remainder="passthrough")
    trees = DecisionTreeClassifier(max_depth=4, random_state=0)
    model = make_pipeline(columns, trees).fit(table, ((days > "2020-05-01") & (n > 2)).astype(int))
    explainer = Explainer(model, table, monotone={"functiontransformer": "increasing"})
    place = int(np.flatnonzero((days < "2020-02-01").to_numpy() & (n < 2))[0])
    row = table[place : place + 1]
    late = Implication({"n": (5, None)}, {"since": {"min": latest}})
    (e,) = explainer.explain(row, target=1, constraints=late)
    every = pd.date_range(days.min(), days.max())
    grid = pd.MultiIndex.from_product([every, range(9)], names=["since", "n"]).to_frame(index=False)
    numbers = pd.DataFrame({"since": (grid["since"] - pd.Timestamp(0)) / pd.Timedelta(days=1), "n": grid["n"]})
    right = (trees.predict(numbers.to_numpy()) == 1) & ((grid["n"] < 5) | (grid["since"] >= "2020-11-15")).to_numpy()
    scales = {f.name: f.scale for f in explainer.space.features}
    cost = (grid["since"] - days[place]).dt.days.abs() / scales["since"] + (grid["n"] - n[place]).abs() / scales["n"]
    assert (e.status, e.verified) == ("optimal", True)
    assert e.cost == pytest.approx(cost[right].min())
    e.to_json(tmp_path / "one.json")
    [(_, verification)] = verify_file(tmp_path / "one.json", as_user_model(model))
    assert verification.ok
    data = json.loads((tmp_path / "one.json").read_text())
    data["constraints"] = [Implication({}, {"since": (dt.date(2021, 8, 1), None)}, name="later").to_dict()]
    (tmp_path / "one.json").write_text(json.dumps(data))
    [(_, verification)] = verify_file(tmp_path / "one.json", as_user_model(model))
    assert any("consequence on 'since'" in problem for problem in verification.problems)

    own = row["since"][place if isinstance(table, pd.DataFrame) else 0]
    (e,) = explainer.explain(row, target=1, permitted_range={"since": (own, own)}, diagnose=True)
    assert e.status == "infeasible"
    assert e.conflict[0].startswith(f"'since' must be {days[place].date()}")

    found = explainer.counterfactual_regions(row, radius=2.0, target=1)
    nearest = found.points()[:1]
    inside = nearest.to_dicts()[0] if isinstance(nearest, pl.DataFrame) else nearest.iloc[0]
    region = next(iter(found))
    assert region.contains(inside)
    assert region.contains({**dict(inside), "since": str(inside["since"])})
    assert not region.contains({**dict(inside), "since": own})


def test_what_is_no_date_in_a_constraint() -> None:
    days = _moments()
    for column in (days, days.dt.tz_localize("Europe/Berlin")):
        space = infer_space(pd.DataFrame({"since": column}))
        with pytest.raises(ProblemError, match=r"'since': it should hold dates"):
            Implication({}, {"since": "soon"}).check(space)
    assert Linear({"since": 1}, "<=", dt.timedelta(days=3, hours=12)).bound == 3.5


def test_rules_say_dates_as_dates() -> None:
    days = _moments()
    n = np.random.default_rng(3).integers(0, 9, len(days))
    table = pd.DataFrame({"since": list(days.dt.date), "n": n})
    late = (days > "2020-05-01").to_numpy().astype(int)
    rules = CounterfactualRules(None, table, late, n_estimators=3)
    found = rules.local(table[late == 0].iloc[[0]], target=1)
    conditions = [c for rule in found for c in rule.conditions if c.feature == "since"]
    assert any(isinstance(c.lower, dt.date) and f"{c.lower:%Y-%m}" in ("2020-04", "2020-05") for c in conditions)
    assert all(str(c.lower) in str(c) for c in conditions if c.lower is not None)
    assert found.plot() is not None


def test_times_of_day_and_durations() -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "at": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 5000, 80), "min"),
            "took": pd.to_timedelta(rng.integers(0, 300, 80), "s"),
        }
    )
    labels = (table["took"] > pd.Timedelta(seconds=150)) | (table["at"] > pd.Timestamp("2024-01-03 10:30"))

    def numbers(t: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            {"at": (t["at"] - pd.Timestamp(0)).dt.total_seconds(), "took": t["took"].dt.total_seconds()}
        )

    model = Pipeline(
        [("seconds", FunctionTransformer(numbers)), ("trees", DecisionTreeClassifier(max_depth=3, random_state=0))]
    ).fit(table, labels)
    explainer = Explainer(model, table, monotone={"seconds": "increasing"})
    assert [f.step for f in explainer.space.features] == [1 / 1440, 1 / 86_400]
    for place in range(6):
        (e,) = explainer.explain(table.iloc[[place]], norm="l0")
        assert (e.status, e.verified) == ("optimal", True)
        assert model.predict(e.counterfactual)[0] == e.target
        (moved,) = e.counterfactual["at"]
        assert moved == moved.floor("min")
    late = {"at": "2024-01-02 10:00", "took": "00:00:30"}
    (e,) = explainer.explain(late, features_to_vary=["at"], permitted_range={"at": ("2024-01-01", "2024-01-04")})
    every = pd.date_range(late["at"], "2024-01-04", freq="min")
    said = model.predict(pd.DataFrame({"at": every, "took": pd.Timedelta(late["took"])}))
    assert e.counterfactual["at"].iloc[0] == every[said][0]
    with pytest.raises(DataError, match=r"'at' holds times that .* cannot hold|parts of a microsecond"):
        explainer.explain({"at": pd.Timestamp("2024-01-02 10:00:00.000000001"), "took": "00:00:30"})


def test_decimals() -> None:
    prices = [Decimal(int(p)) / 100 for p in np.random.default_rng(3).integers(100, 9000, 60)]
    table = pd.DataFrame({"price": pd.Series(prices, dtype=object), "n": np.arange(60)})
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2, random_state=0))
    model.fit(table, [p > 40 for p in prices])
    frames = (
        table,
        pl.from_pandas(table.astype({"price": float})).with_columns(pl.col("price").cast(pl.Decimal(9, 2))),
    )
    for frame in frames:
        (e,) = Explainer(model, frame).explain(frame[:1])
        price = e.counterfactual["price"][0]
        assert isinstance(price, Decimal)
        assert price == round(price, 2)
        assert (e.status, e.verified) == ("optimal", True)
        cents = np.arange(9000)
        said = model.predict(pd.DataFrame({"price": cents / 100, "n": table["n"][0]})) == e.target
        assert abs(price - prices[0]) * 100 == int(np.abs(cents[said] - int(prices[0] * 100)).min())


def test_two_columns_of_one_name() -> None:
    model = forest(TABLE)
    doubled = pd.concat([TABLE, TABLE[["age"]]], axis=1)
    with pytest.raises(DataError, match="two columns of the table are named 'age': give each a name of its own"):
        Explainer(model, doubled)
    with pytest.raises(DataError, match="occur twice: age; rename or drop one"):
        Explainer(model, TABLE).explain(doubled)


def test_no_rows() -> None:
    explainer = Explainer(forest(TABLE), TABLE)
    for rows in (TABLE.iloc[:0], pl.from_pandas(TABLE)[:0], np.zeros((0, 4)), {name: [] for name in TABLE}):
        with pytest.raises(DataError, match="no rows to explain: give a table of at least one"):
            explainer.explain(rows)
    with pytest.raises(DataError, match="the data table is empty"):
        Explainer(forest(TABLE), TABLE.iloc[:0])


def test_a_missing_date_stays_missing() -> None:
    days = _moments()
    table = pd.DataFrame({"since": days.where(days.index % 7 > 0), "n": np.arange(len(days)) % 9})
    assert dt.date(2019, 3, 1) <= table["since"].min().date()
    from xgboost import XGBClassifier

    model = Pipeline([("days", FunctionTransformer(lambda t: t.assign(since=age_in_days(t[["since"]])["since"]))),
                      ("trees", XGBClassifier(n_estimators=3, max_depth=2, n_jobs=1))])  # fmt: skip
    model.fit(table, (days > "2020-05-01").astype(int) ^ (table["n"] > 5))
    explainer = Explainer(model, table, monotone={"days": "increasing"})
    (e,) = explainer.explain(table.iloc[[0]])
    assert (e.status, e.verified) == ("optimal", True)
    assert pd.isna(e.counterfactual["since"].iloc[0])
    assert model.predict(e.counterfactual)[0] == e.target


def test_regions_in_the_users_tables() -> None:
    days = _moments()
    table = pl.DataFrame({"since": list(days.dt.date), "n": list(range(len(days)))})
    columns = make_column_transformer((FunctionTransformer(age_in_days), ["since"]), remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeClassifier(max_depth=2, random_state=0)).fit(table, days > "2020-05-01")
    explainer = Explainer(model, table, monotone={"functiontransformer": "increasing"})
    row = table.filter(pl.col("since") < dt.date(2020, 4, 1))[:1]
    found = explainer.counterfactual_regions(row, radius=2.0)
    frame, points = found.to_frame(), found.points()
    assert frame.schema["since_lowest"] == pl.Datetime("us")
    assert points.schema == table.schema
    assert model.predict(points).all()
    (nearest,) = explainer.explain(row, n_optimal=2)
    lowest = frame["since_lowest"][0]
    assert lowest.date() == nearest.counterfactual["since"][0]
    assert not model.predict(row.with_columns(since=pl.lit(lowest.date() - dt.timedelta(days=1))))[0]


def test_columns_that_are_numbers_are_named_by_them() -> None:
    """In every setting; and rows in arrays are answered under them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=[2, 0, 1])
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, (table[0] + table[1] > 0).astype(int))
    row = table[model.predict(table) == 0].iloc[[0]]
    asked: list[dict[str, Any]] = [
        {"features_to_vary": [0]},
        {"weights": {0: 3.0}},
        {"permitted_range": {0: (-1.0, 0.4)}},
        {"round_to": {0: 1}},
        {"margin": {1: 0.01}},
    ]
    explainer = Explainer(model, data=table)
    plain = explainer.explain(row, 1)[0]
    for rows in (row, row.to_numpy(), row.iloc[0], row.iloc[0].to_dict()):
        found = explainer.explain(rows, 1)[0]
        assert found.cost == plain.cost
        assert found.counterfactual is not None
        assert list(found.counterfactual.columns) == [2, 0, 1]
    costs = []
    for settings in asked:
        by_text = {
            key: [str(v) for v in own] if isinstance(own, list) else {str(k): v for k, v in own.items()}
            for key, own in settings.items()
        }
        costs.append([explainer.explain(row, 1, **own)[0].cost for own in (settings, by_text)])
        assert costs[-1][0] == costs[-1][1]
    assert any(cost != plain.cost for cost, _ in costs)
    fixed, worded = (
        Explainer(model, data=table, features={name: {"actionability": "fixed"}}).explain(row, 1)[0]
        for name in (0, "0")
    )
    assert "0" not in {*fixed.changes["feature"]}
    assert (fixed.cost, fixed.status) == (worded.cost, worded.status)


def test_all_questions_about_arrays_are_answered_under_labels_that_are_numbers() -> None:
    """Leaves, ideals, rows that exist, and rules."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 3)), columns=[2, 0, 1])
    gain = (table[2] + table[0] > 0).astype(int)
    # nameless to scikit-learn, whose steps warn of labels that are text
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)).fit(table, gain)
    row = table[model.predict(table) == 0].iloc[0].to_numpy()
    explainer = Explainer(model, data=table)
    found = [
        explain_leaves(explainer, row, 1)[0],
        improve(explainer, row, {"0": float(row[1]) - 0.1})[0],
        nearest_instances(explainer, row, table.to_numpy(), 1)[0],
    ]
    for answer in found:
        assert answer.counterfactual is not None
        assert list(answer.original.columns) == list(answer.counterfactual.columns) == [2, 0, 1]
    rules = CounterfactualRules(model, table, rule_level=0.8)
    local = rules.local(row, 1, time_limit=None)
    point = rules.sample(local[0], row, 1)
    assert list(point.point.columns) == [2, 0, 1]
    assert model.predict(point.point)[0] == point.decided
    assert list(rules.trade_off(row, 1, time_limit=None).columns[-3:]) == [2, 0, 1]

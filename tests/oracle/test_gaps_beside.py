"""Across files: missing values beside batches, regions, saved explainers, other kinds of tables and hyperplanes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from oracle.gappy import CODES, MODELS, NUMBERS, VALUES, WORD, gappy_table
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, Explanation
from ocf.errors import ProblemError, UnsupportedModelError
from ocf.explain.together import Together

#: Whole numbers, in columns that hold gaps.
WHOLE = {name: {"kind": "integer", "bounds": [VALUES[0], VALUES[-1]]} for name in NUMBERS}

WISH = {"cost_of_supplying": 0.5, "may_become_missing": ["a", WORD], "cost_of_becoming_missing": 0.3}


def same(found: Explanation, alone: Explanation) -> None:
    assert (found.status, found.cost, found.verified, found.checks) == (
        alone.status,
        alone.cost,
        alone.verified,
        alone.checks,
    )
    if alone.counterfactual is None:
        assert found.counterfactual is None
    else:
        pd.testing.assert_frame_equal(found.counterfactual, alone.counterfactual)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that were judged together."""
    seen: list[int] = []
    explain = Together.explain

    def counting(self: Any, rows: Any) -> Any:
        seen.append(len(rows))
        return explain(self, rows)

    monkeypatch.setattr(Together, "explain", counting)
    return seen


@pytest.mark.parametrize("name", ["forest behind indicators", "hist"])
def test_rows_of_a_batch_get_what_each_gets_by_itself(name: str, judged: list[int]) -> None:
    table, classes = gappy_table(5, codes=0.15)
    model = MODELS[name]().fit(table, classes)
    explainer = Explainer(model, table, WHOLE, special_values=CODES)
    predicted = model.predict(table)
    gaps = table.isna().any(axis=1)
    rows = pd.concat([table[(predicted == 0) & gaps].iloc[:5], table[(predicted == 0) & ~gaps].iloc[:2]])
    rows = pd.concat([rows, table[predicted == 1].iloc[:1]])  # has the target already
    for missing in (None, True, WISH):
        for k, found in enumerate(explainer.explain(rows, 1, missing=missing)):
            same(found, explainer.explain(rows.iloc[[k]], 1, missing=missing)[0])
    assert [n for n in judged if n > 1] == [len(rows)] * 3


def test_rows_with_completions_are_judged_one_by_one(judged: list[int]) -> None:
    table, classes = gappy_table(5)
    model = MODELS["hist"]().fit(table, classes)
    rows = table[(model.predict(table) == 0) & table["a"].isna() & table.drop(columns="a").notna().all(axis=1)].iloc[:3]
    said = pd.DataFrame({"a": [1.0, 4.0]})
    explainer = Explainer(model, table, WHOLE)
    found = explainer.explain(rows, 1, imputations=said)
    for k, answer in enumerate(found):
        same(answer, explainer.explain(rows.iloc[[k]], 1, imputations={rows.index[k]: said})[0])
        if answer.counterfactual is None:
            continue
        completed = pd.concat([answer.counterfactual.assign(a=a) for a in said["a"]])
        assert (model.predict(completed) == 1).all()
    assert judged == []


def test_a_saved_explainer_remembers_gaps_and_codes(tmp_path: Path) -> None:
    table, classes = gappy_table(8, missing=0.1, codes=0.3)
    model = MODELS["hist"]().fit(table, classes)
    explainer = Explainer(model, table, WHOLE, special_values=CODES, missing=WISH)
    rows = table[(model.predict(table) == 0) & table.isna().any(axis=1)].iloc[:3]
    found = explainer.explain(rows, 1)
    explainer.save(tmp_path / "saved.ocf")
    for one, again in zip(
        found, Explainer.load(tmp_path / "saved.ocf", trust_pickle=True).explain(rows, 1), strict=True
    ):
        same(again, one)
    assert [one.cost for one in found] != [one.cost for one in explainer.explain(rows, 1, missing=False)]


def test_regions_are_those_of_a_row_whose_gaps_stay() -> None:
    table, classes = gappy_table(8, missing=0.2, codes=0.2)
    model = MODELS["hist"]().fit(table, classes)
    rows = table[(model.predict(table) == 0) & table["a"].isna()]
    explainer = Explainer(model, table, WHOLE, special_values=CODES, missing=WISH)
    answer = next(answer for answer in explainer.explain(rows, 1, missing=False) if answer.found)
    row = rows.loc[[answer.row]]
    stays = [name for name in NUMBERS if pd.isna(row[name].iloc[0]) or row[name].iloc[0] in CODES]
    regions = explainer.counterfactual_regions(row, 1, radius=answer.cost + 0.25)
    found = list(regions)
    assert found[0].cost == pytest.approx(answer.cost, rel=1e-9)
    points = regions.points()
    assert all(points[name].equals(pd.Series([row[name].iloc[0]] * len(points), dtype=float)) for name in stays)
    assert (model.predict(points) == 1).all()
    assert all(region.ranges[name] is None for region in found for name in stays)


def test_a_table_of_polars_with_gaps_is_answered_in_polars() -> None:
    table, classes = gappy_table(5)
    table = table[[*NUMBERS]]
    model = HistGradientBoostingClassifier(max_iter=4, max_depth=3, min_samples_leaf=5).fit(table, classes)
    rows = table[(model.predict(table) == 0) & table["a"].isna()].iloc[:3].reset_index(drop=True)
    theirs, own = (Explainer(model, kind, WHOLE) for kind in (pl.from_pandas(table, nan_to_null=True), table))
    given = pl.from_pandas(rows, nan_to_null=True)
    for missing in (None, {"cost_of_supplying": 0.2}):
        for found, plain in zip(
            theirs.explain(given, 1, missing=missing), own.explain(rows, 1, missing=missing), strict=True
        ):
            assert (found.status, found.cost, found.verified) == (plain.status, plain.cost, plain.verified)
            if plain.counterfactual is None:
                continue
            assert isinstance(found.counterfactual, pl.DataFrame)
            held = found.counterfactual.fill_nan(None).to_dicts()[0]
            assert held == pl.from_pandas(plain.counterfactual, nan_to_null=True).to_dicts()[0]
    rows = table[table["a"].isna() & table.drop(columns="a").notna().all(axis=1)].iloc[:8]
    said = pd.DataFrame({"a": [4.0, 5.0]})
    plain = own.explain(rows.reset_index(drop=True), imputations=said)
    found = theirs.explain(pl.from_pandas(rows, nan_to_null=True), imputations=pl.from_pandas(said))
    assert [e.cost for e in found] == [e.cost for e in plain]
    assert any(e.verified and e.imputations["met"] == 2 for e in found)


def behind_components() -> Any:
    """A tree that sees sums of a and b, filled where they are missing, and c by itself with an indicator."""
    sums = make_pipeline(SimpleImputer(), PCA(2))
    alone = SimpleImputer(add_indicator=True)
    return make_pipeline(
        make_column_transformer((sums, ["a", "b"]), (alone, ["c"])), DecisionTreeClassifier(max_depth=4)
    )


def test_sums_of_columns_that_may_be_supplied_are_refused() -> None:
    table, classes = gappy_table(3)
    table = table[[*NUMBERS]]
    model = behind_components().fit(table, classes)
    explainer = Explainer(model, table, WHOLE)
    complete = table[["a", "b"]].notna().all(axis=1)
    row = table[(model.predict(table) == 0) & complete & table["c"].isna()].iloc[[0]]
    with pytest.raises(ProblemError, match="no value that may be supplied or become missing: leave out special_values"):
        explainer.explain(row, 1, missing={"cost_of_supplying": {"c": 0.1}})
    problem = explainer.problem(row, 1, missing={"cost_of_supplying": {"c": 0.1}})
    assert problem.ensemble.is_oblique
    row = table[(model.predict(table) == 0) & table["a"].isna() & table["b"].notna()].iloc[[0]]
    for ask in (explainer.explain, explainer.problem):
        with pytest.raises(UnsupportedModelError, match="where 'a' is missing it depends on other features too"):
            ask(row, 1, missing={"cost_of_supplying": {"a": 0.1}})
    (answer,) = explainer.explain(row, 1)
    assert answer.status in ("optimal", "infeasible"), answer

"""Missing values that may be supplied, values that may go missing, and codes, against all rows of small tables."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.gappy import CODES, MODELS, NORMS, NUMBERS, VALUES, WORD, Gappy, gappy_table
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from ocf import Explainer
from ocf.formulations import FORMULATIONS
from ocf.solvers import CELL_SOLVERS, SOLVERS
from ocf.verify.files import verify_file

#: Whole numbers, in columns that hold gaps.
WHOLE = {name: {"kind": "integer", "bounds": [VALUES[0], VALUES[-1]]} for name in NUMBERS}

PRICES = {"a": 0.35, "b": 1.2, "c": 0.0, WORD: 0.6}


def fitted(name: str, seed: int, **shares: float) -> tuple[Any, pd.DataFrame, Explainer]:
    table, classes = gappy_table(seed, **shares)
    model = MODELS[name]().fit(table, classes)
    codes = CODES if shares.get("codes") else None
    return model, table, Explainer(model, table, WHOLE, special_values=codes)


def agree(found: Any, asked: Gappy, target: int) -> None:
    """The answer costs what the best of all rows costs, is one of them, and is verified."""
    best = asked.cheapest(target)
    if math.isinf(best):
        assert found.status == "infeasible", found
        return
    assert found.status == "optimal", (found, best)
    assert found.cost == pytest.approx(best, rel=1e-9, abs=1e-12), (found, best)
    assert found.verified, found.checks
    for name in asked.row.columns:
        new = found.counterfactual[name].iloc[0]
        values = [v for v, _ in asked.choices(name)]
        assert new in values or (pd.isna(new) and any(pd.isna(v) for v in values)), (name, new)
    assert found.changes["cost"].sum() == pytest.approx(found.cost, abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("norm", NORMS)
def test_supplying_and_going_missing(name: str, norm: str) -> None:
    model, table, explainer = fitted(name, 5)
    said = {"cost_of_supplying": PRICES, "may_become_missing": ["a", WORD], "cost_of_becoming_missing": 0.45}
    predicted = model.predict(table)
    for target in (0, 1):
        rows = table[(predicted != target) & (table.isna().sum(axis=1) > 0)].iloc[:1]
        rows = pd.concat([rows, table[(predicted != target) & table.notna().all(axis=1)].iloc[:1]])
        for k, answer in enumerate(explainer.explain(rows, target, NORMS[norm], missing=said)):
            asked = Gappy(model, rows.iloc[[k]], NORMS[norm], PRICES, {"a": 0.45, WORD: 0.45})
            agree(answer, asked, target)


@pytest.mark.parametrize("name", MODELS)
def test_codes_and_gaps_together(name: str) -> None:
    model, table, explainer = fitted(name, 8, missing=0.1, codes=0.3)
    rows = table[(model.predict(table) == 0) & (table[list(NUMBERS)] < 0).any(axis=1)].iloc[:4]
    said = {"cost_of_supplying": 0.7, "may_become_missing": ["b"], "cost_of_becoming_missing": {"b": 0.4}}
    for k in range(len(rows)):
        row = rows.iloc[[k]]
        stays = Gappy(model, row, "l1", codes=CODES)
        agree(explainer.explain(row, 1)[0], stays, 1)
        moves = Gappy(model, row, "l1", dict.fromkeys(table, 0.7), {"b": 0.4}, CODES)
        agree(explainer.explain(row, 1, missing=said)[0], moves, 1)


@pytest.mark.parametrize(
    ("formulation", "solver"),
    [*itertools.product(FORMULATIONS, SOLVERS), *(("interval", name) for name in CELL_SOLVERS)],
)
def test_all_formulations_and_solvers(formulation: str, solver: str) -> None:
    for name in ("forest behind indicators", "hist"):
        model, table, explainer = fitted(name, 21, missing=0.2, codes=0.15)
        rows = table[(model.predict(table) == 0) & table.isna().any(axis=1)].iloc[:2]
        said = {"cost_of_supplying": 0.5, "may_become_missing": ["a"], "cost_of_becoming_missing": 0.25}
        for reduce in (True, False):
            found = explainer.explain(rows, 1, missing=said, formulation=formulation, solver=solver, reduce=reduce)
            for k, answer in enumerate(found):
                asked = Gappy(model, rows.iloc[[k]], "l1", dict.fromkeys(table, 0.5), {"a": 0.25}, CODES)
                agree(answer, asked, 1)


def test_fixed_features_and_permitted_ranges_bind_what_is_supplied() -> None:
    model, table, explainer = fitted("hist", 5)
    rows = table[(model.predict(table) == 0) & table["a"].isna()].iloc[:3]
    permitted = {"a": (1, 2), "b": (0, 4)}
    for k in range(len(rows)):
        row = rows.iloc[[k]]
        found = explainer.explain(row, 1, missing=True, permitted_range=permitted, features_to_vary=["a", "b", "c"])[0]
        asked = Gappy(model, row, "l1", dict.fromkeys(table, 1.0), fixed=(WORD,), permitted=permitted)
        agree(found, asked, 1)


def test_constraints_on_the_number_of_changes_count_what_is_supplied() -> None:
    model, table, explainer = fitted("forest", 5)
    said = {"cost_of_supplying": 0.01, "may_become_missing": ["a"], "cost_of_becoming_missing": 0.01}
    rows = table[model.predict(table) == 0].iloc[:6]
    most = [{"kind": "max_changes", "most": 1}]
    free = explainer.explain(rows, 1, missing=said)
    bound = explainer.explain(rows, 1, missing=said, constraints=most)
    assert all(len(e.changes) <= 1 and e.verified for e in bound if e.found)
    assert any(len(e.changes) > 1 for e in free)
    for k, answer in enumerate(bound):
        asked = Gappy(model, rows.iloc[[k]], "l0", dict.fromkeys(table, 0.0), {"a": 0.0})
        assert answer.found == (asked.cheapest(1) <= 1.0)


def test_answers_and_problems_survive_a_file_and_a_check_by_the_model_alone(tmp_path: Any) -> None:
    from ocf import Explanations, Problem

    model, table, explainer = fitted("hist", 5, missing=0.2, codes=0.1)
    said = {"cost_of_supplying": 0.5, "may_become_missing": [WORD], "cost_of_becoming_missing": 0.25}
    rows = table[(model.predict(table) == 0) & table.isna().any(axis=1)].iloc[:4]
    found = explainer.explain(rows, 1, missing=said)
    path = tmp_path / "found.json"
    path.write_text(found.to_json())
    assert Explanations.from_json(found.to_json()) == found
    assert all(v.ok for _, v in verify_file(path, explainer.model))
    problem = explainer.problem(rows.iloc[[0]], 1, missing=said)
    again = Problem.from_json(problem.to_json())
    assert again.to_json() == problem.to_json()
    assert np.array_equal(again.origin, problem.origin, equal_nan=True)


SAID = {"cost_of_supplying": PRICES, "may_become_missing": ["a"], "cost_of_becoming_missing": 0.45}


def gaps_of(table: pd.DataFrame, model: Any, count: int) -> pd.DataFrame:
    return table[(model.predict(table) == 0) & table.isna().any(axis=1)].iloc[:count]


@pytest.mark.parametrize("diversity", ["region", "features", "distance"])
def test_the_next_answers_are_no_cheaper_and_verified(diversity: str) -> None:
    model, table, explainer = fitted("hist", 5, missing=0.2, codes=0.1)
    rows = gaps_of(table, model, 3)
    found = explainer.explain(rows, 1, missing=SAID, n_explanations=2, diversity=diversity)
    assert all(e.status == "optimal" and e.verified for e in found if e.rank == 1)
    for label in rows.index:
        first, *others = (e for e in found if e.row == label)
        if diversity == "features" and others and others[0].found:
            assert set(first.changes["feature"]) - set(others[0].changes["feature"])
        space = first.problem.space
        points = [space.with_missing(space.from_frame(e.counterfactual)) for e in (first, *others) if e.found]
        regions = [first.problem.ensemble.apply(point)[0].tolist() for point in points]
        assert diversity != "region" or len(set(map(tuple, regions))) == len(regions)
        for other in others:
            assert other.status == "infeasible" or (other.verified and other.cost >= first.cost), other.message


def test_tied_answers_are_counted_by_trying_all() -> None:
    model, table, explainer = fitted("hist", 5, missing=0.2)
    row = gaps_of(table, model, 1)
    found = explainer.explain(row, 1, missing=SAID, n_optimal=50)[0]
    assert found.ties_complete
    assert found.verified
    agree(found, Gappy(model, row, "l1", PRICES, {"a": 0.45}), 1)
    for tie in found.ties:
        assert model.predict(tie)[0] == 1
        assert found.changes_to(tie)["cost"].sum() == pytest.approx(found.cost, abs=1e-12)


def test_trees_near_the_row_alone_give_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    model, table, explainer = fitted("hist", 5, missing=0.2, codes=0.1)
    rows = gaps_of(table, model, 4)
    wanted = [e.cost for e in explainer.explain(rows, 1, missing=SAID)]
    monkeypatch.setattr("ocf.solve.prepared.MANY_LEAVES", 5)
    near = Explainer(model, table, WHOLE, special_values=CODES).explain(rows, 1, missing=SAID)
    assert [e.cost for e in near] == wanted
    assert all("balls" in e.sizes for e in near)


def test_a_fixed_feature_that_might_be_supplied_is_named() -> None:
    model, table, explainer = fitted("hist", 5, missing=0.2, codes=0.1)
    rows = gaps_of(table, model, 4)
    found = explainer.explain(rows, 1, missing=SAID, features_to_vary=[], diagnose=True)
    assert all(e.status == "infeasible" for e in found)
    free = explainer.explain(rows, 1, missing=SAID)
    assert [bool(e.conflict) for e in found] == [e.found for e in free]


@pytest.mark.parametrize("seed", range(8))
def test_gaps_of_words_are_asked_about_as_the_data_marks_them(seed: int) -> None:
    """An encoder tells None from NaN: a row with the other mark is explained as the data would hold it."""
    rng = np.random.default_rng(seed)
    mark, of_row = (np.nan, None)[seed % 2], (np.nan, None)[(seed // 2) % 2]
    words = pd.Series(rng.choice(np.array(["a", "b", "c", mark], object), 80), dtype=object)
    table = pd.DataFrame({"x": rng.integers(0, 9, 80).astype(float), "w": words})
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = make_pipeline(
        make_column_transformer((encoder, ["w"]), remainder="passthrough"),
        ExtraTreesClassifier(6, max_depth=4, random_state=seed),
    ).fit(table, (table.x > 4) ^ table.w.isna())
    row = pd.DataFrame({"x": [4.0], "w": pd.Series([of_row], dtype=object)})
    found = Explainer(model, data=table).explain(row)[0]
    grid = pd.DataFrame({"x": np.linspace(table.x.min(), table.x.max(), 801)})
    grid["w"] = pd.Series([mark] * len(grid), dtype=object)
    flipped = model.predict(grid) != found.predicted
    cost = np.abs(grid.x - 4)[flipped].min() / np.ptp(table.x) if flipped.any() else np.inf
    assert (np.inf if found.cost is None else found.cost) <= cost + 1e-9
    if found.counterfactual is not None:
        assert model.predict(found.counterfactual)[0] == found.decided != found.predicted


@pytest.mark.parametrize("library", ["sklearn", "lightgbm"])
def test_a_truth_value_that_is_missing_in_the_row_alone(library: str) -> None:
    """NumPy's dtype of truth values makes True of NaN, which another point is the cheapest of."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=400).round(2), "t": rng.random(400) < 0.5})
    y = ((table.a > 0.5) & ~table.t) | (table.a > 1.2)
    booster = (
        pytest.importorskip("lightgbm").LGBMClassifier if library == "lightgbm" else HistGradientBoostingClassifier
    )
    model = booster(max_leaf_nodes=4) if library == "sklearn" else booster(num_leaves=4, verbose=-1)
    model.fit(table, y)
    explainer = Explainer(model, table)
    tried = np.arange(0, 2, 0.005)

    def least(t: float) -> float:
        met = model.predict(pd.DataFrame({"a": tried, "t": t})).astype(bool)
        return float(tried[met].min() / (table.a.max() - table.a.min()))

    best = least(np.nan)
    for gap in (np.nan, None, pd.NA):
        column = (
            pd.array([gap], dtype="boolean")
            if gap is pd.NA
            else pd.Series([gap], dtype=object if gap is None else float)
        )
        (found,) = explainer.explain(pd.DataFrame({"a": [0.0], "t": column}), target=True)
        assert found.status == "optimal"
        assert found.verified
        assert best - 0.005 <= found.cost <= best
    may = {"may_become_missing": ["t"], "cost_of_becoming_missing": 0.01}
    (found,) = explainer.explain(pd.DataFrame({"a": [0.0], "t": [True]}), target=True, missing=may)
    best = min(least(1.0), best + 0.01)
    assert found.status == "optimal"
    assert best - 0.005 <= found.cost <= best

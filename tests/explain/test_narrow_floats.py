"""Across files: columns of narrow floats are asked about by the decimals that they read as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from ocf import Budget, CounterfactualRules, Explainer, Explanation, Implication, Linear
from ocf.errors import ProblemError
from ocf.features.curve import Curve
from ocf.features.feature import Feature
from ocf.features.own_cost import amount_of, cuts_of
from ocf.verify.files import verify_file

DTYPES = ["float64", "float32", "float16", "Float32", "float[pyarrow]"]

#: Settings of the feature, and of the question; 0.6 is just above the threshold, and its float32 above 0.6.
QUESTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "permitted range": ({}, {"permitted_range": {"rate": (0, 0.6)}}),
    "bounds": ({"bounds": [0, 0.6]}, {}),
    "at most": ({}, {"constraints": [Linear({"rate": 1}, "<=", 0.6)]}),
    "equal": ({}, {"constraints": [Linear({"rate": 1}, "=", 0.6)]}),
    "change": ({}, {"constraints": [Linear({"rate": 1}, "<=", 0.3, relative=True)]}),
    "implication": ({}, {"constraints": [Implication({"b": {"max": 5}}, {"rate": {"max": 0.6}})]}),
    "budget": ({}, {"constraints": [Budget(0.3, {"rate": 1})]}),
    "steps": ({"cost": {"points": [[0, 0], [0.3, 1.0], [0.4, 5.0]], "steps": True}}, {}),
    "values": ({"cost": {"points": [[0, 0], [0.6, 1.0], [0.7, 5.0]], "of": "value", "steps": True}}, {}),
}


def rates(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"rate": np.round(rng.integers(0, 11, n) * 0.1, 1), "b": rng.integers(0, 9, n)})


def checked(explanation: Explanation, explainer: Explainer, path: Path) -> Explanation:
    path.write_text(explanation.to_json())
    for _, found in verify_file(path, explainer.prepared.model):
        assert found.ok, str(found)
    return explanation


@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_that_are_said_hold_the_value_that_reads_so(dtype: str, asked: str, tmp_path: Path) -> None:
    table = rates().astype({"rate": dtype})
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, rates().rate > 0.55)
    feature, settings = QUESTIONS[asked]
    explainer = Explainer(model, table, features={"rate": {"step": 0.1, **feature}})
    row = pd.DataFrame({"rate": [0.3], "b": [2]}).astype({"rate": dtype})
    answer = explainer.explain(row, True, features_to_vary=["rate"], **settings)[0]
    assert answer.status == "optimal"
    assert answer.counterfactual is not None
    assert str(answer.counterfactual.rate.iloc[0]) == "0.6" or answer.counterfactual.rate.iloc[0] == np.float32(0.6)
    assert "0.3   0.6" in str(answer)
    checked(answer, explainer, tmp_path / "answer.json")


@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.parametrize("held", DTYPES)
def test_rows_of_another_width_are_asked_about_alike(held: str, asked: str, tmp_path: Path) -> None:
    table = rates().astype({"rate": held})
    table = table[table.rate < 0.69]  # bounds that nobody says are 0.6, too
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, table.rate > 0.55)
    feature, settings = QUESTIONS[asked]
    explainer = Explainer(model, table, features={"rate": {"step": 0.1, **feature}})
    for dtype in ("float64", "float32", held):
        rows: Any = pd.DataFrame({"rate": [0.3], "b": [2]}).astype({"rate": dtype})
        answer = explainer.explain(rows, True, features_to_vary=["rate"], **settings)[0]
        assert answer.status == "optimal", dtype
        assert "0.3   0.6" in str(answer)
        checked(answer, explainer, tmp_path / "answer.json")
    low = {"permitted_range": {"rate": (0.6, 2)}}
    assert explainer.explain([{"rate": 0.3, "b": 2}], True, features_to_vary=["rate"], **low)[0].status == "optimal"


@pytest.mark.parametrize("norm", ["mahalanobis", "mahalanobis_l1", "l2"])
def test_costs_are_of_the_numbers_that_columns_hold(norm: str, tmp_path: Path) -> None:
    table = rates().astype({"rate": "float32"})
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(table, rates().rate + rates().b / 9 > 1.1)
    explainer = Explainer(model, table, features={"rate": {"step": 0.1}})
    for answer in explainer.explain(table[~model.predict(table)].iloc[:5], True, norm):
        assert answer.status == "optimal"
        checked(answer, explainer, tmp_path / "answer.json")


def test_answers_on_a_grid_are_as_far_apart_as_they_read(tmp_path: Path) -> None:
    table = rates().astype({"rate": "float32"})
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, rates().rate > 0.55)
    explainer = Explainer(model, table, features={"rate": {"step": 0.1}})
    asked = {"features_to_vary": ["rate"], "n_explanations": 4, "diversity": "distance", "min_distance": 0.1}
    found = explainer.explain(pd.DataFrame({"rate": np.array([0.3], "float32"), "b": [2]}), True, **asked)
    assert [float(str(e.counterfactual.rate.iloc[0])) for e in found] == [0.6, 0.7, 0.8, 0.9]
    for answer in found:
        checked(answer, explainer, tmp_path / "answer.json")


@pytest.mark.parametrize("dtype", DTYPES)
def test_codes_are_codes_in_narrow_columns_and_rows(dtype: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"temp": rng.normal(15, 8, 300).round(1), "wind": rng.integers(0, 30, 300)})
    table.loc[:59, "temp"] = 999.9
    target = (table.temp > 20) & (table.wind < 20)
    costs = []
    both = [("float64", "float64"), (dtype, dtype), ("float64", dtype)]
    # a float16 of data does not tell which number was said
    for held, asked in both if dtype == "float16" else [*both, (dtype, "float64")]:
        own = table.astype({"temp": held})
        model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(own, target)
        explainer = Explainer(model, own, special_values={"temp": [999.9]})
        rows = table[(table.temp > 900) & target].iloc[[0]].astype({"temp": asked})
        answer = checked(explainer.explain(rows, False)[0], explainer, tmp_path / "answer.json")
        assert "a code, and stays so" in str(answer)  # the float16 of 999.9 is 1000
        assert explainer.space.features[0].upper < 100
        costs.append(answer.cost)
    assert costs == [pytest.approx(costs[0], abs=1e-9)] * len(costs)


@pytest.mark.parametrize("asked", DTYPES)
@pytest.mark.parametrize("held", DTYPES)
@pytest.mark.parametrize("kind", [{"kind": "ordinal"}, {"kind": "categorical", "levels": [0.1, 0.2, 0.7]}])
def test_levels_are_named_by_decimals(held: str, asked: str, kind: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"dose": rng.choice([0.1, 0.2, 0.7], 300), "b": rng.integers(0, 9, 300)})
    target, rows = table.dose > 0.5, table.astype({"dose": asked})
    table = table.astype({"dose": held})
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, target)
    explainer = Explainer(model, table, features={"dose": kind})
    limits = {"permitted_range": {"dose": [0.1, 0.7]}, "constraints": [Implication({}, {"dose": [0.1, 0.7]})]}
    row = rows[~target].iloc[[0]]
    answer = explainer.explain(row, True, **limits)[0]
    assert answer.status == "optimal"
    assert answer.counterfactual is not None
    assert answer.counterfactual.dose.iloc[0] == pd.Series([0.7], dtype=answer.counterfactual.dose.dtype).iloc[0]
    assert answer.verified
    assert model.predict(answer.counterfactual).tolist() == [True]
    checked(answer, explainer, tmp_path / "answer.json")
    low = {"permitted_range": {"dose": [0.1, 0.2]}}
    assert explainer.explain(row, True, **low)[0].status == "infeasible"


def test_a_described_width_that_is_not_the_rows_is_refused(tmp_path: Path) -> None:
    table = rates().astype({"rate": "float32"})
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, rates().b >= 3)
    explainer, path = Explainer(model, table), tmp_path / "answer.json"
    row = pd.DataFrame({"rate": np.array([0.3], "float32"), "b": [0]})
    wish = Implication({"rate": {"max": 0.3}}, {"b": {"min": 5}})
    record = json.loads(explainer.explain(row, True, constraints=[wish])[0].to_json())
    record["counterfactual"]["values"] = record["original"]["values"] | {"b": 3}  # at most 0.3, yet below 5
    record |= dict.fromkeys(["changes", "probabilities", "partway"]) | {"cost": 3 / 8, "bound": 3 / 8}
    for dtype in ("float32", "float64"):
        record["features"]["features"][0]["dtype"] = dtype
        path.write_text(json.dumps(record))
        assert [found.ok for _, found in verify_file(path, explainer.prepared.model)] == [False], dtype


@pytest.mark.parametrize("seed", range(24))
def test_answers_are_those_of_the_same_decimals_in_float64(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, top = float(rng.choice([0.1, 0.01, 0.3, 0.7])), int(rng.integers(5, 40))
    table = pd.DataFrame({"a": rng.integers(-top // 2, top, 150) * step, "c": rng.integers(0, 12, 150) * 0.1})
    table = table.round(6).assign(b=rng.integers(0, 9, 150))
    target = table.a / step / top + table.c + table.b / 9 + rng.normal(0, 0.2, 150) > 1.3
    model = RandomForestClassifier(3, max_depth=3, random_state=seed).fit(table, target)

    def drawn(name: str) -> float:
        return float(rng.choice(table[name]))

    wishes: list[dict[str, Any]] = [
        {"permitted_range": {"c": sorted([drawn("c"), drawn("c")])}},
        {
            "constraints": [
                Linear({"a": 1, "c": float(rng.choice([1, -1, 2]))}, "<=", round(drawn("a") + drawn("c"), 6))
            ]
        },
        {"constraints": [Linear({"c": 1}, str(rng.choice(["<=", ">=", "="])), drawn("c"))]},
        {"constraints": [Linear({"c": 1}, "<=", drawn("c"), relative=True)]},
        {"constraints": [Implication({"c": {"max": drawn("c")}}, {"a": {"min": drawn("a")}})]},
        {"constraints": [Budget(drawn("c"), {"c": 1.0, "a": 0.5})]},
        {"constraints": [Budget(0.5, {"c": {"points": [[0, 0], [0.3, 0.2], [0.6, 0.9]], "steps": True}})]},
    ]
    asked, found = wishes[seed % len(wishes)], []
    for dtype in ("float64", "float32"):
        held = table.astype({"a": dtype, "c": dtype})
        explainer = Explainer(model, held, features={"a": {"step": step}, "c": {"step": 0.1}})
        found.append(explainer.explain(held[~target].iloc[[0]], True, **asked)[0])
    assert found[1].status == found[0].status
    assert found[1].cost == (None if found[0].cost is None else pytest.approx(found[0].cost, rel=1e-5, abs=1e-6))


def test_steps_of_a_curve_are_cut_where_the_column_holds_them() -> None:
    feature = Feature("rate", "numeric", dtype="float32", upper=1.0, step=0.1)
    curve = Curve.parse({"points": [[0, 0], [0.7, 5.0]], "of": "value", "steps": True})
    held = float(np.float32(0.7))
    assert held < 0.7
    assert (float(amount_of(curve, feature, 0.0, held)), float(amount_of(curve, feature, 0.0, 0.6))) == (5.0, 0.0)
    cuts = cuts_of(curve, feature, 0.0)
    assert {held, np.nextafter(held, -np.inf)} <= set(cuts.tolist())  # a cell of its own


@pytest.mark.parametrize("dtype", DTYPES)
def test_regions_of_rules_hold_the_value_that_reads_as_their_end(dtype: str) -> None:
    table = rates().astype({"rate": dtype})
    features = {"rate": {"step": 0.1}}
    rules = CounterfactualRules(None, table, rates().rate > 0.55, features=features, n_estimators=5)
    held = rules.query({"rate": (0.1, 0.6)}, True).held
    whole = rules.query({"rate": (0.05, 0.65)}, True).held
    assert held == whole
    with pytest.raises(ProblemError, match="holds no value"):
        rules.query({"rate": (0.61, 0.69)}, True)


@pytest.mark.parametrize("whole", [True, False])
def test_whole_numbers_that_a_narrow_column_does_not_hold_are_not_proposed(whole: bool) -> None:
    """Beyond 2,048 the whole numbers of float16 are 2 apart, beyond 16,384 they are 16 apart."""
    feature = Feature("a", "integer" if whole else "numeric", step=None if whole else 0.7, dtype="float16")
    rng = np.random.default_rng(0)
    a = feature.at_most(rng.uniform(1900, 20000, 80))
    table = pd.DataFrame({"a": a.astype(np.float16), "b": rng.integers(0, 5, 80)})
    wanted = a + 2000 * table["b"] + rng.normal(size=80) * 1000 > 14000
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(table, wanted)
    explainer = Explainer(model, table, features={"a": {"kind": "integer"} if whole else {"step": 0.7}})
    held = feature.between(a.min(), a.max()).tolist()
    grid = pd.DataFrame([(v, b) for v in held for b in range(5)], columns=["a", "b"]).astype({"a": np.float16})
    given = model.predict(grid)
    rejected = np.flatnonzero(~model.predict(table))[:8]
    for i in rejected:
        changes = np.abs(grid.to_numpy(float) - table.iloc[i].to_numpy(float)) / [np.ptp(a), 4]
        answer = explainer.explain(table.iloc[[i]], True)[0]
        assert (answer.status, answer.cost) == ("optimal", pytest.approx(changes.sum(axis=1)[given].min(), rel=1e-9))
        assert answer.counterfactual is not None
        assert answer.counterfactual["a"].iloc[0] in held


@pytest.mark.parametrize("formulation", ["auto", "ocean_hyperplanes"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_grid_beside_hyperplanes_holds_what_the_column_does(dtype: str, formulation: str) -> None:
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline, make_union

    grid = pd.DataFrame([(k / 10, b) for k in range(2, 7) for b in (0, 1)], columns=["rate", "b"])
    grid = grid.astype({"rate": dtype})
    held = grid["rate"].to_numpy(float)
    asked = 0
    for seed in (0, 2, 3, 5):
        rng = np.random.default_rng(seed)
        rate, b = rng.integers(2, 7, 80), rng.integers(0, 2, 80)
        table = pd.DataFrame({"rate": (rate / 10).astype(dtype), "b": b})
        wanted = (rate + 2 * b + rng.normal(size=80) * 0.3 > 5).astype(int)
        model = make_pipeline(
            make_union(PCA(2), "passthrough"), RandomForestClassifier(5, max_depth=3, random_state=0)
        ).fit(table, wanted)
        explainer = Explainer(model, table, features={"rate": {"step": 0.1, "scale": 0.4}})
        for k in range(6):
            row = table.iloc[[k]]
            target = 1 - model.predict(row)[0]
            good = model.predict(grid) == target
            cost = np.abs(held - float(row["rate"].iloc[0])) / 0.4 + (grid["b"].to_numpy() != b[k])
            answer = explainer.explain(row, target, formulation=formulation)[0]
            if good.any():
                assert answer.status == "optimal"
                assert answer.cost == pytest.approx(cost[good].min(), abs=1e-12)
                asked += 1
    assert asked > 15


def test_too_many_values_that_a_narrow_column_rounds_are_refused_beside_hyperplanes() -> None:
    from ocf.oblique import ObliqueTree

    tree = ObliqueTree(
        [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]],
        [500.0, 0, 0],
        [1, -1, -1],
        [2, -1, -1],
        [[0, 0], [1, 0], [0, 1]],
        classes=["in", "out"],
        feature_names=("a", "b"),
    )
    table = pd.DataFrame({"a": [0.0, 1000.0], "b": [0.0, 1000.0]}).astype("float32")
    for step, dtype, refused in ((0.1, "float32", True), (0.125, "float32", False), (0.1, "float64", False)):
        explainer = Explainer(tree, table.astype(dtype), features={name: {"step": step} for name in "ab"})
        answer = explainer.explain(table.astype(dtype).iloc[[1]], "in")[0]
        if refused:
            assert answer.status == "error"
            assert "too many values on its grid to list, which float32 rounds" in answer.message
        else:
            assert answer.status == "optimal"
            assert answer.cost == pytest.approx(1.5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
def test_totals_a_hair_from_a_hyperplane_are_on_their_side(solver: str, dtype: str) -> None:
    """Totals of a narrow column lie 1e-9 apart, and HiGHS's presolve took a point there for none."""
    from ocf.oblique import ObliqueTree

    none = [0.0] * 3
    tree = ObliqueTree(
        [[0.1, -0.1, 0.0], [0.1, 0.3, -0.2], [0.1, -0.2, -0.3], none, none, none, none],
        [-0.04999999801976777, 0.3000000240395355, -0.16300000331713058, 0, 0, 0, 0],
        [1, 3, 5, -1, -1, -1, -1],
        [2, 4, 6, -1, -1, -1, -1],
        [[0, 0]] * 3 + [[1, 0]] * 3 + [[0, 1]],
        classes=["in", "out"],
        feature_names=("a", "b", "c"),
    )
    values = [(np.arange(0, 5) / 10), np.arange(5, 10) / 10, np.arange(0, 6) / 100]
    grid = pd.DataFrame(np.stack(np.meshgrid(*values), -1).reshape(-1, 3), columns=["a", "b", "c"]).astype(dtype)
    features = {"a": {"step": 0.1, "scale": 0.4}, "b": {"step": 0.1, "scale": 0.2}, "c": {"step": 0.01, "scale": 0.05}}
    explainer = Explainer(tree, grid, features=features)
    row = grid[
        (grid.a == grid.a.max()) & (grid.b == np.dtype(dtype).type(0.7)) & (grid.c == np.dtype(dtype).type(0.03))
    ]
    given = np.array(tree.predict(grid))
    target = {"in": "out", "out": "in"}[tree.predict(row)[0]]
    change = np.abs(grid.to_numpy(float) - row.to_numpy(float)) / [0.4, 0.2, 0.05]
    answer = explainer.explain(row, target, solver=solver)[0]
    assert answer.status == "optimal"
    assert answer.cost == pytest.approx(change.sum(axis=1)[given == target].min(), abs=1e-12)


def test_listed_numbers_far_from_zero_beside_hyperplanes_equal_enumeration() -> None:
    """Numbers around 30,000, 16 apart: of their rows as they are HiGHS called dearer points optimal."""
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline

    held = np.arange(30000.0, 30641.0, 16.0)
    grid = pd.DataFrame([(v, k / 10) for v in held for k in range(11)], columns=["a", "b"]).astype({"a": np.float16})
    features = {"a": {"step": 7.0, "bounds": (30000, 30640)}, "b": {"step": 0.1, "bounds": (0, 1)}}
    asked = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        a, b = rng.choice(held, 60), rng.integers(0, 11, 60) / 10
        table = pd.DataFrame({"a": a.astype(np.float16), "b": b})
        wanted = (a - a.mean()) / a.std() + (b - b.mean()) / b.std() + rng.normal(size=60) * 0.3 > 0.3
        model = make_pipeline(PCA(2), RandomForestClassifier(4, max_depth=3, random_state=0)).fit(table, wanted)
        given = model.predict(grid)
        explainer = Explainer(model, table, features=features)
        for i in np.flatnonzero(~model.predict(table))[:3]:
            scale = [explainer.space.features[0].scale, explainer.space.features[1].scale]
            changes = np.abs(grid.to_numpy(float) - table.iloc[i].to_numpy(float)) / scale
            answer = explainer.explain(table.iloc[[i]], True, solver="highs")[0]
            assert (answer.status, answer.cost) == ("optimal", pytest.approx(changes.sum(axis=1)[given].min()))
            asked += 1
    assert asked > 30

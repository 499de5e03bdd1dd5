"""Several explanations of a row: regions, features and distance."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.errors import ProblemError
from ocf.explain.explanation import Explanations


@pytest.mark.parametrize("solver", ["highs", "box"])
def test_regions_in_the_order_of_their_costs(explainer: Explainer, row: pd.DataFrame, solver: str) -> None:
    found = explainer.explain(row, n_explanations=4, diversity="region", solver=solver)
    assert [e.rank for e in found] == [1, 2, 3, 4]
    costs = [e.cost for e in found]
    assert costs == sorted(costs)
    leaves = {explainer.prepared.ensemble.apply(explainer.model.encode(e.counterfactual)).tobytes() for e in found}
    assert len(leaves) == 4
    assert all(e.verified and e.status == "optimal" for e in found)
    assert found.to_frame()["rank"].tolist() == [1, 2, 3, 4]
    assert Explanations.from_json(found.to_json()) == found
    assert costs == pytest.approx(
        [e.cost for e in explainer.explain(row, n_explanations=4, diversity="region", solver="scip")]
    )


@pytest.mark.parametrize("solver", ["highs", "box"])
def test_other_features(explainer: Explainer, row: pd.DataFrame, solver: str) -> None:
    found = explainer.explain(row, n_explanations=3, diversity="features", solver=solver)
    changed = [set(e.changes.feature) for e in found]
    assert len(found) == 3
    for k, later in enumerate(changed):
        assert not any(earlier <= later for earlier in changed[:k])
    # brute force over which feature of the best explanation has to stay
    best = min(
        explainer.explain(row, features_to_vary=[n for n in explainer.space.names if n != kept])[0].cost or np.inf
        for kept in changed[0]
    )
    assert found[1].cost == pytest.approx(best)


def test_apart(explainer: Explainer, row: pd.DataFrame) -> None:
    found = explainer.explain(row, n_explanations=3, diversity="distance", min_distance=0.3)
    space = explainer.space
    points = [space.from_frame(e.counterfactual)[0] for e in found]
    for p, q in itertools.combinations(points, 2):
        apart = sum(abs(f.distance(q[i], p[i]).item()) for i, f in enumerate(space.features))
        assert apart >= 0.3 - 1e-12
    far = explainer.explain(row, n_explanations=2, diversity="distance", min_distance=1.2 * found[0].cost)
    assert [e.message for e in far] == ["", ""]  # that the row is nearer to the first than allowed is no news
    assert [e.cost for e in found] == pytest.approx(
        [
            e.cost
            for e in explainer.explain(row, n_explanations=3, diversity="distance", min_distance=0.3, solver="scip")
        ]
    )


@pytest.mark.parametrize("seed", range(6))
def test_apart_where_a_number_stays_missing(seed: int) -> None:
    """A number that is missing before and after has no distance to keep: the next answers differ in the others."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.integers(0, 5, 60).astype(float), "b": rng.integers(0, 9, 60).astype(float)})
    table = table.mask(rng.random(table.shape) < 0.3)
    classes = ((table["a"].fillna(3) > 2).astype(int) ^ (table["b"].fillna(3) > 4)).to_numpy()
    model = RandomForestClassifier(3, max_depth=3, random_state=seed).fit(table, classes)
    explainer = Explainer(model, data=table)
    for row in (table.iloc[[k]] for k in np.flatnonzero(table["a"].isna() & table["b"].notna())[:4]):
        target = int(1 - model.predict(row)[0])
        asked = {"target": target, "missing": {"cost_of_supplying": 0.3}}
        alone, found = (
            explainer.explain(row, **asked)[0],
            explainer.explain(row, n_explanations=3, diversity="distance", **asked),
        )
        assert [found[0].status, found[0].cost] == [alone.status, alone.cost]
        for answer in found:
            assert answer.status in ("optimal", "infeasible")
            assert answer.status == "infeasible" or model.predict(answer.counterfactual)[0] == target


def test_when_there_are_no_more(explainer: Explainer, row: pd.DataFrame) -> None:
    found = explainer.explain(row, n_explanations=50, diversity="features")
    assert len(found) < 50
    assert "there is no further one" in found[-1].message
    with pytest.raises(ProblemError, match="did you mean 'region'"):
        explainer.explain(row, n_explanations=2, diversity="regions")
    with pytest.raises(ProblemError, match="at least 1"):
        explainer.explain(row, n_explanations=0)
    kept = explainer.explain(row, n_explanations=2, diversity="distance", solver="box")
    assert kept[0].status == "optimal"
    assert "does not know constraints that relate values inside cells" in kept[-1].message


def test_features_by_default_and_no_more_is_claimed_than_is_proven(explainer, row):
    found = explainer.explain(row, n_explanations=3)
    assert [e.cost for e in found] == [e.cost for e in explainer.explain(row, n_explanations=3, diversity="features")]
    said = [str(e).splitlines()[0] for e in found]
    assert ["no smaller change does it)" in words for words in said] == [True, False, False]
    assert said[1].endswith("no smaller change differs from no. 1)")
    assert said[2].endswith("no smaller change differs from no. 1, 2)")


def test_regions_by_the_numbers_that_a_library_gives_its_leaves() -> None:
    """LightGBM numbers leaves as they grow, and not from left to right."""
    lightgbm = pytest.importorskip("lightgbm")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame({"a": rng.integers(0, 12, 150), "b": rng.integers(-5, 9, 150)})
        table["c"] = pd.Categorical(rng.choice(list("pqrst"), 150))
        model = lightgbm.LGBMClassifier(
            n_estimators=6, num_leaves=6, min_child_samples=4, min_data_per_group=2, cat_smooth=1, learning_rate=0.5,
            max_cat_to_onehot=1, verbose=-1, n_jobs=1,
        )  # fmt: skip
        good = table.a / 7 + table.b / 6 + table.c.isin(["p", "s"]) + rng.normal(size=150) * 0.3
        model.fit(table, (good > 1.2).astype(int))
        row = table[model.predict(table) == 0].iloc[[0]]
        grid = pd.DataFrame(itertools.product(range(12), range(-5, 9), "pqrst"), columns=["a", "b", "c"])
        grid["c"] = grid.c.astype(table.c.dtype)
        leaves, left = model.predict(grid, pred_leaf=True), model.predict(grid) == 1
        origin, numbers = row.iloc[0], ["a", "b"]
        costs = (grid[numbers] != origin[numbers]).sum(axis=1).to_numpy(float) + (grid.c != origin.c).to_numpy()
        found = Explainer(model, table).explain(row, 1, norm="l0", n_explanations=5, diversity="region")
        for e in found:
            own = (leaves == model.predict(e.counterfactual, pred_leaf=True)).all(axis=1)
            assert left[own].all()
            assert e.cost == pytest.approx(costs[left].min())
            left &= ~own
        assert len(found) == 5 or not left.any()


@pytest.mark.parametrize("code", [-9.0, np.nan])
def test_codes_and_missing_values_are_1_apart_from_all_else(code: float) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"risk": rng.integers(0, 101, 300).astype(float), "z": rng.integers(0, 4, 300)})
    table.loc[rng.random(300) < 0.2, "risk"] = code
    model = HistGradientBoostingClassifier(max_iter=5, max_depth=3, categorical_features=None)
    model.fit(table, ~(table.risk <= 50) | (table.risk == code))
    codes = None if np.isnan(code) else {"risk": [code]}
    asked = {"may_become_missing": ["risk"], "cost_of_becoming_missing": 0.2}
    row = pd.DataFrame({"risk": [40.0], "z": [1]})
    steps = {"risk": {"step": 1}}
    found = Explainer(model, table, features=steps, special_values=codes, missing=asked).explain(
        row, True, n_explanations=5, diversity="distance", min_distance=0.25
    )
    numbers = table.risk[table.risk >= 0]
    grid = pd.DataFrame(itertools.product([*range(101), code], range(4)), columns=["risk", "z"])
    special = (~(grid.risk >= 0)).to_numpy()

    def apart(point: pd.Series, from_special: float) -> np.ndarray:
        other = special != (not point.risk >= 0)
        risk = np.where(special, 0.0, (grid.risk - point.risk).abs() / (numbers.max() - numbers.min()))
        return np.where(other, from_special, risk) + (grid.z - point.z).abs().to_numpy() / 3

    left, costs = model.predict(grid).astype(bool), apart(row.iloc[0], 0.2)
    for e in found:
        assert e.verified, e.checks
        assert e.cost == pytest.approx(costs[left].min())
        left &= apart(e.counterfactual.iloc[0], 1.0) >= 0.25 - 1e-12
    assert len(found) == 5
    assert len({e.counterfactual.risk.iloc[0] for e in found} - {code}) > 1
    assert any(not e.counterfactual.risk.iloc[0] >= 0 for e in found)


@pytest.mark.parametrize(("low", "high"), [(-1.1, 1.93), (0.3, 0.9), (0.0, 3.0)])
def test_the_other_end_of_the_data_is_one_scale_away(low: float, high: float) -> None:
    table = pd.DataFrame({"a": np.r_[low, np.linspace(low, high, 38).round(3), high], "b": [0, 1] * 20})
    tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(table, table.b)
    explainer, row = Explainer(tree, table, {"b": {"actionability": "fixed"}}), table.iloc[[39]]
    assert f"{explainer.space.features[0].scale!r}" == f"{high - low:.3g}" + (".0" if low == 0 else "")
    first, second = explainer.explain(row, 1, n_explanations=2, diversity="distance", min_distance=1.0)
    assert (first.cost, second.status) == (0, "optimal")
    assert second.counterfactual.a.item() == low


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_other_end_of_numbers_of_any_length_is_one_scale_away(dtype: str) -> None:
    for seed in range(8):
        numbers = np.random.default_rng(seed).normal(size=40).astype(dtype)
        table = pd.DataFrame({"a": np.sort(numbers), "b": [0, 1] * 20})
        tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(table, table.b)
        explainer = Explainer(tree, table, {"b": {"actionability": "fixed"}})
        asked = {"n_explanations": 2, "diversity": "distance", "min_distance": 1.0}
        *_, last = explainer.explain(table.iloc[[39]], 1, **asked)
        assert (last.rank, last.status) == (2, "optimal")


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_what_may_go_missing_is_1_apart_too(solver: str) -> None:
    """Beside a number that slides, and whose rows are models': the second answer is the cheapest that stands apart."""
    steps = [0, 1, 2, 3, 4, 5, np.nan]
    wish = {"may_become_missing": ["a", "b"], "cost_of_becoming_missing": 0.05}
    compared = 0
    for seed in range(14):
        rng = np.random.default_rng(seed)
        x = pd.DataFrame({name: rng.integers(0, 6, 200).astype(float) for name in "fab"})
        x["f"] += rng.random(200).round(2)
        for name in "ab":
            x.loc[rng.random(200) < 0.2, name] = np.nan
        scores = x.a.fillna(6) * rng.normal() + x.b.fillna(3) * rng.normal() + x.f * rng.normal()
        if not 20 <= (scores > 0).sum() <= 180:
            continue
        model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=10, max_leaf_nodes=4).fit(x, scores > 0)
        row = x.dropna().iloc[[int(rng.integers(20))]]
        target = not model.predict(row)[0]
        settings = {"missing": wish, "n_explanations": 2, "diversity": "distance", "min_distance": 0.25}
        found = Explainer(model, x).explain(row, target, solver=solver, **settings)
        if len(found) < 2 or found[0].status != "optimal":
            continue
        scale, here, first = x.f.max() - x.f.min(), row.iloc[0], found[0].counterfactual.iloc[0]
        points = pd.DataFrame(itertools.product(sorted({here.f, first.f}), steps, steps), columns=[*"fab"])
        points = points[model.predict(points) == target]
        gone = {name: points[name].isna() for name in "ab"}
        cost = (points.f - here.f).abs() / scale
        apart = (points.f - first.f).abs() / scale
        for name, missing in gone.items():
            cost += np.where(missing, 0.05, (points[name] - here[name]).abs() / 5)
            far = (points[name] - first[name]).abs() / 5
            apart += np.where(missing, float(not np.isnan(first[name])), far if not np.isnan(first[name]) else 1.0)
        cheapest = cost[apart >= 0.25].min()
        assert found[1].cost <= cheapest + 1e-9, seed
        compared += 1
    assert compared > 2

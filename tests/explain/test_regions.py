"""Regions as users get them: tables, streams and limits."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier
from small_problems import exhaustive, random_problem

from ocf import Explainer, Plausibility
from ocf.cells.cell_problem import CellProblem
from ocf.cells.ranges import ValueInterval
from ocf.errors import ProblemError, UnsupportedModelError
from ocf.explain.regions import Regions
from ocf.problem.constraints import Implication
from ocf.problem.problem import Problem


def test_a_table_of_boxes_in_the_users_units(houses) -> None:
    table, explainer = houses
    row = table.iloc[[3]]
    value = float(explainer.model.decide(row)[0])
    regions = explainer.counterfactual_regions(row, (value + 50, None), radius=0.5)
    frame = regions.to_frame()
    assert regions.complete is True
    assert list(frame.columns) == [
        "area_lowest", "area_highest", "rooms_lowest", "rooms_highest", "kitchen", "site", "cost", "prediction",
    ]  # fmt: skip
    assert frame.cost.is_monotonic_increasing
    assert (frame.cost <= 0.5).all()
    assert frame.cost.iloc[0] == pytest.approx(explainer.explain(row, target=(value + 50, None))[0].cost, rel=1e-9)
    assert (frame.prediction >= value + 50).all()
    assert (frame.site == (row.site.iloc[0],)).all()  # fixed
    assert (frame.rooms_lowest % 1 == 0).all()
    points = regions.points()
    assert list(points.columns) == list(table.columns)
    np.testing.assert_array_equal(explainer.model.decide(points), frame.prediction)
    assert regions.to_frame().equals(frame)


def test_probabilities_and_several_classes() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    forest = RandomForestClassifier(6, max_depth=3, random_state=0).fit(x, np.digitize(x.a + x.b, [-0.7, 0.7]))
    row = x[forest.predict(x) == 1].iloc[[0]]
    explainer = Explainer(forest, data=x)
    frame = explainer.counterfactual_regions(row, [0, 2], radius=0.4, limit=None).to_frame()
    assert set(frame.prediction) == {0, 2}
    likely = explainer.counterfactual_regions(row, [0, 2], radius=0.4, probability=0.6, limit=None)
    assert len(likely) == (frame.probability >= 0.6).sum()
    assert likely.to_frame().probability.min() >= 0.6
    shown = forest.predict_proba(likely.points())
    np.testing.assert_allclose(shown[:, [0, 2]].max(axis=1), likely.to_frame().probability)


class _Judge:
    """The ensemble in the place of the user's model."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    probabilities = None

    def decide(self, table: pd.DataFrame) -> np.ndarray:
        ensemble = self.problem.ensemble
        return ensemble.decide(ensemble.scores(self.problem.space.from_frame(table)))


@pytest.mark.parametrize("seed", range(25))
def test_regions_cover_what_brute_force_finds(seed: int) -> None:
    cells = random_problem(seed)
    radius = 0.9
    regions = Regions([cells], _Judge(cells.problem), radius=radius)  # type: ignore[arg-type]
    everything = exhaustive(cells)
    points = np.array([cells.point(choice) for choice in everything.choices])
    judged = cells.problem.target.met_by(_Judge(cells.problem).decide(cells.problem.space.to_frame(points)))
    inside = np.zeros(len(points), int)
    for region in regions:
        held = _holds(cells, region.ranges, everything.choices)
        inside += held
        assert judged[held].all()
        assert everything.cost[held].min() == pytest.approx(region.cost, rel=1e-12)
    assert inside.max(initial=0) <= 1
    assert (inside[judged & (everything.cost <= radius * (1 - 1e-9))] == 1).all()


def _holds(cells: CellProblem, ranges: dict, choices: np.ndarray) -> np.ndarray:
    """Which choices of cells lie in a region, by their points."""
    held = np.ones(len(choices), bool)
    for i, feature in enumerate(cells.problem.space.features):
        span = cells.partition.cells_of(i)
        values = cells.value[span]
        inside = [not np.isnan(v) and feature.label(v) in ranges[feature.name] for v in values]
        held &= np.array(inside)[choices[:, i]]
    return held


def test_the_limit_keeps_the_nearest_and_says_so(houses) -> None:
    table, explainer = houses
    row = table.iloc[[3]]
    everything = explainer.counterfactual_regions(row, (350, None), radius=0.6, limit=None)
    costs = [region.cost for region in everything]
    assert len(costs) > 5
    few = explainer.counterfactual_regions(row, (350, None), radius=0.6, limit=5)
    assert few.complete is None
    stream = iter(few)
    assert next(stream).cost == costs[0]
    assert "1 (so far)" in repr(few)
    assert len(few) == 5
    assert few.complete is False
    assert "cut off by the limit" in repr(few)
    assert [region.cost for region in few] == costs[:5]
    exact = explainer.counterfactual_regions(row, (350, None), radius=0.6, limit=len(costs))
    assert len(exact) == len(costs)
    assert exact.complete is True
    nothing = explainer.counterfactual_regions(row, (1e6, None), radius=0.6)
    assert nothing.to_frame().empty
    assert nothing.complete is True
    assert nothing.points().empty


@pytest.mark.parametrize("limit", [0, 2.5, True, "5"])
def test_a_limit_that_is_no_number_of_regions_is_refused(houses, limit) -> None:
    table, explainer = houses
    with pytest.raises(ProblemError, match="the limit is a number of regions"):
        explainer.counterfactual_regions(table.iloc[[3]], (350, None), radius=0.6, limit=limit)


def test_what_is_known_when_time_is_up(houses, monkeypatch) -> None:
    """All regions below the bound are there, those that are known beyond it too, and the answer says so."""
    table, explainer = houses
    row = table.iloc[[3]]
    costs = [region.cost for region in explainer.counterfactual_regions(row, (350, None), radius=0.6)]
    stopped = explainer.counterfactual_regions(row, (350, None), radius=0.6, time_limit=60)
    stream = iter(stopped)
    found = [next(stream) for _ in range(5)]
    later = time.perf_counter() + 100
    monkeypatch.setattr(time, "perf_counter", lambda: later)
    found += list(stream)
    assert stopped.complete is False
    assert stopped.cut == "time limit"
    assert costs[4] <= stopped.complete_to < 0.6
    known = [region.cost for region in found]
    assert known == sorted(known)
    assert [c for c in known if c < stopped.complete_to] == [c for c in costs if c < stopped.complete_to]
    assert "cut off by the time limit, none cheaper than" in repr(stopped)


def test_what_is_found_before_ctrl_c_can_be_had(houses, monkeypatch) -> None:
    table, explainer = houses
    whole, regions = (explainer.counterfactual_regions(table.iloc[[3]], (350, None), radius=0.6) for _ in range(2))
    stream = iter(regions)
    first = [next(stream) for _ in range(3)]  # of batches of one and two

    def interrupted(self: Problem, *args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CellProblem, "point", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(stream)
    assert len(regions) == 3 < len(whole)
    assert (regions.complete, regions.cut, regions.complete_to) == (False, "interruption", first[-1].cost)
    pd.testing.assert_frame_equal(regions.to_frame(), whole.to_frame().iloc[:3])


def test_regions_at_the_radius_of_the_optimum() -> None:
    """Thirty features: the nearest region is found and proven to be the only one."""
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(20, max_depth=5, random_state=0).fit(x, y)
    explainer = Explainer(forest, data=x)
    row = x[forest.predict(x) == 0].iloc[[0]]
    best = explainer.explain(row, target=1, n_optimal=5)[0]
    regions = list(explainer.counterfactual_regions(row, 1, radius=best.cost))
    assert len(regions) == 1 + len(best.ties)
    assert regions[0].cost == pytest.approx(best.cost, rel=1e-12)
    assert regions[0].contains(best.counterfactual.iloc[0])


def test_regions_that_an_isolation_forest_accepts() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(200, 2)), columns=list("ab"))
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, (x.a > 0.3).astype(int))
    explainer = Explainer(forest, data=x)
    row = x[forest.predict(x) == 0].iloc[[0]]
    wish = Plausibility(trees=5, samples=32)
    radius = 1.2 * explainer.explain(row, target=1, plausibility=wish)[0].cost
    plausible = list(explainer.counterfactual_regions(row, 1, radius=radius, plausibility=wish))
    free = list(explainer.counterfactual_regions(row, 1, radius=radius))
    assert plausible[0].cost == pytest.approx(radius / 1.2, rel=1e-9)
    grid = pd.DataFrame(rng.normal(size=(2000, 2)), columns=list("ab"))
    inside = np.array([[any(r.contains(p) for r in found) for found in (plausible, free)] for _, p in grid.iterrows()])
    assert 0 < inside[:, 0].sum() < inside[:, 1].sum()
    assert not (inside[:, 0] & ~inside[:, 1]).any()
    (detector,) = explainer.prepared.detectors
    deep = detector.deep_enough(detector.measure(grid)[0])
    within = np.abs((grid - row.iloc[0]) / [f.scale for f in explainer.space.features]).sum(axis=1) <= radius * 0.999
    wanted = deep & (forest.predict(grid) == 1) & within
    assert inside[wanted, 0].all()
    assert deep[inside[:, 0]].all()
    with pytest.raises(ProblemError, match="without a weight"):
        explainer.counterfactual_regions(row, 1, radius=1, plausibility={"required": False, "weight": 1.0})


def test_a_search_that_fails_is_not_taken_for_one_that_has_ended(houses) -> None:
    table, explainer = houses
    cells = explainer.cells(explainer.problem(table.iloc[[3]], (350, None)))

    class Refusing(_Judge):
        def decide(self, table: pd.DataFrame) -> np.ndarray:
            raise TypeError("the model refuses this")

    regions = Regions([cells], Refusing(cells.problem), radius=1.0)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(TypeError, match="refuses"):
            list(regions)
    assert regions.complete is None


def test_questions_about_regions_that_mean_nothing(houses, monkeypatch) -> None:
    table, explainer = houses
    row = table.iloc[[3]]
    for radius in (-1, float("nan")):
        with pytest.raises(ProblemError, match="radius is a cost of at least 0"):
            explainer.counterfactual_regions(row, (350, None), radius=radius)
    with pytest.raises(ProblemError, match="at least 1, not 0"):
        explainer.counterfactual_regions(row, (350, None), radius=1, limit=0)
    with pytest.raises(ProblemError, match="positive number of seconds or None, not -1"):
        explainer.counterfactual_regions(row, (350, None), radius=1, time_limit=-1)
    monkeypatch.setattr(CellProblem, "coupling", "linear constraints")
    with pytest.raises(ProblemError, match="with linear constraints regions are no boxes"):
        explainer.counterfactual_regions(row, (350, None), radius=1)


def test_regions_respect_constraints() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.integers(0, 8, 200), "b": rng.integers(0, 8, 200)})
    forest = RandomForestClassifier(6, max_depth=4, random_state=0).fit(x, (x.a + x.b > 8).astype(int))
    explainer = Explainer(forest, data=x, features={"a": {"kind": "integer"}, "b": {"kind": "integer"}})
    row = pd.DataFrame({"a": [4], "b": [2]})
    grid = pd.DataFrame({"a": np.repeat(np.arange(8), 8), "b": np.tile(np.arange(8), 8)})
    rule = (grid.a < 6) | (grid.b >= 3)
    for constraints, allowed in (([], grid.a >= 0), ([Implication({"a": (6, None)}, {"b": (3, None)})], rule)):
        regions = explainer.counterfactual_regions(row, 1, radius=9.0, constraints=constraints)
        holding = [sum(region.contains(point) for region in regions) for _, point in grid.iterrows()]
        np.testing.assert_array_equal(holding, (forest.predict(grid) == 1) & allowed)


@pytest.mark.parametrize("code", [7, 0])
def test_a_special_value_between_numbers_is_no_part_of_a_range(code: int) -> None:
    """From a number to the code there is no move, nor back; the model's answer is the same there and beside it."""
    values = np.arange(-5, 15)
    table = pd.DataFrame({"k": np.repeat(values, 9), "z": np.tile(np.arange(9), len(values))})
    model = DecisionTreeClassifier(random_state=0).fit(table, (table.k > -4) & (table.k < 11) & (table.z > 3))
    explainer = Explainer(model, table, special_values={"k": [code]})
    found = explainer.counterfactual_regions(pd.DataFrame({"k": [5], "z": [2]}), target=True, radius=2.0)
    allowed = table[model.predict(table) & (table.k != code)]
    for _, point in table.iterrows():
        assert any(region.contains(point) for region in found) == (point.name in allowed.index)
    frame = found.to_frame()
    assert (frame["k_lowest"].min(), frame["k_highest"].max(), set(frame["k_without"])) == (-3, 10, {(code,)})
    elsewhere = explainer.counterfactual_regions(pd.DataFrame({"k": [13], "z": [2]}), target=True, radius=2.0)
    assert list(elsewhere)
    assert f"k -3 to 10 without {code}" in elsewhere._repr_html_()
    there = explainer.counterfactual_regions(pd.DataFrame({"k": [code], "z": [2]}), target=True, radius=2.0)
    (region,) = there
    assert region.ranges["k"] == ValueInterval(code, code)
    assert region.contains(there.points().iloc[0])
    assert "k_without" not in there.to_frame()


def test_numbers_without_bounds_have_no_end_where_no_split_is() -> None:
    table = pd.DataFrame({"a": [-2.0, -1.0, 1.0, 2.0], "b": [0.0, 1.0, 0.0, 1.0]})
    tree = DecisionTreeClassifier(random_state=0).fit(table, [1, 1, 0, 0])
    free = {column: {"kind": "numeric", "bounds": [-np.inf, np.inf], "scale": 1.0} for column in table}
    found = Explainer(tree, data=table, features=free).counterfactual_regions(table.iloc[[2]], 1, radius=3.0)
    (region,) = found
    assert region.ranges["a"].lowest == -np.inf
    assert region.ranges["a"].highest == pytest.approx(0.0, abs=1e-9)
    assert region.ranges["b"] == ValueInterval(-np.inf, np.inf)


def test_points_keep_the_order_of_categories() -> None:
    rng = np.random.default_rng(0)
    sizes = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    drawn = pd.Categorical(rng.choice(sizes.categories, 100), dtype=sizes)
    table = pd.DataFrame({"a": rng.integers(0, 9, 100), "size": drawn})
    codes = OrdinalEncoder(categories=[[*sizes.categories]])
    encode = make_column_transformer((codes, ["size"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestClassifier(5, max_depth=3, random_state=0))
    model.fit(table, (table.a > 4) & (table["size"] >= "mid"))
    row = table[~model.predict(table)].iloc[[0]]
    points = Explainer(model, table).counterfactual_regions(row, target=True, radius=1.0).points()
    assert len(points)
    assert points["size"].dtype == sizes
    assert model.predict(points).all()


def test_regions_of_models_with_hyperplanes_are_refused() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 8, 120), "b": rng.integers(0, 8, 120)})
    wanted = (table["a"] + table["b"] > 6).astype(int)
    for steps, trees in (
        (PCA(1), DecisionTreeClassifier(max_depth=2, random_state=0)),
        (make_union(PCA(1), "passthrough"), RandomForestClassifier(3, max_depth=3, random_state=0)),
    ):
        model = make_pipeline(steps, trees).fit(table, wanted)
        explainer, row = Explainer(model, table), table.iloc[[0]]
        target = 1 - model.predict(row)[0]
        assert explainer.explain(row, target)[0].status == "optimal"
        with pytest.raises(UnsupportedModelError, match=r"oblique splits .* its regions are no boxes"):
            explainer.counterfactual_regions(row, target, radius=2.0)
        assert "ask for the answer without its box" in explainer.explain(row, target, box=True)[0].message

"""Single trees leaf by leaf, against an enumeration of vertices and active sets that shares no code with ocf."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from ocf import Cost, Explainer, Implication, Linear, quadratic_cost
from ocf.errors import ProblemError
from ocf.explain.leaf_queries import explain_margins
from ocf.oblique.tao import TAOClassifier
from ocf.oblique.tree import ObliqueTree
from ocf.solve.leaf_search import solve_leaves

from .oblique_cases import (
    NORMS,
    Fixed,
    assert_same,
    brute_force,
    colours_one_hot,
    frame,
    mixed_table,
    price,
    random_tree,
)


@pytest.mark.parametrize("norm", NORMS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_continuous_features_equal_brute_force(norm: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    tree = random_tree(rng, n, 3, n_classes)
    table = frame(rng, n)
    explainer = Explainer(tree, data=table)
    for k in (2, 3):
        origin = table.to_numpy()[k]
        target = (int(tree.predict(origin[None])[0]) + 1) % n_classes
        found = explainer.explain(table.iloc[[k]], target=target, norm=norm)[0]
        assert found.method["formulation"] == "oblique"
        optimum = brute_force(tree, origin, {target}, Cost.parse(norm), [(0.0, 1.0)] * n)
        assert_same(found, optimum)
        for solver in ("highs", "scip"):
            whole = explainer.explain(
                table.iloc[[k]], target=target, norm=norm, formulation="hyperplanes", solver=solver
            )
            assert_same(whole[0], optimum)
            by_leaf = explainer.explain(table.iloc[[k]], target=target, norm=norm, solver=solver)[0]
            assert_same(by_leaf, optimum)


@pytest.mark.parametrize("form", ["definite", "singular"])
@pytest.mark.parametrize("seed", range(3))
def test_the_solver_that_is_asked_for_solves_every_leaf(seed: int, form: str) -> None:
    rng = np.random.default_rng(seed)
    tree, table = random_tree(rng, 4, 3, 2, axis=0.0), frame(rng, 4)
    explainer, row = Explainer(tree, data=table), table.iloc[[2]]
    root = rng.normal(size=(4, 4 if form == "definite" else 1))
    own = {"l1": "highs", "l2": "dual ascent", "q": "active set"}
    for name, norm in (("l1", "l1"), ("l2", "l2"), ("q", quadratic_cost(list(table.columns), root @ root.T))):
        usual = explainer.explain(row, norm=norm)[0]
        assert usual.status == "optimal"
        assert own[name] in usual.method["solver"].split("+")
        for solver in ("highs", "scip"):
            found = explainer.explain(row, norm=norm, solver=solver)[0]
            assert (found.status, found.verified) == ("optimal", True)
            assert found.cost == pytest.approx(usual.cost, rel=1e-8, abs=1e-10)
            assert solver in found.method["solver"].split("+")
            # of these forms every leaf has one optimum, and the solver needs no help
            assert found.method["solver"] == solver or form == "singular"
            assert found.method["solver_version"]


@pytest.mark.parametrize("norm", ["l1", "l2", "l0", {"l0": 0.1, "l1": 1.0}], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_categories_and_whole_numbers_equal_brute_force(norm: Any, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    table = mixed_table(rng)
    encoder = colours_one_hot()
    encoded = encoder.fit_transform(table)
    tree = random_tree(rng, encoded.shape[1], 3, 2)
    model = make_pipeline(encoder, Fixed(tree)).fit(table, np.zeros(len(table)))
    features = {"number": {"scale": 1.0}, "count": {"scale": 1.0}}
    explainer = Explainer(model, data=table, features=features)
    for k in (3, 4):
        target = 1 - int(model.predict(table.iloc[[k]])[0])
        optimum = np.inf
        row, cost = table.iloc[k], Cost.parse(norm)
        # colours, counts and flags one by one; the number by the enumeration of one dimension
        for colour, count, flag in itertools.product(["blue", "green", "red"], range(4), range(2)):
            changed = pd.DataFrame({"number": [row.number], "count": [count], "colour": [colour], "flag": [flag]})
            origin = encoder.transform(changed)[0]
            spaces: list[Any] = [np.array([v]) for v in origin]
            place = list(encoder.get_feature_names_out()).index("remainder__number")
            spaces[place] = (0.0, 1.0)
            fixed = price(cost, np.array([row["count"], row.flag]), np.array([count, flag], float), None)
            fixed += (cost.l0 + cost.l1 + cost.l2) * (colour != row.colour)
            optimum = min(optimum, fixed + brute_force(tree, origin, {target}, cost, spaces))
        for formulation in ("oblique", "hyperplanes"):
            found = explainer.explain(table.iloc[[k]], target=target, norm=norm, formulation=formulation)[0]
            assert_same(found, optimum)


@pytest.mark.parametrize("formulation", ["oblique", "hyperplanes"])
@pytest.mark.parametrize("colour", ["red", "green", "blue"])
def test_a_hyperplane_of_fixed_features_alone_is_decided_by_the_row(colour: str, formulation: str) -> None:
    table = mixed_table(np.random.default_rng(0))
    encoder = colours_one_hot()
    # blue and red go left by the colour alone, and there 2 number + flag > 1.5 is class 1; green is class 0 throughout
    tree = ObliqueTree(
        [[0.0, 0.7, 0.4, 0, 0, 0], [0, 0, 0, 2.0, 0, 1.0], *np.zeros((3, 6))],
        [0.5, 1.5, 0, 0, 0],
        [1, 3, -1, -1, -1],
        [2, 4, -1, -1, -1],
        [[1, 0], [1, 0], [1, 0], [1, 0], [0, 1]],
        classes=(0, 1),
    )
    model = make_pipeline(encoder, Fixed(tree)).fit(table, np.zeros(len(table)))
    explainer = Explainer(model, data=table, features={"number": {"scale": 1.0}})
    row = pd.DataFrame({"number": [0.5], "count": [1], "colour": [colour], "flag": [0]})
    settings: dict[str, Any] = {"target": 1, "formulation": formulation}
    found = explainer.explain(row, features_to_vary=["number", "count", "flag"], **settings)[0]
    assert_same(found, np.inf if colour == "green" else 0.25)
    assert_same(explainer.explain(row, **settings)[0], 1.25 if colour == "green" else 0.25)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_levels_that_add_nothing_stay_left_of_a_threshold_of_nothing(norm: str) -> None:
    table = mixed_table(np.random.default_rng(0))
    encoder = colours_one_hot()
    # right: red alone; green and blue add nothing or less than nothing, so that they go left with the total 0
    tree = ObliqueTree(
        [[0, -0.4, 0.7, 0, 0, 0], *np.zeros((2, 6))], [0.0, 0, 0], [1, -1, -1], [2, -1, -1], [[1, 0], [1, 0], [0, 1]],
        classes=(0, 1),
    )  # fmt: skip
    model = make_pipeline(encoder, Fixed(tree)).fit(table, np.zeros(len(table)))
    explainer = Explainer(model, data=table)
    row = pd.DataFrame({"number": [0.5], "count": [1], "colour": ["blue"], "flag": [0]})
    found = explainer.explain(row, target=1, norm=norm)[0]
    assert_same(found, 1.0)
    assert found.counterfactual["colour"].iloc[0] == "red"
    assert_same(explainer.explain(row, target=1, norm=norm, permitted_range={"colour": ["blue", "green"]})[0], np.inf)
    # and back: from red to the tie, though the cheapest way is not to the level that is clear of it
    back = explainer.explain(row.assign(colour="red"), target=0, norm=norm, permitted_range={"colour": ["red", "blue"]})
    assert_same(back[0], 1.0)


@pytest.mark.parametrize(("threshold", "optimum"), [(3.2, 1.0), (2.4, 0.7)])
def test_a_change_of_category_that_is_barely_worth_it_is_found(threshold: float, optimum: float) -> None:
    table = mixed_table(np.random.default_rng(0))
    encoder = colours_one_hot()
    # 2 number + 3 [red] > threshold: the number alone for (threshold - 1) / 2, or red for 1
    tree = ObliqueTree(
        [[0, 0, 3.0, 2.0, 0, 0], *np.zeros((2, 6))], [threshold, 0, 0], [1, -1, -1], [2, -1, -1],
        [[1, 0], [1, 0], [0, 1]], classes=(0, 1),
    )  # fmt: skip
    model = make_pipeline(encoder, Fixed(tree)).fit(table, np.zeros(len(table)))
    explainer = Explainer(model, data=table, features={"number": {"scale": 1.0, "bounds": [0, 3]}})
    row = pd.DataFrame({"number": [0.5], "count": [1], "colour": ["blue"], "flag": [0]})
    assert_same(explainer.explain(row, target=1)[0], optimum)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mix", [{}, {"l1": 0.5}], ids=["Q", "Q and l1"])
def test_quadratic_costs_equal_brute_force(mix: dict[str, float], seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    n = 3
    tree, table = random_tree(rng, n, 3, 2), frame(rng, n)
    root = rng.normal(size=(n, n))
    q = root @ root.T + (0.1 if seed else 0.0) * np.eye(n)
    q = (q + q.T) / 2
    cost = quadratic_cost(list(table.columns), q, **mix)
    explainer = Explainer(tree, data=table)
    origin = table.to_numpy()[2]
    target = 1 - int(tree.predict(origin[None])[0])
    found = explainer.explain(table.iloc[[2]], target=target, norm=cost)[0]
    assert_same(found, brute_force(tree, origin, {target}, cost, [(0.0, 1.0)] * n, q=q))
    again = type(found).from_json(found.to_json())
    assert again == found
    assert again.norm == cost


def test_quadratic_costs_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ProblemError, match="negative eigenvalue"):
        quadratic_cost(["x0", "x1"], [[1.0, 2.0], [2.0, 1.0]])
    rng = np.random.default_rng(0)
    table = frame(rng, 2)
    explainer = Explainer(random_tree(rng, 2, 2, 2), data=table)
    unknown = quadratic_cost(["x7"], [[1.0]])
    with pytest.raises(ProblemError, match="x7"):
        explainer.explain(table.iloc[[2]], target=0, norm=unknown)


def test_a_total_that_cannot_be_positive_never_goes_right() -> None:
    """Where ink is only erased the total is at most 0, its threshold: the closed half-space lets 0 through."""
    weights = np.array([[2.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    value = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    tree = ObliqueTree(weights, np.zeros(3), np.array([1, -1, -1]), np.array([2, -1, -1]), value, classes=(0, 1))
    table = pd.DataFrame({"x0": [-1.0, 1.0], "x1": [-1.0, 1.0]})
    explainer = Explainer(tree, data=table)
    held = {"x0": (-1.0, 0.0), "x1": (-1.0, 0.0)}
    for norm in ("l1", "l2", quadratic_cost(["x0", "x1"], [[2.0, 1.0], [1.0, 2.0]])):
        assert explainer.explain(table.iloc[[0]], target=1, norm=norm, permitted_range=held)[0].status == "infeasible"
        held_less = {**held, "x1": (-1.0, 0.01)}
        found = explainer.explain(table.iloc[[0]], target=1, norm=norm, permitted_range=held_less)[0]
        assert found.status == "optimal"
        assert found.verified


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_margins_equal_brute_force_and_each_starts_from_the_last(norm: str) -> None:
    rng = np.random.default_rng(7)
    tree, table = random_tree(rng, 2, 3, 2, axis=0.4), frame(rng, 2)
    explainer = Explainer(tree, data=table)
    origin = table.to_numpy()[3]
    target = 1 - int(tree.predict(origin[None])[0])
    margins = [0.0, 0.01, 0.05, 0.1, 5.0]
    found = explain_margins(explainer, table.iloc[[3]], margins, target, norm)
    for eps, explanation in zip(margins, found, strict=True):
        optimum = brute_force(tree, origin, {target}, Cost.parse(norm), [(0.0, 1.0)] * 2, eps=eps)
        assert_same(explanation, optimum)
        assert_same(explainer.explain(table.iloc[[3]], target, norm, split_margin=eps)[0], optimum)
    costs = [e.cost for e in found if e.cost is not None]
    assert costs == sorted(costs)
    assert found[-1].status == "infeasible"


@pytest.mark.parametrize("seed", range(4))
def test_axis_aligned_trees_equal_the_cells(seed: int) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = DecisionTreeClassifier(max_depth=4, random_state=seed).fit(X.iloc[:, :3], y)
    explainer = Explainer(model, data=X.iloc[:, :3], features={"sepal length (cm)": {"step": 0.1}})
    rows = X.iloc[[3, 60, 120], :3]
    for norm in ("l1", "l2", {"l0": 1.0, "l1": 0.1}):
        for target in (0, 1, 2, [0, 1]):
            by_cell = explainer.explain(rows, target, norm, weights={"petal length (cm)": (2.0, 0.5)})
            by_leaf = explainer.explain(
                rows, target, norm, weights={"petal length (cm)": (2.0, 0.5)}, formulation="oblique"
            )
            assert [e.cost for e in by_leaf] == [e.cost for e in by_cell]
            assert all(e.verified and e.status == "optimal" for e in by_leaf)
            assert {e.method["solver"] for e in by_leaf} == {"closed form"}


def test_conflicting_wishes_of_oblique_trees_are_named() -> None:
    rng = np.random.default_rng(1)
    tree, table = random_tree(rng, 2, 2, 2), frame(rng, 2)
    row = table.iloc[[2]]
    target = 1 - int(tree.predict(row)[0])
    asked: dict[str, Any] = {"target": target, "features_to_vary": [], "diagnose": True}
    found = Explainer(tree, data=table).explain(row, **asked)[0]
    assert found.status == "infeasible"
    assert set(found.conflict) <= {"'x0' is fixed", "'x1' is fixed"}
    assert found.conflict


def test_plausible_points_of_oblique_trees() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = Explainer(TAOClassifier(2, init="random", random_state=0).fit(X, y), data=X)
    plain = explainer.explain(X.iloc[[0]], target=2)[0]
    found = explainer.explain(X.iloc[[0]], target=2, plausibility={"trees": 5, "samples": 8})[0]
    assert found.status == "optimal"
    assert found.verified
    assert found.cost is not None
    assert plain.cost is not None
    assert found.cost >= plain.cost * (1 - 1e-9)


def test_narrow_dtypes_get_a_point_they_can_hold() -> None:
    rng = np.random.default_rng(4)
    tree, table = random_tree(rng, 3, 3, 2), frame(rng, 3).astype("float32")
    assert len(np.unique(tree.predict(rng.uniform(size=(200, 3))))) == 2
    explainer = Explainer(tree, data=table)
    for k in range(2, 8):
        target = 1 - int(tree.predict(table.to_numpy()[[k]])[0])
        found = explainer.explain(table.iloc[[k]], target=target)[0]
        assert found.status in ("optimal", "feasible")
        assert found.verified
        assert found.gap < 1e-5
        assert found.counterfactual is not None
        assert (found.counterfactual.dtypes == "float32").all()


def test_infeasible_and_bounded_questions() -> None:
    rng = np.random.default_rng(1)
    tree, table = random_tree(rng, 2, 2, 2), frame(rng, 2)
    explainer = Explainer(tree, data=table)
    row = table.iloc[[2]]
    target = 1 - int(tree.predict(row)[0])
    assert explainer.explain(row, target=target, features_to_vary=[])[0].status == "infeasible"
    stays = explainer.explain(row, target=1 - target)[0]
    assert (stays.status, stays.cost) == ("optimal", 0.0)
    late = explainer.explain(row, target=target, time_limit=1e-9)[0]
    assert late.status in ("unknown", "feasible")
    with pytest.raises(ProblemError, match="split_margin"):
        explainer.explain(row, target=target, split_margin=-1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_numbers_without_bounds_that_a_split_of_their_own_ends_on_one_side(norm: str, dtype: Any) -> None:
    # 4 a + 3 b <= 0 and then a <= 2 for "in": a has no lower end there, and the least float64 is none
    tree = ObliqueTree(
        [[4.0, 3.0], [1.0, 0.0], [0, 0], [0, 0], [0, 0]], [0.0, 2.0, 0, 0, 0], [1, 3, -1, -1, -1], [2, 4, -1, -1, -1],
        [[0, 0], [0, 0], [0, 1], [1, 0], [0, 1]], classes=["in", "out"],
    )  # fmt: skip
    table = pd.DataFrame({"x0": [3.0, 1.0], "x1": [1.0, -9.0]}, dtype=dtype)
    free = {column: {"kind": "numeric", "bounds": [-np.inf, np.inf], "scale": 1.0} for column in table}
    e = Explainer(tree, data=table, features=free).explain(table.iloc[[0]], target="in", norm=norm)[0]
    assert e.status == "optimal" or (dtype == np.float32 and e.gap < 1e-5)  # between the optimum and its grid
    assert e.verified
    # from (3, 1) the line is 15 / 5 away, at (0.6, -0.8), where a is below 2; by l1 along a
    assert e.cost == pytest.approx(9.0 if norm == "l2" else 15 / 4, rel=1e-6)


def test_leaves_that_a_refused_point_had_beaten_are_looked_at_again() -> None:
    rng = np.random.default_rng(3)
    tree, table = random_tree(rng, 3, 4, 2), frame(rng, 3)
    explainer = Explainer(tree, data=table)
    row = table.iloc[[2]]
    problem = explainer.problem(row, 1 - int(tree.predict(row)[0]))
    every, _ = solve_leaves(explainer.query(problem), lambda point: True, every=True)
    known = [answer for answer in every if answer.point is not None]
    assert len(known) >= 3
    for count in (1, 2):
        wrong = {answer.leaf for answer in known[:count]}
        asked: list[int] = []

        def confirm(point: np.ndarray, wrong: set[Any] = wrong, asked: list[int] = asked) -> bool:
            asked.append(int(explainer.prepared.ensemble.apply(point[None])[0, 0]))
            return asked[-1] not in wrong

        answers, outcome = solve_leaves(explainer.query(problem), confirm)
        assert asked == [answer.leaf for answer in known[: count + 1]]
        assert (answers[0].leaf, answers[0].cost) == (known[count].leaf, known[count].cost)
        assert (outcome.cost, outcome.refused) == (known[count].cost, count)


@pytest.mark.parametrize("norm", ["l1", "l2", "mahalanobis"])
def test_an_implication_that_says_nothing(norm: str) -> None:
    """It has no row, and so no multiplier, where its features cannot go to where it would say something."""
    table = pd.DataFrame(np.random.default_rng(3).normal(size=(80, 3)), columns=list("abc"))
    model = make_pipeline(PCA(2), DecisionTreeClassifier(max_depth=3, random_state=0))
    model.fit(table, table.sum(axis=1) > 0)
    explainer = Explainer(model, data=table, features={"a": {"actionability": "increasing"}})
    row = table[table.a > 0].iloc[[0]]
    holds = Implication({"a": {"min": 0.0}}, {"b": {"max": float(table.b.max())}})
    target = not model.predict(row)[0]
    (alone,) = explainer.explain(row, target=target, norm=norm)
    (beside,) = explainer.explain(row, target=target, norm=norm, constraints=[holds])
    assert (alone.status, beside.status) == ("optimal", "optimal"), beside.message
    assert beside.cost == pytest.approx(alone.cost, rel=1e-9)


@pytest.mark.parametrize("first", [2, 5])
def test_the_grid_of_an_earlier_question_is_not_that_of_the_next(first: int) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 100, 200).astype(float), "b": rng.integers(0, 100, 200).astype(float)})
    tree = TAOClassifier(max_depth=2, random_state=0).fit(table, (table.a + 0.7 * table.b > 85).astype(int))
    explainer, points = Explainer(tree, table), np.array(list(itertools.product(range(0, 100, 10), repeat=2)), float)
    for a, b in ((20.0, 30.0), (40.0, 30.0), (10.0, 60.0)):
        row = pd.DataFrame({"a": [a], "b": [b]})
        explainer.explain(row, target=1, round_to=first)
        found = explainer.explain(row, target=1, round_to=1)[0]
        met = points[tree.predict(pd.DataFrame(points, columns=["a", "b"])) == 1]
        span = table.max() - table.min()
        best = (np.abs(met - [a, b]) / span.to_numpy()).sum(axis=1).min()
        assert (found.status, found.cost) == ("optimal", pytest.approx(best))


@pytest.mark.parametrize("norm", ["l1", "l2", {"l1": 1, "l2": 1}], ids=str)
def test_a_constraint_that_only_fixed_features_break(norm: Any) -> None:
    table = pd.DataFrame({"x": np.repeat(range(10), 4), "z": [*range(4)] * 10})
    splits = [[1.0, 2], [0, 0], [0, 0]], [9.0, 0, 0], [1, -1, -1], [2, -1, -1], [[1, 0], [1, 0], [0, 1]]
    tree = ObliqueTree(*splits, classes=(0, 1), feature_names=("x", "z"))
    explainer = Explainer(tree, table, {"x": {"actionability": "fixed"}})
    rule = Linear({"x": 1}, ">=", 5)
    found = explainer.explain(table.iloc[[3]], target=1, norm=norm, constraints=rule, diagnose=True)[0]
    assert found.status == "infeasible"
    assert any("'x' is fixed" in wish for wish in found.conflict)

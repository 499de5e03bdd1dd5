"""Single trees leaf by leaf, against an enumeration of vertices and active sets that shares no code with ocf."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ocf import Cost, Explainer, quadratic_cost
from ocf.errors import ProblemError
from ocf.explain.leaf_queries import explain_margins
from ocf.formulations.oblique import closest_in_boxes
from ocf.oblique.tao import TAOClassifier
from ocf.oblique.tree import ObliqueTree
from ocf.problem.constraints import Budget, Implication, Linear, MaxChanges
from ocf.problem.rows import satisfied
from ocf.solve.leaf_bounds import priced_demands

NORMS: list[Any] = ["l1", "l2", "l0", {"l1": 1.0, "l2": 2.0}, {"l0": 0.1, "l1": 1.0}, {"l0": 0.3, "l2": 1.0}]


def random_tree(rng: np.random.Generator, n: int, depth: int, n_classes: int, *, axis: float = 0.2) -> ObliqueTree:
    """A complete tree of random hyperplanes through the unit box, some of them axis-aligned."""
    n_inner = 2**depth - 1
    n_nodes = 2 * n_inner + 1
    weights, threshold = np.zeros((n_nodes, n)), np.zeros(n_nodes)
    for v in range(n_inner):
        if rng.random() < axis:
            weights[v, rng.integers(n)] = 1.0
        else:
            weights[v] = rng.normal(size=n) * (rng.random(n) < 0.8)
        threshold[v] = weights[v] @ rng.uniform(0.2, 0.8, n)
    inner = np.arange(n_nodes) < n_inner
    left, right = np.where(inner, 2 * np.arange(n_nodes) + 1, -1), np.where(inner, 2 * np.arange(n_nodes) + 2, -1)
    value = np.eye(n_classes)[rng.integers(n_classes, size=n_nodes)]
    return ObliqueTree(weights, threshold, left, right, value, classes=tuple(range(n_classes)))


def paths(tree: ObliqueTree) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    """Leaves with the nodes above them, +1 for left and -1 for right."""
    stack: list[tuple[int, list[tuple[int, float]]]] = [(0, [])]
    while stack:
        v, path = stack.pop()
        if tree.left[v] < 0:
            yield v, path
        else:
            stack += [(int(tree.left[v]), [*path, (v, 1.0)]), (int(tree.right[v]), [*path, (v, -1.0)])]


def brute_force(
    tree: ObliqueTree,
    origin: np.ndarray,
    wanted: set[int],
    cost: Cost,
    spaces: list[Any],
    *,
    eps: float = 0.0,
    q: np.ndarray | None = None,
    extra: tuple[list[float], float] | None = None,
) -> float:
    """Least cost over all leaves of the wanted classes; inf if there is none.

    A space is a pair of bounds (continuous) or an array of values. Whatever is continuous lies on a vertex of the
    arrangement of the leaf's faces and the kinks of the cost, or at the optimum of an active set.
    """
    continuous = [i for i, s in enumerate(spaces) if isinstance(s, tuple)]
    discrete = [i for i, s in enumerate(spaces) if not isinstance(s, tuple)]
    best = np.inf
    for leaf, path in paths(tree):
        if int(tree.value[leaf].argmax()) not in wanted:
            continue
        g = np.array([s * tree.weights[v] for v, s in path]).reshape(-1, len(origin))
        h = np.array([s * tree.threshold[v] - eps for v, s in path])
        if extra is not None:
            g, h = np.vstack([g, extra[0]]), np.append(h, extra[1])
        for values in itertools.product(*(spaces[i] for i in discrete)):
            point = origin.copy()
            point[discrete] = values
            fixed = price(cost, origin, point, q) if not continuous else 0.0
            if not continuous:
                if (g @ point <= h + 1e-12).all():
                    best = min(best, fixed)
                continue
            rest = h - g[:, discrete] @ point[discrete]
            for x in candidates(g[:, continuous], rest, origin[continuous], [spaces[i] for i in continuous], cost, q):
                point[continuous] = x
                best = min(best, price(cost, origin, point, q))
    return best


def price(cost: Cost, origin: np.ndarray, point: np.ndarray, q: np.ndarray | None) -> float:
    """Cost of a change with unit scales and weights."""
    d = point - origin
    d[np.abs(d) < 1e-13] = 0.0
    pairs = 0.0 if q is None else float(d @ q @ d)
    return float(cost.l0 * (d != 0).sum() + cost.l1 * np.abs(d).sum() + cost.l2 * (d * d).sum()) + pairs


def candidates(
    g: np.ndarray, h: np.ndarray, origin: np.ndarray, box: list[Any], cost: Cost, q: np.ndarray | None
) -> Iterator[np.ndarray]:
    """Feasible points among the optima of all active sets of faces, ends of the box and kinks, for all signs."""
    n = len(origin)
    rows = np.vstack([g, np.eye(n), np.eye(n), np.eye(n)])
    sides = np.concatenate([h, [b[0] for b in box], [b[1] for b in box], origin])
    hessian = 2 * cost.l2 * np.eye(n) + (0 if q is None else 2 * q)
    for size in range(n + 1):
        for active in itertools.combinations(range(len(rows)), size):
            a, b = rows[list(active)], sides[list(active)]
            if size and np.linalg.matrix_rank(a) < size:
                continue
            for signs in (
                itertools.product((-1.0, 1.0), repeat=n) if hessian.any() and size < n and cost.l1 else [(1.0,) * n]
            ):
                top = np.hstack([hessian, a.T])
                kkt = np.vstack([top, np.hstack([a, np.zeros((size, size))])])
                right = np.concatenate([-cost.l1 * np.array(signs) + hessian @ origin, b])
                if size < n and not hessian.any():
                    continue  # a linear cost is least at a vertex
                try:
                    x = np.linalg.solve(kkt, right)[:n]
                except np.linalg.LinAlgError:
                    continue
                low, high = np.array(box).T
                if (g @ x <= h + 1e-10).all() and (x >= low - 1e-10).all() and (x <= high + 1e-10).all():
                    yield x


def frame(rng: np.random.Generator, n: int, rows: int = 12) -> pd.DataFrame:
    table = pd.DataFrame(rng.uniform(size=(rows, n)), columns=[f"x{j}" for j in range(n)])
    table.iloc[0], table.iloc[1] = 0.0, 1.0
    return table


def assert_same(explanation: Any, optimum: float) -> None:
    assert not explanation.checks
    if optimum == np.inf:
        assert explanation.status == "infeasible"
        return
    assert explanation.status == "optimal", (explanation.message, explanation.gap)
    assert explanation.verified
    assert explanation.cost == pytest.approx(optimum, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("norm", NORMS, ids=str)
@pytest.mark.parametrize("seed", range(6))
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


def mixed_table(rng: np.random.Generator, rows: int = 30) -> pd.DataFrame:
    """A number, a whole number, a category and a binary feature, as columns that a tree takes one-hot."""
    table = pd.DataFrame(
        {
            "number": rng.uniform(size=rows),
            "count": rng.integers(0, 4, rows),
            "colour": rng.choice(["red", "green", "blue"], rows),
            "flag": rng.integers(0, 2, rows),
        }
    )
    table.iloc[:3, 2] = ["red", "green", "blue"]
    table.loc[[0, 1], "flag"] = [0, 1]
    table.loc[[0, 1], "count"] = [0, 3]
    table.loc[[0, 1], "number"] = [0.0, 1.0]
    return table


def colours_one_hot() -> ColumnTransformer:
    """Encoder of `mixed_table`: blue, green, red, then the other columns."""
    return ColumnTransformer(
        [("colour", OneHotEncoder(categories=[["blue", "green", "red"]], sparse_output=False), ["colour"])],
        remainder="passthrough",
    )


@pytest.mark.parametrize("norm", ["l1", "l2", "l0", {"l0": 0.1, "l1": 1.0}], ids=str)
@pytest.mark.parametrize("seed", range(4))
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


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000))
def test_a_hyperplane_costs_at_least_what_the_relaxation_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 4))
    sizes = rng.integers(1, 4, rng.integers(1, 4))
    w, room = rng.uniform(0, 2, (1, n)) * (rng.random((1, n)) < 0.8), rng.uniform(0, 2, (1, n))
    linear, square = rng.uniform(0, 1, n) * (rng.random(n) < 0.8), np.zeros(n)
    levels = [(rng.normal(size=(1, k)), rng.uniform(-0.2, 1, k)) for k in sizes]
    need = rng.normal(scale=2.0, size=1)
    bound = priced_demands(need, w, room, linear, square, levels)[0]
    totals, prices = np.hstack([t[0] for t, _ in levels]), np.hstack([c for _, c in levels])
    one = np.zeros((len(sizes), n + len(totals)))
    for i, end in enumerate(np.cumsum(sizes)):
        one[i, n + end - sizes[i] : n + end] = 1
    cost, row = np.append(linear, prices), np.append(-w[0], totals)
    ends = [*zip(np.zeros(n), room[0], strict=True), *[(0, 1)] * len(totals)]
    best = linprog(cost, row[None], -need, one, np.ones(len(sizes)), ends)
    if best.status == 2:
        assert bound == np.inf
        return
    assert bound == pytest.approx(best.fun, rel=1e-6, abs=1e-6)
    assert bound <= best.fun + 1e-9
    # squares cost more: never above the cheapest of all choices of levels
    square = rng.uniform(0, 1, n)
    curved = priced_demands(need, w, room, linear, square, levels)[0]
    assert curved >= bound - 1e-6 * max(1.0, abs(bound))
    choices = itertools.product(*[range(k) for k in sizes])
    assert curved <= min(_cheapest_moves(need[0], w[0], room[0], linear, square, levels, c) for c in choices) + 1e-7


def _cheapest_moves(need: float, w: Any, room: Any, linear: Any, square: Any, levels: Any, choice: Any) -> float:
    """Least cost once the levels are chosen, by SciPy."""
    need += sum(float(total[0, k]) for (total, _), k in zip(levels, choice, strict=True))
    paid = sum(float(cost[k]) for (_, cost), k in zip(levels, choice, strict=True))
    if need <= 0:
        return paid
    if w @ room < need:
        return np.inf
    found = minimize(
        lambda m: linear @ m + square @ (m * m), room.copy(), jac=lambda m: linear + 2 * square * m, method="SLSQP",
        bounds=[*zip(np.zeros(len(w)), room, strict=True)], options={"ftol": 1e-12},
        constraints={"type": "ineq", "fun": lambda m: w @ m - need, "jac": lambda m: w},
    )  # fmt: skip
    return paid + float(found.fun)


class Fixed(ClassifierMixin, BaseEstimator):
    """A tree of plain arrays in a Pipeline."""

    def __init__(self, tree: ObliqueTree | None = None) -> None:
        self.tree = tree

    def fit(self, X: Any, y: Any) -> Fixed:
        self.tree_, self.classes_, self.n_features_in_ = self.tree, np.arange(2), X.shape[1]
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.tree_.scores(X)

    def predict(self, X: Any) -> np.ndarray:
        return self.tree_.predict(X)


Fixed.__module__ = "ocf.oblique.tao"


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


def test_the_median_is_the_closest_point_of_a_box() -> None:
    rng = np.random.default_rng(0)
    ends = np.sort(rng.uniform(size=(2, 5, 3)), axis=0)
    ends[0, 0, 0], ends[1, 1, 2] = -np.inf, np.inf
    origins = rng.uniform(size=(4, 3))
    points = closest_in_boxes(ends[0], ends[1], origins)
    expected = np.median(np.broadcast_arrays(ends[0][None], ends[1][None], origins[:, None]), axis=0)
    np.testing.assert_array_equal(points, expected)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("seed", range(3))
def test_bagged_trees_equal_an_enumeration_of_their_leaves(norm: str, seed: int) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    table = X.iloc[:, :2]
    bag = BaggingClassifier(TAOClassifier(2, init="random"), 3, random_state=seed).fit(table, y)
    explainer = Explainer(bag, data=table)
    row = table.iloc[[0]]
    found = explainer.explain(row, target=2, norm=norm)[0]
    assert found.method["formulation"] == "hyperplanes"
    # every choice of one leaf per tree by itself, each an exact problem of its own
    problem = explainer.problem(row, 2, norm)
    query, best = explainer.query(problem), np.inf
    (requirements,) = problem.alternatives
    offsets = problem.ensemble.leaf_offsets
    for chosen in itertools.product(*(range(a, b) for a, b in itertools.pairwise(offsets.tolist()))):
        if (requirements.gain[list(chosen)].sum(axis=0) >= requirements.need).all():
            best = min(best, query.solve_leaf(chosen).cost)
    assert_same(found, best)
    with pytest.raises(ProblemError, match="hyperplanes"):
        explainer.explain(row, target=2, formulation="interval")
    with pytest.raises(ProblemError, match="single tree"):
        explainer.explain(row, target=2, formulation="oblique")


def test_leaf_by_leaf_and_the_whole_model_check_each_other() -> None:
    rng = np.random.default_rng(5)
    tree, table = random_tree(rng, 3, 3, 2), frame(rng, 3)
    explainer = Explainer(tree, data=table)
    target = 1 - int(tree.predict(table.iloc[[2]])[0])
    ways = {("oblique", "auto"), ("oblique", "scip"), ("hyperplanes", "scip"), ("hyperplanes", "highs")}
    for formulation, solver in sorted(ways):
        asked: dict[str, Any] = {"target": target, "formulation": formulation, "solver": solver}
        found = explainer.explain(table.iloc[[2]], cross_check=True, **asked)[0]
        check = found.method["cross_check"]
        assert check["verdict"] == "agrees"
        assert {check["formulation"], formulation} == {"oblique", "hyperplanes"}
        assert check["cost"] == pytest.approx(found.cost, rel=1e-8)
    forest = BaggingClassifier(TAOClassifier(2, init="random"), n_estimators=3, random_state=0)
    forest.fit(table, rng.integers(0, 2, len(table)))
    explainer = Explainer(forest, data=table)
    target = 1 - int(forest.predict(table.iloc[[2]])[0])
    found = explainer.explain(table.iloc[[2]], target=target, cross_check=True)[0]
    assert found.method["cross_check"]["solver"] != found.method["solver"]
    assert found.method["cross_check"]["verdict"] == "agrees"
    # squares and whole numbers together have one solver
    alone = explainer.explain(table.iloc[[2]], target=target, norm="l2", cross_check=True)[0]
    assert alone.status == "error"
    assert "independently" in alone.message
    with pytest.raises(ProblemError, match="nothing to check it by"):
        Explainer(tree, data=table).explain(table.iloc[[2]], target=1, split_margin=0.01, cross_check=True)


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


def test_a_leaf_thinner_than_rounding_is_no_answer() -> None:
    # left of x + y <= 1 and right of x + y <= 1 - 1e-16: no float64 point is surely inside
    tree = ObliqueTree(
        [[1.0, 1.0], [1.0, 1.0], [0, 0], [0, 0], [0, 0]],
        [1.0, 1.0 - 1e-16, 0, 0, 0],
        [1, 3, -1, -1, -1],
        [2, 4, -1, -1, -1],
        np.eye(2)[[0, 0, 0, 0, 1]],
        classes=(0, 1),
    )
    table = frame(np.random.default_rng(0), 2)
    found = Explainer(tree, data=table).explain(table.iloc[[3]], target=1)[0]
    assert not found.found or found.verified
    assert found.status in ("unknown", "infeasible", "feasible", "optimal")
    if found.status == "infeasible":
        grid = np.linspace(0, 1, 401)
        points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        assert not (tree.predict(points) == 1).any()


def test_choices_of_levels_that_rounding_leaves_open_are_not_forgotten() -> None:
    # blue leaves a leaf thinner than rounding, near the row; red opens a wide one, far away
    encoder = colours_one_hot()
    tree = ObliqueTree(
        [[0, 0, -1.0, 1.0, 0, 1.0], [0, 0, 0, 1.0, 0, 1.0], *np.zeros((3, 6))], [1.0, 1.0 - 1e-16, 0, 0, 0],
        [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], np.eye(2)[[0, 0, 0, 0, 1]], classes=(0, 1),
    )  # fmt: skip
    table = mixed_table(np.random.default_rng(0))
    model = make_pipeline(encoder, Fixed(tree)).fit(table, np.zeros(len(table)))
    explainer = Explainer(model, data=table, features={"number": {"scale": 1.0, "bounds": [0, 3]}, "flag": {}})
    row = pd.DataFrame({"number": [0.7], "count": [1], "colour": ["blue"], "flag": [0]})
    found = explainer.explain(row, target=1, norm="l2", features_to_vary=["number", "colour"])[0]
    assert found.verified
    assert found.cost == pytest.approx(1.09, abs=1e-6)
    # by blue there may be a point for 0.09: nothing may claim that there is none unless it is so
    assert found.bound <= 0.09 + 1e-6 or found.status == "optimal"
    near = (
        row.assign(number=[1.0]),
        row.assign(number=[np.nextafter(1.0, 2)]),
        row.assign(number=[np.nextafter(1.0, 0)]),
    )
    if found.status == "optimal":
        assert not any(model.predict(r)[0] == 1 for r in near)


@pytest.mark.parametrize("norm", ["l1", "l2", "l0"])
@pytest.mark.parametrize("seed", range(4))
def test_linear_relations_equal_brute_force(norm: str, seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    n = 3
    tree, table = random_tree(rng, n, 2, 2), frame(rng, n)
    explainer = Explainer(tree, data=table)
    origin = table.to_numpy()[4]
    target = 1 - int(tree.predict(origin[None])[0])
    row = [float(c) for c in np.round(rng.normal(size=n), 2)]
    side = round(float(np.dot(row, origin)) - 0.05, 3)
    wish = Linear(dict(zip(table.columns, row, strict=True)), "<=", side)
    optimum = brute_force(tree, origin, {target}, Cost.parse(norm), [(0.0, 1.0)] * n, extra=(row, side))
    for formulation in ("oblique", "hyperplanes"):
        found = explainer.explain(table.iloc[[4]], target, norm, constraints=[wish], formulation=formulation)[0]
        assert_same(found, optimum)


CONSTRAINTS: list[Any] = [
    MaxChanges(1),
    Budget(0.9, {"x0": 1.0, "x1": (2.0, 0.5), "x2": 1.0}),
    Linear({"x0": 1.0, "x1": -1.0}, "=", 0.25),
    [MaxChanges(2), Linear({"x0": 1.0, "x2": 1.0}, ">=", 0.6)],
]


@pytest.mark.parametrize("wish", CONSTRAINTS, ids=str)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_relations_leave_no_cheaper_point_among_many(norm: str, wish: Any) -> None:
    rng = np.random.default_rng(12)
    tree, table = random_tree(rng, 3, 2, 2), frame(rng, 3)
    explainer = Explainer(tree, data=table)
    answers = []
    for k in (2, 5, 7):
        row = table.iloc[[k]]
        target = 1 - int(tree.predict(row)[0])
        both = [
            explainer.explain(row, target, norm, constraints=wish, formulation=f)[0] for f in ("oblique", "hyperplanes")
        ]
        assert [e.status for e in both] in (["optimal"] * 2, ["infeasible"] * 2), [e.message for e in both]
        if both[0].found:
            assert all(e.verified for e in both), both[0].checks
            assert both[0].cost == pytest.approx(both[1].cost, rel=1e-9, abs=1e-12)
            assert both[0].cost >= explainer.explain(row, target, norm)[0].cost * (1 - 1e-9)
        answers.append(both[0])
        # random points that keep the constraints, many of them with few changes, are no cheaper
        points = np.where(rng.random((4000, 3)) < 0.5, table.to_numpy()[k], rng.uniform(size=(4000, 3)))
        hits = points[tree.predict(points) == target]
        rows = [
            r
            for c in (wish if isinstance(wish, list) else [wish])
            for r in c.rows(explainer.space, table.to_numpy()[k])
        ]
        kept = [p for p in hits if satisfied(rows, explainer.space, p)]
        cheapest = min((price(Cost.parse(norm), table.to_numpy()[k], p, None) for p in kept), default=np.inf)
        assert (np.inf if both[0].cost is None else both[0].cost) <= cheapest
    assert any(e.found for e in answers)


def test_own_costs_and_relations_that_bend_elsewhere() -> None:
    rng = np.random.default_rng(11)
    tree, table = random_tree(rng, 3, 2, 2), frame(rng, 3)
    row = table.iloc[[2]]
    target = 1 - int(tree.predict(row)[0])
    priced = Explainer(tree, data=table, features={"x0": {"cost": [3.0, 0.5]}})
    both = [priced.explain(row, target, formulation=f)[0] for f in ("oblique", "hyperplanes")]
    assert all(e.status == "optimal" and e.verified for e in both), [e.message for e in both]
    assert both[0].cost == pytest.approx(both[1].cost)
    stepped = Implication({"x0": (0.5, None)}, {"x1": (0.5, None)})
    refused = priced.explain(row, target, constraints=[stepped])[0]
    assert refused.status == "error"
    assert "no line" in refused.message

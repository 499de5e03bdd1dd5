"""Constraints against an oracle of its own: every box of a fine partition, and a linear program in each."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from small_problems import random_ensemble

from ocf import Explainer
from ocf.arrays import FloatArray
from ocf.cells import sliding
from ocf.cells.forms import to_cells
from ocf.errors import ProblemError, TimeLimitError
from ocf.features.curve import Curve
from ocf.features.feature import Feature
from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace
from ocf.formulations import FORMULATIONS
from ocf.problem.constraints import Budget, Constraint, Implication, Linear, MaxChanges
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.rows import satisfied
from ocf.problem.targets import ClassTarget
from ocf.solve.cell_search import solve
from ocf.solve.compile import compile_formulation
from ocf.solve.outcome import Outcome
from ocf.solvers import available, get_solver
from ocf.solvers.box import coupled
from ocf.solvers.protocols import CellSolver
from ocf.solvers.result import SolverOptions, Status

#: Tried besides the bounds and the row's own value wherever a constraint of the tests may bend.
BENDS = (-0.5, 0.0, 0.5)


def space_and_rows(rng: np.random.Generator) -> tuple[FeatureSpace, FloatArray]:
    """Two continuous features, whole numbers, a binary one and categories."""
    n = 20
    table = pd.DataFrame(
        {
            "a": rng.uniform(-1, 1, n).round(2),
            "b": rng.uniform(-1, 1, n).round(2),
            "count": rng.integers(0, 5, n),
            "flag": [0, 1] * (n // 2),
            "group": rng.choice(list("uvwx"), n),
        }
    )
    settings = {
        "a": {"bounds": [-1, 1], "weight": [0.5, 2.0]},
        "b": {"bounds": [-1, 1], "actionability": str(rng.choice(["free", "free", "increasing"]))},
        "count": {"bounds": [0, 4]},
        "group": {"levels": list("uvwx")},
    }
    space = infer_space(table, settings)
    return space, space.from_frame(table)


def random_linear(rng: np.random.Generator, point: FloatArray, origin: FloatArray, avoid: FloatArray) -> Linear:
    """A relation that one point satisfies and another, if possible, does not."""
    terms: dict[str, Any] = {"a": float(rng.choice([1, 2, -1])), "b": float(rng.choice([1, -1, 0.5]))}
    if rng.random() < 0.5:
        terms["count"] = float(rng.choice([0.25, -0.5]))
    if rng.random() < 0.3:
        terms["group"] = {"v": 0.7}

    def total(x: FloatArray) -> float:
        own = terms["a"] * x[0] + terms["b"] * x[1] + terms.get("count", 0.0) * x[2]
        return float(own + 0.7 * ("group" in terms and x[4] == 1))

    relative = bool(rng.integers(2))
    bound = round(total(point) - relative * total(origin), 3)
    sense = "=" if rng.random() < 0.25 else "<=" if total(avoid) > total(point) else ">="
    return Linear(terms, sense, bound, relative)


def random_constraints(
    rng: np.random.Generator, rows: FloatArray, wanted: FloatArray, avoid: FloatArray
) -> list[Constraint]:
    """One to three constraints of any kind, most of them against the point to avoid."""
    point, origin = wanted[int(rng.integers(len(wanted)))] if len(wanted) else rows[1], rows[0]
    makers = [
        lambda: random_linear(rng, point, origin, avoid),
        lambda: random_linear(rng, point, origin, avoid),
        lambda: Linear({"count": 1, "flag": 2}, "<=", int(rng.integers(1, 6))),
        lambda: Implication(
            {"group": list("uvw")[: int(rng.integers(1, 4))]}, {"a": {"max": float(rng.choice(BENDS))}}
        ),
        lambda: Implication({"b": (0, None), "flag": 1}, {"count": (1, 3)}),
        lambda: Budget(
            float(rng.choice([0.3, 0.8, 1.5])),
            {"a": (0.5, 1), "b": float(rng.choice([1, -0.5])), "group": {"u": 0.5, "v": 1}},
        ),
        lambda: Budget(1.2, {"a": {"points": [[-0.5, 2], [0, 0], [0.5, 1]], "of": "value"}, "count": 0.3}),
        lambda: Budget(2, {"b": {"points": [[-0.5, 1], [0.5, 2.5]], "of": "value", "steps": True}, "flag": 1}),
        lambda: MaxChanges(int(rng.integers(1, 4))),
        lambda: MaxChanges(1, ("a", "b", "group")),
    ]
    chosen = rng.permutation(len(makers))[: int(rng.integers(1, 4))]
    made: list[Constraint] = [makers[k]() for k in chosen]
    return made


#: Costs of their own: convex, stepwise, concave, by level, and negative ones for preferred states.
COSTS: tuple[tuple[str, Any], ...] = (
    ("a", {"points": [[-0.5, 1.5], [0, 0], [0.5, 0.25], [2, 4]]}),
    ("a", {"points": [[-0.5, -0.4], [0.5, 0.3]], "of": "value"}),
    ("b", {"points": [[-2, 0.5], [0, 0], [0.25, 0.7], [0.5, 1]], "steps": True}),
    ("b", [0.7, -0.2]),
    ("count", {"points": [[-4, 0.1], [0, 0], [1, 0.1], [2, 0.4], [4, 2]]}),
    ("group", {"u": 0.3, "v": -0.25, "x": 1}),
    ("flag", {0: 0.1, 1: 0.6}),
)


def with_costs(rng: np.random.Generator, space: FeatureSpace) -> FeatureSpace:
    """The space with some costs of features' own."""
    chosen = dict(COSTS[k] for k in rng.permutation(len(COSTS))[:3])
    plain = {"weight_down": 1.0, "weight_up": 1.0}
    return space.updated({name: {"cost": Curve.parse(said), **plain} for name, said in chosen.items()})


def random_problem(seed: int, norm: Any = None, *, bent: bool = False) -> Problem:
    """A small forest with random constraints."""
    rng = np.random.default_rng(seed)
    space, rows = space_and_rows(rng)
    space = with_costs(rng, space) if bent else space
    ensemble = random_ensemble(rng, space, rows, int(rng.integers(1, 4)), 2, 2)
    here = int(ensemble.decide(ensemble.scores(rows[:1]))[0])
    norm = norm or ("l1", "l1", {"l0": 0.1, "l1": 1.0}, "l0")[int(rng.integers(4))]
    free = Problem(ensemble, space, rows[0], ClassTarget(1 - here), Cost.parse(norm))
    found = answer(free, "interval", "highs", True).point
    wanted = rows[ensemble.decide(ensemble.scores(rows)) != here]
    return replace(free, constraints=tuple(random_constraints(rng, rows, wanted, rows[0] if found is None else found)))


# -- the oracle --------------------------------------------------------------------------------------------


class Box(NamedTuple):
    """A closed range of values of one feature, on one side of the row's own value."""

    low: float
    high: float


def boxes_of(problem: Problem, i: int) -> list[Box]:
    """Ranges that no split and no constraint cuts."""
    feature, origin = problem.space.features[i], problem.origin[i]
    if feature.discrete:
        return [Box(float(k), float(k)) for k in range(len(feature.levels))]
    if feature.kind == "integer":
        return [Box(float(k), float(k)) for k in range(5)]
    low = max(feature.lower, origin) if feature.action == "increasing" else feature.lower
    cuts = problem.ensemble.threshold[problem.ensemble.feature == i]
    bends = [*BENDS, *(float(Decimal(repr(float(origin))) + Decimal(repr(x))) for x in (-0.5, 0.25, 0.5))]
    ends = np.unique([low, feature.upper, origin, *cuts[np.isfinite(cuts)], *bends])
    ends = ends[(low <= ends) & (ends <= feature.upper)]
    inner = [Box(np.nextafter(x, np.inf), np.nextafter(y, -np.inf)) for x, y in itertools.pairwise(ends)]
    return [Box(float(x), float(x)) for x in ends] + [b for b in inner if b.low <= b.high]


def amounts(constraint: Constraint, space: FeatureSpace, origin: FloatArray, x: FloatArray) -> tuple[float, str, float]:
    """What a constraint compares, how, and with what, at a point; written out here again."""
    names = {f.name: k for k, f in enumerate(space.features)}
    if isinstance(constraint, Linear):
        value = 0.0
        for name, level, c in constraint.terms:
            k = names[name]
            new, old = x[k], origin[k]
            if level is not None:
                new, old = (
                    float(space.features[k].levels[int(new)] == level),
                    float(space.features[k].levels[int(old)] == level),
                )
            value += c * (new - old if constraint.relative else new)
        return value, constraint.sense, constraint.bound
    if isinstance(constraint, MaxChanges):
        counted = [names[n] for n in constraint.among] or list(range(len(space)))
        return float(sum(x[k] != origin[k] for k in counted)), "<=", constraint.most
    if isinstance(constraint, Implication):
        holds = [all(_is(space, names[n], x, s) for n, s in side) for side in (constraint.when, constraint.then)]
        return float(holds[0] and not holds[1]), "<=", 0
    assert isinstance(constraint, Budget)
    value = 0.0
    for name, curve in constraint.costs:
        k = names[name]
        value += curve_at(curve, space.features[k], origin[k], x[k])
    return value, "<=", constraint.limit


def curve_at(curve: Curve, feature: Feature, old: float, new: float) -> float:
    """What a curve says of a change, written out here again."""
    if new == old:
        return 0.0
    if curve.levels is not None:
        return float(dict(curve.levels).get(feature.levels[int(new)], 0.0))
    if curve.between is not None:
        return sum(curve.between[int(min(old, new)) : int(max(old, new))])
    if curve.rate is not None:
        return (old - new) * curve.rate[0] if new < old else (new - old) * curve.rate[1]
    px, py = zip(*curve.points or (), strict=True)
    # as the decimals that a user reads
    at = new if curve.of == "value" else float(Fraction(repr(float(new))) - Fraction(repr(float(old))))
    return float([0.0, *py][int(np.searchsorted(px, at, side="right"))] if curve.steps else np.interp(at, px, py))


def cost_at(problem: Problem, i: int, value: float) -> float:
    """What one feature's change costs, written out here again."""
    feature, origin, norm = problem.space.features[i], float(problem.origin[i]), problem.cost
    if feature.cost is not None:
        return curve_at(feature.cost, feature, origin, value)
    if value == origin:
        return 0.0
    d = abs(value - origin) / feature.scale if not feature.discrete else 1.0
    weight = feature.weight_down if value < origin and feature.kind != "categorical" else feature.weight_up
    return weight * (norm.l0 + norm.l1 * d + norm.l2 * d * d)


def _is(space: FeatureSpace, k: int, x: FloatArray, said: Any) -> bool:
    feature = space.features[k]
    if feature.discrete:
        return feature.levels[int(x[k])] in (said if isinstance(said, tuple) else (said,))
    low, high = said if isinstance(said, tuple) else (said.low, said.high)
    return (low is None or x[k] >= low) and (high is None or x[k] <= high)


def oracle(problem: Problem) -> float:
    """Cost of the cheapest point, by a program in every product of boxes; inf when there is none."""
    space, origin = problem.space, problem.origin
    ranges = [boxes_of(problem, i) for i in range(len(space))]
    best = math.inf
    corner = np.array([[b.low for b in choice] for choice in itertools.product(*ranges)])
    far = np.array([[b.high for b in choice] for choice in itertools.product(*ranges)])
    wins = problem.ensemble.decide(problem.ensemble.scores(corner)) == problem.target.index
    costs = [np.array([[cost_at(problem, i, v) for v in b] for b in ranges[i]]) for i in range(len(space))]
    index = np.array(list(itertools.product(*[range(len(own)) for own in costs])))[wins]
    first = np.column_stack([costs[i][index[:, i], 0] <= costs[i][index[:, i], 1] for i in range(len(space))])
    least = sum(costs[i].min(axis=1)[index[:, i]] for i in range(len(space)))
    for k in np.argsort(least, kind="stable"):
        if least[k] >= best:
            break
        low, high = corner[wins][k], far[wins][k]
        near, other = np.where(first[k], low, high), np.where(first[k], high, low)
        free = np.flatnonzero(low < high)
        rows = [amounts(c, space, origin, near) for c in problem.constraints]
        slopes = np.zeros((len(rows), len(free)))
        for k, i in enumerate(free):
            moved = near.copy()
            moved[i] = other[i]
            for r, c in enumerate(problem.constraints):
                slopes[r, k] = (amounts(c, space, origin, moved)[0] - rows[r][0]) / (high[i] - low[i])
        best = min(best, _in_box(problem, near, other, free, (high - low)[free], rows, slopes))
    return best


def _in_box(
    problem: Problem,
    near: FloatArray,
    far: FloatArray,
    free: Any,
    width: FloatArray,
    rows: list[Any],
    slopes: FloatArray,
) -> float:
    """Cheapest point of a box, given what the constraints amount to at its nearest point, and their slopes."""
    A, b, E, e = [], [], [], []
    for (value, sense, bound), slope in zip(rows, slopes, strict=True):
        if sense == "=":
            E.append(slope)
            e.append(bound - value)
        else:
            sign = 1 if sense == "<=" else -1
            A.append(sign * slope)
            b.append(sign * (bound - value) + 1e-12)
    base = sum(cost_at(problem, i, float(near[i])) for i in range(len(near)))
    if not len(free):
        return base if all(v >= 0 for v in b) and all(abs(v) < 1e-12 for v in e) else math.inf
    d = np.array([abs(near[i] - problem.origin[i]) / problem.space.features[i].scale for i in free])
    unit = np.array([1 / problem.space.features[i].scale for i in free])
    moved = [(problem.space.features[i], near[i] >= problem.origin[i]) for i in free]
    weight = np.array([f.weight_up if up else f.weight_down for f, up in moved])
    price = weight * unit * problem.cost.l1
    for k, i in enumerate(free):
        if problem.space.features[i].cost is not None:
            price[k] = (cost_at(problem, i, far[i]) - cost_at(problem, i, near[i])) / width[k]
    if any(v < np.minimum(np.multiply(a, width), 0).sum() for a, v in zip(A, b, strict=True)):
        return math.inf
    found = linprog(price, A or None, b or None, E or None, e or None, bounds=[(0, w) for w in width])
    if found.status != 0:
        return math.inf
    if not problem.cost.l2:
        return base + found.fun

    def squares(u: FloatArray) -> float:
        return float(price @ u + problem.cost.l2 * (weight * ((d + unit * u) ** 2 - d**2)).sum())

    limits = [{"type": "ineq", "fun": lambda u, a=a, v=v: v - np.dot(a, u)} for a, v in zip(A, b, strict=True)]
    limits += [{"type": "eq", "fun": lambda u, a=a, v=v: v - np.dot(a, u)} for a, v in zip(E, e, strict=True)]
    smooth = minimize(
        squares, found.x, constraints=limits, bounds=[(0, w) for w in width], method="SLSQP", options={"ftol": 1e-14}
    )
    return base + min(squares(found.x), smooth.fun if smooth.success else math.inf)


# -- ocf against it ----------------------------------------------------------------------------------------


def answer(problem: Problem, formulation: str, solver: str, reduce: bool) -> Outcome:
    """What ocf says."""

    def confirm(point: FloatArray) -> bool:
        return problem.target.met_by(int(problem.ensemble.decide(problem.ensemble.scores(point[None, :]))[0]))

    cells = to_cells(problem)
    return solve(
        cells,
        partial(compile_formulation, formulation, cells),
        get_solver(solver),
        SolverOptions(),
        confirm=confirm,
        use_reduction=reduce,
    )


def check(problem: Problem, found: Outcome, optimum: float, rel: float = 1e-7) -> None:
    """An outcome claims the optimum, proves it, and its point satisfies everything exactly."""
    if math.isinf(optimum):
        assert found.status is Status.INFEASIBLE, found
        return
    assert found.status is Status.OPTIMAL, (found, optimum)
    assert found.cost == pytest.approx(optimum, rel=rel, abs=1e-9), problem.constraints
    assert found.bound == pytest.approx(found.cost, rel=1e-9, abs=1e-15)
    assert found.point is not None
    assert found.cost == problem.cost.total(problem.space, problem.origin, found.point)
    for constraint in problem.constraints:
        assert satisfied(constraint.rows(problem.space, problem.origin), problem.space, found.point)
        value, sense, bound = amounts(constraint, problem.space, problem.origin, found.point)
        slack = {"<=": bound - value, ">=": value - bound, "=": -abs(value - bound)}[sense]
        assert slack >= -1e-12


def methods(problem: Problem) -> list[tuple[str, str, bool]]:
    usable = [name for name, found in available().items() if found]
    if to_cells(problem).couples:
        usable = [name for name in usable if not isinstance(get_solver(name), CellSolver)]
    return [(f, s, r) for f in FORMULATIONS for s in usable for r in (True, False)]


@pytest.mark.parametrize("seed", range(14))
def test_all_methods_find_the_optimum_of_the_oracle(seed: int) -> None:
    problem = random_problem(seed)
    optimum = oracle(problem)
    every = methods(problem)
    for k, method in enumerate(every):
        if (k + seed) % 3 == 0:  # each method on every third problem
            check(problem, answer(problem, *method), optimum)


@pytest.mark.parametrize("seed", range(18))
def test_costs_of_their_own(seed: int) -> None:
    problem = random_problem(seed + 500, bent=True)
    if seed % 3 == 0:
        problem = replace(problem, constraints=())
    optimum = oracle(problem)
    for method in methods(problem)[seed % 4 :: 4]:
        check(problem, answer(problem, *method), optimum)


@settings(max_examples=10)
@given(st.integers(100, 10**6))
def test_the_default_method_on_any_problem(seed: int) -> None:
    problem = random_problem(seed)
    check(problem, answer(problem, "interval", "highs", True), oracle(problem))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("norm", ["l2", {"l0": 0.2, "l1": 0.3, "l2": 1.0}])
def test_squared_costs_inside_cells(seed: int, norm: Any) -> None:
    problem = random_problem(seed + 1000, norm)
    optimum = oracle(problem)
    for method in methods(problem)[seed % 2 :: 4]:
        check(problem, answer(problem, *method), optimum, rel=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_constraints_over_cells_are_requirements(seed: int) -> None:
    """At every choice of cells the constraint trees' requirements say what the constraints say."""
    problem = random_problem(seed + 2000)
    rng = np.random.default_rng(seed)
    cells = to_cells(problem)
    part, values = cells.partition, cells.values
    assert values is not None
    extra = cells.requirements.need.shape[0] - len(values.rows)
    opened = [np.flatnonzero(cells.open[part.cells_of(i)]) for i in range(part.n_features)]
    for _ in range(200):
        choice = np.array([rng.choice(own) for own in opened])
        margins = cells.margins(part.leaves_at(choice))[extra:]
        point = cells.point(choice)
        for row, margin in zip(values.rows, margins, strict=True):
            if not any(values.slides[i] for i in row.parts):
                assert (margin >= 0) == row.holds(problem.space, point)
            elif row.holds(problem.space, point):
                assert margin >= 0  # of the best value in the cell


def test_models_need_no_second_solve() -> None:
    """The rows over sliding values are exact: what the solver finds first is the optimum, but for tolerances."""
    for seed in (0, 2, 15, 21, 22, 37):
        problem = random_problem(seed + 3000, "l1")
        assert to_cells(problem).couples
        assert len(answer(problem, "interval", "highs", False).results) == 1


@given(st.integers(0, 10**6), st.booleans())
def test_a_number_without_an_end_is_refused_or_as_one_with_a_far_end(seed: int, above: bool) -> None:
    problem = random_problem(seed)
    a, *others = problem.space.features

    def bounded(end: float) -> Problem:
        lower, upper = (a.lower, end) if above else (-end, a.upper)
        return replace(problem, space=FeatureSpace((replace(a, lower=lower, upper=upper, scale=2.0), *others)))

    try:
        found = answer(bounded(np.inf), "interval", "highs", True)
    except ProblemError as error:
        if "the constraints on 'a' need finite bounds: give features=" not in str(error):
            raise
        return
    wanted = answer(bounded(100.0), "interval", "highs", True)
    assert found.status == wanted.status
    assert found.cost == (None if wanted.cost is None else pytest.approx(wanted.cost, rel=1e-9))


@pytest.mark.parametrize(("sense", "bounds"), [(">=", (-1.0, np.inf)), ("<=", (-np.inf, 1.0))])
def test_a_number_that_a_constraint_moves_without_end_is_refused(sense: str, bounds: tuple[float, float]) -> None:
    """Where the row stands in the last cell no other cell tells that moving on helps."""
    rng = np.random.default_rng(0)
    space, rows = space_and_rows(rng)
    a, *others = space.features
    space = FeatureSpace((replace(a, lower=bounds[0], upper=bounds[1], scale=1.0), *others))
    ensemble = random_ensemble(rng, space, rows, n_trees=3, depth=2, n_classes=2)
    origin = rows[0].copy()
    origin[0] = bounds[0] if np.isfinite(bounds[0]) else bounds[1]
    rule = Linear({"a": 1, "b": 1}, sense, 5.0 if sense == ">=" else -5.0)
    problem = Problem(ensemble, space, origin, ClassTarget(1), Cost.parse("l1"), constraints=(rule,))
    with pytest.raises(ProblemError, match=r"the constraints on 'a' need finite bounds: give features="):
        to_cells(problem)


def test_costs_of_its_own_of_a_number_without_an_end() -> None:
    rng = np.random.default_rng(0)
    space, rows = space_and_rows(rng)
    a, *others = space.features
    ensemble = random_ensemble(rng, space, rows, n_trees=3, depth=2, n_classes=2)
    here = int(ensemble.decide(ensemble.scores(rows[:1]))[0])

    def asked(cost: Any, upper: float) -> Problem:
        own = replace(a, lower=-1.0, upper=upper, scale=1.0, weight_down=1.0, weight_up=1.0, cost=Curve.parse(cost))
        return Problem(ensemble, FeatureSpace((own, *others)), rows[0], ClassTarget(1 - here), Cost.parse("l1"))

    for cost in ([1, 2], {"points": [[-1, 0.5], [0, 0], [1, 2], [2, 1]]}):
        found, wanted = (answer(asked(cost, upper), "interval", "highs", True) for upper in (np.inf, 100.0))
        assert (found.status, found.cost) == (Status.OPTIMAL, pytest.approx(wanted.cost))


@pytest.mark.parametrize("settings", [{"constraints": True}, {"n_explanations": 2, "diversity": "distance"}])
def test_whole_numbers_of_a_wide_range_are_branched_on_by_their_costs(settings: dict[str, Any]) -> None:
    """Halves that hold nothing cheaper are left: depth first was as deep as the range, and beyond Python's stack."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.integers(0, 50_001, 400), "y": rng.integers(0, 30_012, 400)})
    table.loc[0], table.loc[1] = [0, 0], [50_000, 30_011]
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, (table.x > 10_000) & (table.y > 5_000))
    row = pd.DataFrame({"x": [5000], "y": [3000]})
    if settings.get("constraints"):
        settings = {"constraints": [Linear({"x": 3, "y": 7}, ">=", 100_003)]}
    found = Explainer(tree, table).explain(row, True, **settings)
    assert [e.status for e in found] == ["optimal"] * len(found)
    assert all(e.verified for e in found)
    if "constraints" not in settings:
        assert len(found) == 2
        return
    x = np.arange(50_001)
    y = np.maximum(-(-(100_003 - 3 * x) // 7), 0)
    least = [float(np.floor(t)) + 1 for t in tree.tree_.threshold[tree.tree_.feature >= 0]]
    start = dict(zip(tree.tree_.feature[tree.tree_.feature >= 0].tolist(), least, strict=True))
    x, y = np.maximum(x, start[0]), np.maximum(y, start[1])
    whole = (3 * x + 7 * y >= 100_003) & (y <= 30_011)
    assert found[0].cost == pytest.approx((abs(x - 5000) / 50_000 + abs(y - 3000) / 30_011)[whole].min(), rel=1e-12)


def test_a_search_over_whole_numbers_ends_with_the_time() -> None:
    """On a plateau of equal costs no bound helps: what is known by then is the answer."""
    sizes = {"a": 70_600, "b": 80_200, "c": 31_300}
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(0, size + 1, 400) for name, size in sizes.items()})
    table.loc[0], table.loc[1] = [0, 0, 0], [*sizes.values()]
    granted = (table.a > 36_700) & (table.b > 10_500) & (table.c > 5_500)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(table, granted)
    rule = Linear({name: 1 / size for name, size in sizes.items()}, ">=", 0.1, relative=True)
    row = pd.DataFrame({"a": [36_000], "b": [10_200], "c": [5_300]})
    found = Explainer(tree, table).explain(row, True, constraints=[rule], time_limit=2)[0]
    assert found.status in ("optimal", "feasible", "unknown")
    assert found.counterfactual is None or found.verified


@pytest.mark.parametrize("settings", [{"norm": "mahalanobis"}, {"constraints": True}])
def test_points_that_slide_are_found_however_short_the_time_is(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(table, table.a + table.b * table.c > 0)
    row = table[~forest.predict(table)].iloc[[0]]
    if "constraints" in settings:
        settings = {"constraints": [Linear(dict.fromkeys("abc", 1), "=", float(table.iloc[5].sum()))]}
    found = Explainer(forest, table).explain(row, True, time_limit=1e-9, **settings)[0]
    assert found.status == "feasible"
    assert found.verified


def test_points_that_are_only_tried_take_no_time_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was placed by up to 200 nodes in exact arithmetic, of which one takes milliseconds."""
    solved: list[int] = []
    relaxed = sliding.minimise

    def counted(*args: Any) -> Any:
        solved.append(1)
        return relaxed(*args)

    rng = np.random.default_rng(0)
    table = pd.DataFrame((rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6)) * 300).round().astype(int))
    table.columns = [f"x{i}" for i in range(6)]
    forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(table, table.sum(axis=1) > 0)
    rule = Linear({f"x{i}": 2.0 * (i + 1) for i in range(6)}, "=", 101)
    explainer = Explainer(forest, table)
    monkeypatch.setattr(sliding, "minimise", counted)
    found = explainer.explain(table.iloc[[0]], constraints=[rule], time_limit=1e-9)[0]
    assert found.status in ("unknown", "feasible")
    assert len(solved) < 200


def test_what_a_search_has_found_outlives_a_limit_in_the_middle_of_a_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search was left by the exception, and the answer was the point that it had begun with."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame((rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6)) * 300).round().astype(int))
    table.columns = [f"x{i}" for i in range(6)]
    forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(table, table.sum(axis=1) > 0)
    explainer, row = Explainer(forest, table), table.iloc[[3]]
    best = explainer.explain(row, norm="mahalanobis", solver="box")[0]
    assert best.status == "optimal"
    known: list[float] = []
    offer = coupled.CoupledSearch.offer

    def late(self: Any, x: Any) -> float:
        if known and self.upper <= known[-1]:
            raise TimeLimitError("the time is over")
        cost = offer(self, x)
        if self.upper < np.inf:
            known.append(self.upper)
        return cost

    monkeypatch.setattr(coupled.CoupledSearch, "offer", late)
    found = explainer.explain(row, norm="mahalanobis", solver="box")[0]
    assert found.status in ("feasible", "optimal")
    assert found.cost == pytest.approx(min(known))
    assert found.bound <= best.cost

"""Of the answers that cost the same the best: against the whole table, by the user's own model."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer, Explanation
from ocf.problem.constraints import Implication, Linear
from ocf.problem.tie_breaking import among_equals, may_tie
from ocf.solvers.box.solver import BoxSolver
from ocf.solvers.result import SolveResult, Status

WIDTHS = {"a": 4, "b": 4, "c": 4, "d": 2}

#: Every row that there is.
ALL = pd.DataFrame(list(itertools.product(*(range(w + 1) for w in WIDTHS.values()))), columns=list(WIDTHS))

WAYS = [("interval", "box"), ("interval", "highs"), ("ocean", "scip"), ("oae", "highs"), ("fcca", "scip")]

NORMS = ("l0", "l1", "l2", {"l0": 0.25, "l1": 1.0})


def forest(seed: int) -> RandomForestClassifier:
    rng = np.random.default_rng(seed)
    score = ALL.to_numpy() @ rng.uniform(0.3, 1.0, 4) + rng.normal(0, 1.0, len(ALL))
    model = RandomForestClassifier(5, max_depth=3, random_state=seed)
    return model.fit(ALL, (score > np.quantile(score, 0.7)).astype(int))


def criteria(row: pd.DataFrame, norm: Any, weights: dict[str, float]) -> np.ndarray:
    """Cost, l1 and number of changes of every row there is, (n, 3)."""
    change = (ALL - row.iloc[0]).abs() / pd.Series(WIDTHS)
    weight = pd.Series({name: weights.get(name, 1.0) for name in WIDTHS})
    count, length = (change > 0), change
    mix = {norm: 1.0} if isinstance(norm, str) else norm
    of = {"l0": count * weight, "l1": length * weight, "l2": length**2 * weight}
    cost = sum(c * of[name].sum(axis=1) for name, c in mix.items())
    return np.round(np.column_stack([cost, of["l1"].sum(axis=1), count.sum(axis=1)]), 9)


def best(row: pd.DataFrame, norm: Any, allowed: np.ndarray, weights: dict[str, float]) -> tuple[float, ...]:
    return min(map(tuple, criteria(row, norm, weights)[allowed].tolist()))


def found(e: Explanation, norm: Any, weights: dict[str, float]) -> tuple[float, ...]:
    at = np.flatnonzero((e.counterfactual.iloc[0] == ALL).all(axis=1))
    return tuple(criteria(e.original, norm, weights)[at[0]].tolist())


@pytest.mark.parametrize(("formulation", "solver"), WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_the_lexicographic_optimum(seed: int, formulation: str, solver: str) -> None:
    model, norm = forest(seed), NORMS[seed]
    weights = {"b": 0.5, "c": 2.0} if seed % 2 else {}
    explainer = Explainer(model, data=ALL)
    rows = ALL[model.predict(ALL) == 0].iloc[::23].iloc[:4]
    constraint = Implication({"d": 2}, {"a": {"min": 2}}) if seed > 1 else None
    allowed = model.predict(ALL) == 1
    if constraint is not None:
        allowed &= ~((ALL.d == 2) & (ALL.a < 2)).to_numpy()
    settings: dict[str, Any] = {"norm": norm, "weights": weights, "constraints": constraint}
    for e in explainer.explain(rows, 1, formulation=formulation, solver=solver, **settings):
        assert (e.status, e.verified) == ("optimal", True)
        assert found(e, norm, weights) == best(e.original, norm, allowed, weights)
        assert e.method["ties"]["proven"]


@pytest.mark.parametrize("solver", ["box", "highs", "scip"])
@pytest.mark.parametrize("larger", [False, True])
@pytest.mark.parametrize(
    ("weights", "free"),
    [
        ({}, False),
        ({"a": 0.91, "b": 0.73, "c": 1.31, "d": 0.57}, False),
        ({"a": 0.91, "b": 0.73, "c": 1.31, "d": 0.0}, True),
    ],
)
def test_changes_are_counted_by_another_model_only_where_one_is_free(
    weights: dict[str, float], free: bool, larger: bool, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the search for the cost, or one like it, finds the fewest."""
    counted = []

    def among(*arguments: Any) -> Any:
        counted.append(arguments)
        return among_equals(*arguments)

    monkeypatch.setattr("ocf.solve.equals.among_equals", among)
    monkeypatch.setattr("ocf.solve.equals.may_tie", lambda *_: True)
    monkeypatch.setattr("ocf.solve.fewest.may_tie", lambda *_: True)
    if larger:
        monkeypatch.setattr("ocf.solve.prepared.MANY_LEAVES", 0)
    model = forest(2)
    rows = ALL[model.predict(ALL) == 0].iloc[::11]
    answers = Explainer(model, data=ALL).explain(rows, 1, "l1", weights=weights, solver=solver)
    for e in answers:
        assert (e.status, e.verified, e.method["ties"]["proven"]) == ("optimal", True, True)
        assert found(e, "l1", weights) == best(e.original, "l1", model.predict(ALL) == 1, weights)
    assert max(len(e.changes) for e in answers) > 1
    assert bool(counted) == free


@pytest.mark.parametrize("larger", [False, True])
@pytest.mark.parametrize("solver", ["box", "highs", "scip"])
@pytest.mark.parametrize("seed", range(3))
def test_several_classes_will_do(seed: int, solver: str, larger: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of one class may cost what that of another costs, and change more."""
    rng = np.random.default_rng(seed)
    score = ALL.to_numpy() @ rng.uniform(0.3, 1.0, 4) + rng.normal(0, 1.0, len(ALL))
    classes = np.digitize(score, np.quantile(score, [0.4, 0.6, 0.8]))
    model = RandomForestClassifier(5, max_depth=3, random_state=seed).fit(ALL, classes)
    monkeypatch.setattr("ocf.solve.equals.among_equals", lambda *_: pytest.fail("another model counts"))
    if larger:
        monkeypatch.setattr("ocf.solve.prepared.MANY_LEAVES", 0)
    wanted = [2, 3, 1][: 2 + seed % 2]
    rows = ALL[model.predict(ALL) == 0].iloc[::17]
    allowed = np.isin(model.predict(ALL), wanted)
    for e in Explainer(model, data=ALL).explain(rows, wanted, "l1", solver=solver):
        assert (e.status, e.verified, e.method["ties"]["proven"]) == ("optimal", True, True)
        assert found(e, "l1", {}) == best(e.original, "l1", allowed, {})


@pytest.mark.parametrize("norm", ["l1", "l2", "l0"])
@pytest.mark.parametrize(
    ("solver", "reduce"),
    [("auto", True), ("box", True), ("box", False), ("highs", True), ("highs", False), ("scip", True)],
)
def test_sums_that_are_the_same_but_for_rounding_cost_the_same(norm: str, solver: str, reduce: bool) -> None:
    """1/6 + 1/3 is less than 1/2 in float64: costs are fractions here."""
    widths = {"a": 6, "b": 3, "c": 6}
    table = pd.DataFrame(list(itertools.product(*(range(w + 1) for w in widths.values()))), columns=list(widths))
    tied, power = 0, {"l0": 0, "l1": 1, "l2": 2}[norm]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        score = 2 * table.a + 2 * table.b + table.c + rng.normal(size=len(table))
        classes = (score > 14).astype(int)
        model = RandomForestClassifier(5, max_depth=4, random_state=seed).fit(table, classes)
        answers = model.predict(table)
        rows = table[answers == 0].iloc[::13]
        for e in Explainer(model, data=table).explain(rows, 1, norm, solver=solver, reduce=reduce):
            assert (e.status, e.verified, e.method["ties"]["proven"]) == ("optimal", True, True)
            origin = e.original.iloc[0]

            def ranked(point: Any, origin: pd.Series = origin) -> tuple[Fraction, Fraction, int]:
                moved = [
                    Fraction(int(abs(point[n] - origin[n])), w) for n, w in widths.items() if point[n] != origin[n]
                ]
                return sum(m**power for m in moved), sum(moved), len(moved)

            every = [ranked(point) for point in table[answers == 1].to_dict("records")]
            assert ranked(e.counterfactual.iloc[0]) == min(every)
            tied += len({r for r in every if r[0] == min(every)[0]}) > 1
    assert tied > 3 or norm == "l2"


def test_there_are_ties_to_break() -> None:
    """The first answer that comes is another one, so that the test above can fail."""
    worse = [0, 0, 0, 0]
    for seed, norm in enumerate(NORMS):
        model = forest(seed)
        rows = ALL[model.predict(ALL) == 0].iloc[::9]
        for e in Explainer(model, data=ALL).explain(rows, 1, norm, break_ties=False):
            optimum = best(e.original, norm, model.predict(ALL) == 1, {})
            assert found(e, norm, {})[0] == optimum[0]
            assert "ties" not in e.method
            worse[seed] += found(e, norm, {}) > optimum
    assert min(worse[0], worse[1], worse[3]) > 0


def test_larger_trees_and_lists_of_ties_begin_with_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    model = forest(0)
    rows = ALL[model.predict(ALL) == 0].iloc[::31]
    plain = Explainer(model, data=ALL).explain(rows, 1, "l0", n_optimal=50)
    monkeypatch.setattr("ocf.solve.prepared.MANY_LEAVES", 0)
    for e, near in zip(plain, Explainer(model, data=ALL).explain(rows, 1, "l0", n_optimal=50), strict=True):
        optimum = best(e.original, "l0", model.predict(ALL) == 1, {})
        assert found(e, "l0", {}) == found(near, "l0", {}) == optimum
        for tie in (*e.ties, *near.ties):
            at = np.flatnonzero((tie.iloc[0] == ALL).all(axis=1))[0]
            assert tuple(criteria(e.original, "l0", {})[at].tolist()) >= optimum


def test_what_is_not_proven_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = forest(0)
    explainer = Explainer(model, data=ALL)
    row = ALL[model.predict(ALL) == 0].iloc[[0]]
    own = BoxSolver.solve_cells

    def solve(self: BoxSolver, cells: Any, *args: Any, **settings: Any) -> SolveResult:
        if cells.problem.cost.l1:
            return SolveResult(Status.UNKNOWN, solver="box", nodes=1000, message="time")
        return own(self, cells, *args, **settings)

    monkeypatch.setattr(BoxSolver, "solve_cells", solve)
    (e,) = explainer.explain(row, 1, "l0", reduce=False, solver="box")
    assert (e.status, e.verified, e.method["ties"]["proven"]) == ("optimal", True, False)
    assert "not proven within the time limit" in e.to_html()
    assert 1000 <= e.nodes < 2000  # what found nothing has worked all the same


@pytest.mark.parametrize("reduce", [True, False])
def test_ties_are_on_the_clock(reduce: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = forest(0)
    explainer = Explainer(model, data=ALL)
    row = ALL[model.predict(ALL) == 0].iloc[[0]]
    asked = {"target": 1, "norm": "l0", "reduce": reduce, "solver": "box"}
    (plain,), (broken,), (listed,) = (
        explainer.explain(row, **asked, **more) for more in ({"break_ties": False}, {}, {"n_optimal": 20})
    )
    assert plain.times["ties"] == 0 < broken.times["ties"]
    assert listed.times["ties"] > 0
    for e in (broken, listed):
        assert sum(v for key, v in e.times.items() if key != "total") <= e.times["total"] * (1 + 1e-9)
    monkeypatch.setattr("ocf.solve.equals.seconds_left", lambda: 0.0)
    (late,) = explainer.explain(row, **asked)
    assert (late.status, late.cost, late.nodes) == ("optimal", plain.cost, plain.nodes)
    assert not late.method["ties"]["proven"]


def test_ties_that_nothing_breaks_are_not_claimed_to_be() -> None:
    model = forest(0)
    row = ALL[model.predict(ALL) == 0].iloc[[0]]
    together = Linear({"a": 1, "b": -1}, "<=", 3)
    numbers = Explainer(model, data=ALL.astype(float))
    assert "ties" not in numbers.explain(row.astype(float), 1, "l0", constraints=together)[0].method


def test_sums_of_few_costs() -> None:
    cost, offsets = np.array([0.0, 0.5, 2.0, 0.0, 0.25, 0.75, 0.0, 0.125]), np.array([0, 3, 6, 8])
    assert not may_tie(cost, offsets, 0.625, 1)
    assert not may_tie(cost, offsets, 0.875, 2)  # 0.125 and 0.75, of which none is as much
    assert may_tie(cost, offsets, 0.5, 2)
    assert may_tie(cost, offsets, 1.25, 3)  # 0.5 and 0.75
    assert not may_tie(cost, offsets, 1.0, 3)  # 0.25 and 0.75 are of one feature
    assert may_tie(cost, offsets, 1.375, 4)  # 0.125, 0.5 and 0.75
    assert not may_tie(cost, offsets, 1.375, 3)
    assert not may_tie(cost, offsets, 1.125, 4)  # 0.125, 0.25 and 0.75, of which two are of one feature
    assert may_tie(cost, offsets, 1.1, 5)
    assert may_tie(np.array([0.0, 0.0, 1.0]), np.array([0, 3]), 1.5, 2)  # a change that costs nothing


def test_sums_of_costs_are_those_that_enumeration_finds() -> None:
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(60):
        widths = rng.integers(2, 4, 5)
        offsets = np.concatenate([[0], np.cumsum(widths)])
        cost = rng.integers(1, 60, offsets[-1]) / 8
        cost[offsets[:-1]] = 0.0
        own = [cost[a:b].tolist() for a, b in itertools.pairwise(offsets)]
        total = sum(rng.choice(c) for c in own)
        for changes in (2, 3, 4):
            tied = any(
                sum(map(bool, choice)) < changes and sum(choice) == total for choice in itertools.product(*own) if total
            )
            assert may_tie(cost, offsets, total, changes) == tied
            found.add((changes, tied))
    assert len(found) == 6

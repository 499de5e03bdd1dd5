"""The rule of sets against all choices of cells, and where nothing else decides so quickly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from small_problems import exhaustive, random_problem

from ocf import Explainer, MaxChanges
from ocf.cells.cell_problem import CellProblem
from ocf.cells.change_sets import allowances, drop_beyond_sets
from ocf.cells.forms import to_cells
from ocf.cells.kernels import open_costs

SEEDS = st.integers(0, 10**6)


def few_changes(seed: int) -> CellProblem:
    """A random problem with one or two limits to the number of changes."""
    problem, rng = random_problem(seed).problem, np.random.default_rng(seed)
    some = tuple(str(name) for name in rng.permutation(problem.space.names)[:2])
    limits = (MaxChanges(int(rng.integers(0, 4))), MaxChanges(1, some))
    return to_cells(replace(problem, constraints=limits[: int(rng.integers(1, 3))]))


@settings(max_examples=200, deadline=None)
@given(SEEDS, st.booleans(), st.floats(0, 1), st.booleans())
def test_every_point_of_use_stays(seed: int, limited: bool, share: float, known: bool) -> None:
    cells = few_changes(seed) if limited else random_problem(seed)
    part, everything = cells.partition, exhaustive(cells)
    limit = float(np.quantile(everything.cost[everything.feasible], share)) if everything.feasible.any() else 1.0
    limit = limit if known else np.inf
    of_use = everything.feasible & (everything.cost < limit * (1 - 1e-9))
    points = everything.choices[of_use]
    cost, live, left = open_costs(cells), cells.live.copy(), True
    for allowance in list(allowances(cells, cost, live, limit)):
        assert (np.minimum.reduceat(allowance.use, part.offsets[:-1]) == 0).all()
        taken = allowance.use[part.offsets[:-1] + points].sum(axis=1)
        assert (taken <= allowance.spare + 1e-9 * (1 + abs(allowance.spare))).all()
        left = left and drop_beyond_sets(cells, allowance, cost, live, 10**7)
    assert left or not len(points)
    if left:
        assert np.isfinite(cost[part.offsets[:-1] + points]).all()
        assert all(live[part.leaves_at(point)].all() for point in points)


def test_nothing_is_done_where_sets_are_too_many() -> None:
    cells = few_changes(3)
    cost, live = open_costs(cells), cells.live.copy()
    found = list(allowances(cells, cost, live, np.inf))
    assert found
    assert all(drop_beyond_sets(cells, own, cost, live, 0) for own in found)
    np.testing.assert_array_equal(cost, open_costs(cells))
    np.testing.assert_array_equal(live, cells.live)


def test_a_tree_without_a_leaf_rules_a_set_out() -> None:
    problem = replace(random_problem(1).problem, constraints=(MaxChanges(0),))
    cells = to_cells(problem)
    part, cost, live = cells.partition, open_costs(cells), cells.live.copy()
    unchanged = np.array([int(np.argmin(cost[part.cells_of(i)])) for i in range(part.n_features)])
    live[part.leaves_at(unchanged)[0]] = False
    (found,) = allowances(cells, cost, live, np.inf)
    assert not drop_beyond_sets(cells, found, cost, live, 10**7)


def test_sets_decide_what_needs_two_pairs_of_features() -> None:
    """Each tree finds some pair within two changes, and no two changes serve enough trees."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(12)]
    table = pd.DataFrame(rng.integers(0, 2, (600, 12)).astype(float), columns=names)
    pairs = sum(table[a] * table[b] for a, b in zip(names[::2], names[1::2], strict=True))
    model = RandomForestClassifier(60, max_depth=7, random_state=0).fit(table, pairs >= 2)
    explainer = Explainer(model, table)
    row = pd.DataFrame([np.zeros(12)], columns=names)
    least = explainer.explain(row, True, "l0")[0]
    assert least.status == "optimal"
    most = int(least.cost) - 1
    answer = explainer.explain(row, True, constraints=[MaxChanges(most)], solver="highs")[0]
    assert (answer.status, answer.method["proved_by"]) == ("infeasible", "reduction")
    changed = explainer.explain(row, True, constraints=[MaxChanges(most + 1)])[0]
    assert changed.status == "optimal"
    assert len(changed.changes) == most + 1

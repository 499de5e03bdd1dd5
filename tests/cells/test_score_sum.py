"""Sums of functions of scores in kernels: they are the library's own up to rounding, and searches end with them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from small_problems import exhaustive

from ocf.arrays import BoolArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.cells.score_sum import hold_sum
from ocf.features.inference import infer_space
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget, ProbabilityTarget, Target
from ocf.readers import read_model
from ocf.solve.cell_run import FEW_REFUSED, asked_of_points
from ocf.solvers.box import solve_cells
from ocf.solvers.box.points import make_evaluator, meets_target
from ocf.solvers.result import Status
from ocf.trees.links import show

TARGETS = [ClassTarget(1), ClassTarget(0), ProbabilityTarget((1,), 0.6), ProbabilityTarget((0,), 0.8)]


def calibrated(seed: int, target: Target, method: str = "isotonic") -> CellProblem:
    """Small forests of three folds over three features; the row is far from the target."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=120), rng.integers(0, 4, 120), rng.integers(0, 2, 120)]).astype(float)
    y = (x[:, 0] + 0.5 * x[:, 1] - x[:, 2] + rng.normal(size=120) > 1).astype(int)
    forest = RandomForestClassifier(3, max_depth=3, random_state=seed)
    model = CalibratedClassifierCV(forest, method=method, cv=3).fit(x, y)
    wanted = target.index if isinstance(target, ClassTarget) else target.indices[0]
    row = x[int(model.predict_proba(x)[:, wanted].argmin())]
    space = infer_space(x, {"x1": {"kind": "integer"}})
    return to_cells(Problem(read_model(model).ensemble, space, row, target, Cost.parse("l1")))


def wanted_of(cells: CellProblem, choices: IntArray) -> BoolArray:
    """Whether each choice of cells has the target, by the calibrators themselves."""
    ensemble, target = cells.problem.ensemble, cells.problem.target
    leaves = np.array([cells.partition.leaves_at(choice) for choice in choices])
    scores = ensemble.base_score + ensemble.contributions[leaves].sum(axis=1)
    return np.asarray(target.met_by(ensemble.decide(scores), show(ensemble, scores)))


def close_to(cells: CellProblem, choices: IntArray) -> BoolArray:
    """Whether each choice of cells has the target or misses it by rounding: calibrators may jump within a few bits."""
    ensemble, target = cells.problem.ensemble, cells.problem.target
    k, least = (target.index, 0.5) if isinstance(target, ClassTarget) else (target.indices[0], target.probability)
    leaves = np.array([cells.partition.leaves_at(choice) for choice in choices])
    scores = ensemble.base_score + ensemble.contributions[leaves].sum(axis=1)
    return np.asarray(show(ensemble, scores + (1e-9 if k else -1e-9))[:, k] >= least - 1e-9)


def solved(cells: CellProblem) -> tuple[float, int]:
    """Cost of the cheapest choice with the target, by one search, and how often that asks about one without it."""
    asked: list[bool] = []

    def admits(choice: IntArray) -> bool:
        asked.append(bool(wanted_of(cells, choice[None])[0]))
        return asked[-1]

    result = solve_cells(cells, confirm=asked_of_points(cells.requirements, admits))
    assert result.status is Status.OPTIMAL
    assert result.cost is not None
    return result.cost, asked.count(False)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(4))
def test_a_search_knows_isotonic_calibrators_as_they_are(seed: int, target: Target) -> None:
    cells = calibrated(seed, target)
    assert hold_sum(cells.requirements)
    everything = exhaustive(cells)
    wanted = wanted_of(cells, everything.choices)
    assert wanted.any()
    if seed == 0:
        assert (everything.feasible & ~wanted).any(), "the rows alone tell everything"
    evaluator = make_evaluator(cells)
    told = np.array([meets_target(evaluator, choice) for choice in everything.choices])
    near = close_to(cells, everything.choices)
    assert (told | ~wanted).all()
    assert (near | ~told).all()
    cost, refused = solved(cells)
    assert cost == pytest.approx(everything.cost[wanted].min(), rel=1e-9)
    assert refused <= (told & ~wanted).sum()


def test_other_calibrators_are_held_by_their_rows() -> None:
    cells = calibrated(0, ClassTarget(1), "sigmoid")
    assert cells.requirements.curve is not None
    assert not hold_sum(cells.requirements)
    assert asked_of_points(cells.requirements, lambda choice: True) is None


def test_only_a_few_points_are_refused_one_by_one() -> None:
    """A tie that the model refuses may hold any number of them."""
    cells = calibrated(0, ClassTarget(1))
    asked: list[IntArray] = []
    judge = asked_of_points(cells.requirements, lambda choice: bool(asked.append(choice)))
    assert judge is not None
    choice = np.zeros(3, np.int64)
    assert [judge(choice) for _ in range(FEW_REFUSED + 2)] == [False] * FEW_REFUSED + [True] * 2
    assert len(asked) == FEW_REFUSED

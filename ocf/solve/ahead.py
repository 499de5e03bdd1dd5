"""Kernels compiled ahead of the rows that need them, on a small problem made for that."""

from __future__ import annotations

from functools import partial

import numpy as np

from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.cells.incumbent import find_incumbent
from ocf.cells.nearby import Pruner
from ocf.cells.reduction import reduce
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.solve.compile import compile_formulation
from ocf.solvers.box.coupled import CoupledSearch
from ocf.solvers.box.search import BoxResult, solve_cells
from ocf.solvers.result import SolverOptions
from ocf.trees.ensemble import Decision, Ensemble, SplitKind

#: Of the small problem, whose trees have one split each: enough that neither reduction nor propagation proves it.
N_TREES, N_FEATURES = 30, 10

#: Trees of the problem for LP bounds: enough that no first dive proves it.
MANY_TREES = 100

L1 = Cost.parse("l1")


def compile_beginning() -> None:
    """Compile, or load, what every row needs: incumbent, reduction, and what leaves out the leaves far from a row."""
    cells = _small_problem()
    find_incumbent(cells, effort=1)
    reduce(cells)
    Pruner(cells.partition).within(cells.cost, 1.0, 10**6)


def compile_search() -> None:
    """Compile, or load, what the box search needs of most rows: propagation and dives."""
    solve_cells(_small_problem())


def compile_bounds() -> BoxResult:
    """Compile, or load, what the box search needs beside LPs, which bound its boxes where dives end with some open."""
    cells = _small_problem(MANY_TREES)
    return solve_cells(cells, relaxation=partial(compile_formulation, "interval", cells))


def compile_coupled() -> None:
    """Compile, or load, what the box search needs of costs that couple features."""
    forms = ((("x0", 1.0), ("x1", 0.5)), (("x2", 1.0), ("x3", -0.5)))
    CoupledSearch(_small_problem(cost=Cost(l1=0.1, forms=forms)), SolverOptions()).run()


def _small_problem(n_trees: int = N_TREES, cost: Cost = L1) -> CellProblem:
    """A sum of steps in several features that must exceed a number: which steps to take is a knapsack problem."""
    rng = np.random.default_rng(0)
    first = np.arange(n_trees) * 3
    split = np.arange(3 * n_trees) % 3 == 0
    leaves, none = np.arange(2 * n_trees), np.full(3 * n_trees, -1, np.int32)
    feature, left, right, leaf = none, none.copy(), none.copy(), none.copy()
    threshold = np.full(3 * n_trees, np.nan)
    feature[split], left[split], right[split] = np.arange(n_trees) % N_FEATURES, first + 1, first + 2
    threshold[split], leaf[~split] = rng.uniform(size=n_trees), leaves
    gain = rng.uniform(size=2 * n_trees) * (leaves % 2)
    ensemble = Ensemble(
        tuple(f"x{i}" for i in range(N_FEATURES)),
        np.arange(n_trees + 1) * 3,
        np.where(split, SplitKind.AXIS, SplitKind.LEAF).astype(np.uint8),
        feature,
        threshold,
        left,
        right,
        leaf,
        gain[:, None],
        np.ones(n_trees),
        np.zeros(1),
        Decision("threshold", (0, 1), float(gain.sum() / 2)),
    )
    space = FeatureSpace(tuple(Feature(name, "numeric", lower=0.0, upper=1.0) for name in ensemble.feature_names))
    return to_cells(Problem(ensemble, space, np.zeros(N_FEATURES), ClassTarget(1), cost))

"""Kernels compiled ahead of the rows that need them, on a small problem made for that."""

from __future__ import annotations

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
from ocf.solvers.box.search import solve_cells
from ocf.trees.ensemble import Decision, Ensemble, SplitKind

#: Of the small problem, whose trees have one split each: enough that neither reduction nor propagation proves it.
N_TREES, N_FEATURES = 30, 10


def compile_beginning() -> None:
    """Compile, or load, what every row needs: incumbent, reduction, and what leaves out the leaves far from a row."""
    cells = _small_problem()
    find_incumbent(cells, effort=1)
    reduce(cells)
    Pruner(cells.partition).within(cells.cost, 1.0, 10**6)


def compile_search() -> None:
    """Compile, or load, what the box search needs of most rows: propagation and dives."""
    solve_cells(_small_problem())


def _small_problem() -> CellProblem:
    """A sum of steps in several features that must exceed a number: which steps to take is a knapsack problem."""
    rng = np.random.default_rng(0)
    first = np.arange(N_TREES) * 3
    split = np.arange(3 * N_TREES) % 3 == 0
    leaves, none = np.arange(2 * N_TREES), np.full(3 * N_TREES, -1, np.int32)
    feature, left, right, leaf = none, none.copy(), none.copy(), none.copy()
    threshold = np.full(3 * N_TREES, np.nan)
    feature[split], left[split], right[split] = np.arange(N_TREES) % N_FEATURES, first + 1, first + 2
    threshold[split], leaf[~split] = rng.uniform(size=N_TREES), leaves
    gain = rng.uniform(size=2 * N_TREES) * (leaves % 2)
    ensemble = Ensemble(
        tuple(f"x{i}" for i in range(N_FEATURES)),
        np.arange(N_TREES + 1) * 3,
        np.where(split, SplitKind.AXIS, SplitKind.LEAF).astype(np.uint8),
        feature,
        threshold,
        left,
        right,
        leaf,
        gain[:, None],
        np.ones(N_TREES),
        np.zeros(1),
        Decision("threshold", (0, 1), float(gain.sum() / 2)),
    )
    space = FeatureSpace(tuple(Feature(name, "numeric", lower=0.0, upper=1.0) for name in ensemble.feature_names))
    return to_cells(Problem(ensemble, space, np.zeros(N_FEATURES), ClassTarget(1), Cost.parse("l1")))

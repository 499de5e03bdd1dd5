"""Random problems small enough for brute force over all choices of cells.

All but those of `whole_numbers` are built without any library of trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.solvers.standard_form import StandardForm
from ocf.support.tolerances import slack
from ocf.trees.ensemble import Decision, Ensemble, SplitKind

NORMS = ("l1", "l2", "l0", {"l0": 0.1, "l1": 1.0})


@cache
def _described() -> FeatureSpace:
    """Features of every kind, as they are read from a table; what differs from table to table is put in later."""
    table = pd.DataFrame(
        {
            "numeric": [0.25, 0.75],
            "integer": [0, 6],
            "binary": [0, 1],
            "ordinal": ["low", "high"],
            "categorical": ["a", "d"],
            "other": [0.25, 0.75],
        }
    )
    levels = {"ordinal": {"kind": "ordinal", "levels": ["low", "middle", "high"]}, "categorical": {"levels": [*"abcd"]}}
    return infer_space(table.loc[np.arange(30) % 2], levels | {"integer": {"kind": "integer"}})


def random_space(rng: np.random.Generator) -> tuple[FeatureSpace, FloatArray]:
    """Features of every kind, some of them restricted, and coded rows, (30, n_features)."""
    n = 30
    numeric, integer, binary = rng.normal(size=n), rng.integers(0, 7, n), rng.integers(0, 2, n)
    binary[:2] = [0, 1]
    ordinal, categorical, other = rng.choice(3, n), rng.choice(4, n), rng.uniform(size=n)
    weight = float(rng.choice([0.3, 1.0]))
    action = str(rng.choice(["free", "free", "increasing", "decreasing", "fixed"]))
    space = _described().updated(
        {
            "numeric": _range(numeric) | {"weight_down": 0.5, "weight_up": 2.0},
            "integer": _range(integer) | {"action": action},
            "categorical": {"weight_down": weight, "weight_up": weight},
            "other": _range(other),
        }
    )
    return space, np.column_stack([numeric, integer, binary, ordinal, categorical, other]).astype(np.float64)


def _range(values: np.ndarray) -> dict[str, float]:
    low, high = float(values.min()), float(values.max())
    return {"lower": low, "upper": high, "scale": high - low}


def random_ensemble(
    rng: np.random.Generator, space: FeatureSpace, rows: FloatArray, n_trees: int, depth: int, n_classes: int
) -> Ensemble:
    """Trees with random splits at values of the rows and random leaves.

    Two classes give one score against a threshold; more give one score each. About every fourth ensemble has votes
    as leaf values, so that sums are exact and ties occur.
    """
    n_outputs = 1 if n_classes == 2 else n_classes
    votes = rng.random() < 0.25
    nodes: list[list[float]] = []
    offsets, sets, values = [0], [], []
    for _ in range(n_trees):
        _grow(rng, space, rows, depth, nodes, sets)
        offsets.append(len(nodes))
    table = np.array(nodes)
    kind = table[:, 0].astype(np.uint8)
    leaf = np.full(len(kind), -1, np.int32)
    n_leaves = int((kind == SplitKind.LEAF).sum())
    leaf[kind == SplitKind.LEAF] = np.arange(n_leaves)
    values = rng.integers(-1, 2, (n_leaves, n_outputs)) if votes else rng.normal(size=(n_leaves, n_outputs))
    decision = (
        Decision("threshold", ("no", "yes"), 0.0, bool(rng.integers(2)))
        if n_classes == 2
        else Decision("argmax", tuple(range(n_classes)))
    )
    return Ensemble(
        space.names,
        np.array(offsets, np.int64),
        kind,
        table[:, 1].astype(np.int32),
        table[:, 2],
        table[:, 3].astype(np.int32),
        table[:, 4].astype(np.int32),
        leaf,
        values.astype(np.float64),
        np.ones(n_trees),
        np.zeros(n_outputs),
        decision,
        set_index=table[:, 5].astype(np.int32),
        sets=np.array(sets, bool).reshape(len(sets), 4),
    )


def _grow(
    rng: np.random.Generator,
    space: FeatureSpace,
    rows: FloatArray,
    depth: int,
    nodes: list[list[float]],
    sets: list[BoolArray],
) -> int:
    """Append a subtree; returns its root."""
    k = len(nodes)
    if depth == 0 or rng.random() < 0.1:
        nodes.append([SplitKind.LEAF, -1, np.nan, -1, -1, -1])
        return k
    f = int(rng.integers(len(space)))
    if space.features[f].kind == "categorical":
        sets.append(rng.random(4) < 0.5)
        nodes.append([SplitKind.SUBSET, f, np.nan, -1, -1, len(sets) - 1])
    else:
        nodes.append([SplitKind.AXIS, f, float(rng.choice(rows[:, f])), -1, -1, -1])
    nodes[k][3] = _grow(rng, space, rows, depth - 1, nodes, sets)
    nodes[k][4] = _grow(rng, space, rows, depth - 1, nodes, sets)
    return k


def random_problem(seed: int) -> CellProblem:
    """A problem of the kinds above, in cells."""
    rng = np.random.default_rng(seed)
    space, rows = random_space(rng)
    n_classes = int(rng.choice([2, 2, 3]))
    ensemble = random_ensemble(rng, space, rows, int(rng.integers(2, 7)), int(rng.integers(1, 4)), n_classes)
    norm = NORMS[int(rng.integers(len(NORMS)))]
    target = ClassTarget(int(rng.integers(n_classes)))
    return to_cells(Problem(ensemble, space, rows[0], target, Cost.parse(norm)))


def large_problem(seed: int, n_trees: int = 30, depth: int = 4) -> CellProblem:
    """Beyond brute force over leaves, within brute force over cells of a few features."""
    rng = np.random.default_rng(seed)
    space, rows = random_space(rng)
    ensemble = random_ensemble(rng, space, rows, n_trees, depth, int(rng.integers(2, 4)))
    return to_cells(Problem(ensemble, space, rows[0], ClassTarget(int(rng.integers(2))), Cost(l1=1)))


class Exhaustive(NamedTuple):
    """All choices of open cells.

    Attributes
    ----------
    choices : (n, n_features) int64
    sums : (n, n_rows) float64
        Of gains.
    feasible : (n,) bool
        With live leaves only.
    cost : (n,) float64
    """

    choices: IntArray
    sums: FloatArray
    feasible: BoolArray
    cost: FloatArray

    @property
    def optimum(self) -> float:
        """Cost of the cheapest feasible choice; inf when there is none."""
        return float(self.cost[self.feasible].min(initial=np.inf))


def exhaustive(cells: CellProblem) -> Exhaustive:
    """Evaluate all choices of open cells, by the boxes of the leaves; shares no code with the kernels."""
    part = cells.partition
    spans = [np.flatnonzero(cells.open[part.cells_of(i)]) for i in range(part.n_features)]
    choices = np.stack(np.meshgrid(*spans, indexing="ij"), axis=-1).reshape(-1, part.n_features)
    inside = np.tile(part.reachable, (len(choices), 1))
    for i in range(part.n_features):
        level = np.arange(part.widths[i])
        admits = (
            (part.low[:, i, None] <= level) & (level <= part.high[:, i, None])
            if part.ordered[i]
            else part.members_of(i)
        )
        inside &= admits.T[choices[:, i]]
    assert (inside.sum(axis=1) == part.ensemble.n_trees).all()
    gain = cells.requirements.gain
    sums = np.array([gain[row].sum(axis=0) for row in inside]).reshape(len(choices), gain.shape[1])
    feasible = (sums >= cells.requirements.need).all(axis=1) & ~(inside & ~cells.live).any(axis=1)
    cost = cells.cost[part.offsets[:-1] + choices].sum(axis=1)
    return Exhaustive(choices, sums, feasible, cost)


def with_ties(seeds: Iterable[int]) -> Iterator[tuple[CellProblem, Exhaustive]]:
    """Random problems with a point that is not free, whose leaves cost nothing; in every other one many cost the same.

    Parameters
    ----------
    seeds : iterable of int
    """
    for seed in seeds:
        cells = random_problem(seed)
        cells = replace(cells, cost=np.ceil(5 * cells.cost) / 5) if seed % 2 else cells
        everything = exhaustive(cells)
        if cells.leaf_cost is None and 0 < everything.optimum < np.inf:
            yield cells, everything


def whole_numbers(n: int) -> Iterator[tuple[CellProblem, Exhaustive]]:
    """Problems of numbers from 0 to 4, in which one change often costs as much as two.

    Parameters
    ----------
    n : int
        Of each of three forests.
    """
    for seed in range(3):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(rng.integers(0, 5, (400, 4)), columns=list("abcd"))
        score = table.to_numpy() @ rng.uniform(0.3, 1.0, 4) + rng.normal(0, 1.0, len(table))
        classes = (score > np.quantile(score, 0.7)).astype(int)
        model = RandomForestClassifier(8, max_depth=4, random_state=seed).fit(table, classes)
        explainer = Explainer(model, data=table)
        refused = table[model.predict(table) == 0]
        for k in range(n):
            cells = to_cells(explainer.problem(refused.iloc[[k]], 1))
            yield cells, exhaustive(cells)


def refusing(cells: CellProblem, everything: Exhaustive) -> tuple[CellProblem, BoolArray, Callable[[IntArray], bool]]:
    """A problem in which many points are near a tie, which of them a model admits, and that model.

    It refuses points near a tie whose leaves' numbers are odd in sum.
    """
    wide = np.full(len(cells.requirements.need), 0.7)
    requirements = type(cells.requirements)(cells.requirements.gain, cells.requirements.need, wide)
    cells = replace(cells, requirements=requirements)
    leaves = np.array([cells.partition.leaves_at(c) for c in everything.choices])
    uncertain = (everything.sums - cells.requirements.need < 0.7).any(axis=1)
    admitted = everything.feasible & ~(uncertain & (leaves.sum(axis=1) % 2 == 1))
    return cells, admitted, lambda x: bool(cells.partition.leaves_at(x).sum() % 2 == 0)


def changes_least(cells: CellProblem, answer: IntArray | None, admitted: IntArray) -> bool:
    """Whether none of the admitted points costs as little as an answer and changes less."""
    least = min(map(cells.cost_of, admitted))
    return answer is not None and not any(cells.changes_less(other, answer, least) for other in admitted)


def beside(cells: CellProblem, everything: Exhaustive, leaves: IntArray, cost: float) -> bool:
    """Whether something in other leaves costs as little."""
    near = everything.choices[everything.feasible & (everything.cost <= cost + 2 * slack(cost))]
    return any((cells.partition.leaves_at(choice) != leaves).any() for choice in near)


def stumps(leaf_values: FloatArray, decision: Decision, base: FloatArray | None = None) -> Ensemble:
    """One stump per pair of leaves, so that every combination of leaves can be reached. (n_trees, 2, n_outputs)."""
    n, _, n_outputs = leaf_values.shape
    root = np.arange(n) * 3
    kind = np.tile([SplitKind.AXIS, SplitKind.LEAF, SplitKind.LEAF], n).astype(np.uint8)
    inner = kind == SplitKind.AXIS
    left, right = np.full(3 * n, -1, np.int32), np.full(3 * n, -1, np.int32)
    left[root], right[root] = root + 1, root + 2
    return Ensemble(
        feature_names=tuple(f"x{j}" for j in range(n)),
        tree_offsets=np.append(root, 3 * n),
        kind=kind,
        feature=np.where(inner, np.arange(3 * n) // 3, -1).astype(np.int32),
        threshold=np.where(inner, 0.0, np.nan),
        left=left,
        right=right,
        leaf=np.where(inner, -1, np.cumsum(~inner) - 1).astype(np.int32),
        leaf_values=leaf_values.reshape(2 * n, n_outputs).astype(float),
        tree_weights=np.ones(n),
        base_score=np.zeros(n_outputs) if base is None else base,
        decision=decision,
    )


def sums_at(cells: CellProblem, x: np.ndarray) -> FloatArray:
    return cells.requirements.gain[cells.partition.leaves_at(x)].sum(axis=0)


def violation(form: StandardForm, x: FloatArray) -> float:
    """Largest absolute violation of a side, a bound or integrality at a point (n_cols,); 0 where it is feasible."""
    rows, fraction = form.activity(x), np.abs(x - np.rint(x))[form.integer]
    parts = (form.row_lower - rows, rows - form.row_upper, form.lower - x, x - form.upper, fraction)
    return max(0.0, *(float(part.max()) for part in parts if part.size))

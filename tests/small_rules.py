"""Random questions about rules, small enough for every box to be tried, and the estimates by definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
from small_problems import random_space

from ocf.arrays import BoolArray
from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace
from ocf.regional.forest import CellBox, RegionalForest
from ocf.regional.query import ProbabilityQuery
from ocf.rules.fitting import fit_forest
from ocf.rules.search import box_of
from ocf.trees.ensemble import SplitKind


def few_cells(rng: np.random.Generator, n: int = 40) -> tuple[FeatureSpace, np.ndarray]:
    """Features with so few values that all boxes can be tried."""
    table = pd.DataFrame(
        {
            "a": rng.integers(0, 4, n).astype(float),
            "b": rng.integers(0, 4, n),
            "c": rng.choice(list("xyz"), n),
            "d": rng.integers(0, 3, n).astype(float),
        }
    )
    space = infer_space(table, {"c": {"levels": list("xyz")}})
    return space, space.from_frame(table)


def random_forest(
    rng: np.random.Generator, *, small: bool = True, regression: bool = False
) -> tuple[FeatureSpace, np.ndarray, RegionalForest]:
    space, coded = few_cells(rng) if small else random_space(rng)
    signal = coded @ rng.normal(size=coded.shape[1]) + (coded[:, 2] == rng.integers(3)) * rng.normal()
    signal += 0.3 * rng.normal(size=len(coded))
    answers = signal if regression else (signal > np.quantile(signal, 0.6)).astype(int)
    seed = int(rng.integers(1000))
    forest = fit_forest(
        space, coded, answers, regression=regression, n_estimators=int(rng.integers(2, 5)), max_depth=3, seed=seed
    )
    return space, coded, forest


def random_query(
    rng: np.random.Generator, *, small: bool = True, regional: bool = False
) -> tuple[ProbabilityQuery, FeatureSpace]:
    """A row or a region, and the answer that it does not have."""
    regression = bool(rng.random() < 0.3)
    space, _, forest = random_forest(rng, small=small, regression=regression)
    answers = forest.answers
    wanted = answers > np.quantile(answers, 0.6) if regression else answers == 1
    row = int(rng.choice(np.flatnonzero(~wanted)))
    held = forest.at(forest.cells[row])
    if regional:
        held = forest.leaf(int(rng.choice(forest.leaves[row])))
    free = forest.everywhere()
    if rng.random() < 0.4:  # one feature may take only some cells
        i = int(rng.integers(len(space)))
        allowed = forest.cells_of(free, i).copy()
        allowed[: int(rng.integers(len(allowed)))] = False
        masks = [forest.cells_of(free, k) for k in range(len(space))]
        masks[i] = allowed
        free = forest.region(masks)
    return ProbabilityQuery(forest, held, free, wanted), space


# -- the definitions, word by word -------------------------------------------------------------------------


def defined_cells(forest: RegionalForest, conditions: dict[int, set[int]]) -> list[set[int]]:
    """Rows in the cell of each tree: those in every leaf that the condition reaches.

    A row "falls in" a leaf if at every split above it that the condition decides the row goes the leaf's way; splits on
    features without a condition, and splits that the condition straddles, are ignored.
    """
    return [_intersection(forest, conditions, t) for t in range(forest.n_trees)]


def _intersection(forest: RegionalForest, conditions: dict[int, set[int]], tree: int) -> set[int]:
    rows = set(range(len(forest.cells)))
    for path in _paths(forest, int(forest.partition.ensemble.tree_offsets[tree]), conditions):
        rows &= {
            r for r in range(len(forest.cells)) if all((int(forest.cells[r, f]) in left) == go for f, left, go in path)
        }
    return rows


def _paths(
    forest: RegionalForest, k: int, conditions: dict[int, set[int]]
) -> Iterable[list[tuple[int, set[int], bool]]]:
    """For each leaf that the condition reaches: the splits that it decides, and the side that it takes."""
    ensemble, part = forest.partition.ensemble, forest.partition
    if ensemble.kind[k] == SplitKind.LEAF:
        yield []
        return
    f = int(ensemble.feature[k])
    if ensemble.kind[k] == SplitKind.AXIS:
        upper = part.upper[part.cells_of(f)]
        left = {j for j in range(len(upper)) if upper[j] <= ensemble.threshold[k]}
    else:
        left = set(np.flatnonzero(ensemble.sets[ensemble.set_index[k], : part.widths[f]]).tolist())
    held = conditions.get(f, set(range(part.widths[f])))
    both = bool(held & left) and bool(held - left)
    for child, go in ((ensemble.left[k], True), (ensemble.right[k], False)):
        if bool(held & left) if go else bool(held - left):
            for path in _paths(forest, int(child), conditions):
                yield path if both else [(f, left, go), *path]


def defined_weights(forest: RegionalForest, conditions: dict[int, set[int]]) -> list[float]:
    cells = defined_cells(forest, conditions)
    return [sum(1 / len(c) for c in cells if r in c) / len(cells) for r in range(len(forest.cells))]


def condition(forest: RegionalForest, region: CellBox, features: Iterable[int]) -> dict[int, set[int]]:
    return {i: set(np.flatnonzero(forest.cells_of(region, i)).tolist()) for i in features}


def best_box(
    query: ProbabilityQuery, features: Sequence[int], level: float, earlier: Sequence[CellBox] = ()
) -> tuple[CellBox | None, float]:
    """The box on S that captures most weight subject to CRP_S >= level, by trying all boxes (definition 2.3).

    None, and 0, when no box that holds a row of positive weight and is disjoint from the earlier ones reaches it.
    """
    forest, weights = query.forest, query.weights(features)
    best: tuple[CellBox | None, float] = (None, 0.0)
    for masks in product(*(ranges(query, i) for i in features)):
        own = dict(zip(features, masks, strict=True))
        inside = np.logical_and.reduce([mask[forest.cells[:, i]] for i, mask in own.items()])
        weight = float(weights[inside].sum())
        if weight <= best[1] + 1e-12:
            continue
        apart = all(any(not (own[i] & forest.cells_of(other, i)).any() for i in features) for other in earlier)
        box = box_of(query, own)
        if apart and query.precise(features, box, level):
            best = (box, weight)
    return best


def ranges(query: ProbabilityQuery, i: int) -> Iterator[BoolArray]:
    """All boxes of admissible cells of one feature: intervals, or non-empty sets of levels."""
    allowed = np.flatnonzero(query.forest.cells_of(query.free, i))
    width = int(query.forest.partition.widths[i])
    if query.forest.partition.ordered[i]:
        picks = [allowed[a : b + 1] for a in range(len(allowed)) for b in range(a, len(allowed))]
    else:
        picks = [np.array(c) for k in range(1, len(allowed) + 1) for c in combinations(allowed.tolist(), k)]
    for pick in picks:
        mask = np.zeros(width, bool)
        mask[pick] = True
        yield mask

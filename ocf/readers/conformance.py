"""Does the ensemble that was read score rows as the library does? Asked at both sides of every split.

A leaf of a tree is reached by the rows of a box ``(lo, hi]``. The box's upper corner lies exactly on the tightest
thresholds that its path leaves to the left, the lower corner one float64 above those that it leaves to the right. For
each node that can be reached, some leaf's upper corner meets its left side and some leaf's lower corner its right
side. One leaf is chosen for each side of each node, and one more where NaN has a rule; most leaves serve several nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ConformanceError
from ocf.readers.base import Rows, TreeModel, whole
from ocf.trees import links
from ocf.trees.ensemble import Ensemble, SplitKind, line_rounding, shown_totals
from ocf.trees.rounding import uncertain

_MAX_CELLS = 2_000_000  # numbers in the boxes held at once
MAX_SCORED = 500_000  # rows times trees scored at once
_MAX_BACKGROUND = 64


def check_conformance(model: TreeModel, background: Rows | None = None, most: int | None = None) -> None:
    """Compare the ensemble with the library on both sides of every split that can be reached.

    Parameters
    ----------
    model : TreeModel
    background : array (n, n_features) of model values, or table of the user's values, optional
        Rows from which the points are made by moving as few columns as possible. Without them, columns stand at the
        median of their thresholds.
    most : int, optional
        Look at no more than about so many leaves, spread over the trees, and the splits above them.

    Raises
    ------
    ConformanceError
        If a score differs by more than rounding can explain, or a decision that rounding cannot change.
    ModelError
        If the library fails on a point.
    """
    with whole(model.native):
        _check(model, background, most)


def _check(model: TreeModel, background: Rows | None, most: int | None) -> None:
    ensemble = model.ensemble
    codes = _category_codes(model)
    start = _start_rows(model, background, codes)
    _compare(model, start)
    if ensemble.is_oblique:
        _compare(model, _beside_hyperplanes(ensemble, start))
    every = 1 if most is None else -(-ensemble.n_leaves // max(most, 1))
    for trees in _tree_groups(ensemble, codes):
        _compare_borders(model, _probe_points(_leaf_boxes(ensemble, trees, codes, every), start))


def _compare_borders(model: TreeModel, probes: _Probes) -> None:
    """Compare at points until each border of a split that they are for was met, be it on the way to another."""
    from ocf.trees.traversal import mark_borders  # with Numba

    ensemble, above = model.ensemble, np.nextafter(model.ensemble.threshold, np.inf)
    met = np.zeros((len(ensemble.kind), 3), bool)
    left, waiting = np.random.default_rng(0).permutation(len(probes.points)), np.zeros(len(probes.points), bool)
    step = max(1, MAX_SCORED // ensemble.n_trees)
    while len(left):
        _compare(model, probes.points[left[:step]])
        if len(left) > step and not ensemble.is_oblique:
            mark_borders(*ensemble.for_kernel(probes.points[left[:step]]), above, met)
        waiting[:] = False
        waiting[probes.point[~met[probes.node, probes.side]]] = True
        left = left[step:][waiting[left[step:]]]


# ---------------------------------------------------------------------------------------------- where to look


@dataclass(frozen=True)
class _LeafBoxes:
    """Boxes of some leaves, and the pairs (leaf, inner node above it) of their paths.

    Attributes
    ----------
    lo, hi : (n, n_features) float64
        A column's value lies in ``(lo, hi]``.
    codes : dict of int to array
        Codes that a category column may have at all.
    allowed : dict of int to (n, n_codes) bool
        Which of them the leaf allows.
    takes_nan : (n, n_features) bool
        Columns of the path whose NaN goes the path's way at every node that tests them.
    row, node : (n_pairs,) int64
    went_left : (n_pairs,) bool
    ensemble : Ensemble
    """

    lo: FloatArray
    hi: FloatArray
    codes: dict[int, IntArray]
    allowed: dict[int, BoolArray]
    takes_nan: BoolArray
    row: IntArray
    node: IntArray
    went_left: BoolArray
    ensemble: Ensemble


@dataclass(frozen=True)
class _Probes:
    """Points, and the borders of splits that they are for.

    Attributes
    ----------
    points : (n, n_features) float64
    point, node : (n_borders,) int64
    side : (n_borders,) int64
        0, 1 or 2: the last value on the left, the first on the right, NaN.
    """

    points: FloatArray
    point: IntArray
    node: IntArray
    side: IntArray


def _leaf_boxes(ensemble: Ensemble, trees: range, codes: dict[int, IntArray], every: int = 1) -> _LeafBoxes:
    """Boxes of one leaf in so many of some trees."""
    nodes = np.arange(ensemble.tree_offsets[trees.start], ensemble.tree_offsets[trees.stop])
    leaves = nodes[ensemble.kind[nodes] == SplitKind.LEAF][::every]
    shape = (len(leaves), ensemble.n_features)
    lo, hi = np.full(shape, -np.inf), np.full(shape, np.inf)
    allowed = {j: np.ones((len(leaves), len(c)), bool) for j, c in codes.items()}
    tested, takes_nan = np.zeros(shape, bool), np.ones(shape, bool)
    pairs: list[tuple[IntArray, IntArray, BoolArray]] = []
    row, at = np.arange(len(leaves)), leaves
    while len(at):
        up = ensemble.parent[at]
        row, at, up = row[up >= 0], at[up >= 0], up[up >= 0]
        went_left = ensemble.left[up] == at
        axis, subset = ensemble.kind[up] == SplitKind.AXIS, ensemble.kind[up] == SplitKind.SUBSET
        column, threshold = ensemble.feature[up], ensemble.threshold[up]
        left, right = axis & went_left, axis & ~went_left
        hi[row[left], column[left]] = np.minimum(hi[row[left], column[left]], threshold[left])
        lo[row[right], column[right]] = np.maximum(lo[row[right], column[right]], threshold[right])
        for j in codes:
            of_j = subset & (column == j)
            goes = ensemble.sets[np.ix_(ensemble.set_index[up[of_j]], codes[j])]
            allowed[j][row[of_j]] &= goes == went_left[of_j, None]
        known = axis | subset
        if ensemble.missing_left is not None:
            takes_nan[row[known], column[known]] &= (ensemble.missing_left[up] == went_left)[known]
        tested[row[known], column[known]] = True
        pairs.append((row[known], up[known], went_left[known]))
        at = up
    takes_nan &= tested & (ensemble.missing_left is not None)
    rows, above, sides = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return _LeafBoxes(lo, hi, codes, allowed, takes_nan, rows, above, sides, ensemble)


def _probe_points(boxes: _LeafBoxes, start: FloatArray) -> _Probes:
    """Rows that meet every reachable side of every split above these leaves."""
    n, columns = boxes.lo.shape
    base = start[np.arange(n) % len(start)]
    above_lo = np.nextafter(boxes.lo, np.inf)
    inside = np.minimum(np.maximum(base, above_lo), boxes.hi)
    upper = np.where(np.isfinite(boxes.hi), boxes.hi, inside)
    lower = np.where(np.isfinite(boxes.lo), above_lo, inside)
    empty = ~(boxes.lo < boxes.hi)
    for j, allowed in boxes.allowed.items():
        codes = boxes.codes[j]
        empty[:, j] |= ~allowed.any(axis=1)
        lower[:, j] = codes[allowed.argmax(axis=1)]
        upper[:, j] = codes[len(codes) - 1 - allowed[:, ::-1].argmax(axis=1)]
        at_base = allowed & (codes == base[:, j, None])
        inside[:, j] = np.where(at_base.any(axis=1), base[:, j], lower[:, j])
    # a column without any value left can still be NaN
    reachable: BoolArray = np.logical_not((empty & ~boxes.takes_nan).any(axis=1))
    for corner in (lower, upper):
        corner[empty] = np.nan
    missing = np.where(boxes.takes_nan, np.nan, inside)

    pairs = reachable[boxes.row]
    row, node, went_left = boxes.row[pairs], boxes.node[pairs], boxes.went_left[pairs]
    column, threshold = boxes.ensemble.feature[node], boxes.ensemble.threshold[node]
    subset = boxes.ensemble.kind[node] == SplitKind.SUBSET
    full = ~empty[row, column]
    on_left = went_left & full & (subset | ((threshold == boxes.hi[row, column]) & np.isfinite(threshold)))
    on_right = ~went_left & full & (subset | (threshold == boxes.lo[row, column]))
    points, point, of, side = [np.empty((0, columns))], [], [], []
    serving = (on_left, on_right, boxes.takes_nan[row, column])
    for k, (corner, serves) in enumerate(zip((upper, lower, missing), serving, strict=True)):
        nodes, first = np.unique(node[serves], return_index=True)
        rows, own = np.unique(row[serves][first], return_inverse=True)
        point.append(own + sum(map(len, points)))
        points.append(corner[rows])
        of.append(nodes)
        side.append(np.full(len(nodes), k))
    return _Probes(np.concatenate(points), *(np.concatenate(part) for part in (point, of, side)))


def _beside_hyperplanes(ensemble: Ensemble, start: FloatArray) -> FloatArray:
    """Start rows moved straight to just before and just beyond every oblique split."""
    points = []
    for k, v in enumerate(np.flatnonzero(ensemble.kind == SplitKind.OBLIQUE).tolist()):
        columns, _, weights = ensemble.oblique_entries(v)
        row = start[k % len(start)]
        steep = float(weights @ weights)
        if steep == 0:
            continue
        gap = ensemble.threshold[v] - weights @ row[columns]
        near = 1e-9 * (np.abs(weights * row[columns]).sum() + abs(ensemble.threshold[v]))
        for distance in (gap - near, gap + near):
            moved = row.copy()
            moved[columns] += weights * (distance / steep)
            points.append(moved)
    return np.array(points).reshape(-1, ensemble.n_features)


def _tree_groups(ensemble: Ensemble, codes: dict[int, IntArray]) -> Iterator[range]:
    """Consecutive trees whose boxes fit in memory together; trees that are a single leaf have nothing to ask."""
    width = ensemble.n_features + sum(len(c) for c in codes.values())
    first, leaves = 0, np.diff(ensemble.leaf_offsets)
    while first < ensemble.n_trees:
        fits = np.searchsorted(np.cumsum(leaves[first:]) * width, _MAX_CELLS, side="right")
        last = first + max(1, int(fits))
        if (leaves[first:last] > 1).any():
            yield range(first, last)
        first = last


def _category_codes(model: TreeModel) -> dict[int, IntArray]:
    """Codes to try in each column that has category splits."""
    ensemble = model.ensemble
    subset = ensemble.kind == SplitKind.SUBSET
    codes = {}
    for j in np.unique(ensemble.feature[subset]).tolist():
        sets: BoolArray = ensemble.sets[ensemble.set_index[subset & (ensemble.feature == j)]]
        # without a list of categories, none beyond the largest that a split names
        largest = int(np.nonzero(sets)[1].max(initial=0)) + 1
        n = min(len(model.categories[j]), sets.shape[1]) if j in model.categories else largest
        codes[int(j)] = np.arange(n)
    return codes


def _start_rows(model: TreeModel, background: Rows | None, codes: dict[int, IntArray]) -> FloatArray:
    """Finite rows, in the model's own values, from which points are made."""
    ensemble = model.ensemble
    default = np.zeros(ensemble.n_features)
    axis = (ensemble.kind == SplitKind.AXIS) & np.isfinite(ensemble.threshold)
    for j in np.unique(ensemble.feature[axis]):
        thresholds = np.sort(ensemble.threshold[axis & (ensemble.feature == j)])
        default[j] = thresholds[len(thresholds) // 2]
    for j, known in codes.items():
        default[j] = known[0]
    if background is None or len(background) == 0:
        return default[None]
    pick = np.unique(np.linspace(0, len(background) - 1, _MAX_BACKGROUND).astype(int))
    if isinstance(background, pd.DataFrame):
        rows = np.column_stack([_model_values(model, background.iloc[pick], j) for j in range(ensemble.n_features)])
    else:
        rows = np.asarray(background[pick], np.float64)
    return np.where(np.isfinite(rows), rows, default)


def _model_values(model: TreeModel, table: pd.DataFrame, column: int) -> FloatArray:
    name = model.ensemble.feature_names[column]
    values = table[name] if name in table else table.iloc[:, column]
    if column not in model.categories:
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.cat.codes
        return pd.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    code_of = {category: code for code, category in enumerate(model.categories[column])}
    return np.array([code_of.get(value, np.nan) for value in values.tolist()], np.float64)


# ---------------------------------------------------------------------------------------------- what to compare


def _compare(model: TreeModel, points: FloatArray) -> None:
    """Raise `ConformanceError` at the first point where library and ensemble disagree."""
    if model.ensemble.is_oblique:
        # a sum within rounding of its threshold may fall on either side, in the library's order of summation
        points = points[~uncertain(model.ensemble, points)]
    if len(points) == 0:
        return
    native, ours = model.scores(points), model.ensemble.scores(points)
    if native.shape != ours.shape:
        raise ConformanceError(
            f"{model.library} returns scores of shape {native.shape}, the ensemble {ours.shape}: {_REMEDY}"
        )
    room = 2 * model.ensemble.rounding + line_rounding(model.ensemble, points)
    wrong = ~_same_scores(native, ours, room)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ConformanceError(_describe(model, points[first], native[first], ours[first]))
    rule = model.ensemble.decision
    if rule.totals and rule.link in ("mean", "normalized") and model.probabilities:
        _compare_probabilities(model, points, ours)
    answers = model.decide(points)
    wrong = ~_same_answers(model, answers, ours, room)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ConformanceError(
            f"{model.library} answers {answers[first]} where the scores that were read, {_list(ours[first])}, give "
            f"{model.ensemble.decide(ours[first : first + 1])[0]}, at {_show(model.ensemble, points[first])}: {_REMEDY}"
        )


def _compare_probabilities(model: TreeModel, points: FloatArray, ours: FloatArray) -> None:
    """Raise `ConformanceError` where a model that stands on others shows what no total of its scores gives."""
    assert model.probabilities is not None
    shown, room = model.probabilities(points), 2 * model.ensemble.rounding
    rule = model.ensemble.decision
    low, high = links.shown_between(rule, ours - room, ours + room)
    for k in range(len(rule.classes)):
        wrong = (shown[:, k] < low[:, k]) | (shown[:, k] > high[:, k])
        if wrong.any():
            first = int(np.argmax(wrong))
            raise ConformanceError(
                f"{model.library} shows the probabilities {_list(shown[first])} where the scores that were read, "
                f"{_list(ours[first])}, give {_list(shown_totals(rule, ours[first : first + 1])[0])}, at "
                f"{_show(model.ensemble, points[first])}: {_REMEDY}"
            )


def _same_scores(native: FloatArray, ours: FloatArray, room: FloatArray) -> BoolArray:
    # the library and the ensemble each lie within half the room of the exact sum
    return np.asarray(np.abs(native - ours).max(axis=1) <= room)


def _same_answers(model: TreeModel, answers: FloatArray, ours: FloatArray, error_bound: FloatArray) -> BoolArray:
    rule = model.ensemble.decision
    if rule.stands_on_others:
        return _same_totals(model, answers, ours, error_bound)
    if rule.kind == "value":
        unit = 2.0 ** (-21 if model.ensemble.precision == "float32" else -50)
        low, high = (links.apply(rule.link, ours[:, 0] + e) for e in (-error_bound, error_bound))
        return (answers >= low - unit * np.abs(low)) & (answers <= high + unit * np.abs(high))
    if rule.kind == "threshold":
        certain = np.abs(ours[:, 0] - rule.threshold) > error_bound
    else:
        ranked = np.sort(ours, axis=1)
        certain = ranked[:, -1] - ranked[:, -2] > 2 * error_bound
    return ~certain | (answers == model.ensemble.decide(ours))


def _same_totals(model: TreeModel, answers: FloatArray, ours: FloatArray, error_bound: FloatArray) -> BoolArray:
    rule, least, most = model.ensemble.decision, ours - error_bound[:, None], ours + error_bound[:, None]
    if rule.final is not None:
        sure = rule.final.sure(least, most)
        given = replace(model, ensemble=rule.final.trees)
        own = np.full(len(ours), 2 * given.ensemble.rounding)
        return ~sure | _same_answers(given, answers, rule.final.scores(ours), own)
    low, high = links.compared_between(rule, least, most)
    if rule.kind == "value":
        return np.asarray((answers >= low[:, 0]) & (answers <= high[:, 0]))
    if rule.kind == "threshold":
        sure = (low[:, 0] > rule.threshold) | (high[:, 0] < rule.threshold)
    else:
        best = model.ensemble.decide(ours)
        others = np.where(np.arange(low.shape[1]) == best[:, None], -np.inf, high)
        sure = low[np.arange(len(low)), best] > others.max(axis=1)
    return ~sure | (answers == model.ensemble.decide(ours))


# ---------------------------------------------------------------------------------------------- what to say

_REMEDY = (
    "the reader does not know this version or variant of the library; please report it with the saved model, and use "
    "a version of the library that ocf names as supported"
)


def _describe(model: TreeModel, point: FloatArray, native: FloatArray, ours: FloatArray) -> str:
    return (
        f"the ensemble that was read differs from {model.library} {_faulty_split(model, point)}, at "
        f"{_show(model.ensemble, point)}: the library scores {_list(native)}, the ensemble {_list(ours)}: {_REMEDY}"
    )


def _faulty_split(model: TreeModel, point: FloatArray) -> str:
    """Which split is at fault, in words.

    A column that stands on a threshold is moved away from it, to either side. If the library agrees with the ensemble
    on both, that threshold is wrong.
    """
    ensemble = model.ensemble
    for j, value in enumerate(point):
        cuts = np.unique(ensemble.threshold[(ensemble.kind == SplitKind.AXIS) & (ensemble.feature == j)])
        cuts = cuts[np.isfinite(cuts)]
        near = np.abs(cuts - value) <= 4 * np.spacing(np.abs(value))
        if not near.any():
            continue
        moved = np.tile(point, (2, 1))
        moved[:, j] = _either_side(cuts[~near], value)
        room = 2 * ensemble.rounding + line_rounding(ensemble, moved)
        if _same_scores(model.scores(moved), ensemble.scores(moved), room).all():
            at = float(cuts[near][0])
            return f"at column {ensemble.feature_names[j]!r}, threshold {at!r}, value {float(value)!r}"
    if np.isnan(point).any():
        return "where a value is missing"
    return "away from any single threshold (leaf values, weights, base score or categories)"


def _either_side(cuts: FloatArray, value: float) -> tuple[float, float]:
    """Values halfway from `value` to the nearest cut below and to the nearest above."""
    below, above = cuts[cuts < value], cuts[cuts > value]
    low = below[-1] if len(below) else value - 1 - abs(value)
    high = above[0] if len(above) else value + 1 + abs(value)
    return float(low + (value - low) / 2), float(value + (high - value) / 2)


def _show(ensemble: Ensemble, point: FloatArray) -> str:
    shown = ", ".join(
        f"{name}={value!r}" for name, value in zip(ensemble.feature_names[:8], point.tolist(), strict=False)
    )
    return f"({shown}{', …' if len(point) > 8 else ''})"


def _list(scores: FloatArray) -> str:
    return ", ".join(f"{score!r}" for score in scores.tolist())

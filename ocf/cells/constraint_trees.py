"""The user's constraints as trees over cells: relations that cells alone decide."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.arrays import BoolArray, FloatArray
from ocf.cells.cell_problem import CellProblem, free_forms
from ocf.cells.partition import Partition, partition
from ocf.cells.sliding import ZERO, Values
from ocf.errors import ProblemError
from ocf.features.curve import exact
from ocf.features.feature import Feature, grid_unit, has_grid
from ocf.features.own_cost import around, cuts_of
from ocf.problem.rows import Part, Row, spacing
from ocf.trees.ensemble import Ensemble, SplitKind
from ocf.trees.joining import append_trees

if TYPE_CHECKING:
    from ocf.problem.problem import Problem
    from ocf.problem.requirements import Requirements


#: Integer and grid features with at most this many admissible values get a cell for each where a relation needs it.
MAX_VALUES = 200

#: Where the cost of a number without an end is looked at.
DISTANT = 1e100

#: Rounding of float64 sums of weights that is allowed for, relative to the largest sum.
ROUNDING = 1e-12

# -- from rows to cells ------------------------------------------------------------------------------------


def constrain(problem: Problem) -> tuple[CellProblem, ...]:
    """The finite forms of a problem with constraints or bent costs, one per alternative of its target.

    Parameters
    ----------
    problem : Problem
    """
    space, origin = problem.space, problem.origin
    rows = (*(row for c in problem.constraints for row in c.rows(space, origin)), *problem.among)
    alternatives = free_forms(
        replace(problem, constraints=(), among=()), partition(problem.trees, space, _cuts(problem, rows))
    )
    far = np.where(alternatives[0].open, _far_ends(alternatives[0]), np.nan)
    alternatives, far = _anchored(alternatives, far)
    forms, absolutes = _sums(problem, problem.cost.forms), _sums(problem, problem.cost.absolutes)
    sums = (*forms, *absolutes)
    if not rows and not sums:
        return tuple(replace(form, problem=problem) for form in alternatives)
    base, part = alternatives[0], alternatives[0].partition
    constrained = sorted({i for row in (*rows, *sums) for i in row.parts if not np.isnan(origin[i])})
    moving = np.array([any(i in form.parts for form in sums) for i in range(part.n_features)])
    near_gain = _amounts(base, rows, constrained, base.value)
    far_gain = _amounts(base, rows, constrained, _stepped(base.value, far))
    helps = (far_gain < near_gain).astype(bool).any(axis=1) | moving[part.cell_feature]
    slides = np.array([i in constrained and bool(helps[part.cells_of(i)].any()) for i in range(part.n_features)])
    # where moving on without end helps nothing, nothing lies farther than the anchor
    endless = np.isinf(far) & ~helps
    far, far_gain = np.where(endless, base.value, far), np.where(endless[:, None], near_gain, far_gain)
    _require_bounds(base, slides, far)
    best = np.minimum(near_gain, np.where(slides[part.cell_feature][:, None], far_gain, near_gain))
    alone = slides | np.isin(np.arange(part.n_features), [i for form in sums for i in form.parts])
    grown, groups = _with_constraint_trees(base, constrained, best, alone)
    finer = partition(grown, space, _cuts(problem, rows))
    if not np.array_equal(finer.upper, part.upper):
        raise AssertionError("constraint trees must not cut cells")
    slack = _slack(base, rows, far)
    gain, need, error_bound = _requirements(rows, best, groups, slack)
    n_real, n_added = part.ensemble.n_leaves, len(groups)
    values = Values(
        problem,
        rows,
        tuple(constrained),
        slice(n_real, n_real + n_added),
        slice(part.ensemble.n_trees, grown.n_trees),
        base.value,
        far,
        slides,
        slack,
        part.cell_feature,
        tuple(groups),
        _unsatisfiable(base, rows, constrained, best, slack),
        forms,
        absolutes,
    )
    return tuple(
        replace(
            form,
            problem=problem,
            partition=finer,
            requirements=_extended(form.requirements, grown, gain, need, error_bound),
            leaf_cost=None if form.leaf_cost is None else np.pad(form.leaf_cost, (0, grown.n_leaves - n_real)),
            live=finer.reachable & np.pad(form.live, (0, n_added), constant_values=not values.unsatisfiable),
            values=values,
        )
        for form in alternatives
    )


def _require_bounds(cells: CellProblem, slides: BoolArray, far: FloatArray) -> None:
    """Refuse a sliding feature with an open cell that has no end."""
    for i in np.flatnonzero(slides).tolist():
        span, name = cells.partition.cells_of(i), cells.problem.space.names[i]
        if not np.isfinite(far[span][cells.open[span]]).all():
            raise ProblemError(
                f"the constraints on {name!r} need finite bounds: "
                f"give features={{{name!r}: {{'bounds': [lowest, highest]}}}}"
            )


def _extended(
    target: Requirements, grown: Ensemble, gain: FloatArray, need: FloatArray, error_bound: FloatArray
) -> Requirements:
    """Requirements of the target and of the constraints' leaves together."""
    curve = target.curve
    if curve is not None:  # sees the leaves of all trees, but no more scores than before
        n = curve.ensemble.n_outputs
        silent = replace(grown, leaf_values=grown.leaf_values[:, :n], base_score=grown.base_score[:n])
        curve = curve.over(silent)
    above = np.hstack([target.gain, np.zeros((len(target.gain), len(need)))])
    below = np.hstack([np.zeros((len(gain), target.gain.shape[1])), gain])
    return replace(
        target,
        gain=np.vstack([above, below]),
        need=np.concatenate([target.need, need]),
        error_bound=np.concatenate([target.error_bound, error_bound]),
        curve=curve,
    )


def _cuts(problem: Problem, rows: Sequence[Row]) -> dict[int, FloatArray]:
    """Where cells must end for the rows' sake, by feature."""
    cuts: dict[int, FloatArray] = {}
    for i, feature in enumerate(problem.space.features):
        if feature.cost is not None and not feature.is_special(problem.origin[i]):
            cuts[i] = np.unique(cuts_of(feature.cost, feature, float(problem.origin[i])))
    cost = problem.cost
    for row in (*rows, *_sums(problem, (*cost.forms, *cost.absolutes))):
        for i, part in row.parts.items():
            feature, origin = problem.space.features[i], float(problem.origin[i])
            if math.isnan(origin):
                continue
            own = [cuts.get(i, np.empty(0)), part.cuts]
            if part.moving:
                own.append(_grid(feature, origin))
            cuts[i] = np.unique(np.concatenate(own))
    return cuts


def _grid(feature: Feature, origin: float) -> FloatArray:
    """Admissible values of an integer or grid feature with few of them."""
    low, high = feature.limits(origin)
    few = has_grid(feature) and (high - low) / grid_unit(feature) <= MAX_VALUES
    return feature.between(low, high) if few else np.empty(0)


def _sums(problem: Problem, forms: Iterable[Sequence[tuple[str, float]]]) -> tuple[Row, ...]:
    """Linear forms of the changes, as rows without a limit."""
    space, origin, rows = problem.space, problem.origin, []
    for form in forms:
        parts = {}
        for name, c in form:
            i = space.index(name)
            feature, old = space.features[i], float(origin[i])
            if not math.isnan(old):
                cuts = feature.level_cuts if feature.discrete else around(old)
                parts[i] = Part(_scaled_change(feature, old, exact(c)), cuts, not feature.discrete)
        rows.append(Row("", parts, ZERO))
    return tuple(rows)


def _scaled_change(feature: Feature, origin: float, c: Fraction) -> Callable[[float], Fraction]:
    of = feature.position if feature.discrete else exact  # costs are of the numbers that columns hold
    here = of(origin)
    return lambda v: c * (of(v) - here)


def _anchored(forms: tuple[CellProblem, ...], far: FloatArray) -> tuple[tuple[CellProblem, ...], FloatArray]:
    """Cells whose value is the cheaper of their ends, and the other ends: a bent cost may fall from the origin."""
    problem, part = forms[0].problem, forms[0].partition
    value, cost, far = forms[0].value.copy(), forms[0].cost.copy(), far.copy()
    for i, feature in enumerate(problem.space.features):
        if feature.cost is None or math.isnan(problem.origin[i]) or feature.is_special(problem.origin[i]):
            continue
        span = part.cells_of(i)
        # bends cut cells, so that a cost has one slope on the way to an end that there is not
        distant = min(DISTANT, float(np.finfo(feature.float_dtype).max))
        ends = np.where(feature.is_special(far[span]), value[span], np.clip(far[span], -distant, distant))
        other = problem.cost.of(feature, float(problem.origin[i]), ends)
        falls = (other < cost[span]) & ~feature.is_special(value[span])
        if not np.isfinite(far[span][falls]).all():
            raise ProblemError(f"the cost of {feature.name!r} falls without end: give the feature bounds")
        value[span], far[span] = np.where(falls, far[span], value[span]), np.where(falls, value[span], far[span])
        cost[span] = np.where(falls, other, cost[span])
    return tuple(replace(form, value=value, cost=cost) for form in forms), far


def _far_ends(cells: CellProblem) -> FloatArray:
    """Admissible value of each cell farthest from its anchor."""
    part, problem = cells.partition, cells.problem
    far = cells.value.copy()
    for i, feature in enumerate(problem.space.features):
        origin = float(problem.origin[i])
        if math.isnan(origin) or feature.discrete:
            continue
        span = part.cells_of(i)
        low, high = feature.limits(origin)
        left = np.maximum(feature.above(part.lower[span]), feature.at_least(low))
        right = np.minimum(feature.at_most(part.upper[span]), feature.at_most(high))
        value = cells.value[span]
        # a cell that holds the row's own value off the grid may have nothing else, nor does one of a special value
        moves = (left <= right) & (value != origin) & ~feature.is_special(value)
        near = np.where(moves, value, 0.0)
        far[span] = np.where(moves, np.where(right - near > near - left, right, left), value)
    return far


def _stepped(value: FloatArray, far: FloatArray) -> FloatArray:
    """Far ends, and where there is none a step towards it: within a cell an amount has one slope."""
    return np.where(np.isinf(far), value + np.copysign(1.0 + np.abs(value), far), far)


def _amounts(
    cells: CellProblem, rows: Sequence[Row], constrained: Sequence[int], value: FloatArray
) -> np.ndarray[Any, Any]:
    """What each cell adds to each row at a value, exactly, (n_cells, n_rows) of Fraction; 0 where there is none."""
    part = cells.partition
    out = np.full((part.n_cells, len(rows)), ZERO, object)
    for r, row in enumerate(rows):
        for i in set(constrained) & set(row.parts):
            span = part.cells_of(i)
            known = np.isfinite(value[span]) | cells.problem.space.features[i].is_special(value[span])
            for j in (span.start + np.flatnonzero(cells.open[span] & known)).tolist():
                out[j, r] = row.parts[i].of(float(value[j]))
    return out


def _unsatisfiable(
    cells: CellProblem, rows: Sequence[Row], constrained: Sequence[int], best: np.ndarray[Any, Any], slack: FloatArray
) -> tuple[str, ...]:
    """Names of constraints that the best open cell of every feature together do not satisfy."""
    part = cells.partition
    names = []
    for r, row in enumerate(rows):
        least = sum((part.of(math.nan) for i, part in row.parts.items() if i not in constrained), ZERO)
        for i in constrained:
            open_ones = [best[j, r] for j in range(*part.cells_of(i).indices(part.n_cells)) if cells.open[j]]
            least += min(open_ones, default=ZERO)
        if least > row.limit + Fraction(slack[r]):
            names.append(row.name)
    return tuple(dict.fromkeys(names))


def _slack(cells: CellProblem, rows: Sequence[Row], far: FloatArray) -> FloatArray:
    """By how much the allowance of an equation may exceed its limit anywhere, (n_rows,)."""
    part, space = cells.partition, cells.problem.space
    out = np.zeros(len(rows))
    for r, row in enumerate(rows):
        for i, slope in row.slope.items():
            span = part.cells_of(i)
            size = np.nanmax(np.abs(np.concatenate([cells.value[span], far[span]])), initial=0.0)
            out[r] += float(abs(slope) * spacing(space.features[i], float(size)))
    return out


def _requirements(
    rows: Sequence[Row], best: np.ndarray[Any, Any], groups: list[int], slack: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gains of the constraints' leaves, needs and error bounds; a row is turned round, as requirements are ``>=``."""
    gain = np.empty((len(groups), len(rows)))
    need, error_bound = np.empty(len(rows)), np.zeros(len(rows))
    for r, row in enumerate(rows):
        own = [best[j, r] for j in groups]
        # a power of two, which changes no digit, brings the numbers to the size of the solvers' tolerances
        size = max([float(abs(v)) for v in own], default=0.0)
        scale = 2.0 ** -math.frexp(size)[1] if size > 1 else 1.0
        gain[:, r] = [-float(v) * scale for v in own]
        need[r] = -float(row.limit) * scale
        if row.slope or row.limit.denominator > 1 or any(v.denominator > 1 for v in own):
            spare = ROUNDING * (abs(need[r]) + float(np.abs(gain[:, r]).sum())) + slack[r] * scale
            need[r] -= spare
            error_bound[r] = 2 * spare
    return gain, need, error_bound


# -- constraint trees --------------------------------------------------------------------------------------


def _with_constraint_trees(
    cells: CellProblem, constrained: Sequence[int], best: np.ndarray[Any, Any], slides: BoolArray
) -> tuple[Ensemble, list[int]]:
    """The ensemble with a tree for each constrained feature, and one cell of each of their leaves' groups."""
    grower = _Grower(cells.partition)
    representatives: list[int] = []
    for i in constrained:
        groups = _groups(cells, i, best, bool(slides[i]))
        grower.add(i, groups)
        offset = int(cells.partition.offsets[i])
        for group in groups:
            usable = [offset + k for k in group if cells.open[offset + k]]
            representatives.append(usable[0] if usable else offset + group[0])
    return grower.ensemble(), representatives


def _groups(cells: CellProblem, i: int, best: np.ndarray[Any, Any], alone: bool) -> list[list[int]]:
    """Cells of a feature, counted within it, that no row tells apart; runs of them where cells have an order."""
    part = cells.partition
    span = part.cells_of(i)
    keys = [tuple(best[j]) if cells.open[j] else None for j in range(span.start, span.stop)]
    if alone:
        return [[k] for k in range(len(keys))]
    if not part.ordered[i]:
        groups: dict[Any, list[int]] = {}
        for k, key in enumerate(keys):
            groups.setdefault(key, []).append(k)
        return list(groups.values())
    runs: list[list[int]] = []
    last: Any = None
    for k, key in enumerate(keys):
        # a closed cell belongs anywhere
        if runs and (key is None or last is None or key == last):
            runs[-1].append(k)
        else:
            runs.append([k])
        last = key if key is not None else last
    return runs


class _Grower:
    """Grows trees without scores over the cells of a partition, to stand behind its ensemble."""

    def __init__(self, part: Partition) -> None:
        self.part = part
        self.nodes: list[tuple[int, int, float, int, int, int]] = []
        self.sets: list[list[bool]] = []
        self.offsets = [0]

    def add(self, i: int, groups: list[list[int]]) -> None:
        """A balanced tree of feature i, with its leaves in the order of the groups."""
        self._node(i, groups)
        self.offsets.append(len(self.nodes))

    def _node(self, i: int, groups: list[list[int]]) -> int:
        number = len(self.nodes)
        self.nodes.append((SplitKind.LEAF, -1, np.nan, -1, -1, -1))  # replaced below where there is a split
        if len(groups) == 1:
            return number
        left, right = groups[: len(groups) // 2], groups[len(groups) // 2 :]
        children = self._node(i, left), self._node(i, right)
        if self.part.ordered[i]:
            cut = float(self.part.upper[self.part.offsets[i] + left[-1][-1]])
            self.nodes[number] = (SplitKind.AXIS, i, cut, *children, -1)
        else:
            stays = set(itertools.chain(*left))
            self.sets.append([k in stays for k in range(int(self.part.widths[i]))])
            self.nodes[number] = (SplitKind.SUBSET, i, np.nan, *children, len(self.sets) - 1)
        return number

    def ensemble(self) -> Ensemble:
        """The partition's ensemble with all added trees."""
        base, n = self.part.ensemble, len(self.nodes)
        if not n:
            return base
        kind, feature, threshold, left, right, subset = (np.array(c) for c in zip(*self.nodes, strict=True))
        is_leaf = kind == SplitKind.LEAF
        sets = np.zeros((len(self.sets), max(map(len, self.sets), default=0)), bool)
        for k, row in enumerate(self.sets):
            sets[k, : len(row)] = row
        grown = Ensemble(
            feature_names=base.feature_names,
            tree_offsets=np.array(self.offsets, np.int64),
            kind=kind.astype(np.uint8),
            feature=feature.astype(np.int32),
            threshold=threshold.astype(np.float64),
            left=left.astype(np.int32),
            right=right.astype(np.int32),
            leaf=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
            leaf_values=np.zeros((int(is_leaf.sum()), base.n_outputs)),
            tree_weights=np.ones(len(self.offsets) - 1),
            base_score=np.zeros(base.n_outputs),
            decision=base.decision,
            missing_left=np.ones(n, bool),
            set_index=subset.astype(np.int32),
            sets=sets,
        )
        return append_trees(base, grown)

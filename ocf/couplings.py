r"""Constraints in the finite form: trees that tell apart what they tell apart, and values inside cells.

A constraint is a sum of functions of one feature each (`ocf.constraints.Row`). Once cells end where these functions
bend, a row is of the same form as the target: a *watching tree* for each feature that occurs in rows, with a leaf for
each group of cells that no row tells apart, turns ``sum_i f_i(x_i) <= limit`` into one more requirement
``sum over trees of gain[leaf] >= need``. So the incumbent search, the reduction, every formulation and the box search
respect such constraints without knowing of them.

That is exact while the cell's cheapest value is also its best for every row. Where it is not, as for a relation
between numbers, the feature *slides*: its value may lie anywhere in its cell,

.. math:: x_i = anchor_{ij} + direction_{ij}\, u_i, \quad 0 \le u_i \le width_{ij} \quad \text{in cell } j,

each of its cells has a leaf of its own, the requirement counts the best value of the cell (a relaxation, which the
searches may use), and a model adds u and the exact row. `Values.place` then finds the cheapest point of a choice of
cells in exact arithmetic and rounds it to numbers that the columns can hold.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``anchor, far``        cheapest admissible value of a cell, and the end away from it, (n_cells,)
``watch``              leaves of the watching trees, a slice of all leaves
=====================  =============================================================================
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.constraints import Part, Row, spacing
from ocf.curves import around, codes_of, exact, position
from ocf.ensemble import BoolArray, Ensemble, FloatArray, IntArray, SplitKind
from ocf.errors import ProblemError
from ocf.exact import minimise
from ocf.features import Feature

if TYPE_CHECKING:
    from ocf.cells import CellProblem, Partition
    from ocf.problem import Problem
    from ocf.targets import Requirements

#: Integer and grid features with at most this many admissible values get a cell for each where a relation needs it.
MAX_VALUES = 200

#: Part of the cost that a further tangent must be able to add to a bound.
SAME_TANGENT = 1e-10

#: Rounding of float64 sums of weights that is allowed for, relative to the largest sum.
ROUNDING = 1e-12

#: Most features whose neighbouring numbers are tried out when rounding a point breaks a row.
ROUNDED = 5

ZERO = Fraction(0)


@dataclass(frozen=True)
class Placement:
    """The cheapest point of a choice of cells: coded row and cost."""

    point: FloatArray
    cost: float


@dataclass(frozen=True, eq=False)
class Values:
    """Rows over a row's cells, and where values may slide.

    Attributes
    ----------
    rows : tuple of Row
    watched : tuple of int
        Features that occur in rows.
    watch : slice
        Leaves of the watching trees.
    trees : slice
        The watching trees; those before are the model's.
    anchor, far : (n_cells,) float64
    slides : (n_features,) bool
    slack : (n_rows,) float64
        By how much the rounding of numbers may exceed each limit.
    cell_feature : (n_cells,) int64
    cell_leaf : tuple of int
        A cell of each watching leaf's group; the only one where the feature slides.
    hopeless : tuple of str
        Names of constraints that no admissible values of this row satisfy, whatever the model says.
    forms : tuple of Row
        Linear forms whose squares the cost adds; their limits mean nothing.
    """

    problem: Problem
    rows: tuple[Row, ...]
    watched: tuple[int, ...]
    watch: slice
    trees: slice
    anchor: FloatArray
    far: FloatArray
    slides: BoolArray
    slack: FloatArray
    cell_feature: IntArray
    cell_leaf: tuple[int, ...]
    hopeless: tuple[str, ...]
    forms: tuple[Row, ...] = ()

    @property
    def couples(self) -> bool:
        """Whether some value may slide: then a choice of cells does not yet fix the point."""
        return bool(self.slides.any())

    def allows(self, point: FloatArray) -> bool:
        """Whether a coded point satisfies all rows, exactly."""
        return all(row.holds(self.problem.space, point) for row in self.rows)

    def remark(self) -> str:
        """What a user should know of constraints that the row breaks as it is, or that nothing satisfies."""
        if self.hopeless:
            names = ", ".join(map(repr, self.hopeless))
            return f"whatever the model says, no admissible values of this row satisfy {names}"
        broken = dict.fromkeys(r.name for r in self.rows if not r.holds(self.problem.space, self.problem.origin))
        return f"the row itself does not satisfy {', '.join(map(repr, broken))}" if broken else ""

    def watching(self, leaves: IntArray) -> IntArray:
        """Those of the chosen leaves that the watching trees contribute."""
        return leaves[self.trees]

    def judging(self, leaves: IntArray) -> IntArray:
        """Those of the chosen leaves that the model's own trees contribute."""
        return leaves[: self.trees.start]

    # -- sliding values ------------------------------------------------------------------------------------

    def unit(self, i: int) -> Fraction:
        """Unit of slides: the step of whole numbers and grids, the scale of continuous features."""
        feature = self.problem.space.features[i]
        if feature.step is not None:
            return exact(feature.step)
        return Fraction(1) if feature.kind == "integer" else exact(feature.scale)

    def whole(self, i: int) -> bool:
        """Whether a sliding feature moves in whole steps."""
        feature = self.problem.space.features[i]
        return feature.kind == "integer" or feature.step is not None

    @cached_property
    def widths(self) -> list[Fraction]:
        """How far each cell's value may slide, in units; 0 for features that do not slide."""
        out = [ZERO] * len(self.anchor)
        for j in np.flatnonzero(np.isfinite(self.anchor) & np.isfinite(self.far)).tolist():
            i = int(self.cell_feature[j])
            if self.slides[i]:
                steps = abs(exact(self.far[j]) - exact(self.anchor[j])) / self.unit(i)
                out[j] = Fraction(round(steps)) if self.whole(i) else steps
        return out

    def gradient(self, j: int) -> tuple[Fraction, ...]:
        """By how much a unit of sliding in cell j changes each row and each form; zeros where it cannot slide."""
        if not self.widths[j]:
            return (ZERO,) * (len(self.rows) + len(self.forms))
        i = int(self.cell_feature[j])
        a, b = float(self.anchor[j]), float(self.far[j])
        return tuple(
            (row.parts[i].of(b) - row.parts[i].of(a)) / self.widths[j] if i in row.parts else ZERO
            for row in (*self.rows, *self.forms)
        )

    def price(self, j: int) -> tuple[Fraction, Fraction]:
        """Cost of a unit of sliding in cell j at the anchor, and by how much it grows with each unit."""
        i = int(self.cell_feature[j])
        feature, origin = self.problem.space.features[i], float(self.problem.origin[i])
        if feature.cost is not None:  # a line within the cell
            ends = [feature.cost.amount(feature, origin, float(v)) for v in (self.far[j], self.anchor[j])]
            return (ends[0] - ends[1]) / self.widths[j], ZERO
        step = float(self.unit(i)) * (1.0 if self.far[j] > self.anchor[j] else -1.0)
        slope, curvature = self.problem.cost.slope(feature, origin, float(self.anchor[j]), step)
        return exact(slope), exact(curvature)

    def tangents(self, cells: IntArray, point: FloatArray) -> Iterator[tuple[int, float]]:
        """Cells with a curved cost, and how far the point slides in them; -1 - k stands for form k, and its value."""
        for i in np.flatnonzero(self.slides).tolist():
            j = int(cells[i])
            if self.widths[j] and self.price(j)[1] and point[i] != self.anchor[j]:
                yield j, float(abs(exact(float(point[i])) - exact(float(self.anchor[j]))) / self.unit(i))
        for k, form in enumerate(self.forms):
            yield -1 - k, float(form.total(point))

    def first_tangents(self, upper: float) -> Iterator[tuple[int, float]]:
        """Where the square of each form is followed from the start, given a cost that it cannot exceed."""
        for k in range(len(self.forms)):
            for share in (0.25, 0.5, 1.0):
                yield -1 - k, share * math.sqrt(max(upper, 0.0))
                yield -1 - k, -share * math.sqrt(max(upper, 0.0))

    def worthwhile(
        self, new: Sequence[tuple[int, float]], known: Sequence[tuple[int, float]], upper: float
    ) -> list[tuple[int, float]]:
        """Tangents that differ from those known; two that are nearly one only spoil a solver's linear algebra."""
        out: list[tuple[int, float]] = []
        for j, at in new:
            curvature = 2.0 if j < 0 else float(self.price(j)[1])
            near = min((abs(at - other) for k, other in (*known, *out) if k == j), default=math.inf)
            # between two tangents the square is missed by an eighth of the curvature times their distance squared
            if curvature * near * near / 8 > SAME_TANGENT * upper:
                out.append((j, at))
        return out

    # -- the cheapest point of a choice of cells -----------------------------------------------------------

    def place(self, cells: IntArray) -> Placement | None:
        """Cheapest point of a choice of cells that satisfies all rows exactly; None when there is none.

        Parameters
        ----------
        cells : (n_features,) int64
            Indices of all cells.
        """
        origin = self.problem.origin
        point = np.where(np.isnan(origin), origin, self.anchor[cells])
        if self.forms or not self.allows(point):
            moving = [int(i) for i in np.flatnonzero(self.slides) if self.widths[cells[i]]]
            found = self._slid(point, cells, moving) if moving else point if self.allows(point) else None
            if found is None:
                return None
            point = found
        return Placement(point, self.problem.cost.total(self.problem.space, origin, point))

    def _slid(self, point: FloatArray, cells: IntArray, moving: list[int]) -> FloatArray | None:
        """The point with sliding features moved as cheaply as the rows allow."""
        slopes = [self.gradient(int(cells[i])) for i in moving]
        rows = [r for r in range(len(self.rows)) if any(s[r] for s in slopes)]
        if not all(self.rows[r].holds(self.problem.space, point) for r in set(range(len(self.rows))) - set(rows)):
            return None
        A = [[s[r] for s in slopes] for r in rows]
        room = [self.rows[r].limit - self.rows[r].total(point) for r in rows]
        task = _Slide(self, point, cells, moving, A, room)
        u = task.solve()
        if u is None:
            return None
        nearest = task.rounded(u)
        if nearest is not None:
            return nearest
        # a little less room, which rounding then takes
        u = replace(task, room=[have - task.margin(k) for k, have in enumerate(room)]).solve()
        return None if u is None else task.rounded(u)


@dataclass(frozen=True)
class _Slide:
    """The linear program over the sliding features of one choice of cells."""

    values: Values
    point: FloatArray
    cells: IntArray
    moving: list[int]
    A: list[list[Fraction]]
    room: list[Fraction]

    def solve(self) -> list[Fraction] | None:
        """Cheapest slides, exactly, whole where they must be; None when there are none."""
        widths = [self.values.widths[int(self.cells[i])] for i in self.moving]
        return self._branch([ZERO] * len(widths), widths)

    def _branch(self, low: list[Fraction], high: list[Fraction]) -> list[Fraction] | None:
        """Branch and bound over whole slides, depth first."""
        if any(a > b for a, b in zip(low, high, strict=True)):
            return None
        u = self._relaxed(low, high)
        if u is None:
            return None
        k = next((k for k, i in enumerate(self.moving) if self.values.whole(i) and u[k].denominator > 1), None)
        if k is None:
            return u
        down, up = high.copy(), low.copy()
        down[k], up[k] = Fraction(math.floor(u[k])), Fraction(math.ceil(u[k]))
        found = [v for v in (self._branch(low, down), self._branch(up, high)) if v is not None]
        return min(found, key=self.cost, default=None)

    def _relaxed(self, low: list[Fraction], high: list[Fraction]) -> list[Fraction] | None:
        n = len(low)
        unit = [[Fraction(int(j == k)) for j in range(n)] for k in range(n)]
        shift = [sum((a * v for a, v in zip(row, low, strict=True)), ZERO) for row in self.A]
        b = [have - s for have, s in zip(self.room, shift, strict=True)]
        span = [h - v for h, v in zip(high, low, strict=True)]
        Q = self.curvature
        c = [
            p + sum((q * v for q, v in zip(own, low, strict=True)), ZERO) for p, own in zip(self.slopes, Q, strict=True)
        ]
        u = minimise(c, [*self.A, *unit], [*b, *span], Q if any(map(any, Q)) else None)
        return None if u is None else [a + v for a, v in zip(u, low, strict=True)]

    @cached_property
    def _forms(self) -> list[tuple[Fraction, list[Fraction]]]:
        """Value of each form at the anchors, and its slopes."""
        first = len(self.values.rows)
        slopes = [self.values.gradient(int(self.cells[i]))[first:] for i in self.moving]
        return [(form.total(self.point), [own[k] for own in slopes]) for k, form in enumerate(self.values.forms)]

    @cached_property
    def slopes(self) -> list[Fraction]:
        """Slope of the cost of each slide at the anchors."""
        return [p + 2 * sum((here * own[k] for here, own in self._forms), ZERO) for k, (p, _) in enumerate(self.prices)]

    @cached_property
    def curvature(self) -> list[list[Fraction]]:
        """Second derivatives of the cost of slides."""
        n = len(self.prices)
        return [
            [
                2 * sum((own[a] * own[b] for _, own in self._forms), ZERO) + (self.prices[a][1] if a == b else ZERO)
                for b in range(n)
            ]
            for a in range(n)
        ]

    @cached_property
    def prices(self) -> list[tuple[Fraction, Fraction]]:
        """Slope and curvature of the cost of each slide."""
        return [self.values.price(int(self.cells[i])) for i in self.moving]

    def cost(self, u: list[Fraction]) -> Fraction:
        """Cost of slides beyond the anchors."""
        out = ZERO
        for slope, own, v in zip(self.slopes, self.curvature, u, strict=True):
            out += v * (slope + sum((q * w for q, w in zip(own, u, strict=True)), ZERO) / 2)
        return out

    def margin(self, k: int) -> Fraction:
        """By how much rounding every slide to a number may change the sum of row k."""
        out = ZERO
        for a, i in zip(self.A[k], self.moving, strict=True):
            if not self.values.whole(i):
                j = int(self.cells[i])
                size = max(abs(float(self.values.anchor[j])), abs(float(self.values.far[j])))
                out += abs(a) / self.values.unit(i) * spacing(self.values.problem.space.features[i], size)
        return out

    def rounded(self, u: list[Fraction]) -> FloatArray | None:
        """Numbers near the exact slides that satisfy all rows; None when there are none that near."""
        choices = []
        for k, (i, slide) in enumerate(zip(self.moving, u, strict=True)):
            choices.append(list(self._numbers(i, slide, k < ROUNDED)))
        point = self.point.copy()
        for numbers in itertools.product(*choices):
            point[self.moving] = numbers
            if self.values.allows(point):
                return point
        return None

    def _numbers(self, i: int, slide: Fraction, neighbours: bool) -> Iterator[float]:
        """Numbers of the cell nearest to a slide, in the column's dtype."""
        values, j = self.values, int(self.cells[i])
        feature = values.problem.space.features[i]
        a, b = float(values.anchor[j]), float(values.far[j])
        low, high = min(a, b), max(a, b)
        sign = 1 if b > a else -1
        number = float(exact(a) + sign * slide * values.unit(i))
        dtype = feature.float_dtype.type
        near = min(max(float(dtype(number)), low), high)
        yield near
        if neighbours and not values.whole(i):
            for towards in (low, high):
                other = float(np.nextafter(dtype(near), dtype(towards)))
                if other != near and low <= other <= high:
                    yield other


# -- from rows to cells ------------------------------------------------------------------------------------


def constrain(problem: Problem) -> tuple[CellProblem, ...]:
    """The finite forms of a problem with constraints or bent costs, one per alternative of its target.

    Parameters
    ----------
    problem : Problem
    """
    from ocf.cells import partition, to_alternatives

    space, origin = problem.space, problem.origin
    rows = tuple(row for c in problem.constraints for row in c.rows(space, origin))
    alternatives = to_alternatives(
        replace(problem, constraints=()), partition(problem.trees, space, _cuts(problem, rows))
    )
    far = np.where(alternatives[0].open, _far_ends(alternatives[0]), np.nan)
    alternatives, far = _anchored(alternatives, far)
    forms = tuple(_forms(problem))
    if not rows and not forms:
        return tuple(form.with_(problem=problem) for form in alternatives)
    base = alternatives[0]
    watched = sorted({i for row in (*rows, *forms) for i in row.parts if not np.isnan(origin[i])})
    near_gain, far_gain = _amounts(base, rows, watched, base.value), _amounts(base, rows, watched, far)
    part = base.partition
    slides = np.zeros(part.n_features, bool)
    for i in watched:
        span = part.cells_of(i)
        slides[i] = any(b < a for a, b in zip(near_gain[span].ravel(), far_gain[span].ravel(), strict=True))
        slides[i] |= any(i in form.parts and form.parts[i].moving for form in forms)
        if slides[i] and not np.isfinite(far[span][base.open[span]]).all():
            raise ProblemError(
                f"the constraints on {space.features[i].name!r} need finite bounds: "
                f"give features={{{space.features[i].name!r}: {{'bounds': [lowest, highest]}}}}"
            )
    best = np.minimum(near_gain, np.where(slides[part.cell_feature][:, None], far_gain, near_gain))
    squared = {i for form in forms for i in form.parts}
    alone = np.array([bool(slides[i]) or i in squared for i in range(part.n_features)])
    grown, groups = _with_watching_trees(base, watched, best, alone)
    finer = partition(grown, space, _cuts(problem, rows))
    if not np.array_equal(finer.upper, part.upper):
        raise AssertionError("watching trees must not cut cells")
    slack = _slack(base, rows, far)
    gain, need, doubt = _requirements(rows, best, groups, slack)
    n_real, n_watch = part.ensemble.n_leaves, len(groups)
    values = Values(
        problem,
        rows,
        tuple(watched),
        slice(n_real, n_real + n_watch),
        slice(part.ensemble.n_trees, grown.n_trees),
        base.value,
        far,
        slides,
        slack,
        part.cell_feature,
        tuple(groups),
        _hopeless(base, rows, watched, best, slack),
        forms,
    )
    return tuple(
        form.with_(
            problem=problem,
            partition=finer,
            requirements=_extended(form.requirements, grown, gain, need, doubt),
            leaf_cost=None if form.leaf_cost is None else np.pad(form.leaf_cost, (0, grown.n_leaves - n_real)),
            live=finer.reachable & (not values.hopeless),
            values=values,
        )
        for form in alternatives
    )


def _extended(
    target: Requirements, grown: Ensemble, gain: FloatArray, need: FloatArray, doubt: FloatArray
) -> Requirements:
    """Requirements of the target and of the watching leaves together."""
    curve = target.curve
    if curve is not None:  # sees the leaves of all trees, but no more scores than before
        n = curve.ensemble.n_outputs
        silent = replace(grown, leaf_values=grown.leaf_values[:, :n], base_score=grown.base_score[:n])
        curve = replace(curve, ensemble=silent)
    above = np.hstack([target.gain, np.zeros((len(target.gain), len(need)))])
    below = np.hstack([np.zeros((len(gain), target.gain.shape[1])), gain])
    return replace(
        target,
        gain=np.vstack([above, below]),
        need=np.concatenate([target.need, need]),
        doubt=np.concatenate([target.doubt, doubt]),
        curve=curve,
    )


def _cuts(problem: Problem, rows: Sequence[Row]) -> dict[int, FloatArray]:
    """Where cells must end for the rows' sake, by feature."""
    cuts: dict[int, FloatArray] = {}
    for i, feature in enumerate(problem.space.features):
        if feature.cost is not None:
            cuts[i] = np.unique(feature.cost.cuts(feature, float(problem.origin[i])))
    for row in (*rows, *_forms(problem)):
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
    if not (feature.kind == "integer" or feature.step is not None) or not math.isfinite(high - low):
        return np.empty(0)
    step = feature.step or 1.0
    if (high - low) / step > MAX_VALUES:
        return np.empty(0)
    values = [float(feature.at_least(low))]
    while values[-1] < high:
        values.append(float(feature.above(values[-1])))
    return np.array(values)


def _forms(problem: Problem) -> Iterator[Row]:
    """The linear forms of a quadratic cost, as rows without a limit."""
    space, origin = problem.space, problem.origin
    for form in problem.cost.forms:
        parts = {}
        for name, c in form:
            i = space.index(name)
            feature, old = space.features[i], float(origin[i])
            if not math.isnan(old):
                cuts = codes_of(feature) if feature.discrete else around(old)
                parts[i] = Part(_scaled_change(feature, old, exact(c)), cuts, not feature.discrete)
        yield Row("", parts, ZERO)


def _scaled_change(feature: Feature, origin: float, c: Fraction) -> Callable[[float], Fraction]:
    here = position(feature, origin)
    return lambda v: c * (position(feature, v) - here)


def is_bent(problem: Problem) -> bool:
    """Whether cells must end where something else than the ensemble changes."""
    return bool(problem.constraints or problem.cost.forms) or any(f.cost is not None for f in problem.space.features)


def _anchored(forms: tuple[CellProblem, ...], far: FloatArray) -> tuple[tuple[CellProblem, ...], FloatArray]:
    """Cells whose value is the cheaper of their ends, and the other ends: a bent cost may fall from the origin."""
    problem, part = forms[0].problem, forms[0].partition
    value, cost, far = forms[0].value.copy(), forms[0].cost.copy(), far.copy()
    for i, feature in enumerate(problem.space.features):
        if feature.cost is None or math.isnan(problem.origin[i]):
            continue
        span = part.cells_of(i)
        other = problem.cost.of(feature, float(problem.origin[i]), far[span])
        falls = other < cost[span]
        if not np.isfinite(far[span][falls]).all():
            raise ProblemError(f"the cost of {feature.name!r} falls without end: give the feature bounds")
        value[span], far[span] = np.where(falls, far[span], value[span]), np.where(falls, value[span], far[span])
        cost[span] = np.where(falls, other, cost[span])
    return tuple(form.with_(value=value, cost=cost) for form in forms), far


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
        left = np.maximum(feature.above(part.lower[span]), feature.at_least(low) if np.isfinite(low) else low)
        right = np.minimum(feature.at_most(part.upper[span]), feature.at_most(high) if np.isfinite(high) else high)
        value = cells.value[span]
        # a cell that holds the row's own value off the grid may have nothing else
        end = np.where(right - value > value - left, right, left)
        far[span] = np.where((left <= right) & (value != origin), end, value)
    return far


def _amounts(
    cells: CellProblem, rows: Sequence[Row], watched: Sequence[int], value: FloatArray
) -> np.ndarray[Any, Any]:
    """What each cell adds to each row at a value, exactly, (n_cells, n_rows) of Fraction; 0 where there is none."""
    part = cells.partition
    out = np.full((part.n_cells, len(rows)), ZERO, object)
    for r, row in enumerate(rows):
        for i in watched:
            if i in row.parts:
                for j in range(*part.cells_of(i).indices(part.n_cells)):
                    if cells.open[j] and np.isfinite(value[j]):
                        out[j, r] = row.parts[i].of(float(value[j]))
    return out


def _hopeless(
    cells: CellProblem, rows: Sequence[Row], watched: Sequence[int], best: np.ndarray[Any, Any], slack: FloatArray
) -> tuple[str, ...]:
    """Names of constraints that the best open cell of every feature together do not satisfy."""
    part = cells.partition
    names = []
    for r, row in enumerate(rows):
        least = sum((part.of(math.nan) for i, part in row.parts.items() if i not in watched), ZERO)
        for i in watched:
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
    """Gains of the watching leaves, needs and doubts; a row is turned round, for requirements are ``>=``."""
    gain = np.empty((len(groups), len(rows)))
    need, doubt = np.empty(len(rows)), np.zeros(len(rows))
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
            doubt[r] = 2 * spare
    return gain, need, doubt


# -- watching trees ----------------------------------------------------------------------------------------


def _with_watching_trees(
    cells: CellProblem, watched: Sequence[int], best: np.ndarray[Any, Any], slides: BoolArray
) -> tuple[Ensemble, list[int]]:
    """The ensemble with a tree for each watched feature, and one cell of each of their leaves' groups."""
    grower = _Grower(cells.partition)
    representatives: list[int] = []
    for i in watched:
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
    """Appends trees without scores to an ensemble."""

    def __init__(self, part: Partition) -> None:
        self.part, self.base = part, part.ensemble
        self.nodes: list[tuple[int, int, float, int, int, int]] = []
        self.sets: list[list[bool]] = []
        self.offsets: list[int] = []

    def add(self, i: int, groups: list[list[int]]) -> None:
        """A balanced tree of feature i, with its leaves in the order of the groups."""
        self._node(i, groups)
        self.offsets.append(len(self.base.kind) + len(self.nodes))

    def _node(self, i: int, groups: list[list[int]]) -> int:
        at = len(self.nodes)
        number = len(self.base.kind) + at
        if len(groups) == 1:
            self.nodes.append((SplitKind.LEAF, -1, np.nan, -1, -1, -1))
            return number
        self.nodes.append((SplitKind.LEAF, -1, np.nan, -1, -1, -1))  # replaced below
        left, right = groups[: len(groups) // 2], groups[len(groups) // 2 :]
        children = self._node(i, left), self._node(i, right)
        if self.part.ordered[i]:
            cut = float(self.part.upper[self.part.offsets[i] + left[-1][-1]])
            self.nodes[at] = (SplitKind.AXIS, i, cut, *children, -1)
        else:
            stays = set(itertools.chain(*left))
            self.sets.append([k in stays for k in range(int(self.part.widths[i]))])
            index = len(self.base.sets) + len(self.sets) - 1
            self.nodes[at] = (SplitKind.SUBSET, i, np.nan, *children, index)
        return number

    def ensemble(self) -> Ensemble:
        """The ensemble with all added trees."""
        base, n = self.base, len(self.nodes)
        if not n:
            return base
        kind, feature, threshold, left, right, subset = (np.array(c) for c in zip(*self.nodes, strict=True))
        is_leaf = kind == SplitKind.LEAF
        leaf = np.full(n, -1, np.int32)
        leaf[is_leaf] = base.n_leaves + np.arange(is_leaf.sum())
        width = max([base.sets.shape[1], *map(len, self.sets)])
        sets = np.zeros((len(base.sets) + len(self.sets), width), bool)
        sets[: len(base.sets), : base.sets.shape[1]] = base.sets
        for k, row in enumerate(self.sets):
            sets[len(base.sets) + k, : len(row)] = row
        missing = None
        if base.missing_left is not None:
            missing = np.concatenate([base.missing_left, np.ones(n, bool)])
        return replace(
            base,
            tree_offsets=np.concatenate([base.tree_offsets, np.array(self.offsets, np.int64)]),
            kind=np.concatenate([base.kind, kind.astype(np.uint8)]),
            feature=np.concatenate([base.feature, feature.astype(np.int32)]),
            threshold=np.concatenate([base.threshold, threshold.astype(np.float64)]),
            left=np.concatenate([base.left, left.astype(np.int32)]),
            right=np.concatenate([base.right, right.astype(np.int32)]),
            leaf=np.concatenate([base.leaf, leaf]),
            leaf_values=np.vstack([base.leaf_values, np.zeros((int(is_leaf.sum()), base.n_outputs))]),
            tree_weights=np.concatenate([base.tree_weights, np.ones(len(self.offsets))]),
            missing_left=missing,
            set_index=np.concatenate([base.set_index, subset.astype(np.int32)]),
            sets=sets,
            oblique_index=np.concatenate([base.oblique_index, np.full(n, -1, np.int32)]),
        )

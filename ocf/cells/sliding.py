r"""Constraints in the finite form: trees that tell apart what they tell apart, and values inside cells.

A constraint is a sum of functions of one feature each (`ocf.problem.rows.Row`). Once cells end where these functions
bend, a row is of the same form as the target: a *constraint tree* for each feature that occurs in rows, with a leaf for
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
``constraint_leaves``  leaves of the constraint trees, a slice of all leaves
=====================  =============================================================================
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.exact_programs import minimise
from ocf.cells.reach import least_beyond
from ocf.features.curve import exact
from ocf.features.feature import has_grid
from ocf.features.own_cost import amount_of
from ocf.problem.diversity import Apart, Keeps
from ocf.problem.rows import Row, spacing
from ocf.support.kept import Kept
from ocf.support.limits import check, seconds_left
from ocf.support.tolerances import falls_short, meets

if TYPE_CHECKING:
    from ocf.problem.problem import Problem


#: Part of the cost that a further tangent must be able to add to a bound.
SAME_TANGENT = 1e-10

#: Where squares are followed from the start, in parts of their largest value.
FIRST_TANGENTS = (0.0625, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0)

#: Nodes of a branch and bound over whole numbers that no limit keeps from being looked at, and the seconds that it may
#: take beyond them where an answer hangs on the point: a node of six features takes 3 ms, one of sixteen 15.
AT_FIRST, GRACE = 10, 0.3

#: Most nodes where other points will be tried.
HASTY = 200

#: Choices of cells whose points are remembered.
LAST_PLACED = 64

#: Most features whose neighbouring numbers are tried out when rounding a point breaks a row.
ROUNDED = 5

#: Nodes of a branch and bound over the numbers that columns can hold, where the nearest ones are too dear.
NUMBERS = 200

ZERO = Fraction(0)


@dataclass(frozen=True)
class Placement:
    """The cheapest point of a choice of cells, as far as it is found among the numbers that columns can hold.

    Attributes
    ----------
    point : (n_features,) float64 or None
        Coded; None where no numbers that were tried are admissible, though there may be some.
    cost : float
        Of the point; inf without one.
    bound : float
        No point of the cells is cheaper.
    """

    point: FloatArray | None
    cost: float
    bound: float

    @property
    def leaves_open(self) -> bool:
        """Whether other numbers of the same cells may be cheaper."""
        return falls_short(self.bound, self.cost)


@dataclass(frozen=True, eq=False)
class Values:
    """Rows over a row's cells, and where values may slide.

    Attributes
    ----------
    rows : tuple of Row
    constrained : tuple of int
        Features that occur in rows.
    constraint_leaves : slice
        Leaves of the constraint trees.
    constraint_trees : slice
        Those before are the model's.
    anchor, far : (n_cells,) float64
    slides : (n_features,) bool
    slack : (n_rows,) float64
        By how much the rounding of numbers may exceed each limit.
    cell_feature : (n_cells,) int64
    cell_leaf : tuple of int
        A cell of each leaf's group; the only one where the feature slides.
    unsatisfiable : tuple of str
        Names of constraints that no admissible values of this row satisfy, whatever the model says.
    forms : tuple of Row
        Linear forms whose squares the cost adds; their limits mean nothing.
    absolutes : tuple of Row
        Those whose absolute values it adds.
    """

    problem: Problem
    rows: tuple[Row, ...]
    constrained: tuple[int, ...]
    constraint_leaves: slice
    constraint_trees: slice
    anchor: FloatArray
    far: FloatArray
    slides: BoolArray
    slack: FloatArray
    cell_feature: IntArray
    cell_leaf: tuple[int, ...]
    unsatisfiable: tuple[str, ...]
    forms: tuple[Row, ...] = ()
    absolutes: tuple[Row, ...] = ()

    @cached_property
    def sums(self) -> tuple[Row, ...]:
        """All sums of functions of the features: rows, forms and absolutes, by which they are numbered."""
        return (*self.rows, *self.forms, *self.absolutes)

    @property
    def couples(self) -> bool:
        """Whether some value may slide: then a choice of cells does not yet fix the point."""
        return bool(self.slides.any())

    @cached_property
    def beyond(self) -> FloatArray | None:
        """What a point in each cell costs at least beyond the cell's own cost, (n_cells,); None: nothing."""
        if not self.problem.cost.couples:
            return None
        return least_beyond(self.problem, np.stack([self.anchor, self.far]), self.cell_feature)

    def allows(self, point: FloatArray) -> bool:
        """Whether a coded point satisfies all rows, exactly."""
        return all(row.holds(self.problem.space, point) for row in self.rows)

    def remark(self) -> str:
        """What a user should know of constraints that the row breaks as it is, or that nothing satisfies."""
        if self.unsatisfiable:
            names = ", ".join(map(repr, self.unsatisfiable))
            return f"whatever the model says, no admissible values of this row satisfy {names}"
        nobodys = {c.title for c in self.problem.constraints if isinstance(c, Keeps | Apart)}  # keep answers apart
        space, origin = self.problem.space, self.problem.origin
        broken = dict.fromkeys(r.name for r in self.rows if r.name not in nobodys and not r.holds(space, origin))
        return f"the row itself does not satisfy {', '.join(map(repr, broken))}" if broken else ""

    def of_constraints(self, leaves: IntArray) -> IntArray:
        """Those of the chosen leaves that the constraint trees contribute."""
        return leaves[self.constraint_trees]

    def of_model(self, leaves: IntArray) -> IntArray:
        """Those of the chosen leaves that the model's own trees contribute."""
        return leaves[: self.constraint_trees.start]

    # -- sliding values ------------------------------------------------------------------------------------

    def unit(self, i: int) -> Fraction:
        """Unit of slides: the step of whole numbers and grids, the scale of continuous features."""
        feature = self.problem.space.features[i]
        if feature.step is not None:
            return exact(feature.step)
        return Fraction(1) if feature.kind == "integer" else exact(feature.scale)

    def whole(self, i: int) -> bool:
        """Whether a sliding feature moves in whole steps."""
        return has_grid(self.problem.space.features[i])

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
        """By how much a unit of sliding in cell j changes each of `sums`; zeros where it cannot slide."""
        if not self.widths[j]:
            return (ZERO,) * len(self.sums)
        i = int(self.cell_feature[j])
        a, b = float(self.anchor[j]), float(self.far[j])
        return tuple(
            (row.parts[i].of(b) - row.parts[i].of(a)) / self.widths[j] if i in row.parts else ZERO for row in self.sums
        )

    def price(self, j: int) -> tuple[Fraction, Fraction]:
        """Cost of a unit of sliding in cell j at the anchor, and by how much it grows with each unit."""
        i = int(self.cell_feature[j])
        feature, origin = self.problem.space.features[i], float(self.problem.origin[i])
        if feature.cost is not None:  # a line within the cell
            ends = [amount_of(feature.cost, feature, origin, float(v)) for v in (self.far[j], self.anchor[j])]
            return (ends[0] - ends[1]) / self.widths[j], ZERO
        step = float(self.unit(i)) * (1.0 if self.far[j] > self.anchor[j] else -1.0)
        slope, curvature = self.problem.cost.slope(feature, origin, float(self.anchor[j]), step)
        return exact(slope), exact(curvature)

    def tangents(self, cells: IntArray, point: FloatArray) -> Iterator[tuple[int, float]]:
        """Cells with a curved cost, and how far the point slides in them; -1 - k stands for form k, and its value.

        Parameters
        ----------
        cells : (n_features,) int64
            Counted within the features.
        point : (n_features,) float64
            Coded values in these cells.
        """
        for i in np.flatnonzero(self.slides).tolist():
            j = int(cells[i])
            if self.widths[j] and self.price(j)[1] and point[i] != self.anchor[j]:
                yield j, float(abs(exact(float(point[i])) - exact(float(self.anchor[j]))) / self.unit(i))
        for k, form in enumerate(self.forms):
            yield -1 - k, float(form.total(point))

    def first_tangents(self, upper: float) -> Iterator[tuple[int, float]]:
        """Where the square of each form is followed from the start, given a cost that it cannot exceed."""
        for k in range(len(self.forms)):
            for share in FIRST_TANGENTS:
                yield -1 - k, share * math.sqrt(max(upper, 0.0))
                yield -1 - k, -share * math.sqrt(max(upper, 0.0))

    def worthwhile(
        self, new: Sequence[tuple[int, float]], known: Sequence[tuple[int, float]], upper: float
    ) -> list[tuple[int, float]]:
        """Tangents that differ from those known; two that are nearly one only spoil a solver's linear algebra.

        Parameters
        ----------
        new, known : sequence of (int, float)
            As `tangents` gives them.
        upper : float
            Cost of the best point so far.
        """
        out: list[tuple[int, float]] = []
        for j, at in new:
            curvature = 2.0 if j < 0 else float(self.price(j)[1])
            near = min((abs(at - other) for k, other in (*known, *out) if k == j), default=math.inf)
            # between two tangents the square is missed by an eighth of the curvature times their distance squared
            if curvature * near * near / 8 > SAME_TANGENT * upper:
                out.append((j, at))
        return out

    # -- the cheapest point of a choice of cells -----------------------------------------------------------

    def place(self, cells: IntArray, *, hasty: bool = False, cutoff: float = np.inf) -> Placement | None:
        """Cheapest point of a choice of cells that satisfies all rows exactly; None when there is none.

        Parameters
        ----------
        cells : (n_features,) int64
            Indices of all cells.
        hasty : bool
            Whether None may also mean that whole numbers would take long.
        cutoff : float
            Cost from which on it does not matter which numbers are the cheapest.

        Raises
        ------
        TimeLimitError
            Whole numbers take longer than the limits allow; MemoryLimitError likewise. Not in haste.
        """
        key = cells.tobytes()
        if key in self._placed:
            return self._placed.get(key, lambda: self._place(cells, False, np.inf))
        placed = self._place(cells, hasty, cutoff)
        if (placed is None and hasty) or (placed is not None and placed.leaves_open):
            return placed
        return self._placed.get(key, lambda: placed)

    @cached_property
    def _placed(self) -> Kept[bytes, Placement | None]:
        """What the last choices of cells came to: who finds a point places it, and so does who takes it over."""
        return Kept(LAST_PLACED)

    def _place(self, cells: IntArray, hasty: bool, cutoff: float) -> Placement | None:
        """As `place`."""
        origin = self.problem.origin
        point = np.where(np.isnan(origin), origin, self.anchor[cells])
        if self.forms or self.absolutes or not self.allows(point):
            moving = [int(i) for i in np.flatnonzero(self.slides) if self.widths[cells[i]]]
            if moving:
                return self._slid(point, cells, moving, hasty, cutoff)
            if not self.allows(point):
                return None
        cost = self.cost(point)
        return Placement(point, cost, cost)

    def cost(self, point: FloatArray) -> float:
        """Cost of a coded point, by the costs of the features and what ties them together."""
        return self.problem.cost.total(self.problem.space, self.problem.origin, point)

    def _slid(
        self, point: FloatArray, cells: IntArray, moving: list[int], hasty: bool, cutoff: float
    ) -> Placement | None:
        """The point with sliding features moved as cheaply as the rows allow."""
        slopes = [self.gradient(int(cells[i])) for i in moving]
        rows = [r for r in range(len(self.rows)) if any(s[r] for s in slopes)]
        if not all(self.rows[r].holds(self.problem.space, point) for r in set(range(len(self.rows))) - set(rows)):
            return None
        A = [[s[r] for s in slopes] for r in rows]
        room = [self.rows[r].limit - self.rows[r].total(point) for r in rows]
        task = _Slide(self, point, cells, moving, A, room, hasty)
        u = task.solve()
        if u is None:
            return None
        least, found = self.cost(point) + float(task.cost(u)), task.rounded(u)
        if found is None:  # a little less room, which rounding then takes
            inner = replace(task, room=[have - task.margin(k) for k, have in enumerate(room)]).solve()
            found = None if inner is None else task.rounded(inner)
        placed = Placement(found, np.inf if found is None else self.cost(found), least)
        if any(self.rows[r].slope for r in rows):  # an equation holds as nearly as the numbers allow
            return placed if found is None else replace(placed, bound=placed.cost)
        return placed if hasty or not placed.leaves_open else task.among_numbers(placed, cutoff)


@dataclass(frozen=True)
class _Slide:
    """The linear or quadratic program over the sliding features of one choice of cells.

    Each absolute value of a form is a variable beside the slides, at least as large as the form and its negative.
    """

    values: Values
    point: FloatArray
    cells: IntArray
    moving: list[int]
    A: list[list[Fraction]]
    room: list[Fraction]
    hasty: bool

    def solve(self) -> list[Fraction] | None:
        """Cheapest slides, exactly, whole where they must be, by branch and bound; None when there are none."""
        waiting = _SlideParts(self)
        visited, begin = 0, time.perf_counter()
        while waiting:
            visited += 1
            if self.hasty and (visited > HASTY or (visited > AT_FIRST and seconds_left() <= 0)):
                return None
            if visited > AT_FIRST and time.perf_counter() - begin > GRACE:
                check()
            part = waiting.pop()
            k = next((k for k, i in enumerate(self.moving) if self.values.whole(i) and part.u[k].denominator > 1), None)
            if k is None:
                return part.u
            waiting.split(part, k, Fraction(math.floor(part.u[k])), Fraction(math.ceil(part.u[k])))
        return None

    def relaxed(self, low: list[Fraction], high: list[Fraction]) -> list[Fraction] | None:
        """Cheapest slides within limits, whole or not; None when there are none.

        Parameters
        ----------
        low, high : list of Fraction
        """
        n, beside = len(low), len(self._absolutes)
        none = [ZERO] * beside
        unit = [[Fraction(int(j == k)) for j in range(n + beside)] for k in range(n + beside)]
        above = [
            ([*(sign * a for a in own), *(-v for v in unit[n + k][n:])], -sign * here)
            for k, (here, own) in enumerate(self._absolutes)
            for sign in (1, -1)
        ]
        A = [*([*row, *none] for row in self.A), *(row for row, _ in above)]
        b = [have - _dot(row, low) for row, have in zip(A, [*self.room, *(have for _, have in above)], strict=True)]
        span = [h - v for h, v in zip(high, low, strict=True)]
        Q = [*([*own, *none] for own in self.curvature), *([ZERO] * (n + beside) for _ in none)]
        c = [*(p + _dot(own, low) for p, own in zip(self.slopes, Q, strict=False)), *([Fraction(1)] * beside)]
        found = minimise(c, [*A, *unit[:n]], [*b, *span], Q if any(map(any, Q)) else None)
        return None if found is None else [a + v for a, v in zip(found, low, strict=False)]

    def _sums(self, first: int, forms: Sequence[Row]) -> list[tuple[Fraction, list[Fraction]]]:
        """Value of each form at the anchors, and its slopes; they stand in `Values.sums` from `first` on."""
        slopes = [self.values.gradient(int(self.cells[i]))[first:] for i in self.moving]
        return [(form.total(self.point), [own[k] for own in slopes]) for k, form in enumerate(forms)]

    @cached_property
    def _forms(self) -> list[tuple[Fraction, list[Fraction]]]:
        return self._sums(len(self.values.rows), self.values.forms)

    @cached_property
    def _absolutes(self) -> list[tuple[Fraction, list[Fraction]]]:
        return self._sums(len(self.values.rows) + len(self.values.forms), self.values.absolutes)

    @cached_property
    def slopes(self) -> list[Fraction]:
        """Slope of the cost of each slide at the anchors."""
        return [p + 2 * sum((here * own[k] for here, own in self._forms), ZERO) for k, (p, _) in enumerate(self.prices)]

    @cached_property
    def curvature(self) -> list[list[Fraction]]:
        """Second derivatives of the cost of slides."""
        n = len(self.prices)
        below = [[2 * sum((own[a] * own[b] for _, own in self._forms), ZERO) for b in range(a + 1)] for a in range(n)]
        for own, (_, curvature) in zip(below, self.prices, strict=True):
            own[-1] += curvature
        return [[below[max(a, b)][min(a, b)] for b in range(n)] for a in range(n)]

    @cached_property
    def prices(self) -> list[tuple[Fraction, Fraction]]:
        """Slope and curvature of the cost of each slide."""
        return [self.values.price(int(self.cells[i])) for i in self.moving]

    def cost(self, u: list[Fraction]) -> Fraction:
        """Cost of slides beyond the anchors."""
        out = sum((abs(here + _dot(own, u)) - abs(here) for here, own in self._absolutes), ZERO)
        for slope, own, v in zip(self.slopes, self.curvature, u, strict=True):
            out += v * (slope + _dot(own, u) / 2)
        return out

    def among_numbers(self, known: Placement, cutoff: float) -> Placement | None:
        """The cheapest point of numbers that the columns can hold, by branch and bound, as far as it is found in time.

        Parameters
        ----------
        known : Placement
            By numbers near the cheapest slides.
        cutoff : float
            Cost from which on points are of no interest.

        Returns
        -------
        Placement or None
            None where the columns hold no admissible numbers.
        """
        base, waiting = self.values.cost(self.point), _SlideParts(self)
        best, left = known, np.inf  # bound of choices of numbers that nothing tells apart
        for _ in range(NUMBERS):
            least = base + float(waiting.least)
            if least >= cutoff or meets(least, best.cost) or not waiting or seconds_left() <= 0:
                break
            part = waiting.pop()
            point = self.rounded(part.u) if self._is_whole(part.u) else None
            if point is not None and self.values.cost(point) < best.cost:
                best = replace(best, point=point, cost=self.values.cost(point))
            ends = (self._ends(i, v) for i, v in zip(self.moving, part.u, strict=True))
            k, own = next(((k, own) for k, own in enumerate(ends) if own is not None), (0, None))
            if own is None:  # rounding in sums
                left = min(left, least)
            else:
                waiting.split(part, k, *own)
        bound = min(left, best.cost, base + float(waiting.least))
        return None if bound == np.inf else replace(best, bound=max(bound, known.bound))

    def _is_whole(self, u: list[Fraction]) -> bool:
        """Whether the slides that move in whole steps do."""
        return all(v.denominator == 1 for i, v in zip(self.moving, u, strict=True) if self.values.whole(i))

    def _ends(self, i: int, slide: Fraction) -> tuple[Fraction, Fraction] | None:
        """The slides on both sides of one that lead to numbers of the column; None where it leads to one itself."""
        values = self.values
        if values.whole(i):
            below = Fraction(math.floor(slide))
            return None if below == slide else (below, below + 1)
        j, dtype = int(self.cells[i]), values.problem.space.features[i].float_dtype.type
        anchor = exact(float(values.anchor[j]))
        unit = values.unit(i) * (1 if values.far[j] > values.anchor[j] else -1)
        number = anchor + slide * unit
        near = exact(float(dtype(float(number))))
        if near == number:
            return None
        towards = np.inf if number > near else -np.inf
        other = exact(float(np.nextafter(dtype(float(near)), dtype(towards))))
        first, second = sorted(((near - anchor) / unit, (other - anchor) / unit))
        return first, second

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
        """The first numbers near the exact slides that satisfy all rows; None when there are none that near."""
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


class _SlidePart(NamedTuple):
    """Slides within limits, and the cheapest of them."""

    cost: Fraction
    made: int
    u: list[Fraction]
    low: list[Fraction]
    high: list[Fraction]


class _SlideParts:
    """Parts of the slides that are to be looked at: the cheapest first, of those that cost the same the last one."""

    def __init__(self, task: _Slide) -> None:
        self._task, self._made = task, itertools.count(0, -1)
        self._parts: list[_SlidePart] = []
        widths = [task.values.widths[int(task.cells[i])] for i in task.moving]
        self._add([ZERO] * len(widths), widths)

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def least(self) -> Fraction | float:
        """Cost of the cheapest; inf where none is left."""
        return self._parts[0].cost if self._parts else np.inf

    def pop(self) -> _SlidePart:
        """Take the cheapest out."""
        return heappop(self._parts)

    def split(self, part: _SlidePart, k: int, below: Fraction, above: Fraction) -> None:
        """Put in what of a part lies on both sides of a gap of one slide.

        Parameters
        ----------
        part : _SlidePart
        k : int
            The slide.
        below, above : Fraction
            Ends of the gap.
        """
        self._add(part.low, [*part.high[:k], min(part.high[k], below), *part.high[k + 1 :]])
        self._add([*part.low[:k], max(part.low[k], above), *part.low[k + 1 :]], part.high)

    def _add(self, low: list[Fraction], high: list[Fraction]) -> None:
        u = self._task.relaxed(low, high) if all(a <= b for a, b in zip(low, high, strict=True)) else None
        if u is not None:
            heappush(self._parts, _SlidePart(self._task.cost(u), next(self._made), u, low, high))


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    """Product of the leading numbers of two vectors."""
    return sum((v * w for v, w in zip(a, b, strict=False)), ZERO)


@dataclass(frozen=True)
class Slides:
    """Columns of sliding values, and what they cost.

    Attributes
    ----------
    variables : tuple of variables
        u of each set of cells, e of each feature with a curved cost, z and then q of each form, t of each absolute.
    cost : tuple of float
        Of a unit of each.
    of_cell : dict of int to int
        Position of u in `variables` for each cell that slides.
    excess : dict of int to int
        Position of e for each feature with a curved cost.
    forms : tuple of (int, int)
        Positions of z and q for each form.
    absolutes : tuple of int
        Position of t for each absolute.
    """

    variables: tuple[Any, ...]
    cost: tuple[float, ...]
    of_cell: dict[int, int]
    excess: dict[int, int]
    forms: tuple[tuple[int, int], ...]
    absolutes: tuple[int, ...] = ()

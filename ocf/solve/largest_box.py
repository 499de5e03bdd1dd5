"""The largest box around a point on which the model keeps the answer, with proof: refuted boxes until one stands.

::

    box around the point's own leaves ──▶ widened ──▶ incumbent
    master (`ocf.formulations.largest_box`) ──▶ box ──▶ a point in it without the target? ── no ──▶ the largest
             ▲                                                       │ yes
             └────────── refuted ◀── cut back and widened ◀──────────┘

Whether a point of a box lacks the target is a problem over cells of its own, which the box search decides exactly; the
user's model judges points within rounding of a tie.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.ranges import ValueInterval, range_of_cells
from ocf.errors import ProblemError, TimeLimitError
from ocf.formulations.largest_box import Chain, build
from ocf.problem.requirements import Requirements
from ocf.solve.compile import compile_formulation
from ocf.solvers import compile_model, matrix_solver
from ocf.solvers.box import solve_cells
from ocf.solvers.result import SolverOptions, Status
from ocf.support.limits import check, seconds_left

if TYPE_CHECKING:
    from ocf.solvers.cell_form import Compiled
    from ocf.solvers.standard_form import StandardForm

logger = logging.getLogger(__name__)

#: Cells that a box holds, for each feature, as a mask over its cells.
Cells = tuple[BoolArray, ...]

#: Widths that differ by less are the same.
SAME = 1e-9

#: Most ways in which a point may lack the target: a row of each alternative.
MOST_WAYS = 256


@dataclass(frozen=True)
class GrownBox:
    """A box in which every point has the target.

    Attributes
    ----------
    cells : tuple of (n_cells of the feature,) bool
    width : float
        Sum over features of the part of their admissible range that the box covers.
    bound : float
        No such box is wider.
    status : Status
        OPTIMAL: none is wider, proven; FEASIBLE: the time was over.
    """

    cells: Cells
    width: float
    bound: float
    status: Status


class LargestBox:
    """Search for the largest box around a point.

    Parameters
    ----------
    alternatives : sequence of CellProblem
        Those of the target, without constraints and plausibility.
    choice : (n_features,) int64
        Cells of the point.
    judge : callable
        Whether the user's model gives the target to a coded point.
    """

    def __init__(
        self, alternatives: Sequence[CellProblem], choice: IntArray, judge: Callable[[FloatArray], bool]
    ) -> None:
        if any(a.requirements.curve is not None for a in alternatives):
            raise ProblemError("which points have the target is no matter of sums over trees here: no box is known")
        self._cells, self._at, self._judge = alternatives[0], choice, judge
        # how the trees split a category says nothing of an order: thresholds on its codes leave cells of levels
        categories = [feature.kind == "categorical" for feature in self._cells.problem.space.features]
        self._line = self._cells.partition.ordered & ~np.array(categories, bool)
        self._chains = [self._chains_of(i) for i in range(len(choice))]
        self._places = tuple((i, j) for i, own in enumerate(self._chains) for chain in own for j, _ in chain)
        self._column = {place: k for k, place in enumerate(self._places)}
        self._share = np.array([share for own in self._chains for chain in own for _, share in chain])
        added = np.bincount([i for i, _ in self._places], self._share, minlength=len(choice))
        self._base = float((1.0 - added).sum())
        self._lacking = [_Lacking(self._away(rows)) for rows in _ways([a.requirements for a in alternatives])]
        self._refuted: set[tuple[int, ...]] = set()
        self._form: StandardForm | None = None

    # -- what may be added, and how much it counts -------------------------------------------------------------

    def _chains_of(self, i: int) -> list[Chain]:
        """Cells of a feature that may be added, from the point outwards, with their parts of the range."""
        cells, part = self._cells, self._cells.partition
        feature, origin = cells.problem.space.features[i], float(cells.problem.origin[i])
        span, at = part.cells_of(i), int(self._at[i])
        lower, upper = part.lower[span], part.upper[span]
        barred = np.zeros(len(lower), bool)
        for value in feature.special_values:
            barred |= (lower < value) & (value <= upper)
        if barred[at] or np.isnan(origin):
            return []
        usable = cells.open[span] & ~barred
        if self._line[i]:
            # a range may pass over cells without an admissible value, and over no others
            stops = np.flatnonzero(~usable & ~(np.isnan(cells.value[span]) & ~barred))
            first = int(stops[stops < at].max(initial=-1)) + 1
            last = int(stops[stops > at].min(initial=len(lower)))
            sides = [np.arange(at - 1, first - 1, -1), np.arange(at + 1, last)]
        else:
            sides = [np.array([j]) for j in range(len(lower)) if j != at]
        ways = [[int(j) for j in side if usable[j]] for side in sides]
        ends = sorted([at, *(j for way in ways for j in way)]) if self._line[i] else [at]

        @cache
        def extent(j: int) -> float:
            """How far the values between the point's cell and another reach; levels count 1 each."""
            low, high = min(at, j), max(at, j)
            run = slice(low, high + 1) if self._line[i] else np.array([j])
            held = range_of_cells(cells, feature, i, run, origin)
            if not isinstance(held, ValueInterval):
                return float(len(held or ())) - (self._line[i] or j == at)
            finite = np.concatenate([lower[ends], upper[ends], [origin]])
            finite = finite[np.isfinite(finite)]
            held_low = max(held.lowest, float(finite.min()) - feature.scale)
            return max(min(held.highest, float(finite.max()) + feature.scale) - held_low, 0.0)

        if self._line[i]:
            chains = [list(zip(way, np.diff([extent(j) for j in (at, *way)]), strict=True)) for way in ways]
        else:
            chains = [[(j, extent(j)) for j in way] for way in ways]
        total = extent(at) + sum(float(s) for chain in chains for _, s in chain)
        return [[(j, float(s) / total if total > 0 else 0.0) for j, s in chain] for chain in chains]

    def _away(self, rows: Requirements) -> CellProblem:
        """The problem of a point that meets rows, as near to the point as the parts of ranges count."""
        part = self._cells.partition
        cost = np.full(part.n_cells, np.inf)
        for i, own in enumerate(self._chains):
            start = int(part.offsets[i])
            cost[start + int(self._at[i])] = 0.0
            for chain in own:
                for (j, _), far in zip(chain, np.cumsum([s for _, s in chain]), strict=True):
                    cost[start + j] = far
        return replace(self._cells, requirements=rows, cost=cost, open=np.isfinite(cost), leaf_cost=None)

    # -- boxes -------------------------------------------------------------------------------------------------

    def _box(self, taken: BoolArray) -> Cells:
        """The box of the point and the cells of some columns."""
        masks = tuple(np.zeros(int(n), bool) for n in self._cells.partition.widths)
        for i, j in enumerate(self._at.tolist()):
            masks[i][j] = True
        for k in np.flatnonzero(taken).tolist():
            i, j = self._places[k]
            masks[i][j] = True
        return masks

    def _width(self, taken: BoolArray) -> float:
        return self._base + float(self._share[taken].sum())

    def refute(self, taken: BoolArray) -> list[tuple[int, ...]]:
        """Columns that a box may not hold all together: found where points of this one lack the target; none else."""
        check()
        box, found = self._box(taken), []
        for lacking in self._lacking:
            choice = lacking.point_in(box, self._judge)
            if choice is not None:
                found.append(self._literals(lacking.cells, choice))
        self._refuted.update(found)
        return found

    def _literals(self, cells: CellProblem, choice: IntArray) -> tuple[int, ...]:
        """The columns L_k of the refutation by a point."""
        out = []
        for i, held in enumerate(cells.open_within(cells.partition.leaves_at(choice))):
            at, own = int(self._at[i]), np.flatnonzero(held)
            if self._line[i]:
                if own[0] <= at <= own[-1]:
                    continue
                out.append(self._column[i, int(own[0] if own[0] > at else own[-1])])
            elif not held[at]:
                out.append(self._column[i, int(choice[i])])
        if not out:
            raise ProblemError("the point itself lacks the target: only around an answer there is a box")
        return tuple(out)

    def _without(self, taken: BoolArray, column: int) -> BoolArray:
        """What is left of a box without a column, and those beyond it."""
        i, j = self._places[column]
        left = taken.copy()
        for chain in self._chains[i]:
            own = [c for c, _ in chain]
            if j in own:
                left[[self._column[i, c] for c in own[own.index(j) :]]] = False
        return left

    # -- search ------------------------------------------------------------------------------------------------

    def solve(self) -> GrownBox:
        """The largest box, or the largest so far when the time is over."""
        best, bound = self._around_leaves(), math.inf
        status = Status.FEASIBLE
        try:
            best = self._widened(best)
            while status is Status.FEASIBLE:
                taken, most = self._ask_master()
                bound = min(bound, most)
                if taken is None or self._width(best) >= bound - SAME:
                    break
                if not self.refute(taken):
                    best, status = taken, Status.OPTIMAL
                    best = self._widened(best)  # by cells that add no width
                    break
                cut = self._cut_back(taken)
                if self._width(cut) > self._width(best) + SAME:
                    best = self._widened(cut)
        except TimeLimitError:
            logger.debug("the time was over after %d refutations", len(self._refuted))
        width = self._width(best)
        if width >= bound - SAME:
            status = Status.OPTIMAL
        return GrownBox(self._box(best), width, width if status is Status.OPTIMAL else bound, status)

    def _around_leaves(self) -> BoolArray:
        """The box of the point's own leaves: the model answers the same everywhere in it."""
        cells = self._cells
        held = cells.open_within(cells.partition.leaves_at(self._at))
        return np.array([bool(held[i][j]) for i, j in self._places], bool)

    def _ask_master(self) -> tuple[BoolArray | None, float]:
        """The widest box that nothing refutes yet, and its width; None where the time is over."""
        check()
        if self._form is None:
            master = build(self._chains)
            self._form = compile_model(master.model, master.columns)
        rows = sorted(self._refuted)
        places = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
        columns = np.concatenate([np.array(r, np.int64) for r in rows]) if rows else np.zeros(0, np.int64)
        a = sp.csr_array((np.ones(len(columns)), (places, columns)), shape=(len(rows), self._form.n_cols))
        form = self._form.append_rows(a, -np.inf, np.array([len(r) - 1.0 for r in rows])) if rows else self._form
        if not form.n_cols:
            return np.zeros(0, bool), self._base
        left = seconds_left()
        options = SolverOptions(time_limit=None if left == math.inf else max(left, 1e-3))
        result = matrix_solver("highs").solve(form, options)
        taken = result.x > 0.5 if result.x is not None and result.status is Status.OPTIMAL else None
        return taken, self._base - result.bound

    def _cut_back(self, taken: BoolArray) -> BoolArray:
        """A box within another that nothing refutes: of each refutation the cell goes that loses least."""
        while found := [r for r in self._refuted if taken[list(r)].all()] or self.refute(taken):
            for literals in found:
                if taken[list(literals)].all():
                    taken = max((self._without(taken, k) for k in literals), key=self._width)
        return taken

    def _widened(self, taken: BoolArray) -> BoolArray:
        """A box that cannot be widened on any side, around another."""
        for i, own in sorted(
            ((i, chain) for i, several in enumerate(self._chains) for chain in several),
            key=lambda pair: -sum(s for _, s in pair[1]),
        ):
            columns = [self._column[i, j] for j, _ in own]
            outside = [k for k in columns if not taken[k]]
            fits, fails = 0, len(outside) + 1
            while fails - fits > 1:
                # the whole side first, which features that hardly matter have
                middle = len(outside) if fails > len(outside) and not fits else (fits + fails) // 2
                wider = taken.copy()
                wider[outside[:middle]] = True
                known = any(wider[list(r)].all() for r in self._refuted)
                if known or self.refute(wider):
                    fails = middle
                else:
                    fits = middle
            taken = taken.copy()
            taken[outside[:fits]] = True
        return taken


class _Lacking:
    """Finds points in boxes that lack the target in one way.

    Parameters
    ----------
    cells : CellProblem
        Of points that meet the rows of that way, with the distance from the point for a cost.
    """

    def __init__(self, cells: CellProblem) -> None:
        self.cells = cells
        self._compiled: Compiled | None = None

    def _relaxation(self) -> Compiled | None:
        """The formulation for LP bounds; None where the time does not suffice for it."""
        try:
            self._compiled = self._compiled or compile_formulation("interval", self.cells)
        except TimeLimitError:
            return None
        return self._compiled

    def point_in(self, box: Cells, judge: Callable[[FloatArray], bool]) -> IntArray | None:
        """Cells of the nearest point of a box that lacks the target; None where there is none.

        Parameters
        ----------
        box : tuple of (n_cells of the feature,) bool
        judge : callable

        Raises
        ------
        TimeLimitError
            That could not be decided.
        """
        cells = replace(self.cells, open=self.cells.open & np.concatenate(box))
        left = seconds_left()
        found = solve_cells(
            cells,
            SolverOptions(time_limit=None if left == math.inf else max(left, 1e-3)),
            confirm=lambda choice: not judge(cells.point(choice)),
            relaxation=self._relaxation,
        )
        if found.cells is None and found.status is not Status.INFEASIBLE:
            raise TimeLimitError("the time was over before a box was decided")
        return found.cells


def _ways(alternatives: Sequence[Requirements]) -> list[Requirements]:
    """In which ways a point may lack a target: for some row of each alternative it falls short of what is needed."""
    counts = [len(a.need) for a in alternatives]
    if math.prod(counts) > MOST_WAYS:
        raise ProblemError(f"a point may lack this target in {math.prod(counts)} ways: ask for fewer classes")
    out = []
    for rows in itertools.product(*(range(n) for n in counts)):
        gain = np.column_stack([-a.gain[:, r] for a, r in zip(alternatives, rows, strict=True)])
        pairs = [(a.need[r], a.error_bound[r]) for a, r in zip(alternatives, rows, strict=True)]
        unit = [_unit(a, r) for a, r in zip(alternatives, rows, strict=True)]
        need = np.array([-(n + e) + (u if e == 0 else 0.0) for (n, e), u in zip(pairs, unit, strict=True)])
        error = np.array([e * (1 + 1e-9) if e > 0 or u > 0 else SAME for (_, e), u in zip(pairs, unit, strict=True)])
        out.append(Requirements(gain, need, error))
    return out


def _unit(rows: Requirements, r: int) -> float:
    """A power of two of which the gains of an exact row, and what it needs, are multiples; 0 where none is found."""
    numbers = np.append(np.unique(rows.gain[:, r]), rows.need[r])
    if rows.error_bound[r] > 0:
        return 0.0
    return next((2.0**-k for k in range(-20, 200) if (np.ldexp(numbers, k) % 1 == 0).all()), 0.0)


def grown(
    alternatives: Sequence[CellProblem], point: FloatArray, judge: Callable[[FloatArray], bool]
) -> tuple[CellProblem, GrownBox]:
    """The largest box around a point, and the cells that it counts in.

    Parameters
    ----------
    alternatives : sequence of CellProblem
        Those of the target, without constraints and plausibility.
    point : (n_features,) float64
        Coded; has the target.
    judge : callable
        Whether the user's model gives the target to a coded point.
    """
    first = alternatives[0]
    choice = first.partition.locate(point[None])[0]
    # the cell of the point is part of the box, whatever the row may change
    opened = first.open.copy()
    opened[first.partition.offsets[:-1] + choice] = True
    alternatives = [replace(a, open=opened) for a in alternatives]
    return alternatives[0], LargestBox(alternatives, choice, judge).solve()

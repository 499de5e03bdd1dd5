"""Parts of an ensemble's problem: what is left of it after choices of leaves, and halves of its box.

Solvers branch on leaves. Where many hyperplanes cross a box their big-M rows say next to nothing until most leaves are
chosen, and no choice of leaves narrows the numbers of a solver's matrix. Halving the box does: the halves are narrowed
(`ocf.solve.narrowed`), their big-M fit them, and a solver is asked about boxes that it can be expected to end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.formulations.blocks.splits import big_m_rows
from ocf.problem.requirements import Requirements, ScoreCurve
from ocf.problem.totals import TotalThreshold
from ocf.solve.fitted_rows import fitted
from ocf.solve.narrowed import Narrowing, NumberBox
from ocf.solvers.standard_form import Reduced, StandardForm
from ocf.solvers.tangents import Tangents

#: Choices of leaves after which what is left is split at a score that is seen through a curve.
MOST_UNSPLIT = 6

#: Part of a box's leaves that its halves may have together, where halving it is worth while.
WORTH = 1.8

#: Leaves beyond one a tree of boxes that a solver gets, and its seconds for one; times a box is halved, and what is
#: left of it, before another one's turn.
SMALL, SECONDS, TIMES = 100, 5.0, 16

#: Seconds of a solver for the whole box, and its leaves from which on it has none.
WHOLE_SECONDS, LARGE = 10.0, 2_000

#: Halvings within which a box must lose a quarter of its leaves; one that does not goes to a solver, for as long as it
#: takes.
MOST_IN_VAIN, FEWER = 10, 0.75

#: Factor by which a box around a point shrinks until few enough leaves are in reach, and the least of their product.
STEP, LEAST_SCALE = 0.85, 1e-3


@dataclass(frozen=True, eq=False)
class ModelPart:
    """What is left of an alternative: its model, a condition that the rows hold from outside, and a bound on its cost.

    The leaves are the columns of the model from `first` on. Where there is a box, the model is that of the whole
    one; `Halving.fitted` gives a solver that of the part's own, for which it has so many seconds. A box that is
    ready for a solver is not halved before; `in_vain` counts the halvings since one had `size` leaves.
    """

    form: StandardForm
    first: int
    curve: ScoreCurve | None
    bound: float
    squares: Tangents | None = None
    choices: int = 0
    box: NumberBox | None = None
    seconds: float = np.inf
    is_ready: bool = False
    in_vain: int = 0
    size: float = np.inf

    @classmethod
    def of(cls, form: StandardForm, first: int, curve: ScoreCurve | None, bound: float, cutoff: float) -> ModelPart:
        """All of an alternative, whose squares are followed by tangents.

        Parameters
        ----------
        form : StandardForm
        first, curve, bound
            As above.
        cutoff : float
            What is dearer is of no use.
        """
        squares = None if form.Q is None else Tangents.of(form, cutoff)
        return cls((form if squares is None else squares.form).without_names(), first, curve, bound, squares)

    def followed(self, x: FloatArray) -> ModelPart:
        """The part with tangents of its squares at a solution.

        Parameters
        ----------
        x : (n_cols,) float64
            Of the part's model.
        """
        return self if self.squares is None else replace(self, form=self.squares.followed(self.form, x))

    def without(self, chosen: IntArray, y: FloatArray, rows: Sequence[Requirements], bound: float) -> list[ModelPart]:
        """The parts of it without a choice of leaves.

        Parameters
        ----------
        chosen : (n,) int64
            The leaves, one per tree, but those of lines.
        y : (n_leaves,) float64
            In the solution that chose them.
        rows : sequence of Requirements
            To be added.
        bound : float
            On the cost of all parts.
        """
        cut = np.zeros(len(y))
        cut[chosen] = 1.0
        form = self._with(self.form, -cut[:, None], np.array([1.0 - len(chosen)]))
        for own in rows:
            form = self._with(form, own.gain, own.need)
        left = replace(self, form=form, bound=bound, choices=self.choices + 1)
        curve = self.curve
        if not isinstance(curve, TotalThreshold) or left.choices < MOST_UNSPLIT or not len(curve.ensemble.lines):
            return [left]
        scores = curve.ensemble.base_score + curve.ensemble.contributions.T @ y
        point = np.clip(scores[[term.output for term in curve.total.terms]], curve.low, curve.high)
        halves = curve.split(point)
        if halves is None:
            return [left]
        nearer = 1 if all(a <= b for a, b in zip(point, halves[0].high, strict=True)) else 0
        shrunk = [half.shrunk() for half in (halves[nearer], halves[1 - nearer])]
        made = [(half, half.rows()) for half in shrunk if half is not None]
        return [replace(left, form=self._with(form, own.gain, own.need), curve=half, choices=0) for half, own in made]

    def _with(self, form: StandardForm, gain: FloatArray, need: FloatArray) -> StandardForm:
        """More rows of leaves."""
        rows = np.zeros((len(need), form.n_cols))
        rows[:, self.first : self.first + len(gain)] = gain.T
        return form.append_rows(rows, need, np.full(len(need), np.inf))


class Halving:
    """Parts by boxes of the numbers.

    Parameters
    ----------
    narrowing : Narrowing
    form : StandardForm
        The model of the whole box, with names.
    whole : NumberBox
        Whose big-M it has.
    n_trees : int
    """

    def __init__(self, narrowing: Narrowing, form: StandardForm, whole: NumberBox, n_trees: int) -> None:
        self._narrowing, self._most = narrowing, n_trees + SMALL
        self._big_m = np.isin(np.arange(form.n_rows), big_m_rows(form))
        self._whole, self._columns = whole, narrowing.columns(whole)

    def whole(self, part: ModelPart) -> ModelPart:
        """The part of the whole box.

        Parameters
        ----------
        part : ModelPart
        """
        return _within(part, self._whole)

    def is_worth_while(self, part: ModelPart, limit: float) -> bool:
        """Whether a solver does not get a box as it is, and its halves are smaller.

        Parameters
        ----------
        part : ModelPart
        limit : float
            Cost of a known point.
        """
        assert part.box is not None
        halved = self._narrowing.is_priced and not self._is_small(part)
        boxes = self._narrowing.halves(part.box, limit) if halved else []
        return 0 < sum(box.size for box in boxes) <= WORTH * part.box.size

    def is_large(self, part: ModelPart) -> bool:
        """Whether a box has so many leaves that no solver is asked about the whole.

        Parameters
        ----------
        part : ModelPart
        """
        return part.box is not None and part.box.size > LARGE

    def _is_small(self, part: ModelPart) -> bool:
        """Whether a box has so few leaves that a solver gets it."""
        return part.box is not None and part.box.size <= self._most

    def fitted(self, part: ModelPart) -> Reduced:
        """A part's model, with the smallest big-M and without what is out of reach.

        Parameters
        ----------
        part : ModelPart
        """
        assert part.box is not None
        form, whole, columns = part.form, self._columns, self._narrowing.columns(part.box)
        bounds, n, live = np.array([form.lower, form.upper]), columns.n, part.box.live
        np.maximum(bounds[0, :n], columns.lower, out=bounds[0, :n])
        np.minimum(bounds[1, :n], columns.upper, out=bounds[1, :n])
        bounds[1, part.first : part.first + len(live)][~live] = 0.0
        np.minimum(bounds[0], bounds[1], out=bounds[0])
        shift = np.array([_shift(columns.upper, whole.upper), _shift(whole.lower, columns.lower)])
        return fitted(form, self._big_m, shift, bounds)

    def halved(self, part: ModelPart, limit: float, stop: Callable[[], bool]) -> list[ModelPart]:
        """What of a part may hold a point that is cheaper than a limit, after a number of halvings.

        Parameters
        ----------
        part : ModelPart
        limit : float
        stop : callable
            Whether to halve no more.
        """
        open_parts, ready = [part], list[ModelPart]()
        for _ in range(TIMES):
            if not open_parts or stop():
                break
            at = min(range(len(open_parts)), key=lambda k: open_parts[k].bound)
            narrowed = self._narrowed(open_parts.pop(at), limit)
            if narrowed is None:
                continue
            halves = None if self._is_small(narrowed) else self.halves(narrowed, limit)
            if halves is None:
                ready.append(replace(narrowed, is_ready=True))
            else:
                open_parts += halves
        return ready + open_parts

    def _narrowed(self, part: ModelPart, limit: float) -> ModelPart | None:
        """What of a part may hold a point that is cheaper than a limit; None where nothing does."""
        assert part.box is not None
        if part.box.limit <= limit:
            return part
        box = self._narrowing.within(part.box, limit)
        return None if box is None else _within(part, box)

    def halves(self, part: ModelPart, limit: float) -> list[ModelPart] | None:
        """A part's halves, without those that hold nothing cheaper than a limit; None where more halves are of no use.

        Parameters
        ----------
        part : ModelPart
        limit : float
        """
        assert part.box is not None
        boxes = [part.box] if part.in_vain >= MOST_IN_VAIN else self._narrowing.halves(part.box, limit)
        if any(box is part.box for box in boxes):
            return None
        return [_half(part, box) for box in boxes]

    def around(self, part: ModelPart, point: FloatArray, limit: float, share: float) -> ModelPart | None:
        """A box around a point, within that of a part; None where nothing in it is cheaper than a limit.

        Parameters
        ----------
        part : ModelPart
        point : (n_features,) float64
        limit : float
        share : float
            Part of the leaves that are in reach of it at most.
        """
        assert part.box is not None
        box = whole = self._narrowing.within(part.box, limit)
        scale = 1.0
        while whole is not None and box is not None and box.size > share * whole.size and scale > LEAST_SCALE:
            scale *= STEP
            box = self._narrowing.within(whole.towards(point, scale), limit)
        return None if box is None else replace(_within(part, box), seconds=SECONDS)


def _shift(low: FloatArray, high: FloatArray) -> FloatArray:
    """By how much bounds lie above others, which may be as infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(low == high, 0.0, high - low)


def _within(part: ModelPart, box: NumberBox) -> ModelPart:
    """A part within a box."""
    return replace(part, bound=max(part.bound, box.least), box=box)


def _half(part: ModelPart, box: NumberBox) -> ModelPart:
    """A part's half."""
    half = replace(_within(part, box), is_ready=False, seconds=SECONDS, choices=0)
    fewer = box.size <= FEWER * part.size
    return replace(half, size=box.size, in_vain=0) if fewer else replace(half, in_vain=part.in_vain + 1)

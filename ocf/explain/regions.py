"""Counterfactual regions: all boxes around a row in which the model gives the target, not only the nearest point.

Every region is a largest box on which each tree keeps its leaf, so the model's answer is one and the same everywhere
in it; the user's own model is asked once per box (box, (10), and algorithms 1 and 2 of its section V).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.ranges import ValueInterval, range_of_cells
from ocf.errors import ProblemError, TimeLimitError
from ocf.explain.region import CounterfactualRegion
from ocf.features.frames import PANDAS, FrameKind
from ocf.problem.targets import ProbabilityTarget
from ocf.solvers.box import NearestBoxes, PureBox
from ocf.solvers.result import SolverOptions
from ocf.support.amounts import real_number
from ocf.support.interruption import Interruption, is_interruption
from ocf.support.limits import within
from ocf.support.messages import counted
from ocf.support.pages import table_fragment
from ocf.support.wording import number

if TYPE_CHECKING:
    from ocf.cells.ranges import Range
    from ocf.features.feature import Feature
    from ocf.models.detector import Detector
    from ocf.models.user_model import UserModel
    from ocf.solvers.cell_form import Compiled


#: Boxes that the user's model is asked about at once.
BATCH = 256

#: What cut a list off that was stopped.
INTERRUPTION = "interruption"

#: Regions that a notebook shows.
SHOWN = 10


class Regions:
    """The regions of one row, the nearest first, found as they are asked for and kept.

    Iterating finds them one by one; `len`, `to_frame` and `plot` find all up to the limits, and `complete` then tells
    whether one of them cut the list off.

    Attributes
    ----------
    problem : Problem
    radius : float
    limit : int or None
    time_limit : float or None
        Seconds from the moment that the first region is asked for.
    """

    def __init__(
        self,
        alternatives: Sequence[CellProblem],
        model: UserModel,
        detector: Detector | None = None,
        *,
        radius: float,
        limit: int | None = None,
        time_limit: float | None = None,
        memory_limit: float | None = None,
        relaxations: Sequence[Callable[[], Compiled]] | None = None,
        frames: FrameKind = PANDAS,
        row: pd.DataFrame | None = None,
    ) -> None:
        if not real_number(radius) >= 0:
            raise ProblemError(f"the radius is a cost of at least 0, not {radius!r}")
        if limit is not None and not (isinstance(limit, int | np.integer) and real_number(limit) >= 1):
            raise ProblemError(f"the limit is a number of regions, at least 1, not {limit!r}")
        SolverOptions(time_limit=time_limit)  # refuses what is no limit
        self.problem = alternatives[0].problem
        self._alternatives, self._model, self._detector = alternatives, model, detector
        self._relaxations = repeat(None) if relaxations is None else relaxations
        self.radius, self.limit, self.time_limit = radius, limit, time_limit
        self._frames, self._row = frames, row
        self._memory, self._end = memory_limit, np.inf
        self._found: list[CounterfactualRegion] = []
        self._searches: list[NearestBoxes] = []
        self._source = self._search()
        self._next: CounterfactualRegion | None = None
        self._exhausted = self._interrupted = False
        self._error: BaseException | None = None

    @property
    def complete(self) -> bool | None:
        """Whether these are all regions within the radius; None while the search has not come to its end."""
        return not self.cut if self._exhausted else None

    @property
    def cut(self) -> str:
        """What cut the list off: ``"limit"``, ``"time limit"``, ``"interruption"``, …; empty where nothing has."""
        if self._next is not None:
            return "limit"
        if self._interrupted:
            return INTERRUPTION
        return next((search.stopped for search in self._searches if search.stopped), "")

    @property
    def complete_to(self) -> float:
        """Cost up to which no region is missing: the radius, where the list is complete."""
        if self._interrupted:  # the nearest come first
            return self._found[-1].cost if self._found else 0.0
        if not self._searches:
            return 0.0
        ends = [self.radius, *(search.complete_to for search in self._searches)]
        return min(ends if self._next is None else [*ends, self._next.cost])

    def stop(self) -> None:
        """Look for no more, as after Ctrl-C: what was found until then is all that there will be."""
        if not self._exhausted:
            self._exhausted = self._interrupted = True

    def __iter__(self) -> Iterator[CounterfactualRegion]:
        k = 0
        while k < len(self._found) or self._more():
            yield self._found[k]
            k += 1

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        state = {None: "so far", True: "all", False: f"cut off by the {self.cut}"}[self.complete]
        upto = f", none cheaper than {self.complete_to:.4g} is missing" if self.cut else ""
        return f"<Regions: {len(self._found)} ({state}{upto}), radius {self.radius:g}>"

    def _repr_html_(self) -> str:
        """The regions that are found so far; the nearest one is looked for where none is."""
        if not self._found:
            self._more()
        space, origin = self.problem.space, self.problem.origin
        rows = [
            (
                number(region.cost),
                f"{region.prediction}" + ("" if region.probability is None else f" ({number(region.probability)})"),
                ", ".join(region.departures(space, origin)) or "the row as it is",
            )
            for region in self._found[:SHOWN]
        ]
        rest = len(self._found) - len(rows)
        notes = [*([f"none cheaper than {number(self.complete_to)} is missing"] if self.cut else [])]
        notes += [f"the nearest {SHOWN} of {len(self._found)}; to_frame() lists all"] if rest else []
        what = {None: "found so far", True: "all there are", False: "cut off"}[self.complete]
        n = len(self._found)
        title = f"{counted(n, 'region')} within a cost of {number(self.radius)}, {what}"
        return table_fragment(title, ("cost", "prediction", "what the row must change"), rows, notes)

    def _more(self) -> bool:
        """Find one more region; False when there is none, or when a limit is reached."""
        if self._exhausted:
            return False
        if self._error is not None:  # what failed once must not look like the end
            raise self._error
        if self.time_limit is not None and not self._searches:
            self._end = time.perf_counter() + self.time_limit
        try:
            with Interruption(), within(self._end - time.perf_counter(), self._memory):
                region = next(self._source, None)
        except BaseException as error:
            if is_interruption(error):  # what was found until then can be had
                self.stop()
                raise KeyboardInterrupt from error
            self._error = error
            raise
        self._exhausted = region is None or len(self._found) == self.limit
        if self._exhausted:
            self._next = region
        elif region is not None:
            self._found.append(region)
        return not self._exhausted

    def _search(self) -> Iterator[CounterfactualRegion]:
        """Regions by increasing cost; the first come one by one, later ones in batches."""
        options = SolverOptions(time_limit=self.time_limit)
        self._searches = [
            NearestBoxes(cells, self.radius, options, None if relaxation is None else partial(_in_time, relaxation))
            for cells, relaxation in zip(self._alternatives, self._relaxations, strict=False)
        ]
        boxes = _once(merge(*self._searches, key=lambda box: box.cost))
        size = 1
        while batch := list(islice(boxes, size)):
            yield from self._confirmed(self._alternatives[0], batch)
            size = min(2 * size, BATCH)

    def _confirmed(self, cells: CellProblem, boxes: Sequence[PureBox]) -> Iterator[CounterfactualRegion]:
        """Regions of the boxes to which the user's model gives the target."""
        target, classes = self.problem.target, self.problem.ensemble.decision.classes
        points = np.array([_nearest(cells, box) for box in boxes])
        table = self.problem.space.to_frame(points)
        answers = self._model.decide(table)
        shown = None if self._model.probabilities is None else self._model.probabilities(table)
        met = target.met_by(answers, shown)
        if self._detector is not None:
            met &= self._detector.deep_enough(self._detector.measure(table)[0])
        for k in np.flatnonzero(met).tolist():
            of = list(target.indices) if isinstance(target, ProbabilityTarget) else [int(answers[k])]
            yield CounterfactualRegion(
                _ranges(cells, boxes[k]),
                boxes[k].cost,
                points[k],
                classes[int(answers[k])] if classes else float(answers[k]),
                None if shown is None else float(shown[k, of].max()),
            )

    # -- what users get ------------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Table of all regions, the nearest first.

        Returns
        -------
        DataFrame (n, n)
            For a numeric feature ``NAME_lowest`` and ``NAME_highest``, both ends inclusive; for other features
            ``NAME``, the tuple of its levels; the ends of dates and durations are such, or missing where there is none.
            ``NAME_without`` holds special values between the ends, where some region has such.
            Then ``cost, prediction`` and, if the model has it, ``probability``.
        """
        times = {f.name: f for f in self.problem.space.features if f.is_time}
        frame: pd.DataFrame = self._frames.native(pd.DataFrame([_record(region, times) for region in self]))
        return frame

    def points(self) -> pd.DataFrame:
        """The nearest point of each region in the user's columns, the nearest first."""
        coded = np.array([region.nearest for region in self]).reshape(-1, len(self.problem.space))
        table = self.problem.space.to_frame(coded)
        frame: pd.DataFrame = self._frames.native(table if self._row is None else _in_its_order(table, self._row))
        return frame

    def plot(self, x: str | None = None, y: str | None = None, ax: Any = None, *, held: bool = False) -> Any:
        """Projection of the regions on two features (box, figure 7), the row and the nearest counterfactual.

        Parameters
        ----------
        x, y : str, optional
            Names of features; by default those whose ranges differ most from region to region.
        ax : matplotlib Axes, optional
        held : bool
            Whether the other features are held at the row's own values, which leaves a section through the row; by
            default regions are projected, whatever their other features.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingDependencyError
            Without matplotlib.
        """
        from ocf.explain.region_plot import plot

        return plot(self, x, y, ax, held=held)


def _in_its_order(table: pd.DataFrame, row: pd.DataFrame) -> pd.DataFrame:
    """A table whose categories have the order that they have in a row."""
    dtypes = {}
    for column, dtype in row.dtypes.items():
        same = table[column].dtype if isinstance(dtype, pd.CategoricalDtype) else None
        if isinstance(same, pd.CategoricalDtype) and set(same.categories) == set(dtype.categories):
            dtypes[column] = dtype
    return table.astype(dtypes)


def refuse_without_boxes(cells: CellProblem, why: str) -> None:
    """Refuse a question whose regions are no boxes, or not known.

    Parameters
    ----------
    cells : CellProblem
    why : str
        Why nothing is proven through the user's preprocessing; empty where proofs hold.
    """
    if why:
        raise ProblemError(f"which regions there are is not known: {why}")
    cells.partition.refuse_hyperplanes("its regions are no boxes; ask explain for the cheapest point")
    if cells.coupling:
        raise ProblemError(f"with {cells.coupling} regions are no boxes: ask for them without")
    if cells.leaf_cost is not None:
        raise ProblemError("in a region all points are worth the same: ask for plausibility without a weight")


# -- boxes in the user's words ---------------------------------------------------------------------------------


def _in_time(relaxation: Callable[[], Compiled]) -> Compiled | None:
    """The formulation for LP bounds; None where the time does not suffice for it."""
    try:
        return relaxation()
    except TimeLimitError:
        return None


def _once(boxes: Iterable[PureBox]) -> Iterator[PureBox]:
    """Each box once: alternatives of a target overlap."""
    seen: set[bytes] = set()
    for box in boxes:
        if (key := box.leaves.tobytes()) not in seen:
            seen.add(key)
            yield box


def _nearest(cells: CellProblem, box: PureBox) -> FloatArray:
    """Coded row of a box's cheapest point."""
    choice = [own[np.argmin(cells.cost[cells.partition.cells_of(i)][own])] for i, own in enumerate(box.cells)]
    return cells.point(np.array(choice, np.int64))


def _ranges(cells: CellProblem, box: PureBox) -> dict[str, Range]:
    problem = cells.problem

    def held(i: int, feature: Feature) -> Range:
        own = float(problem.origin[i])
        if np.isfinite(own) and feature.is_special(own):  # a code stays
            return (feature.label(own),) if feature.discrete else ValueInterval(own, own)
        return range_of_cells(cells, feature, i, box.cells[i], own)

    return {feature.name: held(i, feature) for i, feature in enumerate(problem.space.features)}


def _record(region: CounterfactualRegion, times: Mapping[str, Feature]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, allowed in region.ranges.items():
        if isinstance(allowed, ValueInterval):
            ends: tuple[Any, ...] = (allowed.lowest, allowed.highest)
            if name in times:
                ends = tuple(times[name].label(end) if np.isfinite(end) else None for end in ends)
            out[f"{name}_lowest"], out[f"{name}_highest"] = ends
            if allowed.without:
                out[f"{name}_without"] = allowed.without
        else:
            out[name] = allowed
    out |= {"cost": region.cost, "prediction": region.prediction}
    return out if region.probability is None else out | {"probability": region.probability}

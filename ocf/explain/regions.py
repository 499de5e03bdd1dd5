"""Counterfactual regions: all boxes around a row in which the model gives the target, not only the nearest point.

Every region is a largest box on which each tree keeps its leaf, so the model's answer is one and the same everywhere
in it; the user's own model is asked once per box (box, (10), and algorithms 1 and 2 of its section V).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.ranges import ValueInterval, range_of_cells
from ocf.cells.reduction import reduce
from ocf.errors import ProblemError
from ocf.explain.region import CounterfactualRegion
from ocf.problem.targets import ProbabilityTarget
from ocf.solvers.box import PureBox, decompose

if TYPE_CHECKING:
    from ocf.cells.ranges import Range
    from ocf.models.user_model import UserModel


#: Boxes that the user's model is asked about at once.
BATCH = 256


class Regions:
    """The regions of one row, the nearest first, found as they are asked for and kept.

    Iterating finds them one by one; `len`, `to_frame` and `plot` find all up to the limit, and `complete` then tells
    whether it cut the list off.

    Attributes
    ----------
    problem : Problem
    radius : float
    limit : int or None
    """

    def __init__(
        self, alternatives: Sequence[CellProblem], model: UserModel, *, radius: float, limit: int | None = None
    ) -> None:
        if not radius >= 0:
            raise ProblemError(f"the radius is a cost of at least 0, not {radius}")
        if limit is not None and limit < 1:
            raise ProblemError(f"the limit is a number of regions, at least 1, not {limit}")
        self.problem = alternatives[0].problem
        self._model = model
        self.radius, self.limit = radius, limit
        self._found: list[CounterfactualRegion] = []
        self._source = self._search(alternatives)
        self._exhausted = self._cut = False

    @property
    def complete(self) -> bool | None:
        """Whether these are all regions within the radius; None while the search has not come to its end."""
        return not self._cut if self._exhausted else None

    def __iter__(self) -> Iterator[CounterfactualRegion]:
        k = 0
        while k < len(self._found) or self._more():
            yield self._found[k]
            k += 1

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        state = {None: "so far", True: "all", False: "cut off by the limit"}[self.complete]
        return f"<Regions: {len(self._found)} ({state}), radius {self.radius:g}>"

    def _more(self) -> bool:
        """Find one more region; False when there is none, or when the limit is reached."""
        if self._exhausted:
            return False
        region = next(self._source, None)
        self._exhausted = region is None or len(self._found) == self.limit
        self._cut = self._exhausted and region is not None
        if not self._exhausted and region is not None:
            self._found.append(region)
        return not self._exhausted

    def _search(self, alternatives: Sequence[CellProblem]) -> Iterator[CounterfactualRegion]:
        """Regions by increasing cost; the first come one by one, later ones in batches."""
        streams = [self._boxes(cells) for cells in alternatives]
        boxes = _whole(merge(*streams, key=lambda box: box.cost), alternatives[0])
        size = 1
        while batch := list(islice(boxes, size)):
            yield from self._confirmed(alternatives[0], batch)
            size = min(2 * size, BATCH)

    def _boxes(self, cells: CellProblem) -> Iterator[PureBox]:
        """Boxes of one alternative."""
        # leaves that no point within the radius uses; the cells beyond it stay, as they may be part of a region
        live = reduce(cells, self.radius * (1 + 1e-6) + 1e-9).cells.live
        return decompose(cells.with_(live=cells.live & live), radius=self.radius, target_only=True, nearest_first=True)

    def _confirmed(self, cells: CellProblem, boxes: Sequence[PureBox]) -> Iterator[CounterfactualRegion]:
        """Regions of the boxes to which the user's model gives the target."""
        target, classes = self.problem.target, self.problem.ensemble.decision.classes
        points = np.array([_nearest(cells, box) for box in boxes])
        table = self.problem.space.to_frame(points)
        answers = self._model.decide(table)
        shown = None if self._model.probabilities is None else self._model.probabilities(table)
        for k in np.flatnonzero(target.met_by(answers, shown)).tolist():
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
            ``NAME``, the tuple of its levels. Then ``cost, prediction`` and, if the model has it, ``probability``.
        """
        return pd.DataFrame([_record(region) for region in self])

    def points(self) -> pd.DataFrame:
        """The nearest point of each region in the user's columns, the nearest first."""
        coded = np.array([region.nearest for region in self]).reshape(-1, len(self.problem.space))
        return self.problem.space.to_frame(coded)

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


# -- boxes in the user's words ---------------------------------------------------------------------------------


def _whole(boxes: Iterable[PureBox], cells: CellProblem) -> Iterator[PureBox]:
    """The largest box with the leaves of each, once; of boxes in the same leaves the nearest must come first.

    The decomposition cuts a feature at the ends of all leaves that are left at that time, also of those that another
    feature rules out later, and alternatives of a target overlap.
    """
    part = cells.partition
    seen: set[bytes] = set()
    for box in boxes:
        if (key := box.leaves.tobytes()) in seen:
            continue
        seen.add(key)
        low, high = part.low[box.leaves].max(axis=0), part.high[box.leaves].min(axis=0)
        own = []
        for i in range(part.n_features):
            index = np.arange(part.widths[i])
            inside = cells.open[part.cells_of(i)] & (low[i] <= index) & (index <= high[i])
            if not part.ordered[i]:
                inside &= part.members_of(i)[box.leaves].all(axis=0)
            own.append(np.flatnonzero(inside))
        yield replace(box, cells=tuple(own))


def _nearest(cells: CellProblem, box: PureBox) -> FloatArray:
    """Coded row of a box's cheapest point."""
    choice = [own[np.argmin(cells.cost[cells.partition.cells_of(i)][own])] for i, own in enumerate(box.cells)]
    return cells.point(np.array(choice, np.int64))


def _ranges(cells: CellProblem, box: PureBox) -> dict[str, Range]:
    problem = cells.problem
    return {
        feature.name: range_of_cells(cells, feature, i, box.cells[i], problem.origin[i])
        for i, feature in enumerate(problem.space.features)
    }


def _record(region: CounterfactualRegion) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, allowed in region.ranges.items():
        if isinstance(allowed, ValueInterval):
            out[f"{name}_lowest"], out[f"{name}_highest"] = allowed.lowest, allowed.highest
        else:
            out[name] = allowed
    out |= {"cost": region.cost, "prediction": region.prediction}
    return out if region.probability is None else out | {"probability": region.probability}

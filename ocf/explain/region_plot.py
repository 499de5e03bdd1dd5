"""Regions as rectangles over two features (box, figure 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ocf.errors import ProblemError
from ocf.features.feature import Feature, grid_unit
from ocf.support.messages import counted
from ocf.support.optional import optional
from ocf.support.wording import plain_text

if TYPE_CHECKING:
    from ocf.cells.ranges import Range
    from ocf.explain.region import CounterfactualRegion
    from ocf.problem.problem import Problem


#: Half the width of a level or whole number.
_HALF = 0.45

#: Room around what is shown, as a share of it.
_MARGIN = 0.06


class DrawnRegions(Protocol):
    """What is drawn: regions of one problem, nearest first."""

    problem: Problem
    radius: float

    @property
    def complete(self) -> bool | None:
        """Whether these are all regions within the radius."""

    def __iter__(self) -> Iterator[CounterfactualRegion]:
        """The regions, nearest first."""


def plot(
    regions: DrawnRegions, x: str | None = None, y: str | None = None, ax: Any = None, *, held: bool = False
) -> Any:
    """Draw regions; see `ocf.explain.regions.Regions.plot`.

    Parameters
    ----------
    regions : DrawnRegions
    x, y, ax, held
        As in `ocf.explain.regions.Regions.plot`.
    """
    plt = optional("matplotlib.pyplot", "plot", "Regions.plot")
    from matplotlib.collections import PolyCollection

    places = _axes(regions, x, y)
    features = [regions.problem.space.features[i] for i in places]
    found = [r for r in regions if not held or _holds_the_row(r, regions, places)]
    marks = [regions.problem.origin[places], *(r.nearest[places] for r in found[:1])]
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 5), layout="constrained")
    views = [_view(f, [r.ranges[f.name] for r in found], [m[k] for m in marks]) for k, f in enumerate(features)]
    corners, costs = [], []
    for region in reversed(found):  # the nearest on top
        for left, right in _spans(features[0], region.ranges[features[0].name], views[0]):
            for low, high in _spans(features[1], region.ranges[features[1].name], views[1]):
                corners.append([(left, low), (right, low), (right, high), (left, high)])
                costs.append(region.cost)
    if corners:
        drawn = PolyCollection(corners, array=np.array(costs), cmap="viridis_r", edgecolor="white", linewidth=0.4)
        ax.add_collection(drawn)
        ax.figure.colorbar(drawn, ax=ax, label="cost of the region's nearest point")
    ax.plot(*marks[0], "o", color="black", markeredgecolor="white", markersize=9, label="the row")
    if found and found[0].cost > 0:
        ax.plot(*marks[1], "*", color="crimson", markeredgecolor="white", markersize=15, label="nearest counterfactual")
    for axis, feature, set_limits, view in zip(
        (ax.xaxis, ax.yaxis), features, (ax.set_xlim, ax.set_ylim), views, strict=True
    ):
        axis.set_label_text(plain_text(feature.name))
        if feature.discrete:
            axis.set_ticks(range(len(feature.levels)), [plain_text(str(level)) for level in feature.levels])
        set_limits(*view)
    ax.set_title(_title(regions, len(found), held), loc="left", fontsize="medium")
    ax.legend(loc="best")
    return ax


def _title(regions: DrawnRegions, n: int, held: bool) -> str:
    what = "at the row's other values" if held else "projected on two features"
    cut = "" if regions.complete else "; the limit cut the list off"
    return f"{counted(n, 'region')} within a cost of {regions.radius:g}, {what}{cut}"


def _axes(regions: DrawnRegions, x: str | None, y: str | None) -> list[int]:
    """Positions of the two features: the given ones, else those whose ranges differ most from region to region."""
    space = regions.problem.space
    given = [None if name is None else space.index(name) for name in (x, y)]
    usable = [i for i in range(len(space)) if not np.isnan(regions.problem.origin[i])]
    for i in given:
        if i is not None and i not in usable:
            raise ProblemError(f"{space.names[i]!r} is missing in this row: plot other features")
    variety = {i: len({str(r.ranges[space.names[i]]) for r in regions}) for i in usable if i not in given}
    others = iter(sorted(variety, key=lambda i: -variety[i]))
    places = [next(others, None) if i is None else i for i in given]
    if None in places or places[0] == places[1]:
        raise ProblemError("a plot needs two different features")
    return [i for i in places if i is not None]


def _holds_the_row(region: CounterfactualRegion, regions: DrawnRegions, places: Sequence[int]) -> bool:
    """Whether a region holds the row's own values of all features but those that are plotted."""
    problem = regions.problem
    rest = [i for i in range(len(problem.space)) if i not in places and not np.isnan(problem.origin[i])]
    return all(
        _holds(region.ranges[f.name], f.label(problem.origin[i]))
        for i, f in ((i, problem.space.features[i]) for i in rest)
    )


def _holds(allowed: Range, value: Any) -> bool:
    return allowed is not None and value in allowed


def _spans(feature: Feature, allowed: Range, view: tuple[float, float]) -> list[tuple[float, float]]:
    """Stretches of an axis that a range takes up, cut to what is shown."""
    if isinstance(allowed, tuple):
        centres = [float(feature.codes[level]) for level in allowed]
        spans = [(c - _HALF, c + _HALF) for c in centres]
    else:
        assert allowed is not None
        room = _HALF * grid_unit(feature)
        spans = [(allowed.lowest - room, allowed.highest + room)]
    return [(max(a, view[0]), min(b, view[1])) for a, b in spans]


def _view(feature: Feature, allowed: Sequence[Range], marks: Sequence[float]) -> tuple[float, float]:
    """What an axis shows: all levels, or all finite ends and the marks, with room around them."""
    if feature.discrete:
        return -0.6, len(feature.levels) - 0.4
    ends = [end for span in allowed if not isinstance(span, tuple) and span for end in (span.lowest, span.highest)]
    shown = [v for v in (*ends, *map(float, marks)) if np.isfinite(v)]
    low, high = min(shown), max(shown)
    room = (high - low) * _MARGIN or max(abs(low), 1.0) * _MARGIN
    return low - room, high + room

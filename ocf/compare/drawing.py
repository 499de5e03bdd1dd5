"""How the figures of a report are drawn: axes, lines and marks in the colours of its methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocf.support.optional import optional
from ocf.support.svg import inline_svg

#: Points of a figure: small enough that 13-point letters can be read on a telephone.
WIDTH, HEIGHT, LETTERS = 420, 280, 13

#: Colours of the methods before they repeat; the page has another of each for the dark.
COLOURS = (
    "#4477aa",
    "#cc3311",
    "#117733",
    "#aa6600",
    "#882288",
    "#0090a8",
    "#d0427e",
    "#667700",
    "#444f9e",
    "#777777",
)

#: Dashes of the methods' lines, so that colour is not all that tells them apart.
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (9, 3),
    (3, 3),
    (9, 3, 2, 3),
    (14, 3),
    (1, 4),
    (5, 2, 1, 2),
    (9, 6),
    (3, 6),
    (12, 3, 2, 3, 2, 3),
)

#: Dashes of a bound, and of limits and diagonals.
BOUND, EDGE = (1.5, 2.5), (2, 3)

RULE, FAINT = "#d9dce0", "#5c6066"

#: What the page calls the colours.
VARIABLES = {RULE: "var(--rule)", FAINT: "var(--faint)"} | {c: f"var(--m{k})" for k, c in enumerate(COLOURS)}

#: Without a layout that the user's own settings would put in.
UNTOUCHED = {"figure.autolayout": False, "figure.constrained_layout.use": False}


@dataclass(frozen=True)
class Axis:
    """One axis: what it says, the range it shows, and whether it is logarithmic.

    Attributes
    ----------
    label : str
    low, high : float
        Above 0 if `log`.
    log : bool
    ticks : tuple of (value, text), optional
        By default round numbers.
    """

    label: str
    low: float
    high: float
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()

    def inside(self, values: Sequence[float]) -> Any:
        """The values, those outside put at the ends."""
        return np.clip(np.asarray(values, np.float64), self.low, self.high)


class Figure:
    """A plot that grows by its methods.

    Parameters
    ----------
    title : str
        For who cannot see it.
    x, y : Axis

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """

    def __init__(self, title: str, x: Axis, y: Axis) -> None:
        figure = optional("matplotlib.figure", "report", "report.html")
        self.title, self.x, self.y = title, x, y
        self._figure = figure.Figure(figsize=(WIDTH / 72, HEIGHT / 72), layout="constrained")
        self._ax = self._figure.subplots()
        self._tooltips: dict[str, list[str]] = {}
        self._ax.set(xscale=_scale(x), yscale=_scale(y), xlim=_limits(x), ylim=_limits(y))
        _set_up(self._ax.xaxis, x)
        _set_up(self._ax.yaxis, y)
        self._ax.spines[["top", "right"]].set_visible(False)
        self._ax.spines[["bottom", "left"]].set_color(FAINT)
        self._ax.tick_params(bottom=False, left=False, labelsize=LETTERS)
        self._ax.grid(color=RULE, linewidth=1)
        self._ax.set_axisbelow(True)

    def line(self, xs: Sequence[float], ys: Sequence[float], style: int, *, dashed: bool = False) -> None:
        """A method's line through points; a bound's is dotted.

        Parameters
        ----------
        xs, ys : sequences of float, of one length
            In the axes' units; those outside are put at the ends.
        style : int
            Number of the method, which gives the colour and the dashes; numbers past the last begin again.
        dashed : bool
            Whether it is a bound's.
        """
        kind = {"linewidth": 1.5, "dashes": _scaled(BOUND, 1.5)} if dashed else {"linewidth": 2, **_dashes(style)}
        self._ax.plot(self.x.inside(xs), self.y.inside(ys), color=_colour(style), **kind)

    def steps(self, xs: Sequence[float], ys: Sequence[float], style: int, *, dashed: bool = False) -> None:
        """A line that stays level until the next x.

        Parameters
        ----------
        xs, ys : sequences of float, of one length
            `ys` hold from their x to the next; those outside the axes are put at the ends.
        style : int
            Number of the method, which gives the colour and the dashes; numbers past the last begin again.
        dashed : bool
            Whether it is a bound's.
        """
        self.line(np.repeat(xs, 2)[1:].tolist(), np.repeat(ys, 2)[:-1].tolist(), style, dashed=dashed)

    def band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], style: int) -> None:
        """The area between two lines.

        Parameters
        ----------
        xs : sequence of float
        low, high : sequences of float
            Where the area begins and ends at each x.
        style : int
            Number of the method, which gives the colour; numbers past the last begin again.
        """
        there, back = self.x.inside(xs), self.y.inside([*high, *reversed(low)])
        self._ax.fill([*there, *reversed(there)], back, color=_colour(style), alpha=0.13, linewidth=0)

    def dots(
        self, xs: Sequence[float], ys: Sequence[float], style: int, words: Sequence[str], *, hollow: bool = False
    ) -> None:
        """Marks, with what each stands for.

        Parameters
        ----------
        xs, ys : sequences of float, of one length
            In the axes' units; those outside are put at the ends.
        style : int
            Number of the method, which gives the colour; numbers past the last begin again.
        words : sequence of str
            One text a mark.
        hollow : bool
            Whether only the outlines of the marks are drawn.
        """
        if not len(xs):
            return
        colour = _colour(style)
        faces = {"facecolors": "none", "linewidths": 1.5} if hollow else {"alpha": 0.75, "linewidths": 0}
        marks = self._ax.scatter(
            self.x.inside(xs), self.y.inside(ys), s=49, marker="8", edgecolors=colour, **{"color": colour} | faces
        )
        marks.set_paths(marks.get_paths() * len(xs))  # one path a mark, which can bear words
        marks.set_antialiaseds([True, True])  # or a single mark would be drawn by reference
        marks.set_gid(f"marks{len(self._tooltips)}")
        marks.set_zorder(3)
        self._tooltips[marks.get_gid()] = list(words)

    def edge(self, places: Sequence[tuple[float, float]]) -> None:
        """A thin line of the frame, such as a diagonal or a limit."""
        xs, ys = zip(*places, strict=True)
        self._ax.plot(self.x.inside(xs), self.y.inside(ys), color=FAINT, linewidth=1, dashes=EDGE)

    def render(self) -> str:
        """The figure as an SVG element."""
        # laid out once, which makes the lines of the grid too; left in place, the layout is found anew at each drawing,
        # and any layout, "none" among them, has the figure drawn once more to no purpose
        self._figure.get_layout_engine().execute(self._figure)
        with optional("matplotlib", "report", "report.html").rc_context(UNTOUCHED):
            self._figure.set_layout_engine(None)
        for artist in self._figure.findobj():
            artist.set_clip_on(False)  # all is inside, and a clip would be one more name in the page
        return inline_svg(self._figure, self.title, colours=VARIABLES, tooltips=self._tooltips)


def _scale(axis: Axis) -> str:
    return "log" if axis.log else "linear"


def _limits(axis: Axis) -> tuple[float, float]:
    """Where an axis begins and ends: a little wider where it holds one value only."""
    room = 0.5 * (axis.low == axis.high)
    return axis.low - room, axis.high + room


def _set_up(axis: Any, shown: Axis) -> None:
    ticker = optional("matplotlib.ticker", "report", "report.html")
    axis.set_label_text(shown.label, fontsize=LETTERS)
    if shown.log:
        axis.set_major_locator(_log_locator(shown.low, shown.high))
    axis.set_minor_locator(ticker.NullLocator())
    if shown.ticks:
        values, words = zip(*apart(shown, across=axis.axis_name == "x"), strict=True)
        axis.set_ticks(values, words)
    else:
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))


def apart(axis: Axis, *, across: bool) -> list[tuple[float, str]]:
    """The marks of an axis whose words do not run into each other, the last ones first served.

    Parameters
    ----------
    axis : Axis
        With marks, in rising order.
    across : bool
        Whether the words stand beside each other, as along the x axis, and not one above the other.
    """
    scale: Callable[[float], float] = math.log if axis.log else float
    span = (scale(axis.high) - scale(axis.low)) or 1.0
    kept: list[tuple[float, str]] = []
    for value, text in reversed(axis.ticks):
        room = LETTERS * (0.3 * (len(text) + len(kept[-1][1]) + 2) if across else 1.3) if kept else 0.0
        length = WIDTH if across else HEIGHT
        if not kept or (scale(kept[-1][0]) - scale(value)) / span * 0.85 * length >= room:
            kept.append((value, text))
    return kept[::-1]


def _log_locator(low: float, high: float) -> Any:
    ticker = optional("matplotlib.ticker", "report", "report.html")
    return ticker.LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,), numticks=7)


def decades(low: float, high: float) -> list[float]:
    """Round numbers of a logarithmic axis within a range.

    Parameters
    ----------
    low, high : float
        Above 0; both may be among the numbers.
    """
    return [v for v in _log_locator(low, high).tick_values(low, high).tolist() if low <= v <= high]


def _colour(style: int) -> str:
    return COLOURS[style % len(COLOURS)]


def _dashes(style: int) -> dict[str, Any]:
    dashes = DASHES[style % len(DASHES)]
    return {"dashes": _scaled(dashes, 2)} if dashes else {}


def _scaled(dashes: Sequence[float], width: float) -> tuple[float, ...]:
    """Dashes in widths of the line, as matplotlib takes them."""
    return tuple(length / width for length in dashes)


def padded(values: Sequence[float], *, log: bool, share: float = 0.04) -> tuple[float, float]:
    """Range that holds all values with some room around them.

    Parameters
    ----------
    values : sequence of float
        At least one; above 0 if `log`.
    log : bool
        Whether the axis is logarithmic, and so the room.
    share : float
        Room at each end, as a share of what the values span.
    """
    low, high = min(values), max(values)
    go: Callable[[float], float] = math.log10 if log else float
    back: Callable[[float], float] = (lambda v: 10.0**v) if log else float
    room = (go(high) - go(low)) * share or (0.3 if log else abs(high) * 0.1 or 1.0)
    return back(go(low) - room), back(go(high) + room)

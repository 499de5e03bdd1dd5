"""Plots as inline SVG that takes its colours from the page, so that it follows light and dark.

Classes instead of colours: ``m0`` … ``m9`` are the methods', ``grid``, ``axis`` and ``edge`` the frame's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

#: Units of a figure: small enough that 12-unit letters can be read on a telephone.
WIDTH, HEIGHT = 420, 280

#: Room for the labels of the axes.
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 10, 42

#: How many methods have a colour and dash pattern of their own before they repeat.
STYLES = 10


@dataclass(frozen=True)
class Axis:
    """One axis: what it says, the range it shows, and whether it is logarithmic.

    Attributes
    ----------
    label : str
    low, high : float
        Made a little wider where they are equal; above 0 if `log`.
    log : bool
    ticks : tuple of (value, text), optional
        By default round numbers.
    """

    label: str
    low: float
    high: float
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()

    def at(self, value: float) -> float:
        """Place of a value, from 0 at `low` to 1 at `high`; values outside are put at the ends."""
        low, high, v = (math.log10(x) if self.log else x for x in (self.low, self.high, max(value, self._least)))
        share = (v - low) / (high - low) if high > low else 0.5
        return min(max(share, 0.0), 1.0)

    @property
    def _least(self) -> float:
        return self.low if self.log else -math.inf

    def marks(self) -> list[tuple[float, str]]:
        """Ticks with their texts."""
        if self.ticks:
            return list(self.ticks)
        values = _decades(self.low, self.high) if self.log else _round_steps(self.low, self.high)
        return [(v, f"{v:g}") for v in values]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        step = math.ceil((last - first + 1) / 6)
        return [10.0**k for k in range(first, last + 1, step)]
    fine = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
    return [v for v in fine if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]


def _round_steps(low: float, high: float) -> list[float]:
    if high <= low:
        return [low]
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass
class Figure:
    """A plot that grows by its methods and is turned into SVG by `render`.

    Attributes
    ----------
    title : str
        Read to those who cannot see it.
    x, y : Axis
    """

    title: str
    x: Axis
    y: Axis
    parts: list[str] = field(default_factory=list)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Place in the units of the figure."""
        return (
            LEFT + self.x.at(x) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - self.y.at(y) * (HEIGHT - TOP - BOTTOM),
        )

    def line(self, xs: Sequence[float], ys: Sequence[float], style: int, *, dashed: bool = False) -> None:
        """A line through points."""
        self._path([self.point(x, y) for x, y in zip(xs, ys, strict=True)], style, dashed)

    def steps(self, xs: Sequence[float], ys: Sequence[float], style: int, *, dashed: bool = False) -> None:
        """A line that keeps the value of each point until the next."""
        places: list[tuple[float, float]] = []
        for x, y in zip(xs, ys, strict=True):
            px, py = self.point(x, y)
            if places:
                places.append((px, places[-1][1]))
            places.append((px, py))
        self._path(places, style, dashed)

    def _path(self, places: Sequence[tuple[float, float]], style: int, dashed: bool) -> None:
        if places:
            data = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
            self.parts.append(f'<path class="line m{style % STYLES}{" bound" if dashed else ""}" d="{data}"/>')

    def band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], style: int) -> None:
        """The area between two lines."""
        there = [self.point(x, y) for x, y in zip(xs, high, strict=True)]
        back = [self.point(x, y) for x, y in zip(xs, low, strict=True)][::-1]
        data = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in there + back) + "Z"
        self.parts.append(f'<path class="band m{style % STYLES}" d="{data}"/>')

    def dot(self, x: float, y: float, style: int, title: str = "", *, hollow: bool = False) -> None:
        """A mark, with what it stands for."""
        px, py = self.point(x, y)
        words = f"<title>{escape(title)}</title>" if title else ""
        kind = "ring" if hollow else "dot"
        self.parts.append(
            f'<circle class="{kind} m{style % STYLES}" cx="{px:.1f}" cy="{py:.1f}" r="3.5">{words}</circle>'
        )

    def edge(self, places: Sequence[tuple[float, float]]) -> None:
        """A thin line of the frame, such as a diagonal or a limit."""
        data = "M" + "L".join("{:.1f} {:.1f}".format(*self.point(x, y)) for x, y in places)
        self.parts.append(f'<path class="edge" d="{data}"/>')

    def render(self) -> str:
        """The figure as an SVG element."""
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(self.title)}</title>'
            + self._frame()
            + "".join(self.parts)
            + "</svg>"
        )

    def _frame(self) -> str:
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        out = []
        for value, text in self.x.marks():
            px, _ = self.point(value, self.y.low)
            out.append(f'<path class="grid" d="M{px:.1f} {TOP}V{bottom}"/>')
            out.append(f'<text x="{px:.1f}" y="{bottom + 15}" text-anchor="middle">{escape(text)}</text>')
        for value, text in self.y.marks():
            _, py = self.point(self.x.low, value)
            out.append(f'<path class="grid" d="M{LEFT} {py:.1f}H{right}"/>')
            out.append(f'<text x="{LEFT - 5}" y="{py + 4:.1f}" text-anchor="end">{escape(text)}</text>')
        out.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>')
        middle = (TOP + bottom) / 2
        out.append(
            f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(self.x.label)}</text>'
            f'<text transform="translate(11 {middle:.0f}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.y.label)}</text>"
        )
        return "".join(out)


def key(style: int) -> str:
    """Sample of a method's line, for a legend."""
    return f'<svg class="key" viewBox="0 0 26 10"><path class="line m{style % STYLES}" d="M1 5H25"/></svg>'


def padded(values: Sequence[float], *, log: bool, share: float = 0.04) -> tuple[float, float]:
    """Range that holds all values with some room around them."""
    low, high = min(values), max(values)
    go: Callable[[float], float] = math.log10 if log else float
    back: Callable[[float], float] = (lambda v: 10.0**v) if log else float
    room = (go(high) - go(low)) * share or (0.3 if log else abs(high) * 0.1 or 1.0)
    return back(go(low) - room), back(go(high) + room)

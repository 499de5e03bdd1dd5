"""The figures of a report: what is drawn, and what has to be said about it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from ocf.compare import drawing, statistics
from ocf.compare.frame import Comparison

#: Time is drawn against leaves where the largest model has so many times the leaves of the smallest.
DECADES = 30

#: Most instances whose bounds over time are drawn, and most pairs of methods.
MOST_INSTANCES, MOST_PAIRS = 4, 6


@dataclass(frozen=True)
class Chart:
    """A figure with its words.

    Attributes
    ----------
    name : str
        Heading.
    caption : str
        What the reader must know to read it.
    svg : str
    legend : tuple of (style, text)
    """

    name: str
    caption: str
    svg: str
    legend: tuple[tuple[int, str], ...] = ()


def charts(c: Comparison) -> list[Chart]:
    """All figures for which there are data."""
    found: list[Chart] = []
    if len(c.complete) and len(c.methods) > 1:
        found.append(_profile(c))
    if np.isfinite(c.times.to_numpy()).any():
        found.append(_cactus(c))
    found += _scaling(c, "trees")
    found += _scaling(c, "depth")
    found += _against_leaves(c)
    found += _integrals(c)
    found += _over_time(c)
    return found + list(_pairs(c))


def _legend(c: Comparison) -> tuple[tuple[int, str], ...]:
    return tuple(enumerate(c.methods))


def _seconds(label: str, values: list[float], limit: float) -> drawing.Axis:
    low = max(min([*values, limit]), statistics.RESOLUTION)
    return drawing.Axis(label, *drawing.padded([low, limit], log=True), log=True)


def _profile(c: Comparison) -> Chart:
    times = c.complete.to_numpy()
    tau, share = statistics.profile(times)
    last = max(tau[-1] * 1.15, 2.0)
    figure = drawing.Figure(
        "Performance profile", drawing.Axis("τ: times the fastest", 1.0, last, log=True), _share_axis()
    )
    for k in range(len(c.methods)):
        figure.steps([*tau, last], [*share[:, k], share[-1, k]], k)
    unsolved = int(np.isinf(times).all(axis=1).sum())
    failures = ", ".join(f"{m} {int(np.isinf(times[:, k]).sum())}" for k, m in enumerate(c.methods))
    caption = (
        f"Share of the {len(times)} instances that a method solves within τ times the fastest method's time "
        f"(Dolan and Moré). τ runs from 1 to {last:.3g}, past the largest ratio that occurs, {tau[-1]:.3g}; times "
        f"below {1000 * statistics.RESOLUTION:g} ms count as equal. Failures, which no τ reaches: {failures}; "
        f"{unsolved} instances that nobody solved stay in the denominator."
    )
    return Chart("Performance profile", caption, figure.render(), _legend(c))


def _share_axis() -> drawing.Axis:
    marks = tuple((k / 5, f"{20 * k} %") for k in range(6))
    return drawing.Axis("share of instances", 0.0, 1.0, ticks=marks)


def _cactus(c: Comparison) -> Chart:
    curves = [statistics.cactus(c.times[m].dropna()) for m in c.methods]
    most = max(len(curve) for curve in curves)
    everything = [float(v) for curve in curves for v in curve]
    figure = drawing.Figure(
        "Cactus plot", drawing.Axis("instances solved", 0, most), _seconds("seconds for each", everything, c.limit)
    )
    figure.edge([(0, c.limit), (most, c.limit)])
    for k, curve in enumerate(curves):
        if len(curve):
            figure.steps([0, *range(1, len(curve) + 1)], [curve[0], *curve], k)
    total = len(c.times)
    caption = (
        f"How many of the {total} instances a method solves when each may take so long. The line on top is the limit, "
        f"{c.limit:g} s; further right and lower is better."
    )
    return Chart("Cactus plot", caption, figure.render(), _legend(c))


# -- scaling ---------------------------------------------------------------------------------------------------


def _scaling(c: Comparison, by: str) -> list[Chart]:
    """Time against the number of trees or their depth, where the suite varies it and holds the rest."""
    other = "depth" if by == "trees" else "trees"
    runs = c.runs[c.runs[by].notna() & c.runs["status"].ne("wrong")]
    held = ["data", "family", "seed", "ask", other]
    counts = runs.groupby(held)[by].transform("nunique")
    runs = runs[counts > 1]
    if runs.empty:
        return []
    runs = runs.assign(t=statistics.capped(runs["seconds"].where(runs["status"] == "ok", np.inf), c.limit))
    values = sorted(runs[by].unique())
    curves = []
    for method in c.methods:
        groups = runs[runs["method"] == method].groupby(by)["t"]
        points = [(float(str(v)), statistics.geometric_mean_interval(t, c.shift)) for v, t in groups]
        curves.append(points)
    lows = [max(i.low, statistics.RESOLUTION) for curve in curves for _, i in curve]
    axis = drawing.Axis(by, *drawing.padded(values, log=True), log=True, ticks=tuple((v, f"{v:g}") for v in values))
    figure = drawing.Figure(f"Time against {by}", axis, _seconds("seconds", lows, c.limit))
    figure.edge([(axis.low, c.limit), (axis.high, c.limit)])
    for k, curve in enumerate(curves):
        xs = [v for v, _ in curve]
        figure.band(xs, [i.low for _, i in curve], [i.high for _, i in curve], k)
        figure.line(xs, [i.value for _, i in curve], k)
        words = [f"{c.methods[k]}, {by} {v:g}: {i.value:.3g} s, {i.low:.3g} to {i.high:.3g}" for v, i in curve]
        figure.dots(xs, [i.value for _, i in curve], k, words)
    per_value = runs.groupby(by)["instance"].nunique()
    numbers = ", ".join(f"{n} at {v:g}" for v, n in per_value.items())
    caption = (
        f"Shifted geometric mean of the time (shift {c.shift:g} s) with its bootstrap interval at 95 %, everything but "
        f"{by} held. Unsolved runs count as the limit, {c.limit:g} s. Instances: {numbers}."
    )
    return [Chart(f"Scaling with {by}", caption, figure.render(), _legend(c))]


def _against_leaves(c: Comparison) -> list[Chart]:
    """Time of each run against the leaves of its model, with a power of them fitted, where these span decades."""
    runs = c.runs[c.runs["status"].ne("wrong")]
    leaves = runs.groupby(["data", "model"])["leaves"].transform("median")  # a run that was killed tells of none
    times = statistics.capped(runs["seconds"].where(runs["status"] == "ok", np.inf), c.limit)
    runs = runs.assign(leaves=leaves, t=np.maximum(times, statistics.RESOLUTION)).dropna(subset="leaves")
    if runs.empty or runs["leaves"].max() < DECADES * runs["leaves"].min():
        return []
    axis = drawing.Axis("leaves", *drawing.padded(runs["leaves"].tolist(), log=True), log=True)
    figure = drawing.Figure("Time against leaves", axis, _seconds("seconds", runs["t"].tolist(), c.limit))
    figure.edge([(axis.low, c.limit), (axis.high, c.limit)])
    said = []
    for k, method in enumerate(c.methods):
        own = runs[runs["method"] == method]
        for solved in (True, False):
            marks = own[(own["status"] == "ok") == solved]
            words = [f"{m}, row {r}: {_time(t)}" for m, r, t in marks[["model", "position", "t"]].to_numpy()]
            figure.dots(marks["leaves"].tolist(), marks["t"].tolist(), k, words, hollow=not solved)
        if own["leaves"].nunique() > 1:
            slope, height = np.polyfit(np.log(own["leaves"]), np.log(own["t"]), 1).tolist()
            ends = [float(own["leaves"].min()), float(own["leaves"].max())]
            figure.line(ends, [math.exp(height) * v**slope for v in ends], k)
            said.append(f"{method} {slope:.2f}")
    caption = (
        f"One mark a run, hollow where it was not solved and counts as the limit, {c.limit:g} s; both axes are "
        f"logarithmic. Lines are powers of the number of leaves, fitted by least squares of the logarithms. Exponents: "
        f"{', '.join(said)}. Models: {runs['model'].nunique()}, of {runs['leaves'].min():,.0f} to "
        f"{runs['leaves'].max():,.0f} leaves."
    )
    return [Chart("Scaling with leaves", caption, figure.render(), _legend(c))]


# -- over time -------------------------------------------------------------------------------------------------


def primal_integrals(c: Comparison) -> pd.DataFrame:
    """Primal integral in seconds, one row an instance with a known solution and one column a method."""
    runs = c.runs[c.runs["instance"].isin(c.best.index)]
    best = runs["instance"].map(c.best)
    values = [
        statistics.primal_integral(history, cost, c.limit) for history, cost in zip(runs["history"], best, strict=True)
    ]
    return runs.assign(v=values).pivot(index="instance", columns="method", values="v").reindex(columns=c.methods)


def _integrals(c: Comparison) -> list[Chart]:
    table = primal_integrals(c).dropna()
    if table.empty:
        return []
    least = statistics.RESOLUTION
    curves = [np.sort(np.maximum(table[m], least)) for m in c.methods]
    figure = drawing.Figure(
        "Primal integral",
        _seconds("primal integral, seconds", [float(curve[0]) for curve in curves], c.limit),
        _share_axis(),
    )
    for k, curve in enumerate(curves):
        shares = np.arange(1, len(curve) + 1) / len(curve)
        figure.steps([figure.x.low, *curve, figure.x.high], [0.0, *shares, 1.0], k)
    caption = (
        f"Share of the {len(table)} instances with a known solution whose primal integral (Berthold) is at most so "
        f"large: the gap to the best known cost, from 1 to 0, integrated over the {c.limit:g} s. A run that was killed "
        "counts in full. Further left is better."
    )
    return [Chart("Primal integral", caption, figure.render(), _legend(c))]


def _over_time(c: Comparison) -> Iterator[Chart]:
    """Bound and incumbent over time, on the instances that took the methods longest."""
    traced = c.runs[c.runs["history"].map(len) > 0]
    times = traced.assign(t=traced["seconds"].clip(upper=c.limit)).groupby("instance")["t"].median()
    for instance in times.sort_values(ascending=False).index[:MOST_INSTANCES]:
        runs = traced[traced["instance"] == instance]
        chart = _trace(c, runs)
        if chart:
            yield chart


def _trace(c: Comparison, runs: pd.DataFrame) -> Chart | None:
    histories: dict[str, list[tuple[float, ...]]] = {
        method: [tuple(map(float, point)) for point in history]
        for method, history in zip(runs["method"], runs["history"], strict=True)
    }
    costs = [v for h in histories.values() for _, bound, found in h for v in (bound, found) if 0 <= v < math.inf]
    if not costs:
        return None
    first = runs.iloc[0]
    ends = {method: min(t, c.limit) for method, t in zip(runs["method"], runs["seconds"].tolist(), strict=True)}
    starts = [max(h[0][0], statistics.RESOLUTION) for h in histories.values()]
    x = drawing.Axis("seconds", *drawing.padded([min(starts), max([*ends.values(), max(starts)])], log=True), log=True)
    top = min(max(costs), 3 * c.best.get(first.instance, math.inf))
    figure = drawing.Figure("Bound and incumbent over time", x, drawing.Axis("cost", 0.0, top * 1.05 or 1.0))
    for k, method in enumerate(c.methods):
        history = histories.get(method, [])
        for part, dashed in ((1, True), (2, False)):
            known = [(p[0], p[part]) for p in history if 0 <= p[part] < math.inf]
            if known:
                xs, ys = zip(*known, strict=True)
                figure.steps([*xs, max(ends[method], xs[-1])], [*ys, ys[-1]], k, dashed=dashed)
    caption = (
        f"{first.model}, {first.ask}: cost of the best solution (full line) and proven bound (dotted) while the "
        "methods run. Costs above the figure are drawn at its edge."
    )
    name = f"Bound and solution over time: {first.data}, row {first.position}"
    return Chart(name, caption, figure.render(), _legend(c))


# -- pairs -----------------------------------------------------------------------------------------------------


def _pairs(c: Comparison) -> Iterator[Chart]:
    """Scatter of the times of two methods, those that solve most first."""
    table = c.complete
    solved = np.isfinite(table).sum().sort_values(ascending=False, kind="stable")
    order = [m for m in solved.index if solved[m] > 0]
    for a, b in list(combinations(order, 2))[:MOST_PAIRS]:
        yield _scatter(c, table[[a, b]], a, b)


def _scatter(c: Comparison, table: pd.DataFrame, a: str, b: str) -> Chart:
    finite = [v for v in table.to_numpy().ravel().tolist() if math.isfinite(v)]
    low = max(min([*finite, c.limit / 10]), statistics.RESOLUTION)
    edge = c.limit * (c.limit / low) ** 0.08
    lowest = low / (c.limit / low) ** 0.04
    marks = (*((v, f"{v:g}") for v in drawing.decades(lowest, c.limit / 1.3)), (edge, "none"))

    def axis(name: str) -> drawing.Axis:
        return drawing.Axis(f"{name}, seconds", lowest, edge * 1.05, log=True, ticks=marks)

    figure = drawing.Figure(f"{a} against {b}", axis(a), axis(b))
    figure.edge([(lowest, lowest), (edge, edge)])
    figure.edge([(lowest, c.limit), (edge * 1.05, c.limit)])
    figure.edge([(c.limit, lowest), (c.limit, edge * 1.05)])
    labels = c.runs.drop_duplicates("instance").set_index("instance")
    places = np.minimum(table.to_numpy(), edge)
    words = np.array(
        [_mark_label(labels.loc[key], *times) for key, times in zip(table.index, table.to_numpy(), strict=True)]
    )
    failed = np.isinf(table.to_numpy()).any(axis=1)
    for chosen, hollow in ((~failed, False), (failed, True)):
        xs, ys = places[chosen].T.tolist()
        figure.dots(xs, ys, c.methods.index(b), words[chosen].tolist(), hollow=hollow)
    faster = int((table[a] < table[b]).sum())
    slower = int((table[b] < table[a]).sum())
    caption = (
        f"One mark an instance; above the diagonal {a} is faster ({faster} of {len(table)}), below it {b} ({slower}). "
        f"Hollow marks at the edge, past the limit of {c.limit:g} s: not solved."
    )
    return Chart(f"{a} against {b}", caption, figure.render())


def _mark_label(instance: pd.Series[Any], x: float, y: float) -> str:
    """What a mark stands for."""
    return f"{instance['data']}, {instance['model']}, row {instance['position']}: {_time(x)} and {_time(y)}"


def _time(value: Any) -> str:
    return f"{value:.3g} s" if math.isfinite(value) else "not solved"

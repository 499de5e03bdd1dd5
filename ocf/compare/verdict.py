"""What a comparison comes to, in a few sentences."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from ocf.compare import statistics
from ocf.compare.frame import Comparison
from ocf.support.wording import plain_number

#: Methods within this of the fastest count as fastest, too: the clock decides between them.
CLOSE = 1.05

#: Times the best method's time up to which another counts as near it.
NEAR = 1.2

#: Methods that are named as near the best, and as slower.
MOST = 4


def verdict(c: Comparison) -> list[str]:
    """Who is the fastest, by how much, and whether all agree; a sentence each.

    Parameters
    ----------
    c : Comparison
    """
    said = []
    if len(c.methods) > 1:
        wins, n, what = _wins(c)
        best = max(c.ranked, key=lambda m: wins[m])  # of several the one that solves most
        said.append(
            f"{best} is the fastest, or within {100 * (CLOSE - 1):.0f} % of it, on {wins[best]} of {n} {what}, and "
            f"{_solved(c, best)}."
        )
        if c.times[c.ranked[0]].lt(np.inf).sum() > c.times[best].lt(np.inf).sum():
            said.append(f"{c.ranked[0]} {_solved(c, c.ranked[0])}.")
        guesses = [m for m in c.ranked if _guesses(c, m)]
        said += _slowdowns(c, best, [m for m in c.ranked if m != best and m not in guesses])
        said += _unproved(c, guesses)
    if c.disagreements:
        return [*said, f"{len(c.disagreements)} DISAGREEMENTS: see below."]
    confirmed = int(c.runs["found"].sum())
    said.append(f"No disagreements: the user's own model confirmed {confirmed} solutions, and all claims agree.")
    return said


def _solved(c: Comparison, method: str) -> str:
    times = c.times[method].dropna()
    return f"solves {int(np.isfinite(times).sum())} of {len(times)} instances"


def _wins(c: Comparison) -> tuple[dict[str, int], int, str]:
    """On how many sets each method is about the fastest, how many there are, and what they are."""
    means, what = _means(c)
    least = np.maximum(means.min(axis=1), statistics.RESOLUTION)
    return {m: int((means[m] <= CLOSE * least)[np.isfinite(least)].sum()) for m in c.methods}, len(means), what


def _means(c: Comparison) -> tuple[pd.DataFrame, str]:
    """Mean seconds by data set, model and question, or by instance where there is but one of these."""
    times = c.times
    about = c.runs.drop_duplicates("instance").set_index("instance")[["data", "model", "ask"]].loc[times.index]
    number = about.groupby(["data", "model", "ask"]).ngroup().to_numpy()
    if number.max() < 1:
        return times, "instances"
    capped = statistics.capped(times.fillna(np.inf), c.limit, statistics.PENALTY)
    means = [
        [statistics.shifted_geometric_mean(column, c.shift) for column in capped[number == k].T]
        for k in range(number.max() + 1)
    ]
    return pd.DataFrame(means, columns=times.columns), "sets"


def _slowdowns(c: Comparison, best: str, others: list[str]) -> list[str]:
    """How many times as long the others take, in geometric mean."""
    times = c.complete
    faster: list[str] = []
    near: list[str] = []
    far: list[str] = []
    for method in others:
        either = times[np.isfinite(times[method]) | np.isfinite(times[best])]
        pair = (statistics.capped(either[m], c.limit, statistics.PENALTY) for m in (method, best))
        ratio = statistics.ratio(*pair).value
        if not math.isnan(ratio):
            (far if ratio > NEAR else near if ratio >= 1 / CLOSE else faster).append(
                f"{method} {plain_number(ratio, 2)}×"
            )
    parts = (("Faster in the mean", faster), (f"Within {NEAR:g}× of its time", near), ("Slower", far))
    return [f"{what}: {_first(found)}." for what, found in parts if found]


def _guesses(c: Comparison, method: str) -> bool:
    """Whether a method answers without ever proving anything."""
    status = c.runs.loc[c.runs["method"] == method, "status"]
    return bool((status == "unproved").any() and not (status == "ok").any())


def _unproved(c: Comparison, guesses: list[str]) -> list[str]:
    """What the points of methods without proofs cost."""
    medians = {m: c.excess[c.runs["method"] == m].median() for m in guesses}
    found = [f"{m} {plain_number(r, 2)}×" for m, r in sorted(medians.items(), key=lambda item: item[1]) if r == r]
    return [f"Without proofs, at so many times the lowest cost: {_first(found)}."] if found else []


def _first(found: list[str]) -> str:
    """The first few of a list, and how many more there are."""
    rest = len(found) - MOST
    return ", ".join(found[:MOST]) + (f" and {rest} more" if rest > 0 else "")

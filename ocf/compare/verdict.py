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
        best, *others = c.ranked
        said.append(_fastest(c, best))
        said += _against(c, best, others)
    if c.disagreements:
        return [*said, f"{len(c.disagreements)} DISAGREEMENTS: see below."]
    confirmed = int(c.runs["found"].sum())
    said.append(f"No disagreements: the user's own model confirmed {confirmed} solutions, and all claims agree.")
    return said


def _fastest(c: Comparison, best: str) -> str:
    """How much the best method solves, and on how much of it it is the fastest."""
    solved = int(np.isfinite(c.times[best]).sum())
    means, what = _means(c)
    known = means[np.isfinite(means.min(axis=1))]
    close = known[best] <= CLOSE * np.maximum(known.min(axis=1), statistics.RESOLUTION)
    return (
        f"{best} solves {solved} of {len(c.times[best].dropna())} instances and is the fastest, or within "
        f"{100 * (CLOSE - 1):.0f} % of it, on {int(close.sum())} of {len(means)} {what}."
    )


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


def _against(c: Comparison, best: str, others: list[str]) -> list[str]:
    """How many times as long the others take, in geometric mean."""
    times = c.complete
    near: list[str] = []
    far: list[str] = []
    for method in others:
        either = times[np.isfinite(times[method]) | np.isfinite(times[best])]
        pair = (statistics.capped(either[m], c.limit, statistics.PENALTY) for m in (method, best))
        ratio = statistics.ratio(*pair).value
        if not math.isnan(ratio):
            (near if ratio <= 1.2 else far).append(f"{method} {plain_number(ratio, 2)}×")
    parts = (("Within 1.2× of its time", near), ("Slower", far))
    return [f"{what}: {_first(found)}." for what, found in parts if found]


def _first(found: list[str]) -> str:
    """The first few of a list, and how many more there are."""
    rest = len(found) - MOST
    return ", ".join(found[:MOST]) + (f" and {rest} more" if rest > 0 else "")

"""Two comparisons of the same instances: what has become slower, faster, unsolved, or another answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ocf.compare import statistics
from ocf.compare.frame import Comparison
from ocf.compare.tables import Table
from ocf.errors import ProblemError
from ocf.verify.changes import TOLERANCE

#: A run is a regression when it takes this many times as long, and so many seconds longer.
SLOWER, SECONDS = 2.0, 0.5

#: A method is one when the whole interval of its ratio lies above this.
DRIFT = 1.05


@dataclass(frozen=True)
class Difference:
    """What two comparisons differ in.

    Attributes
    ----------
    methods : Table
        Ratios of the times, second to first, by method.
    regressions, improvements : list of str
        Sentences; the gravest first.
    contradictions : list of str
        Instances whose proven optimum is another: one of the two is wrong.
    remarks : list of str
    """

    methods: Table
    regressions: list[str]
    improvements: list[str]
    contradictions: list[str]
    remarks: list[str]


def difference(a: Comparison, b: Comparison) -> Difference:
    """Compare a second comparison with a first, run by run.

    Parameters
    ----------
    a, b : Comparison
        The first, which is the measure, and the second.

    Raises
    ------
    ProblemError
        They have no run in common.
    """
    columns = ["instance", "method"]
    pairs = a.runs.merge(b.runs, on=columns, suffixes=("_a", "_b"))
    if pairs.empty:
        raise ProblemError("the two have no run in common: compare results of the same suite and methods")
    same = pairs["case_a"] == pairs["case_b"]
    other = pairs.loc[~same, "instance"].nunique()
    pairs = pairs[same]
    remarks = []
    if other:
        remarks.append(f"{other} instances are left out: their models were trained differently, or their data differ")
    if a.limit != b.limit:
        remarks.append(f"the time limits differ: {a.limit:g} s and {b.limit:g} s")
    if len(alone := set(a.methods) ^ set(b.methods)):
        remarks.append(f"methods that only one of the two has: {', '.join(sorted(alone))}")
    if _machine(a) != _machine(b):
        remarks.append("they were measured on different machines or versions")
    worse, better = _changes(pairs, a.limit, b.limit)
    table, drifted = _methods(pairs, max(a.limit, b.limit))
    return Difference(table, drifted + worse, better, _contradictions(pairs), remarks)


def _machine(c: Comparison) -> list[dict[str, str]]:
    return [line["facts"] for line in c.results.of("machine")]


def _changes(pairs: pd.DataFrame, limit_a: float, limit_b: float) -> tuple[list[str], list[str]]:
    """Runs that got worse and runs that got better."""
    lists: tuple[list[tuple[float, str]], list[tuple[float, str]]] = ([], [])
    for run in pairs.to_dict("records"):
        before, after = ((run[f"status_{x}"], run[f"seconds_{x}"]) for x in "ab")
        where = f"{run['method']} on {run['data_a']}, {run['model_a']}, row {run['position_a']} {run['ask_a']}"
        if (before[0] == "ok") != (after[0] == "ok"):
            seconds = f" (it took {before[1]:.3g} s)" if before[0] == "ok" else f" (in {after[1]:.3g} s)"
            text = f"{where}: {before[0]} became {after[0]}{seconds}"
            lists[after[0] == "ok"].append((math.inf, text))
        elif before[0] == "ok":
            for k, (x, y) in enumerate(((before[1], after[1]), (after[1], before[1]))):
                if y > SLOWER * x and y - x > SECONDS:
                    lists[k].append((y / x, f"{where}: {before[1]:.3g} s became {after[1]:.3g} s"))
        elif before[0] != after[0]:
            lists[0].append((math.inf, f"{where}: {before[0]} became {after[0]}"))
    worse, better = ([text for _, text in sorted(found, key=lambda p: -p[0])] for found in lists)
    return worse, better


def _methods(pairs: pd.DataFrame, limit: float) -> tuple[Table, list[str]]:
    """Ratios by method, and the methods that have become slower by more than noise."""
    rows, drifted = [], []
    for method, runs in pairs.groupby("method", sort=False):
        times = [runs[f"seconds_{x}"].where(runs[f"status_{x}"] == "ok", np.inf).to_numpy() for x in "ab"]
        both = np.isfinite(times[0]) & np.isfinite(times[1])
        either = np.isfinite(times[0]) | np.isfinite(times[1])
        of_both = statistics.ratio(times[1][both], times[0][both])
        penalised = statistics.ratio(*(statistics.capped(t[either], limit, statistics.PENALTY) for t in times[::-1]))
        rows.append(
            {
                "method": method,
                "runs": len(runs),
                "solved before": int(np.isfinite(times[0]).sum()),
                "solved after": int(np.isfinite(times[1]).sum()),
                "both solved": int(both.sum()),
                "ratio": of_both,
                "ratio with penalties": penalised,
            }
        )
        if of_both.low > DRIFT:
            drifted.append(
                f"{method} is slower by a factor of {of_both.value:.3g} (95 %: {of_both.low:.3g} to {of_both.high:.3g})"
            )
    caption = (
        "Geometric mean of the second's times over the first's, with bootstrap intervals at 95 %; above 1 is slower."
    )
    return Table("Second against first", caption, pd.DataFrame(rows), {}), drifted


def _contradictions(pairs: pd.DataFrame) -> list[str]:
    """Runs whose proven answers differ."""
    proven = pairs[pairs["status_a"].isin(("ok", "time out")) & pairs["status_b"].isin(("ok", "time out"))]
    out = []
    for run in proven.to_dict("records"):
        answers = run["answer_a"], run["answer_b"]
        where = f"{run['method']} on {run['data_a']}, {run['model_a']}, row {run['position_a']} {run['ask_a']}"
        if set(answers) == {"optimal", "infeasible"}:
            out.append(f"{where}: {answers[0]} became {answers[1]}")
        elif answers == ("optimal", "optimal"):
            x, y = run["cost_a"], run["cost_b"]
            if abs(x - y) > TOLERANCE * max(abs(x), abs(y), TOLERANCE):
                out.append(f"{where}: the optimum was {x!r} and is {y!r}")
    return out

"""The tables of a report, as data: the same for the page, for Markdown and for whoever wants to compute on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ocf.compare import statistics
from ocf.compare.figures import primal_integrals
from ocf.compare.frame import SIZES, Comparison
from ocf.compare.outcomes import STATUSES


@dataclass(frozen=True)
class Table:
    """A table with its words.

    Attributes
    ----------
    name : str
    caption : str
    frame : DataFrame
        Numbers as numbers; a cell may be a `statistics.Interval`.
    formats : dict
        Format specification by column, where it is not three digits.
    labels : int
        How many columns say what a row is about; a page writes them into one.
    folded : bool
        Whether a page shows it only on demand.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    formats: dict[str, str]
    labels: int = 1
    folded: bool = False


class Share(NamedTuple):
    """A mean time, and how many of the runs it is over were solved."""

    value: float
    solved: int
    of: int


def tables(c: Comparison) -> list[Table]:
    """All tables for which there are data."""
    found = [_summary(c), *_groups(c), _seconds_by_phase(c)]
    if len(c.methods) > 1:
        found.append(_ratios(c))
    found.append(_models(c))
    found += _bounds(c)
    return [*found, _instances(c)]


def _summary(c: Comparison) -> Table:
    rows = []
    integrals = primal_integrals(c)
    present = set(c.runs["status"])
    for method in c.ranked:
        runs = c.runs[c.runs["method"] == method]
        times = np.where(runs["status"] == "ok", runs["seconds"], np.inf)
        at_limit = statistics.capped(times, c.limit)
        unsolved = runs[runs["status"] == "time out"]
        excess = {"cost ratio": _median(c.excess[runs.index])} if "unproved" in present else {}
        rows.append(
            {
                "method": method,
                "solved": int(np.isfinite(times).sum()),
                "of": len(runs),
                "SGM": statistics.shifted_geometric_mean(at_limit, c.shift),
                "median": float(np.median(at_limit)),
                "maximum": float(at_limit.max()),
                "peak MB": runs["peak_memory"].max() / 1e6,
                "PAR-2": statistics.penalised_average(times, c.limit, 2),
                "PAR-10": statistics.penalised_average(times, c.limit, 10),
                "CPU": _median(runs["cpu"]),
                "nodes": _median(runs["nodes"]),
                "refused": float(runs["refused"].mean()),
                "gap at limit": _median(unsolved["gap"]),
                "primal integral": float(integrals[method].dropna().mean()),
                **excess,
                **{s: int((runs["status"] == s).sum()) for s in STATUSES if s != "ok" and s in present},
            }
        )
    frame = pd.DataFrame(rows)
    caption = (
        f"Solved: proven, verified, within {c.limit:g} s. SGM: shifted geometric mean of the seconds, shift "
        f"{c.shift:g} s. Peak MB: the most memory that a run took, of its process and all it loads. PAR-2 and PAR-10: "
        "mean of the seconds, where an unsolved run counts 2 or 10 times the limit; "
        "in SGM, median and maximum it counts as the limit. CPU: median seconds of the processor, which other work on "
        "the machine changes less. Nodes: median. Refused: mean of the points that a solver found, but that the model "
        "itself refused, being within rounding of a tie. Gap at limit: median of the relative gaps of the runs that "
        "timed out (inf where no solution was found). Primal integral: mean, in seconds."
    )
    if "unproved" in present:
        caption += " Cost ratio: median of the cost over the lowest that any method found."
    return Table("Methods", caption, frame, {"gap at limit": ".2%", "peak MB": ",.0f", "nodes": ",.0f"})


def _median(values: pd.Series[Any]) -> float:
    known = values.dropna()
    return float(known.median()) if len(known) else math.nan


def _groups(c: Comparison) -> list[Table]:
    """Means by data set, model and question, where there are several of them."""
    rows = []
    for (data, model, ask), group in c.runs.groupby(["data", "model", "ask"], sort=False):
        row = {"data": data, "model": model, "question": ask, "instances": group["instance"].nunique()}
        for method in c.ranked:
            runs = group[group["method"] == method]
            times = np.where(runs["status"] == "ok", runs["seconds"], np.inf)
            mean = statistics.shifted_geometric_mean(statistics.capped(times, c.limit), c.shift)
            row[method] = Share(mean, int(np.isfinite(times).sum()), len(runs))
        rows.append(row)
    caption = (
        f"Shifted geometric mean of the seconds (shift {c.shift:g} s; an unsolved run counts as the limit, {c.limit:g} "
        "s), and how many were solved."
    )
    return [Table("By data set and model", caption, pd.DataFrame(rows), {}, labels=3)] if len(rows) > 1 else []


def _seconds_by_phase(c: Comparison) -> Table:
    rows = []
    for method in c.ranked:
        runs = c.runs[(c.runs["method"] == method) & c.runs["answer"].isin(("optimal", "infeasible", "feasible"))]
        parts = {
            "build": runs["s_build"],
            "compile": runs["s_compile"],
            "incumbent": runs["s_incumbent"],
            "reduce": runs["s_reduce"] + runs["s_instance"],
            "solve": runs["s_solve"],
            "verify": runs["s_confirm"] + runs["s_verify"],
            "total": runs["s_total"],
        }
        means = {name: float(values.mean()) if len(runs) else math.nan for name, values in parts.items()}
        outside = 1 - means["solve"] / means["total"] if means["total"] else math.nan
        alone = int((runs["proved_by"] == "reduction").sum())
        rows.append(
            {"method": method, "runs": len(runs), **means, "outside solver": outside, "no solver needed": alone}
        )
    caption = (
        "Mean seconds of the runs with an answer. Every run builds and compiles its own model, where it needs one; a "
        "batch of rows shares them. Verify: the model's own predictions. No solver needed: runs that the reduction "
        "proved alone."
    )
    return Table("Where the time goes", caption, pd.DataFrame(rows), {"outside solver": ".0%"})


def _ratios(c: Comparison) -> Table:
    times = c.complete
    rows = []
    for b, a in combinations(c.ranked, 2):
        both = times[np.isfinite(times[a]) & np.isfinite(times[b])]
        either = times[np.isfinite(times[a]) | np.isfinite(times[b])]
        rows.append(
            {
                "method": a,
                "against": b,
                "both solved": len(both),
                "ratio": statistics.ratio(both[a], both[b]),
                "either solved": len(either),
                "ratio with penalties": statistics.ratio(
                    *(statistics.capped(either[m], c.limit, statistics.PENALTY) for m in (a, b))
                ),
            }
        )
    caption = (
        "Geometric mean of the ratios of the times, instance by instance, and its bootstrap interval at 95 % over "
        f"{statistics.RESAMPLES} resamples of instances: above 1, the first method is slower. On the instances that "
        f"both solved, and on those that either solved with {statistics.PENALTY:g} times the limit for the other. The "
        "better method is the second, and the best ones come first."
    )
    return Table("Ratios between methods", caption, pd.DataFrame(rows), {}, labels=2, folded=True)


def _models(c: Comparison) -> Table:
    rows = []
    for method in c.ranked:
        of = c.runs[c.runs["method"] == method]
        runs = of[of["rows"].notna()]
        rows.append(
            {
                "method": method,
                "runs": len(runs),
                **{size: _median(runs[size]) for size in SIZES},
                "leaves left": _median(of["leaves_left"] / of["leaves"]),
            }
        )
    caption = (
        "Median size of the matrix that the solver was given, over the runs that gave it one. Leaves left: share that "
        "the reduction leaves, where there was one."
    )
    return Table("Model size", caption, pd.DataFrame(rows), dict.fromkeys(SIZES, ",.0f") | {"leaves left": ".0%"})


def _bounds(c: Comparison) -> list[Table]:
    """Quality of the LP bounds of the whole formulations."""
    if c.relaxations.empty:
        return []
    rows = []
    for formulation, lines in c.relaxations[c.relaxations["status"] == "ok"].groupby("formulation", sort=False):
        optimum = lines["instance"].map(c.optimum)
        known = (optimum > 0) & np.isfinite(lines["bound"])
        quality = lines["bound"][known] / optimum[known]
        rows.append(
            {
                "formulation": formulation,
                "instances": int(known.sum()),
                "bound / optimum": statistics.Interval(*statistics.bootstrap(lambda x: x.mean(axis=-1), quality)),
                "median": _median(quality),
                "lowest": float(quality.min()) if len(quality) else math.nan,
                "LP seconds": _median(lines["s_solve"]),
                **{size: _median(lines[size]) for size in SIZES},
            }
        )
    caption = (
        "LP relaxation of each whole formulation, before any reduction, against the proven optimum: mean with its "
        "bootstrap interval at 95 %, median, lowest; 1 is perfect. Median seconds of the LP and sizes of the model."
    )
    return [Table("LP bounds", caption, pd.DataFrame(rows), dict.fromkeys(SIZES, ",.0f"))] if rows else []


def _instances(c: Comparison) -> Table:
    labels = c.runs.drop_duplicates("instance").set_index("instance")[["data", "model", "position", "ask"]]
    frame = labels.rename(columns={"position": "row", "ask": "question"})
    frame["best cost"] = c.best.reindex(frame.index)
    frame = frame.join(c.times[c.ranked].replace(np.inf, np.nan))
    caption = (
        f"Seconds by instance; a dash where it was not solved within {c.limit:g} s. Rows count from 0 in the test part."
    )
    return Table("Instances", caption, frame.reset_index(drop=True), {"best cost": ".5g"}, labels=4)

"""Results as a table: one row for each run, ready for statistics, figures and files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ocf.compare.checks import Disagreement, disagreements
from ocf.compare.results import Results
from ocf.compare.schemas import SuiteSchema
from ocf.compare.statistics import capped, shifted_geometric_mean
from ocf.errors import DataError
from ocf.explain.answer import TIMES
from ocf.support.documents import fit
from ocf.support.json_records import number

#: Columns that hold numbers, written as words where they are infinite.
NUMBERS = ("cost", "bound", "gap", "seconds", "wall", "cpu", "peak_memory", "nodes", "refused")

#: Sizes of a matrix.
SIZES = ("rows", "columns", "nonzeros", "binaries")


@dataclass(frozen=True)
class Comparison:
    """What a results file says, with every claim checked against every other.

    Attributes
    ----------
    results : Results
    runs : DataFrame
        One row a run: what `ocf.compare.plan.Job.facts` and `ocf.compare.outcomes.result` say, with times as
        ``s_build``, … and sizes as ``rows``, …; `status` is ``"wrong"`` also where another run refutes a claim.
    relaxations : DataFrame
        The same for LP relaxations.
    disagreements : list of Disagreement
    limit : float
        Seconds that a run may take.
    shift : float
        Seconds, of shifted geometric means.
    """

    results: Results
    runs: pd.DataFrame
    relaxations: pd.DataFrame
    disagreements: list[Disagreement]
    limit: float
    shift: float

    @cached_property
    def methods(self) -> list[str]:
        """Methods in the order of the suite."""
        present = list(dict.fromkeys(self.runs["method"]))
        order = [m["name"] for m in self.results.suite["suite"]["methods"]]
        return [m for m in order if m in present] + [m for m in present if m not in order]

    @cached_property
    def ranked(self) -> list[str]:
        """Methods, those first that solve most, and of these the fastest."""
        counts = {m: int(np.isfinite(self.times[m]).sum()) for m in self.methods}
        means = {
            m: shifted_geometric_mean(capped(self.times[m].dropna(), self.limit), self.shift) for m in self.methods
        }
        return sorted(self.methods, key=lambda m: (-counts[m], means[m]))

    @cached_property
    def times(self) -> pd.DataFrame:
        """Seconds, one row an instance and one column a method; inf where it was not solved, NaN where not run."""
        solved = self.runs.assign(t=self.runs["seconds"].where(self.runs["status"] == "ok", np.inf))
        return solved.pivot(index="instance", columns="method", values="t")[self.methods]

    @cached_property
    def complete(self) -> pd.DataFrame:
        """`times` of the instances that every method was run on."""
        return self.times.dropna()

    @cached_property
    def best(self) -> pd.Series[Any]:
        """Lowest cost of a verified point, by instance."""
        good = self.runs[self.runs["found"] & ~self.runs["unverified"]]
        return good.groupby("instance")["cost"].min()

    @cached_property
    def excess(self) -> pd.Series[Any]:
        """Cost over the lowest of a verified point of the instance, by run; NaN without a verified point."""
        cost = self.runs["cost"].where(self.runs["found"] & ~self.runs["unverified"])
        return cost / self.runs["instance"].map(self.best)

    @cached_property
    def optimum(self) -> pd.Series[Any]:
        """Proven optimum, by instance."""
        proven = self.runs[(self.runs["answer"] == "optimal") & (self.runs["status"] != "wrong")]
        return proven.groupby("instance")["cost"].min()


def compare(results: Results) -> Comparison:
    """Comparison of what a results file holds.

    Raises
    ------
    DataError
        It holds no run yet.
    """
    suite = fit(results.suite["suite"], SuiteSchema, f"{results.path}, line 1: suite")
    lines = _latest(results.of("run"), "method")
    if not lines:
        raise DataError(f"{results.path} holds no run yet: run the suite first")
    runs = _frame(lines)
    relaxations = _frame(_latest(results.of("relaxation"), "formulation"))
    found = disagreements(runs, relaxations)
    runs["unverified"] = runs["checks"].map(bool)
    runs.loc[runs["key"].isin({d.key for d in found}), "status"] = "wrong"
    return Comparison(results, runs, relaxations, found, suite.limits.time, suite.shift)


def _latest(lines: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """Of several lines of one run the last."""
    return list({(line["instance"], line[what]): line for line in lines}.values())


def _frame(lines: list[dict[str, Any]]) -> pd.DataFrame:
    rows = []
    for line in lines:
        times = {f"s_{name}": line["times"].get(name, 0.0) for name in TIMES}
        numbers = {name: number(line[name]) for name in NUMBERS}
        sizes = {name: line["sizes"].get(name) for name in (*SIZES, "leaves", "leaves_left", "cells", "cells_left")}
        rows.append({k: v for k, v in line.items() if k not in ("times", "sizes")} | numbers | times | sizes)
    frame = pd.DataFrame(rows)
    if rows:
        names = [*NUMBERS, *sizes, *times, "trees", "depth"]
        frame = frame.astype(dict.fromkeys(names, "float64"))
        frame["bound"] = frame["bound"].fillna(-np.inf)
        frame["gap"] = frame["gap"].fillna(np.inf)
    return frame

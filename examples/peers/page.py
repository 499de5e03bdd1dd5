"""The figures of the page that compares ocf with other libraries, drawn from results that are kept.

python page.py keep results results-2        # what of the results of `run.py` is worth keeping, as kept/DATE.jsonl
python page.py keep kept/DATE.jsonl results  # the same, onto what was kept before
python page.py                               # draws the page from the newest of these
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from given_up import Cell, cells_given_up

from ocf.compare import load_suite
from ocf.compare.report import markdown_table
from ocf.compare.results import read
from ocf.compare.tables import Table

HERE = Path(__file__).parent
KEPT = HERE / "kept"
PAGE = HERE.parents[1] / "docs" / "explanation" / "comparison.md"

#: Between these lines stands what is drawn.
BEGIN, END = "<!-- figures: drawn by examples/peers/page.py -->\n", "<!-- end of figures -->\n"

#: Differences of two costs that are none, as parts of the cost and of a feature's range: solvers of others count in
#: integers, or in float32, which rounds a number as large as its range by 6e-8 of that.
CLOSE, ROUNDED = 1e-6, 1e-7

#: Seconds of the processor of a lead below which nobody is faster, and times.
LEAD, TIMES = 0.03, 1.2

#: Share of the most runs of a method below which another does not decide which instances all are compared on.
FEW = 0.3

#: Columns that are kept of a run.
COLUMNS = (
    *("data", "trees", "depth", "position", "method", "solver_version", "status", "answer", "cost", "bound"),
    *("seconds", "cpu", "peak_memory", "checks", "message", "started"),
)

#: What an instance is known by.
INSTANCE = ["data", "trees", "depth", "position"]


# -- keeping ---------------------------------------------------------------------------------------------------


def keep(sources: list[Path]) -> Path:
    """Write what is worth keeping of several results: the cells that every method was asked in.

    Parameters
    ----------
    sources : list of Path
        Folders of results, of parts of one suite, and files that were kept before. A run in several is taken from the
        last.
    """
    runs: dict[tuple[Any, ...], dict[str, Any]] = {}
    facts: dict[str, Any] = {"load": 0.0, "cases": {}}
    for source in sources:
        own, its = kept_before(source) if source.suffix == ".jsonl" else _of_results(source)
        its["machine"]["CPU"] = _together(facts.get("machine", its["machine"])["CPU"], its["machine"]["CPU"])
        facts = its | {"load": max(facts["load"], its["load"]), "cases": facts["cases"] | its["cases"]}
        runs |= {tuple(run[name] for name in (*INSTANCE, "method")): run for run in own}
    facts["cells"] = len(load_suite(HERE / "suite.toml").grids)
    lines = sorted(of_whole_cells(list(runs.values())), key=lambda run: [str(run[c]) for c in COLUMNS[:5]])
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{max(run['started'] for run in lines)[:10]}.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (facts, *lines)), encoding="utf-8")
    return path


def _together(names: str, more: str) -> str:
    """Names of processors, each once."""
    return " and ".join(dict.fromkeys((names + " and " + more).split(" and ")))


def _of_results(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Runs and facts of a folder of results."""
    results = read(folder)
    facts = {
        "limits": results.suite["suite"]["limits"],
        "machine": {k: v for k, v in results.of("machine")[0]["facts"].items() if k != "host"},
        "cases": {
            f"{c['data']}, {c['model']}": c["facts"]["score"] for c in results.of("case") if "score" in c["facts"]
        },
        "load": max(session["load"][0] for session in results.of("session")),
    }
    return [{name: line[name] for name in COLUMNS} for line in results.of("run")], facts


def kept_before(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Runs and facts of a file that `keep` wrote."""
    facts, *runs = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return runs, facts


def of_whole_cells(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs of cells in which each method was asked, or is given up.

    Parameters
    ----------
    runs : list of dict
    """
    asked: dict[Cell, set[str]] = {}
    for run in runs:
        asked.setdefault((run["data"], run["trees"], run["depth"]), set()).add(run["method"])
    for *cell, method in cells_given_up(runs, list(asked)):
        asked[tuple(cell)].add(method)
    every = set().union(*asked.values())
    return [run for run in runs if asked[run["data"], run["trees"], run["depth"]] == every]


# -- drawing ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """Results that were kept.

    Attributes
    ----------
    date : str
    facts : dict
        Limits, machine, load, test scores of the models.
    runs : DataFrame
    """

    date: str
    facts: dict[str, Any]
    runs: pd.DataFrame

    @cached_property
    def limit(self) -> float:
        """Seconds of a run."""
        return float(self.facts["limits"]["time"])

    @cached_property
    def judged(self) -> pd.DataFrame:
        """Runs with the best verified cost of their instance, their ratio to it, and what became of their claims.

        Those that were given up count as stopped by the limit.
        """
        runs = pd.concat([self.runs, self._given_up()], ignore_index=True)
        runs["cost"] = pd.to_numeric(runs["cost"])
        good = runs[runs["cost"].notna() & ~runs["checks"].map(bool)]
        best = good.groupby(INSTANCE)["cost"].min().rename("best")
        runs = runs.join(best, on=INSTANCE)
        claims = runs["answer"].eq("optimal") & (runs["cost"] > runs["best"] * (1 + CLOSE) + ROUNDED)
        denies = runs["answer"].eq("infeasible") & runs["best"].notna()
        runs["wrong"] = runs["checks"].map(bool) | claims | denies
        runs["proved"] = runs["status"].eq("ok") & ~runs["wrong"]
        runs["ratio"] = (runs["cost"] / runs["best"]).where(runs["cost"].notna() & ~runs["checks"].map(bool))
        runs["time"] = runs["seconds"].clip(upper=self.limit).where(~runs["status"].isin(["error"]), self.limit)
        return runs

    def _given_up(self) -> pd.DataFrame:
        """A row for each instance on which a method was not asked, as it was given up on a forest no larger."""
        instances = self.runs[INSTANCE].drop_duplicates()
        cells = instances[INSTANCE[:-1]].drop_duplicates().itertuples(index=False, name=None)
        hopeless = pd.DataFrame(
            sorted(cells_given_up(self.runs.to_dict("records"), cells)), columns=[*INSTANCE[:-1], "method"]
        )
        asked = pd.MultiIndex.from_frame(self.runs[[*INSTANCE, "method"]])
        skipped = instances.merge(hopeless, on=INSTANCE[:-1])
        skipped = skipped[~pd.MultiIndex.from_frame(skipped[[*INSTANCE, "method"]]).isin(asked)]
        said = {"status": GIVEN_UP, "answer": "", "checks": [()] * len(skipped)}
        return skipped.assign(**said, cost=math.nan, cpu=self.limit, seconds=self.limit)


#: Status of an instance on which a method was not asked.
GIVEN_UP = "given up"


def load(path: Path) -> Kept:
    """Results from a file that `keep` wrote."""
    runs, facts = kept_before(path)
    return Kept(path.stem, facts, pd.DataFrame(runs))


def newest() -> Path:
    """The newest file that `keep` wrote."""
    return max(KEPT.glob("*.jsonl"))


def drawn(kept: Kept) -> str:
    """The section of figures of the page, in Markdown."""
    runs = kept.judged
    instances = runs.groupby(INSTANCE).ngroups
    cells = runs.groupby(INSTANCE[:-1]).ngroups
    machine = kept.facts["machine"]
    versions = ", ".join(sorted({v for v in kept.runs["solver_version"] if v and " " in v}))
    few = runs.groupby("method").size().nunique() > 1
    head = (
        f"Measured on {kept.date}: {len(kept.runs)} runs on {instances} instances (data set, forest and row), in "
        f"{cells} of the {kept.facts['cells']} cells (data set and forest) of the suite, each with "
        f"{kept.limit:g} s, {kept.facts['limits']['memory'] / 1e9:.3g} GB and one thread, on {machine['CPU']} "
        f"({machine['cores']} cores{', each cell on one of them' * (' and ' in machine['CPU'])}). {_loaded(runs, kept)}"
        f"ocf {machine['ocf']}, {versions}."
        + few
        * " Not every method has been run on every instance: the tables count those it was run on."
    )
    shared, partly = common(runs)
    what = f"On the {shared.groupby(INSTANCE).ngroups} instances that all methods were run on"
    what += f", {' and '.join(partly)} aside. " if partly else ". "
    parts = [head, "### Who proves what", table(summary(shared), {}), what + CAPTION]
    parts += ["### By the size of the forest", table(by_size(runs), {}), SIZES]
    parts += ["### Wrong claims", "\n".join(wrong(runs)) or "None."]
    parts += ["### Where we lose", "\n".join(losses(runs))]
    return "\n\n".join(parts) + "\n"


CAPTION = (
    "Proved: optimality, or that there is no point, within the limit, and nothing speaks against it. Point: a point to "
    "which the model itself gives the wanted class. Seconds: median over all runs, where one without an end counts as "
    "the limit. CPU: median seconds of the processor, which other work on the machine changes less. Cost ratio: "
    "median, and the greatest, of the cost over the lowest cost that any method found. Given up: not asked, as the "
    "limit had stopped the method on the first two rows of this forest, or of one of the data set that is no larger in "
    "trees and in depth; it counts as stopped by the limit."
)
SIZES = (
    "Proved of run, and the median seconds. A method without proofs: with a point of run, and its median cost ratio."
)


def table(frame: pd.DataFrame, formats: dict[str, str]) -> str:
    """A table in Markdown.

    Parameters
    ----------
    frame : DataFrame
    formats : dict
        By column.
    """
    return markdown_table(Table("", "", frame, formats))


def _loaded(runs: pd.DataFrame, kept: Kept) -> str:
    """What other work on the machine meant for the limit."""
    stopped = runs[runs["status"].eq("time out")]
    if kept.facts["load"] <= 1 or stopped.empty:
        return ""
    got = float(stopped["cpu"].median())
    return (
        f"Other work shared the machine (load {kept.facts['load']:.0f}): a run that the limit stopped had got "
        f"{got:.0f} s of the processor, at the median, so the limit was that of about {got:.0f} s on an idle machine, "
        "for all alike. "
    )


def common(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Runs on the instances that all methods were run on, those aside that were run on few; and these.

    Parameters
    ----------
    runs : DataFrame
    """
    counts = runs["method"].value_counts()
    partly = sorted(counts.index[counts < FEW * counts.max()])
    needed = runs[~runs["method"].isin(partly)]
    present = needed.groupby(INSTANCE)["method"].nunique()
    whole = present.index[present == needed["method"].nunique()]
    return runs[pd.MultiIndex.from_frame(runs[INSTANCE]).isin(whole)], partly


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a method."""
    rows = []
    for method, own in runs.groupby("method", sort=False):
        ratios = own["ratio"].dropna()
        rows.append(
            {
                "method": method,
                "run": len(own),
                "proved": int(own["proved"].sum()),
                "point": len(ratios),
                "seconds": float(own["time"].median()),
                "CPU": float(own["cpu"].median()),
                "cost ratio": f"{ratios.median():.3g} ({ratios.max():.3g})" if len(ratios) else "–",
                "time out": int(own["status"].isin(["time out", "memory out"]).sum()),
                "given up": int(own["status"].eq(GIVEN_UP).sum()),
                "error": int(own["status"].eq("error").sum()),
                "wrong": int(own["wrong"].sum()),
            }
        )
    return pd.DataFrame(sorted(rows, key=lambda row: (-row["proved"] / row["run"], row["seconds"])))


def by_size(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a size of forest, one column a method."""
    order = list(summary(runs)["method"])
    rows = []
    for (trees, depth), group in runs.groupby(["trees", "depth"]):
        row = {"trees × depth": f"{trees} × {depth}"}
        for method in order:
            own = group[group["method"] == method]
            row[method] = _in_short(own, proves=bool(runs.loc[runs["method"] == method, "proved"].any()))
        rows.append(row)
    return pd.DataFrame(rows)


def _in_short(own: pd.DataFrame, *, proves: bool) -> str:
    if own.empty:
        return "–"
    if proves:
        return f"{own['proved'].sum()}/{len(own)}, {own['time'].median():.2g} s"
    ratios = own["ratio"].dropna()
    return f"{len(ratios)}/{len(own)}" + (f", {ratios.median():.3g}×" if len(ratios) else "")


def wrong(runs: pd.DataFrame) -> list[str]:
    """What is wrong with the claims of each method, in words."""
    said = []
    for method, own in runs[runs["wrong"]].groupby("method", sort=False):
        kinds = [
            (own["checks"].map(bool), "points that the check refuses"),
            (own["answer"].eq("optimal") & ~own["checks"].map(bool), "proofs of a cost that another point undercuts"),
            (own["answer"].eq("infeasible"), "proofs that there is no point, where there is one"),
        ]
        words = ", ".join(f"{int(which.sum())} {what}" for which, what in kinds if which.any())
        excess = (own.loc[own["answer"].eq("optimal"), "ratio"].max() - 1) if own["answer"].eq("optimal").any() else 0
        more = f", by up to {100 * excess:.2g} %" if excess > 0 and not math.isnan(excess) else ""
        first = own[own["checks"].map(bool)]["message"].tolist()[:1]
        said.append(f"- {method}: {words}{more}." + (f" The first: {first[0]}" if first else ""))
    return said


def losses(runs: pd.DataFrame) -> list[str]:
    """Where methods of others are better than ours, in words."""
    ours = runs[runs["method"].str.startswith("ocf ")]
    best = ours.groupby(INSTANCE).agg(cpu=("cpu", "min"), proved=("proved", "any")).add_suffix("_ours")
    unproved = int((~best["proved_ours"]).sum())
    said = [f"- {unproved} of {len(best)} instances are proved by no method of ocf within the limit."]
    for method, own in runs[~runs["method"].str.startswith("ocf ")].groupby("method", sort=False):
        both = own.join(best, on=INSTANCE, how="inner")
        alone = both["proved"] & ~both["proved_ours"]
        lead = (both["cpu_ours"] > TIMES * both["cpu"]) & (both["cpu_ours"] > both["cpu"] + LEAD)
        parts = [f"proves {int(alone.sum())} that ocf does not"] if alone.any() else []
        faster = both["proved"] & both["proved_ours"] & lead
        sooner = ~both["proved"] & (both["ratio"] <= 1 + CLOSE) & lead
        if faster.any():
            parts.append(f"proves {int(faster.sum())} of {len(both)} in less time{_where(both, faster)}")
        if sooner.any():
            parts.append(f"finds a cheapest point of {int(sooner.sum())} of {len(both)} in less time, without a proof")
        if parts:
            said.append(f"- {method} " + "; ".join(parts) + ".")
    return [*said, "", "Less time: of the processor, than the faster of our methods, by a fifth and 0.03 s at least."]


def _where(both: pd.DataFrame, faster: pd.Series[bool]) -> str:
    """By how much, and on which sets it is the rule."""
    ours, theirs = both.loc[faster, "cpu_ours"].median(), both.loc[faster, "cpu"].median()
    share = faster.groupby(both["data"]).mean()
    sets = ", ".join(sorted(share.index[share > 0.5]))
    return f" (medians {theirs:.2g} s and ours {ours:.2g} s)" + (f", the rule on {sets}" if sets else "")


def main() -> None:
    """Read the command line."""
    if sys.argv[1:2] == ["keep"]:
        print(keep([Path(source) for source in sys.argv[2:]]))
        return
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n" + drawn(load(newest())) + "\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()

"""What the experiments share: the eight data sets, the forests, the methods, and runs that resume.

Protocol (ocean, section 4): 80/20 split; random forests; rows of the test part that the forest gives class 0, explained
towards class 1; costs in units of each feature's range; age may only grow and sex stays as it is, as the data sets' own
facts say. Seconds and time limits are the processor's, which other work on the machine hardly lengthens.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import pandas as pd
import runs
from baselines import BASELINES
from runs import Runs, by_processor, key
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from ocf import Explainer, Explanation
from ocf.compare.datasets import load_dataset, one_hot_pipeline

#: Abbreviations of the paper.
SETS = {
    "AD": "adult",
    "CC": "credit_default",
    "CP": "compas",
    "GC": "german_credit",
    "ON": "online_news",
    "PH": "phishing",
    "SP": "spambase",
    "ST": "students",
}

#: Methods by column. The baselines solve their paper's model as it stands; ours shrink the problem first. Those that do
#: not say "first of ties" look, after the optimum and in the time that is left, among points that cost the same for the
#: least by l1, and among these for the fewest changes, which the papers' models do not do.
METHODS: dict[str, dict[str, Any]] = {
    "OAE": {"formulation": "oae", "solver": "highs", "reduce": False},
    "OCEAN": {"formulation": "ocean", "solver": "highs", "reduce": False},
    "interval": {"formulation": "interval", "solver": "highs"},
    "box": {"solver": "box"},
    "OAE, first of ties": {"formulation": "oae", "solver": "highs", "reduce": False, "break_ties": False},
    "OCEAN, first of ties": {"formulation": "ocean", "solver": "highs", "reduce": False, "break_ties": False},
    "OCEAN, reduced": {"formulation": "ocean", "solver": "highs"},
    "OCEAN, SCIP": {"formulation": "ocean", "solver": "scip", "reduce": False},
    "interval, SCIP": {"formulation": "interval", "solver": "scip"},
    "FCCA": {"formulation": "fcca", "solver": "highs", "reduce": False},
}

#: Rows in turn that may reach the time limit before a method is given up on a forest, and on the set's larger ones.
PATIENCE = 2

PROVED = ("optimal", "infeasible")

#: Of baselines that ended without a proof, with a point or without one.
ENDED = ("found", "none")


@dataclass(frozen=True, eq=False)
class Case:
    """One forest: the explainer, its training rows with their labels, and the rows that ask for another decision."""

    explainer: Explainer
    settings: Mapping[str, Mapping[str, Any]]
    train: pd.DataFrame
    labels: pd.Series
    rows: pd.DataFrame


@lru_cache(maxsize=1)
def case(name: str, folder: str | None, trees: int, depth: int) -> Case:
    """Train a forest on a data set of the paper.

    Parameters
    ----------
    name : str
        The paper's abbreviation.
    folder : str or None
        Of the data sets.
    trees, depth : int
        Number of trees and their depth limit.
    """
    data = load_dataset(SETS[name], folder)
    train, test, y, _ = train_test_split(data.table, data.target, test_size=0.2, random_state=0)
    model = one_hot_pipeline(data, RandomForestClassifier(trees, max_depth=depth, random_state=0)).fit(train, y)
    rows = test[model.predict(test) == 0]
    return Case(Explainer(model, data=train, features=data.settings), data.settings, train, y, rows)


def measure(
    kept: Runs,
    jobs: Sequence[Mapping[str, Any]],
    folder: str | None,
    settings: Callable[[Case, Mapping[str, Any]], dict[str, Any]] = lambda case, job: {},
    remark: Callable[[Case, Mapping[str, Any], Explanation], dict[str, Any]] = lambda case, job, e: {},
) -> pd.DataFrame:
    """Run the jobs that have no result yet; all results, one row a job.

    A method that reaches its time limit on `PATIENCE` rows of a forest in turn is given up there, and on the forests of
    the set that come later with as many trees and levels or more: the other rows are left out, and a table says so. A
    run that the machine gave too little time, and that proved nothing in it, is left for the next time.

    Parameters
    ----------
    kept : Runs
    jobs : sequence of mappings
        Each has ``set``, ``trees``, ``depth``, ``method`` (of `METHODS`), ``norm``, ``row`` and ``limit`` (seconds).
    folder : str or None
        Of the data sets.
    settings : callable
        Further settings of `Explainer.explain` for a job.
    remark : callable
        What else to keep of an explanation.
    """
    warm_up()
    patience = Patience()
    results, starved = [], 0
    for number, job in enumerate(jobs):
        result = kept.get(job)
        if result is None and patience.left(job):
            print(f"\r{number + 1}/{len(jobs)}  {_words(job)}\033[K", end="", file=sys.stderr, flush=True)
            the = case(job["set"], folder, job["trees"], job["depth"])
            if job["row"] < len(the.rows):  # small test parts have fewer rows of the class
                result = _run(the, job, settings(the, job), remark)
                starved += result is None
                if result is not None:
                    kept.add(job, result)
        if result is not None:
            patience.note(job, result)
            results.append({**job, **result})
    print(f"\r{len(results)} of {len(jobs)} runs\033[K", file=sys.stderr)
    if starved:
        print(f"{starved} runs had too little of the processor: run the command again", file=sys.stderr)
    return pd.DataFrame(results)


class Patience:
    """Which methods are given up on which forests."""

    def __init__(self) -> None:
        self._late: dict[str, dict[tuple[int, int], int]] = {}

    def _forests(self, job: Mapping[str, Any]) -> dict[tuple[int, int], int]:
        """Rows in turn that were late, by trees and depth, of what a job asks."""
        asked = key({k: v for k, v in job.items() if k not in ("row", "trees", "depth")})
        return self._late.setdefault(asked, {})

    def left(self, job: Mapping[str, Any]) -> bool:
        """Whether a job is still to be tried."""
        return not any(
            late >= PATIENCE and trees <= job["trees"] and depth <= job["depth"]
            for (trees, depth), late in self._forests(job).items()
        )

    def note(self, job: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Count a job that was late; one in time ends the count.

        Parameters
        ----------
        job, result : mapping
        """
        in_time = result["status"] in (*PROVED, *ENDED) and result["seconds"] <= job["limit"]
        forests, forest = self._forests(job), (job["trees"], job["depth"])
        forests[forest] = 0 if in_time else forests.get(forest, 0) + 1


@cache
def warm_up() -> None:
    """Compile the kernels, which is done once on a machine and should not count for anybody's row."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = Explainer(RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, y), data=X)
    for solver in ("highs", "box"):
        explainer.explain(X.iloc[[0, 75]], target=2, solver=solver)


def _words(job: Mapping[str, Any]) -> str:
    rest = " ".join(str(v) for k, v in job.items() if k not in ("set", "trees", "depth", "row", "limit"))
    return f"{job['set']} {job['trees']} x {job['depth']}, {rest}, row {job['row'] + 1}"


def _run(
    the: Case,
    job: Mapping[str, Any],
    settings: dict[str, Any],
    remark: Callable[[Case, Mapping[str, Any], Explanation], dict[str, Any]],
) -> dict[str, Any] | None:
    """Result of a job; None where the machine had too much other work to say.

    Parameters
    ----------
    the : Case
    job : mapping
    settings : dict
        Further settings of `Explainer.explain`.
    remark : callable
        What else to keep of an explanation.
    """
    row, limit = the.rows.iloc[[job["row"]]], job["limit"]
    if job["method"] in BASELINES:
        begin = time.process_time()
        status, cost = BASELINES[job["method"]](the, row, job["norm"], limit)
        return {"status": status, "cost": cost, "seconds": time.process_time() - begin}
    how = METHODS[job["method"]] | settings

    def explain(clock: float) -> Explanation:
        return the.explainer.explain(row, target=1, norm=job["norm"], time_limit=clock, **how)[0]

    found = by_processor(explain, limit, lambda e: e.status in PROVED)
    if found is None:
        return None
    e, used = found
    return {
        "status": e.status,
        "verified": e.verified,
        "cost": e.cost,
        "seconds": used,
        "nodes": e.nodes,
        "nonzeros": e.sizes.get("nonzeros"),
        "message": e.message,
        **remark(the, job, e),
    }


def seconds(group: pd.DataFrame, n_rows: int) -> str:
    """Mean seconds of the processor a row, or the limit where the method did not prove, or end on, every row in time.

    Parameters
    ----------
    group : DataFrame
        Runs of a method on a forest.
    n_rows : int
        Rows that there are; the method may have been given up before the last.
    """
    proved = group.status.isin((*PROVED, *ENDED)) & (group.seconds <= group.limit)
    if not len(group):
        return "–"
    if not proved.all():
        tried = f"/{n_rows}" if len(group) == n_rows else f" of {len(group)} tried"
        return f">{group.limit.iloc[0]:g} ({proved.sum()}{tried})"
    return f"{group.seconds.mean():.2f}"


def limits(args: argparse.Namespace) -> str:
    """What stands above a table of how it was made."""
    return f"up to {args.rows} rows a set, {args.time_limit:g} s of the processor a row"


def arguments(description: str) -> argparse.ArgumentParser:
    """Options that all of OCEAN's experiments take."""
    parser = runs.arguments(description, "two sets, two rows, small forests")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="data sets (default: all eight)")
    parser.add_argument("--rows", type=int, default=20, help="rows per forest (default: 20, as in the paper)")
    parser.add_argument(
        "--time-limit", type=float, default=300.0, help="seconds of the processor per row (default: 300; paper: 900)"
    )
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parsed options; ``--quick`` overrides the sizes."""
    args = parser.parse_args()
    if args.quick:
        args.sets, args.rows, args.time_limit = ["CP", "GC"], 2, 10.0
    return args

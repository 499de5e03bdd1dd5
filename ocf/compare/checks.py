"""Claims of runs against each other: what is wrong when two methods disagree about one instance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ocf.verify.changes import TOLERANCE

#: A row of the table of runs.
Run = dict[str, Any]

#: Relative difference that an LP solver's own tolerances explain between its bound and a cost.
LP_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Disagreement:
    """A claim that cannot be true.

    Attributes
    ----------
    key : str
        Of the run that makes it.
    instance : str
        In words.
    method : str
    message : str
    """

    key: str
    instance: str
    method: str
    message: str


def disagreements(runs: pd.DataFrame, relaxations: pd.DataFrame) -> list[Disagreement]:
    """Claims that a verified point or the verification itself refutes.

    A verified point is one to which the user's own model gives the target, at a cost that was recomputed. A claim of
    optimality above the cost of such a point, a bound above it, or a claim that there is none cannot be true. Of two
    methods that claim different optima the dearer one is therefore wrong, or the cheaper one's point is unverified.

    Parameters
    ----------
    runs, relaxations : DataFrame
        See `ocf.compare.frame.Comparison`.
    """
    best: dict[tuple[str, str], Run] = {}
    for run in _records(runs):
        at = (run["instance"], run["case"])
        if run["found"] and not run["checks"] and (at not in best or run["cost"] < best[at]["cost"]):
            best[at] = run
    found = []
    for run in _records(runs):
        found += [_disagreement(run, message) for message in _refuted(run, best.get((run["instance"], run["case"])))]
    for line in _records(relaxations):
        known = best.get((line["instance"], line["case"]))
        if known and _exceeds(line["bound"], known["cost"], LP_TOLERANCE):
            found.append(_disagreement(line, f"its LP bound {line['bound']!r} is above {_solution(known)}"))
    return found


def _records(frame: pd.DataFrame) -> list[Run]:
    return [{str(k): v for k, v in record.items()} for record in frame.to_dict("records")]


def _refuted(run: Run, best: Run | None) -> Iterator[str]:
    """What is wrong with one run's claims."""
    if run["checks"]:
        yield "unverified: " + " ".join(run["checks"])
    if best is None:
        return
    if run["answer"] == "infeasible":
        yield f"it claims that no admissible change exists, against {_solution(best)}"
    elif run["answer"] == "optimal" and _exceeds(run["cost"], best["cost"], TOLERANCE):
        yield f"it claims that {run['cost']!r} is optimal, against {_solution(best)}"
    elif _exceeds(run["bound"], best["cost"], TOLERANCE):
        yield f"its bound {run['bound']!r} is above {_solution(best)}"


def _solution(best: Run) -> str:
    return f"the verified solution of {best['method']} that costs {best['cost']!r}"


def _exceeds(a: float, b: float, tolerance: float) -> bool:
    """Whether a number is above another by more than rounding."""
    return not math.isnan(a) and a > b + tolerance * max(abs(b), tolerance)


def _disagreement(run: Run, message: str) -> Disagreement:
    method = run["method"] if run["kind"] == "run" else f"LP relaxation of {run['formulation']}"
    where = f"{run['data']}, {run['model']}, row {run['position']} {run['ask']}"
    return Disagreement(run["key"], where, method, message)

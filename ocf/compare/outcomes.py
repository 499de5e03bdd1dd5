"""What the end of a run's process means: the status of the run and the numbers that it gave."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ocf.compare.plan import Job
from ocf.solvers.result import Progress, monotone
from ocf.support.json_records import number
from ocf.support.tolerances import PROOF_TOLERANCE

#: How a run can end. Unproved: of a program of others, an answer before the limit that it does not call proven.
STATUSES = ("ok", "unproved", "time out", "memory out", "error", "wrong")

#: Ends of a process, as `ocf.compare.server.forked` names them, that are statuses by themselves.
_ENDS = {"timeout": "time out", "memory": "memory out", "error": "error", "crash": "error"}

#: Part of the time limit after which a solver that ends without a proof has been stopped by the limit.
_AT_LIMIT = 0.95

#: Most records of bound and incumbent that are kept of a run.
MOST_RECORDS = 200


def result(job: Job, outcome: Mapping[str, Any]) -> dict[str, Any]:
    """What a line of the results says of how a run ended.

    Parameters
    ----------
    job : Job
    outcome : mapping
        As `ocf.compare.server.Server.run` gives it.
    """
    value = outcome["value"] or {}
    checks = outcome.get("verification", {}).get("problems", [])
    status, message = _status(job, outcome, value, checks)
    return {
        "status": status,
        "message": message,
        "answer": value.get("status", ""),
        "seconds": _seconds(job, outcome, value),
        "times": value.get("times", {}),
        "cost": value.get("cost"),
        "bound": value.get("bound"),
        "gap": value.get("gap"),
        "found": value.get("counterfactual") is not None,
        "checks": checks,
        "nodes": value.get("nodes"),
        "refused": value.get("refused"),
        "proved_by": value.get("proved_by", ""),
        "solver_version": value.get("method", {}).get("solver_version", ""),
        "sizes": value.get("sizes", {}),
        "history": thinned(confirmed(value.get("history", []), number(value.get("cost")))),
        "wall": outcome["wall"],
        "cpu": outcome["cpu"],
        "peak_memory": outcome["peak_memory"],
    }


def _seconds(job: Job, outcome: Mapping[str, Any], value: Mapping[str, Any]) -> float:
    """Seconds of the answer; those of the process when there is none."""
    times = value.get("times", {})
    if job.kind == "relaxation" and times:
        return float(sum(times.values()))
    return float(times.get("total") or outcome["wall"])


def _status(job: Job, outcome: Mapping[str, Any], value: Mapping[str, Any], checks: list[str]) -> tuple[str, str]:
    if outcome["end"] != "done":
        return _ENDS[outcome["end"]], outcome["message"]
    seconds, limit = _seconds(job, outcome, value), job.limits.time
    late = f"the answer came after {seconds:.1f} s"
    if job.kind == "relaxation":
        return ("ok", "") if seconds <= limit else ("time out", late)
    message = value.get("message", "")
    if checks:
        return "wrong", " ".join(checks)
    if value["status"] == "error":
        return "error", message
    gap = number(value["gap"])
    if value["status"] in ("optimal", "infeasible") or (gap is not None and gap <= job.method.mip_gap):
        return ("ok", message) if seconds <= limit else ("time out", late)
    if seconds >= _AT_LIMIT * limit:
        return "time out", message
    if job.method.command:
        return "unproved", message
    return "error", message or f"it ended {value['status']} after {seconds:.1f} s, without a proof and before its limit"


def confirmed(history: Sequence[Any], cost: float | None) -> Sequence[Any]:
    """Records of a run without the points that the user's model refused, which are cheaper than what it returned.

    Parameters
    ----------
    history : list of (seconds, bound, incumbent)
    cost : float or None
        Of the point that the run returned.
    """
    least = math.inf if cost is None else cost * (1 - PROOF_TOLERANCE)
    points = [Progress(*map(float, record)) for record in history]
    return monotone([p if p.incumbent >= least else p._replace(incumbent=math.inf) for p in points])


def thinned(history: Sequence[Any]) -> list[Any]:
    """At most `MOST_RECORDS` records, the first and the last among them."""
    if len(history) <= MOST_RECORDS:
        return list(history)
    step = (len(history) - 1) / (MOST_RECORDS - 1)
    return [history[round(k * step)] for k in range(MOST_RECORDS)]

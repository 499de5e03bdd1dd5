"""Two independent ways must come to one answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ocf.solve.method import Way
from ocf.solve.outcome import Outcome
from ocf.solvers.result import Status
from ocf.support.messages import with_remark
from ocf.support.tolerances import slack

#: Verdicts: one proven answer, no contradiction but no two proofs either, or a contradiction.
AGREES, OPEN, DISAGREES = "agrees", "open", "disagrees"

_PROVEN = (Status.OPTIMAL, Status.INFEASIBLE)


def compare(first_way: Way, first: Outcome, second_way: Way, second: Outcome) -> dict[str, Any]:
    """The claims of the second way, and whether they contradict those of the first.

    Parameters
    ----------
    first_way, second_way : Way
    first, second : Outcome
        Of the same problem, one by each way.

    Returns
    -------
    dict
        Of the second way ``formulation, solver, status, cost, bound, point`` (coded) and ``seconds``; ``verdict`` is
        ``"agrees"`` when both have proven the same, ``"open"`` when one of them was stopped before it could tell,
        and ``"disagrees"``; ``why`` says how.
    """
    names = [f"{way.solver} on {way.formulation}" for way in (first_way, second_way)]
    why = contradiction(names[0], first, names[1], second) or contradiction(names[1], second, names[0], first)
    proven = first.status in _PROVEN and second.status in _PROVEN
    if not why and not proven:
        ended = names[0] if first.status not in _PROVEN else names[1]
        why, verdict = f"not cross-checked: {ended} ended without a proof", OPEN
    else:
        verdict = DISAGREES if why else AGREES
    return {
        "formulation": second_way.formulation,
        "solver": second_way.solver,
        "status": second.status.value,
        "cost": second.cost,
        "bound": second.bound,
        "point": None if second.point is None else second.point.tolist(),
        "seconds": sum(second.times.values()),
        "verdict": verdict,
        "why": why,
    }


def contradiction(one: str, bounding: Outcome, other: str, found: Outcome) -> str:
    """How one way's bound contradicts the other's point; empty when it does not.

    The user's model has confirmed both points, so a bound is wrong that lies above the cost of the other's point by
    more than 1e-9 of it.

    Parameters
    ----------
    one, other : str
        The two ways, in words.
    bounding : Outcome
        Of the one way, whose bound is taken.
    found : Outcome
        Of the other way, whose point is taken, if it has one.
    """
    if found.cost is None or bounding.bound <= found.cost + slack(found.cost):
        return ""
    claim = "no admissible change gives the target" if math.isinf(bounding.bound) else f"at least {bounding.bound!r}"
    return f"{one} claims {claim}, {other} found a point for {found.cost!r}"


def judged(outcome: Outcome, check: Mapping[str, Any]) -> Outcome:
    """The first way's outcome, which a contradiction makes an error.

    Parameters
    ----------
    outcome : Outcome
    check : mapping
        As `compare` gives it.
    """
    if check["verdict"] == AGREES:
        return outcome
    if check["verdict"] == OPEN:
        return replace(outcome, message=with_remark(outcome.message, check["why"]))
    return replace(outcome, status=Status.ERROR, message=f"two ways of solving this row disagree: {check['why']}")

"""When a bound meets a cost, and when costs are the same: the one tolerance of all proofs, and its multiples."""

from __future__ import annotations

import math

#: Relative difference below which a bound meets a cost.
PROOF_TOLERANCE = 1e-9

#: Cost from which on down the difference does not shrink any further. A change of 1 within a range of 1e12, squared,
#: costs 1e-24 and is told from one of 1.0001; products of a quadratic form that cancel leave up to 1e-28.
LEAST_COST = 1e-19


def slack(cost: float, gap: float = 0.0) -> float:
    """By how much a bound may fall short of a cost and still meet it.

    Parameters
    ----------
    cost : float
    gap : float
        A relative gap that was asked for, where it is wider than that of a proof.
    """
    return max(PROOF_TOLERANCE, gap) * max(abs(cost), LEAST_COST)


def with_ties(cost: float) -> float:
    """Cost below which a point costs as little as one of a cost, with room for the rounding of both."""
    return cost + 4 * slack(cost)


def listed_cost(cost: float) -> float:
    """Most that a point costs that is listed beside one of a cost as another of the same."""
    return cost + slack(cost)


def equals_room(cost: float) -> float:
    """By how much a point may differ from a cost where it is left open whether it costs the same."""
    return 2 * slack(cost)


def equal_cost(cost: float) -> float:
    """Most that a point costs of which is said that it costs the same.

    Sums of costs that are the same differ by rounding: 1/6 + 1/3 is less than 1/2. What is cheaper by no more than this
    is no less a proof's optimum.

    Parameters
    ----------
    cost : float
    """
    return cost + slack(cost) / 4


def falls_short(bound: float, cost: float, gap: float = 0.0) -> bool:
    """Whether a bound leaves open that something is cheaper than a cost, inf where nothing was found.

    Parameters
    ----------
    bound, cost, gap : float
        See `slack`.
    """
    return bound < cost and not meets(bound, cost, gap)


def meets(bound: float, cost: float, gap: float = 0.0) -> bool:
    """Whether a bound proves that nothing is cheaper than a cost; never where nothing was found (inf).

    Parameters
    ----------
    bound, cost, gap : float
        See `slack`.
    """
    return math.isfinite(cost) and bound >= cost - slack(cost, gap)

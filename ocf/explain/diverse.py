"""Several explanations of a row, each different from those before."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.errors import OcfError
from ocf.problem.constraints import Constraint
from ocf.problem.diversity import Apart, Keeps
from ocf.support.interruption import is_interruption
from ocf.support.messages import internal, with_remark

if TYPE_CHECKING:
    from ocf.explain.explanation import Explanation
    from ocf.problem.diversity import Several
    from ocf.problem.problem import Problem


logger = logging.getLogger(__name__)


class AskAgain(Protocol):
    """Solves a problem with choices of leaves excluded."""

    def __call__(self, problem: Problem, excluded: tuple[IntArray, ...]) -> Explanation:
        """The explanation."""


def explain_several(first: Explanation, ask: AskAgain, problem: Problem, several: Several) -> list[Explanation]:
    """The best explanations of one row, in the order of their costs.

    Parameters
    ----------
    first : Explanation
        The best.
    ask : callable
        Solves a problem with choices of leaves excluded.
    problem : Problem
    several : Several

    Returns
    -------
    list of Explanation
        Fewer than asked for, with a remark on the last, where there are no more or none was found in time.
    """
    found = [first]
    excluded: tuple[IntArray, ...] = ()
    now = problem
    while len(found) < several.n and found[-1].found:
        point = problem.space.with_missing(problem.space.from_frame(found[-1].counterfactual)[0])
        if several.diversity == "region":
            excluded = (*excluded, problem.ensemble.apply(point[None, :])[0])
        else:
            now = replace(now, constraints=(*now.constraints, _different(problem, point, several, len(found))))
        try:
            following = ask(now, excluded)
        except OcfError as error:  # what is found is kept
            return _ended(found, several, str(error))
        except Exception as error:
            if is_interruption(error):
                raise
            logger.exception("a further explanation failed")
            return _ended(found, several, internal(error))
        if not following.found:
            proven = following.status == "infeasible"
            return _ended(found, several, "there is no further one" if proven else following.message or "none in time")
        found.append(replace(following, rank=len(found) + 1))
    return found


def _ended(found: list[Explanation], several: Several, why: str) -> list[Explanation]:
    """The explanations, the last with the reason why there are no more."""
    said = f"{len(found)} of {several.n} explanations: {why}"
    return [*found[:-1], replace(found[-1], message=with_remark(found[-1].message, said))]


def _different(problem: Problem, point: FloatArray, several: Several, rank: int) -> Constraint:
    """What keeps further explanations from one that has been found."""
    space, origin = problem.space, problem.origin
    present = [i for i in range(len(space)) if not np.isnan(origin[i])]
    if several.diversity == "features":
        changed = tuple(space.names[i] for i in present if point[i] != origin[i])
        return Keeps(changed, name=f"other features than explanation {rank}")
    there = [(space.features[i], float(point[i])) for i in present]
    own = tuple((feature.name, None if value == feature.missing_code else value) for feature, value in there)
    return Apart(own, several.min_distance, name=f"apart from explanation {rank}")

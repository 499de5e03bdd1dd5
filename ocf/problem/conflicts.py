"""Why a row is infeasible: a smallest set of what the user asked for that cannot hold together.

Every wish that can be dropped is a *reason*: a constraint, a fixed or monotone feature, a permitted range,
plausibility, a wanted probability. When a problem is proven infeasible, a set of reasons that conflict is narrowed
down until dropping any one of them would make the problem feasible. Halves are tried first, so that few of many
reasons are found in few solves. Source: Junker, QuickXplain: preferred explanations and relaxations for
over-constrained problems (2004).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ocf.features.feature import Feature
from ocf.features.reading import in_words
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassSetTarget, ProbabilityTarget


@dataclass(frozen=True)
class Reason:
    """Something that a user asked for.

    Attributes
    ----------
    words : str
    drop : callable
        The problem without it.
    """

    words: str
    drop: Callable[[Problem], Problem]


def reasons(problem: Problem) -> list[Reason]:
    """Everything in a problem that a user could do without."""
    out = [Reason(_called(c.name, c.words()), partial(_without, k)) for k, c in enumerate(problem.constraints)]
    for i, feature in enumerate(problem.space.features):
        if feature.action != "free":
            out.append(Reason(_action(feature), partial(_with_feature, i, "action", "free")))
        if feature.permitted is not None:
            out.append(Reason(_permitted(feature), partial(_with_feature, i, "permitted", None)))
    if problem.plausibility is not None and problem.plausibility.least is not None:
        out.append(Reason("plausibility", lambda p: replace(p, plausibility=None)))
    target = problem.target
    if isinstance(target, ProbabilityTarget) and target.probability > 0.5:
        words = f"a probability of at least {target.probability:g}"
        out.append(Reason(words, lambda p: replace(p, target=ClassSetTarget(target.indices))))
    return out


def conflict(problem: Problem, infeasible: Callable[[Problem], bool]) -> tuple[str, ...]:
    """A set of reasons that conflict, none of which can be left out, in words.

    Parameters
    ----------
    problem : Problem
        Proven infeasible.
    infeasible : callable
        Whether a problem is proven infeasible.

    Returns
    -------
    tuple of str
        Empty when the target is out of reach whatever is dropped.
    """
    known = reasons(problem)

    def contradicts(kept: Sequence[int]) -> bool:
        without = problem
        # constraints are numbered: from the last to the first
        for k in sorted(set(range(len(known))) - set(kept), reverse=True):
            without = known[k].drop(without)
        return infeasible(without)

    if not known or contradicts(()):
        return ()
    return tuple(known[k].words for k in sorted(_narrow(contradicts, [], [], list(range(len(known))))))


def _narrow(
    contradicts: Callable[[Sequence[int]], bool], base: list[int], added: list[int], candidates: list[int]
) -> list[int]:
    """Smallest part of the candidates that conflicts with the base."""
    if added and contradicts(base):
        return []
    if len(candidates) == 1:
        return candidates
    half = len(candidates) // 2
    first, second = candidates[:half], candidates[half:]
    late = _narrow(contradicts, base + first, first, second)
    early = _narrow(contradicts, base + late, late, first)
    return early + late


def _called(name: str, words: str) -> str:
    return f"{name!r} ({words})" if name else f"'{words}'"


def _without(k: int, problem: Problem) -> Problem:
    return replace(problem, constraints=problem.constraints[:k] + problem.constraints[k + 1 :])


def _with_feature(i: int, attribute: str, value: object, problem: Problem) -> Problem:
    features = list(problem.space.features)
    features[i] = replace(features[i], **{attribute: value})  # type: ignore[arg-type]
    return replace(problem, space=replace(problem.space, features=tuple(features)))


def _action(feature: Feature) -> str:
    if feature.action == "fixed":
        return f"{feature.name!r} is fixed"
    return f"{feature.name!r} may only {'increase' if feature.action == 'increasing' else 'decrease'}"


def _permitted(feature: Feature) -> str:
    assert feature.permitted is not None
    if feature.discrete:
        return f"{feature.name!r} must be one of {', '.join(map(str, feature.permitted))}"
    return f"{feature.name!r} must be {in_words(feature, *feature.permitted)}"

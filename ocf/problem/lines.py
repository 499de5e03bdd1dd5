"""Lines: sums of the row's own numbers beside the trees, as a linear model on top of a stack adds them to its score.

Such a score takes a value for each point and none for each leaf. It is a tree of a single oblique split, ``w . x <= t``
(`Ensemble.lines`), which adds ``w . x - t``. For one row that lies between two ends, and the values of the two leaves
are these: a model that lets the leaves of the tree be chosen in parts, and ties the parts to ``w . x``, then has the
score itself in each of its rows, whatever a target asks (`ocf.formulations.hyperplanes`). Once the leaves of all other
trees are chosen, what the target asks is one more half-space, and `line_bounds` is its side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.errors import DataError
from ocf.features.space import FeatureSpace
from ocf.problem.requirements import scores_at
from ocf.problem.targets import ClassSetTarget, ClassTarget, IntervalTarget, ProbabilityTarget, Target
from ocf.trees.ensemble import Ensemble
from ocf.trees.links import odds_around
from ocf.trees.totals import Total

#: Rounding of the library's sum over the row's numbers, in multiples of the bound of a sum of their products alone.
_ALL_TERMS = 8


@dataclass(frozen=True)
class LineBound:
    """``sign * line <= most``.

    Attributes
    ----------
    tree : int
        Of the line.
    sign : float
        1 or -1.
    most : float
    """

    tree: int
    sign: float
    most: float


def with_line_ends(ensemble: Ensemble, space: FeatureSpace, origin: FloatArray) -> Ensemble:
    """The ensemble of a row's problem: the leaves of each line have the ends between which it lies.

    Parameters
    ----------
    ensemble : Ensemble
        Over features.
    space : FeatureSpace
    origin : (n_features,) float64
        The row, coded.

    Raises
    ------
    DataError
        A number of a line has no finite bounds.
    """
    if not len(ensemble.lines):
        return ensemble
    values, slack = ensemble.leaf_values.copy(), ensemble.decision.slack
    for tree, output in ensemble.lines.tolist():
        root = int(ensemble.tree_offsets[tree])
        low, high, size = _ends(ensemble, root, space, origin)
        values[ensemble.leaf_offsets[tree], output] = low
        values[ensemble.leaf_offsets[tree] + 1, output] = high
        slack += _ALL_TERMS * float(ensemble.oblique_error_bound(root, size))
    return replace(ensemble, leaf_values=values, decision=replace(ensemble.decision, slack=slack))


def _ends(ensemble: Ensemble, root: int, space: FeatureSpace, origin: FloatArray) -> tuple[float, float, float]:
    """Between which numbers a line lies, and the most that its terms sum up to without their signs."""
    low = high = -float(ensemble.threshold[root])
    size = 0.0
    features, codes, weights = ensemble.oblique_entries(root)
    for i in np.unique(features).tolist():
        own, feature = features == i, space.features[i]
        if feature.discrete:
            by_code = np.zeros(len(feature.levels))
            by_code[codes[own & (codes >= 0)]] += weights[own & (codes >= 0)]
            terms = by_code + np.arange(len(by_code)) * float(weights[own & (codes < 0)].sum())
        else:
            ends = [*feature.limits(float(origin[i])), float(origin[i])]
            if not np.isfinite(ends).all():
                raise DataError(
                    f"feature {feature.name!r}: a model that adds up numbers of the table needs finite bounds, for "
                    "example bounds = [0, 100]"
                )
            terms = float(weights[own].sum()) * np.array(ends)
        low, high, size = low + float(terms.min()), high + float(terms.max()), size + float(np.abs(terms).max())
    return low, high, size


def line_bounds(ensemble: Ensemble, target: Target, leaves: IntArray, *, sure: bool) -> list[LineBound] | None:
    """What a target asks of the line where the leaves of all other trees are chosen; None: no point has it.

    Parameters
    ----------
    ensemble : Ensemble
        As `with_line_ends` gives it, with one line.
    target : Target
        With one alternative: see `each_target`.
    leaves : (n_trees,) int64
    sure : bool
        Whether all that is within the bounds has the target however the library rounds; otherwise all that may have it
        is.
    """
    ((tree, output),) = ensemble.lines.tolist()
    scores = (scores_at(ensemble, leaves) - ensemble.contributions[leaves[tree]])[None]
    first = int(ensemble.leaf_offsets[tree])
    reach = float(np.abs(ensemble.contributions[first : first + 2, output]).max())
    room = 2 * ensemble.rounding
    out = []
    for total, low, high in _conditions(ensemble, target):
        need = high if sure else low
        if need == -math.inf:
            continue
        if need == math.inf:
            return None
        (own,) = (t for t in total.terms if t.output == output)
        rest = replace(total, terms=tuple(t for t in total.terms if t.output != output), divisor=1.0)
        least, most = (float(end[0]) for end in rest.between(scores - room, scores + room))
        error = abs(own.weight) * room + total.rounding * (abs(own.weight) * reach + abs(least) + abs(most))
        lacks = need * total.divisor - (least if sure else most) + (error if sure else -error)
        # weight * line >= lacks
        sign = -1.0 if own.weight > 0 else 1.0
        out.append(LineBound(tree, sign, -lacks / abs(own.weight)))
    return out


def _conditions(ensemble: Ensemble, target: Target) -> Iterator[tuple[Total, float, float]]:
    """Totals that must reach numbers: those that all points with the target reach, and those from which it is sure."""
    rule = ensemble.decision
    if isinstance(target, ClassSetTarget):  # of all classes
        return
    if isinstance(target, IntervalTarget):
        for sign, end in ((1.0, target.lower), (-1.0, -target.upper)):
            yield rule.totals[0].times(sign), end, end
        return
    assert isinstance(target, ClassTarget | ProbabilityTarget)
    assert rule.margin is not None
    index = target.index if isinstance(target, ClassTarget) else target.indices[0]
    sign = 1.0 if index == 1 else -1.0
    if isinstance(target, ProbabilityTarget):
        yield rule.margin.times(sign), *odds_around(ensemble, target.probability)
    else:
        yield rule.margin.times(sign), sign * rule.threshold, sign * rule.threshold


def each_target(target: Target, n: int) -> list[Target]:
    """The targets of which one is enough, in the order of the alternatives of the whole.

    Parameters
    ----------
    target : Target
    n : int
        Alternatives; one of several classes of three or more, where no line is, stands for the whole target.
    """
    if isinstance(target, ClassSetTarget) and len(target.indices) == 1:
        return [ClassTarget(k) for k in target.indices]
    if isinstance(target, ProbabilityTarget):
        return [ProbabilityTarget((k,), target.probability) for k in target.indices]
    return [target] * n

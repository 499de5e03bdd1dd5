"""Lines: sums of the row's own numbers beside the trees, as a linear model on top of a stack adds them to its score.

Such a score takes a value for each point and none for each leaf. It is a tree of a single oblique split, ``w . x <= t``
(`Ensemble.lines`), which adds ``w . x - t``. For one row that lies between two ends, and the values of the two leaves
are these: a model that lets the leaves of the tree be chosen in parts, and ties the parts to ``w . x``, then has the
score itself in each of its rows, whatever a target asks (`ocf.formulations.hyperplanes`). Once the leaves of all other
trees are chosen, what the target asks is one more half-space, and `line_bounds` is its side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.errors import DataError
from ocf.features.lattice import first_number
from ocf.features.space import FeatureSpace
from ocf.problem.requirements import SoftmaxThreshold
from ocf.problem.targets import ClassSetTarget, ClassTarget, IntervalTarget, ProbabilityTarget, Target
from ocf.trees.ensemble import Ensemble
from ocf.trees.links import odds_around
from ocf.trees.totals import Term, Total, identity

#: Rounding of the library's sum over the row's numbers, in multiples of the bound of a sum of their products alone.
_ALL_TERMS = 8

#: Difference of weights in tangents of a softmax, whose weights are at most 1, of which the later alone is kept.
ALIKE = 1e-4


@dataclass(frozen=True)
class LineBound:
    """``sum of weight * line <= most``.

    Attributes
    ----------
    parts : tuple of (int, float)
        Trees of the lines, and their weights; that of a line by itself is 1 or -1.
    most : float
    """

    parts: tuple[tuple[int, float], ...]
    most: float


@dataclass(frozen=True)
class LineCondition:
    """A total of the scores that must reach a number.

    Attributes
    ----------
    total : Total
    low, high : float
        All points with the target reach the one; those that reach the other surely have it.
    strict : bool
        Whether the numbers themselves are not enough, where the total makes no error.
    """

    total: Total
    low: float
    high: float
    strict: bool = False

    def raised(self, by: float) -> LineCondition:
        """The same of numbers that are larger by so much."""
        return replace(self, low=self.low + by, high=self.high + by)

    def resembles(self, other: LineCondition) -> bool:
        """Whether two totals weigh the scores so much alike that half-spaces of both only confuse a solver."""
        weights = [{t.output: t.weight for t in c.total.terms} for c in (self, other)]
        return weights[0].keys() == weights[1].keys() and all(
            abs(w - weights[1][k]) <= ALIKE for k, w in weights[0].items()
        )


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


def line_bounds(
    ensemble: Ensemble, conditions: Sequence[LineCondition], leaves: IntArray, *, sure: bool
) -> list[LineBound] | None:
    """What a target asks of the lines where the leaves of all other trees are chosen; None: no point has it.

    Parameters
    ----------
    ensemble : Ensemble
        As `with_line_ends` gives it.
    conditions : sequence of LineCondition
        All of which must hold: see `line_conditions`.
    leaves : (n_trees,) int64
    sure : bool
        Whether all that is within the bounds has the target however the library rounds; otherwise all that may have it
        is.
    """
    chosen = np.delete(leaves, ensemble.lines[:, 0])
    known = _Known(ensemble, (ensemble.base_score + ensemble.contributions[chosen].sum(axis=0))[None])
    out = []
    for condition in conditions:
        need = condition.high if sure else condition.low
        if need == -math.inf:
            continue
        if need == math.inf:
            return None
        own = [t for t in condition.total.terms if t.output in known.reach and t.weight]
        if any(t.maps for t in own):
            found = known.through_curve(condition, need, own[0].output, sure=sure)
        else:
            found = known.of_sum(condition.total, need, own, sure=sure)
        if found is None:
            return None
        out += found
    return out


@dataclass(frozen=True)
class _Known:
    """Scores but for their lines, (1, n_outputs), where the leaves of all other trees are chosen."""

    ensemble: Ensemble
    scores: FloatArray

    @cached_property
    def room(self) -> float:
        """By how much the library's own scores may differ."""
        return 2 * self.ensemble.rounding

    @cached_property
    def reach(self) -> dict[int, tuple[float, float]]:
        """Between which numbers the lines of a score lie."""
        out: dict[int, tuple[float, float]] = {}
        for tree, output in self.ensemble.lines.tolist():
            first, (low, high) = int(self.ensemble.leaf_offsets[tree]), out.get(output, (0.0, 0.0))
            ends = self.ensemble.contributions[first : first + 2, output].tolist()
            out[output] = low + min(ends), high + max(ends)
        return out

    def of_sum(self, total: Total, need: float, own: list[Term], *, sure: bool) -> list[LineBound] | None:
        """A total of which lines are terms without maps, `own`, is at least so much; None: nowhere."""
        rest = replace(total, terms=tuple(t for t in total.terms if t not in own), divisor=1.0)
        least, most = (float(end[0]) for end in rest.between(self.scores - self.room, self.scores + self.room))
        plain = sum(t.weight * float(self.scores[0, t.output]) for t in own)
        size = sum(abs(t.weight) * max(map(abs, self.reach[t.output])) for t in own) + abs(least) + abs(most)
        error = sum(abs(t.weight) for t in own) * self.room + total.rounding * (size + abs(plain))
        lacks = need * total.divisor - (least if sure else most) - plain + (error if sure else -error)
        weights = {o: sum(t.weight for t in own if t.output == o) for o in self.reach}
        # what the lines add up to must be at least what lacks
        parts = [(tree, -weights[o]) for tree, o in self.ensemble.lines.tolist() if weights[o]]
        if not parts:
            return None if lacks > 0 else []
        unit = max(abs(w) for _, w in parts)
        return [LineBound(tuple((tree, w / unit) for tree, w in parts), -lacks / unit)]

    def through_curve(
        self, condition: LineCondition, need: float, output: int, *, sure: bool
    ) -> list[LineBound] | None:
        """A total that sees one line, that of an output, through a curve is at least so much; None: nowhere."""
        low, high, total = self.scores - self.room, self.scores + self.room, condition.total

        def holds(score: float) -> bool:
            for rows in (low, high):
                rows[0, output] = score
            shown = float(total.between(low, high, exact=False)[0 if sure else 1][0])
            return shown > need or (shown == need and not condition.strict)

        base, (least, most) = float(self.scores[0, output]), self.reach[output]
        (term,) = (t for t in total.terms if t.output == output)
        sign = 1.0 if term.rises else -1.0
        ends = (base + least - self.room, base + most + self.room)
        bad, good = ends if term.rises else ends[::-1]
        if not holds(good):
            return None
        if holds(bad):
            return []
        # the library's own score may be better than this one by the room, or worse
        lacks = sign * (first_number(holds, bad, good) - base) + (self.room if sure else -self.room)
        return [LineBound(tuple((tree, -sign) for tree, o in self.ensemble.lines.tolist() if o == output), -lacks)]


def line_conditions(ensemble: Ensemble, target: Target) -> list[list[LineCondition]]:
    """What each alternative of a target asks of totals of the scores, of which lines are terms without maps.

    Parameters
    ----------
    ensemble : Ensemble
    target : Target
    """
    rule = ensemble.decision
    if isinstance(target, IntervalTarget):
        value = next(iter(rule.totals), identity(0))
        return [
            [
                LineCondition(value, target.lower, target.lower),
                LineCondition(value.times(-1.0), -target.upper, -target.upper),
            ]
        ]
    if isinstance(target, ProbabilityTarget):
        odds, n = odds_around(ensemble, target.probability), len(rule.classes)
        if rule.totals:
            return [[LineCondition(rule.totals[k], target.probability, target.probability)] for k in target.indices]
        if rule.kind == "argmax":  # of a softmax: beyond each other class; the rest are tangents
            pairs = [[identity(k).minus(identity(j)) for j in range(n) if j != k] for k in target.indices]
            return [[LineCondition(pair, odds[0], odds[0]) for pair in own] for own in pairs]
        return [[_margin(ensemble, k, *odds)] for k in target.indices]
    assert isinstance(target, ClassTarget | ClassSetTarget)
    return _of_classes(ensemble, target.indices if isinstance(target, ClassSetTarget) else (target.index,))


def _of_classes(ensemble: Ensemble, indices: Sequence[int]) -> list[list[LineCondition]]:
    """What each of some classes asks, to beat all that are not among them."""
    rule = ensemble.decision
    others = [k for k in range(len(rule.classes)) if k not in indices]
    if not others:
        return [[]]
    if rule.kind == "threshold":
        ends = {k: rule.threshold if k == 1 else -rule.threshold for k in indices}
        strict = {k: rule.tie_is_positive != (k == 1) for k in indices}
        return [[replace(_margin(ensemble, k, end, end), strict=strict[k])] for k, end in ends.items()]
    totals = rule.totals or tuple(map(identity, range(len(rule.classes))))
    return [[LineCondition(totals[k].minus(totals[j]), 0.0, 0.0) for j in others] for k in indices]


def _margin(ensemble: Ensemble, index: int, low: float, high: float) -> LineCondition:
    """What a model of two classes compares with its threshold, in favour of one of them."""
    margin = ensemble.decision.margin or identity(0)
    return LineCondition(margin.times(1.0 if index == 1 else -1.0), low, high)


def tangent_condition(curve: SoftmaxThreshold, scores: FloatArray) -> LineCondition:
    """What a softmax's tangent at some scores asks of them.

    Parameters
    ----------
    curve : SoftmaxThreshold
    scores : (n_outputs,) float64
    """
    weights, low, high = curve.tangent_at(scores)
    terms = tuple(Term(k, (), w) for k, w in enumerate(weights.tolist()))
    return LineCondition(Total(terms, replayed=False), low, high)

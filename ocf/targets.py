"""What is wanted of the model's answer, as linear requirements on sums of leaf values.

A target is a union of *alternatives*, each a conjunction of linear requirements: a class beats every other; one of
several classes beats all that are not among them; a probability reaches a threshold; a value lies in an interval. The
alternatives are solved one after the other (`ocf.solving`), and the user's own model judges every point.

Sources: ocean, (13)-(14); fcca, (8)-(9); box, (8)-(9).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ocf.ensemble import BoolArray, Ensemble, FloatArray, IntArray
from ocf.errors import ProblemError
from ocf.links import odds_around, scores_around
from ocf.words import nearest

#: Doubt of a requirement that no score meets beyond doubt, or only one so far out that its link is flat.
_BOUNDLESS = 1e3

#: Relative rounding of the coefficients of a tangent.
_TANGENT = 1e-13

#: Kinds of links under which the library shows a probability of each class.
_PROBABLE = ("logistic", "softmax", "mean")


@dataclass(frozen=True)
class Requirements:
    """``sum over trees of gain[leaf] >= need`` for each row: an alternative of a target, in terms of leaves.

    They hold for every point to which the library itself, with its rounding, can give the target; points within
    rounding of a tie satisfy them too, and the user's model decides about those.

    Attributes
    ----------
    gain : (n_leaves, n_rows) float64
    need : (n_rows,) float64
    doubt : (n_rows,) float64
        A point that exceeds ``need + doubt`` in every row has the target beyond doubt; 0 where arithmetic is exact.
    curve : Curve or None
        A condition that is not linear and that the rows hold from outside.
    """

    gain: FloatArray
    need: FloatArray
    doubt: FloatArray
    curve: Curve | None = None

    def tightened(self, leaves: IntArray) -> Requirements | None:
        """These and one row that cuts off a point that the model has refused; None where no row can.

        Parameters
        ----------
        leaves : (n_trees,) int64
        """
        if self.curve is None:
            return None
        row = self.curve.tangent(self.curve.scores(leaves))
        return _joined([self, row], self.curve) if row.gain[leaves].sum() < row.need[0] else None


@dataclass(frozen=True)
class Curve:
    """A softmax probability of class k reaches a threshold: ``s_k - log(sum over others of exp(s)) >= odds``.

    The left side is concave in the scores, so its tangents are valid requirements, and the tangent at a point that
    misses the threshold cuts it off (Kelley's cutting planes).

    Attributes
    ----------
    ensemble : Ensemble
    index : int
        Class k.
    low, high : float
        Log odds that every point with the target reaches, and beyond which every point has it.
    """

    ensemble: Ensemble
    index: int
    low: float
    high: float

    def scores(self, leaves: IntArray) -> FloatArray:
        """Scores of a choice of one leaf per tree, (n_outputs,)."""
        scores: FloatArray = self.ensemble.base_score + self.ensemble.contributions[leaves].sum(axis=0)
        return scores

    def tangent(self, scores: FloatArray) -> Requirements:
        """The tangent at some scores, as a requirement of one row."""
        others = np.arange(len(scores)) != self.index
        weight = np.where(others, softmax(np.where(others, scores, -np.inf)), 0.0)
        coefficients = others * -weight
        coefficients[self.index] = 1.0
        # of the tangent of log-sum-exp at the scores, the part that is constant
        constant = float(logsumexp(scores[others]) - weight @ np.where(others, scores, 0.0))
        slack = _TANGENT * (1.0 + float(np.abs(scores).max()) + _reach(self.ensemble))
        return _row(self.ensemble, coefficients, self.low + constant - slack, self.low + constant + slack)

    def rows(self) -> Requirements:
        """Class k against each other one, and the tangent where the others score the same.

        A point where k beats each of the others by the odds and the logarithm of their number has the target.
        """
        n = self.ensemble.n_outputs
        pairs = [
            _row(self.ensemble, _versus(n, self.index, other), self.low, self.high + math.log(n - 1))
            for other in range(n)
            if other != self.index
        ]
        return _joined([*pairs, self.tangent(np.zeros(n))], self)


class Target(Protocol):
    """What is wanted of the model's answer. Hashable, since compiled models are kept by it."""

    @property
    def probability(self) -> float | None:
        """Probability that a class should reach; `met_by` then needs the model's probabilities."""

    def check(self, ensemble: Ensemble) -> None:
        """Refuse a target that an ensemble cannot have.

        Raises
        ------
        ProblemError
        """

    def alternatives(self, ensemble: Ensemble) -> tuple[Requirements, ...]:
        """Requirements, of which a point with the target meets one alternative."""

    def met_by(self, answers: NDArray[Any], probabilities: FloatArray | None = None) -> BoolArray:
        """Which answers of the user's model are wanted ones, (n,).

        Parameters
        ----------
        answers : (n,) class indices or values
        probabilities : (n, n_classes) float64, optional
        """

    def named(self, classes: Sequence[Any]) -> Any:
        """The target as a user says it: a label, a tuple of labels, or a pair of bounds."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""


# -- the kinds of targets --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassTarget:
    """The model should decide for one class.

    Attributes
    ----------
    index : int
        Index of the class in ``Decision.classes``.
    """

    index: int
    probability = None

    @classmethod
    def parse(cls, ensemble: Ensemble, target: Any, current: int | None = None) -> ClassTarget:
        """Target from a class label, its text, or ``"opposite"`` of the current class of a binary model."""
        classes = ensemble.decision.classes
        if not classes:
            raise ProblemError("the model is a regressor and has no classes: give it a target interval")
        if isinstance(target, str) and target == "opposite" and "opposite" not in classes:
            if len(classes) != 2 or current is None:
                raise ProblemError(f"'opposite' needs two classes; name one of {', '.join(map(str, classes))}")
            return cls(1 - current)
        for index, label in enumerate(classes):
            if target == label or str(target) == str(label):
                return cls(index)
        raise ProblemError(f"the model has no class {nearest(target, classes)}")

    def check(self, ensemble: Ensemble) -> None:
        """Refuse a target that an ensemble cannot have."""
        _check_classes(ensemble, (self.index,))

    def alternatives(self, ensemble: Ensemble) -> tuple[Requirements, ...]:
        """One: the class beats every other."""
        return (self.requirements(ensemble),)

    def requirements(self, ensemble: Ensemble) -> Requirements:
        """Linear requirements on leaves (ocean, (13)-(14); box, (8))."""
        return _beats(ensemble, self.index, [k for k in range(len(ensemble.decision.classes)) if k != self.index])

    def met_by(self, answers: NDArray[Any], probabilities: FloatArray | None = None) -> BoolArray:
        """Which decisions are for the class."""
        return np.asarray(answers == self.index)

    def named(self, classes: Sequence[Any]) -> Any:
        """Label of the class."""
        return classes[self.index]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {"kind": "class", "index": self.index}


@dataclass(frozen=True)
class ClassSetTarget:
    """The model should decide for any of several classes.

    Attributes
    ----------
    indices : tuple of int
        Of the classes, in increasing order.
    """

    indices: tuple[int, ...]
    probability = None

    def check(self, ensemble: Ensemble) -> None:
        """Refuse a target that an ensemble cannot have."""
        _check_classes(ensemble, self.indices)

    def alternatives(self, ensemble: Ensemble) -> tuple[Requirements, ...]:
        """One per class: it beats every class outside the set."""
        outside = [k for k in range(len(ensemble.decision.classes)) if k not in self.indices]
        if not outside:
            return (_nothing_needed(ensemble),)
        return tuple(_beats(ensemble, k, outside) for k in self.indices)

    def met_by(self, answers: NDArray[Any], probabilities: FloatArray | None = None) -> BoolArray:
        """Which decisions are for one of the classes."""
        return np.isin(answers, self.indices)

    def named(self, classes: Sequence[Any]) -> Any:
        """Labels of the classes."""
        return tuple(classes[k] for k in self.indices)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {"kind": "classes", "indices": list(self.indices)}


@dataclass(frozen=True)
class ProbabilityTarget:
    """The model's probability of a class, or of some one class of a set, should reach a threshold (box, (8)).

    For forests the probability is the mean vote of the trees. Above one half it implies the decision for the class;
    below, the decision may be another one, so that a threshold of one's own can take the place of the model's.

    Attributes
    ----------
    indices : tuple of int
        Of the classes, in increasing order.
    probability : float
        In (0, 1]; compared with what the library shows, as real numbers.
    """

    indices: tuple[int, ...]
    probability: float

    def check(self, ensemble: Ensemble) -> None:
        """Refuse a target that an ensemble cannot have."""
        _check_classes(ensemble, self.indices)
        if ensemble.decision.link not in _PROBABLE:
            raise ProblemError("the model shows no probabilities, so that none can be wanted")

    def alternatives(self, ensemble: Ensemble) -> tuple[Requirements, ...]:
        """One per class."""
        return tuple(self._of(ensemble, k) for k in self.indices)

    def _of(self, ensemble: Ensemble, k: int) -> Requirements:
        rule = ensemble.decision
        if rule.link == "softmax":
            return Curve(ensemble, k, *odds_around(ensemble, self.probability)).rows()
        if rule.kind == "threshold":
            low, high = odds_around(ensemble, self.probability)
            return _row(ensemble, np.array([1.0 if k == 1 else -1.0]), low, high)
        coefficients = np.eye(ensemble.n_outputs)[k]
        if rule.link == "mean":
            return _mean_row(ensemble, coefficients, self.probability)
        return _row(ensemble, coefficients, *odds_around(ensemble, self.probability))

    def met_by(self, answers: NDArray[Any], probabilities: FloatArray | None = None) -> BoolArray:
        """Which rows have the probability."""
        assert probabilities is not None
        return np.asarray((probabilities[:, list(self.indices)] >= self.probability).any(axis=1))

    def named(self, classes: Sequence[Any]) -> Any:
        """Label of the class, or labels of the classes."""
        labels = tuple(classes[k] for k in self.indices)
        return labels if len(labels) > 1 else labels[0]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {"kind": "probability", "indices": list(self.indices), "probability": self.probability}


@dataclass(frozen=True)
class IntervalTarget:
    """The value that a regressor predicts should lie in a closed interval (box, (9)).

    Attributes
    ----------
    lower, upper : float
        On the scale of the prediction; infinite for an open end.
    """

    lower: float
    upper: float
    probability = None

    def check(self, ensemble: Ensemble) -> None:
        """Refuse a target that an ensemble cannot have."""
        if ensemble.decision.classes:
            raise ProblemError("the model has classes: an interval is wanted of a regressor's value")
        empty = not self.lower <= self.upper or self.lower == math.inf or self.upper == -math.inf
        if empty or (self.lower == -math.inf and self.upper == math.inf):
            raise ProblemError(f"the target interval ({self.lower}, {self.upper}) holds no value, or every one")

    def alternatives(self, ensemble: Ensemble) -> tuple[Requirements, ...]:
        """One: the score is neither too low nor too high."""
        rows = []
        if self.lower > -math.inf:
            rows.append(self._side(ensemble, 1.0, self.lower))
        if self.upper < math.inf:
            rows.append(self._side(ensemble, -1.0, self.upper))
        return (_joined(rows),)

    @staticmethod
    def _side(ensemble: Ensemble, sign: float, value: float) -> Requirements:
        """``sign * prediction >= sign * value``."""
        if ensemble.decision.link == "mean":
            return _mean_row(ensemble, np.array([sign]), sign * value)
        low, high = scores_around(ensemble, value)
        return _row(ensemble, np.array([sign]), *((low, high) if sign > 0 else (-high, -low)))

    def met_by(self, answers: NDArray[Any], probabilities: FloatArray | None = None) -> BoolArray:
        """Which predictions lie in the interval."""
        return np.asarray((answers >= self.lower) & (answers <= self.upper))

    def named(self, classes: Sequence[Any]) -> Any:
        """The bounds, None for an open end."""
        return tuple(bound if math.isfinite(bound) else None for bound in (self.lower, self.upper))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        lower, upper = self.named(())
        return {"kind": "interval", "lower": lower, "upper": upper}


def _check_classes(ensemble: Ensemble, indices: Sequence[int]) -> None:
    n = len(ensemble.decision.classes)
    if not indices or not set(indices) <= set(range(n)) or list(indices) != sorted(set(indices)):
        raise ProblemError(f"the target names the classes {list(indices)} by number, but the model has {n}")


# -- from what a user says -------------------------------------------------------------------------------------


def parse_target(
    ensemble: Ensemble, target: Any, current: int | None = None, probability: float | None = None
) -> Target:
    """Target from what a user says.

    Parameters
    ----------
    ensemble : Ensemble
    target : label, "opposite", collection of labels, or (lowest, highest)
        Labels for a classifier; for a regressor bounds of its value, None for an open end.
    current : int, optional
        Index of the row's own class, for ``"opposite"``.
    probability : float, optional
        What the model's probability of the class should reach.

    Raises
    ------
    ProblemError
        The model has no such class or no probabilities, or bounds and probability mean nothing.
    """
    if not ensemble.decision.classes:
        if probability is not None:
            raise ProblemError("the model is a regressor and has no probabilities: give bounds of its value")
        return _interval(ensemble, target)
    labels = list(target) if _is_collection(target) else [target]
    if not labels:
        raise ProblemError(f"the target names no class; name some of {', '.join(map(str, ensemble.decision.classes))}")
    indices = tuple(sorted({ClassTarget.parse(ensemble, label, current).index for label in labels}))
    if probability is not None:
        return ProbabilityTarget(indices, _probability(ensemble, probability))
    return ClassSetTarget(indices) if len(indices) > 1 else ClassTarget(indices[0])


def _is_collection(target: Any) -> bool:
    return isinstance(target, Iterable) and not isinstance(target, str | bytes)


def _probability(ensemble: Ensemble, probability: Any) -> float:
    if ensemble.decision.link not in _PROBABLE:
        raise ProblemError(
            "the model shows no probabilities, so none can be asked for: leave the probability out, or train with an "
            "objective that has them, such as binary:logistic"
        )
    if not _is_number(probability) or not 0 < probability <= 1:
        raise ProblemError(f"a probability is a number above 0 and up to 1, not {probability!r}")
    return float(probability)


def _interval(ensemble: Ensemble, target: Any) -> IntervalTarget:
    bounds = list(target) if _is_collection(target) else []
    if len(bounds) != 2 or not all(b is None or _is_number(b) for b in bounds):
        raise ProblemError(
            f"the model is a regressor and has no class {target!r}: give the target as an interval of its value, "
            "target=(lowest, highest) with None for an open end, or --at-least and --at-most"
        )
    lower = -math.inf if bounds[0] is None else float(bounds[0])
    upper = math.inf if bounds[1] is None else float(bounds[1])
    if lower > upper or lower == math.inf or upper == -math.inf:
        raise ProblemError(f"the target interval ({bounds[0]}, {bounds[1]}) is empty: give (lowest, highest)")
    if lower == -math.inf and upper == math.inf:
        raise ProblemError("the target interval is open at both ends: every prediction lies in it")
    return IntervalTarget(lower, upper)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and not math.isnan(value)


def target_from_dict(data: dict[str, Any]) -> Target:
    """Target from what ``to_dict`` wrote."""
    kind = data.get("kind")
    if kind == "class":
        return ClassTarget(int(data["index"]))
    if kind == "classes":
        return ClassSetTarget(tuple(map(int, data["indices"])))
    if kind == "probability":
        return ProbabilityTarget(tuple(map(int, data["indices"])), float(data["probability"]))
    if kind == "interval":
        lower, upper = data["lower"], data["upper"]
        return IntervalTarget(-math.inf if lower is None else float(lower), math.inf if upper is None else float(upper))
    raise ProblemError(f"unknown kind of target {kind!r}")


# -- rows ------------------------------------------------------------------------------------------------------


def _beats(ensemble: Ensemble, index: int, others: Sequence[int]) -> Requirements:
    """A class wins against others, with the library's own rule for ties."""
    rule = ensemble.decision
    if rule.kind == "threshold":
        sign = 1.0 if index == 1 else -1.0
        coefficients = np.array([[sign]])
        need = np.array([sign * rule.threshold])
        tie_wins = np.array([rule.tie_is_positive == (index == 1)])
    else:
        coefficients = np.array([_versus(ensemble.n_outputs, index, k) for k in others])
        need = np.zeros(len(others))
        tie_wins = np.array([k > index for k in others])
    need = need - coefficients @ ensemble.base_score
    exact = _exact_requirements(ensemble, coefficients, need, tie_wins)
    if exact is not None:
        return exact
    gain = ensemble.contributions @ coefficients.T
    doubt = _rounding(ensemble, coefficients)
    return Requirements(gain, need - doubt, 2 * doubt)


def _versus(n: int, index: int, other: int) -> FloatArray:
    coefficients = np.zeros(n)
    coefficients[index], coefficients[other] = 1.0, -1.0
    return coefficients


def _rounding(ensemble: Ensemble, coefficients: FloatArray) -> FloatArray:
    """Rounding of combinations of scores, (n_rows,)."""
    # forming a difference of two scores rounds once more per leaf, which the factor covers
    rounding: FloatArray = np.abs(coefficients).sum(axis=-1) * ensemble.rounding * 1.5 + 1e-300
    return rounding


def _row(ensemble: Ensemble, coefficients: FloatArray, low: float, high: float) -> Requirements:
    """``coefficients . scores >= low``, met beyond doubt from `high` on; either may be infinite."""
    gain = (ensemble.contributions @ coefficients)[:, None]
    if math.isinf(low):
        # met by all or by none, in numbers that arithmetic can bear
        never = np.array([math.copysign(_reach(ensemble) * float(np.abs(coefficients).sum()) + 1.0, low)])
        return Requirements(gain, never, np.zeros(1))
    rounding = float(_rounding(ensemble, coefficients))
    need = low - float(coefficients @ ensemble.base_score) - rounding
    doubt = high - low if math.isfinite(high) else _BOUNDLESS
    return Requirements(gain, np.array([need]), np.array([doubt + 2 * rounding]))


def _reach(ensemble: Ensemble) -> float:
    """Bound on the absolute value of any score, without the base."""
    largest = np.maximum.reduceat(np.abs(ensemble.contributions).max(axis=1), ensemble.leaf_offsets[:-1])
    return float(largest.sum())


def _mean_row(ensemble: Ensemble, coefficients: FloatArray, value: float) -> Requirements:
    """``coefficients . mean of the leaves >= value``; exact where sums are, as for votes of pure leaves."""
    quantum = _quantum(ensemble)
    if abs(value) > 2 * _reach(ensemble):
        return _row(ensemble, coefficients, math.copysign(math.inf, value), math.inf)
    if quantum is None:
        return _row(ensemble, coefficients, value, value)
    gain = (ensemble.leaf_values @ coefficients)[:, None]
    # the smallest sum whose mean, rounded as the library rounds it, reaches the value
    least = math.floor(value * ensemble.n_trees / quantum) - 2
    while least * quantum / ensemble.n_trees < value:
        least += 1
    return Requirements(gain, np.array([(least - 0.5) * quantum]), np.zeros(1))


def _nothing_needed(ensemble: Ensemble) -> Requirements:
    return _row(ensemble, np.zeros(ensemble.n_outputs), -math.inf, -math.inf)


def _joined(parts: Sequence[Requirements], curve: Curve | None = None) -> Requirements:
    return Requirements(
        np.hstack([part.gain for part in parts]),
        np.concatenate([part.need for part in parts]),
        np.concatenate([part.doubt for part in parts]),
        curve,
    )


def _exact_requirements(
    ensemble: Ensemble, coefficients: FloatArray, need: FloatArray, tie_wins: NDArray[Any]
) -> Requirements | None:
    """Requirements without doubt where a tie is a true tie: half a quantum separates winning from losing."""
    quantum = _quantum(ensemble)
    if quantum is None or np.any(need):
        return None  # thresholds are of other quanta
    half = np.where(tie_wins, -quantum / 2, quantum / 2)
    return Requirements(ensemble.leaf_values @ coefficients.T, half, np.zeros(len(half)))


def _quantum(ensemble: Ensemble) -> float | None:
    """What all sums of leaf values are multiples of, where floating-point addition makes no error; else None.

    That is so when all leaf values are multiples of a power of two that is not too small against their sum.
    """
    weights = ensemble.tree_weights
    if np.any(weights != weights[0]) or weights[0] <= 0 or ensemble.decision.slack > 0 or np.any(ensemble.base_score):
        return None  # base scores are of other quanta
    values = ensemble.leaf_values
    bits = 24 if ensemble.precision == "float32" else 53
    largest = np.maximum.reduceat(np.abs(values).max(axis=1), ensemble.leaf_offsets[:-1]).sum()
    if largest == 0:
        return None
    quantum = float(2.0 ** (np.ceil(np.log2(largest)) - bits + 2))
    if np.any(np.remainder(values, quantum)):
        return None
    while not np.any(np.remainder(values, 2 * quantum)):
        quantum *= 2
    return quantum

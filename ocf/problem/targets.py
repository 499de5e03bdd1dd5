"""What is wanted of the model's answer, as linear requirements on sums of leaf values.

A target is a union of *alternatives*, each a conjunction of linear requirements: a class beats every other; one of
several classes beats all that are not among them; a probability reaches a threshold; a value lies in an interval. The
alternatives are solved one after the other (`ocf.solve.cell_search`), and the user's own model judges every point.

Sources: ocean, (13)-(14); fcca, (8)-(9); box, (8)-(9).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import ProblemError
from ocf.problem.final_trees import final_alternatives
from ocf.problem.mean_shares import mean_share_rows
from ocf.problem.requirements import (
    BOUNDLESS,
    CurvesAtOnce,
    SoftmaxThreshold,
    beats_row,
    joined_requirements,
    mean_row,
    nothing_needed,
    score_row,
)
from ocf.problem.totals import total_rows
from ocf.support.amounts import real_number
from ocf.support.messages import nearest
from ocf.support.schemas import ClassSetTargetSchema, ClassTargetSchema, ProbabilityTargetSchema, TargetSchema
from ocf.trees.ensemble import Decision, Ensemble
from ocf.trees.links import odds_around, scores_around
from ocf.trees.totals import Total, share

if TYPE_CHECKING:
    from ocf.problem.requirements import Requirements


#: Kinds of links under which the library shows a probability of each class.
_PROBABLE = ("logistic", "softmax", "mean", "normalized")


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

    def check(self, ensemble: Ensemble) -> None:
        """Refuse a target that an ensemble cannot have."""
        _check_classes(ensemble, (self.index,))

    def alternatives(self, ensemble: Ensemble) -> tuple[Requirements, ...]:
        """One: the class beats every other."""
        if ensemble.decision.final is not None:
            return final_alternatives(ensemble, self.alternatives(ensemble.decision.final.trees))
        return (self.requirements(ensemble),)

    def requirements(self, ensemble: Ensemble) -> Requirements:
        """Linear requirements on leaves (ocean, (13)-(14); box, (8))."""
        return _beats(ensemble, self.index, [k for k in range(len(ensemble.decision.classes)) if k != self.index])

    def met_by(self, answers: NDArray[Any], probabilities: FloatArray | None = None) -> BoolArray:
        """Which decisions are for the class.

        Parameters
        ----------
        answers : (n,) class indices or values
        probabilities : (n, n_classes) float64, optional
            Which a target on probabilities needs.
        """
        return np.asarray(answers == self.index)

    def named(self, classes: Sequence[Any]) -> Any:
        """Label of the class."""
        return classes[self.index]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {"kind": "class", "index": self.index}


def class_index(target: Any, classes: Sequence[Any], what: str = "") -> int:
    """Which class a label, or its text, names.

    Parameters
    ----------
    target : object
        What the user wrote.
    classes : sequence of labels
    what : str
        Where it stands, for the message.

    Raises
    ------
    ProblemError
        None of them.
    """
    named = [str(target) == str(label) or (target is not pd.NA and bool(target == label)) for label in classes]
    named = named if any(named) else [_reads_as(target, label) for label in classes]
    if not any(named):
        raise ProblemError(f"{what and what + ': '}there is no class {nearest(target, classes)}")
    return named.index(True)


def wanted_class(target: Any, classes: Sequence[Any], current: int | None = None) -> int:
    """Index of the class that a user wants.

    Parameters
    ----------
    target : class label, "opposite" or a collection of one label
        A label may be given as text. In a collection "opposite" is a label where a class is named so.
    classes : sequence of labels
    current : int, optional
        Index of the class that the row has, for ``"opposite"``.

    Raises
    ------
    ProblemError
        No such class, or "opposite" that may mean two things or of more than two classes.
    """
    labels = list(target) if _is_collection(target) else [target]
    if len(labels) != 1:
        raise ProblemError(f"the target is one class here, not {len(labels)}; name one of {_listed(classes)}")
    if not isinstance(labels[0], str) or labels[0] != "opposite":
        return class_index(labels[0], classes)
    if "opposite" not in classes:
        if len(classes) != 2 or current is None:
            raise ProblemError(f"'opposite' needs two classes and a row that has one; name one of {_listed(classes)}")
        return 1 - current
    if not _is_collection(target):
        raise ProblemError(
            "a class is named 'opposite', which also means the other class of two: name the class that is wanted, "
            "target=['opposite'] for that one (in a problem file target = [\"opposite\"], in ocf solve --target twice)"
        )
    return class_index("opposite", classes)


def _listed(classes: Sequence[Any]) -> str:
    return ", ".join(map(str, classes))


def _reads_as(text: Any, label: Any) -> bool:
    """Whether a text is a label that is a number, such as "1" of 1.0."""
    try:
        return isinstance(text, str) and not isinstance(label, str | bool | np.bool_) and float(text) == label
    except (TypeError, ValueError):
        return False


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
        if ensemble.decision.final is not None:
            return final_alternatives(ensemble, self.alternatives(ensemble.decision.final.trees))
        outside = [k for k in range(len(ensemble.decision.classes)) if k not in self.indices]
        if not outside:
            return (nothing_needed(ensemble),)
        return tuple(_beats(ensemble, k, outside) for k in self.indices)

    def met_by(self, answers: NDArray[Any], probabilities: FloatArray | None = None) -> BoolArray:
        """Which decisions are for one of the classes.

        Parameters
        ----------
        answers : (n,) class indices or values
        probabilities : (n, n_classes) float64, optional
            Which a target on probabilities needs.
        """
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
        if ensemble.decision.final is not None:
            return final_alternatives(ensemble, self.alternatives(ensemble.decision.final.trees))
        return tuple(self._of(ensemble, k) for k in self.indices)

    def _of(self, ensemble: Ensemble, k: int) -> Requirements:
        rule = ensemble.decision
        if len(rule.rounds) > 1:
            return mean_share_rows(ensemble, [float(j == k) - self.probability for j in range(len(rule.classes))])
        if rule.link == "normalized":
            return total_rows(ensemble, share(rule.totals, k, self.probability), 0.0, strict=False)
        if rule.totals:
            return total_rows(ensemble, rule.totals[k], self.probability, strict=False)
        if rule.link == "softmax":
            return SoftmaxThreshold(ensemble, k, *odds_around(ensemble, self.probability)).rows()
        if rule.kind == "threshold":
            low, high = odds_around(ensemble, self.probability)
            sign = 1.0 if k == 1 else -1.0
            if rule.margin is not None:
                return _reaches(ensemble, rule.margin.times(sign), low, high)
            return score_row(ensemble, np.array([sign]), low, high)
        coefficients = np.eye(ensemble.n_outputs)[k]
        if rule.link == "mean":
            return mean_row(ensemble, coefficients, self.probability)
        return score_row(ensemble, coefficients, *odds_around(ensemble, self.probability))

    def met_by(self, answers: NDArray[Any], probabilities: FloatArray | None = None) -> BoolArray:
        """Which rows have the probability.

        Parameters
        ----------
        answers : (n,) class indices or values
        probabilities : (n, n_classes) float64, optional
            Which a target on probabilities needs.
        """
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
        if ensemble.decision.final is not None:
            return final_alternatives(ensemble, self.alternatives(ensemble.decision.final.trees))
        rows = []
        if self.lower > -math.inf:
            rows.append(self._side(ensemble, 1.0, self.lower))
        if self.upper < math.inf:
            rows.append(self._side(ensemble, -1.0, self.upper))
        return (_joined(rows),)

    @staticmethod
    def _side(ensemble: Ensemble, sign: float, value: float) -> Requirements:
        """``sign * prediction >= sign * value``."""
        if ensemble.decision.totals:
            return total_rows(ensemble, ensemble.decision.totals[0].times(sign), sign * value, strict=False)
        if ensemble.decision.link == "mean":
            return mean_row(ensemble, np.array([sign]), sign * value)
        low, high = scores_around(ensemble, value)
        return score_row(ensemble, np.array([sign]), *((low, high) if sign > 0 else (-high, -low)))

    def met_by(self, answers: NDArray[Any], probabilities: FloatArray | None = None) -> BoolArray:
        """Which predictions lie in the interval.

        Parameters
        ----------
        answers : (n,) class indices or values
        probabilities : (n, n_classes) float64, optional
            Which a target on probabilities needs.
        """
        return np.asarray((answers >= self.lower) & (answers <= self.upper))

    def named(self, classes: Sequence[Any]) -> Any:
        """The bounds, None for an open end."""
        return tuple(bound if math.isfinite(bound) else None for bound in (self.lower, self.upper))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        lower, upper = self.named(())
        return {"kind": "interval", "lower": lower, "upper": upper}


def _beats(ensemble: Ensemble, index: int, others: Sequence[int]) -> Requirements:
    """A class wins against others, by the model's own rule for ties."""
    rule = ensemble.decision
    if rule.margin is not None:
        sign = 1.0 if index == 1 else -1.0
        strict = rule.tie_is_positive != (index == 1)
        return total_rows(ensemble, rule.margin.times(sign), sign * rule.threshold, strict=strict)
    if len(rule.rounds) > 1:
        versus = np.eye(len(rule.classes))
        return _joined([mean_share_rows(ensemble, (versus[index] - versus[k]).tolist()) for k in others])
    if rule.totals:
        pairs = [total_rows(ensemble, rule.totals[index].minus(rule.totals[k]), 0.0, strict=k < index) for k in others]
        return _joined(pairs)
    return beats_row(ensemble, index, others)


def _reaches(ensemble: Ensemble, margin: Total, low: float, high: float) -> Requirements:
    """A margin is at least `low`, and certainly large enough from `high` on; either may be infinite."""
    if math.isinf(low):
        return nothing_needed(ensemble)
    rows = total_rows(ensemble, margin, low, strict=False)
    between = high - low if math.isfinite(high) else BOUNDLESS
    return replace(rows, error_bound=rows.error_bound + between * margin.divisor)


def _joined(rows: Sequence[Requirements]) -> Requirements:
    """Requirements that hold where all hold."""
    curves = tuple(part.curve for part in rows if part.curve is not None)
    return joined_requirements(rows, CurvesAtOnce(curves) if len(curves) > 1 else next(iter(curves), None))


def _check_classes(ensemble: Ensemble, indices: Sequence[int]) -> None:
    n = len(ensemble.decision.classes)
    if not indices or not set(indices) <= set(range(n)) or list(indices) != sorted(set(indices)):
        raise ProblemError(f"the target names the classes {list(indices)} by number, but the model has {n}")


# -- from what a user says -------------------------------------------------------------------------------------


class ValueBounds(NamedTuple):
    """What a regressor's value should be at least and at most; None for an open end."""

    lowest: float | None
    highest: float | None


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
    classes = ensemble.decision.classes
    if not classes:
        if probability is not None:
            raise ProblemError("the model is a regressor and has no probabilities: give bounds of its value")
        return _interval(ensemble, target)
    each = [[label] for label in target] if _is_collection(target) else [target]
    if not each:
        raise ProblemError(f"the target names no class; name some of {_listed(classes)}")
    if isinstance(target, ValueBounds) or (_holds_none(target) and not _holds_none(classes)):
        raise ProblemError(
            "the target is given as bounds, which are for the value of a regressor, and the model is a classifier: "
            f"name one of the classes {_listed(classes)} as the target, with a probability where it should be reached"
        )
    indices = tuple(sorted({wanted_class(one, classes, current) for one in each}))
    if probability is not None:
        return ProbabilityTarget(indices, _probability(ensemble, probability))
    return ClassSetTarget(indices) if len(indices) > 1 else ClassTarget(indices[0])


def _holds_none(labels: Any) -> bool:
    return any(label is None for label in (labels if _is_collection(labels) else [labels]))


def _is_collection(target: Any) -> bool:
    if isinstance(target, Mapping):
        raise ProblemError(f"the target {dict(target)!r} is a mapping: name one class, a list of them, or an interval")
    return isinstance(target, Iterable) and not isinstance(target, str | bytes)


def _probability(ensemble: Ensemble, probability: Any) -> float:
    if ensemble.decision.link not in _PROBABLE:
        raise ProblemError(_without_probabilities(ensemble.decision))
    if not 0 < real_number(probability) <= 1:
        raise ProblemError(f"a probability is a number above 0 and up to 1, not {probability!r}")
    return float(probability)


def _without_probabilities(rule: Decision) -> str:
    """Why no probability can be asked for, and what to do instead."""
    if not rule.stands_on_others:
        return (
            "the model shows no probabilities, so none can be asked for: leave the probability out, or train with an "
            "objective that has them, such as binary:logistic, or, of a stack, final_estimator=LogisticRegression()"
        )
    if rule.kind == "argmax":
        return (
            "of this model, which stands on others, ocf reads which class wins, and not the probabilities that it may "
            "show, for they are a function of several sums at once: leave the probability out, which asks for the "
            "class itself, or, of a stack, take trees as final_estimator"
        )
    return (
        "this model, which stands on others, shows no probabilities, so none can be asked for: leave the probability "
        "out, or let it show some: a stack with final_estimator=LogisticRegression(), a vote with voting='soft'"
    )


def _interval(ensemble: Ensemble, target: Any) -> IntervalTarget:
    target = tuple(target) if isinstance(target, ValueBounds) else target
    if isinstance(target, Set):
        raise ProblemError(f"a set such as {target!r} has no order: give the target interval as (lowest, highest)")
    bounds = list(target) if _is_collection(target) else []
    if len(bounds) == 2 and any(isinstance(b, float) and math.isnan(b) for b in bounds):
        raise ProblemError(
            f"an end of the target interval {target!r} is no number: give a number, or None for an open end"
        )
    if len(bounds) != 2 or not all(b is None or not math.isnan(real_number(b)) for b in bounds):
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


def target_from_schema(found: TargetSchema) -> Target:
    """Target from plain values that are known to have the right types."""
    if isinstance(found, ClassTargetSchema):
        return ClassTarget(found.index)
    if isinstance(found, ClassSetTargetSchema):
        return ClassSetTarget(tuple(found.indices))
    if isinstance(found, ProbabilityTargetSchema):
        return ProbabilityTarget(tuple(found.indices), found.probability)
    lower = -math.inf if found.lower is None else found.lower
    return IntervalTarget(lower, math.inf if found.upper is None else found.upper)

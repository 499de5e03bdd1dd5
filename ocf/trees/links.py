"""Links: from a model's score to the probability or value that its library shows, and back with rounding in mind."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logsumexp

from ocf.arrays import FloatArray
from ocf.trees.ensemble import Decision, Ensemble, shown_totals

#: Relative error of the libraries' own exp, sigmoid and square, with room to spare.
_UNITS = {"float32": 2.0**-21, "float64": 2.0**-48}

#: Values up to here may be shown as 0 because they underflow.
_TINY = {"float32": 2.0**-140, "float64": 2.0**-1060}

#: Rounding of a mean of probabilities, for each of them.
_MEAN = 2.0**-50


def show(ensemble: Ensemble, scores: FloatArray) -> FloatArray:
    """What a library shows of scores.

    Parameters
    ----------
    ensemble : Ensemble
    scores : (n, n_outputs) float64

    Returns
    -------
    (n,) float64 for a regressor, (n, n_classes) probabilities for a classifier
        Of a classifier without probabilities the scores themselves.
    """
    rule = ensemble.decision
    if rule.final is not None:
        return show(rule.final.trees, rule.final.scores(scores))
    if rule.totals:
        shown = shown_totals(rule, scores)
        return shown[:, 0] if rule.kind == "value" else shown
    if rule.kind == "threshold" and rule.link == "logistic":
        margin = scores[:, 0] if rule.margin is None else rule.margin(scores)
        return np.column_stack([expit(-margin), expit(margin)])
    if rule.link == "softmax":
        return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    shown = apply(rule.link, scores)
    return shown[:, 0] if rule.kind == "value" else shown


def shown_between(rule: Decision, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds on what totals show of scores in intervals, each (n, n_shown).

    Parameters
    ----------
    rule : Decision
        With totals.
    low, high : (n, n_outputs) float64
    """
    parts = []
    for totals in rule.rounds:
        bounds = [total.between(low, high) for total in totals]
        parts.append(_divided(bounds) if rule.link == "normalized" else bounds)
    least, most = (np.mean([np.column_stack([b[k] for b in own]) for own in parts], axis=0) for k in (0, 1))
    return least - _MEAN * len(parts[1:]), most + _MEAN * len(parts[1:])


def compared_between(rule: Decision, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds on what decides of scores in intervals: a margin, or what totals show, each (n, n_compared).

    Parameters
    ----------
    rule : Decision
        With a margin or totals.
    low, high : (n, n_outputs) float64
    """
    if len(rule.rounds) > 1:
        return shown_between(rule, low, high)
    ends = [total.between(low, high) for total in ((rule.margin,) if rule.margin is not None else rule.totals)]
    least, most = (np.column_stack(side) for side in zip(*ends, strict=True))
    return least, most


def _divided(bounds: list[tuple[FloatArray, FloatArray]]) -> list[tuple[FloatArray, FloatArray]]:
    """Bounds on numbers divided by their sum; where all may be 0, they are as large as each other or anything else."""
    least = np.maximum([low for low, _ in bounds], 0.0)
    most = np.maximum([high for _, high in bounds], 0.0)
    unit, empty = 2.0**-46, least.sum(axis=0) <= 0
    with np.errstate(invalid="ignore", divide="ignore"):
        low = least / (least + most.sum(axis=0) - most) * (1 - unit)
        high = most / (most + least.sum(axis=0) - least) * (1 + unit)
    return list(zip(np.where(empty, 0.0, low), np.where(empty, 1.0, high), strict=True))


def apply(link: str, scores: FloatArray) -> FloatArray:
    """What `Decision.link` makes of scores, element by element; a softmax has no such form.

    Parameters
    ----------
    link : str
        As in `Decision`, but no softmax.
    scores : (n, n_outputs) float64
    """
    if link == "exp":
        return np.exp(scores)
    if link == "logistic":
        return np.asarray(expit(scores))
    if link == "signed_square":
        return np.sign(scores) * scores**2
    return np.asarray(scores)


def scores_around(ensemble: Ensemble, value: float) -> tuple[float, float]:
    """Scores that are certainly shown as less, or as more, than a value.

    Parameters
    ----------
    ensemble : Ensemble
        With a link of one score.
    value : float

    Returns
    -------
    (low, high)
        A score below `low` is shown as less than `value`, one above `high` as more; the library's rounding decides
        between them. Infinite where no score is on that side.
    """
    link, unit = ensemble.decision.link, _UNITS[ensemble.precision]
    if link == "exp":
        if value < 0:
            return -math.inf, -math.inf
        tiny = math.log(_TINY[ensemble.precision])
        if value == 0:
            return -math.inf, tiny
        return math.log(value) - 2 * unit, max(math.log(value) + 2 * unit, tiny)
    if link == "logistic":
        if not 0 <= value <= 1:
            return (math.inf, math.inf) if value > 1 else (-math.inf, -math.inf)
        return odds_around(ensemble, value)
    if link == "signed_square":
        root = math.copysign(math.sqrt(abs(value)), value)
        near = unit * abs(root) + math.sqrt(_TINY[ensemble.precision])
        return root - near, root + near
    return value, value


def odds_around(ensemble: Ensemble, probability: float) -> tuple[float, float]:
    """As `scores_around`, for a probability and its log odds: of a sigmoid the score, of a softmax against the rest.

    Parameters
    ----------
    ensemble : Ensemble
    probability : float
        In [0, 1].
    """
    # a softmax adds up as many exponentials as there are scores
    unit = _UNITS[ensemble.precision] * ensemble.n_outputs
    return logit(probability - unit), logit(probability + unit)


def logit(p: float) -> float:
    """Log odds of a probability, infinite at the ends and beyond them."""
    if p <= 0:
        return -math.inf
    return math.inf if p >= 1 else math.log(p) - math.log1p(-p)

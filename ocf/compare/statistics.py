"""The numbers of a comparison. Times are in seconds; an unsolved run has the time inf.

Sources: performance profiles, Dolan and Moré (2002); the primal integral, Berthold (2013); shifted geometric means
and penalised averages (PAR-k) as the solver benchmarks of mathematical programming and SAT use them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

#: Times below this are all the same to a ratio: clocks and caches decide about them.
RESOLUTION = 1e-3

#: Times that a method needs, in ratios, for what another solved and it did not: in units of the limit.
PENALTY = 10.0

#: Resamples of a bootstrap, its seed, and the confidence of its intervals.
RESAMPLES, SEED, CONFIDENCE = 2000, 0, 0.95


class Interval(NamedTuple):
    """An estimate with its confidence interval."""

    value: float
    low: float
    high: float


def capped(times: ArrayLike, limit: float, factor: float = 1.0) -> Array:
    """Times with `factor` times the limit in place of unsolved runs.

    Parameters
    ----------
    times : (n,) array
        Seconds; inf where unsolved.
    limit : float
        Seconds.
    factor : float
    """
    times = np.asarray(times, np.float64)
    return np.where(np.isfinite(times), times, factor * limit)


def shifted_geometric_mean(values: ArrayLike, shift: float) -> float:
    """``exp(mean(log(v + shift))) - shift``; NaN of nothing.

    Parameters
    ----------
    values : (n,) array
        Finite, at least 0.
    shift : float
        Above 0: it keeps differences between tiny values from deciding.
    """
    values = np.asarray(values, np.float64)
    return float(np.exp(np.log(values + shift).mean()) - shift) if len(values) else math.nan


def penalised_average(times: ArrayLike, limit: float, factor: float) -> float:
    """PAR-k: mean time, where an unsolved run counts `factor` times the limit.

    Parameters
    ----------
    times : (n,) array
        Seconds; inf where unsolved.
    limit : float
        Seconds.
    factor : float
        The k of PAR-k.
    """
    times = capped(times, limit, factor)
    return float(times.mean()) if len(times) else math.nan


def profile(times: Array) -> tuple[Array, Array]:
    """Performance profile (Dolan and Moré 2002, eq. (2.1) ff.).

    Parameters
    ----------
    times : (n_instances, n_methods) array
        inf where a method failed. Instances that no method solved count in the denominator.

    Returns
    -------
    tau : (n_points,) array
        Ratios to the fastest method at which some curve rises, beginning with 1.
    share : (n_points, n_methods) array
        Share of the instances that each method solved within tau times the fastest method's time.
    """
    floored = np.maximum(times, RESOLUTION)
    best = floored.min(axis=1, keepdims=True)
    ratios = np.where(np.isfinite(floored), floored / np.where(np.isfinite(best), best, 1.0), np.inf)
    tau = np.unique(np.concatenate([[1.0], ratios[np.isfinite(ratios)]]))
    share = (ratios[None, :, :] <= tau[:, None, None]).mean(axis=1)
    return tau, share


def cactus(times: ArrayLike) -> Array:
    """Times of the solved runs in rising order: the k-th is the limit under which k instances are solved."""
    times = np.asarray(times, np.float64)
    return np.sort(times[np.isfinite(times)])


def primal_integral(history: Sequence[Sequence[float]], best: float, horizon: float) -> float:
    """Primal integral (Berthold 2013): the primal gap integrated over time.

    The gap is 1 while there is no incumbent, 0 at the best known cost, and else ``(c - best) / max(|c|, |best|)``.

    Parameters
    ----------
    history : sequence of (seconds, bound, incumbent)
    best : float
        Lowest cost that any method found.
    horizon : float
        Seconds up to which to integrate; the last incumbent stands until then.

    Returns
    -------
    float
        Seconds, from 0 to `horizon`.
    """
    total, since, gap = 0.0, 0.0, 1.0
    for seconds, _, incumbent in history:
        at = min(float(seconds), horizon)
        total += gap * (at - since)
        since, gap = at, min(gap, _primal_gap(float(incumbent), best))
    return total + gap * (horizon - since)


def _primal_gap(cost: float, best: float) -> float:
    if not math.isfinite(cost):
        return 1.0
    size = max(abs(cost), abs(best))
    return 0.0 if size == 0 else min(max(cost - best, 0.0) / size, 1.0)


def bootstrap(statistic: Callable[[Array], Array], sample: ArrayLike) -> Interval:
    """Percentile bootstrap over instances.

    Parameters
    ----------
    statistic : callable
        Of (…, n) arrays along the last axis.
    sample : (n,) array
        One value an instance.

    Returns
    -------
    Interval
        At 95 %; from a fixed seed, so that a report that is built again is the same. NaN of an empty sample.
    """
    sample = np.asarray(sample, np.float64)
    if not len(sample):
        return Interval(math.nan, math.nan, math.nan)
    draws = np.random.default_rng(SEED).integers(len(sample), size=(RESAMPLES, len(sample)))
    low, high = np.quantile(statistic(sample[draws]), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(statistic(sample)), float(low), float(high))


def geometric_mean_interval(values: ArrayLike, shift: float) -> Interval:
    """Shifted geometric mean with its bootstrap interval.

    Parameters
    ----------
    values : (n,) array
        Finite, at least 0.
    shift : float
        Above 0; see `shifted_geometric_mean`.
    """
    logs = np.log(np.asarray(values, np.float64) + shift)
    return Interval(*(math.exp(v) - shift for v in bootstrap(lambda x: x.mean(axis=-1), logs)))


def ratio(a: ArrayLike, b: ArrayLike) -> Interval:
    """Geometric mean of the ratios of paired times, with its bootstrap interval; above 1 when `a` is slower.

    Parameters
    ----------
    a, b : (n,) arrays
        Finite, of the same instances.
    """
    a, b = (np.maximum(np.asarray(x, np.float64), RESOLUTION) for x in (a, b))
    return Interval(*(math.exp(v) for v in bootstrap(lambda x: x.mean(axis=-1), np.log(a) - np.log(b))))

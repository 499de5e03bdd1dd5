"""Statistics against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ocf.compare import statistics as st

INF = math.inf


def test_shifted_geometric_mean() -> None:
    # (0 + 1)(3 + 1)(15 + 1) = 64, whose cube root is 4
    assert st.shifted_geometric_mean([0.0, 3.0, 15.0], 1.0) == pytest.approx(3.0)
    # (1 + 10)(34 + 10) = 484 = 22 ** 2
    assert st.shifted_geometric_mean([1.0, 34.0], 10.0) == pytest.approx(12.0)
    assert math.isnan(st.shifted_geometric_mean([], 1.0))


def test_penalised_averages() -> None:
    # of 1, 2 and a failure at a limit of 10: (1 + 2 + 20) / 3 and (1 + 2 + 100) / 3
    assert st.penalised_average([1.0, 2.0, INF], 10.0, 2) == pytest.approx(23 / 3)
    assert st.penalised_average([1.0, 2.0, INF], 10.0, 10) == pytest.approx(103 / 3)
    assert st.capped([1.0, INF], 10.0).tolist() == [1.0, 10.0]


def test_profile() -> None:
    # ratios: (1, 2), (4, 1), (1, inf), and one instance that nobody solves
    times = np.array([[1.0, 2.0], [8.0, 2.0], [3.0, INF], [INF, INF]])
    tau, share = st.profile(times)
    assert tau.tolist() == [1.0, 2.0, 4.0]
    assert share[:, 0].tolist() == [0.5, 0.5, 0.75]
    assert share[:, 1].tolist() == [0.25, 0.5, 0.5]


def test_profile_does_not_tell_times_below_the_resolution_apart() -> None:
    tau, share = st.profile(np.array([[1e-6, 1e-4]]))
    assert tau.tolist() == [1.0]
    assert share.tolist() == [[1.0, 1.0]]


def test_cactus() -> None:
    assert st.cactus([3.0, INF, 1.0, 2.0]).tolist() == [1.0, 2.0, 3.0]
    assert st.cactus([INF]).tolist() == []


def test_primal_integral() -> None:
    # gap 1 for 2 s, then (4 - 2) / 4 = 0.5 for 3 s, then 0
    history = [(0.0, 0.0, INF), (2.0, 0.0, 4.0), (5.0, 2.0, 2.0)]
    assert st.primal_integral(history, 2.0, 10.0) == pytest.approx(2.0 + 1.5)
    # cut at 3 s: 2 + 0.5
    assert st.primal_integral(history, 2.0, 3.0) == pytest.approx(2.5)
    assert st.primal_integral([], 2.0, 10.0) == 10.0
    # an incumbent of cost 0 is the best there is
    assert st.primal_integral([(1.0, 0.0, 0.0)], 0.0, 10.0) == pytest.approx(1.0)
    # a best cost of 0 leaves a gap of 1 to everything else
    assert st.primal_integral([(1.0, 0.0, 0.5)], 0.0, 10.0) == pytest.approx(10.0)


def test_ratio() -> None:
    # ratios 2 and 8, whose geometric mean is 4
    found = st.ratio([2.0, 8.0], [1.0, 1.0])
    assert found.value == pytest.approx(4.0)
    # of two instances a resample is (2, 2), (2, 8) or (8, 8): the quantiles of the mean are the extremes
    assert found.low == pytest.approx(2.0)
    assert found.high == pytest.approx(8.0)
    assert st.ratio([3.0, 3.0], [1.0, 1.0]) == pytest.approx((3.0, 3.0, 3.0))
    assert all(math.isnan(v) for v in st.ratio([], []))
    assert st.ratio([1e-9], [1e-5]).value == 1.0  # below the resolution of a clock


def test_bootstrap_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        found = st.bootstrap(lambda x: x.mean(axis=-1), rng.normal(5.0, 1.0, 40))
        covered += found.low <= 5.0 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_bootstrap_is_the_same_every_time() -> None:
    sample = np.arange(10.0)
    assert st.bootstrap(lambda x: x.mean(axis=-1), sample) == st.bootstrap(lambda x: x.mean(axis=-1), sample)


def test_geometric_mean_interval() -> None:
    found = st.geometric_mean_interval([0.0, 3.0, 15.0], 1.0)
    assert found.value == pytest.approx(3.0)
    assert found.low < 3.0 < found.high

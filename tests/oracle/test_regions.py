"""Regions against random points judged by the user's model: each point within the radius lies in exactly one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from oracle import brute_force
from oracle.harness import Case, prepare
from oracle.instances import LIBRARIES, REGRESSORS, Spec, specs
from oracle.playing import bounded

from ocf.cells.ranges import ValueInterval
from ocf.explain.region import CounterfactualRegion
from ocf.explain.regions import Regions

#: Enough for the small instances; a few radii would have more.
LIMIT = 300


def regions_of(case: Case, radius: float) -> Regions:
    question = dict(case.instance.question)
    return case.explainer.counterfactual_regions(case.instance.row, **question, radius=radius, limit=LIMIT)


def values_of(case: Case, point: np.ndarray) -> dict[str, Any]:
    """A coded row by feature name, in the user's words."""
    pairs = zip(case.question.space.features, point, strict=True)
    return {f.name: math.nan if math.isnan(v) else f.label(float(v)) for f, v in pairs}


def points_in(case: Case, region: CounterfactualRegion, rng: np.random.Generator, n: int = 12) -> np.ndarray:
    """Admissible coded rows of a region, its corners among them."""
    out = np.empty((n, len(case.question.space)))
    for i, (feature, origin) in enumerate(zip(case.question.space.features, case.question.origin, strict=True)):
        allowed = region.ranges[feature.name]
        if allowed is None:
            out[:, i] = math.nan
        elif isinstance(allowed, ValueInterval):
            low, high = np.clip([allowed.lowest, allowed.highest], -1e6, 1e6)
            drawn = [low, high, *rng.uniform(low, high, n)]
            values = [v for v in drawn if brute_force.is_admissible(feature, float(origin), float(v))]
            out[:, i] = rng.choice(values) if not values else rng.choice(values, n)
        else:
            out[:, i] = rng.choice([feature.levels.index(level) for level in allowed], n)
    return out


def check(spec: Spec, factor: float) -> int:
    case = prepare(spec)
    rng = np.random.default_rng(spec.seed)
    optimum = brute_force.search(case.question).cost
    radius = 1.0 if math.isinf(optimum) else optimum * factor + 0.05
    regions = regions_of(case, radius)
    costs = [region.cost for region in regions]
    message = f"radius {radius}{case.describe()}"
    if regions.complete:
        least = min(costs, default=math.inf)
        assert (math.isinf(optimum) and not costs) or math.isclose(least, optimum, rel_tol=1e-9, abs_tol=1e-12), message
    assert np.all(np.diff(costs) >= -1e-12), message
    for region in list(regions)[:40]:
        assert math.isclose(
            brute_force.cost_of_point(case.question, region.nearest), region.cost, rel_tol=1e-9, abs_tol=1e-12
        ), message
        points = np.vstack([points_in(case, region, rng), region.nearest])
        assert all(region.contains(values_of(case, p)) for p in points), message
        assert brute_force.gets_target(case.question, points).all(), message
    if regions.complete:
        points = brute_force.random_points(case.question, rng, 150)
        judged = brute_force.gets_target(case.question, points) if len(points) else ()
        for point, wanted in zip(points, judged, strict=True):
            holding = sum(region.contains(values_of(case, point)) for region in regions)
            near = brute_force.cost_of_point(case.question, point) <= radius * (1 - 1e-9)
            assert holding == 1 if wanted and near else holding <= int(wanted), f"{point} in {holding}; {message}"
    return len(costs)


@pytest.mark.parametrize("library", [*LIBRARIES, *REGRESSORS])
def test_regions_hold_exactly_what_the_model_gives_the_target(library: str) -> None:
    found = []

    @bounded(4)
    @given(spec=specs(library))
    def run(spec: Spec) -> None:
        found.append(check(spec, 1.3))

    run()
    assert sum(found)

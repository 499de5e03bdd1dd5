"""Several explanations of a row: regions, features and distance."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from ocf import Explainer
from ocf.errors import ProblemError
from ocf.explain.explanation import Explanations


@pytest.mark.parametrize("solver", ["highs", "box"])
def test_regions_in_the_order_of_their_costs(explainer: Explainer, row: pd.DataFrame, solver: str) -> None:
    found = explainer.explain(row, n_explanations=4, diversity="region", solver=solver)
    assert [e.rank for e in found] == [1, 2, 3, 4]
    costs = [e.cost for e in found]
    assert costs == sorted(costs)
    leaves = {explainer.ensemble.apply(explainer.model.encode(e.counterfactual)).tobytes() for e in found}
    assert len(leaves) == 4
    assert all(e.verified and e.status == "optimal" for e in found)
    assert found.to_frame()["rank"].tolist() == [1, 2, 3, 4]
    assert Explanations.from_json(found.to_json()) == found
    assert costs == pytest.approx(
        [e.cost for e in explainer.explain(row, n_explanations=4, diversity="region", solver="scip")]
    )


@pytest.mark.parametrize("solver", ["highs", "box"])
def test_other_features(explainer: Explainer, row: pd.DataFrame, solver: str) -> None:
    found = explainer.explain(row, n_explanations=3, diversity="features", solver=solver)
    changed = [set(e.changes.feature) for e in found]
    assert len(found) == 3
    for k, later in enumerate(changed):
        assert not any(earlier <= later for earlier in changed[:k])
    # brute force over which feature of the best explanation has to stay
    best = min(
        explainer.explain(row, features_to_vary=[n for n in explainer.space.names if n != kept])[0].cost or np.inf
        for kept in changed[0]
    )
    assert found[1].cost == pytest.approx(best)


def test_apart(explainer: Explainer, row: pd.DataFrame) -> None:
    found = explainer.explain(row, n_explanations=3, diversity="distance", min_distance=0.3)
    space = explainer.space
    points = [space.from_frame(e.counterfactual)[0] for e in found]
    for p, q in itertools.combinations(points, 2):
        apart = sum(abs(f.distance(q[i], p[i]).item()) for i, f in enumerate(space.features))
        assert apart >= 0.3 - 1e-12
    assert [e.cost for e in found] == pytest.approx(
        [
            e.cost
            for e in explainer.explain(row, n_explanations=3, diversity="distance", min_distance=0.3, solver="scip")
        ]
    )


def test_when_there_are_no_more(explainer: Explainer, row: pd.DataFrame) -> None:
    found = explainer.explain(row, n_explanations=50, diversity="features")
    assert len(found) < 50
    assert "there is no further one" in found[-1].message
    with pytest.raises(ProblemError, match="did you mean 'region'"):
        explainer.explain(row, n_explanations=2, diversity="regions")
    with pytest.raises(ProblemError, match="at least 1"):
        explainer.explain(row, n_explanations=0)
    kept = explainer.explain(row, n_explanations=2, diversity="distance", solver="box")
    assert kept[0].status == "optimal"
    assert "does not know constraints that relate values inside cells" in kept[-1].message


def test_features_by_default_and_no_more_is_claimed_than_is_proven(explainer, row):
    found = explainer.explain(row, n_explanations=3)
    assert [e.cost for e in found] == [e.cost for e in explainer.explain(row, n_explanations=3, diversity="features")]
    said = [str(e).splitlines()[0] for e in found]
    assert ["no smaller change does it)" in words for words in said] == [True, False, False]
    assert said[1].endswith("no smaller change differs from no. 1)")
    assert said[2].endswith("no smaller change differs from no. 1, 2)")

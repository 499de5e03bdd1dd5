"""Models that hold other models against brute force by their own predict and predict_proba."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import brute_force
from oracle.harness import Method, case_of, same
from oracle.wrapped import WRAPPERS, make

#: Instances of each wrapper.
OF_EACH = 3

#: Most points that brute force tries.
LIMIT = 60_000


@pytest.mark.parametrize("name", WRAPPERS)
def test_answers_equal_brute_force(name: str) -> None:
    played = 0
    for seed in range(OF_EACH):
        instance = make(name, seed)
        case = case_of(instance)
        if brute_force.n_products(case.question) > LIMIT:
            continue
        brute_force.assert_constant_within_cells(case.question, np.random.default_rng(seed))
        best = brute_force.search(case.question)
        for solver in ("box", "highs") if seed % 3 == 0 else ("auto",):
            found = case.answer(Method("interval", solver, True))
            where = f"{name} {seed} by {solver}: {found.status} {found.cost}, brute force {best.cost} at {best.point}"
            assert found.status == ("optimal" if np.isfinite(best.cost) else "infeasible"), where
            assert best.point is None or same(found.cost, best.cost), where
            assert best.point is None or found.verified, where
        played += 1
    assert played >= OF_EACH // 2

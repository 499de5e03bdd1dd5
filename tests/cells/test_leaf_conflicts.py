"""Why leaves conflict, against all choices of cells."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from small_problems import exhaustive, random_ensemble, random_space

from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.cells.leaf_conflicts import clique_proof
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget


def problem(seed: int) -> CellProblem:
    """A problem with some closed cells; the row's own are open."""
    rng = np.random.default_rng(seed)
    space, rows = random_space(rng)
    ensemble = random_ensemble(rng, space, rows, 6, 3, 2)
    cells = to_cells(Problem(ensemble, space, rows[0], ClassTarget(1), Cost.parse("l1" if seed % 2 else "l2")))
    return replace(cells, open=cells.open & ((rng.random(len(cells.open)) < 0.7) | (cells.cost == 0)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [np.inf, 0.3, 0.05])
def test_leaves_have_a_proof_where_no_cheaper_choice_lies_in_both(seed: int, share: float) -> None:
    cells = problem(seed)
    everything = exhaustive(cells)
    leaves_at = np.array([cells.partition.leaves_at(choice) for choice in everything.choices])
    limit = np.inf if np.isinf(share) else float(np.quantile(everything.cost, share))
    conflicting = 0
    for a, b in combinations(range(len(cells.live)), 2):
        in_both = (leaves_at == a).any(axis=1) & (leaves_at == b).any(axis=1)
        least = everything.cost[in_both].min(initial=np.inf)
        proof = clique_proof(cells, [a, b], limit)
        assert (proof is not None) == (least >= limit)
        if proof is None:
            continue
        (why,) = proof
        conflicting += 1
        assert why.leaves == (a, b)
        assert why.cost == pytest.approx(least, rel=1e-12)
        assert bool(why.features) == np.isinf(least)
        for feature in why.features:
            here, there = (everything.choices[(leaves_at == k).any(axis=1), feature] for k in (a, b))
            assert not set(here) & set(there)
    assert conflicting > 0


def test_a_clique_has_a_reason_for_each_pair_and_none_where_one_pair_has_none() -> None:
    cells = problem(0)
    siblings = np.arange(*cells.partition.ensemble.leaf_offsets[:2])
    assert len(siblings) > 2
    proof = clique_proof(cells, siblings, np.inf)
    assert proof is not None
    assert [why.leaves for why in proof] == list(combinations(siblings.tolist(), 2))
    part = cells.partition
    at_row = part.leaves_at(np.array([cells.cost[part.cells_of(i)].argmin() for i in range(part.n_features)]))
    assert clique_proof(cells, at_row, np.inf) is None
    assert clique_proof(cells, [*siblings, at_row[1]], np.inf) is None

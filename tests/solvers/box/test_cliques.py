"""Conflicts between leaves and cliques of them, against all choices of cells and all sets of leaves."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from small_problems import exhaustive, random_ensemble, random_space

from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.solvers.box.bitsets import Bits, make_bits
from ocf.solvers.box.cliques import conflicts, violated
from ocf.solvers.box.instance import Instance, make_instance


def problem(seed: int) -> CellProblem:
    """A problem with some closed cells and dead leaves."""
    rng = np.random.default_rng(seed)
    space, rows = random_space(rng)
    ensemble = random_ensemble(rng, space, rows, 6, 3, 2)
    cells = to_cells(Problem(ensemble, space, rows[0], ClassTarget(1), Cost.parse("l1" if seed % 2 else "l2")))
    first = cells.partition.ensemble.leaf_offsets[:-1]
    live = cells.live & ((rng.random(len(cells.live)) < 0.8) | np.isin(np.arange(len(cells.live)), first))
    cells = replace(cells, open=cells.open & ((rng.random(len(cells.open)) < 0.8) | (cells.cost == 0)))
    some = [all(usable.any() for usable in cells.open_within(np.array([k]))) for k in range(len(live))]
    return replace(cells, live=live & np.array(some))


def table_of(cells: CellProblem, limit: float) -> tuple[Instance, Bits, np.ndarray]:
    """What `conflicts` says, (n_leaves, n_leaves) of all leaves; none of the dead ones."""
    instance = make_instance(cells)
    bits = make_bits(instance)
    words = conflicts(instance, bits, limit)
    member = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=len(bits.leaf)).astype(bool)
    leaf = instance.leaf[bits.leaf]
    out = np.zeros((len(cells.live), len(cells.live)), bool)
    out[np.ix_(leaf, leaf)] = member
    return instance, bits, out


def together(cells: CellProblem, limit: float) -> np.ndarray:
    """Pairs of leaves that some choice of open cells below the limit lies in, by trying all."""
    everything = exhaustive(cells)
    out = np.zeros((len(cells.live), len(cells.live)), bool)
    for choice in everything.choices[everything.cost < limit]:
        leaves = cells.partition.leaves_at(choice)
        out[np.ix_(leaves, leaves)] = True
    return out


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [np.inf, 0.3, 0.1])
def test_pairs_conflict_where_no_cheaper_choice_lies_in_both(seed: int, share: float) -> None:
    cells = problem(seed)
    cost = exhaustive(cells).cost
    limit = np.inf if np.isinf(share) else float(cost.min() + share * (cost.max() - cost.min()))
    instance, _, found = table_of(cells, limit)
    met = together(cells, limit)
    pairs = np.zeros_like(met)
    pairs[np.ix_(instance.leaf, instance.leaf)] = True
    assert not found[~pairs].any()
    assert not (found & met).any()
    assert (found == found.T).all()
    assert not found.diagonal().any()
    # levels have no order in which costs only rise: there some conflicts go unseen
    np.fill_diagonal(pairs, False)
    unseen = pairs & ~met & ~found
    part = cells.partition
    plain = np.all([part.members_of(i).all(axis=1) for i in np.flatnonzero(~part.ordered)], axis=0)
    assert not unseen[np.ix_(plain, plain)].any()
    assert not (pairs & ~together(cells, np.inf) & ~found).any()


def largest_violation(found: np.ndarray, y: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Largest y(A) - y(N(A)) of sets A of leaves of one tree, by trying all."""
    best = 0.0
    for size in range(1, len(first) + 1):
        for chosen in combinations(first, size):
            neighbours = second[~found[np.ix_(chosen, second)].all(axis=0)]
            best = max(best, float(y[list(chosen)].sum() - y[neighbours].sum()))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_most_violated_cut_of_two_trees_is_found(seed: int) -> None:
    rng, cells = np.random.default_rng(seed), problem(seed)
    instance, bits, found = table_of(cells, float(np.quantile(exhaustive(cells).cost, 0.2)))
    leaf, y = instance.leaf[bits.leaf], np.zeros(len(cells.live))
    for a, b in zip(instance.trees[:-1], instance.trees[1:], strict=True):
        share = rng.random(b - a) * (rng.random(b - a) < 0.6)
        share[0] += 0.01
        y[leaf[a:b]] = share / share.sum()
    limit = float(np.quantile(exhaustive(cells).cost, 0.2))
    table = conflicts(instance, bits, limit)
    words = violated(instance.trees, table, y[leaf], 0.02, 100)
    cliques = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=len(leaf)).astype(bool)
    trees = [leaf[a:b][y[leaf[a:b]] > 0] for a, b in zip(instance.trees[:-1], instance.trees[1:], strict=True)]
    gaps = [largest_violation(found, y, s, t) for s, t in combinations(trees, 2)]
    assert bool(len(cliques)) == (max(gaps) >= 0.02)
    assert len(cliques) <= sum(gap >= 0.02 for gap in gaps)
    for clique in cliques:
        members = leaf[clique]
        assert all(found[a, b] for a, b in combinations(members, 2))
        assert y[members].sum() >= 1.02 - 1e-9
    if len(cliques):
        assert y[leaf[cliques[0]]].sum() >= 1 + max(gaps) - 1e-9
        assert len(violated(instance.trees, table, y[leaf], 0.02, 1)) == 1
    for gap, some in ((max(gaps) - 1e-6, True), (max(gaps) + 1e-6, False)):
        assert bool(len(violated(instance.trees, table, y[leaf], gap, 1))) == (some and max(gaps) > 0)

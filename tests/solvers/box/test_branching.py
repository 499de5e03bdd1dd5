"""What is split where: nothing of use is lost on the way, and the bounds of both halves hold."""

from __future__ import annotations

import numpy as np
from small_problems import exhaustive, large_problem, random_problem

from ocf.arrays import BoolArray, IntArray
from ocf.solvers.box.branching import CANDIDATES, candidate_cuts, restrict, try_cuts
from ocf.solvers.box.instance import Domain, Instance, copied, make_instance, whole
from ocf.solvers.box.propagation import new_workspace
from ocf.solvers.box.relaxation import Relaxation, no_relaxation

from .cases import compiled


def within(instance: Instance, domain: Domain, choices: IntArray) -> BoolArray:
    """Which choices of cells lie in a box; those of closed cells lie in none."""
    inside = np.ones(len(choices), bool)
    for f in range(len(instance.ordered)):
        opened = instance.cell[instance.offsets[f] : instance.offsets[f + 1]]
        rank = np.minimum(np.searchsorted(opened, choices[:, f]), len(opened) - 1)
        inside &= opened[rank] == choices[:, f]
        if instance.ordered[f]:
            inside &= (domain.lo[f] <= rank) & (rank <= domain.hi[f])
        else:
            inside &= domain.level[instance.offsets[f] + rank]
    return inside


def test_what_is_of_use_stays_and_costs_what_the_halves_say() -> None:
    shrunk = split = empty = 0
    for seed in range(60):
        cells = random_problem(seed)
        everything, instance = exhaustive(cells), make_instance(cells)
        lp = Relaxation(compiled(cells), cells, instance, whole(instance))
        if lp.infeasible or lp.decided or not np.isfinite(everything.optimum):
            continue
        lp.lp.start(1.0)
        for slack in (0.9, 1.1, 2.0, np.inf):
            limit, domain, work = slack * everything.optimum, whole(instance), new_workspace(instance)
            found = lp.solve(domain, np.inf)
            assert found is not None
            features, cuts = candidate_cuts(instance, domain, found.share, CANDIDATES)
            bound, best, *bounds = try_cuts(
                instance, domain, found.multipliers or no_relaxation(instance), 0.0, limit, features, cuts,
                copied(domain), work,
            )  # fmt: skip
            of_use = everything.feasible & (everything.cost < limit * (1 - 1e-9))
            of_use &= within(instance, whole(instance), everything.choices)
            inside = within(instance, domain, everything.choices)
            assert not (of_use & ~inside).any() or np.isinf(bound)
            assert not of_use.any() or np.isfinite(bound)
            assert (everything.cost[of_use] >= bound - 1e-9).all()
            shrunk += int(
                np.isfinite(bound) and (~inside & within(instance, whole(instance), everything.choices)).any()
            )
            empty += int(np.isinf(bound))
            if best < 0:
                continue
            split += 1
            for side, of_half in ((False, bounds[0]), (True, bounds[1])):
                half = copied(domain)
                restrict(instance, half, features[best], cuts[best], side)
                own = within(instance, half, everything.choices)
                assert own.any()
                assert not (own & ~inside).any()
                assert (everything.cost[of_use & own] >= of_half - 1e-9).all()
    assert min(shrunk, split, empty) > 10


def test_a_feature_has_several_cuts_all_of_them_fractional() -> None:
    instance = make_instance(large_problem(0))
    share = np.random.default_rng(0).random(len(instance.cell))
    for f in np.flatnonzero(instance.ordered):
        span = slice(instance.offsets[f], instance.offsets[f + 1])
        share[span] = -np.sort(-share[span])
    features, cuts = candidate_cuts(instance, whole(instance), share, CANDIDATES)
    assert len(set(zip(features.tolist(), cuts.tolist(), strict=True))) == len(cuts)
    assert len(set(features.tolist())) < len(cuts)
    assert ((instance.offsets[features] <= cuts) & (cuts < instance.offsets[features + 1])).all()
    at = share[cuts]
    assert ((at > 0) & (at < 1)).all()
    assert (np.diff(np.minimum(at, 1 - at)) <= 0).all()
    few, _ = candidate_cuts(instance, whole(instance), share, 2)
    assert few.tolist() == features[:2].tolist()
    # a point of the LP without fractions is split beside the cheapest cells
    features, cuts = candidate_cuts(instance, whole(instance), np.ones(len(instance.cell)), CANDIDATES)
    assert sorted(features.tolist()) == sorted(set(features.tolist()))
    assert len(features) > 0


def test_of_cuts_alike_the_middle_one_is_taken() -> None:
    """A point that lies half at one cell and half at another has the same share at all cuts between them."""
    for seed in range(40):
        instance = make_instance(random_problem(seed))
        domain, share, expected = whole(instance), np.zeros(len(instance.cell)), {}
        rng = np.random.default_rng(seed)
        for f in np.flatnonzero(instance.ordered & (np.diff(instance.offsets) > 2)):
            offset, last = instance.offsets[f], instance.offsets[f + 1] - 1
            begin, end = sorted(rng.integers(offset + 1, last + 1, 2))
            share[offset : end + 1] = np.where(np.arange(offset, end + 1) < begin, 1.0, 0.5)
            share[begin : end + 1] += rng.uniform(-1e-12, 1e-12, end + 1 - begin)  # as a solver leaves it
            expected[f] = (begin + end) // 2
        if expected:
            features, cuts = candidate_cuts(instance, domain, share, CANDIDATES)
            assert dict(zip(features.tolist(), cuts.tolist(), strict=True)) == expected

"""Sets of leaves as bits."""

from __future__ import annotations

import numpy as np
import pytest
from small_problems import large_problem

from ocf.solvers.box.bitsets import make_bits, new_stack, pop, push
from ocf.solvers.box.instance import copied, make_instance, whole


@pytest.mark.parametrize("seed", range(8))
def test_bits_are_the_leaves_that_meet_a_cell(seed: int) -> None:
    cells = large_problem(seed)
    instance = make_instance(cells)
    bits = make_bits(instance)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        x = np.array([rng.integers(a, b) for a, b in zip(instance.offsets[:-1], instance.offsets[1:], strict=True)])
        words = np.bitwise_and.reduce(bits.first[x] & bits.last[x], axis=0)
        inside = np.unpackbits(words.view(np.uint8), bitorder="little", count=len(bits.leaf)).astype(bool)
        choice = instance.cell[x]
        assert sorted(instance.leaf[bits.leaf[inside]]) == sorted(cells.partition.leaves_at(choice))
    tree = np.repeat(np.arange(len(instance.trees) - 1), np.diff(instance.trees))
    for t in range(len(instance.trees) - 1):
        assert (np.diff(bits.gain[tree == t, 0]) <= 0).all()
    for domain in (whole(instance),):
        domain.live[:] = rng.random(len(domain.live)) < 0.5
        stack, back = new_stack(instance, bits), copied(whole(instance))
        push(stack, bits, domain, 1.5)
        assert pop(stack, bits, back) == 1.5
        assert all(np.array_equal(a, b) for a, b in zip(domain, back, strict=True))

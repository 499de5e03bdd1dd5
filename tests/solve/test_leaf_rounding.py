"""Polytopes that allow for the rounding of a tree's own sums, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd

from ocf import Explainer
from ocf.oblique.tree import ObliqueTree
from ocf.solve.leaf_polytope import continuous_part
from ocf.solve.leaf_rounding import LeafRounding
from ocf.solve.polytope import Polytope


def holds(polytope: Polytope, x: np.ndarray) -> bool:
    """Whether a point meets the half-spaces, exactly."""
    return all(
        sum((Fraction(g) * Fraction(v) for g, v in zip(row, x.tolist(), strict=True)), Fraction(0)) <= Fraction(side)
        for row, side in zip(polytope.G.tolist(), polytope.h.tolist(), strict=True)
    )


def test_points_that_the_tree_takes_by_rounding_alone_are_in_the_widened_polytope() -> None:
    table = pd.DataFrame(np.vstack([np.zeros(6), np.ones(6), np.full(6, 0.3)]), columns=[f"x{j}" for j in range(6)])
    outside = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        w, x = rng.normal(size=6), rng.uniform(0.2, 0.8, 6)
        threshold = float(sum(w * x))  # where the exact total may lie above
        tree = ObliqueTree(
            [w, *np.zeros((2, 6))], [threshold, 0, 0], [1, -1, -1], [2, -1, -1], np.eye(2)[[0, 0, 1]], classes=(0, 1)
        )
        explainer = Explainer(tree, data=table)
        leaf = int(explainer.prepared.ensemble.apply(x[None])[0, 0])
        target = int(tree.predict(x[None])[0])
        model = explainer.query(explainer.problem(table.iloc[[0]], target)).model
        task = model.task(leaf, 0.0)
        assert task is not None
        if not len(task.place):
            continue  # the whole box lies on that side
        part = continuous_part(model, task)
        outside += not holds(part.polytope, x[part.used])
        assert holds(LeafRounding(model).widened(part, np.inf), x[part.used])
    assert outside >= 3

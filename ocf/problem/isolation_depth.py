"""Plausibility as a requirement: the average depth in an isolation forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.problem.requirements import Requirements
from ocf.support.schemas import IsolationDepthSchema
from ocf.trees.ensemble import Ensemble

# -- in a problem ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class IsolationDepth:
    """The plausibility of a problem.

    Attributes
    ----------
    forest : Ensemble
        Isolation trees over the features of the problem's space, one output: the depth of the leaf.
    least : float or None
        Least average depth, delta of equation (33); None: none is required.
    error_bound : float
        Bound on the rounding of the library's sum of depths; within it of the least, the library itself decides.
    weight : float
        Of the soft term.
    """

    forest: Ensemble
    least: float | None
    error_bound: float = 0.0
    weight: float = 0.0

    @property
    def is_finite(self) -> bool:
        """Whether all its numbers are finite."""
        return bool(np.isfinite([self.least or 0.0, self.error_bound, self.weight]).all())

    @cached_property
    def penalty(self) -> FloatArray:
        """Cost of each leaf, (n_leaves,): the soft term of its tree, 0 in the deepest leaf."""
        depth, offsets = self.forest.leaf_values[:, 0], self.forest.leaf_offsets
        deepest = np.maximum.reduceat(depth, offsets[:-1])[self.forest.leaf_tree]
        return self.weight / self.forest.n_trees * (deepest - depth)

    def added_to(self, requirements: Requirements, trees: Ensemble, own: Sequence[int] | None = None) -> Requirements:
        """Requirements over the leaves of the model's trees and of the isolation trees behind them (33).

        Parameters
        ----------
        requirements : Requirements
            Over the leaves of the model's trees.
        trees : Ensemble
            All trees, as `join_trees` joins them.
        own : sequence of int, optional
            Isolation trees whose average depth counts; by default all.
        """
        if requirements.curve is not None:  # sees the leaves of all trees, of which the last score nothing
            silent = replace(trees, leaf_values=trees.leaf_values[:, :-1], base_score=trees.base_score[:-1])
            requirements = replace(requirements, curve=requirements.curve.over(silent))
        depth = self.forest.leaf_values
        gain = np.pad(requirements.gain, ((0, len(depth)), (0, int(self.least is not None))))
        if self.least is None:
            return replace(requirements, gain=gain)
        counts = np.ones(len(depth), bool) if own is None else np.isin(self.forest.leaf_tree, own)
        gain[-len(depth) :, -1] = np.where(counts, depth[:, 0], 0.0)
        need = self.least * (self.forest.n_trees if own is None else len(own)) - self.error_bound
        return replace(
            requirements,
            gain=gain,
            need=np.append(requirements.need, need),
            error_bound=np.append(requirements.error_bound, 2 * self.error_bound),
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "forest": self.forest.to_dict(),
            "least": self.least,
            "error_bound": self.error_bound,
            "weight": self.weight,
        }

    @classmethod
    def from_schema(cls, found: IsolationDepthSchema) -> IsolationDepth:
        """Plausibility from what `to_dict` wrote, known to have the right types."""
        return cls(Ensemble.from_schema(found.forest), found.least, found.error_bound, found.weight)

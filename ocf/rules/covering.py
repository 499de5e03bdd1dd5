"""A few regions whose rules together serve the rows that lack an answer, and the region that each row is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.features.inference import as_table
from ocf.features.space import FeatureSpace
from ocf.regional.forest import RegionalForest
from ocf.rules.objects import RuleSet, RuleSets, Subgroup


@dataclass(frozen=True, eq=False)
class RegionalSet:
    """Regions with a rule each, which cover rows that lack the target.

    Attributes
    ----------
    regions : tuple of Subgroup
        In the order in which they were chosen: each covers most of the rows that those before it leave.
    rules : RuleSets
        One for each region; each has a rule.
    coverage : float
        Share of the rows that some region holds.
    precision : float
        Mean probability of the rules that the covered rows are given; nan where none is covered.
    space : FeatureSpace
    forest : RegionalForest
    """

    regions: tuple[Subgroup, ...]
    rules: RuleSets
    coverage: float
    precision: float
    space: FeatureSpace
    forest: RegionalForest

    def assign(self, rows: pd.DataFrame | ArrayLike) -> IntArray:
        """Which region each row is given, (n,): of those that hold it the one with the most probable rule, or -1."""
        cells = self.forest.partition.locate(self.space.from_frame(as_table(rows, self.space.columns)))
        return assigned(self.forest, cells, self.regions, self.rules)

    def __str__(self) -> str:
        if not self.regions:
            return "no region has a rule"
        head = (
            f"{len(self.regions)} regions hold {self.coverage:.0%} of the rows, mean probability {self.precision:.2f}"
        )
        return "\n".join([head, *map(str, self.rules)])


def chosen_regions(
    forest: RegionalForest,
    cells: IntArray,
    groups: Sequence[Subgroup],
    ask: Callable[[Subgroup], RuleSet],
    most: int,
) -> tuple[tuple[Subgroup, ...], RuleSets]:
    """Regions with a rule that cover most rows, greedily; a region is asked for a rule only when it is its turn.

    Parameters
    ----------
    forest : RegionalForest
    cells : (n, n_features) int
        Of the rows to cover.
    groups : sequence of Subgroup
        Regions to choose from.
    ask : callable
        Rules of a region.
    most : int
        Regions at most.
    """
    holds = [forest.holds(group.region, cells) for group in groups]
    waiting, left = set(range(len(groups))), np.ones(len(cells), bool)
    regions: list[Subgroup] = []
    rules = RuleSets()
    while waiting and len(regions) < most:
        k = max(waiting, key=lambda k: (int((holds[k] & left).sum()), groups[k].support, -k))
        if not (holds[k] & left).any():
            break
        waiting.remove(k)
        own = ask(groups[k])
        if own.rules:
            left &= ~holds[k]
            regions.append(groups[k])
            rules.append(own)
    return tuple(regions), rules


def assigned(
    forest: RegionalForest, cells: IntArray, regions: Sequence[Subgroup], rules: Sequence[RuleSet]
) -> IntArray:
    """Of the regions that hold a row the one with the most probable rule, the earlier of equals; -1 for none, (n,).

    Parameters
    ----------
    forest : RegionalForest
    cells : (n, n_features) int
    regions : sequence of Subgroup
    rules : sequence of RuleSet
        One for each region.
    """
    if not regions:
        return np.full(len(cells), -1)
    holds: BoolArray = np.array([forest.holds(group.region, cells) for group in regions])
    probable: FloatArray = np.where(holds, np.array([own[0].precision for own in rules])[:, None], -1.0)
    return np.where(holds.any(axis=0), probable.argmax(axis=0), -1)

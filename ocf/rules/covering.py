"""A few regions whose rules together serve the rows that lack an answer, and the region that each row is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ProblemError
from ocf.features.asked_rows import rows_of
from ocf.features.space import FeatureSpace
from ocf.regional.forest import RegionalForest
from ocf.rules.finding import check_choice
from ocf.rules.objects import RuleSet, RuleSets, Subgroup
from ocf.rules.reachable import complete_rows, subgroup_of
from ocf.rules.search import most_used
from ocf.rules.sufficient import sufficient_boxes
from ocf.support.amounts import is_whole, real_number
from ocf.support.messages import counted

REGION_KINDS = ("leaves", "sufficient")

#: Training rows of which the authors' experiments make sufficient rules.
SUFFICIENT_ROWS = 1000


def check_region_share(share: float) -> None:
    """Refuse what is no part of a region's rows."""
    if not 0 < real_number(share) <= 1:
        raise ProblemError(f"share is a part of a region's rows above 0 and at most 1, not {share!r}")


def check_most(most: int | None) -> None:
    """Refuse what is no number of regions."""
    if most is not None and not is_whole(most, 1):
        raise ProblemError(f"most is a whole number of regions, at least 1, or None for all, not {most!r}")


@dataclass(frozen=True)
class RegionWish:
    """Which regions are proposed; see `ocf.rules.explainer.CounterfactualRules.regions`."""

    kind: str = "leaves"
    share: float = 0.9
    rows: int = SUFFICIENT_ROWS
    candidates: int = 10

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, REGION_KINDS)
        check_region_share(self.share)
        if not is_whole(self.rows, 1):
            raise ProblemError(
                f"rows is a whole number of at least 1, not {self.rows!r}: regions are made of training rows"
            )


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
        cells = self.forest.partition.locate(complete_rows(self.space, rows_of(self.space, rows)))
        return assigned(self.forest, cells, self.regions, self.rules)

    def __str__(self) -> str:
        if not self.regions:
            return "no region has a rule"
        hold = f"{counted(len(self.regions), 'region')} {'hold' if len(self.regions) > 1 else 'holds'}"
        head = f"{hold} {self.coverage:.0%} of the rows, mean probability {self.precision:.2f}"
        return "\n".join([head, *map(str, self.rules)])


def proposed_regions(
    forest: RegionalForest,
    space: FeatureSpace,
    lacking: BoolArray,
    cells: IntArray | None,
    wish: RegionWish,
    seed: int = 0,
) -> list[Subgroup]:
    """Regions of a kind whose training rows mostly lack the target.

    Parameters
    ----------
    forest : RegionalForest
    space : FeatureSpace
    lacking : (n,) bool
        Training rows that lack the target.
    cells : (m, n_features) int or None
        Of the rows that are to be covered; None for the training rows that lack the target.
    wish : RegionWish
    seed : int
        Of the choice of training rows that give sufficient rules.
    """
    if wish.kind == "leaves":
        boxes = [forest.leaf(k) for k in _leaves_around(forest, lacking, cells)]
    else:
        at = np.flatnonzero(lacking)
        drawn = np.random.default_rng(seed).permutation(at)[: wish.rows]
        features = most_used(forest.use, np.ones(len(forest.use), bool), wish.candidates)  # fixed ones describe, too
        boxes = sufficient_boxes(forest, forest.cells[drawn], lacking, features, wish.share)
    groups = [subgroup_of(forest, space, box, lacking) for box in boxes]
    return [group for group in groups if group.share >= wish.share]


def _leaves_around(forest: RegionalForest, lacking: BoolArray, cells: IntArray | None) -> list[int]:
    """Leaves that hold some of the rows to cover."""
    if cells is None:
        return [int(k) for k in np.unique(forest.leaves[lacking])]
    return sorted({int(k) for row in np.unique(cells, axis=0) for k in forest.partition.leaves_at(row)})


def cover(
    holds: Sequence[BoolArray], support: Sequence[int], accept: Callable[[int], bool], most: int | None
) -> list[int]:
    """Greedily the sets that hold most rows which those before leave; a set is asked only when it is its turn.

    Parameters
    ----------
    holds : sequence of (n,) bool
        Rows of each set.
    support : sequence of int
        Decides between equals.
    accept : callable
        Whether a set, given by its number, is taken.
    most : int or None
        Sets at most; None: all that are accepted, whether they hold further rows or not.
    """
    chosen: list[int] = []
    waiting = {k for k, rows in enumerate(holds) if rows.any()}
    left = np.ones(len(holds[0]) if holds else 0, bool)
    while waiting and (most is None or len(chosen) < most):
        k = max(waiting, key=lambda k: (int((holds[k] & left).sum()), support[k], -k))
        if most is not None and not (holds[k] & left).any():
            break
        waiting.remove(k)
        if accept(k):
            left &= ~holds[k]
            chosen.append(k)
    return chosen


def chosen_regions(
    forest: RegionalForest,
    cells: IntArray,
    groups: Sequence[Subgroup],
    ask: Callable[[Subgroup], RuleSet],
    most: int | None,
) -> tuple[tuple[Subgroup, ...], RuleSets]:
    """Regions with a rule that cover most rows, greedily.

    Parameters
    ----------
    forest : RegionalForest
    cells : (n, n_features) int
        Of the rows to cover.
    groups : sequence of Subgroup
        Regions to choose from.
    ask : callable
        Rules of a region.
    most : int or None
        Regions at most; None for all that have a rule and hold a row.
    """
    found: dict[int, RuleSet] = {}

    def accept(k: int) -> bool:
        found[k] = ask(groups[k])
        return bool(found[k].rules)

    holds = [forest.holds(group.region, cells) for group in groups]
    chosen = cover(holds, [group.support for group in groups], accept, most)
    return tuple(groups[k] for k in chosen), RuleSets(found[k] for k in chosen)


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

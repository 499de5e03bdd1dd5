"""Maximal sufficient rules: boxes on few features that keep an answer with high probability, as regions of rows.

Source: Amoukou and Brunel, Consistent Sufficient Explanations and Minimal Local Rules for Explaining Regression and
Classification Models (2021); the authors' experiments on regional counterfactual rules take them for the regions.

Nomenclature
------------
==================  ====================================================================================
``SDP_S(x)``        := P(Y lacks the target | X_S = x_S): as `CDP_S`, with S held and the rest free
``S``               a smallest set with SDP_S >= pi: the minimal sufficient explanation of x
``C``               a box on S around x_S with P(Y lacks the target | X_S in C) >= pi
==================  ====================================================================================

As everything is held at once, what the estimates call held is the whole space here, and what they call free is the row.
A rule is grown from the row's own cell by merging leaves (`ocf.rules.search.grown_box`), so that it is maximal in the
sense that no leaf can be merged any more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ocf.arrays import BoolArray, IntArray
from ocf.regional.forest import CellBox, RegionalForest
from ocf.regional.query import ProbabilityQuery
from ocf.rules.search import PossibleLeaves, divergent_set, grown_box
from ocf.support.limits import check


def sufficient_boxes(
    forest: RegionalForest, cells: IntArray, lacking: BoolArray, candidates: Sequence[int], level: float
) -> list[CellBox]:
    """Maximal sufficient rules of rows, each once; a row that a rule on its own set S holds already adds none.

    Parameters
    ----------
    forest : RegionalForest
    cells : (n, n_features) int
        Of the rows.
    lacking : (n_training_rows,) bool
        Training rows that lack the target.
    candidates : sequence of int
        Features that may be in S.
    level : float
        pi; rows of which no set reaches it have no rule.
    """
    anywhere = forest.everywhere()
    whole = ProbabilityQuery(forest, anywhere, anywhere, lacking)
    leaves: dict[tuple[int, ...], PossibleLeaves] = {}
    rules: dict[tuple[int, ...], list[CellBox]] = {}
    for row in np.unique(cells, axis=0):
        check()
        own = forest.at(row)
        features, sufficient = divergent_set(whole.with_free(own), candidates, level)
        found = rules.setdefault(features, [])
        if not sufficient or any(forest.holds(box, row[None, :])[0] for box in found):
            continue
        if features not in leaves:
            leaves[features] = PossibleLeaves.of(whole, features, level)
        found.append(grown_box(whole, features, level, forest.mix(own, anywhere, features), leaves[features]))
    return list(dict.fromkeys(box for found in rules.values() for box in found))

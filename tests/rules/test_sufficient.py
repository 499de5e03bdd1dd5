"""Maximal sufficient rules, against shares of rows that are counted by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from ocf import CounterfactualRules
from ocf.regional.query import ProbabilityQuery
from ocf.rules.sufficient import sufficient_boxes


def test_a_rule_keeps_the_answer_and_reaches_as_far_as_it_holds(band: ProbabilityQuery) -> None:
    forest, a = band.forest, np.tile(np.arange(11), 3)
    boxes = sufficient_boxes(forest, forest.cells[~band.wanted], ~band.wanted, [0, 1], 1.0)
    assert sorted(a[forest.inside(box)].tolist() for box in boxes) == [[0, 1, 2, 3] * 3, [7, 8, 9, 10] * 3]


def test_rows_without_a_sufficient_set_have_no_rule(band: ProbabilityQuery) -> None:
    forest = band.forest
    assert sufficient_boxes(forest, forest.cells[:1], ~band.wanted, [1], 0.9) == []


def test_sets_are_the_smallest_that_keep_the_answer(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    forest, lacking = rules.forest, rules.forest.answers == "refused"
    anywhere = forest.everywhere()
    whole = ProbabilityQuery(forest, anywhere, anywhere, lacking)
    for k in np.flatnonzero(lacking)[:6]:
        boxes = sufficient_boxes(forest, forest.cells[[k]], lacking, range(5), 0.9)
        own = replace(whole, free=forest.at(forest.cells[k]))
        for box in boxes:
            assert forest.inside(box)[k]
            size = sum(not forest.cells_of(box, i).all() for i in range(5))
            smaller = [s for n in range(1, size) for s in combinations(range(5), n)]
            assert all(own.cdp(s) < 0.9 for s in smaller)
            assert whole.crp(range(5), box) >= 0.9
        assert len(boxes) == 1

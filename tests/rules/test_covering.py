"""A set of regions that covers rows, against what each region holds by its own conditions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ocf import CounterfactualRules
from ocf.rules.objects import Condition

from .bank import Bank

ASKED = {"method": "greedy", "rule_level": 0.6, "prefer": "probable"}


def meets(row: pd.Series, conditions: tuple[Condition, ...]) -> bool:
    """Whether a row meets what a region says of itself in the user's units."""
    return all(
        row[c.feature] in c.levels
        if c.levels is not None
        else (c.lower is None or row[c.feature] > c.lower or (row[c.feature] == c.lower and not c.open_below))
        and (c.upper is None or row[c.feature] <= c.upper)
        for c in conditions
    )


def test_a_few_regions_serve_most_rows(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    found = rules.regional_set(table, "granted", most=4, **ASKED)
    lacking = table[Bank().predict(table) == "refused"]
    assert 1 < len(found.regions) == len(found.rules) <= 4
    given = found.assign(lacking)
    assert found.coverage == pytest.approx((given >= 0).mean())
    assert found.precision == pytest.approx(np.mean([found.rules[k][0].precision for k in given if k >= 0]))
    assert all(own[0].precision >= 0.6 for own in found.rules)
    held = np.array([[meets(row, region.conditions) for _, row in lacking.iterrows()] for region in found.regions])
    for row, k in enumerate(given):
        precise = [found.rules[j][0].precision if held[j, row] else -1 for j in range(len(held))]
        assert (k == -1 and max(precise) == -1) or precise[k] == max(precise) > 0
    assert str(found).startswith(f"{len(found.regions)} regions hold ")


def test_more_regions_cover_more(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    one, three = (rules.regional_set(table, "granted", most=n, **ASKED) for n in (1, 3))
    assert one.regions[0].region == three.regions[0].region
    assert 0 < one.coverage < three.coverage <= 1


def test_no_region_where_no_rule_reaches_the_level(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    granted = table[Bank().predict(table) == "granted"]
    nobody = rules.regional_set(granted, "granted", method="greedy")
    assert (nobody.regions, nobody.coverage) == ((), 0.0)
    assert np.isnan(nobody.precision)
    assert (nobody.assign(granted) == -1).all()
    assert str(nobody) == "no region has a rule"

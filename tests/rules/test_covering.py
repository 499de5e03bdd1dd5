"""A set of regions that covers rows, against what each region holds by its own conditions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ocf import CounterfactualRules
from ocf.errors import ProblemError
from ocf.rules.conditions import Condition

from .bank import FEATURES, Bank, explain

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


def test_what_is_no_number_of_regions_or_rows_is_refused(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    for most in ("x", -1, 0, 1.5, True):
        with pytest.raises(ProblemError, match=f"most is a whole number of regions, .*, not {most!r}"):
            rules.regions("granted", most=most)
        with pytest.raises(ProblemError, match="most is a whole number"):
            rules.regional_set(table, "granted", most=most)
    for rows in (1.5, "x", 0):
        with pytest.raises(ProblemError, match=f"rows is a whole number of at least 1, not {rows!r}"):
            rules.regions("granted", kind="sufficient", rows=rows)


def test_one_region_is_told_as_one(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    found = rules.regional_set(table.head(50), "granted", most=1)
    assert str(found).startswith("1 region holds ")


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


def test_sufficient_rules_are_few_and_wide_regions(rules: CounterfactualRules, table: pd.DataFrame) -> None:
    regions = rules.regions("granted", kind="sufficient", rows=40, most=5)
    refused = Bank().predict(table) == "refused"
    for region in regions:
        held = np.array([meets(row, region.conditions) for _, row in table.iterrows()])
        assert held.sum() == region.support
        assert refused[held].mean() == pytest.approx(region.share)
        assert region.share >= 0.9
    assert [str(region) for region in regions] == ["income ≤ 50", "job = none"]


def test_all_regions_are_kept_on_request_and_a_row_gets_the_most_probable(
    rules: CounterfactualRules, table: pd.DataFrame
) -> None:
    asked = {"kind": "sufficient", "rows": 40, **ASKED, "rule_level": 0.4}
    few, every = (rules.regional_set(table, "granted", most=n, **asked) for n in (1, None))
    assert len(few.regions) == 1 < len(every.regions)
    assert few.coverage < every.coverage == 1
    both = table[(table.income < 40) & (table.job == "none")]
    best = int(np.argmax([own[0].precision for own in every.rules]))
    assert every.rules[0][0].precision != every.rules[1][0].precision
    assert (every.assign(both) == best).all()


def test_a_row_may_have_the_best_of_the_leaves_around_it(table: pd.DataFrame) -> None:
    rules = explain(Bank(), table, features=FEATURES, n_estimators=6, forest={"max_features": 2})
    idle = table[(table.income < 40) & (table.job == "none")].iloc[[0]]
    asked = {**ASKED, "rule_level": 0.3}
    groups = rules.regions("granted", idle, most=None)
    precise = [own[0].precision if (own := rules.regional(g, "granted", **asked)).rules else 0 for g in groups]
    best = rules.regional_of(idle, "granted", **asked)
    assert best[0].precision == max(precise) > min(precise)
    assert rules.regional_of(idle, "granted", method="greedy", rule_level=1.0, level=1.0).kind == "regional"


def test_rows_get_the_best_of_their_leaves_and_each_region_comes_once(table: pd.DataFrame) -> None:
    rules = explain(Bank(), table, features=FEATURES, n_estimators=6, forest={"max_features": 2})
    rows, asked = table.iloc[:12], {**ASKED, "rule_level": 0.3}
    lacking = rows[rules.lacks(rows, "granted")]
    alone = [rules.regional_of(lacking.iloc[[k]], "granted", **asked) for k in range(len(lacking))]
    expected = {own.held: [rule.precision for rule in own.rules] for own in alone}
    found = rules.regional_many(rows, "granted", progress=False, **asked)
    assert 1 < len(found) < len(lacking) < len(rows)
    assert {own.held: [rule.precision for rule in own.rules] for own in found} == expected
    assert len(found) == len(expected)
    assert not found.interrupted


def test_bad_wishes_for_regions_are_refused(rules: CounterfactualRules) -> None:
    with pytest.raises(ProblemError, match="did you mean 'sufficient'"):
        rules.regions("granted", kind="suficient")
    with pytest.raises(ProblemError, match="share is a part"):
        rules.regions("granted", share=90)
    with pytest.raises(ProblemError, match="rows is a whole number of at least 1"):
        rules.regions("granted", kind="sufficient", rows=0)

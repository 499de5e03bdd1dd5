"""Conditions in words, and what they hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ocf.features.feature import Feature
from ocf.features.special import Special
from ocf.rules.conditions import Condition
from ocf.rules.points import RuleInterval

#: Codes on either side of the numbers.
CODED = Feature("a", "numeric", lower=0, upper=9, special=Special((-9, 99)))


@pytest.mark.parametrize(
    ("feature", "interval", "words"),
    [
        (Feature("a", "numeric", lower=0, upper=9), RuleInterval(0, 2.5, 7.25), "a in (2.5, 7.25]"),
        (Feature("a", "numeric", lower=0, upper=9), RuleInterval(0, 2.5), "a > 2.5"),
        (Feature("a", "numeric", lower=0, upper=9), RuleInterval(0, upper=2.5), "a ≤ 2.5"),
        (Feature("a", "numeric", lower=0, upper=9), RuleInterval(0), "any a"),
        (Feature("a", "integer", lower=0, upper=9), RuleInterval(0, 2.5, 7.5), "a in [3, 7]"),
        (Feature("a", "integer", lower=0, upper=9), RuleInterval(0, 2.5, 3.5), "a = 3"),
        (Feature("a", "integer", lower=0, upper=9), RuleInterval(0, 2.5), "a ≥ 3"),
        (Feature("a", "numeric", lower=0, upper=9, step=0.5), RuleInterval(0, 2.6, 3.7), "a in [3, 3.5]"),
        (Feature("a", "numeric", lower=0, upper=9), RuleInterval(0, upper=12.5), "a ≤ 12.5"),
        (Feature("a", "integer", lower=0, upper=9), RuleInterval(0, -4.5), "a ≥ -4"),
        (CODED, RuleInterval(0, -9, 4.5), "a in [0, 4.5]"),
        (CODED, RuleInterval(0, 4.5, 98.9), "a in (4.5, 9]"),
        (CODED, RuleInterval(0, upper=4.5), "a ≤ 4.5"),
        (replace(CODED, kind="integer"), RuleInterval(0, -9, 98.9), "a in [0, 9]"),
        (Feature("a", "ordinal", levels=("x", "y", "z", "w")), RuleInterval(0, -0.5, 2.5), "a from x to z"),
        (Feature("a", "categorical", levels=("x", "y", "z", "w")), RuleInterval(0, levels=(0, 1, 3)), "a ≠ z"),
        (Feature("a", "categorical", levels=("x", "y", "z", "w")), RuleInterval(0, levels=(0, 3)), "a in {x, w}"),
        (Feature("a", "categorical", levels=("x", "y")), RuleInterval(0, levels=(1,)), "a = y"),
    ],
)
def test_conditions_in_words(feature: Feature, interval: RuleInterval, words: str) -> None:
    assert str(Condition.of(feature, interval)) == words


@pytest.mark.parametrize(
    ("kind", "permitted", "interval", "words"),
    [
        ("numeric", (2, 5), RuleInterval(0, 1.5, 7.5), "a in [2, 5]"),
        ("numeric", (2, 5), RuleInterval(0, 3.5, 7.5), "a in (3.5, 5]"),
        ("numeric", (-np.inf, 5), RuleInterval(0), "a ≤ 5"),
        ("integer", (2, 5), RuleInterval(0), "a in [2, 5]"),
        ("numeric", (2, 5), RuleInterval(0, 7, 8), "a in (7, 8]"),
        ("ordinal", ("y", "z"), RuleInterval(0), "a in {y, z}"),
        ("categorical", ("y", "z"), RuleInterval(0, levels=(0, 1)), "a = y"),
    ],
)
def test_rules_hold_what_is_permitted(kind: Any, permitted: Any, interval: RuleInterval, words: str) -> None:
    """A feature of which nothing in an interval is permitted stays as it is."""
    levels = () if kind in ("numeric", "integer") else tuple("xyzw")
    feature = Feature("a", kind, lower=0, upper=9, levels=levels, permitted=permitted)
    assert str(Condition.of(feature, interval.permitted_by(feature))) == words

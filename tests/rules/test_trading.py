"""The cheapest points in safe rules, against points that are tried one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ocf import CounterfactualRules
from ocf.errors import ProblemError

from .bank import Bank, explain

COLUMNS = ["age", "income"]


class Patchy:
    """Grants above an income of 50; between 50 and 60 only every second time."""

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        return ((table.income > 60) | ((table.income > 50) & (table.age % 2 == 0))).to_numpy().astype(int)


@pytest.fixture(scope="module")
def patchy(table: pd.DataFrame) -> CounterfactualRules:
    return explain(
        Patchy(), table[COLUMNS], level=0.2, max_depth=4, n_estimators=5, features={"age": {"actionability": "fixed"}}
    )


def test_more_safety_costs_more(patchy: CounterfactualRules, poor: pd.DataFrame) -> None:
    row = poor[COLUMNS]
    found = patchy.trade_off(row, 1, levels=(0.9, 0.5, 0.6, 0.5))
    assert found.level.tolist() == [0.5, 0.6, 0.9]
    assert (found.probability >= found.level).all()
    assert (np.diff(found.cost) >= 0).all()
    assert found.cost.iloc[0] < found.cost.iloc[-1]
    assert found.reached.tolist() == Patchy().predict(found).astype(bool).tolist()
    for k, level in enumerate(found.level):  # no cheaper point lies in a rule of the level
        rules = [
            r
            for p in (0.5, 0.6, 0.9)
            if p >= level
            for r in patchy.local(row, 1, rule_level=p, n_rules=5, method="greedy")
        ]
        tried = row.loc[row.index.repeat(2001)].assign(income=np.linspace(row.income.iloc[0], 100, 2001))
        held = np.any([rule.holds(patchy.space.from_frame(tried)) for rule in rules], axis=0)
        first = int(np.argmax(held))
        assert held.any()
        assert tried.income.iloc[max(first - 1, 0)] <= found.income[k] <= tried.income.iloc[first]


def test_columns_that_are_named_like_those_of_the_answer_keep_their_names(table: pd.DataFrame) -> None:
    named = table[COLUMNS].set_axis(["cost", "level"], axis=1)
    rules = explain(None, named, np.where(named.level > 50, "granted", "refused"))
    found = rules.trade_off(named[named.level < 30].iloc[[0]], "granted", levels=[0.5])
    assert found.columns.tolist() == [
        "ocf_level", "ocf_probability", "ocf_cost", "ocf_reached", "ocf_rule", "cost", "level"
    ]  # fmt: skip
    assert (found.ocf_level == 0.5).all()
    assert (found.level > 30).all()
    twice = named.set_axis(["ocf_level", "level"], axis=1)
    rules = explain(None, twice, np.where(twice.level > 50, "granted", "refused"))
    found = rules.trade_off(twice[twice.level < 30].iloc[[0]], "granted", levels=[0.5])
    assert found.columns.is_unique
    assert (found.ocf_ocf_level == 0.5).all()


def test_the_norm_is_the_users(patchy: CounterfactualRules, poor: pd.DataFrame) -> None:
    row = poor[COLUMNS]
    l1, l0 = (patchy.trade_off(row, 1, levels=[0.6], norm=norm).cost.iloc[0] for norm in ("l1", "l0"))
    income = patchy.trade_off(row, 1, levels=[0.6]).income.iloc[0]
    assert l1 == pytest.approx((income - row.income.iloc[0]) / patchy.space.features[1].scale)
    assert l0 == 1


def test_levels_out_of_reach_have_no_row(rules: CounterfactualRules, poor: pd.DataFrame, table: pd.DataFrame) -> None:
    none, some = (rules.trade_off(poor, "granted", levels=[level]) for level in (1.0, 0.3))
    assert none.empty
    assert none.dtypes.equals(some.dtypes)  # so that tables of several rows can be joined
    nobody = CounterfactualRules(None, table, Bank().predict(table), n_estimators=5)
    assert nobody.trade_off(poor, "granted", levels=[0.3]).reached.tolist() == [None]
    with pytest.raises(ProblemError, match="levels are probabilities"):
        rules.trade_off(poor, levels=[50])

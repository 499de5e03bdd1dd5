"""Rules as tables, JSON, words and plots."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf import CounterfactualRules
from ocf.features.feature import Feature
from ocf.features.special import Special
from ocf.rules.objects import Condition
from ocf.rules.points import RuleInterval


def test_tables_json_and_words(rules: CounterfactualRules, table: pd.DataFrame, poor: pd.DataFrame) -> None:
    many = rules.local_many(pd.concat([poor, table[(table.income > 60) & (table.job == "smith")].iloc[:1]]), "granted")
    assert [own.status for own in many] == ["found", "already"]
    frame = many.to_frame()
    assert frame["feature"].tolist() == ["income"]
    record = json.loads(many.to_json())
    assert record["rule_sets"][0]["rules"][0]["conditions"][0]["feature"] == "income"
    assert json.loads(many[0].to_json())["original"]["job"] == "clerk"
    assert f"row {poor.index[0]}: refused → granted by income" in str(many)
    page = many._repr_html_()
    assert f"<h2>row {poor.index[0]}: refused → granted by income" in page
    assert "nothing has to change</h2>" in page
    assert page.count("<td") == 4 * len(many[0])
    proofs = re.findall(r"<td[^>]*>([^<]*)</td></tr>", page)
    assert len(proofs) == len(many[0])
    assert all(said[0].isalpha() for said in proofs)
    assert escape(str(many[0][0])) in page
    assert many[0]._repr_html_() in page


def test_several_sets_are_immutable_and_written_to_files(
    rules: CounterfactualRules, poor: pd.DataFrame, tmp_path: Path
) -> None:
    many = rules.local_many(pd.concat([poor, poor]), "granted")
    with pytest.raises(TypeError, match="does not support item assignment"):
        many[0] = many[1]  # type: ignore[index]
    assert [own.row for own in many[1:]] == [many[1].row]
    assert repr(many).startswith("<RuleSets: [<RuleSet local")
    for of, path in ((many, tmp_path / "many.json"), (many[0], tmp_path / "one.json")):
        text = of.to_json(path)
        assert path.read_text() == text + "\n"
        assert json.loads(of.to_json(indent=None)) == json.loads(text)


def test_sentences_say_what_probabilities_are_those_of(rules: CounterfactualRules, poor: pd.DataFrame) -> None:
    found = rules.local(poor, time_limit=None)
    assert found.divergent
    assert f"other values of these, as the data have them, give it with probability {found.probability:.2f}\n" in str(
        found
    )
    assert str(found).endswith("% of those values lie in it, more than in any other such rule")
    cut = replace(found[0], status="feasible", bound=0.913, coverage=0.076)
    short = str(replace(found, divergent=False, rules=(cut,)))
    assert "; no features reach the level that was asked for\n" in short
    assert "; 7.6 % of those values lie in it; the search was cut short" in short
    assert short.endswith("whether another rule holds more, 91 % at most, is open")
    assert "holds more, 100 % at most, is open" in str(replace(found, rules=(replace(cut, bound=0.998),)))
    greedy = replace(found, rules=(replace(cut, bound=np.inf),))
    assert str(greedy).endswith("lie in it; another rule may hold more")
    assert str(replace(found, rules=(), status="none")).endswith("precise enough was found")


def test_plot_shows_each_condition(rules: CounterfactualRules, poor: pd.DataFrame) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    found = rules.local(poor, time_limit=None)
    ax = found.plot()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["income"]
    import matplotlib.pyplot as plt

    plt.close("all")


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


def test_words_hold_no_more_than_the_rule() -> None:
    """Of a row beyond the bounds, and of a range that is permitted, beside the thresholds of the forest."""
    x = np.arange(200) / 2
    table = pd.DataFrame({"x": x})
    row = pd.DataFrame({"x": [80.0]})
    told = {}
    for name, said in {"bounds": {"bounds": (0, 50)}, "permitted": {"permitted_range": (10, 30)}}.items():
        rules = CounterfactualRules(None, table, (x < 70).astype(int), features={"x": said})
        told[name] = rules.local(row, 1, time_limit=None)[0]
        assert not told[name].holds(rules.space.from_frame(row)).any()
        assert told[name].support == told[name].holds(rules.rows).sum()
    assert str(told["bounds"]).startswith("x ≤ 69")
    assert str(told["permitted"]).startswith("x in [10, 30]")
    assert told["permitted"].support == 41
    assert str(rules.regional({"x": (5, 60)}, 0).held[0]).startswith("x ≤ 6")  # rows may lie anywhere

"""Rules as tables, JSON, words and plots."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ocf import CounterfactualRules


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

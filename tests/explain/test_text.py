"""Explanations as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from ocf import Explainer
from ocf.explain.explanation import Explanation, Explanations
from ocf.explain.text import chance

from .made import raised_sum


def test_texts(several: Explanations, example: Explanation) -> None:
    text = str(example)
    assert text.startswith("row r<7>: refused → granted for a cost of")
    assert "optimal, proven by highs: no smaller change does it" in text
    assert re.search(r"age +20 +85", text)
    assert "rate" not in text
    assert str(several).splitlines()[0] == "3 rows (1 optimal, 1 infeasible, 1 error)"
    assert "optimal" in repr(example)
    assert "3 rows" in repr(several)
    assert str(Explanations()) == "0 rows"


def test_several_answers_to_a_row_are_not_counted_as_rows(example: Explanation) -> None:
    found = Explanations([example, replace(example, rank=2), example])
    assert str(found).splitlines()[0] == "3 answers to 2 rows (3 optimal)"
    assert "2 answers to 1 row (2 optimal)" in found[:2].to_html()


def test_what_people_read_of_other_targets(prices, three) -> None:
    table, _, explainer = prices
    infeasible = explainer.explain(table.iloc[[0]], target=(1e9, None))[0]
    assert "no admissible change gives at least 1000000000" in str(infeasible)
    numbers, model = three
    row = numbers[model.predict(numbers) == "a"].iloc[[0]]
    likely = Explainer(model, data=numbers).explain(row, "b", probability=0.5)[0]
    assert "a → b with a probability of at least 0.5 for a cost" in str(likely)
    unlikely = Explainer(model, data=numbers).explain(row, "b", probability=0.3)[0]
    assert "b with a probability of at least 0.3" in str(unlikely)
    assert "at least 0.3" in unlikely.to_html()


def test_probabilities_are_those_of_the_users_model(credit, three) -> None:
    table, model, explainer = credit
    row = table[model.predict(table) == "refused"].iloc[[0]]
    e = explainer.explain(row, "granted")[0]
    granted = list(model.classes_).index("granted")
    shown = [float(model.predict_proba(t)[0][granted]) for t in (row, e.counterfactual)]
    assert [e.before, e.after] == shown
    assert shown[0] < 0.5 < shown[1]
    assert f"probability of granted: {shown[0]:.3g} → {shown[1]:.3g}" in str(e)
    assert f"probability of granted: {shown[0]:.3g} → {shown[1]:.3g}" in e.to_html()
    assert Explanation.from_json(e.to_json()).after == e.after
    frame = explainer.explain(table.iloc[:4], "opposite").to_frame()
    flipped = model.predict(table.iloc[:4]) == "refused"
    wanted = [granted if r else 1 - granted for r in flipped]
    assert frame["before"].tolist() == [p[k] for p, k in zip(model.predict_proba(table.iloc[:4]), wanted, strict=True)]
    numbers, third = three
    several = Explainer(third, data=numbers).explain(numbers[third.predict(numbers) == "a"].iloc[[0]], ["b", "c"])[0]
    assert several.likely == several.decided != "a"
    unmet = explainer.explain(row, "granted", features_to_vary=["owner"], permitted_range={"owner": [False]})[0]
    assert unmet.counterfactual is None
    assert (unmet.likely, unmet.after) == ("granted", None)
    assert unmet.before == shown[0]


def by_hand(e: Explanation, show: Callable[[pd.DataFrame], float]) -> list[float]:
    """What the user's model gives as the changes are made one by one."""
    row, found = e.original.copy(), [show(e.original)]
    for name in e.changes["feature"]:
        row[name] = e.counterfactual[name]
        found.append(show(row))
    return found


@pytest.mark.parametrize("many", [False, True])
def test_the_path_is_what_the_users_model_gives_change_by_change(credit, many: bool) -> None:
    table, model, explainer = credit
    rows = table[model.predict(table) == "refused"].iloc[:8]
    granted = list(model.classes_).index("granted")
    asked = [rows] if many else [rows.iloc[[k]] for k in range(len(rows))]
    found = [e for own in asked for e in explainer.explain(own, "granted", norm="l2", probability=0.8)]
    for e in found:
        assert list(e.path) == by_hand(e, lambda row: model.predict_proba(row)[0][granted])
        assert Explanation.from_json(e.to_json()).path == e.path
    assert max(len(e.path) for e in found) > 2
    e, of_sums = raised_sum()
    assert list(e.path) == by_hand(e, lambda row: of_sums.predict(row)[0])
    assert len(e.path) > 2


def test_a_probability_near_one_half_tells_its_side() -> None:
    assert [chance(p) for p in (0.5, 0.49996, 0.50000001)] == ["0.5", "just under 0.5", "just over 0.5"]
    assert chance(0.316666) == "0.317"


def test_a_value_before_and_after(prices) -> None:
    table, model, explainer = prices
    e = explainer.explain(table.iloc[[0]], target=(9000, None))[0]
    assert e.probabilities is None
    assert [e.before, e.after] == [model.predict(table.iloc[[0]])[0], model.predict(e.counterfactual)[0]]
    assert e.to_frame()["after"].tolist() == [e.after]

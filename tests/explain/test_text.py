"""Explanations as text."""

from __future__ import annotations

import re

from ocf import Explainer
from ocf.explain.explanation import Explanation, Explanations


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

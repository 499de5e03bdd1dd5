"""Across files: what a rule claims against the trees, asked about the values that its words name, not about cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf import CounterfactualRules
from ocf.rules.conditions import Condition
from ocf.trees.ensemble import Ensemble, SplitKind

#: Columns with gaps between the values, and what is said of them.
COLUMNS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "whole": ([0, 1, 3, 4, 5, 7, 8], {}),
    "negative": ([-3, -1, 0, 2, 4], {}),
    "step": ([-1.0, -0.5, 0.5, 1.0, 2.5], {"step": 0.5}),
    "ordinal": (["b", "c", "f", "h"], {"kind": "ordinal", "levels": list("abcdefgh")}),
    "some levels": (list("abcde"), {"kind": "ordinal", "levels": list("abcde"), "permitted_range": ["a", "c", "e"]}),
}


def fitted(names: Sequence[str], seed: int) -> tuple[CounterfactualRules, pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.choice(np.array(COLUMNS[name][0], object), 60) for name in names}).infer_objects()
    code = np.column_stack([pd.factorize(table[name], sort=True)[0] for name in names])
    answers = ((code[:, 0] > 1) ^ (code[:, -1] > 2) ^ (rng.random(60) < 0.15)).astype(int)
    described = {name: COLUMNS[name][1] for name in names if COLUMNS[name][1]}
    rules = CounterfactualRules(
        None, table, answers, features=described, level=0.7, rule_level=0.8, n_estimators=3, max_depth=4
    )
    return rules, table, answers


def named(rules: CounterfactualRules, i: int, condition: Condition) -> np.ndarray:
    """Coded values that a condition names."""
    feature = rules.space.features[i]
    if feature.discrete:
        return np.array([feature.codes[level] for level in condition.levels or ()], float)
    step = feature.step or 1.0
    values = np.arange(feature.lower, feature.upper + step, step)
    low, high = condition.lower, condition.upper
    return values[(values >= (-np.inf if low is None else low)) & (values <= (np.inf if high is None else high))]


def probability(ensemble: Ensemble, rows: np.ndarray, wanted: np.ndarray, values: list[np.ndarray]) -> float:
    """Mean share of wanted rows among those that go the way of the values wherever all of them go one way."""

    def left(k: int, own: np.ndarray) -> np.ndarray:
        if ensemble.kind[k] == SplitKind.AXIS:
            return np.asarray(own <= ensemble.threshold[k])
        return np.asarray(ensemble.sets[ensemble.set_index[k]][own.astype(int)])

    shares = []
    for root in ensemble.tree_offsets[:-1].tolist():
        inside, stack = np.ones(len(rows), bool), [root]
        while stack:
            k = stack.pop()
            if ensemble.kind[k] == SplitKind.LEAF:
                continue
            i = int(ensemble.feature[k])
            sides = set(left(k, values[i]).tolist())
            stack += [int(ensemble.left[k] if side else ensemble.right[k]) for side in sides]
            if len(sides) == 1:
                inside &= left(k, rows[:, i]) == sides.pop()
        shares.append(wanted[inside].mean() if inside.any() else 0.0)
    return float(np.mean(shares))


@pytest.mark.parametrize("seed", [0, 3, 22, 417])
@pytest.mark.parametrize(
    "names", [("whole", "negative"), ("step", "whole"), ("ordinal", "negative"), ("some levels", "whole")]
)
def test_a_rule_is_as_probable_as_the_values_that_it_names(names: tuple[str, ...], seed: int) -> None:
    rules, table, answers = fitted(names, seed)
    for row in range(0, 60, 3):
        asked = 1 - answers[row]
        for rule in rules.local(table.iloc[[row]], asked, n_rules=2, time_limit=None):
            values = [rules.rows[[row], i] for i in range(len(names))]
            for condition in rule.conditions:
                i = rules.space.index(condition.feature)
                values[i] = named(rules, i, condition)
                assert len(values[i])
            found = probability(rules.forest.partition.ensemble, rules.rows, answers == asked, values)
            assert rule.precision == pytest.approx(found)
            free = [rules.space.index(c.feature) for c in rule.conditions]
            holds = [np.isin(rules.rows[:, i], values[i]) for i in free]
            assert rule.support == np.logical_and.reduce(holds).sum()


@pytest.mark.parametrize("seed", range(5))
def test_every_cell_holds_a_value(seed: int) -> None:
    names = ["whole", "negative", "step", "ordinal"]
    rules, _, _ = fitted(names, seed)
    part = rules.forest.partition
    for i, feature in enumerate(rules.space.features):
        lower, upper = part.lower[part.cells_of(i)], part.upper[part.cells_of(i)]
        assert (feature.at_most(upper) > lower).all(), feature.name


def test_all_rows_of_a_region_may_stay_at_its_end() -> None:
    """Of a feature that may only rise, the last whole number of each leaf is free."""
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"level": rng.integers(-3, 3, 30), "other": rng.integers(0, 5, 30)})
    answers = ((table.level > -2) ^ (rng.random(30) < 0.2)).astype(int)
    rising = {"level": {"actionability": "increasing"}}
    rules = CounterfactualRules(None, table, answers, features=rising, n_estimators=8, max_depth=None)
    part, i = rules.forest.partition, rules.space.index("level")
    for group in rules.regions(1, most=None, share=0.1):
        last = next((c.upper for c in group.conditions if c.feature == "level"), None)
        if last is not None:
            first = part.offsets[i] + rules.query(group, 1).free.low[i]
            assert part.lower[first] < last <= part.upper[first]

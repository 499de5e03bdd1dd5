"""Numbers that floating point makes hard, and models too large for brute force.

Not one returned point may fail to flip the user's own model, in the dtype of the user's data; every method proves the
same cost; and no random admissible point that flips the model is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from oracle import brute_force
from oracle.harness import BASELINES, Case, Method, case_of, methods, point_objections, same
from oracle.instances import LIBRARIES, Instance, Size, Spec

Rng = np.random.Generator

#: Name -> column of n values.
SCALES: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "plain": lambda rng, n: rng.normal(size=n),
    "narrow": lambda rng, n: 1e3 + 1e-3 * rng.normal(size=n),
    "timestamps": lambda rng, n: 1.7e9 + rng.integers(0, 30_000_000, n).astype(float),
    "tiny": lambda rng, n: 1e-30 * rng.normal(size=n),
    "huge": lambda rng, n: 1e30 * rng.normal(size=n),
    # numbers one float32 apart, with float64 numbers between them
    "neighbours": lambda rng, n: 1.0 + rng.integers(0, 24, n) * 2.0**-23 + rng.integers(0, 3, n) * 2.0**-25,
    "subnormal": lambda rng, n: rng.integers(-20, 20, n) * 2.0**-149,
}

#: Three columns of a scale beside an ordinary one (scikit-learn sees no difference below 1e-7), or one of each.
MIXES = {name: (name, name, name, "plain") for name in SCALES if name != "plain"} | {"all": tuple(SCALES)}

SIZES = {
    "forest": Size(60, 5, 0),
    "extra_trees": Size(30, 5, 0),
    "gradient_boosting": Size(30, 3, 0),
    "hist_gradient_boosting": Size(30, 3, 0),
    "xgboost": Size(40, 3, 0),
    "lightgbm": Size(40, 3, 0),
}

N_ROWS = 240


def hostile_table(mix: str, dtype: str, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Table and labels that depend on the order of its values, not on their size."""
    rng = np.random.default_rng(seed)
    columns = {f"{name}{j}": SCALES[name](rng, N_ROWS) for j, name in enumerate(MIXES[mix])}
    table = pd.DataFrame(columns).astype(dtype)
    ranks = table.rank().to_numpy() / N_ROWS
    score = ranks @ rng.normal(size=ranks.shape[1]) + 0.15 * rng.normal(size=N_ROWS)
    return table, (score > np.median(score)).astype(int)


def hostile_case(mix: str, library: str, dtype: str, seed: int = 0) -> Case:
    """A model of realistic size on a hostile table, asked about a row that it puts in class 0."""
    table, labels = hostile_table(mix, dtype, seed)
    model = LIBRARIES[library](SIZES[library]).fit(table, labels)
    predicted = model.predict(table)
    row = table[predicted == 0].iloc[[seed]]
    return case_of(Instance(Spec(library, f"{mix}-{dtype}", seed), model, table, row, {}, {"target": 1, "norm": "l1"}))


def usual_methods() -> list[Method]:
    return [m for m in methods() if m.reduce and m.formulation not in BASELINES]


def check_hostile(case: Case, which: list[Method]) -> None:
    costs = {}
    for method in which:
        answer = case.answer(method)
        found = answer.counterfactual
        assert answer.status == "optimal", f"{method}: {answer}{case.describe()}"
        assert answer.verified, f"{method}: {answer.checks}{case.describe()}"
        assert same(answer.bound, answer.cost), f"{method}: {answer}{case.describe()}"
        assert list(found.dtypes) == list(case.instance.data.dtypes)
        assert case.instance.model.predict(found)[0] == 1, f"{method} does not flip the model{case.describe()}"
        wrong = "; ".join(point_objections(case, answer))
        assert not wrong, f"{method}: {wrong}{case.describe()}"
        costs[method] = answer.cost
    first = next(iter(costs.values()))
    assert all(same(cost, first) for cost in costs.values()), f"{costs}{case.describe()}"
    brute_force.assert_nothing_cheaper(case.question, first, np.random.default_rng(0), n=2000)
    brute_force.assert_constant_within_cells(case.question, np.random.default_rng(1), n=200)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("library", SIZES)
@pytest.mark.parametrize("mix", MIXES)
def test_points_flip_the_model(mix: str, library: str, dtype: str) -> None:
    check_hostile(hostile_case(mix, library, dtype), usual_methods())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("library", SIZES)
@pytest.mark.parametrize("mix", MIXES)
def test_points_flip_the_model_on_more_rows(mix: str, library: str, dtype: str) -> None:
    check_hostile(hostile_case(mix, library, dtype, 1), usual_methods())

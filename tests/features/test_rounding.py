"""Grids of human numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ocf.errors import ProblemError
from ocf.features.inference import infer_space
from ocf.features.rounding import rounded_space, step_of

RNG = np.random.default_rng(0)

TABLE = pd.DataFrame(
    {
        "amount": RNG.integers(5, 400, 300) * 50,
        "months": RNG.integers(1, 12, 300) * 6,
        "rate": (RNG.integers(1, 80, 300) * 0.25),
        "cents": RNG.normal(2000, 600, 300).round(2),
        "narrow": RNG.normal(20, 6, 300).round(1).astype(np.float32),
        "free": RNG.normal(size=300),
        "age": RNG.integers(18, 90, 300),
        "flag": RNG.integers(0, 2, 300),
    }
)


def steps(round_to: object) -> dict[str, float | None]:
    space = infer_space(TABLE)
    asked = rounded_space(space, round_to, space.from_frame(TABLE))
    return {f.name: f.step for f in asked.features}


def test_grids_of_the_data() -> None:
    wanted = {"amount": 50, "months": 6, "rate": 0.25, "cents": 0.01, "narrow": 0.1}
    assert steps("data") == dict.fromkeys(TABLE) | wanted
    assert steps({"months": "data"}) == dict.fromkeys(TABLE) | {"months": 6}
    assert steps(None) == dict.fromkeys(TABLE)


def test_a_few_values_may_lie_off_a_round_grid() -> None:
    (feature,) = infer_space(TABLE[["amount"]]).features
    values = np.arange(1000, dtype=float) * 50
    values[[3, 500]] += 1
    assert step_of(values, feature) == 50
    values[::40] += 1
    assert step_of(values, feature) == 1
    assert step_of(np.zeros(5), feature) is None
    assert step_of(np.array([1e13, 2e13]), feature) == 1e13
    assert step_of(np.array([1e17, 2e17]), feature) is None


def test_significant_digits_of_the_range() -> None:
    # the ranges are about 19,700, 60, 20, 3,500, 35, 6 and 70
    wanted = {"amount": 1000, "cents": 100, "narrow": 1, "rate": 1, "free": 0.1, "months": None, "age": None}
    assert steps(2) == {"flag": None} | wanted
    assert steps({"amount": 1, "age": 1}) == dict.fromkeys(TABLE) | {"amount": 10000, "age": 10}


def test_a_feature_keeps_a_step_that_is_no_part_of_the_grid() -> None:
    space = infer_space(TABLE, {"cents": {"step": 0.3}, "rate": {"step": 0.05}})
    asked = rounded_space(space, 2, space.from_frame(TABLE))
    assert [asked.features[asked.index(name)].step for name in ("cents", "rate")] == [0.3, 1.0]


@pytest.mark.parametrize("wish", ["date", 0, 2.5, True, {"age": "tens"}, [2]])
def test_other_wishes_are_refused(wish: object) -> None:
    with pytest.raises(ProblemError, match="round_to"):
        rounded_space(infer_space(TABLE), wish, None)


def test_data_are_needed() -> None:
    with pytest.raises(ProblemError, match="needs data"):
        rounded_space(infer_space(TABLE), "data", None)

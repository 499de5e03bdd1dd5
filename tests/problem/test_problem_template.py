"""Problem files that are written read back as the same space."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.features.feature import Feature
from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace
from ocf.problem.problem_file import read_problem_file
from ocf.problem.problem_template import write_problem_file


def read_back(path: Path, table: pd.DataFrame, space: FeatureSpace) -> FeatureSpace:
    path.write_text(write_problem_file(space, ["yes", "no"]), encoding="utf-8")
    said = read_problem_file(path)
    assert said.solve == {}
    return infer_space(table, said.features)


ODD = pd.DataFrame(
    {
        "plain-key_1": [1.5, 2.0, 3e-7],
        "": ["x", 'quote " and \\ and\nline', "del \x7f nul \x00 é 漢 \u2028"],
        "a b.c": [True, False, True],
        "# [x]": [1, 2, 2**60],
        "ñ": [0.0, 1.0, 0.0],
        "'number as text'": ["1", "2", "1.0"],
        "constant": [5.0, 5.0, 5.0],
        "small": [-1e-300, 0.0, 1e300],
        "unseen": pd.Categorical(["l0", "l1", "l2"], categories=["l3", "l0", "l1", "l2"]),
        "float32": np.array([0.1, 0.2, 0.7], np.float32),
        "mixed": [1, "1", True],
        "when": pd.to_datetime(["2020-01-01", "2021-01-01", "2020-05-01"]),
        "j_a": [1, 0, 0],
        "j_b": [0, 1, 0],
        "k_x": [1, 0, 0],
        "k_y": [0, 1, 1],
    }
)


@pytest.mark.parametrize(
    "said",
    [
        {"job": {"columns": {"a": "j_a", "b": "j_b"}, "base": "none"}, "k": {"columns": ["k_x", "k_y"]}},
        {
            "# [x]": {"kind": "ordinal", "actionability": "increasing", "weight": [2, 1], "permitted_range": [1, 2]},
            "plain-key_1": {"step": 0.1, "bounds": [-np.inf, np.inf], "scale": 3.5, "permitted_range": [0, 1]},
            "": {"weight": 3, "permitted_range": ["x"]},
            "unseen": {"weight": [1, 3], "actionability": "fixed", "scale": 7},
            "a b.c": {"weight": [0, 3]},
            "ñ": {"kind": "integer"},
        },
    ],
)
def test_a_written_file_reads_back_as_the_same_space(tmp_path: Path, said: dict[str, Any]) -> None:
    space = infer_space(ODD, said)
    back = read_back(tmp_path / "p.toml", ODD, space)
    for old, new in zip(space.features, back.features, strict=True):
        assert new == old
        assert list(map(type, new.levels)) == list(map(type, old.levels))
    assert back == space


def test_very_many_levels_are_wrapped_and_complete(tmp_path: Path) -> None:
    table = pd.DataFrame({"city": [f"city {k}" for k in range(5000)], "x": np.arange(5000)})
    space = infer_space(table)
    text = write_problem_file(space)
    assert max(map(len, text.splitlines())) <= 110
    assert read_back(tmp_path / "p.toml", table, space) == space


def test_it_shows_what_can_be_said() -> None:
    space = FeatureSpace((Feature("age", "integer", lower=18, upper=90, scale=72),))
    text = write_problem_file(space, ["low", "mid", "high"])
    assert '# target = "low"  # one of "low", "mid", "high"' in text
    assert "bounds = [18, 90]\nscale = 72\n" in text
    assert '# actionability = "free"  # fixed, increasing or decreasing' in text


def test_every_commented_option_is_valid(tmp_path: Path) -> None:
    text = write_problem_file(infer_space(ODD), [0, 1])
    path = tmp_path / "p.toml"
    path.write_text(re.sub(r"(?m)^# (\w+ = |\[(?:plausibility|missing|table)\])", r"\1", text), encoding="utf-8")
    said = read_problem_file(path)
    assert said.solve["target"] == "opposite"
    assert said.solve["plausibility"]["quantile"] == 0.1
    assert said.solve["missing"] == {"cost_of_supplying": 1.0, "may_become_missing": []}
    assert said.special_values == []
    assert said.groups is False
    assert said.features["plain-key_1"]["step"] == 0.01


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        names, st.lists(numbers, min_size=3, max_size=3) | st.lists(names, min_size=3, max_size=3), min_size=1
    )
)
def test_any_table_round_trips(tmp_path_factory: pytest.TempPathFactory, columns: dict[str, list[Any]]) -> None:
    table = pd.DataFrame(columns)
    space = infer_space(table)
    assert read_back(tmp_path_factory.mktemp("any") / "p.toml", table, space) == space

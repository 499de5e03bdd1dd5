"""Problem files: reading, refusing, and writing what reads back as the same space."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.errors import ProblemError
from ocf.features.feature import Feature
from ocf.features.inference import SETTINGS, infer_space
from ocf.features.space import FeatureSpace
from ocf.problem.problem_file import FeatureSettings, ProblemFile, read_problem_file
from ocf.problem.problem_template import write_problem_file
from ocf.support.documents import settings_of

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(text: str) -> Path:
        path = tmp_path / "problem.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return make


# -- reading


def test_every_setting_of_features_is_known_here() -> None:
    assert set(settings_of(FeatureSettings)) == set(SETTINGS)


def test_a_file_is_read(write: Write) -> None:
    path = write(
        """
        [solve]
        target = 1
        norm = { l0 = 0.1, l1 = 1 }
        features_to_vary = ["age"]
        time_limit = 60
        [solve.options]
        mip_heuristic_effort = 0.1
        [features.age]
        bounds = [18, 90]
        weight = [2.0, 1]
        [features."odd name"]
        columns = { a = "x", b = "y" }
        base = "none"
        """
    )
    assert read_problem_file(path) == ProblemFile(
        features={
            "age": {"bounds": [18, 90], "weight": [2.0, 1]},
            "odd name": {"columns": {"a": "x", "b": "y"}, "base": "none"},
        },
        solve={
            "target": 1,
            "norm": {"l0": 0.1, "l1": 1},
            "features_to_vary": ["age"],
            "time_limit": 60,
            "options": {"mip_heuristic_effort": 0.1},
        },
    )


def test_targets_of_all_kinds_are_read(write: Write) -> None:
    said = write('[solve]\ntarget = ["good", "fair"]\nprobability = 0.7')
    assert read_problem_file(said).solve == {"target": ["good", "fair"], "probability": 0.7}
    assert read_problem_file(write("[solve]\nat_most = 3")).solve == {"target": (None, 3)}
    for text, word in (
        ("at_least = 1\ntarget = 2", "bound the value of a regressor"),
        ("probability = 70", "up to 1"),
        ("target = []", "list of classes"),
    ):
        with pytest.raises(ProblemError, match=word):
            read_problem_file(write("[solve]\n" + text))


def test_an_empty_file_says_nothing(write: Write) -> None:
    assert read_problem_file(str(write(""))) == ProblemFile()


def test_the_mark_that_some_editors_put_first_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text("[solve]\nseed = 3\n", encoding="utf-8-sig")
    assert read_problem_file(path).solve == {"seed": 3}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[solve]\nseed = ", ["not valid TOML", "Invalid value"]),
        ("[feature.age]\nkind = 'integer'", ["'feature'", "did you mean 'features'"]),
        ("[[constraint]]\nleft = 1", ["'constraint'", "did you mean 'constraints'?"]),
        ("target = 1", ["'target'", "settings belong in [solve]"]),
        ("solve = 3", ["must be a section, [solve]"]),
        ("[features]\nage = 3", ["'age'", "[features.age]"]),
        ("[features.age]\nbound = [1, 2]", ["[features.age]", "'bound'", "did you mean 'bounds'"]),
        ("[features.'a b']\nsteps = 1", ['[features."a b"]', "did you mean 'step'"]),
        ("[solve]\nsolvr = 'highs'", ["[solve]", "did you mean 'solver'"]),
        ("[solve]\nweights = { age = 2 }", ["'weights'", "[features.NAME]"]),
        ("[solve]\ngap = 0.1", ["'gap'", "'mip_gap'"]),
        ("[features.age]\nkind = 'float'", ["kind = 'float'", "'numeric'", "'ordinal'"]),
        ("[features.age]\nbounds = [5, 1]", ["bounds = [5, 1]", "[lowest, highest]"]),
        ("[features.age]\nbounds = ['1', 2]", ["[lowest, highest]"]),
        ("[features.age]\nbounds = [nan, 2]", ["[lowest, highest]"]),
        ("[features.age]\nlevels = []", ["a list of all levels"]),
        ("[features.age]\nstep = 0", ["a positive number"]),
        ("[features.age]\nscale = true", ["a positive number"]),
        ("[features.age]\nweight = [1, 2, 3]", ["weight", "going down"]),
        ("[features.age]\nweight = -1", ["weight", "at least 0"]),
        ("[features.age]\ncolumns = {}", ["table of levels"]),
        ("[features.age]\ncolumns = 3", ["table of levels"]),
        ("[features.age]\nactionability = 'never'", ["'fixed'"]),
        ("[features.age]\npermitted_range = 3", ["list of levels"]),
        ("[solve]\nnorm = 1", ["norm = 1", "l0 = 0.1"]),
        ("[solve]\ntime_limit = '60'", ["time_limit = '60'", "seconds"]),
        ("[solve]\ntime_limit = 0", ["positive number"]),
        ("[solve]\nthreads = 1.5", ["whole number"]),
        ("[solve]\nreduce = 1", ["true or false"]),
        ("[solve]\nn_jobs = 0", ["-1 for one per core"]),
        ("[solve]\nfeatures_to_vary = 'age'", ["list of feature names"]),
        ("[plausibility]\nquantile = 1", ["quantile = 1", "below 1"]),
        ("[plausibility]\ntree = 1", ["[plausibility]", "did you mean 'trees'"]),
        ("plausibility = true", ["must be a section, [plausibility]"]),
        ("[solve]\nplausibility = true", ["'plausibility'", "[plausibility]"]),
        ("[solve]\noptions = { a = [1] }", ["own options"]),
        ("[solve]\nseed = 1\nseed = 2", ["not valid TOML"]),
        ("[solve]\nnorm = { l0 = 'x' }", ["norm = {'l0': 'x'}", "l0 = 0.1", "expected `float`, got `str`"]),
        ("[solve]\ntarget = ['a', [1]]", ["list of classes", "at [1]: expected `bool | int | float | str`"]),
        ("[features.age]\nweight = [1, -1]", ["going down", "at [1]: expected `float` >= 0.0"]),
        ("[features.age]\nbounds = [2]", ["[lowest, highest]"]),
        ("[features.age]\ncost = { points = 3 }", ["an amount per unit"]),
        ("[solve]\nat_least = nan", ["a number, the least value"]),
    ],
)
def test_mistakes_are_named_with_file_key_and_remedy(write: Write, text: str, words: list[str]) -> None:
    path = write(text)
    with pytest.raises(ProblemError) as caught:
        read_problem_file(path)
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"cannot read the problem file .*nowhere"):
        read_problem_file(tmp_path / "nowhere.toml")
    with pytest.raises(ProblemError, match="cannot read the problem file"):
        read_problem_file(tmp_path)
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff\xfe\x00[")
    with pytest.raises(ProblemError, match="not UTF-8"):
        read_problem_file(path)


# -- writing


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
    path.write_text(re.sub(r"(?m)^# (\w+ = |\[plausibility\])", r"\1", text), encoding="utf-8")
    said = read_problem_file(path)
    assert said.solve["target"] == "opposite"
    assert said.solve["plausibility"]["quantile"] == 0.1
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

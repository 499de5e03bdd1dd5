from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle.harness import prepare
from oracle.instances import Spec

from ocf.cells.forms import to_cells
from ocf.errors import ProblemError
from ocf.problem.problem import SCHEMA, Problem
from ocf.problem.targets import ProbabilityTarget
from ocf.trees.ensemble import MOST_DERIVED

PAST = Path(__file__).parents[1] / "oracle" / "past"


@pytest.fixture(scope="module")
def problem() -> Problem:
    return prepare(Spec("forest", "pipeline", 2)).problem


def test_json_round_trip_is_exact(problem: Problem) -> None:
    text = problem.to_json()
    again = Problem.from_json(text)
    assert again.to_json() == text
    assert again.space == problem.space
    assert (again.target, again.cost) == (problem.target, problem.cost)
    for name in ("threshold", "leaf_values", "feature", "left", "kind", "sets"):
        ours, theirs = getattr(problem.ensemble, name), getattr(again.ensemble, name)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    one, other = to_cells(problem), to_cells(again)
    np.testing.assert_array_equal(one.cost, other.cost)
    np.testing.assert_array_equal(one.value, other.value)


def test_json_is_strict_about_infinities_and_missing_values(problem: Problem) -> None:
    origin = problem.origin.copy()
    origin[0] = np.nan
    features = (problem.space.features[0], *problem.space.features[1:])
    space = problem.space.updated({features[-1].name: {"scale": 2.0}})
    again = Problem.from_json(Problem(problem.ensemble, space, origin, problem.target, problem.cost).to_json())
    assert math.isnan(again.origin[0])
    assert again.space == space
    assert all(f.upper == math.inf for f in again.space.features if f.discrete)


def test_rows_share_what_a_target_asks_of_the_leaves_as_far_as_there_are_few(problem: Problem) -> None:
    ensemble = replace(problem.ensemble)
    asked = [ProbabilityTarget((1,), 0.5 + 0.01 * k) for k in range(MOST_DERIVED + 1)]
    first, *others = (replace(problem, ensemble=ensemble, target=t).alternatives[0] for t in asked)
    again = [replace(problem, ensemble=ensemble, target=t, origin=problem.origin + 1) for t in asked[1:]]
    assert all(p.alternatives[0] is shared for p, shared in zip(again, others, strict=True))
    assert len(ensemble.derived) == MOST_DERIVED
    assert replace(problem, ensemble=ensemble, target=asked[0]).alternatives[0] is not first


@pytest.mark.parametrize("text", ["", "{", "nonsense", '{"schema": "ocf.problem/1"'])
def test_text_that_is_no_json(text: str) -> None:
    with pytest.raises(ProblemError, match="the problem is not JSON"):
        Problem.from_json(text)


@pytest.mark.parametrize("data", [[], 3, "word", {}, {"schema": "ocf.problem/99"}])
def test_json_that_is_no_problem(data: object) -> None:
    with pytest.raises(ProblemError, match=SCHEMA):
        Problem.from_json(json.dumps(data))


@pytest.mark.parametrize("key", ["ensemble", "space", "origin", "target", "cost"])
def test_problem_that_lacks_a_part(problem: Problem, key: str) -> None:
    data = json.loads(problem.to_json())
    del data[key]
    with pytest.raises(ProblemError, match=key):
        Problem.from_json(json.dumps(data))


def test_parts_must_fit(problem: Problem) -> None:
    with pytest.raises(ProblemError, match="origin has shape"):
        Problem(problem.ensemble, problem.space, problem.origin[:-1], problem.target, problem.cost)
    other = prepare(Spec("tree", "frame", 0))
    if len(other.problem.space) != len(problem.space):
        with pytest.raises(ProblemError, match="the ensemble tests"):
            Problem(other.problem.ensemble, problem.space, problem.origin, problem.target, problem.cost)


@pytest.mark.parametrize("path", sorted(PAST.glob("*.json")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_load(path: Path) -> None:
    problem = Problem.from_json(path.read_text())
    assert Problem.from_json(problem.to_json()).to_json() == problem.to_json()


def test_parts_that_the_first_files_lacked_are_optional(problem: Problem) -> None:
    data = json.loads(problem.to_json())
    for part, keys in (
        (data, ["plausibility", "constraints"]),
        (data["ensemble"], ["oblique_codes", "oblique_slack"]),
        (data["cost"], ["squares", "forms"]),
        *((feature, ["cost"]) for feature in data["space"]["features"]),
    ):
        for key in keys:
            del part[key]
    assert Problem.from_json(json.dumps(data)).to_json() == problem.to_json()


@pytest.mark.parametrize("part", ["ensemble", "cost", "feature", "decision"])
def test_keys_that_no_version_wrote_are_refused(problem: Problem, part: str) -> None:
    data = json.loads(problem.to_json())
    found = {
        "ensemble": data["ensemble"],
        "cost": data["cost"],
        "feature": data["space"]["features"][0],
        "decision": data["ensemble"]["decision"],
    }[part]
    found["colour"] = 3
    with pytest.raises(ProblemError, match="unknown field `colour`"):
        Problem.from_json(json.dumps(data))

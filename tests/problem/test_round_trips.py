"""Across files: what is saved is read by a process that has imported nothing but what reads it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Budget, Cost, Explainer, Implication, Linear, MaxChanges
from ocf.problem.constraints import KINDS, Constraint, from_dict
from ocf.problem.diversity import Apart, Keeps
from ocf.problem.targets import ClassSetTarget, ClassTarget, IntervalTarget, ProbabilityTarget, target_from_schema
from ocf.support.documents import fit
from ocf.support.schemas import TargetSchema

CONSTRAINTS: tuple[Constraint, ...] = (
    Linear({"a": 1, "job": {"cook": -2.5}}, ">=", 0.1, relative=True, name="enough"),
    Implication({"job": ["cook", "smith"]}, {"a": {"max": 3}}, name="poor cooks"),
    Budget(24, {"a": (1, 2), "b": {"points": [[0, 0], [2, 5]], "of": "change"}}, name="months"),
    MaxChanges(2, ("a", "b")),
    Keeps(("a", "b"), name="other features than explanation 1"),
    Apart((("a", 0.5), ("b", 1.0)), 0.1, name="apart from explanation 1"),
)
TARGETS = (
    ClassTarget(1),
    ClassSetTarget((0, 2)),
    ProbabilityTarget((1,), 0.7),
    IntervalTarget(-np.inf, 2.5),
    IntervalTarget(0.1, np.inf),
)
COSTS = (
    Cost(l0=0.1, l1=1.0),
    Cost(l2=2.0),
    Cost(squares=(("a", 0.1),), forms=((("a", 1.0), ("b", -0.5)),)),
    Cost(absolutes=((("a", 1.0), ("b", -0.5)), (("b", 0.25),))),
)


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def in_a_fresh_process(statements: str, data: Any) -> Any:
    """What statements print as JSON of ``data``."""
    program = f"import json, sys\ndata = json.load(sys.stdin)\n{statements}\nprint(json.dumps(out))"
    done = subprocess.run([sys.executable, "-c", program], input=json.dumps(data), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_kind_of_constraint_is_tried_and_registered_under_its_own_name() -> None:
    defined = {cls.kind for cls in Constraint.__subclasses__() if cls.__module__.startswith("ocf.")}
    assert {c.kind for c in CONSTRAINTS} == set(KINDS) == defined


def test_constraints_targets_and_costs_are_read_in_a_fresh_process() -> None:
    data = {
        "constraints": [c.to_dict() for c in CONSTRAINTS],
        "targets": [t.to_dict() for t in TARGETS],
        "costs": [c.to_dict() for c in COSTS],
    }
    again = in_a_fresh_process(
        "from ocf.problem.constraints import from_dict\n"
        "from ocf.problem.targets import target_from_schema\n"
        "from ocf.support.documents import fit\n"
        "from ocf.support.schemas import TargetSchema\n"
        "from ocf.problem.costs import Cost\n"
        "out = {'constraints': [from_dict(c).to_dict() for c in data['constraints']],\n"
        "       'targets': [target_from_schema(fit(t, TargetSchema, 'it')).to_dict() for t in data['targets']],\n"
        "       'costs': [Cost(**c).to_dict() for c in data['costs']]}",
        data,
    )
    assert again == plain(data)
    assert tuple(from_dict(c) for c in again["constraints"]) == CONSTRAINTS
    assert tuple(target_from_schema(fit(t, TargetSchema, "it")) for t in again["targets"]) == TARGETS
    assert tuple(Cost(**c) for c in again["costs"]) == COSTS


def test_levels_of_any_type_are_saved_as_plain_values() -> None:
    day = pd.Timestamp("2020-01-02")
    linear = Linear({"job": {day: np.float32(2), np.int64(3): 1, np.str_("cook"): 2}}, "<=", 1)
    assert linear.to_dict()["terms"] == [["job", str(day), 2.0], ["job", 3, 1.0], ["job", "cook", 2.0]]
    implied = Implication({"job": [np.bool_(True), day, None]}, {"a": {"max": np.float64(2)}, "b": (None, 3)})
    data = json.loads(json.dumps(implied.to_dict(), allow_nan=False))
    assert data["when"] == [["job", [True, str(day), None]]]
    assert data["then"] == [["a", {"max": 2.0}], ["b", [None, 3]]]
    assert from_dict(data).to_dict() == data


@pytest.mark.parametrize("diversity", ["region", "features", "distance"])
def test_several_explanations_and_their_problems_are_read_in_a_fresh_process(diversity: str) -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)), columns=list("abc"))
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, (table.sum(axis=1) > 0).astype(int))
    found = Explainer(model, data=table).explain(
        table[model.predict(table) == 0].iloc[[0]], n_explanations=2, diversity=diversity
    )
    assert len(found) == 2
    problem = found[1].problem
    assert problem is not None
    again = in_a_fresh_process(
        "from ocf.problem.problem import Problem\n"
        "from ocf.explain.explanation import Explanations\n"
        "out = [Explanations.from_json(data[0]).to_json(), Problem.from_json(data[1]).to_json()]",
        [found.to_json(), problem.to_json()],
    )
    assert again == [found.to_json(), problem.to_json()]

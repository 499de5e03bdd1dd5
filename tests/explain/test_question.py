from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier
from typer.main import get_command

from ocf.cli import app
from ocf.compare.suite import settings_known
from ocf.errors import DataError, ProblemError, SolverError
from ocf.explain.explainer import Explainer
from ocf.explain.question import OF_PROBLEM, SETTINGS, Question
from ocf.problem.problem_file import read_problem_file


def test_explain_takes_the_settings_of_a_question_with_their_defaults() -> None:
    signature = inspect.signature(Explainer.explain).parameters
    taken = {name: p.default for name, p in signature.items() if name not in ("self", "X")}
    assert taken == {field.name: field.default for field in fields(Question)}


@pytest.mark.parametrize("ask", [Explainer.problem, Explainer.counterfactual_regions])
def test_a_problem_takes_settings_of_a_question_with_their_defaults(ask: Any) -> None:
    own = ("self", "row", "radius", "limit", "time_limit", "memory_limit")
    taken = {name: p.default for name, p in inspect.signature(ask).parameters.items() if name not in own}
    wanted = {f.name: f.default for f in fields(Question) if f.name in OF_PROBLEM}
    if ask is Explainer.counterfactual_regions:
        wanted.pop("missing")  # is no part of an interval
        wanted.pop("margin")  # regions end at thresholds
    assert taken == wanted


def test_suites_and_the_command_line_know_no_other_settings() -> None:
    bounds = {"at_least", "at_most"}  # the target of a regressor
    assert {"plausibility", "margin"} <= set(settings_known()) <= set(inspect.signature(Explainer.problem).parameters)
    flags = {p.name for p in get_command(app).commands["solve"].params}  # type: ignore[attr-defined]
    other = {"model", "data", "rows", "problem", "drop", "reference", "trust_pickle", "output", "help", "prepared"}
    worded = {"gap": "mip_gap", "option": "options", "no_reduce": "reduce"}
    of_explainer = {"groups": "groups", "label": "labels", "monotone": "monotone", "model_output": "output"}
    assert set(of_explainer.values()) <= set(inspect.signature(Explainer).parameters)
    assert {worded.get(flag, flag) for flag in flags - other - bounds - set(of_explainer)} <= set(SETTINGS)


FILE = """
[solve]
target = ["good", "fair"]
probability = 0.7
norm = { l0 = 0.1, l1 = 1 }
features_to_vary = ["age"]
margin = { age = 2.5 }
round_to = { age = "data", income = 2 }
formulation = "ocean"
solver = "highs"
time_limit = 90
memory_limit = "4 GB"
mip_gap = 0.1
threads = 1
seed = 3
n_explanations = 2
diversity = "distance"
min_distance = 0.2
diagnose = true
reduce = false
n_optimal = 2
box = true
break_ties = false
cross_check = true
cuts = "root"
n_jobs = -1
options = { presolve = "off" }

[plausibility]
trees = 10

[missing]
cost_of_supplying = 2
"""


def test_what_a_problem_file_says_is_a_question(tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(FILE)
    question = Question(**read_problem_file(path).solve)
    default = Question()
    told = {name for name in SETTINGS if getattr(question, name) != getattr(default, name)}
    of_python = {
        "weights",
        "permitted_range",
        "split_margin",
        "class_costs",
        "constraints",
        "log",
        "progress",
        "checkpoint",
        "imputations",
        "share",
    }
    assert set(SETTINGS) - told == of_python | {"threads"}


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"n_optimal": 0}, ProblemError),
        ({"n_optimal": 1.5}, ProblemError),
        ({"n_explanations": 0}, ProblemError),
        ({"diversity": "x"}, ProblemError),
        ({"weights": {"a": -1}}, ProblemError),
        ({"weights": {"a": (1, 2, 3)}}, ProblemError),
        ({"split_margin": -1.0}, ProblemError),
        ({"split_margin": float("nan")}, ProblemError),
        ({"features_to_vary": "age"}, ProblemError),
        ({"solver": "hihgs"}, SolverError),
        ({"options": 3}, ProblemError),
        ({"options": {"mip_rel_gp": 0.1}}, SolverError),  # no solver knows it
        ({"options": {"mip_rel_gap": 0.1}, "solver": "scip"}, SolverError),
        ({"options": {"mip_max_nodes": "many"}, "solver": "highs"}, SolverError),
        ({"options": {"node_limit": -1}, "solver": "box"}, SolverError),
        ({"weights": [1.0]}, ProblemError),
        ({"permitted_range": ["age"]}, ProblemError),
        ({"class_costs": [1.0]}, ProblemError),
        ({"features_to_vary": 3}, ProblemError),
    ],
)
def test_a_setting_that_means_nothing_is_refused_when_the_question_is_made(
    settings: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=next(iter(settings)).removesuffix("s")):
        Question(**settings)


@pytest.mark.parametrize(
    "names", [("c",), {"c"}, pd.Index(["c"]), np.array(["c"]), pd.Series(["c"]), map(str, ["c"]), (n for n in "c")]
)
def test_names_and_ranges_of_any_kind_serve_every_row(names: Any) -> None:
    """An iterator is spent once it is read, and a question is read again where a row is faulty."""
    table = pd.DataFrame({"b": [0.0, 1, 2, 3], "c": [0.0, 1, 2, 3]})
    explainer = Explainer(DecisionTreeClassifier(random_state=0).fit(table[["b", "c"]], table.c > 1), data=table)
    rows = pd.DataFrame({"b": [0, "abc"], "c": [0.0, 0.0]})
    sound, faulty = explainer.explain(rows, True, features_to_vary=names, permitted_range={"c": iter((0, 3))})
    assert (sound.status, faulty.status) == ("optimal", "error")
    assert sound.changes.feature.tolist() == ["c"]


def test_true_classes_in_the_place_of_features_are_named() -> None:
    table = pd.DataFrame({"b": [0.0, 1, 2, 3]})
    tree = DecisionTreeClassifier(random_state=0).fit(table, [0, 0, 1, 1])
    for labels in (pd.Series([0, 0, 1, 1]), np.array([0, 0, 1, 1])):
        with pytest.raises(DataError, match="labels="):
            Explainer(tree, table, labels)  # type: ignore[arg-type]

"""What the box search takes as a solver, as a user asks for it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import SolverError

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return Explainer(RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, Y), data=X)


@pytest.mark.parametrize("solver", ["box", "auto"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mip_rel_gab": 0.1}, "'mip_rel_gab', only node_limit and memory_limit: name the solver"),
        ({"node_limit": "many"}, "node_limit = 'many': give a number of at least 0"),
        ({"node_limit": -1}, "node_limit = -1"),
        ({"memory_limit": float("nan")}, "memory_limit = nan"),
    ],
)
def test_options_that_mean_nothing_are_refused_at_once(
    explainer: Explainer, solver: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(SolverError, match=re.escape(words)):
        explainer.explain(X.iloc[[1]], solver=solver, options=options)


def test_an_option_of_another_solver_is_refused_where_the_search_is_named(explainer: Explainer) -> None:
    with pytest.raises(SolverError, match="'mip_rel_gap', only node_limit and memory_limit: name the solver"):
        explainer.explain(X.iloc[[1]], solver="box", options={"mip_rel_gap": 0.1})


def test_an_option_of_another_solver_is_the_rows_own_error(explainer: Explainer) -> None:
    found = explainer.explain(X.iloc[[1]], options={"mip_rel_gap": 0.1})[0]
    assert found.status == "error"
    assert "name the solver whose option it is" in found.message


def test_its_own_options_end_the_search(explainer: Explainer) -> None:
    row = X.iloc[[1]]
    whole = explainer.explain(row, solver="box", options={"node_limit": 1e9, "memory_limit": 100})[0]
    assert (whole.status, whole.verified) == ("optimal", True)
    assert whole.nodes > 1
    part = explainer.explain(row, solver="box", options={"node_limit": 0})[0]
    assert part.status == "feasible"
    assert part.bound <= whole.cost

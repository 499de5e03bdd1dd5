"""Leaves that a model of all trees lets be chosen together."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ocf import Explainer
from ocf.formulations import hyperplanes
from ocf.solvers import get_solver
from ocf.solvers.result import SolverOptions, Status
from ocf.solvers.standard_form import compile_model


def test_no_two_leaves_lie_on_both_sides_of_one_threshold() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)).round(1), columns=["a", "b"])
    tree = DecisionTreeRegressor(max_depth=2, random_state=0)
    model = StackingRegressor([("a", tree), ("b", tree)], cv=2, passthrough=True).fit(table, table["a"] + table["b"])
    explainer = Explainer(model, data=table)
    problem = explainer.problem(table.iloc[[0]], (-1e3, None))
    part = explainer.query(problem).model.search.part
    built = hyperplanes.build(problem, problem.alternatives[0], part)
    first, second, line = problem.trees.leaf_offsets[:3].tolist()
    for own, other in itertools.product(range(first, second), range(second, line)):
        for leaf in range(line):
            built.leaves[leaf].setlb(float(leaf in (own, other)))
        form = compile_model(built.model, [*built.variables, *built.leaves])
        # a big-M alone is met by the number at the threshold itself, on either side
        found = get_solver("highs").solve(form, SolverOptions())
        assert (found.status is Status.OPTIMAL) == (own - first == other - second), (own, other, found.status)


def test_a_square_of_a_tiny_scale_that_is_no_number_is_refused_by_name() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=100), "b": rng.normal(size=100) * 1e-200})
    model = make_pipeline(PCA(2), DecisionTreeClassifier(max_depth=2, random_state=0)).fit(table, table.a > 0)
    row, explainer = table[~model.predict(table)].head(1), Explainer(model, table)
    assert explainer.explain(row, True, norm="l1")[0].status == "optimal"
    refused = explainer.explain(row, True, norm="l2")[0]
    assert refused.status == "error"
    assert "a change of 'b' by 1 costs more than 1e+300, squared" in refused.message

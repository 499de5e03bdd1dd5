"""Splits as rows over columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline

from ocf import Explainer
from ocf.formulations import get_value_formulation
from ocf.formulations.blocks.splits import big_m_rows, with_fitting_big_m
from ocf.oblique.tao import TAOClassifier
from ocf.problem.problem import Problem
from ocf.solve.narrowed import Narrowing
from ocf.solvers.standard_form import compile_model

MODELS = {
    "oblique": BaggingClassifier(TAOClassifier(2, init="random"), 3, random_state=0),
    "shared": make_pipeline(PCA(2), RandomForestClassifier(4, max_depth=3, random_state=0)),
}


@pytest.mark.parametrize("formulation", ["hyperplanes", "ocean_hyperplanes"])
@pytest.mark.parametrize("name", MODELS)
def test_fitting_big_m_are_those_of_a_model_built_for_the_box(name: str, formulation: str) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer, row = Explainer(MODELS[name].fit(X, y), data=X), X.iloc[[0]]
    problem, cost = explainer.problem(row, 1), explainer.explain(row, 1, solver="scip")[0].cost
    assert isinstance(problem, Problem)
    model, (requirements,) = explainer.query(problem).model, problem.alternatives
    narrowing = Narrowing.of(model, requirements)
    assert narrowing is not None
    build, forms = get_value_formulation(formulation), []
    boxes = [narrowing.whole(2 * cost), narrowing.whole(1.1 * cost)]
    columns = [narrowing.columns(box) for box in boxes if box is not None]
    for own in columns:
        built = build(model.problem, requirements, model.search.part, own)
        forms.append(compile_model(built.model, [*built.variables, *built.leaves], names=True))
    wide, narrow = forms
    fitted = with_fitting_big_m(wide, big_m_rows(wide), *columns)
    assert fitted.row_names is not None
    assert narrow.row_names is not None
    at = {name: k for k, name in enumerate(fitted.row_names)}
    assert len(big_m_rows(narrow))
    assert (abs(wide.A - fitted.A).max(), len(columns)) > (0.0, 1)
    for k in big_m_rows(narrow).tolist():
        own = at[narrow.row_names[k]]
        np.testing.assert_allclose(fitted.A[[own]].toarray(), narrow.A[[k]].toarray(), rtol=0, atol=1e-12)
        np.testing.assert_allclose(fitted.row_upper[own], narrow.row_upper[k], rtol=0, atol=1e-12)
    # a row that every point of the box meets is left out where a model is built for it
    for own in sorted(set(big_m_rows(fitted).tolist()) - {at[narrow.row_names[k]] for k in big_m_rows(narrow)}):
        row_of = fitted.A[[own], : columns[0].n].toarray()[0]
        most = np.maximum(row_of, 0) @ columns[1].upper + np.minimum(row_of, 0) @ columns[1].lower
        assert most <= fitted.row_upper[own] + 1e-12

"""Models of boxes, made from that of the whole one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline

from ocf import Explainer
from ocf.arrays import BoolArray, FloatArray
from ocf.formulations import get_value_formulation
from ocf.formulations.blocks.splits import big_m_rows
from ocf.oblique.tao import TAOClassifier
from ocf.problem.problem import Problem
from ocf.solve.fitted_rows import fitted
from ocf.solve.narrowed import Narrowing
from ocf.solvers.standard_form import StandardForm, compile_model

MODELS = {
    "oblique": BaggingClassifier(TAOClassifier(2, init="random"), 3, random_state=0),
    "shared": make_pipeline(PCA(2), RandomForestClassifier(4, max_depth=3, random_state=0)),
}


def row_of(form: StandardForm, k: int, big: bool, shift: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients and upper side of a row with the smallest big-M."""
    n, row = shift.shape[1], form.A[[k]].toarray()[0]
    moves, flows = row[:n], row[n:]
    less = (
        np.clip(np.maximum(moves, 0) @ shift[0] - np.minimum(moves, 0) @ shift[1], 0, abs(flows).max()) if big else 0.0
    )
    fitting = np.concatenate([moves, flows - less * np.sign(flows)])
    return fitting, form.row_upper[k] - less * (flows.max() > 0)


@pytest.mark.parametrize("formulation", ["hyperplanes", "ocean_hyperplanes"])
@pytest.mark.parametrize("name", MODELS)
def test_fitted_rows_are_those_of_a_model_built_for_the_box(name: str, formulation: str) -> None:
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
    n = columns[0].n
    shift = np.array([columns[0].upper - columns[1].upper, columns[1].lower - columns[0].lower])
    bounds = np.array([wide.lower, wide.upper])
    bounds[:, :n] = columns[1].lower, columns[1].upper
    bounds[1, n : n + 3] = 0.0  # leaves that are out of reach
    big_m = np.isin(np.arange(wide.n_rows), big_m_rows(wide))
    assert wide.row_names is not None
    assert narrow.row_names is not None
    at = {name: k for k, name in enumerate(wide.row_names)}
    for k in big_m_rows(narrow).tolist():
        fitting, upper = row_of(wide, at[narrow.row_names[k]], True, shift)
        np.testing.assert_allclose(fitting, narrow.A[[k]].toarray()[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(upper, narrow.row_upper[k], rtol=0, atol=1e-12)
    agree(wide, fitted(wide, big_m, shift, bounds).form, big_m, shift, bounds)


def agree(wide: StandardForm, small: StandardForm, big_m: BoolArray, shift: FloatArray, bounds: FloatArray) -> None:
    """A smaller model has the fitted rows, but for those that no point of the box breaks, in the columns that count."""
    used = np.flatnonzero((bounds != 0).any(axis=0))
    assert 0 < small.n_cols == len(used) < wide.n_cols
    assert 0 < small.n_rows < wide.n_rows
    np.testing.assert_array_equal([small.lower, small.upper, small.c], [*bounds[:, used], wide.c[used]])
    np.testing.assert_array_equal(small.integer, wide.integer[used])
    kept, changed = 0, 0
    for k in range(wide.n_rows):
        fitting, upper = row_of(wide, k, bool(big_m[k]), shift)
        changed += (fitting != wide.A[[k]].toarray()[0]).any()
        same = kept < small.n_rows and np.allclose(small.A[[kept]].toarray()[0], fitting[used], rtol=0, atol=1e-12)
        if same and np.isclose(small.row_upper[kept], upper) and small.row_lower[kept] == wide.row_lower[k]:
            kept += 1
            continue
        ends = fitting[used] * bounds[:, used]
        assert wide.row_lower[k] - 1e-12 <= ends.min(axis=0).sum()
        assert ends.max(axis=0).sum() <= upper + 1e-12
    assert kept == small.n_rows
    assert bool(changed) == big_m.any()  # cells of totals have none


def test_a_row_that_all_points_of_a_box_break_is_a_proof() -> None:
    form = StandardForm(
        c=np.ones(3), c0=0.0, A=sp.csr_array([[1.0, 1.0, 0.0], [0.1, 0.2, 0.7]]), row_lower=np.array([-np.inf, 0.5]),
        row_upper=np.array([1.5, 1.0]), lower=np.zeros(3), upper=np.ones(3), integer=np.ones(3, bool),
    )  # fmt: skip
    nothing = np.zeros(2, bool), np.zeros((2, 0))
    whole = fitted(form, *nothing, np.array([form.lower, form.upper]))
    assert not whole.form.infeasible
    assert whole.form.n_rows == 2
    assert fitted(form, *nothing, np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])).form.infeasible
    np.testing.assert_array_equal(whole.restore([1.0, 0.0, 1.0]), [1.0, 0.0, 1.0])
    # what rounding may decide is left to a solver: 0.1 + 0.2 + 0.7 of the second row
    assert fitted(form, *nothing, np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])).form.n_rows == 2
    assert fitted(form, *nothing, np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]])).form.n_rows == 0

"""Every kernel is asked for by the warm-up, under the types that the product calls it with."""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.explain.warm_up import kernels, warm_up


def test_no_kernel_is_left_and_no_answer_needs_another_form_of_one() -> None:
    assert warm_up() == []
    forms = {kernel.py_func.__name__: len(kernel.signatures) for kernel in kernels()}
    assert len(forms) == len(kernels()) > 20
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(30, max_depth=4, random_state=1).fit(x, y)
    rows = x[forest.predict(x) == 0].iloc[:2]
    for solver, norm in (("auto", "l1"), ("box", "l0"), ("highs", "l2")):
        Explainer(forest, data=x).explain(rows, target=1, solver=solver, norm=norm)
    assert forms == {kernel.py_func.__name__: len(kernel.signatures) for kernel in kernels()}

"""Across files: a stack that adds up columns which steps have made of numbers, against LPs between the steps' edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.lined import boxes, cuts, table
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from ocf import Explainer
from ocf.errors import UnsupportedModelError

FOREST = RandomForestClassifier(3, max_depth=2, random_state=0)
BINS: dict[str, Any] = {"n_bins": 4, "strategy": "uniform"}

#: Steps of the first number, each constant between its edges.
STEPPED = {
    "the number of a bin": KBinsDiscretizer(encode="ordinal", **BINS),
    "an indicator a bin": KBinsDiscretizer(encode="onehot-dense", **BINS),
    "scaled bins": make_pipeline(KBinsDiscretizer(encode="ordinal", **BINS), StandardScaler()),
    "bins of logarithms": make_pipeline(FunctionTransformer(np.log1p), KBinsDiscretizer(encode="ordinal", **BINS)),
    "two sides": Binarizer(threshold=3.0),
}


def edges(step: Any) -> np.ndarray:
    """Where a fitted step jumps, in numbers of the table."""
    if isinstance(step, Binarizer):
        return np.array([step.threshold])
    parts = [part for _, part in step.steps] if hasattr(step, "steps") else [step]
    (bins,) = (part for part in parts if isinstance(part, KBinsDiscretizer))
    inner = bins.bin_edges_[0][1:-1]
    return np.expm1(inner) if isinstance(parts[0], FunctionTransformer) else inner


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", STEPPED)
def test_a_column_of_few_values_adds_a_number_for_each(name: str, dtype: Any) -> None:
    x, y = table()
    x = x.assign(a=(x["a"] - x["a"].min() + 1).astype(dtype), b=x["b"].astype(dtype))
    steps = make_column_transformer((STEPPED[name], ["a"]), remainder="passthrough")
    model = make_pipeline(steps, StackingClassifier([("a", FOREST)], RidgeClassifier(), cv=2, passthrough=True))
    model.fit(x, y > 0)
    stack, scale = model[-1], x.max() - x.min()
    slopes = np.array([[0.0, *np.ravel(stack.final_estimator_.coef_)[-2:]]])
    width = steps.fit_transform(x).shape[1]
    between = [edges(model[0].named_transformers_[model[0].transformers_[0][0]]), cuts(stack.estimators_, width - 2)]
    explainer = Explainer(model, x)
    for k in range(3):
        sign = -1.0 if model.predict(x.iloc[[k]])[0] else 1.0
        made = boxes([], slopes, model.decision_function, x.astype({"a": float, "b": float}), between)
        found = [box.nearest(x.iloc[k], scale, sign * box.slopes, -sign * box.constants) for box in made]
        answer = explainer.explain(x.iloc[[k]], "opposite", progress=False)[0]
        # the bound is that of real numbers, and the table's are those of its dtype
        assert answer.verified
        assert answer.gap <= 8 * np.finfo(dtype).eps / answer.cost, answer.message
        assert answer.cost == pytest.approx(min(cost for _, cost in filter(None, found)), abs=1e-5)


def test_where_all_columns_are_bins_and_codes_nothing_is_left_of_the_lines() -> None:
    x, y = table()
    steps = make_column_transformer(
        (KBinsDiscretizer(encode="ordinal", **BINS), ["a"]),
        (OneHotEncoder(handle_unknown="ignore"), ["b"]),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["c"]),
        sparse_threshold=0,
    )
    x = x.assign(b=x["b"].round(0)).astype(float)
    stack = StackingClassifier([("a", FOREST)], LogisticRegression(C=10), cv=2, passthrough=True)
    model = make_pipeline(steps, stack).fit(x, np.digitize(y, [-0.5, 0.5]))
    explainer = Explainer(model, x, features={name: {"kind": "numeric"} for name in x})
    row, scale = x.iloc[0].to_numpy(), (x.max() - x.min()).to_numpy()
    inner = model[0].named_transformers_["kbinsdiscretizer"].bin_edges_[0][1:-1]
    # both sides of each edge; each value that is known, and the nearest one that is not
    ends = [np.r_[inner, np.nextafter(inner, -9)], *([*x[n].unique(), np.nextafter(x[n].iloc[0], 1)] for n in "bc")]
    points = np.stack(np.meshgrid(*(np.r_[v, own] for v, own in zip(row, ends, strict=True))), -1).reshape(-1, 3)
    shown = model.predict(pd.DataFrame(points, columns=x.columns))
    costs = (np.abs(points - row) / scale).sum(axis=1)
    for wanted in range(3):
        answer = explainer.explain(x.iloc[[0]], wanted, progress=False)[0]
        assert (answer.status, answer.verified) == ("optimal", True), answer.message
        assert answer.cost == pytest.approx(costs[shown == wanted].min(), abs=1e-9)


@pytest.mark.parametrize(
    "step", [FunctionTransformer(np.log1p), PowerTransformer(), QuantileTransformer(n_quantiles=10)]
)
def test_a_step_that_bends_a_number_is_refused_by_its_name(step: Any) -> None:
    x, y = table()
    x = x.assign(a=x["a"] - x["a"].min() + 1)
    steps = make_column_transformer((step, ["a"]), (StandardScaler(), ["b"]), remainder="passthrough")
    stack = StackingClassifier([("a", FOREST)], cv=2, passthrough=True)
    model = make_pipeline(steps, stack).fit(x, y > 0)
    with pytest.raises(UnsupportedModelError, match=f"{type(step).__name__.lower()}.*feature 'a'.*passthrough=False"):
        Explainer(model, x)

"""Models of several outputs: each is read and explained by itself, and judged by the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from ocf import Explainer
from ocf.errors import ModelError, UnsupportedModelError
from ocf.models.rehearsal import open_model
from ocf.models.user_model import as_user_model
from ocf.readers.conformance import check_conformance
from ocf.readers.outputs import ModelOutput, n_outputs, one_output

FOREST = RandomForestClassifier(4, max_depth=3, random_state=0)
BOOSTING = GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0)
COUNTS = HistGradientBoostingRegressor(max_iter=4, loss="poisson", min_samples_leaf=3, random_state=0)

#: Model, and whether it has classes.
MODELS = {
    "forest": (FOREST, True),
    "tree": (ExtraTreeClassifier(max_depth=3, random_state=0), True),
    "values": (DecisionTreeRegressor(max_depth=3, random_state=0), False),
    "scaled": (make_pipeline(StandardScaler(), FOREST), True),
    "one each": (MultiOutputClassifier(BOOSTING), True),
    "pipelines": (MultiOutputClassifier(make_pipeline(StandardScaler(), BOOSTING)), True),
    "in a pipeline": (make_pipeline(StandardScaler(), MultiOutputRegressor(COUNTS)), False),
}


def table() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows, and outputs with two and with three classes, or values."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(60, 3)).round(1), columns=["a", "b", "c"])
    scores = np.column_stack([x["a"] + x["b"], x["b"] * x["c"] - x["a"]]) + rng.normal(size=(60, 2)) / 3
    ranks = scores.argsort(axis=0).argsort(axis=0)
    labels = np.column_stack([np.array(["u", "v"])[ranks[:, 0] // 30], np.array(["k", "m", "n"])[ranks[:, 1] // 20]])
    return x, labels, np.exp(scores)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("output", [0, "1"])
def test_each_output_is_read_and_explained_by_itself(name: str, output: int | str) -> None:
    model, has_classes = MODELS[name]
    x, labels, values = table()
    model = clone(model).fit(x, labels if has_classes else values)
    number = int(output)
    user = as_user_model(model, output=output)
    columns = user.encode(x)
    check_conformance(user.trees, columns)
    found = user.trees.ensemble.decide(user.trees.ensemble.scores(columns))
    wanted = model.predict(x)[:, number]
    if not has_classes:
        np.testing.assert_allclose(found, wanted, rtol=1e-12) if name != "in a pipeline" else None
        target: Any = (float(np.quantile(wanted, 0.7)), None)
    else:
        np.testing.assert_array_equal(np.array(user.classes)[found], wanted)
        assert user.probabilities is not None
        np.testing.assert_array_equal(user.probabilities(x), model.predict_proba(x)[number])
        target = next(label for label in user.classes if label != wanted[0])
    answer = Explainer(model, data=x, output=output).explain(x.iloc[[0]], target=target)[0]
    assert answer.status == "optimal"
    (got,) = model.predict(answer.counterfactual)[:, number]
    assert got == target if has_classes else got >= target[0]


def test_what_is_no_output_is_refused() -> None:
    x, labels, _ = table()
    forest = FrozenEstimator(clone(FOREST).fit(x, labels))
    assert n_outputs(forest) == 2
    for output in (2, -1, "height", True, 1.0, float("nan"), [0]):
        with pytest.raises(ModelError, match="the outputs 0 to 1, without names"):
            as_user_model(forest, output=output)
    chain = ClassifierChain(DecisionTreeClassifier()).fit(x, labels == labels[0])
    for output in (0, 1, None):
        with pytest.raises(UnsupportedModelError, match="its models see each other's answers"):
            as_user_model(chain, output=output)
    with pytest.raises(ModelError, match="a single output: leave output out"):
        as_user_model(clone(FOREST).fit(x, labels[:, 0]), output=1)
    with pytest.raises(ModelError, match="not fitted"):
        as_user_model(MultiOutputClassifier(FOREST), output=0)
    with pytest.raises(UnsupportedModelError, match="LinearRegression none is read"):
        as_user_model(ModelOutput(LinearRegression().fit(x, x), 0))
    for several in (forest, MultiOutputClassifier(BOOSTING).fit(x, labels)):
        with pytest.raises(UnsupportedModelError, match=r"say which one.*output=0"):
            as_user_model(several)


def test_an_output_is_called_by_its_model() -> None:
    """And not by what stands for it inside."""
    x, labels, _ = table()
    explainer = Explainer(clone(FOREST).fit(x, labels), data=x, output=1)
    assert repr(explainer) == f"<Explainer of a RandomForestClassifier's output 1: {x.shape[1]} features>"
    alike = np.column_stack([labels[:, 0], np.zeros(len(x), int)])
    with pytest.raises(ModelError, match="RandomForestClassifier's output 1 was trained on the single class"):
        as_user_model(clone(FOREST).fit(x, alike), output=1)


def test_a_single_output_may_be_named() -> None:
    x, labels, _ = table()
    forest = clone(FOREST).fit(x, labels[:, 0])
    assert one_output(forest, 0) is forest


def test_a_file_with_several_outputs_is_rehearsed_with_each(tmp_path: Path) -> None:
    x, labels, _ = table()
    path = tmp_path / "forest.joblib"
    forest = clone(FOREST).fit(x, labels)
    joblib.dump(forest, path)
    open_model(path, trust_pickle=True)
    forest.classes_[1] = forest.classes_[1][:2]  # one label too few for the second
    joblib.dump(forest, path)
    with pytest.raises(ModelError):
        open_model(path, trust_pickle=True)

"""Answers at hand are those of the model, and rows that differ in a bit or a type are told apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, Plausibility
from ocf.models.foreseen import Foreseen, answers_row_by_row
from ocf.models.user_model import as_user_model
from ocf.oblique import ObliqueTree
from ocf.oblique.tree import dot


def test_answers_at_hand() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    model = as_user_model(RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, (x.a > 0).astype(int)))
    foreseen = Foreseen(model)
    tables = [x.iloc[[k]] for k in range(30)]
    foreseen.foresee(tables, probabilities=True)
    for table in (*tables, x.iloc[[40]], x.iloc[:7], x.iloc[[3]].set_axis(["z"])):
        np.testing.assert_array_equal(foreseen.model.decide(table), model.decide(table))
        assert model.probabilities is not None
        assert foreseen.model.probabilities is not None
        np.testing.assert_array_equal(foreseen.model.probabilities(table), model.probabilities(table))


def test_what_linear_algebra_adds_up_is_asked_row_by_row() -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    forest = RandomForestClassifier(3, max_depth=2, random_state=0)
    assert answers_row_by_row(as_user_model(forest.fit(x, x.a > 0)))
    for stack in (StackingClassifier([("a", forest)], cv=2), GridSearchCV(forest, {"max_depth": [2]}, cv=2)):
        model = make_pipeline(FunctionTransformer(), stack).fit(x, x.a > 0)
        assert answers_row_by_row(as_user_model(model)) == isinstance(stack, GridSearchCV)


def test_hyperplanes_tell_a_row_the_same_alone_and_among_others() -> None:
    """Rows that lie on a hyperplane to the last bit, which other orders of the sum put on either side."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(200, 97)))
    x.columns = [f"x{j}" for j in x]
    weights = rng.normal(size=97)
    sums = [float(dot(x.iloc[[k]].to_numpy(), weights)[0]) for k in range(len(x))]
    for k in range(0, len(x), 20):
        tree = ObliqueTree(
            [weights, 0 * weights, 0 * weights],
            [sums[k], 0, 0],
            [1, -1, -1],
            [2, -1, -1],
            np.eye(3, 2, -1),
            ["in", "out"],
        )
        model = as_user_model(tree)
        assert answers_row_by_row(model)
        assert model.decide(x).tolist() == [int(model.decide(x.iloc[[i]])[0]) for i in range(len(x))]
        assert model.decide(x)[k] == 0  # the tie goes left


def test_rows_that_only_look_alike() -> None:
    """Neighbours in floats, a missing value, and the same number in another dtype each get their own answer."""
    x = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]})
    tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(x, [0, 0, 1, 1])
    model = as_user_model(tree)
    edge = 1.5
    tables = [
        pd.DataFrame({"a": [edge]}),
        pd.DataFrame({"a": [np.nextafter(np.float32(edge), np.float32(2))]}),
        pd.DataFrame({"a": [2]}),
        pd.DataFrame({"a": [np.nan]}),
        pd.DataFrame({"a": [np.float32(edge)]}, dtype=np.float32),
        pd.DataFrame({"a": pd.array([2], dtype="Int64")}),
    ]
    foreseen = Foreseen(model)
    foreseen.foresee(tables)
    found = [int(foreseen.model.decide(table)[0]) for table in tables]
    assert found == [int(model.decide(table)[0]) for table in tables]
    assert found[:3] == [0, 1, 1]


def test_zeros_of_both_signs_and_cells_that_no_dict_takes() -> None:
    x = pd.DataFrame({"a": [-1.0, -0.5, 0.5, 1.0], "b": ["u", "v", "u", "v"]})
    tree = make_pipeline(
        make_column_transformer((FunctionTransformer(np.signbit), ["a"]), remainder="drop"),
        DecisionTreeClassifier(max_depth=1, random_state=0),
    ).fit(x, [1, 1, 0, 0])
    model = as_user_model(tree)
    tables = [x.assign(a=zero).iloc[[0]] for zero in (0.0, -0.0)]
    tables.append(x.assign(b=pd.array([pd.NA] * 4, dtype="string")).iloc[[0]])
    foreseen = Foreseen(model)
    foreseen.foresee(tables)
    assert [int(foreseen.model.decide(table)[0]) for table in tables] == [0, 1, 1]


def test_rows_with_gaps_are_foreseen_too() -> None:
    x = pd.DataFrame({"a": [0.0, 1.0, np.nan, 3.0]})
    model = as_user_model(HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=1).fit(x, [0, 0, 1, 1]))
    calls: list[int] = []

    def decide(table: pd.DataFrame) -> np.ndarray:
        calls.append(len(table))
        return model.decide(table)

    foreseen = Foreseen(replace(model, decide=decide))
    tables = [x.iloc[[k]] for k in range(4)]
    foreseen.foresee(tables)
    assert [foreseen.model.decide(table)[0] for table in tables] == list(model.decide(x))
    assert calls == [4]


@pytest.mark.parametrize("library", ["scikit-learn", "isotree"])
def test_depths_at_hand(library: str) -> None:
    """An isolation forest says of rows that were foreseen what it says of each by itself, and is not asked again."""
    if library == "isotree":
        forest = pytest.importorskip("isotree").IsolationForest(ntrees=10, ndim=1, missing_action="fail", nthreads=1)
    else:
        forest = IsolationForest(n_estimators=10, random_state=0)
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    model = make_pipeline(StandardScaler(), RandomForestClassifier(5, max_depth=3, random_state=0)).fit(x, x.a > 0)
    explainer = Explainer(model, data=x)
    wish = Plausibility(forest=forest)
    found = explainer.explain(x[~model.predict(x)].iloc[[0]], target=True, plausibility=wish)[0]
    assert found.problem is not None
    detector = explainer.prepared.detector(wish, found.problem.target)
    assert detector is not None
    asked: list[int] = []

    def measure(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        asked.append(len(rows))
        return detector.forest.measure(rows)

    watched = replace(detector, forest=replace(detector.forest, measure=measure))
    foreseen = Foreseen(explainer.prepared.model)
    tables = [x.iloc[[k]] for k in range(20)]
    foreseen.foresee(tables, detectors={watched: tables[5:]})
    beside = foreseen.beside(watched)
    assert asked == [15]
    for table in tables[5:]:
        np.testing.assert_array_equal(beside.measure(table), detector.measure(table))
        assert beside.recount(table.copy()) == detector.recount(table)
        assert beside.accepts(table) == detector.accepts(table)
    assert asked == [15]
    beside.measure(tables[0])
    beside.measure(x.iloc[5:9])
    assert asked == [15, 1, 4]
    assert foreseen.beside(detector) is detector
    others = [table.astype(np.float32) for table in tables[:3]]  # of another kind, of which the forest is not asked
    foreseen.foresee([*others, *tables], detectors={watched: tables[5:8]})
    assert asked == [15, 1, 4, 3]
    foreseen.foresee(tables)
    assert foreseen.beside(watched) is watched

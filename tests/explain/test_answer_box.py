"""The largest box around an answer against all boxes of values, by the user's own model."""

from __future__ import annotations

import json
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from ocf import Explainer, Explanations
from ocf.cells.ranges import ValueInterval
from ocf.errors import ProblemError
from ocf.solve import largest_box

VALUES: dict[str, list[Any]] = {"age": list(range(6)), "rooms": list(range(5)), "town": ["x", "y", "z"]}


def tabled(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.permutation(values * 30)[:90] for name, values in VALUES.items()})
    table = table.astype({"age": "int64", "rooms": "int64"})
    weights = rng.normal(size=4)
    score = table.age * weights[0] + table.rooms * weights[1] + (table.town == "x") * 3 * weights[2]
    score = score + table.age * table.rooms * 0.3 * weights[3] + rng.normal(size=len(table))
    return table, score.to_numpy()


def fitted(model: Any, table: pd.DataFrame, answers: np.ndarray) -> Any:
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough")
    return make_pipeline(encoder, model).fit(table, answers)


def widest(model: Any, point: pd.Series, target: Any, values_of: dict[str, list[Any]] = VALUES) -> float:
    """Width of the largest box around a point, by asking the model about every point there is."""
    grid = pd.DataFrame(list(product(*values_of.values())), columns=list(values_of))
    answers = model.predict(grid)
    of_value = isinstance(target, tuple)
    has = (target[0] <= answers) & (answers <= target[1]) if of_value else np.isin(answers, target)
    has = has.reshape([len(v) for v in values_of.values()])
    options = []
    for name, values in values_of.items():
        at, n = values.index(point[name]), len(values)
        if name == "town":
            sets = [s for k in range(1, n + 1) for s in combinations(range(n), k) if at in s]
        else:
            sets = [tuple(range(a, b + 1)) for a in range(at + 1) for b in range(at, n)]
        options.append([(s, (len(s) - 1) / (n - 1)) for s in sets])
    return max(sum(w for _, w in boxes) for boxes in product(*options) if has[np.ix_(*(s for s, _ in boxes))].all())


CASES = [
    (RandomForestClassifier(5, max_depth=3, random_state=0), 2, [1]),
    (RandomForestClassifier(4, max_depth=3, random_state=0), 3, [1, 2]),
    (GradientBoostingClassifier(n_estimators=4, max_depth=3, random_state=0), 2, [1]),
    (GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0), 3, [0]),
    (HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5, random_state=0), 2, [1]),
    (AdaBoostClassifier(n_estimators=4, random_state=0), 2, [0]),
    (RandomForestRegressor(4, max_depth=3, random_state=0), 0, None),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("model", "n_classes", "target"), CASES, ids=[type(c[0]).__name__ + str(c[1]) for c in CASES])
def test_no_box_is_wider(model: Any, n_classes: int, target: Any, seed: int) -> None:
    table, score = tabled(seed)
    answers = pd.qcut(score, n_classes, labels=False) if n_classes else score
    model = fitted(model, table, answers)
    wanted = target or tuple(np.quantile(score, [0.3, 0.8]))
    explainer = Explainer(model, table)
    lacking = model.predict(table)
    rows = table[~np.isin(lacking, wanted)] if target else table[lacking > wanted[1]]
    for e in explainer.explain(rows.iloc[:2], target=wanted if len(wanted) > 1 else wanted[0]):
        assert e.counterfactual is not None
        box = explainer.largest_box(e)
        assert box.proven
        assert box.width == pytest.approx(widest(model, e.counterfactual.iloc[0], wanted), abs=1e-9)
        assert box.bound == pytest.approx(box.width)
        inside = [v for v in product(*VALUES.values()) if box.contains(dict(zip(VALUES, v, strict=True)))]
        found = model.predict(pd.DataFrame(inside, columns=list(VALUES)))
        assert (np.isin(found, wanted) if target else (wanted[0] <= found) & (found <= wanted[1])).all()
        assert box.contains(e.counterfactual.iloc[0])


ENCODERS = {
    "one-hot": (OneHotEncoder(sparse_output=False), {}),
    "ordinal": (OrdinalEncoder(), {}),
    "target": (TargetEncoder(cv=2), {}),
    "codes": ("passthrough", {"town": {"kind": "categorical"}}),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", ENCODERS)
def test_categories_have_no_order_however_they_are_encoded(how: str, seed: int) -> None:
    """Thresholds on codes leave cells of several levels, of which a box may hold any beside each other."""
    encoder, described = ENCODERS[how]
    towns = [4, 7, 9, 12, 15] if how == "codes" else ["v", "w", "x", "y", "z"]
    values = {"town": towns, "age": list(range(5))}
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.permutation(v * 40)[:150] for name, v in values.items()})
    wished = dict(zip(towns, rng.permutation([0, 1, 1, 2, 4]), strict=True))
    answers = (table.age >= table.town.map(wished)).astype(int)
    model = make_pipeline(
        make_column_transformer((encoder, ["town"]), remainder="passthrough"),
        RandomForestClassifier(3, max_depth=3, random_state=seed),
    ).fit(table, answers)
    explainer = Explainer(model, table, described)
    for target in (0, 1):
        for e in explainer.explain(table[model.predict(table) != target].iloc[:3], target=target):
            assert e.counterfactual is not None
            box = explainer.largest_box(e)
            assert box.proven
            assert box.width == pytest.approx(widest(model, e.counterfactual.iloc[0], target, values), abs=1e-9)
            inside = [v for v in product(*values.values()) if box.contains(dict(zip(values, v, strict=True)))]
            assert (model.predict(pd.DataFrame(inside, columns=list(values))) == target).all()


@pytest.fixture(scope="module")
def asked() -> tuple[Explainer, pd.DataFrame]:
    table, score = tabled(7)
    model = fitted(
        RandomForestClassifier(6, max_depth=4, random_state=0), table, (score > np.median(score)).astype(int)
    )
    return Explainer(model, table), table[model.predict(table) == 0].iloc[:3]


def test_what_a_row_may_not_change_stays_in_the_box(asked: tuple[Explainer, pd.DataFrame]) -> None:
    explainer, rows = asked
    found = explainer.explain(rows, features_to_vary=["age", "rooms"], permitted_range={"age": (1, 4)}, box=True)
    boxes = [e.box for e in found if e.counterfactual is not None]
    assert boxes
    for e in found:
        if e.box is not None:
            ranges = e.box["ranges"]
            assert ranges["town"] == [e.original["town"].iloc[0]]
            low, high = ranges["age"].values()
            assert min(1, e.original["age"].iloc[0]) <= low <= high <= max(4, e.original["age"].iloc[0])


def test_the_box_goes_with_the_answer(asked: tuple[Explainer, pd.DataFrame]) -> None:
    explainer, rows = asked
    found = explainer.explain(rows, box=True)
    again = Explanations.from_json(found.to_json())
    assert again == found
    json.dumps(found.to_dict())
    for e, other in zip(found, again, strict=True):
        assert e.box is not None
        assert other.box == e.box == explainer.largest_box(e).to_dict()
        assert "the answer holds, all at once, for" in str(e)
        assert "no such box is wider" in e.to_html()
    assert explainer.explain(rows)[0].box is None


def test_without_time_the_box_is_one_that_holds(asked: tuple[Explainer, pd.DataFrame]) -> None:
    explainer, rows = asked
    e = explainer.explain(rows.iloc[[0]])[0]
    best, late = explainer.largest_box(e), explainer.largest_box(e, time_limit=1e-9)
    assert not late.proven
    assert late.width <= best.width + 1e-9 <= late.bound + 2e-9
    for name, held in late.ranges.items():
        assert isinstance(held, ValueInterval | tuple)
        assert e.counterfactual is not None
        assert e.counterfactual[name].iloc[0] in held


def test_values_of_real_numbers_end_where_the_model_does() -> None:
    """One threshold: the box ends at the library's own last number on either side."""
    x = pd.DataFrame({"a": np.arange(10.0), "b": np.arange(10.0) % 3})
    model = GradientBoostingClassifier(n_estimators=1, max_depth=1, random_state=0).fit(x, x.a > 4.2)
    explainer = Explainer(model, x)
    e = explainer.explain(x.iloc[[0]])[0]
    held = explainer.largest_box(e).ranges["a"]
    assert isinstance(held, ValueInterval)
    grid = np.arange(10.0)
    inside = (held.lowest <= grid) & (grid <= held.highest)
    assert (model.predict(pd.DataFrame({"a": grid, "b": 0.0}))[inside]).all()
    assert inside.tolist() == (grid > 4.2).tolist()


def test_a_master_without_its_refutations_is_caught(
    asked: tuple[Explainer, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own model is asked about the corners of what is claimed."""
    explainer, rows = asked
    e = explainer.explain(rows.iloc[[0]])[0]
    monkeypatch.setattr(largest_box.LargestBox, "refute", lambda self, taken: [])
    with pytest.raises(ProblemError, match="corners"):
        explainer.largest_box(e)


def test_where_there_is_no_box_the_reason_is_said(asked: tuple[Explainer, pd.DataFrame]) -> None:
    explainer, rows = asked
    none = explainer.explain(rows.iloc[[0]], features_to_vary=[])[0]
    assert none.status == "infeasible"
    with pytest.raises(ProblemError, match="no answer"):
        explainer.largest_box(none)
    loaded = Explanations.from_json(explainer.explain(rows.iloc[[0]]).to_json())[0]
    with pytest.raises(ProblemError, match="just given"):
        explainer.largest_box(loaded)


def test_linear_models_have_none() -> None:
    from ocf.explain.linear import LinearExplainer

    x = pd.DataFrame({"a": np.arange(10.0), "b": np.arange(10.0) % 3})
    explainer = LinearExplainer(LogisticRegression().fit(x, x.a > 4), x)
    with pytest.raises(ProblemError, match="take no box"):
        explainer.explain(x.iloc[[0]], box=True)

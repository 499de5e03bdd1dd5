"""The user's encoding, the lifted trees and the cells must name the same leaves, also where no probe looks."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf.errors import ConformanceError
from ocf.explain.explainer import Explainer
from ocf.models.user_model import as_user_model

from .brute_forced import holes, numbers


def test_a_hole_at_one_value_is_found() -> None:
    table, labels, step, _ = holes("imputer")
    labels = 1 - labels  # large values are wanted, and 0 is filled in by 50
    step.set_params(fill_value=50.0)
    forest = RandomForestClassifier(8, random_state=0, n_jobs=1)
    settings = {"a": {"bounds": (0.0, 100.0), "scale": 100.0}}
    explainer = Explainer(make_pipeline(step, StandardScaler(), forest).fit(table, labels), table, settings)
    found = explainer.explain(pd.DataFrame({"a": [3.0], "b": [0.5]}))[0]
    assert (found.status, found.counterfactual.a.iloc[0]) == ("optimal", 0.0)
    assert found.cost == pytest.approx(0.03)
    assert found.verified
    narrow = explainer.explain(pd.DataFrame({"a": [3.0], "b": [0.5]}), permitted_range={"a": (1.0, 10.0)})[0]
    assert narrow.status == "infeasible"


def test_a_row_in_a_hole_is_refused_by_the_three_way_check() -> None:
    table, labels, step, hole = holes("function")
    model = make_pipeline(step, RandomForestClassifier(8, random_state=0)).fit(table, labels)
    word = {"functiontransformer": "increasing"}  # which is not true
    explainer = Explainer(model, table, monotone=word)
    found = explainer.explain(pd.DataFrame({"a": [hole], "b": [0.5]}))[0]
    assert found.status == "error"
    assert f"feature 'a' = {hole}" in found.message
    table.loc[7, "a"] = hole
    with pytest.raises(ConformanceError, match=f"feature 'a' = {hole}"):
        Explainer(explainer.model.native, table, monotone=word)


def test_a_model_that_sees_something_else_than_its_encoder_shows_is_refused() -> None:
    table, labels = numbers()
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)).fit(table, labels)
    user = as_user_model(model)
    other = replace(user, decide=lambda rows: 1 - user.decide(rows))
    with pytest.raises(ConformanceError, match="does not see what ocf sees"):
        Explainer(other, table).explain(table.iloc[[0]])

"""Rows of the data with missing values: which the model answers, and what they are still good for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from ocf import Explainer
from ocf.errors import ProblemError
from ocf.features.inference import infer_space
from ocf.models.known_rows import MAX_CANDIDATES, read_known_rows


def gappy(share: float, n: int = 120, width: int = 4) -> tuple[pd.DataFrame, pd.Series]:
    """Numbers of which a share is missing, and classes by their sum."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(n, width)), columns=list("abcd")[:width])
    y = (table.sum(axis=1) > 0.5).astype(int)
    return table.mask(rng.random(table.shape) < share), y


def imputing(x: pd.DataFrame, y: pd.Series) -> Any:
    return make_pipeline(SimpleImputer(), RandomForestClassifier(6, max_depth=3, random_state=0)).fit(x, y)


def refusing_gaps(x: pd.DataFrame, y: pd.Series) -> Any:
    """A model without a rule for NaN."""
    return GradientBoostingClassifier(n_estimators=4, max_depth=3, random_state=0).fit(x, y)


def test_a_model_with_an_imputer_answers_all_rows() -> None:
    x, y = gappy(0.3)
    known = read_known_rows(infer_space(x), x, imputing(x, y).predict)
    assert len(known.coded) == known.n_rows == len(x)
    assert known.n_incomplete == x.isna().any(axis=1).sum() > 80
    assert known.n_refused == 0
    assert known.remark == ""


def test_rows_that_the_model_refuses_are_left_out_and_counted() -> None:
    x, y = gappy(0.2)
    full = x.fillna(0.0)
    model = refusing_gaps(full, y)
    known = read_known_rows(infer_space(x), x, model.predict)
    assert known.n_refused == known.n_incomplete == x.isna().any(axis=1).sum()
    assert np.array_equal(known.coded, x.dropna().to_numpy())
    assert f"{known.n_refused} of {len(x)}" in known.remark


def test_one_feature_with_a_rule_and_one_without() -> None:
    x, y = gappy(0.2)
    x = x.assign(c=x["c"].fillna(0), d=x["d"].fillna(0))
    model = imputing(x, y)

    def refusing(table: pd.DataFrame) -> Any:
        if table["b"].isna().any():
            raise ValueError("Input contains NaN")
        return model.predict(table)

    known = read_known_rows(infer_space(x), x, refusing)
    assert known.n_refused == x["b"].isna().sum()
    assert len(known.coded) == x["b"].notna().sum()


def test_the_base_is_complete_even_where_no_row_is() -> None:
    x, y = gappy(0.0)
    x = x.mask(np.eye(len(x), 4, dtype=bool)[np.arange(len(x)) % 4])
    known = read_known_rows(infer_space(x), x, imputing(x, y).predict)
    assert not len(known.complete)
    assert known.base(infer_space(x)).tolist() == [x[c].dropna().iloc[0] for c in x]


def test_no_more_rows_are_kept_than_are_of_use() -> None:
    x, _ = gappy(0.1, MAX_CANDIDATES + 500)
    known = read_known_rows(infer_space(x), x, len)
    assert len(known.coded) == MAX_CANDIDATES
    assert known.n_rows == len(x)


def test_data_without_a_complete_row_serves_in_full() -> None:
    x, y = gappy(0.0)
    x = x.mask((np.arange(len(x))[:, None] % 4) == np.arange(4))
    model = imputing(x, y)
    row = x[model.predict(x) == 0].iloc[[0]]
    explainer = Explainer(model, data=x)
    answer = explainer.explain(row, target=1)[0]
    assert answer.status == "optimal"
    assert answer.verified
    assert answer.method["data"] == {"rows": 120, "incomplete": 120, "answered": 120}
    assert "120 of 120 rows of the data have missing values" in str(answer)
    assert len(explainer.prepared.known_rows_of(answer.problem.target)) == (model.predict(x) == 1).sum()


def test_known_points_keep_what_a_row_of_the_data_lacks() -> None:
    x, y = gappy(0.3)
    model = imputing(x, y)
    explainer = Explainer(model, data=x)
    row = x.fillna(0.25).iloc[[0]]
    problem = explainer.problem(row, target=1)
    points = explainer.prepared.known_points(problem)
    assert not np.isnan(points).any()
    assert (points == 0.25).any()
    assert len(points) == (model.predict(x) == 1).sum()


def test_plausibility_and_mahalanobis_say_how_many_rows_they_are_of() -> None:
    x, y = gappy(0.1)
    model = HistGradientBoostingClassifier(max_iter=5, max_depth=3, random_state=0).fit(x, y)
    target = x[model.predict(x) == 1]
    row = x.dropna()[model.predict(x.dropna()) == 0].iloc[[0]]
    answer = Explainer(model, data=x).explain(row, 1, "mahalanobis", plausibility={"trees": 10})[0]
    assert answer.verified
    assert answer.plausibility["rows"] == len(target.dropna()) < len(target)
    assert answer.method["data"]["covariance"] == len(x.dropna())
    assert f"the covariance is that of {len(x.dropna())} rows" in str(answer)
    assert f"by {len(target.dropna())} rows of the data that have the target by the model's answers" in str(answer)


def test_mahalanobis_of_rows_with_gaps_is_that_of_the_complete_ones() -> None:
    x, y = gappy(0.2)
    complete = Explainer(imputing(x, y), data=x.dropna()).problem(x.dropna().iloc[0], 1, "mahalanobis").cost
    assert Explainer(imputing(x, y), data=x).problem(x.dropna().iloc[0], 1, "mahalanobis").cost == complete


def test_no_message_counts_incomplete_rows_as_rows_without_the_target() -> None:
    x, y = gappy(0.0)
    model = refusing_gaps(x, y)
    holed = x.mask((np.arange(len(x))[:, None] % 4) == np.arange(4))
    row = x[model.predict(x) == 0].iloc[[0]]
    explainer = Explainer(model, data=holed)
    answer = explainer.explain(row, 1, plausibility=True)[0]
    assert answer.status == "error"
    assert "120 of 120 rows have missing values for which the model has no rule" in answer.message
    assert not len(explainer.prepared.data.coded)
    with pytest.raises(ProblemError, match=r"needs data: 120 of 120 rows lack a number"):
        explainer.explain(row, 1, "mahalanobis")


def test_labels_say_the_target_of_rows_that_the_model_refuses() -> None:
    x, y = gappy(0.2)
    model = refusing_gaps(x.fillna(0.0), y)
    row = x.dropna()[model.predict(x.dropna()) == 0].iloc[[0]]
    explainer = Explainer(model, data=x, labels=y)
    answer = explainer.explain(row, 1, plausibility={"trees": 10})[0]
    served = x[y == 1].dropna()
    assert answer.verified
    assert (answer.plausibility["by"], answer.plausibility["rows"]) == ("label", len(served))
    few = y.where(x.isna().any(axis=1), 0)
    answer = Explainer(model, data=x, labels=few).explain(row, 1, plausibility={"trees": 10})[0]
    assert f"too few to fit an isolation forest; {few.sum()} more lack values that it would see:" in answer.message

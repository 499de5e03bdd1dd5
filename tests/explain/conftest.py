"""Small models, and answers of every kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ocf import Explainer
from ocf.explain.answers import failed
from ocf.explain.explanation import Explanation, Explanations
from ocf.features.inference import infer_space
from ocf.models.user_model import UserModel, as_user_model
from ocf.solvers.result import Status

from .made import solved
from .people import people


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, 200),
            "rate": rng.random(200).astype(np.float32),
            "owner": rng.random(200) < 0.5,
            "job_clerk": 0,
            "job_smith": 1,
        }
    ).assign(job_clerk=lambda t: t["age"] % 2, job_smith=lambda t: 1 - t["age"] % 2)


@pytest.fixture(scope="module")
def model(data: pd.DataFrame) -> UserModel:
    y = np.where(data["age"] + 30 * data["owner"] > 60, "granted", "refused")
    return as_user_model(RandomForestClassifier(5, max_depth=4, random_state=0).fit(data, y))


@pytest.fixture
def example(model: UserModel, data: pd.DataFrame) -> Explanation:
    """A refused young applicant who would be granted at 85."""
    space = infer_space(data)
    young = pd.DataFrame([data.iloc[0].to_dict()], index=pd.Index(["r<7>"], name="who")).astype(data.dtypes.to_dict())
    young = young.assign(age=20, owner=False)
    point = space.from_frame(young)[0]
    point[0] = 85
    return solved(model, space, young, point)


@pytest.fixture
def several(example: Explanation, model: UserModel, data: pd.DataFrame) -> Explanations:
    stuck = solved(model, infer_space(data), data.iloc[[3]], None, status=Status.INFEASIBLE)
    return Explanations([example, stuck, failed(4, data.iloc[[4]], "error", "the cause")])


@pytest.fixture(scope="module")
def credit():
    table, y = people()
    encode = ColumnTransformer(
        [("job", OneHotEncoder(), ["job"]), ("numbers", StandardScaler(), ["age", "income"])], remainder="passthrough"
    )
    model = make_pipeline(encode, RandomForestClassifier(15, max_depth=4, random_state=0)).fit(table, y)
    return table, model, Explainer(model, data=table, features={"age": {"actionability": "increasing"}})


@pytest.fixture(scope="module")
def prices():
    table, _ = people()
    value = table.income * 3 + table.age * 10 + np.where(table.job == "smith", 900, 0)
    encode = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    model = make_pipeline(encode, RandomForestRegressor(15, max_depth=4, random_state=0)).fit(table, value)
    return table, model, Explainer(model, data=table)


@pytest.fixture(scope="module")
def three():
    table, _ = people()
    numbers = table[["age", "income"]].assign(owner=table.owner.astype(int))
    y = np.array(["a", "b", "c"])[np.digitize(table.income + 300 * table.owner, [1700, 2300])]
    return numbers, GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0).fit(numbers, y)


@pytest.fixture(scope="module")
def houses() -> tuple[pd.DataFrame, Explainer]:
    rng = np.random.default_rng(0)
    n = 150
    table = pd.DataFrame(
        {
            "area": rng.uniform(50, 200, n).round(1),
            "rooms": rng.integers(1, 7, n),
            "kitchen": rng.choice(["poor", "fair", "good"], n),
            "site": rng.choice(["a", "b", "c"], n),
        }
    )
    price = table.area * 3 + table.rooms * 20 + table.kitchen.map({"poor": 0, "fair": 40, "good": 90})
    encode = ColumnTransformer([("words", OneHotEncoder(), ["kitchen", "site"])], remainder="passthrough")
    model = make_pipeline(encode, RandomForestRegressor(8, max_depth=4, random_state=0)).fit(table, price)
    features = {"kitchen": {"kind": "ordinal", "levels": ["poor", "fair", "good"]}, "site": {"actionability": "fixed"}}
    return table, Explainer(model, data=table, features=features)

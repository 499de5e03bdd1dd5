"""Borrowers, a model that grants them credit, and one who is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer

from .borrowers import SETTINGS, make_table


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    return make_table()


@pytest.fixture(scope="session")
def explainer(table: pd.DataFrame) -> Explainer:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder, StandardScaler

    good = table.income - table.debt + 3000 * (table.school == "college") + 2000 * table.job_smith > 4000
    encode = make_column_transformer(
        (OrdinalEncoder(categories=[["none", "primary", "college"]]), ["school"]),
        (StandardScaler(), ["income", "debt", "age"]),
        remainder="passthrough",
    )
    model = make_pipeline(encode, RandomForestClassifier(8, max_depth=4, random_state=0))
    return Explainer(model.fit(table, np.where(good, "yes", "no")), data=table, features=SETTINGS)


@pytest.fixture(scope="session")
def row(explainer: Explainer, table: pd.DataFrame) -> pd.DataFrame:
    return table[explainer.model.decide(table) == 0].iloc[[4]]

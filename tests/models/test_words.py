"""Words that a model was fitted on, by column of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from category_encoders import OneHotEncoder as OneHotByName
from category_encoders import OrdinalEncoder as OrdinalByName
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from xgboost import XGBClassifier

from ocf.models.user_model import as_user_model
from ocf.models.words import known_levels, words_of

FOREST = RandomForestClassifier(3, max_depth=3, random_state=0)


def behind(*steps: Any) -> Any:
    """A forest that sees the two columns of words behind steps, and the number scaled."""
    columns = make_column_transformer((StandardScaler(), ["a"]), (make_pipeline(*steps), ["k", "e"]))
    return make_pipeline(columns, FOREST)


MODELS = {
    "one hot": behind(OneHotEncoder(drop="first", handle_unknown="ignore")),
    "imputed first": behind(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()),
    "by the target": behind(TargetEncoder(cv=2)),
    "a union": behind(make_union(OrdinalEncoder(), OneHotEncoder())),
    "category_encoders": behind(OneHotByName()),
    "category_encoders on all": make_pipeline(OrdinalByName(), FOREST),
    "encoded behind imputers": make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["a"]), (SimpleImputer(strategy="constant", fill_value="x"), ["k", "e"])
        ),
        make_column_transformer((OrdinalEncoder(), [1, 2]), remainder="passthrough"),
        FOREST,
    ),
    "encoded beside what passes": make_pipeline(
        make_column_transformer((OrdinalEncoder(), ["e"]), remainder="passthrough"),
        make_column_transformer((OrdinalEncoder(), [2]), remainder="passthrough"),
        FOREST,
    ),
    "a vote": VotingClassifier([("one", behind(OneHotEncoder())), ("two", behind(OrdinalEncoder()))]),
    "lightgbm": LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1),
    "histgb": HistGradientBoostingClassifier(max_iter=2, categorical_features="from_dtype"),
    "xgboost": XGBClassifier(n_estimators=2, enable_categorical=True, n_jobs=1),
}


def table_of_words(dtype: str = "str") -> tuple[pd.DataFrame, np.ndarray]:
    """A number, two columns of words, and labels."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": rng.normal(size=90), "k": rng.choice(["NA", "x", "1"], 90), "e": rng.choice(["00501", "2"], 90)}
    )
    return table.astype({"k": dtype, "e": dtype}), (table.a + (table.k == "NA") > 0.4).to_numpy(int)


@pytest.mark.parametrize("name", MODELS)
def test_levels_of_encoders_and_libraries(name: str) -> None:
    table, labels = table_of_words("category" if name in ("lightgbm", "histgb", "xgboost") else "str")
    model = as_user_model(MODELS[name].fit(table, labels))
    known = words_of(known_levels(model, tuple(table.columns)))
    assert known == {"k": {"NA", "x", "1"}, "e": {"00501", "2"}}


def test_what_a_function_makes_of_words_is_no_level() -> None:
    table, labels = table_of_words()
    model = behind(FunctionTransformer(lambda words: words + "!"), OneHotEncoder())
    assert not known_levels(as_user_model(model.fit(table, labels)), tuple(table.columns))


def test_steps_that_were_never_fitted_know_no_words() -> None:
    table, labels = table_of_words()
    forest = RandomForestClassifier(3, random_state=0).fit(table[["a", "a", "a"]].to_numpy(), labels)
    for step in (OrdinalEncoder(), make_column_transformer((OrdinalEncoder(), ["k"])), OrdinalByName()):
        assert not known_levels(as_user_model(Pipeline([("step", step), ("forest", forest)])), tuple(table.columns))


def test_columns_of_words_hold_nothing_else() -> None:
    levels = {"words": ["NA", None, np.nan, pd.NA], "numbers": [1, 2], "mixed": ["A", 1], "truth": [True], "none": []}
    assert words_of(levels) == {"words": {"NA"}}

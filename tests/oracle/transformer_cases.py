"""A Pipeline for each transformer that is read, and for each that is refused; tests and documentation use them.

To add a transformer, add a line: conformance, the comparison with brute force and the page in the documentation follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier
from category_encoders import OneHotEncoder as CategoryOneHot
from category_encoders import OrdinalEncoder as CategoryOrdinal
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import Pipeline as ImbalancedPipeline
from lightgbm import LGBMClassifier
from oracle.tables import TableInstance, tens
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FactorAnalysis, FastICA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SequentialFeatureSelector, VarianceThreshold
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

N = 90
RNG = np.random.default_rng(0)

#: Two numbers, one of them a measurement with codes for missing values, and two categories.
TABLE = pd.DataFrame(
    {
        "size": np.round(RNG.normal(0, 2, N), 2),
        "dose": np.where(RNG.random(N) < 0.2, -9.0, np.round(RNG.exponential(3, N), 1) + 0.5),
        "colour": RNG.choice(["blue", "green", "grey", "red", "white"], N, p=[0.3, 0.3, 0.2, 0.15, 0.05]),
        "grade": RNG.choice([1, 2, 3, 5, 8], N),
    }
)
#: Both sides of 0 and codes count, so that columns that turn are split.
LABELS = (
    (TABLE["size"].abs() > 1.2).to_numpy(int)
    + (TABLE.dose > 3)
    + (TABLE.dose == -9)
    + TABLE.colour.isin(["green", "white"])
    + (TABLE.grade.isin([2, 8])).to_numpy(int)
    + RNG.normal(0, 0.4, N)
    > 1.5
).astype(int)
NUMBERS, WORDS = ["size", "dose"], ["colour"]
GRADES = {"grade": {"kind": "ordinal"}}


@dataclass(frozen=True)
class Case:
    """A transformer in front of a model, as step ``"step"`` of a Pipeline.

    Attributes
    ----------
    step : callable
        Makes it, unfitted.
    columns : tuple of str
        Of `TABLE`, which it takes.
    settings : dict
        What the user says of the features.
    monotone : dict
        What the user says of functions.
    refused : str
        Pattern of the refusal; empty where it is read.
    adds : bool
        Whether its columns add up those of several features.
    """

    step: Callable[[], Any]
    columns: tuple[str, ...] = tuple(NUMBERS)
    settings: dict[str, Any] = field(default_factory=dict)
    monotone: dict[str, str] = field(default_factory=dict)
    refused: str = ""
    adds: bool = False

    @property
    def table(self) -> pd.DataFrame:
        """The columns that it takes."""
        return TABLE[list(self.columns)]

    def fitted(self, model: Any) -> Pipeline:
        """It in front of a model, fitted."""
        step = self.step()
        if isinstance(step, ImbalancedPipeline):  # a Pipeline of scikit-learn's holds no samplers
            return ImbalancedPipeline([*step.steps, ("model", model)]).fit(self.table, LABELS)
        return Pipeline([("step", step), ("model", model)]).fit(self.table, LABELS)

    def asked(self, model: Any, place: int = 3) -> TableInstance:
        """The other class asked of a row."""
        fitted = self.fitted(model)
        row = self.table.iloc[[place]].reset_index(drop=True)
        question = {"target": int(1 - fitted.predict(row)[0]), "norm": "l1"}
        return TableInstance("case", place, fitted, True, self.table, row, row, self.settings, question, self.monotone)


def halves(values: Any) -> Any:
    return np.asarray(values) / 2.0


def columns(step: Any, *own: str) -> ColumnTransformer:
    """A transformer of some columns, with the others passed on."""
    return ColumnTransformer([("own", step, list(own))], remainder="passthrough")


MIXED_TABLE = ("size", "colour")
MIXED = "several features at once: give ocf the table after that step"

#: Name, as the documentation shows it -> case.
CASES: dict[str, Case] = {
    "StandardScaler": Case(StandardScaler),
    "MinMaxScaler": Case(MinMaxScaler),
    "MinMaxScaler(clip)": Case(lambda: MinMaxScaler(clip=True)),
    "MaxAbsScaler": Case(MaxAbsScaler),
    "RobustScaler": Case(RobustScaler),
    "PowerTransformer": Case(PowerTransformer),
    "QuantileTransformer": Case(lambda: QuantileTransformer(n_quantiles=20)),
    "QuantileTransformer(normal)": Case(lambda: QuantileTransformer(n_quantiles=20, output_distribution="normal")),
    "Binarizer": Case(lambda: Binarizer(threshold=1.0)),
    "KBinsDiscretizer(ordinal)": Case(lambda: KBinsDiscretizer(4, encode="ordinal", strategy="uniform")),
    "KBinsDiscretizer(onehot)": Case(lambda: KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform")),
    "PolynomialFeatures of one column": Case(lambda: PolynomialFeatures(3), ("size",)),
    "PolynomialFeatures of several columns": Case(
        lambda: PolynomialFeatures(2, interaction_only=True, include_bias=False), refused=f"multiplies .* {MIXED}"
    ),
    "SplineTransformer": Case(lambda: SplineTransformer(4, degree=2, extrapolation="linear")),
    "SplineTransformer(periodic)": Case(lambda: SplineTransformer(4, extrapolation="periodic")),
    "FunctionTransformer(known)": Case(lambda: FunctionTransformer(np.square)),
    "FunctionTransformer(declared monotone)": Case(lambda: FunctionTransformer(tens), monotone={"step": "increasing"}),
    "FunctionTransformer(other)": Case(lambda: FunctionTransformer(halves), refused="its function may do anything"),
    "OneHotEncoder": Case(lambda: columns(OneHotEncoder(), "colour"), MIXED_TABLE),
    "OneHotEncoder(drop)": Case(lambda: columns(OneHotEncoder(drop="first"), "colour"), MIXED_TABLE),
    "OneHotEncoder(infrequent)": Case(
        lambda: columns(OneHotEncoder(min_frequency=0.25, handle_unknown="infrequent_if_exist"), "colour"), MIXED_TABLE
    ),
    "OneHotEncoder(max_categories)": Case(lambda: columns(OneHotEncoder(max_categories=3), "colour"), MIXED_TABLE),
    "OneHotEncoder of numbers": Case(
        lambda: columns(OneHotEncoder(handle_unknown="ignore"), "grade"), ("size", "grade")
    ),
    "OneHotEncoder of numbers (error)": Case(
        lambda: columns(OneHotEncoder(), "grade"),
        ("size", "grade"),
        refused="'own' .* takes the numbers of feature 'grade' for categories, .* describe the feature as kind",
    ),
    "OneHotEncoder of levels": Case(lambda: columns(OneHotEncoder(), "grade"), ("size", "grade"), GRADES),
    "OrdinalEncoder": Case(lambda: columns(OrdinalEncoder(), "colour"), MIXED_TABLE),
    "TargetEncoder": Case(lambda: columns(TargetEncoder(random_state=0), "colour"), MIXED_TABLE),
    "TargetEncoder of numbers": Case(lambda: columns(TargetEncoder(random_state=0), "grade"), ("size", "grade")),
    "OrdinalEncoder (category_encoders)": Case(lambda: CategoryOrdinal(cols=["colour"]), MIXED_TABLE),
    "OneHotEncoder (category_encoders)": Case(lambda: CategoryOneHot(cols=["colour"], use_cat_names=True), MIXED_TABLE),
    "SimpleImputer": Case(lambda: SimpleImputer(strategy="median", add_indicator=True)),
    "SimpleImputer(missing_values=-9)": Case(
        lambda: SimpleImputer(missing_values=-9.0, strategy="mean", add_indicator=True)
    ),
    "KNNImputer": Case(KNNImputer),
    "IterativeImputer": Case(lambda: IterativeImputer(max_iter=3, random_state=0)),
    "MissingIndicator(missing_values=-9)": Case(
        lambda: FeatureUnion([("own", "passthrough"), ("gone", MissingIndicator(missing_values=-9.0, features="all"))])
    ),
    "SelectKBest": Case(lambda: SelectKBest(k=1)),
    "SelectFromModel": Case(lambda: SelectFromModel(DecisionTreeClassifier(random_state=0))),
    "VarianceThreshold": Case(VarianceThreshold),
    "RFE": Case(lambda: RFE(DecisionTreeClassifier(random_state=0), n_features_to_select=1)),
    "SequentialFeatureSelector": Case(
        lambda: SequentialFeatureSelector(DecisionTreeClassifier(max_depth=2, random_state=0), n_features_to_select=1)
    ),
    "ColumnTransformer": Case(
        lambda: ColumnTransformer(
            [
                ("size", make_pipeline(StandardScaler(), FunctionTransformer(np.abs)), ["size"]),
                ("dose", "passthrough", ["dose"]),
                ("colour", OneHotEncoder(sparse_output=False), ["colour"]),
            ],
            remainder="drop",
        ),
        ("size", "dose", "colour"),
    ),
    "Pipeline, nested": Case(
        lambda: make_pipeline(make_pipeline(SimpleImputer(missing_values=-9.0), StandardScaler()), MinMaxScaler())
    ),
    "Pipeline of imbalanced-learn": Case(
        lambda: ImbalancedPipeline([("sample", RandomOverSampler(random_state=0)), ("scale", StandardScaler())])
    ),
    "FeatureUnion": Case(
        lambda: FeatureUnion(
            [("own", "passthrough"), ("bins", KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"))],
            transformer_weights={"own": 0.5},
        )
    ),
    "set_output": Case(
        lambda: make_pipeline(StandardScaler(), FunctionTransformer(np.square)).set_output(transform="pandas")
    ),
    "Normalizer": Case(Normalizer, refused=f"divides each row .* {MIXED}"),
    "PCA": Case(lambda: PCA(2, random_state=0), adds=True),
    "PCA(whiten) between scalers": Case(
        lambda: make_pipeline(StandardScaler(), PCA(2, whiten=True, random_state=0), MinMaxScaler()), adds=True
    ),
    "PCA behind another monotone step": Case(
        lambda: make_pipeline(PowerTransformer(), PCA(2, random_state=0)),
        refused=f"'pca' adds up .* feature 'size' is no line .* {MIXED}",
    ),
    "PCA beside OneHotEncoder": Case(
        lambda: ColumnTransformer([("own", PCA(1, random_state=0), NUMBERS), ("colour", OneHotEncoder(), WORDS)]),
        ("size", "dose", "colour"),
        adds=True,
    ),
    "TruncatedSVD of OneHotEncoder": Case(
        lambda: make_pipeline(columns(OneHotEncoder(), "colour"), TruncatedSVD(3, random_state=0)),
        MIXED_TABLE,
        adds=True,
    ),
    "FactorAnalysis": Case(lambda: FactorAnalysis(1, random_state=0), adds=True),
    "FastICA": Case(lambda: FastICA(2, random_state=0), adds=True),
    "GaussianRandomProjection": Case(lambda: GaussianRandomProjection(2, random_state=0), adds=True),
    "LinearDiscriminantAnalysis": Case(LinearDiscriminantAnalysis, adds=True),
    "FeatureAgglomeration": Case(lambda: FeatureAgglomeration(1), adds=True),
}

#: Name -> maker of an unfitted model of a few small trees: one of each way to compare numbers, and to hold splits.
MODELS: dict[str, Callable[[], Any]] = {
    "RandomForest": lambda: RandomForestClassifier(3, max_depth=3, random_state=0),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(max_iter=3, max_depth=3, random_state=0),
    "XGBoost": lambda: XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1, random_state=0),
    "ExtraTrees": lambda: ExtraTreesClassifier(3, max_depth=3, random_state=0),
    "LightGBM": lambda: LGBMClassifier(
        n_estimators=3, max_depth=3, min_child_samples=5, learning_rate=0.5, n_jobs=1, random_state=0, verbose=-1
    ),
    "CatBoost": lambda: CatBoostClassifier(
        iterations=3, depth=3, learning_rate=0.5, thread_count=1, random_seed=0, verbose=0, allow_writing_files=False
    ),
}

"""A small model of each kind that is read, and of each that is refused; tests and documentation use them.

To add a kind, add a line: conformance, the comparison with brute force and the page in the documentation follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

N = 120

#: What a case asks for, in words; None where its model is refused.
CLASS, VALUE, RISK, SURVIVAL = "class", "value", "risk", "survival up to a time"


@cache
def table(words: bool) -> pd.DataFrame:
    """Two numbers and a category: a word, or its number."""
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"size": rng.normal(size=N).round(1), "dose": rng.integers(0, 6, N).astype(float)})
    colour = rng.integers(0, 4, N)
    return made.assign(colour=np.array(["blue", "grey", "red", "white"])[colour] if words else colour.astype(float))


@cache
def signal() -> np.ndarray:
    """What the labels and values of all cases are made of."""
    made = table(False)
    noise = np.random.default_rng(1).normal(0, 0.3, N)
    return np.asarray(made["size"] + (made["dose"] > 2) - 2 * made["colour"].isin([1, 3]) + noise)


@dataclass(frozen=True)
class ModelCase:
    """A kind of model.

    Attributes
    ----------
    fit : callable
        (table, signal) -> fitted model, as it is given to the Explainer.
    asks : str
        What is asked of it.
    words : bool
        Whether the table has words in it.
    refused : str
        Pattern of the refusal; empty where it is read.
    """

    fit: Callable[[pd.DataFrame, np.ndarray], Any]
    asks: str = CLASS
    words: bool = False
    refused: str = ""

    @property
    def table(self) -> pd.DataFrame:
        """Rows that it was fitted on."""
        return table(self.words)

    def fitted(self) -> Any:
        """The model."""
        return self.fit(self.table, signal())


def labels(y: np.ndarray, classes: int = 2) -> np.ndarray:
    """Classes of about one size."""
    return np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))


def classifier(make: Callable[[], Any], classes: int = 2, **more: Any) -> ModelCase:
    """A classifier, unfitted."""
    return ModelCase(lambda t, y: make().fit(t, labels(y, classes)), CLASS, **more)


def regressor(make: Callable[[], Any], **more: Any) -> ModelCase:
    """A regressor, unfitted."""
    return ModelCase(lambda t, y: make().fit(t, y), VALUE, **more)


def of_sklearn() -> dict[str, ModelCase]:
    from sklearn import ensemble, multiclass, tree
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
    from sklearn.preprocessing import QuantileTransformer

    small: dict[str, Any] = {"max_depth": 3, "random_state": 0}
    few: dict[str, Any] = {"n_estimators": 4} | small
    forest = ensemble.RandomForestClassifier(**few)
    beside = ensemble.StackingClassifier([("a", forest)], LogisticRegression(), cv=2, passthrough=True)
    return {
        "DecisionTreeClassifier": classifier(lambda: tree.DecisionTreeClassifier(**small), 3),
        "DecisionTreeRegressor": regressor(lambda: tree.DecisionTreeRegressor(**small)),
        "ExtraTreeClassifier": classifier(lambda: tree.ExtraTreeClassifier(**small)),
        "RandomForestClassifier": classifier(lambda: ensemble.RandomForestClassifier(**few), 3),
        "RandomForestRegressor": regressor(lambda: ensemble.RandomForestRegressor(**few)),
        "ExtraTreesClassifier": classifier(lambda: ensemble.ExtraTreesClassifier(**few)),
        "BaggingClassifier of trees": classifier(
            lambda: ensemble.BaggingClassifier(tree.DecisionTreeClassifier(**small), 4, random_state=0)
        ),
        "GradientBoostingClassifier": classifier(lambda: ensemble.GradientBoostingClassifier(**few), 3),
        "GradientBoostingRegressor": regressor(lambda: ensemble.GradientBoostingRegressor(**few)),
        "HistGradientBoostingClassifier": classifier(
            lambda: ensemble.HistGradientBoostingClassifier(max_iter=4, **small)
        ),
        "HistGradientBoostingRegressor": regressor(lambda: ensemble.HistGradientBoostingRegressor(max_iter=4, **small)),
        "AdaBoostClassifier": classifier(
            lambda: ensemble.AdaBoostClassifier(
                tree.DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=0
            )
        ),
        "CalibratedClassifierCV": classifier(lambda: CalibratedClassifierCV(forest, cv=2)),
        "CalibratedClassifierCV, several classes": classifier(lambda: CalibratedClassifierCV(forest, cv=2), 3),
        "GridSearchCV": classifier(lambda: GridSearchCV(forest, {"max_depth": [2, 3]}, cv=2)),
        "FixedThresholdClassifier": classifier(lambda: FixedThresholdClassifier(forest, threshold=0.3)),
        "VotingClassifier(soft)": classifier(
            lambda: ensemble.VotingClassifier(
                [("a", forest), ("b", tree.DecisionTreeClassifier(**small))], voting="soft"
            )
        ),
        "StackingClassifier": classifier(lambda: ensemble.StackingClassifier([("a", forest)], cv=2)),
        "StackingClassifier, several classes": classifier(
            lambda: ensemble.StackingClassifier([("a", forest)], cv=2), 3
        ),
        "StackingClassifier(final_estimator=a forest)": classifier(
            lambda: ensemble.StackingClassifier([("a", forest)], forest, cv=2), 3
        ),
        "StackingClassifier(final_estimator=a tree, passthrough=True)": classifier(
            lambda: ensemble.StackingClassifier(
                [("a", forest)], tree.DecisionTreeClassifier(**small), cv=2, passthrough=True
            )
        ),
        "StackingRegressor(final_estimator=a forest, passthrough=True)": regressor(
            lambda: ensemble.StackingRegressor(
                [("a", ensemble.RandomForestRegressor(**few))],
                ensemble.RandomForestRegressor(**few),
                cv=2,
                passthrough=True,
            )
        ),
        "StackingClassifier(passthrough=True) under a linear model": classifier(
            lambda: ensemble.StackingClassifier([("a", forest)], cv=2, passthrough=True)
        ),
        "StackingRegressor(passthrough=True) under a linear model": regressor(
            lambda: ensemble.StackingRegressor([("a", ensemble.RandomForestRegressor(**few))], cv=2, passthrough=True)
        ),
        "StackingClassifier(passthrough=True) under a linear model, several classes": classifier(
            lambda: ensemble.StackingClassifier([("a", forest)], cv=2, passthrough=True), 3
        ),
        "VotingClassifier(soft) of a StackingClassifier(passthrough=True) and a forest": classifier(
            lambda: ensemble.VotingClassifier([("s", beside), ("f", forest)], voting="soft")
        ),
        "VotingClassifier(soft) of two StackingClassifiers(passthrough=True)": classifier(
            lambda: ensemble.VotingClassifier([("s", beside), ("t", beside)], voting="soft"),
            refused="passthrough=False",
        ),
        "CalibratedClassifierCV(ensemble=False) of a StackingClassifier(passthrough=True)": classifier(
            lambda: CalibratedClassifierCV(beside, ensemble=False, cv=2)
        ),
        "TransformedTargetRegressor(func=numpy.log1p, inverse_func=numpy.expm1)": ModelCase(
            lambda t, y: TransformedTargetRegressor(
                ensemble.RandomForestRegressor(**few), func=np.log1p, inverse_func=np.expm1
            ).fit(t, np.exp(y)),
            VALUE,
        ),
        "TransformedTargetRegressor(transformer=QuantileTransformer())": regressor(
            lambda: TransformedTargetRegressor(
                ensemble.RandomForestRegressor(**few), transformer=QuantileTransformer(n_quantiles=9)
            ),
            refused="give ocf its regressor_",
        ),
        "OneVsRestClassifier": classifier(lambda: multiclass.OneVsRestClassifier(forest), 3),
        "AdaBoostRegressor": regressor(
            lambda: ensemble.AdaBoostRegressor(n_estimators=3, random_state=0), refused="weighted median"
        ),
        "IsolationForest": regressor(
            lambda: ensemble.IsolationForest(n_estimators=3, random_state=0), refused="pass it as the plausibility"
        ),
    }


def of_xgboost() -> dict[str, ModelCase]:
    import xgboost

    from ocf.readers.outputs import one_output

    few: dict[str, Any] = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1}
    return {
        "XGBClassifier": classifier(lambda: xgboost.XGBClassifier(**few)),
        "XGBClassifier, several classes": classifier(lambda: xgboost.XGBClassifier(**few), 3),
        "XGBRegressor": regressor(lambda: xgboost.XGBRegressor(**few)),
        "XGBClassifier(booster='dart')": classifier(
            lambda: xgboost.XGBClassifier(**few, booster="dart", rate_drop=0.5)
        ),
        "XGBRegressor of several targets, output=0": ModelCase(
            lambda t, y: one_output(xgboost.XGBRegressor(**few).fit(t, np.column_stack([y, -y])), 0), VALUE
        ),
        "XGBRegressor(multi_strategy='multi_output_tree'), output=0": ModelCase(
            lambda t, y: one_output(
                xgboost.XGBRegressor(**few, multi_strategy="multi_output_tree").fit(t, np.column_stack([y, -y])), 0
            ),
            VALUE,
        ),
        "XGBRegressor(booster='gblinear')": regressor(
            lambda: xgboost.XGBRegressor(booster="gblinear", n_estimators=2, n_jobs=1), refused="gblinear"
        ),
    }


def of_lightgbm() -> dict[str, ModelCase]:
    import lightgbm
    from sklearn.calibration import CalibratedClassifierCV

    few: dict[str, Any] = {"n_estimators": 4, "num_leaves": 6, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
    averaged = few | {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}

    def calibrated(**settings: Any) -> Any:
        return CalibratedClassifierCV(lightgbm.LGBMClassifier(**settings), cv=2)

    return {
        "LGBMClassifier": classifier(lambda: lightgbm.LGBMClassifier(**few)),
        "LGBMClassifier, several classes": classifier(lambda: lightgbm.LGBMClassifier(**few), 3),
        "LGBMClassifier(boosting_type='rf')": classifier(lambda: lightgbm.LGBMClassifier(**averaged)),
        "CalibratedClassifierCV of LGBMClassifier(boosting_type='rf')": classifier(lambda: calibrated(**averaged)),
        "CalibratedClassifierCV of LGBMClassifier(sigmoid=2.0)": classifier(lambda: calibrated(**few, sigmoid=2.0)),
        "CalibratedClassifierCV of LGBMClassifier, several classes": classifier(lambda: calibrated(**few), 3),
        "LGBMRegressor": regressor(lambda: lightgbm.LGBMRegressor(**few)),
        "LGBMRegressor(linear_tree=True)": regressor(
            lambda: lightgbm.LGBMRegressor(**few, linear_tree=True), refused="linear"
        ),
    }


def of_catboost() -> dict[str, ModelCase]:
    import catboost
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    few: dict[str, Any] = {
        "iterations": 4,
        "depth": 3,
        "verbose": 0,
        "thread_count": 1,
        "allow_writing_files": False,
    }
    named = few | {"cat_features": ["colour"]}
    joint = named | {"max_ctr_complexity": 3, "model_size_reg": 0, "depth": 4}
    return {
        "CatBoostClassifier": classifier(lambda: catboost.CatBoostClassifier(**few)),
        "CatBoostClassifier, several classes": classifier(lambda: catboost.CatBoostClassifier(**few), 3),
        "CatBoostClassifier(grow_policy='Lossguide')": classifier(
            lambda: catboost.CatBoostClassifier(**few, grow_policy="Lossguide")
        ),
        "CatBoostRegressor": regressor(lambda: catboost.CatBoostRegressor(**few)),
        "categories, one-hot": classifier(lambda: catboost.CatBoostClassifier(**named, one_hot_max_size=8), words=True),
        "categories, as statistics": classifier(
            lambda: catboost.CatBoostClassifier(**named, one_hot_max_size=2), words=True
        ),
        "categories, in combinations": classifier(lambda: catboost.CatBoostClassifier(**joint), words=True),
        "categories, behind a ColumnTransformer": classifier(
            lambda: make_pipeline(
                make_column_transformer((SimpleImputer(), ["size", "dose"]), remainder="passthrough"),
                catboost.CatBoostClassifier(**few, cat_features=[2]),
            ),
            words=True,
        ),
        "text features": ModelCase(
            lambda t, y: catboost.CatBoostClassifier(**few, text_features=["colour"]).fit(
                t.assign(colour="it is " + t["colour"]), labels(y)
            ),
            words=True,
            refused=r"has columns of text \(colour\)",
        ),
        "CatBoostRegressor(loss_function='Poisson')": ModelCase(
            lambda t, y: catboost.CatBoostRegressor(**few, loss_function="Poisson").fit(t, np.exp(y)),
            VALUE,
            refused="loss 'Poisson' is not read",
        ),
        "CatBoostRanker": ModelCase(
            lambda t, y: catboost.CatBoostRanker(**few).fit(t, labels(y, 3), group_id=np.arange(N) // 10),
            VALUE,
            refused="does not say what its scores mean",
        ),
    }


def of_interpret() -> dict[str, ModelCase]:
    from interpret import glassbox

    few: dict[str, Any] = {
        "max_rounds": 15,
        "outer_bags": 1,
        "interactions": 1,
        "n_jobs": 1,
        "max_bins": 8,
        "learning_rate": 0.2,
        "random_state": 0,
    }
    return {
        "ExplainableBoostingClassifier": classifier(lambda: glassbox.ExplainableBoostingClassifier(**few), words=True),
        "ExplainableBoostingClassifier, several classes": classifier(
            lambda: glassbox.ExplainableBoostingClassifier(**few | {"interactions": 0}), 3, words=True
        ),
        "ExplainableBoostingRegressor": regressor(lambda: glassbox.ExplainableBoostingRegressor(**few), words=True),
    }


def of_survival() -> dict[str, ModelCase]:
    from sksurv import ensemble, linear_model
    from sksurv import tree as trees
    from sksurv.util import Surv

    from ocf import survival_at

    small: dict[str, Any] = {"max_depth": 3, "random_state": 0}
    few: dict[str, Any] = {"n_estimators": 4} | small

    def times(y: np.ndarray) -> Any:
        return Surv.from_arrays(np.arange(N) % 3 > 0, np.ceil(20 * np.exp(y / 2)))

    def risk(make: Callable[[], Any], **more: Any) -> ModelCase:
        return ModelCase(lambda t, y: make().fit(t, times(y)), RISK, **more)

    def survival(make: Callable[[], Any], **more: Any) -> ModelCase:
        return ModelCase(lambda t, y: survival_at(make().fit(t, times(y)), 15), SURVIVAL, **more)

    return {
        "SurvivalTree": risk(lambda: trees.SurvivalTree(**small)),
        "RandomSurvivalForest": risk(lambda: ensemble.RandomSurvivalForest(**few)),
        "ExtraSurvivalTrees": risk(lambda: ensemble.ExtraSurvivalTrees(**few)),
        "GradientBoostingSurvivalAnalysis": risk(lambda: ensemble.GradientBoostingSurvivalAnalysis(**few)),
        "survival_at(RandomSurvivalForest, t)": survival(lambda: ensemble.RandomSurvivalForest(**few)),
        "survival_at(GradientBoostingSurvivalAnalysis, t)": survival(
            lambda: ensemble.GradientBoostingSurvivalAnalysis(**few)
        ),
        "survival_at(RandomSurvivalForest(low_memory=True), t)": survival(
            lambda: ensemble.RandomSurvivalForest(**few, low_memory=True), refused="low_memory=False"
        ),
        "CoxPHSurvivalAnalysis": risk(lambda: linear_model.CoxPHSurvivalAnalysis(), refused="no sum of survival trees"),
        "ComponentwiseGradientBoostingSurvivalAnalysis": risk(
            lambda: ensemble.ComponentwiseGradientBoostingSurvivalAnalysis(n_estimators=3),
            refused="no sum of survival trees",
        ),
    }


#: Library, as the documentation shows it -> its cases, made when they are asked for since they import it.
LIBRARIES: dict[str, Callable[[], dict[str, ModelCase]]] = {
    "scikit-learn": of_sklearn,
    "XGBoost": of_xgboost,
    "LightGBM": of_lightgbm,
    "CatBoost": of_catboost,
    "InterpretML": of_interpret,
    "scikit-survival": of_survival,
}

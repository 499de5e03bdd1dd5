"""Counterfactuals of linear models: support vector machines, logistic regression, and Pipelines that end in one.

A score is a sum over features: ``constant + slope * value`` of a numeric one, a number per level of a discrete one. The
parts are read through whatever encodes the user's table, as for trees, so users speak in their own units. There are
no cells: `ocf.formulations.linear` keeps the values continuous, and `ocf.solve.linear_search` puts the answer onto the
boundary as the user's own model computes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from ocf.errors import DataError
from ocf.explain.data_tables import space_of_table, table_of_model, warn_of_few
from ocf.explain.explainer import Explainer
from ocf.explain.explanation import Explanations
from ocf.explain.linear_asking import LinearAsking
from ocf.explain.model_explainer import ModelExplainer
from ocf.explain.question import Question
from ocf.features.frames import kind_of
from ocf.features.inference import as_table
from ocf.features.space import FeatureSpace
from ocf.models.additive import as_linear_model, is_linear
from ocf.models.giving import matching_columns
from ocf.problem.costs import Cost
from ocf.solve.prepared_linear import PreparedLinear


class LinearExplainer(ModelExplainer[LinearAsking]):
    """Finds optimal counterfactuals of a linear model; the counterpart of `ocf.Explainer`.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted scikit-learn linear classifier (LogisticRegression, LinearSVC, SVC with a linear kernel and two classes,
        SGDClassifier, RidgeClassifier, …). A Pipeline may encode and scale.
    data : DataFrame or array (n, n_columns)
        Ideally the training data: bounds, scales and categories come from it.
    features : mapping of feature name to settings, or FeatureSpace, optional
        See `ocf.features.inference.infer_space`.
    groups : bool
        Whether indicator columns of one category are recognised, as by `ocf.Explainer`.
    check : bool
        Whether to check the reading of the model against the library on the data.

    Attributes
    ----------
    space : FeatureSpace
    classes : tuple

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> explanation = LinearExplainer(model, data=X).explain(X.iloc[[0]], target=1)[0]
    >>> explanation.status, explanation.verified
    ('optimal', True)
    """

    def __init__(
        self,
        model: Any,
        data: pd.DataFrame | ArrayLike | None = None,
        features: Mapping[str, Mapping[str, Any]] | FeatureSpace | None = None,
        *,
        groups: bool = True,
        check: bool = True,
    ) -> None:
        read = as_linear_model(model)
        if data is None:
            raise DataError("give data (ideally the training data): the features' bounds and scales come from it")
        table, frames = as_table(data, read.columns), kind_of(data)
        if read.columns is None and not frames and (own := as_linear_model(model, frames)).takes(table.head(1)):
            read = own
        names = tuple(table.columns)
        table = table_of_model(read, table, matching_columns(read.columns, names) if read.columns else names)
        space = space_of_table(read, table, features, groups=groups)
        warn_of_few(space)
        super().__init__(LinearAsking(PreparedLinear(read, space, table, check=check), frames))

    @property
    def prepared(self) -> PreparedLinear:
        """What is prepared once for the model: its score as a sum over features, and its data."""
        return self.asking.prepared

    def explain(
        self,
        X: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any = "opposite",
        norm: str | Mapping[str, float] | Cost = "l1",
        *,
        margin: float = 0.0,
        **settings: Any,
    ) -> Explanations:
        """Find the cheapest change of each row that gives it the target.

        Parameters
        ----------
        X, target, norm
            As in `Explainer.explain`.
        margin : float
            By how much the decision value must win; 1 asks for the far side of a support vector machine's margin
            (fcca, (17)). Default: the decision itself.
        settings
            As in `Explainer.explain`. There is one formulation, ``"linear"``; the solvers are ``"highs"`` and
            ``"scip"``; `cross_check` asks both.

        Raises
        ------
        ProblemError
            A setting asks for what only trees have, among others.
        """
        return self.asking.ask(X, Question(target, norm, margin=margin, **settings))


def explainer_for(
    model: Any,
    data: pd.DataFrame | ArrayLike | None = None,
    features: Mapping[str, Mapping[str, Any]] | FeatureSpace | None = None,
    *,
    groups: bool = True,
    trust_pickle: bool = False,
) -> Explainer | LinearExplainer:
    """The explainer that fits a model: `LinearExplainer` for linear ones, `Explainer` for trees.

    Parameters
    ----------
    model : estimator, Pipeline, or path of a model file
    data, features
        As both explainers take them.
    groups : bool
        Whether indicator columns of one category are recognised.
    trust_pickle : bool
        Whether a path may be a pickle or joblib file.
    """
    if isinstance(model, str | Path):
        from ocf.readers.files import load_model

        model = load_model(Path(model), trust_pickle=trust_pickle)
    if is_linear(model):
        return LinearExplainer(model, data, features, groups=groups)
    return Explainer(model, data, features, groups=groups)

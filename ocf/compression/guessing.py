"""Thresholds guessed from a boosted ensemble of stumps (GTRE), the baseline of FCCA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier

from ocf.compression.thresholds import BitArray, Threshold, binarize, told_of
from ocf.compression.transformer import ThresholdTransformer, in_pandas
from ocf.errors import ProblemError
from ocf.features.inference import infer_space
from ocf.models.user_model import as_user_model
from ocf.trees.ensemble import SplitKind


def stumps(random_state: int | None = 0) -> GradientBoostingClassifier:
    """The paper's target model: gradient boosting of 100 trees of depth 1, learning rate 0.1, not fitted."""
    return GradientBoostingClassifier(n_estimators=100, learning_rate=0.1, max_depth=1, random_state=random_state)


class GuessingThresholds(ThresholdTransformer):
    """Binary features at the splits of a reference ensemble, fewer and fewer until it loses training accuracy (GTRE).

    The table is replaced by one binary feature per split of the fitted ensemble. Then the least important binary
    features go and the ensemble is fitted again on what is left, as long as its training accuracy does not fall.

    Parameters
    ----------
    estimator : classifier, optional
        Trees with ``feature_importances_``. Default: `stumps`.
    tolerance : float
        Training accuracy that may be lost.
    features : mapping, optional
        Settings of features, as `ocf.Explainer` takes them.

    Attributes
    ----------
    estimator_ : classifier
        The reference ensemble, fitted on the table itself.
    thresholds_, kept_, space_
        As in `CounterfactualDiscretizer`; multiplicities count splits. All are kept.
    n_fits_ : int
        How often an ensemble was fitted.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        tolerance: float = 0.0,
        features: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.estimator = estimator
        self.tolerance = tolerance
        self.features = features

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the reference ensemble and thin out its thresholds.

        Parameters
        ----------
        X : DataFrame or array (n, n_columns)
            The reference ensemble is fitted on it as it is: encode words before.
        y : (n,) array of class labels
        """
        X = in_pandas(X)
        table = self._table(X, reset=True)
        y = self._labels(X, y)
        if not 0 <= self.tolerance <= 1:
            raise ProblemError(f"tolerance must lie in [0, 1], not {self.tolerance!r}")
        reference = stumps() if self.estimator is None else self.estimator
        seen = X if isinstance(X, pd.DataFrame) else table.to_numpy()
        self.estimator_ = clone(reference).fit(seen, y)
        self.n_fits_ = 1
        self.space_ = infer_space(table, self.features)
        counts = self._splits(table)
        thresholds = sorted(counts)
        bits = binarize(thresholds, self.space_, table)
        kept = self._thinned(reference, bits, y)
        self._thresholds = told_of((thresholds[k] for k in kept), self.space_, table)
        self._multiplicities = np.array([counts[t] for t in self._thresholds], np.int64)
        return self

    def _splits(self, table: pd.DataFrame) -> Counter[Threshold]:
        ensemble = as_user_model(self.estimator_).trees.ensemble
        if np.any(ensemble.kind == SplitKind.SUBSET) or ensemble.n_features != table.shape[1]:
            raise ProblemError("the reference ensemble must split the numbers of the table itself: encode it before")
        axis = (ensemble.kind == SplitKind.AXIS) & np.isfinite(ensemble.threshold)
        columns = {name: i for i, feature in enumerate(self.space_.features) for name in feature.columns}
        splits = zip(ensemble.feature[axis].tolist(), ensemble.threshold[axis].tolist(), strict=True)
        return Counter(Threshold(columns[str(table.columns[j])], value) for j, value in splits)

    def _thinned(self, reference: Any, bits: BitArray, y: NDArray[Any]) -> list[int]:
        kept = list(range(bits.shape[1]))
        if not kept:
            return kept
        needed, tried = None, kept
        while tried:
            model = clone(reference).fit(bits[:, tried], y)
            self.n_fits_ += 1
            score = float(np.mean(model.predict(bits[:, tried]) == y))
            if needed is None:
                needed = score - self.tolerance
            if score < needed:
                break
            kept = tried
            importance = np.asarray(model.feature_importances_)
            unused = importance == 0
            drop = unused if unused.any() else np.arange(len(kept)) == importance.argmin()
            tried = [k for k, out in zip(kept, drop, strict=True) if not out]
        return kept

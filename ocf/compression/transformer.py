"""The transformer that thresholds make of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted, validate_data

from ocf.arrays import BoolArray
from ocf.compression.thresholds import BitArray, Threshold, binarize, check_threshold, metrics, names_of
from ocf.errors import DataError
from ocf.features.frames import kind_of, table_of
from ocf.features.space import FeatureSpace
from ocf.support.documents import fit, read_json, refused
from ocf.support.messages import listed, quoted
from ocf.support.schemas import ThresholdsSchema

#: Schema of the JSON of thresholds.
SCHEMA = "ocf.thresholds/1"


def in_pandas(X: Any) -> Any:
    """A table of polars or another library as one of pandas; what else there is stays as it is.

    Parameters
    ----------
    X : table or array (n, n_columns)
    """
    return table_of(X) if kind_of(X) else X


class ThresholdTransformer(TransformerMixin, BaseEstimator):
    """What the two transformers share: reading tables, the thresholds that are kept, and applying them."""

    _thresholds: tuple[Threshold, ...]
    _multiplicities: NDArray[np.int64]
    space_: FeatureSpace

    def _kept(self) -> BoolArray:
        return np.ones(len(self._thresholds), bool)

    @property
    def kept_(self) -> tuple[Threshold, ...]:
        """The thresholds in use, by feature and value."""
        check_is_fitted(self)
        return tuple(t for t, kept in zip(self._thresholds, self._kept(), strict=True) if kept)

    @property
    def thresholds_(self) -> pd.DataFrame:
        """Table of all thresholds: ``feature, threshold, name, multiplicity, kept``.

        `threshold` is in the user's units, for features without numbers the index of a level; `multiplicity` counts the
        counterfactuals (or splits) that gave it; `kept` tells whether it is in use.
        """
        check_is_fitted(self)
        return pd.DataFrame(
            {
                "feature": [self.space_.names[t.feature] for t in self._thresholds],
                "threshold": np.array([t.value for t in self._thresholds], np.float64),
                "name": names_of(self._thresholds, self.space_),
                "multiplicity": self._multiplicities,
                "kept": self._kept(),
            }
        )

    def transform(self, X: Any) -> BitArray:
        """Binary features of rows.

        Parameters
        ----------
        X : DataFrame or array (n, n_columns)

        Returns
        -------
        (n, n_kept) int8
            Or a DataFrame, as `set_output` says.
        """
        check_is_fitted(self)
        return binarize(self.kept_, self.space_, self._table(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the binary features, such as ``"age > 37.5"``; distinct."""
        check_is_fitted(self)
        return np.array(names_of(self.kept_, self.space_), dtype=object)

    def metrics(self, X: Any, y: Any) -> dict[str, float]:
        """Numbers of features and thresholds, compression and inconsistency rate on rows.

        See `ocf.compression.thresholds`.

        Parameters
        ----------
        X : DataFrame or array (n, n_columns)
        y : (n,) array of class labels
        """
        bits = binarize(self.kept_, self.space_, self._table(X, reset=False))
        return metrics(bits, y, [t.feature for t in self.kept_])

    def _table(self, X: Any, *, reset: bool) -> pd.DataFrame:
        """Rows as a table with columns named by text, those of an array as in the fit; numbers are finite."""
        X = in_pandas(X)
        if not isinstance(X, pd.DataFrame):
            array = validate_data(self, X, reset=reset, dtype="numeric", ensure_min_samples=1)
            columns = [f"x{j}" for j in range(array.shape[1])] if reset else list(self.space_.columns)
            return pd.DataFrame(array, columns=columns)
        if (twice := X.columns[X.columns.duplicated()]).size:
            raise DataError(f"two columns of the table are named {twice[0]!r}: give each a name of its own")
        validate_data(self, X, reset=reset, skip_check_array=True)
        table = X.rename(columns=str)
        if not reset:
            names = list(self.space_.columns)
            lacking = [name for name in names if name not in table.columns]
            if lacking and len(lacking) < len(names):  # scikit-learn says nothing of names that are numbers
                raise DataError(f"the table lacks columns of the fit: {listed(lacking)}")
            if lacking:  # one of the two has no names, of which scikit-learn has warned
                table = table.set_axis(names, axis=1)
        if table.empty:
            raise DataError(f"the table has {len(table)} rows and {table.shape[1]} columns: give at least one of each")
        numbers = table.select_dtypes("number").to_numpy(np.float64, na_value=np.nan)
        if not np.isfinite(numbers).all():
            column = table.select_dtypes("number").columns[int(np.argmin(np.isfinite(numbers).all(axis=0)))]
            raise DataError(f"Input X contains NaN or infinity, in column {column!r}: fill in or drop such rows")
        return table

    def _labels(self, X: Any, y: Any, fitting: bool = True) -> NDArray[Any]:
        """Labels of the rows, of two classes at least where a model is fitted to them."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels = np.asarray(column_or_1d(y, warn=True))
        assert_all_finite(labels, input_name="y", estimator_name=type(self).__name__)
        check_classification_targets(labels)
        check_consistent_length(X, labels)
        if fitting and len(set(labels.tolist())) == 1:
            raise DataError(f"y holds 1 class, {quoted(labels[0])}: give rows of at least two classes")
        return labels

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of schema ``ocf.thresholds/1``: the features, and the thresholds that are kept."""
        check_is_fitted(self)
        counts = self._multiplicities[self._kept()].tolist()
        named = zip(self.kept_, names_of(self.kept_, self.space_), counts, strict=True)
        return {
            "schema": SCHEMA,
            "method": type(self).__name__,
            "space": self.space_.to_dict(),
            "thresholds": [
                {
                    "feature": self.space_.names[t.feature],
                    "value": t.value,
                    "name": name,
                    "digits": t.digits,
                    "multiplicity": count,
                }
                for t, name, count in named
            ],
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """JSON of `to_dict`, written to `path` if one is given; `ThresholdBinarizer.from_json` applies it."""
        text = json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class ThresholdBinarizer(ThresholdTransformer):
    """Thresholds from a file, applied: needs neither the model nor the training data.

    Parameters
    ----------
    document : mapping, optional
        What `to_dict` of a fitted transformer gave.
    """

    def __init__(self, document: Mapping[str, Any] | None = None) -> None:
        self.document = document

    @classmethod
    def from_json(cls, source: str | Path) -> ThresholdBinarizer:
        """Binarizer from the file that `to_json` or ``ocf compress`` wrote, ready to transform."""
        data = read_json(source)
        with refused(str(source)):
            return cls(data).fit()

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Take over the document; `X` and `y` are not looked at.

        Parameters
        ----------
        X, y : object, optional
            Only there because transformers of scikit-learn take them.
        """
        data = self.document
        if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
            raise DataError(f"this holds no thresholds that ocf wrote (schema {SCHEMA!r})")
        found = fit(data, ThresholdsSchema, "the thresholds")
        with refused("the thresholds"):
            self.space_ = FeatureSpace.from_schema(found.space)
            rows = [
                (Threshold(self.space_.index(t.feature), t.value, t.digits), t.multiplicity) for t in found.thresholds
            ]
            for threshold, _ in rows:
                check_threshold(threshold, self.space_)
        self._thresholds = tuple(threshold for threshold, _ in rows)
        self._multiplicities = np.array([n for _, n in rows], np.int64)
        self.n_features_in_ = len(self.space_.columns)
        self.feature_names_in_ = np.array(self.space_.columns, dtype=object)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.requires_fit = True
        return tags

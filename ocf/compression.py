"""Supervised discretisation: the thresholds at which counterfactuals cross the decision boundary of a model.

`CounterfactualDiscretizer` is FCCA (Piccialli, Romero Morales and Salvatore, *Supervised feature compression based on
counterfactual analysis*, EJOR 2023), `GuessingThresholds` the baseline that the paper compares it with, GTRE (McTavish
et al., *Fast sparse decision tree optimization via reference ensembles*, AAAI 2022). Both are scikit-learn transformers
that replace each feature by one binary feature per threshold and drop the features without any.

Binary features of the table take part like numbers: their one threshold lies between the two values, so that the binary
feature comes out as it went in. So do ordered levels. A change of category counts for two binary features, "is the old
category" and "is the new one", as it would in one-hot encoded data.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted, validate_data

from ocf.checkpoint import Checkpoint
from ocf.documents import fit, read_json, refused
from ocf.ensemble import BoolArray, FloatArray, SplitKind
from ocf.errors import DataError, ModelError, ProblemError
from ocf.explainer import Explainer
from ocf.features import FeatureSpace
from ocf.inference import infer_space
from ocf.linear import LinearExplainer, explainer_for
from ocf.model import UserModel, as_user_model
from ocf.progress import Progress
from ocf.schemas import CompressedRowSchema, ThresholdsSchema
from ocf.thresholds import BitArray, Threshold, binarize, check_threshold, metrics, names_of, of_change

if TYPE_CHECKING:
    from ocf.explanation import Explanations

logger = logging.getLogger(__name__)

#: Schema of the JSON of thresholds.
SCHEMA = "ocf.thresholds/1"

#: Rows that are explained between two looks at what is finished, for each process.
CHUNK = 25


def stumps(random_state: int | None = 0) -> GradientBoostingClassifier:
    """The paper's target model: gradient boosting of 100 trees of depth 1, learning rate 0.1, not fitted."""
    return GradientBoostingClassifier(n_estimators=100, learning_rate=0.1, max_depth=1, random_state=random_state)


class _ThresholdTransformer(TransformerMixin, BaseEstimator):
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
        """Numbers of features and thresholds, compression and inconsistency rate on rows; see `ocf.thresholds`."""
        bits = binarize(self.kept_, self.space_, self._table(X, reset=False))
        return metrics(bits, y, [t.feature for t in self.kept_])

    def _table(self, X: Any, *, reset: bool) -> pd.DataFrame:
        """Rows as a table with columns named by text; numbers are finite."""
        if not isinstance(X, pd.DataFrame):
            array = validate_data(self, X, reset=reset, dtype="numeric", ensure_min_samples=1)
            return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
        validate_data(self, X, reset=reset, skip_check_array=True)
        table = X.rename(columns=str)
        if table.empty:
            raise DataError(f"the table has {len(table)} rows and {table.shape[1]} columns: give at least one of each")
        numbers = table.select_dtypes("number").to_numpy(np.float64, na_value=np.nan)
        if not np.isfinite(numbers).all():
            column = table.select_dtypes("number").columns[int(np.argmin(np.isfinite(numbers).all(axis=0)))]
            raise DataError(f"Input X contains NaN or infinity, in column {column!r}: fill in or drop such rows")
        return table

    def _labels(self, X: Any, y: Any) -> NDArray[Any]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels = np.asarray(column_or_1d(y, warn=True))
        assert_all_finite(labels, input_name="y", estimator_name=type(self).__name__)
        check_classification_targets(labels)
        check_consistent_length(X, labels)
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


class CounterfactualDiscretizer(_ThresholdTransformer):
    """Binary features at the thresholds that optimal counterfactuals of the training rows cross (fcca, algorithm 1).

    Rows that the target model classifies correctly, with a probability of their class in [p0, p1], get the cheapest
    counterfactual of another class. Each feature that it changes gives the threshold that the change crosses; how many
    counterfactuals give a threshold is its multiplicity.

    Parameters
    ----------
    estimator : classifier, optional
        The target model: trees that ocf reads, a linear model, or a Pipeline that ends in one. It is cloned and fitted;
        default: the paper's `stumps`.
    prefit : bool
        Whether `estimator` is fitted already and taken as it is.
    p0, p1 : float
        Bounds on the model's probability of the row's class. Models without probabilities are given the logistic of
        their decision value. With k classes the probability of the winner may be as low as 1/k.
    lambda0, lambda1, lambda2 : float
        Coefficients of the l0, l1 and squared l2 norm in the cost of a counterfactual, on features divided by their
        range.
    Q : float in [0, 1]
        Keep the thresholds whose multiplicity is at least the Q-quantile of all multiplicities. It may be set after
        fitting: ``set_params(Q=0.7)`` selects again at once.
    merge : float
        Thresholds of a feature that follow each other within this part of its range count as one, at the place of the
        most frequent. The paper does not have it; 0 merges nothing. Linear models give nearly every row a threshold of
        its own, so that Q needs it there.
    margin : float
        For linear models: by how much the decision value must win. The paper's (17) has the 1 of support vectors; by
        default it is the decision itself.
    features : mapping, optional
        Settings of features, as `ocf.Explainer` takes them.
    formulation, solver : str
        As in `Explainer.explain`.
    time_limit : float, optional
        Seconds for each counterfactual.
    n_jobs : int
        Rows solved at the same time; -1 for one per core.
    progress : bool, optional
        Progress bar on stderr; default on a terminal.
    checkpoint : path, optional
        File that keeps finished rows. A fit that was interrupted goes on from it, and loses none.

    Attributes
    ----------
    estimator_ : classifier
        The fitted target model.
    classes_ : (n_classes,) array
    space_ : FeatureSpace
    thresholds_ : DataFrame
        All thresholds with their multiplicities.
    kept_ : tuple of Threshold
    rows_ : (n_chosen,) int64
        Places of the training rows whose counterfactuals were sought.
    statuses_ : dict of str to int
        How these searches ended.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> discretizer = CounterfactualDiscretizer(p1=0.7).fit(X, y)
    >>> discretizer.transform(X).shape == (569, len(discretizer.thresholds_))
    True
    >>> discretizer.set_params(Q=0.9).transform(X).shape[1] < len(discretizer.thresholds_)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        prefit: bool = False,
        p0: float = 0.5,
        p1: float = 1.0,
        lambda0: float = 0.1,
        lambda1: float = 1.0,
        lambda2: float = 0.0,
        Q: float = 0.0,
        merge: float = 0.0,
        margin: float = 0.0,
        features: Mapping[str, Mapping[str, Any]] | None = None,
        formulation: str = "interval",
        solver: str = "highs",
        time_limit: float | None = None,
        n_jobs: int = 1,
        progress: bool | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        self.estimator = estimator
        self.prefit = prefit
        self.p0 = p0
        self.p1 = p1
        self.lambda0 = lambda0
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.Q = Q
        self.merge = merge
        self.margin = margin
        self.features = features
        self.formulation = formulation
        self.solver = solver
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.progress = progress
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the target model, explain the chosen rows and collect the thresholds.

        Parameters
        ----------
        X : DataFrame or array (n, n_columns)
        y : (n,) array of class labels

        Raises
        ------
        DataError, ModelError, ProblemError
            The data, the model or the settings do not fit.
        KeyboardInterrupt
            On Ctrl-C; with a `checkpoint` the finished rows are kept.
        """
        self._check_settings()
        table = self._table(X, reset=True)
        y = self._labels(X, y)
        seen = X if isinstance(X, pd.DataFrame) else table.to_numpy()
        self.estimator_ = self._fitted(seen, y)
        explainer = explainer_for(self.estimator_, data=table, features=self.features)
        if not explainer.classes:
            raise ModelError("the target model is a regressor; compression needs a classifier")
        self.classes_ = np.asarray(explainer.classes)
        self.space_ = explainer.space
        self.rows_ = self._chosen(explainer, seen, table, y)
        origins = self.space_.from_frame(table)
        records = self._counterfactuals(explainer, table.iloc[self.rows_], origins[self.rows_])
        self.statuses_ = dict(Counter(record["status"] for record in records))
        failed = self.statuses_.get("error", 0)
        if failed:
            logger.warning("%d of %d rows failed and gave no thresholds", failed, len(records))
        couples = [(origins[row], record["changes"]) for row, record in zip(self.rows_, records, strict=True)]
        counts = self._merged(self._count(explainer, couples))
        self._thresholds = tuple(sorted(counts))
        self._multiplicities = np.array([counts[t] for t in self._thresholds], np.int64)
        return self

    def _check_settings(self) -> None:
        for name in ("p0", "p1", "merge"):
            if not 0 <= getattr(self, name) <= 1:
                raise ProblemError(f"{name} must lie in [0, 1], not {getattr(self, name)!r}")
        if self.p0 > self.p1:
            raise ProblemError(f"p0 = {self.p0} is above p1 = {self.p1}: no row has such a probability")
        self._check_q()

    def _check_q(self) -> None:
        if not 0 <= self.Q <= 1:
            raise ProblemError(f"Q must lie in [0, 1], not {self.Q!r}")

    def _fitted(self, X: Any, y: NDArray[Any]) -> Any:
        if not self.prefit:
            return clone(stumps() if self.estimator is None else self.estimator).fit(X, y)
        if self.estimator is None:
            raise ProblemError("prefit=True needs the fitted model as estimator")
        return self.estimator

    # -- which rows, and their counterfactuals ---------------------------------------------------------------

    def _chosen(
        self, explainer: Explainer | LinearExplainer, X: Any, table: pd.DataFrame, y: NDArray[Any]
    ) -> NDArray[np.int64]:
        """The set M of algorithm 1: correctly classified, with a probability in [p0, p1]."""
        right = np.asarray(explainer.model.decide(table)) == _class_indices(explainer.classes, y)
        probability = _winning_probability(explainer.model, X, table)
        return np.flatnonzero(right & (self.p0 <= probability) & (probability <= self.p1)).astype(np.int64)

    def _counterfactuals(
        self, explainer: Explainer | LinearExplainer, rows: pd.DataFrame, origins: FloatArray
    ) -> list[dict[str, Any]]:
        """Record of each row: status, cost, and the coded values that its cheapest counterfactual changes."""
        current = np.asarray(explainer.model.decide(explainer.space.to_frame(origins))) if len(rows) else np.zeros(0)
        with (
            Checkpoint(self.checkpoint, self._fingerprint(origins), record_check(*origins.shape)) as kept,
            Progress(len(rows), self.progress) as bar,
        ):
            for record in kept.done.values():
                bar.advance(record["status"])
            open_rows = [k for k in range(len(rows)) if k not in kept.done]
            for chunk in _chunks(open_rows, CHUNK * max(self.n_jobs, 1)):
                for k, record in self._solved(explainer, rows, origins, current, chunk):
                    if record["status"] == "interrupted":
                        raise KeyboardInterrupt
                    kept.add(k, record)
                    bar.advance(record["status"])
            return [kept.done[k] for k in range(len(rows))]

    def _solved(
        self,
        explainer: Explainer | LinearExplainer,
        rows: pd.DataFrame,
        origins: FloatArray,
        current: NDArray[Any],
        chunk: Sequence[int],
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Record of each row of a chunk; interrupted rows come last, so that none before them is lost."""
        best: dict[int, dict[str, Any]] = {}
        own: dict[str, Any] = {"margin": self.margin} if isinstance(explainer, LinearExplainer) else {}
        for index, label in enumerate(explainer.classes):
            asked = [k for k in chunk if current[k] != index]
            if not asked:
                continue
            found = explainer.explain(
                rows.iloc[asked],
                target=label,
                norm={"l0": self.lambda0, "l1": self.lambda1, "l2": self.lambda2},
                formulation=self.formulation,
                solver=self.solver,
                time_limit=self.time_limit,
                n_jobs=self.n_jobs,
                progress=False,
                **own,
            )
            for k, record in zip(asked, _records(found, explainer.space, origins[asked]), strict=True):
                best[k] = _better(best.get(k), record)
        yield from sorted(best.items(), key=lambda item: item[1]["status"] == "interrupted")

    def _fingerprint(self, origins: FloatArray) -> str:
        """Of what the counterfactuals depend on; the solver is not among it."""
        if self.checkpoint is None:
            return ""
        import joblib

        asked = (
            self.lambda0,
            self.lambda1,
            self.lambda2,
            self.margin,
            json.dumps(self.space_.to_dict()),
            joblib.hash(origins),
        )
        return hashlib.sha256(repr((asked, joblib.hash(self.estimator_))).encode()).hexdigest()

    # -- thresholds ------------------------------------------------------------------------------------------

    def _count(
        self,
        explainer: Explainer | LinearExplainer,
        couples: Sequence[tuple[FloatArray, Sequence[tuple[int, float]]]],
    ) -> Counter[Threshold]:
        """Multiplicity of each threshold (fcca, (10))."""
        counts: Counter[Threshold] = Counter()
        cuts = _cuts(explainer, couples[0][0]) if couples else None
        for origin, changes in couples:
            for i, value in changes:
                own = None if cuts is None else cuts[i]
                counts.update(of_change(self.space_.features[i], i, own, float(origin[i]), value))
        return counts

    def _merged(self, counts: Counter[Threshold]) -> Counter[Threshold]:
        if not self.merge:
            return counts
        out: Counter[Threshold] = Counter()
        group: list[Threshold] = []
        for threshold in [*sorted(counts), None]:
            if group and (threshold is None or not self._near(group[-1], threshold)):
                out[max(group, key=lambda t: counts[t])] = sum(counts[t] for t in group)
                group = []
            if threshold is not None:
                group.append(threshold)
        return out

    def _near(self, first: Threshold, second: Threshold) -> bool:
        feature = self.space_.features[first.feature]
        same = first.feature == second.feature and not feature.discrete
        return same and second.value - first.value <= self.merge * (feature.upper - feature.lower)

    def _kept(self) -> BoolArray:
        """The thresholds of tau^Q (fcca, (11)); nested, since the quantile does not fall with Q."""
        self._check_q()
        if not len(self._multiplicities):
            return np.zeros(0, bool)
        return self._multiplicities >= np.quantile(self._multiplicities, self.Q)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of schema ``ocf.thresholds/1``: the settings, the features and the thresholds kept."""
        settings = {
            name: getattr(self, name) for name in ("p0", "p1", "lambda0", "lambda1", "lambda2", "Q", "merge", "margin")
        }
        return {**super().to_dict(), "settings": settings, "statuses": self.statuses_}


class GuessingThresholds(_ThresholdTransformer):
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
        """Fit the reference ensemble and thin out its thresholds."""
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
        self._thresholds = tuple(thresholds[k] for k in kept)
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


class ThresholdBinarizer(_ThresholdTransformer):
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
        """Take over the document; `X` and `y` are not looked at."""
        data = self.document
        if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
            raise DataError(f"this holds no thresholds that ocf wrote (schema {SCHEMA!r})")
        found = fit(data, ThresholdsSchema, "the thresholds")
        with refused("the thresholds"):
            self.space_ = FeatureSpace.from_dict(data["space"])
            rows = [(Threshold(self.space_.index(t.feature), t.value), t.multiplicity) for t in found.thresholds]
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


def record_check(n_rows: int, n_features: int) -> Callable[[int, dict[str, Any]], None]:
    """What refuses a record of a checkpoint that is none of a table's rows.

    Parameters
    ----------
    n_rows, n_features : int
        Of the table.
    """

    def check(row: int, record: dict[str, Any]) -> None:
        found = fit({"row": row, **record}, CompressedRowSchema, "the record")
        if row >= n_rows or any(i >= n_features for i, _ in found.changes):
            raise DataError("it names a row or feature that does not exist")

    return check


# -- helpers ---------------------------------------------------------------------------------------------------


def _class_indices(classes: Sequence[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    """Index of each label among the model's classes; -1 for those that the model does not know."""
    known = {label: index for index, label in enumerate(classes)}
    return np.array([known.get(label, -1) for label in y.tolist()], np.int64)


def _winning_probability(model: UserModel, X: Any, table: pd.DataFrame) -> FloatArray:
    """Probability of the predicted class of each row, (n,)."""
    native = model.native
    if hasattr(native, "predict_proba"):
        return np.asarray(native.predict_proba(X)).max(axis=1)
    if hasattr(native, "decision_function"):
        scores = np.asarray(native.decision_function(X), np.float64)
    elif model.trees.ensemble.decision.link in ("logistic", "softmax"):  # boosters without an estimator around them
        scores = model.trees.scores(model.encode(table))
        if model.trees.ensemble.decision.link == "softmax":
            return softmax(scores, axis=1).max(axis=1)
        scores = scores[:, 0]
    else:
        raise ProblemError(f"{type(native).__name__} tells no probabilities: leave p0 and p1 to a model that does")
    if scores.ndim == 1:
        return expit(np.abs(scores))
    odds = expit(scores)
    return odds.max(axis=1) / odds.sum(axis=1)


def _records(found: Explanations, space: FeatureSpace, origins: FloatArray) -> list[dict[str, Any]]:
    """Status, cost and changed coded values of each explanation."""
    points = np.full_like(origins, np.nan)
    at = [k for k, e in enumerate(found) if e.counterfactual is not None]
    if at:
        tables = [found[k].counterfactual for k in at]
        points[at] = space.from_frame(pd.concat([t for t in tables if t is not None]))
    out = []
    for e, origin, point in zip(found, origins, points, strict=True):
        changed = np.flatnonzero((point != origin) & ~np.isnan(point))
        changes = [(int(i), float(point[i])) for i in changed]
        out.append({"status": e.status, "cost": e.cost, "changes": changes})
    return out


def _better(first: dict[str, Any] | None, second: dict[str, Any]) -> dict[str, Any]:
    """The cheaper of the counterfactuals of two other classes; a row that was interrupted for one is not finished."""
    if first is None:
        return second
    for record in (first, second):
        if record["status"] == "interrupted":
            return record
    costs = [np.inf if record["cost"] is None else record["cost"] for record in (first, second)]
    return second if costs[1] < costs[0] else first


def _chunks(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _cuts(explainer: Explainer | LinearExplainer, origin: FloatArray) -> list[FloatArray] | None:
    """Splits of each feature in coded values, increasing; None for linear models."""
    if isinstance(explainer, LinearExplainer):
        return None
    row = explainer.space.to_frame(origin)
    ensemble = explainer.problem(row, target=explainer.classes[0]).ensemble
    axis = (ensemble.kind == SplitKind.AXIS) & np.isfinite(ensemble.threshold)
    return [np.unique(ensemble.threshold[axis & (ensemble.feature == i)]) for i in range(len(explainer.space))]

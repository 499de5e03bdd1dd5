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

import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone

from ocf.arrays import BoolArray, FloatArray
from ocf.compression.guessing import stumps
from ocf.compression.thresholds import Threshold, of_change, refuse_missing, told_of
from ocf.compression.transformer import ThresholdTransformer, in_pandas
from ocf.errors import DataError, ModelError, ProblemError
from ocf.explain.explainer import Explainer
from ocf.explain.linear import LinearExplainer, explainer_for
from ocf.features.space import FeatureSpace
from ocf.models.labels import as_classes, class_array
from ocf.models.plausibility import Plausibility
from ocf.models.user_model import UserModel
from ocf.problem.constraints import Constraint
from ocf.problem.costs import Cost
from ocf.support.amounts import is_whole, real_number
from ocf.support.checkpoint import Checkpoint
from ocf.support.documents import fit
from ocf.support.interruption import Interruption, raise_if_asked
from ocf.support.limits import memory_of, within
from ocf.support.progress import ProgressBar
from ocf.support.schemas import CompressedRowSchema
from ocf.trees.ensemble import Ensemble, SplitKind

if TYPE_CHECKING:
    from ocf.explain.explanation import Explanations


logger = logging.getLogger(__name__)

#: Rows that are explained between two looks at what is finished: as many as take about so many seconds, that little is
#: lost in a crash; for each process never more than the last number, and where there are several, that none waits long
#: for the others, never less than the other one.
SECONDS, FEWEST, CHUNK = 5.0, 4, 25

#: Statuses of rows that a checkpoint keeps: a longer time limit, or a cure of what failed, changes nothing of these.
CLOSED = ("optimal", "infeasible")


class CounterfactualDiscretizer(ThresholdTransformer):
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
        their decision value; those without that too, such as hard votes, need 0 and 1. With k classes the probability
        of the winner may be as low as 1/k.
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
    features : mapping or FeatureSpace, optional
        Settings of features, as `ocf.Explainer` takes them.
    constraints, plausibility, permitted_range
        What every counterfactual must respect, as in `Explainer.explain`. A row that has none then gives no threshold.
    formulation, solver : str
        As in `Explainer.explain`.
    time_limit : float or None
        Seconds for each counterfactual; None for no limit. Where it strikes, the cheapest that was found counts.
    memory_limit : float or str, optional
        As in `Explainer.explain`, for all that fitting does with the model.
    n_jobs : int
        Rows solved at the same time; -1 for one per core.
    progress : bool, optional
        Progress bar on stderr; default on a terminal, elsewhere a line every so often.
    checkpoint : path, optional
        File that keeps rows whose search came to its end, every few seconds. A fit that was interrupted goes on from
        it; rows whose time was over, or that failed, are done again.

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
        features: Mapping[str, Mapping[str, Any]] | FeatureSpace | None = None,
        constraints: Constraint | Sequence[Constraint | Mapping[str, Any]] | None = None,
        plausibility: Any = None,
        permitted_range: Mapping[str, Iterable[Any]] | None = None,
        formulation: str = "auto",
        solver: str = "auto",
        time_limit: float | None = 60.0,
        memory_limit: float | str | None = None,
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
        self.constraints = constraints
        self.plausibility = plausibility
        self.permitted_range = permitted_range
        self.formulation = formulation
        self.solver = solver
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.progress = progress
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the target model, explain the chosen rows and collect the thresholds.

        Parameters
        ----------
        X : DataFrame or array (n, n_columns)
        y : (n,) array of class labels
            Or their texts, as files have them.

        Raises
        ------
        DataError, ModelError, ProblemError
            The data, the model or the settings do not fit.
        KeyboardInterrupt
            On Ctrl-C; with a `checkpoint` the finished rows are kept.
        """
        self._check_settings()
        X = in_pandas(X)
        table = self._table(X, reset=True)
        y = self._labels(X, y, fitting=not self.prefit)
        seen = X if isinstance(X, pd.DataFrame) else table.to_numpy()
        self.estimator_ = self._fitted(seen, y)
        with within(memory=memory_of(self.memory_limit)):
            explainer = explainer_for(self.estimator_, data=table, features=self.features, groups=False)
        if not explainer.classes:
            raise ModelError("the target model is a regressor; compression needs a classifier")
        self.classes_ = class_array(explainer.classes)
        self.space_ = explainer.space
        self.rows_ = self._chosen(explainer, seen, table, y)
        origins = self.space_.from_frame(table)
        cuts = _cuts(explainer, origins)
        self._refuse_missing(origins, cuts)
        records = self._counterfactuals(explainer, table.iloc[self.rows_], origins[self.rows_])
        self.statuses_ = dict(Counter(record["status"] for record in records))
        failed = self.statuses_.get("error", 0)
        if failed:
            logger.warning("%d of %d rows failed and gave no thresholds", failed, len(records))
        couples = [(origins[row], record["changes"]) for row, record in zip(self.rows_, records, strict=True)]
        counts = _merged(_count(self.space_, cuts, couples), self.space_, self.merge)
        self._thresholds = told_of(sorted(counts), self.space_, table)
        self._multiplicities = np.array([counts[t] for t in self._thresholds], np.int64)
        return self

    def _check_settings(self) -> None:
        for name in ("p0", "p1", "merge"):
            if not 0 <= real_number(getattr(self, name)) <= 1:
                raise ProblemError(f"{name} must lie in [0, 1], not {getattr(self, name)!r}")
        memory_of(self.memory_limit)  # refuses what is no amount
        if not is_whole(self.n_jobs, -1) or self.n_jobs == 0:
            raise ProblemError(f"n_jobs is a number of processes, or -1 for one per core, not {self.n_jobs!r}")
        if self.p0 > self.p1:
            raise ProblemError(f"p0 = {self.p0} is above p1 = {self.p1}: no row has such a probability")
        self._check_q()

    def _check_q(self) -> None:
        if not 0 <= real_number(self.Q) <= 1:
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
        decided = np.asarray(explainer.model.decide(table)).tolist()
        labels = as_classes(y.tolist(), explainer.classes, "y")
        right = np.array([explainer.classes[k] == label for k, label in zip(decided, labels, strict=True)])
        if self.p0 > 0 or self.p1 < 1:  # all probabilities lie in [0, 1], also those that a model does not tell
            probability = _probability_of(explainer.model, X, table, np.asarray(decided))
            right &= (self.p0 <= probability) & (probability <= self.p1)
        return np.flatnonzero(right).astype(np.int64)

    def _refuse_missing(self, origins: FloatArray, cuts: Sequence[FloatArray | None]) -> None:
        """Refuse missing values that are on no side of a threshold; a missing category is none of the levels."""
        for i, feature in enumerate(self.space_.features):
            own = cuts[i]
            if feature.kind != "categorical" and (own is None or len(own)):
                refuse_missing(feature, origins[:, i])

    def _counterfactuals(
        self, explainer: Explainer | LinearExplainer, rows: pd.DataFrame, origins: FloatArray
    ) -> list[dict[str, Any]]:
        """Record of each row: status, cost, and the coded values that its cheapest counterfactual changes."""
        current = np.asarray(explainer.model.decide(explainer.space.to_frame(origins))) if len(rows) else np.zeros(0)
        question = self._question(explainer)
        with (
            Checkpoint(
                self.checkpoint if len(rows) else None,
                _fingerprint(self, explainer, origins),
                record_check(*origins.shape),
            ) as kept,
            ProgressBar(len(rows), self.progress) as bar,
            Interruption(),
        ):
            done = dict(kept.done)
            for record in done.values():
                bar.advance(record["status"])
            open_rows = [k for k in range(len(rows)) if k not in done]
            for chunk in _chunks(open_rows, joblib.effective_n_jobs(self.n_jobs)):
                for k, record in _solved(explainer, question, rows, origins, current, chunk):
                    if record["status"] in CLOSED:
                        kept.add(k, record)
                    done[k] = record
                    bar.advance(record["status"])
            return [done[k] for k in range(len(rows))]

    def _question(self, explainer: Explainer | LinearExplainer) -> dict[str, Any]:
        """Settings of every search; one wish for plausibility, so that its forest is fitted once."""
        own: dict[str, Any] = {"margin": self.margin}
        if not isinstance(explainer, LinearExplainer):
            own = {"break_ties": False, "memory_limit": self.memory_limit}  # thresholds are counted of any optimum
        return {
            "norm": {"l0": self.lambda0, "l1": self.lambda1, "l2": self.lambda2},
            "constraints": self.constraints,
            "plausibility": Plausibility.parse(self.plausibility),
            "permitted_range": self.permitted_range,
            "formulation": self.formulation,
            "solver": self.solver,
            "time_limit": self.time_limit,
            "n_jobs": self.n_jobs,
            "progress": False,
            **own,
        }

    # -- thresholds ------------------------------------------------------------------------------------------

    def _kept(self) -> BoolArray:
        """The thresholds of tau^Q (fcca, (11)); nested, since the quantile does not fall with Q."""
        self._check_q()
        if not len(self._multiplicities):
            return np.zeros(0, bool)
        counts = np.sort(self._multiplicities).tolist()
        place = Fraction(str(self.Q)) * (len(counts) - 1)  # exact: of 381, 0.55 is the 210th, and not just above it
        lower, upper = counts[math.floor(place)], counts[math.ceil(place)]
        return self._multiplicities >= math.ceil(lower + (place - math.floor(place)) * (upper - lower))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict of schema ``ocf.thresholds/1``: the settings, the features and the thresholds kept."""
        settings = {
            name: getattr(self, name) for name in ("p0", "p1", "lambda0", "lambda1", "lambda2", "Q", "merge", "margin")
        }
        return {**super().to_dict(), "settings": settings, "statuses": self.statuses_}


def _fingerprint(
    d: CounterfactualDiscretizer, explainer: Explainer | LinearExplainer, origins: FloatArray
) -> dict[str, str]:
    """Digests of what the counterfactuals depend on, by what it is; neither the solver nor its time is among it.

    Parameters
    ----------
    d : CounterfactualDiscretizer
    explainer : Explainer or LinearExplainer
    origins : (n, n_features) float64
        Codes of the rows.
    """
    if d.checkpoint is None or not len(origins):
        return {}
    model, steps = _read(explainer, origins)
    wish = Plausibility.parse(d.plausibility)
    held: dict[str, Any] = {
        "the model": model,
        "the rows": origins,
        **{name: getattr(d, name) for name in ("lambda0", "lambda1", "lambda2", "margin")},
        "plausibility": None if wish is None else [getattr(wish, f.name) for f in fields(wish) if f.repr],
        "constraints": d.constraints,
        "permitted_range": d.permitted_range,
        "the features or the model's steps": [json.dumps(d.space_.to_dict()), steps],
    }
    return {name: str(joblib.hash(part)) for name, part in held.items()}


def _read(explainer: Explainer | LinearExplainer, origins: FloatArray) -> tuple[str, str]:
    """Texts of the model as it was read, alone and behind its steps.

    The estimator itself is no sign of what it is: two copies of the same trees differ in bytes that nobody set.
    """
    if isinstance(explainer, LinearExplainer):
        asked = [
            explainer.prepared.problem(origins[0], k, Cost(l1=1.0), explainer.space)
            for k in range(len(explainer.classes))
        ]
        sums = [(p.constant.tolist(), p.slopes.tolist(), [table.tolist() for table in p.tables]) for p in asked]
        return json.dumps(sums), ""
    return json.dumps(explainer.model.trees.ensemble.to_dict()), json.dumps(_lifted(explainer, origins).to_dict())


def _solved(
    explainer: Explainer | LinearExplainer,
    question: Mapping[str, Any],
    rows: pd.DataFrame,
    origins: FloatArray,
    current: NDArray[Any],
    chunk: Sequence[int],
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Record of each row of a chunk, as soon as the last of its other classes is done.

    Parameters
    ----------
    explainer : Explainer or LinearExplainer
    question : mapping
        Settings of every search.
    rows : DataFrame
    origins : (n, n_features) float64
        Their codes.
    current : (n,) array
        Their decisions, as places of classes.
    chunk : sequence of int
        Places of those to solve.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C, after the rows that are finished.
    """
    best: dict[int, dict[str, Any]] = {}
    last = len(explainer.classes) - 1
    for index, label in enumerate(explainer.classes):
        asked = [k for k in chunk if current[k] != index]
        if not asked:
            continue
        found = explainer.explain(rows.iloc[asked], target=label, **question)
        for k, record in zip(asked, _records(found, explainer.space, origins[asked]), strict=True):
            if record["status"] == "interrupted":
                continue
            best[k] = _better(best.get(k), record)
            if index == last or (index == last - 1 and current[k] == last):
                yield k, best[k]
        raise_if_asked()  # who explains gives back what is finished, and the exception is gone
        if any(e.status == "interrupted" for e in found):
            raise KeyboardInterrupt


def _count(
    space: FeatureSpace,
    cuts: Sequence[FloatArray | None],
    couples: Sequence[tuple[FloatArray, Sequence[tuple[int, float]]]],
) -> Counter[Threshold]:
    """Multiplicity of each threshold (fcca, (10)).

    Parameters
    ----------
    space : FeatureSpace
    cuts : list of (n_cuts,) float64 or None
        As `_cuts` gives them.
    couples : sequence of (origin, changes)
    """
    counts: Counter[Threshold] = Counter()
    for origin, changes in couples:
        for i, value in changes:
            counts.update(of_change(space.features[i], i, cuts[i], float(origin[i]), value))
    return counts


def _merged(counts: Counter[Threshold], space: FeatureSpace, merge: float) -> Counter[Threshold]:
    """Multiplicities with thresholds that lie near each other put together, at the most frequent one."""
    if not merge:
        return counts
    out: Counter[Threshold] = Counter()
    group: list[Threshold] = []
    for threshold in [*sorted(counts), None]:
        if group and (threshold is None or not _near(group[-1], threshold, space, merge)):
            out[max(group, key=lambda t: counts[t])] = sum(counts[t] for t in group)
            group = []
        if threshold is not None:
            group.append(threshold)
    return out


def _near(first: Threshold, second: Threshold, space: FeatureSpace, merge: float) -> bool:
    """Whether two thresholds of a feature are within a share of its range."""
    feature = space.features[first.feature]
    same = first.feature == second.feature and not feature.discrete
    return same and second.value - first.value <= merge * (feature.upper - feature.lower)


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


def _probability_of(model: UserModel, X: Any, table: pd.DataFrame, decided: NDArray[Any]) -> FloatArray:
    """Probability of the class that the model decides for in each row, (n,); it need not be the largest.

    Parameters
    ----------
    model : UserModel
    X : DataFrame or array (n, n_columns)
        As the model was fitted.
    table : DataFrame (n, n_columns)
    decided : (n,) int
        Places of the classes.
    """
    native, rows = model.native, np.arange(len(table))
    if model.probabilities is not None:  # in the dtypes that it was fitted on
        return np.asarray(np.asarray(model.probabilities(table))[rows, decided])
    if hasattr(native, "predict_proba"):
        return np.asarray(np.asarray(native.predict_proba(X))[rows, decided])
    if hasattr(native, "decision_function"):
        scores = np.asarray(native.decision_function(X), np.float64)
    elif model.trees.ensemble.decision.link in ("logistic", "softmax"):  # boosters without an estimator around them
        scores = model.trees.scores(model.encode(table))
        if model.trees.ensemble.decision.link == "softmax":
            return np.asarray(softmax(scores, axis=1)[rows, decided])
        scores = scores[:, 0]
    else:
        raise ProblemError(
            f"{type(native).__name__} tells no probabilities, by which rows are chosen: p0=0 with p1=1 takes them all"
        )
    if scores.ndim == 1:
        return np.asarray(expit(np.where(decided == 1, scores, -scores)))
    odds = expit(scores)
    return np.asarray(odds[rows, decided] / odds.sum(axis=1))


def _records(found: Explanations, space: FeatureSpace, origins: FloatArray) -> list[dict[str, Any]]:
    """Status, cost and changed coded values of each explanation."""
    points = np.full_like(origins, np.nan)
    at = [k for k, e in enumerate(found) if e.found]
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
    """The cheaper of the counterfactuals of two other classes; it is the cheapest only if both searches came to an end.

    Parameters
    ----------
    first : dict or None
    second : dict
    """
    if first is None:
        return second
    best, other = sorted((first, second), key=lambda r: np.inf if r["cost"] is None else r["cost"])
    if best["status"] in CLOSED and other["status"] not in CLOSED:
        return {**best, "status": other["status"] if best["cost"] is None else "feasible"}
    return best


def _chunks(items: Sequence[int], processes: int) -> Iterator[Sequence[int]]:
    """Items in parts, as they are asked for, each as large as the time that items took so far allows.

    Parameters
    ----------
    items : sequence of int
    processes : int
        That work at the same time.
    """
    least = 1 if processes == 1 else FEWEST * processes
    begin, start, size = time.perf_counter(), 0, least
    while start < len(items):
        yield items[start : start + size]
        start += size
        each = (time.perf_counter() - begin) / start
        size = int(min(max(SECONDS / max(each, 1e-9), least), CHUNK * processes))


def _cuts(explainer: Explainer | LinearExplainer, origins: FloatArray) -> list[FloatArray | None]:
    """Splits of each feature in coded values, increasing; None where every value matters: in sums over features."""
    if isinstance(explainer, LinearExplainer):
        return [None] * len(explainer.space)
    ensemble = _lifted(explainer, origins)
    axis = (ensemble.kind == SplitKind.AXIS) & np.isfinite(ensemble.threshold)
    cuts = [np.unique(ensemble.threshold[axis & (ensemble.feature == i)]) for i in range(len(explainer.space))]
    return [None if not len(own) and i in ensemble.oblique_indices else own for i, own in enumerate(cuts)]


def _lifted(explainer: Explainer, origins: FloatArray) -> Ensemble:
    """The trees with splits of features in coded values."""
    first = (~np.isnan(origins)).argmax(axis=0)  # of what a row misses, its problem has no splits
    row = explainer.space.to_frame(origins[first, np.arange(len(first))])
    return explainer.problem(row, target=explainer.classes[0]).ensemble

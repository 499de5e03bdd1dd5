"""Counterfactuals of linear models: support vector machines, logistic regression, and Pipelines that end in one.

A score is a sum over features: ``constant + slope * value`` of a numeric one, a number per level of a discrete one. The
parts are probed through whatever encodes the user's table, as for trees, so users speak in their own units. There are
no cells: `ocf.formulations.linear` keeps the values continuous, and `ocf.linear_solving` puts the answer onto the
boundary as the user's own model computes it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ocf.batch import Row, Task, run_batch
from ocf.constraints import Constraint
from ocf.costs import Cost
from ocf.encoding import Encoding, probe
from ocf.ensemble import FloatArray
from ocf.errors import ConformanceError, DataError, OcfError, ProblemError, UnsupportedModelError
from ocf.explainer import MAX_CANDIDATES, Explainer
from ocf.explanation import Explanation, Explanations, counterfactual_frame, failed, from_outcome
from ocf.features import Feature, FeatureSpace
from ocf.inference import as_table, infer_space
from ocf.linear_solving import solve_linear
from ocf.model import UserModel, matching_columns, pipeline_encoder, working
from ocf.problem import Problem
from ocf.progress import Progress
from ocf.readers import linear as reader
from ocf.readers.linear import LinearModel
from ocf.solvers import Solver, get_solver
from ocf.solvers.base import CellSolver
from ocf.solvers.result import SolverOptions
from ocf.targets import ClassTarget
from ocf.words import listed, nearest

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Move:
    """How far a numeric feature may move, in units of its scale.

    Attributes
    ----------
    low, high : float
        Of the signed distance; a permitted range may exclude 0.
    """

    low: float
    high: float

    @property
    def up(self) -> float:
        """Longest way up."""
        return max(self.high, 0.0)

    @property
    def down(self) -> float:
        """Longest way down."""
        return max(-self.low, 0.0)

    def times(self, factor: float) -> Move:
        """The same in a unit so many times finer."""
        return Move(self.low * factor, self.high * factor)


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """The cheapest point to which a linear model gives a class.

    Attributes
    ----------
    space : FeatureSpace
    origin : (n_features,) float64
        Coded row.
    target : ClassTarget
    cost : Cost
    constant : (n_rows,) float64
    slopes : (n_rows, n_features) float64
        In coded values; 0 for discrete features.
    tables : tuple of (n_levels, n_rows) float64, one per feature
        What each level adds; no levels for numeric features.
    doubt : (n_rows,) float64
        The class is given where each ``constant + slopes @ x + sum of tables`` exceeds its doubt, and is not where one
        lies below minus its doubt.
    moves : tuple of Move or None, one per feature
        None for features that keep their value, and for discrete ones.
    level_costs : tuple of (n_levels,) float64, one per feature
        inf for levels that are not allowed.
    constraints : tuple
        None: relations between features are for trees.
    """

    space: FeatureSpace
    origin: FloatArray
    target: ClassTarget
    cost: Cost
    constant: FloatArray
    slopes: FloatArray
    tables: tuple[FloatArray, ...]
    doubt: FloatArray
    moves: tuple[Move | None, ...]
    level_costs: tuple[FloatArray, ...]
    constraints: tuple[Constraint, ...] = ()

    def at_origin(self, r: int) -> float:
        """Requirement r at the row, without its discrete features."""
        return float(self.constant[r] + self.slopes[r] @ self.origin)

    def surplus(self, point: FloatArray) -> FloatArray:
        """By how much a point exceeds each requirement, (n_rows,)."""
        total = self.constant + self.slopes @ point
        for i, table in enumerate(self.tables):
            if len(table):
                total = total + table[int(point[i])]
        return np.asarray(total)

    def steps(self, i: int) -> tuple[float, float]:
        """First and last multiple of its step that a feature with a grid may take."""
        feature, move = self.space.features[i], self.moves[i]
        assert move is not None
        step = feature.step or 1.0
        low, high = (self.origin[i] + feature.scale * end for end in (move.low, move.high))
        return float(np.rint(feature.at_least(low) / step)), float(np.rint(feature.at_most(high) / step))


@dataclass(frozen=True)
class _Additive:
    """Scores as sums over features; the same for every row.

    Attributes
    ----------
    constant : (n_scores,)
    slopes : (n_scores, n_features)
    tables : tuple of (n_levels, n_scores)
    doubt : (n_scores,)
        Bound on |the library's score - this sum|.
    """

    constant: FloatArray
    slopes: FloatArray
    tables: tuple[FloatArray, ...]
    doubt: FloatArray


class LinearExplainer:
    """Finds optimal counterfactuals of a linear model; the counterpart of `ocf.Explainer`.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted scikit-learn linear classifier (LogisticRegression, LinearSVC, SVC with a linear kernel and two classes,
        SGDClassifier, RidgeClassifier, …). A Pipeline may encode and scale.
    data : DataFrame or array (n, n_columns)
        Ideally the training data: bounds, scales and categories come from it.
    features : mapping of feature name to settings, or FeatureSpace, optional
        See `ocf.inference.infer_space`.
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
        check: bool = True,
    ) -> None:
        self.model = as_linear_model(model)
        self.linear: LinearModel = self.model.trees  # type: ignore[assignment]
        self.classes = self.linear.classes
        if data is None:
            raise DataError("give data (ideally the training data): the features' bounds and scales come from it")
        table = as_table(data, self.model.columns)
        columns = matching_columns(self.model.columns, tuple(table.columns)) if self.model.columns else table.columns
        extra = [c for c in table.columns if c not in columns]
        if extra:
            raise DataError(f"the data has columns that the model does not take: {listed(extra)}; drop them")
        table = table[list(columns)]
        self.space = features if isinstance(features, FeatureSpace) else infer_space(table, features)
        coded = self.space.from_frame(table)
        if np.isnan(coded).any():
            raise DataError("the data has missing values, and a linear model has no rule for them: fill them in")
        priced = [f.name for f in self.space.features if f.cost is not None]
        if priced:
            raise ProblemError(f"linear models take a weight, not a cost of its own: feature {listed(priced)}")
        rows = coded[:MAX_CANDIDATES]
        encoding = probe(self.space, self.model.encode, rows[0], self.linear.feature_names)
        self._additive = _additive(self.linear, encoding)
        if check:
            self._check(rows)

    def _check(self, rows: FloatArray) -> None:
        """Compare decisions with the library's wherever rounding leaves no doubt."""
        decided = np.asarray(self.model.decide(self.space.to_frame(rows)))
        for row, index in zip(rows, decided, strict=True):
            problem = self._problem(row, int(index), Cost(l1=1.0), self.space)
            if np.any(problem.surplus(row) < -problem.doubt):
                raise ConformanceError(
                    f"the model gives {self.classes[int(index)]!r} to a row whose scores say otherwise: its decision "
                    "is not the sign or the largest of its linear scores"
                )

    # -- problems --------------------------------------------------------------------------------------------

    def _problem(self, origin: FloatArray, target: int, cost: Cost, space: FeatureSpace) -> LinearProblem:
        signs = _requirement_signs(len(self.classes), target)
        sums, size = self._additive, np.abs(signs)
        tables = tuple(table @ signs.T for table in sums.tables)
        return LinearProblem(
            space,
            origin,
            ClassTarget(target),
            cost,
            signs @ sums.constant,
            signs @ sums.slopes,
            tables,
            size @ sums.doubt,
            tuple(_move(feature, origin[i]) for i, feature in enumerate(space.features)),
            tuple(_level_costs(feature, origin[i], cost) for i, feature in enumerate(space.features)),
        )

    def explain(
        self,
        X: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any = "opposite",
        norm: str | Mapping[str, float] | Cost = "l1",
        *,
        margin: float = 0.0,
        weights: Mapping[str, float | tuple[float, float]] | None = None,
        features_to_vary: Iterable[str] | Literal["all"] = "all",
        permitted_range: Mapping[str, Iterable[Any]] | None = None,
        formulation: str = "linear",
        solver: str = "highs",
        time_limit: float | None = None,
        mip_gap: float = 0.0,
        threads: int = 1,
        seed: int = 0,
        log: bool = False,
        options: Mapping[str, Any] | None = None,
        n_jobs: int = 1,
        progress: bool | None = None,
    ) -> Explanations:
        """Find the cheapest change of each row that gives it the target.

        The settings are those of `Explainer.explain`, but for these.

        Parameters
        ----------
        margin : float
            By how much the decision value must win; 1 asks for the far side of a support vector machine's margin
            (fcca, (17)). Default: the decision itself.
        formulation : str
            There is one for linear models, whatever this says.
        solver : {"highs", "scip"}
        """
        as_explainer = cast(Explainer, self)  # rows and settings are read alike
        frame = Explainer._rows(as_explainer, X)
        engine = get_solver(solver)
        if isinstance(engine, CellSolver):
            raise ProblemError(f"the solver {solver!r} searches cells of trees; linear models need 'highs' or 'scip'")
        if not (np.isfinite(margin) and margin >= 0):
            raise ProblemError(f"margin must be a number of at least 0, not {margin!r}")
        asked = _Question(
            target,
            Cost.parse(norm),
            Explainer._asked_space(as_explainer, weights, features_to_vary, permitted_range),
            solver,
            SolverOptions(
                time_limit=time_limit,
                mip_gap=mip_gap,
                threads=threads,
                seed=seed,
                log=log,
                options=dict(options or {}),
            ),
            margin,
        )
        coded = self.space.from_frame(frame)
        if np.isnan(coded).any():
            raise DataError("a row has missing values, and a linear model has no rule for them: fill them in")
        self._target(target, 0)
        current = self.model.decide(self.space.to_frame(coded)) if len(coded) else np.zeros(0)
        labels = list(frame.index)
        rows = [Row(labels[k], frame.iloc[[k]], coded[k], int(current[k])) for k in range(len(coded))]
        with Progress(len(rows), enabled=progress) as bar:
            return Explanations(run_batch(as_explainer, rows, cast(Task, asked), n_jobs, bar.advance))

    def explain_row(self, row: Row, asked: _Question) -> list[Explanation]:
        """Explain one row; a row that fails gives an explanation with status ``"error"``."""
        begin = time.perf_counter()
        try:
            problem = self._problem(row.coded, self._target(asked.target, int(row.current)), asked.cost, asked.space)
            return [self._solve(row, asked, problem, begin)]
        except OcfError as error:
            message = str(error)
        except Exception as error:  # one failing row never loses the others
            logger.exception("row %r failed", row.label)
            message = f"internal error: {type(error).__name__}: {error}"
        return [failed(row.label, row.original, "error", message, predicted=self.classes[int(row.current)])]

    def _solve(self, row: Row, asked: _Question, problem: LinearProblem, begin: float) -> Explanation:
        def confirm(point: FloatArray) -> bool:
            table = counterfactual_frame(problem.space, row.original, row.coded, point)
            return bool(self.model.meets(problem.target, table)[0])

        solver = cast(Solver, get_solver(asked.solver))
        outcome = solve_linear(problem, solver, asked.options, confirm, asked.margin)
        last = outcome.results[-1] if outcome.results else None
        return from_outcome(
            outcome,
            cast(Problem, problem),
            row=row.label,
            original=row.original,
            predicted=row.current,
            classes=self.classes,
            model=self.model,
            method={
                "formulation": "linear",
                "solver": asked.solver,
                "solver_version": last.version if last else "",
                "options": dict(last.options) if last else {},
                "reduction": False,
            },
            times={**outcome.times, "total": time.perf_counter() - begin},
        )

    def _target(self, target: Any, current: int) -> int:
        if isinstance(target, str) and target == "opposite" and "opposite" not in self.classes:
            if len(self.classes) != 2:
                raise ProblemError(f"'opposite' needs two classes; name one of {', '.join(map(str, self.classes))}")
            return 1 - current
        for index, label in enumerate(self.classes):
            if target == label or str(target) == str(label):
                return index
        raise ProblemError(f"the model has no class {nearest(target, self.classes)}")

    def __getstate__(self) -> dict[str, Any]:
        """State for worker processes; what the user's model is wrapped in is made anew there."""
        return {**self.__dict__, "model": self.model.native, "linear": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.model = as_linear_model(self.model)
        self.linear = self.model.trees  # type: ignore[assignment]


@dataclass(frozen=True)
class _Question:
    """What is asked of every row."""

    target: Any
    cost: Cost
    space: FeatureSpace
    solver: str
    options: SolverOptions
    margin: float


def explainer_for(
    model: Any,
    data: pd.DataFrame | ArrayLike | None = None,
    features: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    trust_pickle: bool = False,
) -> Explainer | LinearExplainer:
    """The explainer that fits a model: `LinearExplainer` for linear ones, `Explainer` for trees.

    Parameters
    ----------
    model : estimator, Pipeline, or path of a model file
    data, features
        As both explainers take them.
    trust_pickle : bool
        Whether a path may be a pickle or joblib file.
    """
    if isinstance(model, str | Path):
        from ocf.readers.files import load_model

        model = load_model(Path(model), trust_pickle=trust_pickle)
    if is_linear(model):
        return LinearExplainer(model, data, features)
    return Explainer(model, data, features)


def is_linear(model: Any) -> bool:
    """Whether a model, or the last step of a Pipeline, is a linear classifier."""
    steps = getattr(model, "steps", None)
    return reader.matches(steps[-1][1] if steps else model)


def as_linear_model(model: Any) -> UserModel:
    """Wrap a fitted linear classifier or a Pipeline that ends in one; `trees` of the result is its LinearModel.

    Raises
    ------
    ModelError
        Unfitted or unsupported.
    """
    steps = getattr(model, "steps", None)
    if steps and len(steps) > 1:
        linear = reader.read(steps[-1][1])
        columns, given, encode = pipeline_encoder(model)
    else:
        model = steps[-1][1] if steps else model
        linear = reader.read(model)
        names = getattr(model, "feature_names_in_", None)
        columns = None if names is None else tuple(map(str, names))

        def given(table: pd.DataFrame) -> Any:
            return table[list(columns)] if columns else table.to_numpy()

        def encode(table: pd.DataFrame) -> FloatArray:
            return np.asarray(given(table), np.float64)

    classes = {label: index for index, label in enumerate(linear.classes)}

    def decide(table: pd.DataFrame) -> NDArray[Any]:
        with working(model):
            return np.array([classes[label] for label in np.asarray(model.predict(given(table))).tolist()], np.int64)

    return UserModel(model, cast(Any, linear), columns, encode, decide)


# -- scores as sums over features --------------------------------------------------------------------------------


def _requirement_signs(n_classes: int, target: int) -> FloatArray:
    """How scores combine to requirements that are at least 0, (n_rows, n_scores)."""
    if n_classes == 2:
        return np.array([[1.0 if target == 1 else -1.0]])
    others = [k for k in range(n_classes) if k != target]
    signs = np.zeros((len(others), n_classes))
    signs[:, target] = 1.0
    signs[np.arange(len(others)), others] = -1.0
    return signs


def _additive(model: LinearModel, encoding: Encoding) -> _Additive:
    """Slopes, tables and rounding of the scores.

    The bound on rounding: summing ``terms`` products in any order errs by at most ``(terms + 2) u`` times the
    sum of their absolute values, with u half a unit in the last place of the precision; `_affine` bounds what the
    encoding adds. All of it counts twice, because the sums here round as well.
    """
    space = encoding.space
    unit = 2.0**-24 if model.single or any(f.float_dtype.itemsize < 8 for f in space.features) else 2.0**-53
    n_scores, n = len(model.weights), len(space)
    still = encoding.column_feature < 0
    base = encoding.encode(space.to_frame(encoding.base))[0]
    constant = model.intercept + model.weights[:, still] @ base[still]
    slopes, tables = np.zeros((n_scores, n)), []
    largest = np.abs(base) * still
    encoding_error = np.zeros(len(base))
    for i, feature in enumerate(space.features):
        own = np.flatnonzero(encoding.column_feature == i)
        if feature.discrete:
            encoded = encoding.varied(i, np.arange(len(feature.levels), dtype=np.float64))[:, own]
            tables.append(encoded @ model.weights[:, own].T)
            largest[own] = np.abs(encoded).max(axis=0)
            continue
        tables.append(np.zeros((0, n_scores)))
        for column in own:
            slope, offset, reach = _affine(feature, encoding, i, int(column), unit)
            slopes[:, i] += model.weights[:, column] * slope
            constant = constant + model.weights[:, column] * offset
            largest[column] = abs(slope) * reach + abs(offset)
            encoding_error[column] = _encoding_doubt(slope, offset, reach, unit)
    summed = (model.terms + 2) * unit * (model.size @ largest + np.abs(model.intercept))
    return _Additive(constant, slopes, tuple(tables), 2 * (summed + model.size @ encoding_error))


def _affine(feature: Feature, encoding: Encoding, i: int, column: int, unit: float) -> tuple[float, float, float]:
    """Slope and offset of the encoding of a numeric feature, and the largest absolute value it is used for.

    Raises
    ------
    DataError
        No finite bounds.
    UnsupportedModelError
        The encoding is not affine.
    """
    if not (np.isfinite(feature.lower) and np.isfinite(feature.upper)):
        raise DataError(f"feature {feature.name!r}: a linear model needs finite bounds, for example bounds = [0, 100]")
    low, high = feature.lower, feature.upper if feature.upper > feature.lower else feature.lower + 1.0
    values = np.linspace(low, high, 33)
    if feature.float_dtype.itemsize < 8:
        values = values.astype(feature.float_dtype).astype(np.float64)
    encoded = encoding.varied(i, values)[:, column]
    if np.array_equal(encoded, values):
        slope, offset = 1.0, 0.0
    else:
        slope = float((encoded[-1] - encoded[0]) / (values[-1] - values[0]))
        offset = float(encoded[0] - slope * values[0])
    reach = max(abs(low), abs(high))
    if not np.abs(encoded - (slope * values + offset)).max() <= _encoding_doubt(slope, offset, reach, unit):
        raise UnsupportedModelError(
            f"the preprocessing of feature {feature.name!r} is not of the form a x + b, so the score is not linear in "
            "it: give ocf the table after that step"
        )
    return slope, offset, reach


def _encoding_doubt(slope: float, offset: float, reach: float, unit: float) -> float:
    """Bound on the difference of an affine encoding and its fitted line.

    A scaler rounds twice (subtract, divide; multiply, add), each time by a unit of an intermediate result, at most
    ``|slope| reach + |offset|`` in size once expressed in the result's units. Two scalers in a row and the line through
    two such values, which adds three times as much again, stay below 16 units. A chain that rounds more is refused,
    because its encoding leaves the line.
    """
    return 0.0 if (slope, offset) == (1.0, 0.0) else 16 * unit * (abs(slope) * reach + abs(offset))


def _move(feature: Feature, origin: float) -> Move | None:
    if feature.discrete:
        return None
    low, high = feature.limits(origin)
    if low > high:
        raise ProblemError(f"feature {feature.name!r}: no value is allowed between {low} and {high}")
    low, high = float(feature.at_least(low)), float(feature.at_most(high))
    if feature.action == "fixed" or low == high == origin:
        return None
    return Move((low - origin) / feature.scale, (high - origin) / feature.scale)


def _level_costs(feature: Feature, origin: float, cost: Cost) -> FloatArray:
    """Cost of each level; inf where it is not allowed. (n_levels,), or (0,) for numeric features."""
    if not feature.discrete:
        return np.zeros(0)
    codes = np.arange(len(feature.levels), dtype=np.float64)
    low, high = feature.limits(origin)
    permitted = feature.permitted_codes()
    allowed = (low <= codes) & (codes <= high)
    if permitted is not None:
        allowed &= np.isin(codes, sorted(permitted))
    return np.where(allowed, cost.of(feature, origin, codes), np.inf)

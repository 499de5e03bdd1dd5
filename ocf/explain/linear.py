"""Counterfactuals of linear models: support vector machines, logistic regression, and Pipelines that end in one.

A score is a sum over features: ``constant + slope * value`` of a numeric one, a number per level of a discrete one. The
parts are probed through whatever encodes the user's table, as for trees, so users speak in their own units. There are
no cells: `ocf.formulations.linear` keeps the values continuous, and `ocf.solve.linear_search` puts the answer onto the
boundary as the user's own model computes it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.arrays import FloatArray
from ocf.errors import ConformanceError, DataError, OcfError, ProblemError
from ocf.explain.answers import failed, from_outcome
from ocf.explain.batch import run_batch
from ocf.explain.explainer import MAX_CANDIDATES, Explainer
from ocf.explain.explanation import Explanation, Explanations
from ocf.features.feature import Feature
from ocf.features.inference import as_table, infer_space
from ocf.features.space import FeatureSpace, counterfactual_frame
from ocf.models.additive import as_additive, as_linear_model, is_linear, requirement_signs
from ocf.models.encoding import probe
from ocf.models.user_model import matching_columns
from ocf.problem.costs import Cost
from ocf.problem.linear_problem import LinearProblem, Move
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.readers.linear import LinearModel
from ocf.solve.linear_search import solve_linear
from ocf.solve.task import Row
from ocf.solvers import Solver, get_solver
from ocf.solvers.protocols import CellSolver
from ocf.solvers.result import SolverOptions
from ocf.support.messages import listed, nearest
from ocf.support.progress import Progress

logger = logging.getLogger(__name__)


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
        See `ocf.features.inference.infer_space`.
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
        self._additive = as_additive(self.linear, encoding)
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
        signs = requirement_signs(len(self.classes), target)
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
            return Explanations(run_batch(partial(self.explain_row, asked=asked), rows, n_jobs, bar.advance))

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

"""The Python interface: an Explainer of one model, asked about rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_alternatives, to_cells
from ocf.cells.partition import Partition, partition
from ocf.errors import DataError, OcfError, ProblemError
from ocf.explain.answers import failed, from_outcome
from ocf.explain.batch import run_batch
from ocf.explain.diverse import explain_several
from ocf.explain.explanation import Explanation, Explanations
from ocf.explain.regions import Regions
from ocf.features.inference import as_table, infer_space
from ocf.features.lattice import rounded
from ocf.features.row_dtypes import conformed, in_dtypes_of
from ocf.features.space import FeatureSpace, counterfactual_frame
from ocf.formulations import VALUE_FORMULATIONS, check_formulation
from ocf.models.encoding import Encoding, probe
from ocf.models.known_steps import unknown_step
from ocf.models.lift import check_lift, lift, unsteady
from ocf.models.plausibility import Detector, Plausibility, make_detector
from ocf.models.three_ways import check_decisions, check_three_ways, spread
from ocf.models.user_model import as_user_model, table_columns
from ocf.problem.conflicts import conflict
from ocf.problem.constraints import Constraint, broken_by, checked, unsatisfiable
from ocf.problem.costs import Cost
from ocf.problem.diversity import Several
from ocf.problem.isolation_depth import IsolationDepth
from ocf.problem.problem import Problem
from ocf.problem.quadratic import parse_norm
from ocf.problem.targets import ClassTarget, Target, parse_target
from ocf.readers.conformance import check_conformance
from ocf.solve.cell_search import solve_alternatives
from ocf.solve.class_costs import checked_class_costs, class_offsets
from ocf.solve.compile import compile_formulation
from ocf.solve.cross_check import compare, judged
from ocf.solve.ensemble_search import solve_globally
from ocf.solve.leaf_model import TreeSearch
from ocf.solve.leaf_query import Query
from ocf.solve.leaf_search import solve_leaves
from ocf.solve.method import AUTO, Way, choose, other_solvers, second_value_way, second_way
from ocf.solve.outcome import Outcome, unproven
from ocf.solve.task import Row, Task
from ocf.solve.ties import same_cost, tied_points
from ocf.solvers import CellSolver, Solver, get_solver
from ocf.solvers.cell_form import Compiled
from ocf.solvers.result import SolverOptions, Status
from ocf.support.messages import listed
from ocf.support.progress import Progress
from ocf.trees.joining import split_trees

logger = logging.getLogger(__name__)

#: Most candidate rows of a class that incumbents start from.
MAX_CANDIDATES = 5000

#: Most rows of the data whose leaves are looked up in three ways, and from which features are varied.
MAX_CHECKED, MAX_BASES = 1000, 8

#: Of an infeasible row.
NO_CONFLICT = "no wish stands in the way: the target is out of reach within the bounds of the features"


class _Asked(NamedTuple):
    """A row, what is asked of it, and the isolation forest that judges it where plausibility is asked for."""

    row: Row
    task: Task
    detector: Detector | None


class _Answer(NamedTuple):
    """An outcome; seconds of building and compiling; other points of the same cost, whether these are all, and ranges.

    The ranges are those of all points, the outcome's first; see `ocf.solve.ties.same_cost`.
    """

    outcome: Outcome
    built: dict[str, float]
    ties: Sequence[FloatArray] = ()
    complete: bool | None = None
    ranges: Sequence[Mapping[str, Any]] = ()


class Explainer:
    """Finds optimal counterfactuals of one model.

    Parameters
    ----------
    model : estimator, Pipeline, or path of a model file
        Fitted scikit-learn, XGBoost or LightGBM trees. A Pipeline may encode and scale; users then speak in the
        units and words of the table that the Pipeline takes.
    data : DataFrame or array (n, n_columns), optional
        Ideally the training data: bounds, scales, categories and first incumbents come from it. Needed unless
        `features` is a FeatureSpace.
    features : mapping of feature name to settings, FeatureSpace, or path of a problem file, optional
        See `ocf.features.inference.infer_space` for the settings.
    check : bool
        Whether to check the reading of the model against the library at every threshold.
    trust_pickle : bool
        Whether `model` may be the path of a pickle or joblib file.

    Attributes
    ----------
    space : FeatureSpace
    classes : tuple
        Class labels; empty for a regressor.
    constraints : tuple of Constraint
        Those of the problem file, if `features` is one; `explain` uses them unless it is given others.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, y)
    >>> explanation = Explainer(forest, data=X).explain(X.iloc[[0]], target=1)[0]
    >>> explanation.status, explanation.verified
    ('optimal', True)
    """

    def __init__(
        self,
        model: Any,
        data: pd.DataFrame | ArrayLike | None = None,
        features: Mapping[str, Mapping[str, Any]] | FeatureSpace | str | Path | None = None,
        *,
        check: bool = True,
        trust_pickle: bool = False,
    ) -> None:
        self.model = as_user_model(model, trust_pickle=trust_pickle)
        self.ensemble = self.model.trees.ensemble
        self.classes = self.ensemble.decision.classes
        table = None if data is None else as_table(data, self.model.columns)
        self.constraints: tuple[Constraint, ...] = ()
        self.space = self._space(table, features)
        self._coded = self._known_rows(table)
        if check:
            background = None if table is None else self.model.encode(self.space.to_frame(self._coded[:64]))
            check_conformance(self.model.trees, background)
        self._check = check
        checked_rows = None if table is None else spread(table, MAX_CHECKED)
        self._checked = self._coded[:0] if checked_rows is None else self.space.from_frame(checked_rows)
        self._encodings: dict[tuple[str, ...], Encoding] = {}
        self._unproven: dict[tuple[Any, ...], str] = {}
        self._partitions: dict[tuple[Any, ...], Partition] = {}
        self._searches: dict[int, TreeSearch] = {}
        self._depths: dict[tuple[Any, ...], IsolationDepth] = {}
        self._detectors: dict[tuple[Any, ...], Detector] = {}
        self._compiled: dict[tuple[Any, ...], Compiled] = {}
        self._known_targets: dict[Target, FloatArray] = {}
        self._candidates: dict[tuple[Any, ...], IntArray] = {}
        self._solvers: dict[str, Solver | CellSolver] = {}
        self._partition(frozenset())  # refuses what cannot be read before anything is asked

    # -- set up --------------------------------------------------------------------------------------------

    def _space(
        self, table: pd.DataFrame | None, features: Mapping[str, Any] | FeatureSpace | str | Path | None
    ) -> FeatureSpace:
        if isinstance(features, FeatureSpace):
            return features
        if isinstance(features, str | Path):
            from ocf.problem.problem_file import read_problem_file

            said = read_problem_file(Path(features))
            features, self.constraints = said.features, said.constraints
        if table is None:
            raise DataError("give data (ideally the training data) or a FeatureSpace as features")
        columns = table_columns(self.model, tuple(table.columns))
        extra = [c for c in table.columns if c not in columns]
        if extra:
            raise DataError(f"the data has columns that the model does not take: {listed(extra)}; drop them")
        return infer_space(table[list(columns)], features)

    def _known_rows(self, table: pd.DataFrame | None) -> FloatArray:
        """Rows of the data without missing values, coded; at most a few thousand."""
        if table is None:
            return np.zeros((0, len(self.space)))
        coded = self.space.from_frame(table)
        coded = coded[~np.isnan(coded).any(axis=1)]
        if len(coded) > MAX_CANDIDATES:
            coded = coded[np.sort(np.random.default_rng(0).permutation(len(coded))[:MAX_CANDIDATES])]
        return coded

    def _base_row(self) -> FloatArray:
        if len(self._coded):
            return self._coded[0]
        middle = [
            0.0 if f.discrete else float(f.at_most(np.clip((f.lower + f.upper) / 2, f.lower, f.upper)))
            for f in self.space.features
        ]
        if not np.isfinite(middle).all():
            raise DataError("without data every numeric feature needs finite bounds")
        return np.array(middle)

    def _encoding_of(self, space: FeatureSpace) -> Encoding:
        """The way from features in the dtypes of `space` to model columns."""
        key = tuple(f.dtype for f in space.features)
        if key not in self._encodings:
            places = np.linspace(0, len(self._coded) - 1, min(len(self._coded), MAX_BASES)).round().astype(int)
            self._encodings[key] = probe(
                space,
                self.model.encode,
                rounded(space, self._base_row()[None])[0],
                self.ensemble.feature_names,
                others=rounded(space, self._coded[places]),
                known=not self._unknown(frozenset()),
            )
        return self._encodings[key]

    def _unknown(self, missing: frozenset[int], detector: Detector | None = None) -> str:
        """The first step before the trees whose shape is not known by its class, in words; empty if there is none."""
        number = {c: not f.discrete for f in self.space.features for c in f.columns}
        flow = [number[c] for c in self.model.columns or self.space.columns]
        models = (self.model.native, *([] if detector is None else [detector.native]))
        steps = (unknown_step(model, flow, complete=not missing) for model in models)
        return next(filter(None, steps), "")

    def _partition(
        self, missing: frozenset[int], detector: Detector | None = None, space: FeatureSpace | None = None
    ) -> Partition:
        """Cells of all trees, with the isolation trees behind those of the model."""
        space = space or self.space
        key = self._key(missing, detector, space)
        if key not in self._partitions:
            ensemble, encoding = self.ensemble, self._encoding_of(space if key[-1] else self.space)
            unknown = self._unknown(missing, detector)
            encoding = replace(encoding, domain=None) if unknown else encoding
            if detector is not None:
                if missing and detector.forest.ensemble.missing_left is None:
                    raise DataError("the row has missing values (NaN), and the isolation forest has no rule for them")
                ensemble, encoding = detector.beside(ensemble, encoding)
            lifted = lift(ensemble, encoding, missing)
            if self._check and not missing:
                check_lift(lifted, ensemble, encoding)
            part = partition(lifted, self.space)
            if self._check:
                rows = self._checked[(np.isnan(self._checked) == _mask(missing, len(self.space))).all(axis=1)]
                check_three_ways(ensemble, encoding.encode, part, encoding.space, rounded(encoding.space, rows))
                self._check_decisions(encoding.space, rounded(encoding.space, rows))
            self._unproven[key] = _why_unproven(unknown, unsteady(lifted, ensemble, encoding))
            self._partitions[key] = part
            if detector is not None:
                self._depths[key] = detector.requirement(split_trees(lifted, self.ensemble)[1])
        return self._partitions[key]

    def _check_decisions(self, space: FeatureSpace, rows: FloatArray) -> None:
        """Hold the user's own answers to rows of the data against the trees; oblique ones may be in doubt."""
        if len(rows) and not self.ensemble.is_oblique:
            table = space.to_frame(rows)
            check_decisions(self.ensemble, self.model.encode(table), np.asarray(self.model.decide(table)))

    def _key(self, missing: frozenset[int], detector: Detector | None, space: FeatureSpace) -> tuple[Any, ...]:
        """Under which a partition and what depends on it are kept.

        Without a preprocessing the dtypes of a row do not matter: the trees compare the numbers themselves.
        """
        through = hasattr(self.model.native, "steps") or detector is not None
        dtypes = tuple(f.dtype for f in space.features)
        own = through and dtypes != tuple(f.dtype for f in self.space.features)
        return (missing, None if detector is None else detector.key, dtypes if own else ())

    def _detector(self, wish: Plausibility | None, target: Target) -> Detector | None:
        """Isolation forest for a target, fitted on the rows of the data that have it where that is asked for."""
        if wish is None:
            return None
        key = (wish.key, target)
        if key not in self._detectors:
            rows = self._known_rows_of(target)
            self._detectors[key] = make_detector(wish, self.model, self.space.to_frame(rows), key)
        return self._detectors[key]

    # -- problems ------------------------------------------------------------------------------------------

    def problem(
        self,
        row: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any = "opposite",
        norm: str | Mapping[str, float] | Cost = "l1",
        *,
        probability: float | None = None,
        plausibility: Any = None,
        constraints: Constraint | Sequence[Constraint | Mapping[str, Any]] | None = None,
        **settings: Any,
    ) -> Problem:
        """The problem of one row, as the formulations see it; takes the settings of `explain`.

        Parameters
        ----------
        row : one-row DataFrame, Series, or array (n_columns,)
        """
        frame = self._rows(row)
        if len(frame) != 1:
            raise DataError(f"expected one row, not {len(frame)}")
        space = self._asked_space(**settings)
        coded = self.space.from_frame(frame)
        space = in_dtypes_of(space, conformed(frame, space))
        wanted = parse_target(self.ensemble, target, self._current(coded, space)[0], probability)
        asked = checked(self.constraints if constraints is None else constraints, space)
        wish = Plausibility.parse(plausibility)
        return self._problem(coded[0], wanted, parse_norm(norm, self.space, self._coded), space, asked, wish)

    def cells(self, problem: Problem) -> CellProblem:
        """The finite form of a problem of this explainer whose target has a single alternative."""
        return to_cells(problem, self._shared_partition(problem))

    def alternatives(self, problem: Problem) -> tuple[CellProblem, ...]:
        """The finite forms of a problem of this explainer, one per alternative of its target."""
        return to_alternatives(problem, self._shared_partition(problem))

    def _shared_partition(self, problem: Problem) -> Partition | None:
        """The partition of all rows that miss the same values; None where a row's cells are its own."""
        return None if problem.cuts_cells else self._tree_partition(problem)

    def _tree_partition(self, problem: Problem) -> Partition:
        """The partition by the splits of the trees alone."""
        keys = [key for key, depth in self._depths.items() if depth is problem.plausibility]
        return self._partitions[keys[0]] if keys else self._partition(_missing(problem.origin), None, problem.space)

    def _current(self, coded: FloatArray, space: FeatureSpace | None = None) -> list[Any]:
        """Class index or value that the user's model gives each coded row, in the dtypes of `space`."""
        current: list[Any] = self.model.decide((space or self.space).to_frame(coded)).tolist()
        return current

    def unproven(self, problem: Problem, detector: Detector | None = None) -> str:
        """Why nothing is proven of a problem through the user's preprocessing; empty where proofs hold."""
        self._tree_partition(problem)
        return self._unproven[self._key(_missing(problem.origin), detector, problem.space)]

    def _problem(
        self,
        origin: FloatArray,
        target: Target,
        cost: Cost,
        space: FeatureSpace,
        constraints: tuple[Constraint, ...] = (),
        wish: Plausibility | None = None,
    ) -> Problem:
        detector = self._detector(wish, target)
        part = self._partition(_missing(origin), detector, space)
        if self._check:
            check_three_ways(self.ensemble, self.model.encode, part, space, origin[None])
        if detector is None:
            return Problem(part.ensemble, space, origin, target, cost, constraints=constraints)
        depth = self._depths[self._key(_missing(origin), detector, space)]
        model = split_trees(part.ensemble, self.ensemble)[0]
        return Problem(model, space, origin, target, cost, depth, constraints)

    def _asked_space(
        self,
        weights: Mapping[str, float | tuple[float, float]] | None = None,
        features_to_vary: Iterable[str] | Literal["all"] = "all",
        permitted_range: Mapping[str, Iterable[Any]] | None = None,
    ) -> FeatureSpace:
        changes: dict[str, dict[str, Any]] = {}
        for name, weight in (weights or {}).items():
            down, up = weight if isinstance(weight, tuple | list) else (weight, weight)
            changes.setdefault(name, {}).update(weight_down=float(down), weight_up=float(up))
        for name, allowed in (permitted_range or {}).items():
            values = tuple(allowed)
            if not self.space.features[self.space.index(name)].discrete and len(values) != 2:
                raise ProblemError(f"permitted range of {name!r} must be (lowest, highest), not {values}")
            changes.setdefault(name, {})["permitted"] = values
        if features_to_vary != "all":
            if isinstance(features_to_vary, str):
                raise ProblemError("features_to_vary is 'all' or a list of feature names")
            vary = {self.space.names[self.space.index(name)] for name in features_to_vary}
            for name in self.space.names:
                if name not in vary:
                    changes.setdefault(name, {})["action"] = "fixed"
        space = self.space.updated(changes)
        for feature in space.features:
            feature.permitted_codes()
        return space

    def _asked_constraints(self, constraints: Any, rows: FloatArray) -> tuple[Constraint, ...]:
        """Constraints that fit the features; those that the data itself breaks are named in a warning."""
        asked = checked(constraints, self.space)
        for constraint in asked:
            if not constraint.absolute:
                continue
            if unsatisfiable(constraint, self.space, np.vstack([rows, self._coded])):
                raise ProblemError(f"no values within the bounds satisfy the constraint {constraint.title!r}")
            broken = broken_by(constraint, self.space, self._coded)
            if broken:
                logger.warning(
                    "constraint %r is broken by %d of %d rows of the data", constraint.title, broken, len(self._coded)
                )
        return asked

    def _rows(self, rows: pd.DataFrame | pd.Series[Any] | ArrayLike) -> pd.DataFrame:
        if isinstance(rows, pd.Series):
            rows = rows.to_frame().T.infer_objects()
        if not isinstance(rows, pd.DataFrame):
            # value by value: beside a word NumPy would turn numbers into text
            mixed = isinstance(rows, list | tuple)
            array = np.atleast_2d(np.asarray(rows, dtype=object) if mixed else np.asarray(rows))
            if array.ndim != 2 or array.shape[1] != len(self.space.columns):
                raise DataError(f"rows have shape {array.shape}; expected (n, {len(self.space.columns)})")
            rows = pd.DataFrame(array, columns=list(self.space.columns)).infer_objects()
        return rows

    # -- explanations --------------------------------------------------------------------------------------

    def explain(
        self,
        X: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any = "opposite",
        norm: str | Mapping[str, float] | Cost = "l1",
        *,
        probability: float | None = None,
        weights: Mapping[str, float | tuple[float, float]] | None = None,
        features_to_vary: Iterable[str] | Literal["all"] = "all",
        permitted_range: Mapping[str, Iterable[Any]] | None = None,
        split_margin: float = 0.0,
        class_costs: Mapping[Any, float] | None = None,
        plausibility: Any = None,
        constraints: Constraint | Sequence[Constraint | Mapping[str, Any]] | None = None,
        n_explanations: int = 1,
        diversity: str = "region",
        min_distance: float = 0.1,
        diagnose: bool = False,
        formulation: str = AUTO,
        solver: str = AUTO,
        time_limit: float | None = None,
        mip_gap: float = 0.0,
        threads: int = 1,
        seed: int = 0,
        log: bool = False,
        options: Mapping[str, Any] | None = None,
        reduce: bool = True,
        cross_check: bool = False,
        n_optimal: int = 1,
        n_jobs: int = 1,
        progress: bool | None = None,
    ) -> Explanations:
        """Find the cheapest change of each row that gives it the target.

        Parameters
        ----------
        X : DataFrame, Series, or array (n, n_columns) or (n_columns,)
        target : class label, "opposite", collection of class labels, or (lowest, highest)
            ``"opposite"`` is the other class of a binary model, for each row its own. Of several labels any will do.
            For a regressor an interval of its prediction, such as ``(200_000, 250_000)``; None for an open end.
        norm : {"l0", "l1", "l2", "mahalanobis"}, mapping such as ``{"l0": 0.1, "l1": 1}``, or Cost
            l2 and the Mahalanobis distance, by the data's covariance, are squared; see
            `ocf.problem.quadratic.quadratic_cost`
            for any other quadratic form. Distances are in units of each feature's scale.
        probability : float, optional
            Least probability, by the model's ``predict_proba``, of the target class or of some one of its classes, in
            the place of the decision for it. More than one half implies the decision.
        weights : mapping of feature name to weight or (down, up)
        features_to_vary : "all" or list of names
            The others are fixed.
        permitted_range : mapping of feature name to (lowest, highest) or to the allowed levels
        split_margin : float
            For single trees: by how much every split of the path must hold, in units of its own total (oblique,
            section 3.9).
        class_costs : mapping of class label to float, optional
            For single trees, in the place of `target`: all these classes will do, and ending in one adds its cost to
            that of the change (oblique, section 3.9). The explanation is that of the class that comes out.
        plausibility : bool, mapping, isolation forest, or Plausibility, optional
            Keep to points that an isolation forest does not take for outliers among the rows of the target; see
            `ocf.Plausibility` for the settings. True: a forest is fitted on those rows, and the answer is as deep in it
            as nine of ten of them.
        constraints : sequence of Constraint
            Relations between features that every counterfactual must respect: see `ocf.problem.constraints`.
        n_explanations : int
            How many of each row: the best, then the best that differs from all before it.
        diversity : {"region", "features", "distance"}
            How they differ: in the leaf of some tree, in that some feature stays which an earlier one changes, or by
            `min_distance` (l1, in units of the features' scales).
        min_distance : float
        diagnose : bool
            Whether to find out which of your wishes conflict when a row is proven infeasible; see
            `Explanation.conflict`.
        formulation : str
            See `ocf.formulations.FORMULATIONS`; the box search takes its bounds from ``"interval"``. By default
            ``"oblique"`` (leaf by leaf) for single trees with oblique splits or a split margin,
            ``"hyperplanes"`` for several trees with oblique splits, and ``"interval"`` otherwise.
        solver : str
            ``"auto"`` chooses (`ocf.solve.method.choose`), and ``method["why"]`` of the answer says why. Or one of
            `ocf.solvers.SOLVERS`, or ``"box"``: the exact box branch-and-bound.
        time_limit : float, optional
            Seconds per row.
        mip_gap : float
            Relative gap at which a row may stop; 0 asks for a proof.
        threads, seed, log, options
            As in `ocf.solvers.result.SolverOptions`.
        reduce : bool
            Whether to shrink each problem by an incumbent before the solver sees it.
        cross_check : bool
            Whether to solve each row once more, by another formulation and another solver and without the reduction,
            with the same limits. Where the two contradict each other, the row gets the status ``"error"`` and keeps
            both claims, the second in ``method["cross_check"]``.
        n_optimal : int
            How many optimal answers to list where several cost the same; the others are in `Explanation.ties`, and
            `Explanation.ties_complete` says whether there are more. Values that neither the model nor the cost tells
            apart count as one answer, and `Explanation.ranges` gives them.
        n_jobs : int
            Rows solved at the same time, in processes of their own; -1 for one per core.
        progress : bool, optional
            Progress bar on stderr; by default only on a terminal and for several rows.

        Returns
        -------
        Explanations
            One per row, or `n_explanations`, in order. A row that fails has status ``"error"`` and a message; the
            others are kept. After Ctrl-C the rows that are not finished have status ``"interrupted"``.
        """
        frame = self._rows(X)
        if not isinstance(n_optimal, int) or n_optimal < 1:
            raise ProblemError(f"n_optimal is a number of answers, at least 1, not {n_optimal!r}")
        if solver != AUTO:
            get_solver(solver)
        cost = parse_norm(norm, self.space, self._coded)
        priced = checked_class_costs(self.classes, class_costs) if class_costs is not None else {}
        if priced:
            target = tuple(priced)
        wish = Plausibility.parse(plausibility)
        formulation = self._formulation(formulation, cost, split_margin, bool(priced), wish)
        if cross_check and (split_margin > 0 or priced):
            raise ProblemError("class costs and split margins have one model, leaf by leaf, and nothing to check it by")
        if formulation in VALUE_FORMULATIONS and (n_explanations > 1 or n_optimal > 1):
            raise ProblemError(
                f"the formulation {formulation!r} gives one answer a row; "
                f"ocf.explain.leaf_queries.explain_leaves gives several"
            )
        coded = self.space.from_frame(frame)
        task = Task(
            target=target,
            probability=probability,
            cost=cost,
            space=self._asked_space(weights, features_to_vary, permitted_range),
            formulation=formulation,
            solver=solver,
            split_margin=split_margin,
            class_costs=tuple(priced.items()),
            options=SolverOptions(
                time_limit=time_limit,
                mip_gap=mip_gap,
                threads=threads,
                seed=seed,
                log=log,
                options=dict(options or {}),
            ),
            reduce=reduce,
            cross_check=cross_check,
            n_optimal=n_optimal,
            plausibility=wish,
            constraints=self._asked_constraints(self.constraints if constraints is None else constraints, coded),
            several=Several(n_explanations, diversity, min_distance),
            diagnose=diagnose,
        )
        # refuses a target that means nothing, whatever the row, before any row is solved
        parse_target(self.ensemble, target, 0, probability)
        frame = conformed(frame, self.space)
        task = replace(task, space=in_dtypes_of(task.space, frame))
        for columns in {_missing(row) for row in coded}:
            # refuses missing values without a rule before any row is solved
            self._partition(columns, None, task.space)
        current = self._current(coded, task.space)
        labels = list(frame.index)
        rows = [Row(labels[k], frame.iloc[[k]], coded[k], current[k]) for k in range(len(coded))]
        with Progress(len(rows), enabled=progress) as bar:
            return Explanations(run_batch(partial(self.explain_row, task=task), rows, n_jobs, bar.advance))

    def counterfactual_regions(
        self,
        row: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any = "opposite",
        *,
        radius: float,
        norm: str | Mapping[str, float] | Cost = "l1",
        probability: float | None = None,
        weights: Mapping[str, float | tuple[float, float]] | None = None,
        features_to_vary: Iterable[str] | Literal["all"] = "all",
        permitted_range: Mapping[str, Iterable[Any]] | None = None,
        constraints: Constraint | Sequence[Constraint | Mapping[str, Any]] | None = None,
        limit: int | None = 1000,
    ) -> Regions:
        """All regions around a row in which the model gives the target, as boxes in the user's units (box, (10)).

        Their number grows fast with the radius and the number of features: keep the radius near the cost of the
        nearest counterfactual, vary few features, or take regions from the iterator as long as they are wanted.

        Parameters
        ----------
        row : one-row DataFrame, Series, or array (n_columns,)
        target, norm, probability, weights, features_to_vary, permitted_range, constraints
            As in `explain`.
        radius : float
            Regions are listed whose nearest point costs at most this.
        limit : int, optional
            Most regions to list; `Regions.complete` says whether it cut the list off. None for no limit.

        Returns
        -------
        Regions
            Found as they are asked for: iterate, or call `to_frame` or `plot`.

        Raises
        ------
        ProblemError
            Something couples the features, so that regions are no boxes.
        """
        problem = self.problem(
            row,
            target,
            norm,
            probability=probability,
            weights=weights,
            features_to_vary=features_to_vary,
            permitted_range=permitted_range,
            constraints=constraints,
        )
        why = self.unproven(problem)
        if why:
            raise ProblemError(f"which regions there are is not known: {why}")
        alternatives = self.alternatives(problem)
        if alternatives[0].coupling:
            raise ProblemError(f"with {alternatives[0].coupling} regions are no boxes: ask for them without")
        return Regions(alternatives, self.model, radius=radius, limit=limit)

    def explain_row(self, row: Row, task: Task) -> list[Explanation]:
        """Explain one row, as often as asked for; one that fails gives an explanation with status ``"error"``."""
        try:
            current = int(row.current) if self.classes else None
            target = parse_target(self.ensemble, task.target, current, task.probability)
            problem = self._problem(row.coded, target, task.cost, task.space, task.constraints, task.plausibility)
            asked = _Asked(row, task, self._detector(task.plausibility, target))
            found = explain_several(partial(self._solve, asked), problem, task.several)
            if task.diagnose and found[0].status == "infeasible":
                found[0] = self._diagnosed(asked, problem, found[0])
            return found
        except OcfError as error:
            return [self._failed(row, task, str(error))]
        except Exception as error:  # one failing row never loses the others
            logger.exception("row %r failed", row.label)
            return [self._failed(row, task, f"internal error: {type(error).__name__}: {error}")]

    def _failed(self, row: Row, task: Task, message: str) -> Explanation:
        target = None if isinstance(task.target, str) and task.target == "opposite" else task.target
        predicted = self.classes[int(row.current)] if self.classes else row.current
        return failed(row.label, row.original, "error", message, predicted=predicted, target=target)

    def _formulation(self, asked: str, cost: Cost, split_margin: float, priced: bool, wish: Plausibility | None) -> str:
        """The formulation that is asked for, or the one that fits."""
        check_formulation(asked)
        if not (np.isfinite(split_margin) and split_margin >= 0):
            raise ProblemError(f"split_margin must be a number of at least 0, not {split_margin!r}")
        oblique = self.ensemble.is_oblique or (wish is not None and wish.has_hyperplanes)
        single = self._single(wish)
        of_tree = split_margin > 0 or priced
        if asked == AUTO:
            asked = ("oblique" if single or of_tree else "hyperplanes") if oblique or of_tree else "interval"
        if of_tree and asked != "oblique":
            raise ProblemError(f"class costs and split margins need formulation='oblique', not {asked!r}")
        if asked == "oblique" and not single:
            raise ProblemError(
                "the formulation 'oblique' (and class costs and split margins with it) goes through the leaves of a "
                f"single tree; the model has {self.ensemble.n_trees}, and a plausibility adds more: use 'hyperplanes'"
            )
        if oblique and asked not in VALUE_FORMULATIONS:
            raise ProblemError(
                f"the model, or its isolation forest, has oblique splits, which {asked!r} has no cells for: use "
                "'hyperplanes'"
            )
        return asked

    def _single(self, wish: Plausibility | None) -> bool:
        """Whether the model is one tree, to which no plausibility adds others."""
        return self.ensemble.n_trees == 1 and wish is None

    def query(self, problem: Problem, options: SolverOptions | None = None, solver: str = "highs") -> Query:
        """The problem of a single tree, leaf by leaf; see `ocf.solve.leaf_search`."""
        if problem.penalty is not None:
            raise ProblemError("a plausibility with a weight has no model with hyperplanes: ask for a least depth")
        part = self._tree_partition(problem)
        if id(part) not in self._searches:
            self._searches[id(part)] = TreeSearch(part)
        return Query(self._searches[id(part)], problem, options or SolverOptions(), solver)

    def confirms(self, row: Row, problem: Problem, point: FloatArray, detector: Detector | None = None) -> bool:
        """Whether the user's own model gives the target to a coded point, and the detector takes it for no outlier."""
        table = counterfactual_frame(problem.space, row.original, row.coded, point)
        return bool(self.model.meets(problem.target, table)[0]) and (detector is None or detector.accepts(table))

    def _solve_leaves(self, asked: _Asked, problem: Problem, begin: float) -> Explanation:
        """Explain a row by a model over values."""
        row, task = asked.row, asked.task
        query, outcome, problem = self._by_value(asked, problem)
        checked: dict[str, Any] = {}
        if task.cross_check:
            other = second_value_way(Way(task.formulation, task.solver), self._single(task.plausibility))
            again = replace(task, formulation=other.formulation, solver=other.solver)
            second_query, second, _ = self._by_value(asked._replace(task=again), problem)
            first = Way(task.formulation, query.method_name)
            other = Way(other.formulation, second_query.method_name)
            asked_twice = {r.solver for r in outcome.results} & {r.solver for r in second.results}
            if other.formulation == first.formulation and asked_twice:
                raise ProblemError(f"nothing here checks {first.solver!r} on {first.formulation!r} independently")
            checked["cross_check"] = compare(first, outcome, other, second)
            outcome = judged(outcome, checked["cross_check"])
        seconds = time.perf_counter() - begin
        return self.explanation_of(row, task, problem, outcome, seconds, query, asked.detector, checked)

    def _by_value(self, asked: _Asked, problem: Problem) -> tuple[Query, Outcome, Problem]:
        """What a model over values answers, and the problem whose target the answer meets."""
        row, task = asked.row, asked.task
        query = self.query(problem, task.options, task.solver)
        detector = asked.detector if problem.plausibility is not None else None
        confirm = partial(self.confirms, row, problem, detector=detector)
        if task.formulation == "hyperplanes":
            return query, solve_globally(query, confirm), problem
        offsets = class_offsets(self.classes, problem, dict(task.class_costs)) if task.class_costs else None
        answers, outcome = solve_leaves(query, confirm, eps=task.split_margin, offsets=offsets)
        if offsets is not None and outcome.point is not None:
            # the answer is the cheapest change into its own class, of which it can be verified
            tree = problem.ensemble
            decided = int(tree.decide(tree.base_score + tree.contributions)[answers[0].leaf])
            problem = replace(problem, target=ClassTarget(decided))
        return query, outcome, problem

    def explanation_of(
        self,
        row: Row,
        task: Task,
        problem: Problem,
        outcome: Outcome,
        seconds: float,
        query: Query,
        detector: Detector | None = None,
        checked: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Explanation of what a query found, verified."""
        method = task.method(Way(task.formulation, query.method_name), outcome) | dict(checked or {})
        times = {"build": query.matrix.build_seconds, "compile": query.matrix.compile_seconds}
        if query.matrix_is_old:
            times = dict.fromkeys(times, 0.0)
        return self.explained(
            row,
            problem,
            outcome,
            method={**method, "solver_version": query.version or method["solver_version"]},
            times={**times, **outcome.times, "total": seconds},
            detector=detector,
        )

    def explained(self, row: Row, problem: Problem, outcome: Outcome, **said: Any) -> Explanation:
        """Explanation of an outcome, verified; see `ocf.explain.answers.from_outcome`."""
        why = self.unproven(problem, said.get("detector"))
        if why:
            outcome = unproven(outcome, why)
            said["ties_complete"] = False if said.get("ties_complete") else said.get("ties_complete")
        return from_outcome(
            outcome,
            problem,
            row=row.label,
            original=row.original,
            predicted=row.current,
            classes=self.classes,
            model=self.model,
            **said,
        )

    def _diagnosed(self, asked: _Asked, problem: Problem, explanation: Explanation) -> Explanation:
        """The explanation of an infeasible row with the wishes that conflict."""
        options = replace(asked.task.options, mip_gap=1e9)  # any point will do
        asked = asked._replace(task=replace(asked.task, options=options))

        def infeasible(relaxed: Problem) -> bool:
            if asked.task.formulation in VALUE_FORMULATIONS:
                return self._by_value(asked, relaxed)[1].status is Status.INFEASIBLE
            alternatives = self.alternatives(relaxed)
            way = choose(alternatives[0], asked.task.formulation, asked.task.solver)
            return self._answer(asked, alternatives, way).outcome.status is Status.INFEASIBLE

        found = conflict(problem, infeasible)
        said = "these cannot hold together" if len(found) > 1 else "what stands in the way"
        words = f"{said}: {'; '.join(found)}" if found else NO_CONFLICT
        return replace(explanation, conflict=found, message="; ".join(filter(None, [explanation.message, words])))

    def _solve(self, asked: _Asked, problem: Problem, excluded: tuple[IntArray, ...]) -> Explanation:
        begin = time.perf_counter()
        row, task = asked.row, asked.task
        if task.formulation in VALUE_FORMULATIONS:
            return self._solve_leaves(asked, problem, begin)
        alternatives = tuple(cells.with_(excluded=excluded) for cells in self.alternatives(problem))
        way = choose(alternatives[0], task.formulation, task.solver)
        answer = self._answer(asked, alternatives, way)
        outcome, method = answer.outcome, task.method(way, answer.outcome)
        if task.cross_check:
            other = second_way(alternatives[0], way)
            unaided = asked._replace(task=replace(task, reduce=False, n_optimal=1))
            second = self._answer(unaided, alternatives, other).outcome
            method["cross_check"] = compare(way, outcome, other, second)
            outcome = judged(outcome, method["cross_check"])
        return self.explained(
            row,
            problem,
            outcome,
            method=method,
            times={**answer.built, **outcome.times, "total": time.perf_counter() - begin},
            detector=asked.detector,
            ties=answer.ties,
            ties_complete=answer.complete,
            ranges=answer.ranges,
        )

    def _answer(self, asked: _Asked, alternatives: tuple[CellProblem, ...], way: Way) -> _Answer:
        """Solve a problem of a row in one way."""
        row, task = asked.row, asked.task
        problem = alternatives[0].problem
        target = problem.target
        detector = asked.detector if problem.plausibility is not None else None
        built = {"build": 0.0, "compile": 0.0}
        # cells that are the row's own serve no other row
        kept = {} if problem.cuts_cells else self._compiled

        def compiled(k: int) -> Compiled:
            key = (way.formulation, target, k, *self._key(_missing(row.coded), detector, problem.space))
            if key not in kept:
                kept[key] = compile_formulation(way.formulation, alternatives[k])
                built["build"] += kept[key].build_seconds
                built["compile"] += kept[key].compile_seconds
            return kept[key]

        def confirm(point: FloatArray) -> bool:
            if detector is None and target.probability is None and np.array_equal(point, row.coded, equal_nan=True):
                return bool(target.met_by(np.array([row.current]))[0])  # the model was asked when the batch began
            table = counterfactual_frame(problem.space, row.original, row.coded, point)
            return bool(self.model.meets(target, table)[0]) and (detector is None or detector.accepts(table))

        def others() -> list[Solver | CellSolver]:
            return [self._solver(name) for name in other_solvers(alternatives[0], way)]

        forms = [partial(compiled, k) for k in range(len(alternatives))]
        solver = self._solver(way.solver)
        outcome = solve_alternatives(
            alternatives,
            forms,
            solver,
            task.options,
            confirm=confirm,
            candidates=self._known_cells(problem, alternatives[0].partition, detector),
            use_reduction=task.reduce,
            others=others if task.solver == AUTO else tuple,
        )
        if alternatives[0].values is not None and not outcome.message:
            outcome = replace(outcome, message=alternatives[0].values.remark())
        if task.n_optimal == 1 or outcome.status is not Status.OPTIMAL or task.options.mip_gap > 0:
            return _Answer(outcome, built)
        points, complete = tied_points(
            outcome, alternatives, forms, solver, task.options, confirm=confirm, limit=task.n_optimal
        )
        ranges = [] if alternatives[0].couples else [same_cost(alternatives[0], point) for point in points]
        return _Answer(outcome, built, points[1:], complete, ranges)

    def _solver(self, name: str) -> Solver | CellSolver:
        """The solver object, kept between rows."""
        if name not in self._solvers:
            self._solvers[name] = get_solver(name)
        return self._solvers[name]

    def _known_cells(self, problem: Problem, part: Partition, detector: Detector | None) -> IntArray:
        """Distinct cells of the data's rows that have the target."""
        if problem.cuts_cells:
            return np.unique(part.locate(self._known_rows_of(problem.target)), axis=0)
        key = (problem.target, *self._key(_missing(problem.origin), detector, problem.space))
        if key not in self._candidates:
            rows = self._known_rows_of(problem.target)
            self._candidates[key] = np.unique(part.locate(rows), axis=0)
        return self._candidates[key]

    def _known_rows_of(self, target: Target) -> FloatArray:
        """Coded rows of the data that have a target."""
        if target not in self._known_targets:
            met = self.model.meets(target, self.space.to_frame(self._coded)) if len(self._coded) else slice(0)
            self._known_targets[target] = self._coded[met]
        return self._known_targets[target]

    def __getstate__(self) -> dict[str, Any]:
        """State for worker processes; solver objects and encoders are made anew there."""
        fresh: dict[str, Any] = {"_solvers": {}, "_searches": {}, "_detectors": {}}
        return {**self.__dict__, **fresh, "model": self.model.native, "_encodings": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.model = as_user_model(self.model)


def _why_unproven(step: str, unsteady: tuple[str, ...]) -> str:
    """Why nothing is proven through a preprocessing, in words; empty where proofs hold."""
    if step:
        return (
            f"nothing is proven through {step}, which ocf does not know by its class and can only try at some values; "
            "give ocf the table after that step for a proof"
        )
    if unsteady:
        return (
            f"nothing is proven: rounding makes the preprocessing of {listed(unsteady)} go back and forth next to a "
            "threshold; give ocf the table after the preprocessing for a proof"
        )
    return ""


def _mask(places: frozenset[int], n: int) -> BoolArray:
    return np.isin(np.arange(n), list(places))


def _missing(origin: FloatArray) -> frozenset[int]:
    return frozenset(np.flatnonzero(np.isnan(origin)).tolist())

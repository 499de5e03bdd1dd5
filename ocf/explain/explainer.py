"""The Python interface: an Explainer of one model, asked about rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from numpy.typing import ArrayLike

from ocf.cells.cell_problem import CellProblem
from ocf.errors import DataError
from ocf.explain.answer_box import AnswerBox, box_of
from ocf.explain.asking_back import ASK, ASKED, refuse_to_overwrite, write_down
from ocf.explain.data_tables import space_of_table, warn_of_few
from ocf.explain.explanation import Explanation, Explanations
from ocf.explain.model_explainer import ModelExplainer
from ocf.explain.question import TIME_LIMIT, Question
from ocf.explain.regions import Regions, refuse_without_boxes
from ocf.explain.said import settings_said, with_file_defaults
from ocf.explain.tree_asking import TreeAsking
from ocf.features.frames import kind_of
from ocf.features.inference import as_table
from ocf.features.space import FeatureSpace
from ocf.models.known_rows import read_known_rows
from ocf.models.labels import LabelledRows
from ocf.models.plausibility import Plausibility
from ocf.models.user_model import as_user_model
from ocf.problem.constraints import Constraint
from ocf.problem.costs import Cost
from ocf.problem.missing import Missing
from ocf.problem.problem import Problem
from ocf.solve.method import AUTO
from ocf.solve.prepared import PreparedModel
from ocf.solvers.result import SolverOptions
from ocf.support.limits import memory_of, within

if TYPE_CHECKING:
    from ocf.solve.leaf_query import Query


class Explainer(ModelExplainer[TreeAsking]):
    """Finds optimal counterfactuals of one model.

    Parameters
    ----------
    model : estimator, Pipeline, or path of a model file
        Fitted trees of a library that ocf reads; the manual's page on models names them. A Pipeline may encode and
        scale; users then speak in the units and words of the table that the Pipeline takes.
    data : table or array (n, n_columns), optional
        Ideally the training data: bounds, scales, categories and first incumbents come from it. Needed unless
        `features` is a FeatureSpace. A DataFrame of pandas, polars or another library that narwhals knows, a pyarrow
        table, a structured array, a dict of columns, or a list of dicts. A Pipeline is asked about tables of that kind.
    features : mapping of feature name to settings, FeatureSpace, or path of a problem file, optional
        See `ocf.features.inference.infer_space` for the settings. ``"ask"`` writes what was read from the data to
        ``problem.toml`` in the current directory: edit it, and give that path in its place. What such a file says of
        questions, in ``[solve]`` and ``[plausibility]``, holds where `explain` and the others are not told otherwise.
    groups : bool, optional
        Whether indicator columns of one category, as ``pandas.get_dummies`` makes them, are recognised and change
        together; by default they are. Naming one of the columns in `features` keeps its group apart, too.
    labels : array_like (n,), optional
        True classes (of a regressor: values) of the rows of the data. Plausibility is then that of the rows with the
        target by their labels; see `ocf.Plausibility`.
    check : bool
        Whether to check the reading of the model against the library at every threshold.
    special_values : sequence of number, or mapping of feature name to such, optional
        Codes such as ``[-9, -8, -7]`` that stand for something else than their number, "no record" for example: levels
        beside the numbers. Bounds and scales are those of the other values, and a code of a row stays unless `missing`
        says otherwise. Of a sequence each number column has all.
    missing : bool or mapping, optional
        As in `explain`, where it does not say otherwise.
    monotone : mapping of step name to {"increasing", "decreasing"}, optional
        Your word on the functions of FunctionTransformers that ocf does not know: that each column that they give is
        monotone in the one that they take. Proofs then rest on it, and the answers say so. A step inside another is
        named by both, with two underscores between, or by its own name.
    trust_pickle : bool
        Whether `model` may be the path of a pickle or joblib file.
    output : int or str, optional
        Which output of a model that predicts several at once, such as a MultiOutputClassifier or a forest fitted on
        several columns: its number, counted from 0.
    memory_limit : float or str, optional
        As in `explain`, while the model is read, checked and cut into cells.

    Attributes
    ----------
    space : FeatureSpace
        Printing it, or the explainer, tells in a few lines how the table was read.
    classes : tuple
        Class labels; empty for a regressor.
    said : dict
        The problem file's settings of `explain`.

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
        groups: bool | None = None,
        labels: Any = None,
        check: bool = True,
        special_values: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
        missing: Any = None,
        monotone: Mapping[str, str] | None = None,
        trust_pickle: bool = False,
        output: int | str | None = None,
        memory_limit: float | str | None = None,
    ) -> None:
        constraints: tuple[Constraint, ...] = ()
        self.said: dict[str, Any] = {}
        if not isinstance(monotone, Mapping | None):
            raise DataError(f"monotone is a mapping of step names, such as {{'step': 'increasing'}}, not {monotone!r}")
        if features is not None and not isinstance(features, Mapping | FeatureSpace | str | Path):
            raise DataError(
                f"features is a mapping of descriptions by name, or a problem file, not a {type(features).__name__}; "
                "the true classes of the data are labels=…"
            )
        asked = isinstance(features, str) and features == ASK
        if asked:
            refuse_to_overwrite(ASKED)
            features = None
        if isinstance(features, str | Path):
            from ocf.problem.problem_file import read_problem_file

            said = read_problem_file(Path(features))
            features, constraints = said.features, said.constraints
            self.said = settings_said(said, labels)
            monotone = {**said.monotone, **(monotone or {})}
            groups = said.groups if groups is None else groups
            missing = said.solve.get("missing") if missing is None else missing
            special_values = said.special_values if special_values is None else special_values
        user_model = as_user_model(model, trust_pickle=trust_pickle, output=output).saying(monotone)
        table = None if data is None else as_table(data, user_model.columns)
        frames = kind_of(data)
        if table is not None:
            user_model = user_model.in_frames(frames, table.head(1))
        space = space_of_table(user_model, table, features, special_values, groups=groups is not False)
        if table is None:
            row = space.to_frame(read_known_rows(space, None, user_model.decide).base(space)[None])
            user_model = user_model.in_frames(kind_of(row), row)
        warn_of_few(space)
        labelled = None if labels is None else LabelledRows.of(table, labels, user_model.classes)
        with within(memory=memory_of(memory_limit)):
            prepared = PreparedModel(user_model, space, table, check=check, labelled=labelled)
        super().__init__(TreeAsking(prepared, frames, Missing.parse(missing), constraints))
        if asked:
            write_down(space, self.classes, ASKED)

    @property
    def prepared(self) -> PreparedModel:
        """What is prepared once for the model: its trees, its data, and their cells."""
        return self.asking.prepared

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Those of the problem file; `explain` uses them unless it is given others."""
        return self.asking.constraints

    @property
    def missing(self) -> Missing | None:
        """What may happen to missing values where `explain` does not say so."""
        return self.asking.missing

    # -- problems ------------------------------------------------------------------------------------------

    @with_file_defaults
    def problem(
        self,
        row: pd.DataFrame | pd.Series[Any] | ArrayLike,
        target: Any = "opposite",
        norm: str | Mapping[str, float] | Cost = "l1",
        *,
        probability: float | None = None,
        weights: Mapping[str, float | tuple[float, float]] | None = None,
        features_to_vary: Iterable[str] | Literal["all"] = "all",
        permitted_range: Mapping[str, Iterable[Any]] | None = None,
        round_to: Any = None,
        margin: float | Mapping[str, float] = 0.0,
        plausibility: Any = None,
        constraints: Constraint | Sequence[Constraint | Mapping[str, Any]] | None = None,
        missing: Any = None,
    ) -> Problem:
        """The problem of one row, as the formulations see it.

        Parameters
        ----------
        row : one-row DataFrame, Series, or array (n_columns,)
        target, norm, probability, weights, features_to_vary, permitted_range, round_to, margin
            As in `explain`.
        plausibility, constraints, missing
            As in `explain`.
        """
        question = Question(
            target,
            norm,
            probability=probability,
            weights=weights,
            features_to_vary=features_to_vary,
            permitted_range=permitted_range,
            round_to=round_to,
            margin=margin,
            plausibility=plausibility,
            constraints=constraints,
            missing=missing,
        )
        asking = self.asking
        frame, coded, task = asking.read(asking.one_row_of(row), question)
        return asking.pose(asking.asked_rows(frame, coded, task)[0], task)

    def cells(self, problem: Problem) -> CellProblem:
        """The finite form of a problem of this explainer whose target has a single alternative."""
        return self.prepared.cells(problem)

    def alternatives(self, problem: Problem) -> tuple[CellProblem, ...]:
        """The finite forms of a problem of this explainer, one per alternative of its target."""
        return self.prepared.alternatives(problem)

    def query(self, problem: Problem, options: SolverOptions | None = None, solver: str = AUTO) -> Query:
        """The problem of a single tree, leaf by leaf; see `ocf.solve.leaf_search`.

        Parameters
        ----------
        problem : Problem
            Of this explainer.
        options : SolverOptions, optional
        solver : str
            As in `ocf.solve.leaf_query.Query`.
        """
        return self.asking.leaves.query(problem, options or SolverOptions(), solver)

    # -- explanations --------------------------------------------------------------------------------------

    @with_file_defaults
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
        round_to: Any = None,
        margin: float | Mapping[str, float] = 0.0,
        split_margin: float = 0.0,
        class_costs: Mapping[Any, float] | None = None,
        plausibility: Any = None,
        constraints: Constraint | Sequence[Constraint | Mapping[str, Any]] | None = None,
        missing: Any = None,
        imputations: Any = None,
        share: float = 1.0,
        n_explanations: int = 1,
        diversity: str = "features",
        min_distance: float = 0.1,
        diagnose: bool = False,
        formulation: str = AUTO,
        solver: str = AUTO,
        time_limit: float | None = TIME_LIMIT,
        memory_limit: float | str | None = None,
        mip_gap: float = 0.0,
        threads: int = 1,
        seed: int = 0,
        log: bool = False,
        options: Mapping[str, Any] | None = None,
        cuts: str = "none",
        reduce: bool = True,
        cross_check: bool = False,
        n_optimal: int = 1,
        box: bool = False,
        break_ties: bool = True,
        n_jobs: int = 1,
        progress: bool | None = None,
        checkpoint: str | Path | None = None,
    ) -> Explanations:
        """Find the cheapest change of each row that gives it the target.

        Parameters
        ----------
        X : table, Series, dict, list of dicts, or array (n, n_columns) or (n_columns,)
            The tables of the answers are of the same kind, or else of that of the data.
        target : class label, "opposite", collection of class labels, or (lowest, highest)
            ``"opposite"`` is the other class of a binary model, for each row its own. Of several labels any will do.
            For a regressor an interval of its prediction, such as ``(200_000, 250_000)``; None for an open end.
        norm : {"l0", "l1", "l2", "mahalanobis", "mahalanobis_l1"}, mapping such as ``{"l0": 0.1, "l1": 1}``, or Cost
            l2 and the Mahalanobis distance, by the data's covariance, are squared; see
            `ocf.problem.quadratic.quadratic_cost`
            for any other quadratic form. Distances are in units of each feature's scale.
        probability : float, optional
            Least probability, by the model's ``predict_proba``, of the target class or of some one of its classes, in
            the place of the decision for it. More than one half implies the decision.
        weights : mapping of feature name to weight or (down, up)
        features_to_vary : "all" or list of names
            The others are fixed.
        permitted_range : mapping of feature name to (lowest, highest), None for no end, or to the allowed levels
        round_to : "data", int, or mapping of feature name to one of these, optional
            New values are human numbers: on the grid that the data use (multiples of 50 where these are), or with so
            many significant digits of the feature's range. What is proven is proven of such answers; see
            `ocf.features.rounding.rounded_space`.
        margin : float or mapping of feature name to float
            Each value that changes stands at least this far from the thresholds that it passes, in each feature's
            scale, or for the features of a mapping in their own units: an answer just over a threshold will not do. The
            model gives the same answer where such values, one or all, fall short by less. Thresholds are those of the
            splits on the way of the answer; whole numbers up to a million, and as many of a `step`, count from the
            threshold as the library shows it, or, behind steps of a Pipeline, from where it lies between two of them;
            others from the last value that it sends left, in float32.
        split_margin : float
            For single trees: by how much every split of the path must hold, in units of its own total (oblique,
            section 3.9). Of a single number, the last value t that the tree itself sends left counts: left of the split
            are values up to ``t - split_margin``, right of it those from ``t + split_margin`` on. Scikit-learn compares
            in float32, so t lies a hair above the threshold b that it shows, and on a grid ``b - split_margin`` will
            do, while ``b + split_margin`` is not enough. Of a single column of levels, or of 0 and 1, it says nothing.
        class_costs : mapping of class label to float, optional
            For single trees, in the place of `target`: all these classes will do, and ending in one adds its cost to
            that of the change (oblique, section 3.9). The explanation is that of the class that comes out.
        plausibility : bool, mapping, isolation forest, or Plausibility, optional
            Keep to points that an isolation forest does not take for outliers among the rows of the target; see
            `ocf.Plausibility` for the settings. True: a forest is fitted on those rows, and the answer is as deep in it
            as nine of ten of them.
        constraints : sequence of Constraint
            Relations between features that every counterfactual must respect: see `ocf.problem.constraints`.
        missing : bool or mapping, optional
            What may happen to values that a row misses, or that are special: ``{"cost_of_supplying": 2.0}`` (or a
            number by feature) lets the answer supply them, ``{"may_become_missing": True,
            "cost_of_becoming_missing": 1.0}`` lets values go missing; see `ocf.problem.missing.Missing`. True:
            supplying one costs 1. By default they stay as they are, and no value becomes missing.
        imputations : table, or mapping of row label to table, optional
            Completions of the values that a row misses, such as the draws of a multiple imputation: a row for each
            completion, with just the missing columns. The answer changes the other features, and gets the target
            whichever completion is true. What the row misses stays missing. With a plausibility a completion counts
            where it is deep enough in the isolation forest, too.
        share : float
            Least share of the completions that must get the target; 1 for all.
        n_explanations : int
            How many of each row: the best, then the best that differs from all before it.
        diversity : {"features", "region", "distance"}
            How they differ: in that some feature stays which an earlier one changes, in the leaf of some tree (the same
            changes by other amounts, often; intervals of a column that a split sends to one leaf, as behind bins, count
            as leaves), or by `min_distance` (l1, in units of the features' scales).
        min_distance : float
        diagnose : bool
            Whether to find out which of your wishes conflict when a row is proven infeasible; see
            `Explanation.conflict`.
        formulation : str
            See `ocf.formulations.FORMULATIONS`; the box search takes its bounds from ``"interval"``. By default
            ``"oblique"`` (leaf by leaf) for single trees with oblique splits or a split margin,
            ``"hyperplanes"`` for several trees with oblique splits, and ``"interval"`` otherwise. ``"ocean"`` with
            oblique splits is ``"ocean_hyperplanes"``, that paper's model of them.
        solver : str
            ``"auto"`` chooses (`ocf.solve.method.choose`), and ``method["why"]`` of the answer says why. Or one of
            `ocf.solvers.SOLVERS`, or ``"box"``: the exact box branch-and-bound. Leaves of oblique trees are given to
            the solver that is asked for, each an LP or a QP; ``"auto"`` tries methods of our own first.
        time_limit : float or None
            Seconds for each answer, with all that it takes: posing, building, solving, placing, checking. Each further
            explanation, a cross-check and each question of a diagnosis have as many again. None for no limit. Where it
            strikes, the answer says so, and what to do next. A limit that you state covers compiling the kernels, once
            on a machine, too; in the default they are compiled before the time of a row begins.
        memory_limit : float or str, optional
            Bytes that a process may hold, or an amount such as ``"4 GB"``. What needs more ends in an error before it
            is made, a search that has grown too large with what it knows. Default: what the process holds, and three
            quarters of what the machine, or the process's control group, has free.
        mip_gap : float
            Relative gap at which a row may stop; 0 asks for a proof.
        threads, seed, log, options
            As in `ocf.solvers.result.SolverOptions`.
        cuts : str
            ``"root"``: before HiGHS or SCIP gets a model over cells, rounds of cuts between trees tighten it
            (`ocf.solvers.root_cuts`), which solve the whole matrix then, by default HiGHS. ``"none"``, the default, is
            faster: boxes of cells are halved so.
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
        box : bool
            Whether to find the largest box around each answer, too, in which the model gives the target; constraints
            may be broken in it. See `largest_box` and `Explanation.box`.
        break_ties : bool
            Whether the answer is the best of those that cost the same: the least by l1, and of these the one with the
            fewest changes, proven as the cost is; ``method["ties"]`` says by what. Not where constraints relate values
            within cells, nor of costs of your own, of a Mahalanobis distance, or of a plausibility with a weight.
        n_jobs : int
            Rows solved at the same time, in processes of their own; -1 for one per core. Processes take seconds to
            start: of more than 32 rows the first are solved here, and others only where they take longer than that.
        progress : bool, optional
            Progress bar on stderr; by default only on a terminal and for several rows.
        checkpoint : path, optional
            File to which each finished row is written at once (of several processes, a few seconds' rows), and from
            which the rows are taken that it holds: a batch that was stopped goes on where it was. Rows that failed are
            done again. A file of another model, other rows or another question is refused. What is taken from it has
            no `problem`.

        Returns
        -------
        Explanations
            One per row, or `n_explanations`, in order. Rows that are the same to the last bit are solved once, and all
            but the first have `times` of 0. A row that fails, or cannot be read, has status ``"error"`` and
            a message; the others are kept. After Ctrl-C the rows that are not finished have status ``"interrupted"``.
        """
        asked = {name: value for name, value in locals().items() if name not in ("self", "X")}
        return self.asking.ask(X, Question(**asked))

    def largest_box(
        self, explanation: Explanation, *, time_limit: float | None = None, memory_limit: float | str | None = None
    ) -> AnswerBox:
        """The largest box around an answer in which every admissible point has the target, by the user's own model.

        An answer is seldom met to the digit: within the box, values may be missed, all at once. Admissible is what the
        features may become; constraints and plausibility, which say which answer is wanted, do not bear on it. Largest
        is the sum over features of the part of their admissible range that the box covers, proven where
        `AnswerBox.proven` says so. No side of it can then be moved out by itself either.

        Parameters
        ----------
        explanation : Explanation
            With a counterfactual, as `explain` of this explainer gave it.
        time_limit, memory_limit
            As in `explain`; after that the best box so far is given, with a bound on the width of any.

        Raises
        ------
        ProblemError
            There is no counterfactual, splits are oblique, or nothing is proven through the user's preprocessing.
        """
        with within(time_limit, memory_of(memory_limit)):
            return box_of(self.prepared, explanation)

    @with_file_defaults
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
        round_to: Any = None,
        plausibility: Any = None,
        constraints: Constraint | Sequence[Constraint | Mapping[str, Any]] | None = None,
        limit: int | None = 1000,
        time_limit: float | None = None,
        memory_limit: float | str | None = None,
    ) -> Regions:
        """All regions around a row in which the model gives the target, as boxes in the user's units (box, (10)).

        Their number grows fast with the radius and the number of features: keep the radius near the cost of the
        nearest counterfactual, vary few features, or take regions from the iterator as long as they are wanted. The
        nearest come first, and `Regions.complete_to` is the cost up to which none is missing, at any time.

        Parameters
        ----------
        row : one-row DataFrame, Series, or array (n_columns,)
        target, norm, probability, weights, features_to_vary, permitted_range, round_to, plausibility, constraints
            As in `explain`; a plausibility as a requirement only. Missing values stay, whatever else was said of them.
            The nearest point of a region meets the constraints; others may break one of several features, such as a
            number of changes. Regions end at thresholds, whatever a problem file says of margins.
        radius : float
            Regions are listed whose nearest point costs at most this.
        limit : int, optional
            Most regions to list; `Regions.complete` says whether it cut the list off. None for no limit.
        time_limit : float, optional
            Seconds, from the moment that the first region is asked for. What was found until then is listed.
        memory_limit : float or str, optional
            As in `explain`.

        Returns
        -------
        Regions
            Found as they are asked for: iterate, or call `to_frame` or `plot`.

        Raises
        ------
        ProblemError
            Something couples the features, so that regions are no boxes.
        UnsupportedModelError
            Neither are they where the model has oblique splits.
        """
        wish = Plausibility.parse(plausibility)
        problem = self.problem(
            row,
            target,
            norm,
            probability=probability,
            weights=weights,
            features_to_vary=features_to_vary,
            permitted_range=permitted_range,
            round_to=round_to,
            margin=0.0,
            plausibility=wish,
            constraints=constraints,
            missing=False,
        )
        alternatives = self.alternatives(problem)
        refuse_without_boxes(alternatives[0], self.prepared.unproven(problem))
        return Regions(
            alternatives,
            self.model,
            self.prepared.detector(wish, problem.target),
            radius=radius,
            limit=limit,
            time_limit=time_limit,
            memory_limit=memory_of(memory_limit),
            relaxations=self.prepared.matrices("interval", alternatives).all,
            frames=self.asking.frames_of(row),
            row=self.asking.one_row_of(row),
        )

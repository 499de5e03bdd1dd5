"""What is prepared once for a model and its data, and shared by all rows: cells, known rows, matrices, solvers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_alternatives, to_cells
from ocf.cells.nearby import Pruner
from ocf.cells.partition import Partition
from ocf.errors import ProblemError
from ocf.features.space import FeatureSpace
from ocf.models.detector import Detector, make_detector
from ocf.models.encoding import Encoding
from ocf.models.foreseen import seconds_to_judge
from ocf.models.gaps import Gaps, posed
from ocf.models.indistinct import refuse_indistinct
from ocf.models.known_rows import read_known_rows
from ocf.models.labels import LabelledRows
from ocf.models.plausibility import Plausibility
from ocf.models.target_rows import MOST_TARGETS, RowsByTarget
from ocf.models.three_ways import check_cells, check_known, check_refused, check_three_ways, encoded, spread
from ocf.models.user_model import UserModel
from ocf.problem.constraints import Constraint
from ocf.problem.costs import Cost
from ocf.problem.lines import with_line_ends
from ocf.problem.missing import refuse_relations
from ocf.problem.problem import Problem
from ocf.problem.targets import Target
from ocf.readers.conformance import check_conformance
from ocf.solve.cuts import Cut, Cuts
from ocf.solve.judging import judge_of
from ocf.solve.matrices import KeptMatrices, Matrices
from ocf.solve.passed_rows import PassedRows
from ocf.solve.task import AskedRow
from ocf.solvers import CellSolver, Solver, get_solver
from ocf.support.kept import Kept
from ocf.support.limits import reserve
from ocf.trees.ensemble import Ensemble

if TYPE_CHECKING:
    from ocf.solve.tree_search import TreeSearch

#: Leaves of all trees beyond which a row looks only at those near it, and a check of the reading at so many of them.
MANY_LEAVES = 20_000

#: Leaves times trees of a check of the reading, and its leaves at least: 5,000 trees at 20,000 leaves, twice each by
#: the library, took LightGBM minutes.
MOST_SCORED, FEWEST_LEAVES = 20_000_000, 4_000

#: Bytes of a node, while a model is read, checked and cut into cells.
NODE = 700

#: Most rows of the data whose leaves are looked up in three ways.
MAX_CHECKED = 1000


class PreparedModel:
    """A model of trees and its data, with everything that one row makes and the next can use.

    Parameters
    ----------
    model : UserModel
    space : FeatureSpace
    table : DataFrame, optional
        The data; its rows that the model answers become the known rows.
    check : bool
        Whether to check the reading of the model against the library at every threshold.
    labelled : LabelledRows, optional
        The data with its labels.

    Attributes
    ----------
    data : KnownRows
        Rows of the data that the model answers.
    passed : PassedRows
        Rows that are asked about and need no more looks.
    judging : float
        Seconds in which the user's model judges an answer.
    """

    def __init__(
        self,
        model: UserModel,
        space: FeatureSpace,
        table: pd.DataFrame | None,
        *,
        check: bool,
        labelled: LabelledRows | None = None,
    ) -> None:
        self.model, self.space = model.over(space.columns).naming(space), space
        _reserve_for(len(self.model.trees.ensemble.kind))
        self.data = read_known_rows(space, table, self.model.decide)
        self.model = self.model.naming(space, self.data.base(space))
        self.ensemble = self.model.trees.ensemble
        self._rows = RowsByTarget(space, self.data, labelled)
        self._check = check
        checked = self.data.coded[:0] if table is None else space.from_frame(spread(table, MAX_CHECKED))
        self._cuts = Cuts(self.model, space, self.data, checked if check else None)
        self.encoding_of(space).check_width(self.ensemble.feature_names)  # refuses steps that are not read
        if check:
            complete = self.data.complete[:64] if len(self.data.complete) else self.data.base(space)[None]
            rows = None if table is None else self._cuts.encoded(self.space.to_frame(complete), self.model.encode)
            check_conformance(self.model.trees, rows, leaves_looked_at(self.ensemble))
        self.ensemble = self._cuts.ensemble
        if table is not None:
            refuse_indistinct(table, self.ensemble, self.encoding_of(space))
        self.passed = PassedRows(self._check_ways if check else None)
        self._detectors: Kept[tuple[Any, ...], Detector] = Kept(MOST_TARGETS)
        self._solvers: dict[str, Solver | CellSolver] = {}
        self.partition(Gaps())  # refuses what cannot be read before anything is asked
        if check and len(self.data.coded):
            answers = self._rows.decided(self.model)  # in the time of no row
            check_known(self.trees, self.encoding_of(space), self.data.coded, answers)
        self.judging = seconds_to_judge(self.model, space.to_frame(self.data.base(space)[None]))

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class labels; empty for a regressor."""
        return self.ensemble.decision.classes

    @property
    def trees(self) -> Ensemble:
        """The model's trees over features, of rows that miss nothing."""
        return self.partition(Gaps()).ensemble

    # -- from the user's features to cells -----------------------------------------------------------------

    def encoding_of(self, space: FeatureSpace) -> Encoding:
        """The way from features in the dtypes of `space` to model columns."""
        return self._cuts.encoding_of(space)

    def partition(self, gaps: Gaps, detector: Detector | None = None, space: FeatureSpace | None = None) -> Partition:
        """Cells of all trees.

        Parameters
        ----------
        gaps, detector, space
            As in `ocf.solve.cuts.Cuts.cut`.
        """
        return self._cuts.cut(gaps, detector, space).part

    def checked_cut(
        self, gaps: Gaps, detector: Detector | None, space: FeatureSpace, table: pd.DataFrame, coded: FloatArray
    ) -> Cut:
        """The cells of some rows, once these reach the same leaves in all three ways.

        Parameters
        ----------
        gaps : Gaps
        detector : Detector or None
        space : FeatureSpace
        table : DataFrame (n, n_columns)
            The rows in the user's columns.
        coded : (n, n_features) float64
            The same rows.
        """
        cut = self._cuts.cut(gaps, detector, space)
        if self._check:
            columns = encoded(self.model.encode, table)
            check_three_ways(self.ensemble, cut.lifted, columns, cut.part, space, coded)
        return cut

    def _check_ways(self, gaps: Gaps, space: FeatureSpace, columns: FloatArray, coded: FloatArray) -> None:
        """Refuse rows whose leaves are different in all three ways."""
        cut = self._cuts.cut(gaps, None, space)
        check_three_ways(self.ensemble, cut.lifted, columns, cut.part, space, coded)

    def tree_partition(self, problem: Problem) -> Partition:
        """The partition by the splits of the trees, those of isolation trees among them, and not by constraints."""
        return self._cuts.of_problem(problem).part

    def unproven(self, problem: Problem) -> str:
        """Why nothing is proven of a problem through the user's preprocessing; empty where proofs hold."""
        return self._cuts.unproven(problem)

    # -- problems ------------------------------------------------------------------------------------------

    def detector(self, wish: Plausibility | None, target: Target) -> Detector | None:
        """Isolation forest for a target, fitted on the rows of the data that have it where that is asked for.

        Parameters
        ----------
        wish : Plausibility or None
            None: there is no forest.
        target : Target
        """
        if wish is None:
            return None
        key = (wish.key, target)
        said, by = self._rows.said, wish.by
        return self._detectors.get(key, lambda: make_detector(wish, self.model, said(by, target, self.model), key))

    @property
    def detectors(self) -> tuple[Detector, ...]:
        """The isolation forests that were asked for so far."""
        return self._detectors.values()

    def problem(
        self,
        origin: FloatArray,
        target: Target,
        cost: Cost,
        space: FeatureSpace,
        constraints: tuple[Constraint, ...] = (),
        wish: Plausibility | None = None,
        *,
        fixed: bool = False,
    ) -> Problem:
        """The problem of one coded row in the dtypes of `space`.

        Parameters
        ----------
        origin : (n_features,) float64
            Coded; NaN where a value is missing.
        target : Target
        cost : Cost
        space : FeatureSpace
        constraints : tuple of Constraint
        wish : Plausibility, optional
        fixed : bool
            As in `ocf.models.gaps.posed`.
        """
        detector = self.detector(wish, target)
        origin, space = posed(origin, space, fixed=fixed)
        self.encoding_of(space).refuse_unknown(space, origin)
        refuse_relations(space, origin, cost, constraints)
        gaps = Gaps.of(origin, space)
        cut = self._cuts.cut(gaps, detector, space)
        if not self.passed.holds(origin, space):
            self.checked_cut(gaps, detector, space, space.to_frame(origin), origin[None])
        elif detector is not None and self._check:
            check_cells(cut.lifted, cut.part, space, origin[None])
        model = with_line_ends(cut.model, space, origin)
        return Problem(model, space, origin, target, cost, cut.depth, constraints)

    def cells(self, problem: Problem) -> CellProblem:
        """The finite form of a problem of this model whose target has a single alternative."""
        return to_cells(problem, self._shared_partition(problem))

    def alternatives(self, problem: Problem) -> tuple[CellProblem, ...]:
        """The finite forms of a problem of this model, one per alternative of its target."""
        return to_alternatives(problem, self._shared_partition(problem))

    def pruner(self, problem: Problem, *, small: bool = False) -> Pruner | None:
        """What leaves out the leaves far from a row, where there are too many to look at all of them.

        Where costs are no sums over features, that of a cell is no bound on that of its points, and all are looked at.

        Parameters
        ----------
        problem : Problem
        small : bool
            Also where there are few.
        """
        if not (small or self.ensemble.n_leaves > MANY_LEAVES) or not problem.costs_by_cell:
            return None
        return self._cuts.of_problem(problem).pruner

    def _shared_partition(self, problem: Problem) -> Partition | None:
        """The partition of all rows that miss the same values; None where a row's cells are its own."""
        shared = self._cuts.shared(problem)
        return None if shared is None else shared.part

    # -- what the user's model says ------------------------------------------------------------------------

    def current(self, coded: FloatArray, space: FeatureSpace | None = None) -> list[Any]:
        """Class index or value that the user's model gives each coded row, in the dtypes of `space`.

        Parameters
        ----------
        coded : (n, n_features) float64
        space : FeatureSpace, optional
            By default that of the data.
        """
        current: list[Any] = self.model.decide((space or self.space).to_frame(coded)).tolist()
        return current

    def judge(self, row: AskedRow, problem: Problem, detector: Detector | None = None) -> Callable[[FloatArray], bool]:
        """Who tells of a coded point whether the user's model gives it the target, and the detector no outlier.

        Parameters
        ----------
        row : AskedRow
        problem : Problem
            Of the row; without a plausibility the detector is not asked.
        detector : Detector, optional
        """
        return judge_of(self.model, row, problem, detector, partial(self._check_refused, problem))

    def _check_refused(self, problem: Problem, table: pd.DataFrame, point: FloatArray) -> None:
        """Refuse to go on where the user's model refuses a point for another reason than rounding."""
        if self._check and not self.unproven(problem):
            cut = self._cuts.of_problem(problem)
            way = (self.ensemble, cut.lifted, encoded(self.model.encode, table), cut.part)
            check_refused(*way, problem.space, point[None], np.asarray(self.model.decide(table)))

    def known_rows_of(self, target: Target) -> FloatArray:
        """Coded rows of the data that have a target."""
        return self._rows.coded(target, self.model)

    def known_points(self, problem: Problem) -> FloatArray:
        """Coded rows of the data that have the target; a feature that one lacks stays as it is in the row."""
        rows = self.known_rows_of(problem.target)
        rows = problem.space.with_missing(rows)
        return np.where(np.isnan(rows), problem.origin, rows)

    def known_cells(self, problem: Problem, part: Partition) -> IntArray:
        """Distinct cells of the data's rows that have the target.

        Parameters
        ----------
        problem : Problem
        part : Partition
            Of the problem.
        """
        shared = self._cuts.shared(problem)
        if shared is None or np.isnan(self.known_rows_of(problem.target)).any():
            return np.unique(part.locate(self.known_points(problem)), axis=0)
        rows = self.known_rows_of(problem.target)
        return shared.known.get(problem.target, lambda: np.unique(part.locate(rows), axis=0))

    # -- what solves ---------------------------------------------------------------------------------------

    def solver(self, name: str) -> Solver | CellSolver:
        """The solver object, kept between rows."""
        if name not in self._solvers:
            self._solvers[name] = get_solver(name)
        return self._solvers[name]

    def matrices(self, formulation: str, alternatives: tuple[CellProblem, ...]) -> Matrices:
        """The compiled formulation of each alternative of a problem, made when it is asked for.

        Parameters
        ----------
        formulation : str
            As in `ocf.formulations.FORMULATIONS`.
        alternatives : tuple of CellProblem
            All those of the problem.
        """
        problem = alternatives[0].problem
        # cells that are the row's own serve no other row
        shared = self._cuts.shared(problem)
        if shared is None or not shared.gives_values_of(problem):
            return Matrices(formulation, alternatives, KeptMatrices())
        return Matrices(formulation, alternatives, shared.matrices.get((formulation, problem.target), KeptMatrices))

    def tree_search(self, problem: Problem) -> TreeSearch:
        """What all queries of the leaves of one partition share.

        Raises
        ------
        ProblemError
            The problem is of another explainer, or from a file.
        """
        if not problem.cuts_cells and self._cuts.shared(problem) is None:
            raise ProblemError("the problem is of another explainer, or from a file: ask this one for it by problem(…)")
        return self._cuts.of_problem(problem).search

    def __getstate__(self) -> dict[str, Any]:
        """State for worker processes; solver objects and encoders are made anew there."""
        return {**self.__dict__, "_solvers": {}, "_detectors": Kept(MOST_TARGETS)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.model = self._cuts.model = self.model.naming(self.space, self.data.base(self.space))


def leaves_looked_at(ensemble: Ensemble) -> int | None:
    """At how many leaves the reading is checked; None: all. At each the scores of all trees are compared."""
    if ensemble.n_leaves <= MANY_LEAVES:
        return None
    return min(MANY_LEAVES, max(MOST_SCORED // ensemble.n_trees, FEWEST_LEAVES))


def _reserve_for(nodes: int) -> None:
    """Refuse a model that does not fit into memory."""
    reserve(NODE * nodes, f"checking the model's {nodes} nodes and cutting them into cells")

"""From a question about a linear model to tasks, problems and explanations of rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import DataError, ProblemError
from ocf.explain.asking import Asking
from ocf.explain.question import OF_SOLVING, Question
from ocf.features.frames import FrameKind
from ocf.features.row_dtypes import in_dtypes_of
from ocf.problem.costs import Cost
from ocf.problem.linear_problem import LinearProblem
from ocf.problem.targets import wanted_class
from ocf.solve.linear_engine import LinearEngine
from ocf.solve.method import AUTO
from ocf.solve.prepared_linear import PreparedLinear
from ocf.solve.task import AskedRow, Task
from ocf.support.messages import listed

#: Name of the one formulation.
LINEAR = "linear"

#: Settings of a question that a linear model has a use for, or honours as it is: it reduces nothing and breaks no ties.
HEEDED = (
    "target",
    "norm",
    "weights",
    "features_to_vary",
    "permitted_range",
    "round_to",
    "margin",
    *OF_SOLVING,
    "cross_check",
    "break_ties",
    "n_jobs",
    "progress",
    "checkpoint",
)


class LinearAsking(Asking[LinearProblem]):
    """Explains rows of one linear model.

    Parameters
    ----------
    prepared : PreparedLinear
    frames : FrameKind
        Of the data.
    """

    prepared: PreparedLinear

    def __init__(self, prepared: PreparedLinear, frames: FrameKind) -> None:
        super().__init__(prepared, (LinearEngine(),), frames)

    def read(self, frame: pd.DataFrame, question: Question) -> tuple[pd.DataFrame, FloatArray, Task]:
        """Rows, the same coded, and what is asked of them, in their dtypes.

        Parameters
        ----------
        frame : DataFrame (n, n_columns)
        question : Question
        """
        if beyond := question.beyond(HEEDED):
            raise ProblemError(f"linear models take no {listed(beyond)}: leave that out, it is for trees")
        if question.formulation not in (AUTO, LINEAR):
            raise ProblemError(f"linear models have the formulation {LINEAR!r}, not {question.formulation!r}")
        if isinstance(question.margin, Mapping):
            raise ProblemError("the margin of a linear model is one number: by how much its decision value must win")
        coded = self.space.from_frame(frame)
        if np.isnan(coded).any():
            raise DataError("a row has missing values, and a linear model has no rule for them: fill them in")
        cost = Cost.parse(question.norm)
        if cost.beyond_norms:
            raise ProblemError(
                "linear models take a mix of the norms l0, l1 and l2, not a quadratic cost or a distance"
            )
        space, coded = in_dtypes_of(question.space_of(self.space, known=self.prepared.rows), frame, coded)
        task = Task(
            target=question.target,
            cost=cost,
            space=space,
            formulation=LINEAR,
            solver=question.solver,
            split_margin=question.margin,
            options=question.solver_options,
            reduce=False,
            cross_check=question.cross_check,
        )
        return frame, coded, task

    def check(self, coded: FloatArray, task: Task) -> None:
        """Refuse a target that means nothing, whatever the row.

        Parameters
        ----------
        coded : (n, n_features) float64
        task : Task
        """
        wanted_class(task.target, self.classes, 0)

    def pose(self, row: AskedRow, task: Task) -> LinearProblem:
        """The problem of a row.

        Parameters
        ----------
        row : AskedRow
        task : Task
        """
        target = wanted_class(task.target, self.classes, int(row.current))
        return self.prepared.problem(row.coded, target, task.cost, task.space)

"""From a problem to its finite forms over cells, one for each alternative of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocf.cells.cell_problem import CellProblem, free_forms
from ocf.cells.constraint_trees import constrain
from ocf.cells.partition import partition
from ocf.errors import ProblemError

if TYPE_CHECKING:
    from ocf.cells.partition import Partition
    from ocf.problem.problem import Problem


def to_cells(problem: Problem, part: Partition | None = None) -> CellProblem:
    """The finite form of a problem whose target has a single alternative.

    Parameters
    ----------
    problem : Problem
    part : Partition, optional
        Of the problem's ensemble, if it is at hand from another row.

    Raises
    ------
    ProblemError
        The target is a union.
    """
    forms = to_alternatives(problem, part)
    if len(forms) > 1:
        raise ProblemError(f"the target has {len(forms)} alternatives, each a problem of its own: ask for one class")
    return forms[0]


def to_alternatives(problem: Problem, part: Partition | None = None) -> tuple[CellProblem, ...]:
    """The finite forms of a problem, one per alternative of its target; they differ in their requirements only.

    Parameters
    ----------
    problem : Problem
    part : Partition, optional
        Of the problem's trees, if it is at hand from another row.
    """
    if part is None and problem.cuts_cells:
        return constrain(problem)
    return free_forms(problem, part or partition(problem.trees, problem.space))

"""The largest box around an answer: how far its values may be missed, all at once, and the answer still holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.cells.cell_problem import CellProblem, free_forms
from ocf.cells.ranges import Range, ValueInterval, range_of_cells
from ocf.errors import ProblemError
from ocf.features.frames import as_pandas
from ocf.features.space import counterfactual_frame
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.solvers.result import Status

if TYPE_CHECKING:
    from ocf.explain.explanation import Explanation
    from ocf.solve.largest_box import GrownBox
    from ocf.solve.prepared import PreparedModel

#: Points of a box that the user's own model is asked about at the end.
MOST_CHECKED = 256


@dataclass(frozen=True)
class AnswerBox:
    """A box around an answer in which every admissible point has the target, by the user's own model.

    Attributes
    ----------
    ranges : dict of feature name to ValueInterval, tuple of labels, or None
        None for a missing or special value, which stays. A range of numbers ends where a code lies among them.
    free : tuple of str
        Features whose whole admissible range lies in the box.
    width : float
        Sum over features of the part of their admissible range that the box covers: of numbers their length, of levels
        how many beyond the first.
    bound : float
        No such box has a larger sum.
    proven : bool
        Whether none is larger; otherwise the time was over, and no side can be said to be the last.
    """

    ranges: dict[str, Range]
    free: tuple[str, ...]
    width: float
    bound: float
    proven: bool

    def contains(self, values: Any) -> bool:
        """Whether a row lies in the box; missing values, and features that stay, are not looked at.

        Parameters
        ----------
        values : mapping or Series of feature names to numbers, labels, dates and durations
        """
        return all(held is None or (not pd.isna(values[name]) and values[name] in held) for name, held in self.said())

    def said(self) -> list[tuple[str, Range]]:
        """Names and ranges, in order."""
        return list(self.ranges.items())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict; numbers as ``{"lowest", "highest"}``, levels as a list."""
        ranges = {
            name: {"lowest": held.lowest, "highest": held.highest}
            if isinstance(held, ValueInterval)
            else None
            if held is None
            else list(held)
            for name, held in self.said()
        }
        return {
            "ranges": ranges,
            "free": list(self.free),
            "width": self.width,
            "bound": self.bound,
            "proven": self.proven,
        }


def box_of(prepared: PreparedModel, explanation: Explanation) -> AnswerBox:
    """The largest box around the counterfactual of an explanation.

    Parameters
    ----------
    prepared : PreparedModel
        That gave the explanation.
    explanation : Explanation

    Raises
    ------
    ProblemError
        There is no counterfactual, or no box is known around it.
    """
    from ocf.solve.largest_box import grown

    problem = explanation.problem
    if not explanation.found:
        raise ProblemError("there is no answer, and no box around it")
    if not isinstance(problem, Problem):
        raise ProblemError("boxes are those of trees, around answers that explain has just given")
    if problem.completions is not None:
        raise ProblemError("around the answer to a row with imputations no box is known")
    why = prepared.unproven(problem)
    if why:
        raise ProblemError(f"which box there is is not known: {why}")
    part = prepared.tree_partition(replace(problem, plausibility=None))
    part.refuse_hyperplanes("ask for the answer without its box")
    # the target alone: constraints, plausibility, margins and costs say which answer is wanted, not whether it holds
    plain = replace(problem, ensemble=part.ensemble, margins=(), dead=())
    asked = replace(plain, plausibility=None, constraints=(), cost=Cost.parse("l1"))
    space, original = problem.space, as_pandas(explanation.original)
    point = space.with_missing(space.from_frame(as_pandas(explanation.counterfactual))[0])

    def judge(coded: FloatArray) -> bool:
        table = counterfactual_frame(space, original, problem.origin, coded)
        return bool(prepared.model.meets(problem.target, table)[0])

    cells, found = grown(free_forms(asked, part), point, judge)
    _check(prepared, cells, found)
    ranges = {
        f.name: range_of_cells(cells, f, i, np.flatnonzero(found.cells[i]), float(problem.origin[i]))
        for i, f in enumerate(space.features)
    }
    free = tuple(f.name for i, f in enumerate(space.features) if _is_free(cells, found, i))
    return AnswerBox(ranges, free, found.width, found.bound, found.status is Status.OPTIMAL)


def _is_free(cells: CellProblem, found: GrownBox, i: int) -> bool:
    """Whether a box holds all cells of a feature, of which there are several."""
    opened = cells.open[cells.partition.cells_of(i)]
    return bool((found.cells[i] | ~opened).all() and opened.sum() > 1)


def _check(prepared: PreparedModel, cells: CellProblem, found: GrownBox) -> None:
    """Ask the user's own model about corners of a box.

    Raises
    ------
    ProblemError
        It does not give one of them the target.
    """
    problem, rng = cells.problem, np.random.default_rng(0)
    inside = [np.flatnonzero(own) for own in found.cells]
    ends = np.column_stack([own[rng.choice([0, -1], MOST_CHECKED)] for own in inside])
    points = np.array([cells.point(choice) for choice in np.unique(ends, axis=0)])
    if not prepared.model.meets(problem.target, problem.space.to_frame(points)).all():
        raise ProblemError("the model does not give all corners of the box the target: please report this")

"""The problem of a row whose missing values have several completions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.features.space import FeatureSpace
from ocf.models.completed import imputed
from ocf.models.gaps import Gaps
from ocf.models.plausibility import Plausibility
from ocf.problem.completions import Completions, completed_trees
from ocf.problem.constraints import Constraint
from ocf.problem.costs import Cost
from ocf.problem.missing import refuse_relations
from ocf.problem.problem import Problem
from ocf.problem.targets import Target
from ocf.solve.prepared import PreparedModel
from ocf.solve.task import AskedRow
from ocf.support.messages import listed


def completed_rows(
    prepared: PreparedModel, frame: pd.DataFrame, coded: FloatArray, imputations: Any, share: float
) -> list[AskedRow]:
    """Rows with their completions: what most of these get is the row's class or value.

    Parameters
    ----------
    prepared : PreparedModel
    frame : DataFrame (n, n_columns)
    coded : (n, n_features) float64
    imputations, share
        As in `ocf.models.completed.imputed`.
    """
    rows = []
    for k, label in enumerate(frame.index):
        own = imputed(imputations, share, frame.iloc[[k]], prepared.space)
        answers = prepared.model.decide(own.complete(frame.iloc[[k]]))
        rows.append(AskedRow(label, frame.iloc[[k]], coded[k], own.common(answers), own))
    return rows


def completed_problem(
    prepared: PreparedModel,
    row: AskedRow,
    target: Target,
    cost: Cost,
    space: FeatureSpace,
    constraints: tuple[Constraint, ...] = (),
    wish: Plausibility | None = None,
) -> Problem:
    """The problem of a row with completions, in the dtypes of `space`.

    A completion counts where it has the target and, with a plausibility, is deep enough in the isolation forest.

    Parameters
    ----------
    prepared : PreparedModel
    row : AskedRow
        With completions.
    target : Target
    cost : Cost
    space : FeatureSpace
    constraints : tuple of Constraint
    wish : Plausibility, optional

    Raises
    ------
    ProblemError
        What is completed may also be supplied, or depth is to be weighed.
    """
    assert row.imputed is not None
    table, missing = row.imputed.complete(row.original), np.isnan(row.coded)
    supplied = [space.names[i] for i in np.flatnonzero(missing) if space.features[i].may_be_supplied]
    if supplied:
        raise ProblemError(f"missing= supplies {listed(supplied)}, and imputations= says what they may be: give one")
    rows = space.from_frame(table)
    for own in rows:
        prepared.encoding_of(space).refuse_unknown(space, own)
    if wish is not None and wish.weight > 0:
        raise ProblemError(
            "a weight of plausibility and imputations do not go together, for each completion has a depth of its own: "
            "ask for a least depth"
        )
    detector = prepared.detector(wish, target)
    cut = prepared.checked_cut(Gaps(), detector, space, table, rows)
    refuse_relations(space, row.coded, cost, constraints)
    joint, used = completed_trees(cut.model, rows, missing)
    if detector is None or cut.depth is None:
        completions = Completions(used, row.imputed.least)
        return Problem(joint, space, row.coded, target, cost, None, constraints, completions)
    isolation, deep = completed_trees(cut.depth.forest, rows, missing)
    completions = Completions(used, row.imputed.least, deep)
    depth = detector.requirement(isolation)
    return Problem(joint, space, row.coded, target, cost, depth, constraints, completions)

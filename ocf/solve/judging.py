"""Who tells of a point whether it counts: the user's own model, and the isolation forest's own library."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.features.space import counterfactual_frame
from ocf.models.detector import Detector
from ocf.models.user_model import UserModel
from ocf.problem.problem import Problem
from ocf.solve.task import AskedRow


def judge_of(
    model: UserModel,
    row: AskedRow,
    problem: Problem,
    detector: Detector | None,
    refused: Callable[[pd.DataFrame, FloatArray], None],
) -> Callable[[FloatArray], bool]:
    """Who tells of a coded point whether the user's model gives it the target, and the detector no outlier.

    Parameters
    ----------
    model : UserModel
    row : AskedRow
    problem : Problem
        Of the row; without a plausibility the detector is not asked.
    detector : Detector or None
    refused : callable
        Told of each point that the user's model refuses, as a table and coded. A search cuts such a point off with its
        leaves, as one that rounding keeps from the target; it raises where the point was misread.
    """
    detector = detector if problem.plausibility is not None else None
    target = problem.target

    def confirm(point: FloatArray) -> bool:
        same = np.array_equal(problem.space.without_missing(point), row.coded, equal_nan=True)
        known = same and target.probability is None and row.imputed is None  # the model was asked when the batch began
        met = known and bool(target.met_by(np.array([row.current]))[0])
        if known and (detector is None or not met):
            return met
        table = counterfactual_frame(problem.space, row.original, row.coded, point)
        if row.imputed is not None:
            completed = row.imputed.complete(table)
            fits = model.meets(target, completed)
            if detector is not None:
                fits &= detector.deep_enough(detector.measure(completed)[0])
            return int(fits.sum()) >= row.imputed.least
        if not met and not model.meets(target, table)[0]:
            refused(table, point)
            return False
        return detector is None or detector.accepts(table)

    return confirm

"""What is prepared once for a linear model and its data: the score as a sum over the user's features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import ConformanceError, DataError, ProblemError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace, counterfactual_frame
from ocf.models.additive import as_additive, as_linear_model, requirement_signs
from ocf.models.detector import Detector
from ocf.models.encoding import Encoding
from ocf.models.foreseen import seconds_to_judge
from ocf.models.known_rows import MAX_CANDIDATES
from ocf.models.plausibility import Plausibility
from ocf.models.user_model import UserModel
from ocf.problem.costs import Cost
from ocf.problem.linear_problem import LinearProblem, Move
from ocf.problem.targets import ClassTarget, Target
from ocf.readers.linear import LinearModel
from ocf.solve.task import AskedRow
from ocf.support.messages import listed


class PreparedLinear:
    """A linear model and its data, read once for all rows.

    Parameters
    ----------
    model : UserModel
        As `ocf.models.additive.as_linear_model` makes it.
    space : FeatureSpace
    table : DataFrame
    check : bool
        Whether to check the reading of the model against the library on the data.
    """

    def __init__(self, model: UserModel, space: FeatureSpace, table: pd.DataFrame, *, check: bool) -> None:
        self.model, self.space = model.over(space.columns), space
        self.classes = model.classes
        coded = space.from_frame(table)
        if np.isnan(coded).any():
            raise DataError("the data has missing values, and a linear model has no rule for them: fill them in")
        priced = [f.name for f in space.features if f.cost is not None]
        if priced:
            raise ProblemError(f"linear models take a weight, not a cost of its own: feature {listed(priced)}")
        special = [f.name for f in space.features if f.special is not None]
        if special:
            raise ProblemError(f"linear models know no special values: feature {listed(special)}")
        linear: Any = model.trees
        assert isinstance(linear, LinearModel)
        self.rows = rows = coded[:MAX_CANDIDATES]
        self._sums = as_additive(linear, Encoding(space, model.encode, rows[0], model.preprocessing.read))
        if check:
            self._check(rows)
        #: Seconds in which the user's model judges an answer.
        self.judging = seconds_to_judge(model, space.to_frame(rows[:1]))

    def _check(self, rows: FloatArray) -> None:
        """Compare decisions with the library's wherever rounding cannot decide."""
        decided = np.asarray(self.model.decide(self.space.to_frame(rows)))
        for row, index in zip(rows, decided, strict=True):
            problem = self.problem(row, int(index), Cost(l1=1.0), self.space)
            if np.any(problem.surplus(row) < -problem.error_bound):
                raise ConformanceError(
                    f"the model gives {self.classes[int(index)]!r} to a row whose scores say otherwise: its decision "
                    "is not the sign or the largest of its linear scores"
                )

    def problem(self, origin: FloatArray, target: int, cost: Cost, space: FeatureSpace) -> LinearProblem:
        """The problem of one coded row.

        Parameters
        ----------
        origin : (n_features,) float64
            Coded.
        target : int
            Index of the class that is wanted.
        cost : Cost
        space : FeatureSpace
            With the bounds and weights of the features.
        """
        signs = requirement_signs(len(self.classes), target)
        sums, size = self._sums, np.abs(signs)
        tables = tuple(table @ signs.T for table in sums.tables)
        return LinearProblem(
            space,
            origin,
            ClassTarget(target),
            cost,
            signs @ sums.constant,
            signs @ sums.slopes,
            tables,
            size @ sums.error_bound,
            tuple(_move(feature, origin[i]) for i, feature in enumerate(space.features)),
            tuple(_level_costs(feature, origin[i], cost) for i, feature in enumerate(space.features)),
        )

    def unproven(self, problem: LinearProblem) -> str:
        """Why nothing is proven of a problem: nothing stands in the way of a sum."""
        return ""

    def detector(self, wish: Plausibility | None, target: Target) -> Detector | None:
        """No isolation forest: plausibility is for trees.

        Parameters
        ----------
        wish, target
            As in `ocf.solve.prepared.PreparedModel.detector`; neither is used.
        """
        return None

    def judge(
        self, row: AskedRow, problem: LinearProblem, detector: Detector | None = None
    ) -> Callable[[FloatArray], bool]:
        """Who tells of a coded point whether the user's model gives it the target.

        Parameters
        ----------
        row : AskedRow
        problem : LinearProblem
            Of the row.
        detector : Detector, optional
            Not used: there is none for linear models.
        """

        def confirm(point: FloatArray) -> bool:
            table = counterfactual_frame(problem.space, row.original, row.coded, point)
            return bool(self.model.meets(problem.target, table)[0])

        return confirm

    def __getstate__(self) -> dict[str, Any]:
        """State for worker processes; what the user's model is wrapped in is made anew there."""
        return {**self.__dict__, "model": (self.model.native, self.model.frames)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.model = as_linear_model(*state["model"]).over(self.space.columns)


def _move(feature: Feature, origin: float) -> Move | None:
    if feature.discrete:
        return None
    first, last = feature.limits(origin)
    low, high = float(feature.at_least(first)), float(feature.at_most(last))
    if first <= origin <= last:  # which may stay, though it be no value that others may take
        low, high = min(low, origin), max(high, origin)
    if low <= high and (feature.action == "fixed" or low == high == origin):
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

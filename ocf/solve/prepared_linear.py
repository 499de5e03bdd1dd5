"""What is prepared once for a linear model and its data: the score as a sum over the user's features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import ConformanceError, DataError, ProblemError
from ocf.features.feature import Feature, rounds_its_grid
from ocf.features.space import FeatureSpace, counterfactual_frame
from ocf.formulations.blocks.columns import has_few_values, listed_values
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

#: Most values of a grid that its column rounds that are listed: with thousands solvers run into their limits.
FEW = 300


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
        scores = {index: self.problem(rows[0], index, Cost(l1=1.0), self.space) for index in set(decided.tolist())}
        for row, index in zip(rows, decided.tolist(), strict=True):
            if np.any(scores[index].surplus(row) < -scores[index].error_bound):
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
        at = origin.tolist()
        values = tuple(map(_values, space.features, at))
        return LinearProblem(
            space,
            origin,
            ClassTarget(target),
            cost,
            signs @ sums.constant,
            signs @ sums.slopes,
            tables,
            size @ sums.error_bound,
            tuple(map(_move, space.features, at, values)),
            values,
            tuple(map(partial(_value_costs, cost), space.features, at, values)),
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


def _move(feature: Feature, origin: float, values: FloatArray) -> Move | None:
    if len(values):
        return None
    low, high = feature.ends(origin)
    if low <= high and (feature.action == "fixed" or low == high == origin):
        return None
    return Move((low - origin) / feature.scale, (high - origin) / feature.scale)


def _values(feature: Feature, origin: float) -> FloatArray:
    """Coded values of a feature that are listed, (n,): all levels, and a grid that its column rounds if it has few.

    Of a grid without an admissible value there are none either, and its ends say so.
    """
    if feature.discrete:
        return np.arange(len(feature.levels), dtype=np.float64)
    few = rounds_its_grid(feature, origin) and has_few_values(feature, origin, FEW)
    return listed_values(feature, origin) if few else np.zeros(0)


def _value_costs(cost: Cost, feature: Feature, origin: float, values: FloatArray) -> FloatArray:
    """Cost of each listed value; inf of levels that are not allowed. (n,)."""
    allowed = np.isin(values, listed_values(feature, origin)) if feature.discrete else True
    return np.where(allowed, cost.of(feature, origin, values), np.inf)

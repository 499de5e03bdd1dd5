"""Rows of the data that are of a target, by the model's answers or by their labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import OcfError, ProblemError
from ocf.features.space import FeatureSpace
from ocf.models.known_rows import KnownRows, few
from ocf.models.labels import LabelledRows
from ocf.models.user_model import UserModel
from ocf.problem.targets import Target
from ocf.support.kept import Kept


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows of the data that are of a target.

    Attributes
    ----------
    table : DataFrame (n, n_columns)
        In the user's columns.
    by : {"prediction", "label"}
        Who says so.
    left_out : str
        What to say of the rows of the data of which it is not known.
    """

    table: pd.DataFrame
    by: str = "prediction"
    left_out: str = ""

    def seen_by(self, given: Callable[[pd.DataFrame], Any]) -> TargetRows:
        """Those of which a forest is given no gap.

        Parameters
        ----------
        given : callable
            Table in the user's columns -> the same rows as the forest's library takes them.
        """
        missing = self.table.isna().to_numpy()
        if not missing.any():
            return self
        try:
            gaps = pd.isna(np.asarray(given(self.table), object)).any(axis=1)
        except (OcfError, ValueError, TypeError):  # the way to the forest takes no gaps
            gaps = missing.any(axis=1)
        return replace(self, table=self.table.iloc[np.flatnonzero(~gaps)])


#: Of how many targets the rows are kept.
MOST_TARGETS = 32


class RowsByTarget:
    """Rows of the data, to be asked which of them are of a target.

    Parameters
    ----------
    space : FeatureSpace
    data : KnownRows
    labelled : LabelledRows or None
        The data with its labels.
    """

    def __init__(self, space: FeatureSpace, data: KnownRows, labelled: LabelledRows | None) -> None:
        self._space, self._data, self._labelled = space, data, labelled
        self._met: Kept[Target, FloatArray] = Kept(MOST_TARGETS)
        self._decided: NDArray[Any] | None = None

    def decided(self, model: UserModel) -> NDArray[Any]:
        """What the model gives each of the coded rows, asked once."""
        if self._decided is None:
            self._decided = model.decide(self._space.to_frame(self._data.coded))
        return self._decided

    def coded(self, target: Target, model: UserModel) -> FloatArray:
        """Coded rows to which the model gives a target.

        Parameters
        ----------
        target : Target
        model : UserModel
        """
        return self._met.get(target, lambda: self._coded(target, model))

    def _coded(self, target: Target, model: UserModel) -> FloatArray:
        known = self._data.coded
        if not len(known):
            return known
        if target.probability is None or model.probabilities is None:
            return known[target.met_by(self.decided(model))]
        return known[model.meets(target, self._space.to_frame(known))]

    def said(self, by: str | None, target: Target, model: UserModel) -> TargetRows:
        """Rows of a target, in the user's columns.

        Parameters
        ----------
        by : {"prediction", "label"} or None
            Who says so; None: the labels where there are some.
        target : Target
        model : UserModel
        """
        by = by or ("prediction" if self._labelled is None else "label")
        if by == "prediction":
            return TargetRows(self._space.to_frame(self.coded(target, model)), by, self._data.remark)
        if self._labelled is None:
            raise ProblemError("plausibility by label needs the labels of the data: Explainer(…, labels=y)")
        coded = few(self._space.from_frame(self._labelled.with_target(target)))
        return TargetRows(self._space.to_frame(coded), by)

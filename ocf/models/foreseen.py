"""What the user's own model and isolation forests say of many rows in one call, for who asks about them one by one."""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.models.detector import Detector
from ocf.models.row_keys import joined, row_key
from ocf.models.user_model import UserModel

logger = logging.getLogger(__name__)

#: Libraries that add up a row's trees, or the terms of its splits, one by one, whatever the other rows are.
ROW_BY_ROW = ("scikit-learn", "xgboost", "lightgbm", "catboost", "ocf")


def answers_row_by_row(model: UserModel) -> bool:
    """Whether a row gets the same answer, to the last bit, by itself and among others.

    onnxruntime adds up trees in an order that follows the number of rows, and so does the linear algebra behind stacks
    and other models that stand on the scores of others.
    """
    library = model.trees.library.partition(" ")[0]
    ensemble = getattr(model.trees, "ensemble", None)  # linear models have none
    if library not in ROW_BY_ROW or ensemble is None or not model.trees.row_by_row:
        return False
    return not ensemble.decision.stands_on_others


class Foreseen:
    """What the user's model says of some rows, asked about all of them together.

    A call of a forest takes milliseconds, of which a row more costs microseconds. Rows are told apart by their values,
    columns and dtypes, to the last bit; what was not foreseen is asked for as ever.

    Parameters
    ----------
    model : UserModel

    Attributes
    ----------
    model : UserModel
        The same, with its answers to the rows that were foreseen at hand.
    """

    def __init__(self, model: UserModel) -> None:
        self._asked = model
        self._decided: dict[Hashable, Any] = {}
        self._shown: dict[Hashable, FloatArray] = {}
        self._seen: dict[Hashable, FloatArray] = {}
        self._detectors: dict[Detector, Detector] = {}
        shown = None if model.probabilities is None else self._probabilities
        self.model = replace(model, decide=self._decide, probabilities=shown, encode=self._encode)

    def foresee(
        self,
        tables: Iterable[pd.DataFrame],
        *,
        probabilities: bool = False,
        columns: bool = False,
        detectors: Mapping[Detector, Sequence[pd.DataFrame]] | None = None,
    ) -> None:
        """Ask the model about rows; what it was asked before is forgotten.

        Parameters
        ----------
        tables : iterable of DataFrame (1, n_columns)
            In the user's columns.
        probabilities : bool
            Whether its probabilities will be wanted too.
        columns : bool
            Whether model columns will be wanted too.
        detectors : mapping of Detector to sequence of DataFrame (1, n_columns), optional
            Isolation forests, and which of the rows each will be asked about.
        """
        self._decided, self._shown, self._seen, self._detectors = {}, {}, {}, {}
        wanted = {detector: set(map(row_key, own)) for detector, own in (detectors or {}).items()}
        for keys, together in joined(tables):
            self._decided |= dict(zip(keys, self._asked.decide(together), strict=True))
            if probabilities and self._asked.probabilities is not None:
                self._shown |= dict(zip(keys, self._asked.probabilities(together), strict=True))
            if columns:
                self._seen |= dict(zip(keys, self._asked.encode(together), strict=True))
            for detector, own in wanted.items():
                if places := [k for k, key in enumerate(keys) if key in own]:
                    at_hand = dict(zip([keys[k] for k in places], detector.depths(together, places), strict=True))
                    self._detectors[detector] = self.beside(detector).with_depths(at_hand)

    def beside(self, detector: Detector) -> Detector:
        """An isolation forest with what it says of the rows that were foreseen for it at hand."""
        return self._detectors.get(detector, detector)

    def _decide(self, table: pd.DataFrame) -> NDArray[Any]:
        found = self._decided.get(row_key(table)) if len(table) == 1 else None
        return self._asked.decide(table) if found is None else np.array([found])

    def _probabilities(self, table: pd.DataFrame) -> FloatArray:
        assert self._asked.probabilities is not None
        found = self._shown.get(row_key(table)) if len(table) == 1 else None
        return self._asked.probabilities(table) if found is None else found[None, :]

    def _encode(self, table: pd.DataFrame) -> FloatArray:
        found = self._seen.get(row_key(table)) if self._seen and len(table) == 1 else None
        return self._asked.encode(table) if found is None else found[None, :]


def with_answers(model: UserModel, tables: Iterable[pd.DataFrame]) -> UserModel:
    """A model with its answers to some rows at hand, asked for in one call; itself where rows are not alone in a call.

    Parameters
    ----------
    model : UserModel
    tables : iterable of DataFrame (1, n_columns)
        In the user's columns.
    """
    if not answers_row_by_row(model):
        return model
    foreseen = Foreseen(model)
    try:
        foreseen.foresee(tables, probabilities=True)
    except Exception as error:  # the model is the user's: who asks about one row is told what it raises
        logger.debug("the rows are judged one by one: %s", error)
        return model
    return foreseen.model


def seconds_to_judge(model: UserModel, table: pd.DataFrame) -> float:
    """Seconds in which the user's model judges an answer, as it does a row of the data.

    Parameters
    ----------
    model : UserModel
    table : DataFrame (1, n_columns)
        In the user's columns.
    """
    calls = 1 if answers_row_by_row(model) else 2  # row and answer together, or each by itself
    begin = time.perf_counter()
    try:
        Foreseen(model).foresee([table], probabilities=True, columns=True)
    except Exception as error:  # the model is the user's, and need not take this row
        logger.debug("the model's price is not known: %s", error)
    return calls * (time.perf_counter() - begin)

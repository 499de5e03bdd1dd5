"""Compiled formulations, made when they are asked for, and kept for other rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from ocf.cells.cell_problem import CellProblem
from ocf.errors import TimeLimitError
from ocf.solve.compile import compile_formulation
from ocf.solvers.cell_form import Compiled
from ocf.support.limits import seconds_left


@dataclass(frozen=True)
class KeptMatrices:
    """Compiled formulations of a target's alternatives, that rows share.

    Attributes
    ----------
    compiled : dict
        By alternative.
    late : dict
        Seconds in which a matrix could not be made, where a time limit ended that.
    """

    compiled: dict[int, Compiled] = field(default_factory=dict)
    late: dict[int, float] = field(default_factory=dict)


class Matrices:
    """The compiled formulation of each alternative of a target, made when it is asked for.

    Parameters
    ----------
    formulation : str
    alternatives : sequence of CellProblem
    kept : KeptMatrices
        Where those that were made stay for other rows.

    Attributes
    ----------
    seconds : dict
        Spent in ``build`` and ``compile``; 0 where an earlier row did it.
    """

    def __init__(self, formulation: str, alternatives: tuple[CellProblem, ...], kept: KeptMatrices) -> None:
        self._formulation, self._alternatives, self._kept = formulation, alternatives, kept
        self.seconds = {"build": 0.0, "compile": 0.0}

    @property
    def all(self) -> list[Callable[[], Compiled]]:
        """Makers of the matrix of each alternative."""
        return [partial(self.compiled, k) for k in range(len(self._alternatives))]

    def compiled(self, k: int) -> Compiled:
        """The matrix of the k-th alternative.

        Raises
        ------
        TimeLimitError
            There is too little time for it, as was seen before or turns out.
        """
        compiled, late = self._kept.compiled, self._kept.late
        if k not in compiled:
            begin = time.perf_counter()
            if seconds_left() < late.get(k, 0.0):
                raise TimeLimitError("the time limit leaves less than building the model takes")
            try:
                made = compiled[k] = compile_formulation(self._formulation, self._alternatives[k])
            except TimeLimitError:
                late[k] = time.perf_counter() - begin
                raise
            self.seconds["build"] += made.build_seconds
            self.seconds["compile"] += made.compile_seconds
        return compiled[k]

"""The decision that is wanted, as linear requirements on the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ocf.ensemble import Ensemble, FloatArray
from ocf.errors import ProblemError
from ocf.words import nearest


@dataclass(frozen=True)
class Requirements:
    """``sum over trees of gain[leaf] >= need`` for each row: the target in terms of leaves.

    They hold for every point to which the library itself, with its rounding, can give the target; points within
    rounding of a tie satisfy them too, and the user's model decides about those.

    Attributes
    ----------
    gain : (n_leaves, n_rows) float64
    need : (n_rows,) float64
    doubt : (n_rows,) float64
        A point that exceeds ``need + doubt`` in every row has the target beyond doubt; 0 where arithmetic is exact.
    """

    gain: FloatArray
    need: FloatArray
    doubt: FloatArray


@dataclass(frozen=True)
class ClassTarget:
    """The model should decide for one class.

    Attributes
    ----------
    index : int
        Index of the class in ``Decision.classes``.
    """

    index: int

    @classmethod
    def parse(cls, ensemble: Ensemble, target: Any, current: int | None = None) -> ClassTarget:
        """Target from a class label, its text, or ``"opposite"`` of the current class of a binary model."""
        classes = ensemble.decision.classes
        if not classes:
            raise ProblemError("the model is a regressor and has no classes: give it a target interval")
        if isinstance(target, str) and target == "opposite" and "opposite" not in classes:
            if len(classes) != 2 or current is None:
                raise ProblemError(f"'opposite' needs two classes; name one of {', '.join(map(str, classes))}")
            return cls(1 - current)
        for index, label in enumerate(classes):
            if target == label or str(target) == str(label):
                return cls(index)
        raise ProblemError(f"the model has no class {nearest(target, classes)}")

    def met_by(self, decided: int) -> bool:
        """Whether a decision of the user's model is the wanted one."""
        return decided == self.index

    def requirements(self, ensemble: Ensemble) -> Requirements:
        """Linear requirements on leaves (ocean, (13)-(14); box, (8))."""
        rule = ensemble.decision
        if rule.kind == "threshold":
            sign = 1.0 if self.index == 1 else -1.0
            coefficients = np.array([[sign]])
            need = np.array([sign * rule.threshold])
            tie_wins = np.array([rule.tie_is_positive == (self.index == 1)])
        else:
            others = [k for k in range(ensemble.n_outputs) if k != self.index]
            coefficients = np.zeros((len(others), ensemble.n_outputs))
            coefficients[:, self.index] = 1.0
            coefficients[np.arange(len(others)), others] = -1.0
            need = np.zeros(len(others))
            tie_wins = np.array([k > self.index for k in others])
        need = need - coefficients @ ensemble.base_score
        exact = _exact_requirements(ensemble, coefficients, need, tie_wins)
        if exact is not None:
            return exact
        gain = ensemble.contributions @ coefficients.T
        # forming a difference of two scores rounds once more per leaf, which the factor covers
        doubt = np.abs(coefficients).sum(axis=1) * ensemble.rounding * 1.5 + 1e-300
        return Requirements(gain, need - doubt, 2 * doubt)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {"kind": "class", "index": self.index}


def _exact_requirements(
    ensemble: Ensemble, coefficients: FloatArray, need: FloatArray, tie_wins: np.ndarray[Any, Any]
) -> Requirements | None:
    """Requirements without doubt where the library's sums are exact, as for votes of pure leaves.

    When all leaf values are multiples of a power of two that is not too small against their sum, floating-point
    addition makes no error and a tie is a true tie. Half a quantum then separates winning from losing.
    """
    weights = ensemble.tree_weights
    if np.any(weights != weights[0]) or weights[0] <= 0 or ensemble.decision.slack > 0:
        return None
    if np.any(need) or np.any(ensemble.base_score):
        return None  # thresholds and base scores are of other quanta
    values = ensemble.leaf_values
    bits = 24 if ensemble.precision == "float32" else 53
    largest = np.maximum.reduceat(np.abs(values).max(axis=1), ensemble.leaf_offsets[:-1]).sum()
    if largest == 0:
        return None
    quantum = 2.0 ** (np.ceil(np.log2(largest)) - bits + 2)
    if np.any(np.remainder(values, quantum)):
        return None
    while not np.any(np.remainder(values, 2 * quantum)):
        quantum *= 2
    gain = values @ coefficients.T
    half = np.where(tie_wins, -quantum / 2, quantum / 2)
    return Requirements(gain, half, np.zeros(len(half)))


def target_from_dict(data: dict[str, Any]) -> ClassTarget:
    """Target from what ``to_dict`` wrote."""
    if data.get("kind") != "class":
        raise ProblemError(f"unknown kind of target {data.get('kind')!r}")
    return ClassTarget(int(data["index"]))

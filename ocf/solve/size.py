"""How large a model is for ocf, told from its trees before anything is prepared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocf.solve.prepared import MANY_LEAVES, NODE
from ocf.trees.ensemble import Ensemble, SplitKind

#: Bytes of the libraries; and of a leaf and a feature, for the boxes of leaves.
_LIBRARIES, _SIDES = 300e6, 16


@dataclass(frozen=True)
class Size:
    """What a model will take.

    Attributes
    ----------
    thresholds : tuple of int
        Distinct thresholds of each model column.
    memory : float
        Bytes that a process with an Explainer needs, roughly: models of the same size differ by half.
    with_boxes : float
        The same where the boxes of all leaves are needed: in models of up to `MANY_LEAVES` leaves always, else for
        own costs, plausibility, boxes around answers, and without the reduction.
    """

    thresholds: tuple[int, ...]
    memory: float
    with_boxes: float


def size_of(ensemble: Ensemble) -> Size:
    """The size of a model.

    Parameters
    ----------
    ensemble : Ensemble
        Over model columns.
    """
    axis = ensemble.kind == SplitKind.AXIS
    cuts = np.unique(np.column_stack([ensemble.feature[axis], ensemble.threshold[axis]]), axis=0)[:, 0]
    thresholds = np.bincount(cuts.astype(np.int64), minlength=ensemble.n_features)
    near = _LIBRARIES + NODE * len(ensemble.kind)
    boxes = _SIDES * ensemble.n_leaves * ensemble.n_features
    alone = near if ensemble.n_leaves > MANY_LEAVES else near + boxes
    return Size(tuple(thresholds.tolist()), alone, near + boxes)

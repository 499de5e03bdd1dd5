"""The isolation forests by which points are plausible, in table 4 and figure F3.

Fitted on the training rows of class 1, with trees as deep as the random forest's; a point is plausible when its average
depth is above that of the lowest tenth of those rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from common import Case
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline

from ocf import Plausibility
from ocf.models.detector import Detector, make_detector
from ocf.models.target_rows import TargetRows
from ocf.readers.sklearn_checks import average_path_length


@lru_cache(maxsize=2)
def judge(case: Case, depth: int, by: str) -> Detector:
    """The forest by which all points are judged, fitted on all training rows of class 1.

    Isolation trees of at most some depth: a tree over ``2**depth`` rows stops there.
    """
    model = case.explainer.model.native
    classes = case.labels.to_numpy() if by == "label" else model.predict(case.train)
    rows = case.train[classes == 1]
    forest = IsolationForest(n_estimators=100, max_samples=min(2**depth, len(rows)), random_state=0)
    if hasattr(model, "steps"):  # the encoder of the categories, which sets without any do not have
        forest = make_pipeline(model[:-1], forest)
    return make_detector(Plausibility(forest.fit(rows)), case.explainer.model, TargetRows(rows, by), ())


@lru_cache(maxsize=4)
def wish(case: Case, depth: int, by: str, inlier: bool = False) -> Plausibility:
    """The same forest and depth, as they are asked for.

    Parameters
    ----------
    case : Case
    depth : int
    by : {"prediction", "label"}
    inlier : bool
        Ask for the depth of a random tree over as many rows in the place of the lowest tenth's, as the authors' public
        code does: where scikit-learn's anomaly score is at most one half.
    """
    detector = judge(case, depth, by)
    forest: Any = detector.wish.forest
    last = forest[-1] if hasattr(forest, "steps") else forest
    least = float(average_path_length(np.array([last.max_samples_]))[0]) if inlier else detector.least
    return Plausibility(forest, depth=least)

"""alibi: counterfactuals guided by prototypes, Van Looveren and Klaise (2021), https://pypi.org/project/alibi/.

It descends along numerical gradients of the forest's probabilities, towards the nearest rows of the other class, in a
k-d tree. Columns are scaled to [0, 1]. ``options = { iterations = 200, steps = 2 }``: of the descent, and how often its
weight of the class is adjusted.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import tensorflow as tf
from peer import Answer, Case, Question, as_row, serve

#: Of the numerical gradients: a forest is flat within less.
STEP = 0.05

tf.compat.v1.disable_v2_behavior()


def prepare(said: Question) -> tuple[str, Any]:
    """Fit the prototypes: only the forest's own answers are known of the data."""
    from alibi.explainers import CounterfactualProto

    case = Case(said)
    encoded = case.encoded(case.data)
    low = encoded.min(axis=0)
    width = np.where(np.ptp(encoded, axis=0) > 0, np.ptp(encoded, axis=0), 1.0)
    groups: dict[str, list[int]] = {}
    for k, column in enumerate(case.columns):
        if column.level is not None:
            groups.setdefault(column.feature["name"], []).append(k)
    numbers = sum(column.level is None for column in case.columns)
    ranges = (1, len(groups) + numbers)  # a category counts once here, its columns stand first
    explainer = CounterfactualProto(
        lambda x: case.forest.predict_proba(x * width + low),
        shape=(1, encoded.shape[1]),
        feature_range=(np.zeros(ranges), np.ones(ranges)),
        cat_vars={group[0]: len(group) for group in groups.values()} or None,
        ohe=bool(groups),
        use_kdtree=True,
        theta=10.0,
        c_init=1.0,
        c_steps=case.options.get("steps", 2),
        max_iterations=case.options.get("iterations", 200),
        eps=(1e-3, STEP),
    )
    explainer.fit((encoded - low) / width)

    def answer(asked: Question) -> Answer:
        row = case.encoded(case.table(asked["row"]))[0]
        found = explainer.explain(((row - low) / width)[None], target_class=[case.target(asked)])
        if found.cf is None:
            return {"status": "unknown", "message": "it found no point"}
        point = np.asarray(found.cf["X"], dtype=float)[0] * width + low
        same = np.abs(point - row) <= 1e-6 * np.maximum(width, np.abs(row - low))  # it computes in float32
        flat = [k for k, column in enumerate(case.columns) if column.level is not None or case.binary[k]]
        point[flat] = np.round(point[flat])
        point = np.where(same, row, point)
        if case.forest.predict(point[None])[0] != asked["target"]:
            return {"status": "unknown", "message": "its point does not have the target"}
        return {"status": "feasible", "counterfactual": as_row(case, row, point)}

    return f"alibi {version('alibi')}", answer


if __name__ == "__main__":
    serve(prepare)

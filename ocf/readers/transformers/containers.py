"""Steps that hold other steps: scikit-learn's and imbalanced-learn's Pipeline, ColumnTransformer, FeatureUnion.

Each step inside is read by itself. Samplers of imbalanced-learn change the rows of the training table and are left out
at prediction, as imbalanced-learn does. Whether a step gives tables or arrays (``set_output``) makes no difference.
"""

from __future__ import annotations

from typing import Any

from ocf.readers.transformers.column import Column
from ocf.readers.transformers.flow import Flow

CLASSES = ("Pipeline", "ColumnTransformer", "FeatureUnion", "Pipeline (imbalanced-learn)")


def is_sampler(step: object) -> bool:
    """Whether a step of imbalanced-learn's Pipeline is left out at prediction."""
    return hasattr(step, "fit_resample")


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """Columns behind the steps inside.

    Parameters
    ----------
    name : str
    step : Pipeline, ColumnTransformer or FeatureUnion
        Fitted.
    flow : Flow
    """
    inside = flow.inside(name)
    factor = getattr(step, "transformer_weights", None) or {}
    if type(step).__name__ == "Pipeline":
        for part, inner in step.steps:
            inside = inside if is_sampler(inner) else inside.through(part, inner)
        return inside.columns
    if type(step).__name__ == "FeatureUnion":
        parts = [(factor.get(part, 1.0), inside.through(part, inner)) for part, inner in step.transformer_list]
        return tuple(c.scaled(by) for by, behind in parts for c in behind.columns)
    places = vars(step)["_transformer_to_input_indices"]
    columns: list[Column] = []
    for part, inner, _ in step.transformers_:
        own = list(places.get(part, []))
        if own and not (isinstance(inner, str) and inner == "drop"):
            columns += [c.scaled(factor.get(part, 1.0)) for c in inside.some(own).through(part, inner).columns]
    return tuple(columns)

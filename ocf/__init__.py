"""ocf: optimal counterfactual explanations for tree models.

The cheapest change to an input that turns a tree model's decision, with a proof that nothing cheaper exists.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocf.costs import Cost as Cost
    from ocf.ensemble import Ensemble as Ensemble
    from ocf.explainer import Explainer as Explainer
    from ocf.explanation import Explanation as Explanation
    from ocf.explanation import Explanations as Explanations
    from ocf.features import Feature as Feature
    from ocf.features import FeatureSpace as FeatureSpace
    from ocf.plausibility import Plausibility as Plausibility
    from ocf.problem import Problem as Problem

__version__ = "0.1.0"

#: Public name -> module; imported on first use, so that ``import ocf`` takes no time.
_HOMES = {
    "Cost": "ocf.costs",
    "Ensemble": "ocf.ensemble",
    "Explainer": "ocf.explainer",
    "Explanation": "ocf.explanation",
    "Explanations": "ocf.explanation",
    "Feature": "ocf.features",
    "FeatureSpace": "ocf.features",
    "Plausibility": "ocf.plausibility",
    "Problem": "ocf.problem",
}

__all__ = [
    "Cost",
    "Ensemble",
    "Explainer",
    "Explanation",
    "Explanations",
    "Feature",
    "FeatureSpace",
    "Plausibility",
    "Problem",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ocf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

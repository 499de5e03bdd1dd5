"""ocf: optimal counterfactual explanations for tree models.

The cheapest change to an input that turns a tree model's decision, with a proof that nothing cheaper exists.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocf.compression import CounterfactualDiscretizer as CounterfactualDiscretizer
    from ocf.compression import GuessingThresholds as GuessingThresholds
    from ocf.compression import ThresholdBinarizer as ThresholdBinarizer
    from ocf.constraints import Budget as Budget
    from ocf.constraints import Implication as Implication
    from ocf.constraints import Linear as Linear
    from ocf.constraints import MaxChanges as MaxChanges
    from ocf.costs import Cost as Cost
    from ocf.ensemble import Ensemble as Ensemble
    from ocf.explainer import Explainer as Explainer
    from ocf.explanation import Explanation as Explanation
    from ocf.explanation import Explanations as Explanations
    from ocf.features import Feature as Feature
    from ocf.features import FeatureSpace as FeatureSpace
    from ocf.linear import LinearExplainer as LinearExplainer
    from ocf.plausibility import Plausibility as Plausibility
    from ocf.problem import Problem as Problem
    from ocf.quadratic import quadratic_cost as quadratic_cost
    from ocf.rules import CounterfactualRules as CounterfactualRules
    from ocf.surrogate import SurrogateTree as SurrogateTree

__version__ = "0.1.0"

#: Public name -> module; imported on first use, so that ``import ocf`` takes no time.
_HOMES = {
    "Budget": "ocf.constraints",
    "Cost": "ocf.costs",
    "CounterfactualDiscretizer": "ocf.compression",
    "CounterfactualRules": "ocf.rules",
    "Ensemble": "ocf.ensemble",
    "Explainer": "ocf.explainer",
    "Explanation": "ocf.explanation",
    "Explanations": "ocf.explanation",
    "Feature": "ocf.features",
    "FeatureSpace": "ocf.features",
    "GuessingThresholds": "ocf.compression",
    "Implication": "ocf.constraints",
    "Linear": "ocf.constraints",
    "LinearExplainer": "ocf.linear",
    "MaxChanges": "ocf.constraints",
    "Plausibility": "ocf.plausibility",
    "Problem": "ocf.problem",
    "quadratic_cost": "ocf.quadratic",
    "SurrogateTree": "ocf.surrogate",
    "ThresholdBinarizer": "ocf.compression",
}

__all__ = [
    "Budget",
    "Cost",
    "CounterfactualDiscretizer",
    "CounterfactualRules",
    "Ensemble",
    "Explainer",
    "Explanation",
    "Explanations",
    "Feature",
    "FeatureSpace",
    "GuessingThresholds",
    "Implication",
    "Linear",
    "LinearExplainer",
    "MaxChanges",
    "Plausibility",
    "Problem",
    "SurrogateTree",
    "ThresholdBinarizer",
    "quadratic_cost",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ocf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

"""ocf: optimal counterfactual explanations for tree models.

The cheapest change to an input that turns a tree model's decision, with a proof that nothing cheaper exists.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ocf.support.version import VERSION as __version__

if TYPE_CHECKING:
    from ocf.compression.discretizer import CounterfactualDiscretizer as CounterfactualDiscretizer
    from ocf.compression.guessing import GuessingThresholds as GuessingThresholds
    from ocf.compression.surrogate import SurrogateTree as SurrogateTree
    from ocf.compression.transformer import ThresholdBinarizer as ThresholdBinarizer
    from ocf.explain.explainer import Explainer as Explainer
    from ocf.explain.explanation import Explanation as Explanation
    from ocf.explain.explanation import Explanations as Explanations
    from ocf.explain.leaf_queries import explain_leaves as explain_leaves
    from ocf.explain.leaf_queries import explain_margins as explain_margins
    from ocf.explain.leaf_queries import improve as improve
    from ocf.explain.leaf_queries import nearest_instances as nearest_instances
    from ocf.explain.linear import LinearExplainer as LinearExplainer
    from ocf.features.feature import Feature as Feature
    from ocf.features.space import FeatureSpace as FeatureSpace
    from ocf.models.plausibility import Plausibility as Plausibility
    from ocf.problem.constraints import Budget as Budget
    from ocf.problem.constraints import Implication as Implication
    from ocf.problem.constraints import Linear as Linear
    from ocf.problem.constraints import MaxChanges as MaxChanges
    from ocf.problem.costs import Cost as Cost
    from ocf.problem.problem import Problem as Problem
    from ocf.problem.quadratic import quadratic_cost as quadratic_cost
    from ocf.readers.survival import survival_at as survival_at
    from ocf.rules.explainer import CounterfactualRules as CounterfactualRules
    from ocf.trees.ensemble import Ensemble as Ensemble


#: Public name -> module; imported on first use, so that ``import ocf`` takes no time.
_HOMES = {
    "Budget": "ocf.problem.constraints",
    "Cost": "ocf.problem.costs",
    "CounterfactualDiscretizer": "ocf.compression.discretizer",
    "CounterfactualRules": "ocf.rules.explainer",
    "Ensemble": "ocf.trees.ensemble",
    "explain_leaves": "ocf.explain.leaf_queries",
    "explain_margins": "ocf.explain.leaf_queries",
    "Explainer": "ocf.explain.explainer",
    "Explanation": "ocf.explain.explanation",
    "Explanations": "ocf.explain.explanation",
    "Feature": "ocf.features.feature",
    "FeatureSpace": "ocf.features.space",
    "GuessingThresholds": "ocf.compression.guessing",
    "Implication": "ocf.problem.constraints",
    "Linear": "ocf.problem.constraints",
    "LinearExplainer": "ocf.explain.linear",
    "MaxChanges": "ocf.problem.constraints",
    "improve": "ocf.explain.leaf_queries",
    "nearest_instances": "ocf.explain.leaf_queries",
    "Plausibility": "ocf.models.plausibility",
    "Problem": "ocf.problem.problem",
    "quadratic_cost": "ocf.problem.quadratic",
    "SurrogateTree": "ocf.compression.surrogate",
    "survival_at": "ocf.readers.survival",
    "ThresholdBinarizer": "ocf.compression.transformer",
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
    "__version__",
    "explain_leaves",
    "explain_margins",
    "improve",
    "nearest_instances",
    "quadratic_cost",
    "survival_at",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ocf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

"""Trees of oblique splits, and how they are trained."""

from ocf.oblique.path import TAOClassifierCV
from ocf.oblique.tao import TAOClassifier, TAORegressor
from ocf.oblique.tree import ObliqueTree

__all__ = ["ObliqueTree", "TAOClassifier", "TAOClassifierCV", "TAORegressor"]

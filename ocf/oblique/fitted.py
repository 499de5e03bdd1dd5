"""What scikit-learn's estimators of one oblique tree have in common once they are fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ocf.arrays import FloatArray, IntArray
from ocf.oblique.tree import ObliqueTree


class FittedTree(BaseEstimator):
    """An estimator that checks its rows as scikit-learn's do, and whose `fit` leaves a tree.

    Attributes
    ----------
    tree_ : ObliqueTree
    """

    tree_: ObliqueTree

    def checked_rows(self, x: Any, **target: Any) -> Any:
        """Checked rows as float64; with a target ``y``, those of training and the target.

        Parameters
        ----------
        x : array_like
        **target
            ``y`` or nothing.
        """
        return validate_data(self, x, dtype=np.float64, reset="y" in target, order="C", **target)

    @property
    def n_leaves_(self) -> int:
        """Leaves of the fitted tree."""
        return len(self.tree_.leaves)

    def apply(self, X: ArrayLike) -> IntArray:
        """Leaf (node number of `tree_`) that each row reaches, (n,)."""
        check_is_fitted(self)
        return self.tree_.apply(self.checked_rows(X))


class FittedTreeClassifier(ClassifierMixin, FittedTree):
    """A fitted tree whose leaves hold shares of classes.

    Attributes
    ----------
    classes_ : (n_classes,) array
    """

    classes_: NDArray[Any]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Shares of the classes among the training rows of the leaf, (n, n_classes)."""
        check_is_fitted(self)
        return self.tree_.scores(self.checked_rows(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class labels, (n,)."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

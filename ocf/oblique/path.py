"""The choice of the penalty of an oblique tree by cross-validation, along a path of penalties with warm starts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from ocf.arrays import FloatArray, IntArray
from ocf.oblique.fitted import FittedTreeClassifier
from ocf.oblique.tao import TAOClassifier
from ocf.support.progress import ProgressBar


def penalty_path(tree: TAOClassifier, Cs: Sequence[float], X: ArrayLike, y: ArrayLike) -> list[TAOClassifier]:
    """Trees of a path of penalties, the weakest first; each starts from the one before.

    Parameters
    ----------
    tree : TAOClassifier
        Its settings; it is left as it is.
    Cs : sequence of float
        Inverse strengths of the penalty, falling.
    X : (n, n_features) array_like of float
    y : (n,) array_like
        Labels.
    """
    settings = tree.get_params(deep=False)
    going, out = TAOClassifier(**settings).set_params(warm_start=True), []
    for C in Cs:
        going.set_params(C=C).fit(X, y)
        out.append(copy(going).set_params(warm_start=tree.warm_start))
    return out


def best_path(
    tree: TAOClassifier, Cs: Sequence[float], X: ArrayLike, y: ArrayLike, seeds: Sequence[int]
) -> list[TAOClassifier]:
    """For each penalty the tree of several paths that makes the fewest errors in training, the smaller of equals.

    Parameters
    ----------
    tree : TAOClassifier
        Its settings.
    Cs : sequence of float
        Inverse strengths of the penalty, falling.
    X : (n, n_features) array_like of float
    y : (n,) array_like
        Labels.
    seeds : sequence of int
        One for each path.
    """
    settings = tree.get_params(deep=False)
    starts = [TAOClassifier(**{**settings, "random_state": seed}) for seed in seeds]
    paths = [penalty_path(start, Cs, X, y) for start in starts]
    return [max(trees, key=lambda one: (one.score(X, y), -one.n_leaves_)) for trees in zip(*paths, strict=True)]


class TAOClassifierCV(FittedTreeClassifier):
    """Oblique tree by Tree Alternating Optimization, with the penalty that is best in cross-validation.

    In each fold, and at the end on all rows, there as far as the penalty taken, trees are trained along the path of
    penalties, from the weakest to the strongest, each from the tree before it (`TAOClassifier` with ``warm_start``), on
    columns scaled to [0, 1]. Of the paths of several starts the tree of the smallest training error counts. The penalty
    of the best mean accuracy on the rows left out is taken, the strongest of equals.

    Parameters
    ----------
    max_depth : int
        Of the initial tree.
    Cs : int or sequence of float
        Inverse strengths of the l1 penalty; a number stands for as many from 0.1 to 100, evenly on a log scale.
    cv : int, splitter or iterable, optional
        Folds, as scikit-learn takes them; default: 5, stratified, drawn by `random_state`.
    n_init : int
        Starts of each path.
    init : {"cart", "random"}
        As in `TAOClassifier`. CART's tree is nearly the same at each start, random directions are not.
    max_iter, n_iter_no_change, splits, scaling, tol
        As in `TAOClassifier`.
    random_state : int, RandomState or None
    verbose : bool
        Progress bar on stderr.

    Attributes
    ----------
    C_ : float
        The penalty taken.
    Cs_ : (n_penalties,) float array
        Falling.
    scores_ : (n_folds, n_penalties) float array
        Accuracy on the rows left out.
    best_estimator_ : TAOClassifier
        Trained on all rows.
    tree_ : ObliqueTree
    n_leaves_, n_iter_ : int
        Of the tree taken.
    classes_, n_features_in_, feature_names_in_
        As in `TAOClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = TAOClassifierCV(2, random_state=0).fit(X, y)
    >>> bool(tree.score(X, y) > 0.95), tree.scores_.shape
    (True, (5, 7))
    """

    def __init__(
        self,
        max_depth: int = 4,
        *,
        Cs: int | Sequence[float] = 7,
        cv: Any = None,
        n_init: int = 1,
        init: Literal["cart", "random"] = "cart",
        max_iter: int = 60,
        n_iter_no_change: int = 5,
        splits: Literal["oblique", "axis"] = "oblique",
        scaling: Literal["deviation", "range"] = "range",
        tol: float = 1e-3,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.max_depth = max_depth
        self.Cs = Cs
        self.cv = cv
        self.n_init = n_init
        self.init = init
        self.max_iter = max_iter
        self.n_iter_no_change = n_iter_no_change
        self.splits = splits
        self.scaling = scaling
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose the penalty on rows (n, n_features) with labels (n,), and train on all of them.

        Parameters
        ----------
        X : (n, n_features) array_like of float
            Finite.
        y : (n,) array_like
            Labels.
        """
        rows, labels = self.checked_rows(X, y=y)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        self.Cs_ = self._penalties()
        rng = check_random_state(self.random_state)
        folds = self._folds(rows, labels, rng)
        seeds = rng.randint(2**31 - 1, size=self.n_init).tolist()
        shared = set(TAOClassifier().get_params()) & set(self.get_params(deep=False)) - {"verbose"}
        tree = TAOClassifier(**{name: getattr(self, name) for name in shared})
        scores = []
        with ProgressBar(len(folds) + 1, enabled=self.verbose) as bar:
            for a, b in folds:
                trees = best_path(tree, self.Cs_.tolist(), rows[a], labels[a], seeds)
                scores.append([one.score(rows[b], labels[b]) for one in trees])
                bar.advance(f"accuracy {max(scores[-1]):.3f}")
            self.scores_ = np.array(scores)
            means = self.scores_.mean(axis=0)
            at = int(np.flatnonzero(means >= means.max() - 1e-12)[-1])  # equal but for the rounding of a mean
            self.C_ = float(self.Cs_[at])
            self.best_estimator_ = best_path(tree, self.Cs_[: at + 1].tolist(), rows, labels, seeds)[-1]
            bar.advance("trained on all rows")
        names = tuple(getattr(self, "feature_names_in_", ()))
        self.n_iter_ = self.best_estimator_.n_iter_
        self.tree_ = replace(self.best_estimator_.tree_, feature_names=names)
        return self

    def _penalties(self) -> FloatArray:
        if not (isinstance(self.n_init, int | np.integer) and self.n_init >= 1):
            raise ValueError(f"n_init must be a whole number of at least 1, not {self.n_init!r}")
        given = np.geomspace(100.0, 0.1, self.Cs) if isinstance(self.Cs, int | np.integer) else np.array(self.Cs, float)
        if given.ndim != 1 or not len(given) or not (given > 0).all():
            raise ValueError(f"Cs must be positive numbers, or how many to try, not {self.Cs!r}")
        return np.unique(given)[::-1]

    def _folds(self, x: FloatArray, y: NDArray[Any], rng: Any) -> list[tuple[IntArray, IntArray]]:
        """Rows to train on and rows left out; without `cv` no more folds than the rarest class has rows, but two."""
        from sklearn.model_selection import StratifiedKFold

        if self.cv is None:
            rarest = int(np.unique(y, return_counts=True)[1].min())
            cv = StratifiedKFold(int(np.clip(rarest, 2, 5)), shuffle=True, random_state=rng.randint(2**31 - 1))
        else:
            cv = check_cv(self.cv, y, classifier=True)
        return list(cv.split(x, y))

"""Tree Alternating Optimization, which trains oblique decision trees (`ocf.oblique.tree`).

Nomenclature
------------
==================  ==================================================================================
symbol              meaning, shape
==================  ==================================================================================
``w[v], t[v]``      weights and threshold of node v: a row x goes left exactly when ``w[v] . x <= t[v]``
``R[v]``            training rows that reach node v
``care points``     rows of R[v] whose loss depends on the side to which v sends them
==================  ==================================================================================

Source: Carreira-Perpiñán and Tavallali, *Alternating optimization of decision trees, with application to learning
sparse oblique trees*, NeurIPS 2018; used by Carreira-Perpiñán and Hada, *Counterfactual explanations for oblique
decision trees*, AAAI 2021, section 3.2. The papers write ``f(x) = w . x + b`` and send ``f(x) >= 0`` to the right; here
the tie goes to the left, so that every split of every model reads "left up to the threshold".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.oblique.fitted import FittedTree, FittedTreeClassifier
from ocf.oblique.tree import ObliqueTree, descend_tree, dot
from ocf.support.progress import ProgressBar

logger = logging.getLogger(__name__)


class _Grown:
    """A tree in training: arrays that change in place, and the rows that reach each node."""

    def __init__(self, n_nodes: int, n_features: int, n_outputs: int) -> None:
        self.weights = np.zeros((n_nodes, n_features))
        self.threshold = np.zeros(n_nodes)
        self.left = np.full(n_nodes, -1)
        self.right = np.full(n_nodes, -1)
        self.value = np.zeros((n_nodes, n_outputs))

    def sides(self, v: int, x: FloatArray) -> BoolArray:
        """Which rows node v sends left."""
        return dot(x, self.weights[v]) <= self.threshold[v]

    def same(self, other: _Grown) -> bool:
        """Whether another state of the tree has the same splits and values."""
        pairs = ((self.weights, other.weights), (self.threshold, other.threshold), (self.value, other.value))
        return all(np.array_equal(a, b) for a, b in pairs)

    def below(self, v: int, x: FloatArray) -> IntArray:
        """Leaf that rows reach from node v."""
        return descend_tree(self.weights, self.threshold, self.left, self.right, x, v)

    def levels(self) -> list[list[int]]:
        """Inner nodes by depth, the root first."""
        out: list[list[int]] = []
        level = [0]
        while level := [v for v in level if self.left[v] >= 0]:
            out.append(level)
            level = [int(c) for v in level for c in (self.left[v], self.right[v])]
        return out

    def reached(self, x: FloatArray) -> list[IntArray]:
        """Rows that reach each node."""
        rows = [np.zeros(0, np.int64)] * len(self.left)
        rows[0] = np.arange(len(x))
        for v in (v for level in self.levels() for v in level):
            goes = self.sides(v, x[rows[v]])
            rows[self.left[v]], rows[self.right[v]] = rows[v][goes], rows[v][~goes]
        return rows

    def pruned(self, x: FloatArray) -> _Grown:
        """The tree without splits of which one side gets no row."""
        rows = self.reached(x)

        def alive(v: int) -> int:
            while self.left[v] >= 0:
                empty = [not len(rows[c]) for c in (self.left[v], self.right[v])]
                if not any(empty):
                    break
                v = int(self.right[v] if empty[0] else self.left[v])
            return v

        order, left, right = _numbered(self.left, self.right, alive)
        out = _Grown(len(order), self.weights.shape[1], self.value.shape[1])
        out.weights, out.threshold, out.value = self.weights[order], self.threshold[order], self.value[order]
        out.left, out.right = left, right
        return out


def _numbered(
    left: IntArray, right: IntArray, alive: Callable[[int], int] = lambda v: v
) -> tuple[IntArray, IntArray, IntArray]:
    """Nodes that can be reached, parents first, and their children by place in that order.

    Parameters
    ----------
    left, right : (n_nodes,) int64
    alive : callable
        The node that stands in for one.
    """
    order, children = [alive(0)], []
    for v in order:  # grows while it is read
        if left[v] >= 0:
            children.append((len(order), len(order) + 1))
            order += [alive(int(left[v])), alive(int(right[v]))]
        else:
            children.append((-1, -1))
    return np.array(order), *np.array(children).T


class _TAO(FittedTree):
    """What the classifier and the regressor share."""

    def __init__(
        self,
        max_depth: int = 4,
        *,
        C: float = 1.0,
        max_iter: int = 60,
        n_iter_no_change: int = 5,
        init: Literal["cart", "random"] = "cart",
        splits: Literal["oblique", "axis"] = "oblique",
        ccp_alpha: float = 0.0,
        scaling: Literal["deviation", "range"] = "deviation",
        warm_start: bool = False,
        tol: float = 1e-3,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.max_depth = max_depth
        self.C = C
        self.max_iter = max_iter
        self.n_iter_no_change = n_iter_no_change
        self.init = init
        self.splits = splits
        self.ccp_alpha = ccp_alpha
        self.scaling = scaling
        self.warm_start = warm_start
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    # the two differ in the loss of a row at a leaf and in the best value of a leaf
    def _losses(self, leaves: IntArray, value: FloatArray, y: NDArray[Any]) -> FloatArray:
        raise NotImplementedError

    def _leaf_value(self, y: NDArray[Any], n_outputs: int) -> FloatArray:
        raise NotImplementedError

    def _fit(self, x: FloatArray, y: NDArray[Any], n_outputs: int) -> None:
        _check_settings(self)
        rng = check_random_state(self.random_state)
        self._offset, self._scale = _column_scales(x, self.scaling)
        warm = self.warm_start and hasattr(self, "tree_")
        tree = self._start(x, y, n_outputs, rng)
        self._refit_leaves(tree, x, y)
        # the tree of the smallest training error is kept, not that of the papers' error + penalty, which says little:
        # no row changes sides when all weights of a node shrink. Trees kept by the sum had the larger error in
        # cross-validation on 6 of 7 splits (Breast 3.2 % for 2.9, Credit 28.3 for 27.4, Spambase 7.2 for 7.2), and
        # where nodes may not raise the sum, the training hardly leaves its start (Spambase 8.0 for 7.0).
        # directions drawn at random fit nothing (with many leaves their majorities do all the same, by heart), and a
        # tree that was trained under another penalty is no answer to this one
        fair = self.init == "cart" and not warm
        best, at, least = deepcopy(tree), 0, self._total(tree, x, y) if fair else np.inf
        curve: list[float] = []
        seed = int(rng.randint(2**31 - 1))
        with ProgressBar(self.max_iter, enabled=self.verbose) as bar:
            for k in range(self.max_iter):
                before = deepcopy(tree)
                self._pass(tree, x, y, seed)
                loss = self._total(tree, x, y)
                if loss < least:
                    best, least, at = deepcopy(tree), loss, k
                curve.append(least)
                logger.info("iteration %d: training loss %.6g", k + 1, loss)
                bar.advance(f"loss {least:.4g}")
                if least == 0 or k - at >= self.n_iter_no_change or tree.same(before):
                    break
        self.loss_curve_ = np.array(curve)
        self.n_iter_ = len(curve)
        tree = best.pruned(x)
        losses = self._refit(tree, x, y, range(len(tree.left)))
        names = getattr(self, "feature_names_in_", ())
        grown = ObliqueTree(
            tree.weights,
            tree.threshold,
            tree.left,
            tree.right,
            tree.value,
            getattr(self, "classes_", ()),
            tuple(names),
        )
        self.tree_, self.node_losses_ = _weakest_links_cut(grown, losses, self.ccp_alpha)

    def pruned(self, ccp_alpha: float) -> Self:
        """Fitted copy whose weakest links are cut, as if it had been trained with this `ccp_alpha`.

        One training thus serves the choice of the parameter.

        Parameters
        ----------
        ccp_alpha : float
            A smaller one than that of the training changes nothing.
        """
        check_is_fitted(self)
        out = copy(self).set_params(ccp_alpha=ccp_alpha)
        _check_settings(out)
        out.tree_, out.node_losses_ = _weakest_links_cut(self.tree_, self.node_losses_, ccp_alpha)
        return out

    def _start(self, x: FloatArray, y: NDArray[Any], n_outputs: int, rng: Any) -> _Grown:
        """The tree that the alternation starts from."""
        if self.warm_start and hasattr(self, "tree_"):
            return _grown_again(self.tree_, x.shape[1], n_outputs)
        return self._cart(x, y, n_outputs, rng) if self.init == "cart" else self._random(x, n_outputs, rng)

    def _random(self, x: FloatArray, n_outputs: int, rng: Any) -> _Grown:
        """A complete tree of random directions, each split at the median of its rows."""
        n_inner = 2**self.max_depth - 1
        tree = _Grown(2 * n_inner + 1, x.shape[1], n_outputs)
        inner = np.arange(n_inner)
        tree.left[inner], tree.right[inner] = 2 * inner + 1, 2 * inner + 2
        rows = [np.zeros(0, np.int64)] * len(tree.left)
        rows[0] = np.arange(len(x))
        for v in inner.tolist():
            if self.splits == "axis":
                tree.weights[v, rng.randint(x.shape[1])] = 1.0
            else:
                tree.weights[v] = rng.normal(size=x.shape[1]) / self._scale
            projected = dot(x[rows[v]], tree.weights[v])
            tree.threshold[v] = np.median(projected) if len(projected) else 0.0
            goes = projected <= tree.threshold[v]
            rows[tree.left[v]], rows[tree.right[v]] = rows[v][goes], rows[v][~goes]
        return tree

    def _cart(self, x: FloatArray, y: NDArray[Any], n_outputs: int, rng: Any) -> _Grown:
        """The tree that scikit-learn grows greedily."""
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        if self.max_depth == 0:
            return _Grown(1, x.shape[1], n_outputs)
        kind = DecisionTreeClassifier if isinstance(self, ClassifierMixin) else DecisionTreeRegressor
        grown = kind(max_depth=self.max_depth, random_state=rng.randint(2**31 - 1)).fit(x, y).tree_
        tree = _Grown(grown.node_count, x.shape[1], n_outputs)
        tree.left, tree.right = grown.children_left.astype(np.int64), grown.children_right.astype(np.int64)
        inner = np.flatnonzero(tree.left >= 0)
        tree.weights[inner, grown.feature[inner]] = 1.0
        tree.threshold[inner] = grown.threshold[inner]
        return tree

    def _refit(self, tree: _Grown, x: FloatArray, y: NDArray[Any], nodes: Iterable[int]) -> FloatArray:
        """Best value for each of some nodes, and what all nodes' rows would lose there, as a share of all rows, (n,).

        A node that no row reaches keeps what it has.
        """
        losses, rows = np.zeros(len(tree.left)), tree.reached(x)
        for v in nodes:
            if len(rows[v]):
                own = y[rows[v]]
                tree.value[v] = self._leaf_value(own, tree.value.shape[1])
                losses[v] = self._losses(np.full(len(own), v), tree.value, own).sum() / len(x)
        return losses

    def _refit_leaves(self, tree: _Grown, x: FloatArray, y: NDArray[Any]) -> None:
        """Best value for each leaf."""
        self._refit(tree, x, y, np.flatnonzero(tree.left < 0).tolist())

    def _total(self, tree: _Grown, x: FloatArray, y: NDArray[Any]) -> float:
        """Mean loss on the training rows."""
        return float(self._losses(tree.below(0, x), tree.value, y).mean())

    def _pass(self, tree: _Grown, x: FloatArray, y: NDArray[Any], seed: int) -> None:
        """Optimise every node once, the deepest first; the splits above a node, and so its rows, are those before."""
        rows = tree.reached(x)
        for level in reversed(tree.levels()):
            for v in level:
                if len(rows[v]):
                    self._optimise(tree, v, x[rows[v]], y[rows[v]], seed)
        self._refit_leaves(tree, x, y)

    def _optimise(self, tree: _Grown, v: int, x: FloatArray, y: NDArray[Any], seed: int) -> None:
        """Fit node v to send each care point, whose loss depends on its side, to that of the smaller loss."""
        at_left = self._losses(tree.below(int(tree.left[v]), x), tree.value, y)
        at_right = self._losses(tree.below(int(tree.right[v]), x), tree.value, y)
        care = np.flatnonzero(at_left != at_right)
        if not len(care):
            return
        wants_left = at_left[care] < at_right[care]
        gain = np.abs(at_left[care] - at_right[care])
        points = x[care]
        if wants_left.all() or not wants_left.any():
            tree.weights[v], tree.threshold[v] = 0.0, 1.0 if wants_left.all() else -1.0
            return
        fit = _axis_split if self.splits == "axis" else self._logistic_split
        tree.weights[v], tree.threshold[v] = fit(points, wants_left, gain, seed)

    def _logistic_split(
        self, x: FloatArray, wants_left: BoolArray, gain: FloatArray, seed: int
    ) -> tuple[FloatArray, float]:
        """l1-regularised logistic regression; columns are scaled for the fit and the weights scaled back."""
        import warnings

        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=self.C, l1_ratio=1.0, solver="liblinear", tol=self.tol, random_state=seed, max_iter=200
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the training error decides which tree is kept
            model.fit((x - self._offset) / self._scale, ~wants_left, sample_weight=gain / gain.mean())
        weights = model.coef_[0] / self._scale
        return weights, float(weights @ self._offset - model.intercept_[0])


def _check_settings(model: _TAO) -> None:
    if not (isinstance(model.max_depth, int | np.integer) and model.max_depth >= 0):
        raise ValueError(f"max_depth must be a whole number of at least 0, not {model.max_depth!r}")
    if not model.ccp_alpha >= 0:
        raise ValueError(f"ccp_alpha must be at least 0, not {model.ccp_alpha!r}")
    if not model.C > 0:
        raise ValueError(f"C must be positive, not {model.C!r}")
    if model.init not in ("cart", "random"):
        raise ValueError(f"init must be 'cart' or 'random', not {model.init!r}")
    if model.splits not in ("oblique", "axis"):
        raise ValueError(f"splits must be 'oblique' or 'axis', not {model.splits!r}")
    if model.scaling not in ("deviation", "range"):
        raise ValueError(f"scaling must be 'deviation' or 'range', not {model.scaling!r}")


def _column_scales(x: FloatArray, scaling: str) -> tuple[FloatArray, FloatArray]:
    """Offset and scale of each column in the node problems; the scale is 1 where the spread is 0 or infinite.

    Parameters
    ----------
    x : (n, n_features) float64
    scaling : {"deviation", "range"}
    """
    lowest = x.min(axis=0)
    with np.errstate(over="ignore"):
        spread = x.std(axis=0) if scaling == "deviation" else x.max(axis=0) - lowest
    scale = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
    return (np.zeros(x.shape[1]) if scaling == "deviation" else lowest), scale


def _grown_again(tree: ObliqueTree, n_features: int, n_outputs: int) -> _Grown:
    """A finished tree as one in training.

    Parameters
    ----------
    tree : ObliqueTree
    n_features, n_outputs : int
        Of the rows that it is trained on next.
    """
    if tree.value.shape[1] != n_outputs or tree.weights.shape[1] != n_features:
        raise ValueError("warm_start goes on with as many features and classes as before: fit a clone instead")
    out = _Grown(len(tree.left), n_features, n_outputs)
    out.weights, out.threshold, out.value = tree.weights.copy(), tree.threshold.copy(), tree.value.copy()
    out.left, out.right = tree.left.copy(), tree.right.copy()
    return out


def _weakest_links_cut(tree: ObliqueTree, losses: FloatArray, alpha: float) -> tuple[ObliqueTree, FloatArray]:
    """Minimal cost-complexity pruning: the split that gains least per leaf becomes a leaf, up to a gain of alpha.

    Source: Breiman, Friedman, Olshen and Stone, *Classification and Regression Trees*, 1984, section 3.3.

    Parameters
    ----------
    tree : ObliqueTree
        With a value at every node.
    losses : (n_nodes,) float64
        Of each node's training rows if it were a leaf, as a share of all rows.
    alpha : float
        Loss per leaf.
    """
    left, right = tree.left.copy(), tree.right.copy()
    order = np.arange(len(left))
    while alpha > 0 and (inner := order[left[order] >= 0]).size:
        below, leaves = losses.copy(), np.ones(len(left))
        for v in inner[::-1].tolist():  # children stand after their parents
            below[v] = below[left[v]] + below[right[v]]
            leaves[v] = leaves[left[v]] + leaves[right[v]]
        gain = (losses - below)[inner] / (leaves[inner] - 1)
        if gain.min() > alpha:
            break
        weakest = inner[gain.argmin()]
        left[weakest] = right[weakest] = -1
        order, *_ = _numbered(left, right)
    order, left, right = _numbered(left, right)
    weights, threshold, value = (a[order] for a in (tree.weights, tree.threshold, tree.value))
    cut = replace(tree, weights=weights, threshold=threshold, left=left, right=right, value=value)
    return cut, losses[order]


def _axis_split(x: FloatArray, wants_left: BoolArray, gain: FloatArray, seed: int) -> tuple[FloatArray, float]:
    """The threshold on one column that loses least; ``weights`` has a single 1."""
    signed = np.where(wants_left, gain, -gain)
    best = (np.inf, 0, 0.0)
    # sent right: those beyond the cut; they lose their gain when they want left and win it otherwise
    for j in range(x.shape[1]):
        order = np.argsort(x[:, j], kind="stable")
        values = x[order, j]
        won = np.cumsum(signed[order])[:-1]
        cuts = np.flatnonzero(values[1:] > values[:-1])
        if len(cuts):
            k = cuts[won[cuts].argmax()]
            if -won[k] < best[0]:
                middle = values[k] + (values[k + 1] - values[k]) / 2
                best = (-won[k], j, float(middle if middle < values[k + 1] else values[k]))
    weights = np.zeros(x.shape[1])
    if np.isfinite(best[0]):
        weights[best[1]] = 1.0
    return weights, best[2]


class TAOClassifier(FittedTreeClassifier, _TAO):
    """Decision tree trained by Tree Alternating Optimization.

    Starting from a tree of fixed structure, every node in turn, the deepest first, is fitted to send the rows that it
    can put right to the side that does so (l1-regularised logistic regression by liblinear, or the best single column)
    while the rest of the tree is held; leaves take the majority. Of the trees after each iteration the one with the
    smallest training error is kept. Splits that leave one side empty are pruned at the end.

    Parameters
    ----------
    max_depth : int
        Of the initial tree.
    C : float
        Inverse strength of the l1 penalty of the node problems, on scaled columns.
    max_iter : int
        Iterations at most.
    n_iter_no_change : int
        Training ends after so many iterations without a smaller error than the smallest.
    init : {"cart", "random"}
        Initial tree: scikit-learn's greedy one, or a complete tree of random directions.
    splits : {"oblique", "axis"}
        Hyperplanes, or thresholds on single columns.
    ccp_alpha : float
        Minimal cost-complexity pruning after the training, as in scikit-learn's trees: splits that lower the training
        error by no more than this per leaf are cut.
    scaling : {"deviation", "range"}
        Columns of the node problems are scaled to unit deviation, or to [0, 1]; the tree is in the rows' own units.
    warm_start : bool
        `fit` starts from the tree of the `fit` before in the place of `init`; splits that were pruned do not come back,
        so that a path of penalties goes from the weakest to the strongest.
    tol : float
        Tolerance of the logistic regressions.
    random_state : int, RandomState or None
    verbose : bool
        Progress bar on stderr.

    Attributes
    ----------
    classes_ : (n_classes,) array
    tree_ : ObliqueTree
    loss_curve_ : float array of length `n_iter_`
        Training error (share of rows) after each iteration, of the best tree so far; it never rises.
    n_iter_ : int
    node_losses_ : (n_nodes,) float array
        Of the training rows of each node of `tree_` if it were a leaf, as a share of all rows.
    n_features_in_ : int
    feature_names_in_ : array of str
        When fitted on a table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = TAOClassifier(2, random_state=0).fit(X, y)
    >>> bool(tree.score(X, y) > 0.95), tree.n_leaves_
    (True, 3)
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> TAOClassifier:
        """Train on rows (n, n_features) with labels (n,).

        Parameters
        ----------
        X : (n, n_features) array_like of float
            Finite.
        y : (n,) array_like
            Labels.
        """
        rows, labels = self.checked_rows(X, y=y)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self._fit(rows, codes, len(self.classes_))
        return self

    def _losses(self, leaves: IntArray, value: FloatArray, y: NDArray[Any]) -> FloatArray:
        return np.asarray(value.argmax(axis=1)[leaves] != y, np.float64)

    def _leaf_value(self, y: NDArray[Any], n_outputs: int) -> FloatArray:
        return np.bincount(y, minlength=n_outputs) / len(y)


class TAORegressor(RegressorMixin, _TAO):
    """Regression tree trained by Tree Alternating Optimization.

    As `TAOClassifier`, with squared losses: a care point weighs in the node problem by how much it has to lose, and
    leaves take the mean.

    Parameters
    ----------
    max_depth, C, max_iter, n_iter_no_change, init, splits, ccp_alpha, scaling, warm_start, tol, random_state, verbose
        As in `TAOClassifier`.

    Attributes
    ----------
    tree_ : ObliqueTree
    loss_curve_ : float array of length `n_iter_`
        Mean squared error on the training rows.
    node_losses_ : (n_nodes,) float array
    n_iter_, n_features_in_ : int
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> TAORegressor:
        """Train on rows (n, n_features) with values (n,).

        Parameters
        ----------
        X : (n, n_features) array_like of float
            Finite.
        y : (n,) array_like of float
            Finite.
        """
        rows, values = self.checked_rows(X, y=y)
        self._fit(rows, np.asarray(values, np.float64), 1)
        return self

    def _losses(self, leaves: IntArray, value: FloatArray, y: NDArray[Any]) -> FloatArray:
        return np.asarray((value[leaves, 0] - y) ** 2)

    def _leaf_value(self, y: NDArray[Any], n_outputs: int) -> FloatArray:
        return np.array([y.mean()])

    def predict(self, X: ArrayLike) -> FloatArray:
        """Values, (n,)."""
        check_is_fitted(self)
        return self.tree_.scores(self.checked_rows(X))[:, 0]

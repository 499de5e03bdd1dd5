"""Small trees on binary features that stand in for a model, and that a person can read.

Three ways to the tree: CART, the usual greedy one; an optimal sparse tree by dynamic programming (STreeD, van der
Linden et al., *Necessary and sufficient conditions for optimal decision trees using dynamic programming*, NeurIPS
2023), where the paper uses GOSDT; and the same optimum by a mixed-integer model, `ocf.formulations.flowoct`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ocf.compression.thresholds import all_sides, sides_of_name
from ocf.errors import DataError, ProblemError, SolverError, TimeLimitError
from ocf.support.amounts import real_number
from ocf.support.limits import check, default_memory, seconds_left, within
from ocf.support.messages import listed, nearest
from ocf.support.optional import optional
from ocf.support.wording import word

METHODS = ("cart", "optimal", "flowoct")

#: Tests of a tree: its root, and what gives (feature, left, right) of its nodes and None of its leaves.
Tests = tuple[Any, Callable[[Any], Any]]


@dataclass(frozen=True)
class Node:
    """A leaf, or a test of one binary feature.

    Attributes
    ----------
    counts : (n_classes,) tuple of int
        Training rows of each class that reach the node.
    label : int
        Index of the class that it gives as a leaf.
    feature : int
        Binary feature that it tests; -1 for leaves.
    left, right : Node or None
        Where rows with 0 and with 1 go.
    """

    counts: tuple[int, ...]
    label: int
    feature: int = -1
    left: Node | None = None
    right: Node | None = None

    def leaves(self) -> Iterator[Node]:
        """Leaves, from left to right."""
        if self.left is None or self.right is None:
            yield self
        else:
            yield from self.left.leaves()
            yield from self.right.leaves()

    def tested(self) -> set[int]:
        """Binary features that are tested at or below the node."""
        if self.left is None or self.right is None:
            return set()
        return {self.feature} | self.left.tested() | self.right.tested()


class SurrogateTree(ClassifierMixin, BaseEstimator):
    """A shallow tree on the thresholds of a discretizer, printed as rules in the user's units.

    Tests whose two sides give the same class are left out, since a reader gains nothing by them.

    Parameters
    ----------
    discretizer : transformer, optional
        `CounterfactualDiscretizer` or another transformer to binary features. One that is fitted already is used as it
        is; another is cloned and fitted. Default: the table holds binary features itself.
    method : {"cart", "optimal", "flowoct"}
        ``"optimal"`` needs the package pystreed, ``"flowoct"`` a solver.
    max_depth : int
    leaf_penalty : float
        Training rows that a leaf must save, for the optimal methods: they minimise errors + leaf_penalty * leaves. The
        paper's regularisation of 10 / n is 10 rows.
    solver : str
        For ``"flowoct"``.
    time_limit : float, optional
        Seconds, for the optimal methods. A tree that is not proven optimal by then is an error.
    random_state : int
        Of CART, for ties.

    Attributes
    ----------
    tree_ : Node
    classes_ : (n_classes,) array
    discretizer_ : transformer or None
    names_ : list of str
        Of the binary features.
    errors_ : int
        Misclassified training rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    >>> print(SurrogateTree().fit(X, X[:, 0] * X[:, 1]))
    x0 is 0: 0 (10 of 10)
    x0 is 1:
      x1 is 0: 0 (5 of 5)
      x1 is 1: 1 (5 of 5)
    """

    def __init__(
        self,
        discretizer: Any = None,
        *,
        method: str = "cart",
        max_depth: int = 3,
        leaf_penalty: float = 10.0,
        solver: str = "highs",
        time_limit: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.discretizer = discretizer
        self.method = method
        self.max_depth = max_depth
        self.leaf_penalty = leaf_penalty
        self.solver = solver
        self.time_limit = time_limit
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the discretizer, if it is not, and the tree.

        Parameters
        ----------
        X : DataFrame or array (n, n_columns)
            As the discretizer takes it; binary features where there is none.
        y : (n,) array of class labels

        Raises
        ------
        DataError
            Without a discretizer a column has more than two values, or a discretizer gives other values than 0 and 1.
        MissingDependencyError
            ``method="optimal"`` without pystreed.
        SolverError
            No proof of optimality within the time limit.
        """
        if self.method not in METHODS:
            raise ProblemError(f"unknown method {nearest(self.method, METHODS)}")
        if not (isinstance(self.max_depth, int | np.integer) and self.max_depth >= 1):
            raise ProblemError(f"max_depth is a whole number of at least 1, not {self.max_depth!r}")
        if not 0 <= real_number(self.leaf_penalty) < np.inf:
            raise ProblemError(f"leaf_penalty is a number of rows of at least 0, not {self.leaf_penalty!r}")
        bits, y = self._training_bits(X, y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        # one class, no features, or too few rows for two leaves to pay: solvers need not be asked
        trivial = len(self.classes_) < 2 or not bits.shape[1]
        tests = None if trivial else WAYS[self.method](self, bits, labels)
        self.tree_ = self._leaf(labels) if tests is None else self._grown(bits, labels, *tests)
        self.errors_ = sum(sum(leaf.counts) - leaf.counts[leaf.label] for leaf in self.tree_.leaves())
        return self

    def _training_bits(self, X: Any, y: Any) -> tuple[NDArray[np.int8], NDArray[Any]]:
        if self.discretizer is None:
            X, y = validate_data(self, X, y, ensure_min_features=0)
            self.discretizer_ = None
            names = getattr(self, "feature_names_in_", None)
            self.cuts_ = _middles(X)
            shown = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(n) for n in names]
            self._told = [_sides(name, X[:, j]) for j, name in enumerate(shown)]
            self.names_ = [yes for _, yes in self._told] if names is None else shown
            check_classification_targets(y)
            return self._bits(X), y
        y = np.asarray(y)
        check_classification_targets(y)
        ready = _is_fitted(self.discretizer)
        self.discretizer_ = self.discretizer if ready else clone(self.discretizer).fit(X, y)
        self.n_features_in_ = getattr(self.discretizer_, "n_features_in_", np.shape(X)[1])
        try:
            self.names_ = [str(n) for n in self.discretizer_.get_feature_names_out()]
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(f"the discretizer does not name its features by get_feature_names_out: {error}") from None
        kept = getattr(self.discretizer_, "kept_", None)
        self._told = [*map(sides_of_name, self.names_)] if kept is None else all_sides(kept, self.discretizer_.space_)
        return self._bits(X), y

    def _bits(self, X: Any) -> NDArray[np.int8]:
        if self.discretizer_ is None:
            return (np.asarray(X) > self.cuts_).astype(np.int8)
        bits = self.discretizer_.transform(X)
        bits = np.asarray(bits.toarray() if hasattr(bits, "toarray") else bits, np.float64)
        if others := [self.names_[j] for j in np.flatnonzero(~np.isin(bits, (0, 1)).all(axis=0)).tolist()]:
            raise DataError(
                f"the discretizer gives {listed(others)} other values than 0 and 1: give one of bins, such as "
                "CounterfactualDiscretizer() or KBinsDiscretizer(encode='onehot')"
            )
        return bits.astype(np.int8)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class label of each row, (n,)."""
        return self.classes_[[leaf.label for leaf in self._reached(X)]]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Share of each class among the training rows of the leaf that each row reaches, (n, n_classes)."""
        counts = np.array([leaf.counts for leaf in self._reached(X)], np.float64)
        return counts / counts.sum(axis=1, keepdims=True)

    def _reached(self, X: Any) -> list[Node]:
        check_is_fitted(self)
        if self.discretizer_ is None:
            X = validate_data(self, X, reset=False, ensure_min_features=0)
        out = []
        for row in self._bits(X):
            node = self.tree_
            while node.left is not None and node.right is not None:
                node = node.right if row[node.feature] else node.left
            out.append(node)
        return out

    # -- growing it -----------------------------------------------------------------------------------------

    def _leaf(self, labels: NDArray[Any]) -> Node:
        counts = np.bincount(labels, minlength=len(self.classes_))
        return Node(tuple(counts.tolist()), int(counts.argmax()))

    def _grown(self, bits: NDArray[Any], labels: NDArray[Any], at: Any, split: Callable[[Any], Any]) -> Node:
        """Tree with the tests of another one: `split` gives (feature, left, right) of its nodes, None of its leaves."""
        leaf = self._leaf(labels)
        found = split(at)
        if found is None:
            return leaf
        feature, left, right = found
        ones = bits[:, feature] == 1
        if ones.all() or not ones.any():  # no training row tells the sides apart
            return self._grown(bits, labels, right if ones.all() else left, split)
        sides = [self._grown(bits[side], labels[side], child, split) for side, child in ((~ones, left), (ones, right))]
        if all(side.left is None and side.label == leaf.label for side in sides):
            return leaf  # the test changes no decision
        return Node(leaf.counts, leaf.label, int(feature), *sides)

    # -- reading it ------------------------------------------------------------------------------------------

    @property
    def n_leaves_(self) -> int:
        """Number of leaves."""
        return sum(1 for _ in self.tree_.leaves())

    @property
    def objective_(self) -> float:
        """Misclassified training rows + leaf_penalty * leaves."""
        return self.errors_ + self.leaf_penalty * self.n_leaves_

    @property
    def features_(self) -> list[str]:
        """Features that the tree tests: the user's, or the binary ones where there is no discretizer."""
        tested = sorted(self.tree_.tested())
        discretizer: Any = self.discretizer_
        kept = getattr(discretizer, "kept_", None)
        if kept is None:
            return [self.names_[k] for k in tested]
        names = discretizer.space_.names
        return list(dict.fromkeys(names[kept[k].feature] for k in tested))

    def rules(self) -> list[str]:
        """One sentence per leaf, such as ``"if age <= 37.5 and job = clerk: granted (41 of 44)"``."""
        check_is_fitted(self)
        return [
            f"{'if ' + ' and '.join(path) if path else 'always'}: {self._verdict(leaf)}"
            for path, leaf in self._paths(self.tree_, ())
        ]

    def _paths(self, node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
        if node.left is None or node.right is None:
            yield path, node
            return
        no, yes = self._told[node.feature]
        yield from self._paths(node.left, (*path, no))
        yield from self._paths(node.right, (*path, yes))

    def _verdict(self, leaf: Node) -> str:
        return f"{self.classes_[leaf.label]} ({leaf.counts[leaf.label]} of {sum(leaf.counts)})"

    def __str__(self) -> str:
        if not hasattr(self, "tree_"):
            return repr(self)
        return "\n".join(self._lines(self.tree_, "")) or f"always: {self._verdict(self.tree_)}"

    def _lines(self, node: Node, indent: str) -> Iterator[str]:
        if node.left is None or node.right is None:
            return
        for side, child in zip(self._told[node.feature], (node.left, node.right), strict=True):
            leaf = child.left is None
            yield f"{indent}{side}:{' ' + self._verdict(child) if leaf else ''}"
            yield from self._lines(child, indent + "  ")


# -- three ways to a tree --------------------------------------------------------------------------------------


def _cart(tree: SurrogateTree, bits: NDArray[Any], labels: NDArray[Any]) -> Tests | None:
    from sklearn.tree import DecisionTreeClassifier

    fitted = DecisionTreeClassifier(max_depth=tree.max_depth, random_state=tree.random_state).fit(bits, labels).tree_

    def split(k: int) -> Any:
        left, right = fitted.children_left[k], fitted.children_right[k]
        return None if left < 0 else (fitted.feature[k], left, right)

    return 0, split


def _streed(tree: SurrogateTree, bits: NDArray[Any], labels: NDArray[Any]) -> Tests | None:
    pystreed = optional("pystreed", "optimal-trees", "SurrogateTree(method='optimal')")
    penalty = tree.leaf_penalty / len(labels)
    if penalty >= 1:  # a second leaf costs more than all errors
        return None
    model = pystreed.STreeDClassifier(
        "cost-complex-accuracy",
        max_depth=int(tree.max_depth),
        cost_complexity=penalty,
        use_lower_bound=False,  # with it STreeD has called trees optimal that are not, in pystreed 1.4
        time_limit=1e9 if tree.time_limit is None else tree.time_limit,
    ).fit(bits.astype(np.int64), labels)
    if not model.fit_result.is_optimal():
        raise SolverError(f"no optimal tree within {tree.time_limit} s: raise time_limit or Q, or lower max_depth")

    def split(node: Any) -> Any:
        return None if node.is_leaf_node() else (node.feature, node.left_child, node.right_child)

    return model.get_tree(), split


def _flowoct(tree: SurrogateTree, bits: NDArray[Any], labels: NDArray[Any]) -> Tests | None:
    from ocf.formulations import flowoct
    from ocf.solvers import compile_model, matrix_solver
    from ocf.solvers.result import SolverOptions, Status

    solver = matrix_solver(tree.solver)
    problem = flowoct.TreeProblem.of(bits, labels, len(tree.classes_), int(tree.max_depth), tree.leaf_penalty)
    try:
        with within(tree.time_limit, default_memory()):
            built = flowoct.build(problem)
            form = compile_model(built.model, built.all_columns)
            start = built.start(problem, *_known(tree, bits, labels))
            check()
            left = None if tree.time_limit is None else seconds_left()
            result = solver.solve(form, SolverOptions(time_limit=left), warm_start=start)
    except TimeLimitError:
        raise SolverError(f"no tree within {tree.time_limit} s: raise time_limit or Q, or lower max_depth") from None
    if result.status is not Status.OPTIMAL or result.x is None:
        raise SolverError(
            f"{tree.solver} did not prove a tree optimal ({result.status.value}"
            f"{': ' + result.message if result.message else ''}): raise time_limit or Q, or lower max_depth"
        )
    chosen = built.decode(result.x)

    def split(n: int) -> Any:
        kind, which = chosen[n]
        return None if kind == "leaf" else (which, 2 * n, 2 * n + 1)

    return 1, split


def _known(tree: SurrogateTree, bits: NDArray[Any], labels: NDArray[Any]) -> Tests:
    """A good tree to start from: STreeD's where pystreed is installed, or CART's."""
    try:
        found = _streed(tree, bits, labels)
    except (ImportError, SolverError):
        found = _cart(tree, bits, labels)
    return found or (None, lambda node: None)


#: How each method finds its tests.
WAYS: dict[str, Callable[[SurrogateTree, NDArray[Any], NDArray[Any]], Tests | None]] = {
    "cart": _cart,
    "optimal": _streed,
    "flowoct": _flowoct,
}


def _is_fitted(discretizer: Any) -> bool:
    """Whether a discretizer is fitted; some need no fit but for the names of their features."""
    try:
        check_is_fitted(discretizer)
        discretizer.get_feature_names_out()
    except NotFittedError:
        return False
    except (AttributeError, TypeError, ValueError):  # it is asked again, and the error told
        return True
    return True


def _sides(name: str, column: NDArray[Any]) -> tuple[str, str]:
    """What is said of the rows with the lower, and with the higher of the two values of a column."""
    if set(column.tolist()) <= {0, 1}:
        return sides_of_name(name)
    return f"{name} is {word(column.min())}", f"{name} is {word(column.max())}"


def _middles(X: Any) -> NDArray[np.float64]:
    """Where the columns of a table of binary features are cut: between their two values, (n_columns,).

    Raises
    ------
    DataError
        A column has more than two values.
    """
    table = pd.DataFrame(np.asarray(X))
    many = [j for j in table.columns if table[j].nunique() > 2]
    if many:
        raise DataError(
            f"column {many[0]} has more than two values: give SurrogateTree a discretizer, such as "
            "CounterfactualDiscretizer()"
        )
    return ((table.min() + table.max()) / 2).to_numpy(np.float64)

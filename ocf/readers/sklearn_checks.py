"""What the attributes of scikit-learn's fitted objects must be, checked before any of their methods runs.

scikit-learn trusts what it fitted: its compiled code follows child indices and writes scores without a look at the size
of the array. An object from a file has been fitted by no one knows whom. `FIELDS` says for each class what each of its
attributes must be; an attribute that is not in the table, or that another version of scikit-learn does not have, is not
looked at. Every check is a function of the value and of all attributes of the object, and says what the value must be,
or nothing when it is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import ModelError
from ocf.support.amounts import real_number

Attributes = Mapping[str, Any]
Check = Callable[[Any, Attributes], str | None]

#: Most columns, outputs and classes: what an int32 can count.
_MOST = 2**31 - 1
#: Bits of a category set of histogram gradient boosting, in 32-bit words.
_SET_WORDS = 8


def check_attributes(kind: str, attributes: Attributes, where: str) -> None:
    """Refuse attributes that an object of the class `kind` cannot have.

    Parameters
    ----------
    kind : str
        Name of the class.
    attributes : mapping of str to object
    where : str
        Place of the object in its file, for the message.

    Raises
    ------
    ModelError
        The message names the attribute and what it must be.
    """
    fields = FIELDS.get(kind, {})
    for name in _REQUIRED.get(kind, ()):
        if _is_fitted(kind, attributes) and name not in attributes:
            _refuse(_place(where, name), f"is missing: a fitted {kind} has it")
    for name, check in fields.items():
        if name in attributes and (must := check(attributes[name], attributes)):
            _refuse(_place(where, name), f"must be {must}")


def check_tree(arguments: tuple[Any, ...], state: Attributes, where: str) -> None:
    """Refuse arguments and a state of `sklearn.tree._tree.Tree` that lead outside its memory.

    Parameters
    ----------
    arguments : tuple
        With which the tree is constructed.
    state : Attributes
        Which it is then given.
    where : str
        Place in the file, which messages name.

    Raises
    ------
    ModelError
        Children that form no tree, features that do not exist, numbers that are not finite, or shapes that differ.
    """
    if len(arguments) != 3 or not all(_is_count(arguments[k]) for k in (0, 2)):
        _refuse(where, "must be made from a number of features, numbers of classes and a number of outputs")
    n_features, n_classes, n_outputs = arguments
    if not _is_integers(n_classes) or n_classes.shape != (n_outputs,) or not _within(n_classes, 1, _MOST):
        _refuse(where, "must have a number of classes for each of its outputs")
    nodes, values = _get(state, "nodes"), _get(state, "values")
    if not isinstance(nodes, np.ndarray) or nodes.ndim != 1 or not len(nodes) or not set(_NODE) <= set(_names(nodes)):
        _refuse(_place(where, "nodes"), f"must be an array of nodes with the fields {', '.join(_NODE)}")
    shape = (len(nodes), n_outputs, int(n_classes.max()))
    if not _is_floats(values) or values.dtype != np.float64 or values.shape != shape or not np.isfinite(values).all():
        _refuse(_place(where, "values"), f"must be finite numbers of shape {shape}")
    if _get(state, "node_count") != len(nodes) or not _is_count(_get(state, "node_count")):
        _refuse(_place(where, "node_count"), f"must be {len(nodes)}, the number of nodes")
    if not _is_count(_get(state, "max_depth"), least=0):
        _refuse(_place(where, "max_depth"), "must be a number")
    left, right = nodes["left_child"].astype(np.int64), nodes["right_child"].astype(np.int64)
    inner = left != -1
    if (right[~inner] != -1).any():
        _refuse(_place(where, "nodes"), "do not form a tree: a node has a single child")
    if fault := check_links(left, right, inner):
        _refuse(_place(where, "nodes"), f"do not form a tree: {fault}")
    if not _within(nodes["feature"][inner], 0, n_features - 1):
        _refuse(_place(where, "nodes"), f"must split on one of the {n_features} features")
    # the threshold of a split of the missing from all the rest is infinity
    if not (nodes["threshold"][inner] > -np.inf).all() or not _within(nodes["missing_go_to_left"], 0, 1):
        _refuse(_place(where, "nodes"), "must split at numbers")
    if not _within(nodes["n_node_samples"], 1, nodes["n_node_samples"][0]):
        _refuse(_place(where, "nodes"), "must hold no more samples than their root, and at least one")


_NODE = ("left_child", "right_child", "feature", "threshold", "n_node_samples", "missing_go_to_left")


def check_loss(arguments: tuple[Any, ...], state: Any, where: str) -> None:
    """Refuse a loss of `sklearn._loss._loss` that is made from anything but a few numbers.

    Parameters
    ----------
    arguments : tuple
        With which the loss is constructed.
    state : object
        Which it is then given.
    where : str
        Place in the file, which messages name.
    """
    if len(arguments) > 2 or not all(_is_number(value) for value in arguments) or state:
        _refuse(where, "must be made from numbers only")


def check_random_state(state: Attributes, where: str) -> None:
    """Refuse a state of a random generator that would make it read outside its memory.

    Parameters
    ----------
    state : Attributes
    where : str
        Place in the file, which messages name.
    """
    bits, inner = _get(state, "bit_generator"), _get(state, "state")
    if bits not in ("MT19937", "PCG64") or not isinstance(inner, dict):
        _refuse(where, "must be the state of a generator MT19937 or PCG64")
    if bits == "MT19937":
        key, position = _get(inner, "key"), _get(inner, "pos")
        if not _is_integers(key) or key.shape != (624,) or not _is_integer(position) or not 0 <= position <= 624:
            _refuse(where, "must hold 624 numbers and a place among them")


def check_links(left: NDArray[Any], right: NDArray[Any], inner: NDArray[np.bool_]) -> str | None:
    """What is wrong with the children of a tree's nodes, if anything.

    Each node but the root must be the child of just one node before it.

    Parameters
    ----------
    left, right : (n_nodes,) int64
    inner : (n_nodes,) bool
        Nodes that have children.
    """
    children = np.concatenate([left[inner], right[inner]])
    parents = np.tile(np.flatnonzero(inner), 2)
    if not _within(children, 1, len(left) - 1):
        return "a child lies outside it"
    if (children <= parents).any():
        return "a child stands before its parent, on which a walk might not end"
    if not np.array_equal(np.sort(children), np.arange(1, len(left))):
        return "a node has no parent, or two"
    return None


def _refuse(where: str, what: str) -> NoReturn:
    raise ModelError(f"{where or 'the model'} {what}")


def _place(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _get(attributes: Attributes, name: str, default: Any = None) -> Any:
    return attributes.get(name, default)


def _names(array: NDArray[Any]) -> tuple[str, ...]:
    return array.dtype.names or ()


# -- what values are ---------------------------------------------------------------------------------------


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_count(value: Any, least: int = 1) -> bool:
    return _is_integer(value) and least <= value <= _MOST


def _is_number(value: Any) -> bool:
    return math.isfinite(real_number(value))


def _is_floats(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _is_integers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu"


def _within(values: NDArray[Any], low: int, high: int) -> bool:
    return bool(((values >= low) & (values <= high)).all())


# -- checks ------------------------------------------------------------------------------------------------


def _n_features(attributes: Attributes) -> int:
    """Columns that the object was fitted on; -1 if it does not say."""
    count = _get(attributes, "n_features_in_")
    return int(count) if count is not None and _is_count(count) else -1


def _optional(check: Check) -> Check:
    return lambda value, attributes: None if value is None else check(value, attributes)


def _count(value: Any, attributes: Attributes) -> str | None:
    return None if _is_count(value) else f"a whole number of 1 to {_MOST}"


def _jobs(value: Any, attributes: Attributes) -> str | None:
    return None if value is None or (_is_integer(value) and abs(value) <= _MOST) else "a whole number or null"


def _flag(value: Any, attributes: Attributes) -> str | None:
    return None if isinstance(value, bool | np.bool_) else "true or false"


def _quiet(value: Any, attributes: Attributes) -> str | None:
    return None if _is_integer(value) or isinstance(value, bool) else "a whole number"


def _number(value: Any, attributes: Attributes) -> str | None:
    return None if _is_number(value) else "a finite number"


def _text(value: Any, attributes: Attributes) -> str | None:
    return None if isinstance(value, str) else "text"


def _one_of(*texts: str) -> Check:
    return lambda value, attributes: None if isinstance(value, str) and value in texts else f"one of {', '.join(texts)}"


def _labels(value: Any, attributes: Attributes) -> str | None:
    """Class labels, which scikit-learn keeps sorted."""
    must = "the class labels in ascending order, each once"
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not len(value) or value.dtype.kind == "c":
        return must
    try:
        return None if bool((value[1:] > value[:-1]).all()) and bool((value == value).all()) else must
    except TypeError:
        return must


def _n_classes(value: Any, attributes: Attributes) -> str | None:
    return None if _is_count(value) and value == len(_get(attributes, "classes_", ())) else "the number of classes"


def _names_of_columns(value: Any, attributes: Attributes) -> str | None:
    fits = isinstance(value, np.ndarray) and value.shape == (_n_features(attributes),)
    return None if fits and all(isinstance(name, str) for name in value) else "a name for each column"


def _numbers(value: Any, attributes: Attributes) -> str | None:
    """One finite number for each column."""
    fits = _is_floats(value) and value.shape == (_n_features(attributes),) and np.isfinite(value).all()
    return None if fits else "a finite number for each column"


def _divisors(value: Any, attributes: Attributes) -> str | None:
    return _numbers(value, attributes) or (None if (value != 0).all() else "a number other than 0 for each column")


def _pair(value: Any, attributes: Attributes) -> str | None:
    fits = isinstance(value, tuple | list) and len(value) == 2 and all(_is_number(end) for end in value)
    return None if fits else "two finite numbers"


def average_path_length(size: Any) -> FloatArray:
    """Average path length of an isolation tree of `size` rows (Liu, Ting and Zhou 2008, equation 1), (n,).

    Parameters
    ----------
    size : (n,) array
        Numbers of rows.
    """
    size = np.asarray(size, np.float64)
    many = np.maximum(size, 3.0)
    length = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(size > 2, length, np.where(size == 2, 1.0, 0.0))


# -- trees and ensembles -----------------------------------------------------------------------------------


def _tree_of_its_columns(value: Any, attributes: Attributes) -> str | None:
    if type(value).__name__ != "Tree":
        return "a tree"
    if value.n_features != _n_features(attributes):
        return f"a tree of the {_n_features(attributes)} columns of n_features_in_"
    classes = _get(attributes, "classes_")
    if isinstance(classes, np.ndarray) and value.n_outputs == 1 and value.max_n_classes != len(classes):
        return "a tree of as many classes as classes_"
    return None if _counts_its_classes(value, attributes) else "a tree of n_classes_ classes"


def _counts_its_classes(tree: Any, attributes: Attributes) -> bool:
    """Whether a tree has as many classes as its estimator counts."""
    count = _get(attributes, "n_classes_", tree.max_n_classes)
    return tree.n_outputs > 1 or (_is_count(count) and bool(count == tree.max_n_classes))


def _is_tree(estimator: Any, n_features: int) -> bool:
    """Whether an estimator is a fitted tree of some number of columns."""
    state = vars(estimator) if hasattr(estimator, "__dict__") else {}
    tree = _get(state, "tree_")
    fits = type(tree).__name__ == "Tree" and bool(_get(state, "n_features_in_") == n_features)
    return fits and _counts_its_classes(tree, state)


def _trees(value: Any, attributes: Attributes) -> str | None:
    """Trees that all see all columns."""
    if not isinstance(value, list) or not value:
        return "a list of trees"
    n = _n_features(attributes)
    return None if all(_is_tree(tree, n) for tree in value) else f"a list of trees, each of {n} columns"


def _bagged(value: Any, attributes: Attributes) -> str | None:
    """Estimators of which each sees the columns that `estimators_features_` names."""
    columns = _get(attributes, "estimators_features_")
    if not isinstance(value, list) or not value or not isinstance(columns, list) or len(columns) != len(value):
        return "a list of estimators, with as many lists of columns"
    for estimator, chosen in zip(value, columns, strict=True):
        if not hasattr(estimator, "tree_"):
            continue  # no tree: refused by name when it is read
        if not _is_tree(estimator, np.size(chosen)):
            return "trees, each of as many columns as estimators_features_ names for it"
    return None


def _chosen_columns(value: Any, attributes: Attributes) -> str | None:
    must = "for each estimator, a list of columns that exist"
    if not isinstance(value, list):
        return must
    n = _n_features(attributes)
    fits = all(_is_integers(chosen) and chosen.ndim == 1 and _within(chosen, 0, n - 1) for chosen in value)
    return None if fits else must


def _stages(value: Any, attributes: Attributes) -> str | None:
    """Trees of gradient boosting: one column for each score; each node has one value."""
    if not isinstance(value, np.ndarray) or value.dtype != object or value.ndim != 2 or not value.size:
        return "a table of trees"
    n = _n_features(attributes)
    for tree in value.ravel():
        if not _is_tree(tree, n) or tree.tree_.n_outputs != 1 or tree.tree_.max_n_classes != 1:
            return f"a table of regression trees, each of {n} columns"
    width = _get(attributes, "n_trees_per_iteration_", value.shape[1])
    return None if width == value.shape[1] else "a table with a column for each score (n_trees_per_iteration_)"


def _starts(value: Any, attributes: Attributes) -> str | None:
    known = ("DummyClassifier", "DummyRegressor")
    if isinstance(value, str) and value == "zero":
        return None
    if type(value).__name__ not in known and not hasattr(value, "fit"):
        return "an estimator, or 'zero'"
    return None


def _weights(value: Any, attributes: Attributes) -> str | None:
    """Weights of the trees of AdaBoost; those behind the last tree are 0."""
    trees = _get(attributes, "estimators_")
    fits = _is_floats(value) and value.ndim == 1 and isinstance(trees, list) and len(value) >= len(trees)
    positive = fits and np.isfinite(value).all() and (value >= 0).all() and value[: len(trees)].sum() > 0
    return None if positive else "a finite weight for each tree, none below 0, not all 0"


def _per_node(true: Callable[[Any], Any], what: str) -> Check:
    """Numbers that an isolation forest keeps of each node of its trees, as they follow from these."""

    def check(value: Any, attributes: Attributes) -> str | None:
        trees = _get(attributes, "estimators_")
        if not isinstance(value, tuple | list) or not isinstance(trees, list) or len(value) != len(trees):
            return "a list of numbers for each tree"
        for numbers, tree in zip(value, trees, strict=True):
            known = isinstance(numbers, np.ndarray) and numbers.dtype.kind in "iuf"
            if not known or not _is_tree(tree, _get(vars(tree), "n_features_in_")):
                return "a finite number for each node of each tree"
            if numbers.shape != (tree.tree_.node_count,) or not np.allclose(numbers, true(tree.tree_), 1e-9, 0):
                return f"{what} of each node of each tree"
        return None

    return check


_node_depths = _per_node(lambda tree: tree.compute_node_depths(), "the depth")
_path_lengths = _per_node(lambda tree: average_path_length(tree.n_node_samples), "the average path length")


# -- histogram gradient boosting ---------------------------------------------------------------------------


def _hist_nodes(value: Any, attributes: Attributes) -> str | None:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or not len(value) or not set(_HIST) <= set(_names(value)):
        return f"an array of nodes with the fields {', '.join(_HIST)}"
    for flag in ("is_leaf", "is_categorical", "missing_go_to_left"):
        if not _within(value[flag], 0, 1):
            return f"nodes whose {flag} is 0 or 1"
    leaf = value["is_leaf"].astype(bool)
    if fault := check_links(value["left"].astype(np.int64), value["right"].astype(np.int64), ~leaf):
        return f"nodes that form a tree: {fault}"
    if not np.isfinite(value["value"][leaf]).all():
        return "nodes whose leaves have finite values"
    chosen = value["is_categorical"].astype(bool) & ~leaf
    if not (value["num_threshold"][~leaf & ~chosen] > -np.inf).all():
        return "nodes that split at numbers"
    sets = _get(attributes, "raw_left_cat_bitsets")
    count = len(sets) if isinstance(sets, np.ndarray) and sets.ndim else 0
    return None if _within(value["bitset_idx"][chosen], 0, count - 1) else "nodes whose category sets exist"


_HIST = (
    "value", "feature_idx", "num_threshold", "missing_go_to_left", "left", "right", "is_leaf", "is_categorical",
    "bitset_idx",
)  # fmt: skip


def _category_sets(value: Any, attributes: Attributes) -> str | None:
    fits = isinstance(value, np.ndarray) and value.dtype == np.uint32 and value.ndim == 2
    return None if fits and value.shape[1] == _SET_WORDS else f"sets of {_SET_WORDS} words of 32 bits"


def _predictors(value: Any, attributes: Attributes) -> str | None:
    """Trees of histogram gradient boosting; a category split needs a column whose categories are known."""
    width, mapper = _get(attributes, "n_trees_per_iteration_"), _get(attributes, "_bin_mapper")
    if not isinstance(value, list) or not value or not all(isinstance(s, list) and len(s) == width for s in value):
        return "a list of stages, each with a tree for each score (n_trees_per_iteration_)"
    flags: Any = getattr(mapper, "is_categorical_", None)
    if type(mapper).__name__ != "_BinMapper" or np.shape(flags) != (_n_features(attributes),):
        return "trees beside a bin mapper of as many columns"
    for tree in (tree for stage in value for tree in stage):
        if type(tree).__name__ != "TreePredictor" or not {"nodes", "raw_left_cat_bitsets"} <= set(vars(tree)):
            return "trees"
        inner = tree.nodes[tree.nodes["is_leaf"] == 0]
        if not _within(inner["feature_idx"], 0, len(flags) - 1):
            return f"trees that split on one of the {len(flags)} columns"
        if not np.asarray(flags)[inner["feature_idx"][inner["is_categorical"] == 1]].all():
            return "trees whose category splits are on category columns"
    return None


def _column_flags(value: Any, attributes: Attributes) -> str | None:
    fits = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "bu" and _within(value, 0, 1)
    return None if fits else "true or false for each column"


def _category_columns(value: Any, attributes: Attributes) -> str | None:
    fits = _column_flags(value, attributes) is None and len(value) == _n_features(attributes)
    return None if fits and value.dtype == bool and value.any() else "true or false for each of its columns"


def _bins(value: Any, attributes: Attributes) -> str | None:
    """Thresholds of bins; those of a category column are category codes, which the library uses as indices."""
    flags = _get(attributes, "is_categorical_")
    if not isinstance(value, list) or not isinstance(flags, np.ndarray) or len(value) != flags.size:
        return "a list of numbers for each column"
    for numbers, is_category in zip(value, flags, strict=True):
        if not _is_floats(numbers) or numbers.ndim != 1:
            return "a list of numbers for each column"
        if is_category and not (_within(numbers, 0, 32 * _SET_WORDS - 1) and (numbers == np.floor(numbers)).all()):
            return f"category codes below {32 * _SET_WORDS} for each category column"
    return None


def _baseline(value: Any, attributes: Attributes) -> str | None:
    fits = isinstance(value, float | np.floating | np.ndarray) and np.asarray(value).dtype.kind == "f"
    width = _get(attributes, "n_trees_per_iteration_")
    return None if fits and np.size(value) == width and np.isfinite(value).all() else "a finite number for each score"


# -- linear models -----------------------------------------------------------------------------------------


def _coefficients(value: Any, attributes: Attributes) -> str | None:
    fits = _is_floats(value) and value.shape == (_n_scores(attributes), _n_features(attributes))
    return None if fits and np.isfinite(value).all() else "a finite number for each score and column"


def _intercepts(value: Any, attributes: Attributes) -> str | None:
    if isinstance(value, float):
        return _number(value, attributes)
    fits = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.shape in ((_n_scores(attributes),), (1,))
    return None if fits and np.isfinite(value).all() else "a finite number for each score"


def _n_scores(attributes: Attributes) -> int:
    classes = _get(attributes, "classes_")
    count = len(classes) if isinstance(classes, np.ndarray) else 0
    return 1 if count == 2 else count


def _support_counts(value: Any, attributes: Attributes) -> str | None:
    classes, vectors = _get(attributes, "classes_"), _get(attributes, "support_vectors_")
    fits = isinstance(value, np.ndarray) and value.dtype == np.int32 and value.shape == np.shape(classes)
    known = fits and _within(value, 0, _MOST) and int(value.astype(np.int64).sum()) == len(np.atleast_1d(vectors))
    return None if known else "the number of support vectors of each class"


def _support_vectors(value: Any, attributes: Attributes) -> str | None:
    fits = _is_floats(value) and value.dtype == np.float64 and value.ndim == 2
    fits = fits and value.shape[1] == _n_features(attributes) and np.isfinite(value).all()
    return None if fits else "a row of finite numbers for each support vector"


def _support_indices(value: Any, attributes: Attributes) -> str | None:
    vectors = _get(attributes, "support_vectors_")
    fits = isinstance(value, np.ndarray) and value.dtype == np.int32 and value.shape == np.shape(vectors)[:1]
    return None if fits else "a whole number for each support vector"


def _dual(value: Any, attributes: Attributes) -> str | None:
    shape = (np.size(_get(attributes, "classes_", ())) - 1, *np.shape(_get(attributes, "support_vectors_"))[:1])
    fits = _is_floats(value) and value.dtype == np.float64 and value.shape == shape and np.isfinite(value).all()
    return None if fits else "a finite number for each support vector"


def _pairs_of_classes(value: Any, attributes: Attributes) -> str | None:
    n = np.size(_get(attributes, "classes_", ()))
    fits = _is_floats(value) and value.dtype == np.float64 and value.shape == (n * (n - 1) // 2,)
    return None if fits and np.isfinite(value).all() else "a finite number for each pair of classes"


def _nothing_or_pairs(value: Any, attributes: Attributes) -> str | None:
    return None if _is_floats(value) and value.shape == (0,) else _pairs_of_classes(value, attributes)


def _dense(value: Any, attributes: Attributes) -> str | None:
    return None if value is False else "false: the vectors in a file are dense"


# -- encoders ----------------------------------------------------------------------------------------------


def _steps(value: Any, attributes: Attributes) -> str | None:
    fits = isinstance(value, list) and value and all(isinstance(s, tuple) and len(s) == 2 for s in value)
    if not fits or not all(isinstance(name, str) for name, _ in value):
        return "a list of pairs of a name and an estimator"
    known = all(step is None or step == "passthrough" or hasattr(step, "fit") for _, step in value)
    return None if known else "a list of pairs of a name and an estimator"


def _transformers(value: Any, attributes: Attributes) -> str | None:
    must = "a list of a name, a transformer and its columns each"
    if not isinstance(value, list) or not all(isinstance(part, tuple) and len(part) == 3 for part in value):
        return must
    known = all(isinstance(n, str) and (isinstance(t, str) or hasattr(t, "fit")) for n, t, _ in value)
    return None if known else must


def _categories(value: Any, attributes: Attributes) -> str | None:
    must = "a list of categories for each column"
    if not isinstance(value, list) or len(value) != _n_features(attributes):
        return must
    return None if all(isinstance(part, np.ndarray) and part.ndim == 1 for part in value) else must


def _fills(value: Any, attributes: Attributes) -> str | None:
    fits = isinstance(value, np.ndarray) and value.shape == (_n_features(attributes),)
    return None if fits else "a value for each column"


def _checked_array(value: Any, attributes: Attributes) -> str | None:
    return None if value is None or type(value).__name__ == "partial" else "null or partial(check_array)"


_FITTED: dict[str, Check] = {
    "n_features_in_": _count,
    "feature_names_in_": _names_of_columns,
    "n_jobs": _jobs,
    "verbose": _quiet,
}
_CLASSES: dict[str, Check] = {"classes_": _labels}
_TREE: dict[str, Check] = _FITTED | _CLASSES | {"tree_": _tree_of_its_columns, "n_outputs_": _count}
_FOREST: dict[str, Check] = _FITTED | _CLASSES | {"estimators_": _trees, "n_outputs_": _count}
_BAGGING: dict[str, Check] = (
    _FITTED | _CLASSES | {"estimators_features_": _chosen_columns, "estimators_": _bagged, "n_classes_": _n_classes}
)
_BOOSTING: dict[str, Check] = (
    _FITTED
    | _CLASSES
    | {"n_trees_per_iteration_": _count, "estimators_": _stages, "learning_rate": _number, "init_": _starts}
    | {"loss": _text}
)
_HISTOGRAM: dict[str, Check] = (
    _FITTED
    | _CLASSES
    | {"n_trees_per_iteration_": _count, "_predictors": _predictors, "_baseline_prediction": _baseline}
    | {"is_categorical_": _optional(_category_columns)}
)
_LINEAR: dict[str, Check] = _FITTED | _CLASSES | {"coef_": _coefficients, "intercept_": _intercepts}

#: Class -> attribute -> check. The order matters where one check relies on another.
FIELDS: dict[str, dict[str, Check]] = {
    "DecisionTreeClassifier": _TREE,
    "DecisionTreeRegressor": _TREE,
    "ExtraTreeClassifier": _TREE,
    "ExtraTreeRegressor": _TREE,
    "RandomForestClassifier": _FOREST,
    "RandomForestRegressor": _FOREST,
    "ExtraTreesClassifier": _FOREST,
    "ExtraTreesRegressor": _FOREST,
    "BaggingClassifier": _BAGGING,
    "BaggingRegressor": _BAGGING,
    "IsolationForest": _BAGGING
    | {"_decision_path_lengths": _node_depths, "_average_path_length_per_tree": _path_lengths, "offset_": _number}
    | {"max_samples_": _count, "_max_samples": _count, "_max_features": _count},
    "AdaBoostClassifier": _FITTED
    | _CLASSES
    | {"estimators_": _trees, "estimator_weights_": _weights, "n_classes_": _n_classes, "learning_rate": _number},
    "GradientBoostingClassifier": _BOOSTING | {"n_classes_": _n_classes},
    "GradientBoostingRegressor": _BOOSTING,
    "HistGradientBoostingClassifier": _HISTOGRAM,
    "HistGradientBoostingRegressor": _HISTOGRAM,
    "TreePredictor": {"raw_left_cat_bitsets": _category_sets, "nodes": _hist_nodes},
    "_BinMapper": {"is_categorical_": _column_flags, "bin_thresholds_": _bins},
    "DummyClassifier": {"strategy": _text, "n_outputs_": _count},
    "DummyRegressor": {"n_outputs_": _count},
    "LogisticRegression": _LINEAR,
    "LogisticRegressionCV": _LINEAR,
    "SGDClassifier": _LINEAR,
    "Perceptron": _LINEAR,
    "RidgeClassifier": _LINEAR,
    "LinearSVC": _LINEAR,
    "SVC": _FITTED
    | _CLASSES
    | {"_sparse": _dense, "support_vectors_": _support_vectors, "support_": _support_indices}
    | {"_n_support": _support_counts, "_dual_coef_": _dual, "dual_coef_": _dual, "_intercept_": _pairs_of_classes}
    | {"intercept_": _pairs_of_classes, "_probA": _nothing_or_pairs, "_probB": _nothing_or_pairs}
    | {"kernel": _text, "degree": _quiet, "coef0": _number, "_gamma": _number, "cache_size": _number}
    | {"break_ties": _flag, "decision_function_shape": _one_of("ovr", "ovo")},
    "Pipeline": {"steps": _steps},
    "ColumnTransformer": _FITTED | {"transformers": _transformers, "transformers_": _transformers},
    "SimpleImputer": _FITTED | {"statistics_": _fills, "strategy": _text, "add_indicator": _flag},
    "StandardScaler": _FITTED | {"mean_": _optional(_numbers), "scale_": _optional(_divisors)},
    "RobustScaler": _FITTED | {"center_": _optional(_numbers), "scale_": _optional(_divisors)},
    "MaxAbsScaler": _FITTED | {"scale_": _divisors},
    "MinMaxScaler": _FITTED | {"scale_": _divisors, "min_": _numbers, "feature_range": _pair, "clip": _flag},
    "OneHotEncoder": _FITTED | {"categories_": _categories, "handle_unknown": _text, "sparse_output": _flag},
    "OrdinalEncoder": _FITTED | {"categories_": _categories, "handle_unknown": _text},
    "FunctionTransformer": _FITTED | {"func": _checked_array, "inverse_func": _checked_array},
    "LabelEncoder": _CLASSES,
}

#: Attributes without which scikit-learn does not look at the width of what it is given.
_REQUIRED: dict[str, tuple[str, ...]] = {
    kind: ("n_features_in_",) for kind, fields in FIELDS.items() if "n_features_in_" in fields
} | {
    "TreePredictor": ("nodes", "raw_left_cat_bitsets"),
    "SVC": ("n_features_in_", "_n_support", "support_", "support_vectors_", "_dual_coef_", "_intercept_"),
    "_BinMapper": ("is_categorical_", "bin_thresholds_"),
}


def _is_fitted(kind: str, attributes: Attributes) -> bool:
    """Whether an object has anything that fitting leaves behind, as scikit-learn itself judges."""
    return kind == "TreePredictor" or any(n.endswith("_") and not n.startswith("__") for n in attributes)

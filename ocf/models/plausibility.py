"""Plausible counterfactuals: points that isolation trees take long to tell from the rows of the wanted class.

Source: ocean, section 3.5, equation (33): the average depth over the isolation trees is at least ``delta``. The trees
join those of the model, so that cells, reduction, formulations and searches see one ensemble; the depth becomes one
more requirement on its leaves, and, as a soft term, a cost of its leaves.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``d[l]``               depth of leaf l of an isolation tree, with the correction for the rows that share
                       the leaf, as the library reckons it (`ocf.readers.isolation`)
``delta``              least average depth: ``sum over the isolation trees of d[leaf] >= delta T``
``lambda``             weight of the soft term: ``lambda`` times the average depth by which a point falls
                       short of the deepest that the trees know is added to the cost
=====================  =============================================================================
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import DataError, OcfError, ProblemError
from ocf.features.space import FeatureSpace, in_order
from ocf.models.encoding import Encoder, Encoding
from ocf.models.last_table import LastTable
from ocf.models.user_model import UserModel, preprocessing_of
from ocf.problem.isolation_depth import IsolationDepth
from ocf.readers.isolation import IsolationModel, is_isolation_forest, read_isolation_forest
from ocf.readers.transformers import Ways
from ocf.readers.transformers.column import Column
from ocf.support.amounts import real_number
from ocf.support.messages import listed, nearest
from ocf.trees.ensemble import Ensemble
from ocf.trees.joining import join_trees

#: Who says which rows of the data are of the target -> in words.
ROWS_BY = {"prediction": "by the model's answers", "label": "by their labels"}


@dataclass(frozen=True, eq=False)
class TargetRows:
    """Rows of the data that are of a target.

    Attributes
    ----------
    table : DataFrame (n, n_columns)
        In the user's columns.
    by : {"prediction", "label"}
        Who says so.
    left_out : str
        What to say of the rows of the data of which it is not known.
    """

    table: pd.DataFrame
    by: str = "prediction"
    left_out: str = ""

    def seen_by(self, given: _Columns) -> TargetRows:
        """Those of which a forest is given no gap.

        Parameters
        ----------
        given : callable
            Table in the user's columns -> the same rows as the forest's library takes them.
        """
        missing = self.table.isna().to_numpy()
        if not missing.any():
            return self
        try:
            gaps = pd.isna(np.asarray(given(self.table), object)).any(axis=1)
        except (OcfError, ValueError, TypeError):  # the way to the forest takes no gaps
            gaps = missing.any(axis=1)
        return replace(self, table=self.table.iloc[np.flatnonzero(~gaps)])


@dataclass(frozen=True, eq=False)
class Plausibility:
    """What a user asks of plausibility.

    Parameters
    ----------
    forest : estimator, Pipeline or None
        Isolation forest of scikit-learn or isotree, or a Pipeline that ends in one. A fitted one is taken as it is: it
        may have been fitted on the user's table or on the matrix that the model sees. An unfitted one is fitted on the
        rows of the data that the model gives the target, with the `seed` below where it has none of its own
        (isotree's has one, its `random_seed`). None:
        scikit-learn's, with the settings below. What is kept is a copy, so that fitting the user's own anew changes
        nothing that was asked.
    quantile : float
        Share of those rows that counts as outliers; their quantile of depths is the least average depth.
    depth : float, optional
        The least average depth itself, in place of the quantile.
    required : bool
        Whether a point must be that deep. False: only the soft term counts.
    weight : float
        Of the soft term: what a level of average depth is worth, in the unit of the cost.
    trees, samples, seed : int
        Of a forest that is made here: number of trees, rows per tree, and random seed. An isolation tree is as deep as
        the logarithm of its rows to base two; without `samples` the trees are as deep as those of the model, as in the
        paper, but no deeper than 8.
    by : {"prediction", "label"}, optional
        Which rows of the data are of the target: those to which the model gives it, or those that have it by the labels
        of the data, ``Explainer(…, labels=y)``. By default by label where there are labels. The answer says which.
    """

    forest: Any = None
    quantile: float = 0.1
    depth: float | None = None
    required: bool = True
    weight: float = 0.0
    trees: int = 100
    samples: int | None = None
    seed: int = 0
    by: str | None = None
    #: The same for wishes that say the same, and whose forests hold the same.
    key: str = field(default="", init=False, repr=False)

    def words(self) -> dict[str, Any]:
        """Its settings, with the class of a forest that was given."""
        said = {name: getattr(self, name) for name in SETTINGS}
        return said | {"forest": None if self.forest is None else type(self.forest).__name__}

    def __post_init__(self) -> None:
        def number(value: Any, low: float, high: float) -> bool:
            return low <= real_number(value) < high and math.isfinite(value)

        def whole(value: Any, low: int) -> bool:
            return bool(isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= low)

        rules = {
            "quantile": (number(self.quantile, 0, 1), "a share of at least 0 and below 1"),
            "depth": (self.depth is None or number(self.depth, -math.inf, math.inf), "a number"),
            "required": (isinstance(self.required, bool), "true or false"),
            "weight": (number(self.weight, 0, math.inf), "a number of at least 0"),
            "trees": (whole(self.trees, 1), "a whole number of at least 1"),
            "samples": (self.samples is None or whole(self.samples, 2), "a whole number of at least 2"),
            "seed": (whole(self.seed, 0), "a whole number of at least 0"),
            "by": (self.by in (None, *ROWS_BY), "'prediction' or 'label'"),
        }
        for name, (holds, words) in rules.items():
            if not holds:
                raise ProblemError(f"plausibility: {name} = {getattr(self, name)!r} should be {words}")
        if not self.required and self.weight == 0:
            raise ProblemError("plausibility: with required = false and no weight nothing is asked: give a weight")
        if self.forest is not None and not is_isolation_forest(_last_step(self.forest)):
            read_isolation_forest(_last_step(self.forest))  # says what it should be
        forest, digest = _held(self.forest)
        said = {name: getattr(self, name) for name in SETTINGS if name != "forest"}
        object.__setattr__(self, "forest", forest)
        object.__setattr__(self, "key", sha256(repr((digest, said)).encode()).hexdigest())

    @classmethod
    def parse(cls, wish: Any) -> Plausibility | None:
        """Wish from None or False (none), True (the defaults), a mapping of settings, a forest, or itself."""
        if wish is None or wish is False:
            return None
        if isinstance(wish, cls):
            return wish
        if wish is True:
            return cls()
        if not isinstance(wish, Mapping):
            return cls(forest=wish)
        for name in wish:
            if name not in SETTINGS:
                raise ProblemError(f"plausibility: unknown setting {nearest(name, SETTINGS)}")
        return cls(**wish)

    @property
    def has_hyperplanes(self) -> bool:
        """Whether the forest splits by hyperplanes, as isotree's extended ones do."""
        return int(getattr(_last_step(self.forest), "ndim", 1)) > 1

    def __repr__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.repr and getattr(self, f.name) != f.default}
        return f"Plausibility({', '.join(f'{k}={v!r}' for k, v in shown.items())})"


def recounter(forest: Any, model: UserModel) -> Callable[[pd.DataFrame], float]:
    """Average depth of a row, a table of one, from its paths through the trees of a fitted isolation forest.

    Parameters
    ----------
    forest : estimator or Pipeline
        Isolation forest of scikit-learn or isotree.
    model : UserModel

    Raises
    ------
    ModelError
        It is something else, or not fitted.
    """
    read = read_isolation_forest(_last_step(forest))

    def recount(table: pd.DataFrame) -> float:
        return float(read.recount(_columns_of(forest, read, model, table)[0](table))[0])

    return recount


#: Table in the user's columns -> the same rows as a forest takes them.
_Columns = Callable[[pd.DataFrame], Any]

#: Such a callable, and what of it is to be read.
_Way = tuple[_Columns, Ways]

#: What a user may say of plausibility (in a mapping or in the ``[plausibility]`` table of a problem file).
SETTINGS = tuple(f.name for f in fields(Plausibility) if f.init)

# -- beside a model --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Detector:
    """An isolation forest beside a model, over the user's table, and what is asked of it for one target.

    Attributes
    ----------
    wish : Plausibility
    key : tuple
        Of the wish and the target.
    forest : IsolationModel
    given : callable
        Table in the user's columns -> the same rows as the forest's library takes them.
    preprocessing : Preprocessing or SideBySide
        What stands between the table and the forest, to be read.
    least : float or None
        Least average depth.
    rows : TargetRows or None
        On which the forest was fitted, or from which the least depth was taken; None where they had no say.
    """

    wish: Plausibility
    key: tuple[Any, ...]
    forest: IsolationModel
    given: _Columns
    preprocessing: Ways
    least: float | None
    rows: TargetRows | None = None

    def measure(self, table: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
        """Depth and score of rows by the library itself, both (n,) float64; of the last table they are at hand."""
        return self._measured(table)

    @cached_property
    def _measured(self) -> LastTable:
        return LastTable(lambda table: self.forest.measure(self.given(table)))

    def recount(self, table: pd.DataFrame) -> float:
        """Average depth of a row, a table of one, from its paths through the library's own trees."""
        return float(self.forest.recount(self.given(table))[0])

    def accepts(self, table: pd.DataFrame) -> bool:
        """Whether the library itself finds a row, a table of one, deep enough."""
        return bool(self.deep_enough(self.measure(table)[0])[0])

    def deep_enough(self, depth: FloatArray) -> BoolArray:
        """Which of the average depths of rows, (n,), are as large as is asked for."""
        return np.ones(len(depth), bool) if self.least is None else np.asarray(depth >= self.least)

    def penalty(self, depth: FloatArray) -> FloatArray:
        """What the soft term adds to the cost of rows of average depths, (n,)."""
        return np.asarray(self.wish.weight * (self.deepest - depth))

    def beside(self, ensemble: Ensemble, encoding: Encoding) -> tuple[Ensemble, Encoding]:
        """Trees of the model and of the forest, over the columns of both, and the encoding into those columns.

        Parameters
        ----------
        ensemble : Ensemble
            The model, over its own columns.
        encoding : Encoding
            From features to these columns.
        """
        forest = self.forest.ensemble
        if encoding.numbers is not None and forest.missing_left is None:
            # zeros that a sparse matrix leaves out are missing to the model alone
            forest = replace(forest, missing_left=np.zeros(len(forest.kind), bool))
        joint = join_trees(ensemble, forest, ensemble.n_features)

        def both(encode: Encoder) -> Encoder:
            return lambda table: np.hstack([encode(table), self.forest_columns(table)])

        def read(space: FeatureSpace, base: FloatArray, domain: Callable[[], FloatArray]) -> tuple[Column, ...]:
            return encoding.read(space, base, domain) + self.preprocessing.read(space, base, domain)

        numbers = encoding.numbers and both(encoding.numbers)
        return joint, Encoding(encoding.space, both(encoding.encode), encoding.base, read, numbers)

    def forest_columns(self, table: pd.DataFrame) -> FloatArray:
        """What the forest sees of rows, (n, n_columns of the forest) float64."""
        try:
            return np.asarray(self.given(table), np.float64)
        except OcfError:
            raise
        except (ValueError, TypeError) as error:
            raise DataError(
                f"the isolation forest takes numbers, but the table does not hold just numbers ({error}): put an "
                "encoder before the forest in a Pipeline"
            ) from None

    def requirement(self, forest: Ensemble) -> IsolationDepth:
        """The plausibility of a problem, with the isolation trees over its features."""
        return IsolationDepth(forest, self.least, self.forest.error_bound, self.wish.weight)

    @cached_property
    def deepest(self) -> float:
        """Largest average depth that the trees could give; the soft term counts from it."""
        trees = self.forest.ensemble
        return float(np.maximum.reduceat(trees.leaf_values[:, 0], trees.leaf_offsets[:-1]).sum() / trees.n_trees)

    def report(self, table: pd.DataFrame, least: int = 1) -> dict[str, Any]:
        """What an explanation says of the plausibility of a row, a table of one.

        Parameters
        ----------
        table : DataFrame (n, n_columns)
            The row, or its completions that have the target: then of the shallowest of the `least` deepest of them.
        least : int
        """
        depths, scores = self.measure(table)
        at = np.argsort(-depths, kind="stable")[min(least, len(depths)) - 1]
        depth, score = float(depths[at]), float(scores[at])
        return {
            "depth": depth,
            "least": self.least,
            "score": score,
            "weight": float(self.wish.weight),
            "deepest": self.deepest,
            "trees": self.forest.ensemble.n_trees,
            "library": self.forest.library,
        } | ({} if self.rows is None else {"rows": len(self.rows.table), "by": self.rows.by})


def make_detector(wish: Plausibility, model: UserModel, known: TargetRows, key: tuple[Any, ...]) -> Detector:
    """Fit the forest where that is asked for, read it, and find the least depth.

    Parameters
    ----------
    wish : Plausibility
    model : UserModel
    known : TargetRows
        Of the target. Those that lack a value which the forest sees are left out where they serve it.
    key : tuple

    Raises
    ------
    ProblemError
        There are no rows to fit the forest or to take the quantile from.
    DataError
        The forest was fitted on other columns than the user's table or the model has.
    """
    native, way, seen = wish.forest, None, None
    if native is None or not _is_fitted(native):
        native, way, seen = _fitted(wish, model, known)
    forest = read_isolation_forest(_last_step(native))
    given, preprocessing = way or _columns_of(native, forest, model, known.table)
    given = _of_any_order(given, known.table)
    least = None if wish.depth is None or not wish.required else float(wish.depth)
    detector = Detector(wish, key, forest, given, preprocessing, least, seen)
    if wish.required and least is None:
        if not len(known.table):
            raise ProblemError(
                f"plausibility: no row of the data has the target {ROWS_BY[known.by]}{known.left_out}, so there is no "
                "quantile to take: give data with such rows, or the least average depth itself as depth"
            )
        seen = known.seen_by(given)
        if not len(seen.table):
            raise ProblemError(
                f"plausibility: all {len(known.table)} rows of the data that have the target {ROWS_BY[known.by]} lack "
                "values that the isolation forest sees, so there is no quantile to take: give the least average depth "
                "itself as depth"
            )
        detector.forest_columns(seen.table.iloc[:1])  # says what is wrong where the library's message would not
        least = float(np.quantile(detector.measure(seen.table)[0], wish.quantile, method="lower"))
        detector = replace(detector, least=least, rows=seen)
    return detector


def _of_any_order(given: _Columns, data: pd.DataFrame) -> _Columns:
    """What a forest is given of tables that may have the columns of the data in another order."""
    own = in_order(data.columns.tolist())
    return lambda table: given(own(table))


def _held(forest: Any) -> tuple[Any, str]:
    """A forest as it is now, which nobody fits anew, and a digest of what it holds."""
    if forest is None:
        return None, ""
    try:
        state = pickle.dumps(forest)
        return pickle.loads(state), sha256(state).hexdigest()
    except Exception:  # whatever is around a forest need not know how to be pickled
        return forest, uuid4().hex


def _last_step(forest: Any) -> Any:
    """The isolation forest itself."""
    return forest.steps[-1][1] if hasattr(forest, "steps") else forest


def _is_fitted(forest: Any) -> bool:
    last = _last_step(forest)
    return hasattr(last, "estimators_") or bool(getattr(last, "is_fitted_", False))


def _fitted(wish: Plausibility, model: UserModel, known: TargetRows) -> tuple[Any, _Way, TargetRows]:
    """A forest fitted on rows of the target: on what the model sees of them; a Pipeline on the table itself.

    With it come its way from the table and the rows that served.
    """
    from sklearn.base import clone
    from sklearn.ensemble import IsolationForest

    with_steps = hasattr(wish.forest, "steps")
    given: _Columns = (lambda table: table) if with_steps else model.encode
    seen = known.seen_by(given)
    rows, lacking = seen.table, len(known.table) - len(seen.table)
    if len(rows) < 2:
        gaps = f"; {lacking} more lack values that it would see" if lacking else ""
        raise ProblemError(
            f"plausibility: {len(rows)} rows of the data have the target {ROWS_BY[known.by]}, too few to fit an "
            f"isolation forest{gaps}{known.left_out}: give data with such rows, or a fitted forest"
        )
    if wish.forest is None:
        samples = wish.samples or 2 ** int(np.clip(model.trees.ensemble.depth.max(), 1, 8))
        native: Any = IsolationForest(
            n_estimators=wish.trees, max_samples=min(samples, len(rows)), random_state=wish.seed
        )
    else:
        native = clone(wish.forest)
        last = _last_step(native)
        own = last.get_params()
        # or each process would have its own; isotree's random_seed is heeded where it has no random_state
        if "random_state" in own and own["random_state"] is None and own.get("random_seed") is None:
            last.set_params(random_state=wish.seed)
    try:
        native.fit(given(rows))
    except OcfError:
        raise
    except (ValueError, TypeError) as error:
        raise ProblemError(f"plausibility: the isolation forest cannot be fitted on the data: {error}") from None
    return native, _through_steps(native) if with_steps else (given, model.preprocessing), seen


def _through_steps(pipeline: Any) -> _Way:
    """What a Pipeline's isolation forest sees of a table."""
    before, names = pipeline[:-1], getattr(pipeline, "feature_names_in_", None)
    columns = None if names is None else tuple(map(str, names))

    def first(table: pd.DataFrame) -> Any:
        return table[list(names)] if names is not None else table.to_numpy()

    def given(table: pd.DataFrame) -> Any:
        encoded = before.transform(first(table))
        return encoded.toarray() if hasattr(encoded, "toarray") else encoded

    return given, preprocessing_of(columns, first, pipeline.steps[:-1])


def _sees_the_table(model: UserModel, rows: pd.DataFrame) -> bool:
    """Whether the model sees the numbers of the table as they are."""
    try:
        return bool(np.array_equal(model.encode(rows), rows.to_numpy(np.float64), equal_nan=True))
    except (ValueError, TypeError):  # no numbers
        return False


def _columns_of(native: Any, forest: IsolationModel, model: UserModel, rows: pd.DataFrame) -> _Way:
    """What a fitted forest was fitted on: the user's table, or, where that does not fit, what the model sees of it."""
    if hasattr(native, "steps"):
        return _through_steps(native)
    names, width, seen = forest.names, forest.ensemble.n_features, model.trees.ensemble.n_features
    columns = tuple(map(str, rows.columns))
    if not names and len(columns) == width == seen and not _sees_the_table(model, rows):
        raise DataError(
            f"the isolation forest takes {width} columns without names: these may be those of the data, or the {seen} "
            "that the model sees of them; give it in a Pipeline, or fit it on a table with column names"
        )
    if set(names) <= set(columns) if names else len(columns) == width:
        known = tuple(map(str, names)) if names else None

        def plain(table: pd.DataFrame) -> Any:
            return table.to_numpy() if names is None else table[list(names)]

        return plain, preprocessing_of(known, plain)
    if width != seen:
        shown = listed(names) if names else "without names"
        raise DataError(
            f"the isolation forest was fitted on {width} columns ({shown}), which are not those of the data "
            f"({listed(columns)}), and the model sees {seen}: fit it on the data or on what the model sees of them, or "
            "give it in a Pipeline"
        )

    def matrix(table: pd.DataFrame) -> Any:
        encoded = (model.numbers or model.encode)(table)
        return encoded if names is None else pd.DataFrame(encoded, columns=list(names))

    return matrix, model.preprocessing

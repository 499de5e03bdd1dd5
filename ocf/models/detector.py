"""Isolation forests beside a model: fitted on the rows of the target or given, and read as trees of its ensemble."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import DataError, OcfError, ProblemError
from ocf.features.space import FeatureSpace, in_order
from ocf.models.encoding import Encoder, Encoding
from ocf.models.forest_columns import Columns, Way, through_steps, way_to
from ocf.models.last_table import LastTable
from ocf.models.plausibility import ROWS_BY, Plausibility, last_step
from ocf.models.row_keys import row_key
from ocf.models.target_rows import TargetRows
from ocf.models.user_model import UserModel
from ocf.problem.isolation_depth import IsolationDepth
from ocf.readers.isolation import IsolationModel, read_isolation_forest
from ocf.readers.transformers import Ways
from ocf.readers.transformers.column import Column
from ocf.trees.ensemble import Ensemble
from ocf.trees.joining import join_trees


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
    read = read_isolation_forest(last_step(forest))

    def recount(table: pd.DataFrame) -> float:
        # a row that the steps leave as it is does not tell on what the forest was fitted, and needs not to
        return float(read.recount(way_to(forest, read, model, table)[0](table))[0])

    return recount


class RowDepth(NamedTuple):
    """What an isolation forest's library says of a row: depth and score, and the depth recounted from its trees."""

    depth: float
    score: float
    recount: float


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
    at_hand : mapping of row key to RowDepth
        Of rows that the library was asked about together; see `ocf.models.row_keys`.
    """

    wish: Plausibility
    key: tuple[Any, ...]
    forest: IsolationModel
    given: Columns
    preprocessing: Ways
    least: float | None
    rows: TargetRows | None = None
    at_hand: Mapping[Hashable, RowDepth] = field(default_factory=dict)

    def measure(self, table: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
        """Depth and score of rows by the library itself, both (n,) float64; of the last table they are at hand."""
        if (known := self._known(table)) is not None:
            return np.array([known.depth]), np.array([known.score])
        return self._measured(table)

    def depths(self, table: pd.DataFrame, places: list[int]) -> list[RowDepth]:
        """What the library says of some rows of a table, in one call.

        Parameters
        ----------
        table : DataFrame (n, n_columns)
        places : list of int
        """
        if self.wish.forest is not None:  # it may have steps of its own, which need not take all rows
            rows = self.given(table.iloc[places])
        else:  # what the model sees of the table is at hand
            given = self.given(table)
            rows = given.iloc[places] if isinstance(given, pd.DataFrame) else given[places]
        depth, score = self.forest.measure(rows)
        return list(map(RowDepth, depth.tolist(), score.tolist(), self.forest.recount(rows).tolist()))

    def with_depths(self, depths: Mapping[Hashable, RowDepth]) -> Detector:
        """The same with what the library says of some more rows at hand."""
        return replace(self, at_hand={**self.at_hand, **depths})

    def _known(self, table: pd.DataFrame) -> RowDepth | None:
        return self.at_hand.get(row_key(table)) if self.at_hand and len(table) == 1 else None

    @cached_property
    def _measured(self) -> LastTable:
        return LastTable(lambda table: self.forest.measure(self.given(table)))

    def recount(self, table: pd.DataFrame) -> float:
        """Average depth of a row, a table of one, from its paths through the library's own trees."""
        known = self._known(table)
        return float(self.forest.recount(self.given(table))[0]) if known is None else known.recount

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
    least = None if wish.depth is None or not wish.required else float(wish.depth)
    if wish.required and least is None and not len(known.table):
        raise ProblemError(
            f"plausibility: no row of the data has the target {ROWS_BY[known.by]}{known.left_out}, so there is no "
            "quantile to take: give data with such rows, or the least average depth itself as depth"
        )
    forest = read_isolation_forest(last_step(native))
    given, preprocessing = way or way_to(native, forest, model, known.table)
    given = _of_any_order(given, known.table)
    detector = Detector(wish, key, forest, given, preprocessing, least, seen)
    if wish.required and least is None:
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


def _of_any_order(given: Columns, data: pd.DataFrame) -> Columns:
    """What a forest is given of tables that may have the columns of the data in another order."""
    own = in_order(data.columns.tolist())
    return lambda table: given(own(table))


def _is_fitted(forest: Any) -> bool:
    last = last_step(forest)
    return hasattr(last, "estimators_") or bool(getattr(last, "is_fitted_", False))


def _fitted(wish: Plausibility, model: UserModel, known: TargetRows) -> tuple[Any, Way, TargetRows]:
    """A forest fitted on rows of the target: on what the model sees of them; a Pipeline on the table itself.

    With it come its way from the table and the rows that served.
    """
    from sklearn.base import clone
    from sklearn.ensemble import IsolationForest

    with_steps = hasattr(wish.forest, "steps")
    given: Columns = model.frames.native if with_steps else model.encode
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
        last = last_step(native)
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
    return native, through_steps(native, model) if with_steps else (given, model.preprocessing), seen

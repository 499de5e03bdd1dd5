"""A table on its way to the model: the columns at one place of it, and their values by the user's own transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import UnsupportedModelError
from ocf.features.lattice import Lattice, middle
from ocf.features.numbers import dtype_of, numbers_of
from ocf.features.space import FeatureSpace
from ocf.features.times import is_time
from ocf.readers.transformers.column import Column, mixed

#: Numbers of a column that a step may treat each in a way of its own.
MOST_VALUES = 512

#: How many numbers on each side of a threshold are tried where rounding may go back; the outer half must agree.
REACH = 64

#: What to do about a sparse matrix.
MAKE_DENSE = (
    "make it dense, such as OneHotEncoder(sparse_output=False), KBinsDiscretizer(encode='onehot-dense') or "
    "ColumnTransformer(sparse_threshold=0), and fit again"
)

#: Packages whose steps are read, and what follows the names of their classes.
_LIBRARIES = {"sklearn": "", "imblearn": " (imbalanced-learn)", "category_encoders": " (category_encoders)"}


@dataclass(frozen=True)
class Source:
    """Where the columns come from, the same all the way.

    Attributes
    ----------
    space : FeatureSpace
        The features of the user's table, in the dtypes of the row.
    base : (n_features,) float64
        A coded row from which features are varied; its missing values stay missing.
    domain : callable
        Gives the smallest and largest number of each feature that the way to the model takes, (n_features, 2).
    read : callable
        ``(name, step, flow) -> Flow``: through a step.
    monotone : mapping of step name to {"increasing", "decreasing"}
        What the user has said of functions that ocf does not know.
    zeros_go_missing : bool
        Whether the model is handed a sparse matrix, and takes what that leaves out for missing values.
    """

    space: FeatureSpace
    base: FloatArray
    domain: Callable[[], FloatArray]
    read: Callable[[str, Any, Flow], Flow]
    monotone: Mapping[str, str] = field(default_factory=dict)
    zeros_go_missing: bool = False


@dataclass(frozen=True)
class Flow:
    """The columns at one place between the table and the model.

    Attributes
    ----------
    source : Source
    columns : tuple of Column
    values : callable
        Table in the user's columns -> what stands at this place, (n, n_columns) array, sparse matrix or table.
    within : tuple of str
        Names of the steps that hold this place.
    """

    source: Source
    columns: tuple[Column, ...]
    values: Callable[[pd.DataFrame], Any]
    within: tuple[str, ...] = ()

    def through(self, name: str, step: Any) -> Flow:
        """Behind a step.

        Parameters
        ----------
        name : str
            As the Pipeline calls it.
        step : transformer, "passthrough", "drop" or None
        """
        return self.source.read(name, step, self)

    def inside(self, name: str) -> Flow:
        """The same place, at the first step that the step of this name holds."""
        return replace(self, within=(*self.within, name))

    def some(self, places: Sequence[int]) -> Flow:
        """Some of the columns, by their places."""
        return replace(
            self,
            columns=tuple(self.columns[j] for j in places),
            values=lambda table: _select_columns(self.values(table), list(places)),
        )

    def each(self, made: Callable[[int, Column], Column]) -> tuple[Column, ...]:
        """Columns behind a step that treats each by itself, where only those of numbers change their shape.

        Parameters
        ----------
        made : callable
            Place and Column of a numeric feature -> the Column behind.
        """
        return tuple(made(j, c) if c.number else c for j, c in enumerate(self.columns))

    def without_mixtures(self, name: str, step: Any) -> Flow:
        """The same place before a step that does anything else to columns that add up others than to scale them.

        Parameters
        ----------
        name : str
        step : transformer
        """
        why = (
            f"{shown(name, step)} is no scaler, and takes columns that add up several others, so that a split behind "
            "it is no hyperplane: give ocf the table after that step, or train the model without it"
        )
        return replace(self, columns=tuple(mixed(why) if c.mixture else c for c in self.columns))

    def named(self, j: int) -> str:
        """Name of the feature of a column."""
        return repr(self.source.space.names[self.columns[j].feature])

    # -- values ------------------------------------------------------------------------------------------------

    def numbers(self, table: pd.DataFrame) -> FloatArray:
        """What stands at this place for a table in the user's columns, (n, n_columns) float64."""
        return _numbers(self.values(table))

    def at(self, i: int, values: FloatArray, j: int) -> FloatArray:
        """Column j with feature i at each of `values`, the others as in the base row, (n,) float64.

        Parameters
        ----------
        i : int
            Number of the feature.
        values : (n,) float64
            Coded.
        j : int
            Place of the column.
        """
        rows = np.tile(self.source.base, (len(values), 1))
        rows[:, i] = values
        return column_of(self.values_at(rows), j)

    def values_at(self, rows: FloatArray) -> Any:
        """What stands at this place for coded rows, (n, n_columns).

        Parameters
        ----------
        rows : (n, n_features) float64
        """
        with np.errstate(all="ignore"):
            return self.values(self.source.space.to_frame(rows))

    def dtype(self, j: int) -> str:
        """Name of the dtype of column j."""
        found = _select_columns(self.values(self.source.space.to_frame(self.source.base)), [j])
        if hasattr(found, "iloc"):
            return str(found.dtypes.iloc[0])
        types = getattr(found, "dtypes", None) or getattr(getattr(found, "schema", None), "types", ["object"])
        return str(getattr(found, "dtype", None) or types[0])

    def may_miss(self, j: int, missing: Any = np.nan) -> bool:
        """Whether column j is missing for some admissible row.

        Parameters
        ----------
        j : int
            Place of the column.
        missing : object
            The value that stands for missing ones.
        """
        column = self.columns[j]
        if column.mixed or column.number:
            return bool(column.mixed) or column.partial or not pd.isna(missing)
        i = max(column.feature, 0)
        levels = self.source.space.features[i].levels
        codes = np.arange(len(levels), dtype=np.float64) if column.discrete else self.source.base[[i]]
        rows = np.tile(self.source.base, (len(codes), 1))
        rows[:, i] = codes
        found = pd.Series(objects_of(self.values(self.source.space.to_frame(rows)), j))
        return bool((found.isna() if pd.isna(missing) else found == missing).any())

    def breaks_at(self, j: int, marks: Iterable[float]) -> tuple[int, ...]:
        """Breaks of a column of numbers, and where it reaches and where it leaves each of `marks`.

        Parameters
        ----------
        j : int
            Place of the column.
        marks : iterable of float
            Numbers that a step treats in a way of their own.
        """
        return tuple(sorted({*self.columns[j].breaks, *(k for keys in self.reached(j, marks) for k in keys)}))

    def reached(self, j: int, marks: Iterable[float]) -> list[tuple[int, ...]]:
        """For each of `marks` the keys at which a column of numbers reaches it and leaves it again.

        Parameters
        ----------
        j : int
            Place of the column.
        marks : iterable of float
            Of a column of float32 each counts also as float32 has it, for libraries compare in either; a break too many
            does no harm.
        """
        given = np.array(list(marks), np.float64)
        if len(given) > MOST_VALUES:
            raise UnsupportedModelError(
                f"a step treats {len(given)} numbers of feature {self.named(j)} each in a way of its own, more than "
                f"{MOST_VALUES}: describe the feature as kind 'categorical', or give ocf the table after that step"
            )
        low, high = self.pieces(self.columns[j])
        with np.errstate(over="ignore"):
            both = np.concatenate([given, given.astype(np.float32).astype(np.float64)])
        of = np.tile(np.arange(len(given)), 2)
        mark, first = np.unique(np.column_stack([both, of]), axis=0, return_index=True)
        piece, m, strict = (g.ravel() for g in np.meshgrid(np.arange(len(low)), np.arange(len(mark)), [0, 1]))
        keys, at = self._crossings(j, low[piece], high[piece], mark[m, 0], strict.astype(bool))
        owner = of[first][m[at]]
        return [tuple(np.unique(keys[owner == k]).tolist()) for k in range(len(given))]

    def zeros_of(self, j: int) -> tuple[int, ...] | None:
        """As `breaks_at` of 0, with those that rounding makes next to it; None where it makes some far from it.

        Parameters
        ----------
        j : int
            Place of the column.
        """
        column, breaks = self.columns[j], self.breaks_at(j, [0.0])
        own = np.array(sorted({*breaks} - {*column.breaks}), np.int64)
        if column.exact or not len(own):
            return breaks
        low, high = self.pieces(column)
        keys = np.unique(np.clip(np.add.outer(own, np.arange(-REACH, REACH)), low[0], high[-1]))
        zero = self.at(column.feature, Lattice.of(self.source.space.features[column.feature]).values(keys), j) == 0
        turns = keys[1:][(zero[1:] != zero[:-1]) & (np.diff(keys) == 1)]
        if (np.abs(np.subtract.outer(turns, own)).min(axis=1, initial=REACH) > REACH // 2).any():
            return None
        return tuple(sorted({*breaks, *turns.tolist()}))

    def pieces(self, column: Column) -> tuple[IntArray, IntArray]:
        """First and last keys of the pieces of a column of numbers, within what the way to the model takes."""
        lattice = Lattice.of(self.source.space.features[column.feature])
        first, last = lattice.keys(self.source.domain()[column.feature]).tolist()
        return pieces(column.breaks, *column.span(first, last))

    def _crossings(
        self, j: int, low: IntArray, high: IntArray, mark: FloatArray, strict: BoolArray
    ) -> tuple[IntArray, IntArray]:
        """First keys on the other side of a mark in pieces whose ends are on different sides, and which these are."""
        i = self.columns[j].feature
        lattice = Lattice.of(self.source.space.features[i])

        def below(keys: IntArray, at: IntArray) -> BoolArray:
            z = self.at(i, lattice.values(keys), j)
            return np.where(strict[at], z < mark[at], z <= mark[at])

        everywhere = np.arange(len(low))
        if not len(everywhere):
            return low, everywhere
        first = below(low, everywhere)
        at = np.flatnonzero(first != below(high, everywhere))
        low, high = low.copy(), high.copy()
        while len(moving := at[low[at] + 1 < high[at]]):
            # a call of what is in front of the column costs more than its rows: eight parts at a time, and not two
            keys = eighths(low[moving], high[moving])
            inner = below(keys[1:-1].ravel(), np.tile(moving, len(keys) - 2)).reshape(len(keys) - 2, -1)
            beyond = np.vstack([inner != first[moving], np.ones(len(moving), bool)]).argmax(axis=0)
            place = np.arange(len(moving))
            low[moving], high[moving] = keys[beyond, place], keys[beyond + 1, place]
        return high[at], at


def eighths(low: IntArray, high: IntArray) -> IntArray:
    """Keys from `low` to `high`, both included, that cut what lies between into eight parts, (9, n).

    Parameters
    ----------
    low, high : (n,) int64
        Parts are empty where fewer than eight keys lie between.
    """
    keys = np.array([low, high])
    for _ in range(3):
        finer = np.empty((2 * len(keys) - 1, len(low)), np.int64)
        finer[::2], finer[1::2] = keys, middle(keys[:-1], keys[1:])
        keys = finer
    return keys


def pieces(breaks: tuple[int, ...], first: int, last: int) -> tuple[IntArray, IntArray]:
    """First and last keys of the pieces between breaks, both included.

    Parameters
    ----------
    breaks : tuple of int
        Keys at which pieces begin, increasing.
    first, last : int
        Keys of the ends of the line.
    """
    inner = np.array([k for k in breaks if first < k <= last], np.int64)
    return np.concatenate([[first], inner]).astype(np.int64), np.concatenate([inner - 1, [last]]).astype(np.int64)


def column_of(values: Any, j: int) -> FloatArray:
    """One column of what stands at a place, as numbers, (n,) float64.

    Parameters
    ----------
    values : array, sparse matrix or table (n, n_columns)
    j : int
        Place of the column.
    """
    with np.errstate(all="ignore"):
        return _numbers(_select_columns(values, [j]))[:, 0]


def objects_of(values: Any, j: int) -> NDArray[Any]:
    """One column of what stands at a place, whatever it holds, (n,) object.

    Parameters
    ----------
    values : array, sparse matrix or table (n, n_columns)
    j : int
        Place of the column.
    """
    own = _select_columns(values, [j])
    return np.asarray(own.toarray() if hasattr(own, "tocoo") else own, object)[:, 0]


def _select_columns(values: Any, places: list[int]) -> Any:
    if hasattr(values, "iloc"):
        return values.iloc[:, places]
    if hasattr(values, "select") and hasattr(values, "columns"):  # polars, pyarrow
        names = getattr(values, "column_names", values.columns)
        return values.select([names[j] for j in places])
    return values[:, places]


def _numbers(values: Any) -> FloatArray:
    if hasattr(values, "tocoo"):
        values = values.toarray()
    if hasattr(values, "dtypes") and hasattr(values, "iloc"):
        kinds = {place: dtype_of(values.iloc[:, place])[0] for place in range(values.shape[1])}
        if any(map(is_time, kinds.values())):
            return np.column_stack([numbers_of(values.iloc[:, place], kind) for place, kind in kinds.items()])
        return np.asarray(values.astype("Float64").to_numpy(np.float64, na_value=np.nan), np.float64)
    if str(getattr(values, "dtype", "")) == "object":  # dates among others
        return np.column_stack([numbers_of(column, dtype_of(column)[0]) for _, column in pd.DataFrame(values).items()])
    return np.asarray(values, np.float64)


def shown(name: str, step: Any) -> str:
    """A step in words: its name and its class.

    Parameters
    ----------
    name : str
    step : object
    """
    kind = type(step).__name__
    return f"the step {name!r} ({kind})" if name != kind.lower() else f"the step {name!r}"


def kind_of(step: Any) -> str:
    """A step's class as readers list it; empty for those of other libraries. A subclass may do something else."""
    library = type(step).__module__.partition(".")[0]
    return type(step).__name__ + _LIBRARIES[library] if library in _LIBRARIES else ""

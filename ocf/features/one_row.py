"""Tables of one row that are made when they are looked at: as tables, thousands of them take tens of kilobytes each."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ocf.features.space import counterfactual_frame

if TYPE_CHECKING:
    import pandas as pd

    from ocf.arrays import FloatArray
    from ocf.features.space import FeatureSpace


class Maker(ABC):
    """Makes a table of one row; the same one as long as somebody holds it."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: weakref.ref[pd.DataFrame] | None = None

    def __call__(self) -> pd.DataFrame:
        """The table."""
        made = None if self._made is None else self._made()
        if made is None:
            made = self.make()
            self._made = weakref.ref(made)
        return made

    @abstractmethod
    def make(self) -> pd.DataFrame:
        """A table, made anew."""


class RowOf(Maker):
    """A row of a table.

    Parameters
    ----------
    table : DataFrame (n, n_columns)
        That nobody writes to.
    place : int
    """

    __slots__ = ("place", "table")

    def __init__(self, table: pd.DataFrame, place: int) -> None:
        super().__init__()
        self.table, self.place = table, place

    def make(self) -> pd.DataFrame:
        """The row, under its own label."""
        return self.table.iloc[[self.place]]

    def __reduce__(self) -> tuple[Any, ...]:
        """The way to another process, by itself."""
        return RowOf, (self(), 0)


class ChangedRow(Maker):
    """A row of which some features are changed; see `ocf.features.space.counterfactual_frame`.

    Parameters
    ----------
    original : Maker or DataFrame (1, n_columns)
    space : FeatureSpace
    origin, point : (n_features,) float64
        The row and the point, coded.
    """

    __slots__ = ("origin", "original", "point", "space")

    def __init__(
        self, original: Maker | pd.DataFrame, space: FeatureSpace, origin: FloatArray, point: FloatArray
    ) -> None:
        super().__init__()
        self.original, self.space, self.origin, self.point = original, space, origin, point

    def make(self) -> pd.DataFrame:
        """The row with what changes overwritten."""
        return counterfactual_frame(self.space, table_of_one(self.original), self.origin, self.point)

    def __reduce__(self) -> tuple[Any, ...]:
        """The way to another process."""
        return ChangedRow, (self.original, self.space, self.origin, self.point)


def table_of_one(held: Any) -> Any:
    """The table that is held, or made; None stays None."""
    return held() if isinstance(held, Maker) else held


class OneRow:
    """Attribute of a dataclass: a table of one row, a copy for each who looks, or its `Maker`, which `held` gives.

    Parameters
    ----------
    optional : bool
        Whether it is None by default.
    """

    def __init__(self, *, optional: bool = False) -> None:
        self._optional, self._name = optional, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is not None:
            return _copied(table_of_one(instance.__dict__[self._name]))
        if self._optional:
            return None
        raise AttributeError(self._name)  # a dataclass takes it for a field without a default

    def __set__(self, instance: object, value: Any) -> None:
        instance.__dict__[self._name] = value


def _copied(table: Any) -> Any:
    """A table of pandas, or of another library, that may be written to."""
    copy = getattr(table, "copy", None) or getattr(table, "clone", None)
    return table if copy is None else copy()


def held(instance: object, name: str) -> Any:
    """What a `OneRow` holds: the table or its maker.

    Parameters
    ----------
    instance : object
    name : str
        Of the attribute.
    """
    return instance.__dict__[f"_{name}"]

"""What a reader of a transformer says of a column: which feature moves it, and in which shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ocf.arrays import FloatArray


class Place(Protocol):
    """Where columns stand, somewhere between the user's table and the model."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""

    def numbers(self, table: Any) -> FloatArray:
        """Their values for a table in the user's columns, (n, n_columns)."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """What a column adds up: ``weights . z + offset`` of the columns z at an earlier place, but for rounding.

    Attributes
    ----------
    place : Place
    weights : (n_columns,) float64
    sizes : (n_columns,) float64
        Magnitudes of all products whose sum each weight is; the weight's own, if there is one.
    offset : float
    offset_size : float
        Likewise.
    terms : int
        Operations that a product passes through, at most.
    single : bool
        Whether some of it may be computed in float32.
    """

    place: Place
    weights: FloatArray
    sizes: FloatArray
    offset: float
    offset_size: float
    terms: int
    single: bool = False

    def scaled(self, factor: float, shift: float = 0.0) -> Mixture:
        """What ``factor * column + shift`` adds up.

        Parameters
        ----------
        factor, shift : float
        """
        return replace(
            self,
            weights=factor * self.weights,
            sizes=abs(factor) * self.sizes,
            offset=factor * self.offset + shift,
            offset_size=abs(factor) * self.offset_size + abs(shift),
            terms=self.terms + 3,
        )

    def error(self, reach: FloatArray) -> float:
        """Bound on what rounding does to the library's value, and to the same sum in float64.

        Summing n products in any order errs by at most ``n u / (1 - n u)`` times the sum of their magnitudes (Higham,
        *Accuracy and stability of numerical algorithms*, section 3.1), of which twice ``n u`` is more.

        Parameters
        ----------
        reach : (n_columns,) float64
            Largest magnitude of each column.
        """
        unit = 2.0 ** (-24 if self.single else -53)
        return float(2 * self.terms * (unit + 2.0**-53) * (self.sizes @ reach + self.offset_size))


@dataclass(frozen=True)
class Column:
    """How a column, somewhere between the user's table and the model, depends on the features of the table.

    Nothing is said of values: they are computed by the user's own transformers wherever they are needed.

    Attributes
    ----------
    feature : int
        The only feature that moves the column; -1: none, it is the same for every row.
    discrete : bool
        Whether that feature is discrete; the column may be any function of its levels then. Of a numeric feature it is
        monotone in each piece of the line.
    breaks : tuple of int
        Keys of the feature's lattice (`ocf.features.lattice`) at which a new piece begins, increasing.
    exact : bool
        Whether it is monotone to the last bit; otherwise but for rounding.
    affine : bool
        Whether it is ``a x + b`` but for rounding.
    stepped : bool
        Whether it takes few values, each on intervals of the feature's numbers.
    bent_by : str
        The first step behind which a number is no longer affine, in words.
    within : tuple of (int, int) or None
        First and last key between which all this holds, where it does not on the whole line.
    partial : bool
        Whether it is NaN for some numbers: beyond where a logarithm is defined.
    mixed : str
        Why it is no function of one feature that can be told; empty where it is one.
    mixture : Mixture or None
        Of a mixed column that adds up others: trees split it along hyperplanes.
    """

    feature: int = -1
    discrete: bool = False
    breaks: tuple[int, ...] = ()
    exact: bool = True
    affine: bool = False
    stepped: bool = False
    bent_by: str = ""
    within: tuple[int, int] | None = None
    partial: bool = False
    mixed: str = ""
    mixture: Mixture | None = None

    @property
    def constant(self) -> bool:
        """Whether the column is the same for every row."""
        return self.feature < 0 and not self.mixed

    @property
    def number(self) -> bool:
        """Whether the column is moved by a numeric feature alone."""
        return self.feature >= 0 and not self.discrete and not self.mixed

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The part of an interval of keys in which the column is known.

        Parameters
        ----------
        first, last : int
        """
        return (first, last) if self.within is None else (max(first, self.within[0]), min(last, self.within[1]))

    def bent(self, *, exact: bool = True, partial: bool = False, stepped: bool = False) -> Column:
        """The column behind a monotone function.

        Parameters
        ----------
        exact : bool
            Whether the function is monotone in floating point too.
        partial : bool
            Whether it is undefined beyond an interval.
        stepped : bool
            Whether it takes few values.
        """
        if not self.number:
            return self
        return replace(
            self,
            affine=False,
            exact=self.exact and exact,
            partial=self.partial or partial,
            stepped=self.stepped or stepped,
        )

    def scaled(self, factor: float, shift: float = 0.0) -> Column:
        """The column behind ``factor * column + shift``, which changes no shape.

        Parameters
        ----------
        factor, shift : float
        """
        return self if self.mixture is None else replace(self, mixture=self.mixture.scaled(factor, shift))

    def broken(self, breaks: Iterable[int], *, exact: bool = True, stepped: bool = False) -> Column:
        """The column behind a function that is monotone between breaks.

        Parameters
        ----------
        breaks : iterable of int
            Of the column as it is now and of the function, as `Flow.breaks_at` finds them.
        exact, stepped : bool
            As in `bent`.
        """
        return replace(self.bent(exact=exact, stepped=stepped), breaks=tuple(sorted(set(breaks))))


#: The same for every row.
CONSTANT = Column()


def mixed(why: str) -> Column:
    """A column whose splits cannot be told from one feature.

    Parameters
    ----------
    why : str
        Begins with the name of the step and ends with the remedy.
    """
    return Column(mixed=why)

"""What a reader of a transformer says of a column: which feature moves it, and in which shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


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
    partial : bool
        Whether it is NaN for some numbers: beyond where a logarithm is defined.
    mixed : str
        Why it is no function of one feature that can be told; empty where it is one.
    """

    feature: int = -1
    discrete: bool = False
    breaks: tuple[int, ...] = ()
    exact: bool = True
    affine: bool = False
    partial: bool = False
    mixed: str = ""

    @property
    def constant(self) -> bool:
        """Whether the column is the same for every row."""
        return self.feature < 0 and not self.mixed

    @property
    def number(self) -> bool:
        """Whether the column is moved by a numeric feature alone."""
        return self.feature >= 0 and not self.discrete and not self.mixed

    def bent(self, *, exact: bool = True, partial: bool = False) -> Column:
        """The column behind a monotone function.

        Parameters
        ----------
        exact : bool
            Whether the function is monotone in floating point too.
        partial : bool
            Whether it is undefined beyond an interval.
        """
        if not self.number:
            return self
        return replace(self, affine=False, exact=self.exact and exact, partial=self.partial or partial)

    def broken(self, breaks: Iterable[int], *, exact: bool = True) -> Column:
        """The column behind a function that is monotone between breaks.

        Parameters
        ----------
        breaks : iterable of int
            Of the column as it is now and of the function, as `Flow.breaks_at` finds them.
        exact : bool
            As in `bent`.
        """
        return replace(self.bent(exact=exact), breaks=tuple(sorted(set(breaks))))


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

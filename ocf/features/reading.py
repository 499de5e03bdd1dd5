"""How a table was read, in a few lines: "proven" is only as good as the problem that the user meant."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.features.feature import Feature
from ocf.support.documents import fit
from ocf.support.messages import counted, listed
from ocf.support.schemas import ReadingSchema
from ocf.support.wording import word

#: Rows of data from which bounds, scales and levels are better not taken.
FEW = 30

#: Names in a list.
MOST = 6

#: Numbers that tables write where they have none.
CODES = (-1, -2, -3, -7, -8, -9, -77, -88, -99, -999, -9999, -99999)
CODES_ON_TOP = (999, 9999, 99999, 999999, 9999999)

#: Words that stand for dates, with a time of day or without, and for numbers; "00501" is a code, and none.
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ]\d.*)?|\d\d?[./]\d\d?[./]\d{4}")
NUMBER = re.compile(r"[-+]?(0|[1-9]\d*)(\.\d*)?(e[-+]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """Where the description of a table's features comes from.

    Attributes
    ----------
    rows : int
        Of the data.
    told : tuple of str
        Features whose bounds the user has said.
    groups : tuple of str
        Features whose indicator columns were recognised.
    whole : tuple of str
        Features read as whole numbers, whose column is one of floats because it has gaps.
    suspects : tuple of (str, tuple of float)
        Features with numbers that look like codes.
    asked : bool
        Whether the data are the rows that are asked about.
    """

    rows: int
    told: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    suspects: tuple[tuple[str, tuple[float, ...]], ...] = ()
    asked: bool = False

    @property
    def few(self) -> bool:
        """Whether there are so few rows that bounds, scales and levels say little."""
        return self.rows < FEW

    def to_dict(self) -> dict[str, Any]:
        """What an answer keeps of it, JSON-ready; `from_dict` is the inverse."""
        rare = {
            "suspects": {name: list(codes) for name, codes in self.suspects},
            "told": list(self.told),
            "whole": list(self.whole),
            "asked": self.asked,
        }
        return {"rows": self.rows, "groups": list(self.groups)} | {key: said for key, said in rare.items() if said}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reading:
        """Reading from what `to_dict` wrote.

        Raises
        ------
        DataError
            It is something else.
        """
        found = fit(data, ReadingSchema, "how the table was read")
        suspects = tuple((name, tuple(codes)) for name, codes in found.suspects.items())
        return cls(found.rows, tuple(found.told), tuple(found.groups), tuple(found.whole), suspects, found.asked)


def rows_of_data(count: int) -> str:
    """A number of rows, in words."""
    return f"{counted(count, 'row')} of data"


def in_words(feature: Feature, lowest: float, highest: float) -> str:
    """Bounds of a feature with numbers, in the user's units.

    Parameters
    ----------
    feature : Feature
    lowest, highest : float
        Both inclusive; infinite where there is none.
    """
    low, high = (word(feature.label(end)) if math.isfinite(end) else "" for end in (lowest, highest))
    if not (low and high):
        return f"at least {low}" if low else f"at most {high}" if high else "any"
    return low if low == high else f"{low} to {high}"


def code_like(numbers: FloatArray) -> tuple[float, ...]:
    """Numbers of a column that look like codes: lone negative ones, or nines far above all others.

    Parameters
    ----------
    numbers : (n,) float64
        Without missing ones.
    """
    below = np.unique(numbers[numbers < 0])
    most = float(numbers.max()) if len(numbers) else 0.0
    if 0 < len(below) <= 3 and most >= 10 and np.isin(below, CODES).all():
        return tuple(below.tolist())
    rest = numbers[numbers < most]
    if most in CODES_ON_TOP and len(rest) and len(numbers) - len(rest) > 1 and rest.max() < most / 2:
        return (most,)
    return ()


def lines_of(features: Sequence[Feature], n_columns: int, reading: Reading | None) -> list[str]:
    """How a table was read, in at most five lines.

    Parameters
    ----------
    features : sequence of Feature
    n_columns : int
        Of the table.
    reading : Reading or None
        None where the features were described without data.
    """
    of = "" if reading is None else f" by {rows_of_data(reading.rows)}"
    parts = [
        [f"read{of}: {counted(n_columns, 'column')} as {counted(len(features), 'feature')}"],
        _numbers(features, reading),
        _levels(features, reading),
        _bounds(features, reading),
        _limits(features, reading),
    ]
    return ["; ".join(part) if k == 0 else "  " + "; ".join(part) for k, part in enumerate(parts) if part]


def _said(title: str, names: Iterable[str], note: str = "") -> list[str]:
    """A title and names; nothing where there are none."""
    found = list(names)
    return [f"{title}: {listed(found, MOST)}{note}"] if found else []


def _numbers(features: Sequence[Feature], reading: Reading | None) -> list[str]:
    """Features with numbers."""
    whole = () if reading is None else reading.whole
    numbers = [f for f in features if not f.discrete]
    return [
        *_said("numbers", (f.name for f in numbers if not f.is_time and f.kind == "numeric")),
        *_said("whole numbers", (f.name for f in numbers if f.kind == "integer" and not f.is_time | (f.name in whole))),
        *_said("whole numbers with gaps", whole, " (kind='numeric' gives them fractions)"),
        *_said("dates and durations", (f.name for f in numbers if f.is_time)),
    ]


def _levels(features: Sequence[Feature], reading: Reading | None) -> list[str]:
    """Features with levels."""
    found = () if reading is None else reading.groups
    grouped = [f for f in features if len(f.columns) > 1 or f.base]
    groups = [f"{f.name} ({len(f.columns)} columns{', or none of them' * f.base})" for f in grouped]
    plain = [f for f in features if f.discrete and f not in grouped]
    note = ", recognised (groups=False reads columns one by one)" if found else ""
    categories = [f for f in plain if f.kind == "categorical"]
    return [
        *_said("one category each", groups, note),
        *_said("categories", (f.name for f in categories)),
        *_said("of them dates in words", _alike(categories, DATE), " (pd.to_datetime makes them dates)"),
        *_said("of them numbers in words", _alike(categories, NUMBER), " (pd.to_numeric makes them numbers)"),
        *_said("ordered levels", (f.name for f in plain if f.kind == "ordinal")),
        *_said("two values", (f.name for f in plain if f.kind == "binary")),
    ]


def _alike(features: Iterable[Feature], pattern: re.Pattern[str]) -> Iterator[str]:
    """Features with more than two levels, all of them such words."""
    for feature in features:
        levels = feature.levels
        if len(levels) > 2 and all(isinstance(level, str) and pattern.fullmatch(level) for level in levels):
            yield feature.name


def _bounds(features: Sequence[Feature], reading: Reading | None) -> list[str]:
    """Where bounds, scales and levels come from."""
    if reading is None:
        return ["bounds, scales and levels as described"]
    few = "only " if reading.few else "the "
    said = [f"bounds, scales and levels: those of {few}{rows_of_data(reading.rows)}"]
    told = (f"{f.name} {in_words(f, f.lower, f.upper)}" for f in features if f.name in reading.told)
    return [*said, *_said("bounds that you set", told)]


def _limits(features: Sequence[Feature], reading: Reading | None) -> list[str]:
    """What may not change, or in one direction only; codes, and what looks like them."""
    suspects = () if reading is None else reading.suspects
    codes = sorted({code for _, own in suspects for code in own})
    alike = f" ({', '.join(map(word, codes))}; special_values={[_plain(c) for c in codes]} reads them so)"
    return [
        *_said("fixed", (f.name for f in features if f.action == "fixed")),
        *_said("only up", (f.name for f in features if f.action == "increasing")),
        *_said("only down", (f.name for f in features if f.action == "decreasing")),
        *_said("with codes", (f.name for f in features if f.special is not None and f.special.codes)),
        *_said("with numbers that look like codes", (name for name, _ in suspects), alike),
    ]


def _plain(code: float) -> float | int:
    return int(code) if code.is_integer() else code

"""Parts of a nested document, each with its place, read only as what they must be.

A model file is a stranger's: a part that is missing, of another type or out of its range is an error that names the
place, such as ``learner.gradient_booster.model.trees[3].left_children[7]``. Nothing is converted in silence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray, IntArray
from ocf.errors import ModelError

#: Decimal numbers as the libraries print them; Python alone would also take ``1_0`` and other scripts' digits.
WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class DocumentPart:
    """A value of a document and where it stands.

    Attributes
    ----------
    value : object
        As a JSON or UBJSON decoder returns it.
    at : str
        Path from the root, empty for the root itself.
    """

    value: Any
    at: str = ""

    def error(self, problem: str, index: int | None = None) -> ModelError:
        """Error to raise about this part, or about one entry of it.

        Parameters
        ----------
        problem : str
            What is wrong with it, after its name.
        index : int, optional
            Of the entry of a list.
        """
        place = (self.at or "the top") + ("" if index is None else f"[{index}]")
        return ModelError(f"{problem}, at {place}: the model is corrupt, save it again")

    def fields(self) -> Mapping[str, Any]:
        """Entries of an object."""
        if not isinstance(self.value, Mapping):
            raise self.error(f"an object is expected, not {_kind(self.value)}")
        return self.value

    def __contains__(self, key: str) -> bool:
        return key in self.fields()

    def __getitem__(self, key: str) -> DocumentPart:
        if key not in self.fields():
            raise self.error(f"there is no {key!r}")
        return DocumentPart(self.value[key], f"{self.at}.{key}" if self.at else key)

    def refuse_other_than(self, known: Iterable[str]) -> None:
        """Raise on entries that have no known meaning."""
        if unknown := sorted(set(self.fields()) - set(known)):
            raise ModelError(
                f"ocf does not know the part {unknown[0][:40]!r}, at {self.at or 'the top'}, which might change the "
                "predictions: if a newer version of the library wrote it, load the file with the library and give ocf "
                "the object"
            )

    def parts(self) -> list[DocumentPart]:
        """Entries of a list."""
        if not isinstance(self.value, list | np.ndarray):
            raise self.error(f"a list is expected, not {_kind(self.value)}")
        return [DocumentPart(value, f"{self.at}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        """Text that can be written again: neither NUL nor half of a surrogate pair in it."""
        if not isinstance(self.value, str):
            raise self.error(f"text is expected, not {_kind(self.value)}")
        if "\0" in self.value or not _encodable(self.value):
            raise self.error(f"{self.value[:40]!r} holds what is no character")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """Entries of a list of texts."""
        return tuple(part.text() for part in self.parts())

    def integer(self, low: int = 0, high: int = 2**31 - 1) -> int:
        """Whole number within bounds.

        Parameters
        ----------
        low, high : int
            Both inclusive.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, int | np.integer):
            raise self.error(f"a whole number is expected, not {_kind(self.value)}")
        if not low <= self.value <= high:
            raise self.error(f"{_brief(self.value)} is not between {low} and {high}")
        return int(self.value)

    def number(self) -> float:
        """Finite number, whole or not."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float | np.integer | np.floating):
            raise self.error(f"a number is expected, not {_kind(self.value)}")
        try:
            value = float(self.value)
        except OverflowError:
            raise self.error("a number is too large") from None
        if not math.isfinite(value):
            raise self.error(f"{value!r} is not finite")
        return value

    def numbers(self, n: int | None = None) -> FloatArray:
        """One-dimensional array of finite numbers, whole or not, `n` of them."""
        column = np.array([part.number() for part in self.parts()], np.float64)
        self._check_length(column, n)
        return column

    def printed_integer(self, low: int = 0, high: int = 2**31 - 1) -> int:
        """Whole number within bounds that stands as text.

        Parameters
        ----------
        low, high : int
            Both inclusive.
        """
        text = self.text()
        if not WHOLE.fullmatch(text):
            raise self.error(f"{text[:40]!r} is no whole number")
        return DocumentPart(int(text), self.at).integer(low, high)

    def printed_numbers(self) -> FloatArray:
        """One number as text, or several in brackets."""
        text = self.text()
        words = text[1:-1].split(",") if text[:1] == "[" and text[-1:] == "]" else [text]
        if not all(NUMBER.fullmatch(word.strip()) for word in words):
            raise self.error(f"{text[:40]!r} is no number")
        return np.array([float(word) for word in words])

    def integers(self, n: int | None = None, low: int = -(2**31), high: int = 2**31 - 1) -> IntArray:
        """One-dimensional array of whole numbers, `n` of them, within bounds.

        Parameters
        ----------
        n : int, optional
            How many there must be.
        low, high : int
            Both inclusive.
        """
        column = self._column("iu", {int}).astype(np.int64)
        self._check_length(column, n)
        self._refuse_where((column < low) | (column > high), column, f"is not between {low} and {high}")
        return column

    def flags(self, n: int) -> NDArray[np.bool_]:
        """One-dimensional array of 0 and 1, or of false and true."""
        column = self._column("iub", {int, bool})
        self._check_length(column, n)
        self._refuse_where((column != 0) & (column != 1), column, "is neither 0 nor 1")
        return column.astype(bool)

    def singles(self, n: int | None = None) -> NDArray[np.float32]:
        """One-dimensional array of numbers in float32; what is infinite or NaN there must be so in the document."""
        column = self._column("f", {float}).astype(np.float64)
        self._check_length(column, n)
        with np.errstate(over="ignore"):
            single = column.astype(np.float32)
        self._refuse_where(np.isinf(single) & np.isfinite(column), column, "does not fit into float32")
        return single

    def finite_singles(self, n: int | None = None) -> NDArray[np.float32]:
        """One-dimensional array of finite numbers in float32."""
        column = self.singles(n)
        self._refuse_where(~np.isfinite(column), column, "is not finite")
        return column

    def _column(self, kinds: str, types: set[type]) -> NDArray[Any]:
        """Array of a decoder, or list whose entries are all of these types."""
        if isinstance(self.value, np.ndarray):
            if self.value.ndim != 1 or self.value.dtype.kind not in kinds:
                raise self.error(f"an array of {self.value.dtype} is not what belongs")
            return self.value
        if not isinstance(self.value, list):
            raise self.error(f"a list is expected, not {_kind(self.value)}")
        if not set(map(type, self.value)) <= types:
            index = next(i for i, value in enumerate(self.value) if type(value) not in types)
            raise self.error(f"{_kind(self.value[index])} is not what belongs", index)
        try:
            return np.array(self.value, np.float64 if float in types else np.int64)
        except OverflowError:
            raise self.error("a number is too large") from None

    def _check_length(self, column: NDArray[Any], n: int | None) -> None:
        if n is not None and len(column) != n:
            raise self.error(f"{len(column)} entries where {n} belong")

    def _refuse_where(self, wrong: NDArray[np.bool_], column: NDArray[Any], problem: str) -> None:
        if wrong.any():
            index = int(np.argmax(wrong))
            raise self.error(f"{_brief(column[index].item())} {problem}", index)


def load_json(data: bytes) -> Any:
    """Value of a JSON document in UTF-8.

    Raises
    ------
    ModelError
        Invalid, truncated or too deeply nested JSON, or an object that names a key twice.
    """
    try:
        return json.loads(data.decode(), object_pairs_hook=_without_repeated_keys)
    except (ValueError, RecursionError) as cause:
        raise ModelError(f"invalid JSON in the model file ({cause}; truncated?): save the model again") from cause


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(k for k in keys if keys.count(k) > 1)[:40]!r} comes twice")
    return fields


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: Any) -> str:
    """Kind of a value in words."""
    if value is None:
        return "null"
    if isinstance(value, np.ndarray):
        return "an array"
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text", dict: "an object"}
    return kinds.get(type(value), "a list")


def _brief(value: Any) -> str:
    """A number, cut short: one with thousands of digits cannot even be printed."""
    return repr(value) if not isinstance(value, int) or abs(value) < 10**20 else "a number of more than 20 digits"

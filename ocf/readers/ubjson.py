"""A strict decoder and an encoder of UBJSON (draft 12), the binary format of XGBoost's model files.

Arrays of numbers with a declared type come back as numpy arrays, everything else as plain Python objects.
The decoder never trusts a length that it reads: a count that the remaining bytes cannot hold is an error at
once, so a damaged file costs neither memory nor time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ocf.errors import ModelError

#: Numeric markers and the big-endian types they stand for.
_NUMBERS: dict[bytes, np.dtype[Any]] = {
    b"i": np.dtype(">i1"),
    b"U": np.dtype(">u1"),
    b"I": np.dtype(">i2"),
    b"l": np.dtype(">i4"),
    b"L": np.dtype(">i8"),
    b"d": np.dtype(">f4"),
    b"D": np.dtype(">f8"),
}
_FORMATS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_INTEGERS = frozenset(b"iUIlL")
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_TYPES = frozenset(b"%c" % marker for marker in b"iUIlLdDZTFCHS[{")
#: Deeper nesting than any model has; Python's own stack allows more.
_MAX_DEPTH = 64


def decode(data: bytes) -> Any:
    """Value that a UBJSON document holds.

    Parameters
    ----------
    data : bytes
        One whole document.

    Returns
    -------
    object
        dict, list, numpy array (of arrays with a declared numeric type), str, int, float, bool or None.

    Raises
    ------
    ModelError
        The bytes are no UBJSON, end too early, or go on after the document; the message gives the offset.
    """
    decoder = _Decoder(bytes(data))
    value = decoder.value(decoder.marker(), 0)
    if decoder.at != len(decoder.data):
        raise decoder.error("the document has ended but the file goes on")
    return value


class _Decoder:
    """Reads one document from front to back; `at` is the next byte."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        #: Entries that may still be announced: not all take a byte, so that nested counts could multiply.
        self._budget = len(data)
        self._containers: dict[bytes, Callable[[int], Any]] = {b"[": self._array, b"{": self._object}

    def error(self, problem: str) -> ModelError:
        return ModelError(f"invalid UBJSON at byte {self.at}: {problem}; save the model again")

    def take(self, n: int) -> bytes:
        if n > len(self.data) - self.at:
            raise self.error(f"{n} more bytes expected, {len(self.data) - self.at} left (file truncated?)")
        chunk = self.data[self.at : self.at + n]
        self.at += n
        return chunk

    def marker(self) -> bytes:
        while (marker := self.take(1)) == b"N":  # no-op, allowed between values
            pass
        return marker

    def value(self, marker: bytes, depth: int) -> Any:
        if marker in _FORMATS:
            return self._number(marker)
        if marker in self._containers:
            if depth >= _MAX_DEPTH:
                raise self.error(f"containers nested deeper than {_MAX_DEPTH}")
            return self._containers[marker](depth + 1)
        if marker == b"S":
            return self._text(self._length())
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == b"C":
            return self._text(1)
        if marker == b"H":
            return self._high_precision()
        raise self.error(f"unknown type marker {marker!r}")

    def _number(self, marker: bytes) -> int | float:
        layout = _FORMATS[marker]
        number: int | float = struct.unpack(layout, self.take(struct.calcsize(layout)))[0]
        return number

    def _length(self) -> int:
        marker = self.take(1)
        if marker[0] not in _INTEGERS:
            raise self.error(f"a length must be an integer, not of type {marker!r}")
        length = int(self._number(marker))
        if not 0 <= length <= len(self.data) - self.at:
            raise self.error(f"length {length}, but {len(self.data) - self.at} bytes are left (file truncated?)")
        return length

    def _text(self, length: int) -> str:
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as cause:
            raise self.error("text that is not UTF-8") from cause

    def _high_precision(self) -> float:
        text = self._text(self._length())
        try:
            return float(text)
        except ValueError as cause:
            raise self.error(f"{text[:40]!r} is no number") from cause

    def _header(self) -> tuple[bytes | None, int | None]:
        """Read the declared element type and count of a container, where given."""
        kind = None
        if self._next_is(b"$"):
            kind = self.take(1)
            if kind not in _TYPES:
                raise self.error(f"unknown type marker {kind!r}")
            if not self._next_is(b"#"):
                raise self.error("a typed container needs a count")
            return kind, self._count()
        return kind, self._count() if self._next_is(b"#") else None

    def _count(self) -> int:
        count = self._length()
        self._budget -= count
        if self._budget < 0:
            raise self.error(f"a count of {count}, and with it more entries than the file has bytes")
        return count

    def _next_is(self, wanted: bytes) -> bool:
        if self.data[self.at : self.at + 1] != wanted:
            return False
        self.at += 1
        return True

    def _array(self, depth: int) -> Any:
        kind, count = self._header()
        if kind in _NUMBERS and count is not None:
            dtype = _NUMBERS[kind]
            return np.frombuffer(self.take(count * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))
        if count is not None:
            return [self.value(kind or self.marker(), depth) for _ in range(count)]
        items = []
        while (marker := self.marker()) != b"]":
            items.append(self.value(marker, depth))
        return items

    def _object(self, depth: int) -> dict[str, Any]:
        kind, count = self._header()
        items: dict[str, Any] = {}
        while count is None or len(items) < count:
            if count is None and self._next_is(b"}"):
                break
            key = self._text(self._length())
            if key in items:
                raise self.error(f"the key {key[:40]!r} comes twice")
            items[key] = self.value(kind or self.marker(), depth)
        return items


def encode(value: Any) -> bytes:
    """UBJSON document of a value: a mapping, sequence, text, whole number or numpy array of numbers.

    Lists carry their length and numpy arrays their type, as XGBoost writes them.

    Raises
    ------
    TypeError
        For other values.
    """
    if isinstance(value, np.ndarray):
        marker, dtype = next((m, d) for m, d in _NUMBERS.items() if d == value.dtype.newbyteorder(">"))
        return b"[$" + marker + b"#" + _encoded_length(len(value)) + value.astype(dtype).tobytes()
    if isinstance(value, dict):
        return b"{" + b"".join(_encoded_text(key) + encode(part) for key, part in value.items()) + b"}"
    if isinstance(value, list | tuple):
        return b"[#" + _encoded_length(len(value)) + b"".join(encode(part) for part in value)
    if isinstance(value, str):
        return b"S" + _encoded_text(value)
    if isinstance(value, np.float32):
        return b"d" + struct.pack(">f", value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _encoded_length(value)
    raise TypeError(f"no UBJSON for {type(value)}")


def _encoded_length(number: int) -> bytes:
    return b"L" + struct.pack(">q", number)


def _encoded_text(text: str) -> bytes:
    data = text.encode()
    return _encoded_length(len(data)) + data
